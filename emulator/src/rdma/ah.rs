// SPDX-License-Identifier: GPL-2.0
//! Address handles, the ARP table and multicast groups: where datagrams go.

use std::net::{IpAddr, Ipv6Addr};

use super::layout::wqe;
use super::qp_context::{address, mac};

/// An address handle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ah {
    pub index: u32,
    pub pd: u32,
    /// The MAC address that the driver resolved; frames go to the ARP entry's.
    pub mac: [u8; 6],
    pub arp_index: u16,
    pub traffic_class: u8,
    pub hop_limit: u8,
    pub flow_label: u32,
    /// VLAN tag (priority and id) to insert, if any.
    pub vlan: Option<u16>,
    pub dest_ip: IpAddr,
    pub source_ip: IpAddr,
    /// The destination is this port itself, or a group.
    pub loopback: bool,
}

impl Ah {
    /// Decodes CREATE_ADDR_HANDLE and MODIFY_ADDR_HANDLE.
    pub fn decode(words: &[u64; 8]) -> Self {
        let header = words[3];
        let ipv4 = wqe::AH_IPV4.is_set(header);
        Self {
            index: wqe::AH_INDEX.get32(header),
            pd: wqe::AH_PD_LOW.get32(words[1]) | (wqe::AH_PD_HIGH.get32(words[2]) << 16),
            mac: mac(wqe::AH_MAC.get(words[0])),
            arp_index: wqe::AH_ARP.get(words[2]) as u16,
            traffic_class: wqe::AH_TC.get(words[1]) as u8,
            hop_limit: wqe::AH_HOP_LIMIT.get(words[2]) as u8,
            flow_label: wqe::AH_FLOW_LABEL.get32(words[2]),
            vlan: wqe::AH_VLAN_INSERT
                .is_set(header)
                .then(|| wqe::AH_VLAN.get(words[1]) as u16),
            dest_ip: address(ipv4, words[5], words[4]),
            source_ip: address(ipv4, words[7], words[6]),
            loopback: wqe::AH_LOOPBACK.is_set(header),
        }
    }

    /// Whether datagrams come back to this port, so that the loopback flag is to be set: they go to the address that
    /// they come from, to a group, or to the address of all loops (the stock driver's rule).
    pub fn loops(&self) -> bool {
        self.source_ip == self.dest_ip
            || self.dest_ip.is_multicast()
            || self.dest_ip == Ipv6Addr::LOCALHOST
    }
}

/// An entry of the ARP table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArpEntry {
    pub mac: [u8; 6],
    /// Does not age.
    pub permanent: bool,
    pub reach_max: u32,
}

/// The VLAN that a tag names. Id 0 is none: the tag carries a priority only
/// (802.1Q).
pub(crate) fn vlan_id(tag: Option<u16>) -> Option<u16> {
    tag.map(|tag| tag & 0xfff).filter(|id| *id != 0)
}

/// Queue pairs of a group at most.
pub(crate) const GROUP_MEMBERS: usize = 8;

/// A member of a multicast group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Member {
    pub qp_id: u32,
    /// UDP port that the member listens at, unless ports are ignored.
    pub port: Option<u16>,
}

/// A multicast group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    pub index: u32,
    pub mac: [u8; 6],
    pub ip: IpAddr,
    pub vlan: Option<u16>,
    pub qs_handle: u16,
    pub members: Vec<Member>,
}

impl Group {
    /// Decodes the three multicast group commands; `context` is the member list in guest memory.
    pub fn decode(words: &[u64; 8], context: &[u64; GROUP_MEMBERS]) -> Self {
        let header = words[3];
        let ipv4 = wqe::MG_IPV4.is_set(header);
        let members = context
            .iter()
            .filter(|entry| wqe::MG_ENTRY_VALID.is_set(**entry))
            .map(|entry| Member {
                qp_id: wqe::MG_ENTRY_QP.get32(*entry),
                port: (!wqe::MG_ENTRY_IGNORE_PORT.is_set(*entry))
                    .then(|| wqe::MG_ENTRY_PORT.get(*entry) as u16),
            })
            .collect();
        Self {
            index: wqe::MG_INDEX.get32(header),
            mac: mac(words[0]),
            ip: address(ipv4, words[7], words[6]),
            vlan: wqe::MG_VLAN_VALID
                .is_set(header)
                .then(|| wqe::MG_VLAN.get(words[2]) as u16),
            qs_handle: wqe::MG_QS_HANDLE.get(words[2]) as u16,
            members,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_an_ipv4_handle() {
        let words = [
            0x0200_0000_0002_0000,
            (7 << 48) | (0x20 << 32) | 5,
            (3 << 48) | (64 << 32) | (1 << 20) | 0x12345,
            (1 << 63) | (1 << 60) | (1 << 59) | (0x1c << 32) | 9,
            0x0a00_0002,
            0,
            0x0a00_0001,
            0,
        ];
        let ah = Ah::decode(&words);
        assert_eq!((ah.index, ah.pd, ah.arp_index), (9, 0x1_0007, 3));
        assert_eq!(ah.mac, [2, 0, 0, 0, 0, 2]);
        assert_eq!(
            (ah.traffic_class, ah.hop_limit, ah.flow_label),
            (0x20, 64, 0x12345)
        );
        assert_eq!(ah.vlan, Some(5));
        assert_eq!(ah.dest_ip, "10.0.0.2".parse::<IpAddr>().unwrap());
        assert_eq!(ah.source_ip, "10.0.0.1".parse::<IpAddr>().unwrap());
        assert!(!ah.loopback);
    }

    #[test]
    fn handles_that_loop() {
        let ah = |source: &str, dest: &str| Ah {
            source_ip: source.parse().unwrap(),
            dest_ip: dest.parse().unwrap(),
            ..Ah::decode(&[0; 8])
        };
        for (source, dest, loops) in [
            ("10.0.0.1", "10.0.0.2", false),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "224.0.0.1", true),
            ("fd00::1", "fd00::2", false),
            ("fd00::1", "fd00::1", true),
            ("fd00::1", "ff02::1", true),
            ("fd00::1", "::1", true),
        ] {
            assert_eq!(ah(source, dest).loops(), loops, "{source} {dest}");
        }
    }

    #[test]
    fn decodes_a_group_and_its_members() {
        let words = [
            0x0100_5e01_0203,
            0,
            4,
            (1 << 63) | (1 << 60) | (0x26 << 32) | 2,
            0,
            0,
            0xe001_0203,
            0,
        ];
        let mut context = [0u64; GROUP_MEMBERS];
        context[0] = (4791 << 32) | (1 << 31) | 5;
        context[1] = (1 << 31) | (1 << 30) | 6;
        context[2] = 7;
        let group = Group::decode(&words, &context);
        assert_eq!(group.mac, [0x01, 0x00, 0x5e, 0x01, 0x02, 0x03]);
        assert_eq!(group.ip, "224.1.2.3".parse::<IpAddr>().unwrap());
        assert_eq!((group.index, group.vlan, group.qs_handle), (2, None, 4));
        let expected = [
            Member {
                qp_id: 5,
                port: Some(4791),
            },
            Member {
                qp_id: 6,
                port: None,
            },
        ];
        assert_eq!(group.members, expected);
    }
}
