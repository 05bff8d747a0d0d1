// SPDX-License-Identifier: GPL-2.0

//! The control queue: commands to the device and their completions.
//!
//! A command is a value of its own type (see the files of this folder) that encodes itself. It is
//! put into a ring of which the slot says what is in it; the device answers with the slot's index,
//! never with anything that we would follow. What it answers late, twice or about a slot that is
//! not in use is counted and ignored.
//!
//! Until the queue has its completion queue ([`super::ccq`]), the device's progress is read from
//! registers, one command at a time. Afterwards completions are taken by whoever comes first: the
//! interrupt handler of completion event queue 0, or a waiting caller, who looks every 10 ms so that
//! a lost interrupt costs time only.

use kernel::{
    alloc::KVVec,
    device::{
        Bound,
        Device, //
    },
    io::poll::read_poll_timeout,
    new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Release, //
            },
            Atomic, //
        },
        barrier::{
            dma_mb,
            Write, //
        },
        Arc,
        SpinLockIrq, //
    },
    time::{
        delay::fsleep,
        msecs_to_jiffies,
        Delta, //
    }, //
};

use super::{
    bits::{
        bit,
        field, //
    },
    ccq::{
        CcqMemory,
        CcqRing,
        CommandCompletion,
        CCQ_ENTRIES,
        CCQ_ID, //
    },
    completion::Completion,
    dma::DmaBuffer,
    function::{
        Function,
        Protocol, //
    },
    graveyard,
    regs::Regs, //
};

#[forbid(unsafe_code)]
pub(crate) mod address;
#[forbid(unsafe_code)]
pub(crate) mod command;
#[forbid(unsafe_code)]
pub(crate) mod cq;
#[forbid(unsafe_code)]
pub(crate) mod error;
#[forbid(unsafe_code)]
pub(crate) mod event_queue;
#[forbid(unsafe_code)]
pub(crate) mod memory;
#[forbid(unsafe_code)]
pub(crate) mod mr;
#[forbid(unsafe_code)]
pub(crate) mod qp;
#[forbid(unsafe_code)]
pub(crate) mod scheduler;

use command::{
    Command,
    Opcode,
    HEADER,
    SPILL_WORDS,
    WQE_WORDS, //
};
use error::CommandError;

/// Number of entries of the ring.
#[doc(alias = "IRDMA_CQP_SW_SQSIZE_2048")]
pub(crate) const ENTRIES: u32 = 2048;

/// What the device returns with each completion so that it can be told from those of another
/// queue. It is an arbitrary number.
const CONTEXT: u64 = 0x0043_5150;

/// Profile of the function-private memory: the default.
const HMC_PROFILE_DEFAULT: u64 = 1;

/// Number of quadwords of the queue's context.
const CONTEXT_WORDS: usize = 8;

/// How long a waiter sleeps before it looks itself, in milliseconds.
#[doc(alias = "CQP_COMPL_WAIT_TIME_MS")]
const STEP_MS: u32 = 10;

/// How many steps without any progress of the device end a wait: 5 seconds.
#[doc(alias = "CQP_TIMEOUT_THRESHOLD")]
const STEPS_WITHOUT_PROGRESS: u32 = 500;

/// How long the device may take where its registers are polled.
const REGISTER_LIMIT: Delta = Delta::from_millis(500);

/// Pause between two looks at the registers.
const REGISTER_STEP: Delta = Delta::from_micros(10);

/// What a successful command returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The value that the command documents, else 0.
    pub(crate) value: u32,
    /// Minor code of the completion; a few commands document one for success.
    pub(crate) minor: u16,
}

/// How a command ended.
pub(crate) type Outcome = core::result::Result<Reply, CommandError>;

/// Somebody who is told when a command ends that nobody waits for.
pub(crate) trait CommandDone: Send + Sync {
    /// Called once for each command submitted with this object, with the number that was given.
    ///
    /// May be called in hard interrupt context, and must not sleep. When the control queue goes away
    /// before the command ends, the outcome is an error with both codes 0.
    fn done(&self, cookie: u64, outcome: Outcome);
}

/// Outcome of a command that the device never completed.
const LOST: CommandError = CommandError { major: 0, minor: 0 };

/// What is in a slot of the ring.
enum Slot<'a> {
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
    fn is_under_way(&self) -> bool {
        match self {
            Slot::Waiting(_) | Slot::Abandoned(_) | Slot::Detached(_) | Slot::Notified(..) => true,
            Slot::Free | Slot::Done(_) => false,
        }
    }

    fn opcode(&self) -> Option<Opcode> {
        match self {
            Slot::Waiting(opcode)
            | Slot::Abandoned(opcode)
            | Slot::Detached(opcode)
            | Slot::Notified(opcode, ..) => Some(*opcode),
            Slot::Free | Slot::Done(_) => None,
        }
    }
}

/// How the device's answers arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Mode {
    /// By registers.
    Registers = 0,
    /// In the completion queue's memory, without interrupts.
    Polled = 1,
    /// In the completion queue's memory, with interrupts.
    Interrupts = 2,
}

/// The producer's end of the ring.
struct Ring<'a> {
    /// Where the next command goes.
    head: u32,
    /// The oldest command under way, if there is one.
    tail: u32,
    /// Valid bit of the next command.
    polarity: bool,
    /// Number of commands that the device has completed.
    completed: u64,
    slots: KVVec<Slot<'a>>,
}

impl<'a> Ring<'a> {
    fn new() -> Result<Self> {
        let mut slots = KVVec::with_capacity(ENTRIES as usize, GFP_KERNEL)?;

        for _ in 0..ENTRIES {
            slots.push(Slot::Free, GFP_KERNEL)?;
        }

        Ok(Self {
            head: 0,
            tail: 0,
            polarity: false,
            completed: 0,
            slots,
        })
    }

    /// Puts `slot` at `index` and returns what was there.
    fn replace(&mut self, index: u32, slot: Slot<'a>) -> Option<Slot<'a>> {
        // CAST: Widening.
        let place = self.slots.get_mut(index as usize)?;

        Some(core::mem::replace(place, slot))
    }

    fn get(&self, index: u32) -> Option<&Slot<'a>> {
        // CAST: Widening.
        self.slots.get(index as usize)
    }

    /// Returns where the next command goes, if there is room.
    fn next(&self) -> Option<u32> {
        let free = matches!(self.get(self.head), Some(Slot::Free));

        // One slot stays empty, else a full ring looks like an empty one to the device.
        (free && (self.head + 1) % ENTRIES != self.tail).then_some(self.head)
    }

    /// Notes that the command at `index` is completed.
    fn complete(&mut self) {
        self.completed += 1;

        while self.tail != self.head && !self.get(self.tail).is_some_and(Slot::is_under_way) {
            self.tail = (self.tail + 1) % ENTRIES;
        }
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

/// The memory of the queue.
struct Memory {
    /// The ring.
    ring: DmaBuffer,
    /// The context.
    context: DmaBuffer,
    /// What does not fit into the ring, [`SPILL_WORDS`] quadwords a slot.
    spill: DmaBuffer,
}

/// A queue that the device knows; it is taken away from the device on drop.
struct Live<'a> {
    /// What messages name.
    device: &'a Device<Bound>,
    /// What does the DMA.
    parent: &'a Device<Bound>,
    regs: Regs<'a>,
    memory: Arc<Memory>,
}

impl<'a> Live<'a> {
    /// Hands a queue to the device.
    fn new(
        device: &'a Device<Bound>,
        parent: &'a Device<Bound>,
        regs: Regs<'a>,
        protocol: Protocol,
    ) -> Result<Self> {
        // CAST: Widening.
        let entries = ENTRIES as usize;
        let memory = Memory {
            ring: DmaBuffer::new(parent, entries * WQE_WORDS * 8)?,
            context: DmaBuffer::new(parent, CONTEXT_WORDS * 8)?,
            spill: DmaBuffer::new(parent, entries * SPILL_WORDS * 8)?,
        };
        let version = regs.hal().limits().cqp_major_version;
        let context = encode_context(memory.ring.address(), protocol, version);

        memory.context.write_all(0, &context)?;
        dma_mb(Write);

        // From here on the device may use the memory: `Live` takes it away again.
        let live = Self {
            device,
            parent,
            regs,
            memory: Arc::new(memory, GFP_KERNEL)?,
        };

        regs.clear_cqp();
        regs.set_cqp_context(live.memory.context.address());

        let status = read_poll_timeout(
            || Ok(regs.cqp_status()),
            |status| status.answered,
            REGISTER_STEP,
            REGISTER_LIMIT,
        );
        let error = match status {
            Ok(status) if status.error => EOPNOTSUPP,
            Ok(_) => {
                // A queue can be made again, hence the function has been reset if it had to be.
                graveyard::open(parent);
                return Ok(live);
            }
            Err(error) => error,
        };
        let (major, minor) = regs.cqp_error();

        dev_err!(
            device,
            "the control queue was not created: errno {}, codes {:#x} {:#x}\n",
            error.to_errno(),
            major,
            minor
        );

        Err(error)
    }
}

impl Drop for Live<'_> {
    #[doc(alias = "irdma_destroy_cqp")]
    #[doc(alias = "irdma_sc_cqp_destroy")]
    fn drop(&mut self) {
        self.regs.set_cqp_context(0);

        let gone = read_poll_timeout(
            || Ok(self.regs.cqp_status()),
            |status| !status.done,
            REGISTER_STEP,
            REGISTER_LIMIT,
        );

        if gone.is_err() {
            dev_warn!(self.device, "the control queue was not destroyed\n");
            graveyard::bury(self.parent, self.memory.clone());
        }
    }
}

/// The control queue.
#[pin_data]
pub(crate) struct Cqp<'a> {
    /// Goes first: the device lets go of the queue before anything of it goes.
    live: Live<'a>,
    #[pin]
    ring: SpinLockIrq<Ring<'a>>,
    #[pin]
    ccq: SpinLockIrq<Option<CcqRing>>,
    /// An event for each slot.
    waits: KVVec<Pin<KBox<Completion>>>,
    mode: Atomic<u32>,
}

/// Returns the queue's context: version 1 of the E810 knows no other fields than these.
const fn encode_context(ring: u64, protocol: Protocol, version: u16) -> [u64; CONTEXT_WORDS] {
    [
        // The size is given as its logarithm, less one.
        field::<11, 8>((ENTRIES.ilog2() - 1) as u64) | field::<4, 3>(protocol as u64),
        ring,
        HMC_PROFILE_DEFAULT,
        CONTEXT,
        field::<31, 16>(version as u64),
        0,
        0,
        0,
    ]
}

impl<'a> Cqp<'a> {
    /// Returns an initializer that makes the queue and tells the device of it.
    ///
    /// # Errors
    ///
    /// - `ENOMEM` if there is no memory for it.
    /// - `ETIMEDOUT` if the device does not answer.
    /// - `EOPNOTSUPP` if the device refuses it.
    #[doc(alias = "irdma_create_cqp")]
    #[doc(alias = "irdma_sc_cqp_init")]
    #[doc(alias = "irdma_sc_cqp_create")]
    pub(crate) fn new(
        device: &'a Device<Bound>,
        parent: &'a Device<Bound>,
        regs: Regs<'a>,
        protocol: Protocol,
    ) -> impl PinInit<Self, Error> + use<'a> {
        // The device gets to know the queue last.
        try_pin_init!(Self {
            waits: Self::allocate_waits()?,
            ring <- new_spinlock_irq!(Ring::new()?, "irdma_rs::cqp_ring"),
            ccq <- new_spinlock_irq!(None, "irdma_rs::ccq"),
            // CAST: The enum is `repr(u32)`.
            mode: Atomic::new(Mode::Registers as u32),
            live: Live::new(device, parent, regs, protocol)?,
        })
    }

    fn allocate_waits() -> Result<KVVec<Pin<KBox<Completion>>>> {
        // CAST: Widening.
        let mut waits = KVVec::with_capacity(ENTRIES as usize, GFP_KERNEL)?;

        for _ in 0..ENTRIES {
            waits.push(KBox::pin_init(Completion::new(), GFP_KERNEL)?, GFP_KERNEL)?;
        }

        Ok(waits)
    }

    fn mode(&self) -> Mode {
        match self.mode.load(Acquire) {
            1 => Mode::Polled,
            2 => Mode::Interrupts,
            _ => Mode::Registers,
        }
    }

    fn set_mode(&self, mode: Mode) {
        // CAST: The enum is `repr(u32)`.
        self.mode.store(mode as u32, Release);
    }

    /// Takes completions from the queue in `memory` from now on.
    pub(super) fn attach_ccq(&self, memory: Arc<CcqMemory>) {
        *self.ccq.lock() = Some(CcqRing::new(memory));
        self.set_mode(Mode::Polled);
    }

    /// Takes completions from the registers again.
    pub(super) fn detach_ccq(&self) {
        self.set_mode(Mode::Registers);
        let ring = self.ccq.lock().take();
        drop(ring);
    }

    /// Notes whether completions raise interrupts.
    pub(super) fn expect_interrupts(&self, expected: bool) {
        self.set_mode(match expected {
            true => Mode::Interrupts,
            false => Mode::Polled,
        });
    }

    /// Puts a command into the ring and tells the device of it; `slot` says who waits for it.
    ///
    /// # Errors
    ///
    /// `EAGAIN` if the ring is full.
    fn post<C: Command>(
        &self,
        command: &C,
        slot: Slot<'a>,
    ) -> core::result::Result<u32, (Error, Slot<'a>)> {
        let mut words = command.encode();
        let spill = command.spill();
        let mut ring = self.ring.lock();
        let Some(index) = ring.next() else {
            return Err((EAGAIN, slot));
        };

        // CAST: Widening.
        let place = index as usize;
        let polarity = match index {
            0 => !ring.polarity,
            _ => ring.polarity,
        };
        let write = |words: &mut [u64; WQE_WORDS]| -> Result {
            if !spill.is_empty() {
                let at = place * SPILL_WORDS;

                if spill.len() > SPILL_WORDS {
                    return Err(EINVAL);
                }
                self.live.memory.spill.write_all(at, spill)?;
                // CAST: Widening.
                words[2] |= self.live.memory.spill.address() + (at * 8) as u64;
            }

            let at = place * WQE_WORDS;
            for (i, word) in words.iter().enumerate().filter(|(i, _)| *i != HEADER) {
                self.live.memory.ring.write(at + i, *word)?;
            }
            // The valid bit comes last.
            dma_mb(Write);
            self.live
                .memory
                .ring
                .write(at + HEADER, words[HEADER] | bit::<63>(polarity))
        };

        if let Err(error) = write(&mut words) {
            return Err((error, slot));
        }

        if let Some(wait) = self.waits.get(place) {
            wait.reset();
        }
        ring.replace(index, slot);
        ring.polarity = polarity;
        ring.head = (index + 1) % ENTRIES;
        self.live.regs.ring_cqp(ring.head);

        Ok(index)
    }
}

impl<'a> Function<'a> {
    /// Executes a command and waits for its end. Sleeps, needs no memory, and takes a few seconds
    /// at most: the limit is 5 seconds without any progress of the device.
    ///
    /// # Errors
    ///
    /// - `EBUSY` at once when a reset of the function is pending, or when the object is not in a
    ///   state for the command.
    /// - `EIO` if the device refuses the command.
    /// - `ETIMEDOUT` if the device does not answer. The function is reset then, and what the command
    ///   names may still be used by the device: see [`Function::bury`].
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
    pub(super) fn execute_first<C: Command>(&self, command: &C) -> Result<Reply> {
        let regs = self.regs();
        let before = regs.cqp_tail();

        self.execute_by_queue(command, || {
            let now = regs.cqp_tail();

            (now.error && now.index != before.index).then(|| {
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
        let index = self
            .cqp
            .post(command, Slot::Detached(C::OPCODE))
            .map_err(|(error, _)| error)?;
        let after = read_poll_timeout(
            || Ok(regs.cqp_tail()),
            |tail| tail.error || tail.index != before.index,
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

                if after.error {
                    let (major, minor) = regs.cqp_error();
                    let error = CommandError { major, minor };

                    self.log_failure(C::OPCODE, error);
                    return Err(error.into());
                }

                Ok(Reply::default())
            }
            Err(error) => {
                dev_err!(
                    self.device(),
                    "{:?}: no answer from the device\n",
                    C::OPCODE
                );
                self.request_reset();
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
        let mut completed = self.cqp.ring.lock().completed;
        let mut idle = 0;

        loop {
            self.process_completions();
            if wait.wait(step) {
                break;
            }
            if self.is_reset_pending() {
                return self.give_up(index, EBUSY);
            }
            if let Some(error) = failed() {
                self.log_failure(C::OPCODE, error);
                return self.give_up(index, error.into());
            }

            let now = self.cqp.ring.lock().completed;
            if now != completed {
                completed = now;
                idle = 0;
            } else {
                idle += 1;
            }
            if idle >= STEPS_WITHOUT_PROGRESS {
                let reply = self.give_up(index, ETIMEDOUT);

                if reply == Err(ETIMEDOUT) {
                    dev_err!(
                        self.device(),
                        "{:?}: no answer from the device\n",
                        C::OPCODE
                    );
                    self.request_reset();
                }
                return reply;
            }
        }

        self.give_up(index, EIO)
    }

    /// Posts a command; where the ring is full it waits a while for room.
    fn post_and_wait_for_room<C: Command>(&self, command: &C) -> Result<u32> {
        let mut slot = Slot::Waiting(C::OPCODE);

        for _ in 0..STEPS_WITHOUT_PROGRESS {
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
        }

        Err(ETIMEDOUT)
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
    pub(super) fn arm_ccq(&self) {
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

    fn log_failure(&self, opcode: Opcode, error: CommandError) {
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
