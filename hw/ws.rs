// SPDX-License-Identifier: GPL-2.0

//! The work scheduler: who may send when.
//!
//! The scheduler is a tree of three levels: a root, a node for the function's VSI, and a leaf for
//! each traffic class. A leaf is a queue set; it hangs in the LAN scheduler's tree too. The tree
//! grows with the first queue pair of a traffic class and shrinks with the last.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc,
        Mutex, //
    }, //
};

use super::{
    cqp::scheduler::{
        NodeAction,
        NodePriority,
        WorkSchedNode, //
    },
    function::Function,
    ids::Ids,
    lan_ops::{
        QosParams,
        Qset,
        USER_PRIORITIES, //
    }, //
};

/// Number of nodes.
#[doc(alias = "IRDMA_MAX_WS_NODES")]
pub(crate) const MAX_NODES: u32 = 0x3ff;

/// Number of the root.
const ROOT: u16 = 0;

/// A queue set.
#[derive(Clone, Copy, Debug)]
struct Leaf {
    id: u16,
    qset: Qset,
    /// The queue set's node in the LAN scheduler's tree.
    lan_node: u32,
    /// Number of queue pairs that send on it.
    users: u32,
}

/// A sender's place on a queue set, see [`WorkScheduler::add`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    handle: u16,
    priority: u8,
    /// Which of the trees it is in.
    tree: u32,
}

impl Place {
    /// Returns the handle of the queue set.
    pub(crate) fn handle(&self) -> u16 {
        self.handle
    }

    /// Returns the user priority.
    pub(crate) fn priority(&self) -> u8 {
        self.priority
    }
}

/// The tree, as far as it has grown.
struct Tree {
    /// Number of the tree: each change of the traffic classes makes a new one.
    number: u32,
    qos: QosParams,
    /// There is a root.
    root: bool,
    /// The node of the VSI.
    vsi_node: Option<u16>,
    /// The queue set of each traffic class.
    leaves: [Option<Leaf>; USER_PRIORITIES],
    /// Traffic classes are about to change.
    changing: bool,
}

/// The work scheduler.
#[pin_data]
pub(crate) struct WorkScheduler<'a> {
    function: Arc<Function<'a>>,
    #[pin]
    ids: Ids,
    /// As the tree's `qos` has it, for those who can't sleep.
    priority_tags: Atomic<bool>,
    #[pin]
    tree: Mutex<Tree>,
}

impl<'a> WorkScheduler<'a> {
    /// Returns an initializer for a scheduler without a tree.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(
        function: Arc<Function<'a>>,
        qos: QosParams,
    ) -> impl PinInit<Self, Error> + 'a {
        try_pin_init!(Self {
            function,
            ids <- Ids::new(MAX_NODES, 1),
            priority_tags: Atomic::new(qos.priority_tags),
            tree <- new_mutex!(
                Tree {
                    number: 0,
                    qos,
                    root: false,
                    vsi_node: None,
                    leaves: [None; USER_PRIORITIES],
                    changing: false,
                },
                "irdma_rs::ws"
            ),
        })
    }

    /// Adds a sender of a user priority, and returns its place. May sleep.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if there is no such priority.
    /// - `EBUSY` while the traffic classes change.
    /// - `ENOMEM`, and those of [`Function::execute`] and of the LAN driver.
    #[doc(alias = "irdma_ws_add")]
    #[doc(alias = "irdma_null_ws_add")]
    pub(crate) fn add(&self, priority: u8) -> Result<Place> {
        let mut tree = self.tree.lock();

        if tree.changing {
            return Err(EBUSY);
        }

        let number = tree.number;
        let class = Self::class_of(&tree, priority)?;
        let place = |handle| Place {
            handle,
            priority,
            tree: number,
        };

        if let Some(handles) = tree.qos.handles {
            return Ok(place(*handles.get(usize::from(priority)).ok_or(EINVAL)?));
        }
        if let Some(leaf) = Self::leaf(&mut tree, class)? {
            leaf.users += 1;
            return Ok(place(leaf.qset.handle));
        }

        let result = self.grow(&mut tree, class);
        if result.is_err() {
            self.prune(&mut tree);
        }

        result.map(place)
    }

    /// Gives a place back; one in a tree that is gone is gone too. May sleep.
    #[doc(alias = "irdma_ws_remove")]
    pub(crate) fn remove(&self, place: Place) {
        let mut tree = self.tree.lock();

        if place.tree != tree.number {
            return;
        }
        let Ok(class) = Self::class_of(&tree, place.priority) else {
            return;
        };
        let Ok(Some(leaf)) = Self::leaf(&mut tree, class) else {
            return;
        };

        leaf.users = leaf.users.saturating_sub(1);
        if leaf.users == 0 {
            self.cut(&mut tree, class);
            self.prune(&mut tree);
        }
    }

    /// Prepares for a change of the traffic classes: nobody can be added until
    /// [`WorkScheduler::end_change`]. Returns false if that was so already.
    pub(crate) fn begin_change(&self) -> bool {
        !core::mem::replace(&mut self.tree.lock().changing, true)
    }

    /// Cuts the whole tree down; nobody who had a place there sends any more.
    #[doc(alias = "irdma_ws_reset")]
    pub(crate) fn cut_down(&self) {
        let mut tree = self.tree.lock();

        // CAST: There are 8.
        for class in 0..USER_PRIORITIES as u8 {
            self.cut(&mut tree, class);
        }
        self.prune(&mut tree);
        tree.number = tree.number.wrapping_add(1);
    }

    /// Takes over new traffic classes; senders have to be added again. Returns false, and changes
    /// nothing, if no change was begun.
    #[doc(alias = "irdma_set_qos_info")]
    pub(crate) fn end_change(&self, qos: QosParams) -> bool {
        let mut tree = self.tree.lock();

        if !tree.changing {
            return false;
        }
        self.priority_tags.store(qos.priority_tags, Relaxed);
        tree.qos = qos;
        tree.changing = false;

        true
    }

    /// Returns whether the traffic classes are changing: nobody can be added.
    pub(crate) fn is_changing(&self) -> bool {
        self.tree.lock().changing
    }

    /// Returns whether `place` is on a queue set of traffic classes that are no more.
    pub(crate) fn is_gone(&self, place: Place) -> bool {
        place.tree != self.tree.lock().number
    }

    /// Returns whether packets outside of a VLAN carry a tag with their priority. Never sleeps.
    #[doc(alias = "dcb_vlan_mode")]
    pub(crate) fn priority_tags(&self) -> bool {
        self.priority_tags.load(Relaxed)
    }

    /// Returns how the port shares itself among its traffic classes.
    pub(crate) fn qos(&self) -> QosParams {
        self.tree.lock().qos
    }

    fn class_of(tree: &Tree, priority: u8) -> Result<u8> {
        let priority = usize::from(priority);

        // With DSCP each priority is a traffic class.
        let class = match tree.qos.dscp {
            true if priority < USER_PRIORITIES => priority as u8,
            true => return Err(EINVAL),
            false => *tree.qos.priority_to_class.get(priority).ok_or(EINVAL)?,
        };

        match usize::from(class) < USER_PRIORITIES {
            true => Ok(class),
            false => Err(EINVAL),
        }
    }

    fn leaf(tree: &mut Tree, class: u8) -> Result<Option<&mut Leaf>> {
        Ok(tree
            .leaves
            .get_mut(usize::from(class))
            .ok_or(EINVAL)?
            .as_mut())
    }

    fn node(&self, action: NodeAction, id: u16, parent: u16) -> WorkSchedNode {
        WorkSchedNode {
            action,
            id,
            parent,
            vsi: self.function.vsi(),
            leaf: false,
            enable: true,
            priority: NodePriority::WeightedRoundRobin,
            traffic_class: 0,
            weight: 1,
        }
    }

    fn leaf_node(&self, tree: &Tree, action: NodeAction, leaf: &Leaf) -> Result<WorkSchedNode> {
        let class = leaf.qset.traffic_class;
        let bandwidth = tree.qos.bandwidth.get(usize::from(class)).copied();

        Ok(WorkSchedNode {
            leaf: true,
            enable: false,
            traffic_class: class,
            weight: bandwidth.unwrap_or(1).max(1),
            ..self.node(action, leaf.id, tree.vsi_node.ok_or(EINVAL)?)
        })
    }

    fn take_id(&self) -> Result<u16> {
        Ok(self.ids.take()?.keep().try_into()?)
    }

    /// Adds what the tree lacks for a traffic class, and a first queue pair.
    fn grow(&self, tree: &mut Tree, class: u8) -> Result<u16> {
        if !tree.root {
            self.function
                .execute(&self.node(NodeAction::Add, ROOT, ROOT))?;
            tree.root = true;
        }

        if tree.vsi_node.is_none() {
            let id = self.take_id()?;
            let result = self.function.execute(&self.node(NodeAction::Add, id, ROOT));

            if let Err(error) = result {
                self.ids.give_back(id.into());
                return Err(error);
            }
            tree.vsi_node = Some(id);
        }

        let id = self.take_id()?;
        let mut leaf = Leaf {
            id,
            qset: Qset {
                handle: 0,
                traffic_class: class,
                vsi: self.function.vsi(),
            },
            lan_node: 0,
            users: 1,
        };
        let result = self.add_leaf(tree, &mut leaf);

        match result {
            Ok(()) => {
                *tree.leaves.get_mut(usize::from(class)).ok_or(EINVAL)? = Some(leaf);
                Ok(leaf.qset.handle)
            }
            Err(error) => {
                self.ids.give_back(id.into());
                Err(error)
            }
        }
    }

    fn add_leaf(&self, tree: &Tree, leaf: &mut Leaf) -> Result {
        let reply = self
            .function
            .execute(&self.leaf_node(tree, NodeAction::Add, leaf)?)?;

        // CAST: A handle has 10 bits.
        leaf.qset.handle = reply.value as u16;

        let enabled = self
            .function
            .lan()
            .add_qset(leaf.qset)
            .and_then(|lan_node| {
                leaf.lan_node = lan_node;

                let node = WorkSchedNode {
                    enable: true,
                    ..self.leaf_node(tree, NodeAction::Modify, leaf)?
                };

                self.function.execute(&node).inspect_err(|_| {
                    self.function.lan().remove_qset(leaf.qset, lan_node);
                })
            });

        if let Err(error) = enabled {
            let _ = self
                .function
                .execute(&self.leaf_node(tree, NodeAction::Delete, leaf)?);
            return Err(error);
        }

        Ok(())
    }

    /// Cuts the leaf of a traffic class.
    #[doc(alias = "irdma_remove_leaf")]
    fn cut(&self, tree: &mut Tree, class: u8) {
        let Some(leaf) = tree
            .leaves
            .get_mut(usize::from(class))
            .and_then(Option::take)
        else {
            return;
        };

        if let Ok(node) = self.leaf_node(tree, NodeAction::Delete, &leaf) {
            let node = WorkSchedNode {
                enable: true,
                ..node
            };

            let _ = self.function.execute(&node);
        }
        self.function.lan().remove_qset(leaf.qset, leaf.lan_node);
        self.ids.give_back(leaf.id.into());
    }

    /// Takes the nodes above the leaves away when there are no leaves.
    fn prune(&self, tree: &mut Tree) {
        if tree.leaves.iter().any(Option::is_some) {
            return;
        }

        if let Some(id) = tree.vsi_node.take() {
            let _ = self
                .function
                .execute(&self.node(NodeAction::Delete, id, ROOT));
            self.ids.give_back(id.into());
        }
        if tree.root {
            tree.root = false;
            let _ = self
                .function
                .execute(&self.node(NodeAction::Delete, ROOT, ROOT));
        }
    }
}
