// SPDX-License-Identifier: GPL-2.0

//! The control queue as the device knows it: its memory and its context.

use kernel::{
    device::{
        Bound,
        Device, //
    },
    io::poll::read_poll_timeout,
    prelude::*,
    sync::{
        barrier::{
            dma_mb,
            Write, //
        },
        Arc, //
    }, //
};

use super::{
    command::{
        SPILL_WORDS,
        WQE_WORDS, //
    },
    CONTEXT,
    ENTRIES,
    REGISTER_LIMIT,
    REGISTER_STEP, //
};
use crate::hw::{
    bits::field,
    dma::DmaBuffer,
    function::Protocol,
    graveyard,
    regs::Regs, //
};

/// Profile of the function-private memory: the default.
const HMC_PROFILE_DEFAULT: u64 = 1;

/// Number of quadwords of the queue's context.
const CONTEXT_WORDS: usize = 8;

/// The memory of the queue.
pub(super) struct Memory {
    /// The ring.
    pub(super) ring: DmaBuffer,
    /// The context.
    context: DmaBuffer,
    /// What does not fit into the ring, [`SPILL_WORDS`] quadwords a slot.
    pub(super) spill: DmaBuffer,
}

/// A queue that the device knows; it is taken away from the device on drop.
pub(super) struct Live<'a> {
    /// What messages name.
    device: &'a Device<Bound>,
    /// What does the DMA.
    pub(super) parent: &'a Device<Bound>,
    pub(super) regs: Regs<'a>,
    pub(super) memory: Arc<Memory>,
}

impl<'a> Live<'a> {
    /// Hands a queue to the device.
    pub(super) fn new(
        device: &'a Device<Bound>,
        parent: &'a Device<Bound>,
        regs: Regs<'a>,
        protocol: Protocol,
    ) -> Result<Self> {
        // CAST: Widening.
        let entries = ENTRIES as usize;
        let memory = Memory {
            ring: DmaBuffer::new(parent, entries * WQE_WORDS * 8)?,
            context: DmaBuffer::new(parent, CONTEXT_WORDS * 8)?,
            spill: DmaBuffer::new(parent, entries * SPILL_WORDS * 8)?,
        };
        let version = regs.hal().limits().cqp_major_version;
        let context = encode_context(memory.ring.address(), protocol, version);

        memory.context.write_all(0, &context)?;
        dma_mb(Write);

        // From here on the device may use the memory: `Live` takes it away again.
        let live = Self {
            device,
            parent,
            regs,
            memory: Arc::new(memory, GFP_KERNEL)?,
        };
        let regs = &live.regs;

        regs.clear_cqp();
        regs.set_cqp_context(live.memory.context.address());

        let status = read_poll_timeout(
            || Ok(regs.cqp_status()),
            |status| status.answered,
            REGISTER_STEP,
            REGISTER_LIMIT,
        );
        let error = match status {
            Ok(status) if status.error => EOPNOTSUPP,
            Ok(_) => {
                // A reset that took the last device away is over.
                graveyard::open(parent);
                return Ok(live);
            }
            Err(error) => error,
        };
        let (major, minor) = regs.cqp_error();

        dev_err!(
            device,
            "the control queue was not created: errno {}, codes {:#x} {:#x}\n",
            error.to_errno(),
            major,
            minor
        );

        Err(error)
    }
}

impl Drop for Live<'_> {
    #[doc(alias = "irdma_destroy_cqp")]
    #[doc(alias = "irdma_sc_cqp_destroy")]
    fn drop(&mut self) {
        self.regs.set_cqp_context(0);

        let gone = read_poll_timeout(
            || Ok(self.regs.cqp_status()),
            |status| !status.done,
            REGISTER_STEP,
            REGISTER_LIMIT,
        );

        if gone.is_err() {
            dev_warn!(self.device, "the control queue was not destroyed\n");
            graveyard::bury(self.parent, self.memory.clone());
        }
    }
}

/// Returns the queue's context: version 1 of the E810 knows no other fields than these.
const fn encode_context(ring: u64, protocol: Protocol, version: u16) -> [u64; CONTEXT_WORDS] {
    [
        // The size is given as its logarithm, less one.
        field::<11, 8>((ENTRIES.ilog2() - 1) as u64) | field::<4, 3>(protocol as u64),
        ring,
        HMC_PROFILE_DEFAULT,
        CONTEXT,
        field::<31, 16>(version as u64),
        0,
        0,
        0,
    ]
}
