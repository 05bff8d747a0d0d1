// SPDX-License-Identifier: GPL-2.0

//! Operations that make, change and destroy objects.

use kernel::{
    error::from_result,
    prelude::*, //
};

use crate::{
    bindings,
    rdma::{
        link::{
            CqLink,
            QpLink, //
        },
        mmap::{
            Entry,
            NewUcontext, //
        },
        Ah,
        AhAttr,
        Cq,
        CqInitAttr,
        Device,
        Gid,
        NewQp,
        Operations,
        Pd,
        Qp,
        QpAttr,
        QpInitAttr,
        Ucontext,
        Udata, //
    },
};

use super::VTable;

impl<T: Operations> VTable<T> {
    /// # Safety
    ///
    /// The core calls this with a context of a registered device, its own part filled in.
    pub(super) unsafe extern "C" fn alloc_ucontext(
        context: *mut bindings::ib_ucontext,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*context).device) };
        from_result(|| {
            // SAFETY: As above.
            let mut udata = unsafe { Udata::without_context(udata) }.ok_or(EINVAL)?;
            // SAFETY: As above.
            let mut new = unsafe { NewUcontext::new(context, device) };
            // SAFETY: This is an operation.
            let made = unsafe {
                device.with_data(|_, data| T::alloc_ucontext(data, &mut new, &mut udata))
            };
            let made = made?;
            // SAFETY: The core gave us room for it.
            unsafe { Ucontext::<T>::init(context, new.into_entries(), made) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// The core calls this once with what [`VTable::alloc_ucontext`] made.
    pub(super) unsafe extern "C" fn dealloc_ucontext(context: *mut bindings::ib_ucontext) {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*context).device) };
        // SAFETY: By this function's requirements, and this is an operation.
        unsafe {
            device.with_data(|_, data| T::dealloc_ucontext(data, Ucontext::<T>::from_raw(context)));
            Ucontext::<T>::drop_data(context);
        }
    }

    /// Lets the core take a device away from its users. It unmaps their mappings itself.
    ///
    /// # Safety
    ///
    /// None.
    #[doc(alias = "irdma_disassociate_ucontext")]
    pub(super) unsafe extern "C" fn disassociate_ucontext(_context: *mut bindings::ib_ucontext) {}

    /// # Safety
    ///
    /// The core calls this with valid pointers.
    #[doc(alias = "irdma_mmap")]
    pub(super) unsafe extern "C" fn mmap(
        context: *mut bindings::ib_ucontext,
        vma: *mut bindings::vm_area_struct,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        from_result(|| unsafe { Entry::map(context, vma) }.map(|()| 0))
    }

    /// # Safety
    ///
    /// The core calls this once with an entry that was removed and is not in use.
    #[doc(alias = "irdma_mmap_free")]
    pub(super) unsafe extern "C" fn mmap_free(entry: *mut bindings::rdma_user_mmap_entry) {
        // SAFETY: By this function's requirements; all entries are made by `NewUcontext`.
        unsafe { Entry::free(entry) };
    }

    /// # Safety
    ///
    /// The core calls this with a domain of a registered device, its own part filled in.
    pub(super) unsafe extern "C" fn alloc_pd(
        pd: *mut bindings::ib_pd,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*pd).device) };
        from_result(|| {
            // SAFETY: As above.
            let mut udata = unsafe { Udata::from_raw(udata) };
            // SAFETY: This is an operation.
            let made = unsafe { device.with_data(|_, data| T::alloc_pd(data, udata.as_mut())) }?;
            // SAFETY: The core gave us room for it.
            unsafe { Pd::<T>::data_slot(pd).write(made) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// The core calls this with what [`VTable::alloc_pd`] made.
    pub(super) unsafe extern "C" fn dealloc_pd(
        pd: *mut bindings::ib_pd,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*pd).device) };
        from_result(|| {
            // SAFETY: As above.
            no_io::<T>(unsafe { Udata::from_raw(udata) })?;
            // SAFETY: As above, and this is an operation.
            unsafe {
                device.with_data(|_, data| T::dealloc_pd(data, Pd::from_raw(pd)));
                Pd::<T>::drop_data(pd);
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// The core calls this with a handle of a registered device, its own part filled in.
    pub(super) unsafe extern "C" fn create_ah(
        ah: *mut bindings::ib_ah,
        attr: *mut bindings::rdma_ah_init_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*ah).device) };
        from_result(|| {
            // SAFETY: As above.
            let (mut udata, pd, ah_attr, flags) = unsafe {
                (
                    Udata::from_raw(udata),
                    Pd::from_raw((*ah).pd),
                    AhAttr::from_raw((*attr).ah_attr),
                    (*attr).flags,
                )
            };
            let may_sleep = flags & bindings::rdma_create_ah_flags_RDMA_CREATE_AH_SLEEPABLE != 0;
            // SAFETY: This is an operation.
            let made = unsafe {
                device.with_data(|_, data| {
                    T::create_ah(data, pd, &ah_attr, may_sleep, udata.as_mut())
                })
            }?;
            // SAFETY: The core gave us room for it.
            unsafe { Ah::<T>::data_slot(ah).write(made) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// The core calls this with what [`VTable::create_ah`] made.
    pub(super) unsafe extern "C" fn destroy_ah(ah: *mut bindings::ib_ah, flags: u32) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*ah).device) };
        let may_sleep = flags & bindings::rdma_destroy_ah_flags_RDMA_DESTROY_AH_SLEEPABLE != 0;
        // SAFETY: As above, and this is an operation.
        unsafe {
            device.with_data(|_, data| T::destroy_ah(data, Ah::from_raw(ah), may_sleep));
            Ah::<T>::drop_data(ah);
        }
        0
    }

    /// # Safety
    ///
    /// As [`VTable::destroy_ah`]; `attr` is valid.
    pub(super) unsafe extern "C" fn query_ah(
        ah: *mut bindings::ib_ah,
        attr: *mut bindings::rdma_ah_attr,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*ah).device) };
        from_result(|| {
            // SAFETY: As above.
            let handle = unsafe { Ah::from_raw(ah) };
            // SAFETY: This is an operation.
            let queried = unsafe { device.with_data(|_, data| T::query_ah(data, handle)) }?;
            // SAFETY: By this function's requirements.
            unsafe { attr.write(queried.into_raw()) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// The core calls this with a queue of a registered device, its own part filled in. `attrs` is
    /// null unless a user asks.
    pub(super) unsafe extern "C" fn create_cq(
        cq: *mut bindings::ib_cq,
        attr: *const bindings::ib_cq_init_attr,
        attrs: *mut bindings::uverbs_attr_bundle,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let (device, attr) = unsafe { (Device::<T>::from_raw((*cq).device), &*attr) };
        let attr = CqInitAttr {
            cqe: attr.cqe,
            comp_vector: attr.comp_vector,
            flags: attr.flags,
        };
        from_result(|| {
            // SAFETY: As above.
            let mut udata = unsafe { Udata::from_raw(bindings::irdma_helper_bundle_udata(attrs)) };
            let link = CqLink::new()?;
            // SAFETY: This is an operation.
            let (made, cqe) = unsafe {
                device.with_data(|_, data| T::create_cq(data, &link, &attr, udata.as_mut()))
            }?;
            // SAFETY: The core gave us room for it. The link is cut before the queue is freed.
            unsafe {
                (*cq).cqe = c_int::try_from(cqe).unwrap_or(c_int::MAX);
                Cq::<T>::init(cq, link.clone(), made);
                link.connect(cq);
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// The core calls this with a user's queue that [`VTable::create_cq`] made, once at a time;
    /// `udata` is that of the call.
    pub(super) unsafe extern "C" fn resize_cq(
        cq: *mut bindings::ib_cq,
        cqe: c_uint,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*cq).device) };
        from_result(|| {
            // SAFETY: As above, and this is an operation.
            let granted = unsafe {
                let mut udata = Udata::from_raw(udata).ok_or(EINVAL)?;
                device.with_data(|_, data| T::resize_cq(data, Cq::from_raw(cq), cqe, &mut udata))
            }?;
            // SAFETY: As above.
            unsafe { (*cq).cqe = c_int::try_from(granted).unwrap_or(c_int::MAX) };
            Ok(0)
        })
    }

    /// Keeps a queue of the kernel from telling of completions any more. The core cancels the work
    /// that polls the queue after this and before it destroys the queue; an event between the two
    /// would have that work run on a queue that is gone.
    ///
    /// # Safety
    ///
    /// As [`VTable::destroy_cq`].
    pub(super) unsafe extern "C" fn pre_destroy_cq(cq: *mut bindings::ib_cq) -> c_int {
        // SAFETY: By this function's requirements.
        unsafe { Cq::<T>::from_raw(cq) }.link().cut();
        0
    }

    /// # Safety
    ///
    /// The core calls this with what [`VTable::create_cq`] made.
    pub(super) unsafe extern "C" fn destroy_cq(
        cq: *mut bindings::ib_cq,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*cq).device) };
        from_result(|| {
            // SAFETY: As above.
            no_io::<T>(unsafe { Udata::from_raw(udata) })?;
            // SAFETY: As above, and this is an operation.
            unsafe {
                let queue = Cq::<T>::from_raw(cq);
                device.with_data(|_, data| T::destroy_cq(data, queue));
                queue.link().cut();
                Cq::<T>::drop_data(cq);
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// The core calls this with a queue pair of a registered device, its own part filled in.
    pub(super) unsafe extern "C" fn create_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_init_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*qp).device) };
        from_result(|| {
            // SAFETY: As above.
            let (mut udata, mut attr) = unsafe {
                (
                    Udata::from_raw(udata),
                    QpInitAttr::<T>::from_raw(&mut *attr),
                )
            };
            // Pairs of the types that we know have all of these, but in-kernel users may forget it.
            attr.qp_type()?;
            attr.send_cq()?;
            attr.recv_cq()?;
            // SAFETY: As above.
            if unsafe { (*qp).pd }.is_null() {
                return Err(EINVAL);
            }
            let link = QpLink::new()?;
            // SAFETY: As above, and this is an operation.
            let made = unsafe {
                let new = NewQp::new(qp, &link);
                device.with_data(|_, data| T::create_qp(data, new, &mut attr, udata.as_mut()))
            }?;
            // SAFETY: The core gave us room for it. The link is cut before the pair is freed.
            unsafe {
                Qp::<T>::init(qp, link.clone(), made);
                link.connect(qp);
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// The core calls this with a queue pair that [`VTable::create_qp`] made.
    pub(super) unsafe extern "C" fn modify_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_attr,
        mask: c_int,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*qp).device) };
        from_result(|| {
            // SAFETY: As above, and this is an operation.
            unsafe {
                let mut udata = Udata::from_raw(udata);
                let attr = QpAttr::new(&*attr, mask);
                device.with_data(|_, data| {
                    T::modify_qp(data, Qp::from_raw(qp), &attr, udata.as_mut())
                })
            }?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// As [`VTable::modify_qp`].
    pub(super) unsafe extern "C" fn query_qp(
        qp: *mut bindings::ib_qp,
        attr: *mut bindings::ib_qp_attr,
        _mask: c_int,
        init: *mut bindings::ib_qp_init_attr,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let (device, attr, init) =
            unsafe { (Device::<T>::from_raw((*qp).device), &mut *attr, &mut *init) };
        from_result(|| {
            // SAFETY: As above, and this is an operation.
            let queried =
                unsafe { device.with_data(|_, data| T::query_qp(data, Qp::from_raw(qp))) };
            let queried = queried?;
            *init = pin_init::zeroed();
            queried.write_to(attr, init);
            // SAFETY: As above.
            unsafe {
                init.event_handler = (*qp).event_handler;
                init.qp_context = (*qp).qp_context;
                init.send_cq = (*qp).send_cq;
                init.recv_cq = (*qp).recv_cq;
                init.srq = (*qp).srq;
                init.qp_type = (*qp).qp_type;
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// The core calls this with what [`VTable::create_qp`] made.
    pub(super) unsafe extern "C" fn destroy_qp(
        qp: *mut bindings::ib_qp,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*qp).device) };
        from_result(|| {
            // SAFETY: As above.
            no_io::<T>(unsafe { Udata::from_raw(udata) })?;
            // SAFETY: As above, and this is an operation.
            unsafe {
                let pair = Qp::<T>::from_raw(qp);
                device.with_data(|_, data| T::destroy_qp(data, pair));
                pair.link().cut();
                Qp::<T>::drop_data(qp);
            }
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// As [`VTable::modify_qp`].
    pub(super) unsafe extern "C" fn attach_mcast(
        qp: *mut bindings::ib_qp,
        gid: *mut bindings::ib_gid,
        lid: u16,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let (device, gid) = unsafe { (Device::<T>::from_raw((*qp).device), Gid::from_raw(&*gid)) };
        from_result(|| {
            // SAFETY: As above, and this is an operation.
            unsafe {
                device.with_data(|_, data| T::attach_mcast(data, Qp::from_raw(qp), gid, lid))
            }?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// As [`VTable::modify_qp`].
    pub(super) unsafe extern "C" fn detach_mcast(
        qp: *mut bindings::ib_qp,
        gid: *mut bindings::ib_gid,
        lid: u16,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let (device, gid) = unsafe { (Device::<T>::from_raw((*qp).device), Gid::from_raw(&*gid)) };
        from_result(|| {
            // SAFETY: As above, and this is an operation.
            unsafe {
                device.with_data(|_, data| T::detach_mcast(data, Qp::from_raw(qp), gid, lid))
            }?;
            Ok(0)
        })
    }
}

/// For verbs in which user space has nothing to tell or to learn.
fn no_io<T: Operations>(udata: Option<Udata<'_, T>>) -> Result {
    match udata {
        Some(mut udata) => udata.no_io(),
        None => Ok(()),
    }
}
