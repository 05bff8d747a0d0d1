// SPDX-License-Identifier: GPL-2.0

//! A completion that can be waited for with a limit and used again.
//!
//! [`kernel::sync::Completion`] has neither.
//!
//! C header: [`include/linux/completion.h`](srctree/include/linux/completion.h)

use kernel::{
    bindings,
    prelude::*,
    time::Jiffies,
    types::Opaque, //
};

/// One waiter's event: set by [`Completion::complete`] and consumed by [`Completion::wait`].
#[pin_data]
pub(crate) struct Completion {
    #[pin]
    inner: Opaque<bindings::completion>,
}

// SAFETY: A `struct completion` belongs to no particular task.
unsafe impl Send for Completion {}

// SAFETY: A `struct completion` has its own lock.
unsafe impl Sync for Completion {}

impl Completion {
    /// Returns an initializer for a completion that has not happened yet.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            inner <- Opaque::ffi_init(|slot: *mut bindings::completion| {
                // SAFETY: `slot` is valid for writes, and the completion stays where it is because
                // it is pinned.
                unsafe { bindings::init_completion(slot) };
            }),
        })
    }

    /// Makes the event happen. May be called in any context.
    pub(crate) fn complete(&self) {
        // SAFETY: The completion was initialized by `new`.
        unsafe { bindings::complete(self.inner.get()) };
    }

    /// Waits for the event and consumes it; returns false when `limit` passed without it.
    ///
    /// Sleeps, and cannot be interrupted by a signal.
    #[must_use]
    pub(crate) fn wait(&self, limit: Jiffies) -> bool {
        // SAFETY: The completion was initialized by `new`.
        unsafe { bindings::wait_for_completion_timeout(self.inner.get(), limit) != 0 }
    }

    /// Forgets an event that happened and that nobody waited for. Never sleeps.
    pub(crate) fn reset(&self) {
        // SAFETY: The completion was initialized by `new`; this consumes at most one event.
        while unsafe { bindings::try_wait_for_completion(self.inner.get()) } {}
    }
}
