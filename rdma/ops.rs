// SPDX-License-Identifier: GPL-2.0

//! What a provider of verbs implements.

use kernel::{
    error::VTABLE_DEFAULT_ERROR,
    prelude::*,
    sync::Arc, //
};

use super::{
    Access,
    Ah,
    AhAttr,
    CounterDesc,
    Cq,
    CqInitAttr,
    CqLink,
    Device,
    DeviceAttr,
    Gid,
    LockedUmem,
    Mr,
    MrChange,
    MrKeys,
    MrType,
    NewQp,
    NewUcontext,
    NotifyFlags,
    Pd,
    PortAttr,
    PortImmutable,
    Qp,
    QpAttr,
    QpInitAttr,
    QueriedAh,
    QueriedQp,
    RecvWrs,
    SendWrs,
    Ucontext,
    Udata,
    UserRegion,
    WcArray, //
};

/// The verbs of a driver.
///
/// Each function gets the data that the driver gave to [`Registration`](super::Registration). The
/// core calls none before the device is registered, nor after it is unregistered.
///
/// A function that makes an object returns the driver's part of it, which is moved into the memory
/// that the core allocated. What interrupts refer to belongs in an [`Arc`](kernel::sync::Arc)
/// there. When it fails, nothing of the object may remain. The function that destroys an object
/// runs when no other call uses the object any more; after it the driver's part is dropped. Most
/// can't fail, since the core has no use for an error when a user's context ends: what the device
/// may still use, the driver keeps. User space's data, [`Udata`], is there if a user asks and not
/// if the kernel does.
///
/// Errors are those of `ibv_create_qp(3)` and its like: `EINVAL` for what the device can't do,
/// `EOPNOTSUPP` for what the driver doesn't, `ENOMEM` if something is used up.
#[vtable]
pub(crate) trait Operations: Sized + Send + Sync + 'static {
    /// What belongs to a registered device. Lives from the registration to its end.
    type RegistrationData<'a>: Send + Sync + 'a
    where
        Self: 'a;

    /// Driver's part of a user context.
    type Ucontext: Send + Sync;
    /// Driver's part of a protection domain.
    type Pd: Send + Sync;
    /// Driver's part of an address handle.
    type Ah: Send + Sync;
    /// Driver's part of a completion queue.
    type Cq: Send + Sync;
    /// Driver's part of a queue pair.
    type Qp: Send + Sync;
    /// Driver's part of a memory region.
    type Mr: Send + Sync;

    /// Number by which the user-space library finds its driver (`RDMA_DRIVER_*`).
    const DRIVER_ID: u32;
    /// Version of the interface with that library.
    const ABI_VERSION: u32;
    /// Names of the port's counters, see [`Operations::port_counters`].
    const PORT_COUNTERS: &'static [CounterDesc] = &[];

    /// Fills in the device's limits. What is not set is zero.
    fn query_device(data: &Self::RegistrationData<'_>, attr: &mut DeviceAttr<'_>) -> Result;

    /// The version of the firmware, major and minor.
    fn firmware_version(data: &Self::RegistrationData<'_>) -> (u16, u16);

    /// Fills in the state of port `port` (from 1). What is not set is zero.
    fn query_port(
        dev: &Device<Self>,
        data: &Self::RegistrationData<'_>,
        port: u32,
        attr: &mut PortAttr<'_>,
    ) -> Result;

    /// Fills in what of port `port` never changes.
    fn port_immutable(
        dev: &Device<Self>,
        data: &Self::RegistrationData<'_>,
        port: u32,
        immutable: &mut PortImmutable<'_>,
    ) -> Result;

    /// The partition key at `index`.
    fn query_pkey(data: &Self::RegistrationData<'_>, port: u32, index: u16) -> Result<u16>;

    /// Reads the counters [`Operations::PORT_COUNTERS`] into `values`, which has as many entries.
    /// What can't be read now is what it was when it could last: the core loses memory when the
    /// first reading fails.
    fn port_counters(data: &Self::RegistrationData<'_>, port: u32, values: &mut [u64]) {
        let _ = (data, port, values);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Opens the device for a user. `context` takes mappings of the device's registers.
    fn alloc_ucontext(
        data: &Self::RegistrationData<'_>,
        context: &mut NewUcontext<'_, Self>,
        udata: &mut Udata<'_, Self>,
    ) -> Result<Self::Ucontext>;

    /// Ends a user's use of the device.
    fn dealloc_ucontext(data: &Self::RegistrationData<'_>, context: &Ucontext<Self>);

    /// Makes a protection domain.
    fn alloc_pd(
        data: &Self::RegistrationData<'_>,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<Self::Pd>;

    /// Destroys a protection domain.
    fn dealloc_pd(data: &Self::RegistrationData<'_>, pd: &Pd<Self>);

    /// Makes an address handle. Must not sleep unless `may_sleep`.
    fn create_ah(
        data: &Self::RegistrationData<'_>,
        pd: &Pd<Self>,
        attr: &AhAttr<'_>,
        may_sleep: bool,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<Self::Ah>;

    /// Destroys an address handle. Must not sleep unless `may_sleep`.
    fn destroy_ah(data: &Self::RegistrationData<'_>, ah: &Ah<Self>, may_sleep: bool);

    /// Tells what an address handle was made of.
    fn query_ah(data: &Self::RegistrationData<'_>, ah: &Ah<Self>) -> Result<QueriedAh> {
        let _ = (data, ah);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Makes a completion queue and says how many entries it really has.
    fn create_cq(
        data: &Self::RegistrationData<'_>,
        link: &Arc<CqLink>,
        attr: &CqInitAttr,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<(Self::Cq, u32)>;

    /// Destroys a completion queue.
    fn destroy_cq(data: &Self::RegistrationData<'_>, cq: &Cq<Self>);

    /// Gives a user's completion queue another size, and says how many entries it really has then.
    fn resize_cq(
        data: &Self::RegistrationData<'_>,
        cq: &Cq<Self>,
        cqe: u32,
        udata: &mut Udata<'_, Self>,
    ) -> Result<u32> {
        let _ = (data, cq, cqe, udata);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Takes completions off the queue until it is empty or `wcs` is full. Any context.
    fn poll_cq(data: &Self::RegistrationData<'_>, cq: &Cq<Self>, wcs: &mut WcArray<'_>) -> Result;

    /// Asks for an event at the next completion. Any context.
    ///
    /// Returns whether the queue may hold entries that no event will be raised for; it is looked
    /// at only if the flags ask to [`report_missed`](NotifyFlags::report_missed).
    fn req_notify_cq(
        data: &Self::RegistrationData<'_>,
        cq: &Cq<Self>,
        flags: NotifyFlags,
    ) -> Result<bool>;

    /// Makes a queue pair and writes what it really grants back into `attr`.
    fn create_qp(
        data: &Self::RegistrationData<'_>,
        qp: NewQp<'_, Self>,
        attr: &mut QpInitAttr<'_, Self>,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<Self::Qp>;

    /// Changes what [`QpAttr::mask`] names.
    fn modify_qp(
        data: &Self::RegistrationData<'_>,
        qp: &Qp<Self>,
        attr: &QpAttr<'_>,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result;

    /// Tells the state and the attributes of a queue pair.
    fn query_qp(data: &Self::RegistrationData<'_>, qp: &Qp<Self>) -> Result<QueriedQp>;

    /// Destroys a queue pair.
    fn destroy_qp(data: &Self::RegistrationData<'_>, qp: &Qp<Self>);

    /// Posts requests to the send queue. Any context.
    ///
    /// On failure the request taken from `wrs` last is the one that failed; the ones before it are
    /// posted.
    fn post_send(
        data: &Self::RegistrationData<'_>,
        qp: &Qp<Self>,
        wrs: &mut SendWrs<'_, Self>,
    ) -> Result;

    /// Posts buffers to the receive queue. Any context. Failure as in [`Operations::post_send`].
    fn post_recv(data: &Self::RegistrationData<'_>, qp: &Qp<Self>, wrs: &mut RecvWrs<'_>)
        -> Result;

    /// Lets QP take part in the multicast group `gid`.
    fn attach_mcast(
        data: &Self::RegistrationData<'_>,
        qp: &Qp<Self>,
        gid: Gid,
        lid: u16,
    ) -> Result {
        let _ = (data, qp, gid, lid);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Ends what [`Operations::attach_mcast`] began.
    fn detach_mcast(
        data: &Self::RegistrationData<'_>,
        qp: &Qp<Self>,
        gid: Gid,
        lid: u16,
    ) -> Result {
        let _ = (data, qp, gid, lid);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Registers all memory, by DMA addresses. For the kernel only.
    fn get_dma_mr(
        data: &Self::RegistrationData<'_>,
        pd: &Pd<Self>,
        access: Access,
    ) -> Result<(Self::Mr, MrKeys)>;

    /// Makes a memory region of up to `max_num_sg` pages, for fast registration.
    fn alloc_mr(
        data: &Self::RegistrationData<'_>,
        pd: &Pd<Self>,
        mr_type: MrType,
        max_num_sg: u32,
    ) -> Result<(Self::Mr, MrKeys)> {
        let _ = (data, pd, mr_type, max_num_sg);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Forgets the pages of `mr`, before [`Operations::add_page`] gives new ones.
    fn clear_pages(mr: &Mr<Self>) {
        let _ = mr;
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Appends the page at DMA address `addr` to those of `mr`. `ENOMEM` if they are too many.
    fn add_page(mr: &Mr<Self>, addr: u64) -> Result {
        let _ = (mr, addr);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Registers a part of the user's memory.
    fn reg_user_mr(
        dev: &Device<Self>,
        data: &Self::RegistrationData<'_>,
        pd: &Pd<Self>,
        region: UserRegion,
        udata: &mut Udata<'_, Self>,
    ) -> Result<(Self::Mr, MrKeys)>;

    /// Registers a part of the DMA buffer that file descriptor `fd` of the process names;
    /// [`UserRegion::start`] counts from the buffer's beginning. The buffer is returned too, still
    /// locked, and then watched for [`Operations::revoke_mr`].
    fn reg_dmabuf_mr(
        dev: &Device<Self>,
        data: &Self::RegistrationData<'_>,
        pd: &Pd<Self>,
        region: UserRegion,
        fd: i32,
    ) -> Result<(Self::Mr, MrKeys, LockedUmem)> {
        let _ = (dev, data, pd, region, fd);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Keeps the device from the memory of `mr`, which is taken back. Its key is nobody else's until
    /// [`Operations::dereg_mr`]. The memory is locked.
    fn revoke_mr(data: &Self::RegistrationData<'_>, mr: &Mr<Self>) {
        let _ = (data, mr);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Registers anew, under another key, what `mr` registers, but for what `change` says. `pd` is
    /// the domain of the new region. The core ends the registration of `mr` after success. Not for
    /// parts of DMA buffers.
    fn rereg_mr(
        dev: &Device<Self>,
        data: &Self::RegistrationData<'_>,
        pd: &Pd<Self>,
        mr: &Mr<Self>,
        change: &MrChange,
    ) -> Result<(Self::Mr, MrKeys)> {
        let _ = (dev, data, pd, mr, change);
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Ends a registration. `EBUSY` leaves it in place, but not a part of a DMA buffer: the core
    /// might forget that one, and its exporter must not find it then. The buffer is locked.
    fn dereg_mr(data: &Self::RegistrationData<'_>, mr: &Mr<Self>) -> Result;
}
