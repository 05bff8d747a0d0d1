// SPDX-License-Identifier: GPL-2.0

//! QPs while the traffic classes of the port change.

use kernel::time::{
    msecs_to_jiffies,
    Jiffies,
    Msecs, //
};

use super::{
    QpShared,
    State, //
};
use crate::{
    hw::{
        cqp::qp::{
            QpState as HwState,
            ResumeQp,
            SuspendQp, //
        },
        function::Function, //
    },
    rdma,
    verbs::device::Device, //
};

/// How long the device may take to stop a single QP, in milliseconds.
const CATCH_UP_LIMIT_MS: Msecs = 1000;

impl QpShared {
    /// Has the device stop sending; returns whether that is to be waited for.
    #[doc(alias = "irdma_cqp_qp_suspend_resume")]
    pub(in crate::verbs) fn suspend(&self, function: &Function<'_>) -> bool {
        let mut state = self.state.lock();

        if state.destroyed || state.suspended || state.hw == HwState::Error {
            return false;
        }

        self.stopped.reset();
        state.suspended = function.execute(&SuspendQp { qp_id: self.number }).is_ok();
        state.suspended
    }

    /// Waits until the device has stopped sending, for `limit` at most.
    pub(in crate::verbs) fn await_stop(&self, limit: Jiffies) -> bool {
        self.stopped.wait(limit)
    }

    /// Has a QP go on that was missed by the change of traffic classes that took its queue set away:
    /// it was about to be made, or the device did not stop it.
    pub(in crate::verbs) fn catch_up(&self, dev: &Device<'_>) {
        let is_behind = {
            let state = self.state.lock();

            !state.suspended && self.is_behind(dev, &state)
        };

        if is_behind {
            if self.suspend(dev.function()) {
                let _ = self.await_stop(msecs_to_jiffies(CATCH_UP_LIMIT_MS));
            }
            self.resume(dev);
        }
    }

    /// Whether the QP sends on a queue set that is no more.
    fn is_behind(&self, dev: &Device<'_>, state: &State) -> bool {
        !state.destroyed
            && state.hw != HwState::Error
            && dev.scheduler().is_gone(state.attributes.place)
    }

    /// Has the device send again, on a queue set of the new traffic classes. Where there is none,
    /// the QP goes to the error state.
    pub(in crate::verbs) fn resume(&self, dev: &Device<'_>) {
        let function = dev.function();
        let broken = {
            let mut state = self.state.lock();

            if state.destroyed || !(state.suspended || self.is_behind(dev, &state)) {
                return;
            }

            if dev.scheduler().is_changing() {
                // Once more, and everybody resumes after that.
                return;
            }
            state.suspended = false;

            let place = dev.scheduler().add(state.attributes.place.priority());
            if let Ok(place) = place {
                // Whoever has taken a path since then has a place already; the earlier one counts.
                dev.scheduler().remove(state.attributes.place);
                state.attributes.set_place(place);
            }
            let written = self.write_context(&state.attributes);
            let resumed = function.execute(&ResumeQp {
                qp_id: self.number,
                qs_handle: state.attributes.context.qs_handle,
            });

            (place.is_err() || written.is_err() || resumed.is_err())
                && state.hw != HwState::Error
                && self.break_off(function, &mut state, None).is_ok()
        };

        // Without the lock: the consumer may want to look at the QP.
        if broken {
            self.link.event(rdma::QpEvent::Fatal);
        }
    }
}
