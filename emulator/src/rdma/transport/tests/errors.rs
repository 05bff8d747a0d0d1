// SPDX-License-Identifier: GPL-2.0
//! Each way to fail: the event that says so, what the peer is told, the flush.
use super::rig::*;
use crate::rdma::flush::{flush, FlushCodes, Flushed};
use crate::rdma::transport::*;
use crate::rdma::wqe::op;

fn sq(code: u16, wqe_index: u32) -> Event {
    Event {
        code,
        source: Source::SendQueue,
        wqe_index,
    }
}

/// Both codes as the driver's commands have them.
fn flush_both(node: &mut Node, minor: u16) -> Flushed {
    let codes = FlushCodes {
        sq: Some((1, minor)),
        rq: Some((1, 1)),
    };
    flush(&mut node.qp, &mut node.device, &codes)
}

#[test]
fn retries_are_exhausted() {
    let mut pair = Pair::rc();
    pair.fate = Box::new(|_, _| Fate::Lose);
    pair.b.post_receive(&[]);
    pair.a.post(&send(&[piece(0, 10)]));
    let second = pair.a.post(&send(&[piece(0, 10)]));
    pair.a.ring();
    pair.run();
    assert_eq!(pair.a.device.events, [sq(0x50a, 0)]);
    assert_eq!(pair.a.qp.state, State::Error);
    // 5 ms, doubled seven times.
    assert_eq!(pair.now, 5_000_000 * 255);
    assert_eq!(pair.log.len(), 2 * 8);
    assert!(pair.a.take_completions().is_empty());
    // The driver answers with the flush; only the first entry is completed.
    let flushed = flush_both(&mut pair.a, 8);
    assert_eq!((flushed.sq, flushed.rq), (true, false));
    let done = pair.a.take_completions();
    assert_eq!(done.len(), 1);
    assert_eq!((done[0].wqe_index, done[0].error), (0, Some((1, 8))));
    assert!(done[0].send_queue);
    assert_eq!(pair.a.device.tail, second + 1);
    assert_eq!(flush_both(&mut pair.a, 8), Flushed::default());
    // One posted later is found by another flush.
    pair.a.post(&send(&[]));
    pair.a.ring();
    assert!(pair.a.take_completions().is_empty());
    assert!(flush_both(&mut pair.a, 1).sq);
    assert_eq!(pair.a.take_completions()[0].wqe_index, second + 1);
}

#[test]
fn receiver_is_not_ready_until_it_is() {
    let mut pair = Pair::rc();
    pair.a.fill(0, 5000, 1);
    pair.a.post(&send(&[piece(0, 5000)]));
    pair.a.ring();
    pair.settle();
    assert_eq!(pair.b.device.counter(Counter::RnrNaksSent), 1);
    assert_eq!(pair.b.device.counter(Counter::SequenceNaksSent), 0);
    assert_eq!(pair.a.qp.deadline(), Some(20_480_000));
    pair.b.post_receive(&[piece(0, 5000)]);
    pair.run();
    assert_eq!(pair.a.take_completions().len(), 1);
    assert_eq!(pair.b.data(0, 5000), pair.a.data(0, 5000));
    pair.assert_clean();
}

#[test]
fn receiver_never_ready() {
    let mut pair = Pair::rc();
    pair.a.post(&send(&[piece(0, 10)]));
    pair.a.ring();
    pair.run();
    assert_eq!(pair.a.device.events, [sq(0x50f, 0)]);
    assert_eq!(pair.b.device.counter(Counter::RnrNaksSent), 7);
    assert_eq!(pair.b.qp.state, State::ReadyToSend);
    // Immediate data takes a receive entry too; nothing is written before.
    let mut pair = Pair::rc();
    pair.a.qp.context.rnr_limit = 0;
    pair.a.modify(State::Idle);
    pair.a.modify(State::ReadyToReceive);
    pair.a.modify(State::ReadyToSend);
    pair.a.fill(0, 10, 3);
    pair.a.post(&entry(
        op::WRITE,
        &[piece(0, 10)],
        Some(1),
        ALL,
        DATA + 0x500,
    ));
    pair.a.ring();
    pair.run();
    assert_eq!(pair.a.device.events, [sq(0x50f, 0)]);
    assert_eq!(pair.b.data(0x500, 10), [0; 10]);
}

#[test]
fn receiver_not_ready_for_ever_may_be_waited_for() {
    let mut pair = Pair::rc();
    pair.a.qp.context.rnr_limit = 7;
    pair.a.modify(State::Idle);
    pair.a.modify(State::ReadyToReceive);
    pair.a.modify(State::ReadyToSend);
    pair.a.post(&send(&[]));
    pair.a.ring();
    for _ in 0..50 {
        pair.settle();
        pair.now = pair.a.qp.deadline().unwrap();
    }
    pair.b.post_receive(&[]);
    pair.run();
    assert_eq!(pair.a.take_completions().len(), 1);
    pair.assert_clean();
}

#[test]
fn remote_access_is_refused() {
    let mut pair = Pair::rc();
    let read_only = 0x55_02;
    pair.b.device.regions.insert(
        read_only,
        Region {
            start: DATA,
            len: 100,
            rights: REMOTE_READ | LOCAL_READ,
        },
    );
    for (quads, code) in [
        (entry(op::WRITE, &[piece(0, 10)], None, 0x99, DATA), 0x103),
        (entry(op::WRITE, &[piece(0, 10)], None, 0, DATA), 0x103),
        (
            entry(op::WRITE, &[piece(0, 10)], None, read_only, DATA),
            0x109,
        ),
        (
            entry(op::READ, &[piece(0, 101)], None, read_only, DATA),
            0x108,
        ),
        (
            entry(op::READ, &[piece(0, 2)], None, read_only, u64::MAX),
            0x108,
        ),
    ] {
        let mut pair = Pair::rc();
        pair.b.device.regions.insert(
            read_only,
            Region {
                start: DATA,
                len: 100,
                rights: REMOTE_READ | LOCAL_READ,
            },
        );
        // What came before is completed, what comes behind is not.
        pair.a.post(&write(&[piece(0, 2000)], 0));
        let index = pair.a.post(&quads);
        pair.a.post(&write(&[piece(0, 2000)], 0x5000));
        pair.a.ring();
        pair.settle();
        assert_eq!(pair.a.device.events, [sq(0x20d, index)]);
        assert_eq!(pair.a.take_completions().len(), 1);
        let event = pair.b.device.events[0];
        assert_eq!((event.code, event.source), (code, Source::InboundRequest));
        assert_eq!(pair.b.qp.state, State::Error);
        assert!(flush_both(&mut pair.a, 3).sq);
        assert_eq!(pair.a.take_completions()[0].error, Some((1, 3)));
    }
    // Of no bytes, no key is asked.
    pair.a.post(&entry(op::WRITE, &[], None, 0x99, 0));
    pair.a.post(&entry(op::READ, &[], None, 0x99, 0));
    pair.a.ring();
    pair.settle();
    assert_eq!(pair.a.take_completions().len(), 2);
    pair.assert_clean();
}

#[test]
fn connection_without_the_right() {
    for (read_ok, write_ok) in [(false, true), (true, false)] {
        let mut pair = Pair::rc();
        pair.b.qp.context.read_ok = read_ok;
        pair.b.qp.context.write_ok = write_ok;
        if read_ok {
            pair.a.post(&write(&[piece(0, 10)], 0));
        } else {
            pair.a.post(&read(&[piece(0, 10)], 0));
        }
        pair.a.ring();
        pair.settle();
        assert_eq!(pair.a.device.events, [sq(0x20d, 0)]);
        assert_eq!(pair.b.device.events[0].code, 0x109);
    }
}

#[test]
fn message_longer_than_the_receive() {
    let mut pair = Pair::rc();
    let receive = pair.b.post_receive(&[piece(0, 1500)]);
    pair.b.post_receive(&[piece(0, 1500)]);
    pair.a.post(&send(&[piece(0, 3000)]));
    pair.a.ring();
    pair.settle();
    // The peer's request was invalid; the receiver's length was wrong.
    assert_eq!(pair.a.device.events, [sq(0x208, 0)]);
    assert_eq!(
        pair.b.device.events,
        [Event {
            code: 0x303,
            source: Source::ReceiveQueue,
            wqe_index: receive
        }]
    );
    let flushed = flush_both(&mut pair.b, 1);
    assert_eq!((flushed.sq, flushed.rq), (false, true));
    let done = pair.b.take_completions();
    assert_eq!((done.len(), done[0].wqe_index), (1, receive));
}

#[test]
fn local_keys_are_checked() {
    // To send from: the peer hears nothing.
    let mut pair = Pair::rc();
    pair.a.post(&write(&[piece(0, 10)], 0));
    let index = pair.a.post(&write(&[(DATA, 10, 0x99)], 0));
    pair.a.ring();
    pair.settle();
    assert_eq!(pair.a.take_completions().len(), 1);
    assert_eq!(pair.a.device.events, [sq(0x103, index)]);
    assert_eq!(pair.b.device.events, []);
    // To read into: the request is not even sent.
    let mut pair = Pair::rc();
    pair.a.post(&read(&[(DATA, 10, 0x99)], 0));
    pair.a.ring();
    assert_eq!(pair.a.device.events, [sq(0x103, 0)]);
    assert!(pair.a.device.out.is_empty());
    // To receive into: the peer is told that we failed.
    let mut pair = Pair::rc();
    pair.b.post_receive(&[(DATA, 100, 0x99)]);
    pair.a.post(&send(&[piece(0, 10)]));
    pair.a.ring();
    pair.settle();
    assert_eq!(pair.a.device.events, [sq(0x20e, 0)]);
    assert_eq!(pair.b.device.events[0].code, 0x103);
    assert_eq!(pair.b.device.events[0].source, Source::ReceiveQueue);
}

#[test]
fn bad_entries_are_violations() {
    let valid = 1u64 << 63;
    for (quads, code) in [
        (vec![0, valid, 0, valid | 0x3f << 32], 0x20a),
        (vec![0, valid, 0, valid | 3 << 32 | 1 << 56], 0x20b),
        (
            vec![0, valid, 0, valid | 3 << 32 | 2 << 38, 0, valid, 0, 0],
            0x20c,
        ),
        // Fourteen fragments, and 102 bytes of inline data.
        (send(&[piece(0, 1); 14]), 0x20b),
        (
            [0, 0, 0, valid | 1 << 57 | 102 << 48 | 3 << 32]
                .into_iter()
                .chain([0, 0, 0, valid].repeat(4))
                .collect(),
            0x20b,
        ),
    ] {
        let mut pair = Pair::rc();
        pair.a.post(&quads);
        pair.a.ring();
        pair.settle();
        assert_eq!(pair.a.device.events, [sq(code, 0)]);
        assert_eq!(pair.a.device.violations.len(), 1);
    }
    // Atomics are not offered: an error of the device, as for any opcode.
    let mut pair = Pair::rc();
    pair.a.post(&[0, valid, 0, valid | 0x11 << 32]);
    pair.a.ring();
    assert_eq!(pair.a.device.events, [sq(0x20a, 0)]);
    let mut pair = Pair::rc();
    pair.a.qp.context.ord = 0;
    pair.a.post(&read(&[piece(0, 1)], 0));
    pair.a.ring();
    assert_eq!(pair.a.device.events, [sq(0x205, 0)]);
}

#[test]
fn entries_do_not_cross_the_end_of_a_chunk() {
    let two = send(&[piece(0, 10), piece(10, 10)]);
    for (in_front, crosses) in [(6, false), (7, true), (8, false)] {
        let mut pair = Pair::rc();
        pair.b.post_receive(&[piece(0, 100)]);
        for _ in 0..in_front {
            pair.a.post(&write(&[piece(0, 1)], 0));
        }
        let index = pair.a.post_one(&two);
        pair.a.ring();
        pair.settle();
        if crosses {
            assert_eq!(pair.a.device.events, [sq(0x20b, index)]);
            assert_eq!(pair.a.device.violations.len(), 1);
            assert_eq!(pair.a.take_completions().len(), in_front);
        } else {
            pair.assert_clean();
            assert_eq!(pair.a.take_completions().len(), in_front + 1);
        }
    }
}

#[test]
fn peer_that_is_not_there() {
    let mut pair = Pair::rc();
    pair.a.device.neighbour = None;
    pair.a.post(&send(&[]));
    pair.a.ring();
    assert_eq!(pair.a.device.events, [sq(0x401, 0)]);
    // A queue pair in error does not answer.
    let mut pair = Pair::rc();
    pair.b.modify(State::Error);
    pair.a.post(&send(&[]));
    pair.a.ring();
    pair.run();
    assert_eq!(pair.a.device.events, [sq(0x50a, 0)]);
    assert_eq!(pair.b.device.counter(Counter::Dropped), 8);
}

#[test]
fn read_whose_region_goes_away() {
    let mut pair = Pair::rc();
    pair.a.post(&read(&[piece(0, 1 << 20)], 0));
    pair.a.ring();
    // The request has passed the check when the region is taken away; the
    // responses come in bursts.
    let request = pair.a.device.out.pop().unwrap();
    let packet = crate::rdma::packet::parse(&request, true).unwrap();
    pair.b.qp.receive(&mut pair.b.device, &packet);
    assert_eq!(pair.b.device.out.len(), 256);
    pair.b.device.regions.clear();
    pair.run();
    assert_eq!(pair.a.device.events, [sq(0x20d, 0)]);
    assert_eq!(pair.b.device.events[0].code, 0x103);
}

#[test]
fn a_long_read_is_answered_before_the_request_that_fails() {
    // More responses than are sent in one go.
    const LEN: u32 = 600 * 1024;
    let mut pair = Pair::rc();
    pair.b.fill(0, LEN as usize, 4);
    pair.a.post(&read(&[piece(0, LEN)], 0));
    pair.a
        .post(&entry(op::WRITE, &[piece(0, 10)], None, ALL + 1, DATA));
    pair.a.ring();
    pair.run();
    assert_eq!(pair.a.take_completions().len(), 1);
    assert_eq!(pair.a.data(0, LEN as usize), pair.b.data(0, LEN as usize));
    assert_eq!(pair.a.device.events, [sq(0x20d, 1)]);
    let refused = Event {
        code: 0x103,
        source: Source::InboundRequest,
        wqe_index: 0,
    };
    assert_eq!(pair.b.device.events, [refused]);
}
