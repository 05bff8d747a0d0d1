// SPDX-License-Identifier: GPL-2.0

//! Memory that the CPU and the device share.

use core::{
    cell::UnsafeCell,
    slice,
    sync::atomic::{
        compiler_fence,
        Ordering, //
    }, //
};

use kernel::{
    device::{
        Bound,
        Device, //
    },
    dma::{
        attrs::DMA_ATTR_NO_WARN,
        Coherent, //
    },
    prelude::*,
    sync::barrier::{
        dma_mb,
        Full,
        Read,
        Write, //
    }, //
};

use crate::uk::memory::Word;

/// The page of the device: backing pages and page lists are made of these, whatever the CPU's is.
pub(crate) const HW_PAGE_SIZE: usize = 4096;

/// A quadword of memory that the CPU and the device share.
///
/// Each access is one volatile access in the device's byte order (little endian).
#[repr(transparent)]
pub(crate) struct DmaWord(UnsafeCell<u64>);

// SAFETY: The only accesses are single loads and stores of an aligned quadword, which are to other
// CPUs, as to the device, what those of `READ_ONCE()` and `WRITE_ONCE()` are.
unsafe impl Sync for DmaWord {}

/// Orders loads of shared memory before the call before those after it, as `dma_rmb()`.
#[inline]
fn order_loads() {
    if cfg!(CONFIG_X86_64) {
        // Loads are not reordered there, and the barrier of the kernel crate is a function's call.
        compiler_fence(Ordering::Acquire);
    } else {
        dma_mb(Read);
    }
}

/// Orders stores to shared memory before the call before those after it, as `dma_wmb()`.
#[inline]
fn order_stores() {
    if cfg!(CONFIG_X86_64) {
        // As above: stores to ordinary memory are not reordered.
        compiler_fence(Ordering::Release);
    } else {
        dma_mb(Write);
    }
}

/// Orders loads of shared memory before the call before stores to it after the call.
#[inline]
fn order_loads_before_stores() {
    if cfg!(CONFIG_X86_64) {
        // As above: no store passes an earlier load.
        compiler_fence(Ordering::AcqRel);
    } else {
        dma_mb(Full);
    }
}

impl Word for DmaWord {
    #[inline]
    fn load(&self) -> u64 {
        // SAFETY: The pointer comes from a reference, hence is valid and aligned. As to races, see
        // `Sync`.
        u64::from_le(unsafe { self.0.get().read_volatile() })
    }

    #[inline]
    fn load_first(&self) -> u64 {
        let value = self.load();

        order_loads();
        value
    }

    #[inline]
    fn store(&self, value: u64) {
        // SAFETY: The pointer comes from a reference to a cell, hence is valid and aligned, and may
        // be written. As to races, see `Sync`.
        unsafe { self.0.get().write_volatile(value.to_le()) }
    }

    #[inline]
    fn publish(&self, value: u64) {
        order_stores();
        self.store(value);
    }
}

/// A zeroed, physically contiguous, coherent region, read and written by quadwords.
///
/// Each access is one volatile access in the device's byte order (little endian). The region
/// begins on a page boundary, which satisfies every alignment that the device asks for (512 bytes
/// at most). The region is given back on drop: the device must have let go of it before.
pub(crate) struct DmaBuffer {
    memory: Coherent<[u64]>,
}

impl DmaBuffer {
    /// Allocates `bytes` bytes, rounded up to a whole number of quadwords.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if `bytes` is zero.
    /// - `ENOMEM` if there is no such region.
    #[doc(alias = "dma_alloc_coherent")]
    pub(crate) fn new(device: &Device<Bound>, bytes: usize) -> Result<Self> {
        Ok(Self {
            memory: Coherent::zeroed_slice(device, bytes.div_ceil(8), GFP_KERNEL)?,
        })
    }

    /// As [`DmaBuffer::new`], but a failure is not logged: the caller has another way to go.
    ///
    /// # Errors
    ///
    /// As [`DmaBuffer::new`].
    pub(crate) fn new_quiet(device: &Device<Bound>, bytes: usize) -> Result<Self> {
        Ok(Self {
            memory: Coherent::zeroed_slice_with_attrs(
                device,
                bytes.div_ceil(8),
                GFP_KERNEL,
                DMA_ATTR_NO_WARN,
            )?,
        })
    }

    /// Returns the address at which the device finds the region.
    #[inline]
    pub(crate) fn address(&self) -> u64 {
        self.memory.dma_address()
    }

    /// Returns the size in bytes.
    #[inline]
    pub(crate) fn size(&self) -> usize {
        self.memory.size()
    }

    /// Returns the region's quadwords.
    #[inline]
    pub(crate) fn words(&self) -> &[DmaWord] {
        // SAFETY: The region is valid, aligned and of that length as long as `self` is borrowed. A
        // `DmaWord` is a quadword, any value of which is one. It is a cell, so that the device and
        // others may change it meanwhile, and nobody makes a reference to what is in it.
        unsafe { slice::from_raw_parts(self.memory.as_ptr().cast(), self.memory.len()) }
    }

    /// Reads the quadword at `index`.
    ///
    /// # Errors
    ///
    /// `ERANGE` if `index` is outside of the region.
    #[inline]
    pub(crate) fn read(&self, index: usize) -> Result<u64> {
        Ok(self.words().get(index).ok_or(ERANGE)?.load())
    }

    /// Writes `value` to the quadword at `index`.
    ///
    /// # Errors
    ///
    /// `ERANGE` if `index` is outside of the region.
    #[inline]
    pub(crate) fn write(&self, index: usize, value: u64) -> Result {
        self.words().get(index).ok_or(ERANGE)?.store(value);

        Ok(())
    }

    /// Writes `value` to the quadword at `index` after all that was read before, which the device may
    /// use again then.
    ///
    /// # Errors
    ///
    /// As [`Self::write`].
    #[inline]
    pub(crate) fn hand_back(&self, index: usize, value: u64) -> Result {
        order_loads_before_stores();
        self.write(index, value)
    }

    /// Writes `values` to the quadwords from `index` on.
    ///
    /// # Errors
    ///
    /// `ERANGE` if they do not fit; then nothing is written.
    pub(crate) fn write_all(&self, index: usize, values: &[u64]) -> Result {
        let words = self
            .words()
            .get(index..)
            .and_then(|words| words.get(..values.len()))
            .ok_or(ERANGE)?;

        for (word, value) in words.iter().zip(values) {
            word.store(*value);
        }

        Ok(())
    }

    /// Reads `N` quadwords from `index` on.
    ///
    /// # Errors
    ///
    /// `ERANGE` if they are not all inside of the region.
    pub(crate) fn read_all<const N: usize>(&self, index: usize) -> Result<[u64; N]> {
        let words = self
            .words()
            .get(index..)
            .and_then(|words| words.first_chunk::<N>())
            .ok_or(ERANGE)?;

        Ok(words.each_ref().map(DmaWord::load))
    }
}
