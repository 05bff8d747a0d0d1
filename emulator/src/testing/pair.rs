// SPDX-License-Identifier: GPL-2.0
//! Two whole functions on one machine, wired back to back and brought up by a
//! driver as far as frames can pass: admin queue, a VSI with its rules, LAN
//! queues, control queue, completion queues, regions and connected queue
//! pairs. Benchmarks and the fuzzer begin here.
//!
//! What is not as expected while it is brought up makes it panic.

use crate::bits::{le16, le32};
use crate::e810::{regs, Config, E810};
use crate::machine::Machine;
use crate::rdma::fpm::Object;
use crate::rdma::testbench::{Driver, Queue, Rings};
use crate::trace::Trace;
use crate::violations::Violations;
use crate::wire::Wire;

/// The region over all of a port's data, with all rights.
pub const STAG: u32 = 0x0000_2105;
/// Its first virtual address.
pub const VA: u64 = 0x7f00_0000_0000;
/// Its length in bytes.
pub const LEN: u64 = 32 << 20;
/// A region over the first bytes of the data, through a list of pages.
pub const PAGED_STAG: u32 = 0x0000_2206;
/// Length of that region in bytes.
pub const PAGED_LEN: u64 = 64 << 10;
/// An STag that is allocated for fast registration.
pub const FAST_STAG: u32 = 0x0000_2300;
/// A memory window that is not bound.
pub const WINDOW: u32 = 0x0000_2400;
/// The completion queue of all queue pairs.
pub const CQ: u32 = 3;
/// Its length.
pub const CQ_ENTRIES: u32 = 4096;
/// The first connected queue pair; the others follow.
pub const FIRST_QP: u32 = 8;
/// The datagram queue pair.
pub const UD_QP: u32 = 4;
/// The address handle of the other port.
pub const HANDLE: u32 = 4;
/// Entries (of one quantum) in a send queue.
pub const SQ: u64 = 64;
/// Entries in a receive queue.
pub const RQ: u64 = 32;

const RC: u64 = 3;
const UD: u64 = 4;
/// The doorbell of send queues.
pub const SQ_DOORBELL: u64 = 0x50_4400;
const VALID: u64 = 1 << 63;

/// Places in low memory, which the RDMA driver leaves alone.
pub mod place {
    /// Send ring of the admin queue, 32 descriptors.
    pub const ADMIN: u64 = 0x1000;
    /// Event ring of the admin queue, 32 descriptors.
    pub const EVENTS: u64 = 0x2000;
    /// Buffer of admin commands.
    pub const BUFFER: u64 = 0x4000;
    /// Buffers of events, 512 bytes each.
    pub const EVENT_BUFFERS: u64 = 0x5000;
    /// Ring of Tx queue 0, 64 descriptors.
    pub const TX: u64 = 0xa000;
    /// Ring of Rx queue 0, 64 descriptors of 32 bytes.
    pub const RX: u64 = 0xb000;
    /// A frame to send.
    pub const FRAME: u64 = 0x1_0000;
    /// Buffers to receive into, 2 KiB each.
    pub const RX_BUFFERS: u64 = 0x2_0000;
    /// Nothing is here.
    pub const SCRATCH: u64 = 0x6_0000;
}

/// Entries of the admin queue's rings.
pub const ADMIN_ENTRIES: u32 = 32;

/// A connected or datagram queue pair and where its driver is.
#[derive(Debug, Clone, Copy)]
pub struct LiveQp {
    /// Its number.
    pub id: u32,
    /// Its memory.
    pub rings: Rings,
    /// Entries posted to the send queue so far.
    pub sq_head: u64,
    /// Entries posted to the receive queue so far.
    pub rq_head: u64,
}

/// What the driver of one port knows.
#[derive(Debug, Clone)]
pub struct Port {
    /// The queue pairs: connected ones, then the one for datagrams.
    pub qps: Vec<LiveQp>,
    /// The completion queue.
    pub cq: Queue,
    /// Guest address of the data.
    pub data: u64,
    /// Guest address of the list of pages (PBLE 0).
    pub pbles: u64,
    /// The control queue's ring: where the next command goes.
    pub cqp: (u64, u32, bool),
    /// Ring of the asynchronous event queue.
    pub aeq: u64,
    /// Where the admin queue's next command goes.
    pub admin_tail: u32,
}

/// The two ports and the machine.
pub struct Pair {
    /// The machine, functions 0 and 1.
    pub machine: Machine,
    /// What their drivers know.
    pub ports: [Port; 2],
    /// The time; whoever drives the pair moves it.
    pub now: u64,
    mtu: u16,
}

impl Pair {
    /// Brings both functions up with `qps` connected queue pairs each, number
    /// n to number n, whose packets carry `mtu` bytes.
    pub fn new(qps: u32, mtu: u16, trace: Trace) -> Self {
        let violations = Violations::quiet();
        let mut machine = Machine::new(Wire::back_to_back(2), trace, violations);
        let ports = [1u8, 2].map(|me| bring_up(&mut machine, me, qps, mtu));
        let mut pair = Pair {
            machine,
            ports,
            now: 0,
            mtu,
        };
        for port in 0..2 {
            pair.bring_up_lan(port);
        }
        assert_eq!(pair.machine.violations().all(), []);
        pair
    }

    /// Writes a register of BAR 0.
    pub fn write(&mut self, port: usize, offset: u64, value: u32) {
        let now = self.now;
        self.machine.write(port, offset, &value.to_le_bytes(), now);
    }

    /// Reads a register of BAR 0.
    pub fn read(&mut self, port: usize, offset: u64) -> u32 {
        let mut data = [0; 4];
        let now = self.now;
        self.machine.read(port, offset, &mut data, now);
        u32::from_le_bytes(data)
    }

    /// Writes guest memory.
    pub fn put(&mut self, port: usize, address: u64, bytes: &[u8]) {
        let memory = self.machine.memory(port).expect("port");
        memory.write(address, bytes).expect("guest memory");
    }

    /// Writes quad words to guest memory.
    pub fn put_words(&mut self, port: usize, address: u64, words: &[u64]) {
        let memory = self.machine.memory(port).expect("port");
        for (at, word) in (address..).step_by(8).zip(words) {
            memory.write_u64(at, *word).expect("guest memory");
        }
    }

    /// Reads a quad word of guest memory.
    pub fn peek(&mut self, port: usize, address: u64) -> u64 {
        let memory = self.machine.memory(port).expect("port");
        memory.read_u64(address).expect("guest memory")
    }

    /// Posts a send entry of one quantum to queue pair number `qp` of the
    /// list, whose valid bits are set in `quads`; rings no doorbell.
    pub fn post(&mut self, port: usize, qp: usize, quads: &[u64; 4]) {
        let live = &mut self.ports[port].qps[qp];
        let mut quads = *quads;
        if live.sq_head / SQ % 2 == 1 {
            quads[1] &= !VALID;
            quads[3] &= !VALID;
        }
        let at = live.rings.sq + live.sq_head % SQ * 32;
        live.sq_head += 1;
        self.put_words(port, at, &quads);
    }

    /// Posts a receive of `len` bytes at `offset` of the data.
    pub fn post_receive(&mut self, port: usize, qp: usize, offset: u64, len: u32) {
        let live = &mut self.ports[port].qps[qp];
        let valid = (1 - live.rq_head / RQ % 2) << 63;
        let at = live.rings.rq + live.rq_head % RQ * 32;
        live.rq_head += 1;
        let word = valid | u64::from(len) << 32 | u64::from(STAG);
        self.put_words(port, at, &[VA + offset, word, 0, valid]);
    }

    /// Rings the doorbell of queue pair number `qp` of the list.
    pub fn ring(&mut self, port: usize, qp: usize) {
        let id = self.ports[port].qps[qp].id;
        self.write(port, SQ_DOORBELL, id);
    }

    /// Prepares the memory of queue pair number `qp` of the list for making it
    /// anew: its context as it was first, its rings empty.
    pub fn reset_qp(&mut self, port: usize, qp: usize) {
        let live = &mut self.ports[port].qps[qp];
        (live.sq_head, live.rq_head) = (0, 0);
        let live = *live;
        let mut words = Driver::context(live.rings, CQ, live.id);
        address(&mut words, port as u8 + 1, self.mtu);
        self.put_words(port, live.rings.context, &words);
        self.put(port, live.rings.sq, &[0; SQ as usize * 32]);
        self.put(port, live.rings.rq, &[0; RQ as usize * 32]);
    }

    /// Counts the completions from entry number `seen` (of all so far) on,
    /// tells the device that they were seen, and gives the new number.
    pub fn consume(&mut self, port: usize, mut seen: u64) -> u64 {
        let Queue {
            ring,
            shadow,
            entries,
        } = self.ports[port].cq;
        let entries = u64::from(entries);
        loop {
            let header = self.peek(port, ring + seen % entries * 32 + 24);
            if header >> 63 != 1 - seen / entries % 2 {
                break;
            }
            seen += 1;
        }
        self.put_words(port, shadow, &[seen % entries]);
        seen
    }

    /// Sends an admin command with a buffer; gives its return value.
    pub fn admin(&mut self, port: usize, opcode: u16, params: &[u8], buffer: &[u8]) -> u16 {
        let mut raw = [0; 32];
        let mut flags = 0u16;
        if !buffer.is_empty() {
            flags |= 0x1000 | if buffer.len() > 512 { 0x200 } else { 0 };
            raw[28..32].copy_from_slice(&(place::BUFFER as u32).to_le_bytes());
            self.put(port, place::BUFFER, buffer);
        }
        raw[..2].copy_from_slice(&flags.to_le_bytes());
        raw[2..4].copy_from_slice(&opcode.to_le_bytes());
        raw[4..6].copy_from_slice(&(buffer.len() as u16).to_le_bytes());
        raw[16..16 + params.len()].copy_from_slice(params);
        let tail = self.ports[port].admin_tail;
        let at = place::ADMIN + u64::from(tail) * 32;
        self.put(port, at, &raw);
        let tail = (tail + 1) % ADMIN_ENTRIES;
        self.ports[port].admin_tail = tail;
        self.write_named(port, "PF_FW_ATQT", 0, tail);
        let words = self.peek(port, at).to_le_bytes();
        assert_eq!(le16(&words, 0) & 1, 1, "command {opcode:#06x} is not done");
        le16(&words, 6)
    }

    /// Writes a register of the LAN half by its name.
    pub fn write_named(&mut self, port: usize, name: &str, index: u32, value: u32) {
        self.write(port, regs::offset(name, index).into(), value);
    }

    /// Starts the admin queue.
    pub fn start_admin_queue(&mut self, port: usize) {
        for (queue, ring) in [("ATQ", place::ADMIN), ("ARQ", place::EVENTS)] {
            for (part, value) in [
                ("H", 0),
                ("T", 0),
                ("LEN", ADMIN_ENTRIES | 1 << 31),
                ("BAL", ring as u32),
                ("BAH", 0),
            ] {
                self.write_named(port, &format!("PF_FW_{queue}{part}"), 0, value);
            }
        }
        self.ports[port].admin_tail = 0;
        for n in 0..u64::from(ADMIN_ENTRIES) - 1 {
            let buffer = place::EVENT_BUFFERS + n * 512;
            let at = place::EVENTS + n * 32;
            self.put_words(port, at, &[512 << 32, 0, 0, buffer << 32]);
        }
        self.write_named(port, "PF_FW_ARQT", 0, ADMIN_ENTRIES - 1);
    }

    fn reply(&mut self, port: usize, len: usize) -> Vec<u8> {
        let mut buffer = vec![0; len];
        let memory = self.machine.memory(port).expect("port");
        memory.read(place::BUFFER, &mut buffer).expect("buffer");
        buffer
    }

    fn bring_up_lan(&mut self, port: usize) {
        self.start_admin_queue(port);
        // A VSI with the protocol engine and queues 0 to 3.
        let mut vsi = [0; 128];
        vsi[80] = 1;
        vsi[62..64].copy_from_slice(&(2u16 << 11).to_le_bytes());
        assert_eq!(self.admin(port, 0x0210, &[], &vsi), 0);
        let mac = self.machine.port(port).expect("port").mac;
        // Frames to its address, to groups and to all.
        for (recipe, address) in [(1u16, mac), (3, [1, 0, 0, 0, 0, 0]), (3, [0xff; 6])] {
            self.add_rule(port, recipe, address);
        }
        self.bring_up_tx(port);
        self.bring_up_rx(port);
    }

    /// Adds a rule that gives frames to `address` to VSI 1.
    fn add_rule(&mut self, port: usize, recipe: u16, address: [u8; 6]) {
        let mut rule = [0; 32];
        rule[4..6].copy_from_slice(&recipe.to_le_bytes());
        rule[8..12].copy_from_slice(&(1u32 << 4 | 1 << 17).to_le_bytes());
        rule[14..16].copy_from_slice(&16u16.to_le_bytes());
        rule[16..22].copy_from_slice(&address);
        assert_eq!(self.admin(port, 0x02a0, &[1, 0], &rule), 0);
    }

    fn bring_up_tx(&mut self, port: usize) {
        assert_eq!(self.admin(port, 0x0400, &[], &[0; 4096]), 0);
        let generic = le32(&self.reply(port, 128), 8 + 3 * 24 + 4);
        let mut group = [0; 8 + 48];
        group[..4].copy_from_slice(&generic.to_le_bytes());
        group[4] = 1;
        let context = &mut group[16..38];
        context[..8].copy_from_slice(&(place::TX >> 7 | 1 << 57).to_le_bytes());
        // VSI 1 at bit 80, 64 descriptors at bit 135, segmentation at bit 152.
        context[10] = 1;
        context[16..20].copy_from_slice(&(64u32 << 7 | 1 << 24).to_le_bytes());
        assert_eq!(self.admin(port, 0x0c30, &[1], &group), 0);
    }

    fn bring_up_rx(&mut self, port: usize) {
        // 64 descriptors of 32 bytes, buffers of 2 KiB, frames up to 9 KiB.
        let mut context = [0u64; 4];
        context[0] = place::RX >> 7 << 32;
        context[1] = 64 << 25 | 16 << 38 | 1 << 52 | 1 << 53;
        context[2] = 9216 << 46;
        for word in 0..8 {
            let value = (context[word / 2] >> (word % 2 * 32)) as u32;
            self.write_named(port, "QRX_CONTEXT", word as u32 * 2048, value);
        }
        for n in 0..64 {
            let at = place::RX + n * 32;
            self.put_words(port, at, &[place::RX_BUFFERS + n * 2048, 0, 0, 0]);
        }
        self.write_named(port, "QRX_CTRL", 0, 1);
        self.write_named(port, "QRX_TAIL", 0, 63);
    }
}

/// A send entry of one quantum: opcode, piece of the data, and what the header
/// and the third quad word carry.
pub fn entry(opcode: u8, offset: u64, len: u32, header: u64, third: u64) -> [u64; 4] {
    [
        VA + offset,
        VALID | u64::from(len) << 32 | u64::from(STAG),
        third,
        VALID | 1 << 62 | u64::from(opcode) << 32 | header,
    ]
}

/// Rewrites addresses, sequence numbers and packet size of a context.
fn address(words: &mut [u64], me: u8, mtu: u16) {
    let peer = 3 - me;
    words[4] = 0x0a00_0000 | u64::from(peer);
    words[6] = u64::from(mtu) << 16 | u64::from(peer) << 48;
    words[8] |= 0x1234 << 32;
    words[10] = u64::from(me) << 8;
    words[11] = u64::from(peer) << 8;
    words[12] = words[10] << 32 | words[10];
    words[19] = 0x0200_0000_0000_0000 | u64::from(me) << 16;
    // Remote writes and reads, binds and fast registrations are allowed.
    words[20] |= 1 << 19 | 1 << 23 | 1 << 24;
    words[23] = 0x0a00_0000 | u64::from(me);
}

/// Port `me` of 10.0.0.x with its objects; becomes the machine's next function.
fn bring_up(machine: &mut Machine, me: u8, qps: u32, mtu: u16) -> Port {
    let count = (FIRST_QP + qps).next_power_of_two().max(64);
    let mut driver = Driver::sized(count);
    driver.bench.port.mac = [2, 0, 0, 0, 0, me];
    driver.bench.port.addresses = vec![];
    driver.bench.port.vsis = vec![1];
    let cq = driver.create_cq(CQ, CQ_ENTRIES);
    let data = driver.alloc(LEN, 4096);
    driver.register(STAG, VA, data, LEN, 0x1f);
    let pbles = list(&mut driver, data);
    let mut live: Vec<LiveQp> = (FIRST_QP..FIRST_QP + qps)
        .map(|id| create(&mut driver, id, RC, me, mtu))
        .collect();
    live.push(create(&mut driver, UD_QP, UD, me, mtu));
    let peer = u64::from(3 - me);
    driver.ok([
        0x0200_0000_0000_0000 | u64::from(me) << 16,
        3 << 48,
        peer << 48 | 64 << 32,
        1 << 59 | 0x1c << 32 | u64::from(HANDLE),
        0x0a00_0000 | peer,
        0,
        0x0a00_0000 | u64::from(me),
        0,
    ]);
    assert_eq!(driver.violations(), Vec::<String>::new());
    let (cqp, aeq) = (driver.cqp_place(), driver.aeq);
    let nic = E810::around(Config::default(), driver.rdma);
    let index = machine.add(Box::new(nic), driver.bench.port);
    if let Some(memory) = machine.memory(index) {
        *memory = driver.bench.memory;
    }
    Port {
        qps: live,
        cq,
        data,
        pbles,
        cqp,
        aeq,
        admin_tail: 0,
    }
}

/// The list of pages and what uses it.
fn list(driver: &mut Driver, data: u64) -> u64 {
    let plan = driver.rdma.hmc.plan.as_ref().expect("plan");
    let first = plan.address(Object::Pble, 0).expect("PBLE");
    let pbles = driver.with(|rdma, cx| rdma.hmc.translate(cx.memory, first));
    let pbles = pbles.expect("memory of the PBLEs");
    let pages: Vec<u64> = (0..PAGED_LEN / 4096).rev().collect();
    let pages: Vec<u64> = pages.iter().map(|page| data + page * 4096).collect();
    driver.put(pbles, &pages);
    let rights = 0x1f << 48 | 1 << 53 | 1 << 59;
    let register = (0x0a << 32) | (1 << 43) | (1 << 44) | rights;
    let length = PAGED_LEN | (3 << 46);
    driver.ok([0, length, PAGED_STAG.into(), register, 0, 0, 0, 0]);
    let allocate = (0x09 << 32) | (1 << 43) | (1 << 53);
    let fast = u64::from(FAST_STAG);
    driver.ok([0, LEN | (3 << 46), fast, allocate, 0, 0, 0, 0]);
    let window = 0x09 << 32 | 1 << 53;
    driver.ok([0, 3 << 46, WINDOW.into(), window, 0, 0, 0, 0]);
    pbles
}

fn create(driver: &mut Driver, id: u32, kind: u64, me: u8, mtu: u16) -> LiveQp {
    let rings = Rings {
        context: driver.alloc(256, 256),
        sq: driver.alloc(SQ * 32, 256),
        rq: driver.alloc(RQ * 32, 256),
        shadow: driver.alloc(64, 64),
    };
    let mut words = Driver::context(rings, CQ, id);
    address(&mut words, me, mtu);
    driver.put(rings.context, &words);
    driver.ok(Driver::qp_command(0x00, id, kind, 1, rings));
    driver.connect_qp(id, kind, rings);
    LiveQp {
        id,
        rings,
        sq_head: 0,
        rq_head: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdma::wqe::op;

    #[test]
    fn data_passes_between_the_functions() {
        let mut pair = Pair::new(2, 1024, Trace::off());
        let bytes: Vec<u8> = (0..100_000u32).map(|n| (n ^ n >> 8) as u8).collect();
        let from = pair.ports[0].data + 0x1000;
        pair.put(0, from, &bytes);
        let write = entry(op::WRITE, 0x1000, 100_000, STAG.into(), VA + 0x8_0000);
        pair.post(0, 1, &write);
        pair.post_receive(1, 0, 0x100, 5000);
        pair.post(0, 0, &entry(op::SEND, 0x1000, 5000, 0, 0));
        pair.post_receive(1, 2, 0, 200);
        let datagram = entry(op::SEND, 0x1000, 60, HANDLE.into(), 4 << 32 | 0x1234);
        pair.post(1, 2, &datagram);
        pair.post_receive(0, 2, 0, 200);
        for (port, qp) in [(0, 1), (0, 0), (1, 2)] {
            pair.ring(port, qp);
        }
        let mut got = vec![0; 100_000];
        let data = pair.ports[1].data;
        let memory = pair.machine.memory(1).unwrap();
        memory.read(data + 0x8_0000, &mut got).unwrap();
        assert_eq!(got, bytes);
        memory.read(data + 0x100, &mut got[..5000]).unwrap();
        assert_eq!(got[..5000], bytes[..5000]);
        // A write, a send and a datagram; a send and a datagram sent. What was
        // received as a datagram takes two entries.
        assert_eq!(pair.consume(0, 0), 4);
        assert_eq!(pair.consume(1, 0), 2);
        assert_eq!(pair.machine.violations().all(), []);
    }

    #[test]
    fn a_slow_emulator_repeats_nothing() {
        let mut pair = Pair::new(1, 1024, Trace::off());
        // More frames than are handled in one go, and a second between each
        // look at the clock: far beyond every timer.
        let writes = 50;
        for _ in 0..writes {
            let write = entry(op::WRITE, 0x1000, 100_000, STAG.into(), VA + 0x8_0000);
            pair.post(0, 0, &write);
        }
        let before = pair.machine.wire().counts(0).unwrap().sent;
        pair.ring(0, 0);
        let mut done = pair.consume(0, 0);
        assert!(done < writes, "the register write does not do it all");
        for _ in 0..10 {
            pair.now += 1_000_000_000;
            // What the driver does meanwhile must not run timers either.
            pair.ring(0, 0);
            pair.machine.poll(pair.now);
            done = pair.consume(0, done);
        }
        assert_eq!(done, writes);
        let sent = pair.machine.wire().counts(0).unwrap().sent - before;
        assert_eq!(sent, writes * 98);
    }

    /// The code of the port's newest asynchronous event, and how many.
    fn events(pair: &mut Pair, port: usize) -> Vec<u64> {
        let aeq = pair.ports[port].aeq;
        let words = (0..8).map(|n| pair.peek(port, aeq + n * 16 + 8));
        words
            .take_while(|w| w >> 63 == 1)
            .map(|w| w >> 34 & 0xfff)
            .collect()
    }

    /// Binds the window of port 1 to 4 KiB of its data, with `key`.
    fn bind(pair: &mut Pair, key: u32, rights: u64) {
        let header = 1 << 63 | 1 << 62 | u64::from(op::BIND_WINDOW) << 32;
        let window = u64::from(STAG) << 32 | u64::from(WINDOW | key);
        let base = VA + 0x2000;
        let words = [base, window, 4096, header | rights << 48 | 1 << 53];
        pair.post(1, 0, &words);
        pair.ring(1, 0);
    }

    #[test]
    fn a_window_shows_a_part_of_its_region_until_it_is_invalidated() {
        const KEY: u32 = 0x17;
        let mut pair = Pair::new(1, 1024, Trace::off());
        let rkey = u64::from(WINDOW | KEY);
        bind(&mut pair, KEY, 0x8);
        assert_eq!(pair.consume(1, 0), 1);
        let from = pair.ports[0].data;
        pair.put(0, from, &[0x5a; 4096]);
        let inside = entry(op::WRITE, 0, 4096, rkey, VA + 0x2000);
        pair.post(0, 0, &inside);
        pair.ring(0, 0);
        assert_eq!(pair.consume(0, 0), 1);
        let there = pair.ports[1].data + 0x2000;
        assert_eq!(pair.peek(1, there + 4088), 0x5a5a_5a5a_5a5a_5a5a);
        assert_eq!(pair.peek(1, there + 4096), 0);
        // Taken away by its owner, it shows nothing: the peer hears of a
        // remote access error, its own side of an invalid STag.
        let words = [
            0,
            rkey,
            0,
            1 << 63 | 1 << 62 | u64::from(op::LOCAL_INV) << 32,
        ];
        pair.post(1, 0, &words);
        pair.ring(1, 0);
        assert_eq!(pair.consume(1, 1), 2);
        pair.post(0, 0, &inside);
        pair.ring(0, 0);
        assert_eq!(events(&mut pair, 0), [0x20d]);
        assert_eq!(events(&mut pair, 1), [0x103]);
        assert_eq!(pair.machine.violations().all(), []);
    }

    #[test]
    fn a_window_has_bounds_rights_and_a_key() {
        const KEY: u32 = 0x17;
        let window = WINDOW | KEY;
        for (rkey, opcode, offset, code) in [
            (window, op::WRITE, 0x2001, 0x108),
            (window, op::WRITE, 0x1fff, 0x108),
            (window, op::READ, 0x2000, 0x109),
            (window + 1, op::WRITE, 0x2000, 0x106),
        ] {
            let mut pair = Pair::new(1, 1024, Trace::off());
            bind(&mut pair, KEY, 0x8);
            pair.post(0, 0, &entry(opcode, 0, 4096, rkey.into(), VA + offset));
            pair.ring(0, 0);
            assert_eq!(events(&mut pair, 1), [code], "{rkey:#x} {offset:#x}");
            assert_eq!(events(&mut pair, 0), [0x20d]);
            assert_eq!(pair.machine.violations().all(), []);
        }
    }

    /// Doorbell after doorbell for packets of thousands of segments: what the
    /// wire does not take waits in the ring, in guest memory.
    #[test]
    fn segments_do_not_heap_up() {
        let mut pair = Pair::new(1, 1024, Trace::off());
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 1, 0];
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.resize(42, 0);
        pair.put(0, place::FRAME, &frame);
        // 15 pieces of 16,000 bytes after the headers, 64 bytes a segment.
        let pieces = 15u64;
        let payload = pieces * 16_000;
        let (offsets, kind) = ((7u64 | 5 << 7 | 2 << 14) << 16, 0x360u64 << 4);
        for packet in 0..3 {
            let data = pair.ports[0].data;
            let mut words = vec![0, 1 | 1 << 4 | payload << 30 | 64 << 50];
            words.extend([place::FRAME, 42 << 34 | offsets | kind]);
            for n in 0..pieces {
                let last = u64::from(n == pieces - 1) << 4;
                words.extend([data + n * 16_000, 16_000 << 34 | offsets | kind | last]);
            }
            pair.put_words(0, place::TX + packet * 17 * 16, &words);
        }
        let before = pair.machine.wire().counts(0).unwrap().sent;
        let each = payload / 64;
        let bound = each as usize + 64;
        // The ring is full, then half of it, and so on: none of these is sent at once.
        for _ in 0..20 {
            pair.write_named(0, "QTX_COMM_DBELL", 0, 51);
            assert!(pair.machine.wire().queued() <= bound);
        }
        for _ in 0..10 {
            let now = pair.now;
            pair.machine.poll(now);
        }
        let counts = pair.machine.wire().counts(0).unwrap();
        assert_eq!((counts.sent - before, counts.lost), (3 * each, 0));
        assert_eq!(pair.machine.violations().all(), []);
    }

    #[test]
    fn the_addresses_are_what_the_rules_say() {
        const MOVED: [u8; 6] = [2, 0, 0, 0, 7, 7];
        let mut pair = Pair::new(1, 1024, Trace::off());
        let own = |pair: &Pair| pair.machine.port(1).unwrap().addresses.clone();
        assert_eq!(own(&pair), [[2, 0, 0, 0, 0, 2]]);
        pair.add_rule(1, 1, MOVED);
        assert_eq!(own(&pair), [[2, 0, 0, 0, 0, 2], MOVED]);
        // The rule of the factory address is the oldest: number 0.
        assert_eq!(pair.admin(1, 0x02a2, &[1, 0], &[0; 16]), 0);
        assert_eq!(own(&pair), [MOVED]);
        // Frames to all of one class are no frames to an address.
        pair.add_rule(1, 3, [2, 0, 0, 0, 0, 2]);
        assert_eq!(own(&pair), [MOVED]);
        pair.write_named(1, "PFGEN_CTRL", 0, 1);
        assert!(own(&pair).is_empty());
        assert_eq!(pair.machine.violations().all(), []);
    }

    #[test]
    fn lan_frames_pass_too() {
        let mut pair = Pair::new(1, 1024, Trace::off());
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5];
        frame.resize(60, 0x77);
        pair.put(0, place::FRAME, &frame);
        // A data descriptor: end of packet and report.
        pair.put_words(0, place::TX, &[place::FRAME, 60 << 34 | 3 << 4]);
        pair.write_named(0, "QTX_COMM_DBELL", 0, 1);
        assert_eq!(pair.peek(0, place::TX + 8), 0xf);
        assert_eq!(pair.peek(1, place::RX_BUFFERS + 16), 0x7777_7777_7777_7777);
        assert_eq!(pair.peek(1, place::RX + 8) & 3, 3);
        assert_eq!(pair.machine.violations().all(), []);
    }
}
