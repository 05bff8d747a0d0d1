// SPDX-License-Identifier: GPL-2.0
//! A driver that does what random bytes say: registers of every width,
//! doorbells, work requests, control-queue and admin commands, LAN
//! descriptors, configuration space, memory under the device's hands, frames
//! from nowhere, faults and resets.
//!
//! [`run`] is for tests with a fixed seed and for cargo-fuzz alike. Whatever
//! the bytes are, nothing may panic or hang, and each access ends as a normal
//! effect, a recorded violation or an error that the device reports.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::memory_file;
use super::pair::{self, entry, place, Pair, CQ, LEN, SQ_DOORBELL, STAG, VA};
use crate::e810::{regs, BAR0_SIZE};
use crate::faults::{Action, Point, Rule};
use crate::machine::Machine;
use crate::nic::Incident;
use crate::rdma::cqp::Opcode as Command;
use crate::rdma::layout;
use crate::rdma::packet::{Aeth, Bth, Draft, Ext, Opcode, Path, Reth, Syndrome};
use crate::rdma::regs::Register;
use crate::rdma::testbench::Driver;
use crate::rdma::wqe::op;
use crate::trace::Trace;
use crate::wire::{Message, When, WireFaults};

/// What became of the accesses of a run.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Report {
    /// Accesses made.
    pub accesses: u64,
    /// Those after which neither a violation nor an error was there.
    pub effects: u64,
    /// Those that recorded a violation.
    pub violations: u64,
    /// Those that made the device report an error: in a completion, an event
    /// or a return value.
    pub errors: u64,
    /// Those that should have recorded a violation and did not.
    pub unnoticed: Vec<String>,
    /// How long the longest one took.
    pub slowest: Duration,
    /// What the trace of the run told of, and how often: kinds of events, for
    /// asynchronous events with their code, for commands whether they failed.
    pub events: BTreeMap<String, u64>,
}

impl Report {
    /// Adds the figures of another run.
    pub fn add(&mut self, other: Report) {
        self.accesses += other.accesses;
        self.effects += other.effects;
        self.violations += other.violations;
        self.errors += other.errors;
        self.unnoticed.extend(other.unnoticed);
        self.slowest = self.slowest.max(other.slowest);
        for (event, count) in other.events {
            *self.events.entry(event).or_default() += count;
        }
    }
}

/// What passed in a trace.
#[derive(Default)]
struct Seen {
    errors: u64,
    events: BTreeMap<String, u64>,
}

impl Seen {
    fn line(&mut self, line: &[u8]) {
        let Ok(Value::Object(event)) = serde_json::from_slice(line) else {
            return;
        };
        let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or("");
        let number = |key: &str| event.get(key).and_then(Value::as_u64).unwrap_or(0);
        let kind = text("ev");
        let failed = match kind {
            "aeqe" | "aeqe_lost" | "discard" | "cq_overflow" => true,
            "cqp_done" => event.get("error").is_some_and(Value::is_u64),
            "aq" => number("retval") != 0,
            _ => false,
        };
        self.errors += u64::from(failed);
        let name = match kind {
            "aeqe" => format!("aeqe {:#05x}", number("code")),
            "cqp_done" | "aq" if failed => format!("{kind} failed"),
            _ => kind.to_owned(),
        };
        *self.events.entry(name).or_default() += 1;
    }
}

/// Takes a trace in.
struct Watch {
    line: Vec<u8>,
    seen: Arc<Mutex<Seen>>,
}

fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Write for Watch {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if bytes.ends_with(b"\n") {
            lock(&self.seen).line(&self.line);
            self.line.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Random bytes, read one after the other; zeros when they are used up.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    fn below(&mut self, end: u64) -> u64 {
        let value = u64::from(self.byte()) | u64::from(self.byte()) << 8;
        value % end.max(1)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    /// One time in `n`.
    fn chance(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A number as drivers have them: small, one bit, or anything.
    fn value(&mut self) -> u64 {
        match self.byte() % 4 {
            0 => self.below(16),
            1 => 1 << (self.byte() % 64),
            2 => self.below(1 << 16),
            _ => self.word(),
        }
    }
}

/// Whether what was done must have been recorded as a violation.
type Wrong = bool;

struct Fuzzer<'a> {
    pair: Pair,
    input: Input<'a>,
    /// Completions seen, by port.
    seen: [u64; 2],
}

/// Does what `data` says, at most `limit` accesses, and gives what became of
/// them. In the end both functions are reset and must work as new ones.
pub fn run(data: &[u8], limit: u64) -> Report {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let trace = Trace::to(Watch {
        line: vec![],
        seen: seen.clone(),
    });
    let failures = || lock(&seen).errors;
    let mut input = Input(data);
    let live = !input.chance(4);
    let mut fuzzer = Fuzzer {
        pair: Pair::new(3, 1024, trace),
        input,
        seen: [0; 2],
    };
    lock(&seen).events.clear();
    if !live {
        for port in 0..2 {
            fuzzer.pair.machine.reset(port, 0);
        }
    }
    let mut report = Report::default();
    while report.accesses < limit && !fuzzer.input.0.is_empty() {
        let port = usize::from(fuzzer.input.byte() & 1);
        let before = (fuzzer.pair.machine.violations().count(), failures());
        let forgiven = fuzzer.pair.machine.port(port).is_some_and(|p| p.failed);
        let at = fuzzer.input.0;
        let start = Instant::now();
        let wrong = fuzzer.access(port);
        report.slowest = report.slowest.max(start.elapsed());
        report.accesses += 1;
        let violation = fuzzer.pair.machine.violations().count() > before.0;
        match (violation, failures() > before.1) {
            (true, _) => report.violations += 1,
            (false, true) => report.errors += 1,
            (false, false) => report.effects += 1,
        }
        if wrong && !violation && !forgiven {
            let what = at.get(..12).unwrap_or(at);
            report.unnoticed.push(format!("{what:02x?}"));
        }
    }
    report.events = std::mem::take(&mut lock(&seen).events);
    fuzzer.survives();
    report
}

impl Fuzzer<'_> {
    fn machine(&mut self) -> &mut Machine {
        &mut self.pair.machine
    }

    fn access(&mut self, port: usize) -> Wrong {
        match self.input.byte() % 32 {
            0 => return self.any_read(port),
            1 => return self.any_write(port),
            2 | 3 => self.known_register(port),
            4 => self.doorbell(port),
            5..=10 => self.work(port),
            11 => self.receive(port),
            12..=14 => self.command(port),
            15 => self.queue_pair_command(port),
            16 | 17 => self.send_frame(port),
            18 | 19 => self.admin(port),
            20 => self.config(port),
            21 => self.disturb(port),
            22 | 23 => self.wait(),
            24 | 25 => self.frame(port),
            26 => self.completions(port),
            27 => self.revive(),
            28 => self.fault(port),
            29 => self.client(port),
            30 if self.input.chance(4) => self.reset(port),
            _ => self.ring_all(port),
        }
        false
    }

    fn any_offset(&mut self) -> u64 {
        match self.input.byte() % 4 {
            0 => self.input.below(1 << 16) << 7 & (BAR0_SIZE - 1),
            1 => {
                let spec = self.input.below(regs::TABLE.len() as u64) as usize;
                let spec = &regs::TABLE[spec];
                let index = self.input.below(spec.count.into());
                u64::from(spec.base) + index * u64::from(spec.stride)
            }
            2 => 0x50_0000 | self.input.below(1 << 16),
            _ => self.input.value(),
        }
    }

    /// A place and a length, and whether no register is there.
    fn any_place(&mut self, write: bool) -> (u64, usize, Wrong) {
        let offset = self.any_offset();
        let len = self.input.pick(&[4, 4, 4, 8, 8, 1, 2, 0, 3, 16]);
        let shape = matches!(len, 1 | 2 | 4 | 8)
            && offset % len as u64 == 0
            && offset
                .checked_add(len as u64)
                .is_some_and(|n| n <= BAR0_SIZE);
        let known = |at: u64| {
            let at = at as u32 & !3;
            regs::decode(at).is_some() || Register::at(&layout::E810, at).is_some()
        };
        let wrong = !shape || write && len < 4 || !known(offset) || len == 8 && !known(offset + 4);
        (offset, len, wrong)
    }

    fn any_read(&mut self, port: usize) -> Wrong {
        let (offset, len, wrong) = self.any_place(false);
        let mut data = vec![0; len];
        let now = self.pair.now;
        self.machine().read(port, offset, &mut data, now);
        wrong
    }

    fn any_write(&mut self, port: usize) -> Wrong {
        let (offset, len, wrong) = self.any_place(true);
        // A reset in the middle of a wide write forgives what follows.
        let data: Vec<u8> = (0..len).map(|_| self.input.byte()).collect();
        let now = self.pair.now;
        self.machine().write(port, offset, &data, now);
        wrong
    }

    fn known_register(&mut self, port: usize) {
        let spec = self.input.below(regs::TABLE.len() as u64) as usize;
        let spec = &regs::TABLE[spec];
        if matches!(spec.name, "PFGEN_CTRL" | "GLGEN_RTRIG") && !self.input.chance(8) {
            return;
        }
        let index = self.input.below(spec.count.min(8).into()) as u32;
        let offset = u64::from(spec.base + index * spec.stride);
        let value = self.input.value() as u32;
        self.pair.write(port, offset, value);
        self.pair.read(port, offset);
    }

    fn doorbell(&mut self, port: usize) {
        let registers = &layout::E810.registers;
        let offset = self.input.pick(&[
            registers.cqp_db,
            registers.cq_arm,
            registers.cq_ack,
            registers.aeq_alloc,
            registers.wqe_alloc,
            registers.user_page,
            registers.user_page + 0x40,
            registers.pd_inv,
            registers.aeq_ctl,
            registers.ceq_ctl,
            registers.cqp_tail,
            registers.ccqp_high,
        ]);
        let value = self.input.value() as u32;
        self.pair.write(port, offset.into(), value);
    }

    /// An address and STag of data: good ones mostly.
    fn piece(&mut self) -> (u64, u64, u64) {
        let len = match self.input.byte() % 8 {
            0 => self.input.below(LEN),
            1 => self.input.value() & 0x7fff_ffff,
            2 => 0,
            _ => self.input.below(3000),
        };
        let offset = self.input.below(LEN / 64) * 32;
        let (address, stag) = match self.input.byte() % 16 {
            0 => (self.input.word(), self.input.word() as u32),
            1 | 2 => (offset % pair::PAGED_LEN, pair::PAGED_STAG),
            3 => (VA + offset, pair::FAST_STAG | 5),
            4 => (VA + offset, pair::WINDOW | 7),
            5 => (self.input.word(), 0),
            6 => (VA + LEN - 16, STAG),
            _ => (VA + offset, STAG),
        };
        (address, len, stag.into())
    }

    /// A send entry, right or nearly so, and sometimes the doorbell.
    fn work(&mut self, port: usize) {
        let qp = self.input.below(4) as usize;
        let opcode = match self.input.byte() % 16 {
            0 => self.input.byte() & 0x3f,
            n => [
                op::WRITE,
                op::READ,
                op::SEND,
                op::SEND_INV,
                op::SEND_SOL,
                op::SEND_SOL_INV,
                op::BIND_WINDOW,
                op::FAST_REGISTER,
                op::LOCAL_INV,
                op::READ_LOCAL_INV,
                op::NOP,
                op::WRITE_SOL,
                op::WRITE,
                op::READ,
                op::SEND,
                op::SEND,
            ][usize::from(n)],
        };
        let (address, len, stag) = self.piece();
        let mut quads = entry(opcode, 0, 0, 0, 0);
        quads[0] = address;
        quads[1] = 1 << 63 | len << 32 | stag;
        let (remote, _, rkey) = self.piece();
        (quads[2], quads[3]) = match opcode {
            op::BIND_WINDOW => {
                quads[1] = u64::from(STAG) << 32 | u64::from(pair::WINDOW | 7);
                (len, quads[3] | 0xc << 48 | 1 << 53)
            }
            op::FAST_REGISTER => {
                let data = self.pair.ports[port].data;
                quads[1] = data & !0xfff;
                let rights = 0xf << 48 | 1 << 53 | u64::from(pair::FAST_STAG | 5);
                (len.max(1), quads[3] | rights)
            }
            op::LOCAL_INV => {
                quads[1] = rkey;
                (0, quads[3])
            }
            _ if qp == 3 => (4 << 32 | 0x1234, quads[3] | u64::from(pair::HANDLE)),
            _ => (remote, quads[3] | rkey),
        };
        let quanta = match self.input.byte() % 8 {
            0 => 1 + self.input.below(8),
            _ => 1,
        };
        let mut words = quads.to_vec();
        for _ in 1..quanta {
            for _ in 0..2 {
                let (address, len, stag) = self.piece();
                words.extend([address, 1 << 63 | len << 32 | stag]);
            }
        }
        if quanta > 1 {
            words[3] |= (2 * (quanta - 1)) << 38;
        }
        if self.input.chance(8) {
            let at = self.input.below(words.len() as u64) as usize;
            words[at] ^= self.input.value();
        }
        if self.input.chance(4) {
            // Immediate data, inline data, fences.
            words[3] ^= 1 << self.input.pick(&[47, 57, 60, 61, 48, 52]);
        }
        self.place(port, qp, &words);
        if !self.input.chance(3) {
            self.pair.ring(port, qp);
        }
    }

    /// Puts a send entry into the ring with the valid bits that the ring wants.
    fn place(&mut self, port: usize, qp: usize, words: &[u64]) {
        let live = &mut self.pair.ports[port].qps[qp];
        let at = live.sq_head % pair::SQ;
        let quanta = (words.len() as u64 / 4).min(pair::SQ - at);
        let flip = live.sq_head / pair::SQ % 2 == 1;
        live.sq_head += quanta;
        let base = live.rings.sq + at * 32;
        let mut words = words[..quanta as usize * 4].to_vec();
        if flip {
            words.iter_mut().skip(1).step_by(2).for_each(|word| {
                *word ^= 1 << 63;
            });
        }
        self.pair.put_words(port, base, &words);
    }

    fn receive(&mut self, port: usize) {
        let qp = self.input.below(4) as usize;
        let offset = self.input.below(LEN / 64) * 32;
        let len = match self.input.byte() % 4 {
            0 => self.input.value() as u32 & 0x7fff_ffff,
            _ => 4096,
        };
        for _ in 0..self.input.below(8) {
            self.pair.post_receive(port, qp, offset, len);
        }
    }

    /// An address that the device knows, or one that it must not touch.
    fn address(&mut self, port: usize) -> u64 {
        let port = &self.pair.ports[port];
        let rings = port.qps[self.input.below(4) as usize].rings;
        let known = [
            place::SCRATCH,
            place::SCRATCH + 8,
            rings.context,
            rings.sq,
            rings.rq,
            rings.shadow,
            port.cq.ring,
            port.cq.shadow,
            port.data,
            port.pbles,
            port.aeq,
        ];
        match self.input.byte() % 4 {
            0 => self.input.word(),
            1 => place::SCRATCH + self.input.below(1 << 16),
            _ => self.input.pick(&known),
        }
    }

    /// A control-queue command: its fields are random where it has any.
    fn command(&mut self, port: usize) {
        let code = match self.input.byte() % 8 {
            0 => self.input.byte() & 0x3f,
            _ => self.input.pick(&CODES),
        };
        let allowed = Command::from_code(code).map_or([u64::MAX; 8], Command::allowed);
        let mut words = [0; 8];
        for (word, allowed) in words.iter_mut().zip(allowed) {
            let value = match self.input.byte() % 4 {
                0 => 0,
                1 => self.address(port),
                _ => self.input.value(),
            };
            *word = value & allowed;
            if self.input.chance(32) {
                *word ^= self.input.value();
            }
        }
        words[3] &= !(0x3f << 32);
        words[3] |= u64::from(code) << 32;
        if self.input.chance(2) {
            words[3] = words[3] & !0xff_ffff | self.input.pick(&[0, 1, 3, 4, 8, 9]);
        }
        self.post_command(port, words);
    }

    fn post_command(&mut self, port: usize, mut words: [u64; 8]) {
        let (at, head, polarity) = self.pair.ports[port].cqp;
        words[3] = words[3] & !(1 << 63) | u64::from(polarity) << 63;
        self.pair.put_words(port, at, &words);
        let base = if head == 0 { at - 63 * 64 } else { at + 64 };
        self.pair.ports[port].cqp = (base, (head + 1) % 64, polarity ^ (head == 0));
        self.pair
            .write(port, layout::E810.registers.cqp_db.into(), head);
    }

    fn queue_pair_command(&mut self, port: usize) {
        let live = self.pair.ports[port].qps[self.input.below(4) as usize];
        let kind = if live.id == pair::UD_QP { 4 } else { 3 };
        let next = self.input.below(8);
        let code = self.input.pick(&[0, 1, 1, 1, 2, 0x22, 0x29, 0x2a, 0x13]);
        let words = match code {
            0x22 => {
                let codes = self.input.word();
                let flags = 7 << 60;
                let header = u64::from(live.id) | code << 32 | flags;
                [0, 0, codes, header, 0, 0, 0, 0]
            }
            0x29 | 0x2a => [0, 0, 0, u64::from(live.id) | code << 32, 0, 0, 0, 0],
            0x13 => {
                let header = u64::from(live.id) | code << 32 | kind << 48;
                [0, 0, place::SCRATCH, header, 0, 0, 0, 0]
            }
            _ => Driver::qp_command(code, live.id, kind, next, live.rings),
        };
        if self.input.chance(4) {
            let at = live.rings.context + self.input.below(32) * 8;
            let value = self.input.value();
            self.pair.put_words(port, at, &[value]);
        }
        self.post_command(port, words);
    }

    /// Descriptors of the LAN half.
    fn send_frame(&mut self, port: usize) {
        let mut frame = vec![
            2,
            0,
            0,
            0,
            0,
            2 - port as u8,
            2,
            0,
            0,
            0,
            0,
            1 + port as u8,
            8,
        ];
        frame.resize(14 + self.input.below(256) as usize, 0);
        for byte in frame.iter_mut().skip(13) {
            *byte = self.input.byte();
        }
        if frame.len() > 24 {
            frame[13..24].copy_from_slice(&[0, 0x45, 0, 0, 100, 0, 0, 0x40, 0, 64, 17]);
        }
        self.pair.put(port, place::FRAME, &frame);
        if self.input.chance(4) {
            let at = place::RX + self.input.below(64) * 32;
            let value = self.address(port);
            self.pair.put_words(port, at, &[value]);
            let tail = self.input.below(80) as u32;
            self.pair.write_named(port, "QRX_TAIL", 0, tail);
        }
        let count = 1 + self.input.below(4);
        let first = self.input.below(64);
        for n in 0..count {
            let kind = self.input.pick(&[0, 0, 0, 1, 8, 15]);
            let command = u64::from(self.input.byte()) | 1;
            let len = match self.input.byte() % 4 {
                0 => self.input.below(1 << 14),
                _ => frame.len() as u64,
            };
            let address = match self.input.byte() % 8 {
                0 => self.address(port),
                _ => place::FRAME,
            };
            let offsets = 7 << 16 | 5 << 23 | 2 << 30;
            let noise = match self.input.byte() % 4 {
                0 => self.input.word() & !0xffff,
                _ => offsets | len << 34,
            };
            let at = place::TX + (first + n) % 64 * 16;
            self.pair
                .put_words(port, at, &[address, kind | command << 4 | noise]);
        }
        let tail = (first + count) % 64;
        self.pair
            .write_named(port, "QTX_COMM_DBELL", 0, tail as u32);
    }

    fn admin(&mut self, port: usize) {
        const OPCODES: [u16; 34] = [
            0x0001, 0x0008, 0x0009, 0x000a, 0x0107, 0x0108, 0x0200, 0x0208, 0x0209, 0x020d, 0x0210,
            0x0211, 0x0213, 0x02a0, 0x02a1, 0x02a2, 0x0400, 0x0401, 0x0403, 0x0404, 0x0408, 0x0409,
            0x040e, 0x040f, 0x0412, 0x0600, 0x0607, 0x0701, 0x0706, 0x0b02, 0x0b03, 0x0c30, 0x0c31,
            0x0c33,
        ];
        let opcode = match self.input.byte() % 8 {
            0 => self.input.word() as u16,
            _ => self.input.pick(&OPCODES),
        };
        let mut raw = [0; 32];
        let len = self.input.pick(&[0, 4, 8, 16, 32, 56, 128, 512, 4096]);
        let mut flags = if len > 0 { 0x1000u16 } else { 0 };
        if len > 512 {
            flags |= 0x200;
        }
        if self.input.chance(16) {
            flags ^= self.input.word() as u16;
        }
        raw[..2].copy_from_slice(&flags.to_le_bytes());
        raw[2..4].copy_from_slice(&opcode.to_le_bytes());
        let claimed = match self.input.byte() % 16 {
            0 => self.input.word() as u16,
            _ => len as u16,
        };
        raw[4..6].copy_from_slice(&claimed.to_le_bytes());
        for byte in &mut raw[16..24] {
            *byte = self.input.pick(&[0, 0, 1, 2, 0xff]);
        }
        let buffer = match self.input.byte() % 16 {
            0 => self.address(port),
            _ => place::BUFFER,
        };
        raw[24..28].copy_from_slice(&((buffer >> 32) as u32).to_le_bytes());
        raw[28..32].copy_from_slice(&(buffer as u32).to_le_bytes());
        let fill: Vec<u8> = (0..len.min(64)).map(|_| self.input.byte() % 17).collect();
        self.pair.put(port, place::BUFFER, &fill);
        let tail = self.pair.ports[port].admin_tail;
        self.pair
            .put(port, place::ADMIN + u64::from(tail) * 32, &raw);
        let tail = (tail + 1) % pair::ADMIN_ENTRIES;
        self.pair.ports[port].admin_tail = tail;
        self.pair.write_named(port, "PF_FW_ATQT", 0, tail);
    }

    fn config(&mut self, port: usize) {
        let offset = self.input.value() & 0x1fff;
        let len = self.input.below(9) as usize;
        let mut data: Vec<u8> = (0..len).map(|_| self.input.byte()).collect();
        if let Some(config) = self.machine().config(port) {
            config.write(offset, &data);
            config.read(offset, &mut data);
        }
    }

    /// Memory changes under the device's hands.
    fn disturb(&mut self, port: usize) {
        let at = self.address(port).wrapping_add(self.input.below(64) * 8);
        let value = self.input.value();
        if let Some(memory) = self.machine().memory(port) {
            // An address outside is no memory to change.
            let _ = memory.write_u64(at, value);
        }
    }

    fn wait(&mut self) {
        let next = self.machine().next_deadline();
        self.pair.now = match (next, self.input.byte() % 4) {
            (Some(at), 0..=2) => self.pair.now.max(at),
            _ => self.pair.now + self.input.below(1 << 16) * 1000,
        };
        let now = self.pair.now;
        self.machine().poll(now);
    }

    /// A frame that no peer sent.
    fn frame(&mut self, port: usize) {
        let peer = 2 - port as u8;
        let me = 3 - peer;
        let path = Path {
            src_mac: [2, 0, 0, 0, 0, peer],
            dst_mac: [2, 0, 0, 0, 0, me],
            vlan: self.input.chance(8).then_some(5),
            src_ip: [10, 0, 0, peer].into(),
            dst_ip: [10, 0, 0, me].into(),
            traffic_class: self.input.pick(&[0, 2, 3]),
            hop_limit: 64,
            flow_label: 0,
            src_port: 0xc000,
        };
        let opcode = match self.input.byte() % 8 {
            0 => self.input.byte(),
            1 => 0x81,
            2 => 0x64,
            _ => self.input.byte() % 0x18,
        };
        let id = self.input.pick(&[8, 9, 10, 4, 1, 0, 0xff_ffff]);
        let psn = (u32::from(peer) << 8).wrapping_add(self.input.below(64) as u32);
        let mut bth = Bth::new(Opcode(opcode), 0xffff, id, psn & 0xff_ffff);
        bth.ack_request = self.input.chance(2);
        let (address, len, rkey) = self.piece();
        let mut ext = Ext {
            reth: Some(Reth {
                address,
                rkey: rkey as u32,
                length: len as u32,
            }),
            aeth: Some(Aeth {
                syndrome: self.input.pick(&[
                    Syndrome::Ack(0x1f),
                    Syndrome::Rnr(1),
                    Syndrome::Sequence,
                    Syndrome::InvalidRequest,
                    Syndrome::RemoteAccess,
                ]),
                msn: 1,
            }),
            ..Ext::default()
        };
        // Some with the headers that the opcode wants, some with others.
        if self.input.chance(2) {
            ext.reth = None;
        }
        if self.input.chance(2) {
            ext.aeth = None;
        }
        let payload = self.input.pick(&[0, 4, 100, 1024, 4096]);
        let mut frame = Draft::new(vec![], &path, &bth, &ext, payload).finish();
        if self.input.chance(8) {
            let at = self.input.below(frame.len() as u64) as usize;
            frame[at] ^= self.input.byte();
        }
        if self.input.chance(8) {
            let len = self.input.below(frame.len() as u64) as usize;
            frame.truncate(len);
        }
        let now = self.pair.now;
        self.machine().message(Message::Frame(port, frame), now);
    }

    fn completions(&mut self, port: usize) {
        if self.input.chance(4) {
            let shadow = self.pair.ports[port].cq.shadow;
            let value = self.input.value();
            self.pair.put_words(port, shadow, &[value]);
        } else {
            self.seen[port] = self.pair.consume(port, self.seen[port]);
        }
        let shadow = self.pair.ports[port].cq.shadow;
        let arm = 1 << 16 | self.input.below(4) << 14;
        self.pair.put_words(port, shadow + 32, &[arm]);
        let registers = &layout::E810.registers;
        self.pair.write(port, registers.cq_arm.into(), CQ);
        self.pair
            .write(port, registers.aeq_alloc.into(), u32::from(port == 0));
    }

    /// Makes a connection anew, so that there is one that works.
    fn revive(&mut self) {
        let qp = self.input.below(3) as usize;
        for port in 0..2 {
            let live = self.pair.ports[port].qps[qp];
            let kind = 3;
            self.post_command(port, Driver::qp_command(2, live.id, kind, 0, live.rings));
            self.pair.reset_qp(port, qp);
            for (code, next) in [(0, 1), (1, 4), (1, 2)] {
                let words = Driver::qp_command(code, live.id, kind, next, live.rings);
                self.post_command(port, words);
            }
        }
    }

    fn fault(&mut self, port: usize) {
        if self.input.chance(2) {
            let when = |input: &mut Input<'_>| When {
                rate: 0.0,
                nth: vec![1 + input.below(4)],
            };
            let mut faults = WireFaults::default();
            match self.input.byte() % 5 {
                0 => faults.loss = when(&mut self.input),
                1 => faults.duplicate = when(&mut self.input),
                2 => faults.corrupt = when(&mut self.input),
                3 => faults.reorder = when(&mut self.input),
                _ => faults.delay = self.input.below(1 << 16),
            }
            self.machine().wire().set_faults(port, faults, 1);
            return;
        }
        let point = self.input.pick(&[
            Point::AdminCommand,
            Point::CqpCommand,
            Point::Cqe,
            Point::Ceqe,
            Point::Aeqe,
            Point::Interrupt,
        ]);
        let action = match self.input.byte() % 5 {
            0 => Action::Drop,
            1 => Action::Duplicate,
            2 => Action::Delay(self.input.value()),
            3 => Action::Fail(self.input.word() as u32),
            _ => Action::Corrupt(self.input.word()),
        };
        let rule = Rule {
            point,
            key: None,
            skip: self.input.below(3),
            times: 1,
            action,
        };
        if let Some(faults) = self.machine().faults(port) {
            faults.clear();
            faults.add(rule);
        }
    }

    /// What the client may do: vectors and memory that come and go.
    fn client(&mut self, port: usize) {
        let vector = self.input.value() as u16;
        self.machine().set_event(port, vector, None);
        let (address, size) = (self.input.value() | 1 << 32, self.input.value());
        let file = self.input.chance(2).then(|| (memory_file(8192), 0));
        if let Some(memory) = self.machine().memory(port) {
            // What overlaps or is no range is refused.
            let _ = memory.map(address, size, file, size & 1 == 0);
            if size & 2 == 0 {
                let _ = memory.unmap(address, size);
            }
        }
    }

    fn reset(&mut self, port: usize) {
        let now = self.pair.now;
        match self.input.byte() % 6 {
            0 => self.machine().reset(port, now),
            1 => self.pair.write_named(port, "PFGEN_CTRL", 0, 1),
            2 => self.pair.write_named(port, "GLGEN_RTRIG", 0, 1),
            3 => {
                let up = self.input.chance(2);
                self.machine().set_link(port, up, now);
            }
            4 => {
                self.machine()
                    .incident(port, Incident::CriticalError(7), now);
            }
            _ => {
                let error = Incident::HmcError { info: 1, data: 2 };
                self.machine().incident(port, error, now);
            }
        }
    }

    fn ring_all(&mut self, port: usize) {
        for qp in 0..4 {
            let id = self.pair.ports[port].qps[qp].id;
            self.pair.write(port, SQ_DOORBELL, id);
        }
    }

    /// Both functions come back from a reset and work.
    fn survives(&mut self) {
        let mut polls = 0;
        while let Some(at) = self.machine().next_deadline().filter(|_| polls < 100) {
            self.pair.now = self.pair.now.max(at);
            let now = self.pair.now;
            self.machine().poll(now);
            polls += 1;
        }
        for port in 0..2 {
            let now = self.pair.now;
            if let Some(faults) = self.machine().faults(port) {
                faults.clear();
            }
            self.machine().reset(port, now);
            self.pair.start_admin_queue(port);
            assert_eq!(self.pair.admin(port, 0x0001, &[], &[]), 0);
            let (context, ring) = (place::SCRATCH, place::SCRATCH + 0x1000);
            let words = [0x500 | (2 << 3), ring, 1, 0x77, 1 << 16, 0, 0, 0];
            self.pair.put_words(port, context, &words);
            let registers = &layout::E810.registers;
            self.pair.write(port, registers.ccqp_high.into(), 0);
            self.pair
                .write(port, registers.ccqp_low.into(), context as u32);
            let status = self.pair.read(port, registers.ccqp_status.into());
            assert_eq!(status, 1, "no control queue after a reset");
            let nop = [0, 0, 0, 1 << 63 | 0x24 << 32, 0, 0, 0, 0];
            self.pair.put_words(port, ring, &nop);
            self.pair.write(port, registers.cqp_db.into(), 1);
            let tail = self.pair.read(port, registers.cqp_tail.into());
            assert_eq!(tail, 1, "the control queue does nothing after a reset");
        }
    }
}

/// Codes of the control queue's commands.
const CODES: [u8; 38] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x09, 0x0a, 0x0b, 0x0d, 0x0e, 0x0f, 0x11, 0x12, 0x13, 0x14,
    0x16, 0x18, 0x19, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x24, 0x26, 0x27, 0x28, 0x29,
    0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f,
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Bytes that a seed makes its own (splitmix64).
    fn bytes(seed: u64, len: usize) -> Vec<u8> {
        let mut state = seed;
        let mut out = Vec::with_capacity(len + 8);
        while out.len() < len {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            out.extend((z ^ z >> 31).to_le_bytes());
        }
        out
    }

    /// Accesses of one run, and runs. `FUZZ_SEED` and `FUZZ_RUNS` take others.
    const ACCESSES: u64 = 100;
    const RUNS: u64 = 100;

    fn number(name: &str, default: u64) -> u64 {
        let value = std::env::var(name).ok();
        value.and_then(|v| v.parse().ok()).unwrap_or(default)
    }

    /// Far more than the whole takes on a slow machine: what is not done by
    /// then hangs.
    const LIMIT: Duration = Duration::from_secs(600);

    #[test]
    fn ten_thousand_random_accesses() {
        let (done, wait) = mpsc::channel();
        std::thread::spawn(move || {
            let (seed, runs) = (number("FUZZ_SEED", 0x1592), number("FUZZ_RUNS", RUNS));
            let mut total = Report::default();
            for n in 0..runs {
                let seed = seed.wrapping_add(n << 32);
                let guard = Announce(seed);
                total.add(run(&bytes(seed, 64 << 10), ACCESSES));
                std::mem::forget(guard);
            }
            let _ = done.send((runs, total));
        });
        let (runs, total) = wait
            .recv_timeout(LIMIT)
            .expect("a run panicked or did not end; its seed is printed above");
        println!("{total:?}");
        assert_eq!(total.accesses, runs * ACCESSES);
        let ended = total.effects + total.violations + total.errors;
        assert_eq!(ended, total.accesses);
        assert_eq!(total.unnoticed, Vec::<String>::new());
        // All three happen, or the fuzzer does not reach what it should.
        for count in [total.effects, total.violations, total.errors] {
            assert!(count * 50 > total.accesses, "{total:?}");
        }
        // The deep parts were reached: work was done, refused and flushed,
        // commands and frames passed, queue pairs failed in many ways.
        let count = |event: &str| total.events.get(event).copied().unwrap_or(0);
        for event in [
            "cqe", "ceqe", "wqe", "qp_state", "cqp_done", "aq", "tx", "rx",
        ] {
            assert!(count(event) >= 20 * runs / RUNS, "{event}: {total:?}");
        }
        let codes = total.events.keys().filter(|e| e.starts_with("aeqe 0x"));
        assert!(codes.count() >= 15, "{total:?}");
        assert!(total.slowest < Duration::from_secs(20), "{total:?}");
    }

    /// Says the seed if a run panics.
    struct Announce(u64);

    impl Drop for Announce {
        fn drop(&mut self) {
            eprintln!("FUZZ_SEED={} FUZZ_RUNS=1 repeats it", self.0);
        }
    }
}
