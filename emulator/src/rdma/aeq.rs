// SPDX-License-Identifier: GPL-2.0
//! The asynchronous event queue: what went wrong, or was finished, outside of any work request.

use serde_json::json;

use super::layout::aeqe;
use super::ring::Ring;
use super::{Deferred, Rdma};
use crate::context::Context;
use crate::faults::{Action, Point};

/// Bytes of an entry.
pub(crate) const ENTRY: u32 = 16;

// Event codes that the control half raises itself.
pub(crate) const CQ_OPERATION_ERROR: u16 = 0x0203;
pub(crate) const QP_SUSPEND_COMPLETE: u16 = 0x0900;

/// Where an event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum Source {
    #[default]
    None = 0,
    Rq = 1,
    Cq = 2,
    Sq = 5,
    /// An incoming read request or write.
    InboundRequest = 9,
    /// A response to our own read request.
    OutboundRead = 13,
}

impl Source {
    /// The source that a GENERATE_AE command names.
    pub fn from_code(code: u64) -> Self {
        match code {
            1 | 3 => Source::Rq,
            2 | 6 | 10 | 14 => Source::Cq,
            5 | 7 => Source::Sq,
            9 | 11 => Source::InboundRequest,
            13 | 15 => Source::OutboundRead,
            _ => Source::None,
        }
    }
}

/// An asynchronous event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AsyncEvent {
    pub code: u16,
    pub source: Source,
    /// QP or CQ number.
    pub id: u32,
    /// The completion context of the QP.
    pub context: u64,
    pub wqe_index: u32,
    /// The state that the QP is in now.
    pub qp_state: u8,
    pub tcp_state: u8,
}

impl AsyncEvent {
    /// Both quad words.
    pub fn encode(&self, polarity: bool, overflow: bool) -> [u64; 2] {
        let id = u64::from(self.id);
        [
            self.context,
            aeqe::ID_LOW.put(id)
                | aeqe::ID_HIGH.put(id >> 18)
                | aeqe::WQE_INDEX.put(u64::from(self.wqe_index))
                | aeqe::OVERFLOW.flag(overflow)
                | aeqe::CODE.put(u64::from(self.code))
                | aeqe::SOURCE.put(self.source as u64)
                | aeqe::QP_STATE.put(u64::from(self.qp_state))
                | aeqe::TCP_STATE.put(u64::from(self.tcp_state))
                | aeqe::VALID.flag(polarity),
        ]
    }
}

/// The asynchronous event queue.
#[derive(Debug, Clone)]
pub(crate) struct Aeq {
    pub ring: Ring,
    pub producer: u32,
    pub polarity: bool,
    /// Entries that the driver has not given back.
    pub outstanding: u32,
    overflowed: bool,
}

impl Aeq {
    pub fn new(ring: Ring) -> Self {
        Self {
            ring,
            producer: 0,
            polarity: true,
            outstanding: 0,
            overflowed: false,
        }
    }
}

/// Writes an event and raises the queue's interrupt.
pub(crate) fn post(rdma: &mut Rdma, cx: &mut Context<'_>, event: AsyncEvent) {
    match cx.faults.check(Point::Aeqe, u32::from(event.code)) {
        None => post_now(rdma, cx, event, 0),
        Some(Action::Drop) | Some(Action::Fail(_)) => {}
        Some(Action::Duplicate) => {
            post_now(rdma, cx, event, 0);
            post_now(rdma, cx, event, 0);
        }
        Some(Action::Corrupt(bits)) => post_now(rdma, cx, event, bits),
        Some(Action::Delay(time)) => {
            let due = cx.now.saturating_add(time);
            rdma.later(due, Deferred::Aeqe { event });
        }
    }
}

pub(crate) fn post_now(rdma: &mut Rdma, cx: &mut Context<'_>, event: AsyncEvent, corrupt: u64) {
    let Some(aeq) = &mut rdma.aeq else {
        cx.trace("aeqe_lost", || json!({"code": event.code, "id": event.id}));
        return;
    };
    if aeq.outstanding >= aeq.ring.count {
        aeq.overflowed = true;
        cx.trace("aeqe_lost", || json!({"code": event.code, "id": event.id}));
        return;
    }
    let mut words = event.encode(aeq.polarity, std::mem::take(&mut aeq.overflowed));
    words[0] ^= corrupt;
    let (ring, index) = (aeq.ring, aeq.producer);
    aeq.outstanding += 1;
    aeq.producer += 1;
    if aeq.producer >= aeq.ring.count {
        aeq.producer = 0;
        aeq.polarity = !aeq.polarity;
    }
    let Ok(address) = ring.address(cx, &rdma.hmc, &rdma.claims, index) else {
        return;
    };
    cx.trace(
        "aeqe",
        || json!({"index": index, "words": words, "code": event.code, "id": event.id}),
    );
    let written = cx.write_u64("AEQE", address, words[0]);
    if written.is_err() || cx.write_u64("AEQE", address + 8, words[1]).is_err() {
        return;
    }
    let control = rdma.registers.aeq_control;
    rdma.raise(cx, control);
}

/// The driver gives entries back (PFPE_AEQALLOC).
pub(crate) fn give_back(rdma: &mut Rdma, cx: &mut Context<'_>, count: u32) {
    let Some(aeq) = &mut rdma.aeq else {
        return;
    };
    if count > aeq.outstanding {
        let outstanding = aeq.outstanding;
        aeq.outstanding = 0;
        cx.violation(
            "aeq",
            format!("{count} entries given back, {outstanding} were used"),
        );
    } else {
        aeq.outstanding -= count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_a_remote_access_error() {
        let event = AsyncEvent {
            code: 0x20d,
            source: Source::Sq,
            id: 0x4_0005,
            context: 0x1122,
            wqe_index: 3,
            qp_state: 6,
            tcp_state: 0,
        };
        let words = event.encode(true, false);
        assert_eq!(words[0], 0x1122);
        let expected =
            (1u64 << 63) | (6 << 54) | (5 << 50) | (1 << 46) | (0x20d << 34) | (3 << 18) | 5;
        assert_eq!(words[1], expected);
    }
}
