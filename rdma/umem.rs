// SPDX-License-Identifier: GPL-2.0

//! Memory of users.

use super::Access;

/// A part of a user's memory that shall be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserRegion {
    /// Where it starts in the user's address space.
    pub(crate) start: u64,
    /// Bytes.
    pub(crate) length: u64,
    /// The address by which peers know its first byte.
    pub(crate) virt_addr: u64,
    /// What may be done with it.
    pub(crate) access: Access,
}
