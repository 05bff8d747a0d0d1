// SPDX-License-Identifier: GPL-2.0

//! Commands about event queues.

use super::{
    command::{
        Command,
        Opcode, //
    },
    cq::RingBase, //
};
use crate::hw::bits::field;

/// Makes a completion event queue.
#[doc(alias = "irdma_sc_ceq_create")]
#[doc(alias = "irdma_sc_cceq_create")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateCeq {
    /// Number of the queue.
    pub(crate) ceq_id: u32,
    /// Number of entries.
    pub(crate) entries: u32,
    /// Where the ring is.
    pub(crate) ring: RingBase,
    /// The function's VSI.
    pub(crate) vsi: u16,
}

impl Command for CreateCeq {
    const OPCODE: Opcode = Opcode::CreateCeq;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header()
            | field::<9, 0>(self.ceq_id.into())
            | field::<15, 10>(u64::from(self.ceq_id) >> 10)
            | self.ring.flags();

        [
            0,
            0,
            self.entries.into(),
            header,
            self.ring.address(),
            0,
            self.ring.index(),
            field::<23, 8>(self.vsi.into()),
        ]
    }
}

/// Takes a completion event queue away.
#[doc(alias = "irdma_sc_ceq_destroy")]
#[doc(alias = "irdma_sc_cceq_destroy_done")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestroyCeq {
    /// Number of the queue.
    pub(crate) ceq_id: u32,
    /// Number of entries.
    pub(crate) entries: u32,
    /// Where the ring is.
    pub(crate) ring: RingBase,
}

impl Command for DestroyCeq {
    const OPCODE: Opcode = Opcode::DestroyCeq;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header() | field::<31, 0>(self.ceq_id.into()) | self.ring.flags();

        [
            0,
            0,
            self.entries.into(),
            header,
            0,
            0,
            self.ring.index(),
            0,
        ]
    }
}

/// Makes the asynchronous event queue.
#[doc(alias = "irdma_sc_aeq_create")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateAeq {
    /// Number of entries.
    pub(crate) entries: u32,
    /// Where the ring is.
    pub(crate) ring: RingBase,
}

impl Command for CreateAeq {
    const OPCODE: Opcode = Opcode::CreateAeq;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header() | self.ring.flags();

        [
            0,
            0,
            self.entries.into(),
            header,
            self.ring.address(),
            0,
            self.ring.index(),
            0,
        ]
    }
}

/// Takes the asynchronous event queue away.
#[doc(alias = "irdma_sc_aeq_destroy")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestroyAeq {
    /// Number of entries.
    pub(crate) entries: u32,
    /// Where the ring is.
    pub(crate) ring: RingBase,
}

impl Command for DestroyAeq {
    const OPCODE: Opcode = Opcode::DestroyAeq;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header() | self.ring.flags();

        [
            0,
            0,
            self.entries.into(),
            header,
            0,
            0,
            self.ring.index(),
            0,
        ]
    }
}
