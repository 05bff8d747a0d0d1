// SPDX-License-Identifier: GPL-2.0
//! Completion events: one entry each, acknowledged by the driver.

use super::super::layout;
use super::*;

/// Makes CEQ 1 with so many entries and a CQ on it for each of `ids`.
fn queues<const N: usize>(d: &mut Driver, entries: u64, ids: [u32; N]) -> [Queue; N] {
    let ring = d.alloc(entries * 8, 256);
    d.ok([0, 0, entries, 0x16 << 32 | 1, ring, 0, 0, 0]);
    ids.map(|id| {
        let queue = Queue {
            ring: d.alloc(64 * 32, 256),
            shadow: d.alloc(64, 64),
            entries: 64,
        };
        let mut words = Driver::cq_command(0x03, id, queue);
        words[3] |= 1 << 22;
        d.ok(words);
        queue
    })
}

/// Arms a queue and completes something.
fn event(d: &mut Driver, id: u32, queue: Queue) {
    d.arm(id, queue);
    complete(d, id);
}

fn complete(d: &mut Driver, id: u32) {
    let posted = d.with(|rdma, cx| cq::post(rdma, cx, id, Cqe::default()));
    assert_eq!(posted, Ok(()));
}

/// The driver has seen all completions.
fn seen(d: &mut Driver, id: u32, queue: Queue) {
    let producer = d.rdma.cqs[&id].producer;
    d.put(queue.shadow, &[producer.into()]);
}

fn acknowledge(d: &mut Driver, id: u32) {
    d.write_register(0x50_2c80, id);
}

fn on_ceqe(d: &mut Driver, action: Action) {
    d.bench.faults.add(Rule {
        point: Point::Ceqe,
        key: Some(1),
        skip: 0,
        times: 1,
        action,
    });
}

#[test]
fn a_queue_too_short_for_its_cqs_loses_events() {
    let mut d = Driver::probed();
    let cqs = queues(&mut d, 2, [3, 4, 5]);
    for (id, queue) in [3, 4, 5].into_iter().zip(cqs) {
        event(&mut d, id, queue);
    }
    let text = d.violations();
    assert_eq!(text.len(), 1, "{text:?}");
    assert!(
        text[0].contains("CEQ 1: the event of CQ 5 is lost"),
        "{text:?}"
    );
    acknowledge(&mut d, 3);
    event(&mut d, 5, cqs[2]);
    assert_eq!(d.violations().len(), 1);
}

#[test]
fn a_driver_that_acknowledges_nothing_is_seen() {
    let mut d = Driver::probed();
    let [queue] = queues(&mut d, 4, [3]);
    for _ in 0..4 {
        event(&mut d, 3, queue);
        seen(&mut d, 3, queue);
    }
    assert_eq!(d.violations(), Vec::<String>::new());
    event(&mut d, 3, queue);
    assert_eq!(d.violations().len(), 1, "{:?}", d.violations());

    // One that does goes around the ring.
    let mut d = Driver::probed();
    let [queue] = queues(&mut d, 4, [3]);
    for _ in 0..20 {
        event(&mut d, 3, queue);
        acknowledge(&mut d, 3);
        seen(&mut d, 3, queue);
    }
    assert_eq!(d.violations(), Vec::<String>::new());
}

#[test]
fn a_process_that_arms_and_arms_does_its_driver_no_harm() {
    let mut d = Driver::probed();
    let [queue, kernel] = queues(&mut d, 4, [3, 4]);
    let user_arm = layout::E810.registers.user_page + layout::USER_PAGE_CQ_ARM;
    for round in 0..10 {
        d.put(queue.shadow + 32, &[(1 << 14) | (1 << 16)]);
        d.write_register(user_arm, 3);
        complete(&mut d, 3);
        seen(&mut d, 3, queue);
        let ceq = d.rdma.ceqs.get(&1).unwrap();
        assert_eq!(ceq.producer, (round + 1).min(2));
    }
    // There is room for another.
    event(&mut d, 4, kernel);
    acknowledge(&mut d, 4);
    (0..2).for_each(|_| acknowledge(&mut d, 3));
    assert_eq!(d.violations(), Vec::<String>::new());
}

#[test]
fn an_acknowledgement_needs_an_event() {
    let mut d = Driver::probed();
    let [queue, _] = queues(&mut d, 4, [3, 4]);
    event(&mut d, 3, queue);
    acknowledge(&mut d, 4);
    acknowledge(&mut d, 3);
    acknowledge(&mut d, 3);
    let text = d.violations();
    assert_eq!(text.len(), 2, "{text:?}");
    assert!(
        text[0].contains("acknowledge of CQ 4, of which"),
        "{text:?}"
    );
    assert!(
        text[1].contains("acknowledge of CQ 3, of which"),
        "{text:?}"
    );
}

#[test]
fn a_destroyed_cq_may_be_acknowledged_late() {
    let mut d = Driver::probed();
    let [queue] = queues(&mut d, 4, [3]);
    event(&mut d, 3, queue);
    d.ok(Driver::cq_command(0x05, 3, queue));
    acknowledge(&mut d, 3);
    assert_eq!(d.violations(), Vec::<String>::new());
    acknowledge(&mut d, 3);
    assert_eq!(d.violations().len(), 1);
    // Its entries take no room.
    for _ in 0..8 {
        d.create_cq(3, 64);
        d.rdma.cqs.get_mut(&3).unwrap().ceq = Some(1);
        let again = Queue {
            shadow: d.rdma.cqs[&3].shadow,
            ..queue
        };
        event(&mut d, 3, again);
        d.ok(Driver::cq_command(0x05, 3, again));
    }
    assert_eq!(d.violations().len(), 1);
}

#[test]
fn faults_of_events_are_not_the_drivers() {
    let mut d = Driver::probed();
    let [queue] = queues(&mut d, 4, [3]);
    on_ceqe(&mut d, Action::Duplicate);
    event(&mut d, 3, queue);
    seen(&mut d, 3, queue);
    acknowledge(&mut d, 3);
    acknowledge(&mut d, 3);
    // None comes, later one does.
    on_ceqe(&mut d, Action::Drop);
    event(&mut d, 3, queue);
    seen(&mut d, 3, queue);
    on_ceqe(&mut d, Action::Delay(1000));
    event(&mut d, 3, queue);
    d.bench.now = 1000;
    d.with(|rdma, cx| rdma.poll(cx));
    acknowledge(&mut d, 3);
    assert_eq!(d.violations(), Vec::<String>::new());
    // It comes when its CQ is gone, which its driver has not heard yet, or has.
    for heard in [false, true] {
        let queue = d.create_cq(7, 64);
        d.rdma.cqs.get_mut(&7).unwrap().ceq = Some(1);
        on_ceqe(&mut d, Action::Delay(1000));
        event(&mut d, 7, queue);
        d.ok(Driver::cq_command(0x05, 7, queue));
        d.bench.now += 1000;
        d.with(|rdma, cx| rdma.poll(cx));
        if !heard {
            acknowledge(&mut d, 7);
        }
        assert_eq!(d.violations(), Vec::<String>::new());
    }
    // Garbled, it is any CQ's.
    seen(&mut d, 3, queue);
    on_ceqe(&mut d, Action::Corrupt(7));
    event(&mut d, 3, queue);
    acknowledge(&mut d, 4);
    assert_eq!(d.violations(), Vec::<String>::new());
}
