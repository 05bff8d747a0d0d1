// SPDX-License-Identifier: GPL-2.0
//! Making a frame: headers first, then the payload is copied in place, then
//! the ICRC closes it. One buffer a frame and nothing else.

use super::headers::{Bth, Ext};
use super::icrc::icrc;
use super::{Path, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN};
use super::{ICRC_LEN, IP_PROTOCOL_UDP, ROCE_PORT};

use std::net::IpAddr;
use std::ops::Range;

/// A frame whose payload is still to be filled in: what is in a used buffer
/// stays there until then.
pub struct Draft {
    bytes: Vec<u8>,
    l3: usize,
    l3_len: usize,
    payload: Range<usize>,
}

impl Draft {
    /// Writes all headers. `buffer` is a used one to write into, or an empty
    /// one. The pad count in `bth` is set here.
    pub fn new(mut buffer: Vec<u8>, path: &Path, bth: &Bth, ext: &Ext, payload: usize) -> Self {
        let pad = payload.wrapping_neg() & 3;
        let udp_len = 8 + Bth::LEN + ext.layout().len() + payload + pad + ICRC_LEN;
        let mut head = Head::default();
        let out = &mut head;
        out.put(&path.dst_mac);
        out.put(&path.src_mac);
        if let Some(tci) = path.vlan {
            out.put(&ETHERTYPE_VLAN.to_be_bytes());
            out.put(&tci.to_be_bytes());
        }
        let l3 = out.len + 2;
        let l3_len = ip_header(out, path, udp_len);
        out.put(&path.src_port.to_be_bytes());
        out.put(&ROCE_PORT.to_be_bytes());
        out.put(&(udp_len as u16).to_be_bytes());
        // No UDP checksum: the ICRC covers more (annex A17.4.3).
        out.put(&[0, 0]);
        let bth = Bth {
            pad: pad as u8,
            ..*bth
        };
        out.put(&bth.to_bytes());
        ext.write(|bytes| out.put(bytes));
        let start = head.len;
        let end = start + payload;
        // Costs only what is longer than the used buffer's content.
        buffer.resize(end + pad + ICRC_LEN, 0);
        buffer[..start].copy_from_slice(head.as_slice());
        buffer[end..end + pad].fill(0);
        Self {
            payload: start..end,
            bytes: buffer,
            l3,
            l3_len,
        }
    }

    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.payload.clone()]
    }

    /// Puts the ICRC in; gives the frame without its Ethernet FCS.
    pub fn finish(mut self) -> Vec<u8> {
        let end = self.bytes.len() - ICRC_LEN;
        let crc = icrc(&self.bytes[self.l3..end], self.l3_len);
        // The CRC's bits go out in the order of the Ethernet FCS: its number
        // is stored little endian.
        self.bytes[end..].copy_from_slice(&crc.to_le_bytes());
        self.bytes
    }
}

/// All headers of a frame while they are written.
struct Head {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Head {
    /// Ethernet with a tag, IPv6, UDP, BTH, and all extension headers.
    const MAX: usize = 18 + 40 + 8 + Bth::LEN + 36;

    fn put(&mut self, part: &[u8]) {
        let end = self.len + part.len();
        if let Some(place) = self.bytes.get_mut(self.len..end) {
            place.copy_from_slice(part);
            self.len = end;
        }
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Default for Head {
    fn default() -> Self {
        Self {
            bytes: [0; Self::MAX],
            len: 0,
        }
    }
}

/// Appends the Ethernet type and the IP header; gives the header's length.
fn ip_header(out: &mut Head, path: &Path, udp_len: usize) -> usize {
    match (path.src_ip, path.dst_ip) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            out.put(&ETHERTYPE_IPV4.to_be_bytes());
            let header = ipv4_header(
                path.traffic_class,
                path.hop_limit,
                (20 + udp_len) as u16,
                src.octets(),
                dst.octets(),
            );
            out.put(&header);
            20
        }
        (src, dst) => {
            out.put(&ETHERTYPE_IPV6.to_be_bytes());
            let first =
                6u32 << 28 | u32::from(path.traffic_class) << 20 | path.flow_label & 0xf_ffff;
            out.put(&first.to_be_bytes());
            out.put(&(udp_len as u16).to_be_bytes());
            out.put(&[IP_PROTOCOL_UDP, path.hop_limit]);
            out.put(&v6_octets(src));
            out.put(&v6_octets(dst));
            40
        }
    }
}

/// An IPv4 header without options: identification 0, don't fragment, UDP.
pub(crate) fn ipv4_header(
    tos: u8,
    ttl: u8,
    total_len: u16,
    src: [u8; 4],
    dst: [u8; 4],
) -> [u8; 20] {
    let mut h = [0u8; 20];
    h[0] = 0x45;
    h[1] = tos;
    h[2..4].copy_from_slice(&total_len.to_be_bytes());
    h[6] = 0x40;
    h[8] = ttl;
    h[9] = IP_PROTOCOL_UDP;
    h[12..16].copy_from_slice(&src);
    h[16..20].copy_from_slice(&dst);
    let sum = !ones_sum(&h, 0);
    h[10..12].copy_from_slice(&sum.to_be_bytes());
    h
}

/// The ones' complement sum of `bytes`, big-endian words, on top of `start`.
pub(crate) fn ones_sum(bytes: &[u8], start: u32) -> u16 {
    let mut sum = bytes.chunks(2).fold(start, |sum, pair| {
        let low = pair.get(1).copied().unwrap_or(0);
        sum + u32::from(u16::from_be_bytes([pair[0], low]))
    });
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// An address as 16 bytes, IPv4 mapped.
pub(crate) fn v6_octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}
