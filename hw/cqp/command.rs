// SPDX-License-Identifier: GPL-2.0

//! What every command of the control queue has in common.

use crate::hw::bits::field;

/// Number of quadwords of a control-queue entry.
pub(crate) const WQE_WORDS: usize = 8;

/// The quadword that holds the opcode and the valid bit; it is written last.
pub(crate) const HEADER: usize = 3;

/// Number of quadwords that a command can keep beside its ring slot, see [`Command::spill`].
pub(crate) const SPILL_WORDS: usize = 16;

/// Operation codes of the control queue, bits 37:32 of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Opcode {
    /// Makes a queue pair.
    CreateQp = 0x00,
    /// Changes a queue pair's state or attributes.
    ModifyQp = 0x01,
    /// Takes a queue pair away.
    DestroyQp = 0x02,
    /// Makes a completion queue.
    CreateCq = 0x03,
    /// Resizes a completion queue.
    ModifyCq = 0x04,
    /// Takes a completion queue away.
    DestroyCq = 0x05,
    /// Allocates a memory key without memory.
    AllocStag = 0x09,
    /// Registers memory under a key.
    RegMr = 0x0a,
    /// Gives a memory key back.
    DeallocStag = 0x0d,
    /// Adds or deletes a neighbour's MAC address.
    ManageArp = 0x0f,
    /// Asks for the firmware's version and features.
    QueryFeatures = 0x12,
    /// Makes a completion event queue.
    CreateCeq = 0x16,
    /// Takes a completion event queue away.
    DestroyCeq = 0x18,
    /// Makes the asynchronous event queue.
    CreateAeq = 0x19,
    /// Takes the asynchronous event queue away.
    DestroyAeq = 0x1b,
    /// Makes an address handle.
    CreateAh = 0x1c,
    /// Takes an address handle away.
    DestroyAh = 0x1e,
    /// Sets or clears segment descriptors of the function-private memory.
    UpdateSds = 0x1f,
    /// Asks for the limits of the function-private memory.
    QueryFpm = 0x20,
    /// Fixes the layout of the function-private memory.
    CommitFpm = 0x21,
    /// Flushes a queue pair's work queues, or makes an event for it.
    FlushWqes = 0x22,
    /// Makes a multicast group.
    CreateMcastGroup = 0x26,
    /// Changes a multicast group's members.
    ModifyMcastGroup = 0x27,
    /// Takes a multicast group away.
    DestroyMcastGroup = 0x28,
    /// Stops a queue pair's transmission.
    SuspendQp = 0x29,
    /// Resumes a queue pair's transmission on another queue set.
    ResumeQp = 0x2a,
    /// Says that the function-private memory has its backing pages.
    ShmcPagesAllocated = 0x2b,
    /// Adds, modifies or deletes a node of the work scheduler.
    WorkSchedNode = 0x2c,
    /// Has the statistics written to memory.
    GatherStats = 0x2e,
}

impl Opcode {
    /// Returns the header with this opcode and nothing else.
    #[inline]
    pub(crate) const fn header(self) -> u64 {
        // CAST: The enum is `repr(u8)`.
        field::<37, 32>(self as u64)
    }
}

/// A command: a value that knows its own encoding.
pub(crate) trait Command {
    /// What the command does.
    const OPCODE: Opcode;

    /// Returns the ring entry, with the opcode but without the valid bit, which is the ring's.
    ///
    /// Every field that the command does not use is zero.
    fn encode(&self) -> [u64; WQE_WORDS];

    /// Returns up to [`SPILL_WORDS`] quadwords that do not fit into the entry.
    ///
    /// The ring puts them beside the slot and their address into quadword 2.
    fn spill(&self) -> &[u64] {
        &[]
    }
}
