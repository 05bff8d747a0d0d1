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
        CommandCompletion,
        CCQ_ENTRIES,
        CCQ_ID, //
    },
    function::Function,
    trace, //
};

impl Function<'_> {
    /// Takes completions off the completion queue. May be called in any context.
    #[doc(alias = "irdma_cqp_ce_handler")]
    pub(crate) fn process_completions(&self) {
        let mut any = false;

        // A device that never stops is left alone after one turn of the ring.
        for _ in 0..CCQ_ENTRIES {
            let Some(completion) = self.next_completion() else {
                break;
            };

            any = true;
            self.complete(completion);
        }

        if any && self.cqp.mode() == Mode::Interrupts {
            self.arm_ccq();
        }
    }

    fn next_completion(&self) -> Option<CommandCompletion> {
        let mut ccq = self.cqp.ccq.lock();

        Option::as_mut(&mut ccq)?.next()
    }

    /// Asks for an event with the next completion.
    pub(in crate::hw) fn arm_ccq(&self) {
        let mut ccq = self.cqp.ccq.lock();

        if let Some(ring) = Option::as_mut(&mut ccq) {
            ring.arm();
            self.doorbells().arm_cq(CCQ_ID);
        }
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
            let under_way = ring.get(index).is_some_and(Slot::is_under_way);

            if completion.context != CONTEXT || !under_way {
                drop(ring);
                self.faults().unknown_commands.count();
                return;
            }

            opcode = ring.get(index).and_then(Slot::opcode);
            match ring.replace(index, Slot::Free) {
                Some(Slot::Waiting(_)) => {
                    ring.replace(index, Slot::Done(outcome));
                    if let Some(wait) = self.cqp.waits.get(index as usize) {
                        wait.complete();
                    }
                }
                Some(Slot::Abandoned(_)) => self.faults().late_commands.count(),
                Some(Slot::Notified(_, done, cookie)) => notified = Some((done, cookie)),
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
