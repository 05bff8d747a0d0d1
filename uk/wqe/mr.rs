// SPDX-License-Identifier: GPL-2.0

//! Send WQEs that change what an STag gives access to.

use kernel::{
    bitfield,
    num::Bounded,
    prelude::*, //
};

use super::{
    super::{
        memory::{
            Slot,
            Word, //
        },
        ring::Polarity, //
    },
    gather::{
        self,
        Sge, //
    },
    Flags,
    Header,
    Opcode, //
};

/// Size of the pages of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "irdma_page_size")]
pub(crate) enum PageSize {
    /// 4 KiB.
    Size4K = 0,
    /// 2 MiB.
    Size2M = 1,
    /// 1 GiB.
    Size1G = 2,
}

impl PageSize {
    /// The page size of `bytes` bytes, if the device has it.
    pub(crate) fn from_bytes(bytes: u64) -> Option<Self> {
        Some(match bytes {
            0x1000 => Self::Size4K,
            0x20_0000 => Self::Size2M,
            0x4000_0000 => Self::Size1G,
            _ => return None,
        })
    }

    /// Bytes of a page.
    pub(crate) const fn bytes(self) -> u64 {
        match self {
            Self::Size4K => 0x1000,
            Self::Size2M => 0x20_0000,
            Self::Size1G => 0x4000_0000,
        }
    }
}

/// Where the device finds the pages of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageList {
    /// One run of memory from this address on.
    Contiguous {
        /// DMA address of the first page.
        address: u64,
        /// Entry of the page-list memory that belongs to the region though it is not looked at.
        index: u32,
    },
    /// A list of pages.
    OneLevel {
        /// DMA address of the first page.
        address: u64,
        /// First entry of the list in the page-list memory, 28 bits.
        index: u32,
    },
}

/// What may be done to a region, as the device has it (`IRDMA_ACCESS_FLAGS_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights(u8);

impl Rights {
    const LOCAL_READ: u8 = 0x01;
    const LOCAL_WRITE: u8 = 0x02;
    const REMOTE_READ: u8 = 0x05;
    const REMOTE_WRITE: u8 = 0x0a;

    /// `enum ib_access_flags`, which is part of the user ABI.
    const IB_LOCAL_WRITE: u32 = 1 << 0;
    const IB_REMOTE_WRITE: u32 = 1 << 1;
    const IB_REMOTE_READ: u32 = 1 << 2;

    /// The device's rights for the verbs' access flags.
    ///
    /// Local read is always given, and remote rights bring the local ones with them. Flags that the
    /// device knows nothing of are left out.
    #[doc(alias = "irdma_get_mr_access")]
    pub(crate) const fn from_ib_access(access: u32) -> Self {
        let mut rights = Self::LOCAL_READ;

        if access & Self::IB_LOCAL_WRITE != 0 {
            rights |= Self::LOCAL_WRITE;
        }
        if access & Self::IB_REMOTE_WRITE != 0 {
            rights |= Self::REMOTE_WRITE;
        }
        if access & Self::IB_REMOTE_READ != 0 {
            rights |= Self::REMOTE_READ;
        }
        Self(rights)
    }

    /// The value for commands and WQEs.
    pub(crate) const fn bits(self) -> u8 {
        self.0
    }
}

bitfield! {
    /// Header of a WQE that registers a region.
    struct RegisterHeader(u64) {
        63:63 valid => bool;
        62:62 signaled => bool;
        61:61 local_fence => bool;
        60:60 read_fence => bool;
        53:53 va_based => bool;
        52:48 rights;
        47:46 page_size;
        45:44 list_levels;
        37:32 opcode;
        31:8 stag_index;
        7:0 stag_key;
    }
}

bitfield! {
    /// Word 1: the first page, and the high part of the page list's index in the bits that the
    /// page's address has not.
    struct ListAddress(u64) {
        63:12 page;
        11:0 index_high;
    }
}

bitfield! {
    /// Word 2: length, and the low part of the page list's index.
    struct LengthAndIndex(u64) {
        63:48 index_low;
        40:0 length;
    }
}

/// Fast registration of a memory region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "irdma_fast_reg_stag_info")]
pub(crate) struct RegisterMr {
    address: u64,
    list: u64,
    length: u64,
    header: RegisterHeader,
}

impl RegisterMr {
    /// A registration under `stag` of `length` bytes from address `address` on.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the region is empty (the device would take it for all of memory) or longer than
    /// a WQE can say, if its first page does not begin where a page begins, or if the page list's
    /// index has too many bits.
    #[doc(alias = "irdma_sc_mr_fast_register")]
    pub(crate) fn new(
        flags: Flags,
        stag: u32,
        address: u64,
        length: u64,
        page_size: PageSize,
        pages: PageList,
        rights: Rights,
    ) -> Result<Self> {
        let (page, index, levels) = match pages {
            PageList::Contiguous { address, index } => (address, index, 0u8),
            PageList::OneLevel { address, index } => (address, index, 1),
        };

        if length == 0 || page % PageSize::Size4K.bytes() != 0 {
            return Err(EINVAL);
        }
        if index >> 28 != 0 {
            return Err(EINVAL);
        }

        let list = ListAddress::from_raw(page).with_index_high(Bounded::<u64, 12>::from_expr(
            u64::from(index >> 16) & 0xfff,
        ));
        let length = LengthAndIndex::from_raw(0)
            .try_with_length(length)
            .map_err(|_| EINVAL)?
            .with_index_low(Bounded::<u64, 16>::from_expr(u64::from(index) & 0xffff));
        let header = RegisterHeader::from_raw(0)
            .with_stag_key(Bounded::<u64, 8>::from_expr(u64::from(stag) & 0xff))
            .with_stag_index(Bounded::<u64, 24>::from_expr(
                u64::from(stag) >> 8 & 0xff_ffff,
            ))
            .with_opcode(Bounded::<u64, 6>::from_expr(
                u64::from(Opcode::RegisterMr.code()) & 0x3f,
            ))
            .with_list_levels(Bounded::<u64, 2>::from_expr(u64::from(levels) & 3))
            .with_page_size(Bounded::<u64, 2>::from_expr(page_size as u64 & 3))
            .with_rights(Bounded::<u64, 5>::from_expr(
                u64::from(rights.bits()) & 0x1f,
            ))
            .with_va_based(true)
            .with_read_fence(flags.fence)
            // Earlier work requests may still use what the STag stood for.
            .with_local_fence(true)
            .with_signaled(flags.signaled);

        Ok(Self {
            address,
            list: list.into_raw(),
            length: length.into_raw(),
            header,
        })
    }

    /// Encodes the WQE, of one quantum, and returns the header.
    #[inline]
    pub(crate) fn encode<W: Word>(&self, slot: &Slot<'_, W>) -> u64 {
        slot.put(0, self.address);
        slot.put(1, self.list);
        slot.put(2, self.length);

        self.header.with_valid(slot.polarity().valid()).into_raw()
    }
}

/// Encodes the invalidation of `stag`, of one quantum, and returns the header.
#[doc(alias = "irdma_uk_stag_local_invalidate")]
#[inline]
pub(crate) fn encode_invalidate<W: Word>(slot: &Slot<'_, W>, flags: Flags, stag: u32) -> u64 {
    let target = Sge {
        address: 0,
        length: 0,
        stag,
    };

    // The STag lies where a fragment has it; this fragment carries no valid bit of its own.
    gather::put_first(slot, Some(target), Polarity::ZERO);
    slot.put(2, 0);

    Header::new(Opcode::LocalInvalidate, flags, slot.polarity())
        .with_local_fence(true)
        .into_raw()
}
