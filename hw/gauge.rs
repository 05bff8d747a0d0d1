// SPDX-License-Identifier: GPL-2.0

//! How many things there are of a kind.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc, //
    }, //
};

/// Tells how many [`Counted`] of it live. May be used in any context.
pub(crate) struct Gauge(Atomic<u32>);

impl Gauge {
    /// Makes a gauge that stands at 0.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Ok(Arc::new(Self(Atomic::new(0)), GFP_KERNEL)?)
    }

    /// Returns how many there are.
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

/// Part of a thing that is counted for as long as it lives.
pub(crate) struct Counted(Arc<Gauge>);

impl Counted {
    /// Counts one more.
    pub(crate) fn new(gauge: &Arc<Gauge>) -> Self {
        gauge.0.add(1_u32, Relaxed);
        Self(gauge.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let _ = self.0 .0.fetch_sub(1_u32, Relaxed);
    }
}
