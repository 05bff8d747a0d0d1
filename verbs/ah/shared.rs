// SPDX-License-Identifier: GPL-2.0

//! Address handles that users share.
//!
//! A process may make one for each message that it sends. The device has not so many, and those
//! that say the same are as good as one.

use kernel::{
    new_mutex,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNodeReservation, //
    },
    sync::Mutex, //
};

use super::Ah;
use crate::{
    hw::cqp::address::AddressHandle,
    verbs::device::Device, //
};

/// A handle of the device.
struct Shared {
    index: u32,
    users: u32,
}

/// The handles that users share, by what they say; their index counts as 0 for that.
#[pin_data]
pub(in crate::verbs) struct SharedAhs {
    #[pin]
    handles: Mutex<RBTree<AddressHandle, Shared>>,
}

fn key(handle: &AddressHandle) -> AddressHandle {
    AddressHandle {
        index: 0,
        ..*handle
    }
}

impl SharedAhs {
    /// Returns an initializer for no handles.
    pub(in crate::verbs) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            handles <- new_mutex!(RBTree::new(), "SharedAhs::handles"),
        })
    }

    /// Finds the handle that says the same as `handle`, or makes it, and returns it. Sleeps.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and those of a command.
    #[doc(alias = "irdma_ah_exists")]
    pub(super) fn take(&self, dev: &Device<'_>, handle: AddressHandle) -> Result<AddressHandle> {
        let mut handles = self.handles.lock();

        if let Some(shared) = handles.get_mut(&key(&handle)) {
            shared.users = shared.users.checked_add(1).ok_or(ENOMEM)?;
            return Ok(AddressHandle {
                index: shared.index,
                ..handle
            });
        }

        let node = RBTreeNodeReservation::new(GFP_KERNEL)?;
        let made = Ah::make(dev, handle, true)?;

        handles.insert(node.into_node(
            key(&made),
            Shared {
                index: made.index,
                users: 1,
            },
        ));

        Ok(made)
    }

    /// Gives a handle back; the last one takes it away from the device. Sleeps.
    pub(super) fn give_back(&self, dev: &Device<'_>, handle: &AddressHandle) {
        let mut handles = self.handles.lock();
        let Some(shared) = handles.get_mut(&key(handle)) else {
            return;
        };

        shared.users = shared.users.saturating_sub(1);
        if shared.users == 0 {
            handles.remove(&key(handle));
            Ah::unmake(dev, handle, true);
        }
    }
}
