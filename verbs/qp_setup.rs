// SPDX-License-Identifier: GPL-2.0

//! The rings of an in-kernel user's queue pair, from what the user asks for.

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::SpinLockIrq, //
};

use crate::{
    hw::{
        dma::DmaBuffer,
        doorbell::Doorbells, //
    },
    rdma::{
        QpCap,
        QpInitAttr, //
    },
    uk::{
        limits::Limits,
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

use super::{
    device::Device,
    qp::QpInitInfo,
    ring_memory::RingView,
    Driver, //
};

/// The send queue's ring.
pub(super) struct SendQueue {
    pub(super) ring: SendRing<KVVec<Quantum>>,
    /// The device takes doorbells: the queue pair is in a state in which it sends.
    pub(super) rings: bool,
    /// The cause of the queue's failure has been reported; what follows is merely flushed.
    pub(super) cause_told: bool,
}

/// The receive queue's ring.
pub(super) struct RecvQueue {
    pub(super) ring: RecvRing<KVVec<u64>>,
    /// As [`SendQueue::cause_told`].
    pub(super) cause_told: bool,
}

/// The queues of an in-kernel user's queue pair.
///
/// Either lock is taken after that of a completion queue, and neither with the other.
#[pin_data]
#[doc(alias = "irdma_qp_kmode")]
pub(super) struct KernelQueues {
    /// Both rings and the shadow area.
    memory: DmaBuffer,
    layout: QpLayout,
    /// What the user was granted.
    pub(super) granted: QueueRequest,
    /// What the device takes.
    pub(super) limits: Limits,
    #[pin]
    send: SpinLockIrq<SendQueue>,
    #[pin]
    recv: SpinLockIrq<RecvQueue>,
}

impl KernelQueues {
    /// Makes empty queues in `memory`, which is laid out as `layout` says.
    fn new(
        limits: &Limits,
        granted: QueueRequest,
        layout: QpLayout,
        memory: DmaBuffer,
    ) -> Result<Pin<KBox<Self>>> {
        let book = KVVec::from_elem(Quantum::Rest, layout.send.depth as usize, GFP_KERNEL)?;
        let wr_ids = KVVec::from_elem(0, layout.recv.wqes() as usize, GFP_KERNEL)?;
        let send = SendQueue {
            ring: SendRing::new(book, limits.sq_chunk)?,
            rings: true,
            cause_told: false,
        };
        let recv = RecvQueue {
            ring: RecvRing::new(wr_ids, layout.recv.shift)?,
            cause_told: false,
        };

        KBox::pin_init(
            pin_init!(Self {
                memory,
                layout,
                granted,
                limits: *limits,
                send <- new_spinlock_irq!(send, "KernelQueues::send"),
                recv <- new_spinlock_irq!(recv, "KernelQueues::recv"),
            }),
            GFP_KERNEL,
        )
    }

    /// The send ring's memory, to be written under its lock.
    #[inline]
    pub(super) fn send_memory(&self) -> RingView<'_> {
        RingView::new(&self.memory, 0, self.layout.send.bytes())
    }

    /// The receive ring's memory, to be written under its lock.
    #[inline]
    pub(super) fn recv_memory(&self) -> RingView<'_> {
        RingView::new(
            &self.memory,
            self.layout.recv_offset,
            self.layout.recv.bytes(),
        )
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

    /// Whether nothing is outstanding in either queue.
    pub(super) fn is_empty(&self) -> bool {
        self.with_send(|send| send.ring.is_empty()) && self.with_recv(|recv| recv.ring.is_empty())
    }

    /// Says whether the device takes doorbells of the send queue in the queue pair's new state.
    ///
    /// If it begins to, it is told of what was posted before.
    pub(super) fn set_ringing(&self, doorbells: &Doorbells<'_>, number: u32, rings: bool) {
        self.with_send(|send| {
            if rings && !send.rings && !send.ring.is_empty() {
                doorbells.ring_sq(number);
            }
            send.rings = rings;
        });
    }
}

impl From<QpCap> for QueueRequest {
    fn from(cap: QpCap) -> Self {
        Self {
            send_wr: cap.max_send_wr,
            recv_wr: cap.max_recv_wr,
            send_sge: cap.max_send_sge,
            recv_sge: cap.max_recv_sge,
            inline_data: cap.max_inline_data,
        }
    }
}

/// Makes the queues of an in-kernel user's queue pair, puts them into `qp`, and fills `info` with
/// what the device has to be told of them.
///
/// Both rings and the shadow area lie in one piece of memory: the send ring, the receive ring behind
/// it, the shadow area behind that. The sizes that are really granted, never less than asked for, are
/// written back into `init_attr`: the rings' sizes are powers of two, so there is room for more work
/// requests as a rule. Elements and inline data are granted as asked.
///
/// # Errors
///
/// - `EINVAL` if more is asked for than the device has.
/// - `ENOMEM`
///
/// Then `qp`, `info` and `init_attr` are as they were, and nothing is left of what was made.
pub(super) fn irdma_setup_kmode_qp(
    device: &Device<'_>,
    qp: &mut Option<Pin<KBox<KernelQueues>>>,
    info: &mut QpInitInfo,
    init_attr: &mut QpInitAttr<'_, Driver>,
) -> Result {
    let limits = device.queue_limits();
    let asked = init_attr.cap();
    let layout = QpLayout::new(limits, &asked.into())?;
    let granted = QpCap {
        max_send_wr: layout.send.wrs,
        max_recv_wr: layout.recv.wrs,
        ..asked
    };

    let memory = DmaBuffer::new(device.function().parent(), layout.bytes as usize)?;
    let base = memory.address();
    let at = |offset: u32| base.checked_add(offset.into()).ok_or(EINVAL);
    let filled = QpInitInfo {
        virtual_map: false,
        sq: base,
        rq: at(layout.recv_offset)?,
        shadow: at(layout.shadow_offset)?,
        send: layout.send,
        recv: layout.recv,
        granted,
    };

    *qp = Some(KernelQueues::new(limits, granted.into(), layout, memory)?);
    *info = filled;
    init_attr.set_cap(granted);

    Ok(())
}
