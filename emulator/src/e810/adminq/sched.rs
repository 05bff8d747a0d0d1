// SPDX-License-Identifier: GPL-2.0
//! The Tx scheduler's tree. Every queue and every RDMA queue set is a leaf.
//! The tree is kept exactly, but nothing is scheduled by it: a frame is sent
//! when its doorbell is rung.
//!
//! An element is 24 bytes: parent `u32`, own id `u32`, and 16 bytes of type,
//! valid sections, priorities, flags and bandwidth.

use std::collections::BTreeMap;

use super::dcb::{Ets, CLASSES};
use super::{AqError, Command, Result};
use crate::bits::{le16, le32};
use crate::context::Context;

/// Size of an element in bytes.
const ELEMENT: usize = 24;
/// Size of what describes an element.
pub const INFO: usize = 16;
/// Size of a group's header: parent `u32`, count `u16`, reserved.
const GROUP: usize = 8;
/// The tree's layers: port, traffic class, entry point, VSI or queue group,
/// leaf.
const LAYERS: u16 = 5;
/// Children that a node of a layer may have; a leaf's siblings are more.
const SIBLINGS: u16 = 8;
const LEAF_SIBLINGS: u16 = 64;
/// No parent.
const NONE: u32 = u32::MAX;

/// Types of elements.
mod kind {
    pub const ROOT: u8 = 1;
    pub const TC: u8 = 2;
    pub const GENERIC: u8 = 3;
    pub const ENTRY_POINT: u8 = 4;
    pub const LEAF: u8 = 5;
}

/// All sections valid: generic, committed and excess bandwidth.
const SECTIONS: u8 = 7;
const FLAG_SUSPENDED: u8 = 1;

#[derive(Clone, Debug)]
struct Node {
    parent: u32,
    info: [u8; INFO],
}

/// The tree.
#[derive(Debug)]
pub struct Scheduler {
    nodes: BTreeMap<u32, Node>,
    next: u32,
    /// What the port does with traffic classes.
    ets: Ets,
    /// The node of each class; a class that was once there keeps its node.
    classes: [Option<u32>; CLASSES],
}

impl Default for Scheduler {
    fn default() -> Self {
        let mut scheduler = Scheduler {
            nodes: BTreeMap::new(),
            next: 1,
            ets: Ets::default(),
            classes: [None; CLASSES],
        };
        let mut parent = NONE;
        for kind in DEFAULT {
            let mut info = [0; INFO];
            info[0] = kind;
            info[1] = SECTIONS;
            parent = scheduler.insert(parent, info);
            if kind == kind::TC {
                scheduler.classes[0] = Some(parent);
            }
        }
        scheduler
    }
}

/// The branch that a port starts with.
const DEFAULT: [u8; LAYERS as usize] = [
    kind::ROOT,
    kind::TC,
    kind::ENTRY_POINT,
    kind::GENERIC,
    kind::LEAF,
];

/// Command 0x0412: the size of the tree. Physical and logical layers `u16`,
/// then from byte 32 on 32 bytes a layer: number `u8`, chunk `u8`, nodes of
/// the device and of the function `u16`, siblings `u16` at byte 10.
pub fn resources(command: &mut Command) -> Result {
    const LAYER: usize = 32;
    if command.buffer.len() < LAYER * (usize::from(LAYERS) + 1) {
        return Err(AqError::Invalid);
    }
    command.buffer.fill(0);
    command.put_buffer(0, &LAYERS.to_le_bytes());
    command.put_buffer(2, &LAYERS.to_le_bytes());
    for layer in 0..LAYERS {
        let at = LAYER * (usize::from(layer) + 1);
        let siblings = match layer {
            0 => 1,
            l if l == LAYERS - 1 => LEAF_SIBLINGS,
            _ => SIBLINGS,
        };
        command.put_buffer(at, &[layer as u8]);
        command.put_buffer(at + 2, &512u16.to_le_bytes());
        command.put_buffer(at + 4, &512u16.to_le_bytes());
        command.put_buffer(at + 10, &siblings.to_le_bytes());
    }
    Ok(())
}

impl Scheduler {
    fn insert(&mut self, parent: u32, info: [u8; INFO]) -> u32 {
        let id = self.next;
        self.next += 1;
        self.nodes.insert(id, Node { parent, info });
        id
    }

    fn layer(&self, id: u32) -> Option<u16> {
        let mut layer = 0;
        let mut at = self.nodes.get(&id)?;
        while at.parent != NONE {
            at = self.nodes.get(&at.parent)?;
            layer += 1;
        }
        Some(layer)
    }

    /// Returns whether node `id` is `top` or below it.
    fn is_below(&self, id: u32, top: u32) -> bool {
        let mut at = id;
        while at != top {
            match self.nodes.get(&at) {
                Some(node) => at = node.parent,
                None => return false,
            }
        }
        true
    }

    fn children(&self, id: u32) -> usize {
        self.nodes.values().filter(|n| n.parent == id).count()
    }

    /// Adds a node below `parent`. Returns its id.
    pub fn add_node(&mut self, cx: &mut Context<'_>, parent: u32, info: [u8; INFO]) -> Result<u32> {
        let Some(layer) = self.layer(parent) else {
            cx.violation("adminq", format!("scheduler: unknown parent {parent:#x}"));
            return Err(AqError::NoEntry);
        };
        let limit = if layer + 2 >= LAYERS {
            LEAF_SIBLINGS
        } else {
            SIBLINGS
        };
        if layer + 1 >= LAYERS || self.children(parent) >= usize::from(limit) {
            cx.violation(
                "adminq",
                format!("scheduler: no room below node {parent:#x} of layer {layer}"),
            );
            return Err(AqError::NoSpace);
        }
        Ok(self.insert(parent, info))
    }

    /// Adds a leaf (a queue or a queue set) below `parent`.
    pub fn add_leaf(&mut self, cx: &mut Context<'_>, parent: u32, info: &[u8]) -> Result<u32> {
        let mut leaf = [0; INFO];
        leaf.iter_mut().zip(info).for_each(|(to, from)| *to = *from);
        leaf[0] = kind::LEAF;
        self.add_node(cx, parent, leaf)
    }

    /// Removes a node. It must be there and have no children.
    pub fn remove(&mut self, cx: &mut Context<'_>, id: u32) -> Result {
        if self.children(id) > 0 {
            cx.violation("adminq", format!("scheduler: node {id:#x} has children"));
            return Err(AqError::Busy);
        }
        if self.nodes.remove(&id).is_none() {
            cx.violation("adminq", format!("scheduler: unknown node {id:#x}"));
            return Err(AqError::NoEntry);
        }
        Ok(())
    }

    fn put_element(&self, buffer: &mut [u8], at: usize, id: u32) -> Result {
        let node = self.nodes.get(&id).ok_or(AqError::NoEntry)?;
        crate::bits::put(buffer, at, &node.parent.to_le_bytes());
        crate::bits::put(buffer, at + 4, &id.to_le_bytes());
        crate::bits::put(buffer, at + 8, &node.info);
        Ok(())
    }

    /// Command 0x0400: the branch that the port starts with.
    pub fn default_topology(&mut self, command: &mut Command) -> Result {
        if command.buffer.len() < GROUP + ELEMENT * DEFAULT.len() {
            return Err(AqError::Invalid);
        }
        // Whatever a driver before this one has built is gone.
        *self = Scheduler::default();
        command.buffer.fill(0);
        command.put(1, &[1]);
        command.put_buffer(0, &NONE.to_le_bytes());
        command.put_buffer(4, &LAYERS.to_le_bytes());
        let ids: Vec<u32> = self.nodes.keys().copied().collect();
        for (i, id) in ids.into_iter().enumerate() {
            self.put_element(&mut command.buffer, GROUP + i * ELEMENT, id)?;
        }
        Ok(())
    }

    /// The driver wants these traffic classes: new ones get a node.
    pub fn set_classes(&mut self, ets: Ets) {
        self.ets = ets;
        let root = self.nodes.iter().find(|(_, n)| n.info[0] == kind::ROOT);
        let Some((&root, _)) = root else { return };
        for class in (0..CLASSES).filter(|&class| ets.uses(class)) {
            let known = self.classes[class].filter(|id| self.nodes.contains_key(id));
            if known.is_none() {
                let mut info = [0; INFO];
                info[0] = kind::TC;
                info[1] = SECTIONS;
                self.classes[class] = Some(self.insert(root, info));
            }
        }
    }

    /// What the port does with traffic classes.
    pub fn ets(&self) -> &Ets {
        &self.ets
    }

    /// Command 0x040E: the port's traffic classes: valid ones `u8`, classes of
    /// the user priorities (three bits each) at byte 4, shares of the
    /// bandwidth (percent) at byte 8, ids of the classes' nodes at byte 32.
    pub fn port_classes(&self, command: &mut Command) -> Result {
        if command.buffer.len() < 64 {
            return Err(AqError::Invalid);
        }
        command.buffer.fill(0);
        command.put_buffer(8, &self.ets.share);
        command.put_buffer(32, &[0xff; 32]);
        command.put_buffer(4, &self.ets.classes().to_le_bytes());
        let mut valid = 0u8;
        for (class, node) in self.classes.iter().enumerate() {
            if let Some(id) = node.filter(|id| self.ets.uses(class) && self.nodes.contains_key(id))
            {
                valid |= 1 << class;
                command.put_buffer(32 + 4 * class, &id.to_le_bytes());
            }
        }
        command.put_buffer(0, &[valid]);
        Ok(())
    }

    fn requested(command: &Command) -> u16 {
        command.u16(0)
    }

    fn processed(command: &mut Command, count: u16) {
        command.put(2, &count.to_le_bytes());
    }

    /// Command 0x0401: adds elements, in groups of one parent each.
    pub fn add(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        let mut at = 0;
        for _ in 0..Self::requested(command) {
            let parent = le32(&command.buffer, at);
            let count = usize::from(le16(&command.buffer, at + 4));
            at += GROUP;
            for _ in 0..count {
                let info = command
                    .buffer
                    .get(at + 8..at + ELEMENT)
                    .and_then(|info| info.try_into().ok())
                    .ok_or(AqError::Invalid)?;
                let id = self.add_node(cx, parent, info)?;
                command.put_buffer(at, &parent.to_le_bytes());
                command.put_buffer(at + 4, &id.to_le_bytes());
                at += ELEMENT;
            }
        }
        Self::processed(command, Self::requested(command));
        Ok(())
    }

    /// Command 0x0403: changes what describes elements.
    pub fn configure(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        for i in 0..usize::from(Self::requested(command)) {
            let at = i * ELEMENT;
            let id = le32(&command.buffer, at + 4);
            let info = command
                .buffer
                .get(at + 8..at + ELEMENT)
                .and_then(|info| <[u8; INFO]>::try_from(info).ok())
                .ok_or(AqError::Invalid)?;
            let node = self.known(cx, id)?;
            let kind = node.info[0];
            node.info = info;
            // The type of an element cannot change.
            node.info[0] = kind;
            self.put_element(&mut command.buffer, at, id)?;
        }
        Self::processed(command, Self::requested(command));
        Ok(())
    }

    fn known(&mut self, cx: &mut Context<'_>, id: u32) -> Result<&mut Node> {
        let node = self.nodes.get_mut(&id);
        if node.is_none() {
            cx.violation("adminq", format!("scheduler: unknown node {id:#x}"));
        }
        node.ok_or(AqError::NoEntry)
    }

    /// Command 0x0404: reads elements.
    pub fn query(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        for i in 0..usize::from(Self::requested(command)) {
            let at = i * ELEMENT;
            let id = le32(&command.buffer, at + 4);
            self.known(cx, id)?;
            self.put_element(&mut command.buffer, at, id)?;
        }
        Self::processed(command, Self::requested(command));
        Ok(())
    }

    /// Command 0x0408: gives elements another parent. A group is old parent
    /// `u32`, new parent `u32`, count `u16`, mode, reserved, and the ids.
    pub fn relocate(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        let mut at = 0;
        for _ in 0..Self::requested(command) {
            let to = le32(&command.buffer, at + 4);
            let count = usize::from(le16(&command.buffer, at + 8));
            self.known(cx, to)?;
            at += 12;
            for _ in 0..count {
                let id = le32(&command.buffer, at);
                if self.is_below(to, id) {
                    cx.violation("adminq", format!("scheduler: {id:#x} moved below itself"));
                    return Err(AqError::Invalid);
                }
                self.known(cx, id)?.parent = to;
                at += 4;
            }
        }
        Self::processed(command, Self::requested(command));
        Ok(())
    }

    /// Commands 0x0409 and 0x040A: suspends or resumes elements.
    pub fn suspend(
        &mut self,
        cx: &mut Context<'_>,
        command: &mut Command,
        suspend: bool,
    ) -> Result {
        for i in 0..usize::from(Self::requested(command)) {
            let id = le32(&command.buffer, i * 4);
            let flags = &mut self.known(cx, id)?.info[3];
            *flags = *flags & !FLAG_SUSPENDED | u8::from(suspend);
        }
        Self::processed(command, Self::requested(command));
        Ok(())
    }

    /// Command 0x040F: removes elements, in groups of one parent each.
    pub fn delete(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        let mut at = 0;
        for _ in 0..Self::requested(command) {
            let count = usize::from(le16(&command.buffer, at + 4));
            at += GROUP;
            for _ in 0..count {
                self.remove(cx, le32(&command.buffer, at))?;
                at += 4;
            }
        }
        Self::processed(command, Self::requested(command));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    fn group(parent: u32, count: u16) -> Vec<u8> {
        let mut bytes = parent.to_le_bytes().to_vec();
        bytes.extend(count.to_le_bytes());
        bytes.extend([0; 2]);
        bytes
    }

    #[test]
    fn grows_and_shrinks() {
        let mut bench = Bench::new(0x1000);
        let mut cx = bench.context();
        let mut scheduler = Scheduler::default();
        let mut topology = Command {
            buffer: vec![0; 4096],
            ..Command::default()
        };
        scheduler.default_topology(&mut topology).unwrap();
        assert_eq!(le16(&topology.buffer, 4), 5);
        let entry_point = le32(&topology.buffer, 8 + 2 * 24 + 4);
        assert_eq!(topology.buffer[8 + 2 * 24 + 8], kind::ENTRY_POINT);

        let mut add = Command {
            buffer: group(entry_point, 1),
            ..Command::default()
        };
        add.buffer.extend([0; 8]);
        add.buffer.extend([kind::GENERIC; 16]);
        add.put(0, &1u16.to_le_bytes());
        scheduler.add(&mut cx, &mut add).unwrap();
        assert_eq!(add.u16(2), 1);
        let vsi = le32(&add.buffer, 12);

        let leaf = scheduler.add_leaf(&mut cx, vsi, &[0; 16]).unwrap();
        assert!(scheduler.add_leaf(&mut cx, leaf, &[0; 16]).is_err());
        let mut query = Command {
            buffer: vec![0; 24],
            ..Command::default()
        };
        query.put(0, &1u16.to_le_bytes());
        query.put_buffer(4, &leaf.to_le_bytes());
        scheduler.query(&mut cx, &mut query).unwrap();
        assert_eq!(le32(&query.buffer, 0), vsi);
        assert_eq!(query.buffer[8], kind::LEAF);

        let mut delete = Command {
            buffer: group(entry_point, 1),
            ..Command::default()
        };
        delete.buffer.extend(vsi.to_le_bytes());
        delete.put(0, &1u16.to_le_bytes());
        assert_eq!(scheduler.delete(&mut cx, &mut delete), Err(AqError::Busy));
        // The VSI's node cannot hang on its own leaf.
        let mut relocate = Command {
            buffer: [entry_point, leaf, 1, vsi]
                .into_iter()
                .flat_map(u32::to_le_bytes)
                .collect(),
            ..Command::default()
        };
        relocate.put(0, &1u16.to_le_bytes());
        assert_eq!(
            scheduler.relocate(&mut cx, &mut relocate),
            Err(AqError::Invalid)
        );
        scheduler.remove(&mut cx, leaf).unwrap();
        scheduler.delete(&mut cx, &mut delete).unwrap();
        assert!(scheduler.query(&mut cx, &mut query).is_err());
    }
}
