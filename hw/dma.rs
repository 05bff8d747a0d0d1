// SPDX-License-Identifier: GPL-2.0

//! Memory that the CPU and the device share.

use kernel::{
    device::{
        Bound,
        Device, //
    },
    dma::{
        attrs::DMA_ATTR_NO_WARN,
        Coherent, //
    },
    io::{
        io_read,
        io_write, //
    },
    prelude::*, //
};

/// The page of the device: backing pages and page lists are made of these, whatever the CPU's is.
pub(crate) const HW_PAGE_SIZE: usize = 4096;

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

    /// Returns the number of quadwords.
    #[inline]
    pub(crate) fn words(&self) -> usize {
        self.memory.len()
    }

    /// Reads the quadword at `index`.
    ///
    /// # Errors
    ///
    /// `ERANGE` if `index` is outside of the region.
    #[inline]
    pub(crate) fn read(&self, index: usize) -> Result<u64> {
        if index >= self.words() {
            return Err(ERANGE);
        }

        let memory = &self.memory;
        Ok(u64::from_le(io_read!(memory, [try: index])))
    }

    /// Writes `value` to the quadword at `index`.
    ///
    /// # Errors
    ///
    /// `ERANGE` if `index` is outside of the region.
    #[inline]
    pub(crate) fn write(&self, index: usize, value: u64) -> Result {
        if index >= self.words() {
            return Err(ERANGE);
        }

        let memory = &self.memory;
        io_write!(memory, [try: index], value.to_le());

        Ok(())
    }

    /// Writes `values` to the quadwords from `index` on.
    ///
    /// # Errors
    ///
    /// `ERANGE` if they do not fit; then some may have been written.
    pub(crate) fn write_all(&self, index: usize, values: &[u64]) -> Result {
        for (i, value) in values.iter().enumerate() {
            self.write(index.checked_add(i).ok_or(ERANGE)?, *value)?;
        }

        Ok(())
    }

    /// Reads `N` quadwords from `index` on.
    ///
    /// # Errors
    ///
    /// `ERANGE` if they are not all inside of the region.
    pub(crate) fn read_all<const N: usize>(&self, index: usize) -> Result<[u64; N]> {
        let mut values = [0; N];

        for (i, value) in values.iter_mut().enumerate() {
            *value = self.read(index.checked_add(i).ok_or(ERANGE)?)?;
        }

        Ok(values)
    }
}
