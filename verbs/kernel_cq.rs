// SPDX-License-Identifier: GPL-2.0

//! The completion queue of an in-kernel user: its ring, and the queue pairs that complete to it.
//!
//! The device names a queue pair by the completion context that it was given, a number which is
//! never given out twice. It is looked up among the queue pairs that are attached to the completion
//! queue, so that an entry which outlives its queue pair finds nothing.

use kernel::{
    device::{
        Bound,
        Device, //
    },
    new_spinlock_irq,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
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
        dma::{
            DmaBuffer,
            DmaWord, //
        },
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

use super::kernel_qp::KernelQp;

/// A queue pair that completes to the queue.
pub(super) struct Attached {
    pub(super) qp: Arc<KernelQp>,
    /// Its send queue completes here, and what is outstanding in it is to be flushed.
    pub(super) send_due: bool,
    /// The same of its receive queue.
    pub(super) recv_due: bool,
}

/// What belongs to the queue's ring.
pub(super) struct State {
    pub(super) ring: CompletionRing,
    /// By completion context.
    pub(super) attached: RBTree<u64, Attached>,
    /// Some attached queue is due.
    pub(super) any_due: bool,
    /// What the device was told last.
    arm: CqArm,
    /// What the user asked for last.
    notify: Notify,
}

/// The completion queue of an in-kernel user.
#[pin_data]
pub(super) struct KernelCq {
    number: u32,
    link: Arc<CqLink>,
    /// The ring, and behind it the shadow area.
    memory: DmaBuffer,
    /// Word of the memory at which the shadow area begins.
    shadow: usize,
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
        let shadow_offset = (entries as usize)
            .checked_mul(QUANTUM_BYTES as usize)
            .and_then(|bytes| bytes.checked_next_multiple_of(256))
            .ok_or(EINVAL)?;
        let bytes = shadow_offset
            .checked_add(sizing::SHADOW_BYTES as usize)
            .ok_or(EINVAL)?;
        let state = State {
            ring,
            attached: RBTree::new(),
            any_due: false,
            arm: CqArm::from_raw(0),
            notify: Notify::Next,
        };

        Arc::pin_init(
            try_pin_init!(Self {
                number,
                link,
                memory: DmaBuffer::new(parent, bytes)?,
                shadow: shadow_offset / size_of::<DmaWord>(),
                armed: Atomic::new(false),
                state <- new_spinlock_irq!(state, "KernelCq::state"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// DMA address of the ring.
    pub(super) fn entries_address(&self) -> u64 {
        self.memory.address()
    }

    /// DMA address of the shadow area.
    pub(super) fn shadow_address(&self) -> u64 {
        // The memory reaches farther than that.
        let offset = self.shadow.wrapping_mul(size_of::<DmaWord>());

        // CAST: Widening.
        self.memory.address().wrapping_add(offset as u64)
    }

    /// The memory that the ring lies at the beginning of, to be read under the lock of `state`.
    #[inline]
    pub(super) fn memory(&self) -> &[DmaWord] {
        self.memory.words()
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
            .memory
            .hand_back(self.shadow + shadow::CQ_INDEX, state.ring.next().into());
    }

    /// Has completions of `qp` reported. It isn't attached yet.
    ///
    /// # Errors
    ///
    /// `ENOMEM`
    pub(super) fn attach(&self, qp: &Arc<KernelQp>) -> Result {
        let attached = Attached {
            qp: qp.clone(),
            send_due: false,
            recv_due: false,
        };
        // Made outside of the lock, under which nothing may sleep.
        let node = RBTreeNode::new(qp.context(), attached, GFP_KERNEL)?;
        let former = self.state.lock().attached.insert(node);

        drop(former);
        Ok(())
    }

    /// Ends what [`Self::attach`] began: nothing of `qp` is reported afterwards.
    #[doc(alias = "irdma_clean_cqes")]
    pub(super) fn detach(&self, qp: &KernelQp) {
        let detached = self.state.lock().attached.remove_node(&qp.context());

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
            let Some(attached) = state.attached.get_mut(&qp.context()) else {
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
            let _ = self
                .memory
                .write(self.shadow + shadow::CQ_ARM, state.arm.into_raw());
            doorbells.arm_cq(self.number);
        }

        flags.report_missed() && (state.any_due || !state.ring.is_empty(self.memory()))
    }
}
