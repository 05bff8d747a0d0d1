// SPDX-License-Identifier: GPL-2.0
//! The data path's entry points. The transport state of a queue pair is the data path's own.

use super::qp::{self, QpState};
use super::Rdma;
use crate::context::Context;

/// What the transport keeps for a queue pair.
#[derive(Debug, Default)]
pub(crate) struct QpData {}

/// The codes that FLUSH_WQES asks for, for each queue it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct FlushCodes {
    /// Major and minor code for the send queue's entry.
    pub sq: Option<(u16, u16)>,
    /// Major and minor code for the receive queue's entry.
    pub rq: Option<(u16, u16)>,
}

/// Which queues had a work request to flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Flushed {
    pub sq: bool,
    pub rq: bool,
}

/// A send queue has new work.
pub(crate) fn sq_doorbell(_rdma: &mut Rdma, cx: &mut Context<'_>, qp_id: u32) {
    cx.violation(
        "transport",
        format!("doorbell of QP {qp_id}: not implemented"),
    );
}

/// A frame of this protocol; true if it was one.
pub(crate) fn receive(_rdma: &mut Rdma, _cx: &mut Context<'_>, _frame: &[u8]) -> bool {
    false
}

/// Timers whose time has come.
pub(crate) fn poll(_rdma: &mut Rdma, _cx: &mut Context<'_>) {}

/// When [`poll`] wants to be called next, in nanoseconds.
pub(crate) fn next_deadline(_rdma: &Rdma) -> Option<u64> {
    None
}

/// Posts one failed completion for each named queue that still has a work request, send queue first.
pub(crate) fn flush(
    _rdma: &mut Rdma,
    cx: &mut Context<'_>,
    qp_id: u32,
    _codes: FlushCodes,
) -> Flushed {
    cx.violation("transport", format!("flush of QP {qp_id}: not implemented"));
    Flushed::default()
}

/// A queue pair was created or modified: its context was read again, its state may have changed from `old`.
pub(crate) fn qp_state_changed(
    _rdma: &mut Rdma,
    _cx: &mut Context<'_>,
    _qp_id: u32,
    _old: QpState,
) {
}

/// A queue pair is about to be destroyed.
pub(crate) fn qp_destroyed(_rdma: &mut Rdma, _cx: &mut Context<'_>, _qp_id: u32) {}

/// SUSPEND_QP, or a modify to the drained state: takes no new work and calls [`qp::report_suspended`] when what is
/// under way is done.
pub(crate) fn quiesce(rdma: &mut Rdma, cx: &mut Context<'_>, qp_id: u32) {
    qp::report_suspended(rdma, cx, qp_id);
}
