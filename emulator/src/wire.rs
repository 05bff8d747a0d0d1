// SPDX-License-Identifier: GPL-2.0
//! The wire: cables that join ports two by two, with the faults that real
//! cables have, and a capture of all that passed.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, TsResolution};
use serde::{Deserialize, Serialize};

use crate::context::Frame;

/// How often something goes wrong with the frames that a port sends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct When {
    /// The probability for each frame, 0 to 1.
    pub rate: f64,
    /// These frames, counted from 1 when the faults were set.
    pub nth: Vec<u64>,
}

impl When {
    fn strikes(&self, number: u64, random: &mut Random) -> bool {
        self.nth.contains(&number) || (self.rate > 0.0 && random.unit() < self.rate)
    }
}

/// The faults of the direction in which a port sends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WireFaults {
    /// The frame is lost.
    pub loss: When,
    /// The frame arrives twice.
    pub duplicate: When,
    /// One bit of the frame is turned over, somewhere after the addresses.
    pub corrupt: When,
    /// The frame arrives after the one that follows it (at the latest after
    /// one millisecond).
    pub reorder: When,
    /// Every frame arrives this many nanoseconds later.
    pub delay: u64,
    /// Only frames whose payload is RoCEv2 (UDP port 4791) are hit.
    pub only_roce: bool,
}

/// What passed a port's end of its cable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WireCounts {
    /// Frames sent into the cable.
    pub sent: u64,
    /// Frames that came out of the cable.
    pub delivered: u64,
    /// Frames lost to a fault, because the link was down or because too many
    /// were under way.
    pub lost: u64,
}

/// A small generator (splitmix64), so that a seed repeats a run.
#[derive(Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Where a port's cable ends.
enum Far {
    /// At another port of this emulator.
    Port(usize),
    /// At another emulator, through a sender of its messages.
    Remote(Box<dyn Write + Send>),
    /// Nowhere: frames vanish.
    Open,
}

struct End {
    far: Far,
    link_up: bool,
    faults: WireFaults,
    /// There are any.
    faulty: bool,
    number: u64,
    held: Option<Frame>,
    counts: WireCounts,
}

/// All cables of the emulator.
pub struct Wire {
    ends: Vec<End>,
    random: Random,
    due: VecDeque<(usize, Frame)>,
    /// By time of arrival, then by order of sending.
    later: BTreeMap<(u64, u64), (usize, Frame)>,
    sequence: u64,
    capture: Option<PcapWriter<Box<dyn Write + Send>>>,
}

/// Frames that all cables together hold; more are lost. Whoever sends waits
/// long before (the functions look at [`Wire::queued`]), but for frames that
/// are delayed and those of another emulator.
const HOLDS: usize = 32 << 10;

/// A frame held back for reordering goes out after this long on its own.
const HELD_FOR: u64 = 1_000_000;

/// Kinds of messages between two emulators: kind, port, length (`u32`, little
/// endian), payload.
mod message {
    pub const FRAME: u8 = 0;
    pub const LINK: u8 = 1;
}

/// Size of the head of a message between two emulators.
pub const MESSAGE_HEAD: usize = 6;
/// A message longer than this is not one.
pub const MESSAGE_MAX: usize = 1 << 16;

/// Whether an encoded message is a frame.
pub fn is_frame(message: &[u8]) -> bool {
    message.first() == Some(&message::FRAME)
}

/// What a message from another emulator says.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    /// A frame for this port.
    Frame(usize, Frame),
    /// The far end of this port's cable went up or down.
    Link(usize, bool),
}

impl Message {
    /// Parses the head: port, payload length and kind.
    pub fn payload_len(head: &[u8; MESSAGE_HEAD]) -> Option<usize> {
        let len = u32::from_le_bytes([head[2], head[3], head[4], head[5]]) as usize;
        (len <= MESSAGE_MAX).then_some(len)
    }

    /// Makes a message from its head and payload.
    pub fn parse(head: &[u8; MESSAGE_HEAD], payload: Vec<u8>) -> Option<Message> {
        let port = usize::from(head[1]);
        match head[0] {
            message::FRAME => Some(Message::Frame(port, payload)),
            message::LINK => Some(Message::Link(port, payload.first() == Some(&1))),
            _ => None,
        }
    }

    fn encode(kind: u8, port: usize, payload: &[u8]) -> Vec<u8> {
        let mut bytes = vec![kind, port as u8];
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(payload);
        bytes
    }
}

impl Wire {
    /// Joins `ports` ports two by two: 0 with 1, 2 with 3, and so on. An odd
    /// one out has a cable that ends nowhere.
    pub fn back_to_back(ports: usize) -> Self {
        Self::new(ports, |port| match port ^ 1 {
            far if far < ports => Far::Port(far),
            _ => Far::Open,
        })
    }

    /// Joins each of `ports` ports with the same one of another emulator.
    /// `sender` makes a writer to that one for each port.
    pub fn remote(ports: usize, mut sender: impl FnMut() -> Box<dyn Write + Send>) -> Self {
        Self::new(ports, |_| Far::Remote(sender()))
    }

    fn new(ports: usize, mut far: impl FnMut(usize) -> Far) -> Self {
        Wire {
            ends: (0..ports)
                .map(|port| End {
                    far: far(port),
                    link_up: true,
                    faults: WireFaults::default(),
                    faulty: false,
                    number: 0,
                    held: None,
                    counts: WireCounts::default(),
                })
                .collect(),
            random: Random(1),
            due: VecDeque::new(),
            later: BTreeMap::new(),
            sequence: 0,
            capture: None,
        }
    }

    /// Writes every frame that a port sends to `out` (pcap, nanoseconds).
    pub fn capture(&mut self, out: Box<dyn Write + Send>) -> std::io::Result<()> {
        let header = PcapHeader {
            ts_resolution: TsResolution::NanoSecond,
            datalink: DataLink::ETHERNET,
            ..PcapHeader::default()
        };
        self.capture = Some(PcapWriter::with_header(out, header).map_err(std::io::Error::other)?);
        Ok(())
    }

    /// Ends the capture, writing out what is buffered.
    pub fn end_capture(&mut self) {
        if let Some(capture) = self.capture.take() {
            let _ = capture.into_writer().flush();
        }
    }

    /// Sets what goes wrong with the frames that `port` sends, from now on,
    /// and where the random numbers start. Returns false for an unknown port.
    pub fn set_faults(&mut self, port: usize, faults: WireFaults, seed: u64) -> bool {
        let Some(end) = self.ends.get_mut(port) else {
            return false;
        };
        end.faulty = faults != WireFaults::default();
        end.faults = faults;
        end.number = 0;
        self.random = Random(seed);
        true
    }

    /// What passed this port's end.
    pub fn counts(&self, port: usize) -> Option<WireCounts> {
        self.ends.get(port).map(|e| e.counts)
    }

    /// Takes the cable of `port` out, or puts it back. Returns the other port
    /// of this emulator whose link goes with it, if there is one.
    pub fn set_link(&mut self, port: usize, up: bool) -> Option<usize> {
        let end = self.ends.get_mut(port)?;
        end.link_up = up;
        match &mut end.far {
            Far::Port(far) => {
                let far = *far;
                if let Some(end) = self.ends.get_mut(far) {
                    end.link_up = up;
                }
                Some(far)
            }
            Far::Remote(out) => {
                let _ = out.write_all(&Message::encode(message::LINK, port, &[u8::from(up)]));
                None
            }
            Far::Open => None,
        }
    }

    /// The far end of a cable to another emulator went up or down.
    pub fn remote_link(&mut self, port: usize, up: bool) {
        if let Some(end) = self.ends.get_mut(port) {
            end.link_up = up;
        }
    }

    /// A frame came from another emulator.
    pub fn arrive(&mut self, port: usize, frame: Frame) {
        let full = self.is_full();
        match self.ends.get_mut(port) {
            Some(end) if end.link_up && full => end.counts.lost += 1,
            Some(end) if end.link_up => self.due.push_back((port, frame)),
            _ => {}
        }
    }

    /// Frames that have arrived and were not taken yet.
    pub fn queued(&self) -> usize {
        self.due.len()
    }

    fn is_full(&self) -> bool {
        self.due.len() + self.later.len() >= HOLDS
    }

    /// `port` sends a frame.
    pub fn send(&mut self, port: usize, mut frame: Frame, now: u64) {
        self.record(&frame, now);
        let full = self.is_full();
        let Some(end) = self.ends.get_mut(port) else {
            return;
        };
        end.counts.sent += 1;
        if !end.link_up || full {
            end.counts.lost += 1;
            return;
        }
        let mut copies = 1;
        let mut hold = false;
        let delay = end.faults.delay;
        if end.faulty && (!end.faults.only_roce || is_roce(&frame)) {
            end.number += 1;
            let (number, random) = (end.number, &mut self.random);
            if end.faults.loss.strikes(number, random) {
                end.counts.lost += 1;
                return;
            }
            if end.faults.duplicate.strikes(number, random) {
                copies = 2;
            }
            if end.faults.corrupt.strikes(number, random) {
                flip_a_bit(&mut frame, random);
            }
            hold = end.faults.reorder.strikes(number, random) && end.held.is_none();
        }
        if hold {
            end.held = Some(frame);
            // Should nothing follow, an empty entry brings it out.
            self.schedule(port, None, now + HELD_FOR);
            return;
        }
        let held = end.held.take();
        if copies == 2 {
            self.forward(port, frame.clone(), now, delay);
        }
        self.forward(port, frame, now, delay);
        if let Some(held) = held {
            self.forward(port, held, now, delay);
        }
    }

    fn schedule(&mut self, port: usize, frame: Option<Frame>, at: u64) {
        self.sequence += 1;
        self.later
            .insert((at, self.sequence), (port, frame.unwrap_or_default()));
    }

    /// Puts a frame that `port` sent on its way to the far end.
    fn forward(&mut self, port: usize, frame: Frame, now: u64, delay: u64) {
        if delay > 0 {
            self.schedule(port, Some(frame), now.saturating_add(delay));
            return;
        }
        let Some(end) = self.ends.get_mut(port) else {
            return;
        };
        match &mut end.far {
            Far::Port(far) => self.due.push_back((*far, frame)),
            Far::Remote(out) => {
                if out
                    .write_all(&Message::encode(message::FRAME, port, &frame))
                    .is_err()
                {
                    end.counts.lost += 1;
                }
            }
            Far::Open => end.counts.lost += 1,
        }
    }

    /// Takes the next frame that has arrived by `now`, and the port it is
    /// for.
    pub fn take_due(&mut self, now: u64) -> Option<(usize, Frame)> {
        while let Some(entry) = self.later.first_entry() {
            if entry.key().0 > now {
                break;
            }
            let (port, frame) = entry.remove();
            let frame = if frame.is_empty() {
                self.ends.get_mut(port).and_then(|e| e.held.take())
            } else {
                Some(frame)
            };
            if let Some(frame) = frame {
                self.forward(port, frame, now, 0);
            }
        }
        let (port, frame) = self.due.pop_front()?;
        if let Some(end) = self.ends.get_mut(port) {
            end.counts.delivered += 1;
        }
        Some((port, frame))
    }

    /// When the next frame arrives, if any is under way. 0: one has arrived.
    pub fn next_deadline(&self) -> Option<u64> {
        if !self.due.is_empty() {
            return Some(0);
        }
        self.later.first_key_value().map(|(&(at, _), _)| at)
    }

    fn record(&mut self, frame: &[u8], now: u64) {
        let Some(capture) = &mut self.capture else {
            return;
        };
        let packet = PcapPacket::new(Duration::from_nanos(now), frame.len() as u32, frame);
        if capture.write_packet(&packet).is_err() {
            eprintln!("pcap: cannot write, switched off");
            self.capture = None;
        }
    }
}

fn flip_a_bit(frame: &mut [u8], random: &mut Random) {
    const ADDRESSES: u64 = 12;
    let bits = (frame.len() as u64).saturating_sub(ADDRESSES) * 8;
    if bits == 0 {
        return;
    }
    let bit = ADDRESSES * 8 + random.next() % bits;
    if let Some(byte) = frame.get_mut((bit / 8) as usize) {
        *byte ^= 1 << (bit % 8);
    }
}

fn is_roce(frame: &[u8]) -> bool {
    let be16 = |at: usize| match frame.get(at..at + 2) {
        Some(&[a, b]) => u16::from_be_bytes([a, b]),
        _ => 0,
    };
    let ethertype = if be16(12) == 0x8100 { 16 } else { 12 };
    let ip = ethertype + 2;
    let first = frame.get(ip).copied().unwrap_or(0);
    let (protocol, udp) = match be16(ethertype) {
        0x0800 => (frame.get(ip + 9), ip + usize::from(first & 15) * 4),
        0x86dd => (frame.get(ip + 6), ip + 40),
        _ => return false,
    };
    protocol == Some(&17) && be16(udp + 2) == 4791
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(wire: &mut Wire, now: u64) -> Vec<(usize, u8)> {
        std::iter::from_fn(|| wire.take_due(now))
            .map(|(port, frame)| (port, frame[0]))
            .collect()
    }

    #[test]
    fn pairs() {
        let mut wire = Wire::back_to_back(3);
        wire.send(0, vec![1], 0);
        wire.send(1, vec![2], 0);
        wire.send(2, vec![3], 0);
        assert_eq!(wire.next_deadline(), Some(0));
        assert_eq!(drain(&mut wire, 0), [(1, 1), (0, 2)]);
        assert_eq!(wire.counts(2).unwrap().lost, 1);
    }

    #[test]
    fn link_down_loses() {
        let mut wire = Wire::back_to_back(2);
        assert_eq!(wire.set_link(0, false), Some(1));
        wire.send(1, vec![1], 0);
        assert_eq!(drain(&mut wire, 0), []);
        wire.set_link(0, true);
        wire.send(1, vec![1], 0);
        assert_eq!(drain(&mut wire, 0), [(0, 1)]);
    }

    #[test]
    fn nth_frame_faults() {
        let mut wire = Wire::back_to_back(2);
        let nth = |n| When {
            nth: vec![n],
            ..When::default()
        };
        let faults = WireFaults {
            loss: nth(1),
            duplicate: nth(2),
            reorder: nth(3),
            ..WireFaults::default()
        };
        assert!(wire.set_faults(0, faults, 0));
        (1..=4).for_each(|n| wire.send(0, vec![n], 0));
        assert_eq!(drain(&mut wire, 0), [(1, 2), (1, 2), (1, 4), (1, 3)]);
        wire.send(0, vec![5], 0);
        assert_eq!(drain(&mut wire, 0), [(1, 5)]);
    }

    #[test]
    fn held_and_delayed_frames_come_out() {
        let mut wire = Wire::back_to_back(2);
        let faults = WireFaults {
            reorder: When {
                nth: vec![1],
                rate: 0.0,
            },
            ..WireFaults::default()
        };
        wire.set_faults(0, faults, 0);
        wire.send(0, vec![1], 5);
        assert_eq!(drain(&mut wire, 5), []);
        assert_eq!(wire.next_deadline(), Some(5 + HELD_FOR));
        assert_eq!(drain(&mut wire, 5 + HELD_FOR), [(1, 1)]);
        let faults = WireFaults {
            delay: 100,
            ..WireFaults::default()
        };
        wire.set_faults(0, faults, 0);
        wire.send(0, vec![2], 10);
        assert_eq!(drain(&mut wire, 109), []);
        assert_eq!(drain(&mut wire, 110), [(1, 2)]);
    }

    #[test]
    fn corruption_turns_one_bit() {
        let mut wire = Wire::back_to_back(2);
        let faults = WireFaults {
            corrupt: When {
                rate: 1.0,
                nth: vec![],
            },
            ..WireFaults::default()
        };
        wire.set_faults(0, faults, 7);
        wire.send(0, vec![0; 64], 0);
        let (_, frame) = wire.take_due(0).unwrap();
        assert_eq!(frame.iter().map(|b| b.count_ones()).sum::<u32>(), 1);
        assert!(frame[..12].iter().all(|&b| b == 0));
    }

    #[test]
    fn a_full_wire_loses_what_comes_then() {
        let mut wire = Wire::back_to_back(2);
        let faults = WireFaults {
            delay: 100,
            ..WireFaults::default()
        };
        wire.set_faults(0, faults, 0);
        (0..HOLDS + 5).for_each(|_| wire.send(0, vec![1], 0));
        assert_eq!(wire.later.len(), HOLDS);
        // The other direction shares the room, and so does another emulator.
        wire.send(1, vec![2], 0);
        wire.arrive(0, vec![3]);
        let lost = |wire: &Wire, port| wire.counts(port).unwrap().lost;
        assert_eq!((lost(&wire, 0), lost(&wire, 1)), (6, 1));
        assert_eq!(drain(&mut wire, 100).len(), HOLDS);
        wire.send(1, vec![2], 100);
        assert_eq!(drain(&mut wire, 100), [(0, 2)]);
    }

    #[test]
    fn messages() {
        let bytes = Message::encode(message::FRAME, 3, &[9, 8]);
        let (head, payload) = bytes.split_at(MESSAGE_HEAD);
        let head = head.try_into().unwrap();
        assert_eq!(Message::payload_len(head), Some(2));
        assert_eq!(
            Message::parse(head, payload.to_vec()),
            Some(Message::Frame(3, vec![9, 8]))
        );
    }
}
