// SPDX-License-Identifier: GPL-2.0

//! What the LAN driver `ice` does for the RDMA driver of the same function.
//!
//! `ice` makes an auxiliary device for RDMA and calls the driver of that device back with events.
//! For that it takes the driver's `struct device_driver` for part of a structure of its own, so
//! that the driver must be registered by [`Adapter`] and not by that of [`kernel::auxiliary`].
//!
//! C headers: [`include/linux/net/intel/iidc_rdma.h`](srctree/include/linux/net/intel/iidc_rdma.h),
//! [`include/linux/net/intel/iidc_rdma_ice.h`](srctree/include/linux/net/intel/iidc_rdma_ice.h)

use core::{
    marker::PhantomData,
    mem::offset_of,
    ptr, //
};

use kernel::{
    auxiliary::{
        self,
        DeviceId,
        IdTable, //
    },
    container_of,
    device::{
        Bound,
        CoreInternal, //
    },
    device_id::RawDeviceIdIndex,
    driver,
    error::{
        from_result,
        to_result, //
    },
    pci,
    prelude::*,
    sync::aref::ARef,
    types::Opaque,
    ModuleMetadata, //
};

use super::{
    netdev::NetDevice,
    raw as bindings, //
};

/// Traffic classes that a port may have.
pub(crate) const TRAFFIC_CLASSES: usize = 8;

/// How a port shares itself among its traffic classes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Qos {
    /// Traffic classes that there are.
    pub(crate) classes: u8,
    /// Traffic class of each user priority.
    pub(crate) priority_to_class: [u8; TRAFFIC_CLASSES],
    /// Relative bandwidth of each traffic class.
    pub(crate) bandwidth: [u8; TRAFFIC_CLASSES],
    /// Priorities are chosen by DSCP instead of by VLAN priority.
    pub(crate) dscp: bool,
    /// Priority of each DSCP.
    pub(crate) dscp_map: [u8; 64],
}

/// What the LAN driver tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The MTU is about to change.
    BeforeMtuChange,
    /// The MTU has changed.
    AfterMtuChange,
    /// The traffic classes are about to change.
    BeforeTcChange,
    /// The traffic classes have changed.
    AfterTcChange,
    /// The function will be reset.
    ResetWarning,
    /// The device has raised a critical error; holds the interrupt's cause (`PFINT_OICR`).
    CriticalError(u32),
}

/// A queue set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Qset {
    /// Number that we give it.
    pub(crate) handle: u16,
    /// Traffic class.
    pub(crate) traffic_class: u8,
    /// The function's VSI.
    pub(crate) vsi: u16,
}

/// The function, as the LAN driver hands it over to us.
///
/// # Invariants
///
/// `info` is that of `adev`, which `ice` keeps until the device is unbound.
#[derive(Clone, Copy)]
pub(crate) struct Function<'a> {
    adev: &'a auxiliary::Device<Bound>,
    info: *mut bindings::iidc_rdma_core_dev_info,
}

// SAFETY: All that the LAN driver offers may be called on any thread.
unsafe impl Send for Function<'_> {}

// SAFETY: As above.
unsafe impl Sync for Function<'_> {}

impl<'a> Function<'a> {
    /// # Safety
    ///
    /// `adev` was made by `ice`.
    unsafe fn new(adev: &'a auxiliary::Device<Bound>) -> Self {
        let raw: *const bindings::auxiliary_device = ptr::from_ref(adev).cast();
        // SAFETY: All auxiliary devices of `ice` are part of such a structure.
        let iadev = unsafe { container_of!(raw, bindings::iidc_rdma_core_auxiliary_dev, adev) };
        // INVARIANT: By this function's requirements.
        Self {
            adev,
            // SAFETY: `ice` fills it in before it adds the device.
            info: unsafe { (*iadev).cdev_info },
        }
    }

    /// The auxiliary device that our driver is bound to.
    pub(crate) fn device(&self) -> &'a auxiliary::Device<Bound> {
        self.adev
    }

    /// The PCI function.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the parent is none.
    pub(crate) fn pci(&self) -> Result<&'a pci::Device<Bound>> {
        self.adev.parent().try_into()
    }

    fn private(&self) -> *mut bindings::iidc_rdma_priv_dev_info {
        // SAFETY: `info` is valid by the type's invariant.
        unsafe { (*self.info).iidc_priv }.cast()
    }

    /// Number of the physical function.
    pub(crate) fn number(&self) -> u8 {
        // SAFETY: `ice` keeps the structure as long as `info`.
        unsafe { (*self.private()).pf_id }
    }

    /// The function's VSI.
    pub(crate) fn vsi(&self) -> u16 {
        // SAFETY: As in `number`.
        unsafe { (*self.private()).vport_id }
    }

    /// The function's network device.
    ///
    /// # Errors
    ///
    /// `ENODEV` if it has none.
    pub(crate) fn netdev(&self) -> Result<ARef<NetDevice>> {
        // SAFETY: As in `number`. The network device outlives the auxiliary device.
        unsafe { NetDevice::get((*self.private()).netdev) }.ok_or(ENODEV)
    }

    /// How the port shares itself among its traffic classes.
    pub(crate) fn qos(&self) -> Qos {
        // SAFETY: As in `number`. `ice` changes it before it adds the device and during a change
        // of traffic classes, between its events.
        let raw = unsafe { &(*self.private()).qos_info };
        Qos {
            classes: raw.num_tc,
            priority_to_class: raw.up2tc,
            bandwidth: raw.tc_info.each_ref().map(|class| class.rel_bw),
            dscp: u32::from(raw.pfc_mode) == bindings::IIDC_DSCP_PFC_MODE,
            dscp_map: raw.dscp_map,
        }
    }

    /// Where the LAN driver has mapped the function's registers (BAR 0): address and bytes.
    ///
    /// # Errors
    ///
    /// `ENODEV` if it hasn't.
    pub(crate) fn registers(&self) -> Result<Registers<'a>> {
        // SAFETY: As in `number`.
        let address = unsafe { (*self.private()).hw_addr };
        if address.is_null() {
            return Err(ENODEV);
        }
        Ok(Registers {
            address: address.expose_provenance(),
            size: usize::try_from(self.pci()?.resource_len(0)?)?,
            _mapping: PhantomData,
        })
    }

    /// Takes an interrupt vector of those that the LAN driver keeps for us.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if there are no more.
    #[doc(alias = "icrdma_init_interrupts")]
    pub(crate) fn vector(&self) -> Result<Vector<'a>> {
        let mut entry = bindings::msix_entry::default();
        // SAFETY: `info` is valid by the type's invariant.
        to_result(unsafe { bindings::ice_alloc_rdma_qvector(self.info, &raw mut entry) })?;
        // INVARIANT: The vector is ours now.
        Ok(Vector {
            function: *self,
            entry,
        })
    }

    /// Adds a queue set to the LAN scheduler's tree and returns its node there. May sleep.
    ///
    /// # Errors
    ///
    /// What the LAN driver gives.
    #[doc(alias = "icrdma_lan_register_qset")]
    pub(crate) fn add_qset(&self, qset: Qset) -> Result<u32> {
        let mut raw = qset.to_raw(0);
        // SAFETY: `info` is valid by the type's invariant.
        to_result(unsafe { bindings::ice_add_rdma_qset(self.info, &raw mut raw) })?;
        Ok(raw.teid)
    }

    /// Takes a queue set out of the LAN scheduler's tree. May sleep.
    ///
    /// # Errors
    ///
    /// What the LAN driver gives.
    #[doc(alias = "icrdma_lan_unregister_qset")]
    pub(crate) fn remove_qset(&self, qset: Qset, node: u32) -> Result {
        let mut raw = qset.to_raw(node);
        // SAFETY: `info` is valid by the type's invariant.
        to_result(unsafe { bindings::ice_del_rdma_qset(self.info, &raw mut raw) })
    }

    /// Asks for a reset of the function. Any context.
    #[doc(alias = "icrdma_request_reset")]
    pub(crate) fn request_reset(&self) -> Result {
        // SAFETY: `info` is valid by the type's invariant.
        to_result(unsafe {
            bindings::ice_rdma_request_reset(
                self.info,
                bindings::iidc_rdma_reset_type_IIDC_FUNC_RESET,
            )
        })
    }

    /// Whether the LAN driver takes the device away itself, as for each reset, and not the driver from
    /// the device: it forgets the device before it deletes it. It gets to know a device only after its
    /// probe, so this says nothing before that has succeeded.
    pub(crate) fn is_unplugged(&self) -> bool {
        // SAFETY: `info` is valid by the type's invariant. The field may change at any time: it is
        // read once, and nothing is done with what it points to.
        unsafe { (&raw const (*self.info).adev).read_volatile() }.is_null()
    }

    /// Lets RDMA packets of a VSI go to the protocol engine, or no longer. May sleep.
    ///
    /// # Errors
    ///
    /// What the LAN driver gives.
    pub(crate) fn set_filter(&self, vsi: u16, enable: bool) -> Result {
        // SAFETY: `info` is valid by the type's invariant.
        to_result(unsafe { bindings::ice_rdma_update_vsi_filter(self.info, vsi, enable) })
    }
}

impl Qset {
    fn to_raw(self, node: u32) -> bindings::iidc_rdma_qset_params {
        bindings::iidc_rdma_qset_params {
            teid: node,
            qs_handle: self.handle,
            vport_id: self.vsi,
            tc: self.traffic_class,
        }
    }
}

/// The mapping of the function's registers.
///
/// # Invariants
///
/// `size` bytes at `address` are mapped for the lifetime.
#[derive(Clone, Copy)]
pub(crate) struct Registers<'a> {
    address: usize,
    size: usize,
    _mapping: PhantomData<&'a ()>,
}

impl Registers<'_> {
    /// Where the mapping starts.
    pub(crate) fn address(&self) -> usize {
        self.address
    }

    /// Bytes that are mapped.
    pub(crate) fn size(&self) -> usize {
        self.size
    }
}

/// An interrupt vector. Given back when it is dropped.
///
/// # Invariants
///
/// The vector belongs to us.
pub(crate) struct Vector<'a> {
    function: Function<'a>,
    entry: bindings::msix_entry,
}

impl Vector<'_> {
    /// The number by which the device knows the vector.
    pub(crate) fn index(&self) -> u32 {
        self.entry.entry.into()
    }

    /// The number by which the kernel knows the vector.
    pub(crate) fn irq(&self) -> u32 {
        self.entry.vector
    }
}

impl Drop for Vector<'_> {
    #[doc(alias = "icrdma_deinit_interrupts")]
    fn drop(&mut self) {
        // SAFETY: The vector is ours by the type's invariant.
        unsafe { bindings::ice_free_rdma_qvector(self.function.info, &raw mut self.entry) };
    }
}

/// Number of processors that are online.
pub(crate) fn online_cpus() -> usize {
    // SAFETY: The function reads a counter.
    // CAST: The number of processors is small.
    unsafe { bindings::irdma_helper_num_online_cpus() as usize }
}

/// A driver for the auxiliary devices of `ice`.
pub(crate) trait Driver {
    /// What the table says of each device id.
    type IdInfo: 'static;

    /// What belongs to a bound device.
    type Data<'bound>: Send + 'bound;

    /// Name of the driver.
    const NAME: &'static CStr;

    /// Device ids that the driver is for. All must be ones of `ice`.
    const ID_TABLE: IdTable<Self::IdInfo>;

    /// Called for a new device.
    fn probe<'bound>(
        function: Function<'bound>,
        info: &'bound Self::IdInfo,
    ) -> impl PinInit<Self::Data<'bound>, Error> + 'bound;

    /// Called before the data of a device is dropped.
    fn unbind<'bound>(function: Function<'bound>, data: Pin<&Self::Data<'bound>>);

    /// Called at an event of the LAN driver, never at the same time as another function of the
    /// device. May sleep.
    fn event<'bound>(function: Function<'bound>, data: Pin<&Self::Data<'bound>>, event: Event);
}

/// Registers a [`Driver`], as the `T` of [`driver::Registration`].
pub(crate) struct Adapter<T: Driver>(PhantomData<T>);

// SAFETY:
// - The C structure is `repr(C)`.
// - `T::Data` is what the probe callback stores.
// - The offset is that of the embedded `struct device_driver`.
unsafe impl<T: Driver> driver::DriverLayout for Adapter<T> {
    type DriverType = bindings::iidc_rdma_core_auxiliary_drv;
    type DriverData<'bound> = T::Data<'bound>;
    const DEVICE_DRIVER_OFFSET: usize =
        offset_of!(Self::DriverType, adrv) + offset_of!(bindings::auxiliary_driver, driver);
}

// SAFETY: `register` and `unregister` are a pair.
unsafe impl<T: Driver> driver::RegistrationOps for Adapter<T> {
    unsafe fn register(
        drv: &Opaque<Self::DriverType>,
        name: &'static CStr,
        module: &'static ThisModule,
    ) -> Result {
        let drv = drv.get();
        // SAFETY: The driver isn't registered yet, so it may be changed.
        let adrv = unsafe {
            (*drv).event_handler = Some(Self::event_callback);
            (*drv).adrv.name = name.as_char_ptr();
            (*drv).adrv.probe = Some(Self::probe_callback);
            (*drv).adrv.remove = Some(Self::remove_callback);
            (*drv).adrv.id_table = T::ID_TABLE.as_ptr();
            &raw mut (*drv).adrv
        };
        // SAFETY: The driver is pinned and stays until `unregister`.
        to_result(unsafe {
            bindings::__auxiliary_driver_register(
                adrv,
                module.as_ptr(),
                <crate::LocalModule as ModuleMetadata>::NAME.as_char_ptr(),
            )
        })
    }

    unsafe fn unregister(drv: &Opaque<Self::DriverType>) {
        // SAFETY: The driver is registered.
        unsafe { bindings::auxiliary_driver_unregister(&raw mut (*drv.get()).adrv) }
    }
}

impl<T: Driver> Adapter<T> {
    /// Makes a registration under the driver's name.
    pub(crate) fn register(
        module: &'static ThisModule,
    ) -> impl PinInit<driver::Registration<Self>, Error>
    where
        T: 'static,
    {
        driver::Registration::new(T::NAME, module)
    }

    extern "C" fn probe_callback(
        adev: *mut bindings::auxiliary_device,
        id: *const bindings::auxiliary_device_id,
    ) -> c_int {
        // SAFETY: The bus calls this with a valid device, which is about to be bound.
        let adev = unsafe { &*adev.cast::<auxiliary::Device<CoreInternal<'_>>>() };
        // SAFETY: `DeviceId` is a transparent wrapper.
        let id = unsafe { &*id.cast::<DeviceId>() };
        // SAFETY: `id` is one of `T::ID_TABLE`.
        let info = unsafe { id.info_unchecked::<T::IdInfo>() };
        // SAFETY: All ids of the table are ones of `ice`.
        let function = unsafe { Function::new(adev) };

        from_result(|| {
            adev.as_ref().set_drvdata(T::probe(function, info))?;
            Ok(0)
        })
    }

    extern "C" fn remove_callback(adev: *mut bindings::auxiliary_device) {
        // SAFETY: The bus calls this with a device that `probe_callback` has bound.
        let adev = unsafe { &*adev.cast::<auxiliary::Device<CoreInternal<'_>>>() };
        // SAFETY: `probe_callback` has stored it. The driver core drops it later.
        let data = unsafe { adev.as_ref().drvdata_borrow::<T::Data<'_>>() };
        // SAFETY: All ids of the table are ones of `ice`.
        T::unbind(unsafe { Function::new(adev) }, data);
    }

    /// # Safety
    ///
    /// `ice` calls this with the device lock of the auxiliary device held, for a device that has a
    /// driver, ours.
    unsafe extern "C" fn event_callback(
        info: *mut bindings::iidc_rdma_core_dev_info,
        event: *mut bindings::iidc_rdma_event,
    ) {
        // SAFETY: By this function's requirements.
        let adev = unsafe { (*info).adev };
        // SAFETY: The lock keeps probe, remove and what follows it away.
        if unsafe { bindings::dev_get_drvdata(&raw mut (*adev).dev) }.is_null() {
            return;
        }
        // SAFETY: The device is valid and, with its data there, bound.
        let adev = unsafe { &*adev.cast::<auxiliary::Device<CoreInternal<'_>>>() };
        // SAFETY: `probe_callback` has stored it, and it is there.
        let data = unsafe { adev.as_ref().drvdata_borrow::<T::Data<'_>>() };
        // SAFETY: All ids of the table are ones of `ice`.
        let function = unsafe { Function::new(adev) };
        // SAFETY: By this function's requirements.
        let (bits, reg) = unsafe { ((*event).type_[0], (*event).reg) };

        for (bit, event) in [
            (
                bindings::iidc_rdma_event_type_IIDC_RDMA_EVENT_BEFORE_MTU_CHANGE,
                Event::BeforeMtuChange,
            ),
            (
                bindings::iidc_rdma_event_type_IIDC_RDMA_EVENT_AFTER_MTU_CHANGE,
                Event::AfterMtuChange,
            ),
            (
                bindings::iidc_rdma_event_type_IIDC_RDMA_EVENT_BEFORE_TC_CHANGE,
                Event::BeforeTcChange,
            ),
            (
                bindings::iidc_rdma_event_type_IIDC_RDMA_EVENT_AFTER_TC_CHANGE,
                Event::AfterTcChange,
            ),
            (
                bindings::iidc_rdma_event_type_IIDC_RDMA_EVENT_WARN_RESET,
                Event::ResetWarning,
            ),
            (
                bindings::iidc_rdma_event_type_IIDC_RDMA_EVENT_CRIT_ERR,
                Event::CriticalError(reg),
            ),
        ] {
            if bits & (1 << bit) != 0 {
                T::event(function, data, event);
            }
        }
    }
}
