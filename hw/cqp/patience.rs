// SPDX-License-Identifier: GPL-2.0

//! How long the device may take for commands.
//!
//! It may complete them in any order, and take long for one while it completes others. What ends
//! the patience with it is that nothing at all is completed, or that one command is not for so long
//! that its completion must be lost.

use kernel::time::{
    Delta,
    Instant,
    Monotonic, //
};

/// How long the device may complete nothing while commands are under way, in milliseconds.
#[doc(alias = "CQP_TIMEOUT_THRESHOLD")]
const IDLE_LIMIT_MS: u32 = 5_000;

/// How long the device may take for one command, in milliseconds.
const COMMAND_LIMIT_MS: u32 = 30_000;

/// Longest time between two looks that counts. Somebody who was away for longer, for instance
/// because the machine stood still, knows nothing of what the device could have done meanwhile.
const LONGEST_LOOK: Delta = Delta::from_millis(100);

/// How often [`Lookout::is_over`] is to be asked, in milliseconds.
pub(crate) const LOOKOUT_PERIOD_MS: u32 = IDLE_LIMIT_MS;

/// The patience of somebody who waits for a command, or for room for one.
pub(crate) struct Patience {
    completed: u64,
    looked: Instant<Monotonic>,
    /// Time without a completion.
    idle: Delta,
    /// Time since the beginning.
    total: Delta,
}

impl Patience {
    /// Begins at `now`, when the device has completed `completed` commands.
    pub(crate) fn new(completed: u64, now: Instant<Monotonic>) -> Self {
        Self {
            completed,
            looked: now,
            idle: Delta::ZERO,
            total: Delta::ZERO,
        }
    }

    /// Looks at `now`, when the device has completed `completed` commands, and returns whether it is
    /// time to give up.
    #[doc(alias = "irdma_check_cqp_progress")]
    pub(crate) fn is_over(&mut self, completed: u64, now: Instant<Monotonic>) -> bool {
        let passed = (now - self.looked).min(LONGEST_LOOK);

        self.looked = now;
        self.total += passed;
        if completed != self.completed {
            self.completed = completed;
            self.idle = Delta::ZERO;
        } else {
            self.idle += passed;
        }

        self.idle >= Delta::from_millis(IDLE_LIMIT_MS.into())
            || self.total >= Delta::from_millis(COMMAND_LIMIT_MS.into())
    }
}

/// How far the device is with the ring of commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Number of commands that it has completed.
    pub(crate) completed: u64,
    /// The oldest command under way, counted from the first one of all.
    pub(crate) oldest: Option<u64>,
}

/// Looks after commands, in particular those that nobody waits for: the ring has no room beyond the
/// oldest one under way.
#[derive(Default)]
pub(crate) struct Lookout {
    last: Progress,
    /// Number of looks at which the oldest command was the same as before.
    same: u32,
}

impl Lookout {
    /// Looks how far the device is, once in [`LOOKOUT_PERIOD_MS`], and returns whether it is time to
    /// give up.
    pub(crate) fn is_over(&mut self, now: Progress) -> bool {
        let last = core::mem::replace(&mut self.last, now);

        if now.oldest.is_none() || now.oldest != last.oldest {
            self.same = 0;
            return false;
        }
        self.same += 1;

        now.completed == last.completed || self.same >= COMMAND_LIMIT_MS / LOOKOUT_PERIOD_MS
    }
}
