// SPDX-License-Identifier: GPL-2.0
use super::rig::*;
use crate::rdma::transport::host::AddressHandle;
use crate::rdma::transport::*;
use crate::rdma::wqe::op;

use std::net::{IpAddr, Ipv6Addr};

const QKEY: u32 = 0x1111_1111;

fn datagram(pieces: &[(u64, u32, u32)], imm: Option<u32>, qkey: u32) -> Vec<u64> {
    let to = 18u64 << 32 | u64::from(qkey);
    entry(op::SEND, pieces, imm, 5, to)
}

fn pair() -> Pair {
    let mut pair = Pair::connected(Service::Ud, 1024);
    let handle = AddressHandle {
        pd: 5,
        path: datagram_path(1, 2),
    };
    pair.a.device.handles.insert(5, handle);
    pair.a.fill(0, 4096, 4);
    pair
}

#[test]
fn datagram_with_header_in_front() {
    let mut pair = pair();
    pair.b
        .post_receive(&[piece(0, 20), piece(0x100, 30), piece(0x200, 2000)]);
    pair.a
        .post(&datagram(&[piece(0, 1000)], Some(0x0a0b), QKEY));
    pair.a.ring();
    pair.settle();
    assert_eq!(pair.a.take_completions().len(), 1);
    let got = pair.b.take_completions();
    assert_eq!(
        (got[0].length, got[0].imm, got[0].opcode),
        (1040, Some(0x0a0b), 0x25)
    );
    let source = got[0].source.unwrap();
    assert_eq!(
        (source.qp, source.mac, source.vlan),
        (17, Some(mac(1)), None)
    );
    assert_eq!(source.ip, IpAddr::from([10, 0, 0, 1]));
    assert_eq!(pair.b.data(0, 20), [0; 20]);
    // IPv4 header by hand: 20 + 8 + 12 + 8 + 4 + 1000 + 4 = 1056 bytes.
    assert_eq!(
        pair.b.data(0x100, 20),
        [0x45, 0, 4, 0x20, 0, 0, 0x40, 0, 63, 17, 0x23, 0xcb, 10, 0, 0, 1, 10, 0, 0, 2]
    );
    assert_eq!(pair.b.data(0x114, 10), pair.a.data(0, 10));
    assert_eq!(pair.b.data(0x200, 990), pair.a.data(10, 990));
    pair.assert_clean();
}

/// A pair after a datagram of nine bytes by `path`.
fn sent_over(path: crate::rdma::packet::Path) -> Pair {
    let mut pair = pair();
    pair.a
        .device
        .handles
        .insert(5, AddressHandle { pd: 5, path });
    pair.b.post_receive(&[piece(0, 100)]);
    pair.a.post(&datagram(&[piece(0, 9)], None, QKEY));
    pair.a.ring();
    pair.settle();
    pair
}

#[test]
fn ipv6_datagram_has_its_header() {
    let path = crate::rdma::packet::Path {
        src_ip: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1).into(),
        dst_ip: Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2).into(),
        traffic_class: 0x20,
        flow_label: 0x12345,
        vlan: Some(5),
        ..datagram_path(1, 2)
    };
    let mut pair = sent_over(path);
    let got = pair.b.take_completions();
    assert_eq!((got[0].length, got[0].opcode), (49, 0x24));
    assert_eq!(got[0].source.unwrap().vlan, Some(5));
    // Payload length: 8 + 12 + 8 + 9 + 3 + 4 = 44.
    assert_eq!(pair.b.data(0, 8), [0x62, 0x01, 0x23, 0x45, 0, 44, 17, 63]);
    assert_eq!(pair.b.data(8, 2), [0xfd, 0]);
    assert_eq!(pair.b.data(39, 1), [2]);
    assert_eq!(pair.b.data(40, 9), pair.a.data(0, 9));
}

#[test]
fn congestion_on_the_way_to_a_group_is_not_notified() {
    for (dst_ip, notified) in [([10, 0, 0, 2], 1), ([224, 1, 2, 3], 0)] {
        let path = crate::rdma::packet::Path {
            dst_ip: IpAddr::from(dst_ip),
            traffic_class: 3,
            ..datagram_path(1, 2)
        };
        let mut pair = sent_over(path);
        assert_eq!(pair.b.take_completions().len(), 1);
        assert_eq!(pair.b.device.counter(Counter::CongestionMarked), 1);
        assert_eq!(pair.b.device.counter(Counter::CnpSent), notified);
    }
}

#[test]
fn keys_and_missing_receives_drop_quietly() {
    let mut pair = pair();
    pair.a.post(&datagram(&[piece(0, 10)], None, QKEY));
    pair.a.ring();
    pair.settle();
    assert_eq!(pair.b.device.counter(Counter::NoReceive), 1);
    pair.b.post_receive(&[piece(0, 100)]);
    pair.a.post(&datagram(&[piece(0, 10)], None, QKEY + 1));
    pair.a.ring();
    pair.settle();
    assert_eq!(pair.b.device.counter(Counter::BadQkey), 1);
    // The upper bit means the queue pair's own key.
    pair.a.post(&datagram(&[piece(0, 10)], None, 0x8000_0000));
    pair.a.ring();
    pair.settle();
    assert_eq!(pair.a.take_completions().len(), 3);
    assert_eq!(pair.b.take_completions().len(), 1);
    pair.assert_clean();
    pair.b.qp.context.pkey = 0x8001;
    pair.a.post(&datagram(&[piece(0, 10)], None, QKEY));
    pair.a.ring();
    pair.settle();
    assert_eq!(pair.b.device.counter(Counter::BadPkey), 1);
}

#[test]
fn what_a_datagram_queue_must_not() {
    for (quads, code) in [
        (datagram(&[piece(0, 1025)], None, QKEY), 0x132),
        (write(&[piece(0, 1)], 0), 0x20a),
        (read(&[piece(0, 1)], 0), 0x20a),
        (entry(op::SEND, &[piece(0, 1)], None, 6, 0), 0x406),
        // The handle of another protection domain.
        (entry(op::SEND, &[piece(0, 1)], None, 7, 0), 0x133),
    ] {
        let mut pair = pair();
        let path = datagram_path(1, 2);
        let foreign = AddressHandle { pd: 4, path };
        pair.a.device.handles.insert(7, foreign);
        let index = pair.a.post(&quads);
        pair.a.ring();
        pair.settle();
        assert_eq!(
            pair.a.device.events,
            [Event {
                code,
                source: Source::SendQueue,
                wqe_index: index
            }]
        );
        assert!(pair.a.take_completions().is_empty());
        assert!(pair.log.is_empty());
    }
}

#[test]
fn a_datagram_too_long_for_the_receive_is_dropped() {
    let mut pair = pair();
    let receive = pair.b.post_receive(&[piece(0, 49)]);
    for len in [10, 9] {
        pair.a.post(&datagram(&[piece(0, len)], None, QKEY));
    }
    pair.a.ring();
    pair.settle();
    pair.assert_clean();
    assert_eq!(pair.b.device.counter(Counter::Dropped), 1);
    // The second one finds the receive.
    let got = pair.b.take_completions();
    assert_eq!(got.len(), 1);
    assert_eq!((got[0].wqe_index, got[0].length), (receive, 49));
}

#[test]
fn a_receive_that_cannot_be_used_ends_the_receiver() {
    let mut pair = pair();
    let index = pair.b.post_receive(&[(DATA, 100, 0x99)]);
    pair.a.post(&datagram(&[piece(0, 10)], None, QKEY));
    pair.a.ring();
    pair.settle();
    assert_eq!(
        pair.b.device.events,
        [Event {
            code: 0x103,
            source: Source::ReceiveQueue,
            wqe_index: index
        }]
    );
}
