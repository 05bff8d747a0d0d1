// SPDX-License-Identifier: GPL-2.0

//! The completion queue of an in-kernel user: its ring, and the queue pairs that complete to it.
//!
//! The device names a queue pair by the completion context that it was given, a number which is
//! never given out twice. It is looked up among the queue pairs that are attached to the completion
//! queue, so that an entry which outlives its queue pair finds nothing.

use kernel::{
    alloc::Flags,
    device::{
        Bound,
        Device, //
    },
    new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            ordering::Full,
            Atomic, //
        },
        Arc,
        SpinLockIrq, //
    }, //
};

use crate::{
    hw::{
        dma::DmaBuffer,
        doorbell::Doorbells, //
    },
    rdma::{
        CqLink,
        NotifyFlags, //
    },
    uk::{
        cq::CompletionRing,
        cqe::Queue,
        memory::QUANTUM_BYTES,
        shadow::{
            self,
            CqArm,
            Notify, //
        },
        sizing, //
    }, //
};

use super::{
    kernel_qp::KernelQp,
    ring_memory::CompletionMemory, //
};

/// A queue pair that completes to the queue.
pub(super) struct Attached {
    context: u64,
    pub(super) qp: Arc<KernelQp>,
    /// Its send queue completes here, and what is outstanding in it is to be flushed.
    pub(super) send_due: bool,
    /// The same of its receive queue.
    pub(super) recv_due: bool,
}

/// What belongs to the queue's ring.
pub(super) struct State {
    pub(super) ring: CompletionRing,
    /// By rising context.
    pub(super) attached: KVec<Attached>,
    /// Some attached queue is due.
    pub(super) any_due: bool,
    /// What the device was told last.
    arm: CqArm,
    /// What the user asked for last.
    notify: Notify,
}

impl State {
    /// Where the queue pair with completion context `context` is among those attached.
    pub(super) fn position(&self, context: u64) -> Option<usize> {
        self.attached
            .binary_search_by_key(&context, |attached| attached.context)
            .ok()
    }
}

/// The completion queue of an in-kernel user.
#[pin_data]
pub(super) struct KernelCq {
    number: u32,
    link: Arc<CqLink>,
    entries: DmaBuffer,
    shadow: DmaBuffer,
    /// The device owes an event.
    armed: Atomic<bool>,
    #[pin]
    state: SpinLockIrq<State>,
}

impl KernelCq {
    /// Makes the queue number `number` with `entries` entries, see [`sizing::cq_entries`].
    ///
    /// # Errors
    ///
    /// - `EINVAL` if there can be no such ring.
    /// - `ENOMEM`
    pub(super) fn new(
        parent: &Device<Bound>,
        link: Arc<CqLink>,
        number: u32,
        entries: u32,
    ) -> Result<Arc<Self>> {
        let ring = CompletionRing::new(entries)?;
        let bytes = (entries as usize)
            .checked_mul(QUANTUM_BYTES as usize)
            .and_then(|bytes| bytes.checked_next_multiple_of(256))
            .ok_or(EINVAL)?;
        let state = State {
            ring,
            attached: KVec::new(),
            any_due: false,
            arm: CqArm::from_raw(0),
            notify: Notify::Next,
        };

        Arc::pin_init(
            try_pin_init!(Self {
                number,
                link,
                entries: DmaBuffer::new(parent, bytes)?,
                shadow: DmaBuffer::new(parent, sizing::SHADOW_BYTES as usize)?,
                armed: Atomic::new(false),
                state <- new_spinlock_irq!(state, "KernelCq::state"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// DMA address of the ring.
    pub(super) fn entries_address(&self) -> u64 {
        self.entries.address()
    }

    /// DMA address of the shadow area.
    pub(super) fn shadow_address(&self) -> u64 {
        self.shadow.address()
    }

    /// The ring's memory, to be read under the lock of `state`.
    pub(super) fn memory(&self) -> CompletionMemory<'_> {
        CompletionMemory(&self.entries)
    }

    /// Runs `f` on the ring.
    #[inline]
    pub(super) fn with_state<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        f(&mut self.state.lock())
    }

    /// Tells the device how far the ring has been read.
    pub(super) fn show_index(&self, state: &State) {
        // The shadow area has this word.
        let _ = self
            .shadow
            .write(shadow::CQ_INDEX, state.ring.next().into());
    }

    /// Has completions of `qp` reported.
    ///
    /// # Errors
    ///
    /// `ENOMEM`
    pub(super) fn attach(&self, qp: &Arc<KernelQp>) -> Result {
        let context = qp.context();
        // Room is made outside of the lock, under which nothing may sleep.
        let mut spare = KVec::new();

        loop {
            let needed = {
                let mut state = self.state.lock();

                if state.attached.capacity() <= state.attached.len() {
                    if spare.capacity() > state.attached.len() {
                        move_all(&mut state.attached, &mut spare);
                    }
                }
                if state.attached.capacity() > state.attached.len() {
                    let at = state
                        .attached
                        .binary_search_by_key(&context, |attached| attached.context);

                    return match at {
                        // Its receive queue completes here as its send queue does.
                        Ok(_) => Ok(()),
                        Err(at) => state
                            .attached
                            .insert_within_capacity(
                                at,
                                Attached {
                                    context,
                                    qp: qp.clone(),
                                    send_due: false,
                                    recv_due: false,
                                },
                            )
                            .map_err(|_| ENOMEM),
                    };
                }
                state.attached.len().saturating_mul(2).max(4)
            };

            // Whatever `spare` holds by now are empty places.
            spare = with_capacity(needed, GFP_KERNEL)?;
        }
    }

    /// Ends what [`Self::attach`] began: nothing of `qp` is reported afterwards.
    #[doc(alias = "irdma_clean_cqes")]
    pub(super) fn detach(&self, qp: &KernelQp) {
        let detached = {
            let mut state = self.state.lock();

            state
                .position(qp.context())
                .and_then(|at| state.attached.remove(at).ok())
        };

        // Dropped without the lock, as it may be the last reference.
        drop(detached);
    }

    /// Has what is outstanding in a queue of `qp` reported as flushed, once all that the device has
    /// reported is read.
    #[doc(alias = "irdma_generate_flush_completions")]
    pub(super) fn flush_by_hand(&self, qp: &KernelQp, queue: Queue) {
        {
            let mut state = self.state.lock();
            let state = &mut *state;
            let Some(attached) = state
                .position(qp.context())
                .and_then(|at| state.attached.get_mut(at))
            else {
                return;
            };

            match queue {
                Queue::Send => attached.send_due = true,
                Queue::Recv => attached.recv_due = true,
            }
            state.any_due = true;
        }

        self.notify();
    }

    /// Tells the user of completions, if it waits for some.
    #[doc(alias = "irdma_comp_handler")]
    fn notify(&self) {
        if self.armed.xchg(false, Full) {
            self.link.complete();
        }
    }

    /// The device has raised an event for the queue. Any context.
    #[doc(alias = "irdma_iwarp_ce_handler")]
    pub(super) fn event(&self) {
        self.armed.xchg(false, Full);
        self.link.complete();
    }

    /// Asks for an event at the next completion.
    ///
    /// Returns whether there are completions that no event will be raised for, if `flags` ask for
    /// it.
    #[doc(alias = "irdma_req_notify_cq")]
    pub(super) fn arm(&self, doorbells: &Doorbells<'_>, flags: NotifyFlags) -> bool {
        let notify = if flags.solicited_only() {
            Notify::Solicited
        } else {
            Notify::Next
        };
        let mut state = self.state.lock();
        // An event for any completion is more than one for solicited ones.
        let more = state.notify == Notify::Solicited && notify == Notify::Next;

        if !self.armed.xchg(true, Full) || more {
            state.notify = notify;
            state.arm = state.arm.rearmed(notify);
            // The shadow area has this word.
            let _ = self.shadow.write(shadow::CQ_ARM, state.arm.into_raw());
            doorbells.arm_cq(self.number);
        }

        flags.report_missed() && (state.any_due || !state.ring.is_empty(&self.memory()))
    }
}

/// An empty vector with room for `capacity` entries.
fn with_capacity(capacity: usize, flags: Flags) -> Result<KVec<Attached>> {
    Ok(KVec::with_capacity(capacity, flags)?)
}

/// Moves all of `from` into the empty `to`, which has the room, and gives `from` its place.
fn move_all(from: &mut KVec<Attached>, to: &mut KVec<Attached>) {
    core::mem::swap(from, to);
    for attached in to.drain_all() {
        // There is room for it.
        let _ = from.push_within_capacity(attached);
    }
}
