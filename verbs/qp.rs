// SPDX-License-Identifier: GPL-2.0

//! Queue pairs.
//!
//! What events, completion queues and the driver's own work refer to is [`QpShared`], which the
//! table of the device's QPs knows by number. The core's object only owns a reference to it.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Release, //
            },
            Atomic, //
        },
        Arc,
        Mutex, //
    }, //
};

use super::{
    abi,
    cq::CqShared,
    device::Device,
    ids::Id,
    mr::QueueMemory,
    qp_setup::{
        self,
        KernelQueues, //
    },
    Driver, //
};
use crate::{
    hw::{
        completion::Completion,
        cqp::qp::{
            CreateQp,
            DestroyQp,
            QpState,
            QpType, //
        },
        dma::DmaBuffer,
        qp_context, //
    },
    rdma::{
        self,
        NewQp,
        QpCap,
        QpInitAttr,
        QpLink,
        QueriedQp,
        Udata, //
    },
    uk::{
        memory::QUANTUM_BYTES,
        sizing::{
            self,
            QueueSize, //
        }, //
    }, //
};

mod attributes;
mod events;
mod modify;

use attributes::Attributes;

/// Number of the QP of general services, for its users and for the device (IBTA volume 1, 3.5.7).
#[doc(alias = "IRDMA_RSVD_QP_ID_GSI_ILQ")]
const GSI_NUMBER: u32 = 1;

/// Where the completion context has the number of a kernel's QP; above is what tells it from others
/// that had the number before.
const NUMBER_BITS: u32 = 24;

/// A QP, as the core's object owns it.
pub(crate) struct Qp {
    shared: Arc<QpShared>,
}

/// A queue pair.
#[pin_data]
pub(crate) struct QpShared {
    number: Number,
    /// What the QP's completions carry.
    cookie: u64,
    kind: rdma::QpType,
    pd: u32,
    signal_all: bool,
    link: Arc<QpLink>,
    send_cq: Arc<CqShared>,
    recv_cq: Arc<CqShared>,
    /// Where the rings are, and what was granted.
    setup: QpInitInfo,
    owner: QpOwner,
    /// The context, shared with the device.
    context: DmaBuffer,
    /// Whether the device has flushed the rings and will not look at them any more.
    broken: Atomic<bool>,
    /// The send queue has been drained.
    #[pin]
    drained: Completion,
    #[pin]
    state: Mutex<State>,
}

/// What changes during the life of a QP.
struct State {
    attributes: Attributes,
    /// State for the consumer.
    ib: rdma::QpState,
    /// State of the device.
    hw: QpState,
    /// The QP is gone for the device.
    destroyed: bool,
}

/// Who writes the rings.
enum QpOwner {
    /// This driver.
    Kernel(Pin<KBox<KernelQueues>>),
    /// The user's library, in its memory.
    User(Arc<QueueMemory>),
}

/// The number that the device knows a QP by.
enum Number {
    /// The QP of general services.
    Gsi,
    /// Any other.
    Id(Id),
}

impl Number {
    fn get(&self) -> u32 {
        match self {
            Number::Gsi => GSI_NUMBER,
            Number::Id(id) => id.get(),
        }
    }
}

/// What the device has to be told of the rings of a QP.
#[doc(alias = "irdma_qp_init_info")]
#[derive(Clone, Copy, Debug)]
pub(super) struct QpInitInfo {
    /// The rings are given by page lists: `sq` and `rq` are indices in place of addresses.
    pub(super) virtual_map: bool,
    /// DMA address of the send ring.
    pub(super) sq: u64,
    /// DMA address of the receive ring.
    pub(super) rq: u64,
    /// DMA address of the shadow area.
    pub(super) shadow: u64,
    /// Size of the send ring.
    pub(super) send: QueueSize,
    /// Size of the receive ring.
    pub(super) recv: QueueSize,
    /// What is granted, never less than what was asked.
    pub(super) granted: QpCap,
}

impl QpShared {
    /// Returns the number by which the device knows the QP.
    #[inline]
    pub(super) fn number(&self) -> u32 {
        self.number.get()
    }

    /// Returns what the QP's completions carry. No other QP has or had the same.
    #[inline]
    pub(super) fn cookie(&self) -> u64 {
        self.cookie
    }

    /// Returns the number of the QP that a completion with `cookie` is for.
    #[inline]
    pub(super) const fn number_of(cookie: u64) -> u32 {
        // CAST: 24 bits.
        (cookie & ((1 << NUMBER_BITS) - 1)) as u32
    }

    /// Returns the service type.
    #[inline]
    pub(super) fn kind(&self) -> rdma::QpType {
        self.kind
    }

    /// Returns whether each work request of the send queue makes a completion.
    #[inline]
    pub(super) fn signal_all(&self) -> bool {
        self.signal_all
    }

    /// Returns the way to the consumer.
    #[inline]
    pub(super) fn link(&self) -> &QpLink {
        &self.link
    }

    /// Returns what was granted.
    #[inline]
    pub(super) fn granted(&self) -> &QpCap {
        &self.setup.granted
    }

    /// Returns the rings, if this driver writes them.
    #[inline]
    pub(super) fn queues(&self) -> Option<&KernelQueues> {
        match &self.owner {
            QpOwner::Kernel(queues) => Some(queues),
            QpOwner::User(_) => None,
        }
    }

    /// Returns the queue that the send queue completes to.
    #[inline]
    pub(super) fn send_cq(&self) -> &Arc<CqShared> {
        &self.send_cq
    }

    /// Returns the queue that the receive queue completes to.
    #[inline]
    pub(super) fn recv_cq(&self) -> &Arc<CqShared> {
        &self.recv_cq
    }

    /// Returns whether the device has flushed the rings. What is still in them or comes into them
    /// then is completed as flushed by whoever polls the CQ; who posts must
    /// [kick](CqShared::kick) it.
    #[inline]
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Acquire)
    }
}
