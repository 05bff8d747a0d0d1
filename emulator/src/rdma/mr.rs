// SPDX-License-Identifier: GPL-2.0
//! Memory regions and windows: who may touch which bytes, and where those bytes are.

use smallvec::{smallvec, SmallVec};

use super::fpm::Object;
use super::hmc::Hmc;
use super::{Rdma, Reported};
use crate::context::Context;

/// Access rights as the device encodes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rights(pub u8);

impl Rights {
    pub const LOCAL_READ: Rights = Rights(0x01);
    pub const LOCAL_WRITE: Rights = Rights(0x02);
    pub const REMOTE_READ: Rights = Rights(0x04);
    pub const REMOTE_WRITE: Rights = Rights(0x08);
    pub const BIND_WINDOW: Rights = Rights(0x10);

    pub fn contains(self, wanted: Rights) -> bool {
        self.0 & wanted.0 == wanted.0
    }

    pub fn is_remote(self) -> bool {
        self.0 & (Self::REMOTE_READ.0 | Self::REMOTE_WRITE.0) != 0
    }
}

/// Page size of a region's translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum PageSize {
    #[default]
    Page4K,
    Page2M,
    Page1G,
}

impl PageSize {
    pub fn from_code(code: u64) -> Option<Self> {
        match code {
            0 => Some(PageSize::Page4K),
            1 => Some(PageSize::Page2M),
            2 => Some(PageSize::Page1G),
            _ => None,
        }
    }

    pub fn bytes(self) -> u64 {
        match self {
            PageSize::Page4K => 4 << 10,
            PageSize::Page2M => 2 << 20,
            PageSize::Page1G => 1 << 30,
        }
    }
}

/// How a region's pages are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Translation {
    /// One block from this page-aligned address on.
    Contiguous(u64),
    /// Page addresses are the PBLEs from here on.
    Level1 { first_pble: u64 },
    /// The PBLEs from here on are indices of lists of 512 page addresses each.
    Level2 { root_pble: u64 },
}

impl Translation {
    /// The translation for a "leaf PBL size" code of a command or work request.
    pub fn new(code: u64, address: u64, first_pble: u64) -> Option<Self> {
        match code {
            0 => Some(Translation::Contiguous(address)),
            1 => Some(Translation::Level1 { first_pble }),
            3 => Some(Translation::Level2 {
                root_pble: first_pble,
            }),
            _ => None,
        }
    }
}

/// What an STag stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Region,
    /// A memory window; `wide` is type 2 (bound to a queue pair when it is used).
    Window {
        wide: bool,
    },
}

/// The mapping of a valid STag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub rights: Rights,
    /// First address of the region (VA-based), or offset of its first byte in the first page (zero-based).
    pub start: u64,
    pub length: u64,
    pub va_based: bool,
    pub page_size: PageSize,
    pub translation: Translation,
    /// A window: the region that it shows.
    pub parent: Option<u32>,
    /// A type-2 window: the only queue pair that may use it.
    pub qp: Option<u32>,
}

impl Mapping {
    /// Pages that the region touches.
    pub fn pages(&self) -> u64 {
        let size = self.page_size.bytes();
        (self.start % size)
            .saturating_add(self.length)
            .div_ceil(size)
    }
}

/// Fewest bits of an STag that number its region; the committed count may take more.
const MIN_INDEX_BITS: u32 = 14;

/// Splits the 24-bit index of an STag: the number of the region, and above it the bits that the driver draws at
/// random when it allocates the STag. They are no part of the number, but an access must repeat them.
pub(crate) fn split_index(rdma: &Rdma, index: u32) -> (u32, u32) {
    let count = rdma.hmc.count(Object::Mr);
    let bits = count.next_power_of_two().trailing_zeros();
    let bits = bits.max(MIN_INDEX_BITS);
    (index & ((1 << bits) - 1), index >> bits)
}

/// An STag that the driver allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mr {
    pub index: u32,
    /// The driver's own bits above the index.
    pub tag: u32,
    pub key: u8,
    pub kind: Kind,
    pub pd: u32,
    /// May be invalidated (and its key used) by the peer.
    pub remote: bool,
    /// Longest length that a fast registration may give it.
    pub max_length: u64,
    /// `None` while allocated only: the STag is invalid.
    pub mapping: Option<Mapping>,
    /// Windows that are bound to this region.
    pub windows: u32,
}

/// Contiguous bytes of guest memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub address: u64,
    pub length: u64,
}

/// Guest memory of a checked access, in order.
pub(crate) type Segments = SmallVec<[Segment; 4]>;

/// Why an access through an STag is refused. The numbers are the codes of the asynchronous events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum AccessError {
    UnallocatedStag = 0x0102,
    InvalidStag = 0x0103,
    BadQp = 0x0104,
    BadPd = 0x0105,
    BadKey = 0x0106,
    BadIndex = 0x0107,
    Bounds = 0x0108,
    Rights = 0x0109,
    Wrap = 0x010a,
    FastRegValidStag = 0x010c,
    FastRegWindow = 0x010d,
    FastRegLength = 0x0110,
    InvalidateNoRemote = 0x0112,
    InvalidateBound = 0x0113,
    BindValidStag = 0x0114,
    BindOfRegion = 0x0115,
    BindToWindow = 0x0117,
    BindRights = 0x0118,
    BindBounds = 0x0119,
    BindParent = 0x011a,
    BindDisabled = 0x011b,
    FastRegPageSize = 0x011f,
    ZeroStag = 0x0206,
    /// The translation itself is broken; the violation is recorded.
    Broken = 0x0704,
}

impl AccessError {
    /// The code of the asynchronous event that reports it.
    pub fn event_code(self) -> u16 {
        self as u16
    }
}

impl From<Reported> for AccessError {
    fn from(_: Reported) -> Self {
        AccessError::Broken
    }
}

/// Who asks for an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Requester {
    pub pd: u32,
    pub qp: u32,
    /// The queue pair may use STag 0, which is all of memory by bus address.
    pub privileged: bool,
}

/// Checks an access of `length` bytes at `address` and resolves it to guest memory.
pub(crate) fn check(
    rdma: &Rdma,
    cx: &mut Context<'_>,
    stag: u32,
    address: u64,
    length: u64,
    wanted: Rights,
    requester: Requester,
) -> Result<Segments, AccessError> {
    if stag == 0 {
        if !requester.privileged || wanted.is_remote() {
            return Err(AccessError::ZeroStag);
        }
        return guard(rdma, cx, block(address, length));
    }
    let mr = find(rdma, stag)?;
    let mapping = mr.mapping.ok_or(AccessError::InvalidStag)?;
    if mr.pd != requester.pd {
        return Err(AccessError::BadPd);
    }
    if mapping.qp.is_some_and(|qp| qp != requester.qp) {
        return Err(AccessError::BadQp);
    }
    if !mapping.rights.contains(wanted) {
        return Err(AccessError::Rights);
    }
    let end = address.checked_add(length).ok_or(AccessError::Wrap)?;
    let base = if mapping.va_based { mapping.start } else { 0 };
    // A length of zero is the kernel's key to all of memory.
    let limit = if mapping.length == 0 {
        u64::MAX
    } else {
        base.saturating_add(mapping.length)
    };
    if address < base || end > limit {
        return Err(AccessError::Bounds);
    }
    if length == 0 {
        return Ok(Segments::new());
    }
    let (mapping, offset) = match mapping.parent {
        None => (mapping, address - base),
        Some(parent) => {
            let region = find(rdma, parent).map_err(|_| AccessError::InvalidStag)?;
            let region = region.mapping.ok_or(AccessError::InvalidStag)?;
            // A window is bound to addresses of its region.
            let at = mapping.start + (address - base);
            let first = if region.va_based { region.start } else { 0 };
            (region, at.checked_sub(first).ok_or(AccessError::Bounds)?)
        }
    };
    let segments = resolve(&rdma.hmc, cx, &mapping, offset, length)?;
    guard(rdma, cx, segments)
}

/// Data never lies where the device keeps rings and queues: such memory was freed while the device owned it.
fn guard(rdma: &Rdma, cx: &mut Context<'_>, segments: Segments) -> Result<Segments, AccessError> {
    for segment in &segments {
        if let Some(conflict) = rdma.claims.find(segment.address, segment.length) {
            let Segment { address, length } = segment;
            cx.violation(
                "dma",
                format!("data at {address:#x}+{length:#x}: {conflict}"),
            );
            return Err(AccessError::Broken);
        }
    }
    Ok(segments)
}

/// Finds the region or window of an STag by index and key.
pub(crate) fn find(rdma: &Rdma, stag: u32) -> Result<Mr, AccessError> {
    let mr = find_index(rdma, stag >> 8)?;
    if mr.mapping.is_some() && mr.key != stag as u8 {
        return Err(AccessError::BadKey);
    }
    Ok(mr)
}

/// Finds the region or window of an STag by its 24-bit index alone.
fn find_index(rdma: &Rdma, index: u32) -> Result<Mr, AccessError> {
    let (index, tag) = split_index(rdma, index);
    if index >= rdma.hmc.count(Object::Mr) {
        return Err(AccessError::BadIndex);
    }
    let mr = rdma.mrs.get(&index).ok_or(AccessError::UnallocatedStag)?;
    if mr.tag != tag {
        return Err(AccessError::BadKey);
    }
    Ok(*mr)
}

fn block(address: u64, length: u64) -> Segments {
    if length == 0 {
        return Segments::new();
    }
    smallvec![Segment { address, length }]
}

/// Walks the translation of a region; `offset` counts from the region's first byte.
fn resolve(
    hmc: &Hmc,
    cx: &mut Context<'_>,
    mapping: &Mapping,
    offset: u64,
    length: u64,
) -> Result<Segments, AccessError> {
    let size = mapping.page_size.bytes();
    let linear = (mapping.start % size)
        .checked_add(offset)
        .ok_or(AccessError::Wrap)?;
    if let Translation::Contiguous(base) = mapping.translation {
        let address = base.checked_add(linear).ok_or(AccessError::Wrap)?;
        return Ok(block(address, length));
    }
    let mut segments = Segments::new();
    let mut done = 0;
    while done < length {
        let at = linear.checked_add(done).ok_or(AccessError::Wrap)?;
        let page = page_address(hmc, cx, mapping.translation, at / size)?;
        if page % mapping.page_size.bytes() != 0 {
            cx.violation(
                "mr",
                format!("a PBLE holds {page:#x}, not a page of {size:#x}"),
            );
            return Err(AccessError::Broken);
        }
        let piece = (size - at % size).min(length - done);
        let address = page.checked_add(at % size).ok_or(AccessError::Wrap)?;
        match segments.last_mut() {
            Some(last) if last.address.wrapping_add(last.length) == address => last.length += piece,
            _ => segments.push(Segment {
                address,
                length: piece,
            }),
        }
        done += piece;
    }
    Ok(segments)
}

/// Page addresses in a leaf list of a two-level translation.
const LEAF: u64 = 512;

fn page_address(
    hmc: &Hmc,
    cx: &mut Context<'_>,
    translation: Translation,
    page: u64,
) -> Result<u64, Reported> {
    match translation {
        Translation::Contiguous(base) => Ok(base),
        Translation::Level1 { first_pble } => hmc.pble(cx, first_pble + page),
        Translation::Level2 { root_pble } => {
            let leaf = hmc.pble(cx, root_pble + page / LEAF)?;
            hmc.pble(cx, leaf.saturating_add(page % LEAF))
        }
    }
}

/// A fast registration, as the work request describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FastRegister {
    /// The 24-bit index.
    pub index: u32,
    pub key: u8,
    pub mapping: Mapping,
}

/// Makes an allocated region valid.
pub(crate) fn fast_register(
    rdma: &mut Rdma,
    requester: Requester,
    request: FastRegister,
) -> Result<(), AccessError> {
    let index = find_index(rdma, request.index)?.index;
    let mr = rdma
        .mrs
        .get_mut(&index)
        .ok_or(AccessError::UnallocatedStag)?;
    if mr.kind != Kind::Region {
        return Err(AccessError::FastRegWindow);
    }
    if mr.mapping.is_some() {
        return Err(AccessError::FastRegValidStag);
    }
    if mr.pd != requester.pd {
        return Err(AccessError::BadPd);
    }
    if request.mapping.length == 0 || request.mapping.length > mr.max_length {
        return Err(AccessError::FastRegLength);
    }
    if let Translation::Contiguous(address) = request.mapping.translation {
        if address % request.mapping.page_size.bytes() != 0 {
            return Err(AccessError::FastRegPageSize);
        }
    }
    mr.key = request.key;
    mr.mapping = Some(request.mapping);
    Ok(())
}

/// Invalidates an STag; `by_peer` for SEND with invalidate from the other side.
pub(crate) fn invalidate(
    rdma: &mut Rdma,
    requester: Requester,
    stag: u32,
    by_peer: bool,
) -> Result<(), AccessError> {
    if stag == 0 {
        return Err(AccessError::ZeroStag);
    }
    let mr = find(rdma, stag)?;
    let mapping = mr.mapping.ok_or(AccessError::InvalidStag)?;
    if mr.pd != requester.pd {
        return Err(AccessError::BadPd);
    }
    if mapping.qp.is_some_and(|qp| qp != requester.qp) {
        return Err(AccessError::BadQp);
    }
    if by_peer && !(mapping.rights.is_remote() || mr.remote) {
        return Err(AccessError::InvalidateNoRemote);
    }
    if mr.windows != 0 {
        return Err(AccessError::InvalidateBound);
    }
    if let Some(parent) = mapping.parent {
        unbind(rdma, parent);
    }
    if let Some(mr) = rdma.mrs.get_mut(&mr.index) {
        mr.mapping = None;
    }
    Ok(())
}

/// A window over this region is gone.
pub(crate) fn unbind(rdma: &mut Rdma, parent_stag: u32) {
    let (index, _) = split_index(rdma, parent_stag >> 8);
    if let Some(parent) = rdma.mrs.get_mut(&index) {
        parent.windows = parent.windows.saturating_sub(1);
    }
}

/// Binds a window to part of a region. `length` zero unbinds a type-1 window.
pub(crate) fn bind(
    rdma: &mut Rdma,
    requester: Requester,
    window_stag: u32,
    parent_stag: u32,
    mapping: Mapping,
) -> Result<(), AccessError> {
    let window = find_index(rdma, window_stag >> 8)?;
    let Kind::Window { wide } = window.kind else {
        return Err(AccessError::BindOfRegion);
    };
    if window.pd != requester.pd {
        return Err(AccessError::BadPd);
    }
    if wide && window.mapping.is_some() {
        return Err(AccessError::BindValidStag);
    }
    let old_parent = window.mapping.and_then(|m| m.parent);
    let mut bound = None;
    let mut region_index = None;
    if mapping.length != 0 {
        let parent = find(rdma, parent_stag).map_err(|_| AccessError::BindParent)?;
        let region = parent.mapping.ok_or(AccessError::BindParent)?;
        if parent.kind != Kind::Region {
            return Err(AccessError::BindToWindow);
        }
        if parent.pd != requester.pd {
            return Err(AccessError::BadPd);
        }
        if !region.rights.contains(Rights::BIND_WINDOW) {
            return Err(AccessError::BindDisabled);
        }
        let writes = mapping.rights.contains(Rights::REMOTE_WRITE);
        if writes && !region.rights.contains(Rights::LOCAL_WRITE) {
            return Err(AccessError::BindRights);
        }
        let base = if region.va_based { region.start } else { 0 };
        let end = mapping.start.checked_add(mapping.length);
        let limit = base.saturating_add(region.length);
        if mapping.start < base || end.is_none_or(|end| end > limit) {
            return Err(AccessError::BindBounds);
        }
        region_index = Some(parent.index);
        bound = Some(Mapping {
            parent: Some(parent_stag),
            qp: wide.then_some(requester.qp),
            ..mapping
        });
    }
    if let Some(old) = old_parent {
        unbind(rdma, old);
    }
    if let Some(parent) = region_index.and_then(|index| rdma.mrs.get_mut(&index)) {
        parent.windows += 1;
    }
    if let Some(window) = rdma.mrs.get_mut(&window.index) {
        window.key = window_stag as u8;
        window.mapping = bound;
    }
    Ok(())
}
