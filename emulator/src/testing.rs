// SPDX-License-Identifier: GPL-2.0
//! What unit tests need: memory without a guest, and a context over it; two
//! whole functions that talk to each other; a driver that does what random
//! bytes say.

pub mod fuzz;
pub mod load;
pub mod pair;

use std::ffi::CString;
use std::fs::File;

use nix::sys::memfd::{memfd_create, MFdFlags};

use crate::context::{Context, Frame, FramePool, PortState};
use crate::faults::Faults;
use crate::interrupts::Interrupts;
use crate::memory::GuestMemory;
use crate::trace::Trace;
use crate::violations::Violations;

/// Returns a file of `len` zero bytes that lives in memory.
///
/// # Panics
///
/// If the system has no such file to give.
pub fn memory_file(len: u64) -> File {
    let name = CString::new("guest").unwrap_or_default();
    let file: File = memfd_create(name.as_c_str(), MFdFlags::MFD_CLOEXEC)
        .expect("memfd_create")
        .into();
    file.set_len(len).expect("memfd size");
    file
}

/// A function's surroundings for unit tests.
pub struct Bench {
    /// Guest memory, mapped from address 0 on.
    pub memory: GuestMemory,
    /// 64 vectors.
    pub interrupts: Interrupts,
    /// Off.
    pub trace: Trace,
    /// Quiet; a test looks at it in the end.
    pub violations: Violations,
    /// No fault.
    pub faults: Faults,
    /// The frames sent so far.
    pub frames: Vec<Frame>,
    /// Frames on the wire.
    pub queued: usize,
    /// Used frames.
    pub pool: FramePool,
    /// A port whose link is up.
    pub port: PortState,
    /// The time, which only the test moves.
    pub now: u64,
}

impl Bench {
    /// Returns surroundings with `len` bytes of memory from address 0 on.
    ///
    /// # Panics
    ///
    /// If the memory cannot be had.
    pub fn new(len: u64) -> Self {
        let mut memory = GuestMemory::new();
        memory
            .map(0, len, Some((memory_file(len), 0)), true)
            .expect("test memory");
        Bench {
            memory,
            interrupts: Interrupts::new(64),
            trace: Trace::off(),
            violations: Violations::quiet(),
            faults: Faults::new(),
            frames: vec![],
            queued: 0,
            pool: FramePool::default(),
            port: PortState {
                index: 0,
                pf_id: 0,
                mac: [0x02, 0, 0, 0, 0, 1],
                addresses: vec![[0x02, 0, 0, 0, 0, 1]],
                link_up: true,
                max_frame: 9728,
                vsis: vec![1],
                failed: false,
            },
            now: 0,
        }
    }

    /// Returns the context of one event.
    pub fn context(&mut self) -> Context<'_> {
        Context {
            memory: &self.memory,
            interrupts: &mut self.interrupts,
            trace: &mut self.trace,
            violations: &mut self.violations,
            faults: &mut self.faults,
            frames: &mut self.frames,
            queued: self.queued,
            pool: &mut self.pool,
            port: &mut self.port,
            now: self.now,
        }
    }
}
