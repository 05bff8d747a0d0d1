// SPDX-License-Identifier: GPL-2.0

//! Entries of the asynchronous event queue.

use super::code::AeCode;
use crate::hw::bits::{
    get,
    get_bit, //
};

/// Number of quadwords of an entry.
pub(crate) const ENTRY_WORDS: usize = 2;

/// What an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// The queue pair of this number.
    Qp(u32),
    /// The completion queue of this number.
    Cq(u32),
    /// The function.
    Function,
}

/// Which part of a queue pair an event comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// No part in particular.
    None,
    /// The receive queue.
    ReceiveQueue,
    /// The send queue.
    SendQueue,
    /// An inbound read response or write.
    InboundResponse,
    /// An outbound read response.
    OutboundResponse,
}

/// An asynchronous event.
#[doc(alias = "irdma_aeqe_info")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AsyncEvent {
    /// What happened.
    pub(crate) code: AeCode,
    /// To what.
    pub(crate) subject: Subject,
    /// Where.
    pub(crate) source: Source,
    /// The source as the device gives it.
    pub(crate) raw_source: u8,
    /// Index of the work-queue entry that caused it.
    pub(crate) wqe_index: u16,
    /// State of the queue pair, as in [`crate::hw::cqp::qp::QpState`].
    pub(crate) qp_state: u8,
    /// State of the TCP connection (iWARP).
    pub(crate) tcp_state: u8,
    /// The offending frame is in the queue pair's Q2 buffer (iWARP).
    pub(crate) frame_saved: bool,
    /// Events have been lost before this one.
    pub(crate) overflow: bool,
}

impl AsyncEvent {
    /// Decodes an entry; `None` if its valid bit is not `polarity`.
    #[doc(alias = "irdma_sc_get_next_aeqe")]
    pub(crate) const fn decode(entry: &[u64; ENTRY_WORDS], polarity: bool) -> Option<Self> {
        let [_, word] = *entry;

        if get_bit::<63>(word) != polarity {
            return None;
        }

        // CAST: The fields are not wider than their types.
        let code = AeCode(get::<45, 34>(word) as u16);
        let raw_source = get::<53, 50>(word) as u8;
        let number = get::<17, 0>(word) as u32 | ((get_bit::<46>(word) as u32) << 18);
        let source = match raw_source {
            _ if code.has_no_source() => Source::None,
            0x1 | 0x3 => Source::ReceiveQueue,
            0x5 | 0x7 => Source::SendQueue,
            0x9 | 0xb => Source::InboundResponse,
            0xd | 0xf => Source::OutboundResponse,
            _ => Source::None,
        };
        let subject = match raw_source {
            _ if code.0 == AeCode::LCE_CQ_CATASTROPHIC.0 => Subject::Cq(number),
            _ if code.is_of_qp() => Subject::Qp(number),
            0x2 | 0x6 | 0xa | 0xe => Subject::Cq(number),
            0x1 | 0x3 | 0x5 | 0x7 | 0x9 | 0xb | 0xd | 0xf => Subject::Qp(number),
            _ => Subject::Function,
        };

        Some(Self {
            code,
            subject,
            source,
            raw_source,
            wqe_index: get::<32, 18>(word) as u16,
            qp_state: get::<56, 54>(word) as u8,
            tcp_state: get::<60, 57>(word) as u8,
            frame_saved: get::<62, 61>(word) != 0,
            overflow: get_bit::<33>(word),
        })
    }
}
