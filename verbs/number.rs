// SPDX-License-Identifier: GPL-2.0

//! Numbers of objects in the making.

use kernel::prelude::*;

use crate::hw::ids::Ids;

/// A number that was taken for an object which doesn't exist yet. It is given back on drop.
pub(super) struct Number<'d> {
    ids: &'d Ids,
    number: u32,
}

impl<'d> Number<'d> {
    /// Takes a number.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if all are taken.
    pub(super) fn take(ids: &'d Ids) -> Result<Self> {
        Ok(Self {
            number: ids.take()?,
            ids,
        })
    }

    /// Returns the number.
    pub(super) fn get(&self) -> u32 {
        self.number
    }

    /// Leaves the number to the object, which exists now.
    pub(super) fn keep(self) -> u32 {
        let number = self.number;

        // There is nothing else to drop but the number.
        core::mem::forget(self);
        number
    }
}

impl Drop for Number<'_> {
    fn drop(&mut self) {
        self.ids.give_back(self.number);
    }
}
