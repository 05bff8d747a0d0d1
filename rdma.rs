// SPDX-License-Identifier: GPL-2.0

//! Safe layer over the RDMA core, for drivers that provide verbs.
//!
//! A driver implements [`Operations`] for a type of its own and registers a device with
//! [`Registration`]. The core allocates protection domains, completion queues, queue pairs,
//! address handles and user contexts itself, by sizes that the driver gives; here they are the
//! generic [`Pd`], [`Cq`], [`Qp`], [`Ah`] and [`Ucontext`], whose first part is the core's and
//! whose second part, [`data()`](Qp::data), is the driver's.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

mod address;
mod attr;
mod device;
mod link;
mod mmap;
mod netdev;
mod object;
mod ops;
mod qp_attr;
mod types;
mod udata;
mod umem;
mod vtable;
mod wc;
mod wr;

pub(crate) use self::{
    address::{
        AhAttr,
        Gid,
        GidAttr,
        IpAddress, //
    },
    attr::{
        device_cap,
        CounterDesc,
        DeviceAttr,
        PortAttr,
        PortImmutable, //
    },
    device::{
        Device,
        Info,
        Registration,
        UnregisteredDevice, //
    },
    link::{
        CqLink,
        QpLink, //
    },
    mmap::{
        Caching,
        MmapEntry,
        NewUcontext, //
    },
    netdev::{
        eui64,
        NetDevice, //
    },
    object::{
        Ah,
        Cq,
        Mr,
        MrKeys,
        NewQp,
        Pd,
        Qp,
        Ucontext, //
    },
    ops::Operations,
    qp_attr::{
        CqInitAttr,
        QpAttr,
        QpAttrMask,
        QpCap,
        QpInitAttr,
        QueriedQp, //
    },
    types::*,
    udata::Udata,
    umem::UserRegion,
    wc::{
        Completion,
        WcArray,
        WcExtra, //
    },
    wr::{
        RecvWr,
        RecvWrs,
        SendOp,
        SendWr,
        SendWrs,
        Sge,
        UdAddress, //
    },
};

/// Structures that pass between user space and the driver.
///
/// C header: [`include/uapi/rdma/irdma-abi.h`](srctree/include/uapi/rdma/irdma-abi.h)
pub(crate) mod abi {
    pub(crate) use crate::bindings::{
        irdma_alloc_pd_resp as AllocPdResp,
        irdma_alloc_ucontext_req as AllocUcontextReq,
        irdma_alloc_ucontext_resp as AllocUcontextResp,
        irdma_create_ah_resp as CreateAhResp,
        irdma_create_cq_req as CreateCqReq,
        irdma_create_cq_resp as CreateCqResp,
        irdma_create_qp_req as CreateQpReq,
        irdma_create_qp_resp as CreateQpResp,
        irdma_mem_reg_req as MemRegReq,
        irdma_modify_qp_req as ModifyQpReq,
        irdma_modify_qp_resp as ModifyQpResp,
        irdma_resize_cq_req as ResizeCqReq, //
    };

    /// Version of this interface, `IRDMA_ABI_VER`.
    pub(crate) const VERSION: u32 = crate::bindings::IRDMA_ABI_VER;
    /// Bits of the comp mask and of the feature flags of [`AllocUcontextReq`] and
    /// [`AllocUcontextResp`].
    pub(crate) const USE_RAW_ATTR: u64 = 1 << 0;
    /// The response tells the least size of a work queue.
    pub(crate) const MIN_HW_WQ_SIZE: u64 = 1 << 1;
    /// The response tells the largest shared receive queue.
    pub(crate) const MAX_HW_SRQ_QUANTA: u64 = 1 << 2;
    /// Device and library may use the second format of work-queue entries.
    pub(crate) const SUPPORT_WQE_FORMAT_V2: u64 = 1 << 3;
}
