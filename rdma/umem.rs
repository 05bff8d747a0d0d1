// SPDX-License-Identifier: GPL-2.0

//! Memory of users.
//!
//! C header: [`include/rdma/ib_umem.h`](srctree/include/rdma/ib_umem.h)

use core::{
    marker::PhantomData,
    mem,
    ptr::{
        self,
        NonNull, //
    }, //
};

use kernel::{
    error::from_err_ptr,
    page::PAGE_SIZE,
    prelude::*,
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Relaxed, //
        }, //
    }, //
};

use crate::bindings;

use super::{
    Access,
    Device,
    Operations, //
};

/// A part of a user's memory that shall be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UserRegion {
    /// Where it starts in the user's address space.
    pub(crate) start: u64,
    /// Bytes.
    pub(crate) length: u64,
    /// The address by which peers know its first byte.
    pub(crate) virt_addr: u64,
    /// What may be done with it.
    pub(crate) access: Access,
}

/// What changes when a region is registered anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MrChange {
    /// Other memory: where it starts, its bytes, and the address by which peers know it.
    pub(crate) memory: Option<(u64, u64, u64)>,
    /// Other rights.
    pub(crate) access: Option<Access>,
}

impl MrChange {
    /// # Errors
    ///
    /// `EOPNOTSUPP` for changes that there are not.
    #[doc(alias = "ib_mr_rereg_flags")]
    pub(super) fn new(
        flags: u32,
        start: u64,
        length: u64,
        virt_addr: u64,
        access: u32,
    ) -> Result<Self> {
        let has = |flag| flags & flag != 0;
        // Whether the domain changes can be seen by the domain that is given.
        if has(!bindings::ib_mr_rereg_flags_IB_MR_REREG_SUPPORTED) {
            return Err(EOPNOTSUPP);
        }
        Ok(Self {
            memory: has(bindings::ib_mr_rereg_flags_IB_MR_REREG_TRANS)
                .then_some((start, length, virt_addr)),
            access: has(bindings::ib_mr_rereg_flags_IB_MR_REREG_ACCESS)
                .then_some(Access::from_raw(access)),
        })
    }
}

/// A part of a user's memory, pinned and mapped for DMA as long as this lives. May outlive the
/// registration of its device.
///
/// A DMA buffer's exporter may take it back at any time, but not while it is [locked](Umem::lock);
/// from then on the memory is nobody's, and [`Umem::pages`] has no pages.
///
/// # Invariants
///
/// - The memory is ours to release, and with it a reference to its device.
/// - If `locked` is set, the memory is that of a DMA buffer, whose lock we have.
pub(crate) struct Umem {
    raw: NonNull<bindings::ib_umem>,
    locked: Atomic<bool>,
}

// SAFETY: The memory may be released on any thread.
unsafe impl Send for Umem {}

// SAFETY: Shared references read only what does not change.
unsafe impl Sync for Umem {}

impl Umem {
    /// Pins and maps memory of the process that runs.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the region is empty or wraps around, `EFAULT` if it is not all there or may not
    /// be used so, `ENOMEM` without memory or when the process may not pin so much.
    #[doc(alias = "ib_umem_get_va")]
    pub(crate) fn get<T: Operations>(dev: &Device<T>, region: &UserRegion) -> Result<Self> {
        let length = usize::try_from(region.length)?;
        if length == 0 {
            return Err(EINVAL);
        }
        // SAFETY: The device is valid; without attributes the memory is given by its address.
        let umem = from_err_ptr(unsafe {
            bindings::ib_umem_get_attr_or_va(
                dev.as_raw(),
                ptr::null(),
                0,
                region.start,
                length,
                // CAST: The rights are a set of bits.
                region.access.into_raw() as c_int,
            )
        })?;
        Self::from_raw(dev, umem)
    }

    /// Pins and maps a part of the DMA buffer that file descriptor `fd` of the process names, and
    /// locks it. [`UserRegion::start`] counts from the buffer's beginning.
    ///
    /// # Errors
    ///
    /// `EBADF` or `EINVAL` if `fd` is no such buffer, `EINVAL` if the region is empty or goes beyond
    /// it, and those of its exporter.
    #[doc(alias = "ib_umem_dmabuf_get_pinned_revocable_and_lock")]
    pub(crate) fn get_dmabuf<T: Operations>(
        dev: &Device<T>,
        region: &UserRegion,
        fd: i32,
    ) -> Result<Self> {
        let length = usize::try_from(region.length)?;
        let start = usize::try_from(region.start)?;
        if length == 0 {
            return Err(EINVAL);
        }
        // SAFETY: The device is valid.
        let umem = from_err_ptr(unsafe {
            bindings::ib_umem_dmabuf_get_pinned_revocable_and_lock(
                dev.as_raw(),
                start,
                length,
                fd,
                // CAST: The rights are a set of bits.
                region.access.into_raw() as c_int,
            )
        })?;
        // The release of the part that all memory of users has knows of the rest.
        // SAFETY: `umem` is valid.
        let umem = unsafe { &raw mut (*umem).umem };
        let umem = Self::from_raw(dev, umem)?;
        // INVARIANT: The core has locked it.
        umem.locked.store(true, Relaxed);
        Ok(umem)
    }

    /// Takes over what the core gave for `dev`.
    fn from_raw<T: Operations>(dev: &Device<T>, umem: *mut bindings::ib_umem) -> Result<Self> {
        let raw = NonNull::new(umem).ok_or(ENOMEM)?;
        // The core unmaps by the device, and holds no reference itself.
        mem::forget(ARef::from(dev));
        // INVARIANT: The destructor releases the memory and puts the device.
        Ok(Self {
            raw,
            locked: Atomic::new(false),
        })
    }

    /// Returns the core's part that DMA buffers have.
    fn dmabuf(&self) -> Option<*mut bindings::ib_umem_dmabuf> {
        // The general part is at the beginning.
        const _: () = assert!(mem::offset_of!(bindings::ib_umem_dmabuf, umem) == 0);
        self.is_dmabuf().then_some(self.raw.as_ptr().cast())
    }

    /// Keeps the exporter of a DMA buffer from taking it back until [`Umem::unlock`], which the same
    /// task must call. Does nothing for other memory.
    #[doc(alias = "ib_umem_dmabuf_revoke_lock")]
    pub(crate) fn lock(&self) {
        if let Some(dmabuf) = self.dmabuf() {
            // SAFETY: The buffer is valid.
            unsafe { bindings::ib_umem_dmabuf_revoke_lock(dmabuf) };
            // INVARIANT: It has just been locked.
            self.locked.store(true, Relaxed);
        }
    }

    /// Lets the exporter of a DMA buffer take it back again, if it was [locked](Umem::lock).
    #[doc(alias = "ib_umem_dmabuf_revoke_unlock")]
    pub(crate) fn unlock(&self) {
        // INVARIANT: Whoever gets the lock next sets this again.
        if let (true, Some(dmabuf)) = (self.locked.xchg(false, Relaxed), self.dmabuf()) {
            // SAFETY: The buffer is valid and locked by the invariant.
            unsafe { bindings::ib_umem_dmabuf_revoke_unlock(dmabuf) };
        }
    }

    /// Has `revoke` called with `cookie` when the exporter takes the buffer back, once, with the
    /// buffer locked; `None`: nobody is told. Unlocks. Does nothing but that for other memory.
    ///
    /// # Safety
    ///
    /// The buffer is locked by this task. `revoke` may be called with `cookie` until another call of
    /// this function.
    #[doc(alias = "ib_umem_dmabuf_set_revoke_locked")]
    pub(super) unsafe fn on_revoke(
        &self,
        revoke: Option<unsafe extern "C" fn(*mut c_void)>,
        cookie: *mut c_void,
    ) {
        if let Some(dmabuf) = self.dmabuf() {
            // SAFETY: By this function's requirements, and the buffer is valid.
            unsafe { bindings::ib_umem_dmabuf_set_revoke_locked(dmabuf, revoke, cookie) };
        }
        self.unlock();
    }

    /// Whether the memory may be written to.
    pub(crate) fn is_writable(&self) -> bool {
        // SAFETY: The memory is valid.
        unsafe { self.raw.as_ref() }.writable() != 0
    }

    /// Whether the memory is that of a DMA buffer.
    pub(crate) fn is_dmabuf(&self) -> bool {
        // SAFETY: The memory is valid.
        unsafe { self.raw.as_ref() }.is_dmabuf() != 0
    }

    /// The largest of the page sizes in the bit mask `sizes` that the memory can be described with,
    /// if users know its first byte by the address `virt`. `None` if it can be by none of them.
    #[doc(alias = "ib_umem_find_best_pgsz")]
    pub(crate) fn best_page_size(&mut self, sizes: u64, virt: u64) -> Option<PageSize> {
        // CAST: `c_ulong` has the 64 bits of a DMA address.
        // SAFETY: The memory is valid, and we have it alone.
        let size =
            unsafe { bindings::ib_umem_find_best_pgsz(self.raw.as_ptr(), sizes as c_ulong, virt) };
        (size != 0).then_some(PageSize(size))
    }

    /// Bytes.
    pub(crate) fn length(&self) -> u64 {
        // SAFETY: The memory is valid.
        // CAST: `usize` has 64 bits or less.
        unsafe { self.raw.as_ref().length as u64 }
    }

    /// Number of pages of the given size.
    #[doc(alias = "ib_umem_num_dma_blocks")]
    pub(crate) fn count(&self, size: PageSize) -> u64 {
        // SAFETY: The memory is valid.
        let umem = unsafe { self.raw.as_ref() };
        // CAST: `usize` has 64 bits or less.
        let length = umem.length as u64;
        let first = umem.iova / size.bytes();
        // The core has checked that the end does not wrap.
        let end = umem.iova.saturating_add(length).div_ceil(size.bytes());
        end.saturating_sub(first)
    }

    /// The pages of the given size, as runs of pages whose DMA addresses follow each other.
    #[doc(alias = "rdma_umem_for_each_dma_block")]
    fn runs(&self, size: PageSize) -> PageRuns<'_> {
        // SAFETY: The memory is valid.
        let umem = unsafe { self.raw.as_ref() };
        let table = &umem.sgt_append.sgt;
        // The first page holds the first byte, which the first segment may come before.
        // CAST: `usize` has 64 bits or less.
        let offset = (umem.address & (PAGE_SIZE - 1)) as u64;

        // INVARIANT: The list is the memory's, and has so many segments that are mapped.
        PageRuns {
            segment: table.sgl,
            segments: if table.sgl.is_null() { 0 } else { table.nents },
            skip: offset & !(size.bytes() - 1),
            left: self.count(size),
            size,
            _umem: PhantomData,
        }
    }

    /// DMA addresses of the pages of the given size.
    pub(crate) fn pages(&self, size: PageSize) -> Pages<'_> {
        Pages {
            runs: self.runs(size),
            run: PageRun { first: 0, count: 0 },
        }
    }
}

impl Drop for Umem {
    fn drop(&mut self) {
        // The release takes the lock itself.
        self.unlock();
        // SAFETY: The memory is ours to release, and then the reference to its device, which keeps
        // the device until then.
        unsafe {
            let dev = self.raw.as_ref().ibdev;
            bindings::ib_umem_release(self.raw.as_ptr());
            bindings::put_device((&raw mut (*dev).__bindgen_anon_1).cast());
        }
    }
}

/// A page size that a user's memory can be described with.
///
/// # Invariants
///
/// A power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PageSize(c_ulong);

impl PageSize {
    /// Bytes of a page.
    pub(crate) fn bytes(self) -> u64 {
        // CAST: `c_ulong` has 64 bits or less.
        self.0 as u64
    }
}

/// Pages whose DMA addresses follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PageRun {
    /// Address of the first.
    first: u64,
    /// How many there are.
    count: u64,
}

/// Walk over the runs of pages of a user's memory.
///
/// # Invariants
///
/// `segment` is a scatterlist's entry with `segments - 1` more behind it, unless `segments` is 0.
struct PageRuns<'a> {
    segment: *mut bindings::scatterlist,
    segments: u32,
    /// Bytes of the segment that lie in pages which were there before.
    skip: u64,
    left: u64,
    size: PageSize,
    _umem: PhantomData<&'a Umem>,
}

impl PageRuns<'_> {
    /// DMA address and bytes of the segment.
    #[doc(alias = "sg_dma_len")]
    fn segment(&self) -> Option<(u64, u64)> {
        if self.segments == 0 {
            return None;
        }
        // SAFETY: By the type's invariant.
        let segment = unsafe { &*self.segment };
        #[cfg(CONFIG_NEED_SG_DMA_LENGTH)]
        let length = segment.dma_length;
        #[cfg(not(CONFIG_NEED_SG_DMA_LENGTH))]
        let length = segment.length;

        Some((segment.dma_address, length.into()))
    }

    /// Goes on to the next segment.
    fn advance(&mut self) {
        // INVARIANT: There is one less.
        self.segments = self.segments.saturating_sub(1);
        if self.segments != 0 {
            // SAFETY: By the type's invariant, and there is another behind it.
            // INVARIANT: That is the entry now.
            self.segment = unsafe { bindings::sg_next(self.segment) };
        }
    }
}

impl Iterator for PageRuns<'_> {
    type Item = PageRun;

    #[doc(alias = "__rdma_block_iter_next")]
    fn next(&mut self) -> Option<PageRun> {
        loop {
            if self.left == 0 {
                return None;
            }
            let (address, length) = self.segment()?;
            let begin = address.wrapping_add(self.skip);
            let first = begin & !(self.size.bytes() - 1);
            let bytes = length
                .saturating_sub(self.skip)
                .saturating_add(begin - first);
            let up = bytes.saturating_add(self.size.bytes() - 1);
            let count = up >> self.size.bytes().trailing_zeros();

            // The last page may go on in the segments behind.
            self.skip = (up & !(self.size.bytes() - 1)).saturating_sub(bytes);
            self.advance();
            while let Some((_, length)) = self.segment() {
                if length > self.skip {
                    break;
                }
                self.skip -= length;
                self.advance();
            }

            if count != 0 {
                let count = count.min(self.left);

                self.left -= count;
                return Some(PageRun { first, count });
            }
        }
    }
}

/// Walk over the pages of a user's memory.
pub(crate) struct Pages<'a> {
    runs: PageRuns<'a>,
    /// What is left of the run.
    run: PageRun,
}

impl Iterator for Pages<'_> {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        if self.run.count == 0 {
            self.run = self.runs.next()?;
        }
        let page = self.run.first;

        self.run.count = self.run.count.saturating_sub(1);
        self.run.first = page.wrapping_add(self.runs.size.bytes());
        Some(page)
    }
}
