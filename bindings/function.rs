// SPDX-License-Identifier: GPL-2.0

//! What only the PCI core can do to a network function.
//!
//! C header: [`include/linux/pci.h`](srctree/include/linux/pci.h)

use core::ptr;

use kernel::{
    container_of,
    device::Device,
    error::to_result,
    pci,
    prelude::*, //
};

use super::raw as bindings;

/// The driver that a device is bound to, to be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoundDriver(usize);

impl BoundDriver {
    /// Whose `dev` is.
    pub(crate) fn of(dev: &Device) -> Self {
        let raw: *const bindings::device = ptr::from_ref(dev).cast();
        // SAFETY: The device is valid. Its driver may change at any time: it is read once, and
        // nothing but its address is used.
        let driver = unsafe { (&raw const (*raw).driver).read_volatile() };
        Self(driver.addr())
    }
}

/// Resets a PCI function. The driver that it is bound to is told, and goes on afterwards. May sleep
/// for some seconds; the caller holds no lock of a driver.
///
/// # Errors
///
/// `EINVAL` if it is no PCI function, `ENOTTY` if it can't be reset alone.
#[doc(alias = "pci_reset_function")]
pub(crate) fn reset(function: &Device) -> Result {
    let _: &pci::Device = function.try_into()?;
    let raw: *mut bindings::device = ptr::from_ref(function).cast_mut().cast();
    // SAFETY: The device is part of a PCI function, as was just seen, and we hold a reference.
    to_result(unsafe { bindings::pci_reset_function(container_of!(raw, bindings::pci_dev, dev)) })
}
