// SPDX-License-Identifier: GPL-2.0

//! An example: a provider of verbs for QEMU's `pci-testdev`, which knows nothing of RDMA.
//!
//! It shows what `rdma/` asks of a driver at least. The device has one port, takes protection
//! domains and completion queues, which never have anything to report, and refuses all else.

use kernel::{
    device::Core,
    pci,
    prelude::*,
    sync::Arc, //
};

use crate::rdma::{
    self, Access, AhAttr, CqInitAttr, CqLink, DeviceAttr, Info, MrKeys, Mtu, NewQp, NewUcontext,
    NotifyFlags, Operations, PortAttr, PortImmutable, PortState, QpAttr, QpInitAttr, QueriedQp,
    RecvWrs, Registration, SendWrs, Udata, UnregisteredDevice, UserRegion, WcArray,
};

/// The driver, for the PCI core and for the RDMA core.
pub(crate) struct Null;

kernel::pci_device_table!(
    PCI_TABLE,
    <Null as pci::Driver>::IdInfo,
    [(pci::DeviceId::from_id(pci::Vendor::REDHAT, 0x5), ())]
);

impl pci::Driver for Null {
    type IdInfo = ();
    /// Dropping it takes the device away from its users.
    type Data<'bound> = Registration<'bound, Null>;

    const ID_TABLE: pci::IdTable<Self::IdInfo> = &PCI_TABLE;

    fn probe<'bound>(
        pdev: &'bound pci::Device<Core<'_>>,
        _info: Option<&'bound Self::IdInfo>,
    ) -> impl PinInit<Self::Data<'bound>, Error> + 'bound {
        Registration::new(
            pdev.as_ref(),
            pdev,
            UnregisteredDevice::new(pdev)?,
            KBox::pin(Limits { cqe: 1024 }, GFP_KERNEL)?,
            &Info {
                name: c"null%d",
                node_guid: *b"\x02nulldev",
                num_comp_vectors: 1,
                netdev: None,
            },
        )
    }
}

/// What belongs to a registered device.
pub(crate) struct Limits {
    cqe: u32,
}

#[vtable]
#[rustfmt::skip] // One line for each thing that the device doesn't have.
impl Operations for Null {
    type RegistrationData<'a> = Limits;
    type Ucontext = ();
    type Pd = ();
    type Ah = ();
    type Cq = ();
    type Qp = ();
    type Mr = ();

    const DRIVER_ID: u32 = rdma::DRIVER_UNKNOWN;
    const ABI_VERSION: u32 = 1;

    fn query_device(data: &Limits, attr: &mut DeviceAttr<'_>) -> Result {
        attr.set_max_pd(16).set_max_cq(16).set_max_cqe(data.cqe);
        Ok(())
    }

    fn firmware_version(_: &Limits) -> (u16, u16) { (1, 0) }

    fn query_port(_: &rdma::Device<Self>, _: &Limits, _: u32, attr: &mut PortAttr<'_>) -> Result {
        attr.set_state(PortState::Active)
            .set_mtu(Mtu::Mtu4096, Mtu::Mtu1024)
            .set_pkey_tbl_len(1);
        Ok(())
    }

    fn port_immutable(
        _: &rdma::Device<Self>, _: &Limits, _: u32, immutable: &mut PortImmutable<'_>,
    ) -> Result {
        immutable.set_pkey_tbl_len(1);
        Ok(())
    }

    fn query_pkey(_: &Limits, _: u32, _: u16) -> Result<u16> { Ok(0xffff) }

    fn alloc_ucontext(
        _: &Limits, _: &mut NewUcontext<'_, Self>, udata: &mut Udata<'_, Self>,
    ) -> Result { udata.no_io() }
    fn dealloc_ucontext(_: &Limits, _: &rdma::Ucontext<Self>) {}

    fn alloc_pd(_: &Limits, udata: Option<&mut Udata<'_, Self>>) -> Result {
        udata.map_or(Ok(()), |udata| udata.no_io())
    }
    fn dealloc_pd(_: &Limits, _: &rdma::Pd<Self>) {}

    fn create_cq(
        data: &Limits, _: &Arc<CqLink>, attr: &CqInitAttr, udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<((), u32)> {
        if attr.cqe == 0 || attr.cqe > data.cqe || attr.flags != 0 {
            return Err(EINVAL);
        }
        udata.map_or(Ok(()), |udata| udata.no_io())?;
        Ok(((), attr.cqe))
    }
    fn destroy_cq(_: &Limits, _: &rdma::Cq<Self>) {}
    fn poll_cq(_: &Limits, _: &rdma::Cq<Self>, _: &mut WcArray<'_>) -> Result { Ok(()) }
    fn req_notify_cq(_: &Limits, _: &rdma::Cq<Self>, _: NotifyFlags) -> Result<bool> { Ok(false) }

    fn create_ah(
        _: &Limits, _: &rdma::Pd<Self>, _: &AhAttr<'_>, _: bool, _: Option<&mut Udata<'_, Self>>,
    ) -> Result { Err(EOPNOTSUPP) }
    fn destroy_ah(_: &Limits, _: &rdma::Ah<Self>, _: bool) {}

    fn create_qp(
        _: &Limits, _: NewQp<'_, Self>, _: &mut QpInitAttr<'_, Self>,
        _: Option<&mut Udata<'_, Self>>,
    ) -> Result { Err(EOPNOTSUPP) }
    fn modify_qp(
        _: &Limits, _: &rdma::Qp<Self>, _: &QpAttr<'_>, _: Option<&mut Udata<'_, Self>>,
    ) -> Result { Err(EOPNOTSUPP) }
    fn query_qp(_: &Limits, _: &rdma::Qp<Self>) -> Result<QueriedQp> { Err(EOPNOTSUPP) }
    fn destroy_qp(_: &Limits, _: &rdma::Qp<Self>) {}
    fn post_send(_: &Limits, _: &rdma::Qp<Self>, _: &mut SendWrs<'_, Self>) -> Result { Err(EINVAL) }
    fn post_recv(_: &Limits, _: &rdma::Qp<Self>, _: &mut RecvWrs<'_>) -> Result { Err(EINVAL) }

    fn get_dma_mr(_: &Limits, _: &rdma::Pd<Self>, _: Access) -> Result<((), MrKeys)> { Err(EOPNOTSUPP) }
    fn reg_user_mr(
        _: &rdma::Device<Self>, _: &Limits, _: &rdma::Pd<Self>, _: UserRegion,
        _: &mut Udata<'_, Self>,
    ) -> Result<((), MrKeys)> { Err(EOPNOTSUPP) }
    fn dereg_mr(_: &Limits, _: &rdma::Mr<Self>) -> Result { Ok(()) }
}
