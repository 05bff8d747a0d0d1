// SPDX-License-Identifier: GPL-2.0

//! What a driver tells of its device and of its ports.

use kernel::prelude::*;

use crate::bindings;

use super::{
    types::PortCaps,
    Device,
    Mtu,
    Operations,
    PortState, //
};

/// Declares functions that set a number in a structure of C.
macro_rules! setters {
    ($( $(#[$meta:meta])* $name:ident($field:ident): $type:ty, )+) => {
        $(
            $(#[$meta])*
            pub(crate) fn $name(&mut self, value: $type) -> &mut Self {
                self.0.$field = value;
                self
            }
        )+
    };
}

/// Limits of a device, to be filled in.
pub(crate) struct DeviceAttr<'a>(pub(super) &'a mut bindings::ib_device_attr);

/// Bits for [`DeviceAttr::set_device_caps`] (`enum ib_device_cap_flags`).
pub(crate) mod device_cap {
    use crate::bindings;

    /// Memory windows.
    pub(crate) const MEM_WINDOW: u64 = bindings::ib_device_cap_flags_IB_DEVICE_MEM_WINDOW as u64;
    /// Fast registration and local invalidate.
    pub(crate) const MEM_MGT_EXTENSIONS: u64 =
        bindings::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS as u64;
    /// Sends "receiver not ready".
    pub(crate) const RC_RNR_NAK_GEN: u64 =
        bindings::ib_device_cap_flags_IB_DEVICE_RC_RNR_NAK_GEN as u64;
}

impl DeviceAttr<'_> {
    setters! {
        /// Version of the firmware.
        set_fw_ver(fw_ver): u64,
        /// Largest memory region in bytes.
        set_max_mr_size(max_mr_size): u64,
        /// Bit n is set if pages may be 2^n bytes.
        set_page_size_cap(page_size_cap): u64,
        /// PCI vendor.
        set_vendor_id(vendor_id): u32,
        /// PCI device.
        set_vendor_part_id(vendor_part_id): u32,
        /// PCI revision.
        set_hw_ver(hw_ver): u32,
        /// Queue pairs.
        set_max_qp(max_qp): u32,
        /// Requests in a queue.
        set_max_qp_wr(max_qp_wr): u32,
        /// Bits of [`device_cap`].
        set_device_caps(device_cap_flags): u64,
        /// Pieces of a request to send.
        set_max_send_sge(max_send_sge): u32,
        /// Pieces of a receive.
        set_max_recv_sge(max_recv_sge): u32,
        /// Pieces of an RDMA READ.
        set_max_sge_rd(max_sge_rd): u32,
        /// Completion queues.
        set_max_cq(max_cq): u32,
        /// Entries of a completion queue.
        set_max_cqe(max_cqe): u32,
        /// Memory regions.
        set_max_mr(max_mr): u32,
        /// Protection domains.
        set_max_pd(max_pd): u32,
        /// RDMA READs and atomics that a queue pair answers at a time.
        set_max_qp_rd_atom(max_qp_rd_atom): u32,
        /// RDMA READs and atomics that a queue pair asks at a time.
        set_max_qp_init_rd_atom(max_qp_init_rd_atom): u32,
        /// Memory windows.
        set_max_mw(max_mw): u32,
        /// Multicast groups.
        set_max_mcast_grp(max_mcast_grp): u32,
        /// Queue pairs in a multicast group.
        set_max_mcast_qp_attach(max_mcast_qp_attach): u32,
        /// Queue pairs in all multicast groups.
        set_max_total_mcast_qp_attach(max_total_mcast_qp_attach): u32,
        /// Address handles.
        set_max_ah(max_ah): u32,
        /// Shared receive queues.
        set_max_srq(max_srq): u32,
        /// Requests in a shared receive queue.
        set_max_srq_wr(max_srq_wr): u32,
        /// Pieces of a receive of a shared queue.
        set_max_srq_sge(max_srq_sge): u32,
        /// Pages of a fast registration.
        set_max_fast_reg_page_list_len(max_fast_reg_page_list_len): u32,
        /// Partition keys.
        set_max_pkeys(max_pkeys): u16,
    }

    /// Globally unique identifier of the system, eight bytes in network order.
    pub(crate) fn set_sys_image_guid(&mut self, guid: [u8; 8]) -> &mut Self {
        self.0.sys_image_guid = u64::from_ne_bytes(guid);
        self
    }

    /// The device takes key 0 for all of the kernel's memory (`IBK_LOCAL_DMA_LKEY`).
    pub(crate) fn set_local_dma_lkey(&mut self) -> &mut Self {
        self.0.kernel_cap_flags |= u64::from(bindings::ib_kernel_cap_flags_IBK_LOCAL_DMA_LKEY);
        self
    }
}

/// State of a port, to be filled in.
pub(crate) struct PortAttr<'a>(pub(super) &'a mut bindings::ib_port_attr);

impl PortAttr<'_> {
    setters! {
        /// Local identifier. Means nothing on Ethernet.
        set_lid(lid): u32,
        /// Entries of the GID table.
        set_gid_tbl_len(gid_tbl_len): c_int,
        /// Partition keys.
        set_pkey_tbl_len(pkey_tbl_len): u16,
        /// Largest message in bytes.
        set_max_msg_sz(max_msg_sz): u32,
    }

    /// Whether data can pass, with the link's physical state as the core's users know it.
    pub(crate) fn set_state(&mut self, state: PortState) -> &mut Self {
        self.0.state = state.into_raw();
        self.0.phys_state = match state {
            PortState::Active => bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_LINK_UP,
            PortState::Down => bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_DISABLED,
            // CAST: The states are small numbers.
        } as u8;
        self
    }

    /// Largest MTU, and the one in use.
    pub(crate) fn set_mtu(&mut self, max: Mtu, active: Mtu) -> &mut Self {
        self.0.max_mtu = max.into_raw();
        self.0.active_mtu = active.into_raw();
        self
    }

    /// GIDs are IP addresses.
    pub(crate) fn set_ip_gids(&mut self) -> &mut Self {
        self.0.set_ip_gids(1);
        self
    }

    /// A connection manager answers on the port, and it can be initialised anew.
    pub(crate) fn set_cm_and_reinit(&mut self) -> &mut Self {
        self.0.port_cap_flags |= bindings::ib_port_capability_mask_bits_IB_PORT_CM_SUP
            | bindings::ib_port_capability_mask_bits_IB_PORT_REINIT_SUP;
        self
    }

    /// Speed and width of the link, as the network device tells them.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the port has no network device.
    #[doc(alias = "ib_get_eth_speed")]
    pub(crate) fn set_ethernet_speed<T: Operations>(
        &mut self,
        dev: &Device<T>,
        port: u32,
    ) -> Result {
        // SAFETY: `dev` is a valid device, as are the places for the results.
        kernel::error::to_result(unsafe {
            bindings::ib_get_eth_speed(
                dev.as_raw(),
                port,
                &raw mut self.0.active_speed,
                &raw mut self.0.active_width,
            )
        })
    }
}

/// What of a port never changes, to be filled in.
pub(crate) struct PortImmutable<'a>(pub(super) &'a mut bindings::ib_port_immutable);

impl PortImmutable<'_> {
    setters! {
        /// Entries of the GID table.
        set_gid_tbl_len(gid_tbl_len): c_int,
        /// Partition keys.
        set_pkey_tbl_len(pkey_tbl_len): c_int,
    }

    /// Protocols of the port.
    pub(crate) fn set_caps(&mut self, caps: PortCaps) -> &mut Self {
        self.0.core_cap_flags = caps.0;
        self
    }

    /// The port passes management datagrams of the usual size.
    pub(crate) fn set_mads(&mut self) -> &mut Self {
        self.0.max_mad_size = bindings::IB_MGMT_MAD_SIZE;
        self
    }
}

/// Name of a counter.
#[repr(transparent)]
pub(crate) struct CounterDesc(bindings::rdma_stat_desc);

impl CounterDesc {
    /// Makes a counter that is always on.
    pub(crate) const fn new(name: &'static CStr) -> Self {
        Self(bindings::rdma_stat_desc {
            // `as_char_ptr()` isn't const.
            name: name.to_bytes_with_nul().as_ptr(),
            flags: 0,
            priv_: core::ptr::null(),
        })
    }
}
