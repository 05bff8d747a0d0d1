// SPDX-License-Identifier: GPL-2.0

//! Numbers of the device's objects.

use kernel::{
    id_pool::IdPool,
    new_spinlock_irq,
    prelude::*,
    sync::SpinLockIrq, //
};

use super::{
    cqp::address::MAX_MCAST_GROUPS,
    hmc::{
        fpm::Layout,
        object::Object, //
    }, //
};

/// Numbers of a pool, so that its bitmap takes a page: that of all memory keys would be half a
/// megabyte in one piece, which a host that has long been up may not have.
const POOL_NUMBERS: usize = 8 * 4096;

/// Numbers that are taken and what is tried next.
struct Numbers {
    /// Of [`POOL_NUMBERS`] each, but for the last.
    pools: KVec<IdPool>,
    used: u32,
    /// Below `max`.
    next: usize,
    max: usize,
}

/// Numbers from 0 to a limit. May be used in any context.
///
/// Numbers are handed out in turn, so that one which was just given back stays unused for long:
/// what the device still says about it then meets nobody.
#[pin_data]
pub(crate) struct Ids {
    #[pin]
    numbers: SpinLockIrq<Numbers>,
    max: u32,
    reserved: u32,
}

impl Ids {
    /// Returns an initializer for the numbers below `max`, of which those below `reserved` are
    /// never handed out.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(max: u32, reserved: u32) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            numbers <- new_spinlock_irq!(Numbers::new(max, reserved)?, "irdma_rs::ids"),
            max,
            reserved,
        })
    }

    /// Returns how many numbers there are to be taken and given back.
    pub(crate) fn usable(&self) -> u32 {
        self.max.saturating_sub(self.reserved)
    }

    /// Returns how many numbers are taken.
    pub(crate) fn used(&self) -> u32 {
        self.numbers.lock().used
    }

    /// Returns the number after the greatest one.
    pub(crate) fn max(&self) -> u32 {
        self.max
    }

    /// Takes a number.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if all numbers are taken.
    #[doc(alias = "irdma_alloc_rsrc")]
    pub(crate) fn take(&self) -> Result<Number<'_>> {
        Ok(Number {
            number: self.numbers.lock().take().ok_or(ENOMEM)?,
            ids: self,
        })
    }

    /// Gives a number back.
    #[doc(alias = "irdma_free_rsrc")]
    pub(crate) fn give_back(&self, id: u32) {
        if id < self.max {
            let mut numbers = self.numbers.lock();

            // CAST: Widening.
            let id = id as usize;

            if let Some(pool) = numbers.pools.get_mut(id / POOL_NUMBERS) {
                pool.release_id(id % POOL_NUMBERS);
                numbers.used = numbers.used.saturating_sub(1);
            }
        }
    }
}

impl Numbers {
    fn new(max: u32, reserved: u32) -> Result<Self> {
        // CAST: Widening.
        let max = max as usize;
        let mut pools = KVec::with_capacity(max.div_ceil(POOL_NUMBERS), GFP_KERNEL)?;

        for first in (0..max).step_by(POOL_NUMBERS) {
            let pool = IdPool::with_capacity((max - first).min(POOL_NUMBERS), GFP_KERNEL)?;

            pools.push(pool, GFP_KERNEL)?;
        }
        let mut numbers = Self {
            pools,
            used: 0,
            next: 0,
            max,
        };

        for _ in 0..reserved {
            numbers.take();
        }
        numbers.used = 0;

        Ok(numbers)
    }

    fn take(&mut self) -> Option<u32> {
        let first = self.next / POOL_NUMBERS;
        let count = self.pools.len();

        // From `next` on and around; the first pool comes again, for what lies before `next`.
        for turn in 0..=count {
            let index = (first + turn).checked_rem(count)?;
            let start = if turn == 0 {
                self.next % POOL_NUMBERS
            } else {
                0
            };
            let Some(id) = self.pools.get_mut(index)?.find_unused_id(start) else {
                continue;
            };
            let number = index * POOL_NUMBERS + id.as_usize();

            // A pool may be larger than there are numbers.
            if number >= self.max {
                continue;
            }
            id.acquire();
            self.used += 1;
            // A bitmap must not be asked beyond its end.
            self.next = number + 1;
            if self.next == self.max {
                self.next = 0;
            }
            // CAST: Below `max`, which has 32 bits.
            return Some(number as u32);
        }

        None
    }
}

/// A number that was taken for an object which doesn't exist yet. It is given back on drop.
pub(crate) struct Number<'d> {
    ids: &'d Ids,
    number: u32,
}

impl Number<'_> {
    /// Returns the number.
    pub(crate) fn get(&self) -> u32 {
        self.number
    }

    /// Leaves the number to the object, which exists now.
    pub(crate) fn keep(self) -> u32 {
        let number = self.number;

        // There is nothing else to drop but the number.
        core::mem::forget(self);
        number
    }
}

impl Drop for Number<'_> {
    fn drop(&mut self) {
        self.ids.give_back(self.number);
    }
}

/// The numbers of all kinds of object.
#[pin_data]
pub(crate) struct IdPools {
    /// Queue pairs. 0 is none, 1 is that of the general services, 2 is reserved.
    #[pin]
    pub(crate) qps: Ids,
    /// Completion queues. 0 is the control queue's, 1 and 2 are reserved.
    #[pin]
    pub(crate) cqs: Ids,
    /// Protection domains. 0 to 2 are reserved.
    #[pin]
    pub(crate) pds: Ids,
    /// Indices of memory keys. 0 is the key for all memory that the kernel uses.
    #[pin]
    pub(crate) mrs: Ids,
    /// Address handles. 0 is none.
    #[pin]
    pub(crate) ahs: Ids,
    /// Multicast groups. 0 is none.
    #[pin]
    pub(crate) mcast_groups: Ids,
}

impl IdPools {
    /// Returns an initializer for as many numbers as the device has objects.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[doc(alias = "irdma_initialize_hw_rsrc")]
    pub(crate) fn new(layout: &Layout, max_pds: u32) -> impl PinInit<Self, Error> {
        let qp_count = layout.count(Object::Qp);
        let cq_count = layout.count(Object::Cq);
        let mr_count = layout.count(Object::Mr);
        let ah_count = layout.count(Object::AddressHandle);
        // Fewer than the ports' attributes say, which is the number of queue pairs.
        let mcast_group_count = layout
            .count(Object::McastGroup)
            .min(qp_count)
            .min(MAX_MCAST_GROUPS);

        try_pin_init!(Self {
            qps <- Ids::new(qp_count, 3),
            cqs <- Ids::new(cq_count, 3),
            pds <- Ids::new(max_pds, 3),
            mrs <- Ids::new(mr_count, 1),
            ahs <- Ids::new(ah_count, 1),
            mcast_groups <- Ids::new(mcast_group_count, 1),
        })
    }
}
