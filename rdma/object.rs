// SPDX-License-Identifier: GPL-2.0

//! The core's objects with the driver's part behind them.
//!
//! The core allocates all of them but memory regions, by the size in its operations table, zeroes
//! them and fills in its own part before it calls the driver.

use core::{
    alloc::Layout,
    marker::PhantomData,
    mem::offset_of,
    ptr, //
};

use kernel::{
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

use crate::bindings;

use super::{
    mmap::MmapEntry,
    umem::WatchedUmem,
    CqLink,
    Operations,
    QpLink,
    QpType, //
};

/// Size for an allocation by `kzalloc()`, such that it is aligned for `T`, too.
pub(super) const fn kmalloc_size<T>() -> usize {
    Layout::new::<T>().pad_to_align().size()
}

/// Declares an object: the core's part first, then the driver's.
macro_rules! object {
    (
        $(#[$meta:meta])*
        pub(crate) struct $name:ident($head:ident, $data:ident) {
            $( $(#[$field_meta:meta])* $field:ident: $field_type:ty, )*
        }
    ) => {
        $(#[$meta])*
        ///
        /// # Invariants
        ///
        /// The core's part is initialised and so is the driver's.
        #[repr(C)]
        pub(crate) struct $name<T: Operations> {
            head: Opaque<bindings::$head>,
            $( $(#[$field_meta])* $field: $field_type, )*
            data: T::$data,
        }

        // SAFETY: The core's part may be used on any thread, by the core's own rules, and the
        // driver's part is `Send`.
        unsafe impl<T: Operations> Send for $name<T> {}

        // SAFETY: Of the core's part only fields are read that don't change during the object's
        // life, and the driver's part is `Sync`.
        unsafe impl<T: Operations> Sync for $name<T> {}

        #[allow(dead_code, reason = "each object uses part of it")]
        impl<T: Operations> $name<T> {
            /// What the core has to allocate.
            pub(super) const SIZE: usize = {
                assert!(offset_of!(Self, head) == 0);
                kmalloc_size::<Self>()
            };

            /// The driver's part.
            #[inline]
            pub(crate) fn data(&self) -> &T::$data {
                &self.data
            }

            /// The core's part.
            #[inline]
            pub(super) fn as_raw(&self) -> *mut bindings::$head {
                self.head.get()
            }

            /// Borrows an object from the core's pointer.
            ///
            /// # Safety
            ///
            /// `raw` points to an object of a device whose operations are those of `T`, the
            /// driver's part is initialised, and stays so for `'a`.
            #[inline]
            pub(super) unsafe fn from_raw<'a>(raw: *mut bindings::$head) -> &'a Self {
                // SAFETY: The core's part is at offset 0 and the core allocated `SIZE` bytes.
                unsafe { &*raw.cast() }
            }

            /// Where the driver's part belongs.
            ///
            /// # Safety
            ///
            /// `raw` points to an object of a device whose operations are those of `T`.
            pub(super) unsafe fn data_slot(raw: *mut bindings::$head) -> *mut T::$data {
                // SAFETY: The core allocated `SIZE` bytes.
                unsafe { &raw mut (*raw.cast::<Self>()).data }
            }

            /// Drops what belongs to the driver.
            ///
            /// # Safety
            ///
            /// The driver's part is initialised, and is not used any more.
            pub(super) unsafe fn drop_data(raw: *mut bindings::$head) {
                let this = raw.cast::<Self>();
                // SAFETY: By this function's requirements; each field is dropped once.
                unsafe {
                    ptr::drop_in_place(&raw mut (*this).data);
                    $( ptr::drop_in_place(&raw mut (*this).$field); )*
                }
            }
        }
    };
}
object! {
    /// A protection domain.
    pub(crate) struct Pd(ib_pd, Pd) {}
}

object! {
    /// An address handle.
    pub(crate) struct Ah(ib_ah, Ah) {}
}

object! {
    /// A completion queue.
    pub(crate) struct Cq(ib_cq, Cq) {
        link: Arc<CqLink>,
    }
}

object! {
    /// A queue pair.
    pub(crate) struct Qp(ib_qp, Qp) {
        link: Arc<QpLink>,
    }
}

object! {
    /// A user context: one opening of the device by a user's process.
    pub(crate) struct Ucontext(ib_ucontext, Ucontext) {
        /// What the user may map.
        entries: KVec<MmapEntry>,
    }
}

object! {
    /// A memory region, which the driver's side allocates.
    pub(crate) struct Mr(ib_mr, Mr) {
        /// What its exporter may take back.
        watched: Option<WatchedUmem>,
    }
}

impl<T: Operations> Ucontext<T> {
    /// Puts the object together behind the core's part.
    ///
    /// # Safety
    ///
    /// As [`Ucontext::data_slot`], and the driver's part isn't initialised yet. `entries` are those
    /// of this context.
    pub(super) unsafe fn init(
        raw: *mut bindings::ib_ucontext,
        entries: KVec<MmapEntry>,
        data: T::Ucontext,
    ) {
        let this = raw.cast::<Self>();
        // SAFETY: The core allocated `SIZE` bytes.
        unsafe {
            (&raw mut (*this).entries).write(entries);
            (&raw mut (*this).data).write(data);
        }
    }
}

impl<T: Operations> Cq<T> {
    /// Puts the object together behind the core's part.
    ///
    /// # Safety
    ///
    /// As [`Cq::data_slot`], and the driver's part isn't initialised yet.
    pub(super) unsafe fn init(raw: *mut bindings::ib_cq, link: Arc<CqLink>, data: T::Cq) {
        let this = raw.cast::<Self>();
        // SAFETY: The core allocated `SIZE` bytes.
        unsafe {
            (&raw mut (*this).link).write(link);
            (&raw mut (*this).data).write(data);
        }
    }

    /// What an interrupt uses to tell the consumer.
    pub(crate) fn link(&self) -> &Arc<CqLink> {
        &self.link
    }
}

impl<T: Operations> Qp<T> {
    /// Puts the object together behind the core's part.
    ///
    /// # Safety
    ///
    /// As [`Qp::data_slot`], and the driver's part isn't initialised yet.
    pub(super) unsafe fn init(raw: *mut bindings::ib_qp, link: Arc<QpLink>, data: T::Qp) {
        let this = raw.cast::<Self>();
        // SAFETY: The core allocated `SIZE` bytes.
        unsafe {
            (&raw mut (*this).link).write(link);
            (&raw mut (*this).data).write(data);
        }
    }

    /// What an event uses to tell the consumer, and what a work completion names.
    pub(crate) fn link(&self) -> &Arc<QpLink> {
        &self.link
    }

    /// The service type.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is not one that we know.
    #[inline]
    pub(crate) fn qp_type(&self) -> Result<QpType> {
        // SAFETY: The core sets the type before it calls the driver and never changes it.
        unsafe { (*self.as_raw()).qp_type }.try_into()
    }

    /// The number of the queue pair, 1 for the one of general services.
    pub(crate) fn number(&self) -> u32 {
        // SAFETY: The number is set when the queue pair is made and never changes.
        unsafe { (*self.as_raw()).qp_num }
    }

    /// The protection domain.
    pub(crate) fn pd(&self) -> &Pd<T> {
        // SAFETY: The core keeps the domain as long as the queue pair, which `create_qp` has not
        // made without one.
        unsafe { Pd::from_raw((*self.as_raw()).pd) }
    }

    /// The queue that the send queue completes to.
    pub(crate) fn send_cq(&self) -> &Cq<T> {
        // SAFETY: The core keeps the queue as long as the queue pair, which `create_qp` has not
        // made without one.
        unsafe { Cq::from_raw((*self.as_raw()).send_cq) }
    }

    /// The queue that the receive queue completes to.
    pub(crate) fn recv_cq(&self) -> &Cq<T> {
        // SAFETY: As in `send_cq`.
        unsafe { Cq::from_raw((*self.as_raw()).recv_cq) }
    }

    /// Whether a user's process made it, and not the kernel.
    pub(crate) fn is_user(&self) -> bool {
        // SAFETY: The pointer is set before the driver is called, and never changes.
        !unsafe { (*self.as_raw()).uobject }.is_null()
    }
}

impl<T: Operations> Ah<T> {
    /// The protection domain.
    pub(crate) fn pd(&self) -> &Pd<T> {
        // SAFETY: The core keeps the domain as long as the handle.
        unsafe { Pd::from_raw((*self.as_raw()).pd) }
    }
}

/// Keys of a new memory region.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MrKeys {
    /// For local use.
    pub(crate) lkey: u32,
    /// For the peer's use.
    pub(crate) rkey: u32,
}

impl<T: Operations> Mr<T> {
    /// Puts a region together, of which users are told that peers know its first byte by `iova` and
    /// that it has `length` bytes.
    pub(super) fn new(data: T::Mr, keys: MrKeys, (iova, length): (u64, u64)) -> Self {
        Self {
            head: Opaque::new(bindings::ib_mr {
                lkey: keys.lkey,
                rkey: keys.rkey,
                iova,
                length,
                ..Default::default()
            }),
            watched: None,
            data,
        }
    }

    /// Notes what its exporter may take back.
    pub(super) fn set_watched(&mut self, watched: WatchedUmem) {
        self.watched = Some(watched);
    }

    /// What its exporter may take back.
    pub(super) fn watched(&self) -> Option<&WatchedUmem> {
        self.watched.as_ref()
    }

    /// The address by which the peer knows the first byte.
    pub(crate) fn iova(&self) -> u64 {
        // SAFETY: The region is valid; its users don't map and use it at the same time.
        unsafe { (*self.as_raw()).iova }
    }

    /// Bytes that are mapped.
    pub(crate) fn length(&self) -> u64 {
        // SAFETY: As in `iova`.
        unsafe { (*self.as_raw()).length }
    }

    /// Bytes a page.
    pub(crate) fn page_size(&self) -> u32 {
        // SAFETY: As in `iova`.
        unsafe { (*self.as_raw()).page_size }
    }

    /// The key for local use.
    pub(crate) fn lkey(&self) -> u32 {
        // SAFETY: As in `iova`.
        unsafe { (*self.as_raw()).lkey }
    }

    /// The key for the peer's use.
    pub(crate) fn rkey(&self) -> u32 {
        // SAFETY: As in `iova`.
        unsafe { (*self.as_raw()).rkey }
    }
}

/// A queue pair in the making.
///
/// # Invariants
///
/// `raw` is valid for the lifetime, with the core's part filled in, and has a domain.
pub(crate) struct NewQp<'a, T: Operations> {
    raw: *mut bindings::ib_qp,
    link: &'a Arc<QpLink>,
    _driver: PhantomData<&'a T>,
}

impl<'a, T: Operations> NewQp<'a, T> {
    /// # Safety
    ///
    /// `raw` is valid for `'a`, of a device of `T`, and the core has filled in its part and given it
    /// a domain.
    pub(super) unsafe fn new(raw: *mut bindings::ib_qp, link: &'a Arc<QpLink>) -> Self {
        // INVARIANT: By this function's requirements.
        Self {
            raw,
            link,
            _driver: PhantomData,
        }
    }

    /// As [`Qp::link`].
    pub(crate) fn link(&self) -> &'a Arc<QpLink> {
        self.link
    }

    /// As [`Qp::pd`].
    pub(crate) fn pd(&self) -> &'a Pd<T> {
        // SAFETY: `raw` is valid by the type's invariant, and the core holds the domain.
        unsafe { Pd::from_raw((*self.raw).pd) }
    }

    /// Gives the queue pair its number.
    pub(crate) fn set_number(&self, number: u32) {
        // SAFETY: `raw` is valid by the type's invariant, and nobody else knows it yet.
        unsafe { (*self.raw).qp_num = number };
    }
}
