// SPDX-License-Identifier: GPL-2.0

//! QPs in error: how they get there, and what becomes of their work requests.

use kernel::prelude::*;

use super::{
    QpShared,
    State, //
};
use crate::{
    hw::{
        aeq::{
            code::AeCode,
            event::{
                AsyncEvent,
                Source, //
            }, //
        },
        cqp::qp::{
            FlushCode as Codes,
            FlushCodes,
            FlushWqes,
            QpState as HwState, //
        },
        function::Function,
        trace, //
    },
    rdma::{
        self,
        QpState, //
    },
    uk::{
        ae::{
            self,
            QpEvent, //
        },
        status::{
            FlushCode,
            MAJOR_FLUSH, //
        }, //
    }, //
};

/// What broke a QP.
pub(super) struct Cause {
    code: FlushCode,
    send: bool,
    receive: bool,
    /// The entry of the receive queue that is at fault.
    receive_index: Option<u16>,
}

impl QpShared {
    /// Ends all that is under way: the QP goes to the error state and its work requests come back.
    /// Nothing happens if it is there already.
    ///
    /// # Errors
    ///
    /// Those of the command, if the device may go on with a user's QP. The state is as it was then. For
    /// one of the kernel the device is reset instead.
    #[doc(alias = "irdma_modify_qp_to_err")]
    pub(super) fn break_off(
        &self,
        function: &Function<'_>,
        state: &mut State,
        cause: Option<&Cause>,
    ) -> Result {
        if state.hw == HwState::Error {
            return Ok(());
        }

        if let Some(index) = cause.and_then(|cause| cause.receive_index) {
            state.attributes.context.error_rq_index = Some(index);
            self.write_context(&state.attributes)?;
        }
        match function.execute(&self.plain_modify(HwState::Error)) {
            Ok(_) => (),
            // A device that is about to be reset does nothing more; its users get their work
            // requests back all the same.
            Err(_) if function.is_reset_pending() => (),
            // A user in the kernel takes its memory back whatever it is told: draining cannot fail.
            Err(_) if self.kernel.is_some() => function.request_reset(),
            Err(error) => return Err(error),
        }
        self.enter(function, state, HwState::Error);
        state.ib = QpState::Err;
        // Nothing more is drained.
        self.drained.complete();

        self.flush(function, true, true, cause);
        Ok(())
    }

    /// Has the device give back the work requests of its queues. What it does not, this driver does
    /// for a user in the kernel.
    #[doc(alias = "irdma_flush_wqes")]
    #[doc(alias = "irdma_hw_flush_wqes")]
    pub(super) fn flush(&self, function: &Function<'_>, sq: bool, rq: bool, cause: Option<&Cause>) {
        if !sq && !rq {
            return;
        }

        let code = |at_fault: fn(&Cause) -> bool| Codes {
            major: MAJOR_FLUSH,
            minor: match cause {
                Some(cause) if at_fault(cause) => cause.code.minor(),
                _ => FlushCode::General.minor(),
            },
        };
        let command = FlushWqes {
            qp_id: self.number,
            sq,
            rq,
            codes: Some(FlushCodes {
                sq: code(|cause| cause.send),
                rq: code(|cause| cause.receive),
            }),
            event: None,
        };

        trace::flush(function, &command);
        // A failure is logged, and made good below.
        let _ = function.execute(&command);
        if let Some(kernel) = &self.kernel {
            kernel.begin_flush();
        }
    }

    /// Acts on an event that the device has raised for the QP. May sleep.
    #[doc(alias = "irdma_process_aeq")]
    #[doc(alias = "irdma_cm_disconn_true")]
    pub(in crate::verbs) fn async_event(&self, function: &Function<'_>, event: &AsyncEvent) {
        match event.code {
            AeCode::QP_SUSPEND_COMPLETE => {
                // Who waits has forgotten earlier ones.
                self.drained.complete();
                return self.stopped.complete();
            }
            // These tell of things that pass.
            AeCode::LLP_CONNECTION_ESTABLISHED
            | AeCode::LLP_DOUBT_REACHABILITY
            | AeCode::RESOURCE_EXHAUSTION
            | AeCode::RESET_NOT_SENT => return,
            _ => (),
        }

        dev_err!(
            function.parent(),
            "event {:#x} of QP {} (source {})\n",
            event.code.0,
            self.number,
            event.raw_source
        );

        let (code, kind) = ae::qp_error(event.code.0);
        let cause = Cause {
            code,
            send: event.source == Source::SendQueue,
            receive: event.source == Source::ReceiveQueue,
            receive_index: (event.source == Source::ReceiveQueue).then_some(event.wqe_index),
        };
        let broken = {
            let mut state = self.state.lock();

            !state.destroyed
                && state.hw != HwState::Error
                && self.break_off(function, &mut state, Some(&cause)).is_ok()
        };

        // Without the lock: the consumer may want to look at the QP.
        if broken {
            self.link.event(match kind {
                QpEvent::Catastrophic => rdma::QpEvent::Fatal,
                QpEvent::Access => rdma::QpEvent::AccessError,
                QpEvent::Request => rdma::QpEvent::RequestError,
            });
        }
    }
}
