// SPDX-License-Identifier: GPL-2.0

//! The doorbells of the data path.

use kernel::prelude::*;

use super::regs::{
    DoorbellRegister,
    Regs, //
};

/// The doorbells that a queue's owner rings; a copy is as good as the original.
///
/// Whatever was written to memory before a doorbell is visible to the device when it acts on it:
/// the write is ordered as `writel()` is.
#[derive(Clone, Copy)]
pub(crate) struct Doorbells<'a> {
    send_queue: DoorbellRegister<'a>,
    arm_cq: DoorbellRegister<'a>,
    ack_cq: DoorbellRegister<'a>,
}

impl<'a> Doorbells<'a> {
    /// Finds the doorbells.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the BAR does not reach that far.
    pub(crate) fn new(regs: &Regs<'a>) -> Result<Self> {
        let offsets = regs.hal().doorbells();

        Ok(Self {
            send_queue: regs.doorbell(offsets.send_queue)?,
            arm_cq: regs.doorbell(offsets.arm_cq)?,
            ack_cq: regs.doorbell(offsets.ack_cq)?,
        })
    }

    /// Tells the device of new entries of the send queue of `qp_id`.
    #[doc(alias = "irdma_uk_qp_post_wr")]
    #[inline]
    pub(crate) fn ring_sq(&self, qp_id: u32) {
        self.send_queue.ring(qp_id);
    }

    /// Has the device raise an event for `cq_id`, as the queue's shadow area says.
    #[doc(alias = "irdma_uk_cq_request_notification")]
    #[inline]
    pub(crate) fn arm_cq(&self, cq_id: u32) {
        self.arm_cq.ring(cq_id);
    }

    /// Acknowledges an event of `cq_id`.
    #[inline]
    pub(crate) fn ack_cq(&self, cq_id: u32) {
        self.ack_cq.ring(cq_id);
    }
}
