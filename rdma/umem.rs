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
        Arc,
        UniqueArc, //
    },
    types::NotThreadSafe, //
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

/// Memory of a user that is pinned.
///
/// # Invariants
///
/// The memory is ours to release, and with it a reference to its device and one to the device that
/// does the DMA.
struct Pinned(NonNull<bindings::ib_umem>);

// SAFETY: The memory may be released on any thread.
unsafe impl Send for Pinned {}

// SAFETY: Shared references read only what does not change.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Takes over what the core gave for `dev`.
    fn new<T: Operations>(dev: &Device<T>, umem: *mut bindings::ib_umem) -> Result<Self> {
        let raw = NonNull::new(umem).ok_or(ENOMEM)?;
        // The core unmaps by both devices, and holds no reference itself.
        mem::forget(ARef::from(dev));
        // SAFETY: The device is valid. The other is set for good when it is registered, and the
        // core has just mapped the memory by it.
        unsafe { bindings::get_device((*dev.as_raw()).dma_device) };
        // INVARIANT: The destructor releases the memory and puts the devices.
        Ok(Self(raw))
    }

    fn as_raw(&self) -> *mut bindings::ib_umem {
        self.0.as_ptr()
    }

    /// The memory as a DMA buffer's, if it is one.
    fn as_dmabuf(&self) -> *mut bindings::ib_umem_dmabuf {
        // The general part is at the beginning.
        const _: () = assert!(mem::offset_of!(bindings::ib_umem_dmabuf, umem) == 0);
        self.0.as_ptr().cast()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: The memory is ours to release, and then the references, which keep the devices
        // until then.
        unsafe {
            let dev = (*self.as_raw()).ibdev;
            bindings::ib_umem_release(self.as_raw());
            bindings::put_device((*dev).dma_device);
            bindings::put_device((&raw mut (*dev).__bindgen_anon_1).cast());
        }
    }
}

/// A part of a user's memory, pinned and mapped for DMA as long as this lives. May outlive the
/// registration of its device.
///
/// A DMA buffer's exporter may take it back at any time, but not while there is a [`LockedUmem`];
/// from then on the memory is nobody's.
pub(crate) struct Umem(Memory);

/// Whose memory it is.
enum Memory {
    /// That of a process.
    Process(Pinned),
    /// That of a DMA buffer.
    Dmabuf(Arc<Pinned>),
}

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
        Ok(Self(Memory::Process(Pinned::new(dev, umem)?)))
    }

    fn as_raw(&self) -> *mut bindings::ib_umem {
        match &self.0 {
            Memory::Process(memory) => memory.as_raw(),
            Memory::Dmabuf(memory) => memory.as_raw(),
        }
    }

    /// Whether the memory may be written to.
    pub(crate) fn is_writable(&self) -> bool {
        // SAFETY: The memory is valid, and this never changes.
        unsafe { bindings::ib_umem::writable_raw(self.as_raw()) != 0 }
    }

    /// Whether the memory is that of a DMA buffer.
    pub(crate) fn is_dmabuf(&self) -> bool {
        matches!(self.0, Memory::Dmabuf(_))
    }

    /// Bytes.
    pub(crate) fn length(&self) -> u64 {
        // SAFETY: The memory is valid, and this never changes.
        // CAST: `usize` has 64 bits or less.
        unsafe { (*self.as_raw()).length as u64 }
    }

    /// What the device sees of the memory.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a DMA buffer: see [`LockedUmem::mapping`].
    pub(crate) fn mapping(&mut self) -> Result<Mapping<'_>> {
        match &self.0 {
            // INVARIANT: The memory is mapped as long as it lives, and we have it alone.
            Memory::Process(memory) => Ok(Mapping {
                raw: memory.as_raw(),
                _umem: PhantomData,
            }),
            Memory::Dmabuf(_) => Err(EINVAL),
        }
    }
}

/// The lock of a DMA buffer, which keeps its exporter from taking it back.
///
/// # Invariants
///
/// The memory is that of a DMA buffer, and this task has its lock.
struct DmabufLock {
    memory: Arc<Pinned>,
    _task: NotThreadSafe,
}

impl Drop for DmabufLock {
    #[doc(alias = "ib_umem_dmabuf_revoke_unlock")]
    fn drop(&mut self) {
        // The memory's release takes the lock itself, but that comes later.
        // SAFETY: By the type's invariant.
        unsafe { bindings::ib_umem_dmabuf_revoke_unlock(self.memory.as_dmabuf()) };
    }
}

/// A new part of a DMA buffer, which its exporter can't take back as long as this lives. A driver
/// gives it to the core, which has it told when the exporter does so later.
///
/// # Invariants
///
/// The buffer has been locked since it was mapped, and there is no second one for it.
pub(crate) struct LockedUmem(DmabufLock);

impl LockedUmem {
    /// Pins and maps a part of the DMA buffer that file descriptor `fd` of the process names.
    /// [`UserRegion::start`] counts from the buffer's beginning.
    ///
    /// # Errors
    ///
    /// `EBADF` or `EINVAL` if `fd` is no such buffer, `EINVAL` if the region is empty or goes beyond
    /// it, `ENOMEM`, and those of its exporter.
    #[doc(alias = "ib_umem_dmabuf_get_pinned_revocable_and_lock")]
    pub(crate) fn get<T: Operations>(
        dev: &Device<T>,
        region: &UserRegion,
        fd: i32,
    ) -> Result<Self> {
        let length = usize::try_from(region.length)?;
        let start = usize::try_from(region.start)?;
        if length == 0 {
            return Err(EINVAL);
        }
        // Room first: what is locked can't be released.
        let room = UniqueArc::new_uninit(GFP_KERNEL)?;
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
        // INVARIANT: The core has mapped and locked it, and nobody else knows it.
        Ok(Self(DmabufLock {
            memory: room.write(Pinned::new(dev, umem.cast())?).into(),
            _task: NotThreadSafe,
        }))
    }

    /// The memory.
    pub(crate) fn umem(&self) -> Umem {
        Umem(Memory::Dmabuf(self.0.memory.clone()))
    }

    /// What the device sees of the memory.
    pub(crate) fn mapping(&mut self) -> Mapping<'_> {
        // INVARIANT: The memory is mapped by the type's invariant, and nobody else can ask for this.
        Mapping {
            raw: self.0.memory.as_raw(),
            _umem: PhantomData,
        }
    }

    /// Has `revoke` called with `cookie` when the exporter takes the buffer back: once, with the buffer
    /// locked, hence not as long as this lives.
    ///
    /// # Safety
    ///
    /// `revoke` may be called with `cookie` until [`WatchedUmem::end`] has returned, which the
    /// caller must see to, as what is returned may be dropped without.
    #[doc(alias = "ib_umem_dmabuf_set_revoke_locked")]
    pub(super) unsafe fn watch(
        &self,
        revoke: unsafe extern "C" fn(*mut c_void),
        cookie: *mut c_void,
    ) -> WatchedUmem {
        let memory = &self.0.memory;
        // SAFETY: By this function's requirements, and the buffer is locked.
        unsafe {
            bindings::ib_umem_dmabuf_set_revoke_locked(memory.as_dmabuf(), Some(revoke), cookie)
        };
        WatchedUmem(memory.clone())
    }
}

/// A part of a DMA buffer that somebody watches.
///
/// # Invariants
///
/// The memory is that of a DMA buffer.
pub(super) struct WatchedUmem(Arc<Pinned>);

impl WatchedUmem {
    /// Has nobody told any more, after `f` has run with the buffer locked.
    #[doc(alias = "ib_umem_dmabuf_revoke_lock")]
    pub(super) fn end<R>(&self, f: impl FnOnce() -> R) -> R {
        // SAFETY: The memory is that of a DMA buffer.
        unsafe { bindings::ib_umem_dmabuf_revoke_lock(self.0.as_dmabuf()) };
        // INVARIANT: It has just been locked.
        let lock = DmabufLock {
            memory: self.0.clone(),
            _task: NotThreadSafe,
        };
        let result = f();
        // SAFETY: As above, and the buffer is locked.
        unsafe {
            bindings::ib_umem_dmabuf_set_revoke_locked(
                lock.memory.as_dmabuf(),
                None,
                ptr::null_mut(),
            )
        };
        result
    }
}

/// What the device sees of a user's memory.
///
/// # Invariants
///
/// The memory is mapped for the lifetime, and nobody else looks at its mapping.
pub(crate) struct Mapping<'a> {
    raw: *mut bindings::ib_umem,
    _umem: PhantomData<&'a mut Umem>,
}

impl Mapping<'_> {
    /// The largest of the page sizes in the bit mask `sizes` that the memory can be described with,
    /// if users know its first byte by the address `virt`. `None` if it can be by none of them.
    #[doc(alias = "ib_umem_find_best_pgsz")]
    pub(crate) fn best_page_size(&mut self, sizes: u64, virt: u64) -> Option<PageSize> {
        // CAST: `c_ulong` has the 64 bits of a DMA address.
        // SAFETY: The memory is valid, and we have it alone.
        let size = unsafe { bindings::ib_umem_find_best_pgsz(self.raw, sizes as c_ulong, virt) };
        (size != 0).then_some(PageSize(size))
    }

    /// Number of pages of the given size.
    #[doc(alias = "ib_umem_num_dma_blocks")]
    pub(crate) fn count(&self, size: PageSize) -> u64 {
        // SAFETY: The memory is valid, and nobody changes it.
        let umem = unsafe { &*self.raw };
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
        // SAFETY: The memory is valid, and nobody changes it.
        let umem = unsafe { &*self.raw };
        let table = &umem.sgt_append.sgt;
        // The first page holds the first byte, which the first segment may come before.
        // CAST: `usize` has 64 bits or less.
        let offset = (umem.address & (PAGE_SIZE - 1)) as u64;

        // INVARIANT: The list is the memory's, which is mapped, and has so many segments.
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
