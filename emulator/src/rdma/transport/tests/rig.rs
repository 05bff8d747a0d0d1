// SPDX-License-Identifier: GPL-2.0
//! The rig: nodes with flat memory, rings, regions, and a wire that can lose,
//! repeat, reorder and corrupt.

use std::collections::{HashMap, VecDeque};
use std::fmt::Display;

use crate::rdma::packet::{parse, Path};
use crate::rdma::qp_context::QpContext;
use crate::rdma::transport::host::AddressHandle;
use crate::rdma::transport::*;
use crate::rdma::wqe::{op, BindWindow, FastRegister};

/// Memory of a node; region addresses are offsets into it.
pub(crate) const MEMORY: usize = 8 << 20;
/// Where test data may be.
pub(crate) const DATA: u64 = 1 << 20;
const SQ: u64 = 0x1000;
const RQ: u64 = 0x1_1000;
pub(crate) const SQ_QUANTA: u32 = 256;
pub(crate) const RQ_QUANTA: u32 = 256;
/// Quanta of a receive entry: three fragments.
const RQ_SHIFT: u32 = 1;

/// The STag of all data with all rights.
pub(crate) const ALL: u32 = 0x1234_5601;
/// The rights bits of a region.
pub(crate) const LOCAL_READ: u8 = 1;
pub(crate) const LOCAL_WRITE: u8 = 2;
pub(crate) const REMOTE_READ: u8 = 4;
pub(crate) const REMOTE_WRITE: u8 = 8;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) rights: u8,
}

/// Everything of a node but its queue pair.
pub(crate) struct Device {
    pub(crate) now: u64,
    pub(crate) memory: Vec<u8>,
    pub(crate) regions: HashMap<u32, Region>,
    pub(crate) completions: Vec<Completion>,
    pub(crate) events: Vec<Event>,
    pub(crate) violations: Vec<String>,
    pub(crate) counters: HashMap<Counter, u64>,
    pub(crate) out: Vec<Vec<u8>>,
    pub(crate) neighbour: Option<[u8; 6]>,
    pub(crate) tail: u32,
    pub(crate) handles: HashMap<u32, AddressHandle>,
}

impl Device {
    fn find(&self, access: &Access, len: u64) -> Result<usize, u16> {
        let region = self
            .regions
            .get(&access.stag)
            .ok_or(events::code::AMP_INVALID_STAG)?;
        let right = match access.right {
            Right::LocalRead => LOCAL_READ,
            Right::LocalWrite => LOCAL_WRITE,
            Right::RemoteRead => REMOTE_READ,
            Right::RemoteWrite => REMOTE_WRITE,
        };
        if region.rights & right == 0 {
            return Err(events::code::AMP_RIGHTS_VIOLATION);
        }
        let inside = access.address >= region.start
            && access
                .address
                .checked_add(len)
                .is_some_and(|end| end <= region.start + region.len);
        if inside {
            Ok(access.address as usize)
        } else {
            Err(0x108)
        }
    }

    pub(crate) fn counter(&self, counter: Counter) -> u64 {
        self.counters.get(&counter).copied().unwrap_or(0)
    }
}

impl Host for Device {
    fn now(&self) -> u64 {
        self.now
    }

    fn read_queue(&mut self, _: u32, queue: Queue, index: u32, out: &mut [u8]) -> bool {
        let (base, quanta) = match queue {
            Queue::Send => (SQ, SQ_QUANTA),
            Queue::Receive => (RQ, RQ_QUANTA),
        };
        assert!(index as usize * 32 + out.len() <= quanta as usize * 32);
        let at = base as usize + index as usize * 32;
        out.copy_from_slice(&self.memory[at..at + out.len()]);
        true
    }

    fn write_tail(&mut self, _: u32, tail: u32) {
        self.tail = tail;
    }

    fn check(&mut self, access: &Access, length: u64) -> Result<(), u16> {
        self.find(access, length).map(|_| ())
    }

    fn load(&mut self, access: &Access, out: &mut [u8]) -> Result<(), u16> {
        let at = self.find(access, out.len() as u64)?;
        out.copy_from_slice(&self.memory[at..at + out.len()]);
        Ok(())
    }

    fn store(&mut self, access: &Access, data: &[u8]) -> Result<(), u16> {
        let at = self.find(access, data.len() as u64)?;
        self.memory[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }

    fn fast_register(&mut self, _: &Owner, register: &FastRegister) -> Result<(), u16> {
        let region = Region {
            start: register.address,
            len: register.length,
            rights: 0xf,
        };
        match self.regions.insert(register.stag, region) {
            None => Ok(()),
            Some(_) => Err(0x10c),
        }
    }

    fn bind_window(&mut self, _: &Owner, _: &BindWindow) -> Result<(), u16> {
        Err(events::code::MWBIND_BIND_DISABLED)
    }

    fn invalidate(&mut self, _: &Owner, stag: u32, _: bool) -> Result<(), u16> {
        let removed = self.regions.remove(&stag);
        removed.map(|_| ()).ok_or(events::code::AMP_INVALID_STAG)
    }

    fn neighbour(&mut self, _: u16) -> Option<[u8; 6]> {
        self.neighbour
    }

    fn address_handle(&mut self, index: u32) -> Option<AddressHandle> {
        self.handles.get(&index).copied()
    }

    fn complete(&mut self, _: &Endpoint, completion: &Completion) {
        self.completions.push(*completion);
    }

    fn event(&mut self, _: &Endpoint, event: Event) {
        self.events.push(event);
    }

    fn transmit(&mut self, frame: Vec<u8>) {
        self.out.push(frame);
    }

    fn count(&mut self, counter: Counter) {
        *self.counters.entry(counter).or_default() += 1;
    }

    fn violation(&mut self, kind: &str, text: impl Display) {
        self.violations.push(format!("{kind}: {text}"));
    }

    fn trace_wqe(&mut self, _: u32, _: Queue, _: u32, _: &[u8]) {}
}

/// A node: its device, its queue pair, and where its driver is in the rings.
pub(crate) struct Node {
    pub(crate) device: Device,
    pub(crate) qp: Endpoint,
    sq_head: u32,
    sq_valid: bool,
    rq_head: u32,
    rq_valid: bool,
}

/// A piece of data memory under [`ALL`].
pub(crate) fn piece(at: u64, len: u32) -> (u64, u32, u32) {
    (DATA + at, len, ALL)
}

impl Node {
    fn new(number: u32, service: Service, me: u8, peer: u8) -> Self {
        let context = QpContext {
            mss: 1024,
            ..context(number, me, peer)
        };
        let qp = Endpoint::new(number, service, context);
        let all = Region {
            start: DATA,
            len: MEMORY as u64 - DATA,
            rights: 0xf,
        };
        Self {
            device: Device {
                now: 0,
                memory: vec![0; MEMORY],
                regions: HashMap::from([(ALL, all)]),
                completions: vec![],
                events: vec![],
                violations: vec![],
                counters: HashMap::new(),
                out: vec![],
                neighbour: Some(mac(peer)),
                tail: 0,
                handles: HashMap::new(),
            },
            qp,
            sq_head: 0,
            sq_valid: true,
            rq_head: 0,
            rq_valid: true,
        }
    }

    pub(crate) fn modify(&mut self, state: State) {
        let context = self.qp.context.clone();
        self.qp.modify(&mut self.device, state, context);
    }

    fn put(&mut self, at: u64, quads: &[u64]) {
        let at = at as usize;
        for (i, quad) in quads.iter().enumerate() {
            self.device.memory[at + i * 8..at + i * 8 + 8].copy_from_slice(&quad.to_le_bytes());
        }
    }

    /// Posts an entry whose valid bits are all set in `quads`, padding with
    /// NOPs as the driver does; rings no doorbell.
    pub(crate) fn post(&mut self, quads: &[u64]) -> u32 {
        let quanta = quads.len() as u32 / 4;
        let room = 8 - self.sq_head % 8;
        if quanta > room {
            for _ in 0..room {
                self.post_one(&[0, 0, 0, 1 << 63 | u64::from(op::NOP) << 32]);
            }
        }
        self.post_one(quads)
    }

    /// Posts an entry where the last one ended, whether it may lie there or not.
    pub(crate) fn post_one(&mut self, quads: &[u64]) -> u32 {
        let index = self.sq_head;
        let mut quads = quads.to_vec();
        if !self.sq_valid {
            let inline = quads[3] >> 57 & 1 != 0;
            for (i, quad) in quads.iter_mut().enumerate() {
                if i % 4 == 3 || i % 2 == 1 && !inline {
                    *quad &= !(1 << 63);
                }
            }
        }
        self.put(SQ + u64::from(index) * 32, &quads);
        self.sq_head += quads.len() as u32 / 4;
        if self.sq_head == SQ_QUANTA {
            self.sq_head = 0;
            self.sq_valid = !self.sq_valid;
        }
        index
    }

    pub(crate) fn ring(&mut self) {
        self.qp.doorbell(&mut self.device);
    }

    /// Posts a receive of up to three fragments.
    pub(crate) fn post_receive(&mut self, pieces: &[(u64, u32, u32)]) -> u32 {
        let index = self.rq_head;
        let valid = u64::from(self.rq_valid) << 63;
        let mut quads = vec![0u64; 4 << RQ_SHIFT];
        fragments(&mut quads, 0, pieces, valid);
        let more = if pieces.len() > 1 { 2 } else { 0 };
        quads[3] |= valid | more << 38;
        self.put(RQ + u64::from(index) * 32, &quads);
        self.rq_head += 1 << RQ_SHIFT;
        if self.rq_head == RQ_QUANTA {
            self.rq_head = 0;
            self.rq_valid = !self.rq_valid;
        }
        index
    }

    pub(crate) fn data(&self, at: u64, len: usize) -> &[u8] {
        let at = (DATA + at) as usize;
        &self.device.memory[at..at + len]
    }

    /// Fills data memory with a pattern that `seed` makes its own.
    pub(crate) fn fill(&mut self, at: u64, len: usize, seed: u64) {
        let at = (DATA + at) as usize;
        let mut random = Random(seed);
        for byte in &mut self.device.memory[at..at + len] {
            *byte = random.next() as u8;
        }
    }

    pub(crate) fn take_completions(&mut self) -> Vec<Completion> {
        std::mem::take(&mut self.device.completions)
    }
}

/// Fragments as the driver lays them: the first in the first quantum (unless
/// `skip` places are taken by immediate data), then two in each.
fn fragments(quads: &mut [u64], skip: usize, pieces: &[(u64, u32, u32)], valid: u64) {
    for place in 0..quads.len() / 2 - 1 {
        let at = match place {
            0 => 0,
            n => 2 + n * 2,
        };
        let piece = place.checked_sub(skip).and_then(|i| pieces.get(i));
        if let Some((address, len, stag)) = piece {
            quads[at] = *address;
            quads[at + 1] = u64::from(*len) << 32 | u64::from(*stag);
        }
        if at + 1 != 1 || skip == 0 {
            quads[at + 1] |= valid;
        }
    }
}

/// A send entry with fragments. `low`: remote STag or address handle;
/// `second`: remote address, or Q_Key and QPN.
pub(crate) fn entry(
    opcode: u8,
    pieces: &[(u64, u32, u32)],
    imm: Option<u32>,
    low: u32,
    second: u64,
) -> Vec<u64> {
    let skip = usize::from(imm.is_some());
    let places = pieces.len() + skip;
    let more = places.saturating_sub(1).next_multiple_of(2);
    let mut quads = vec![0u64; 4 * (1 + more / 2)];
    fragments(&mut quads, skip, pieces, 1 << 63);
    if let Some(imm) = imm {
        quads[0] = u64::from(imm);
    }
    quads[2] = second;
    quads[3] = 3 << 62
        | u64::from(opcode) << 32
        | (more as u64) << 38
        | u64::from(imm.is_some()) << 47
        | u64::from(low);
    quads
}

pub(crate) fn send(pieces: &[(u64, u32, u32)]) -> Vec<u64> {
    entry(op::SEND, pieces, None, 0, 0)
}

pub(crate) fn write(pieces: &[(u64, u32, u32)], to: u64) -> Vec<u64> {
    entry(op::WRITE, pieces, None, ALL, DATA + to)
}

pub(crate) fn read(pieces: &[(u64, u32, u32)], from: u64) -> Vec<u64> {
    entry(op::READ, pieces, None, ALL, DATA + from)
}

/// Sets a header bit of an entry.
pub(crate) fn with(mut quads: Vec<u64>, bits: u64) -> Vec<u64> {
    quads[3] |= bits;
    quads
}

pub(crate) const READ_FENCE: u64 = 1 << 60;

pub(crate) fn mac(node: u8) -> [u8; 6] {
    [2, 0, 0, 0, 0, node]
}

pub(crate) fn context(number: u32, me: u8, peer: u8) -> QpContext {
    let mut words = [0u64; 32];
    words[0] = 1 << 3 | u64::from(RQ_SHIFT) << 8;
    words[3] = 64 | 6 << 8 | 6 << 12 | 2 << 24 | 0xc001 << 32 | 4791 << 48;
    words[4] = 0x0a00_0000 + u64::from(peer);
    words[6] = 1024 << 16;
    words[7] = 0xffff << 32 | 5 << 48;
    words[8] = (0x1111_1111 << 32) | (u64::from(peer) + 16);
    // The peer's first PSN is its number times 0x10000, less some to wrap soon.
    words[10] = (u64::from(me) * 0x10000).wrapping_sub(0x10003) & 0xff_ffff;
    words[11] = (u64::from(peer) * 0x10000).wrapping_sub(0x10003) & 0xff_ffff;
    words[14] = 1024 << 32;
    words[16] = 7 << 48 | 6 << 54 | 5 << 57;
    words[17] = 3 | 4 << 32;
    words[19] = u64::from_be_bytes([2, 0, 0, 0, 0, me, 0, 0]);
    words[20] = 16 | 1 << 16 | 1 << 19 | 3 << 20 | 3 << 24;
    words[21] = u64::from(number);
    words[23] = 0x0a00_0000 + u64::from(me);
    QpContext::decode(&words)
}

/// A small fixed generator of numbers (xorshift).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        if self.0 == 0 {
            self.0 = 0x9e37_79b9_7f4a_7c15;
        }
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }
}

/// What the wire does with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    Lose,
    Twice,
    /// Behind the next ones.
    Late,
    Corrupt,
}

/// Decides about each frame; the flag says that it comes from `a`.
pub(crate) type Judge = Box<dyn FnMut(bool, &[u8]) -> Fate>;

/// Two nodes and the wire.
pub(crate) struct Pair {
    pub(crate) a: Node,
    pub(crate) b: Node,
    pub(crate) now: u64,
    pub(crate) fate: Judge,
    /// All frames that were put on the wire.
    pub(crate) log: Vec<Vec<u8>>,
    queue: VecDeque<(bool, Vec<u8>)>,
    late: Vec<(bool, Vec<u8>)>,
}

impl Pair {
    pub(crate) fn new(service: Service) -> Self {
        Self {
            a: Node::new(17, service, 1, 2),
            b: Node::new(18, service, 2, 1),
            now: 0,
            fate: Box::new(|_, _| Fate::Pass),
            log: vec![],
            queue: VecDeque::new(),
            late: vec![],
        }
    }

    /// A pair ready to send, with packets of `mtu`.
    pub(crate) fn connected(service: Service, mtu: u16) -> Self {
        let mut pair = Self::new(service);
        for node in [&mut pair.a, &mut pair.b] {
            node.qp.context.mss = mtu;
            for state in [State::Idle, State::ReadyToReceive, State::ReadyToSend] {
                node.modify(state);
            }
        }
        pair
    }

    pub(crate) fn rc() -> Self {
        Self::connected(Service::Rc, 1024)
    }

    fn collect(&mut self) {
        for from_a in [true, false] {
            let node = if from_a { &mut self.a } else { &mut self.b };
            for frame in std::mem::take(&mut node.device.out) {
                self.log.push(frame.clone());
                match (self.fate)(from_a, &frame) {
                    Fate::Pass => self.queue.push_back((from_a, frame)),
                    Fate::Lose => {}
                    Fate::Twice => {
                        self.queue.push_back((from_a, frame.clone()));
                        self.queue.push_back((from_a, frame));
                    }
                    Fate::Late => {
                        self.late.push((from_a, frame));
                        continue;
                    }
                    Fate::Corrupt => {
                        let mut bad = frame;
                        let at = bad.len() / 2;
                        bad[at] ^= 0x10;
                        self.queue.push_back((from_a, bad));
                    }
                }
                self.queue.extend(self.late.drain(..));
            }
        }
        if self.queue.is_empty() {
            self.queue.extend(self.late.drain(..));
        }
    }

    /// Carries frames until nothing moves; time stands still.
    pub(crate) fn settle(&mut self) {
        for _ in 0..1_000_000 {
            self.collect();
            let Some((from_a, frame)) = self.queue.pop_front() else {
                let mut due = false;
                for node in [&mut self.a, &mut self.b] {
                    node.device.now = self.now;
                    if node.qp.deadline().is_some_and(|at| at <= self.now) {
                        due = true;
                        node.qp.poll(&mut node.device);
                    }
                }
                if due {
                    continue;
                }
                return;
            };
            let node = if from_a { &mut self.b } else { &mut self.a };
            node.device.now = self.now;
            if let Ok(packet) = parse(&frame, true) {
                node.qp.receive(&mut node.device, &packet);
            }
        }
        panic!("the wire never got quiet");
    }

    /// Settles, then lets time pass from timer to timer until none is set.
    pub(crate) fn run(&mut self) {
        for _ in 0..10_000 {
            self.settle();
            let next = [self.a.qp.deadline(), self.b.qp.deadline()];
            let Some(at) = next.into_iter().flatten().min() else {
                return;
            };
            self.now = self.now.max(at);
            for node in [&mut self.a, &mut self.b] {
                node.device.now = self.now;
                node.qp.poll(&mut node.device);
            }
        }
        panic!("timers never ended");
    }

    /// Nothing went wrong on either side.
    pub(crate) fn assert_clean(&self) {
        for node in [&self.a, &self.b] {
            assert_eq!(node.device.events, []);
            assert_eq!(node.device.violations, Vec::<String>::new());
            assert_eq!(node.qp.state, State::ReadyToSend);
        }
    }
}

/// The path of a datagram from node `me` to node `peer`.
pub(crate) fn datagram_path(me: u8, peer: u8) -> Path {
    Path {
        src_mac: mac(me),
        dst_mac: mac(peer),
        vlan: None,
        src_ip: std::net::Ipv4Addr::new(10, 0, 0, me).into(),
        dst_ip: std::net::Ipv4Addr::new(10, 0, 0, peer).into(),
        traffic_class: 0,
        hop_limit: 63,
        flow_label: 0,
        src_port: 0,
    }
}
