// SPDX-License-Identifier: GPL-2.0

//! How long the device may take for commands: 5 seconds without any completion, 30 for one of them.

use kernel::prelude::*;

#[kunit_tests(irdma_hw_patience)]
mod tests {
    use kernel::time::{
        Delta,
        Instant, //
    };

    use crate::hw::cqp::patience::{
        Lookout,
        Patience,
        Progress, //
    };

    /// Returns after how many looks, `step` milliseconds from each other, patience is over with a
    /// device that completes a command from one of `pause` looks to the next, or nothing.
    fn looks(step: i64, pause: Option<u32>) -> Option<u32> {
        let begin = Instant::now();
        let mut patience = Patience::new(7, begin);
        let mut now = begin;

        (1..=100_000_u32).find(|look| {
            let completed = pause.and_then(|pause| look.checked_div(pause)).unwrap_or(0);

            now = now + Delta::from_millis(step);
            patience.is_over(7 + u64::from(completed), now)
        })
    }

    // However often one looks.
    #[test]
    fn nothing_is_completed() {
        assert_eq!(looks(10, None), Some(500));
        assert_eq!(looks(1, None), Some(5_000));
        assert_eq!(looks(4, None), Some(1_250));
    }

    // Others are completed all the time, or each 4.99 or 5 seconds.
    #[test]
    fn others_are_completed() {
        assert_eq!(looks(10, Some(1)), Some(3_000));
        assert_eq!(looks(10, Some(499)), Some(3_000));
        assert_eq!(looks(10, Some(501)), Some(500));
    }

    // No more than 100 milliseconds count at once.
    #[test]
    fn the_machine_stood_still() {
        assert_eq!(looks(60_000, None), Some(50));
        assert_eq!(looks(60_000, Some(1)), Some(300));
    }

    /// Returns at which look at the device is found stuck, which is as far as `progress` says at
    /// each.
    fn stuck(progress: impl Fn(u64) -> (u64, Option<u64>)) -> Option<u64> {
        let mut lookout = Lookout::default();

        (1..=100).find(|look| {
            let (completed, oldest) = progress(*look);

            lookout.is_over(Progress { completed, oldest })
        })
    }

    // Nothing is to be done, or one command is always new.
    #[test]
    fn not_stuck() {
        assert!(stuck(|_| (3, None)).is_none());
        assert!(stuck(|look| (look, None)).is_none());
        assert!(stuck(|look| (look, Some(look))).is_none());
        // Of two looks one sees no command.
        assert!(stuck(|look| (0, (look % 2 == 0).then_some(0))).is_none());
        // Each command takes 25 seconds.
        assert!(stuck(|look| (look, Some(look / 6))).is_none());
    }

    // One period without a completion, or six of them with others.
    #[test]
    fn is_stuck() {
        assert_eq!(stuck(|_| (3, Some(3))), Some(2));
        assert_eq!(stuck(|look| (look, Some(0))), Some(7));
    }
}
