// SPDX-License-Identifier: GPL-2.0

//! Objects by the number that the device calls them by.
//!
//! The device echoes numbers, and it may do so late or wrongly. A number is looked up; what is
//! found lives for as long as the finder has it. A number that names nothing finds nothing.

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    }, //
};

/// A table of objects that share a kind of number.
#[pin_data]
pub(crate) struct Table<T> {
    #[pin]
    slots: SpinLockIrq<KVVec<Option<Arc<T>>>>,
}

impl<T> Table<T> {
    /// Makes a table for the numbers below `count`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`
    pub(crate) fn new(count: u32) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(move || {
            let mut slots = KVVec::with_capacity(count as usize, GFP_KERNEL)?;
            for _ in 0..count {
                slots.push(None, GFP_KERNEL)?;
            }

            Ok(try_pin_init!(Self {
                slots <- new_spinlock_irq!(slots, "Table::slots"),
            }))
        })
    }

    /// Makes `object` known under `number`.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the table has no such number.
    /// - `EBUSY` if another object has it.
    pub(crate) fn insert(&self, number: u32, object: Arc<T>) -> Result {
        let mut slots = self.slots.lock();
        let slot = slots.get_mut(number as usize).ok_or(EINVAL)?;

        if slot.is_some() {
            return Err(EBUSY);
        }
        *slot = Some(object);

        Ok(())
    }

    /// Finds the object that has `number`. May be called in any context.
    pub(crate) fn find(&self, number: u32) -> Option<Arc<T>> {
        self.slots.lock().get(number as usize)?.clone()
    }

    /// Finds each object in turn. One that comes or goes meanwhile may be missed or found.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Arc<T>> + '_ {
        let count = self.slots.lock().len();

        (0..count).filter_map(|number| self.slots.lock().get(number)?.clone())
    }

    /// Takes the object that has `number` out, if there is one.
    ///
    /// Who found it before may still have it.
    pub(crate) fn remove(&self, number: u32) -> Option<Arc<T>> {
        self.slots
            .lock()
            .get_mut(number as usize)
            .and_then(Option::take)
    }
}
