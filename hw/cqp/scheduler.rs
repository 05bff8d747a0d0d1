// SPDX-License-Identifier: GPL-2.0

//! Commands about the work scheduler and statistics.

use super::command::{
    Command,
    Opcode, //
};
use crate::hw::bits::{
    bit,
    field, //
};

/// What is done with a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum NodeAction {
    /// Adds it.
    Add = 0,
    /// Modifies it.
    Modify = 1,
    /// Deletes it.
    Delete = 2,
}

/// How a node's children share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "the list is the device's, and whole")]
#[repr(u8)]
pub(crate) enum NodePriority {
    /// Round robin by weight.
    WeightedRoundRobin = 1,
    /// Strict priority.
    Strict = 2,
    /// Strict priority by weight.
    WeightedStrict = 3,
}

/// Adds, modifies or deletes a node of the work scheduler.
///
/// The value of the reply to adding a leaf is the queue set's handle.
#[doc(alias = "irdma_sc_manage_ws_node")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkSchedNode {
    /// What is done.
    pub(crate) action: NodeAction,
    /// Number of the node.
    pub(crate) id: u16,
    /// Number of the parent; the root names itself.
    pub(crate) parent: u16,
    /// The function's VSI.
    pub(crate) vsi: u16,
    /// The node is a leaf, that is a queue set.
    pub(crate) leaf: bool,
    /// The node schedules.
    pub(crate) enable: bool,
    /// How it shares.
    pub(crate) priority: NodePriority,
    /// Traffic class of a leaf.
    pub(crate) traffic_class: u8,
    /// Weight among its siblings.
    pub(crate) weight: u8,
}

impl Command for WorkSchedNode {
    const OPCODE: Opcode = Opcode::WorkSchedNode;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header()
            | field::<13, 0>(self.id.into())
            | field::<29, 16>(self.parent.into())
            | field::<55, 52>(self.action as u64)
            | field::<58, 56>(self.traffic_class.into())
            | field::<60, 59>(self.priority as u64)
            | bit::<61>(self.leaf)
            | bit::<62>(self.enable);

        [
            0,
            0,
            0,
            header,
            field::<38, 32>(self.weight.into()) | field::<63, 48>(self.vsi.into()),
            0,
            0,
            0,
        ]
    }
}

/// Has the statistics written to memory.
#[doc(alias = "irdma_sc_gather_stats")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatherStats {
    /// DMA address of 1024 bytes.
    pub(crate) buffer: u64,
    /// The statistics instance, if not the function's own.
    pub(crate) instance: Option<u8>,
}

impl Command for GatherStats {
    const OPCODE: Opcode = Opcode::GatherStats;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header()
            | field::<6, 0>(self.instance.unwrap_or(0).into())
            | bit::<61>(self.instance.is_some());

        [0, 0, 0, header, self.buffer, 0, 0, 0]
    }
}
