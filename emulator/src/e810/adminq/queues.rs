// SPDX-License-Identifier: GPL-2.0
//! Tx queues and RDMA queue sets.

use super::{AqError, Command, Result};
use crate::bits::{le16, le32};
use crate::context::Context;
use crate::e810::lan::tx::TxContext;
use crate::e810::E810;

/// A group's header: parent `u32`, count, reserved to 8 bytes.
const GROUP: usize = 8;
/// An entry of "add Tx queues": queue `u16`, reserved, id of its scheduler
/// node `u32`, context (22 bytes), reserved, description of the node.
const TX_ENTRY: usize = 48;
/// An entry of "add RDMA queue sets": handle `u16`, reserved, id of its
/// scheduler node `u32`, description of the node.
const QSET_ENTRY: usize = 24;
/// In "disable Tx queues" the id is that of an RDMA queue set.
const IS_QSET: u16 = 1 << 15;

impl E810 {
    /// Command 0x0C30. The first parameter is the number of groups.
    pub(super) fn add_tx_queues(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        let mut at = 0;
        for _ in 0..command.params[0] {
            let parent = le32(&command.buffer, at);
            let count = *command.buffer.get(at + 4).ok_or(AqError::Invalid)?;
            at += GROUP;
            for _ in 0..count {
                let entry = command
                    .buffer
                    .get(at..at + TX_ENTRY)
                    .ok_or(AqError::Invalid)?;
                let queue = le16(entry, 0);
                let context = TxContext::parse(&entry[8..30]);
                let info = entry[32..48].to_vec();
                if !self.switch.has_vsi(context.source_vsi) {
                    cx.violation(
                        "adminq",
                        format!("Tx queue {queue} of unknown VSI {}", context.source_vsi),
                    );
                    return Err(AqError::NoEntry);
                }
                if self.lan.tx.has(queue) {
                    cx.violation("adminq", format!("Tx queue {queue} is there already"));
                    return Err(AqError::Exists);
                }
                let node = self.scheduler.add_leaf(cx, parent, &info)?;
                self.lan.tx.add(cx, queue, context, node)?;
                command.put_buffer(at + 4, &node.to_le_bytes());
                at += TX_ENTRY;
            }
        }
        Ok(())
    }

    /// Command 0x0C31. Groups of parent `u32`, count `u8`, reserved `u8`, the
    /// ids (`u16`), aligned to four bytes.
    pub(super) fn disable_tx_queues(
        &mut self,
        cx: &mut Context<'_>,
        command: &mut Command,
    ) -> Result {
        let mut at = 0;
        for _ in 0..command.params[1] {
            let count = *command.buffer.get(at + 4).ok_or(AqError::Invalid)?;
            at += 6;
            for _ in 0..count {
                let id = le16(&command.buffer, at);
                at += 2;
                let node = if id & IS_QSET != 0 {
                    let handle = id & !IS_QSET;
                    let node = self.qsets.remove(&handle);
                    if node.is_some() {
                        self.rdma.remove_qset(handle);
                    }
                    node
                } else {
                    self.lan.tx.remove(id)
                };
                match node {
                    Some(node) => self.scheduler.remove(cx, node)?,
                    None => {
                        cx.violation("adminq", format!("disable of unknown queue {id:#x}"));
                        return Err(AqError::NoEntry);
                    }
                }
            }
            at = at.next_multiple_of(4);
        }
        Ok(())
    }

    /// Command 0x0C33. The first parameter is the number of groups.
    pub(super) fn add_rdma_queue_sets(
        &mut self,
        cx: &mut Context<'_>,
        command: &mut Command,
    ) -> Result {
        let mut at = 0;
        for _ in 0..command.params[0] {
            let parent = le32(&command.buffer, at);
            let count = le16(&command.buffer, at + 4);
            at += GROUP;
            for _ in 0..count {
                let entry = command
                    .buffer
                    .get(at..at + QSET_ENTRY)
                    .ok_or(AqError::Invalid)?;
                let handle = le16(entry, 0);
                let info = entry[8..24].to_vec();
                if self.qsets.contains_key(&handle) {
                    cx.violation("adminq", format!("queue set {handle} is there already"));
                    return Err(AqError::Exists);
                }
                let node = self.scheduler.add_leaf(cx, parent, &info)?;
                self.qsets.insert(handle, node);
                self.rdma.add_qset(handle, node, parent);
                command.put_buffer(at + 4, &node.to_le_bytes());
                at += QSET_ENTRY;
            }
        }
        Ok(())
    }
}
