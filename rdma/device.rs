// SPDX-License-Identifier: GPL-2.0

//! Devices and their registration.

use core::{
    cell::UnsafeCell,
    mem::{
        offset_of,
        ManuallyDrop, //
    },
    ptr::{
        self,
        NonNull, //
    },
};

use kernel::{
    device,
    error::to_result,
    new_spinlock_irq,
    pci,
    prelude::*,
    sync::{
        aref::{
            ARef,
            AlwaysRefCounted, //
        },
        SpinLockIrq, //
    },
    types::Opaque, //
};

use crate::bindings;

use super::{
    object::kmalloc_size,
    vtable::VTable,
    DeviceEvent,
    NetDevice,
    Operations, //
};

/// A device of the RDMA core.
///
/// # Invariants
///
/// - `head` is at offset 0 and initialised by the core.
/// - The count of the device that `head` embeds owns the allocation.
/// - `data` is dangling, or points to the data that the [`Registration`] owns. It is dangling
///   unless the device is registered.
#[repr(C)]
#[pin_data]
pub(crate) struct Device<T: Operations> {
    head: Opaque<bindings::ib_device>,
    data: UnsafeCell<NonNull<T::RegistrationData<'static>>>,
    /// Address and size of the parent's first memory window.
    registers: (u64, u64),
    /// Whether the core takes events.
    #[pin]
    takes_events: SpinLockIrq<bool>,
}

// SAFETY: Devices are counted, and may be released on any thread.
unsafe impl<T: Operations> Send for Device<T> {}

// SAFETY: The core locks its part itself. `data` is changed only while no operation can be called.
unsafe impl<T: Operations> Sync for Device<T> {}

// SAFETY: The core's count owns the allocation.
unsafe impl<T: Operations> AlwaysRefCounted for Device<T> {
    fn inc_ref(&self) {
        // SAFETY: The device is valid.
        unsafe { bindings::get_device(self.as_device()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller owns a reference.
        unsafe { bindings::put_device(obj.as_ref().as_device()) };
    }
}

impl<T: Operations> Device<T> {
    /// The core's part.
    pub(super) fn as_raw(&self) -> *mut bindings::ib_device {
        self.head.get()
    }

    fn as_device(&self) -> *mut bindings::device {
        // SAFETY: The device is valid. Both fields of the union start with a `struct device`.
        unsafe { (&raw mut (*self.as_raw()).__bindgen_anon_1).cast() }
    }

    /// Borrows a device from the core's pointer.
    ///
    /// # Safety
    ///
    /// `raw` is a device that [`UnregisteredDevice::new`] made for `T`, and stays for `'a`.
    pub(super) unsafe fn from_raw<'a>(raw: *mut bindings::ib_device) -> &'a Self {
        // SAFETY: The core's part is at offset 0.
        unsafe { &*raw.cast() }
    }

    /// Calls `f` with the data of the registration.
    ///
    /// That `f` takes any lifetime keeps the data from escaping, whatever `T` does with it.
    ///
    /// # Safety
    ///
    /// The caller is an operation that the core has called, hence the device is registered.
    #[inline]
    pub(super) unsafe fn with_data<R>(
        &self,
        f: impl for<'a> FnOnce(&'a Self, &'a T::RegistrationData<'a>) -> R,
    ) -> R {
        // SAFETY: The data is valid as long as the device is registered, which the core keeps it
        // during the call. Lifetimes don't change the layout.
        let data = unsafe {
            (*self.data.get())
                .cast::<T::RegistrationData<'_>>()
                .as_ref()
        };
        f(self, data)
    }

    /// Address and size in bytes of the parent's first memory window.
    pub(super) fn registers(&self) -> (u64, u64) {
        self.registers
    }

    /// Tells users of the device, or of its first port, what has happened to it. Before the device
    /// is registered, and from the moment when it is unregistered, nobody is told. Any context.
    #[doc(alias = "irdma_port_ibevent")]
    pub(crate) fn dispatch(&self, event: DeviceEvent) {
        let takes_events = self.takes_events.lock();
        if *takes_events {
            self.dispatch_always(event);
        }
    }

    fn dispatch_always(&self, event: DeviceEvent) {
        let event = bindings::ib_event {
            device: self.as_raw(),
            element: bindings::ib_event__bindgen_ty_1 {
                port_num: ManuallyDrop::new(1),
            },
            event: event.into_raw(),
        };
        // SAFETY: The core copies the event. The device is registered, and unregistering waits for
        // events that are on their way.
        unsafe { bindings::ib_dispatch_event(&raw const event) };
    }
}

/// A device that is allocated and not registered.
///
/// # Invariants
///
/// Owns the first reference to the device.
pub(crate) struct UnregisteredDevice<T: Operations>(NonNull<Device<T>>);

// SAFETY: `Device` is `Send` and `Sync`.
unsafe impl<T: Operations> Send for UnregisteredDevice<T> {}

// SAFETY: `Device` is `Send` and `Sync`.
unsafe impl<T: Operations> Sync for UnregisteredDevice<T> {}

impl<T: Operations> UnregisteredDevice<T> {
    /// Allocates a device below a PCI function.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[doc(alias = "ib_alloc_device")]
    pub(crate) fn new(parent: &pci::Device<device::Bound>) -> Result<Self> {
        const {
            assert!(offset_of!(Device<T>, head) == 0);
        }
        let registers = (parent.resource_start(0)?, parent.resource_len(0)?);
        // SAFETY: The size is that of `Device<T>`. The initial network namespace always exists.
        let raw = unsafe {
            bindings::_ib_alloc_device(kmalloc_size::<Device<T>>(), &raw mut bindings::init_net)
        };
        let this = NonNull::new(raw.cast::<Device<T>>()).ok_or(ENOMEM)?;
        // SAFETY: The core allocated `this`, which nobody knows yet, and doesn't move it.
        unsafe {
            let this = this.as_ptr();
            (&raw mut (*this).data).write(UnsafeCell::new(NonNull::dangling()));
            (&raw mut (*this).registers).write(registers);
            pin_init::raw_init(
                &raw mut (*this).takes_events,
                new_spinlock_irq!(false, "rdma::Device::takes_events"),
            );
        }
        // INVARIANT: The first reference is ours, and all fields are initialised now.
        let this = Self(this);
        // SAFETY: `raw` is valid and nobody knows it yet.
        unsafe {
            (*this.as_device()).parent = raw_device(parent.as_ref());
            bindings::ib_set_device_ops(raw, &VTable::<T>::VTABLE);
        }
        Ok(this)
    }

    /// A reference that may outlive the registration.
    pub(crate) fn handle(&self) -> ARef<Device<T>> {
        ARef::from(&**self)
    }
}

impl<T: Operations> core::ops::Deref for UnregisteredDevice<T> {
    type Target = Device<T>;

    fn deref(&self) -> &Device<T> {
        // SAFETY: We own a reference.
        unsafe { self.0.as_ref() }
    }
}

impl<T: Operations> Drop for UnregisteredDevice<T> {
    fn drop(&mut self) {
        // SAFETY: The device is not registered, or not any more, and the first reference is ours.
        unsafe { bindings::ib_dealloc_device(self.as_raw()) };
    }
}

/// What the core wants to know of a device before it is registered.
pub(crate) struct Info<'a> {
    /// Name, with `%d` for a number.
    pub(crate) name: &'static CStr,
    /// Globally unique identifier, in network order.
    pub(crate) node_guid: [u8; 8],
    /// Vectors that completion events can go to.
    pub(crate) num_comp_vectors: u32,
    /// Network device of the port, if it is one of Ethernet.
    pub(crate) netdev: Option<&'a NetDevice>,
}

/// A registered device.
///
/// When it is dropped the device is unregistered: in-kernel users let go of it, what users hold is
/// destroyed, and no operation runs any more. Then the data is dropped, and at last the device.
/// If it is forgotten instead, unbinding the driver unregisters the device, and the data leaks.
pub(crate) struct Registration<'a, T: Operations> {
    data: Pin<KBox<T::RegistrationData<'a>>>,
    device: UnregisteredDevice<T>,
    bound: &'a device::Device<device::Bound>,
}

/// `struct device` of C.
fn raw_device(dev: &device::Device<device::Bound>) -> *mut bindings::device {
    // CAST: `device::Device` is a transparent wrapper.
    ptr::from_ref(dev).cast_mut().cast()
}

/// Unregisters a device.
///
/// # Safety
///
/// `raw` is a device that was registered.
unsafe extern "C" fn unregister(raw: *mut c_void) {
    // SAFETY: By this function's requirements.
    unsafe { bindings::ib_unregister_device(raw.cast()) };
}

impl<'a, T: Operations> Registration<'a, T> {
    /// Registers a device, whose operations `data` serves. `bound` is the device that our driver
    /// is bound to, `parent` the one that does the DMA.
    ///
    /// # Errors
    ///
    /// What the core and the operations give that it calls. Then the data and the device are
    /// dropped.
    #[doc(alias = "irdma_ib_register_device")]
    #[doc(alias = "irdma_init_roce_device")]
    pub(crate) fn new(
        bound: &'a device::Device<device::Bound>,
        parent: &pci::Device<device::Bound>,
        device: UnregisteredDevice<T>,
        data: Pin<KBox<T::RegistrationData<'a>>>,
        info: &Info<'_>,
    ) -> Result<Self> {
        let raw = device.as_raw();
        let dma_device = raw_device(parent.as_ref());
        // SAFETY: Nobody but us knows the device yet.
        unsafe {
            if (*device.as_device()).parent != dma_device {
                return Err(EINVAL);
            }
            // There are no operations of iWARP, which the core calls unasked.
            // CAST: The types are small numbers.
            (*raw).node_type = bindings::RDMA_NODE_IB_CA as u8;
            (*raw).node_guid = u64::from_ne_bytes(info.node_guid);
            (*raw).phys_port_cnt = 1;
            (*raw).num_comp_vectors = c_int::try_from(info.num_comp_vectors)?;
        }
        if let Some(netdev) = info.netdev {
            // SAFETY: Both are valid, and the core takes a reference of its own.
            to_result(unsafe { bindings::ib_device_set_netdev(raw, netdev.as_raw(), 1) })?;
        }

        // SAFETY: No operation can be called yet. The lifetime is only forgotten in storage;
        // `with_data` gives it back shortened.
        unsafe { *device.data.get() = NonNull::from(&*data).cast() };

        // SAFETY: The PCI function is bound to a driver and has DMA parameters.
        unsafe { bindings::irdma_helper_dma_set_max_seg_size(dma_device, u32::MAX) };
        // SAFETY: `device` is fully set up, and `dma_device` is its parent.
        let mut registered = to_result(unsafe {
            bindings::ib_register_device(raw, info.name.as_char_ptr(), dma_device)
        });
        if registered.is_ok() {
            // If the registration is forgotten, the core lets go of the data all the same before
            // what it refers to ends.
            // SAFETY: `bound` is bound to a driver, and `raw` stays until `drop` removes the
            // action, or for good.
            registered = to_result(unsafe {
                bindings::devm_add_action(raw_device(bound), Some(unregister), raw.cast())
            });
            if registered.is_err() {
                // SAFETY: The device is registered.
                unsafe { unregister(raw.cast()) };
            }
        }
        if let Err(error) = registered {
            // SAFETY: No operation can be called any more.
            unsafe { *device.data.get() = NonNull::dangling() };
            return Err(error);
        }
        *device.takes_events.lock() = true;
        device.dispatch(DeviceEvent::PortActive);

        Ok(Self {
            data,
            device,
            bound,
        })
    }

    /// The data of the registration.
    pub(crate) fn data(&self) -> Pin<&T::RegistrationData<'a>> {
        self.data.as_ref()
    }

    /// The device.
    pub(crate) fn device(&self) -> &Device<T> {
        &self.device
    }
}

impl<T: Operations> Drop for Registration<'_, T> {
    #[doc(alias = "irdma_ib_unregister_device")]
    fn drop(&mut self) {
        self.device.dispatch(DeviceEvent::PortError);
        *self.device.takes_events.lock() = false;
        // SAFETY: `new` added the action. It unregisters the device: when this returns, no
        // operation runs, and none will.
        unsafe {
            bindings::devm_release_action(
                raw_device(self.bound),
                Some(unregister),
                self.device.as_raw().cast(),
            )
        };
        // SAFETY: As above.
        unsafe { *self.device.data.get() = NonNull::dangling() };
    }
}
