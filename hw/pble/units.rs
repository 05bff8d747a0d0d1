// SPDX-License-Identifier: GPL-2.0

//! Which parts of a chunk of page-list memory are in use.

use kernel::{
    alloc::{
        Flags,
        KVVec, //
    },
    prelude::*, //
};

const WORD_BITS: usize = u64::BITS as usize;

/// A bit for each unit, which is set while the unit is in use.
///
/// `kernel::bitmap` has no runs of bits; a long list takes thousands.
pub(super) struct Units {
    words: KVVec<u64>,
    count: usize,
}

impl Units {
    /// Makes `count` units, all free.
    ///
    /// # Errors
    ///
    /// `ENOMEM`
    pub(super) fn new(count: usize, flags: Flags) -> Result<Self> {
        Ok(Self {
            words: KVVec::from_elem(0, count.div_ceil(WORD_BITS), flags)?,
            count,
        })
    }

    /// Takes the first `count` free units in a row, and returns the first of them.
    pub(super) fn take(&mut self, count: usize) -> Option<usize> {
        let mut start = 0;

        loop {
            start = self.next(start, self.count, false)?;

            let end = start.checked_add(count)?;
            if end > self.count {
                return None;
            }

            match self.next(start, end, true) {
                Some(used) => start = used,
                None => {
                    self.set(start, end, true);
                    return Some(start);
                }
            }
        }
    }

    /// Takes `count` units from `start` on back.
    pub(super) fn give_back(&mut self, start: usize, count: usize) {
        self.set(start, start.saturating_add(count).min(self.count), false);
    }

    /// The first unit from `start` to before `end` that is in use, or is not.
    fn next(&self, start: usize, end: usize, used: bool) -> Option<usize> {
        let words = self.words.get(..end.div_ceil(WORD_BITS))?;
        let mut mask = u64::MAX << (start % WORD_BITS);

        for (i, word) in words.iter().enumerate().skip(start / WORD_BITS) {
            let wanted = if used { *word } else { !*word } & mask;

            if wanted != 0 {
                // CAST: At most 63.
                let unit = i * WORD_BITS + wanted.trailing_zeros() as usize;

                return (unit < end).then_some(unit);
            }
            mask = u64::MAX;
        }
        None
    }

    /// Notes of the units from `start` to before `end` whether they are in use.
    fn set(&mut self, start: usize, end: usize, used: bool) {
        let mut at = start;

        for word in self.words.iter_mut().skip(start / WORD_BITS) {
            if at >= end {
                return;
            }
            let low = at % WORD_BITS;
            let count = (WORD_BITS - low).min(end - at);
            let mask = u64::MAX >> (WORD_BITS - count) << low;

            if used {
                *word |= mask;
            } else {
                *word &= !mask;
            }
            at += count;
        }
    }
}

#[cfg(irdma_kunit)]
#[kunit_tests(irdma_pble_units)]
mod tests {
    use super::*;

    // 130 units: three words, the last with two.
    #[test]
    fn runs_over_words() -> Result {
        let mut units = Units::new(130, GFP_KERNEL)?;

        assert_eq!(units.take(60), Some(0));
        assert_eq!(units.take(10), Some(60));
        assert_eq!(units.take(60), Some(70));
        assert!(units.take(1).is_none());
        units.give_back(62, 4);
        assert!(units.take(5).is_none());
        assert_eq!(units.take(4), Some(62));
        units.give_back(0, 130);
        assert!(units.take(131).is_none());
        assert_eq!(units.take(130), Some(0));
        Ok(())
    }

    #[test]
    fn first_place_that_is_large_enough() -> Result {
        let mut units = Units::new(256, GFP_KERNEL)?;

        assert_eq!(units.take(256), Some(0));
        units.give_back(3, 2);
        units.give_back(63, 3);
        units.give_back(128, 64);
        assert_eq!(units.take(3), Some(63));
        assert_eq!(units.take(64), Some(128));
        assert_eq!(units.take(2), Some(3));
        assert!(units.take(1).is_none());
        // What is not there is not given back.
        units.give_back(250, 100);
        assert!(units.take(7).is_none());
        assert_eq!(units.take(6), Some(250));
        Ok(())
    }
}
