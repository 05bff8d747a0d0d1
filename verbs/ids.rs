// SPDX-License-Identifier: GPL-2.0

//! Numbers under which the device knows its objects.

use kernel::{
    bitmap::BitmapVec,
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    }, //
};

/// The numbers of one kind of object.
///
/// A number that was given back is the last to be given out again, so that what the device still
/// has to say about the former owner doesn't hit the next one.
#[pin_data]
pub(crate) struct Ids {
    #[pin]
    pool: SpinLockIrq<Pool>,
}

struct Pool {
    taken: BitmapVec,
    next: usize,
    used: u32,
}

impl Ids {
    /// Makes the numbers from 0 to `count - 1`, of which those below `reserved` are never given
    /// out.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if nothing is left after the reserved ones.
    /// - `ENOMEM`
    pub(crate) fn new(count: u32, reserved: u32) -> Result<Arc<Self>> {
        if reserved >= count {
            return Err(EINVAL);
        }

        let mut taken = BitmapVec::new(count as usize, GFP_KERNEL)?;
        for number in 0..reserved as usize {
            taken.set_bit(number);
        }

        let pool = Pool {
            taken,
            next: reserved as usize,
            used: reserved,
        };
        Arc::pin_init(
            pin_init!(Self {
                pool <- new_spinlock_irq!(pool, "Ids::pool"),
            }),
            GFP_KERNEL,
        )
    }

    /// Takes a number. May be called in any context.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if all are taken.
    #[doc(alias = "irdma_alloc_rsrc")]
    pub(crate) fn take(self: &Arc<Self>) -> Result<Id> {
        self.take_from(None)
    }

    /// As [`Ids::take`], but looks for a free number from `start` on (modulo the count).
    ///
    /// # Errors
    ///
    /// As [`Ids::take`].
    pub(crate) fn take_near(self: &Arc<Self>, start: u32) -> Result<Id> {
        self.take_from(Some(start as usize))
    }

    fn take_from(self: &Arc<Self>, start: Option<usize>) -> Result<Id> {
        let mut pool = self.pool.lock();
        let count = pool.taken.len();
        let start = start.unwrap_or(pool.next).checked_rem(count).unwrap_or(0);
        let number = pool
            .taken
            .next_zero_bit(start)
            .or_else(|| pool.taken.next_zero_bit(0))
            .ok_or(ENOMEM)?;

        pool.taken.set_bit(number);
        pool.next = number.saturating_add(1);
        pool.used = pool.used.saturating_add(1);

        // CAST: The pool was made for a `u32` count of numbers.
        Ok(Id {
            ids: self.clone(),
            number: number as u32,
        })
    }

    /// Returns how many numbers there are, those reserved included.
    pub(crate) fn count(&self) -> u32 {
        // CAST: The pool was made for a `u32` count of numbers.
        self.pool.lock().taken.len() as u32
    }

    /// Returns how many are taken, those reserved included.
    pub(crate) fn used(&self) -> u32 {
        self.pool.lock().used
    }
}

/// A number that its holder owns; it is given back on drop.
pub(crate) struct Id {
    ids: Arc<Ids>,
    number: u32,
}

impl Id {
    /// Returns the number.
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.number
    }
}

impl Drop for Id {
    #[doc(alias = "irdma_free_rsrc")]
    fn drop(&mut self) {
        let mut pool = self.ids.pool.lock();

        pool.taken.clear_bit(self.number as usize);
        pool.used = pool.used.saturating_sub(1);
    }
}
