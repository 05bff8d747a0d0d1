// SPDX-License-Identifier: GPL-2.0

//! The way to a peer, from the core's words into the device's.

use kernel::prelude::*;

use super::device::Device;
use crate::{
    hw::cqp::address::IpAddress,
    rdma::{
        self,
        AhAttr,
        NetworkType, //
    }, //
};

/// Priority bits of a VLAN tag (IEEE 802.1Q).
#[doc(alias = "VLAN_PRIO_SHIFT")]
const VLAN_PRIORITY_SHIFT: u32 = 13;

/// Number in the tag of a packet that is in no VLAN but has a priority (IEEE 802.1Q).
const NO_VLAN: u16 = 0;

/// First UDP source port of RoCEv2 (IBTA annex A17, 17.9.2).
#[doc(alias = "IB_ROCE_UDP_ENCAP_VALID_PORT_MIN")]
pub(super) const FIRST_SOURCE_PORT: u16 = 0xc000;

/// The way to a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Our address.
    pub(super) source: IpAddress,
    /// The peer's address.
    pub(super) destination: IpAddress,
    /// Our MAC address.
    pub(super) source_mac: [u8; 6],
    /// MAC address that packets go to.
    pub(super) destination_mac: [u8; 6],
    /// VLAN tag with priority, if there is a VLAN or the network goes by the priority.
    pub(super) vlan: Option<u16>,
    /// User priority.
    pub(super) priority: u8,
    /// IPv4 TTL or IPv6 hop limit.
    pub(super) hop_limit: u8,
    /// IPv4 TOS or IPv6 traffic class.
    pub(super) traffic_class: u8,
    /// Flow label, 20 bits.
    pub(super) flow_label: u32,
}

impl Path {
    /// Takes over a route of the core, which has resolved the MAC address. `priority` gives the user
    /// priority of a traffic class.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the route is none of RoCEv2: without a global header, of another network, or
    ///   from an address of one family to one of the other.
    /// - `ENODEV` if the network device is gone.
    #[doc(alias = "irdma_roce_get_vlan_prio")]
    pub(super) fn new(
        dev: &Device<'_>,
        attr: &AhAttr<'_>,
        priority: impl FnOnce(u8) -> u8,
    ) -> Result<Self> {
        let gid = attr.sgid_attr().ok_or(EINVAL)?;
        if !matches!(gid.network(), NetworkType::Ipv4 | NetworkType::Ipv6) {
            return Err(EINVAL);
        }

        let source = ip_address(gid.gid().ip());
        let destination = ip_address(attr.dgid().ip());
        if source.is_v4() != destination.is_v4() {
            return Err(EINVAL);
        }

        let (vlan, source_mac) = gid.l2_fields()?;
        let destination_mac = match multicast_mac(&destination) {
            Some(mac) => mac,
            None => attr.dmac()?,
        };
        let priority = gid.egress_priority(priority(attr.traffic_class()));
        let vlan = vlan.or_else(|| dev.scheduler().priority_tags().then_some(NO_VLAN));

        Ok(Self {
            source,
            destination,
            source_mac,
            destination_mac,
            vlan: vlan.map(|vlan| vlan | u16::from(priority) << VLAN_PRIORITY_SHIFT),
            priority,
            hop_limit: attr.hop_limit(),
            traffic_class: attr.traffic_class(),
            flow_label: attr.flow_label(),
        })
    }

    /// Makes sure that the device knows the neighbour that packets go to, and returns its index. The
    /// device acts on later commands after that. Never sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the device can't have more neighbours, and those of a command.
    pub(super) fn neighbour(&self, dev: &Device<'_>) -> Result<u16> {
        dev.hw()
            .add_neighbour(self.destination, self.destination_mac)
    }

    /// Returns whether packets come back to this port.
    #[doc(alias = "irdma_ipv4_is_lpb")]
    #[doc(alias = "irdma_ipv6_is_lpb")]
    pub(super) fn is_loopback(&self) -> bool {
        self.source == self.destination || multicast_mac(&self.destination).is_some()
    }

    /// Returns the UDP source port of a connection: all its packets have the same, and other
    /// connections likely others.
    #[doc(alias = "rdma_get_udp_sport")]
    pub(super) fn source_port(&self, local_qpn: u32, remote_qpn: u32) -> u16 {
        let label = match self.flow_label & 0xf_ffff {
            0 => label_of(local_qpn, remote_qpn),
            label => label,
        };
        let low = (label & 0x3fff) ^ (label >> 14);

        // CAST: 14 bits.
        FIRST_SOURCE_PORT | low as u16
    }
}

/// A flow label for a connection that has none.
#[doc(alias = "rdma_calc_flow_label")]
fn label_of(local_qpn: u32, remote_qpn: u32) -> u32 {
    // Both are 24 bits wide, so that the product fits.
    let product = u64::from(local_qpn).wrapping_mul(remote_qpn.into());
    let folded = product ^ (product >> 20);
    let folded = folded ^ (folded >> 40);

    // CAST: 20 bits.
    (folded & 0xf_ffff) as u32
}

/// Returns an address in the device's order of words.
#[doc(alias = "irdma_copy_ip_ntohl")]
pub(super) fn ip_address(address: rdma::IpAddress) -> IpAddress {
    match address {
        rdma::IpAddress::V4(bytes) => IpAddress::V4(u32::from_be_bytes(bytes)),
        rdma::IpAddress::V6(bytes) => {
            let word = |n: usize| {
                let mut word = 0;
                for byte in bytes.iter().skip(n * 4).take(4) {
                    word = word << 8 | u32::from(*byte);
                }
                word
            };
            IpAddress::V6([word(0), word(1), word(2), word(3)])
        }
    }
}

/// Returns the MAC address of a multicast group; `None` for other addresses (RFC 1112 section 6.4,
/// RFC 2464 section 7).
#[doc(alias = "irdma_mcast_mac")]
pub(super) fn multicast_mac(address: &IpAddress) -> Option<[u8; 6]> {
    match address {
        IpAddress::V4(address) => {
            let [a, b, c, d] = address.to_be_bytes();

            (a & 0xf0 == 0xe0).then_some([0x01, 0x00, 0x5e, b & 0x7f, c, d])
        }
        IpAddress::V6([first, _, _, last]) => {
            let [a, b, c, d] = last.to_be_bytes();

            (first >> 24 == 0xff).then_some([0x33, 0x33, a, b, c, d])
        }
    }
}

/// Priority of packets with a type of service where nobody has set up another mapping.
#[doc(alias = "rt_tos2priority")]
pub(super) fn default_priority(traffic_class: u8) -> u8 {
    // By the bits "minimize delay" and "maximize throughput" of RFC 1349.
    match traffic_class >> 3 & 3 {
        0 => 0,
        1 => 2,
        2 => 6,
        _ => 4,
    }
}
