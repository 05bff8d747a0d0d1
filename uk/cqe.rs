// SPDX-License-Identifier: GPL-2.0

//! Completion-queue entries of a QP's queues.
//!
//! Layouts: `IRDMA_CQ_*` and `IRDMACQ_*` in the C driver's defs.h.
//!
//! | word | first entry | extended entry |
//! |---|---|---|
//! | 0 | payload length | immediate data |
//! | 1 | completion context of the QP | |
//! | 2 | QP number; sender of a datagram or invalidated STag | sender's MAC address and VLAN tag |
//! | 3 | header | which of these are there |

use kernel::bitfield;

use super::{
    ring::Polarity,
    status::ErrorCodes, //
};

bitfield! {
    /// Word 3 of a CQE.
    pub(crate) struct Header(u64) {
        /// Set in the CQ's polarity.
        63:63 valid => bool;
        /// It tells of a send queue, otherwise of a receive queue.
        62:62 send_queue => bool;
        /// The operation.
        61:56 opcode;
        /// The work request failed.
        55:55 error => bool;
        /// The sender asked for an event.
        54:54 solicited => bool;
        /// Word 2 has an invalidated STag; on a datagram QP: the datagram came over IPv4.
        53:53 stag_or_ipv4 => bool;
        /// The next entry belongs to this one.
        50:50 extended => bool;
        /// Quantum of the ring at which the WQE begins.
        46:32 wqe_index;
        /// Kind of error.
        31:16 major;
        /// The error.
        15:0 minor;
    }
}

impl Header {
    /// Whether the entry tells of a send queue's work request that has succeeded, and is not
    /// extended.
    #[inline]
    pub(crate) fn is_sent(self) -> bool {
        self.send_queue() && !self.error() && !self.extended()
    }
}

bitfield! {
    /// Word 0 of a CQE.
    struct Length(u64) {
        31:0 bytes;
    }
}

bitfield! {
    /// Word 2 of a CQE.
    struct Origin(u64) {
        55:32 qp;
        31:0 source;
    }
}

bitfield! {
    /// Word 3 of an extended entry.
    pub(crate) struct ExtendedHeader(u64) {
        /// Set in the CQ's polarity.
        63:63 valid => bool;
        /// Word 0 has immediate data.
        62:62 immediate => bool;
        /// Word 2 has the sender's MAC address.
        61:61 source_mac => bool;
        /// Word 2 has the VLAN tag.
        60:60 vlan => bool;
    }
}

bitfield! {
    /// Word 2 of an extended entry.
    struct LinkHeader(u64) {
        63:48 vlan;
        47:0 source_mac;
    }
}

/// The queue that a completion belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    /// The send queue.
    Send,
    /// The receive queue.
    Recv,
}

/// What one CQE, or two in a row, say. All of it comes from the device and may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "irdma_cq_poll_info")]
pub(crate) struct Cqe {
    /// Which queue of the QP.
    pub(crate) queue: Queue,
    /// The completion context that the QP was given when it was created.
    pub(crate) context: u64,
    /// Quantum of the ring at which the WQE begins.
    pub(crate) wqe_index: u32,
    /// Code of the operation; for a receive queue that of the packet which ended the message.
    pub(crate) opcode: u8,
    /// The codes, if the work request failed.
    pub(crate) error: Option<ErrorCodes>,
    /// The sender asked for an event.
    pub(crate) solicited: bool,
    /// Bytes received.
    pub(crate) bytes: u32,
    /// Number of the QP.
    pub(crate) qp: u32,
    /// Number of the QP that sent a datagram, or the STag that a message invalidated.
    pub(crate) source: u32,
    /// `source` is an STag; on a datagram QP: the datagram came over IPv4.
    pub(crate) stag_or_ipv4: bool,
    /// Immediate data, in the CPU's order.
    pub(crate) immediate: Option<u32>,
    /// MAC address of a datagram's sender.
    pub(crate) source_mac: Option<[u8; 6]>,
    /// VLAN tag of a datagram.
    pub(crate) vlan: Option<u16>,
}

impl Cqe {
    /// Makes sense of an entry and, if its header says that it is extended, of the next.
    #[inline]
    pub(crate) fn decode(entry: [u64; 4], extension: Option<[u64; 4]>) -> Self {
        let [length, context, origin, header] = entry;
        let length = Length::from_raw(length);
        let origin = Origin::from_raw(origin);
        let header = Header::from_raw(header);

        let mut cqe = Self {
            queue: if header.send_queue() {
                Queue::Send
            } else {
                Queue::Recv
            },
            context,
            wqe_index: low32(header.wqe_index().get()),
            // CAST: The field has six bits.
            opcode: header.opcode().get() as u8,
            error: header.error().then_some(ErrorCodes {
                // CAST: Both fields have 16 bits.
                major: header.major().get() as u16,
                minor: header.minor().get() as u16,
            }),
            solicited: header.solicited(),
            bytes: low32(length.bytes().get()),
            qp: low32(origin.qp().get()),
            source: low32(origin.source().get()),
            stag_or_ipv4: header.stag_or_ipv4(),
            immediate: None,
            source_mac: None,
            vlan: None,
        };

        if let Some([data, _, link, header]) = extension {
            let header = ExtendedHeader::from_raw(header);
            let link = LinkHeader::from_raw(link);

            cqe.immediate = header.immediate().then_some(low32(data));
            cqe.source_mac = header.source_mac().then(|| {
                let [_, _, mac @ ..] = link.source_mac().get().to_be_bytes();
                mac
            });
            // CAST: The field has 16 bits.
            cqe.vlan = header.vlan().then_some(link.vlan().get() as u16);
        }

        cqe
    }
}

/// The valid bit of an entry's or extended entry's header.
#[inline]
pub(crate) fn polarity(header: u64) -> Polarity {
    Polarity::of(Header::from_raw(header).valid())
}

/// The low half of a word.
#[inline]
fn low32(word: u64) -> u32 {
    // CAST: The high half is cut off on purpose.
    word as u32
}
