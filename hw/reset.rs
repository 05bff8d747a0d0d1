// SPDX-License-Identifier: GPL-2.0

//! Whether the function is about to be reset.

use kernel::{
    device::{
        self,
        Bound, //
    },
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
    parent: &'a device::Device<Bound>,
}

impl<'a> ResetState<'a> {
    /// No reset is pending.
    pub(super) fn new(parent: &'a device::Device<Bound>) -> Self {
        Self {
            pending: Atomic::new(false),
            refused: Atomic::new(false),
            parent,
        }
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

    /// Notes whether the LAN driver took a request.
    pub(super) fn set_refused(&self, refused: bool) {
        self.refused.store(refused, Relaxed);
    }
}

impl Drop for ResetState<'_> {
    fn drop(&mut self) {
        if self.is_pending() && !self.is_refused() {
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
