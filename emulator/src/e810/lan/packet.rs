// SPDX-License-Identifier: GPL-2.0
//! What the device sees in a frame: its protocols, and whether its checksums
//! are right.
//!
//! Sources: RFC 791, RFC 8200, RFC 768, RFC 9293; the checksum is RFC 1071's.

use internet_checksum::Checksum;

/// Protocol numbers.
pub mod protocol {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMP for IPv6.
    pub const ICMPV6: u8 = 58;
    /// SCTP.
    pub const SCTP: u8 = 132;
}

/// An internet layer header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ip {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Packet types as a received descriptor has them.
mod ptype {
    pub const L2: u16 = 1;
    pub const ARP: u16 = 11;
    pub const IPV4: u16 = 22;
    pub const IPV6: u16 = 88;
    // Behind the base of IPv4 or IPv6.
    pub const FRAGMENT: u16 = 0;
    pub const OTHER: u16 = 1;
    pub const UDP: u16 = 2;
    pub const TCP: u16 = 4;
    pub const SCTP: u16 = 5;
    pub const ICMP: u16 = 6;
}

/// What the device found in a received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The packet type of the descriptor.
    pub ptype: u16,
    /// Checksums were looked at, and this is what came out.
    pub checksums: Option<Checksums>,
    /// What a hash is made from: addresses, then ports if there are any.
    pub flow: Vec<u8>,
}

/// Whether checksums are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksums {
    /// That of the IPv4 header.
    pub ip: bool,
    /// That of TCP or UDP.
    pub l4: bool,
}

fn be16(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at..at + 2)? {
        &[high, low] => Some(usize::from(u16::from_be_bytes([high, low]))),
        _ => None,
    }
}

/// The internet checksum of a TCP or UDP segment, pseudo header included. A
/// segment whose checksum field is right gives 0.
pub fn l4_checksum(version: Ip, ip: &[u8], protocol: u8, segment: &[u8]) -> [u8; 2] {
    let mut sum = Checksum::new();
    let addresses = match version {
        Ip::V4 => ip.get(12..20),
        Ip::V6 => ip.get(8..40),
    };
    sum.add_bytes(addresses.unwrap_or_default());
    sum.add_bytes(&(segment.len() as u32).to_be_bytes());
    sum.add_bytes(&[0, protocol]);
    sum.add_bytes(segment);
    sum.checksum()
}

/// The checksum of an IPv4 header; 0 if the header has the right one.
pub fn ip_checksum(header: &[u8]) -> [u8; 2] {
    internet_checksum::checksum(header)
}

/// Looks at a frame as the receive side of the device does.
pub fn parse(frame: &[u8]) -> Parsed {
    let ether_type = match be16(frame, 12) {
        Some(0x8100) => 16,
        _ => 12,
    };
    let plain = |ptype| Parsed {
        ptype,
        checksums: None,
        flow: vec![],
    };
    let packet = frame.get(ether_type + 2..).unwrap_or_default();
    let parsed = match be16(frame, ether_type) {
        Some(0x0806) => return plain(ptype::ARP),
        Some(0x0800) => parse_v4(packet),
        Some(0x86dd) => parse_v6(packet),
        _ => None,
    };
    parsed.unwrap_or_else(|| plain(ptype::L2))
}

fn parse_v4(packet: &[u8]) -> Option<Parsed> {
    let header_len = usize::from(packet.first()? & 15) * 4;
    let total = be16(packet, 2)?;
    let header = packet.get(..header_len).filter(|h| h.len() >= 20)?;
    let payload = packet.get(header_len..total)?;
    let fragment = be16(header, 6)? & 0x3fff != 0;
    let mut parsed = parse_l4(Ip::V4, ptype::IPV4, header, header[9], payload, fragment)?;
    parsed.flow.splice(0..0, header[12..20].iter().copied());
    if let Some(checksums) = &mut parsed.checksums {
        checksums.ip = ip_checksum(header) == [0, 0];
    }
    Some(parsed)
}

fn parse_v6(packet: &[u8]) -> Option<Parsed> {
    let header = packet.get(..40)?;
    let payload = packet.get(40..40 + be16(header, 4)?)?;
    let fragment = header[6] == 44;
    let mut parsed = parse_l4(Ip::V6, ptype::IPV6, header, header[6], payload, fragment)?;
    parsed.flow.splice(0..0, header[8..40].iter().copied());
    Some(parsed)
}

fn parse_l4(
    version: Ip,
    base: u16,
    ip: &[u8],
    protocol: u8,
    payload: &[u8],
    fragment: bool,
) -> Option<Parsed> {
    let kind = match protocol {
        _ if fragment => ptype::FRAGMENT,
        protocol::TCP => ptype::TCP,
        protocol::UDP => ptype::UDP,
        protocol::SCTP => ptype::SCTP,
        protocol::ICMP | protocol::ICMPV6 => ptype::ICMP,
        _ => ptype::OTHER,
    };
    let l4 = match kind {
        ptype::TCP => Some(l4_checksum(version, ip, protocol, payload) == [0, 0]),
        ptype::UDP => {
            let segment = payload.get(..be16(payload, 4)?)?;
            // An IPv4 sender may leave it out.
            let none = be16(segment, 6)? == 0 && version == Ip::V4;
            Some(none || l4_checksum(version, ip, protocol, segment) == [0, 0])
        }
        _ => None,
    };
    let flow = match kind {
        ptype::TCP | ptype::UDP | ptype::SCTP => payload.get(..4)?.to_vec(),
        _ => vec![],
    };
    Some(Parsed {
        ptype: base + kind,
        checksums: l4.map(|l4| Checksums { ip: true, l4 }),
        flow,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A UDP packet from 10.0.0.1:1000 to 10.0.0.2:2000 with "hello", with the
    /// right checksums (worked out by hand from RFC 1071).
    pub fn udp_frame() -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
        frame.extend([0x45, 0, 0, 33, 0, 0, 0, 0, 64, 17, 0x66, 0xca]);
        frame.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0x03, 0xe8, 0x07, 0xd0, 0, 13, 0, 0]);
        frame.extend(b"hello");
        // 0a00+0001+0a00+0002+0011+000d+03e8+07d0+000d+6865+6c6c+6f00
        // = 1_63b7 -> 63b8 -> ~ = 9c47
        frame[40..42].copy_from_slice(&[0x9c, 0x47]);
        frame
    }

    #[test]
    fn udp() {
        let mut frame = udp_frame();
        let parsed = parse(&frame);
        assert_eq!(parsed.ptype, 24);
        assert_eq!(parsed.checksums, Some(Checksums { ip: true, l4: true }));
        assert_eq!(
            parsed.flow,
            [10, 0, 0, 1, 10, 0, 0, 2, 0x03, 0xe8, 0x07, 0xd0]
        );
        frame.extend([0; 13]);
        assert_eq!(parse(&frame), parsed);
        frame[44] ^= 1;
        frame[22] ^= 1;
        assert_eq!(
            parse(&frame).checksums,
            Some(Checksums {
                ip: false,
                l4: false
            })
        );
    }

    #[test]
    fn others() {
        assert_eq!(parse(&[0; 4]).ptype, 1);
        let mut arp = vec![0; 60];
        arp[12..14].copy_from_slice(&[8, 6]);
        assert_eq!(parse(&arp).ptype, 11);
        let mut fragment = udp_frame();
        fragment[20] = 0x20;
        let parsed = parse(&fragment);
        assert_eq!((parsed.ptype, parsed.checksums), (22, None));
        let mut cut = udp_frame();
        cut.truncate(40);
        assert_eq!(parse(&cut).ptype, 1);
        let mut tagged = udp_frame();
        tagged.splice(12..12, [0x81, 0, 0, 5]);
        assert_eq!(parse(&tagged).ptype, 24);
    }
}
