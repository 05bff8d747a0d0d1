// SPDX-License-Identifier: GPL-2.0
//! Queue pairs as the device holds them, and their states.

use serde_json::json;

use super::aeq::{self, AsyncEvent, Source};
use super::claims::Owner;
use super::qp_context::QpContext;
use super::ring::Ring;
use super::transport::{self, QpData};
use super::{Rdma, Reported};
use crate::context::Context;

/// Bytes of a work-queue quantum.
pub(crate) const QUANTUM: u32 = 32;

/// The state of a queue pair in the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum QpState {
    Idle = 1,
    ReadyToSend = 2,
    /// RoCE: send queue drained; iWARP: closing.
    Drained = 3,
    ReadyToReceive = 4,
    Terminate = 5,
    Error = 6,
}

impl QpState {
    pub fn from_code(code: u64) -> Option<Self> {
        Some(match code {
            1 => QpState::Idle,
            2 => QpState::ReadyToSend,
            3 => QpState::Drained,
            4 => QpState::ReadyToReceive,
            5 => QpState::Terminate,
            6 => QpState::Error,
            _ => return None,
        })
    }

    /// Whether MODIFY_QP may go from this state to `next`.
    pub fn may_become(self, next: QpState) -> bool {
        use QpState::*;
        match (self, next) {
            (_, Error) => true,
            (Error, _) => false,
            (from, to) if from == to => true,
            (Idle, ReadyToReceive) | (ReadyToReceive, ReadyToSend) => true,
            (ReadyToSend, Drained) | (Drained, ReadyToSend) => true,
            _ => false,
        }
    }
}

/// The transport of a queue pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QpType {
    Iwarp,
    Uda,
    RoceRc,
    RoceUd,
}

impl QpType {
    pub fn from_code(code: u64) -> Option<Self> {
        Some(match code {
            1 => QpType::Iwarp,
            2 => QpType::Uda,
            3 => QpType::RoceRc,
            4 => QpType::RoceUd,
            _ => return None,
        })
    }
}

/// A queue pair.
#[derive(Debug)]
pub(crate) struct Qp {
    pub id: u32,
    pub kind: QpType,
    pub state: QpState,
    /// Decoded when the queue pair was created or last modified.
    pub ctx: QpContext,
    /// Send queue, entries are quanta of 32 bytes.
    pub sq: Ring,
    /// Receive queue, entries are quanta of 32 bytes.
    pub rq: Ring,
    /// Shadow area: the device writes the send queue's tail there.
    pub shadow: u64,
    /// No new work is taken until RESUME_QP.
    pub suspended: bool,
    /// What the transport keeps.
    pub data: QpData,
}

/// Guest address of quantum `index` of the send queue.
pub(crate) fn sq_address(
    rdma: &Rdma,
    cx: &mut Context<'_>,
    id: u32,
    index: u32,
) -> Result<u64, Reported> {
    let qp = rdma.qps.get(&id).ok_or(Reported)?;
    qp.sq.address(cx, &rdma.hmc, &rdma.claims, index)
}

/// Guest address of quantum `index` of the receive queue.
pub(crate) fn rq_address(
    rdma: &Rdma,
    cx: &mut Context<'_>,
    id: u32,
    index: u32,
) -> Result<u64, Reported> {
    let qp = rdma.qps.get(&id).ok_or(Reported)?;
    qp.rq.address(cx, &rdma.hmc, &rdma.claims, index)
}

/// Tells the driver (in the shadow area) how far the send queue is done.
pub(crate) fn write_sq_tail(rdma: &Rdma, cx: &mut Context<'_>, id: u32, tail: u32) {
    let Some(qp) = rdma.qps.get(&id) else {
        return;
    };
    let (owner, shadow) = (Owner::Qp(id), qp.shadow);
    if !rdma.claims.covers(owner, shadow, 8) {
        cx.violation(
            "dma",
            format!("{owner}: {shadow:#x} is not its shadow area"),
        );
        return;
    }
    // A failed write is recorded by the context.
    let _ = cx.write_u64("QP shadow area", shadow, u64::from(tail & 0x7fff));
}

/// Moves a queue pair to the error state, as the device does by itself, and reports why.
pub(crate) fn to_error(
    rdma: &mut Rdma,
    cx: &mut Context<'_>,
    id: u32,
    code: u16,
    source: Source,
    wqe_index: u32,
) {
    let Some(qp) = rdma.qps.get_mut(&id) else {
        return;
    };
    if qp.state == QpState::Error {
        return;
    }
    let context = qp.ctx.completion_context;
    set_state(rdma, cx, id, QpState::Error);
    aeq::post(
        rdma,
        cx,
        AsyncEvent {
            code,
            source,
            id,
            context,
            wqe_index,
            qp_state: QpState::Error as u8,
            tcp_state: 0,
        },
    );
}

/// Sets a queue pair's state and tells the transport.
pub(crate) fn set_state(rdma: &mut Rdma, cx: &mut Context<'_>, id: u32, state: QpState) {
    let Some(qp) = rdma.qps.get_mut(&id) else {
        return;
    };
    let old = std::mem::replace(&mut qp.state, state);
    cx.trace(
        "qp_state",
        || json!({"qp": id, "from": format!("{old:?}"), "to": format!("{state:?}")}),
    );
    transport::qp_state_changed(rdma, cx, id, old);
}

/// Reports that a suspended or drained queue pair has come to rest.
pub(crate) fn report_suspended(rdma: &mut Rdma, cx: &mut Context<'_>, id: u32) {
    let Some(qp) = rdma.qps.get(&id) else {
        return;
    };
    let event = AsyncEvent {
        code: aeq::QP_SUSPEND_COMPLETE,
        source: Source::Sq,
        id,
        context: qp.ctx.completion_context,
        wqe_index: 0,
        qp_state: qp.state as u8,
        tcp_state: 0,
    };
    aeq::post(rdma, cx, event);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_legal_transitions() {
        use QpState::*;
        for (from, to) in [
            (Idle, ReadyToReceive),
            (ReadyToReceive, ReadyToSend),
            (ReadyToSend, ReadyToSend),
            (ReadyToSend, Drained),
            (Drained, ReadyToSend),
            (ReadyToSend, Error),
            (Error, Error),
        ] {
            assert!(from.may_become(to), "{from:?} {to:?}");
        }
        for (from, to) in [
            (Idle, ReadyToSend),
            (Error, Idle),
            (ReadyToSend, ReadyToReceive),
            (Error, ReadyToSend),
            (ReadyToReceive, Idle),
        ] {
            assert!(!from.may_become(to), "{from:?} {to:?}");
        }
    }
}
