// SPDX-License-Identifier: GPL-2.0

//! Commands about completion queues.

use super::command::{
    Command,
    Opcode, //
};
use crate::hw::bits::{
    bit,
    field, //
};

/// Where the device finds a queue's ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RingBase {
    /// A contiguous ring at this DMA address.
    Contiguous(u64),
    /// Pages named by a page list of one level that begins at this index.
    PageList(u32),
}

impl RingBase {
    /// Returns the address, or 0 for a page list.
    pub(crate) const fn address(&self) -> u64 {
        match self {
            RingBase::Contiguous(address) => *address,
            RingBase::PageList(_) => 0,
        }
    }

    /// Returns the index of the page list, or 0 for a contiguous ring.
    pub(crate) const fn index(&self) -> u64 {
        match self {
            RingBase::Contiguous(_) => 0,
            // CAST: Widening.
            RingBase::PageList(index) => *index as u64,
        }
    }

    /// Returns whether the ring is given by a page list.
    pub(crate) const fn is_list(&self) -> bool {
        matches!(self, RingBase::PageList(_))
    }

    /// Returns bits 45:44 (leaf size) and 47 (virtual map) of the header.
    pub(crate) const fn flags(&self) -> u64 {
        field::<45, 44>(self.is_list() as u64) | bit::<47>(self.is_list())
    }
}

/// Makes a completion queue.
#[doc(alias = "irdma_sc_cq_create")]
#[doc(alias = "irdma_sc_ccq_create")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateCq {
    /// Number of the queue.
    pub(crate) cq_id: u32,
    /// Number of entries.
    pub(crate) entries: u32,
    /// Where the ring is.
    pub(crate) ring: RingBase,
    /// DMA address of the shadow area.
    pub(crate) shadow: u64,
    /// The device reads the consumer index from the shadow area after this many entries.
    pub(crate) shadow_read_threshold: u32,
    /// The event queue that tells of its completions, if there is one.
    pub(crate) ceq_id: Option<u32>,
    /// Events are held back until the queue is armed.
    pub(crate) mask_events: bool,
    /// The device checks for overflow.
    pub(crate) check_overflow: bool,
    /// The function's VSI.
    pub(crate) vsi: u16,
}

impl Command for CreateCq {
    const OPCODE: Opcode = Opcode::CreateCq;

    fn encode(&self) -> [u64; 8] {
        let ceq_id = u64::from(self.ceq_id.unwrap_or(0));
        let header = Self::OPCODE.header()
            | field::<18, 0>(self.cq_id.into())
            | field::<31, 22>(ceq_id)
            | self.ring.flags()
            | bit::<46>(self.check_overflow)
            | bit::<48>(self.mask_events)
            | bit::<49>(self.ceq_id.is_some())
            | field::<52, 50>(u64::from(self.cq_id) >> 22)
            | field::<59, 54>(ceq_id >> 10);

        [
            field::<20, 0>(self.entries.into()),
            // What a completion event carries: the number, never a pointer.
            self.cq_id.into(),
            field::<17, 0>(self.shadow_read_threshold.into()),
            header,
            self.ring.address(),
            self.shadow,
            field::<27, 0>(self.ring.index()),
            field::<23, 8>(self.vsi.into()),
        ]
    }
}

/// Gives a completion queue another ring.
#[doc(alias = "irdma_sc_cq_modify")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResizeCq {
    /// Number of the queue.
    pub(crate) cq_id: u32,
    /// Number of entries of the new ring.
    pub(crate) entries: u32,
    /// Where the new ring is.
    pub(crate) ring: RingBase,
    /// DMA address of the shadow area.
    pub(crate) shadow: u64,
    /// The device reads the consumer index from the shadow area after this many entries.
    pub(crate) shadow_read_threshold: u32,
    /// Events are held back until the queue is armed.
    pub(crate) mask_events: bool,
    /// The device checks for overflow.
    pub(crate) check_overflow: bool,
    /// The function's VSI.
    pub(crate) vsi: u16,
}

impl Command for ResizeCq {
    const OPCODE: Opcode = Opcode::ModifyCq;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header()
            | field::<31, 0>(self.cq_id.into())
            | bit::<43>(true)
            | self.ring.flags()
            | bit::<46>(self.check_overflow)
            | bit::<48>(self.mask_events);

        [
            self.entries.into(),
            self.cq_id.into(),
            field::<17, 0>(self.shadow_read_threshold.into()),
            header,
            self.ring.address(),
            self.shadow,
            self.ring.index(),
            field::<23, 8>(self.vsi.into()),
        ]
    }
}

/// Takes a completion queue away.
#[doc(alias = "irdma_sc_cq_destroy")]
#[doc(alias = "irdma_sc_ccq_destroy")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestroyCq {
    /// Number of the queue.
    pub(crate) cq_id: u32,
    /// Number of entries.
    pub(crate) entries: u32,
    /// Where the ring is.
    pub(crate) ring: RingBase,
    /// DMA address of the shadow area.
    pub(crate) shadow: u64,
    /// The event queue that told of its completions, if there is one.
    pub(crate) ceq_id: Option<u32>,
    /// Events were held back until the queue was armed.
    pub(crate) mask_events: bool,
}

impl Command for DestroyCq {
    const OPCODE: Opcode = Opcode::DestroyCq;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header()
            | field::<21, 0>(self.cq_id.into())
            | field::<31, 22>(self.ceq_id.unwrap_or(0).into())
            | self.ring.flags()
            | bit::<48>(self.mask_events)
            | bit::<49>(self.ceq_id.is_some());

        [
            self.entries.into(),
            self.cq_id.into(),
            0,
            header,
            0,
            self.shadow,
            self.ring.index(),
            0,
        ]
    }
}
