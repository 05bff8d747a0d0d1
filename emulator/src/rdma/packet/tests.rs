// SPDX-License-Identifier: GPL-2.0
use super::*;

use std::net::{Ipv4Addr, Ipv6Addr};

/// A congestion notification as a ConnectX-4 Lx sent it (from the public test
/// set of scapy): the ICRC was made by hardware that nobody here wrote.
const CNP: &str = "e41d2dab2bc2 7cfe90643b32 0800 45c2003c718c400040119161 0a001101 0a001201
    0000 12b7 0028 0000  8100ffff 40000118 00000000 00000000000000000000000000000000 82fd002a";

/// A UC packet of a mlx5 port (same source), for the CRC alone.
const UC: &str = "248a07a8fa22 248a07a8fa22 0800 4501004004784000 4011b4d5 c0a80007 c0a80007
    c000 12b7 002c aca2  2460ffff 000000d3 00cf1710
    4630818be28935d90e9a95505401be885e500000 78f353f3";

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .bytes()
        .filter_map(|c| (c as char).to_digit(16).map(|d| d as u8))
        .collect();
    digits.chunks(2).map(|p| p[0] << 4 | p[1]).collect()
}

fn path_v4() -> Path {
    Path {
        src_mac: [2, 0, 0, 0, 0, 1],
        dst_mac: [2, 0, 0, 0, 0, 2],
        vlan: None,
        src_ip: Ipv4Addr::new(10, 0, 0, 1).into(),
        dst_ip: Ipv4Addr::new(10, 0, 0, 2).into(),
        traffic_class: 2,
        hop_limit: 64,
        flow_label: 0,
        src_port: 0xc123,
    }
}

fn path_v6() -> Path {
    Path {
        vlan: Some(0x6005),
        src_ip: "fe80::1".parse::<Ipv6Addr>().unwrap().into(),
        dst_ip: "fe80::2".parse::<Ipv6Addr>().unwrap().into(),
        traffic_class: 0x89,
        flow_label: 0xabcde,
        ..path_v4()
    }
}

fn build(path: &Path, bth: &Bth, ext: &Ext, payload: &[u8]) -> Vec<u8> {
    let mut draft = Draft::new(Vec::new(), path, bth, ext, payload.len());
    draft.payload_mut().copy_from_slice(payload);
    draft.finish()
}

#[test]
fn captured_cnp_is_accepted() {
    let frame = hex(CNP);
    let packet = parse(&frame, true).unwrap();
    assert_eq!(packet.bth.opcode, Opcode::CNP);
    assert!(packet.bth.becn && !packet.bth.fecn && !packet.bth.migrated);
    assert_eq!(packet.bth.dest_qp, 0x118);
    assert_eq!(packet.path.src_ip, Ipv4Addr::new(10, 0, 0x11, 1));
    assert_eq!(packet.path.hop_limit, 64);
    assert_eq!(packet.payload, [0; 16]);
}

#[test]
fn captured_crc_is_reproduced() {
    let mut frame = hex(UC);
    let end = frame.len() - ICRC_LEN;
    let crc = icrc::icrc(&frame[14..end], 20);
    assert_eq!(crc.to_le_bytes(), frame[end..]);
    // UC is not offered, but everything in front of the opcode was right (the
    // published UDP checksum leaves the CRC out).
    frame[40..42].fill(0);
    assert_eq!(parse(&frame, true), Err(Malformed::UnknownOpcode));
}

#[test]
fn own_cnp_differs_from_capture_only_where_meant() {
    // Same fields but identification 0 (ours) and migration state.
    let path = Path {
        src_mac: [0x7c, 0xfe, 0x90, 0x64, 0x3b, 0x32],
        dst_mac: [0xe4, 0x1d, 0x2d, 0xab, 0x2b, 0xc2],
        src_ip: Ipv4Addr::new(10, 0, 0x11, 1).into(),
        dst_ip: Ipv4Addr::new(10, 0, 0x12, 1).into(),
        traffic_class: 0xc2,
        src_port: 0,
        ..path_v4()
    };
    let mut bth = Bth::new(Opcode::CNP, 0xffff, 0x118, 0);
    bth.becn = true;
    bth.migrated = false;
    let mut ours = build(&path, &bth, &Ext::default(), &[0; 16]);
    let theirs = hex(CNP);
    let end = ours.len() - ICRC_LEN;
    ours[18..20].copy_from_slice(&theirs[18..20]);
    ours[24..26].copy_from_slice(&theirs[24..26]);
    assert_eq!(ours[..end], theirs[..end]);
}

/// Headers worked out by hand from IBA 9.2 to 9.5.
#[test]
fn transport_headers_by_hand() {
    let mut bth = Bth::new(Opcode::WRITE_ONLY_IMM, 0x8001, 0x123456, 0xfedcba);
    bth.solicited = true;
    bth.ack_request = true;
    let ext = Ext {
        reth: Some(Reth {
            address: 0x1122334455667788,
            rkey: 0xa1b2c3d4,
            length: 5,
        }),
        imm: Some(0x01020304),
        ..Ext::default()
    };
    let frame = build(&path_v4(), &bth, &ext, b"hello");
    let want = hex(
        "0bf08001 00123456 80fedcba 1122334455667788 a1b2c3d4 00000005
        01020304 68656c6c6f 000000",
    );
    assert_eq!(frame[42..frame.len() - 4], want);
    // UDP: source port, 4791, length 8 + 12 + 16 + 4 + 5 + 3 + 4, no checksum.
    assert_eq!(frame[34..42], hex("c123 12b7 0034 0000"));
    // IPv4: total length 20 + 52; checksum by hand.
    assert_eq!(
        frame[12..34],
        hex("0800 45020048 00004000 4011 26a1 0a000001 0a000002")
    );
    let packet = parse(&frame, true).unwrap();
    assert_eq!(packet.payload, b"hello");
    assert_eq!(packet.ext, ext);
    assert_eq!(packet.bth, Bth { pad: 3, ..bth });
    assert_eq!(packet.path, path_v4());
}

#[test]
fn each_opcode_round_trips() {
    for code in 0..=255 {
        let opcode = Opcode(code);
        let Some(layout) = opcode.layout() else {
            continue;
        };
        let ext = Ext {
            deth: layout.deth.then_some(Deth {
                qkey: 0x8001_0000,
                src_qp: 1,
            }),
            reth: layout.reth.then_some(Reth {
                address: u64::MAX - 9,
                rkey: 7,
                length: 1 << 31,
            }),
            aeth: layout.aeth.then_some(Aeth {
                syndrome: Syndrome::Rnr(18),
                msn: 0xffffff,
            }),
            imm: layout.imm.then_some(0xdeadbeef),
            ieth: layout.ieth.then_some(0x1234_5678),
        };
        assert_eq!(ext.layout(), layout);
        for len in 0..9 {
            let payload: Vec<u8> = (1..=len).collect();
            for path in [path_v4(), path_v6()] {
                let frame = build(
                    &path,
                    &Bth::new(opcode, 0xffff, 3, code.into()),
                    &ext,
                    &payload,
                );
                assert!(is_roce(&frame));
                let packet = parse(&frame, true).unwrap();
                assert_eq!(packet.path, path);
                assert_eq!(packet.ext, ext);
                assert_eq!(packet.payload, payload);
                let l2 = if path.vlan.is_some() { 18 } else { 14 };
                assert_eq!((frame.len() - l2) % 4, 0);
            }
        }
    }
}

#[test]
fn each_flipped_bit_is_found_or_meant_for_routers() {
    for path in [path_v4(), path_v6()] {
        let frame = build(
            &path,
            &Bth::new(Opcode::SEND_ONLY, 0xffff, 5, 9),
            &Ext::default(),
            &[0x5a; 33],
        );
        let l3 = if path.vlan.is_some() { 18 } else { 14 };
        let v4 = path.vlan.is_none();
        for at in l3..frame.len() {
            for bit in 0..8 {
                let mut bad = frame.clone();
                bad[at] ^= 1 << bit;
                let at = at - l3;
                // What a router may change is not covered: IPv6 traffic class,
                // flow label and hop limit, and the congestion bits of the BTH.
                let bth = if v4 { 20 } else { 40 } + 8;
                let open = at == bth + 4
                    || !v4 && (at == 0 && bit < 4 || (1..=3).contains(&at) || at == 7);
                assert_eq!(parse(&bad, true).is_ok(), open, "byte {at} bit {bit}");
            }
        }
    }
}

#[test]
fn any_cut_is_refused() {
    let frame = build(
        &path_v6(),
        &Bth::new(Opcode::SEND_ONLY, 0xffff, 5, 9),
        &Ext::default(),
        &[1; 8],
    );
    for len in 0..frame.len() {
        assert!(parse(&frame[..len], true).is_err());
        is_roce(&frame[..len]);
    }
    // Ethernet padding behind the packet is no part of it.
    let mut padded = frame.clone();
    padded.extend_from_slice(&[0; 20]);
    assert_eq!(parse(&padded, true).unwrap().payload, [1; 8]);
}

#[test]
fn udp_checksum_is_checked_where_given() {
    let path = path_v4();
    let mut frame = build(
        &path,
        &Bth::new(Opcode::SEND_ONLY, 0xffff, 5, 9),
        &Ext::default(),
        &[0x31; 5],
    );
    // Pseudo header: addresses, protocol, UDP length; then the UDP datagram.
    let udp_len = (frame.len() - 34) as u32;
    let words: u32 = frame[26..]
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]))
        .sum::<u32>()
        + 17
        + udp_len;
    let sum = !((words & 0xffff) + (words >> 16)) as u16;
    frame[40..42].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(parse(&frame, true).unwrap().payload, [0x31; 5]);
    frame[41] ^= 1;
    assert_eq!(parse(&frame, true), Err(Malformed::UdpChecksum));
}

#[test]
fn lan_frames_are_not_ours() {
    let mut arp = vec![0xff; 60];
    arp[12..14].copy_from_slice(&[8, 6]);
    assert!(!is_roce(&arp));
    let mut other_port = build(
        &path_v4(),
        &Bth::new(Opcode::SEND_ONLY, 0xffff, 5, 9),
        &Ext::default(),
        &[],
    );
    other_port[37] = 0xb8;
    assert!(!is_roce(&other_port));
}
