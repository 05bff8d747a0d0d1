// SPDX-License-Identifier: GPL-2.0
//! Work queue entries of send and receive queues, generation 2 layout.
//!
//! An entry is one to eight quanta of 32 bytes. Its header is the fourth
//! quadword of the first quantum; each further quantum has a valid bit in its
//! fourth quadword too (for inline data: in its last byte), so that the device
//! sees a half-written entry. The valid bit's meaning flips at each wrap.

pub mod decode;

pub use decode::{decode_rq, decode_sq};

/// Bytes of a quantum, the unit of queue sizes and WQE indices.
pub const QUANTUM: usize = 32;
/// The most quanta of one entry.
pub const MAX_QUANTA: usize = 8;
/// Quanta of a send queue that the device fetches together, from a multiple of
/// it on: no entry crosses its end (max_hw_sq_chunk of the stock driver, which
/// fills up with NOPs).
pub const CHUNK: usize = 8;
/// The most fragments of one entry, empty ones among them (max_hw_wq_frags):
/// fewer than the layout can hold.
pub const MAX_FRAGMENTS: usize = 13;
/// The most inline bytes of one entry (max_hw_inline): fewer than the layout
/// can hold.
pub const MAX_INLINE: usize = 101;

/// Opcodes of the send queue.
#[rustfmt::skip]
pub mod op {
    pub const WRITE: u8          = 0x00;
    pub const READ: u8           = 0x01;
    pub const SEND: u8           = 0x03;
    pub const SEND_INV: u8       = 0x04;
    pub const SEND_SOL: u8       = 0x05;
    pub const SEND_SOL_INV: u8   = 0x06;
    pub const BIND_WINDOW: u8    = 0x08;
    pub const FAST_REGISTER: u8  = 0x09;
    pub const LOCAL_INV: u8      = 0x0a;
    pub const READ_LOCAL_INV: u8 = 0x0b;
    pub const NOP: u8            = 0x0c;
    pub const WRITE_SOL: u8      = 0x0d;
}

/// One piece of memory: an address in the region that `stag` names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragment {
    pub address: u64,
    pub length: u32,
    pub stag: u32,
}

/// The fragments of an entry, in order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fragments {
    list: [Fragment; MAX_FRAGMENTS],
    count: u8,
}

impl Fragments {
    pub const EMPTY: Self = Self {
        list: [Fragment {
            address: 0,
            length: 0,
            stag: 0,
        }; MAX_FRAGMENTS],
        count: 0,
    };

    /// Fragments of no bytes say nothing and are left out; false: too many.
    pub fn push(&mut self, fragment: Fragment) -> bool {
        if fragment.length == 0 {
            return true;
        }
        let Some(place) = self.list.get_mut(usize::from(self.count)) else {
            return false;
        };
        *place = fragment;
        self.count += 1;
        true
    }

    pub fn as_slice(&self) -> &[Fragment] {
        &self.list[..usize::from(self.count)]
    }

    /// Bytes of all together.
    pub fn total(&self) -> u64 {
        self.as_slice().iter().map(|f| u64::from(f.length)).sum()
    }
}

impl std::fmt::Debug for Fragments {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// Where the bytes to send are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Data {
    Inline { bytes: [u8; MAX_INLINE], length: u8 },
    Fragments(Fragments),
}

impl Data {
    pub fn total(&self) -> u64 {
        match self {
            Self::Inline { length, .. } => u64::from(*length),
            Self::Fragments(fragments) => fragments.total(),
        }
    }
}

impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Inline { bytes, length } => f
                .debug_tuple("Inline")
                .field(&bytes.get(..usize::from(*length)))
                .finish(),
            Self::Fragments(fragments) => fragments.fmt(f),
        }
    }
}

/// FAST_REGISTER: gives an allocated STag its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FastRegister {
    /// Key and index of the STag, as a work request would use it.
    pub stag: u32,
    /// Virtual address of the first byte, or offset into the first page.
    pub address: u64,
    pub length: u64,
    /// The only page's address where there is no page list.
    pub page_address: u64,
    pub first_pble: u32,
    /// 0: no list, 1: one level, 3: two levels.
    pub pbl_levels: u8,
    /// 0: 4 KiB, 1: 2 MiB, 2: 1 GiB.
    pub page_size: u8,
    pub rights: u8,
    pub va_based: bool,
    pub remote_atomics: bool,
}

/// BIND_WINDOW: binds a memory window to a part of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BindWindow {
    pub window: u32,
    pub parent: u32,
    pub address: u64,
    pub length: u64,
    pub rights: u8,
    pub va_based: bool,
    pub type_1: bool,
    pub remote_atomics: bool,
}

/// What the entry asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Nop,
    Send {
        data: Data,
        imm: Option<u32>,
        /// The remote STag to invalidate.
        invalidate: Option<u32>,
        solicited: bool,
        /// Datagrams only: address handle, key and number of the peer.
        ah: u32,
        qkey: u32,
        dest_qp: u32,
    },
    Write {
        data: Data,
        imm: Option<u32>,
        solicited: bool,
        address: u64,
        rkey: u32,
    },
    Read {
        into: Fragments,
        address: u64,
        rkey: u32,
        /// Invalidate the (only) local STag when the data is there.
        invalidate: bool,
    },
    LocalInvalidate {
        stag: u32,
    },
    FastRegister(FastRegister),
    BindWindow(BindWindow),
}

/// A decoded entry of a send queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWqe {
    pub opcode: u8,
    pub quanta: u8,
    pub signaled: bool,
    pub local_fence: bool,
    pub read_fence: bool,
    pub work: Work,
}

/// A decoded entry of a receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecvWqe {
    pub fragments: Fragments,
}

/// Why an entry cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WqeError {
    /// The device knows no such opcode here.
    Opcode(u8),
    /// A later quantum's valid bit disagrees with the header's.
    Polarity {
        quantum: u8,
    },
    /// A reserved bit is set (the header's bits named).
    Reserved(u64),
    /// The entry runs over the end of the ring or the receive entry's size.
    Overrun,
    /// The entry crosses the end of a [`CHUNK`].
    Chunk,
    InlineLength(u8),
    /// More than [`MAX_FRAGMENTS`].
    TooManyFragments,
    Parameter(&'static str),
}

/// The header of an entry, enough to know whether it is there and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header(pub u64);

impl Header {
    /// From the first quantum.
    pub fn of(quantum: &[u8; QUANTUM]) -> Self {
        let mut word = [0; 8];
        word.copy_from_slice(&quantum[24..]);
        Self(u64::from_le_bytes(word))
    }

    /// The valid bit; compare with the queue's polarity.
    pub fn valid(self) -> bool {
        self.0 >> 63 != 0
    }

    pub fn opcode(self) -> u8 {
        (self.0 >> 32) as u8 & 0x3f
    }

    pub fn is_inline(self) -> bool {
        self.0 >> 57 & 1 != 0
    }

    pub fn inline_length(self) -> u8 {
        (self.0 >> 48) as u8
    }

    /// Fragments beyond the one in the first quantum.
    pub fn more_fragments(self) -> u8 {
        (self.0 >> 38) as u8 & 0xf
    }

    fn fragment_quanta(self) -> usize {
        1 + usize::from(self.more_fragments()).div_ceil(2)
    }

    /// Quanta of the send entry, 1 to 9 (more than [`MAX_QUANTA`] is an error).
    pub fn send_quanta(self) -> usize {
        match self.opcode() {
            op::NOP | op::LOCAL_INV | op::FAST_REGISTER | op::BIND_WINDOW => 1,
            _ if self.is_inline() => {
                1 + usize::from(self.inline_length().saturating_sub(8)).div_ceil(31)
            }
            _ => self.fragment_quanta(),
        }
    }
}

#[cfg(test)]
mod tests;
