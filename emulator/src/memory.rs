// SPDX-License-Identifier: GPL-2.0
//! Guest memory: the regions that the client maps for DMA.
//!
//! The client sends a file descriptor with each region of RAM. The region is
//! mapped once, so the engine reads and writes guest memory in place. The
//! guest may write the same bytes at any time; every access therefore copies,
//! and nothing here hands out a Rust reference to guest memory.

use std::fs::File;
use std::sync::atomic::Ordering;

use thiserror::Error;
use vm_memory::mmap::MmapRegion;
use vm_memory::volatile_memory::VolatileSlice;
use vm_memory::{Bytes, FileOffset, VolatileMemory};

/// An access to an address that no region maps, or that its region forbids.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("DMA {} of {len} bytes at {address:#x} outside of the mapped memory", if *write { "write" } else { "read" })]
pub struct DmaError {
    /// The first address of the access that failed.
    pub address: u64,
    /// The length of the access in bytes.
    pub len: usize,
    /// Whether it was a write.
    pub write: bool,
}

/// Why a region was not mapped or unmapped.
#[derive(Debug, Error)]
pub enum MapError {
    /// The region is empty or reaches past the end of the address space.
    #[error("region {address:#x}+{size:#x} is not a range of addresses")]
    Range {
        /// First address.
        address: u64,
        /// Size in bytes.
        size: u64,
    },
    /// The region overlaps one that is mapped.
    #[error("region {address:#x}+{size:#x} overlaps a mapped one")]
    Overlap {
        /// First address.
        address: u64,
        /// Size in bytes.
        size: u64,
    },
    /// No region with exactly this address and size is mapped.
    #[error("region {address:#x}+{size:#x} is not mapped")]
    Unknown {
        /// First address.
        address: u64,
        /// Size in bytes.
        size: u64,
    },
    /// The file could not be mapped.
    #[error("mapping region {address:#x}: {source}")]
    Map {
        /// First address.
        address: u64,
        /// What the mapping said.
        source: vm_memory::mmap::MmapRegionError,
    },
}

#[derive(Debug)]
struct Region {
    start: u64,
    len: u64,
    writable: bool,
    /// `None`: a region without a file (another device's BAR), which the
    /// client announces but which cannot be reached.
    mapping: Option<MmapRegion>,
}

impl Region {
    fn end(&self) -> u64 {
        self.start + self.len
    }
}

/// The memory of one client, as seen by the function's DMA.
#[derive(Debug, Default)]
pub struct GuestMemory {
    /// Sorted by address, not overlapping.
    regions: Vec<Region>,
}

/// A piece of guest memory that is contiguous in the emulator's own memory.
pub type Piece<'a> = VolatileSlice<'a>;

impl GuestMemory {
    /// Returns a memory with nothing mapped.
    pub fn new() -> Self {
        Self::default()
    }

    /// Maps `size` bytes of `file` from `offset` on at guest address
    /// `address`. Without a file the range is only remembered.
    pub fn map(
        &mut self,
        address: u64,
        size: u64,
        file: Option<(File, u64)>,
        writable: bool,
    ) -> Result<(), MapError> {
        let end = address.checked_add(size).filter(|_| size != 0);
        let (Some(end), Ok(len)) = (end, usize::try_from(size)) else {
            return Err(MapError::Range { address, size });
        };
        let at = self.regions.partition_point(|r| r.start < address);
        let before = at.checked_sub(1).and_then(|i| self.regions.get(i));
        if before.is_some_and(|r| r.end() > address)
            || self.regions.get(at).is_some_and(|r| r.start < end)
        {
            return Err(MapError::Overlap { address, size });
        }
        let mapping = file
            .map(|(file, offset)| MmapRegion::from_file(FileOffset::new(file, offset), len))
            .transpose()
            .map_err(|source| MapError::Map { address, source })?;
        self.regions.insert(
            at,
            Region {
                start: address,
                len: size,
                writable,
                mapping,
            },
        );
        Ok(())
    }

    /// Unmaps the region that was mapped with exactly this address and size.
    pub fn unmap(&mut self, address: u64, size: u64) -> Result<(), MapError> {
        let found = self
            .regions
            .binary_search_by_key(&address, |r| r.start)
            .ok()
            .filter(|&i| self.regions[i].len == size)
            .ok_or(MapError::Unknown { address, size })?;
        self.regions.remove(found);
        Ok(())
    }

    /// Unmaps everything.
    pub fn clear(&mut self) {
        self.regions.clear();
    }

    /// Returns whether `len` bytes at `address` are mapped (and writable, if
    /// `write`).
    pub fn contains(&self, address: u64, len: usize, write: bool) -> bool {
        self.walk(address, len, write, |_| ()).is_ok()
    }

    /// Hands out the pieces that make up `len` bytes at `address`, in order,
    /// for reading. All of the range is checked before the first call.
    pub fn for_each_piece(
        &self,
        address: u64,
        len: usize,
        f: impl FnMut(Piece<'_>),
    ) -> Result<(), DmaError> {
        self.checked_walk(address, len, false, f)
    }

    /// Like [`Self::for_each_piece`], for writing.
    pub fn for_each_piece_mut(
        &self,
        address: u64,
        len: usize,
        f: impl FnMut(Piece<'_>),
    ) -> Result<(), DmaError> {
        self.checked_walk(address, len, true, f)
    }

    /// Fills `buf` from guest memory. On an error `buf` is unchanged.
    pub fn read(&self, address: u64, buf: &mut [u8]) -> Result<(), DmaError> {
        let mut done = 0;
        self.checked_walk(address, buf.len(), false, |piece| {
            done += piece.copy_to(&mut buf[done..]);
        })
    }

    /// Appends `len` bytes of guest memory to `out`. On an error `out` is
    /// unchanged.
    pub fn read_into(&self, address: u64, len: usize, out: &mut Vec<u8>) -> Result<(), DmaError> {
        if !self.contains(address, len, false) {
            return Err(DmaError {
                address,
                len,
                write: false,
            });
        }
        let start = out.len();
        out.resize(start + len, 0);
        self.read(address, &mut out[start..])
    }

    /// Writes `buf` to guest memory. On an error guest memory is unchanged.
    pub fn write(&self, address: u64, buf: &[u8]) -> Result<(), DmaError> {
        let mut done = 0;
        self.checked_walk(address, buf.len(), true, |piece| {
            let end = done + piece.len();
            piece.copy_from(&buf[done..end]);
            done = end;
        })
    }

    /// Reads a little-endian `u64`; an aligned one is read in one access,
    /// before everything that follows.
    pub fn read_u64(&self, address: u64) -> Result<u64, DmaError> {
        if let Some(piece) = self.aligned_u64(address, false) {
            if let Ok(value) = piece.load::<u64>(0, Ordering::Acquire) {
                return Ok(u64::from_le(value));
            }
        }
        let mut buf = [0; 8];
        self.read(address, &mut buf)?;
        Ok(u64::from_le_bytes(buf))
    }

    /// Writes a little-endian `u64`; an aligned one is written in one access,
    /// after everything before it, so a valid bit is published last.
    pub fn write_u64(&self, address: u64, value: u64) -> Result<(), DmaError> {
        if let Some(piece) = self.aligned_u64(address, true) {
            if piece.store(value.to_le(), 0, Ordering::Release).is_ok() {
                return Ok(());
            }
        }
        self.write(address, &value.to_le_bytes())
    }

    fn aligned_u64(&self, address: u64, write: bool) -> Option<Piece<'_>> {
        let region = self.region_at(address)?;
        if address % 8 != 0 || (write && !region.writable) {
            return None;
        }
        let offset = usize::try_from(address - region.start).ok()?;
        region.mapping.as_ref()?.get_slice(offset, 8).ok()
    }

    fn region_at(&self, address: u64) -> Option<&Region> {
        let after = self.regions.partition_point(|r| r.start <= address);
        let region = self.regions.get(after.checked_sub(1)?)?;
        (address < region.end()).then_some(region)
    }

    fn checked_walk(
        &self,
        address: u64,
        len: usize,
        write: bool,
        f: impl FnMut(Piece<'_>),
    ) -> Result<(), DmaError> {
        // One region holds nearly every range: then one look-up does.
        if let Some(piece) = self.single(address, len, write) {
            let mut f = f;
            f(piece);
            return Ok(());
        }
        self.walk(address, len, write, |_| ())
            .and_then(|()| self.walk(address, len, write, f))
    }

    fn single(&self, address: u64, len: usize, write: bool) -> Option<Piece<'_>> {
        let region = self.region_at(address)?;
        if write && !region.writable {
            return None;
        }
        let offset = usize::try_from(address - region.start).ok()?;
        region.mapping.as_ref()?.get_slice(offset, len).ok()
    }

    fn walk(
        &self,
        address: u64,
        len: usize,
        write: bool,
        mut f: impl FnMut(Piece<'_>),
    ) -> Result<(), DmaError> {
        let mut at = address;
        let mut left = len;
        while left > 0 {
            let error = DmaError {
                address: at,
                len,
                write,
            };
            let region = self.region_at(at).ok_or(error)?;
            let here = usize::try_from(region.end() - at).map_or(left, |n| n.min(left));
            let piece = self.single(at, here, write).ok_or(error)?;
            f(piece);
            left -= here;
            at = at.wrapping_add(here as u64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::memory_file;

    fn two_regions() -> GuestMemory {
        let mut memory = GuestMemory::new();
        let file = memory_file(0x4000);
        memory
            .map(
                0x3000,
                0x1000,
                Some((file.try_clone().unwrap(), 0x1000)),
                true,
            )
            .unwrap();
        memory.map(0x2000, 0x1000, Some((file, 0)), true).unwrap();
        memory
    }

    #[test]
    fn access_spans_neighbours() {
        let memory = two_regions();
        let data: Vec<u8> = (0..16).collect();
        memory.write(0x2ff8, &data).unwrap();
        let mut back = [0; 16];
        memory.read(0x2ff8, &mut back).unwrap();
        assert_eq!(back, data[..]);
        let mut lens = vec![];
        memory
            .for_each_piece(0x2ff8, 16, |p| lens.push(p.len()))
            .unwrap();
        assert_eq!(lens, [8, 8]);
        assert_eq!(memory.read_u64(0x3000), Ok(0x0f0e_0d0c_0b0a_0908));
        assert_eq!(memory.read_u64(0x2ffc), Ok(0x0b0a_0908_0706_0504));
    }

    #[test]
    fn outside_changes_nothing() {
        let memory = two_regions();
        memory.write_u64(0x3ff8, 5).unwrap();
        let error = memory.write(0x3ff8, &[1; 16]).unwrap_err();
        assert_eq!(
            error,
            DmaError {
                address: 0x4000,
                len: 16,
                write: true
            }
        );
        assert_eq!(memory.read_u64(0x3ff8), Ok(5));
        assert!(memory.read_u64(0x1ff8).is_err());
        assert!(memory.read(u64::MAX - 3, &mut [0; 8]).is_err());
        let mut out = vec![1];
        assert!(memory.read_into(0x3ff8, 16, &mut out).is_err());
        assert_eq!(out, [1]);
    }

    #[test]
    fn maps_are_exact() {
        let mut memory = two_regions();
        assert!(matches!(
            memory.map(0x2800, 0x1000, None, true),
            Err(MapError::Overlap { .. })
        ));
        assert!(matches!(
            memory.map(0x1000, 0x1001, None, true),
            Err(MapError::Overlap { .. })
        ));
        assert!(matches!(
            memory.map(u64::MAX, 2, None, true),
            Err(MapError::Range { .. })
        ));
        assert!(matches!(
            memory.unmap(0x2000, 0x2000),
            Err(MapError::Unknown { .. })
        ));
        memory.unmap(0x2000, 0x1000).unwrap();
        assert!(memory.read_u64(0x2000).is_err());
        assert!(memory.read_u64(0x3000).is_ok());
    }

    #[test]
    fn read_only_and_unreachable() {
        let mut memory = GuestMemory::new();
        memory
            .map(0, 0x1000, Some((memory_file(0x1000), 0)), false)
            .unwrap();
        memory.map(0x1000, 0x1000, None, true).unwrap();
        assert_eq!(memory.read_u64(8), Ok(0));
        assert!(memory.write_u64(8, 1).is_err());
        assert!(memory.read_u64(0x1000).is_err());
    }
}
