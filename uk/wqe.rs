// SPDX-License-Identifier: GPL-2.0

//! Work-queue entries of send and receive rings.
//!
//! An encoder stores the words of a WQE in a [`Slot`](super::memory::Slot) and returns the header,
//! which the ring stores last. Layouts: `IRDMAQPSQ_*` in the C driver's defs.h.
//!
//! | word | data-moving send WQE |
//! |---|---|
//! | 0, 1 | first fragment, or immediate data in word 0, or inline data from byte 8 on |
//! | 2 | remote address, or Q_Key and QP number of a datagram's receiver |
//! | 3 | header |
//! | 4... | further fragments of two words, or inline data with every 32nd byte a valid bit |

pub(crate) mod gather;
pub(crate) mod inline;
pub(crate) mod mr;
pub(crate) mod recv;
pub(crate) mod transfer;

use kernel::bitfield;

use super::ring::Polarity;

/// Operation of a send WQE, and of the CQE that tells of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    /// RDMA WRITE.
    Write = 0x00,
    /// RDMA READ.
    Read = 0x01,
    /// SEND.
    Send = 0x03,
    /// SEND that invalidates an STag of the receiver.
    SendInvalidate = 0x04,
    /// SEND with a solicited event at the receiver.
    SendSolicited = 0x05,
    /// SEND that invalidates an STag of the receiver, with a solicited event there.
    SendSolicitedInvalidate = 0x06,
    /// Fast registration of a memory region.
    RegisterMr = 0x09,
    /// Invalidation of an STag of one's own.
    LocalInvalidate = 0x0a,
    /// RDMA READ that invalidates the STag of its target.
    ReadInvalidate = 0x0b,
    /// Nothing; padding.
    Nop = 0x0c,
    /// RDMA WRITE with a solicited event at the receiver.
    WriteSolicited = 0x0d,
}

impl Opcode {
    /// The operation's code in WQEs and CQEs.
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }
}

bitfield! {
    /// Header of a send WQE that moves data.
    pub(crate) struct Header(u64) {
        /// Set in the ring's polarity.
        63:63 valid => bool;
        /// A CQE is wanted even if all goes well.
        62:62 signaled => bool;
        /// Wait for the earlier WQEs of this ring.
        61:61 local_fence => bool;
        /// Wait for the earlier RDMA READs of this ring.
        60:60 read_fence => bool;
        /// The WQE carries the data itself.
        57:57 inline_data => bool;
        /// Bytes of inline data.
        55:48 inline_length;
        /// Word 0 is immediate data.
        47:47 immediate => bool;
        /// Fragments beside the first, immediate data and a closing empty fragment included.
        41:38 more_fragments;
        /// The operation.
        37:32 opcode;
        /// STag of the peer to access or to invalidate, or the address handle's id.
        31:0 target;
    }
}

/// What a user asks of any send work request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    /// A completion is wanted even if all goes well.
    pub(crate) signaled: bool,
    /// Wait for earlier RDMA READs.
    pub(crate) fence: bool,
    /// The receiver gets a solicited event.
    pub(crate) solicited: bool,
}

impl Header {
    /// A header with what all operations have in common.
    #[inline]
    pub(crate) fn new(opcode: Opcode, flags: Flags, polarity: Polarity) -> Self {
        Self::from_raw(0)
            .with_opcode(kernel::num::Bounded::<u64, 6>::from_expr(
                u64::from(opcode.code()) & 0x3f,
            ))
            .with_read_fence(flags.fence)
            .with_signaled(flags.signaled)
            .with_valid(polarity.valid())
    }
}

/// Header of a WQE that does nothing but fill a quantum.
#[doc(alias = "irdma_nop_1")]
#[inline]
pub(crate) fn nop_header(polarity: Polarity) -> u64 {
    Header::new(Opcode::Nop, Flags::default(), polarity).into_raw()
}
