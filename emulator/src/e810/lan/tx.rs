// SPDX-License-Identifier: GPL-2.0
//! Tx queues: descriptors in guest memory become frames.
//!
//! A descriptor is 16 bytes: an address or parameters, then type (4 bits),
//! command (12 bits), and what depends on the type.

use std::collections::{BTreeMap, VecDeque};

use serde_json::json;

use super::filter;
use super::offload::{self, Headers, Refused, L4};
use super::packet::Ip;
use super::stats::Stats;
use crate::bits::{bit, field, packed};
use crate::context::Context;
use crate::e810::adminq::switch::Switch;
use crate::e810::adminq::AqError;

/// Size of a descriptor in bytes.
const DESCRIPTOR: u64 = 16;
/// A packet may have so many pieces.
const PIECES: usize = 64;
/// Longest packet that is cut into segments, in bytes.
const PACKET_MAX: usize = 256 << 10;

/// Frames under way, this function's and those on the wire, at which a queue waits with its next packet. One packet
/// is at most [`PACKET_MAX`] / [`SEGMENT_MIN`] frames, so that a doorbell makes no more than that beyond.
const CROWDED: usize = 64;

/// Smallest segment in bytes, headers not counted.
const SEGMENT_MIN: usize = 64;

/// Types of descriptors.
mod kind {
    pub const DATA: u64 = 0;
    pub const CONTEXT: u64 = 1;
    pub const FILTER: u64 = 8;
    pub const DONE: u64 = 0xf;
}

/// Command bits of a data descriptor.
mod command {
    pub const END_OF_PACKET: u32 = 0;
    pub const REPORT: u32 = 1;
    pub const INSERT_TAG: u32 = 3;
    pub const DUMMY: u32 = 4;
}

/// The context of a Tx queue, as "add Tx queues" has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxContext {
    /// Address of the ring.
    pub base: u64,
    /// Descriptors in the ring.
    pub length: u16,
    /// The VSI that sends.
    pub source_vsi: u16,
    /// The function.
    pub function: u8,
    /// Segmentation is allowed.
    pub segmentation: bool,
}

impl TxContext {
    /// Parses the packed context.
    pub fn parse(bytes: &[u8]) -> Self {
        TxContext {
            base: packed(bytes, 0, 57) << 7,
            length: packed(bytes, 135, 13) as u16,
            source_vsi: packed(bytes, 80, 10) as u16,
            function: packed(bytes, 65, 3) as u8,
            segmentation: packed(bytes, 152, 1) != 0,
        }
    }
}

/// Segmentation that a context descriptor asks for.
#[derive(Clone, Copy, Debug)]
struct Segmentation {
    payload: usize,
    size: usize,
}

/// A packet while its descriptors are collected.
#[derive(Debug, Default)]
struct Packet {
    pieces: Vec<(u64, usize)>,
    segmentation: Option<Segmentation>,
    tunnel: bool,
    /// Command and offsets of the first data descriptor.
    first: Option<u64>,
    dummy: bool,
    broken: bool,
}

impl Packet {
    fn len(&self) -> usize {
        self.pieces.iter().map(|&(_, len)| len).sum()
    }

    /// Appends `len` bytes of the packet from `offset` on to `out`.
    fn read(&self, cx: &mut Context<'_>, offset: usize, len: usize, out: &mut Vec<u8>) -> bool {
        let mut skip = offset;
        let mut left = len;
        for &(address, size) in &self.pieces {
            if skip >= size {
                skip -= size;
                continue;
            }
            let here = (size - skip).min(left);
            let result = cx
                .memory
                .read_into(address.wrapping_add(skip as u64), here, out);
            if cx.guard("Tx buffer", result).is_err() {
                return false;
            }
            left -= here;
            skip = 0;
            if left == 0 {
                break;
            }
        }
        left == 0
    }
}

fn headers(qw1: u64) -> Headers {
    let (version, ip_checksum) = match field(qw1, 9, 2) {
        1 => (Some(Ip::V6), false),
        2 => (Some(Ip::V4), false),
        3 => (Some(Ip::V4), true),
        _ => (None, false),
    };
    Headers {
        mac: field(qw1, 16, 7) as usize * 2,
        ip: field(qw1, 23, 7) as usize * 4,
        l4: field(qw1, 30, 4) as usize * 4,
        version,
        ip_checksum,
        protocol: match field(qw1, 12, 2) {
            1 => Some(L4::Tcp),
            2 => Some(L4::Sctp),
            3 => Some(L4::Udp),
            _ => None,
        },
    }
}

#[derive(Debug)]
struct TxQueue {
    context: TxContext,
    node: u32,
    head: u16,
    tail: u16,
    packet: Packet,
}

/// All Tx queues of the function.
#[derive(Debug, Default)]
pub struct TxQueues {
    queues: BTreeMap<u16, TxQueue>,
    /// Those that wait to go on, in turn.
    waiting: VecDeque<u16>,
}

impl TxQueues {
    /// Returns whether there is a queue of this number.
    pub fn has(&self, queue: u16) -> bool {
        self.queues.contains_key(&queue)
    }

    /// Adds a queue whose scheduler node is `node`.
    pub fn add(
        &mut self,
        cx: &mut Context<'_>,
        queue: u16,
        context: TxContext,
        node: u32,
    ) -> Result<(), AqError> {
        if context.length == 0 || context.function != cx.port.pf_id {
            cx.violation("tx", format!("queue {queue}: context {context:?}"));
            return Err(AqError::Invalid);
        }
        self.queues.insert(
            queue,
            TxQueue {
                context,
                node,
                head: 0,
                tail: 0,
                packet: Packet::default(),
            },
        );
        Ok(())
    }

    /// Removes a queue. Returns its scheduler node.
    pub fn remove(&mut self, queue: u16) -> Option<u32> {
        self.waiting.retain(|&waiting| waiting != queue);
        self.queues.remove(&queue).map(|q| q.node)
    }

    /// The descriptor that the device handles next.
    pub fn head(&self, queue: u16) -> u16 {
        self.queues.get(&queue).map_or(0, |q| q.head)
    }

    /// The driver moved a queue's tail: sends what is there, or as much of it
    /// as there is room for on the wire. Returns whether the driver wants to
    /// hear of it.
    pub fn doorbell(
        &mut self,
        cx: &mut Context<'_>,
        switch: &Switch,
        stats: &mut Stats,
        queue: u16,
        tail: u32,
    ) -> bool {
        let Some(q) = self.queues.get_mut(&queue) else {
            cx.violation(
                "tx",
                format!("doorbell of queue {queue}, which is not there"),
            );
            return false;
        };
        let length = q.context.length;
        let Some(tail) = u16::try_from(tail).ok().filter(|&tail| tail < length) else {
            cx.violation("tx", format!("queue {queue}: tail {tail} of {length}"));
            return false;
        };
        q.tail = tail;
        self.run(cx, switch, stats, queue)
    }

    /// Whether a queue waits to go on.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// There is room again: goes on with the queue that has waited longest.
    /// Returns its number if its driver wants to hear of it.
    pub fn go_on(
        &mut self,
        cx: &mut Context<'_>,
        switch: &Switch,
        stats: &mut Stats,
    ) -> Option<u16> {
        let queue = self.waiting.pop_front()?;
        self.run(cx, switch, stats, queue).then_some(queue)
    }

    fn run(
        &mut self,
        cx: &mut Context<'_>,
        switch: &Switch,
        stats: &mut Stats,
        queue: u16,
    ) -> bool {
        let Some(q) = self.queues.get_mut(&queue) else {
            return false;
        };
        let mut report = false;
        while q.head != q.tail {
            if cx.queued + cx.frames.len() >= CROWDED {
                if !self.waiting.contains(&queue) {
                    self.waiting.push_back(queue);
                }
                break;
            }
            let offset = u64::from(q.head) * DESCRIPTOR;
            let address = q.context.base.wrapping_add(offset);
            let (Ok(qw0), Ok(qw1)) = (
                cx.read_u64("Tx descriptor", address),
                cx.read_u64("Tx descriptor", address.wrapping_add(8)),
            ) else {
                break;
            };
            q.head = (q.head + 1) % q.context.length;
            if let Some(packet) = q.descriptor(cx, queue, qw0, qw1) {
                q.send(cx, switch, stats, queue, &packet);
            }
            let is_data = field(qw1, 0, 4) == kind::DATA;
            if is_data && bit(field(qw1, 4, 12), command::REPORT) {
                report |= cx
                    .write_u64("Tx descriptor", address.wrapping_add(8), kind::DONE)
                    .is_ok();
            }
        }
        report
    }
}

impl TxQueue {
    /// Takes a descriptor in. Returns the packet that it completes.
    fn descriptor(
        &mut self,
        cx: &mut Context<'_>,
        queue: u16,
        qw0: u64,
        qw1: u64,
    ) -> Option<Packet> {
        const SEGMENT: u32 = 0;
        let flags = field(qw1, 4, 12);
        match field(qw1, 0, 4) {
            kind::DATA => {
                self.packet.first.get_or_insert(qw1);
                self.packet.dummy |= bit(flags, command::DUMMY);
                self.packet.pieces.push((qw0, field(qw1, 34, 14) as usize));
                if self.packet.pieces.len() > PIECES {
                    self.packet.broken = true;
                    self.packet.pieces.clear();
                }
                if bit(flags, command::END_OF_PACKET) {
                    return Some(std::mem::take(&mut self.packet));
                }
            }
            kind::CONTEXT => {
                if self.packet.first.is_some() {
                    cx.violation("tx", format!("queue {queue}: context inside of a packet"));
                    self.packet.broken = true;
                }
                self.packet.tunnel = field(qw0, 0, 24) != 0;
                if bit(flags, SEGMENT) {
                    self.packet.segmentation = Some(Segmentation {
                        payload: field(qw1, 30, 18) as usize,
                        size: field(qw1, 50, 14) as usize,
                    });
                }
            }
            // A flow-director filter, followed by a dummy packet. Frames are
            // not steered by filters here.
            kind::FILTER => {}
            other => {
                cx.violation(
                    "tx",
                    format!("queue {queue}: descriptor of type {other:#x}"),
                );
                self.packet.broken = true;
            }
        }
        None
    }

    fn send(
        &self,
        cx: &mut Context<'_>,
        switch: &Switch,
        stats: &mut Stats,
        queue: u16,
        packet: &Packet,
    ) {
        let Some(first) = packet.first.filter(|_| !packet.dummy) else {
            return;
        };
        let result = if packet.broken {
            Err(Refused::Lengths)
        } else if packet.tunnel {
            Err(Refused::Unsupported("tunnels"))
        } else {
            self.frames(cx, packet, first)
        };
        match result {
            Ok(frames) => {
                for frame in frames {
                    if filter::may_send(switch, self.context.source_vsi, &frame) {
                        self.emit(cx, stats, queue, frame);
                    }
                }
            }
            Err(why) => {
                stats.vsi(self.context.source_vsi).tx_errors += 1;
                cx.violation("tx", format!("queue {queue}: packet refused: {why:?}"));
            }
        }
    }

    fn emit(&self, cx: &mut Context<'_>, stats: &mut Stats, queue: u16, frame: Vec<u8>) {
        cx.trace("tx", || json!({"queue": queue, "len": frame.len()}));
        if frame.len() > cx.port.max_frame {
            cx.violation(
                "tx",
                format!("queue {queue}: frame of {} bytes", frame.len()),
            );
            stats.vsi(self.context.source_vsi).tx_errors += 1;
        } else if !cx.port.link_up {
            stats.tx_link_down += 1;
        } else {
            stats.tx.count(&frame);
            stats.vsi(self.context.source_vsi).tx.count(&frame);
            cx.frames.push(frame);
        }
    }

    /// Makes the frames of a packet: one, or one for each segment.
    fn frames(
        &self,
        cx: &mut Context<'_>,
        packet: &Packet,
        first: u64,
    ) -> Result<Vec<Vec<u8>>, Refused> {
        // Room for a tag, so that it moves no memory but that of the frame.
        const TAG: usize = 4;
        let headers = headers(first);
        let tag = bit(first, 4 + command::INSERT_TAG).then(|| field(first, 48, 16) as u16);
        let total = packet.len();
        let Some(segmentation) = packet.segmentation else {
            let mut frame = Vec::with_capacity(total + TAG);
            if !packet.read(cx, 0, total, &mut frame) {
                return Err(Refused::Lengths);
            }
            offload::fill_checksums(&mut frame, &headers)?;
            offload::finish_frame(&mut frame, tag);
            return Ok(vec![frame]);
        };
        let Segmentation { payload, size } = segmentation;
        if !self.context.segmentation {
            return Err(Refused::Unsupported("segmentation on this queue"));
        }
        if size < SEGMENT_MIN || total > PACKET_MAX || headers.total() + payload != total {
            return Err(Refused::Lengths);
        }
        let mut template = Vec::new();
        if !packet.read(cx, 0, headers.total(), &mut template) {
            return Err(Refused::Lengths);
        }
        let mut frames = Vec::with_capacity(payload.div_ceil(size));
        for (number, offset) in (0..payload).step_by(size).enumerate() {
            let here = size.min(payload - offset);
            let mut frame = Vec::with_capacity(template.len() + here + TAG);
            frame.extend(&template);
            if !packet.read(cx, headers.total() + offset, here, &mut frame) {
                return Err(Refused::Lengths);
            }
            let last = offset + here == payload;
            offload::finish_segment(&mut frame, &headers, number as u16, offset as u32, last)?;
            offload::finish_frame(&mut frame, tag);
            frames.push(frame);
        }
        Ok(frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::e810::lan::packet::{parse, tests::udp_frame, Checksums};
    use crate::testing::Bench;

    const RING: u64 = 0x1000;
    const DATA: u64 = 0x2000;

    fn context() -> TxContext {
        TxContext {
            base: RING,
            length: 8,
            source_vsi: 1,
            function: 0,
            segmentation: true,
        }
    }

    fn descriptor(bench: &Bench, at: u64, qw0: u64, qw1: u64) {
        bench.memory.write_u64(RING + at * 16, qw0).unwrap();
        bench.memory.write_u64(RING + at * 16 + 8, qw1).unwrap();
    }

    fn queues(bench: &mut Bench) -> TxQueues {
        let mut queues = TxQueues::default();
        queues.add(&mut bench.context(), 3, context(), 9).unwrap();
        queues
    }

    #[test]
    fn context_fields() {
        let mut bytes = [0u8; 22];
        bytes[0..8].copy_from_slice(&(RING >> 7 | 1 << 57).to_le_bytes());
        // Function 2 at bit 65, VSI 5 at bit 80, length 256 at bit 135,
        // segmentation at bit 152.
        bytes[8] = 2 << 1;
        bytes[10] = 5;
        bytes[17] = 0x80;
        bytes[16..20].copy_from_slice(&(256u32 << 7 | 1 << 24).to_le_bytes());
        let context = TxContext::parse(&bytes);
        assert_eq!(context.base, RING);
        assert_eq!(context.length, 256);
        assert_eq!((context.source_vsi, context.function), (5, 2));
        assert!(context.segmentation);
    }

    #[test]
    fn sends_pieces_and_reports() {
        let mut bench = Bench::new(0x10000);
        let mut queues = queues(&mut bench);
        let mut stats = Stats::default();
        let frame = udp_frame();
        bench.memory.write(DATA, &frame[..20]).unwrap();
        bench.memory.write(DATA + 100, &frame[20..]).unwrap();
        descriptor(&bench, 0, DATA, 20 << 34);
        descriptor(&bench, 1, DATA + 100, 27 << 34 | 0x3 << 4);
        assert!(queues.doorbell(&mut bench.context(), &Switch::default(), &mut stats, 3, 2));
        assert_eq!(bench.frames[0][..47], frame);
        assert_eq!(bench.frames[0].len(), 60);
        assert_eq!(bench.memory.read_u64(RING + 24), Ok(0xf));
        assert_ne!(bench.memory.read_u64(RING + 8), Ok(0xf));
        assert_eq!(queues.head(3), 2);
        assert_eq!(bench.violations.count(), 0);
    }

    #[test]
    fn segments_udp() {
        let mut bench = Bench::new(0x10000);
        let mut queues = queues(&mut bench);
        let mut stats = Stats::default();
        let mut packet = udp_frame()[..42].to_vec();
        packet.extend((0..250u8).map(|n| n ^ 0x55));
        bench.memory.write(DATA, &packet).unwrap();
        // Context: segmentation, 250 bytes of payload, 100 a segment.
        descriptor(&bench, 0, 0, 1 | 1 << 4 | 250 << 30 | 100 << 50);
        let offsets = 7 | 5 << 7 | 2 << 14;
        let flags = 0x3 | 0x60 | 0x300;
        descriptor(&bench, 1, DATA, 292 << 34 | offsets << 16 | flags << 4);
        queues.doorbell(&mut bench.context(), &Switch::default(), &mut stats, 3, 2);
        let lens: Vec<usize> = bench.frames.iter().map(Vec::len).collect();
        assert_eq!(lens, [142, 142, 92]);
        for frame in &bench.frames {
            let good = Checksums { ip: true, l4: true };
            assert_eq!(parse(frame).checksums, Some(good));
        }
        assert_eq!(bench.frames[2][42..], packet[242..]);
    }

    /// One doorbell, many packets: the queue stops where the wire has enough,
    /// and goes on when there is room.
    #[test]
    fn a_full_wire_makes_a_queue_wait() {
        const PACKETS: u64 = 4 * CROWDED as u64;
        let mut bench = Bench::new(0x10000);
        let mut queues = TxQueues::default();
        let context = TxContext {
            length: 512,
            ..context()
        };
        queues.add(&mut bench.context(), 3, context, 9).unwrap();
        let mut stats = Stats::default();
        let data = 0x8000;
        bench.memory.write(data, &udp_frame()).unwrap();
        for at in 0..PACKETS {
            descriptor(&bench, at, data, 47 << 34 | 0x3 << 4);
        }
        let switch = Switch::default();
        bench.queued = CROWDED;
        assert!(!queues.doorbell(&mut bench.context(), &switch, &mut stats, 3, PACKETS as u32));
        assert_eq!((queues.head(3), bench.frames.len()), (0, 0));
        bench.queued = 0;
        for round in 1..=4 {
            assert!(queues.waits());
            assert_eq!(
                queues.go_on(&mut bench.context(), &switch, &mut stats),
                Some(3)
            );
            assert_eq!(usize::from(queues.head(3)), round * CROWDED);
            assert_eq!(bench.frames.len(), CROWDED);
            bench.frames.clear();
        }
        assert!(!queues.waits());
        // A queue that is gone waits no more.
        bench.queued = CROWDED;
        queues.doorbell(&mut bench.context(), &switch, &mut stats, 3, 0);
        assert!(queues.waits());
        queues.remove(3);
        assert!(!queues.waits());
        assert_eq!(bench.violations.count(), 0);
    }

    /// Segments count too: after a packet of many, the next one waits.
    #[test]
    fn segments_fill_the_wire_too() {
        let mut bench = Bench::new(0x10000);
        let mut queues = queues(&mut bench);
        let mut stats = Stats::default();
        bench.memory.write(DATA, &udp_frame()[..42]).unwrap();
        let (payload, size) = (64 * 128, SEGMENT_MIN as u64);
        let offsets = 7 | 5 << 7 | 2 << 14;
        let flags = 0x3 | 0x60 | 0x300;
        for at in [0, 2] {
            descriptor(&bench, at, 0, 1 | 1 << 4 | payload << 30 | size << 50);
            let len = 42 + payload;
            descriptor(&bench, at + 1, DATA, len << 34 | offsets << 16 | flags << 4);
        }
        queues.doorbell(&mut bench.context(), &Switch::default(), &mut stats, 3, 4);
        assert_eq!((bench.frames.len(), queues.head(3)), (128, 2));
        assert!(queues.waits());
        bench.frames.clear();
        queues.go_on(&mut bench.context(), &Switch::default(), &mut stats);
        assert_eq!((bench.frames.len(), queues.head(3)), (128, 4));
        assert_eq!(bench.violations.count(), 0);
    }

    #[test]
    fn refuses_nonsense() {
        let mut bench = Bench::new(0x10000);
        let mut queues = queues(&mut bench);
        let mut stats = Stats::default();
        queues.doorbell(&mut bench.context(), &Switch::default(), &mut stats, 4, 1);
        queues.doorbell(&mut bench.context(), &Switch::default(), &mut stats, 3, 8);
        descriptor(&bench, 0, 0xdead_0000, 60 << 34 | 1 << 4);
        queues.doorbell(&mut bench.context(), &Switch::default(), &mut stats, 3, 1);
        descriptor(&bench, 1, 0, 5);
        queues.doorbell(&mut bench.context(), &Switch::default(), &mut stats, 3, 2);
        assert!(bench.frames.is_empty());
        assert!(bench.violations.count() >= 4);
    }
}
