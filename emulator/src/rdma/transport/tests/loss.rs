// SPDX-License-Identifier: GPL-2.0
//! A bad wire: everything still arrives once and in order.
use super::rig::*;
use crate::rdma::packet::{parse, Opcode};
use crate::rdma::transport::*;
use crate::rdma::wqe::op;

/// Loses the `n`-th frame that `which` picks.
fn lose_nth(n: usize, which: impl Fn(bool, Opcode) -> bool + 'static) -> Judge {
    let mut seen = 0;
    Box::new(move |from_a, frame| {
        let opcode = parse(frame, true).unwrap().bth.opcode;
        if !which(from_a, opcode) {
            return Fate::Pass;
        }
        seen += 1;
        if seen == n + 1 {
            Fate::Lose
        } else {
            Fate::Pass
        }
    })
}

#[test]
fn each_single_loss_is_made_good() {
    for n in 0..60 {
        for from_a in [true, false] {
            let mut pair = Pair::rc();
            pair.a.fill(0, 0x10000, 5);
            pair.b.fill(0x40000, 0x10000, 6);
            pair.fate = lose_nth(n, move |a, _| a == from_a);
            pair.b.post_receive(&[piece(0x10000, 0x10000)]);
            pair.a.post(&send(&[piece(0, 9000)]));
            pair.a.post(&read(&[piece(0x30000, 20000)], 0x40000));
            pair.a.post(&write(&[piece(0x1000, 7000)], 0x60000));
            pair.b.post_receive(&[piece(0x20000, 0x10000)]);
            pair.a
                .post(&entry(op::SEND, &[piece(0x2000, 3000)], Some(1), 0, 0));
            pair.a.ring();
            pair.run();
            pair.assert_clean();
            let ops: Vec<_> = pair.a.take_completions().iter().map(|c| c.opcode).collect();
            assert_eq!(ops, [3, 1, 0, 3], "loss of {n}, from a: {from_a}");
            let lens: Vec<_> = pair.b.take_completions().iter().map(|c| c.length).collect();
            assert_eq!(lens, [9000, 3000]);
            assert_eq!(pair.b.data(0x10000, 9000), pair.a.data(0, 9000));
            assert_eq!(pair.a.data(0x30000, 20000), pair.b.data(0x40000, 20000));
            assert_eq!(pair.b.data(0x60000, 7000), pair.a.data(0x1000, 7000));
            assert_eq!(pair.b.data(0x20000, 3000), pair.a.data(0x2000, 3000));
        }
    }
}

#[test]
fn lost_request_costs_one_nak() {
    let mut pair = Pair::rc();
    pair.fate = lose_nth(3, |a, _| a);
    pair.a.post(&write(&[piece(0, 10 * 1024)], 0));
    pair.a.ring();
    pair.settle();
    // No timer was needed.
    assert_eq!(pair.a.take_completions().len(), 1);
    assert_eq!(pair.b.device.counter(Counter::SequenceNaksSent), 1);
    assert_eq!(pair.a.device.counter(Counter::SequenceNaksReceived), 1);
    assert_eq!(pair.a.device.counter(Counter::Retransmits), 7);
    pair.assert_clean();
}

#[test]
fn lost_acknowledge_costs_one_timeout_and_no_second_delivery() {
    let mut pair = Pair::rc();
    pair.fate = lose_nth(0, |a, _| !a);
    pair.b.post_receive(&[piece(0, 100)]);
    pair.a.post(&send(&[piece(0, 100)]));
    pair.a.ring();
    pair.settle();
    assert!(pair.a.take_completions().is_empty());
    assert_eq!(pair.b.take_completions().len(), 1);
    pair.run();
    assert_eq!(pair.now, 5_000_000);
    assert_eq!(pair.a.take_completions().len(), 1);
    assert!(pair.b.take_completions().is_empty());
    assert_eq!(pair.b.device.counter(Counter::Duplicates), 1);
    pair.assert_clean();
}

#[test]
fn read_goes_on_where_it_broke() {
    let mut pair = Pair::rc();
    pair.b.fill(0, 0x10000, 8);
    pair.fate = lose_nth(5, |a, _| !a);
    pair.a.post(&read(&[piece(0x10000, 20 * 1024)], 0));
    pair.a.ring();
    pair.settle();
    assert_eq!(pair.a.take_completions().len(), 1);
    assert_eq!(pair.a.data(0x10000, 20 * 1024), pair.b.data(0, 20 * 1024));
    let requests: Vec<_> = pair
        .log
        .iter()
        .filter_map(|f| parse(f, true).unwrap().ext.reth)
        .collect();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[1].address, DATA + 5 * 1024);
    assert_eq!(requests[1].length, 15 * 1024);
    pair.assert_clean();
}

#[test]
fn duplicate_read_is_answered_again() {
    let mut pair = Pair::rc();
    pair.b.fill(0, 0x1000, 8);
    // All of the first answer is lost.
    let mut left = 3;
    pair.fate = Box::new(move |from_a, _| {
        if !from_a && left > 0 {
            left -= 1;
            return Fate::Lose;
        }
        Fate::Pass
    });
    pair.a.post(&read(&[piece(0x10000, 3000)], 0));
    pair.a.ring();
    pair.run();
    assert_eq!(pair.a.take_completions().len(), 1);
    assert_eq!(pair.a.data(0x10000, 3000), pair.b.data(0, 3000));
    assert_eq!(pair.b.device.counter(Counter::Duplicates), 1);
    pair.assert_clean();
}

#[test]
fn a_local_operation_is_done_once_though_sending_goes_back() {
    const FAST: u64 = 0x7701;
    let mut pair = Pair::rc();
    pair.a.fill(0, 4096, 3);
    pair.fate = lose_nth(0, |a, _| a);
    pair.b.post_receive(&[piece(0x5000, 100)]);
    pair.b.post_receive(&[piece(0x6000, 100)]);
    pair.a.post(&send(&[piece(0, 100)]));
    // All rights, by virtual address.
    let header = 3 << 62 | 1 << 53 | 0xf << 48 | u64::from(op::FAST_REGISTER) << 32;
    pair.a.post(&[DATA, 0, 4096, header | FAST]);
    pair.a.post(&send(&[(DATA + 50, 100, FAST as u32)]));
    pair.a.ring();
    pair.settle();
    pair.assert_clean();
    let ops: Vec<_> = pair.a.take_completions().iter().map(|c| c.opcode).collect();
    assert_eq!(ops, [op::SEND, op::FAST_REGISTER, op::SEND]);
    assert_eq!(pair.b.data(0x5000, 100), pair.a.data(0, 100));
    assert_eq!(pair.b.data(0x6000, 100), pair.a.data(50, 100));
}

#[test]
fn acknowledge_behind_a_lost_read_does_not_complete_it() {
    let mut pair = Pair::rc();
    pair.b.fill(0, 0x1000, 8);
    // The READ's only response is lost, the SEND's acknowledge arrives.
    pair.fate = lose_nth(0, |_, opcode| opcode == Opcode::READ_RESPONSE_ONLY);
    pair.b.post_receive(&[piece(0x5000, 100)]);
    pair.a.post(&read(&[piece(0x10000, 100)], 0));
    pair.a.post(&send(&[piece(0, 100)]));
    pair.a.ring();
    pair.settle();
    let ops: Vec<_> = pair.a.take_completions().iter().map(|c| c.opcode).collect();
    assert_eq!(ops, [1, 3]);
    assert_eq!(pair.a.data(0x10000, 100), pair.b.data(0, 100));
    assert_eq!(pair.b.take_completions().len(), 1);
    pair.assert_clean();
}

/// One run on a wire that does everything bad at `rate` per thousand.
fn bad_wire(seed: u64, rate: u64, mtu: u16) {
    let mut pair = Pair::connected(Service::Rc, mtu);
    for node in [&mut pair.a, &mut pair.b] {
        // The retry count is about answers that never come, not about luck.
        node.qp.context.retry_limit = 60;
        node.modify(State::Idle);
        node.modify(State::ReadyToReceive);
        node.modify(State::ReadyToSend);
        node.fill(0, 1 << 20, seed);
    }
    let mut random = Random(seed);
    let mut wire = Random(seed ^ 0xffff);
    pair.fate = Box::new(move |_, _| {
        if wire.below(1000) >= rate {
            return Fate::Pass;
        }
        match wire.below(4) {
            0 => Fate::Lose,
            1 => Fate::Twice,
            2 => Fate::Late,
            _ => Fate::Corrupt,
        }
    });
    let mut b_messages = vec![];
    for round in 0..12 {
        let mut sent = vec![];
        let mut expect = vec![];
        let mut reads = vec![];
        for _ in 0..6 {
            let len = match random.below(3) {
                0 => random.below(20),
                1 => random.below(u64::from(mtu) * 2),
                _ => random.below(u64::from(mtu) * 20),
            } as u32;
            let from = random.below(0x80000);
            match random.below(4) {
                0 | 1 => {
                    let slot = 0x10_0000 + b_messages.len() as u64 % 16 * 0x2_0000;
                    b_messages.push(slot);
                    pair.b.post_receive(&[piece(slot, 0x2_0000)]);
                    pair.a.post(&send(&[piece(from, len)]));
                    sent.push((slot, from, len));
                    expect.push(op::SEND);
                }
                2 => {
                    pair.a.post(&write(&[piece(from, len)], 0x40_0000 + from));
                    sent.push((0x40_0000 + from, from, len));
                    expect.push(op::WRITE);
                }
                _ => {
                    let to = 0x30_0000 + reads.len() as u64 * 0x2_0000;
                    pair.a.post(&read(&[piece(to, len)], from));
                    reads.push((to, from, len));
                    expect.push(op::READ);
                }
            }
        }
        pair.a.ring();
        pair.run();
        pair.assert_clean();
        let ops: Vec<_> = pair.a.take_completions().iter().map(|c| c.opcode).collect();
        assert_eq!(ops, expect, "seed {seed} round {round}");
        for (to, from, len) in &sent {
            assert_eq!(
                pair.b.data(*to, *len as usize),
                pair.a.data(*from, *len as usize)
            );
        }
        for (to, from, len) in &reads {
            assert_eq!(
                pair.a.data(*to, *len as usize),
                pair.b.data(*from, *len as usize)
            );
        }
        let lens: Vec<_> = pair.b.take_completions().iter().map(|c| c.length).collect();
        let want: Vec<_> = sent
            .iter()
            .filter(|(to, ..)| *to < 0x40_0000)
            .map(|(_, _, len)| *len)
            .collect();
        assert_eq!(lens, want);
    }
}

#[test]
fn bad_wires() {
    for seed in 1..20 {
        bad_wire(seed, 10, 1024);
        bad_wire(seed, 50, 256);
        bad_wire(seed, 150, 4096);
    }
}

#[test]
fn sequence_numbers_wrap() {
    let mut pair = Pair::rc();
    // The rig begins three packets in front of the wrap.
    assert_eq!(pair.a.qp.context.psn_next, 0xff_fffd);
    pair.a.fill(0, 0x10000, 12);
    pair.fate = lose_nth(4, |a, _| a);
    pair.a.post(&write(&[piece(0, 10 * 1024)], 0x1_0000));
    pair.a.post(&read(&[piece(0x2_0000, 10 * 1024)], 0x1_0000));
    pair.a.ring();
    pair.settle();
    assert_eq!(pair.a.take_completions().len(), 2);
    assert_eq!(pair.a.data(0x2_0000, 10 * 1024), pair.a.data(0, 10 * 1024));
    pair.assert_clean();
}

#[test]
fn duplicate_in_the_middle_of_a_message() {
    let mut pair = Pair::rc();
    pair.a.post(&write(&[piece(0, 10)], 0));
    pair.a.post(&write(&[piece(0, 3000)], 0x5000));
    pair.a.ring();
    let frames = std::mem::take(&mut pair.a.device.out);
    assert_eq!(frames.len(), 4);
    for n in [0, 1, 2, 0] {
        let packet = parse(&frames[n], true).unwrap();
        pair.b.qp.receive(&mut pair.b.device, &packet);
    }
    let answers: Vec<_> = pair
        .b
        .device
        .out
        .iter()
        .map(|frame| parse(frame, true).unwrap().bth.psn)
        .collect();
    let first = parse(&frames[0], true).unwrap().bth.psn;
    // The third packet asked for an answer (one in 64 does); the duplicate is
    // answered with the last complete message.
    assert_eq!(answers, [first, first + 2, first]);
}

#[test]
fn lost_acknowledges_of_half_a_message_do_not_end_it() {
    // A message that no window holds. The answers to its first part are lost,
    // and some of those to what is sent again, which the peer has had.
    const LEN: usize = 500_000;
    let mut pair = Pair::connected(Service::Rc, 256);
    pair.a.fill(0, LEN, 7);
    let mut left = 20;
    pair.fate = Box::new(move |from_a, _| {
        if !from_a && left > 0 {
            left -= 1;
            return Fate::Lose;
        }
        Fate::Pass
    });
    pair.a.post(&write(&[piece(0, LEN as u32)], 0x20_0000));
    pair.a.ring();
    pair.run();
    pair.assert_clean();
    assert_eq!(pair.a.take_completions().len(), 1);
    assert_eq!(pair.b.data(0x20_0000, LEN), pair.a.data(0, LEN));
}

#[test]
fn a_peer_that_is_behind_is_not_asked_for_everything_again() {
    // Its answers to earlier requests come first: the more there are, the later comes the one that
    // is waited for.
    const READS: usize = 24;
    let mut pair = Pair::rc();
    pair.a.qp.context.ord = READS as u32;
    pair.fate = Box::new(|from_a, _| if from_a { Fate::Pass } else { Fate::Lose });
    for _ in 0..READS {
        pair.a.post(&read(&[piece(0x30000, 0x4000)], 0x40000));
    }
    pair.a.ring();
    let mut requests = vec![];
    let mut counted = 0;
    while pair.a.device.events.is_empty() {
        pair.settle();
        let all = pair.log.iter().filter(|frame| {
            let opcode = parse(frame, true).unwrap().bth.opcode;
            opcode == Opcode::READ_REQUEST
        });
        let all = all.count();
        requests.push(all - counted);
        counted = all;
        let Some(at) = pair.a.qp.deadline() else {
            break;
        };
        pair.now = at;
        pair.a.device.now = at;
        pair.a.qp.poll(&mut pair.a.device);
    }
    assert_eq!(requests, [24, 12, 6, 3, 2, 1, 1, 1]);
}
