// SPDX-License-Identifier: GPL-2.0
//! What the device does to a frame that it sends: checksums, segmentation,
//! a VLAN tag.

use super::packet::{ip_checksum, l4_checksum, protocol, Ip};

/// Smallest frame on the wire, without checksum, in bytes.
const FRAME_MIN: usize = 60;

/// Transport protocols that the device knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L4 {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

/// Where a frame's headers are and which checksums are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Length of the Ethernet header in bytes.
    pub mac: usize,
    /// Length of the internet header in bytes.
    pub ip: usize,
    /// Length of the transport header in bytes.
    pub l4: usize,
    /// The internet protocol, if anything is wanted there.
    pub version: Option<Ip>,
    /// The IPv4 header checksum is wanted.
    pub ip_checksum: bool,
    /// The transport protocol whose checksum is wanted.
    pub protocol: Option<L4>,
}

impl Headers {
    /// Length of all headers in bytes.
    pub fn total(&self) -> usize {
        self.mac + self.ip + self.l4
    }
}

/// Why a frame cannot be sent as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The lengths of the headers do not fit the frame.
    Lengths,
    /// Something that this device does not do.
    Unsupported(&'static str),
}

fn put(frame: &mut [u8], at: usize, value: &[u8]) -> Result<(), Refused> {
    frame
        .get_mut(at..at + value.len())
        .ok_or(Refused::Lengths)?
        .copy_from_slice(value);
    Ok(())
}

/// Fills in the checksums that `headers` asks for.
pub fn fill_checksums(frame: &mut [u8], headers: &Headers) -> Result<(), Refused> {
    let Some(version) = headers.version else {
        return Ok(());
    };
    let ip_at = headers.mac;
    let l4_at = ip_at + headers.ip;
    if headers.ip_checksum {
        put(frame, ip_at + 10, &[0, 0])?;
        let header = frame.get(ip_at..l4_at).ok_or(Refused::Lengths)?;
        let sum = ip_checksum(header);
        put(frame, ip_at + 10, &sum)?;
    }
    let (number, field) = match headers.protocol {
        None => return Ok(()),
        Some(L4::Tcp) => (protocol::TCP, 16),
        Some(L4::Udp) => (protocol::UDP, 6),
        Some(L4::Sctp) => return Err(Refused::Unsupported("SCTP checksum")),
    };
    put(frame, l4_at + field, &[0, 0])?;
    let (before, segment) = frame.split_at_checked(l4_at).ok_or(Refused::Lengths)?;
    let ip = before.get(ip_at..).ok_or(Refused::Lengths)?;
    let sum = match (l4_checksum(version, ip, number, segment), headers.protocol) {
        // In UDP 0 means that there is none.
        ([0, 0], Some(L4::Udp)) => [0xff, 0xff],
        (sum, _) => sum,
    };
    put(frame, l4_at + field, &sum)
}

/// Turns the headers of a large packet into those of segment `number`, which
/// carries the bytes of the payload from `offset` on; `frame` holds headers
/// and that part of the payload. Checksums are filled in.
pub fn finish_segment(
    frame: &mut [u8],
    headers: &Headers,
    number: u16,
    offset: u32,
    last: bool,
) -> Result<(), Refused> {
    const FIN_PSH: u8 = 0x09;
    const CWR: u8 = 0x80;
    let ip_at = headers.mac;
    let l4_at = ip_at + headers.ip;
    let len = frame.len();
    let read = |frame: &[u8], at: usize| -> Result<[u8; 4], Refused> {
        frame
            .get(at..at + 4)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(Refused::Lengths)
    };
    match headers.version {
        Some(Ip::V4) => {
            put(frame, ip_at + 2, &((len - ip_at) as u16).to_be_bytes())?;
            let [high, low, ..] = read(frame, ip_at + 4)?;
            let id = u16::from_be_bytes([high, low]).wrapping_add(number);
            put(frame, ip_at + 4, &id.to_be_bytes())?;
        }
        Some(Ip::V6) => {
            let payload = len.checked_sub(ip_at + 40).ok_or(Refused::Lengths)?;
            put(frame, ip_at + 4, &(payload as u16).to_be_bytes())?;
        }
        None => return Err(Refused::Unsupported("segmentation without IP")),
    }
    match headers.protocol {
        Some(L4::Tcp) => {
            let sequence = u32::from_be_bytes(read(frame, l4_at + 4)?).wrapping_add(offset);
            put(frame, l4_at + 4, &sequence.to_be_bytes())?;
            let flags = frame.get_mut(l4_at + 13).ok_or(Refused::Lengths)?;
            if !last {
                *flags &= !FIN_PSH;
            }
            if number > 0 {
                *flags &= !CWR;
            }
        }
        Some(L4::Udp) => put(frame, l4_at + 4, &((len - l4_at) as u16).to_be_bytes())?,
        _ => return Err(Refused::Unsupported("segmentation of this protocol")),
    }
    fill_checksums(frame, headers)
}

/// Puts a VLAN tag behind the addresses, and fills the frame up to the
/// smallest size.
pub fn finish_frame(frame: &mut Vec<u8>, tag: Option<u16>) {
    if let Some(tag) = tag {
        let [high, low] = tag.to_be_bytes();
        if frame.len() >= 12 {
            frame.splice(12..12, [0x81, 0x00, high, low]);
        }
    }
    pad(frame);
}

/// Fills a frame up to the smallest size.
pub fn pad(frame: &mut Vec<u8>) {
    if frame.len() < FRAME_MIN {
        frame.resize(FRAME_MIN, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::e810::lan::packet::{parse, tests::udp_frame, Checksums};

    const UDP4: Headers = Headers {
        mac: 14,
        ip: 20,
        l4: 8,
        version: Some(Ip::V4),
        ip_checksum: true,
        protocol: Some(L4::Udp),
    };
    const GOOD: Option<Checksums> = Some(Checksums { ip: true, l4: true });

    #[test]
    fn checksums() {
        let right = udp_frame();
        let mut frame = right.clone();
        frame[24..26].fill(0xaa);
        frame[40..42].fill(0xbb);
        fill_checksums(&mut frame, &UDP4).unwrap();
        assert_eq!(frame, right);
        frame.truncate(30);
        assert_eq!(fill_checksums(&mut frame, &UDP4), Err(Refused::Lengths));
    }

    #[test]
    fn tcp_segments() {
        let headers = Headers {
            l4: 20,
            protocol: Some(L4::Tcp),
            ..UDP4
        };
        // IPv4 id 0xffff, sequence 0xffffff00, flags CWR|PSH|FIN|ACK.
        let mut template = udp_frame()[..34].to_vec();
        template[18..20].fill(0xff);
        template[23] = 6;
        template.extend([0, 1, 0, 2, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0x50, 0x99]);
        template.extend([0; 6]);
        let segment = |number, offset, last| {
            let mut frame = template.clone();
            frame.extend([7; 512]);
            finish_segment(&mut frame, &headers, number, offset, last).unwrap();
            assert_eq!(parse(&frame).checksums, GOOD);
            assert_eq!(frame[16..18], 552u16.to_be_bytes());
            frame
        };
        let first = segment(0, 0, false);
        assert_eq!(first[18..20], [0xff, 0xff]);
        assert_eq!(first[47], 0x90);
        let last = segment(1, 512, true);
        assert_eq!(last[18..20], [0, 0]);
        assert_eq!(last[38..42], [0, 0, 1, 0]);
        assert_eq!(last[47], 0x19);
    }

    #[test]
    fn tags_and_padding() {
        let mut frame = udp_frame();
        finish_frame(&mut frame, Some(0x2005));
        assert_eq!(frame[12..18], [0x81, 0, 0x20, 5, 8, 0]);
        assert_eq!(frame.len(), 60);
        assert_eq!(parse(&frame).checksums, GOOD);
    }
}
