// SPDX-License-Identifier: GPL-2.0
//! All functions and the wire. Threads reach it through one lock
//! ([`Shared`]); inside, everything runs to its end: a register write does all
//! that follows from it, frames over the wire to the other port included.

use std::fs::File;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::context::{Context, Frame, FramePool, PortState};
use crate::faults::Faults;
use crate::interrupts::Interrupts;
use crate::memory::GuestMemory;
use crate::nic::{Incident, Nic};
use crate::pci::ConfigSpace;
use crate::trace::Trace;
use crate::violations::Violations;
use crate::wire::{Message, Wire};

/// Frames handled in one go; what is left waits for the clock, so that no
/// register write takes for ever.
const FRAMES_AT_ONCE: usize = 4096;

struct Function {
    nic: Box<dyn Nic>,
    config: ConfigSpace,
    memory: GuestMemory,
    interrupts: Interrupts,
    faults: Faults,
    port: PortState,
    frames: Vec<Frame>,
}

/// All functions and the wire.
pub struct Machine {
    functions: Vec<Function>,
    wire: Wire,
    pool: FramePool,
    trace: Trace,
    violations: Violations,
    armed: Option<u64>,
    stopped: bool,
}

impl Machine {
    /// Returns a machine without functions.
    pub fn new(wire: Wire, trace: Trace, violations: Violations) -> Self {
        Machine {
            functions: vec![],
            wire,
            pool: FramePool::default(),
            trace,
            violations,
            armed: None,
            stopped: false,
        }
    }

    /// Adds a function; `port.index` becomes its number, which is returned.
    pub fn add(&mut self, nic: Box<dyn Nic>, mut port: PortState) -> usize {
        let identity = nic.identity();
        port.index = self.functions.len();
        let index = port.index;
        self.functions.push(Function {
            nic,
            config: ConfigSpace::new(&identity),
            memory: GuestMemory::new(),
            interrupts: Interrupts::new(identity.vectors),
            faults: Faults::new(),
            port,
            frames: vec![],
        });
        index
    }

    /// Returns the number of functions.
    pub fn functions(&self) -> usize {
        self.functions.len()
    }

    /// The wire.
    pub fn wire(&mut self) -> &mut Wire {
        &mut self.wire
    }

    /// The trace.
    pub fn trace(&mut self) -> &mut Trace {
        &mut self.trace
    }

    /// The violations so far.
    pub fn violations(&mut self) -> &mut Violations {
        &mut self.violations
    }

    /// The faults of function `index`.
    pub fn faults(&mut self, index: usize) -> Option<&mut Faults> {
        self.functions.get_mut(index).map(|f| &mut f.faults)
    }

    /// The port of function `index`.
    pub fn port(&self, index: usize) -> Option<&PortState> {
        self.functions.get(index).map(|f| &f.port)
    }

    /// The configuration space of function `index`.
    pub fn config(&mut self, index: usize) -> Option<&mut ConfigSpace> {
        self.functions.get_mut(index).map(|f| &mut f.config)
    }

    /// The guest memory of function `index`.
    pub fn memory(&mut self, index: usize) -> Option<&mut GuestMemory> {
        self.functions.get_mut(index).map(|f| &mut f.memory)
    }

    /// Gives vector `vector` of function `index` its eventfd or takes it away.
    pub fn set_event(&mut self, index: usize, vector: u16, event: Option<File>) -> bool {
        self.functions
            .get_mut(index)
            .is_some_and(|f| f.interrupts.set_event(vector, event))
    }

    /// Takes all eventfds of function `index` away.
    pub fn clear_events(&mut self, index: usize) {
        if let Some(f) = self.functions.get_mut(index) {
            f.interrupts.clear_events();
        }
    }

    /// Reads BAR 0 of function `index`.
    pub fn read(&mut self, index: usize, offset: u64, data: &mut [u8], now: u64) {
        self.enter(index, now, |nic, cx| nic.read(cx, offset, data));
    }

    /// Writes BAR 0 of function `index` and does all that follows.
    pub fn write(&mut self, index: usize, offset: u64, data: &[u8], now: u64) {
        self.enter(index, now, |nic, cx| nic.write(cx, offset, data));
    }

    /// Resets function `index`.
    pub fn reset(&mut self, index: usize, now: u64) {
        self.enter(index, now, |nic, cx| {
            cx.trace("reset", || serde_json::json!({"kind": "flr"}));
            nic.reset(cx);
        });
    }

    /// Something goes wrong in function `index`. Returns false if there is no
    /// such function.
    pub fn incident(&mut self, index: usize, incident: Incident, now: u64) -> bool {
        self.enter(index, now, |nic, cx| nic.incident(cx, incident))
            .is_some()
    }

    /// Records a violation by the client of function `index`.
    pub fn violation(&mut self, index: usize, kind: &str, text: impl std::fmt::Display) {
        self.violations
            .report(kind, format!("port {index}: {text}"));
    }

    /// Takes the cable of port `index` out or puts it back; both ends see it.
    pub fn set_link(&mut self, index: usize, up: bool, now: u64) {
        let far = self.wire.set_link(index, up);
        self.link_changed(index, up, now);
        if let Some(far) = far {
            self.link_changed(far, up, now);
        }
    }

    fn link_changed(&mut self, index: usize, up: bool, now: u64) {
        self.enter(index, now, |nic, cx| {
            if cx.port.link_up != up {
                cx.port.link_up = up;
                cx.trace("link", || serde_json::json!({"up": up}));
                nic.link_changed(cx);
            }
        });
    }

    /// A message from another emulator.
    pub fn message(&mut self, message: Message, now: u64) {
        match message {
            Message::Frame(port, frame) => {
                self.wire.arrive(port, frame);
                self.poll(now);
            }
            Message::Link(port, up) => {
                self.wire.remote_link(port, up);
                self.link_changed(port, up, now);
            }
        }
    }

    /// Does what is due at `now`: frames that arrive, then what functions wait for.
    pub fn poll(&mut self, now: u64) {
        for _ in 0..FRAMES_AT_ONCE {
            if let Some((index, frame)) = self.wire.take_due(now) {
                self.enter_only(index, now, |nic, cx| nic.receive(cx, &frame));
                self.pool.give(frame);
            } else if !self.go_on(now) {
                return;
            }
        }
    }

    /// When [`Self::poll`] has something to do, in nanoseconds.
    pub fn next_deadline(&self) -> Option<u64> {
        self.functions
            .iter()
            .filter_map(|f| f.nic.next_deadline())
            .chain(self.wire.next_deadline())
            .min()
    }

    /// Runs `f` on function `index`, then lets the frames that it sent run
    /// until the wire is quiet.
    pub fn enter<R>(
        &mut self,
        index: usize,
        now: u64,
        f: impl FnOnce(&mut dyn Nic, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let result = self.enter_only(index, now, f);
        self.poll(now);
        result
    }

    fn enter_only<R>(
        &mut self,
        index: usize,
        now: u64,
        f: impl FnOnce(&mut dyn Nic, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let function = self.functions.get_mut(index)?;
        let mut cx = Context {
            memory: &function.memory,
            interrupts: &mut function.interrupts,
            trace: &mut self.trace,
            violations: &mut self.violations,
            faults: &mut function.faults,
            frames: &mut function.frames,
            queued: self.wire.queued(),
            pool: &mut self.pool,
            port: &mut function.port,
            now,
        };
        let result = f(function.nic.as_mut(), &mut cx);
        for frame in function.frames.drain(..) {
            self.wire.send(index, frame, now);
        }
        Some(result)
    }

    /// Runs what functions have due at `now`. Only a quiet wire makes their
    /// timers true: an answer that is on its way has not failed to come.
    fn go_on(&mut self, now: u64) -> bool {
        let mut any = false;
        for index in 0..self.functions.len() {
            let due = |f: &Function| f.nic.next_deadline().is_some_and(|at| at <= now);
            if self.functions.get(index).is_some_and(due) {
                self.enter_only(index, now, |nic, cx| nic.poll(cx));
                any = true;
            }
        }
        any
    }
}

/// The machine behind its lock, and its clock.
pub struct Shared {
    machine: Mutex<Machine>,
    wake: Condvar,
    start: Instant,
}

/// The clock looks this often whether buffers have to be written out.
const FLUSH_EVERY: Duration = Duration::from_millis(250);

impl Shared {
    /// Puts `machine` behind a lock; its time starts now.
    pub fn new(machine: Machine) -> Self {
        Shared {
            machine: Mutex::new(machine),
            wake: Condvar::new(),
            start: Instant::now(),
        }
    }

    /// Runs `f` on the machine with the time.
    pub fn with<R>(&self, f: impl FnOnce(&mut Machine, u64) -> R) -> R {
        let mut machine = self.lock();
        let result = f(&mut machine, self.now());
        let sooner = match (machine.next_deadline(), machine.armed) {
            (Some(next), Some(armed)) => next < armed,
            (next, None) => next.is_some(),
            (None, Some(_)) => false,
        };
        if sooner {
            self.wake.notify_one();
        }
        result
    }

    /// Ends [`Self::run_clock`].
    pub fn stop(&self) {
        self.lock().stopped = true;
        self.wake.notify_one();
    }

    /// Runs timers until [`Self::stop`].
    pub fn run_clock(&self) {
        let mut machine = self.lock();
        let mut flushed = self.now();
        while !machine.stopped {
            let now = self.now();
            machine.poll(now);
            if now - flushed >= FLUSH_EVERY.as_nanos() as u64 {
                machine.trace.flush();
                flushed = now;
            }
            machine.armed = machine.next_deadline();
            let wait = match machine.armed {
                Some(at) => Duration::from_nanos(at.saturating_sub(self.now())).min(FLUSH_EVERY),
                None => FLUSH_EVERY,
            };
            machine = self
                .wake
                .wait_timeout(machine, wait)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        machine.trace.flush();
        machine.wire.end_capture();
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn lock(&self) -> MutexGuard<'_, Machine> {
        // A panic in one thread must not hide the violations found so far.
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
