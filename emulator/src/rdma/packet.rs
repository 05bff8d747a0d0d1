// SPDX-License-Identifier: GPL-2.0
//! RoCEv2 packets: Ethernet, optional VLAN tag, IPv4 or IPv6, UDP port 4791,
//! then the InfiniBand transport headers, payload, pad and invariant CRC.
//!
//! Source: InfiniBand Architecture Specification volume 1, chapter 9, and its
//! annex A17 (RoCEv2).

pub mod build;
pub mod headers;
pub mod icrc;
pub mod parse;

pub use build::Draft;
pub use headers::{Aeth, Bth, Deth, Ext, Opcode, Reth, Syndrome};
pub use parse::{parse, Malformed, Packet};

use std::net::IpAddr;

/// The UDP destination port of RoCEv2.
pub const ROCE_PORT: u16 = 4791;

/// Bytes of the invariant CRC at the end of each packet.
pub const ICRC_LEN: usize = 4;

pub(crate) const ETHERTYPE_VLAN: u16 = 0x8100;
pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_IPV6: u16 = 0x86dd;
pub(crate) const IP_PROTOCOL_UDP: u8 = 17;

/// Everything in front of the transport headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    pub src_mac: [u8; 6],
    pub dst_mac: [u8; 6],
    /// The VLAN tag (priority, DEI, VLAN id), if the frame has one.
    pub vlan: Option<u16>,
    pub src_ip: IpAddr,
    pub dst_ip: IpAddr,
    /// IPv4 type of service or IPv6 traffic class; the low two bits are ECN.
    pub traffic_class: u8,
    pub hop_limit: u8,
    /// IPv6 only, 20 bits.
    pub flow_label: u32,
    pub src_port: u16,
}

impl Path {
    /// The network marked this packet: congestion experienced.
    pub fn congestion_experienced(&self) -> bool {
        self.traffic_class & 3 == 3
    }
}

/// Whether a frame belongs to the RDMA block: UDP to port 4791. Reads no
/// further than it must, so that LAN frames pass cheaply.
pub fn is_roce(frame: &[u8]) -> bool {
    let word = |at: usize| -> Option<u16> {
        let bytes = frame.get(at..at + 2)?;
        Some(u16::from_be_bytes([bytes[0], bytes[1]]))
    };
    let (kind, l3) = match word(12) {
        Some(ETHERTYPE_VLAN) => (word(16), 18),
        other => (other, 14),
    };
    match kind {
        Some(ETHERTYPE_IPV4) => {
            let header = match frame.get(l3) {
                Some(first) if first >> 4 == 4 => usize::from(first & 0xf) * 4,
                _ => return false,
            };
            frame.get(l3 + 9) == Some(&IP_PROTOCOL_UDP)
                && word(l3 + 6).is_some_and(|f| f & 0x1fff == 0)
                && word(l3 + header + 2) == Some(ROCE_PORT)
        }
        Some(ETHERTYPE_IPV6) => {
            frame.get(l3 + 6) == Some(&IP_PROTOCOL_UDP) && word(l3 + 42) == Some(ROCE_PORT)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests;
