// SPDX-License-Identifier: GPL-2.0

//! Safe layer over the RDMA core, for drivers that provide verbs.
//!
//! A driver implements [`Operations`] for a type of its own and registers a device with
//! [`Registration`]. The core allocates protection domains, completion queues, queue pairs,
//! address handles and user contexts itself, by sizes that the driver gives; here they are the
//! generic [`Pd`], [`Cq`], [`Qp`], [`Ah`] and [`Ucontext`], whose first part is the core's and
//! whose second part, [`data()`](Qp::data), is the driver's.
//!
//! The least that a driver needs is shown by `tests-kunit/null_device.rs`.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h)

#![allow(
    dead_code,
    reason = "the layer has what its objects have, used here or not"
)]

mod address;
mod attr;
mod device;
mod link;
mod mmap;
mod notifier;
mod object;
mod ops;
mod qp_attr;
mod random;
mod types;
mod udata;
mod umem;
mod vtable;
mod wc;
mod work;
mod wr;

pub(crate) use crate::bindings::{
    netdev::NetDevice,
    rdma_driver_id_RDMA_DRIVER_IRDMA as DRIVER_IRDMA, //
};

/// For drivers that no user-space library knows, such as examples.
#[cfg(irdma_kunit)]
pub(crate) use crate::bindings::rdma_driver_id_RDMA_DRIVER_UNKNOWN as DRIVER_UNKNOWN;

pub(crate) use self::{
    address::{
        eui64,
        AhAttr,
        Gid,
        IpAddress,
        QueriedAh, //
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
        NewUcontext, //
    },
    notifier::{
        tell_addresses,
        AddressEvent,
        Listener,
        Notifiers, //
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
    random::random_u32,
    types::*,
    udata::Udata,
    umem::{
        LockedUmem,
        Mapping,
        MrChange,
        Umem,
        UserRegion, //
    },
    wc::{
        Completion,
        WcArray,
        WcExtra, //
    },
    work::cancel_delayed_work,
    wr::{
        RecvWr,
        RecvWrs,
        SendOp,
        SendWr,
        SendWrs,
        Sge, //
    },
};
