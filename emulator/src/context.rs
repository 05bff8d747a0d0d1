// SPDX-License-Identifier: GPL-2.0
//! What a device block may use while it handles one event.

use serde_json::Value;

use crate::faults::Faults;
use crate::interrupts::Interrupts;
use crate::memory::{DmaError, GuestMemory};
use crate::trace::Trace;
use crate::violations::Violations;

/// An Ethernet frame without its checksum.
pub type Frame = Vec<u8>;

/// Used frames, to be written anew: a frame then costs no allocation, and its
/// memory is still in the processor's cache.
#[derive(Debug, Default)]
pub struct FramePool {
    frames: Vec<Frame>,
}

impl FramePool {
    /// More frames than this are not kept.
    const KEPT: usize = 1024;
    /// Longer ones are not kept.
    const LONGEST: usize = 16 << 10;

    /// Gives a used frame (with whatever was in it) or an empty one.
    pub fn take(&mut self) -> Frame {
        self.frames.pop().unwrap_or_default()
    }

    /// Takes a frame back that has arrived.
    pub fn give(&mut self, frame: Frame) {
        if self.frames.len() < Self::KEPT && frame.capacity() <= Self::LONGEST {
            self.frames.push(frame);
        }
    }
}

/// What the LAN side knows about the function's port.
#[derive(Clone, Debug, Default)]
pub struct PortState {
    /// The number of the port in this emulator, from 0.
    pub index: usize,
    /// The number of the PCI function in its device.
    pub pf_id: u8,
    /// The port's factory MAC address.
    pub mac: [u8; 6],
    /// The unicast addresses whose frames the switch gives to the protocol
    /// engine: what the driver's rules say, whatever the factory address is.
    pub addresses: Vec<[u8; 6]>,
    /// Whether the link is up.
    pub link_up: bool,
    /// The largest Ethernet frame the link takes, without checksum, bytes.
    pub max_frame: usize,
    /// The VSI numbers that the driver has, in the order it added them; the
    /// first one is the function's own.
    pub vsis: Vec<u16>,
    /// The function has failed or was reset without its driver's doing. Until
    /// the driver starts it anew, what it does is not held against it: it may
    /// not have noticed yet.
    pub failed: bool,
}

/// What a device block may use while it handles one event.
pub struct Context<'a> {
    /// Guest memory.
    pub memory: &'a GuestMemory,
    /// The function's interrupts.
    pub interrupts: &'a mut Interrupts,
    /// The trace of the run.
    pub trace: &'a mut Trace,
    /// The violations of the run.
    pub violations: &'a mut Violations,
    /// The function's faults.
    pub faults: &'a mut Faults,
    /// Frames on their way to the wire.
    pub frames: &'a mut Vec<Frame>,
    /// Frames of all ports that were on the wire before this event and may
    /// arrive at once.
    pub queued: usize,
    /// Frames that have arrived, for use anew.
    pub pool: &'a mut FramePool,
    /// The function's port.
    pub port: &'a mut PortState,
    /// The time in nanoseconds since the start.
    pub now: u64,
}

impl Context<'_> {
    /// Traces an event of this function. `fields` is a JSON object, made only
    /// if the trace is on.
    pub fn trace(&mut self, ev: &str, fields: impl FnOnce() -> Value) {
        self.trace.event(self.now, self.port.index, ev, fields);
    }

    /// Records a violation by this function's driver. While the function is
    /// [failed](PortState::failed) it is only traced.
    pub fn violation(&mut self, kind: &str, text: impl std::fmt::Display) {
        let text = format!("port {}: {text}", self.port.index);
        self.trace.event(
            self.now,
            self.port.index,
            "violation",
            || serde_json::json!({"kind": kind, "text": text}),
        );
        if !self.port.failed {
            self.violations.report(kind, text);
        }
    }

    /// Turns a failed DMA access into a violation; `what` says what the
    /// memory should have been.
    pub fn guard<T>(&mut self, what: &str, result: Result<T, DmaError>) -> Result<T, DmaError> {
        if let Err(error) = &result {
            self.violation("dma", format!("{what}: {error}"));
        }
        result
    }

    /// Reads guest memory; an address outside is a violation.
    pub fn read(&mut self, what: &str, address: u64, buf: &mut [u8]) -> Result<(), DmaError> {
        let result = self.memory.read(address, buf);
        self.guard(what, result)
    }

    /// Writes guest memory; an address outside is a violation.
    pub fn write(&mut self, what: &str, address: u64, buf: &[u8]) -> Result<(), DmaError> {
        let result = self.memory.write(address, buf);
        self.guard(what, result)
    }

    /// Reads a little-endian `u64`; an address outside is a violation.
    pub fn read_u64(&mut self, what: &str, address: u64) -> Result<u64, DmaError> {
        let result = self.memory.read_u64(address);
        self.guard(what, result)
    }

    /// Writes a little-endian `u64`, after everything written before it; an
    /// address outside is a violation.
    pub fn write_u64(&mut self, what: &str, address: u64, value: u64) -> Result<(), DmaError> {
        let result = self.memory.write_u64(address, value);
        self.guard(what, result)
    }
}
