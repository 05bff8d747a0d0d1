// SPDX-License-Identifier: GPL-2.0

//! Commands about the firmware and the function-private memory.

use super::command::{
    Command,
    Opcode, //
};
use crate::hw::bits::{
    bit,
    field, //
};

/// Asks for the firmware's version and features.
#[doc(alias = "irdma_sc_query_rdma_features")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryFeatures {
    /// DMA address of the answer.
    pub(crate) buffer: u64,
    /// Room for the answer in bytes.
    pub(crate) length: u32,
}

impl Command for QueryFeatures {
    const OPCODE: Opcode = Opcode::QueryFeatures;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header() | field::<31, 0>(self.length.into());

        [0, 0, 0, header, self.buffer, 0, 0, 0]
    }
}

/// Asks for the limits of the function-private memory.
#[doc(alias = "irdma_sc_query_fpm_val")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueryFpm {
    /// Number of the function in the function-private memory.
    pub(crate) hmc_function: u8,
    /// DMA address of the answer.
    pub(crate) buffer: u64,
}

impl Command for QueryFpm {
    const OPCODE: Opcode = Opcode::QueryFpm;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header();

        [0, 0, self.hmc_function.into(), header, self.buffer, 0, 0, 0]
    }
}

/// Fixes the layout of the function-private memory: counts in, counts and bases out.
#[doc(alias = "irdma_sc_commit_fpm_val")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommitFpm {
    /// Number of the function in the function-private memory.
    pub(crate) hmc_function: u8,
    /// DMA address of the counts and of the answer.
    pub(crate) buffer: u64,
    /// Size of the buffer in bytes.
    pub(crate) length: u32,
}

impl Command for CommitFpm {
    const OPCODE: Opcode = Opcode::CommitFpm;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header() | field::<31, 0>(self.length.into());

        [0, 0, self.hmc_function.into(), header, self.buffer, 0, 0, 0]
    }
}

/// Says that the function-private memory has its backing pages.
#[doc(alias = "irdma_sc_static_hmc_pages_allocated")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShmcPagesAllocated {
    /// Number of the function in the function-private memory.
    pub(crate) hmc_function: u8,
}

impl Command for ShmcPagesAllocated {
    const OPCODE: Opcode = Opcode::ShmcPagesAllocated;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header();

        [
            0,
            0,
            field::<5, 0>(self.hmc_function.into()),
            header,
            0,
            0,
            0,
            0,
        ]
    }
}

/// What backs one segment (2 MiB) of the function-private memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentKind {
    /// A page of 512 page descriptors.
    Paged,
    /// A contiguous region of 2 MiB.
    Direct,
}

/// One segment descriptor to set or to clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentUpdate {
    /// Index of the segment.
    pub(crate) index: u32,
    /// What backs it.
    pub(crate) kind: SegmentKind,
    /// DMA address to set, or `None` to clear it.
    pub(crate) address: Option<u64>,
}

impl SegmentUpdate {
    /// Returns the (command, data) pair of the device.
    #[doc(alias = "irdma_set_sd_entry")]
    #[doc(alias = "irdma_clr_sd_entry")]
    pub(crate) const fn encode(&self) -> (u64, u64) {
        // 512 backing pages of 4 KiB, whichever way they are given.
        let data = field::<11, 2>(512) | bit::<1>(matches!(self.kind, SegmentKind::Direct));
        let data = match self.address {
            Some(address) => address | data | bit::<0>(true),
            None => data,
        };
        // CAST: Widening.
        let command = field::<11, 0>(self.index as u64) | bit::<15>(true) | bit::<31>(true);

        (command, data)
    }
}

/// Greatest number of segment descriptors that one command takes.
#[doc(alias = "IRDMA_MAX_SD_ENTRIES")]
pub(crate) const MAX_SEGMENT_UPDATES: usize = 11;

/// Number of segment descriptors that fit into the ring entry itself.
const INLINE_UPDATES: usize = 3;

/// Sets or clears segment descriptors.
#[doc(alias = "cqp_sds_wqe_fill")]
#[doc(alias = "irdma_update_pe_sds")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateSds {
    /// Number of the function in the function-private memory.
    hmc_function: u8,
    /// (command, data) of the descriptors in the ring entry.
    inline: [(u64, u64); INLINE_UPDATES],
    /// Number of descriptors in the ring entry.
    count: usize,
    /// The rest, command and data in turn.
    spill: [u64; 2 * (MAX_SEGMENT_UPDATES - INLINE_UPDATES)],
    /// Number of quadwords of the rest.
    spilled: usize,
}

impl UpdateSds {
    /// Makes a command of up to [`MAX_SEGMENT_UPDATES`] descriptors; there must be at least one.
    pub(crate) fn new(hmc_function: u8, updates: &[SegmentUpdate]) -> Option<Self> {
        if updates.is_empty() || updates.len() > MAX_SEGMENT_UPDATES {
            return None;
        }

        let mut command = Self {
            hmc_function,
            inline: [(0, 0); INLINE_UPDATES],
            count: updates.len().min(INLINE_UPDATES),
            spill: [0; 2 * (MAX_SEGMENT_UPDATES - INLINE_UPDATES)],
            spilled: 0,
        };

        for (slot, update) in command.inline.iter_mut().zip(updates) {
            *slot = update.encode();
        }
        for (pair, update) in command
            .spill
            .chunks_exact_mut(2)
            .zip(updates.iter().skip(INLINE_UPDATES))
        {
            let (order, data) = update.encode();
            pair.copy_from_slice(&[order, data]);
            command.spilled += 2;
        }

        Some(command)
    }
}

impl Command for UpdateSds {
    const OPCODE: Opcode = Opcode::UpdateSds;

    fn encode(&self) -> [u64; 8] {
        let [first, second, third] = self.inline;
        // CAST: At most 8 descriptors.
        let header = Self::OPCODE.header() | field::<3, 0>((self.spilled / 2) as u64);

        [
            first.0,
            first.1,
            // The ring adds the address of what spills over.
            field::<5, 0>(self.hmc_function.into()),
            header,
            second.0 | bit::<63>(self.count > 1),
            second.1,
            third.0 | bit::<63>(self.count > 2),
            third.1,
        ]
    }

    fn spill(&self) -> &[u64] {
        self.spill.get(..self.spilled).unwrap_or(&[])
    }
}
