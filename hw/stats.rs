// SPDX-License-Identifier: GPL-2.0

//! The device's statistics.
//!
//! The device's counters are narrower than 64 bits and wrap. They are added up here, each time that
//! they are gathered; how often that has to be at least follows from the narrowest.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use super::{
    dma::DmaBuffer,
    function::Function,
    hal::StatField,
    periodic::Tick, //
};

/// Size of the buffer in bytes.
#[doc(alias = "IRDMA_GATHER_STATS_BUF_SIZE")]
const BUFFER_SIZE: usize = 1024;

/// Greatest number of counters of a generation.
pub(crate) const MAX_COUNTERS: usize = 64;

impl StatField {
    /// Returns the greatest value of the counter.
    pub(crate) const fn max(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    /// Returns how far the counter has gone from `last` to `now`, which may be after a wrap.
    #[doc(alias = "irdma_stat_delta")]
    pub(crate) const fn delta(&self, last: u64, now: u64) -> u64 {
        now.wrapping_sub(last) & self.max()
    }
}

/// What has been gathered.
struct State {
    last: [u64; MAX_COUNTERS],
    totals: [u64; MAX_COUNTERS],
}

/// The statistics.
#[pin_data]
pub(crate) struct Stats<'a> {
    function: Arc<Function<'a>>,
    buffer: Arc<DmaBuffer>,
    #[pin]
    state: Mutex<State>,
}

impl<'a> Stats<'a> {
    /// Makes statistics that begin at zero.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[doc(alias = "irdma_vsi_stats_init")]
    pub(crate) fn new(function: Arc<Function<'a>>) -> Result<Arc<Self>> {
        let buffer = Arc::new(DmaBuffer::new(function.parent(), BUFFER_SIZE)?, GFP_KERNEL)?;

        Arc::pin_init(
            try_pin_init!(Self {
                buffer,
                function,
                state <- new_mutex!(
                    State {
                        last: [0; MAX_COUNTERS],
                        totals: [0; MAX_COUNTERS],
                    },
                    "irdma_rs::stats"
                ),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Asks the device for the counters and adds them up. Sleeps.
    ///
    /// # Errors
    ///
    /// Those of [`gather_stats`](super::hal::Hal::gather_stats). The totals are as they were then.
    #[doc(alias = "irdma_update_stats")]
    pub(crate) fn gather(&self) -> Result {
        let mut guard = self.state.lock();
        let state = &mut *guard;

        let hal = self.function.regs().hal();

        if let Err(error) = hal.gather_stats(&self.function, &self.buffer) {
            // The device may write the buffer later on.
            if error == ETIMEDOUT {
                self.function.bury(self.buffer.clone());
            }
            return Err(error);
        }

        let fields = hal.stat_fields();
        for ((total, last), place) in state.totals.iter_mut().zip(&mut state.last).zip(fields) {
            let now = (self.buffer.read(place.word)? >> place.shift) & place.max();

            *total = total.wrapping_add(place.delta(*last, now));
            *last = now;
        }

        Ok(())
    }

    /// Returns how many counters the device has.
    pub(crate) fn len(&self) -> usize {
        self.function.regs().hal().stat_fields().len()
    }

    /// Writes the totals, in the order of [`Counter`], to `values`.
    pub(crate) fn copy_totals(&self, values: &mut [u64]) {
        let state = self.state.lock();

        for (value, total) in values.iter_mut().zip(&state.totals).take(self.len()) {
            *value = *total;
        }
    }
}

/// Gathers the statistics before a counter wraps unseen.
pub(super) struct Gatherer<'a>(pub(super) Arc<Stats<'a>>);

impl Tick for Gatherer<'_> {
    #[doc(alias = "irdma_hw_stats_timeout")]
    fn tick(&self) {
        // The next time is soon enough after a failure.
        let _ = self.0.gather();
    }
}
