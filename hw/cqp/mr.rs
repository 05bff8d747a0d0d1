// SPDX-License-Identifier: GPL-2.0

//! Commands about memory keys (steering tags, `STag`).

use kernel::impl_flags;

use super::command::{
    Command,
    Opcode, //
};
use crate::hw::bits::{
    bit,
    field, //
};

impl_flags!(
    /// What a memory key allows, bits 52:48 of the header.
    ///
    /// Remote rights include the local right that they rest on.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) struct AccessRights(u32);

    /// One right of a memory key.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum AccessRight {
        /// The local side may read.
        LocalRead = 1 << 0,
        /// The local side may write.
        LocalWrite = 1 << 1,
        /// The remote side may read.
        RemoteRead = 1 << 2,
        /// The remote side may write.
        RemoteWrite = 1 << 3,
        /// Windows may be bound to it.
        BindWindow = 1 << 4,
    }
);

impl AccessRights {
    /// Returns whether the remote side has a right.
    pub(crate) fn remote(self) -> bool {
        self.contains(AccessRight::RemoteRead) || self.contains(AccessRight::RemoteWrite)
    }
}

/// Page size that a page list or a region is made of, bits 47:46 of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum PageSize {
    /// 4 KiB.
    #[default]
    Size4K = 0,
    /// 2 MiB.
    Size2M = 1,
    /// 1 GiB.
    Size1G = 2,
}

impl PageSize {
    /// Returns the size in bytes.
    pub(crate) const fn bytes(self) -> u64 {
        match self {
            PageSize::Size4K => 1 << 12,
            PageSize::Size2M => 1 << 21,
            PageSize::Size1G => 1 << 30,
        }
    }

    /// Returns the page size of `bytes` bytes, if the device has it.
    pub(crate) const fn from_bytes(bytes: u64) -> Option<Self> {
        match bytes {
            0x1000 => Some(PageSize::Size4K),
            0x20_0000 => Some(PageSize::Size2M),
            0x4000_0000 => Some(PageSize::Size1G),
            _ => None,
        }
    }
}

/// Where the device finds a region's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RegionBase {
    /// A contiguous region at this DMA address.
    Contiguous(u64),
    /// A page list of one level that begins at this index.
    Level1(u32),
    /// A page list of two levels whose root begins at this index.
    Level2(u32),
}

impl RegionBase {
    /// Returns bits 45:44 of the header.
    const fn leaf_size(&self) -> u64 {
        match self {
            RegionBase::Contiguous(_) => 0,
            RegionBase::Level1(_) => 1,
            // The field is wider than the levels are many: 2 is reserved.
            RegionBase::Level2(_) => 3,
        }
    }

    const fn address(&self) -> u64 {
        match self {
            RegionBase::Contiguous(address) => *address,
            _ => 0,
        }
    }

    const fn index(&self) -> u64 {
        match self {
            RegionBase::Contiguous(_) => 0,
            // CAST: Widening.
            RegionBase::Level1(index) | RegionBase::Level2(index) => *index as u64,
        }
    }
}

/// Bits 63:46 of quadword 1: the lower 18 bits of a protection domain's number.
const fn pd_low(pd: u32) -> u64 {
    // CAST: Widening.
    field::<63, 46>(pd as u64)
}

/// Bits 59:54 of quadword 2: the rest of a protection domain's number.
const fn pd_high(pd: u32) -> u64 {
    // CAST: Widening.
    field::<59, 54>((pd >> 18) as u64)
}

/// Allocates a memory key whose region a later fast registration gives.
#[doc(alias = "irdma_sc_alloc_stag")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocStag {
    /// Index of the key, its upper 24 bits.
    pub(crate) index: u32,
    /// Protection domain.
    pub(crate) pd: u32,
    /// Greatest length of the region in bytes.
    pub(crate) length: u64,
    /// Page size of the region.
    pub(crate) page_size: PageSize,
    /// First index of the page list (of one level) that the region may use.
    pub(crate) page_list: Option<u32>,
    /// What the key allows.
    pub(crate) access: AccessRights,
    /// The remote side may get rights.
    pub(crate) remote_access: bool,
}

impl Command for AllocStag {
    const OPCODE: Opcode = Opcode::AllocStag;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header()
            | bit::<43>(true)
            | field::<45, 44>(self.page_list.is_some().into())
            | field::<47, 46>(self.page_size as u64)
            | field::<52, 48>(u32::from(self.access).into())
            | bit::<53>(self.remote_access);

        [
            0,
            pd_low(self.pd) | field::<45, 0>(self.length),
            field::<31, 8>(self.index.into()) | pd_high(self.pd),
            header,
            0,
            0,
            field::<27, 0>(self.page_list.unwrap_or(0).into()),
            0,
        ]
    }
}

/// Registers a region under a memory key.
#[doc(alias = "irdma_sc_mr_reg_non_shared")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RegMr {
    /// Index of the key, its upper 24 bits.
    pub(crate) index: u32,
    /// The key's lower 8 bits.
    pub(crate) key: u8,
    /// Protection domain.
    pub(crate) pd: u32,
    /// Address that users of the key name the region's first byte by.
    pub(crate) va: u64,
    /// The region's addresses begin at 0 instead of at `va`.
    pub(crate) zero_based: bool,
    /// Length of the region in bytes. A key for all memory has 0, no other has.
    pub(crate) length: u64,
    /// Page size of the region.
    pub(crate) page_size: PageSize,
    /// Where the pages are.
    pub(crate) region: RegionBase,
    /// What the key allows.
    pub(crate) access: AccessRights,
    /// Atomic operations of the remote side are allowed.
    pub(crate) remote_atomics: bool,
}

impl Command for RegMr {
    const OPCODE: Opcode = Opcode::RegMr;

    fn encode(&self) -> [u64; 8] {
        let offset = match self.zero_based {
            true => self.va & (self.page_size.bytes() - 1),
            false => self.va,
        };
        let header = Self::OPCODE.header()
            | bit::<43>(true)
            | field::<45, 44>(self.region.leaf_size())
            | field::<47, 46>(self.page_size as u64)
            | field::<52, 48>(u32::from(self.access).into())
            | bit::<53>(self.access.remote())
            | bit::<59>(!self.zero_based)
            | bit::<61>(self.remote_atomics);

        [
            offset,
            field::<45, 0>(self.length) | pd_low(self.pd),
            field::<7, 0>(self.key.into()) | field::<31, 8>(self.index.into()) | pd_high(self.pd),
            header,
            self.region.address(),
            0,
            field::<27, 0>(self.region.index()),
            0,
        ]
    }
}

/// Gives a memory key back.
#[doc(alias = "irdma_sc_dealloc_stag")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeallocStag {
    /// Index of the key, its upper 24 bits.
    pub(crate) index: u32,
    /// Protection domain.
    pub(crate) pd: u32,
    /// The key is a region's; else a window's.
    pub(crate) region: bool,
}

impl Command for DeallocStag {
    const OPCODE: Opcode = Opcode::DeallocStag;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header() | bit::<43>(self.region);

        [
            0,
            pd_low(self.pd),
            field::<31, 8>(self.index.into()) | pd_high(self.pd),
            header,
            0,
            0,
            0,
            0,
        ]
    }
}
