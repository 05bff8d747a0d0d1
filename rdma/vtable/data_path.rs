// SPDX-License-Identifier: GPL-2.0

//! Operations that pass data.

use kernel::{
    error::from_result,
    prelude::*, //
};

use crate::{
    bindings,
    rdma::{
        Cq,
        Device,
        NotifyFlags,
        Operations,
        Qp,
        RecvWrs,
        SendWrs,
        WcArray, //
    },
};

use super::VTable;

impl<T: Operations> VTable<T> {
    /// # Safety
    ///
    /// A consumer posts a chain of valid requests, each of the size that its opcode and the queue
    /// pair's type ask for.
    pub(super) unsafe extern "C" fn post_send(
        qp: *mut bindings::ib_qp,
        first: *const bindings::ib_send_wr,
        bad: *mut *const bindings::ib_send_wr,
    ) -> c_int {
        // SAFETY: By this function's requirements; consumers own the queue pair that they post to.
        let (device, datagram) = unsafe {
            let datagram = matches!(
                (*qp).qp_type,
                bindings::ib_qp_type_IB_QPT_UD | bindings::ib_qp_type_IB_QPT_GSI
            );
            (Device::<T>::from_raw((*qp).device), datagram)
        };
        // SAFETY: By this function's requirements.
        let mut wrs = unsafe { SendWrs::new(first, datagram) };
        // SAFETY: As above, and this is an operation.
        let posted =
            unsafe { device.with_data(|_, data| T::post_send(data, Qp::from_raw(qp), &mut wrs)) };
        from_result(|| {
            posted.inspect_err(|_| {
                if !bad.is_null() {
                    // SAFETY: By this function's requirements.
                    unsafe { *bad = wrs.current() };
                }
            })?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// A consumer posts a chain of valid requests.
    pub(super) unsafe extern "C" fn post_recv(
        qp: *mut bindings::ib_qp,
        first: *const bindings::ib_recv_wr,
        bad: *mut *const bindings::ib_recv_wr,
    ) -> c_int {
        // SAFETY: By this function's requirements; consumers own the queue pair that they post to.
        let device = unsafe { Device::<T>::from_raw((*qp).device) };
        // SAFETY: By this function's requirements.
        let mut wrs = unsafe { RecvWrs::new(first) };
        // SAFETY: As above, and this is an operation.
        let posted =
            unsafe { device.with_data(|_, data| T::post_recv(data, Qp::from_raw(qp), &mut wrs)) };
        from_result(|| {
            posted.inspect_err(|_| {
                if !bad.is_null() {
                    // SAFETY: By this function's requirements.
                    unsafe { *bad = wrs.current() };
                }
            })?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// A consumer polls its queue into an array with room for `room` completions.
    pub(super) unsafe extern "C" fn poll_cq(
        cq: *mut bindings::ib_cq,
        room: c_int,
        wcs: *mut bindings::ib_wc,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*cq).device) };
        // SAFETY: By this function's requirements.
        let mut wcs = unsafe { WcArray::new(wcs, usize::try_from(room).unwrap_or(0)) };
        from_result(|| {
            // SAFETY: As above, and this is an operation.
            unsafe { device.with_data(|_, data| T::poll_cq(data, Cq::from_raw(cq), &mut wcs)) }?;
            // CAST: There is room for `c_int::MAX` at most.
            Ok(wcs.filled() as c_int)
        })
    }

    /// # Safety
    ///
    /// A consumer arms its queue.
    pub(super) unsafe extern "C" fn req_notify_cq(
        cq: *mut bindings::ib_cq,
        flags: bindings::ib_cq_notify_flags,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*cq).device) };
        let flags = NotifyFlags(flags);
        from_result(|| {
            // SAFETY: As above, and this is an operation.
            let missed = unsafe {
                device.with_data(|_, data| T::req_notify_cq(data, Cq::from_raw(cq), flags))
            }?;
            Ok((missed && flags.report_missed()).into())
        })
    }
}
