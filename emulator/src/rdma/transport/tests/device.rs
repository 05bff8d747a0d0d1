// SPDX-License-Identifier: GPL-2.0
//! The data path through the whole device: registers, rings in guest memory,
//! regions, completion and event queues, two functions on one wire.

use super::rig::{entry, Random};
use crate::rdma::testbench::{Driver, Queue, Rings};
use crate::rdma::wqe::op;

const RC: u64 = 3;
pub(super) const UD: u64 = 4;
const CQ: u32 = 3;
const STAG: u32 = 0x0000_2105;
const VA: u64 = 0x7f00_0000_0000;
const LEN: u64 = 1 << 20;
const SQ_DOORBELL: u32 = 0x50_4400;

/// One function with a queue pair, a completion queue and a region.
pub(super) struct Port {
    pub(super) driver: Driver,
    cq: Queue,
    cq_head: u32,
    pub(super) rings: Rings,
    data: u64,
    qp: u32,
    sq_head: u64,
    rq_head: u64,
}

/// A completion as the driver reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    words: [u64; 4],
}

impl Entry {
    fn length(&self) -> u64 {
        self.words[0] & 0xffff_ffff
    }
    fn is_sq(&self) -> bool {
        self.words[3] >> 62 & 1 != 0
    }
    fn opcode(&self) -> u64 {
        self.words[3] >> 56 & 0x3f
    }
    fn index(&self) -> u64 {
        self.words[3] >> 32 & 0x7fff
    }
    fn error(&self) -> Option<u32> {
        (self.words[3] >> 55 & 1 != 0).then_some(self.words[3] as u32)
    }
}

impl Port {
    /// Node `me` of 10.0.0.x whose queue pair talks to number `dest` at `peer`.
    pub(super) fn new(me: u8, peer: u8, kind: u64, qp: u32, dest: u32) -> Self {
        let mut driver = Driver::probed();
        driver.bench.port.addresses = vec![[2, 0, 0, 0, 0, me]];
        let cq = driver.create_cq(CQ, 64);
        let data = driver.alloc(LEN, 4096);
        driver.register(STAG, VA, data, LEN, 0xf);
        let rings = driver.create_qp(qp, kind, CQ, dest);
        let mut port = Self {
            driver,
            cq,
            cq_head: 0,
            rings,
            data,
            qp,
            sq_head: 0,
            rq_head: 0,
        };
        port.address(me, peer, rings, dest);
        port.driver.connect_qp(qp, kind, rings);
        port
    }

    /// Rewrites addresses and sequence numbers in a context.
    fn address(&mut self, me: u8, peer: u8, rings: Rings, dest: u32) {
        let mut words = Driver::context(rings, CQ, dest);
        words[4] = 0x0a00_0000 | u64::from(peer);
        words[6] = 1024 << 16 | u64::from(peer) << 48;
        words[8] |= 0x1234 << 32;
        words[10] = u64::from(me) << 8;
        words[11] = u64::from(peer) << 8;
        words[12] = words[10] << 32 | words[10];
        words[19] = 0x0200_0000_0000_0000 | u64::from(me) << 16;
        words[20] |= 1 << 19;
        words[23] = 0x0a00_0000 | u64::from(me);
        self.driver.put(rings.context, &words);
    }

    pub(super) fn post(&mut self, quads: &[u64]) -> u64 {
        let index = self.sq_head;
        assert!(index + quads.len() as u64 / 4 <= 64);
        self.driver.put(self.rings.sq + index * 32, quads);
        self.sq_head += quads.len() as u64 / 4;
        index
    }

    pub(super) fn ring(&mut self) {
        let qp = self.qp;
        self.driver.write_register(SQ_DOORBELL, qp);
    }

    pub(super) fn receive(&mut self, offset: u64, len: u64) {
        let quads = [
            VA + offset,
            1 << 63 | len << 32 | u64::from(STAG),
            0,
            1 << 63,
        ];
        self.driver.put(self.rings.rq + self.rq_head * 32, &quads);
        self.rq_head += 1;
    }

    pub(super) fn poll(&mut self) -> Option<Entry> {
        let at = self.cq.ring + u64::from(self.cq_head) * 32;
        let header = self.driver.peek(at + 24);
        if header >> 63 == 0 {
            return None;
        }
        self.cq_head += 1;
        let words = [0, 8, 16, 24].map(|offset| self.driver.peek(at + offset));
        Some(Entry { words })
    }

    fn fill(&mut self, offset: u64, len: usize, seed: u64) -> Vec<u8> {
        let mut random = Random(seed);
        let bytes: Vec<u8> = (0..len).map(|_| random.next() as u8).collect();
        let at = self.data + offset;
        self.driver.bench.memory.write(at, &bytes).unwrap();
        bytes
    }

    fn bytes(&self, offset: u64, len: usize) -> Vec<u8> {
        let mut out = vec![0; len];
        let at = self.data + offset;
        self.driver.bench.memory.read(at, &mut out).unwrap();
        out
    }

    /// Polls the function's timers.
    fn tick(&mut self, now: u64) {
        self.driver.bench.now = now;
        self.driver.with(|rdma, cx| rdma.poll(cx));
    }
}

/// Carries frames both ways until the wire is quiet.
pub(super) fn carry(a: &mut Port, b: &mut Port) -> usize {
    let mut count = 0;
    loop {
        let from_a = std::mem::take(&mut a.driver.bench.frames);
        let from_b = std::mem::take(&mut b.driver.bench.frames);
        if from_a.is_empty() && from_b.is_empty() {
            // What waited for the wire to become quiet goes on.
            let waiting = |port: &Port| {
                let deadline = port.driver.rdma.next_deadline();
                deadline.is_some_and(|at| at <= port.driver.bench.now)
            };
            if !waiting(a) && !waiting(b) {
                return count;
            }
            for port in [&mut *a, &mut *b] {
                port.driver.with(|rdma, cx| rdma.poll(cx));
            }
            continue;
        }
        count += from_a.len() + from_b.len();
        for frame in from_a {
            assert!(b.driver.with(|rdma, cx| rdma.receive(cx, &frame)));
        }
        for frame in from_b {
            assert!(a.driver.with(|rdma, cx| rdma.receive(cx, &frame)));
        }
    }
}

pub(super) fn piece(offset: u64, len: u32) -> (u64, u32, u32) {
    (VA + offset, len, STAG)
}

fn pair() -> (Port, Port) {
    (Port::new(1, 2, RC, 5, 6), Port::new(2, 1, RC, 6, 5))
}

#[test]
fn messages_between_two_functions() {
    let (mut a, mut b) = pair();
    let sent = a.fill(0, 10_000, 1);
    let kept = b.fill(0x4_0000, 10_000, 2);
    b.receive(0x100, 20_000);
    let (cq, queue) = (CQ, b.cq);
    b.driver.arm(cq, queue);
    a.post(&entry(op::SEND, &[piece(0, 10_000)], Some(0xabcd), 0, 0));
    a.post(&entry(
        op::WRITE,
        &[piece(0, 9_000)],
        None,
        STAG,
        VA + 0x2_0000,
    ));
    a.post(&entry(
        op::READ,
        &[piece(0x8_0000, 10_000)],
        None,
        STAG,
        VA + 0x4_0000,
    ));
    a.ring();
    assert_eq!(carry(&mut a, &mut b), 10 + 1 + 9 + 1 + 1 + 10);
    assert_eq!(b.bytes(0x100, 10_000), sent);
    assert_eq!(b.bytes(0x2_0000, 9_000), sent[..9_000]);
    assert_eq!(a.bytes(0x8_0000, 10_000), kept);
    let done: Vec<_> = std::iter::from_fn(|| a.poll()).collect();
    // Immediate and one fragment take two quanta (and an empty place).
    let what: Vec<_> = done
        .iter()
        .map(|e| (e.is_sq(), e.opcode(), e.index()))
        .collect();
    assert_eq!(what, [(true, 3, 0), (true, 0, 2), (true, 1, 3)]);
    assert_eq!(done[0].words[1], 0x5000 + 6);
    let got = b.poll().unwrap();
    assert_eq!(
        (got.is_sq(), got.length(), got.opcode()),
        (false, 10_000, 3)
    );
    assert_eq!(got.words[3] >> 50 & 1, 1);
    let second = b.poll().unwrap();
    assert_eq!((second.words[0], second.words[3] >> 62), (0xabcd, 3));
    assert_eq!(b.poll(), None);
    // The armed queue told its event queue; the tail was published.
    assert_eq!(b.driver.bench.interrupts.messages(5), 1);
    assert_eq!(a.driver.peek(a.rings.shadow), 4);
    assert_eq!(a.driver.violations(), Vec::<String>::new());
    assert_eq!(b.driver.violations(), Vec::<String>::new());
}

#[test]
fn error_event_flush_and_its_completions() {
    let (mut a, mut b) = pair();
    b.receive(0, 100);
    a.post(&entry(op::WRITE, &[piece(0, 100)], None, STAG + 1, VA));
    a.post(&entry(op::SEND, &[piece(0, 100)], None, 0, 0));
    a.ring();
    carry(&mut a, &mut b);
    // Both drivers hear of it; nobody has a completion yet.
    let (ours, theirs) = (
        a.driver.peek(a.driver.aeq + 8),
        b.driver.peek(b.driver.aeq + 8),
    );
    assert_eq!(
        (ours >> 34 & 0xfff, ours >> 50 & 0xf, ours & 0x3ffff),
        (0x20d, 5, 5)
    );
    assert_eq!((theirs >> 34 & 0xfff, theirs >> 50 & 0xf), (0x106, 9));
    assert_eq!(a.poll(), None);
    assert_eq!(b.poll(), None);
    // The driver's answer: REM_ACCESS for the send queue, flush for the rest.
    let codes = 1 | 1 << 16 | 3 << 32 | 1 << 48;
    let flush = |qp: u64| [0, 0, codes, qp | 0x22 << 32 | 7 << 60, 0, 0, 0, 0];
    assert_eq!(a.driver.ok(flush(5)).minor, 3);
    let failed = a.poll().unwrap();
    assert_eq!((failed.error(), failed.is_sq()), (Some(0x1_0003), true));
    assert_eq!(a.poll(), None);
    assert_eq!(b.driver.ok(flush(6)).minor, 2);
    let failed = b.poll().unwrap();
    assert_eq!((failed.error(), failed.is_sq()), (Some(0x1_0001), false));
    // Nothing left: neither queue.
    assert_eq!(a.driver.ok(flush(5)).minor, 0);
    assert_eq!(a.driver.violations(), Vec::<String>::new());
    assert_eq!(b.driver.violations(), Vec::<String>::new());
}

#[test]
fn lost_frames_are_sent_again_by_the_clock() {
    let (mut a, mut b) = pair();
    let sent = a.fill(0, 100, 1);
    b.receive(0, 100);
    a.post(&entry(op::SEND, &[piece(0, 100)], None, 0, 0));
    a.ring();
    a.driver.bench.frames.clear();
    assert_eq!(a.driver.rdma.next_deadline(), Some(5_000_000));
    a.tick(4_999_999);
    assert!(a.driver.bench.frames.is_empty());
    a.tick(5_000_000);
    carry(&mut a, &mut b);
    assert_eq!(b.bytes(0, 100), sent);
    assert!(a.poll().is_some() && b.poll().is_some());
    assert_eq!(a.driver.rdma.next_deadline(), None);
}

#[test]
fn loopback_inside_a_port_stays_off_the_wire() {
    let mut a = Port::new(1, 1, RC, 5, 6);
    let second = a.driver.create_qp(6, RC, CQ, 5);
    a.address(1, 1, second, 5);
    a.driver.connect_qp(6, RC, second);
    let sent = a.fill(0, 5000, 3);
    let quads = [
        VA + 0x1_0000,
        1 << 63 | 5000 << 32 | u64::from(STAG),
        0,
        1 << 63,
    ];
    a.driver.put(second.rq, &quads);
    a.post(&entry(op::SEND, &[piece(0, 5000)], None, 0, 0));
    a.post(&entry(op::READ, &[piece(0x2_0000, 5000)], None, STAG, VA));
    a.ring();
    assert!(a.driver.bench.frames.is_empty());
    assert_eq!(a.bytes(0x1_0000, 5000), sent);
    assert_eq!(a.bytes(0x2_0000, 5000), sent);
    assert_eq!(std::iter::from_fn(|| a.poll()).count(), 3);
    assert_eq!(a.driver.violations(), Vec::<String>::new());
}

#[test]
fn a_long_loop_goes_on_by_the_clock() {
    let mut a = Port::new(1, 1, RC, 5, 6);
    let second = a.driver.create_qp(6, RC, CQ, 5);
    a.address(1, 1, second, 5);
    for (id, rings) in [(5, a.rings), (6, second)] {
        let word = a.driver.peek(rings.context + 48) & !(0x3fff << 16);
        a.driver.put(rings.context + 48, &[word | 256 << 16]);
        if id == 6 {
            a.driver.connect_qp(id, RC, rings);
        } else {
            a.driver.modify_qp(id, RC, 2, rings);
        }
    }
    let half = LEN / 2;
    let sent = a.fill(0, half as usize, 3);
    for _ in 0..4 {
        let to = VA + half;
        a.post(&entry(op::WRITE, &[piece(0, half as u32)], None, STAG, to));
    }
    a.ring();
    // 2 MiB in packets of 256 bytes are more than one register write carries.
    assert_eq!(a.driver.rdma.next_deadline(), Some(0));
    let mut polls = 0;
    while a.driver.rdma.next_deadline() == Some(0) {
        a.tick(0);
        polls += 1;
    }
    assert!((2..=4).contains(&polls), "{polls}");
    assert_eq!(a.bytes(half, half as usize), sent);
    assert_eq!(std::iter::from_fn(|| a.poll()).count(), 4);
    assert_eq!(a.driver.violations(), Vec::<String>::new());
}

#[test]
fn datagrams_through_an_address_handle() {
    let (mut a, mut b) = (Port::new(1, 2, UD, 5, 0), Port::new(2, 1, UD, 6, 0));
    // Handle 4: from 10.0.0.1 to 10.0.0.2 over ARP entry 2, PD 3.
    a.driver.ok([
        0x0200_0000_0001_0000,
        3 << 48,
        2 << 48 | 64 << 32,
        1 << 59 | 0x1c << 32 | 4,
        0x0a00_0002,
        0,
        0x0a00_0001,
        0,
    ]);
    let sent = a.fill(0, 64, 9);
    b.receive(0, 200);
    a.post(&entry(op::SEND, &[piece(0, 64)], None, 4, 6 << 32 | 0x1234));
    a.ring();
    carry(&mut a, &mut b);
    let got = b.poll().unwrap();
    assert_eq!((got.length(), got.words[2] & 0xffff_ffff), (104, 5));
    // IPv4, and an extended entry with the sender's MAC address.
    assert_eq!((got.words[3] >> 53 & 1, got.words[3] >> 50 & 1), (1, 1));
    let second = b.poll().unwrap();
    assert_eq!(
        (second.words[2], second.words[3] >> 61 & 1),
        (0x0200_0000_0001, 1)
    );
    assert_eq!(b.bytes(40, 64), sent);
    assert_eq!(a.poll().unwrap().opcode(), 3);
    assert_eq!(a.driver.violations(), Vec::<String>::new());
    assert_eq!(b.driver.violations(), Vec::<String>::new());
}

#[test]
fn frames_of_others_and_broken_ones() {
    let (mut a, mut b) = pair();
    a.post(&entry(op::SEND, &[piece(0, 4)], None, 0, 0));
    a.ring();
    let frame = a.driver.bench.frames.pop().unwrap();
    let mut other = frame.clone();
    other[5] = 9;
    assert!(!b.driver.with(|rdma, cx| rdma.receive(cx, &other)));
    // The switch's rules say which addresses are the port's own.
    let own = std::mem::take(&mut b.driver.bench.port.addresses);
    assert!(!b.driver.with(|rdma, cx| rdma.receive(cx, &frame)));
    b.driver.bench.port.addresses = own;
    let mut bad = frame.clone();
    let last = bad.len() - 1;
    bad[last] ^= 1;
    b.receive(0, 100);
    assert!(b.driver.with(|rdma, cx| rdma.receive(cx, &bad)));
    assert_eq!(b.poll(), None);
    assert!(b.driver.with(|rdma, cx| rdma.receive(cx, &frame)));
    assert!(b.poll().is_some());
}

#[test]
fn a_peer_without_an_arp_entry_is_counted_and_reported() {
    let (mut a, _) = pair();
    // MANAGE_ARP without the valid bit takes entry 2 away.
    a.driver.ok([0, 0, 0, 0x0f << 32 | 2, 0, 0, 0, 0]);
    a.post(&entry(op::SEND, &[piece(0, 4)], None, 0, 0));
    a.ring();
    let event = a.driver.peek(a.driver.aeq + 8);
    assert_eq!((event >> 34 & 0xfff, event >> 50 & 0xf), (0x401, 5));
    // IPv4 packets without a route: bits 55:32 of the word at 184.
    assert_eq!(
        a.driver.rdma.stats.buffer()[184..192],
        [0, 0, 0, 0, 1, 0, 0, 0]
    );
    assert!(a.driver.bench.frames.is_empty());
    assert_eq!(a.driver.violations(), Vec::<String>::new());
}

impl Port {
    /// Makes two statistics instances; the queue pair `id` counts in the second.
    pub(super) fn use_second_instance(&mut self, id: u32, kind: u64, rings: Rings) {
        for number in [0, 1] {
            let allocate = 1 << 62 | 0x2d << 32;
            let instance = self.driver.ok([0, 0, 0, allocate, 0, 0, 0, 0]);
            assert_eq!(instance.value, number);
        }
        self.driver.put(rings.context + 18 * 8, &[1]);
        let word = self.driver.peek(rings.context + 20 * 8) | 1 << 26;
        self.driver.put(rings.context + 20 * 8, &[word]);
        assert!(!self.driver.modify_qp(id, kind, 2, rings).error);
    }

    /// The word at `offset` of the counters of a statistics instance.
    pub(super) fn instance_counter(&mut self, instance: u64, offset: u64) -> u64 {
        let buffer = self.driver.alloc(1024, 8);
        let header = 1 << 61 | 0x2e << 32 | instance;
        self.driver.ok([0, 0, 0, header, buffer, 0, 0, 0]);
        self.driver.peek(buffer + offset)
    }
}

#[test]
fn a_queue_pair_counts_in_its_statistics_instance() {
    let (mut a, mut b) = pair();
    for port in [&mut a, &mut b] {
        port.use_second_instance(port.qp, RC, port.rings);
    }
    b.receive(0, 100);
    a.post(&entry(op::SEND, &[piece(0, 4)], None, 0, 0));
    a.ring();
    let len = a.driver.bench.frames[0].len() as u64;
    carry(&mut a, &mut b);
    // By instance: none in the first, one in the second.
    for (instance, count) in [(0, 0), (1, 1)] {
        assert_eq!(a.instance_counter(instance, 280), count, "sends");
        assert_eq!(b.instance_counter(instance, 8), count * len, "octets");
        // IPv4 packets, UDP packets, sends received.
        for offset in [16, 224, 256] {
            assert_eq!(b.instance_counter(instance, offset), count, "{offset}");
        }
        // The acknowledge.
        assert_eq!(a.instance_counter(instance, 16), count);
    }
    assert_eq!(a.driver.violations(), Vec::<String>::new());
    assert_eq!(b.driver.violations(), Vec::<String>::new());
}
