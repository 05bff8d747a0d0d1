// SPDX-License-Identifier: GPL-2.0

//! Head and tail of a ring, in whatever unit its owner counts.

use kernel::prelude::*;

/// Value of the valid bit that marks an entry of the current lap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Polarity(bool);

impl Polarity {
    /// The valid bit is one.
    pub(crate) const ONE: Self = Self(true);
    /// The valid bit is zero.
    pub(crate) const ZERO: Self = Self(false);

    /// The polarity that an entry with valid bit `valid` has.
    pub(crate) const fn of(valid: bool) -> Self {
        Self(valid)
    }

    /// The valid bit to write.
    pub(crate) const fn valid(self) -> bool {
        self.0
    }

    /// The polarity of the next lap.
    pub(crate) const fn flipped(self) -> Self {
        Self(!self.0)
    }

    /// A word that nobody takes for an entry of this polarity.
    pub(crate) const fn stale_word(self) -> u64 {
        if self.0 {
            0
        } else {
            u64::MAX
        }
    }
}

/// Head, tail and size of a ring. One place stays free, so that full and empty differ.
///
/// # Invariants
///
/// `mask` is one less than a power of two of at most 2^30, and `head` and `tail` are not above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "irdma_ring")]
pub(crate) struct Ring {
    head: u32,
    tail: u32,
    /// Places less one.
    mask: u32,
}

impl Ring {
    /// An empty ring of `size` places.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `size` is not a power of two, or above 2^30, where sums of two positions would
    /// not fit.
    pub(crate) fn new(size: u32) -> Result<Self> {
        if !size.is_power_of_two() || size > 1 << 30 {
            return Err(EINVAL);
        }
        Ok(Self {
            head: 0,
            tail: 0,
            mask: size - 1,
        })
    }

    /// Where the producer writes next.
    #[inline]
    pub(crate) fn head(&self) -> u32 {
        self.head
    }

    /// The oldest place in use; equal to [`Self::head`] when the ring is empty.
    #[inline]
    pub(crate) fn tail(&self) -> u32 {
        self.tail
    }

    /// Places in use.
    #[doc(alias = "IRDMA_RING_USED_QUANTA")]
    #[inline]
    pub(crate) fn used(&self) -> u32 {
        self.distance(self.tail, self.head)
    }

    /// Whether `count` more places may be used, when `reserved` (one at least) must stay free.
    #[doc(alias = "IRDMA_RING_FREE_QUANTA")]
    #[inline]
    pub(crate) fn has_room(&self, count: u32, reserved: u32) -> bool {
        let free = self.distance(self.head, self.tail.wrapping_sub(1));

        // The one that tells full from empty is not among those.
        u64::from(free) + 1 >= u64::from(count) + u64::from(reserved)
    }

    /// Whether nothing is in use.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Whether place `position` is in use.
    #[inline]
    pub(crate) fn holds(&self, position: u32) -> bool {
        position <= self.mask && self.distance(self.tail, position) < self.used()
    }

    /// The position `count` places after `position`.
    #[inline]
    pub(crate) fn after(&self, position: u32, count: u32) -> u32 {
        // What is lost when the sum does not fit is a multiple of the size.
        position.wrapping_add(count) & self.mask
    }

    /// Moves the head on by `count` places; the caller has looked at [`Self::free`].
    #[inline]
    pub(crate) fn advance_head(&mut self, count: u32) {
        self.head = self.after(self.head, count);
    }

    /// Moves the tail to `count` places after `position`.
    #[doc(alias = "IRDMA_RING_SET_TAIL")]
    #[inline]
    pub(crate) fn release_to(&mut self, position: u32, count: u32) {
        self.tail = self.after(position, count);
    }

    /// How far `to` lies ahead of `from`, both positions of the ring.
    #[inline]
    fn distance(&self, from: u32, to: u32) -> u32 {
        to.wrapping_sub(from) & self.mask
    }
}
