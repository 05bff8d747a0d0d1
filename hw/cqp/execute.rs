// SPDX-License-Identifier: GPL-2.0

//! Giving commands to the device, and waiting for their end.

use kernel::{
    io::poll::read_poll_timeout,
    prelude::*,
    sync::Arc,
    time::{
        delay::fsleep,
        msecs_to_jiffies,
        Delta,
        Instant, //
    }, //
};

use super::{
    command::{
        Command,
        Opcode, //
    },
    error::CommandError,
    patience::Patience,
    ring::Slot,
    CommandDone,
    Mode,
    Reply,
    REGISTER_LIMIT,
    REGISTER_STEP, //
};
use crate::hw::{
    function::Function,
    hal::CqpTail,
    trace, //
};

/// How long a waiter sleeps before it looks itself, in milliseconds.
#[doc(alias = "CQP_COMPL_WAIT_TIME_MS")]
const STEP_MS: u32 = 10;

impl<'a> Function<'a> {
    /// Executes a command and waits for its end. Sleeps, needs no memory, and takes a few seconds
    /// at most, unless the device is at other commands for longer; see [`Patience`].
    ///
    /// # Errors
    ///
    /// - `EBUSY` at once when a reset of the function is pending, or when the object is not in a
    ///   state for the command.
    /// - `EIO` if the device refuses the command.
    /// - `ETIMEDOUT` if the device does not answer before its time is over or a reset is pending.
    ///   The function is reset then, and what the command names may still be used by the device: see
    ///   [`Function::bury`].
    #[doc(alias = "irdma_handle_cqp_op")]
    pub(crate) fn execute<C: Command>(&self, command: &C) -> Result<Reply> {
        if self.is_reset_pending() {
            return Err(EBUSY);
        }

        match self.cqp.mode() {
            Mode::Registers => self.execute_by_registers(command),
            Mode::Polled | Mode::Interrupts => self.execute_by_queue(command, || None),
        }
    }

    /// Executes the command that makes the completion queue. Its completion is the first in that
    /// queue; a failure is in the registers only.
    ///
    /// # Errors
    ///
    /// As [`Function::execute`].
    pub(in crate::hw) fn execute_first<C: Command>(&self, command: &C) -> Result<Reply> {
        let regs = self.regs();
        let before = regs.cqp_tail();

        self.execute_by_queue(command, || {
            let now = regs.cqp_tail();

            (now.error && !before.error && now.index != before.index).then(|| {
                let (major, minor) = regs.cqp_error();

                CommandError { major, minor }
            })
        })
    }

    /// Starts a command, and has `done` told of its end with `cookie`. Never sleeps.
    ///
    /// # Errors
    ///
    /// - `EBUSY` when a reset of the function is pending.
    /// - `EAGAIN` when too many commands are under way.
    ///
    /// `done` is not told of a command that was not started.
    pub(crate) fn submit<C: Command>(
        &self,
        command: &C,
        done: Arc<dyn CommandDone + 'a>,
        cookie: u64,
    ) -> Result {
        self.start(command, Slot::Notified(C::OPCODE, done, cookie))
    }

    /// Starts a command whose end nobody is told of; a failure is logged. Never sleeps.
    ///
    /// # Errors
    ///
    /// As [`Function::submit`].
    pub(crate) fn post<C: Command>(&self, command: &C) -> Result {
        self.start(command, Slot::Detached(C::OPCODE))
    }

    fn start<C: Command>(&self, command: &C, slot: Slot<'a>) -> Result {
        if self.is_reset_pending() {
            return Err(EBUSY);
        }
        if self.cqp.mode() == Mode::Registers {
            return Err(EAGAIN);
        }

        match self.cqp.post(command, slot) {
            Ok(_) => Ok(()),
            Err((error, _slot)) => Err(error),
        }
    }

    #[doc(alias = "irdma_cqp_poll_registers")]
    fn execute_by_registers<C: Command>(&self, command: &C) -> Result<Reply> {
        let regs = self.regs();
        let before = regs.cqp_tail();
        // An error that stands there already may be that of an earlier command.
        let has_failed = |tail: &CqpTail| tail.error && !before.error;
        let index = self
            .cqp
            .post(command, Slot::Detached(C::OPCODE))
            .map_err(|(error, _)| error)?;
        let after = read_poll_timeout(
            || Ok(regs.cqp_tail()),
            |tail| has_failed(tail) || tail.index != before.index,
            REGISTER_STEP,
            REGISTER_LIMIT,
        );

        match after {
            Ok(after) => {
                let slot = {
                    let mut ring = self.cqp.ring.lock();
                    let slot = ring.replace(index, Slot::Free);

                    ring.complete();
                    slot
                };
                drop(slot);

                let outcome = match has_failed(&after) {
                    true => {
                        let (major, minor) = regs.cqp_error();

                        Err(CommandError { major, minor })
                    }
                    false => Ok(Reply::default()),
                };

                trace::completion(self, C::OPCODE, index, outcome);
                if let Err(error) = outcome {
                    self.log_failure(C::OPCODE, error);
                }

                Ok(outcome?)
            }
            Err(error) => {
                self.miss_answer(C::OPCODE);
                Err(error)
            }
        }
    }

    #[doc(alias = "irdma_wait_event")]
    fn execute_by_queue<C: Command>(
        &self,
        command: &C,
        failed: impl Fn() -> Option<CommandError>,
    ) -> Result<Reply> {
        let index = self.post_and_wait_for_room(command)?;
        let wait = self.cqp.waits.get(index as usize).ok_or(EINVAL)?;
        // Without interrupts the device is looked after more often.
        let step = match self.cqp.mode() {
            Mode::Interrupts => msecs_to_jiffies(STEP_MS),
            _ => 1,
        };
        let mut patience = None;

        if self.cqp.mode() != Mode::Interrupts {
            self.process_completions();
        }
        while !wait.wait(step) {
            // Without an interrupt, which may have been lost, nobody else does.
            self.process_completions();

            // The device has the command, and may execute it until it is reset.
            if self.is_reset_pending() {
                return self.give_up(index, ETIMEDOUT);
            }
            if let Some(error) = failed() {
                self.log_failure(C::OPCODE, error);
                return self.give_up(index, error.into());
            }

            if self.is_over(&mut patience) {
                let reply = self.give_up(index, ETIMEDOUT);

                if reply == Err(ETIMEDOUT) {
                    self.miss_answer(C::OPCODE);
                }
                return reply;
            }
        }

        self.give_up(index, EIO)
    }

    /// Posts a command; where the ring is full it waits a while for room.
    fn post_and_wait_for_room<C: Command>(&self, command: &C) -> Result<u32> {
        let mut slot = Slot::Waiting(C::OPCODE);
        let mut patience = None;

        loop {
            match self.cqp.post(command, slot) {
                Ok(index) => return Ok(index),
                Err((EAGAIN, returned)) => slot = returned,
                Err((error, _slot)) => return Err(error),
            }

            self.process_completions();
            fsleep(Delta::from_millis(STEP_MS.into()));
            if self.is_reset_pending() {
                return Err(EBUSY);
            }
            if self.is_over(&mut patience) {
                dev_err!(
                    self.device(),
                    "{:?}: no room in the control queue\n",
                    C::OPCODE
                );
                self.request_reset();
                return Err(ETIMEDOUT);
            }
        }
    }

    /// Looks whether it is time to give up. Patience begins with the first look, since most commands
    /// end before.
    fn is_over(&self, patience: &mut Option<Patience>) -> bool {
        let completed = self.cqp.ring.lock().completed;
        let now = Instant::now();

        patience
            .get_or_insert_with(|| Patience::new(completed, now))
            .is_over(completed, now)
    }

    fn miss_answer(&self, opcode: Opcode) {
        dev_err!(self.device(), "{:?}: no answer from the device\n", opcode);
        self.request_reset();
    }

    /// Asks for a reset if the device is stuck with commands, which those who don't wait for theirs
    /// would not find out. To be called once in [`LOOKOUT_PERIOD_MS`](super::patience).
    pub(in crate::hw) fn look_after_commands(&self) {
        if self.is_reset_pending() {
            return;
        }

        self.process_completions();
        if self.cqp.ring.lock().is_stuck() {
            dev_err!(self.device(), "no answer from the device to a command\n");
            self.request_reset();
        }
    }

    /// Ends the wait for the command at `index`: takes its outcome, or `error` without one.
    fn give_up(&self, index: u32, error: Error) -> Result<Reply> {
        let mut ring = self.cqp.ring.lock();

        match ring.replace(index, Slot::Free) {
            Some(Slot::Done(outcome)) => Ok(outcome?),
            Some(Slot::Waiting(opcode)) => {
                // The slot stays in use: the device may still complete the command.
                ring.replace(index, Slot::Abandoned(opcode));
                Err(error)
            }
            // Nobody else changes a slot that is waited for.
            Some(other) => {
                ring.replace(index, other);
                Err(error)
            }
            None => Err(error),
        }
    }
}
