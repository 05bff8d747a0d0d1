// SPDX-License-Identifier: GPL-2.0
//! Each operation in each size around the packet size, nothing going wrong.
use super::rig::*;
use crate::rdma::packet::{parse, Opcode};
use crate::rdma::transport::*;
use crate::rdma::wqe::op;

fn sizes(mtu: u32) -> Vec<u32> {
    let mut sizes = vec![0, 1, 2, 3, 4, 5, 7, 8, 9, 255, 256, 257];
    for n in 1..4 {
        sizes.extend([n * mtu - 1, n * mtu, n * mtu + 1]);
    }
    sizes.push(50 * mtu + 17);
    sizes
}

/// `len` bytes at `at`, in three uneven fragments.
fn split(at: u64, len: u32) -> Vec<(u64, u32, u32)> {
    let (first, second) = (len / 7, len / 3);
    vec![
        piece(at, first),
        piece(at + 0x40_0000 / 8, second),
        piece(at + 0x40_0000 / 4, len - first - second),
    ]
}

fn joined(node: &Node, at: u64, len: u32) -> Vec<u8> {
    split(at, len)
        .into_iter()
        .flat_map(|(address, len, _)| node.data(address - DATA, len as usize).to_vec())
        .collect()
}

#[test]
fn send_and_receive_all_sizes() {
    for mtu in [256, 512, 1024, 2048, 4096] {
        let mut pair = Pair::connected(Service::Rc, mtu);
        pair.a.fill(0, 3 << 20, u64::from(mtu));
        for size in sizes(mtu.into()) {
            let receive = pair.b.post_receive(&split(0x1000, size + 9));
            let index = pair.a.post(&send(&split(0x200, size)));
            pair.a.ring();
            pair.settle();
            let sent = pair.a.take_completions();
            let received = pair.b.take_completions();
            assert_eq!(sent.len(), 1, "size {size}");
            assert_eq!((sent[0].wqe_index, sent[0].opcode), (index, op::SEND));
            assert!(sent[0].send_queue && sent[0].error.is_none());
            assert_eq!(received.len(), 1, "size {size}");
            assert_eq!((received[0].wqe_index, received[0].length), (receive, size));
            assert!(!received[0].send_queue && !received[0].solicited);
            let got = joined(&pair.b, 0x1000, size + 9);
            assert_eq!(
                got[..size as usize],
                joined(&pair.a, 0x200, size),
                "size {size}"
            );
        }
        pair.assert_clean();
    }
}

#[test]
fn write_and_read_all_sizes() {
    for mtu in [256, 1024, 4096] {
        let mut pair = Pair::connected(Service::Rc, mtu);
        pair.a.fill(0, 3 << 20, 77);
        for size in sizes(mtu.into()) {
            pair.a.post(&write(&split(0x333, size), 0x20_0001));
            pair.a.post(&read(&[piece(0x30_0000, size)], 0x20_0001));
            pair.a.ring();
            pair.settle();
            let done = pair.a.take_completions();
            let ops: Vec<_> = done.iter().map(|c| (c.opcode, c.length)).collect();
            assert_eq!(ops, [(op::WRITE, size), (op::READ, size)]);
            let want = joined(&pair.a, 0x333, size);
            assert_eq!(pair.b.data(0x20_0001, size as usize), want);
            assert_eq!(pair.a.data(0x30_0000, size as usize), want);
            assert!(pair.b.take_completions().is_empty());
        }
        pair.assert_clean();
    }
}

#[test]
fn immediate_invalidate_and_solicited() {
    let mut pair = Pair::rc();
    let window = 0x77_01;
    pair.b.device.regions.insert(
        window,
        Region {
            start: DATA,
            len: 4096,
            rights: 0xf,
        },
    );
    for _ in 0..4 {
        pair.b.post_receive(&[piece(0, 4096)]);
    }
    pair.a
        .post(&entry(op::SEND, &[piece(0, 2000)], Some(7), 0, 0));
    pair.a
        .post(&entry(op::SEND_SOL, &[piece(0, 10)], None, 0, 0));
    pair.a
        .post(&entry(op::SEND_SOL_INV, &[piece(0, 1500)], None, window, 0));
    pair.a.post(&entry(
        op::WRITE_SOL,
        &[piece(0, 3000)],
        Some(0xdead_beef),
        ALL,
        DATA + 0x8000,
    ));
    pair.a.ring();
    pair.settle();
    let got = pair.b.take_completions();
    assert_eq!(got.len(), 4);
    assert_eq!(
        (got[0].imm, got[0].opcode, got[0].solicited),
        (Some(7), 0x03, false)
    );
    assert_eq!(
        (got[1].imm, got[1].opcode, got[1].solicited),
        (None, 0x04, true)
    );
    assert_eq!((got[2].invalidated, got[2].opcode), (Some(window), 0x16));
    assert!(!pair.b.device.regions.contains_key(&window));
    // The driver tells a WRITE by these opcodes.
    assert_eq!((got[3].imm, got[3].opcode), (Some(0xdead_beef), 0x09));
    assert_eq!((got[3].length, got[3].solicited), (3000, true));
    pair.a.post(&entry(op::WRITE, &[], Some(1), ALL, DATA));
    pair.b.post_receive(&[]);
    pair.a.ring();
    pair.settle();
    let got = pair.b.take_completions();
    assert_eq!(
        (got[0].imm, got[0].opcode, got[0].length),
        (Some(1), 0x0b, 0)
    );
    pair.assert_clean();
}

#[test]
fn inline_data_and_unsignaled_entries() {
    let mut pair = Pair::rc();
    let text = b"thirty-nine bytes of inline data, whole";
    assert_eq!(text.len(), 39);
    let mut quads = [0u64; 8];
    let mut raw = [0u8; 64];
    raw[8..16].copy_from_slice(&text[..8]);
    raw[32..63].copy_from_slice(&text[8..]);
    raw[63] = 0x80;
    for (quad, bytes) in quads.iter_mut().zip(raw.chunks(8)) {
        *quad = u64::from_le_bytes(bytes.try_into().unwrap());
    }
    quads[3] = 1 << 63 | 1 << 57 | 39 << 48 | u64::from(op::SEND) << 32;
    for round in 0..100 {
        pair.b.post_receive(&[piece(0, 64)]);
        pair.a.post(&quads);
        let last = round % 10 == 9;
        if last {
            pair.b.post_receive(&[]);
            pair.a.post(&send(&[]));
        }
        pair.a.ring();
        pair.settle();
        assert_eq!(pair.b.data(0, 39), text);
        // Only the signaled one completes.
        assert_eq!(pair.a.take_completions().len(), usize::from(last));
        assert_eq!(pair.b.take_completions().len(), 1 + usize::from(last));
    }
    pair.assert_clean();
}

#[test]
fn rings_wrap_and_the_tail_is_published() {
    let mut pair = Pair::rc();
    pair.a.fill(0, 4096, 3);
    for round in 0..1000u32 {
        // Two and one quanta: padding before each block's end.
        let one = pair.a.post(&send(&[piece(0, 5), piece(9, 1 + round % 50)]));
        assert!(one % 8 <= 6);
        pair.b.post_receive(&[piece(0x100, 100)]);
        pair.a.ring();
        pair.settle();
        assert_eq!(pair.a.take_completions()[0].wqe_index, one);
        let got = pair.b.take_completions();
        assert_eq!(got[0].wqe_index, round * 2 % RQ_QUANTA);
        assert_eq!(got[0].length, 6 + round % 50);
        assert_eq!(pair.a.device.tail, (one + 2) % SQ_QUANTA);
    }
    pair.assert_clean();
}

#[test]
fn reads_are_limited_to_ord_and_fences_hold() {
    let mut pair = Pair::rc();
    pair.a.qp.context.ord = 2;
    pair.b.fill(0, 0x10000, 9);
    for n in 0..8 {
        pair.a
            .post(&read(&[piece(0x10000 + n * 0x1000, 0x1000)], n * 0x1000));
    }
    // The fenced WRITE carries what the READs bring.
    pair.a
        .post(&with(write(&[piece(0x10000, 0x8000)], 0x20000), READ_FENCE));
    pair.a.ring();
    let asked = pair
        .a
        .device
        .out
        .iter()
        .filter(|f| parse(f, true).unwrap().bth.opcode == Opcode::READ_REQUEST);
    assert_eq!(asked.count(), 2);
    assert_eq!(pair.a.device.out.len(), 2);
    pair.settle();
    assert_eq!(pair.a.take_completions().len(), 9);
    assert_eq!(pair.b.data(0x20000, 0x8000), pair.b.data(0, 0x8000));
    pair.assert_clean();
}

#[test]
fn fast_register_then_use_then_invalidate() {
    let mut pair = Pair::rc();
    let stag = 0x0042_4207_u32;
    let register = |stag: u32| {
        vec![
            DATA + 0x2000,
            DATA & !0xfff,
            0x1000,
            3 << 62
                | 1 << 61
                | 1 << 53
                | 0xf << 48
                | u64::from(op::FAST_REGISTER) << 32
                | u64::from(stag),
        ]
    };
    let invalidate = vec![
        0,
        u64::from(stag),
        0,
        3 << 62 | 1 << 61 | u64::from(op::LOCAL_INV) << 32,
    ];
    pair.b.post_receive(&[piece(0x2000, 0x1000)]);
    pair.b.post_receive(&[piece(0x2000, 0x1000)]);
    pair.a.post(&register(stag));
    pair.a.post(&send(&[(DATA + 0x2000, 0x1000, stag)]));
    pair.a.post(&invalidate);
    pair.a.post(&register(stag));
    pair.a.post(&send(&[(DATA + 0x2000, 0x800, stag)]));
    pair.a.ring();
    pair.settle();
    let ops: Vec<_> = pair.a.take_completions().iter().map(|c| c.opcode).collect();
    assert_eq!(ops, [9, 3, 10, 9, 3]);
    pair.assert_clean();
}

#[test]
fn both_directions_at_once() {
    let mut pair = Pair::rc();
    for node in [&mut pair.a, &mut pair.b] {
        node.fill(0, 0x10000, 1);
        for _ in 0..20 {
            node.post_receive(&[piece(0x20000, 0x10000)]);
        }
    }
    for n in 0..20 {
        for node in [&mut pair.a, &mut pair.b] {
            node.post(&send(&[piece(0, 3000 + n)]));
            node.post(&read(&[piece(0x40000, 5000)], 0));
            node.ring();
        }
    }
    pair.settle();
    assert_eq!(pair.a.take_completions().len(), 60);
    assert_eq!(pair.b.take_completions().len(), 60);
    pair.assert_clean();
}

#[test]
fn drained_queue_says_so_and_goes_on() {
    let mut pair = Pair::rc();
    pair.b.post_receive(&[piece(0, 64)]);
    pair.b.post_receive(&[piece(0, 64)]);
    pair.a.post(&send(&[piece(0, 64)]));
    pair.a.ring();
    pair.a.modify(State::Drained);
    // The one under way is finished first.
    assert_eq!(pair.a.device.events, []);
    pair.settle();
    let event = pair.a.device.events.pop().unwrap();
    assert_eq!(event.code, events::code::SUSPEND_COMPLETE);
    assert_eq!(pair.a.take_completions().len(), 1);
    pair.a.post(&send(&[piece(0, 64)]));
    pair.a.ring();
    pair.settle();
    assert!(pair.a.take_completions().is_empty());
    pair.a.modify(State::ReadyToSend);
    pair.settle();
    assert_eq!(pair.a.take_completions().len(), 1);
    assert_eq!(pair.b.take_completions().len(), 2);
    pair.assert_clean();
}

#[test]
fn suspended_queue_stands_still() {
    let mut pair = Pair::rc();
    pair.b.post_receive(&[piece(0, 64)]);
    pair.a.qp.suspend(&mut pair.a.device);
    assert_eq!(pair.a.device.events.pop().unwrap().code, 0x900);
    pair.a.post(&send(&[piece(0, 64)]));
    pair.a.ring();
    pair.settle();
    assert!(pair.log.is_empty());
    pair.a.qp.resume(&mut pair.a.device);
    pair.settle();
    assert_eq!(pair.a.take_completions().len(), 1);
    pair.assert_clean();
}

#[test]
fn frames_keep_to_the_path_and_the_window() {
    let mut pair = Pair::rc();
    pair.a.qp.context.cwnd = 64;
    pair.a.qp.context.vlan = Some(0x6007);
    pair.a.post(&write(&[piece(0, 200 * 1024)], 0));
    pair.a.ring();
    assert_eq!(pair.a.device.out.len(), 64);
    for frame in &pair.a.device.out {
        let packet = parse(frame, true).unwrap();
        assert_eq!(packet.path.vlan, Some(0x6007));
        assert_eq!((packet.path.hop_limit, packet.path.traffic_class), (64, 2));
        assert_eq!((packet.path.src_port, packet.bth.pkey), (0xc001, 0xffff));
        assert_eq!((packet.path.src_mac, packet.path.dst_mac), (mac(1), mac(2)));
    }
    pair.settle();
    assert_eq!(pair.a.take_completions().len(), 1);
    pair.assert_clean();
}

#[test]
fn congestion_is_notified_not_too_often() {
    let mut pair = Pair::rc();
    pair.a.qp.context.tos = 3;
    pair.a.post(&write(&[piece(0, 20 * 1024)], 0));
    pair.a.ring();
    pair.settle();
    assert_eq!(pair.b.device.counter(Counter::CongestionMarked), 20);
    assert_eq!(pair.b.device.counter(Counter::CnpSent), 1);
    assert_eq!(pair.a.device.counter(Counter::CnpReceived), 1);
    let cnp = pair
        .log
        .iter()
        .filter_map(|f| parse(f, true).ok())
        .find(|p| p.bth.opcode == Opcode::CNP)
        .unwrap();
    assert!(cnp.bth.becn && cnp.bth.dest_qp == 17 && cnp.payload == [0; 16]);
    pair.assert_clean();
}
