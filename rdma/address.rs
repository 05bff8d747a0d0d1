// SPDX-License-Identifier: GPL-2.0

//! Addresses of peers.

use core::marker::PhantomData;

use kernel::{
    error::to_result,
    prelude::*, //
};

use crate::bindings;

use super::NetworkType;

/// A global identifier, 128 bits in network order. For RoCEv2 it is an IP address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gid(pub(crate) [u8; 16]);

/// An IP address, bytes in network order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IpAddress {
    /// IPv4.
    V4([u8; 4]),
    /// IPv6.
    V6([u8; 16]),
}

impl Gid {
    pub(super) fn from_raw(raw: &bindings::ib_gid) -> Self {
        // SAFETY: All fields of the union are 16 bytes that may have any value.
        Self(unsafe { *raw.raw })
    }

    /// The IP address that the identifier stands for: IPv4 if it is mapped to IPv6
    /// (`::ffff:0:0/96`, RFC 4291 section 2.5.5.2).
    #[doc(alias = "rdma_gid2ip")]
    pub(crate) fn ip(&self) -> IpAddress {
        match self.0 {
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d] => IpAddress::V4([a, b, c, d]),
            other => IpAddress::V6(other),
        }
    }
}

/// One of our own global identifiers, held as long as this lives.
pub(crate) struct GidAttr<'a>(&'a bindings::ib_gid_attr);

impl GidAttr<'_> {
    /// The identifier.
    pub(crate) fn gid(&self) -> Gid {
        Gid::from_raw(&self.0.gid)
    }

    /// Its index in the port's table.
    pub(crate) fn index(&self) -> u16 {
        self.0.index
    }

    /// The network that it belongs to.
    #[doc(alias = "rdma_gid_attr_network_type")]
    pub(crate) fn network(&self) -> NetworkType {
        match self.0.gid_type {
            bindings::ib_gid_type_IB_GID_TYPE_ROCE => NetworkType::RoceV1,
            bindings::ib_gid_type_IB_GID_TYPE_ROCE_UDP_ENCAP => match self.gid().ip() {
                IpAddress::V4(_) => NetworkType::Ipv4,
                IpAddress::V6(_) => NetworkType::Ipv6,
            },
            _ => NetworkType::Ib,
        }
    }

    /// VLAN (if any) and MAC address of the network device that the identifier belongs to.
    ///
    /// # Errors
    ///
    /// `ENODEV` if that device is gone.
    #[doc(alias = "rdma_read_gid_l2_fields")]
    pub(crate) fn l2_fields(&self) -> Result<(Option<u16>, [u8; 6])> {
        // The core's value for "no VLAN", which it leaves as it finds it.
        let mut vlan = u16::MAX;
        let mut mac = [0; 6];
        // SAFETY: The attributes are valid, as are the places for the results.
        to_result(unsafe {
            bindings::rdma_read_gid_l2_fields(self.0, &raw mut vlan, mac.as_mut_ptr())
        })?;
        Ok(((vlan < 4096).then_some(vlan), mac))
    }

    /// The user priority of packets of `priority`: what the VLAN's egress map makes of it, if the
    /// identifier belongs to a VLAN.
    #[doc(alias = "vlan_dev_get_egress_qos_mask")]
    pub(crate) fn egress_priority(&self, priority: u8) -> u8 {
        // SAFETY: The attributes are valid.
        unsafe { bindings::irdma_helper_egress_priority(self.0, priority) }
    }
}

/// Route to a peer.
pub(crate) struct AhAttr<'a> {
    raw: *const bindings::rdma_ah_attr,
    _attr: PhantomData<&'a bindings::rdma_ah_attr>,
}

impl<'a> AhAttr<'a> {
    /// # Safety
    ///
    /// `raw` is valid and unchanged for `'a`.
    pub(super) unsafe fn from_raw(raw: *const bindings::rdma_ah_attr) -> Self {
        Self {
            raw,
            _attr: PhantomData,
        }
    }

    fn raw(&self) -> &'a bindings::rdma_ah_attr {
        // SAFETY: `raw` is valid and unchanged for `'a`.
        unsafe { &*self.raw }
    }

    /// Our own identifier that packets carry as source. `None` if the route has no global header.
    pub(crate) fn sgid_attr(&self) -> Option<GidAttr<'a>> {
        // SAFETY: The core holds the entry as long as the attributes.
        unsafe { self.raw().grh.sgid_attr.as_ref() }.map(GidAttr)
    }

    /// The peer's identifier.
    pub(crate) fn dgid(&self) -> Gid {
        Gid::from_raw(&self.raw().grh.dgid)
    }

    /// Flow label, 20 bits.
    pub(crate) fn flow_label(&self) -> u32 {
        self.raw().grh.flow_label
    }

    /// Hop limit, or time to live.
    pub(crate) fn hop_limit(&self) -> u8 {
        self.raw().grh.hop_limit
    }

    /// Traffic class, or type of service.
    pub(crate) fn traffic_class(&self) -> u8 {
        self.raw().grh.traffic_class
    }

    /// Index of [`AhAttr::sgid_attr`].
    pub(crate) fn sgid_index(&self) -> u8 {
        self.raw().grh.sgid_index
    }

    /// Service level.
    pub(crate) fn sl(&self) -> u8 {
        self.raw().sl
    }

    /// The peer's or the gateway's MAC address, which the core has resolved.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the route isn't one of RoCE.
    pub(crate) fn dmac(&self) -> Result<[u8; 6]> {
        let raw = self.raw();
        if raw.type_ != bindings::rdma_ah_attr_type_RDMA_AH_ATTR_TYPE_ROCE {
            return Err(EINVAL);
        }
        // SAFETY: The type says which field of the union is valid.
        Ok(unsafe { raw.__bindgen_anon_1.roce.dmac })
    }
}

/// What an address handle was made of, as far as the driver tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueriedAh {
    /// As [`AhAttr::dgid`].
    pub(crate) dgid: Gid,
    /// As [`AhAttr::flow_label`].
    pub(crate) flow_label: u32,
    /// As [`AhAttr::hop_limit`].
    pub(crate) hop_limit: u8,
    /// As [`AhAttr::traffic_class`].
    pub(crate) traffic_class: u8,
    /// As [`AhAttr::sgid_index`].
    pub(crate) sgid_index: u8,
}

impl QueriedAh {
    /// The attributes in the core's form. They hold no reference to an identifier of ours.
    pub(super) fn into_raw(self) -> bindings::rdma_ah_attr {
        // SAFETY: Integers, arrays of them and pointers may be zero.
        let mut raw: bindings::rdma_ah_attr = unsafe { core::mem::zeroed() };

        // CAST: A small number.
        raw.ah_flags = bindings::ib_ah_flags_IB_AH_GRH as u8;
        raw.grh.dgid.raw = core::mem::ManuallyDrop::new(self.dgid.0);
        raw.grh.flow_label = self.flow_label;
        raw.grh.hop_limit = self.hop_limit;
        raw.grh.traffic_class = self.traffic_class;
        raw.grh.sgid_index = self.sgid_index;
        raw
    }
}

/// The 64-bit identifier made of a MAC address (EUI-64, RFC 4291 appendix A), in network order.
#[doc(alias = "addrconf_addr_eui48")]
pub(crate) fn eui64(mac: [u8; 6]) -> [u8; 8] {
    let [a, b, c, d, e, f] = mac;
    // The bit that says "universally administered" is inverted.
    [a ^ 2, b, c, 0xff, 0xfe, d, e, f]
}
