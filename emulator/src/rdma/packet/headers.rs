// SPDX-License-Identifier: GPL-2.0
//! The InfiniBand transport headers: base (BTH) and extended.

/// A BTH opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Opcode(pub u8);

#[rustfmt::skip]
impl Opcode {
    pub const SEND_FIRST: Self           = Self(0x00);
    pub const SEND_MIDDLE: Self          = Self(0x01);
    pub const SEND_LAST: Self            = Self(0x02);
    pub const SEND_LAST_IMM: Self        = Self(0x03);
    pub const SEND_ONLY: Self            = Self(0x04);
    pub const SEND_ONLY_IMM: Self        = Self(0x05);
    pub const WRITE_FIRST: Self          = Self(0x06);
    pub const WRITE_MIDDLE: Self         = Self(0x07);
    pub const WRITE_LAST: Self           = Self(0x08);
    pub const WRITE_LAST_IMM: Self       = Self(0x09);
    pub const WRITE_ONLY: Self           = Self(0x0a);
    pub const WRITE_ONLY_IMM: Self       = Self(0x0b);
    pub const READ_REQUEST: Self         = Self(0x0c);
    pub const READ_RESPONSE_FIRST: Self  = Self(0x0d);
    pub const READ_RESPONSE_MIDDLE: Self = Self(0x0e);
    pub const READ_RESPONSE_LAST: Self   = Self(0x0f);
    pub const READ_RESPONSE_ONLY: Self   = Self(0x10);
    pub const ACKNOWLEDGE: Self          = Self(0x11);
    pub const SEND_LAST_INV: Self        = Self(0x16);
    pub const SEND_ONLY_INV: Self        = Self(0x17);
    pub const UD_SEND_ONLY: Self         = Self(0x64);
    pub const UD_SEND_ONLY_IMM: Self     = Self(0x65);
    /// RoCEv2 congestion notification packet.
    pub const CNP: Self                  = Self(0x81);
}

/// Which extended headers follow the BTH, in wire order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    pub deth: bool,
    pub reth: bool,
    pub aeth: bool,
    pub imm: bool,
    pub ieth: bool,
}

impl Layout {
    /// Bytes of the extended headers.
    pub fn len(self) -> usize {
        8 * usize::from(self.deth)
            + 16 * usize::from(self.reth)
            + 4 * (usize::from(self.aeth) + usize::from(self.imm) + usize::from(self.ieth))
    }
}

impl Opcode {
    /// The extended headers of this opcode, `None` where this device does not
    /// know it (atomics, UC, RD and XRC included).
    pub fn layout(self) -> Option<Layout> {
        let none = Layout::default();
        Some(match self.0 {
            0x00..=0x02 | 0x04 | 0x07 | 0x08 | 0x0e | 0x81 => none,
            0x03 | 0x05 | 0x09 => Layout { imm: true, ..none },
            0x06 | 0x0a | 0x0c => Layout { reth: true, ..none },
            0x0b => Layout {
                reth: true,
                imm: true,
                ..none
            },
            0x0d | 0x0f | 0x10 | 0x11 => Layout { aeth: true, ..none },
            0x16 | 0x17 => Layout { ieth: true, ..none },
            0x64 => Layout { deth: true, ..none },
            0x65 => Layout {
                deth: true,
                imm: true,
                ..none
            },
            _ => return None,
        })
    }

    pub fn is_ud(self) -> bool {
        matches!(self, Self::UD_SEND_ONLY | Self::UD_SEND_ONLY_IMM)
    }

    /// An answer to the requester: acknowledge or READ response.
    pub fn is_response(self) -> bool {
        matches!(self.0, 0x0d..=0x11)
    }

    pub fn is_send(self) -> bool {
        matches!(self.0, 0x00..=0x05 | 0x16 | 0x17)
    }

    pub fn is_write(self) -> bool {
        matches!(self.0, 0x06..=0x0b)
    }

    /// Begins a message (only-packets do too).
    pub fn starts_message(self) -> bool {
        matches!(self.0, 0x00 | 0x04..=0x06 | 0x0a..=0x0d | 0x10 | 0x17)
    }

    /// Ends a message (only-packets do too).
    pub fn ends_message(self) -> bool {
        matches!(
            self.0,
            0x02..=0x05 | 0x08..=0x0c | 0x0f..=0x11 | 0x16 | 0x17
        )
    }
}

/// Base transport header, 12 bytes (IBA 9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bth {
    pub opcode: Opcode,
    pub solicited: bool,
    /// Migration state; RoCE packets carry it as "migrated" (true).
    pub migrated: bool,
    /// Filled by [`crate::rdma::packet::Draft`]; bytes 0 to 3.
    pub pad: u8,
    pub pkey: u16,
    pub fecn: bool,
    pub becn: bool,
    /// 24 bits.
    pub dest_qp: u32,
    pub ack_request: bool,
    /// 24 bits.
    pub psn: u32,
}

impl Bth {
    pub const LEN: usize = 12;

    pub fn new(opcode: Opcode, pkey: u16, dest_qp: u32, psn: u32) -> Self {
        Self {
            opcode,
            solicited: false,
            migrated: true,
            pad: 0,
            pkey,
            fecn: false,
            becn: false,
            dest_qp,
            ack_request: false,
            psn,
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let [_, q0, q1, q2] = self.dest_qp.to_be_bytes();
        let [_, p0, p1, p2] = self.psn.to_be_bytes();
        let [k0, k1] = self.pkey.to_be_bytes();
        [
            self.opcode.0,
            u8::from(self.solicited) << 7 | u8::from(self.migrated) << 6 | self.pad << 4,
            k0,
            k1,
            u8::from(self.fecn) << 7 | u8::from(self.becn) << 6,
            q0,
            q1,
            q2,
            u8::from(self.ack_request) << 7,
            p0,
            p1,
            p2,
        ]
    }

    /// The header, and its transport header version (must be 0).
    pub(crate) fn from_bytes(b: &[u8; Self::LEN]) -> (Self, u8) {
        let bth = Self {
            opcode: Opcode(b[0]),
            solicited: b[1] & 0x80 != 0,
            migrated: b[1] & 0x40 != 0,
            pad: b[1] >> 4 & 3,
            pkey: u16::from_be_bytes([b[2], b[3]]),
            fecn: b[4] & 0x80 != 0,
            becn: b[4] & 0x40 != 0,
            dest_qp: u32::from_be_bytes([0, b[5], b[6], b[7]]),
            ack_request: b[8] & 0x80 != 0,
            psn: u32::from_be_bytes([0, b[9], b[10], b[11]]),
        };
        (bth, b[1] & 0xf)
    }
}

/// RDMA extended header (IBA 9.3.3): of the first packet of a WRITE and of a
/// READ request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reth {
    pub address: u64,
    pub rkey: u32,
    /// Bytes of the whole message.
    pub length: u32,
}

/// What an acknowledge says (IBA 9.7.5.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syndrome {
    /// Credits, encoded; 0x1f: not counted.
    Ack(u8),
    /// Receiver not ready; the encoded time to wait.
    Rnr(u8),
    /// PSN sequence error: go back to the packet's PSN.
    Sequence,
    InvalidRequest,
    RemoteAccess,
    RemoteOperational,
    /// A reserved code, or one of a service that RC has not.
    Other(u8),
}

impl Syndrome {
    pub fn to_byte(self) -> u8 {
        match self {
            Self::Ack(credits) => credits & 0x1f,
            Self::Rnr(timer) => 0x20 | timer & 0x1f,
            Self::Sequence => 0x60,
            Self::InvalidRequest => 0x61,
            Self::RemoteAccess => 0x62,
            Self::RemoteOperational => 0x63,
            Self::Other(code) => code,
        }
    }

    pub fn from_byte(code: u8) -> Self {
        // Bit 7 is reserved and ignored.
        match code & 0x7f {
            c @ 0x00..=0x1f => Self::Ack(c),
            c @ 0x20..=0x3f => Self::Rnr(c & 0x1f),
            0x60 => Self::Sequence,
            0x61 => Self::InvalidRequest,
            0x62 => Self::RemoteAccess,
            0x63 => Self::RemoteOperational,
            _ => Self::Other(code),
        }
    }
}

/// Acknowledge extended header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Aeth {
    pub syndrome: Syndrome,
    /// Message sequence number, 24 bits.
    pub msn: u32,
}

/// Datagram extended header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deth {
    pub qkey: u32,
    /// 24 bits.
    pub src_qp: u32,
}

/// The extended headers of one packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ext {
    pub deth: Option<Deth>,
    pub reth: Option<Reth>,
    pub aeth: Option<Aeth>,
    /// Immediate data as the number that the work request carries.
    pub imm: Option<u32>,
    /// The remote key to invalidate.
    pub ieth: Option<u32>,
}

impl Ext {
    pub fn layout(&self) -> Layout {
        Layout {
            deth: self.deth.is_some(),
            reth: self.reth.is_some(),
            aeth: self.aeth.is_some(),
            imm: self.imm.is_some(),
            ieth: self.ieth.is_some(),
        }
    }

    /// Hands the headers to `put` in wire order.
    pub(crate) fn write(&self, mut put: impl FnMut(&[u8])) {
        if let Some(deth) = self.deth {
            put(&deth.qkey.to_be_bytes());
            put(&(deth.src_qp & 0xff_ffff).to_be_bytes());
        }
        if let Some(reth) = self.reth {
            put(&reth.address.to_be_bytes());
            put(&reth.rkey.to_be_bytes());
            put(&reth.length.to_be_bytes());
        }
        if let Some(aeth) = self.aeth {
            let word = u32::from(aeth.syndrome.to_byte()) << 24 | aeth.msn & 0xff_ffff;
            put(&word.to_be_bytes());
        }
        if let Some(imm) = self.imm {
            put(&imm.to_be_bytes());
        }
        if let Some(rkey) = self.ieth {
            put(&rkey.to_be_bytes());
        }
    }

    /// Reads what `layout` says from the front of `bytes`; gives the rest.
    pub(crate) fn read(layout: Layout, mut bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut ext = Self::default();
        let mut word = || -> Option<u32> {
            let (head, rest) = bytes.split_first_chunk::<4>()?;
            bytes = rest;
            Some(u32::from_be_bytes(*head))
        };
        if layout.deth {
            ext.deth = Some(Deth {
                qkey: word()?,
                src_qp: word()? & 0xff_ffff,
            });
        }
        if layout.reth {
            ext.reth = Some(Reth {
                address: u64::from(word()?) << 32 | u64::from(word()?),
                rkey: word()?,
                length: word()?,
            });
        }
        if layout.aeth {
            let aeth = word()?;
            ext.aeth = Some(Aeth {
                syndrome: Syndrome::from_byte((aeth >> 24) as u8),
                msn: aeth & 0xff_ffff,
            });
        }
        if layout.imm {
            ext.imm = Some(word()?);
        }
        if layout.ieth {
            ext.ieth = Some(word()?);
        }
        Some((ext, bytes))
    }
}
