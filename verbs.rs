// SPDX-License-Identifier: GPL-2.0

//! The verbs, a file an object.
//!
//! What the core calls is [`Verbs`]; it hands each call on to the object's file.

use kernel::{
    device::{
        Bound,
        Device as CoreDevice, //
    },
    pci,
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use crate::{
    hw,
    rdma::{
        self,
        eui64,
        Access,
        AhAttr,
        CounterDesc,
        CqInitAttr,
        CqLink,
        DeviceAttr,
        Gid,
        Info,
        LockedUmem,
        MrChange,
        MrKeys,
        MrType,
        NetDevice,
        NewQp,
        NewUcontext,
        NotifyFlags,
        Operations,
        PortAttr,
        PortImmutable,
        QpAttr,
        QpInitAttr,
        QueriedAh,
        QueriedQp,
        RecvWrs,
        Registration,
        SendWrs,
        Udata,
        UnregisteredDevice,
        UserRegion,
        WcArray, //
    }, //
};

mod abi;
mod ah;
mod cq;
mod device;
mod events;
mod kernel_cq;
mod kernel_qp;
mod mcast;
pub(crate) mod mr;
mod neighbours;
mod path;
mod pd;
mod poll;
mod port;
mod post;
mod qp;
#[doc(alias = "irdma_setup_kmode_qp")]
mod qp_setup;
mod queue_memory;
mod stats;
mod table;
mod traffic_classes;
mod ucontext;
mod user_qp;

pub(crate) use self::{
    ah::Ah,
    cq::Cq,
    device::Device,
    mr::Mr,
    pd::Pd,
    qp::Qp,
    ucontext::Ucontext, //
};

/// A device that is registered with the RDMA core, until it is dropped.
pub(crate) type Registered<'a> = Registration<'a, Verbs>;

/// The driver, for the RDMA core.
pub(crate) struct Verbs;

/// Offers the device to the RDMA core. `bound` is the device that our driver is bound to.
///
/// # Errors
///
/// `ENOMEM`, and what the core and the first verbs give. The device is taken down then.
#[doc(alias = "irdma_ib_register_device")]
pub(crate) fn register<'a>(
    bound: &'a CoreDevice<Bound>,
    pci: &'a pci::Device<Bound>,
    hw: hw::device::Device<'a>,
    netdev: ARef<NetDevice>,
) -> Result<Registered<'a>> {
    let node_guid = eui64(netdev.mac());
    let data = KBox::pin(Device::new(hw, pci, netdev.clone())?, GFP_KERNEL)?;
    let num_comp_vectors = data.completion_vectors();

    Registration::new(
        bound,
        pci,
        UnregisteredDevice::new(pci)?,
        data,
        &Info {
            name: c"irdma%d",
            node_guid,
            num_comp_vectors,
            netdev: Some(&netdev),
        },
    )
}

#[vtable]
impl Operations for Verbs {
    type RegistrationData<'a> = Device<'a>;
    type Ucontext = Ucontext;
    type Pd = Pd;
    type Ah = Ah;
    type Cq = Cq;
    type Qp = Qp;
    type Mr = Mr;

    const DRIVER_ID: u32 = rdma::DRIVER_IRDMA;
    // CAST: Widening.
    const ABI_VERSION: u32 = abi::VERSION as u32;
    const PORT_COUNTERS: &'static [CounterDesc] = stats::COUNTERS;

    fn query_device(dev: &Device<'_>, attr: &mut DeviceAttr<'_>) -> Result {
        dev.query(attr)
    }

    fn firmware_version(dev: &Device<'_>) -> (u16, u16) {
        dev.firmware_version()
    }

    fn query_port(
        core: &rdma::Device<Self>,
        dev: &Device<'_>,
        port: u32,
        attr: &mut PortAttr<'_>,
    ) -> Result {
        port::query(core, dev, port, attr)
    }

    fn port_immutable(
        _core: &rdma::Device<Self>,
        _dev: &Device<'_>,
        _port: u32,
        immutable: &mut PortImmutable<'_>,
    ) -> Result {
        port::immutable(immutable)
    }

    fn query_pkey(_dev: &Device<'_>, _port: u32, index: u16) -> Result<u16> {
        port::pkey(index)
    }

    fn port_counters(dev: &Device<'_>, _port: u32, values: &mut [u64]) {
        stats::read(dev, values);
    }

    fn alloc_ucontext(
        dev: &Device<'_>,
        context: &mut NewUcontext<'_, Self>,
        udata: &mut Udata<'_, Self>,
    ) -> Result<Ucontext> {
        Ucontext::new(dev, context, udata)
    }

    #[doc(alias = "irdma_dealloc_ucontext")]
    fn dealloc_ucontext(_dev: &Device<'_>, _context: &rdma::Ucontext<Self>) {}

    fn alloc_pd(dev: &Device<'_>, udata: Option<&mut Udata<'_, Self>>) -> Result<Pd> {
        Pd::new(dev, udata)
    }

    fn dealloc_pd(dev: &Device<'_>, pd: &rdma::Pd<Self>) {
        pd.data().destroy(dev);
    }

    fn create_ah(
        dev: &Device<'_>,
        pd: &rdma::Pd<Self>,
        attr: &AhAttr<'_>,
        may_sleep: bool,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<Ah> {
        Ah::new(dev, pd.data(), attr, may_sleep, udata)
    }

    fn destroy_ah(dev: &Device<'_>, ah: &rdma::Ah<Self>, may_sleep: bool) {
        ah.data().destroy(dev, may_sleep);
    }

    fn query_ah(_dev: &Device<'_>, ah: &rdma::Ah<Self>) -> Result<QueriedAh> {
        Ok(ah.data().query())
    }

    fn create_cq(
        dev: &Device<'_>,
        link: &Arc<CqLink>,
        attr: &CqInitAttr,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<(Cq, u32)> {
        Cq::new(dev, link, attr, udata)
    }

    fn destroy_cq(dev: &Device<'_>, cq: &rdma::Cq<Self>) {
        cq.data().destroy(dev);
    }

    fn resize_cq(
        dev: &Device<'_>,
        cq: &rdma::Cq<Self>,
        cqe: u32,
        udata: &mut Udata<'_, Self>,
    ) -> Result<u32> {
        cq.data().resize(dev, cqe, udata)
    }

    #[inline]
    fn poll_cq(_dev: &Device<'_>, cq: &rdma::Cq<Self>, wcs: &mut WcArray<'_>) -> Result {
        cq.data().kernel()?.poll(wcs);
        Ok(())
    }

    fn req_notify_cq(dev: &Device<'_>, cq: &rdma::Cq<Self>, flags: NotifyFlags) -> Result<bool> {
        Ok(cq.data().kernel()?.arm(dev.function().doorbells(), flags))
    }

    fn create_qp(
        dev: &Device<'_>,
        qp: NewQp<'_, Self>,
        attr: &mut QpInitAttr<'_, Self>,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<Qp> {
        Qp::new(dev, &qp, attr, udata)
    }

    fn modify_qp(
        dev: &Device<'_>,
        qp: &rdma::Qp<Self>,
        attr: &QpAttr<'_>,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result {
        qp.data().shared().modify(dev, attr, udata)
    }

    fn query_qp(_dev: &Device<'_>, qp: &rdma::Qp<Self>) -> Result<QueriedQp> {
        Ok(qp.data().shared().query())
    }

    fn destroy_qp(dev: &Device<'_>, qp: &rdma::Qp<Self>) {
        qp.data().destroy(dev);
    }

    #[inline]
    fn post_send(dev: &Device<'_>, qp: &rdma::Qp<Self>, wrs: &mut SendWrs<'_, Self>) -> Result {
        qp.data()
            .kernel()?
            .post_send(dev.function().doorbells(), wrs)
    }

    #[inline]
    fn post_recv(_dev: &Device<'_>, qp: &rdma::Qp<Self>, wrs: &mut RecvWrs<'_>) -> Result {
        qp.data().kernel()?.post_recv(wrs)
    }

    fn attach_mcast(dev: &Device<'_>, qp: &rdma::Qp<Self>, gid: Gid, _lid: u16) -> Result {
        dev.mcast_groups().attach(dev, qp.number(), gid)
    }

    fn detach_mcast(dev: &Device<'_>, qp: &rdma::Qp<Self>, gid: Gid, _lid: u16) -> Result {
        dev.mcast_groups().detach(dev, qp.number(), gid)
    }

    fn get_dma_mr(dev: &Device<'_>, pd: &rdma::Pd<Self>, access: Access) -> Result<(Mr, MrKeys)> {
        Mr::dma(dev, pd.data(), access)
    }

    fn alloc_mr(
        dev: &Device<'_>,
        pd: &rdma::Pd<Self>,
        mr_type: MrType,
        max_num_sg: u32,
    ) -> Result<(Mr, MrKeys)> {
        Mr::fast(dev, pd.data(), mr_type, max_num_sg)
    }

    fn clear_pages(mr: &rdma::Mr<Self>) {
        mr.data().clear_pages();
    }

    fn add_page(mr: &rdma::Mr<Self>, address: u64) -> Result {
        mr.data().add_page(address)
    }

    fn reg_user_mr(
        core: &rdma::Device<Self>,
        dev: &Device<'_>,
        pd: &rdma::Pd<Self>,
        region: UserRegion,
        udata: &mut Udata<'_, Self>,
    ) -> Result<(Mr, MrKeys)> {
        Mr::user(core, dev, pd.data(), &region, udata)
    }

    fn reg_dmabuf_mr(
        core: &rdma::Device<Self>,
        dev: &Device<'_>,
        pd: &rdma::Pd<Self>,
        region: UserRegion,
        fd: i32,
    ) -> Result<(Mr, MrKeys, LockedUmem)> {
        Mr::dmabuf(core, dev, pd.data(), &region, fd)
    }

    fn rereg_mr(
        core: &rdma::Device<Self>,
        dev: &Device<'_>,
        pd: &rdma::Pd<Self>,
        mr: &rdma::Mr<Self>,
        change: &MrChange,
    ) -> Result<(Mr, MrKeys)> {
        mr.data().again(core, dev, pd.data(), change)
    }

    fn revoke_mr(dev: &Device<'_>, mr: &rdma::Mr<Self>) {
        mr.data().revoke(dev);
    }

    fn dereg_mr(dev: &Device<'_>, mr: &rdma::Mr<Self>) -> Result {
        mr.data().destroy(dev)
    }
}
