// SPDX-License-Identifier: GPL-2.0
//! The work scheduler: a tree of a root, a node for each VSI, and a leaf for each traffic class whose handle the
//! queue pairs name. The LAN side must have a queue set for a leaf before the leaf is enabled.

use std::collections::BTreeMap;

use super::layout::wqe;

/// Children of a node cannot be deeper than root, VSI, traffic class.
const LEAF_DEPTH: usize = 2;

/// A node of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Node {
    pub id: u16,
    pub parent: u16,
    pub vsi: u16,
    pub traffic_class: u8,
    pub weight: u8,
    pub priority: u8,
    pub leaf: bool,
    pub enabled: bool,
    /// A leaf's handle; zero for inner nodes.
    pub qs_handle: u16,
}

impl Node {
    /// Decodes the node that WORK_SCHED_NODE describes.
    pub fn decode(words: &[u64; 8]) -> Self {
        let header = words[3];
        Self {
            id: wqe::WS_NODE.get(header) as u16,
            parent: wqe::WS_PARENT.get(header) as u16,
            vsi: wqe::WS_VSI.get(words[4]) as u16,
            traffic_class: wqe::WS_TC.get(header) as u8,
            weight: wqe::WS_WEIGHT.get(words[4]) as u8,
            priority: wqe::WS_PRIORITY.get(header) as u8,
            leaf: wqe::WS_LEAF.is_set(header),
            enabled: wqe::WS_ENABLE.is_set(header),
            qs_handle: 0,
        }
    }
}

/// Why a command on the tree is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TreeError {
    Exists,
    Unknown,
    NoParent,
    ParentIsLeaf,
    Depth,
    HasChildren,
    SecondRoot,
    OtherPlace,
    NoHandle,
    NoQueueSet,
}

/// The scheduler tree of one function.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    nodes: BTreeMap<u16, Node>,
    /// Handles by queue set: what the admin queue has given out.
    qsets: BTreeMap<u16, u32>,
}

/// Handles are ten bits wide in a queue pair's context.
const HANDLES: u16 = 1024;

impl Tree {
    /// Adds a node and returns its handle (zero for an inner node).
    pub fn add(&mut self, mut node: Node) -> Result<u16, TreeError> {
        if self.nodes.contains_key(&node.id) {
            return Err(TreeError::Exists);
        }
        if node.parent == node.id {
            if !self.nodes.is_empty() {
                return Err(TreeError::SecondRoot);
            }
            if node.leaf {
                return Err(TreeError::Depth);
            }
        } else {
            let parent = self.nodes.get(&node.parent).ok_or(TreeError::NoParent)?;
            if parent.leaf {
                return Err(TreeError::ParentIsLeaf);
            }
            let depth = self.depth(node.parent) + 1;
            if node.leaf != (depth == LEAF_DEPTH) {
                return Err(TreeError::Depth);
            }
        }
        if node.leaf {
            node.qs_handle = self.free_handle().ok_or(TreeError::NoHandle)?;
        }
        self.nodes.insert(node.id, node);
        Ok(node.qs_handle)
    }

    /// Changes a node in place and returns its handle.
    pub fn modify(&mut self, node: Node) -> Result<u16, TreeError> {
        let old = self.nodes.get(&node.id).ok_or(TreeError::Unknown)?;
        if (old.parent, old.leaf, old.vsi) != (node.parent, node.leaf, node.vsi) {
            return Err(TreeError::OtherPlace);
        }
        let qs_handle = old.qs_handle;
        if node.leaf && node.enabled && !self.qsets.contains_key(&qs_handle) {
            return Err(TreeError::NoQueueSet);
        }
        self.nodes.insert(node.id, Node { qs_handle, ..node });
        Ok(qs_handle)
    }

    /// Removes a node without children.
    pub fn delete(&mut self, id: u16) -> Result<(), TreeError> {
        if !self.nodes.contains_key(&id) {
            return Err(TreeError::Unknown);
        }
        if self.nodes.values().any(|n| n.parent == id && n.id != id) {
            return Err(TreeError::HasChildren);
        }
        self.nodes.remove(&id);
        Ok(())
    }

    fn depth(&self, id: u16) -> usize {
        let mut depth = 0;
        let mut at = id;
        while let Some(node) = self.nodes.get(&at).filter(|n| n.parent != n.id) {
            depth += 1;
            at = node.parent;
        }
        depth
    }

    fn free_handle(&self) -> Option<u16> {
        (1..HANDLES).find(|handle| {
            !self
                .nodes
                .values()
                .any(|n| n.leaf && n.qs_handle == *handle)
        })
    }

    /// Whether a queue pair may send through this handle.
    pub fn is_enabled(&self, handle: u16) -> bool {
        self.nodes
            .values()
            .any(|n| n.leaf && n.enabled && n.qs_handle == handle)
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Takes over what the admin queue has given out.
    pub fn take_qsets(&mut self, other: Tree) {
        self.qsets = other.qsets;
    }

    pub fn add_qset(&mut self, handle: u16, teid: u32) {
        self.qsets.insert(handle, teid);
    }

    pub fn remove_qset(&mut self, handle: u16) {
        self.qsets.remove(&handle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(id: u16, parent: u16, leaf: bool) -> Node {
        Node {
            id,
            parent,
            vsi: 1,
            traffic_class: 0,
            weight: 1,
            priority: 0,
            leaf,
            enabled: false,
            qs_handle: 0,
        }
    }

    #[test]
    fn the_tree_of_a_probe() {
        let mut tree = Tree::default();
        assert_eq!(tree.add(node(0, 0, false)), Ok(0));
        assert_eq!(tree.add(node(1, 0, false)), Ok(0));
        assert_eq!(tree.add(node(2, 1, true)), Ok(1));
        let enabled = Node {
            enabled: true,
            ..node(2, 1, true)
        };
        assert_eq!(tree.modify(enabled), Err(TreeError::NoQueueSet));
        tree.add_qset(1, 77);
        assert_eq!(tree.modify(enabled), Ok(1));
        assert!(tree.is_enabled(1) && !tree.is_enabled(0));
        assert_eq!(tree.delete(1), Err(TreeError::HasChildren));
        assert_eq!(tree.delete(2), Ok(()));
        assert_eq!(tree.delete(1), Ok(()));
        assert_eq!(tree.delete(0), Ok(()));
        assert!(tree.is_empty());
    }

    #[test]
    fn misplaced_nodes_are_refused() {
        let mut tree = Tree::default();
        assert_eq!(tree.add(node(1, 0, false)), Err(TreeError::NoParent));
        tree.add(node(0, 0, false)).unwrap();
        assert_eq!(tree.add(node(5, 5, false)), Err(TreeError::SecondRoot));
        assert_eq!(tree.add(node(1, 0, true)), Err(TreeError::Depth));
        tree.add(node(1, 0, false)).unwrap();
        assert_eq!(tree.add(node(1, 0, false)), Err(TreeError::Exists));
        tree.add(node(2, 1, true)).unwrap();
        assert_eq!(tree.add(node(3, 2, true)), Err(TreeError::ParentIsLeaf));
        assert_eq!(tree.delete(9), Err(TreeError::Unknown));
    }
}
