// SPDX-License-Identifier: GPL-2.0

//! Memory regions.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        Arc, //
    }, //
};

use super::{
    abi,
    device::Device,
    pd::Pd,
    queue_memory::QueueMemory,
    ucontext::Waiting,
    Verbs, //
};
use crate::{
    hw::{
        cqp::mr::{
            AccessRight,
            AccessRights,
            AllocStag,
            DeallocStag,
            PageSize,
            RegMr,
            RegionBase, //
        },
        pble::{
            Depth,
            PageList, //
        }, //
    },
    rdma::{
        self,
        random_u32,
        Access,
        LockedUmem,
        Mapping,
        MrChange,
        MrKeys,
        MrType,
        Udata,
        Umem,
        UserRegion, //
    },
    uk::wqe::{
        mr::{
            self,
            RegisterMr,
            Rights, //
        },
        Flags, //
    }, //
};

/// Fewest bits of an index in a key; those above it are random.
const MIN_INDEX_BITS: u32 = 14;

/// Bits of a key.
const KEY_BITS: u32 = 8;

/// A memory region.
pub(crate) struct Mr {
    /// The key that the device knows; 0 for memory of queues, of which it knows none.
    stag: u32,
    /// Number of the region.
    number: u32,
    pd: u32,
    kind: Kind,
    /// Whether its number and key are another region's now, or lost.
    ended: Atomic<bool>,
    /// Whether the memory is nobody's any more, and the device knows no region of this key.
    revoked: Atomic<bool>,
}

/// What a region is of.
enum Kind {
    /// All memory of the kernel.
    Dma,
    /// Pages that a work request gives.
    Fast(Arc<FastRegion>),
    /// Memory of a user.
    User(Arc<UserMemory>, Access),
    /// Memory of a user's queue, which is none of the device's regions. In a box, as regions that are
    /// shall not be larger for it.
    Queue(KBox<QueueRegion>),
}

/// Memory of a user's queue, and where it waits for the queue.
struct QueueRegion {
    memory: Arc<QueueMemory>,
    waiting: Arc<Waiting>,
}

/// Pages for fast registration. Its users don't give pages and register them at the same time.
struct FastRegion {
    list: PageList,
    /// Pages that were given for the next registration.
    count: Atomic<u32>,
    /// The first of them.
    first: Atomic<u64>,
}

/// What the device may read and write for a user.
struct UserMemory {
    base: RegionBase,
    page_size: PageSize,
    /// The address by which its users know it.
    va: u64,
    /// Bytes.
    length: u64,
    /// The pages, where they are not contiguous.
    _list: Option<PageList>,
    umem: Umem,
}

impl UserMemory {
    /// Makes memory of a process's.
    ///
    /// # Errors
    ///
    /// Those of [`find_pages`].
    fn new(dev: &Device<'_>, va: u64, mut umem: Umem) -> Result<Arc<Self>> {
        let pages = find_pages(dev, va, umem.mapping()?)?;

        Self::of(pages, va, umem)
    }

    /// The same of a DMA buffer.
    fn of_dmabuf(dev: &Device<'_>, va: u64, umem: &mut LockedUmem) -> Result<Arc<Self>> {
        let pages = find_pages(dev, va, umem.mapping())?;

        Self::of(pages, va, umem.umem())
    }

    fn of(
        (page_size, base, list): (PageSize, RegionBase, Option<PageList>),
        va: u64,
        umem: Umem,
    ) -> Result<Arc<Self>> {
        Ok(Arc::new(
            Self {
                base,
                page_size,
                va,
                length: umem.length(),
                _list: list,
                umem,
            },
            GFP_KERNEL,
        )?)
    }
}

impl Mr {
    /// Registers all memory, by DMA addresses.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and those of a command.
    #[doc(alias = "irdma_get_dma_mr")]
    #[doc(alias = "irdma_reg_phys_mr")]
    pub(super) fn dma(dev: &Device<'_>, pd: &Pd, access: Access) -> Result<(Self, MrKeys)> {
        let number = dev.ids().mrs.take()?;
        let stag = new_stag(dev, number.get());

        dev.function().execute(&RegMr {
            index: stag >> KEY_BITS,
            key: key_of(stag),
            pd: pd.number(),
            va: 0,
            zero_based: false,
            // Only here: this is how the device knows that all memory is meant.
            length: 0,
            page_size: PageSize::Size4K,
            region: RegionBase::Contiguous(0),
            access: rights(access),
            remote_atomics: false,
        })?;

        Ok(Self::with_keys(stag, number.keep(), pd, Kind::Dma))
    }

    /// Makes a region for up to `max_pages` pages that a work request gives.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP` for regions that are not of pages.
    /// - `EINVAL` if it shall have none, or more than the device takes.
    /// - `ENOMEM`, and those of a command.
    #[doc(alias = "irdma_alloc_mr")]
    #[doc(alias = "irdma_hw_alloc_stag")]
    pub(super) fn fast(
        dev: &Device<'_>,
        pd: &Pd,
        mr_type: MrType,
        max_pages: u32,
    ) -> Result<(Self, MrKeys)> {
        if mr_type != MrType::MemReg {
            return Err(EOPNOTSUPP);
        }
        if max_pages == 0 || max_pages > dev.hw_limits().max_fast_reg_pages {
            return Err(EINVAL);
        }

        // A work request can name lists of one level only.
        let list = dev.hw().page_list(max_pages, Depth::One)?;
        let region = Arc::new(
            FastRegion {
                list,
                count: Atomic::new(0),
                first: Atomic::new(0),
            },
            GFP_KERNEL,
        )?;
        let number = dev.ids().mrs.take()?;
        let stag = new_stag(dev, number.get());

        dev.function().execute(&AllocStag {
            index: stag >> KEY_BITS,
            pd: pd.number(),
            length: u64::from(max_pages) * PageSize::Size4K.bytes(),
            page_size: PageSize::Size4K,
            page_list: None,
            access: AccessRights::default(),
            remote_access: true,
        })?;

        Ok(Self::with_keys(stag, number.keep(), pd, Kind::Fast(region)))
    }

    /// Registers a part of a user's memory, or memory for a queue.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the region is empty, larger than the device takes, or smaller than the queue.
    /// - `EOPNOTSUPP` if there is no page size for it.
    /// - `EFAULT`, `ENOMEM`, and those of a command.
    #[doc(alias = "irdma_reg_user_mr")]
    pub(super) fn user(
        core: &rdma::Device<Verbs>,
        dev: &Device<'_>,
        pd: &Pd,
        region: &UserRegion,
        udata: &mut Udata<'_, Verbs>,
    ) -> Result<(Self, MrKeys)> {
        let request: abi::MemRegReq = udata.read(abi::MIN_MEM_REG_REQ)?;

        udata.respond_empty()?;
        if region.length > dev.hw_limits().max_region {
            return Err(EINVAL);
        }

        match request.reg_type {
            abi::reg_type::MEMORY => {
                let umem = Umem::get(core, region)?;
                let memory = UserMemory::new(dev, region.virt_addr, umem)?;

                Self::user_memory(dev, pd, memory, region.access)
            }
            _ => {
                // Whatever its user asks for: the device writes to it.
                let region = UserRegion {
                    access: region.access.with(Access::LOCAL_WRITE),
                    ..*region
                };
                let umem = Umem::get(core, &region)?;
                let memory = QueueMemory::new(dev, &request, region.virt_addr, umem)?;
                let memory = Arc::new(memory, GFP_KERNEL)?;
                let waiting = udata.context().ok_or(EINVAL)?.data().waiting().clone();
                let region = KBox::new(QueueRegion { memory, waiting }, GFP_KERNEL)?;

                region.waiting.offer(region.memory.clone())?;
                Ok((
                    Self {
                        stag: 0,
                        number: 0,
                        pd: pd.number(),
                        kind: Kind::Queue(region),
                        ended: Atomic::new(false),
                        revoked: Atomic::new(false),
                    },
                    MrKeys::default(),
                ))
            }
        }
    }

    /// Registers a part of a DMA buffer, which is locked until [`Self::revoke`] can be called.
    ///
    /// # Errors
    ///
    /// As [`Self::user`], and those of the buffer's exporter.
    #[doc(alias = "irdma_reg_user_mr_dmabuf")]
    pub(super) fn dmabuf(
        core: &rdma::Device<Verbs>,
        dev: &Device<'_>,
        pd: &Pd,
        region: &UserRegion,
        fd: i32,
    ) -> Result<(Self, MrKeys, LockedUmem)> {
        if region.length > dev.hw_limits().max_region {
            return Err(EINVAL);
        }

        let mut umem = LockedUmem::get(core, region, fd)?;
        let memory = UserMemory::of_dmabuf(dev, region.virt_addr, &mut umem)?;
        let (region, keys) = Self::user_memory(dev, pd, memory, region.access)?;

        Ok((region, keys, umem))
    }

    /// Ends the use of a DMA buffer that its exporter takes back. Its key stays this region's, and is
    /// good for nothing.
    #[doc(alias = "irdma_umem_dmabuf_revoke")]
    pub(super) fn revoke(&self, dev: &Device<'_>) {
        if self.ended.load(Relaxed) || self.revoked.xchg(true, Relaxed) {
            return;
        }
        if let Err(error) = dev.function().execute(&self.deallocation()) {
            dev_err!(
                dev.function().device(),
                "a region of a DMA buffer that is taken back does not end: {:?}\n",
                error
            );
            // Nothing else keeps the device from what is other people's memory now.
            dev.function().request_reset();
        }
    }

    /// Registers a user's memory anew, in `pd`, with what `change` says, under the same key: its
    /// peers know that one. This region ends with it; if the device refuses the new one, it stays.
    ///
    /// # Errors
    ///
    /// - `EINVAL` for a region that isn't a user's memory, and as [`Self::user`].
    /// - `EOPNOTSUPP` for a part of a DMA buffer.
    /// - `EACCES` if memory that was pinned for reading only shall be written.
    /// - Those of [`Self::user`].
    #[doc(alias = "irdma_rereg_user_mr")]
    #[doc(alias = "irdma_rereg_mr_trans")]
    #[doc(alias = "ib_umem_check_rereg")]
    pub(super) fn again(
        &self,
        core: &rdma::Device<Verbs>,
        dev: &Device<'_>,
        pd: &Pd,
        change: &MrChange,
    ) -> Result<(Self, MrKeys)> {
        let Kind::User(old_memory, old_access) = &self.kind else {
            return Err(EINVAL);
        };
        if old_memory.umem.is_dmabuf() {
            return Err(EOPNOTSUPP);
        }
        let access = change.access.unwrap_or(*old_access);
        let memory = match change.memory {
            Some((start, length, virt_addr)) => {
                if length > dev.hw_limits().max_region {
                    return Err(EINVAL);
                }
                let region = UserRegion {
                    start,
                    length,
                    virt_addr,
                    access,
                };

                UserMemory::new(dev, virt_addr, Umem::get(core, &region)?)?
            }
            None if access.needs_writable() && !old_memory.umem.is_writable() => {
                return Err(EACCES);
            }
            None => old_memory.clone(),
        };

        dev.function().execute(&self.deallocation())?;
        if let Err(error) = register(dev, self.stag, pd.number(), &memory, access) {
            // What may still become registered must not be so twice.
            if error == ETIMEDOUT
                || register(dev, self.stag, self.pd, old_memory, *old_access).is_err()
            {
                self.ended.store(true, Relaxed);
            }
            return Err(error);
        }

        self.ended.store(true, Relaxed);
        Ok(Self::with_keys(
            self.stag,
            self.number,
            pd,
            Kind::User(memory, access),
        ))
    }

    #[doc(alias = "irdma_reg_user_mr_type_mem")]
    fn user_memory(
        dev: &Device<'_>,
        pd: &Pd,
        memory: Arc<UserMemory>,
        access: Access,
    ) -> Result<(Self, MrKeys)> {
        let number = dev.ids().mrs.take()?;
        let stag = new_stag(dev, number.get());

        if let Err(error) = register(dev, stag, pd.number(), &memory, access) {
            if error == ETIMEDOUT {
                // The device may still do it.
                number.keep();
            }
            return Err(error);
        }

        Ok(Self::with_keys(
            stag,
            number.keep(),
            pd,
            Kind::User(memory, access),
        ))
    }

    fn with_keys(stag: u32, number: u32, pd: &Pd, kind: Kind) -> (Self, MrKeys) {
        (
            Self {
                stag,
                number,
                pd: pd.number(),
                kind,
                ended: Atomic::new(false),
                revoked: Atomic::new(false),
            },
            MrKeys {
                lkey: stag,
                rkey: stag,
            },
        )
    }

    /// Ends the registration. What the device may still use is kept, and so is the number. Memory of a
    /// DMA buffer is locked.
    ///
    /// # Errors
    ///
    /// `EBUSY` for the memory of a queue that exists. It stays registered.
    #[doc(alias = "irdma_dereg_mr")]
    #[doc(alias = "irdma_hwdereg_mr")]
    #[doc(alias = "irdma_free_stag")]
    pub(super) fn destroy(&self, dev: &Device<'_>) -> Result {
        if let Kind::Queue(region) = &self.kind {
            return region.waiting.withdraw(&region.memory);
        }
        if self.ended.load(Relaxed) {
            return Ok(());
        }
        if self.revoked.load(Relaxed) {
            dev.ids().mrs.give_back(self.number);
            return Ok(());
        }

        let gone = dev.function().execute(&self.deallocation());
        match (gone, &self.kind) {
            (Ok(_), _) => dev.ids().mrs.give_back(self.number),
            (Err(_), Kind::Fast(region)) => dev.function().bury(region.clone()),
            (Err(_), Kind::User(memory, _)) => keep(dev, memory),
            (Err(_), _) => (),
        }

        Ok(())
    }

    fn deallocation(&self) -> DeallocStag {
        DeallocStag {
            index: self.stag >> KEY_BITS,
            pd: self.pd,
            region: true,
        }
    }

    /// Forgets the pages for the next registration.
    pub(super) fn clear_pages(&self) {
        if let Kind::Fast(region) = &self.kind {
            region.count.store(0, Relaxed);
        }
    }

    /// Adds a page to those for the next registration.
    ///
    /// # Errors
    ///
    /// - `ENOMEM` if the region has no room for it.
    /// - `EINVAL` if the region is not for fast registration.
    #[doc(alias = "irdma_set_page")]
    pub(super) fn add_page(&self, address: u64) -> Result {
        let Kind::Fast(region) = &self.kind else {
            return Err(EINVAL);
        };
        let count = region.count.load(Relaxed);

        region.list.write(count, address).map_err(|_| ENOMEM)?;
        if count == 0 {
            region.first.store(address, Relaxed);
        }
        // A list's length does not overflow.
        region.count.store(count.saturating_add(1), Relaxed);

        Ok(())
    }

    /// Returns the registration of the pages, for a work request.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are none, or the device can't register them.
    pub(super) fn registration(
        &self,
        mr: &rdma::Mr<Verbs>,
        flags: Flags,
        key: u32,
        access: Access,
    ) -> Result<RegisterMr> {
        let Kind::Fast(region) = &self.kind else {
            return Err(EINVAL);
        };
        let index = region.list.first_index();
        let address = region.first.load(Relaxed);
        let list = match region.count.load(Relaxed) {
            0 => return Err(EINVAL),
            1 => mr::PageList::Contiguous { address, index },
            _ => mr::PageList::OneLevel { address, index },
        };
        let page_size = mr::PageSize::from_bytes(mr.page_size().into()).ok_or(EINVAL)?;

        RegisterMr::new(
            flags,
            key,
            mr.iova(),
            mr.length(),
            page_size,
            list,
            Rights::from_ib_access(access.into_raw()),
        )
    }
}

/// Says where a user's memory is, in pages of a size that the device has: its first page if all are
/// contiguous, else a list of pages.
///
/// # Errors
///
/// - `EOPNOTSUPP` if there is no such size.
/// - `ENOMEM`
#[doc(alias = "irdma_setup_pbles")]
#[doc(alias = "irdma_check_mr_contiguous")]
fn find_pages(
    dev: &Device<'_>,
    va: u64,
    mut memory: Mapping<'_>,
) -> Result<(PageSize, RegionBase, Option<PageList>)> {
    let size = memory
        .best_page_size(dev.hw_limits().page_sizes, va)
        .ok_or(EOPNOTSUPP)?;
    let page_size = PageSize::from_bytes(size.bytes()).ok_or(EOPNOTSUPP)?;
    let count = u32::try_from(memory.count(size))?;

    if let Some(first) = start_of_run(memory.pages(size), size.bytes()) {
        return Ok((page_size, RegionBase::Contiguous(first), None));
    }

    let list = dev.hw().page_list(count, Depth::UpToTwo)?;
    list.fill(memory.pages(size))?;

    Ok((page_size, list.region(), Some(list)))
}

/// Returns the first of `pages` of `size` bytes if each follows the one before it.
pub(crate) fn start_of_run(mut pages: impl Iterator<Item = u64>, size: u64) -> Option<u64> {
    let first = pages.next()?;
    let mut at = first;

    pages
        .all(|page| {
            let next = at.checked_add(size);

            at = page;
            next == Some(page)
        })
        .then_some(first)
}

/// Makes a key for region `number`, hard to guess.
#[doc(alias = "irdma_create_stag")]
fn new_stag(dev: &Device<'_>, number: u32) -> u32 {
    let bits = dev
        .ids()
        .mrs
        .max()
        .checked_next_power_of_two()
        .map_or(24, u32::ilog2)
        .clamp(MIN_INDEX_BITS, 24);
    // The device ignores the bits of the index above those that it needs.
    let index_mask = ((1 << bits) - 1) << KEY_BITS;

    random_u32() & !index_mask | number << KEY_BITS
}

/// The part of a key that its user may change.
fn key_of(stag: u32) -> u8 {
    // CAST: The lower 8 bits are meant.
    stag as u8
}

/// Registers a user's memory with the device.
///
/// # Errors
///
/// Those of a command. After `ETIMEDOUT` the device may still do it, and the memory is kept.
#[doc(alias = "irdma_hwreg_mr")]
fn register(
    dev: &Device<'_>,
    stag: u32,
    pd: u32,
    memory: &Arc<UserMemory>,
    access: Access,
) -> Result {
    dev.function()
        .execute(&RegMr {
            index: stag >> KEY_BITS,
            key: key_of(stag),
            pd,
            va: memory.va,
            zero_based: access.contains(Access::ZERO_BASED),
            length: memory.length,
            page_size: memory.page_size,
            region: memory.base,
            access: rights(access),
            remote_atomics: false,
        })
        .inspect_err(|&error| {
            if error == ETIMEDOUT {
                keep(dev, memory);
            }
        })
        .map(|_| ())
}

/// Keeps memory that the device may use. A DMA buffer's exporter can't be kept from giving it to
/// others, so that the device must not come to it any more.
fn keep(dev: &Device<'_>, memory: &Arc<UserMemory>) {
    if memory.umem.is_dmabuf() {
        dev.function().request_reset();
    }
    dev.function().bury(memory.clone());
}

/// Returns what the device shall allow.
#[doc(alias = "irdma_get_mr_access")]
fn rights(access: Access) -> AccessRights {
    let mut rights = AccessRights::from(AccessRight::LocalRead);

    if access.contains(Access::LOCAL_WRITE) {
        rights |= AccessRight::LocalWrite;
    }
    if access.contains(Access::REMOTE_WRITE) {
        rights |= AccessRight::LocalWrite | AccessRight::RemoteWrite;
    }
    if access.contains(Access::REMOTE_READ) {
        rights |= AccessRight::RemoteRead;
    }

    rights
}
