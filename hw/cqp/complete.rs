// SPDX-License-Identifier: GPL-2.0

//! The device's answers: whom each completion concerns.

use kernel::prelude::*;

use super::{
    command::Opcode,
    error::CommandError,
    ring::Slot,
    Mode,
    Reply,
    CONTEXT, //
};
use crate::hw::{
    ccq::{
        CcqRing,
        CommandCompletion,
        CCQ_ID, //
    },
    function::Function,
    trace, //
};

impl Function<'_> {
    /// Takes completions off the completion queue. May be called in any context.
    #[doc(alias = "irdma_cqp_ce_handler")]
    pub(crate) fn process_completions(&self) {
        // A device that never stops is left alone after one turn of the ring.
        for turn in 0..self.regs().hal().limits().ccq_entries {
            let Some(completion) = self.next_completion(turn > 0) else {
                return;
            };

            self.complete(completion);
        }

        if self.cqp.mode() == Mode::Interrupts {
            self.arm_ccq();
        }
    }

    /// Takes the next completion. Where there is none, an event with the next one is asked for, if
    /// `arm` says that the last one is used up.
    fn next_completion(&self, arm: bool) -> Option<CommandCompletion> {
        let mut ccq = self.cqp.ccq.lock();
        let ring = Option::as_mut(&mut ccq)?;
        let next = ring.next();

        if next.is_none() && arm && self.cqp.mode() == Mode::Interrupts {
            self.arm(ring);
            // There is no event for what came before.
            return ring.next();
        }

        next
    }

    /// Asks for an event with the next completion.
    pub(in crate::hw) fn arm_ccq(&self) {
        let mut ccq = self.cqp.ccq.lock();

        if let Some(ring) = Option::as_mut(&mut ccq) {
            self.arm(ring);
        }
    }

    fn arm(&self, ring: &mut CcqRing) {
        ring.arm();
        self.doorbells().arm_cq(CCQ_ID);
    }

    /// Acts on one completion.
    fn complete(&self, completion: CommandCompletion) {
        let outcome = match completion.error {
            true => Err(CommandError {
                major: completion.major,
                minor: completion.minor,
            }),
            false => Ok(Reply {
                value: completion.value,
                minor: completion.minor,
            }),
        };
        let index = completion.index;
        // What was in the slot is dropped when the lock is no longer held.
        let mut notified = None;
        let opcode;

        {
            let mut ring = self.cqp.ring.lock();
            let under_way = ring.get_mut(index).filter(|slot| slot.is_under_way());
            let Some(slot) = under_way.filter(|_| completion.context == CONTEXT) else {
                drop(ring);
                self.faults().unknown_commands.count();
                return;
            };

            opcode = slot.opcode();
            match core::mem::replace(slot, Slot::Free) {
                Slot::Waiting(_) => {
                    *slot = Slot::Done(outcome);
                    // CAST: Widening.
                    if let Some(wait) = self.cqp.waits.get(index as usize) {
                        wait.complete();
                    }
                }
                Slot::Abandoned(_) => self.faults().late_commands.count(),
                Slot::Notified(_, done, cookie) => notified = Some((done, cookie)),
                _ => (),
            }
            ring.complete();
        }

        if let Some(opcode) = opcode {
            trace::completion(self, opcode, index, outcome);
        }
        if let (Err(error), Some(opcode)) = (outcome, opcode) {
            self.log_failure(opcode, error);
            if error.needs_reset() {
                self.request_reset();
            }
        }
        if let Some((done, cookie)) = notified {
            done.done(cookie, outcome);
            done.follow_up(self);
        }
    }

    pub(super) fn log_failure(&self, opcode: Opcode, error: CommandError) {
        match error.harmless() {
            Some(what) => dev_dbg!(self.device(), "{:?}: {}\n", opcode, what),
            None => dev_err!(
                self.device(),
                "{:?} failed: codes {:#x} {:#x}\n",
                opcode,
                error.major,
                error.minor
            ),
        }
    }
}
