// SPDX-License-Identifier: GPL-2.0

//! What user space's library and the driver tell each other beside the verb's arguments.
//!
//! C header: [`include/rdma/uverbs_ioctl.h`](srctree/include/rdma/uverbs_ioctl.h)

use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
};

use kernel::{
    error::to_result,
    prelude::*, //
};
use zerocopy::Immutable;

use crate::bindings;

use super::{
    Operations,
    Ucontext, //
};

/// Request and response buffers of one system call.
///
/// # Invariants
///
/// `raw` is valid for the lifetime and is part of a `struct uverbs_attr_bundle`. `context` is the
/// user context of the call, made by `T`, if that is initialised.
pub(crate) struct Udata<'a, T: Operations> {
    raw: NonNull<bindings::ib_udata>,
    context: Option<&'a Ucontext<T>>,
    _call: PhantomData<&'a mut bindings::ib_udata>,
}

impl<'a, T: Operations> Udata<'a, T> {
    /// Wraps what the core gives, which is null if the kernel itself calls.
    ///
    /// # Safety
    ///
    /// `raw` is null or points to the driver data of a `struct uverbs_attr_bundle` which stays
    /// valid for `'a`, which nobody else uses, and whose context is of a device of `T` and
    /// initialised.
    pub(super) unsafe fn from_raw(raw: *mut bindings::ib_udata) -> Option<Self> {
        let raw = NonNull::new(raw)?;
        // SAFETY: By this function's requirements.
        let context = unsafe { bindings::irdma_helper_udata_ucontext(raw.as_ptr()) };
        // SAFETY: By this function's requirements.
        let context = (!context.is_null()).then(|| unsafe { Ucontext::from_raw(context) });
        // INVARIANT: By this function's requirements.
        Some(Self {
            raw,
            context,
            _call: PhantomData,
        })
    }

    /// As [`Udata::from_raw`] while the user context isn't initialised yet.
    ///
    /// # Safety
    ///
    /// As [`Udata::from_raw`], but nothing is asked of the context.
    pub(super) unsafe fn without_context(raw: *mut bindings::ib_udata) -> Option<Self> {
        // INVARIANT: By this function's requirements.
        NonNull::new(raw).map(|raw| Self {
            raw,
            context: None,
            _call: PhantomData,
        })
    }

    /// The user context of the call. `None` if the call makes or ends it.
    pub(crate) fn context(&self) -> Option<&'a Ucontext<T>> {
        self.context
    }

    /// Bytes that user space sent.
    pub(crate) fn request_len(&self) -> usize {
        // SAFETY: `raw` is valid by the type's invariant.
        unsafe { (*self.raw.as_ptr()).inlen }
    }

    /// Bytes that user space has room for in the response.
    pub(crate) fn response_len(&self) -> usize {
        // SAFETY: `raw` is valid by the type's invariant.
        unsafe { (*self.raw.as_ptr()).outlen }
    }

    /// Reads the request.
    ///
    /// A request that is shorter than `R` is continued with zeroes.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the request is shorter than `min_len` bytes, `EOPNOTSUPP` if it is longer than
    /// `R` and what goes beyond isn't zero, `EFAULT` if it can't be read.
    #[doc(alias = "ib_copy_validate_udata_in")]
    pub(crate) fn read<R: FromBytes>(&mut self, min_len: usize) -> Result<R> {
        let mut request = R::new_zeroed();
        // SAFETY: `raw` is valid and in a bundle by the type's invariant; `request` has the size
        // that is given, and any bytes are a valid `R`.
        to_result(unsafe {
            bindings::_ib_copy_validate_udata_in(
                self.raw.as_ptr(),
                ptr::from_mut(&mut request).cast(),
                size_of::<R>(),
                min_len,
            )
        })?;
        Ok(request)
    }

    /// Makes sure that user space sent nothing but zeroes.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if it did, `EFAULT` if the request can't be read.
    #[doc(alias = "ib_is_udata_in_empty")]
    pub(crate) fn no_request(&mut self) -> Result {
        if self.request_len() == 0 {
            return Ok(());
        }
        // SAFETY: `raw` is valid and in a bundle by the type's invariant. No byte is written for a
        // size of 0.
        to_result(unsafe {
            bindings::_ib_copy_validate_udata_in(self.raw.as_ptr(), ptr::null_mut(), 0, 0)
        })
    }

    /// Writes the response: as much of it as user space has room for, then zeroes to the end of
    /// that room.
    ///
    /// # Errors
    ///
    /// `EFAULT` if the room can't be written.
    #[doc(alias = "ib_respond_udata")]
    pub(crate) fn respond<R: IntoBytes + Immutable>(&mut self, response: &R) -> Result {
        let bytes = response.as_bytes();
        // SAFETY: `raw` is valid and in a bundle by the type's invariant; `bytes` is a slice.
        to_result(unsafe {
            bindings::_ib_respond_udata(self.raw.as_ptr(), bytes.as_ptr().cast(), bytes.len())
        })
    }

    /// Fills the response with zeroes.
    ///
    /// # Errors
    ///
    /// `EFAULT` if it can't be written.
    #[doc(alias = "ib_respond_empty_udata")]
    pub(crate) fn respond_empty(&mut self) -> Result {
        // SAFETY: As in `respond`; of a source of length 0 nothing is read.
        to_result(unsafe { bindings::_ib_respond_udata(self.raw.as_ptr(), ptr::null(), 0) })
    }

    /// For verbs that have neither request nor response.
    ///
    /// # Errors
    ///
    /// Those of [`Udata::no_request`] and [`Udata::respond_empty`].
    #[doc(alias = "ib_no_udata_io")]
    pub(crate) fn no_io(&mut self) -> Result {
        self.no_request()?;
        self.respond_empty()
    }
}
