// SPDX-License-Identifier: GPL-2.0

//! Changes of the port's traffic classes, of which the LAN driver tells before and after.
//!
//! In between the LAN scheduler's tree is another one, so that nobody may send. The queue pairs
//! stop first; afterwards each gets a place on a queue set of the new classes.

use kernel::{
    prelude::*,
    time::{
        msecs_to_jiffies,
        Delta,
        Instant,
        Monotonic, //
    }, //
};

use super::device::Device;
use crate::hw::lan_ops::QosParams;

/// How long the device may take until all queue pairs have stopped.
#[doc(alias = "IRDMA_EVENT_TIMEOUT_MS")]
const STOP_LIMIT: Delta = Delta::from_millis(5000);

impl Device<'_> {
    /// Stops all queue pairs and takes them off the scheduler. May sleep.
    #[doc(alias = "icrdma_prep_tc_change")]
    #[doc(alias = "irdma_sc_suspend_resume_qps")]
    pub(crate) fn begin_traffic_class_change(&self) {
        if !self.scheduler().begin_change() {
            return;
        }

        let function = self.function();
        let qps = &self.tables().qps;
        let begin = Instant::<Monotonic>::now();
        let mut waiting = KVec::new();

        for qp in qps.iter() {
            if qp.suspend(function) {
                // Without memory to remember it by, the tree is cut without a wait for this one.
                let _ = waiting.push(qp, GFP_KERNEL);
            }
        }

        for qp in waiting {
            let left = STOP_LIMIT.as_millis() - begin.elapsed().as_millis();
            let left = u32::try_from(left).unwrap_or(0);

            if !qp.await_stop(msecs_to_jiffies(left)) {
                dev_warn!(
                    function.device(),
                    "queue pairs do not stop for new traffic classes\n"
                );
                break;
            }
        }

        self.scheduler().cut_down();
    }

    /// Has all queue pairs go on with new traffic classes. May sleep. Without a
    /// [`Device::begin_traffic_class_change`] before it does nothing.
    #[doc(alias = "irdma_change_l2params")]
    pub(crate) fn end_traffic_class_change(&self, qos: QosParams) {
        if !self.scheduler().end_change(qos) {
            return;
        }

        for qp in self.tables().qps.iter() {
            qp.resume(self);
            qp.catch_up(self);
        }
    }
}
