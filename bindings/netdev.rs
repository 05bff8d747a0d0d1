// SPDX-License-Identifier: GPL-2.0

//! Network devices.
//!
//! C header: [`include/linux/netdevice.h`](srctree/include/linux/netdevice.h)

use core::ptr::NonNull;

use kernel::{
    sync::aref::{
        ARef,
        AlwaysRefCounted, //
    },
    types::Opaque, //
};

use super::raw as bindings;

/// The first number that is no VLAN's.
#[doc(alias = "VLAN_N_VID")]
const NO_VLAN: u16 = 4096;

/// A network device.
///
/// # Invariants
///
/// Instances are always counted: the device isn't freed while a reference lives.
#[repr(transparent)]
pub(crate) struct NetDevice(Opaque<bindings::net_device>);

// SAFETY: The count may be taken and dropped on any thread.
unsafe impl Send for NetDevice {}

// SAFETY: All functions read fields that may be read on any thread at any time.
unsafe impl Sync for NetDevice {}

// SAFETY: `dev_hold()` and `dev_put()` count references, and the device isn't freed before the
// last one is gone.
unsafe impl AlwaysRefCounted for NetDevice {
    fn inc_ref(&self) {
        // SAFETY: The device is valid.
        unsafe { bindings::irdma_helper_dev_hold(self.as_raw()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller owns a reference.
        unsafe { bindings::irdma_helper_dev_put(obj.cast().as_ptr()) };
    }
}

impl NetDevice {
    /// Takes a reference to a device of C. `None` if the pointer is null.
    ///
    /// # Safety
    ///
    /// `raw` is null or valid during the call.
    pub(crate) unsafe fn get(raw: *mut bindings::net_device) -> Option<ARef<Self>> {
        // SAFETY: By this function's requirements.
        unsafe { raw.cast::<Self>().as_ref() }.map(ARef::from)
    }

    /// The device of C.
    pub(crate) fn as_raw(&self) -> *mut bindings::net_device {
        self.0.get()
    }

    /// Whether it is the device at `raw`.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.as_raw() == other.as_raw()
    }

    /// Largest payload of a frame in bytes.
    pub(crate) fn mtu(&self) -> u32 {
        // SAFETY: The device is valid.
        unsafe { bindings::irdma_helper_netdev_mtu(self.as_raw()) }
    }

    /// MAC address.
    pub(crate) fn mac(&self) -> [u8; 6] {
        let mut mac = [0; 6];
        // SAFETY: The device is valid and of Ethernet, and `mac` has room for its address.
        unsafe { bindings::irdma_helper_netdev_mac(self.as_raw(), mac.as_mut_ptr()) };
        mac
    }

    /// The networks of the device on which the host takes part in the multicast group `ip` (IPv4
    /// mapped to IPv6): VLANs, then `None` for the one without a tag. As they are when asked.
    pub(crate) fn multicast_vlans(&self, ip: [u8; 16]) -> impl Iterator<Item = Option<u16>> + '_ {
        let netdev = self.as_raw();
        let mut last = -1;

        core::iter::from_fn(move || {
            // SAFETY: The device is valid, and `ip` has the size of an address.
            last = unsafe { bindings::irdma_helper_next_mcast_vlan(netdev, ip.as_ptr(), last) };
            u16::try_from(last).ok()
        })
        .fuse()
        .map(|id| (id < NO_VLAN).then_some(id))
    }

    /// Whether the device is up.
    pub(crate) fn is_running(&self) -> bool {
        // SAFETY: The device is valid.
        unsafe { bindings::irdma_helper_netif_running(self.as_raw()) }
    }

    /// Whether the device has a link.
    pub(crate) fn has_carrier(&self) -> bool {
        // SAFETY: The device is valid.
        unsafe { bindings::irdma_helper_netif_carrier_ok(self.as_raw()) }
    }
}
