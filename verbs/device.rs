// SPDX-License-Identifier: GPL-2.0

//! The device: what belongs to its registration with the RDMA core.

use kernel::{
    device::Bound,
    pci,
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use super::{
    ah::SharedAhs,
    events::Events,
    mcast::McastGroups,
    neighbours::Neighbours,
    path,
    qp::QpShared,
    table::Table, //
};
use crate::{
    hw::{
        self,
        ceq::CompletionHandler,
        cqp::address::MAX_MCAST_MEMBERS,
        function::Function,
        ids::IdPools,
        ws::WorkScheduler, //
    },
    rdma::{
        device_cap,
        eui64,
        CqLink,
        DeviceAttr,
        NetDevice,
        Notifiers, //
    },
    uk::limits::Limits, //
};

/// QPs in a multicast group.
// CAST: There are few.
const MAX_GROUP_MEMBERS: u32 = MAX_MCAST_MEMBERS as u32;

/// Least MTU of the network device for RDMA over IPv4.
#[doc(alias = "IRDMA_MIN_MTU_IPV4")]
const MIN_MTU_IPV4: u32 = 576;

/// Least MTU of the network device for RDMA over IPv6.
#[doc(alias = "IRDMA_MIN_MTU_IPV6")]
const MIN_MTU_IPV6: u32 = 1280;

/// What events find by number.
#[pin_data]
pub(super) struct Tables {
    #[pin]
    pub(super) qps: Table<QpShared>,
    #[pin]
    pub(super) cqs: Table<CqLink>,
}

/// A device that is registered with the RDMA core.
pub(crate) struct Device<'a> {
    /// Goes before the device that it tells.
    _neighbours: Pin<KBox<Notifiers<Neighbours<'a>>>>,
    hw: hw::device::Device<'a>,
    pci: &'a pci::Device<Bound>,
    netdev: ARef<NetDevice>,
    tables: Arc<Tables>,
    mcast_groups: Pin<KBox<McastGroups>>,
    shared_ahs: Pin<KBox<SharedAhs>>,
}

impl<'a> Device<'a> {
    /// Makes the data for a registration from the device below.
    ///
    /// # Errors
    ///
    /// `ENOMEM`
    #[doc(alias = "irdma_init_rdma_device")]
    pub(crate) fn new(
        hw: hw::device::Device<'a>,
        pci: &'a pci::Device<Bound>,
        netdev: ARef<NetDevice>,
    ) -> Result<Self> {
        let ids = hw.ids();
        let qps = ids.qps.max();
        let cqs = ids.cqs.max();
        let tables = Arc::pin_init(
            try_pin_init!(Tables {
                qps <- Table::new(qps),
                cqs <- Table::new(cqs),
            }? Error),
            GFP_KERNEL,
        )?;
        let events = Events::new(hw.function().clone(), tables.clone())?;

        hw.set_event_handler(Some(events));

        Ok(Self {
            _neighbours: Neighbours::listen(&hw, &netdev)?,
            hw,
            pci,
            netdev,
            tables,
            mcast_groups: KBox::pin_init(McastGroups::new(), GFP_KERNEL)?,
            shared_ahs: KBox::pin_init(SharedAhs::new(), GFP_KERNEL)?,
        })
    }

    /// Tells the device's limits.
    #[doc(alias = "irdma_query_device")]
    pub(super) fn query(&self, attr: &mut DeviceAttr<'_>) -> Result {
        let ids = self.ids();
        let limits = self.limits();
        let hw = self.hw_limits();
        let (major, minor) = self.firmware_version();

        attr.set_sys_image_guid(eui64(self.netdev.mac()))
            .set_fw_ver(u64::from(major) << 32 | u64::from(minor))
            .set_device_caps(
                device_cap::MEM_WINDOW
                    | device_cap::MEM_MGT_EXTENSIONS
                    | device_cap::RC_RNR_NAK_GEN,
            )
            .set_local_dma_lkey()
            .set_vendor_id(u32::from(self.pci.vendor_id().as_raw()))
            .set_vendor_part_id(self.pci.device_id().into())
            .set_hw_ver(self.pci.revision_id().into())
            .set_page_size_cap(hw.page_sizes)
            .set_max_mr_size(hw.max_region)
            .set_max_qp(ids.qps.usable())
            .set_max_qp_wr(limits.max_qp_wr())
            .set_max_send_sge(limits.max_sge)
            .set_max_recv_sge(limits.max_sge)
            .set_max_sge_rd(limits.max_read_sge)
            .set_max_cq(ids.cqs.usable())
            .set_max_cqe(limits.max_cqe)
            .set_max_mr(ids.mrs.usable())
            .set_max_pd(ids.pds.usable())
            .set_max_qp_rd_atom(hw.max_ird)
            .set_max_qp_init_rd_atom(hw.max_ord)
            .set_max_pkeys(1)
            .set_max_ah(ids.ahs.max())
            .set_max_mcast_grp(ids.qps.max())
            .set_max_mcast_qp_attach(MAX_GROUP_MEMBERS)
            .set_max_total_mcast_qp_attach(ids.qps.max().saturating_mul(MAX_GROUP_MEMBERS))
            .set_max_fast_reg_page_list_len(hw.max_fast_reg_pages)
            .set_max_srq_wr(limits.max_srq_wr)
            .set_max_srq_sge(limits.max_sge);

        Ok(())
    }

    /// Returns the firmware's version, major and minor.
    #[doc(alias = "irdma_get_dev_fw_str")]
    pub(super) fn firmware_version(&self) -> (u16, u16) {
        let features = self.hw.features();

        (features.firmware_major, features.firmware_minor)
    }

    /// Returns what commands go to.
    #[inline]
    pub(super) fn function(&self) -> &Arc<Function<'a>> {
        self.hw.function()
    }

    /// Returns the device below.
    #[inline]
    pub(crate) fn hw(&self) -> &hw::device::Device<'a> {
        &self.hw
    }

    /// Returns the numbers of objects.
    #[inline]
    pub(super) fn ids(&self) -> &Arc<IdPools> {
        self.hw.ids()
    }

    /// Returns what events find.
    #[inline]
    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// Returns the multicast groups.
    #[inline]
    pub(super) fn mcast_groups(&self) -> &McastGroups {
        &self.mcast_groups
    }

    /// Returns the address handles that users share.
    #[inline]
    pub(super) fn shared_ahs(&self) -> &SharedAhs {
        &self.shared_ahs
    }

    /// Returns the network device.
    #[inline]
    pub(super) fn netdev(&self) -> &NetDevice {
        &self.netdev
    }

    /// Returns the limits of queues.
    #[inline]
    pub(super) fn limits(&self) -> &'static Limits {
        &self.hw.limits().queues
    }

    /// Returns the other limits.
    #[inline]
    pub(super) fn hw_limits(&self) -> &'static hw::hal::Limits {
        self.hw.limits()
    }

    /// Returns the offset in BAR 0 of the page of doorbells for users.
    pub(super) fn user_doorbells(&self) -> u64 {
        // CAST: Widening.
        self.hw.user_doorbell_offset() as u64
    }

    /// Returns how many vectors completion events can go to.
    pub(crate) fn completion_vectors(&self) -> u32 {
        // CAST: There are fewer vectors than that.
        self.hw.completion_vectors() as u32
    }

    /// Returns the work scheduler.
    #[inline]
    pub(super) fn scheduler(&self) -> &WorkScheduler<'a> {
        self.hw.ws()
    }

    /// Returns the user priority of packets with a type of service.
    pub(super) fn priority_of(&self, traffic_class: u8) -> u8 {
        let qos = self.scheduler().qos();

        if qos.dscp {
            qos.dscp_map
                .get(usize::from(traffic_class >> 2))
                .copied()
                .unwrap_or(0)
        } else {
            path::default_priority(traffic_class)
        }
    }

    /// Acts on another MTU of the network device.
    #[doc(alias = "irdma_log_invalid_mtu")]
    pub(crate) fn mtu_changed(&self) {
        let mtu = self.netdev.mtu();

        if mtu < MIN_MTU_IPV6 {
            dev_warn!(
                self.function().device(),
                "an MTU of {} is too small for RDMA: {} are needed for IPv4, {} for IPv6\n",
                mtu,
                MIN_MTU_IPV4,
                MIN_MTU_IPV6
            );
        }
    }

    /// Has the events of a CQ passed on to `handler`.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`
    /// - `EBUSY` or `EEXIST` if there is one of that number.
    pub(super) fn register_cq(
        &self,
        ceq: u32,
        number: u32,
        handler: Arc<dyn CompletionHandler + 'a>,
        link: &Arc<CqLink>,
    ) -> Result {
        self.tables.cqs.insert(number, link.clone())?;
        self.hw
            .register_cq(ceq, number, handler)
            .inspect_err(|_| drop(self.tables.cqs.remove(number)))
    }

    /// Has the events of a CQ forgotten.
    pub(super) fn unregister_cq(&self, ceq: u32, number: u32) {
        self.hw.unregister_cq(ceq, number);
        drop(self.tables.cqs.remove(number));
    }
}

impl Drop for Device<'_> {
    #[doc(alias = "irdma_ib_dealloc_device")]
    fn drop(&mut self) {
        // What handles events refers to the tables.
        self.hw.set_event_handler(None);
    }
}
