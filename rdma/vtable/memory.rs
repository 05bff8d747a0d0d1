// SPDX-License-Identifier: GPL-2.0

//! Operations on memory regions, which the core doesn't allocate itself.

use kernel::{
    error::from_result,
    prelude::*, //
};

use crate::{
    bindings,
    rdma::{
        Access,
        Device,
        LockedUmem,
        Mr,
        MrChange,
        MrKeys,
        MrType,
        Operations,
        Pd,
        Udata,
        UserRegion, //
    },
};

use super::VTable;

impl<T: Operations> VTable<T> {
    /// Makes a region with the driver's part that `f` makes. `range` is that of [`Mr::new`]; of
    /// regions that are mapped later the core notes it then.
    ///
    /// # Safety
    ///
    /// `pd` is a protection domain that [`VTable::alloc_pd`] made, and this is an operation.
    unsafe fn new_mr(
        pd: *mut bindings::ib_pd,
        range: (u64, u64),
        f: impl for<'a> FnOnce(
            &'a Device<T>,
            &'a T::RegistrationData<'a>,
            &Pd<T>,
        ) -> Result<(T::Mr, MrKeys)>,
    ) -> Result<*mut bindings::ib_mr> {
        // SAFETY: By this function's requirements.
        let (core_device, pd) = unsafe { ((*pd).device, Pd::from_raw(pd)) };
        // SAFETY: As above.
        let device = unsafe { Device::<T>::from_raw(core_device) };
        // Room first, such that nothing can fail after the device knows the region.
        let room = KBox::<Mr<T>>::new_uninit(GFP_KERNEL)?;
        // SAFETY: By this function's requirements.
        let (made, keys) = unsafe { device.with_data(|device, data| f(device, data, pd)) }?;
        let mr: *mut bindings::ib_mr =
            KBox::into_raw(KBox::write(room, Mr::new(made, keys, range))).cast();
        // SAFETY: It has just been made. The core writes the same, but later.
        unsafe { (*mr).device = core_device };
        Ok(mr)
    }

    /// What the core is given.
    fn to_core(mr: Result<*mut bindings::ib_mr>) -> *mut bindings::ib_mr {
        mr.unwrap_or_else(|error| error.to_ptr())
    }

    /// Has the driver told when the memory of `mr` is taken back.
    ///
    /// # Safety
    ///
    /// [`VTable::new_mr`] made `mr`, which nobody else knows yet.
    unsafe fn watch(mr: *mut bindings::ib_mr, umem: &LockedUmem) {
        // SAFETY: The region is there until `dereg_mr`, which ends this. The core's part is at offset
        // 0, and nobody uses the region yet, as the memory is locked.
        unsafe {
            let watched = umem.watch(Self::revoked, mr.cast());
            (*mr.cast::<Mr<T>>()).set_watched(watched);
        }
    }

    /// # Safety
    ///
    /// `cookie` is a region that [`VTable::new_mr`] made, whose memory is locked.
    unsafe extern "C" fn revoked(cookie: *mut c_void) {
        let mr = cookie.cast::<bindings::ib_mr>();
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*mr).device) };
        // SAFETY: As above. A device has no regions before and after it is registered.
        unsafe { device.with_data(|_, data| T::revoke_mr(data, Mr::from_raw(mr))) };
    }

    /// Puts together what a user wants registered.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if it shall be accessed in the way that a handle says.
    fn region(
        start: u64,
        length: u64,
        virt_addr: u64,
        access: c_int,
        dmah: *mut bindings::ib_dmah,
    ) -> Result<UserRegion> {
        if !dmah.is_null() {
            return Err(EOPNOTSUPP);
        }
        Ok(UserRegion {
            start,
            length,
            virt_addr,
            // CAST: The rights are a set of bits.
            access: Access::from_raw(access as u32),
        })
    }

    /// # Safety
    ///
    /// As [`VTable::new_mr`].
    pub(super) unsafe extern "C" fn get_dma_mr(
        pd: *mut bindings::ib_pd,
        access: c_int,
    ) -> *mut bindings::ib_mr {
        // CAST: The rights are a set of bits.
        let access = Access::from_raw(access as u32);
        // SAFETY: By this function's requirements.
        Self::to_core(unsafe {
            Self::new_mr(pd, (0, 0), |_, data, pd| T::get_dma_mr(data, pd, access))
        })
    }

    /// # Safety
    ///
    /// As [`VTable::new_mr`].
    pub(super) unsafe extern "C" fn alloc_mr(
        pd: *mut bindings::ib_pd,
        mr_type: bindings::ib_mr_type,
        max_num_sg: u32,
    ) -> *mut bindings::ib_mr {
        // SAFETY: By this function's requirements.
        Self::to_core(unsafe {
            Self::new_mr(pd, (0, 0), |_, data, pd| {
                T::alloc_mr(data, pd, MrType::try_from(mr_type)?, max_num_sg)
            })
        })
    }

    /// # Safety
    ///
    /// As [`VTable::new_mr`]; `udata` is that of the call.
    pub(super) unsafe extern "C" fn reg_user_mr(
        pd: *mut bindings::ib_pd,
        start: u64,
        length: u64,
        virt_addr: u64,
        access: c_int,
        dmah: *mut bindings::ib_dmah,
        udata: *mut bindings::ib_udata,
    ) -> *mut bindings::ib_mr {
        let region = Self::region(start, length, virt_addr, access, dmah);
        // SAFETY: By this function's requirements.
        Self::to_core(unsafe {
            Self::new_mr(pd, (virt_addr, length), |device, data, pd| {
                let mut udata = Udata::from_raw(udata).ok_or(EINVAL)?;
                T::reg_user_mr(device, data, pd, region?, &mut udata)
            })
        })
    }

    /// # Safety
    ///
    /// As [`VTable::new_mr`].
    pub(super) unsafe extern "C" fn reg_dmabuf_mr(
        pd: *mut bindings::ib_pd,
        offset: u64,
        length: u64,
        virt_addr: u64,
        fd: c_int,
        access: c_int,
        dmah: *mut bindings::ib_dmah,
        _attrs: *mut bindings::uverbs_attr_bundle,
    ) -> *mut bindings::ib_mr {
        let region = Self::region(offset, length, virt_addr, access, dmah);
        let mut locked = None;
        // SAFETY: By this function's requirements.
        let mr = unsafe {
            Self::new_mr(pd, (virt_addr, length), |device, data, pd| {
                let (made, keys, umem) = T::reg_dmabuf_mr(device, data, pd, region?, fd)?;
                locked = Some(umem);
                Ok((made, keys))
            })
        };
        if let (Ok(mr), Some(umem)) = (&mr, &locked) {
            // SAFETY: It is a new one.
            unsafe { Self::watch(*mr, umem) };
        }
        Self::to_core(mr)
    }

    /// # Safety
    ///
    /// As [`VTable::new_mr`]; `mr` is a user's region that this table made, which nobody else
    /// changes; `udata` is that of the call.
    pub(super) unsafe extern "C" fn rereg_mr(
        mr: *mut bindings::ib_mr,
        flags: c_int,
        start: u64,
        length: u64,
        virt_addr: u64,
        access: c_int,
        pd: *mut bindings::ib_pd,
        udata: *mut bindings::ib_udata,
    ) -> *mut bindings::ib_mr {
        // CAST: Both are sets of bits.
        let change = MrChange::new(flags as u32, start, length, virt_addr, access as u32);
        // SAFETY: By this function's requirements.
        let old = unsafe { Mr::<T>::from_raw(mr) };
        let range = match change {
            Ok(MrChange {
                memory: Some((_, length, iova)),
                ..
            }) => (iova, length),
            _ => (old.iova(), old.length()),
        };
        // SAFETY: By this function's requirements.
        Self::to_core(unsafe {
            Self::new_mr(pd, range, |device, data, pd| {
                Udata::<T>::from_raw(udata).ok_or(EINVAL)?.no_io()?;
                T::rereg_mr(device, data, pd, old, &change?)
            })
        })
    }

    /// # Safety
    ///
    /// The core calls this with a region that this table made.
    pub(super) unsafe extern "C" fn dereg_mr(
        mr: *mut bindings::ib_mr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        let device = unsafe { Device::<T>::from_raw((*mr).device) };
        from_result(|| {
            // SAFETY: As above.
            if let Some(mut udata) = unsafe { Udata::<T>::from_raw(udata) } {
                udata.no_io()?;
            }
            // SAFETY: As above.
            let region = unsafe { Mr::from_raw(mr) };
            // SAFETY: As above, and this is an operation.
            let end = || unsafe { device.with_data(|_, data| T::dereg_mr(data, region)) };
            match region.watched() {
                // It ends whatever the driver says, as the operation's description has it.
                Some(umem) => drop(umem.end(end)),
                None => end()?,
            }
            // SAFETY: The core's part is at offset 0 of what `new_mr` leaked from a box.
            drop(unsafe { KBox::from_raw(mr.cast::<Mr<T>>()) });
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// The core calls this with a region that [`VTable::alloc_mr`] made and a mapped scatter list.
    #[doc(alias = "irdma_map_mr_sg")]
    pub(super) unsafe extern "C" fn map_mr_sg(
        mr: *mut bindings::ib_mr,
        sg: *mut bindings::scatterlist,
        nents: c_int,
        offset: *mut c_uint,
    ) -> c_int {
        // SAFETY: By this function's requirements.
        T::clear_pages(unsafe { Mr::from_raw(mr) });
        // SAFETY: By this function's requirements.
        unsafe { bindings::ib_sg_to_pages(mr, sg, nents, offset, Some(Self::set_page)) }
    }

    /// # Safety
    ///
    /// Called by `ib_sg_to_pages()` with the region given to it.
    unsafe extern "C" fn set_page(mr: *mut bindings::ib_mr, addr: u64) -> c_int {
        // SAFETY: By this function's requirements.
        from_result(|| T::add_page(unsafe { Mr::from_raw(mr) }, addr).map(|()| 0))
    }
}
