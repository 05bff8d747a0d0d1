// SPDX-License-Identifier: GPL-2.0

//! News about IP addresses: our own and those of neighbours.
//!
//! C headers: [`include/linux/inetdevice.h`](srctree/include/linux/inetdevice.h),
//! [`include/net/addrconf.h`](srctree/include/net/addrconf.h),
//! [`include/net/netevent.h`](srctree/include/net/netevent.h)

use core::{
    marker::{
        PhantomData,
        PhantomPinned, //
    },
    mem::offset_of,
    ptr, //
};

use kernel::{
    error::to_result,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

use crate::bindings;

use super::{
    Gid,
    IpAddress,
    NetDevice, //
};

/// What has become of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AddressEvent {
    /// The address is in use, by this MAC address.
    Valid(IpAddress, [u8; 6]),
    /// The address isn't in use any more.
    Gone(IpAddress),
}

/// Who wants to know.
pub(crate) trait Listener: Send + Sync {
    /// An address on `netdev`, or on a VLAN of it, has changed. Must not sleep.
    ///
    /// Called for all network devices of the system.
    fn address_event(&self, netdev: &NetDevice, event: AddressEvent);
}

/// One of the kernel's chains of notifications.
trait Chain {
    const REGISTER: unsafe extern "C" fn(*mut bindings::notifier_block) -> c_int;
    const UNREGISTER: unsafe extern "C" fn(*mut bindings::notifier_block) -> c_int;
    /// Reads what a notification says, if it says anything of interest.
    const PARSE: unsafe extern "C" fn(
        c_ulong,
        *mut c_void,
        *mut bindings::irdma_helper_address_event,
    ) -> bool;
}

/// IPv4 addresses of the system.
struct Inetaddr;

impl Chain for Inetaddr {
    const REGISTER: unsafe extern "C" fn(*mut bindings::notifier_block) -> c_int =
        bindings::irdma_helper_register_inetaddr;
    const UNREGISTER: unsafe extern "C" fn(*mut bindings::notifier_block) -> c_int =
        bindings::irdma_helper_unregister_inetaddr;
    const PARSE: unsafe extern "C" fn(
        c_ulong,
        *mut c_void,
        *mut bindings::irdma_helper_address_event,
    ) -> bool = bindings::irdma_helper_inetaddr_event;
}

/// IPv6 addresses of the system.
struct Inet6addr;

impl Chain for Inet6addr {
    const REGISTER: unsafe extern "C" fn(*mut bindings::notifier_block) -> c_int =
        bindings::irdma_helper_register_inet6addr;
    const UNREGISTER: unsafe extern "C" fn(*mut bindings::notifier_block) -> c_int =
        bindings::irdma_helper_unregister_inet6addr;
    const PARSE: unsafe extern "C" fn(
        c_ulong,
        *mut c_void,
        *mut bindings::irdma_helper_address_event,
    ) -> bool = bindings::irdma_helper_inet6addr_event;
}

/// Neighbours of both families.
struct Netevent;

impl Chain for Netevent {
    const REGISTER: unsafe extern "C" fn(*mut bindings::notifier_block) -> c_int =
        bindings::irdma_helper_register_netevent;
    const UNREGISTER: unsafe extern "C" fn(*mut bindings::notifier_block) -> c_int =
        bindings::irdma_helper_unregister_netevent;
    const PARSE: unsafe extern "C" fn(
        c_ulong,
        *mut c_void,
        *mut bindings::irdma_helper_address_event,
    ) -> bool = bindings::irdma_helper_netevent;
}

/// A place in a chain.
///
/// # Invariants
///
/// `block` is in the chain `C`.
#[pin_data(PinnedDrop)]
#[repr(C)]
struct Notifier<C: Chain, L: Listener> {
    #[pin]
    block: Opaque<bindings::notifier_block>,
    listener: Arc<L>,
    _chain: PhantomData<C>,
    #[pin]
    _pin: PhantomPinned,
}

impl<C: Chain, L: Listener> Notifier<C, L> {
    fn new(listener: Arc<L>) -> impl PinInit<Self, Error> {
        // INVARIANT: The last step puts the block into the chain.
        try_pin_init!(&this in Self {
            block: Opaque::new(bindings::notifier_block {
                notifier_call: Some(Self::callback),
                ..pin_init::zeroed()
            }),
            listener,
            _chain: PhantomData,
            _pin: PhantomPinned,
            _: {
                // SAFETY: The block is pinned and stays in the chain until the destructor takes it
                // out. All fields are initialised.
                to_result(unsafe { C::REGISTER((*this.as_ptr()).block.get()) })?;
            },
        })
    }

    /// # Safety
    ///
    /// The chain calls this with a block that is in it, and with the data of `event`.
    unsafe extern "C" fn callback(
        block: *mut bindings::notifier_block,
        event: c_ulong,
        data: *mut c_void,
    ) -> c_int {
        const {
            assert!(offset_of!(Self, block) == 0);
        }
        // SAFETY: All blocks with this callback are the first field of a notifier.
        let this = unsafe { &*block.cast::<Self>() };
        let mut parsed = bindings::irdma_helper_address_event {
            netdev: ptr::null_mut(),
            ..Default::default()
        };
        // SAFETY: `data` is that of `event` in this chain.
        if unsafe { C::PARSE(event, data, &raw mut parsed) } {
            let ip = Gid(parsed.ip).ip();
            let event = if parsed.gone {
                AddressEvent::Gone(ip)
            } else {
                AddressEvent::Valid(ip, parsed.mac)
            };
            // SAFETY: The network device is valid during the notification.
            if let Some(netdev) = unsafe { parsed.netdev.cast::<NetDevice>().as_ref() } {
                this.listener.address_event(netdev, event);
            }
        }
        // CAST: `NOTIFY_DONE` is 0.
        bindings::NOTIFY_DONE as c_int
    }
}

#[pinned_drop]
impl<C: Chain, L: Listener> PinnedDrop for Notifier<C, L> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The block is in the chain. When this returns, no callback runs any more.
        unsafe { C::UNREGISTER(self.block.get()) };
    }
}

/// Places in the chains for all that a [`Listener`] hears. The listener hears nothing any more
/// once this is dropped.
#[pin_data]
pub(crate) struct Notifiers<L: Listener> {
    #[pin]
    inetaddr: Notifier<Inetaddr, L>,
    #[pin]
    inet6addr: Notifier<Inet6addr, L>,
    #[pin]
    netevent: Notifier<Netevent, L>,
}

// SAFETY: Notifications may come on any thread, and listeners are `Send` and `Sync`.
unsafe impl<L: Listener> Send for Notifiers<L> {}

// SAFETY: Nothing can be done with a reference.
unsafe impl<L: Listener> Sync for Notifiers<L> {}

/// Tells `listener` of all addresses that `netdev` and VLANs on it have now.
#[doc(alias = "irdma_add_ip")]
pub(crate) fn tell_addresses<L: Listener>(netdev: &NetDevice, listener: &L) {
    /// # Safety
    ///
    /// `context` is an `L`, and `address` is valid.
    unsafe extern "C" fn tell<L: Listener>(
        context: *mut c_void,
        address: *const bindings::irdma_helper_address_event,
    ) {
        // SAFETY: By this function's requirements.
        let (listener, address) = unsafe { (&*context.cast::<L>(), &*address) };
        // SAFETY: The network device is valid during the walk.
        if let Some(netdev) = unsafe { address.netdev.cast::<NetDevice>().as_ref() } {
            let ip = Gid(address.ip).ip();
            listener.address_event(netdev, AddressEvent::Valid(ip, address.mac));
        }
    }

    // SAFETY: The network device is valid, and `tell` gets the listener that it expects.
    unsafe {
        bindings::irdma_helper_walk_addresses(
            netdev.as_raw(),
            Some(tell::<L>),
            ptr::from_ref(listener).cast_mut().cast(),
        );
    }
}

impl<L: Listener> Notifiers<L> {
    /// Has `listener` told from now on.
    ///
    /// # Errors
    ///
    /// `EEXIST` can't come, as each place is new.
    #[doc(alias = "irdma_register_notifiers")]
    pub(crate) fn new(listener: Arc<L>) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            inetaddr <- Notifier::new(listener.clone()),
            inet6addr <- Notifier::new(listener.clone()),
            netevent <- Notifier::new(listener),
        })
    }
}
