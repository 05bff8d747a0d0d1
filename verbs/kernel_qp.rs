// SPDX-License-Identifier: GPL-2.0

//! The queues of an in-kernel user's queue pair.
//!
//! Locks: that of a [`KernelCq`] first, then one of the two here.

use kernel::{
    impl_has_delayed_work,
    new_delayed_work,
    new_spinlock_irq,
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc,
        SpinLockIrq, //
    },
    time::{
        msecs_to_jiffies,
        Msecs, //
    },
    workqueue::{
        self,
        DelayedWork,
        WorkItem, //
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
        cancel_delayed_work,
        QpLink, //
    },
    uk::{
        cqe::Queue,
        limits::Limits,
        memory::QUANTUM_BYTES,
        rq::RecvRing,
        sizing::{
            QpLayout,
            QueueRequest, //
        },
        sq::{
            Quantum,
            SendRing, //
        }, //
    }, //
};

use super::kernel_cq::KernelCq;

/// Time that the device has for reporting flushed work requests, before that is done for it.
#[doc(alias = "IRDMA_FLUSH_DELAY_MS")]
const FLUSH_DELAY_MS: Msecs = 20;

/// Bits of a completion context that hold the queue pair's number; those above make it unique.
const CONTEXT_NUMBER_BITS: u32 = 24;

/// Counts the queue pairs ever made.
static SERIAL: Atomic<u64> = Atomic::new(1);

/// What is known of a queue pair before its queues are made.
pub(super) struct QpIdentity<'a> {
    /// The number by which the device knows it.
    pub(super) number: u32,
    /// The way to its user.
    pub(super) link: &'a Arc<QpLink>,
    /// It sends and receives datagrams.
    pub(super) datagram: bool,
    /// Each of its send work requests makes a completion.
    pub(super) signal_all: bool,
    /// Where its send queue completes.
    pub(super) send_cq: &'a Arc<KernelCq>,
    /// Where its receive queue completes.
    pub(super) recv_cq: &'a Arc<KernelCq>,
}

/// The send queue's ring.
pub(super) struct SendQueue {
    pub(super) ring: SendRing<KVVec<Quantum>>,
    /// The device takes doorbells: the queue pair is in a state in which it sends.
    pub(super) rings: bool,
    /// The queue pair is in error: whatever is posted is flushed.
    pub(super) flushing: bool,
    /// The cause of the queue's failure has been reported; what follows is merely flushed.
    pub(super) cause_told: bool,
}

/// The receive queue's ring.
pub(super) struct RecvQueue {
    pub(super) ring: RecvRing<KVVec<u64>>,
    /// As [`SendQueue::flushing`].
    pub(super) flushing: bool,
    /// As [`SendQueue::cause_told`].
    pub(super) cause_told: bool,
}

/// The queues of an in-kernel user's queue pair.
#[pin_data]
#[doc(alias = "irdma_qp_kmode")]
pub(super) struct KernelQp {
    number: u32,
    context: u64,
    link: Arc<QpLink>,
    pub(super) datagram: bool,
    pub(super) signal_all: bool,
    /// What its user was granted.
    pub(super) granted: QueueRequest,
    pub(super) limits: Limits,
    /// The rings, the shadow area, and the device's context of the queue pair.
    memory: DmaBuffer,
    /// Where in the memory that context begins, in bytes.
    context_offset: u32,
    send_cq: Arc<KernelCq>,
    recv_cq: Arc<KernelCq>,
    #[pin]
    send: SpinLockIrq<SendQueue>,
    #[pin]
    recv: SpinLockIrq<RecvQueue>,
    #[pin]
    flush: DelayedWork<Self>,
}

impl_has_delayed_work! {
    impl HasDelayedWork<Self> for KernelQp { self.flush }
}

impl KernelQp {
    /// Makes the queues in `memory`, which is laid out as `layout` says, with the device's context
    /// behind that.
    pub(super) fn new(
        identity: &QpIdentity<'_>,
        limits: &Limits,
        granted: QueueRequest,
        layout: QpLayout,
        memory: DmaBuffer,
    ) -> Result<Arc<Self>> {
        let book = KVVec::from_elem(Quantum::Rest, layout.send.depth as usize, GFP_KERNEL)?;
        let wr_ids = KVVec::from_elem(0, layout.recv.wqes() as usize, GFP_KERNEL)?;
        let send = SendQueue {
            ring: SendRing::new(book, limits.sq_chunk)?,
            rings: true,
            flushing: false,
            cause_told: false,
        };
        let recv = RecvQueue {
            ring: RecvRing::new(
                wr_ids,
                layout.recv.shift,
                layout.recv_offset / QUANTUM_BYTES,
            )?,
            flushing: false,
            cause_told: false,
        };
        let serial = SERIAL.fetch_add(1, Relaxed);
        let context = serial << CONTEXT_NUMBER_BITS | u64::from(identity.number);

        Arc::pin_init(
            try_pin_init!(Self {
                number: identity.number,
                context,
                link: identity.link.clone(),
                datagram: identity.datagram,
                signal_all: identity.signal_all,
                granted,
                limits: *limits,
                memory,
                context_offset: layout.bytes,
                send_cq: identity.send_cq.clone(),
                recv_cq: identity.recv_cq.clone(),
                send <- new_spinlock_irq!(send, "KernelQp::send"),
                recv <- new_spinlock_irq!(recv, "KernelQp::recv"),
                flush <- new_delayed_work!("KernelQp::flush"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// The number by which the device knows the queue pair.
    #[inline]
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// What the device names in each completion of the queue pair. Never given out twice.
    #[inline]
    pub(super) fn context(&self) -> u64 {
        self.context
    }

    /// The way to the queue pair's user.
    #[inline]
    pub(super) fn link(&self) -> &Arc<QpLink> {
        &self.link
    }

    /// The memory of both rings, the shadow area and the device's context.
    pub(super) fn memory(&self) -> &DmaBuffer {
        &self.memory
    }

    /// Where the device finds its context of the queue pair, and the context's words.
    pub(super) fn device_context(&self) -> (u64, &[DmaWord]) {
        let first = self.context_offset as usize / size_of::<DmaWord>();
        let words = self.memory.words().get(first..).unwrap_or_default();

        // The memory reaches as far as that.
        let address = self.memory.address();
        (address.wrapping_add(self.context_offset.into()), words)
    }

    /// The memory that both rings lie in. Each is written under its queue's lock.
    #[inline]
    pub(super) fn rings(&self) -> &[DmaWord] {
        self.memory.words()
    }

    /// Runs `f` on the send queue.
    #[inline]
    pub(super) fn with_send<R>(&self, f: impl FnOnce(&mut SendQueue) -> R) -> R {
        f(&mut self.send.lock())
    }

    /// Runs `f` on the receive queue.
    #[inline]
    pub(super) fn with_recv<R>(&self, f: impl FnOnce(&mut RecvQueue) -> R) -> R {
        f(&mut self.recv.lock())
    }

    /// Says whether the device takes doorbells of the send queue in the queue pair's new state.
    ///
    /// What was posted before is told to the device then.
    pub(super) fn set_ringing(&self, doorbells: &Doorbells<'_>, rings: bool) {
        self.with_send(|send| {
            if rings && !send.rings && !send.ring.is_empty() {
                doorbells.ring_sq(self.number);
            }
            send.rings = rings;
        });
    }

    /// The device was told to flush the queues, or cannot be told: from now on each work request
    /// that the device does not report is reported as flushed. May be called more than once.
    pub(super) fn begin_flush(self: &Arc<Self>) {
        self.with_send(|send| send.flushing = true);
        self.with_recv(|recv| recv.flushing = true);
        self.flush_soon();
    }

    /// Flushes by hand in a while what is outstanding then. Any context.
    #[cold]
    pub(super) fn flush_soon(self: &Arc<Self>) {
        // It is as well if it is on its way already.
        let _ = workqueue::system_long()
            .enqueue_delayed(self.clone(), msecs_to_jiffies(FLUSH_DELAY_MS));
    }

    /// Whether work requests of `queue` are to be flushed.
    fn has_to_flush(&self, queue: Queue) -> bool {
        match queue {
            Queue::Send => self.with_send(|send| send.flushing && !send.ring.is_empty()),
            Queue::Recv => self.with_recv(|recv| recv.flushing && !recv.ring.is_empty()),
        }
    }
}

impl WorkItem for KernelQp {
    type Pointer = Arc<Self>;

    #[doc(alias = "irdma_flush_worker")]
    fn run(this: Arc<Self>) {
        for (cq, queue) in [(&this.send_cq, Queue::Send), (&this.recv_cq, Queue::Recv)] {
            if this.has_to_flush(queue) {
                cq.flush_by_hand(&this, queue);
            }
        }
    }
}

/// A queue pair's queues in use: completions are reported to their user as long as this lives.
pub(super) struct KernelQueues(Arc<KernelQp>);

impl KernelQueues {
    /// Has completions of `qp` reported.
    ///
    /// # Errors
    ///
    /// `ENOMEM`
    pub(super) fn new(qp: Arc<KernelQp>) -> Result<Self> {
        // From here on dropping it detaches it from whatever it was attached to.
        let queues = Self(qp);

        for cq in queues.cqs() {
            cq.attach(&queues.0)?;
        }
        Ok(queues)
    }

    /// Where the queues complete, each completion queue once.
    fn cqs(&self) -> impl Iterator<Item = &KernelCq> {
        let (send, recv) = (&self.0.send_cq, &self.0.recv_cq);

        [Some(send), (!Arc::ptr_eq(send, recv)).then_some(recv)]
            .into_iter()
            .flatten()
            .map(|cq| &**cq)
    }

    /// Ends the reports of completions.
    pub(super) fn detach(&self) {
        for cq in self.cqs() {
            cq.detach(&self.0);
        }
    }

    /// The queues. A copy of this reference keeps their memory, for instance when the device may
    /// still use it, but not more.
    #[inline]
    pub(super) fn qp(&self) -> &Arc<KernelQp> {
        &self.0
    }
}

impl Drop for KernelQueues {
    fn drop(&mut self) {
        self.detach();
        // No code of this module may run later on behalf of the queue pair. None will if nothing was
        // ever to be flushed.
        if self.0.with_send(|send| send.flushing) {
            cancel_delayed_work(&self.0);
        }
    }
}
