// SPDX-License-Identifier: GPL-2.0

//! Which regions are contiguous for the device.

use kernel::prelude::*;

#[kunit_tests(irdma_regions)]
mod tests {
    use super::*;
    use crate::verbs::mr::start_of_run;

    const GIB: u64 = 1 << 30;

    /// `count` pages of `size` bytes that follow each other from `first` on.
    fn run(first: u64, size: u64, count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |page| first + page * size)
    }

    #[test]
    fn pages_in_a_row_are_one() -> Result {
        assert_eq!(start_of_run(run(0x1000, 0x1000, 1), 0x1000), Some(0x1000));
        assert_eq!(start_of_run(run(0x1000, 0x1000, 5), 0x1000), Some(0x1000));
        // Beyond 4 GiB, too.
        assert_eq!(start_of_run(run(GIB, GIB, 8), GIB), Some(GIB));
        assert_eq!(
            start_of_run(run(6 * GIB, 2 << 20, 3072), 2 << 20),
            Some(6 * GIB)
        );
        Ok(())
    }

    #[test]
    fn others_are_not() -> Result {
        assert_eq!(start_of_run([].into_iter(), 0x1000), None);
        assert_eq!(start_of_run([0x1000, 0x3000].into_iter(), 0x1000), None);
        assert_eq!(start_of_run([0x1000, 0x1000].into_iter(), 0x1000), None);
        assert_eq!(start_of_run([0x2000, 0x1000].into_iter(), 0x1000), None);
        assert_eq!(
            start_of_run([u64::MAX - 0xfff, 0].into_iter(), 0x1000),
            None
        );
        Ok(())
    }

    /// M-10: 4 GiB in a row, and from there on what 32 bits would take for what follows.
    #[test]
    fn m10_distance_needs_more_than_32_bits() -> Result {
        let wraps = |size: u64| {
            let pages = 4 * GIB / size;

            Iterator::chain(run(8 * GIB, size, pages), run(8 * GIB, size, pages / 2))
        };

        assert_eq!(start_of_run(wraps(GIB), GIB), None);
        assert_eq!(start_of_run(wraps(2 << 20), 2 << 20), None);
        assert_eq!(start_of_run(wraps(4096), 4096), None);
        Ok(())
    }
}
