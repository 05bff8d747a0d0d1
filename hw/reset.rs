// SPDX-License-Identifier: GPL-2.0

//! Whether the function is about to be reset.

use kernel::{
    device::{
        self,
        Bound, //
    },
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Full,
                Relaxed, //
            },
            Atomic, //
        },
        Arc, //
    },
};

use super::{
    cqp::patience::LOOKOUT_PERIOD_MS,
    function::Function,
    graveyard,
    lan_ops::LanOps,
    periodic::Tick, //
};

/// How often the function is looked after, in milliseconds.
pub(super) const PERIOD_MS: u32 = LOOKOUT_PERIOD_MS;

/// Whether the function is about to be reset.
///
/// Once it is, no command reaches the device any more: each fails at once, so that taking
/// everything down takes no time.
pub(super) struct ResetState<'a> {
    pending: Atomic<bool>,
    /// The LAN driver did not take the request for it.
    refused: Atomic<bool>,
    /// The function is taken away; it had come up before.
    leaving: Atomic<bool>,
    parent: &'a device::Device<Bound>,
    lan: KBox<dyn LanOps + 'a>,
}

impl<'a> ResetState<'a> {
    /// No reset is pending.
    pub(super) fn new(parent: &'a device::Device<Bound>, lan: KBox<dyn LanOps + 'a>) -> Self {
        Self {
            pending: Atomic::new(false),
            refused: Atomic::new(false),
            leaving: Atomic::new(false),
            parent,
            lan,
        }
    }

    /// Returns the LAN driver's side.
    #[inline]
    pub(super) fn lan(&self) -> &(dyn LanOps + 'a) {
        &*self.lan
    }

    /// Returns whether a reset is pending.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.pending.load(Relaxed)
    }

    /// Notes that a reset is pending; returns whether it was so before.
    pub(super) fn set(&self) -> bool {
        self.pending.xchg(true, Full)
    }

    /// Returns whether the LAN driver did not take the last request.
    pub(super) fn is_refused(&self) -> bool {
        self.refused.load(Relaxed)
    }

    /// Asks the LAN driver for the reset.
    pub(super) fn request(&self) -> Result {
        self.lan
            .request_reset()
            .inspect(|()| self.refused.store(false, Relaxed))
            .inspect_err(|_| self.refused.store(true, Relaxed))
    }

    /// Notes that the function is taken away.
    pub(super) fn set_leaving(&self) {
        self.leaving.store(true, Relaxed);
    }

    /// Returns whether the reset that is pending is ahead.
    fn is_ahead(&self) -> bool {
        if !self.is_refused() {
            return true;
        }
        if !self.leaving.load(Relaxed) {
            return false;
        }

        // The LAN driver takes no request while it is at a reset of its own, for which it takes the
        // function away first.
        match self.request() {
            Err(EBUSY) => self.lan.is_unplugged(),
            result => result.is_ok(),
        }
    }
}

impl Drop for ResetState<'_> {
    fn drop(&mut self) {
        if self.is_pending() && self.is_ahead() {
            graveyard::expect_reset(self.parent);
        }
    }
}

/// Looks after commands, and asks again for a reset that the LAN driver did not take.
pub(super) struct Caretaker<'a>(pub(super) Arc<Function<'a>>);

impl Tick for Caretaker<'_> {
    fn tick(&self) {
        self.0.look_after_commands();
        self.0.repeat_reset_request();
    }
}
