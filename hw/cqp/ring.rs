// SPDX-License-Identifier: GPL-2.0

//! The ring of commands, as the driver knows it: what is in each slot.

use kernel::{
    alloc::KVVec,
    prelude::*,
    sync::Arc, //
};

use super::{
    command::Opcode,
    error::CommandError,
    patience::{
        Lookout,
        Progress, //
    },
    CommandDone,
    Outcome,
    ENTRIES, //
};

/// Outcome of a command that the device never completed.
const LOST: CommandError = CommandError { major: 0, minor: 0 };

/// What is in a slot of the ring.
pub(super) enum Slot<'a> {
    /// Nothing.
    Free,
    /// A command, and a caller who waits for it.
    Waiting(Opcode),
    /// The outcome, until the caller takes it.
    Done(Outcome),
    /// A command whose caller has given up.
    Abandoned(Opcode),
    /// A command that nobody waits for.
    Detached(Opcode),
    /// A command that somebody is told of.
    Notified(Opcode, Arc<dyn CommandDone + 'a>, u64),
}

impl Slot<'_> {
    /// Returns whether the device has not completed the command.
    pub(super) fn is_under_way(&self) -> bool {
        match self {
            Slot::Waiting(_) | Slot::Abandoned(_) | Slot::Detached(_) | Slot::Notified(..) => true,
            Slot::Free | Slot::Done(_) => false,
        }
    }

    pub(super) fn opcode(&self) -> Option<Opcode> {
        match self {
            Slot::Waiting(opcode)
            | Slot::Abandoned(opcode)
            | Slot::Detached(opcode)
            | Slot::Notified(opcode, ..) => Some(*opcode),
            Slot::Free | Slot::Done(_) => None,
        }
    }
}

/// The producer's end of the ring.
pub(super) struct Ring<'a> {
    /// Where the next command goes.
    pub(super) head: u32,
    /// The oldest command under way, if there is one.
    tail: u32,
    /// Number of commands that were before `tail`.
    passed: u64,
    /// Valid bit of the next command.
    pub(super) polarity: bool,
    /// Number of commands that the device has completed.
    pub(super) completed: u64,
    lookout: Lookout,
    slots: KVVec<Slot<'a>>,
}

impl<'a> Ring<'a> {
    pub(super) fn new() -> Result<Self> {
        let mut slots = KVVec::with_capacity(ENTRIES as usize, GFP_KERNEL)?;

        for _ in 0..ENTRIES {
            slots.push(Slot::Free, GFP_KERNEL)?;
        }

        Ok(Self {
            head: 0,
            tail: 0,
            passed: 0,
            polarity: false,
            completed: 0,
            lookout: Lookout::default(),
            slots,
        })
    }

    /// Puts `slot` at `index` and returns what was there.
    pub(super) fn replace(&mut self, index: u32, slot: Slot<'a>) -> Option<Slot<'a>> {
        Some(core::mem::replace(self.get_mut(index)?, slot))
    }

    pub(super) fn get(&self, index: u32) -> Option<&Slot<'a>> {
        // CAST: Widening.
        self.slots.get(index as usize)
    }

    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut Slot<'a>> {
        // CAST: Widening.
        self.slots.get_mut(index as usize)
    }

    /// Returns where the next command goes, if there is room.
    pub(super) fn next(&self) -> Option<u32> {
        let free = matches!(self.get(self.head), Some(Slot::Free));

        // One slot stays empty, else a full ring looks like an empty one to the device.
        (free && (self.head + 1) % ENTRIES != self.tail).then_some(self.head)
    }

    /// Notes that the command at `index` is completed.
    pub(super) fn complete(&mut self) {
        self.completed += 1;

        while self.tail != self.head && !self.get(self.tail).is_some_and(Slot::is_under_way) {
            self.tail = (self.tail + 1) % ENTRIES;
            self.passed += 1;
        }
    }

    /// Looks how far the device is; see [`Lookout::is_over`].
    pub(super) fn is_stuck(&mut self) -> bool {
        let progress = Progress {
            completed: self.completed,
            oldest: (self.tail != self.head).then_some(self.passed),
        };

        self.lookout.is_over(progress)
    }
}

impl Drop for Ring<'_> {
    /// Those who would be told of a command's end are told that there is none.
    #[doc(alias = "irdma_cleanup_pending_cqp_op")]
    fn drop(&mut self) {
        for slot in self.slots.iter_mut() {
            if let Slot::Notified(_, done, cookie) = core::mem::replace(slot, Slot::Free) {
                done.done(cookie, Err(LOST));
            }
        }
    }
}
