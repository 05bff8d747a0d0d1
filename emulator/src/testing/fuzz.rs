// SPDX-License-Identifier: GPL-2.0
//! A driver that does what random bytes say: registers of every width,
//! doorbells, work requests, control-queue and admin commands, LAN
//! descriptors, configuration space, memory under the device's hands, frames
//! from nowhere, answers that no peer gave, faults and resets.
//!
//! [`run`] is for tests with a fixed seed and for cargo-fuzz alike. Whatever
//! the bytes are, nothing may panic or hang, and each access ends as a normal
//! effect, a recorded violation or an error that the device reports.

mod admin;
mod commands;
mod datagrams;
mod frames;
mod input;
mod lan;
mod objects;
mod registers;
mod responses;
mod survival;
mod tap;
#[cfg(test)]
mod tests;
mod trouble;
mod watch;
mod work;
mod wrong;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::pair::Pair;
use crate::machine::Machine;
use crate::trace::Trace;
use input::Input;
use tap::{Requests, Tap};
use watch::{lock, Seen, Watch};

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
    /// Those of which that was asked.
    pub wrong: u64,
    /// Most frames that waited on the wire when one was done.
    pub queued: usize,
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
        self.wrong += other.wrong;
        self.queued = self.queued.max(other.queued);
        self.slowest = self.slowest.max(other.slowest);
        for (event, count) in other.events {
            *self.events.entry(event).or_default() += count;
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
    /// How often the completion queue was resized, by port.
    resizes: [u64; 2],
    /// Queue pairs whose rings are lists of pages, by port.
    paged: [[bool; 3]; 2],
    /// What the ports ask of each other.
    requests: Arc<Mutex<Requests>>,
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
        resizes: [0; 2],
        paged: [[false; 3]; 2],
        requests: Arc::default(),
    };
    let tap = Tap::new(fuzzer.requests.clone());
    // Writing to memory does not fail.
    let _ = fuzzer.machine().wire().capture(Box::new(tap));
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
        report.queued = report.queued.max(fuzzer.machine().wire().queued());
        report.wrong += u64::from(wrong && !forgiven);
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
        match self.input.byte() % 44 {
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
            27 => {
                self.revive();
            }
            28 => self.fault(port),
            29 => self.client(port),
            30 if self.input.chance(4) => self.reset(port),
            31..=34 => self.answer(port),
            35 | 36 => self.datagram(port),
            37..=39 => self.object(port),
            40 => self.segments(port),
            41 | 42 => return self.wrong(port),
            _ => self.ring_all(port),
        }
        false
    }
}
