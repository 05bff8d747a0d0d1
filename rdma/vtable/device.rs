// SPDX-License-Identifier: GPL-2.0

//! Operations on a device and on its port.

use core::slice;

use kernel::{
    error::from_result,
    fmt::Write,
    prelude::*,
    str::Formatter, //
};

use crate::{
    bindings,
    rdma::{
        Device,
        DeviceAttr,
        Operations,
        PortAttr,
        PortImmutable,
        Udata, //
    },
};

use super::VTable;

impl<T: Operations> VTable<T> {
    /// # Safety
    ///
    /// Called by the core for a registered device, or while it is registered. The core's contract
    /// with `query_device` holds.
    pub(super) unsafe extern "C" fn query_device(
        device: *mut bindings::ib_device,
        attr: *mut bindings::ib_device_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let (device, attr) = unsafe { (Device::<T>::from_raw(device), &mut *attr) };
        from_result(|| {
            // SAFETY: As above. There is no user context in this call.
            if let Some(mut udata) = unsafe { Udata::<T>::without_context(udata) } {
                udata.no_io()?;
            }
            // SAFETY: The core calls this only while the data is there.
            unsafe { device.with_data(|_, data| T::query_device(data, &mut DeviceAttr(attr))) }?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// As [`VTable::query_device`]; `text` has room for `IB_FW_VERSION_NAME_MAX` bytes.
    pub(super) unsafe extern "C" fn get_dev_fw_str(
        device: *mut bindings::ib_device,
        text: *mut c_char,
    ) {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw(device) };
        // SAFETY: By this function's requirements. Bytes that were not written yet are those of a
        // zeroed or stack buffer of the core, which it reads up to the zero that we write.
        let text = unsafe {
            text.write_bytes(0, bindings::IB_FW_VERSION_NAME_MAX as usize);
            slice::from_raw_parts_mut(
                text.cast::<u8>(),
                bindings::IB_FW_VERSION_NAME_MAX as usize - 1,
            )
        };
        // SAFETY: The core calls this only while the data is there.
        let (major, minor) = unsafe { device.with_data(|_, data| T::firmware_version(data)) };
        // Two numbers of five digits fit; if they didn't, the text would be cut.
        let _ = Formatter::new(text).write_fmt(fmt!("{major}.{minor}"));
    }

    /// # Safety
    ///
    /// As [`VTable::query_device`].
    pub(super) unsafe extern "C" fn query_port(
        device: *mut bindings::ib_device,
        port: u32,
        attr: *mut bindings::ib_port_attr,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let (device, attr) = unsafe { (Device::<T>::from_raw(device), &mut *attr) };
        from_result(|| {
            // SAFETY: The core calls this only while the data is there.
            unsafe {
                device.with_data(|device, data| {
                    T::query_port(device, data, port, &mut PortAttr(attr))
                })
            }?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// As [`VTable::query_device`].
    pub(super) unsafe extern "C" fn get_port_immutable(
        device: *mut bindings::ib_device,
        port: u32,
        immutable: *mut bindings::ib_port_immutable,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let (device, immutable) = unsafe { (Device::<T>::from_raw(device), &mut *immutable) };
        from_result(|| {
            // SAFETY: The core calls this only while the data is there.
            unsafe {
                device.with_data(|device, data| {
                    T::port_immutable(device, data, port, &mut PortImmutable(immutable))
                })
            }?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// None, all that we drive is Ethernet.
    #[doc(alias = "irdma_get_link_layer")]
    pub(super) unsafe extern "C" fn get_link_layer(
        _device: *mut bindings::ib_device,
        _port: u32,
    ) -> bindings::rdma_link_layer {
        bindings::rdma_link_layer_IB_LINK_LAYER_ETHERNET
    }

    /// # Safety
    ///
    /// As [`VTable::query_device`].
    pub(super) unsafe extern "C" fn query_pkey(
        device: *mut bindings::ib_device,
        port: u32,
        index: u16,
        pkey: *mut u16,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw(device) };
        from_result(|| {
            // SAFETY: The core calls this only while the data is there.
            let value = unsafe { device.with_data(|_, data| T::query_pkey(data, port, index)) }?;
            // SAFETY: By this function's requirements.
            unsafe { *pkey = value };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// As [`VTable::query_device`].
    pub(super) unsafe extern "C" fn alloc_hw_port_stats(
        _device: *mut bindings::ib_device,
        _port: u32,
    ) -> *mut bindings::rdma_hw_stats {
        // SAFETY: The descriptions are static; `CounterDesc` is a transparent wrapper. The core
        // frees what this gives.
        unsafe {
            bindings::rdma_alloc_hw_stats_struct(
                T::PORT_COUNTERS.as_ptr().cast(),
                // CAST: A driver has some dozens of counters, and the time is a small number.
                T::PORT_COUNTERS.len() as c_int,
                bindings::RDMA_HW_STATS_DEFAULT_LIFESPAN as c_ulong,
            )
        }
    }

    /// # Safety
    ///
    /// As [`VTable::query_device`]; `stats` is what [`VTable::alloc_hw_port_stats`] made, and is
    /// locked.
    pub(super) unsafe extern "C" fn get_hw_stats(
        device: *mut bindings::ib_device,
        stats: *mut bindings::rdma_hw_stats,
        port: u32,
        _index: c_int,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw(device) };
        // SAFETY: By this function's requirements: there are as many values as counters.
        let values = unsafe {
            slice::from_raw_parts_mut(
                (&raw mut (*stats).value).cast::<u64>(),
                T::PORT_COUNTERS.len(),
            )
        };
        // SAFETY: The core calls this only while the data is there.
        unsafe { device.with_data(|_, data| T::port_counters(data, port, values)) };
        // CAST: As in `alloc_hw_port_stats`.
        T::PORT_COUNTERS.len() as c_int
    }
}
