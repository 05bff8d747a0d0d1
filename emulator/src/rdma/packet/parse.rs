// SPDX-License-Identifier: GPL-2.0
//! Taking a frame apart, checking everything on the way.

use super::build::ones_sum;
use super::headers::{Bth, Ext};
use super::icrc::icrc;
use super::{Path, ETHERTYPE_IPV4, ETHERTYPE_IPV6, ETHERTYPE_VLAN};
use super::{ICRC_LEN, IP_PROTOCOL_UDP, ROCE_PORT};

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A received packet; the payload is still in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    pub path: Path,
    pub bth: Bth,
    pub ext: Ext,
    /// Without pad.
    pub payload: &'a [u8],
}

/// Why a frame is dropped without a look at its queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    Truncated,
    NotRoce,
    IpHeader,
    IpChecksum,
    Fragment,
    Length,
    UdpChecksum,
    Version,
    UnknownOpcode,
    Pad,
    Icrc,
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// Parses and checks a RoCEv2 frame (no FCS; trailing Ethernet padding is
/// allowed). `check_icrc` is off only for a queue pair or port that says so.
pub fn parse(frame: &[u8], check_icrc: bool) -> Result<Packet<'_>, Malformed> {
    if frame.len() < 18 {
        return Err(Malformed::Truncated);
    }
    let (kind, vlan, l3) = match word(frame, 12) {
        ETHERTYPE_VLAN => (word(frame, 16), Some(word(frame, 14)), 18),
        kind => (kind, None, 14),
    };
    let packet = &frame[l3..];
    let (l3_len, udp_len, src_ip, dst_ip, traffic_class, hop_limit, flow_label) = match kind {
        ETHERTYPE_IPV4 => ipv4(packet)?,
        ETHERTYPE_IPV6 => ipv6(packet)?,
        _ => return Err(Malformed::NotRoce),
    };
    let packet = packet.get(..l3_len + udp_len).ok_or(Malformed::Truncated)?;
    let udp = &packet[l3_len..];
    if udp.len() < 8 {
        return Err(Malformed::Truncated);
    }
    if word(udp, 2) != ROCE_PORT {
        return Err(Malformed::NotRoce);
    }
    if usize::from(word(udp, 4)) != udp_len || udp_len < 8 + Bth::LEN + ICRC_LEN {
        return Err(Malformed::Length);
    }
    if word(udp, 6) != 0 && !udp_checksum_right(udp, src_ip, dst_ip) {
        return Err(Malformed::UdpChecksum);
    }
    let end = udp_len - ICRC_LEN;
    let (bth, version) = Bth::from_bytes(&array(udp, 8));
    if version != 0 {
        return Err(Malformed::Version);
    }
    if check_icrc {
        let want = icrc(&packet[..l3_len + end], l3_len);
        if u32::from_le_bytes(array(udp, end)) != want {
            return Err(Malformed::Icrc);
        }
    }
    let layout = bth.opcode.layout().ok_or(Malformed::UnknownOpcode)?;
    let (ext, rest) = Ext::read(layout, &udp[8 + Bth::LEN..end]).ok_or(Malformed::Truncated)?;
    let pad = usize::from(bth.pad);
    let Some(payload_len) = rest.len().checked_sub(pad) else {
        return Err(Malformed::Pad);
    };
    if rest.len() % 4 != 0 {
        return Err(Malformed::Pad);
    }
    Ok(Packet {
        path: Path {
            src_mac: array(frame, 6),
            dst_mac: array(frame, 0),
            vlan,
            src_ip,
            dst_ip,
            traffic_class,
            hop_limit,
            flow_label,
            src_port: word(udp, 0),
        },
        bth,
        ext,
        payload: &rest[..payload_len],
    })
}

/// Header length, UDP length, addresses, traffic class, hop limit, flow label.
type Network = (usize, usize, IpAddr, IpAddr, u8, u8, u32);

fn ipv4(p: &[u8]) -> Result<Network, Malformed> {
    if p.len() < 20 {
        return Err(Malformed::Truncated);
    }
    // RoCEv2 has no IP options (annex A17.3.1.2).
    if p[0] != 0x45 {
        return Err(Malformed::IpHeader);
    }
    if ones_sum(&p[..20], 0) != 0xffff {
        return Err(Malformed::IpChecksum);
    }
    if word(p, 6) & 0x3fff != 0 {
        return Err(Malformed::Fragment);
    }
    if p[9] != IP_PROTOCOL_UDP {
        return Err(Malformed::NotRoce);
    }
    let udp_len = usize::from(word(p, 2))
        .checked_sub(20)
        .ok_or(Malformed::Length)?;
    Ok((
        20,
        udp_len,
        Ipv4Addr::from(array::<4>(p, 12)).into(),
        Ipv4Addr::from(array::<4>(p, 16)).into(),
        p[1],
        p[8],
        0,
    ))
}

fn ipv6(p: &[u8]) -> Result<Network, Malformed> {
    if p.len() < 40 {
        return Err(Malformed::Truncated);
    }
    if p[0] >> 4 != 6 {
        return Err(Malformed::IpHeader);
    }
    if p[6] != IP_PROTOCOL_UDP {
        return Err(Malformed::NotRoce);
    }
    let first = u32::from_be_bytes(array(p, 0));
    Ok((
        40,
        usize::from(word(p, 4)),
        Ipv6Addr::from(array::<16>(p, 8)).into(),
        Ipv6Addr::from(array::<16>(p, 24)).into(),
        (first >> 20) as u8,
        p[7],
        first & 0xf_ffff,
    ))
}

fn udp_checksum_right(udp: &[u8], src: IpAddr, dst: IpAddr) -> bool {
    let pseudo = |bytes: &[u8], start| u32::from(ones_sum(bytes, start));
    let start = u32::from(IP_PROTOCOL_UDP) + udp.len() as u32;
    let start = match (src, dst) {
        (IpAddr::V4(s), IpAddr::V4(d)) => pseudo(&d.octets(), pseudo(&s.octets(), start)),
        (s, d) => {
            let s = super::build::v6_octets(s);
            let d = super::build::v6_octets(d);
            pseudo(&d, pseudo(&s, start))
        }
    };
    ones_sum(udp, start) == 0xffff
}
