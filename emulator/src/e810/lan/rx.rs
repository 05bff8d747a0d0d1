// SPDX-License-Identifier: GPL-2.0
//! Rx queues: frames go into the guest's buffers.
//!
//! A descriptor is 32 bytes. The driver gives the address of a buffer in its
//! first eight; the device writes it back in the "flexible NIC" format.

use std::collections::BTreeMap;

use crate::bits::{bit, packed};
use crate::context::Context;

/// Profile number of the "flexible NIC" format.
const PROFILE: u64 = 2;

/// Status bits of a written-back descriptor.
pub mod status {
    /// Descriptor done.
    pub const DONE: u16 = 1 << 0;
    /// Last one of a frame.
    pub const END_OF_FRAME: u16 = 1 << 1;
    /// The device looked at the checksums.
    pub const CHECKSUMS: u16 = 1 << 3;
    /// The internet checksum is wrong.
    pub const IP_ERROR: u16 = 1 << 4;
    /// The transport checksum is wrong.
    pub const L4_ERROR: u16 = 1 << 5;
    /// The hash is valid.
    pub const HASH: u16 = 1 << 12;
    /// A VLAN tag was taken out.
    pub const TAG: u16 = 1 << 13;
}

/// The context of an Rx queue: eight registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxContext {
    /// Address of the ring.
    pub base: u64,
    /// Descriptors in the ring.
    pub length: u16,
    /// Size of a buffer in bytes.
    pub buffer: usize,
    /// Size of a descriptor in bytes, 16 or 32.
    pub descriptor: u64,
    /// Longest frame that is taken, in bytes.
    pub max_frame: usize,
    /// The frame checksum is not stored.
    pub strips_checksum: bool,
}

impl RxContext {
    fn parse(words: &[u32; 8]) -> Self {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        RxContext {
            base: packed(&bytes, 32, 57) << 7,
            length: packed(&bytes, 89, 13) as u16,
            buffer: packed(&bytes, 102, 7) as usize * 128,
            descriptor: if packed(&bytes, 116, 1) != 0 { 32 } else { 16 },
            max_frame: packed(&bytes, 174, 14) as usize,
            strips_checksum: packed(&bytes, 117, 1) != 0,
        }
    }
}

/// A frame on its way into buffers.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// The frame, in two parts (a VLAN tag between them was taken out).
    pub parts: [&'a [u8]; 2],
    /// Packet type.
    pub ptype: u16,
    /// Status bits besides "done" and "end of frame".
    pub status: u16,
    /// The VLAN tag that was taken out.
    pub tag: u16,
    /// The hash.
    pub hash: u32,
}

impl Incoming<'_> {
    fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is in the guest's memory.
    Delivered,
    /// There was no room for it.
    NoBuffer,
    /// The queue does not take frames so long.
    TooLong,
}

#[derive(Debug, Default)]
struct RxQueue {
    words: [u32; 8],
    context: Option<RxContext>,
    head: u16,
    tail: u16,
}

/// All Rx queues of the function.
#[derive(Debug, Default)]
pub struct RxQueues {
    queues: BTreeMap<u16, RxQueue>,
}

impl RxQueues {
    /// Reads QRX_CONTEXT.
    pub fn read_context(&self, queue: u16, word: usize) -> u32 {
        let queue = self.queues.get(&queue);
        queue.and_then(|q| q.words.get(word)).copied().unwrap_or(0)
    }

    /// Writes QRX_CONTEXT. A running queue's must not change.
    pub fn write_context(&mut self, cx: &mut Context<'_>, queue: u16, word: usize, value: u32) {
        let q = self.queues.entry(queue).or_default();
        if q.context.is_some() {
            cx.violation(
                "rx",
                format!("queue {queue}: context written while it runs"),
            );
        }
        if let Some(word) = q.words.get_mut(word) {
            *word = value;
        }
    }

    /// Reads QRX_CTRL: requested and running.
    pub fn read_control(&self, queue: u16) -> u32 {
        let running = self.queues.get(&queue).is_some_and(|q| q.context.is_some());
        if running {
            0b101
        } else {
            0
        }
    }

    /// Writes QRX_CTRL: starts or stops the queue.
    pub fn write_control(&mut self, cx: &mut Context<'_>, queue: u16, value: u32) {
        const REQUEST: u32 = 0;
        let q = self.queues.entry(queue).or_default();
        if !bit(value.into(), REQUEST) {
            q.context = None;
            return;
        }
        if q.context.is_some() {
            return;
        }
        let context = RxContext::parse(&q.words);
        // A control VSI's queue has no buffers: it never receives a frame.
        let usable = context.length > 0 && context.descriptor == 32;
        if !usable || !context.strips_checksum {
            cx.violation("rx", format!("queue {queue}: context {context:?}"));
            return;
        }
        q.head = 0;
        q.context = Some(context);
    }

    /// Reads QRX_TAIL.
    pub fn tail(&self, queue: u16) -> u32 {
        self.queues.get(&queue).map_or(0, |q| q.tail.into())
    }

    /// Writes QRX_TAIL: the driver gave buffers up to here.
    pub fn set_tail(&mut self, cx: &mut Context<'_>, queue: u16, tail: u32) {
        let q = self.queues.entry(queue).or_default();
        // The driver clears it while it prepares the queue.
        let length = match &q.context {
            Some(context) => context.length,
            None => packed_length(&q.words),
        };
        match u16::try_from(tail) {
            Ok(tail) if tail == 0 || tail < length => q.tail = tail,
            _ => cx.violation("rx", format!("queue {queue}: tail {tail} of {length}")),
        }
    }

    /// Puts a frame into the buffers of a queue.
    pub fn deliver(&mut self, cx: &mut Context<'_>, queue: u16, frame: &Incoming<'_>) -> Outcome {
        let Some(q) = self.queues.get_mut(&queue) else {
            return Outcome::NoBuffer;
        };
        let Some(context) = q.context else {
            return Outcome::NoBuffer;
        };
        let len = frame.len();
        if len > context.max_frame {
            return Outcome::TooLong;
        }
        if context.buffer == 0 {
            return Outcome::NoBuffer;
        }
        let free = (q.tail + context.length - q.head) % context.length;
        if len.div_ceil(context.buffer) > usize::from(free) {
            return Outcome::NoBuffer;
        }
        let mut offset = 0;
        while offset < len {
            let here = context.buffer.min(len - offset);
            let last = offset + here == len;
            let at = context
                .base
                .wrapping_add(u64::from(q.head) * context.descriptor);
            if fill(cx, at, frame, offset, here, last).is_none() {
                return Outcome::NoBuffer;
            }
            q.head = (q.head + 1) % context.length;
            offset += here;
        }
        Outcome::Delivered
    }
}

fn packed_length(words: &[u32; 8]) -> u16 {
    RxContext::parse(words).length
}

/// Puts one buffer's share of a frame into it and writes the descriptor at
/// `at` back, its status last.
fn fill(
    cx: &mut Context<'_>,
    at: u64,
    frame: &Incoming<'_>,
    offset: usize,
    len: usize,
    last: bool,
) -> Option<()> {
    let mut to = cx.read_u64("Rx descriptor", at).ok()?;
    let mut skip = offset;
    let mut left = len;
    for part in frame.parts {
        let here = part.len().saturating_sub(skip).min(left);
        if here > 0 {
            cx.write("Rx buffer", to, part.get(skip..skip + here)?)
                .ok()?;
            to = to.wrapping_add(here as u64);
            left -= here;
        }
        skip = skip.saturating_sub(part.len());
    }
    let (extra, tag, hash) = if last {
        (frame.status | status::END_OF_FRAME, frame.tag, frame.hash)
    } else {
        (0, 0, 0)
    };
    let qw0 = PROFILE | u64::from(frame.ptype) << 16 | (len as u64) << 32;
    let qw1 = u64::from(extra | status::DONE) | u64::from(tag) << 16 | u64::from(hash) << 32;
    cx.write("Rx descriptor", at.wrapping_add(16), &[0; 16])
        .ok()?;
    cx.write_u64("Rx descriptor", at, qw0).ok()?;
    cx.write_u64("Rx descriptor", at.wrapping_add(8), qw1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    const RING: u64 = 0x1000;
    const BUFFERS: u64 = 0x2000;

    /// Queue 1: eight descriptors, 256-byte buffers, frames up to 1000 bytes.
    fn running(bench: &mut Bench) -> RxQueues {
        let mut value = [0u64; 4];
        value[0] = RING >> 7 << 32;
        value[1] = 8 << 25 | 2 << 38 | 1 << 52 | 1 << 53;
        value[2] = 1000 << 46;
        let mut queues = RxQueues::default();
        let mut cx = bench.context();
        for word in 0..8 {
            let value = (value[word / 2] >> (word % 2 * 32)) as u32;
            queues.write_context(&mut cx, 1, word, value);
        }
        queues.write_control(&mut cx, 1, 1);
        assert_eq!(queues.read_control(1), 5);
        for n in 0..8 {
            cx.write_u64("", RING + n * 32, BUFFERS + n * 256).unwrap();
        }
        queues
    }

    fn incoming(parts: [&[u8]; 2]) -> Incoming<'_> {
        Incoming {
            parts,
            ptype: 26,
            status: status::CHECKSUMS,
            tag: 5,
            hash: 0x1234_5678,
        }
    }

    #[test]
    fn spans_buffers() {
        let mut bench = Bench::new(0x10000);
        let mut queues = running(&mut bench);
        let frame: Vec<u8> = (0..600u32).map(|n| n as u8).collect();
        let incoming = incoming([&frame[..100], &frame[100..]]);
        let mut cx = bench.context();
        assert_eq!(queues.deliver(&mut cx, 1, &incoming), Outcome::NoBuffer);
        queues.set_tail(&mut cx, 1, 7);
        assert_eq!(queues.deliver(&mut cx, 1, &incoming), Outcome::Delivered);
        let mut back = vec![0; 600];
        cx.read("", BUFFERS, &mut back).unwrap();
        assert_eq!(back, frame);
        let qw = |at: u64| bench.memory.read_u64(RING + at * 8).unwrap();
        assert_eq!((qw(0), qw(1)), (2 | 26 << 16 | 256 << 32, 1));
        assert_eq!(qw(8), 2 | 26 << 16 | 88 << 32);
        assert_eq!(qw(9), 0b1011 | 5 << 16 | 0x1234_5678 << 32);
        let mut cx = bench.context();
        assert_eq!(queues.deliver(&mut cx, 1, &incoming), Outcome::Delivered);
        assert_eq!(queues.deliver(&mut cx, 1, &incoming), Outcome::NoBuffer);
        assert_eq!(bench.violations.count(), 0);
    }

    #[test]
    fn bad_settings() {
        let mut bench = Bench::new(0x10000);
        let mut queues = running(&mut bench);
        let mut cx = bench.context();
        let long = [0; 1001];
        let incoming = incoming([&long, &[]]);
        queues.set_tail(&mut cx, 1, 7);
        assert_eq!(queues.deliver(&mut cx, 1, &incoming), Outcome::TooLong);
        queues.set_tail(&mut cx, 1, 8);
        queues.write_context(&mut cx, 1, 0, 0);
        queues.write_control(&mut cx, 2, 1);
        assert_eq!(queues.read_control(2), 0);
        queues.write_control(&mut cx, 1, 0);
        assert_eq!(queues.read_control(1), 0);
        assert_eq!(bench.violations.count(), 3);
    }
}
