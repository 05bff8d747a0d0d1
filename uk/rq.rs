// SPDX-License-Identifier: GPL-2.0

//! A receive ring: where WQEs go, and which work requests are outstanding.

use core::ops::DerefMut;

use kernel::prelude::*;

use super::{
    memory::{
        Slot,
        Word, //
    },
    ring::{
        Polarity,
        Ring, //
    },
    sizing::RQ_RESERVED, //
};

/// A receive ring with the users' ids of its work requests in `B`, one for each WQE.
///
/// Every WQE takes the same number of quanta, so that the ring is counted in WQEs.
pub(crate) struct RecvRing<B> {
    ring: Ring,
    /// Polarity of the next WQE.
    polarity: Polarity,
    /// Quanta of a WQE, a power of two.
    quanta: u32,
    /// Quantum of the memory at which the ring begins.
    first: u32,
    wr_ids: B,
}

impl<B: DerefMut<Target = [u64]>> RecvRing<B> {
    /// An empty ring, as large as `wr_ids`, of WQEs of 2^`shift` quanta, which begins at quantum
    /// `first` of the memory that it lies in.
    ///
    /// # Errors
    ///
    /// `EINVAL` if its size is not a power of two, or if there is no room for a WQE beside the one
    /// that stays free.
    pub(crate) fn new(wr_ids: B, shift: u8, first: u32) -> Result<Self> {
        let size = u32::try_from(wr_ids.len()).map_err(|_| EINVAL)?;

        if size < 2 || shift > 3 {
            return Err(EINVAL);
        }

        Ok(Self {
            ring: Ring::new(size)?,
            polarity: Polarity::ONE,
            quanta: 1 << shift,
            first,
            wr_ids,
        })
    }

    /// Whether no work request is outstanding.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Puts a WQE in the ring, which lies in `memory`; `encode` stores its words in the slot and
    /// returns its header.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the ring has no room, `EINVAL` if it is not inside of `memory`. Nothing has
    /// changed then.
    #[doc(alias = "irdma_qp_get_next_recv_wqe")]
    #[inline]
    pub(crate) fn post<W: Word>(
        &mut self,
        memory: &[W],
        wr_id: u64,
        encode: impl FnOnce(&Slot<'_, W>) -> u64,
    ) -> Result {
        if !self.ring.has_room(1, RQ_RESERVED) {
            return Err(ENOMEM);
        }

        let index = self.ring.head();
        // `Slot::new` looks at the sum.
        let quantum = self.first.wrapping_add(index.wrapping_mul(self.quanta));
        let slot = Slot::new(memory, quantum, self.quanta, self.polarity).ok_or(EINVAL)?;
        let place = self.wr_ids.get_mut(index as usize).ok_or(EINVAL)?;

        *place = wr_id;
        let header = encode(&slot);

        self.ring.advance_head(1);
        if self.ring.head() == 0 {
            self.polarity = self.polarity.flipped();
        }
        slot.publish(header);

        Ok(())
    }

    /// Takes the work request whose WQE begins at quantum `quantum` out of the ring, and all before
    /// it; returns the user's id of it.
    ///
    /// `None` if no outstanding WQE begins there.
    #[inline]
    pub(crate) fn complete(&mut self, quantum: u32) -> Option<u64> {
        let index = quantum >> self.quanta.trailing_zeros();

        if !self.ring.holds(index) {
            return None;
        }
        let wr_id = self.wr_ids.get(index as usize).copied();

        self.ring.release_to(index, 1);
        wr_id
    }

    /// Takes the oldest work request out of the ring; returns the user's id of it.
    pub(crate) fn flush_oldest(&mut self) -> Option<u64> {
        if self.ring.is_empty() {
            return None;
        }
        let index = self.ring.tail();
        let wr_id = self.wr_ids.get(index as usize).copied();

        self.ring.release_to(index, 1);
        wr_id
    }
}
