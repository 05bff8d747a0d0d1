// SPDX-License-Identifier: GPL-2.0

//! Registers that user space maps.

use core::{
    marker::PhantomData,
    mem::offset_of,
    ptr::NonNull, //
};

use kernel::{
    error::to_result,
    mm::virt::VmaNew,
    page::PAGE_SIZE,
    prelude::*,
    types::Opaque, //
};

use crate::bindings;

use super::{
    Device,
    Operations, //
};

/// How a processor may cache a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caching {
    /// Each access goes to the device.
    None,
    /// Writes may be put together.
    WriteCombining,
}

/// What a key stands for.
#[repr(C)]
pub(super) struct Entry {
    head: Opaque<bindings::rdma_user_mmap_entry>,
    /// Page number of the device's register page.
    pfn: usize,
    caching: Caching,
}

impl Entry {
    /// Frees an entry when nobody maps it any more.
    ///
    /// # Safety
    ///
    /// `raw` was made by [`NewUcontext::insert_page`] and nobody uses it any more.
    pub(super) unsafe fn free(raw: *mut bindings::rdma_user_mmap_entry) {
        // SAFETY: The core's part is at offset 0 of what `insert_page` leaked from a box.
        drop(unsafe { KBox::from_raw(raw.cast::<Self>()) });
    }

    /// Maps the entry that user space names by the offset in `vma`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is none, or if user space asks for more or for more rights than it has.
    ///
    /// # Safety
    ///
    /// Both pointers are valid, and the call is one of the core's `mmap` operation.
    pub(super) unsafe fn map(
        context: *mut bindings::ib_ucontext,
        vma: *mut bindings::vm_area_struct,
    ) -> Result {
        // Registers are no code, now or later.
        // SAFETY: The core calls this while the area is set up.
        unsafe { VmaNew::from_raw(vma) }.try_clear_mayexec()?;
        // SAFETY: By this function's requirements.
        let raw = unsafe { bindings::rdma_user_mmap_entry_get(context, vma) };
        if raw.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: All entries of our contexts are made by `insert_page`, with the core's part at
        // offset 0, and we hold a reference.
        let entry = unsafe { &*raw.cast::<Self>() };
        // SAFETY: As above; the page is one of the device's registers.
        let result = to_result(unsafe {
            bindings::irdma_helper_user_mmap_io(
                context,
                vma,
                entry.pfn as c_ulong,
                PAGE_SIZE as c_ulong,
                entry.caching == Caching::WriteCombining,
                raw,
            )
        });
        // SAFETY: Gives back the reference taken above.
        unsafe { bindings::rdma_user_mmap_entry_put(raw) };
        result
    }
}

/// A page of registers that user space may map as long as this lives. Belongs to the user context,
/// which the core needs to take the entry out.
///
/// # Invariants
///
/// The entry is inserted, and its context is there.
pub(super) struct MmapEntry(NonNull<Entry>);

// SAFETY: The core counts and locks entries itself.
unsafe impl Send for MmapEntry {}

// SAFETY: As above; the key is constant.
unsafe impl Sync for MmapEntry {}

impl MmapEntry {
    /// The offset by which user space names the entry to `mmap()`.
    #[doc(alias = "rdma_user_mmap_get_offset")]
    fn key(&self) -> u64 {
        // SAFETY: The entry is inserted.
        let pgoff = unsafe { (*self.0.as_ref().head.get()).start_pgoff };
        // CAST: `usize` has 64 bits or less.
        (pgoff as u64) << bindings::PAGE_SHIFT
    }
}

impl Drop for MmapEntry {
    fn drop(&mut self) {
        // SAFETY: The entry is inserted, and its context is there. The core frees the entry when the
        // last mapping is gone.
        unsafe { bindings::rdma_user_mmap_entry_remove(self.0.as_ref().head.get()) };
    }
}

/// A user context in the making. What it offers to be mapped stays as long as the context, or goes
/// with it when it is not made after all.
pub(crate) struct NewUcontext<'a, T: Operations> {
    raw: *mut bindings::ib_ucontext,
    device: &'a Device<T>,
    entries: KVec<MmapEntry>,
    _context: PhantomData<&'a bindings::ib_ucontext>,
}

impl<'a, T: Operations> NewUcontext<'a, T> {
    /// # Safety
    ///
    /// `raw` is valid for `'a`, and the core has filled in its part.
    pub(super) unsafe fn new(raw: *mut bindings::ib_ucontext, device: &'a Device<T>) -> Self {
        Self {
            raw,
            device,
            entries: KVec::new(),
            _context: PhantomData,
        }
    }

    /// What was offered.
    pub(super) fn into_entries(self) -> KVec<MmapEntry> {
        self.entries
    }

    /// Offers the page of registers at `offset` of the device's first memory window (BAR 0), and
    /// returns the offset by which user space names it to `mmap()`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if that is not a page of the window, `ENOMEM` without memory.
    pub(crate) fn insert_page(&mut self, offset: u64, caching: Caching) -> Result<u64> {
        const {
            assert!(offset_of!(Entry, head) == 0);
        }
        let (start, len) = self.device.registers();
        let page_size = PAGE_SIZE as u64;
        let end = offset.checked_add(page_size).ok_or(EINVAL)?;
        let addr = start.checked_add(offset).ok_or(EINVAL)?;
        if end > len || addr % page_size != 0 {
            return Err(EINVAL);
        }
        // Room first, such that nothing can fail after the core knows the entry.
        self.entries.reserve(1, GFP_KERNEL)?;
        let entry = KBox::new(
            Entry {
                head: Opaque::zeroed(),
                pfn: usize::try_from(addr / page_size)?,
                caching,
            },
            GFP_KERNEL,
        )?;
        let entry = KBox::into_raw(entry);
        // SAFETY: Both are valid; the entry stays until the core calls `mmap_free`.
        let inserted = to_result(unsafe {
            bindings::rdma_user_mmap_entry_insert(self.raw, (*entry).head.get(), PAGE_SIZE)
        });
        if let Err(error) = inserted {
            // SAFETY: The core didn't take the entry.
            drop(unsafe { KBox::from_raw(entry) });
            return Err(error);
        }
        // INVARIANT: Inserted just now, into a context that is there as long as we are.
        // SAFETY: A box is never null.
        let entry = MmapEntry(unsafe { NonNull::new_unchecked(entry) });
        let key = entry.key();
        // There is room for it, so this cannot fail.
        let _ = self.entries.push_within_capacity(entry);
        Ok(key)
    }
}
