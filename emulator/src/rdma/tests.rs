// SPDX-License-Identifier: GPL-2.0
//! The control half as a driver sees it.

use smallvec::smallvec;

use super::cq::{self, Cqe};
use super::fpm::Object;
use super::mr::{self, AccessError, Requester, Rights, Segment};
use super::qp::{self, QpState};
use super::testbench::{Driver, Queue};
use crate::faults::{Action, Point, Rule};

mod backing;
mod completion_events;

const RC: u64 = 3;

fn requester(pd: u32, privileged: bool) -> Requester {
    Requester {
        pd,
        qp: 5,
        privileged,
    }
}

#[test]
fn a_probe_and_removal_leave_no_violation() {
    let mut d = Driver::probed();
    assert_eq!(d.rdma.hmc.count(Object::Qp), 64);
    let vsi = 1u64 << 48;
    let delete = (0x2c << 32) | (2 << 52);
    for node in [2, 1, 0] {
        d.ok([0, 0, 0, delete | node, vsi, 0, 0, 0]);
    }
    d.ok([0, 0, 192, 0x1b << 32, 0, 0, 0, 0]);
    d.ok([0, 0, 128, 0x18 << 32, 0, 0, 0, 0]);
    // The control CQ: no completion, only the tail register.
    let ccq = d.ccq();
    assert!(d.polled(Driver::cq_command(0x05, 0, ccq)));
    for sd in 0..d.rdma.hmc.plan.as_ref().unwrap().sd_count() - 1 {
        assert!(d.set_sd(sd.into(), (512 << 2) | 2));
    }
    d.write_register(0x50_a100, 0);
    d.write_register(0x50_a080, 0);
    assert_eq!(d.read_register(0x50_a000), 0);
    assert_eq!(d.violations(), Vec::<String>::new());
    // And again.
    d.create_cqp();
}

#[test]
fn the_host_context_must_be_of_this_generation() {
    let mut d = Driver::new();
    let context = d.alloc(64, 64);
    let ring = d.alloc(4096, 512);
    d.put(context, &[0x500, ring, 1, 7, 2 << 16, 0, 0, 0]);
    d.write_register(0x50_a100, 0);
    d.write_register(0x50_a080, context as u32);
    assert_eq!(d.read_register(0x50_a000), 1 << 31);
    assert_eq!(d.read_register(0x50_a200), 0xffff_8106);
    assert_eq!(d.violations().len(), 1);
}

#[test]
fn commands_wrap_around_the_ring() {
    let mut d = Driver::probed();
    for _ in 0..200 {
        d.ok([0, 0, 0, 0x24 << 32, 0, 0, 0, 0]);
    }
    assert_eq!(d.violations(), Vec::<String>::new());
}

#[test]
fn an_entry_with_the_wrong_valid_bit_stops_the_queue() {
    let mut d = Driver::probed();
    d.post([0, 0, 0, (0x24 << 32) | (1 << 63), 0, 0, 0, 0]);
    assert!(d.poll_ccq().is_some());
    d.write_register(0x50_0800, 40);
    assert_eq!(d.poll_ccq(), None);
    assert!(
        d.violations()[0].contains("valid bit"),
        "{:?}",
        d.violations()
    );
}

#[test]
fn unknown_commands_and_reserved_bits_are_violations() {
    let mut d = Driver::probed();
    let reply = d.command([0, 0, 0, 0x3f << 32, 0, 0, 0, 0]);
    assert!(reply.error);
    assert_eq!(d.read_register(0x50_0880) >> 31, 1);
    d.ok([0, 0, 1, 0x24 << 32, 0, 0, 0, 0]);
    assert_eq!(d.read_register(0x50_0880) >> 31, 0);
    let text = d.violations();
    assert!(text[0].contains("0x3f is not implemented"), "{text:?}");
    assert!(
        text[1].contains("reserved bits 0x1 in quad word 2"),
        "{text:?}"
    );
}

#[test]
fn a_queue_pair_lives_and_dies() {
    let mut d = Driver::probed();
    d.create_cq(3, 64);
    let rings = d.create_qp(5, RC, 3, 6);
    d.connect_qp(5, RC, rings);
    assert_eq!(d.rdma.qps[&5].state, QpState::ReadyToSend);
    // Straight to the error state and flushed.
    assert!(!d.modify_qp(5, RC, 6, rings).error);
    assert!(!d.command(Driver::qp_command(0x02, 5, RC, 0, rings)).error);
    assert_eq!(d.violations(), Vec::<String>::new());
    let reply = d.command(Driver::qp_command(0x02, 5, RC, 0, rings));
    assert!(reply.error);
    assert!(d.violations()[0].contains("QP 5 does not exist"));
}

#[test]
fn illegal_transitions_are_refused() {
    let mut d = Driver::probed();
    d.create_cq(3, 64);
    let rings = d.create_qp(5, RC, 3, 6);
    let reply = d.modify_qp(5, RC, 2, rings);
    assert_eq!(
        (reply.error, reply.major, reply.minor),
        (true, 0xffff, 0x8002)
    );
    assert_eq!(d.rdma.qps[&5].state, QpState::Idle);
    assert_eq!(d.violations().len(), 1);
}

#[test]
fn a_device_error_races_with_a_modify_without_violation() {
    let mut d = Driver::probed();
    d.create_cq(3, 64);
    let rings = d.create_qp(5, RC, 3, 6);
    d.connect_qp(5, RC, rings);
    d.with(|rdma, cx| qp::to_error(rdma, cx, 5, 0x20d, super::aeq::Source::Sq, 4));
    let word = d.peek(d.aeq + 8);
    assert_eq!(word >> 63, 1);
    assert_eq!(word >> 34 & 0xfff, 0x20d);
    assert_eq!(word & 0x3ffff, 5);
    assert_eq!(d.bench.interrupts.messages(4), 1);
    d.write_register(0x50_2d00, 1);
    assert!(d.modify_qp(5, RC, 2, rings).error);
    assert!(!d.modify_qp(5, RC, 6, rings).error);
    assert_eq!(d.violations(), Vec::<String>::new());
}

#[test]
fn queue_pairs_need_their_number_memory_and_queues() {
    let mut d = Driver::probed();
    let queue = d.create_cq(3, 64);
    let rings = d.create_qp(5, RC, 3, 6);
    // Number out of range, number in use, CQ unknown, memory of a live object.
    assert!(d.command(Driver::qp_command(0x00, 64, RC, 1, rings)).error);
    assert!(d.command(Driver::qp_command(0x00, 5, RC, 1, rings)).error);
    d.put(rings.context, &Driver::context(rings, 4, 6));
    assert!(d.command(Driver::qp_command(0x00, 6, RC, 1, rings)).error);
    d.put(rings.context, &Driver::context(rings, 3, 6));
    assert!(d.command(Driver::qp_command(0x00, 6, RC, 1, rings)).error);
    // A CQ in use stays.
    assert!(d.command(Driver::cq_command(0x05, 3, queue)).error);
    let text = d.violations();
    assert_eq!(text.len(), 5, "{text:?}");
    assert!(text[0].contains("only 64 are committed"), "{text:?}");
    assert!(text[3].contains("held by the live QP 5"), "{text:?}");
    assert!(text[4].contains("QP 5 uses it"), "{text:?}");
}

#[test]
fn completions_wrap_with_alternating_valid_bits() {
    let mut d = Driver::probed();
    let queue = d.create_cq(3, 4);
    for round in 0..10u64 {
        let at = queue.ring + (round % 4) * 32;
        let entry = Cqe {
            qp_id: 5,
            wqe_index: round as u32,
            ..Cqe::default()
        };
        assert_eq!(d.with(|rdma, cx| cq::post(rdma, cx, 3, entry)), Ok(()));
        let header = d.peek(at + 24);
        assert_eq!(header >> 63, 1 - (round / 4) % 2);
        assert_eq!(header >> 32 & 0x7fff, round);
        d.put(queue.shadow, &[(round + 1) % 4]);
    }
    assert_eq!(d.violations(), Vec::<String>::new());
}

#[test]
fn a_full_queue_overflows_into_an_event() {
    let mut d = Driver::probed();
    d.create_cq(3, 4);
    let post = |d: &mut Driver| d.with(|rdma, cx| cq::post(rdma, cx, 3, Cqe::default()));
    for _ in 0..3 {
        assert_eq!(post(&mut d), Ok(()));
    }
    assert!(post(&mut d).is_err());
    let word = d.peek(d.aeq + 8);
    assert_eq!(
        (word >> 34 & 0xfff, word >> 50 & 0xf, word & 0x3ffff),
        (0x203, 2, 3)
    );
    assert!(post(&mut d).is_err());
}

#[test]
fn arming_fires_once_and_at_once_if_something_is_unseen() {
    let mut d = Driver::probed();
    let queue = d.create_cq(3, 16);
    let ceq = d.ceq0;
    let post = |d: &mut Driver| {
        d.with(|rdma, cx| cq::post(rdma, cx, 3, Cqe::default()))
            .unwrap()
    };
    d.arm(3, queue);
    assert_eq!(d.peek(ceq), 0);
    post(&mut d);
    assert_eq!(d.peek(ceq), (1 << 63) | 3);
    assert_eq!(d.bench.interrupts.messages(5), 1);
    post(&mut d);
    assert_eq!(d.peek(ceq + 8), 0);
    // One of two is consumed: arming finds the other.
    d.put(queue.shadow, &[1]);
    d.arm(3, queue);
    assert_eq!(d.peek(ceq + 8), (1 << 63) | 3);
    assert_eq!(d.violations(), Vec::<String>::new());
}

#[test]
fn a_resized_queue_goes_on_in_the_new_ring() {
    let mut d = Driver::probed();
    let old = d.create_cq(3, 4);
    let post = |d: &mut Driver| d.with(|rdma, cx| cq::post(rdma, cx, 3, Cqe::default()));
    for _ in 0..3 {
        post(&mut d).unwrap();
    }
    let new = Queue {
        ring: d.alloc(8 * 32, 256),
        entries: 8,
        ..old
    };
    let mut words = Driver::cq_command(0x04, 3, new);
    // No event queue in this command.
    words[3] = (words[3] | (1 << 43)) & !(1 << 49);
    d.ok(words);
    for _ in 0..7 {
        post(&mut d).unwrap();
    }
    assert_eq!(d.peek(new.ring + 6 * 32 + 24) >> 63, 1);
    // Seven of eight are unseen as long as the driver is in the old ring.
    assert!(post(&mut d).is_err());
}

#[test]
fn regions_are_checked_and_resolved() {
    let mut d = Driver::probed();
    let block = d.alloc(8192, 4096);
    // Region 1 with the driver's own bits 0x155 above its number, key 0x23.
    let stag = (0x155 << 22) | 0x1_23;
    d.register(stag, 0x7f00_0000_0100, block, 0x1000, 0x0b);
    let mut check = |stag, address, length, rights, who| {
        d.with(|rdma, cx| mr::check(rdma, cx, stag, address, length, rights, who))
    };
    let me = requester(3, false);
    assert_eq!(
        check(stag, 0x7f00_0000_0180, 16, Rights::LOCAL_READ, me),
        Ok(smallvec![Segment {
            address: block + 0x180,
            length: 16
        }])
    );
    let start = 0x7f00_0000_0100;
    let end = start + 0x1000;
    assert!(check(stag, end - 1, 1, Rights::REMOTE_WRITE, me).is_ok());
    assert_eq!(
        check(stag, end - 1, 2, Rights::LOCAL_READ, me),
        Err(AccessError::Bounds)
    );
    assert_eq!(
        check(stag, start - 1, 1, Rights::LOCAL_READ, me),
        Err(AccessError::Bounds)
    );
    assert_eq!(
        check(stag, u64::MAX, 2, Rights::LOCAL_READ, me),
        Err(AccessError::Wrap)
    );
    assert_eq!(
        check(stag, start, 1, Rights::REMOTE_READ, me),
        Err(AccessError::Rights)
    );
    assert_eq!(
        check(stag + 1, start, 1, Rights::LOCAL_READ, me),
        Err(AccessError::BadKey)
    );
    assert_eq!(
        check(0x2_00, start, 1, Rights::LOCAL_READ, me),
        Err(AccessError::UnallocatedStag)
    );
    assert_eq!(
        check(0x0010_0000, 0, 1, Rights::LOCAL_READ, me),
        Err(AccessError::BadIndex)
    );
    assert_eq!(
        check(0x1_23, start, 1, Rights::LOCAL_READ, me),
        Err(AccessError::BadKey)
    );
    let other = requester(4, false);
    assert_eq!(
        check(stag, start, 1, Rights::LOCAL_READ, other),
        Err(AccessError::BadPd)
    );
    assert_eq!(
        check(0, block, 1, Rights::LOCAL_READ, me),
        Err(AccessError::ZeroStag)
    );
    let kernel = requester(3, true);
    assert!(check(0, block, 4, Rights::LOCAL_READ, kernel).is_ok());
    assert_eq!(d.violations(), Vec::<String>::new());
}

/// Registers a region whose pages are a list of PBLEs.
fn register_list(d: &mut Driver, stag: u64, level: u64, first: u64, va: u64, len: u64) -> bool {
    let header = (0x0a << 32) | (1 << 43) | (level << 44) | (3 << 48) | (1 << 59);
    !d.command([va, len | (3 << 46), stag, header, 0, 0, first, 0])
        .error
}

#[test]
fn page_lists_of_both_levels_are_walked() {
    let mut d = Driver::probed();
    let pages: Vec<u64> = (0..4).map(|_| d.alloc(8192, 4096)).collect();
    let pbles = d
        .rdma
        .hmc
        .plan
        .as_ref()
        .unwrap()
        .address(Object::Pble, 0)
        .unwrap();
    let list = d
        .with(|rdma, cx| rdma.hmc.translate(cx.memory, pbles))
        .unwrap();
    // Level 1 at PBLE 16; level 2: root at 8 names leaf 1024, whose pages are two from the end of a leaf.
    d.put(list + 16 * 8, &pages[..3]);
    assert!(register_list(&mut d, 0x1_00, 1, 16, 0x5_0ff0, 0x1020));
    let me = requester(3, false);
    let check = |d: &mut Driver, stag, at, len| {
        d.with(|rdma, cx| mr::check(rdma, cx, stag, at, len, Rights::LOCAL_WRITE, me))
    };
    let segments = check(&mut d, 0x1_00, 0x5_0ff0, 0x1020).unwrap();
    let expected = [
        Segment {
            address: pages[0] + 0xff0,
            length: 0x10,
        },
        Segment {
            address: pages[1],
            length: 0x1000,
        },
        Segment {
            address: pages[2],
            length: 0x10,
        },
    ];
    assert_eq!(segments[..], expected);

    d.put(list + 8 * 8, &[1024, 2048]);
    d.put(list + (1024 + 511) * 8, &[pages[2]]);
    d.put(list + 2048 * 8, &[pages[3]]);
    assert!(register_list(&mut d, 0x2_00, 3, 8, 0, 513 * 4096));
    let segments = check(&mut d, 0x2_00, 511 * 4096 + 0xf00, 0x200).unwrap();
    let expected = [
        Segment {
            address: pages[2] + 0xf00,
            length: 0x100,
        },
        Segment {
            address: pages[3],
            length: 0x100,
        },
    ];
    assert_eq!(segments[..], expected);
    assert_eq!(d.violations(), Vec::<String>::new());

    // A leaf beyond the committed lists, and a code that does not exist.
    d.put(list + 9 * 8, &[1 << 30]);
    assert!(!register_list(&mut d, 0x3_00, 3, 8, 0, 513 * 4096));
    assert!(!register_list(&mut d, 0x3_00, 2, 8, 0, 4096));
    assert_eq!(d.violations().len(), 2);
}

#[test]
fn paged_segments_are_followed() {
    let mut d = Driver::probed();
    let plan = d.rdma.hmc.plan.clone().unwrap();
    // The last PBLEs lie in a segment of their own that is not there yet.
    let last = plan.address(Object::Pble, 262_144 + 3).unwrap();
    assert_eq!(d.with(|rdma, cx| rdma.hmc.translate(cx.memory, last)), None);
    let (table, page) = (d.alloc(4096, 4096), d.alloc(4096, 4096));
    d.put(table, &[page | 1]);
    let command = (last >> 21) | (1 << 31) | (1 << 15);
    d.ok([command, table | (512 << 2) | 1, 0, 0x1f << 32, 0, 0, 0, 0]);
    d.write_register(0x52_0300, (last >> 21) as u32 | (1 << 15));
    d.put(page + 24, &[0x1234_5000]);
    assert_eq!(
        d.with(|rdma, cx| rdma.hmc.pble(cx, 262_147)),
        Ok(0x1234_5000)
    );
    assert_eq!(d.violations(), Vec::<String>::new());
}

/// Happens to the next command with this opcode.
fn next_command(opcode: u32, action: Action) -> Rule {
    Rule {
        point: Point::CqpCommand,
        key: Some(opcode),
        skip: 0,
        times: 1,
        action,
    }
}

#[test]
fn the_nth_command_fails_or_is_lost_late_or_doubled_on_demand() {
    let mut d = Driver::probed();
    let nop = [0, 0, 0, 0x24 << 32, 0, 0, 0, 0];
    let rule = |action| Rule {
        skip: 1,
        ..next_command(0x24, action)
    };
    d.bench.faults.add(rule(Action::Fail(0xffff_8029)));
    d.ok(nop);
    let reply = d.command(nop);
    assert_eq!(
        (reply.error, reply.major, reply.minor),
        (true, 0xffff, 0x8029)
    );

    d.bench.faults.add(rule(Action::Drop));
    d.ok(nop);
    let tail = d.read_register(0x50_0880);
    d.post(nop);
    assert_eq!(d.poll_ccq(), None);
    assert_eq!(d.read_register(0x50_0880), tail);

    d.bench.faults.add(rule(Action::Duplicate));
    d.ok(nop);
    d.post(nop);
    assert_eq!(d.poll_ccq().map(|r| r.index), d.poll_ccq().map(|r| r.index));

    d.bench.faults.add(rule(Action::Delay(1000)));
    d.ok(nop);
    let late = d.post(nop);
    d.post(nop);
    assert_eq!(d.poll_ccq(), None);
    assert_eq!(d.rdma.next_deadline(), Some(1000));
    d.bench.now = 1000;
    d.with(|rdma, cx| rdma.poll(cx));
    assert_eq!(d.poll_ccq().map(|r| r.index), Some(late));
    assert!(d.poll_ccq().is_some());
    assert_eq!(d.violations(), Vec::<String>::new());
}

#[test]
fn destroying_the_control_queue_too_early_is_seen() {
    let mut d = Driver::probed();
    d.write_register(0x50_a100, 0);
    d.write_register(0x50_a080, 0);
    assert_eq!(d.read_register(0x50_a000), 0);
    assert!(d.violations().iter().any(|v| v.contains("CQs are left")));

    // Not the driver's fault if the device refused to destroy something.
    let mut d = Driver::probed();
    d.bench
        .faults
        .add(next_command(0x1b, Action::Fail(0xffff_8101)));
    assert!(d.command([0, 0, 192, 0x1b << 32, 0, 0, 0, 0]).error);
    d.write_register(0x50_a100, 0);
    d.write_register(0x50_a080, 0);
    assert_eq!(d.violations(), Vec::<String>::new());

    // Nor if it took very long for one.
    let mut d = Driver::probed();
    d.bench
        .faults
        .add(next_command(0x24, Action::Delay(5_000_000_000)));
    d.post([0, 0, 0, 0x24 << 32, 0, 0, 0, 0]);
    d.bench.now = 5_000_000_000;
    d.with(|rdma, cx| rdma.poll(cx));
    d.write_register(0x50_a100, 0);
    d.write_register(0x50_a080, 0);
    assert_eq!(d.violations(), Vec::<String>::new());

    // Nor if it is still at another command.
    let mut d = Driver::probed();
    d.bench.faults.add(next_command(0x24, Action::Delay(1000)));
    d.post([0, 0, 0, 0x24 << 32, 0, 0, 0, 0]);
    d.write_register(0x50_a100, 0);
    d.write_register(0x50_a080, 0);
    assert_eq!(d.violations(), Vec::<String>::new());
}

#[test]
fn errors_of_the_engine_show_in_its_registers() {
    let mut d = Driver::probed();
    d.bench.interrupts.write_dyn_ctl(0, 1);
    d.bench.interrupts.set_other_enabled(u32::MAX);
    d.bench.interrupts.set_other_control(1 << 30);
    d.with(|rdma, cx| rdma.report_critical_error(cx, 0x1024d));
    assert_eq!(d.read_register(0x53_4000), 0x1024d);
    assert_eq!(d.bench.interrupts.take_other(), 1 << 28);
    d.with(|rdma, cx| rdma.report_hmc_error(cx, 7, 9));
    assert_eq!(d.read_register(0x52_0400), 7);
    assert_eq!(d.read_register(0x52_0500), 9);
    assert_eq!(d.bench.interrupts.take_other(), 1 << 26);
    assert_eq!(d.bench.interrupts.messages(0), 1);
}

#[test]
fn a_lost_interrupt_leaves_its_event() {
    let mut d = Driver::probed();
    let queue = d.create_cq(3, 16);
    d.bench.faults.add(Rule {
        point: Point::Interrupt,
        key: Some(5),
        skip: 0,
        times: 1,
        action: Action::Drop,
    });
    d.arm(3, queue);
    d.with(|rdma, cx| cq::post(rdma, cx, 3, Cqe::default()))
        .unwrap();
    assert_eq!(d.peek(d.ceq0), (1 << 63) | 3);
    assert_eq!(d.bench.interrupts.messages(5), 0);
}

#[test]
fn commands_on_groups_handles_and_statistics() {
    let mut d = Driver::probed();
    d.create_cq(3, 16);
    d.create_qp(1, 4, 3, 0);
    let context = d.alloc(64, 64);
    d.put(context, &[(4791 << 32) | (1 << 31) | 1]);
    let group = |op: u64, index: u64| {
        let header = (op << 32) | (1 << 60) | index;
        [0x0100_5e01_0203, 0, 1, header, context, 0, 0xe001_0203, 0]
    };
    d.ok(group(0x26, 2));
    assert_eq!(d.rdma.mcast[&2].members.len(), 1);
    assert!(d.command(group(0x26, 2)).error);
    d.ok(group(0x27, 2));
    d.ok(group(0x28, 2));
    assert!(d.command(group(0x28, 2)).error);

    let handle = |op: u64, arp: u64| {
        let header = (op << 32) | (1 << 59) | 9;
        [
            0x0200_0000_0002_0000,
            3 << 48,
            (arp << 48) | (64 << 32),
            header,
            0x0a00_0002,
            0,
            0x0a00_0001,
            0,
        ]
    };
    assert!(d.command(handle(0x1c, 7)).error);
    d.ok(handle(0x1c, 2));
    d.ok(handle(0x1e, 2));
    // The loopback flag, though it goes to another address.
    let mut looping = handle(0x1c, 2);
    looping[3] |= 1 << 62;
    d.ok(looping);
    assert!(d.violations()[3].contains("loopback flag true from 10.0.0.1 to 10.0.0.2"));

    d.rdma.count(None, super::stats::Counter::RdmaTxSends, 3);
    let buffer = d.alloc(1024, 8);
    d.ok([0, 0, 0, 0x2e << 32, buffer, 0, 0, 0]);
    assert_eq!(d.peek(buffer + 280), 3);
    let text = d.violations();
    assert_eq!(text.len(), 4, "{text:?}");
}

#[test]
fn a_context_is_looked_at_when_a_queue_pair_starts() {
    let mut d = Driver::probed();
    d.create_cq(3, 64);
    let rings = d.create_qp(5, RC, 3, 6);
    // Oldest and highest sequence number are those of another connection.
    d.put(rings.context + 12 * 8, &[0x101 | 0x101 << 32]);
    d.connect_qp(5, RC, rings);
    let text = d.violations();
    assert_eq!(text.len(), 1, "{text:?}");
    assert!(text[0].contains("QP 5 becomes ReadyToSend"), "{text:?}");
}

#[test]
fn a_fast_registration_makes_an_allocated_region_valid() {
    let mut d = Driver::probed();
    let block = d.alloc(8192, 4096);
    let allocate = (0x09 << 32) | (1 << 43) | (1 << 53);
    d.ok([0, 4096 | (3 << 46), 0x7_00, allocate, 0, 0, 0, 0]);
    let me = requester(3, true);
    let stag = 0x7_42;
    let check = |d: &mut Driver| {
        d.with(|rdma, cx| mr::check(rdma, cx, stag, 0x9000, 16, Rights::REMOTE_WRITE, me))
    };
    assert_eq!(check(&mut d), Err(AccessError::InvalidStag));
    let request = |address, length| mr::FastRegister {
        index: stag >> 8,
        key: stag as u8,
        mapping: mr::Mapping {
            rights: Rights(0x0a),
            start: 0x9000,
            length,
            va_based: true,
            page_size: mr::PageSize::Page4K,
            translation: mr::Translation::Contiguous(address),
            parent: None,
            qp: None,
        },
    };
    let register = |d: &mut Driver, address, length| {
        d.with(|rdma, _| mr::fast_register(rdma, me, request(address, length)))
    };
    assert_eq!(
        register(&mut d, block, 4097),
        Err(AccessError::FastRegLength)
    );
    assert_eq!(register(&mut d, block, 0), Err(AccessError::FastRegLength));
    assert_eq!(
        register(&mut d, block + 8, 4096),
        Err(AccessError::FastRegPageSize)
    );
    assert_eq!(register(&mut d, block, 4096), Ok(()));
    assert_eq!(
        register(&mut d, block, 4096),
        Err(AccessError::FastRegValidStag)
    );
    assert_eq!(
        check(&mut d),
        Ok(smallvec![Segment {
            address: block,
            length: 16
        }])
    );
    let invalidate = |d: &mut Driver, stag| d.with(|rdma, _| mr::invalidate(rdma, me, stag, true));
    assert_eq!(invalidate(&mut d, stag ^ 1), Err(AccessError::BadKey));
    assert_eq!(invalidate(&mut d, stag), Ok(()));
    assert_eq!(invalidate(&mut d, stag), Err(AccessError::InvalidStag));
    d.ok([0, 3 << 46, 0x7_00, (0x0d << 32) | (1 << 43), 0, 0, 0, 0]);
    assert_eq!(check(&mut d), Err(AccessError::UnallocatedStag));
    assert_eq!(d.violations(), Vec::<String>::new());
}

#[test]
fn data_never_lies_in_the_memory_of_a_live_ring() {
    let mut d = Driver::probed();
    let queue = d.create_cq(3, 16);
    let kernel = requester(3, true);
    let access =
        d.with(|rdma, cx| mr::check(rdma, cx, 0, queue.ring + 8, 64, Rights::LOCAL_WRITE, kernel));
    assert_eq!(access, Err(AccessError::Broken));
    assert!(d.violations()[0].contains("held by the live CQ 3"));
}

#[test]
fn the_event_queue_may_be_a_list_of_pages_and_overflows() {
    let mut d = Driver::probed();
    d.ok([0, 0, 192, 0x1b << 32, 0, 0, 0, 0]);
    let plan = d.rdma.hmc.plan.as_ref().unwrap();
    let first = plan.address(Object::Pble, 8).unwrap();
    let list = d
        .with(|rdma, cx| rdma.hmc.translate(cx.memory, first))
        .unwrap();
    // Two pages of 256 entries, not next to each other.
    let pages = [d.alloc(4096, 8192), d.alloc(4096, 8192)];
    d.put(list, &pages);
    let header = (0x19 << 32) | (1 << 47) | (1 << 44);
    d.ok([0, 0, 512, header, 0, 0, 8, 0]);
    let raise = |d: &mut Driver, id| {
        d.with(|rdma, cx| rdma.report_async_event(cx, 0x20d, 5, id));
    };
    for id in 0..513 {
        raise(&mut d, id);
    }
    let last = d.peek(pages[0] + 255 * 16 + 8);
    assert_eq!((last >> 63, last & 0x3ffff), (1, 255));
    assert_eq!(d.peek(pages[1] + 8) & 0x3ffff, 256);
    // The 513th found no room. The next one has, and says so.
    assert_eq!(d.peek(pages[0] + 8) & 0x3ffff, 0);
    d.write_register(0x50_2d00, 2);
    raise(&mut d, 600);
    raise(&mut d, 601);
    let (next, after) = (d.peek(pages[0] + 8), d.peek(pages[0] + 16 + 8));
    assert_eq!((next >> 63, next & 0x3ffff, next >> 33 & 1), (0, 600, 1));
    assert_eq!((after & 0x3ffff, after >> 33 & 1), (601, 0));
    assert_eq!(d.violations(), Vec::<String>::new());
}

#[test]
fn an_event_on_demand_names_its_queue_pair() {
    let mut d = Driver::probed();
    d.create_cq(3, 64);
    d.create_qp(5, RC, 3, 6);
    d.with(|rdma, cx| rdma.report_async_event(cx, 0x50a, 5, 5));
    assert_eq!(d.peek(d.aeq), 0x5000 + 6);
    let word = d.peek(d.aeq + 8);
    let expected = (1u64 << 63) | (1 << 54) | (5 << 50) | (0x50a << 34) | 5;
    assert_eq!(word & !(7 << 46), expected & !(7 << 46));
    // Also about one that does not exist: the driver must bear it.
    d.with(|rdma, cx| rdma.report_async_event(cx, 0x203, 2, 1000));
    assert_eq!(d.peek(d.aeq + 16), 1000);
    assert_eq!(d.bench.interrupts.messages(4), 1);
}

/// The rows of the table of commands in the README: code and name.
fn table() -> Vec<(u8, String)> {
    let text = include_str!("../../README.md");
    let row = |line: &str| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let code = cells.next()?.strip_prefix("0x")?;
        let code = u8::from_str_radix(code, 16).ok()?;
        Some((code, cells.next()?.trim_matches('`').to_owned()))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn every_code_is_answered_as_the_readme_says() {
    let table = table();
    for code in 0..0x30u8 {
        let rows: Vec<_> = table.iter().filter(|row| row.0 == code).collect();
        assert_eq!(rows.len(), 1, "rows of {code:#04x} in the README");
        let refused = rows[0].1.starts_with("refused");
        let mut d = Driver::probed();
        // About a number 9 that nothing has.
        let reply = d.command([0, 0, 0, u64::from(code) << 32 | 9, 0, 0, 0, 0]);
        let unknown = d.violations().iter().any(|v| v.contains("not implemented"));
        let Some(opcode) = super::cqp::Opcode::from_code(code) else {
            assert!(refused && unknown, "{code:#04x}");
            let codes = (reply.error, reply.major, reply.minor);
            assert_eq!(codes, (true, 0xffff, 0x8101), "{code:#04x}");
            continue;
        };
        assert_eq!(rows[0].1, opcode.to_string());
        let no_upload = opcode != super::cqp::Opcode::UploadContext;
        assert_eq!(unknown, !no_upload, "{opcode}: {:?}", d.violations());
    }
}
