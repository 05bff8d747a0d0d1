// SPDX-License-Identifier: GPL-2.0
//! Flushing the work queues of a queue pair in error (FLUSH_WQES).
//!
//! The device writes one completion for each queue that is not empty, with
//! the codes of the command; the driver makes those of the other entries.

use super::transport::{Completion, Endpoint, Host};

/// What the command asks for: for each queue its major and minor code, or not
/// to flush it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlushCodes {
    pub(crate) sq: Option<(u16, u16)>,
    pub(crate) rq: Option<(u16, u16)>,
}

/// Which queues had something to flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flushed {
    pub(crate) sq: bool,
    pub(crate) rq: bool,
}

/// Empties the queues that `codes` names, the send queue first.
pub(crate) fn flush<H: Host>(endpoint: &mut Endpoint, host: &mut H, codes: &FlushCodes) -> Flushed {
    let mut flushed = Flushed::default();
    if let Some(code) = codes.sq {
        if let Some((index, opcode)) = endpoint.empty_send_queue(host) {
            let completion = flush_completion(true, index, opcode, code);
            host.complete(endpoint, &completion);
            flushed.sq = true;
        }
    }
    if let Some(code) = codes.rq {
        if let Some(index) = endpoint.empty_receive_queue(host) {
            let completion = flush_completion(false, index, 0, code);
            host.complete(endpoint, &completion);
            flushed.rq = true;
        }
    }
    flushed
}

fn flush_completion(send_queue: bool, wqe_index: u32, opcode: u8, code: (u16, u16)) -> Completion {
    Completion {
        send_queue,
        opcode,
        wqe_index,
        length: 0,
        error: Some(code),
        solicited: false,
        imm: None,
        invalidated: None,
        source: None,
    }
}
