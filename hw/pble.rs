// SPDX-License-Identifier: GPL-2.0

//! Page lists.
//!
//! A page list tells the device where the pages of a ring or a region are. Its entries (physical
//! buffer list entries, PBLE) are in the function-private memory. A list of one level is an array
//! of addresses; one of two levels has a root of indices of leaves with up to 512 addresses each,
//! so that it needs no long run of entries.
//!
//! The entries are handed out in units of eight. The memory behind them grows, up to a segment at a
//! time, when a list does not fit any more.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

mod units;

use units::Units;

use super::{
    cqp::mr::RegionBase,
    dma::HW_PAGE_SIZE,
    hmc::{
        fpm::SEGMENT_SIZE,
        object::Object,
        segment::{
            Backing,
            PAGES_PER_SEGMENT, //
        },
        Hmc, //
    }, //
};

/// Size of an entry in bytes.
const ENTRY: u64 = 8;

/// Entries are handed out in units of so many.
const UNIT: u32 = 8;

/// Number of entries of a page, that is of a full leaf.
#[doc(alias = "PBLE_PER_PAGE")]
pub(crate) const ENTRIES_PER_PAGE: u32 = 512;

/// Depth that a list may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// One level only.
    One,
    /// Two levels, where one does not fit.
    UpToTwo,
}

/// A run of entries that has memory behind it.
struct Chunk {
    /// Index of the first entry.
    first: u32,
    /// Offset in bytes of the first entry in its segment.
    offset: usize,
    backing: Backing,
    units: Units,
}

impl Chunk {
    /// Takes units back.
    #[doc(alias = "irdma_prm_return_pbles")]
    fn give_back(&mut self, run: &Run) {
        self.units.give_back(run.start, run.units);
    }
}

/// Entries that belong to one list.
struct Run {
    /// Index of the chunk.
    chunk: usize,
    /// First unit in the chunk.
    start: usize,
    /// Number of units.
    units: usize,
    /// Index of the first entry.
    first: u32,
    /// Number of entries in use.
    count: u32,
    /// Offset in bytes of the first entry in its segment.
    offset: usize,
    backing: Backing,
}

impl Run {
    fn write(&self, index: u32, value: u64) -> Result {
        if index >= self.count {
            return Err(ERANGE);
        }

        // CAST: Widening.
        self.backing.write(self.offset + index as usize * 8, value)
    }

    /// Writes the next of `values` to all entries, or as many as there are.
    fn fill(&self, values: &mut impl Iterator<Item = u64>) -> Result {
        // CAST: Widening.
        self.backing.fill(self.offset, self.count as usize, values)
    }
}

/// What changes when lists come and go.
struct State {
    chunks: KVec<Chunk>,
    /// Address in the function-private memory where the next chunk begins.
    next: u64,
    /// Number of entries that have no memory behind them yet.
    left: u32,
    /// Number of entries that lists have.
    used: u64,
}

/// What lists refer to. They may outlive the device: then nobody looks at them any more.
#[pin_data]
struct Pool {
    #[pin]
    state: Mutex<State>,
}

/// A look at the entries, which may outlive the device.
pub(crate) struct Entries {
    pool: Arc<Pool>,
    max: u32,
}

impl Entries {
    /// Returns how many entries lists have and how many there are. May sleep.
    pub(crate) fn occupancy(&self) -> (u64, u32) {
        (self.pool.state.lock().used, self.max)
    }
}

/// The entries of the function.
pub(crate) struct PageLists<'a> {
    hmc: Arc<Hmc<'a>>,
    /// Address of entry 0 in the function-private memory.
    base: u64,
    pool: Arc<Pool>,
}

impl<'a> PageLists<'a> {
    /// Makes the first entries.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the function has no entries, or there is no memory for them.
    #[doc(alias = "irdma_hmc_init_pble")]
    pub(crate) fn new(hmc: Arc<Hmc<'a>>) -> Result<Arc<Self>> {
        let placement = hmc.layout().objects.get(Object::Pble);
        // The entries in use begin on a page.
        let page = HW_PAGE_SIZE as u64;
        let next = placement.base.next_multiple_of(page);
        let skipped = (next - placement.base) / ENTRY;
        let left = u64::from(placement.count)
            .checked_sub(skipped)
            .ok_or(ENOMEM)?;
        let state = State {
            chunks: KVec::new(),
            next,
            left: left.try_into()?,
            used: 0,
        };
        let pool = Arc::pin_init(
            pin_init!(Pool {
                state <- new_mutex!(state, "irdma_rs::page_lists"),
            }),
            GFP_KERNEL,
        )?;
        let lists = Arc::new(
            Self {
                base: placement.base,
                hmc,
                pool,
            },
            GFP_KERNEL,
        )?;

        lists.grow(&mut lists.pool.state.lock())?;

        Ok(lists)
    }

    /// Returns what tells how many entries are in use.
    pub(crate) fn entries(&self) -> Entries {
        Entries {
            pool: self.pool.clone(),
            max: self.max_index(),
        }
    }

    /// Returns the number of entries that a list can name.
    pub(crate) fn max_index(&self) -> u32 {
        self.hmc.layout().count(Object::Pble)
    }

    /// Puts memory behind more entries.
    #[doc(alias = "add_pble_prm")]
    fn grow(&self, state: &mut State) -> Result {
        if state.left < ENTRIES_PER_PAGE {
            return Err(ENOMEM);
        }

        // CAST: A segment's number has 12 bits, and what is in a segment has 21.
        let segment = (state.next / SEGMENT_SIZE) as u32;
        let offset = (state.next % SEGMENT_SIZE) as usize;
        let first_page = (offset / HW_PAGE_SIZE) as u32;
        let pages = (PAGES_PER_SEGMENT - first_page).min(state.left / ENTRIES_PER_PAGE);
        let entries = pages * ENTRIES_PER_PAGE;
        let units = Units::new((entries / UNIT) as usize, GFP_KERNEL)?;

        state.chunks.reserve(1, GFP_KERNEL)?;

        let backing = match self.hmc.backing(segment) {
            // Other objects lie in the segment's beginning.
            Some(backing) => backing,
            None => {
                let function = self.hmc.function();
                let direct = match first_page == 0 && pages == PAGES_PER_SEGMENT {
                    true => Backing::direct(function).ok(),
                    false => None,
                };
                let backing = match direct {
                    Some(backing) => backing,
                    None => Backing::paged(function, segment, first_page..first_page + pages)?,
                };

                self.hmc.back_page_lists(segment, backing.clone())?;
                backing
            }
        };

        // There is room for it.
        let _ = state.chunks.push_within_capacity(Chunk {
            // CAST: Not more than the count of entries, which has 32 bits.
            first: ((state.next - self.base) / ENTRY) as u32,
            offset,
            backing,
            units,
        });
        state.next += u64::from(entries) * ENTRY;
        state.left -= entries;

        Ok(())
    }

    /// Takes `count` entries in a row out of the chunks that there are, the newest first.
    #[doc(alias = "irdma_prm_get_pbles")]
    fn take(state: &mut State, count: u32) -> Option<Run> {
        // CAST: Widening.
        let units = count.div_ceil(UNIT) as usize;

        for (index, chunk) in state.chunks.iter_mut().enumerate().rev() {
            if let Some(start) = chunk.units.take(units) {
                // CAST: Not more than the count of entries, which has 32 bits.
                let entry = start as u32 * UNIT;

                return Some(Run {
                    chunk: index,
                    start,
                    units,
                    first: chunk.first + entry,
                    count,
                    // CAST: Widening.
                    offset: chunk.offset + entry as usize * 8,
                    backing: chunk.backing.clone(),
                });
            }
        }

        None
    }

    fn give_back(state: &mut State, run: &Run) {
        if let Some(chunk) = state.chunks.get_mut(run.chunk) {
            chunk.give_back(run);
        }
    }

    /// Takes the entries of a list of two levels.
    #[doc(alias = "get_lvl2_pble")]
    fn take_two_levels(state: &mut State, count: u32) -> Result<(Run, KVec<Run>)> {
        let leaves = count.div_ceil(ENTRIES_PER_PAGE);
        let mut taken = KVec::new();

        // CAST: Widening.
        taken.reserve(leaves as usize, GFP_KERNEL)?;

        let root = Self::take(state, leaves).ok_or(ENOMEM)?;
        let fill = |state: &mut State, taken: &mut KVec<Run>| -> Result {
            let mut left = count;

            for i in 0..leaves {
                let leaf = Self::take(state, left.min(ENTRIES_PER_PAGE)).ok_or(ENOMEM)?;
                let index = leaf.first.into();

                left -= leaf.count;
                // There is room for it.
                let _ = taken.push_within_capacity(leaf);
                root.write(i, index)?;
            }

            Ok(())
        };

        if let Err(error) = fill(state, &mut taken) {
            for leaf in taken.iter() {
                Self::give_back(state, leaf);
            }
            Self::give_back(state, &root);
            return Err(error);
        }

        Ok((root, taken))
    }

    fn try_take(state: &mut State, count: u32, depth: Depth) -> Result<(Run, KVec<Run>)> {
        if let Some(run) = Self::take(state, count) {
            return Ok((run, KVec::new()));
        }
        if depth == Depth::One || count <= ENTRIES_PER_PAGE {
            return Err(ENOMEM);
        }

        Self::take_two_levels(state, count)
    }
}

/// A page list. Its entries are given back on drop: the device must not use it any more.
pub(crate) struct PageList {
    pool: Arc<Pool>,
    /// The list of one level, or the root.
    root: Run,
    /// The leaves of a list of two levels.
    leaves: KVec<Run>,
    count: u32,
}

impl PageList {
    /// Makes a list of `count` entries, whose values are undefined.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if `count` is zero.
    /// - `ENOMEM` if there are not so many entries left.
    #[doc(alias = "irdma_get_pble")]
    pub(crate) fn new(lists: &PageLists<'_>, count: u32, depth: Depth) -> Result<Self> {
        if count == 0 {
            return Err(EINVAL);
        }
        if count > lists.max_index() {
            return Err(ENOMEM);
        }

        let mut state = lists.pool.state.lock();
        // Each round adds a segment's entries; one round suffices for a list of one level.
        // CAST: At most 2.
        let rounds = match depth {
            Depth::One => 1,
            Depth::UpToTwo => (u64::from(count) * ENTRY / SEGMENT_SIZE) as u32 + 1,
        };
        let mut taken = PageLists::try_take(&mut state, count, depth);

        for _ in 0..rounds {
            if taken.is_ok() {
                break;
            }
            lists.grow(&mut state)?;
            taken = PageLists::try_take(&mut state, count, depth);
        }

        let (root, leaves) = taken?;

        state.used += u64::from(count);
        drop(state);

        Ok(Self {
            pool: lists.pool.clone(),
            root,
            leaves,
            count,
        })
    }

    /// Writes the address of page `index` into the list.
    ///
    /// # Errors
    ///
    /// `ERANGE` if the list has no such entry.
    #[doc(alias = "irdma_next_pbl_addr")]
    pub(crate) fn write(&self, index: u32, address: u64) -> Result {
        if self.leaves.is_empty() {
            return self.root.write(index, address);
        }

        // CAST: Widening.
        self.leaves
            .get((index / ENTRIES_PER_PAGE) as usize)
            .ok_or(ERANGE)?
            .write(index % ENTRIES_PER_PAGE, address)
    }

    /// Writes the addresses of all pages into the list.
    ///
    /// # Errors
    ///
    /// `ERANGE` if there are more than the list has entries. Then it is full.
    #[doc(alias = "irdma_copy_user_pgaddrs")]
    pub(crate) fn fill(&self, mut addresses: impl Iterator<Item = u64>) -> Result {
        if self.leaves.is_empty() {
            self.root.fill(&mut addresses)?;
        }
        for leaf in self.leaves.iter() {
            leaf.fill(&mut addresses)?;
        }

        match addresses.next() {
            Some(_) => Err(ERANGE),
            None => Ok(()),
        }
    }

    /// Returns the index by which the device knows the list.
    pub(crate) fn first_index(&self) -> u32 {
        self.root.first
    }

    /// Returns the number of levels, 1 or 2.
    pub(crate) fn levels(&self) -> u32 {
        match self.leaves.is_empty() {
            true => 1,
            false => 2,
        }
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> u32 {
        self.count
    }

    /// Returns where the device finds the region that the list describes.
    pub(crate) fn region(&self) -> RegionBase {
        match self.levels() {
            1 => RegionBase::Level1(self.first_index()),
            _ => RegionBase::Level2(self.first_index()),
        }
    }
}

impl Drop for PageList {
    #[doc(alias = "irdma_free_pble")]
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();

        for leaf in self.leaves.iter() {
            PageLists::give_back(&mut state, leaf);
        }
        PageLists::give_back(&mut state, &self.root);
        state.used = state.used.saturating_sub(self.count.into());
    }
}
