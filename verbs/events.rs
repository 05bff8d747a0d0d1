// SPDX-License-Identifier: GPL-2.0

//! Asynchronous events of the device, passed on to what they are about.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::device::Tables;
use crate::hw::{
    aeq::{
        event::{
            AsyncEvent,
            Subject, //
        },
        EventHandler, //
    },
    function::Function, //
};

/// Who passes events on.
pub(super) struct Events<'a> {
    function: Arc<Function<'a>>,
    tables: Arc<Tables>,
}

impl<'a> Events<'a> {
    /// Passes events on to what is in `tables`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`
    pub(super) fn new(function: Arc<Function<'a>>, tables: Arc<Tables>) -> Result<Arc<Self>> {
        Ok(Arc::new(Self { function, tables }, GFP_KERNEL)?)
    }
}

impl EventHandler for Events<'_> {
    #[doc(alias = "irdma_process_aeq")]
    fn event(&self, event: &AsyncEvent) {
        let known = match event.subject {
            Subject::Qp(number) => self
                .tables
                .qps
                .find(number)
                .map(|qp| qp.async_event(&self.function, event)),
            Subject::Cq(number) => self.tables.cqs.find(number).map(|link| {
                dev_err!(
                    self.function.parent(),
                    "event {:#x} of CQ {}\n",
                    event.code.0,
                    number
                );
                link.error();
            }),
            Subject::Function => {
                dev_warn!(
                    self.function.parent(),
                    "event {:#x} of the function\n",
                    event.code.0
                );
                Some(())
            }
        };

        if known.is_none() {
            self.function.faults().stray_async_events.count();
        }
    }
}
