// SPDX-License-Identifier: GPL-2.0

//! The rings of an in-kernel user's queue pair, from what the user asks for.

use kernel::prelude::*;

use crate::{
    hw::{
        dma::DmaBuffer,
        qp_context::CONTEXT_WORDS, //
    },
    rdma::{
        QpCap,
        QpInitAttr, //
    },
    uk::sizing::{
        self,
        QpLayout,
        QueueRequest,
        QueueSize, //
    }, //
};

use super::{
    device::Device,
    kernel_qp::{
        KernelQp,
        KernelQueues,
        QpIdentity, //
    },
    Verbs, //
};

/// What the device is told of a queue pair's rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(alias = "irdma_qp_init_info")]
pub(super) struct QpInitInfo {
    /// The rings are given by page lists: their addresses are indices in the page-list memory.
    pub(super) virtual_map: bool,
    /// DMA address or page-list index of the send ring.
    pub(super) sq_address: u64,
    /// DMA address or page-list index of the receive ring.
    pub(super) rq_address: u64,
    /// DMA address of the shadow area.
    pub(super) shadow_address: u64,
    /// Size of the send ring as a QP context has it: 0 for 4 quanta, one more for each doubling.
    pub(super) sq_size: u8,
    /// Size of the receive ring, likewise.
    pub(super) rq_size: u8,
    /// Binary logarithm of the quanta of the largest send WQE.
    pub(super) sq_wqe_shift: u8,
    /// Binary logarithm of the quanta of a receive WQE.
    pub(super) rq_wqe_shift: u8,
    /// What the device names in each completion of the queue pair.
    pub(super) completion_context: u64,
}

impl QpInitInfo {
    /// Sets the sizes of the rings.
    pub(super) fn set_sizes(&mut self, send: &QueueSize, recv: &QueueSize) {
        self.sq_size = send.encoded();
        self.sq_wqe_shift = send.shift;
        self.rq_size = recv.encoded();
        self.rq_wqe_shift = recv.shift;
    }

    /// WQEs of the largest size in the send ring.
    pub(super) fn sq_wqes(&self) -> u32 {
        sizing::decoded_wq_size(self.sq_size) >> self.sq_wqe_shift
    }

    /// WQEs in the receive ring.
    pub(super) fn rq_wqes(&self) -> u32 {
        sizing::decoded_wq_size(self.rq_size) >> self.rq_wqe_shift
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

/// Makes the queues of an in-kernel user's queue pair `qp`.
///
/// Both rings, the shadow area and the device's context of the queue pair lie in one piece of memory,
/// in this order. `info` is filled with what the device is told of them, and the
/// sizes that are really granted, never less than asked for, are written back into `init_attr`: the
/// rings' sizes are powers of two, so there is room for more work requests as a rule. Elements and
/// inline data are granted as asked.
///
/// # Errors
///
/// - `EINVAL` if more is asked for than the device has.
/// - `ENOMEM`
///
/// Then `info` and `init_attr` are as they were, and nothing is left of what was made.
pub(super) fn irdma_setup_kmode_qp(
    device: &Device<'_>,
    qp: &QpIdentity<'_>,
    info: &mut QpInitInfo,
    init_attr: &mut QpInitAttr<'_, Verbs>,
) -> Result<KernelQueues> {
    let limits = device.limits();
    let asked = init_attr.cap();
    let layout = QpLayout::new(limits, &asked.into())?;
    let granted = QpCap {
        max_send_wr: layout.send.wrs,
        max_recv_wr: layout.recv.wrs,
        ..asked
    };

    // The device's context of the queue pair has its place behind the shadow area.
    let bytes = layout.bytes as usize + CONTEXT_WORDS * size_of::<u64>();
    let memory = DmaBuffer::new(device.function().parent(), bytes)?;
    let queues = KernelQueues::new(KernelQp::new(qp, limits, granted.into(), layout, memory)?)?;

    let base = queues.qp().memory().address();
    let at = |offset: u32| base.checked_add(offset.into()).ok_or(EINVAL);

    let mut filled = QpInitInfo {
        sq_address: base,
        rq_address: at(layout.recv_offset)?,
        shadow_address: at(layout.shadow_offset)?,
        completion_context: queues.qp().context(),
        ..QpInitInfo::default()
    };
    filled.set_sizes(&layout.send, &layout.recv);

    *info = filled;
    init_attr.set_cap(granted);

    Ok(queues)
}
