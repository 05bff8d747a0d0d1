// SPDX-License-Identifier: GPL-2.0
//! Datagrams to a group, through the whole device.
use super::device::{carry, piece, Port, UD};
use super::rig::entry;
use crate::rdma::wqe::op;

/// 224.1.2.3.
const GROUP: u64 = 0xe001_0203;
const GROUP_MAC: u64 = 0x0100_5e01_0203;
const QKEY: u64 = 0x1234;
/// The ARP entry and the address handle of the group.
const NUMBER: u64 = 3;

/// QP 5 of the first port sends with `sender`'s VLAN tag to the group, of
/// which QP 6 of the second port is a member, with `member`'s.
fn ports(sender: Option<u64>, member: Option<u64>) -> (Port, Port) {
    let (mut a, mut b) = (Port::new(1, 2, UD, 5, 0), Port::new(2, 1, UD, 6, 0));
    let arp = 1 << 42 | 0x0f << 32 | NUMBER;
    a.driver.ok([0, 0, GROUP_MAC, arp, 0, 0, 0, 0]);
    let insert = u64::from(sender.is_some()) << 60;
    a.driver.ok([
        0x0200_0000_0001_0000,
        3 << 48 | sender.unwrap_or(0),
        NUMBER << 48 | 64 << 32,
        1 << 62 | 1 << 59 | 0x1c << 32 | insert | NUMBER,
        GROUP,
        0,
        0x0a00_0001,
        0,
    ]);
    let context = b.driver.alloc(64, 64);
    b.driver.put(context, &[4791 << 32 | 1 << 31 | 6]);
    let valid = u64::from(member.is_some()) << 59;
    b.driver.ok([
        GROUP_MAC,
        0,
        member.unwrap_or(0) << 32 | 1,
        1 << 60 | 0x26 << 32 | valid | 2,
        context,
        0,
        GROUP,
        0,
    ]);
    (a, b)
}

/// Sends one datagram; whether the member got it.
fn arrives(a: &mut Port, b: &mut Port) -> bool {
    b.receive(0, 200);
    let to = 0xff_ffff << 32 | QKEY;
    a.post(&entry(op::SEND, &[piece(0, 64)], None, NUMBER as u32, to));
    a.ring();
    carry(a, b);
    b.poll().is_some()
}

#[test]
fn a_priority_tag_is_no_vlan() {
    for (sender, member, expected) in [
        (None, None, true),
        (Some(0x6000), None, true),
        (None, Some(0), true),
        (Some(0x6000), Some(0), true),
        (Some(0x6005), Some(5), true),
        (Some(0x6005), None, false),
        (Some(0x6000), Some(5), false),
    ] {
        let (mut a, mut b) = ports(sender, member);
        let what = format!("{sender:x?} to {member:x?}");
        assert_eq!(arrives(&mut a, &mut b), expected, "{what}");
        assert_eq!(a.driver.violations(), Vec::<String>::new());
        assert_eq!(b.driver.violations(), Vec::<String>::new());
    }
}

#[test]
fn a_member_counts_in_its_statistics_instance() {
    let (mut a, mut b) = ports(None, None);
    b.use_second_instance(6, UD, b.rings);
    assert!(arrives(&mut a, &mut b));
    // IPv4 packets to groups, UDP packets.
    for offset in [48, 224] {
        assert_eq!(b.instance_counter(0, offset), 0);
        assert_eq!(b.instance_counter(1, offset), 1);
    }
    assert_eq!(b.driver.violations(), Vec::<String>::new());
}
