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
    device::{
        Bound,
        Device, //
    },
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
    time::Delta, //
};

use super::{
    bits::bit,
    ccq::{
        CcqMemory,
        CcqRing, //
    },
    completion::Completion,
    function::{
        Function,
        Protocol, //
    },
    regs::Regs,
    trace, //
};

#[forbid(unsafe_code)]
pub(crate) mod address;
#[forbid(unsafe_code)]
pub(crate) mod command;
#[forbid(unsafe_code)]
mod complete;
#[forbid(unsafe_code)]
pub(crate) mod cq;
#[forbid(unsafe_code)]
pub(crate) mod error;
#[forbid(unsafe_code)]
pub(crate) mod event_queue;
#[forbid(unsafe_code)]
mod execute;
#[forbid(unsafe_code)]
mod live;
#[forbid(unsafe_code)]
pub(crate) mod memory;
#[forbid(unsafe_code)]
pub(crate) mod mr;
#[forbid(unsafe_code)]
pub(crate) mod patience;
#[forbid(unsafe_code)]
pub(crate) mod qp;
#[forbid(unsafe_code)]
mod ring;
#[forbid(unsafe_code)]
pub(crate) mod scheduler;

use command::{
    Command,
    HEADER,
    SPILL_WORDS,
    WQE_WORDS, //
};
use error::CommandError;
use live::Live;
use ring::{
    Ring,
    Slot, //
};

/// Number of entries of the ring.
#[doc(alias = "IRDMA_CQP_SW_SQSIZE_2048")]
pub(crate) const ENTRIES: u32 = 2048;

/// What the device returns with each completion so that it can be told from those of another
/// queue. It is an arbitrary number.
const CONTEXT: u64 = 0x0043_5150;

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

    /// Called after [`done`](Self::done), in the same context, where the control queue is there to
    /// take further commands.
    fn follow_up(&self, _function: &Function<'_>) {}
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
    waits: Pin<KVBox<[Completion; ENTRIES as usize]>>,
    mode: Atomic<u32>,
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
            waits: KVBox::pin_init(
                pin_init::pin_init_array_from_fn(|_| Completion::new()),
                GFP_KERNEL,
            )?,
            ring <- new_spinlock_irq!(Ring::new()?, "irdma_rs::cqp_ring"),
            ccq <- new_spinlock_irq!(None, "irdma_rs::ccq"),
            // CAST: The enum is `repr(u32)`.
            mode: Atomic::new(Mode::Registers as u32),
            live: Live::new(device, parent, regs, protocol)?,
        })
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
        trace::command(self.live.parent, C::OPCODE, index);
        self.live.regs.ring_cqp(ring.head);

        Ok(index)
    }
}
