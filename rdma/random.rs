// SPDX-License-Identifier: GPL-2.0

//! Numbers that a peer shall not guess.

use core::ptr;

use kernel::bindings;

/// A random number.
#[doc(alias = "get_random_bytes")]
pub(crate) fn random_u32() -> u32 {
    let mut number = 0u32;
    // SAFETY: `number` has room for so many bytes, any of which are a valid number.
    unsafe { bindings::get_random_bytes(ptr::from_mut(&mut number).cast(), size_of::<u32>()) };
    number
}
