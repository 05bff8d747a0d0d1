// SPDX-License-Identifier: GPL-2.0

//! The segments of the function-private memory and what backs them.
//!
//! A segment is 2 MiB of the device's address space. It is backed by one contiguous region
//! (direct), or by up to 512 pages that a page of descriptors names (paged).

use kernel::{
    alloc::KVVec,
    prelude::*,
    sync::Arc, //
};

use super::fpm::SEGMENT_SIZE;
use crate::{
    hw::{
        bits::bit,
        cqp::memory::{
            SegmentKind,
            SegmentUpdate,
            UpdateSds,
            MAX_SEGMENT_UPDATES, //
        },
        dma::{
            DmaBuffer,
            HW_PAGE_SIZE, //
        },
        function::Function,
        gauge::{
            Counted,
            Gauge, //
        }, //
    },
    uk::memory::Word, //
};

/// Number of pages of a segment.
#[doc(alias = "IRDMA_HMC_PD_CNT_IN_SD")]
pub(crate) const PAGES_PER_SEGMENT: u32 = 512;

/// What backs a segment.
#[derive(Clone)]
pub(crate) enum Backing {
    /// A contiguous region.
    Direct(Arc<DmaBuffer>),
    /// Pages.
    Paged(Arc<PagedBacking>),
}

/// Pages that back a segment.
pub(crate) struct PagedBacking {
    /// The descriptors, which the device reads.
    table: DmaBuffer,
    /// Index of the first page.
    first: u32,
    pages: KVVec<DmaBuffer>,
}

const PAGE_WORDS: usize = HW_PAGE_SIZE / 8;

/// Writes the next of `values`, or as many as there are, to `count` quadwords of `memory`.
#[inline]
fn fill_part(
    memory: &DmaBuffer,
    first: usize,
    count: usize,
    values: &mut impl Iterator<Item = u64>,
) -> Result {
    let words = memory
        .words()
        .get(first..)
        .and_then(|words| words.get(..count))
        .ok_or(ERANGE)?;

    for (word, value) in words.iter().zip(values) {
        word.store(value);
    }

    Ok(())
}

impl Backing {
    /// Allocates a contiguous region.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, quietly: there is the other way.
    pub(crate) fn direct(function: &Function<'_>) -> Result<Self> {
        // CAST: 2 MiB.
        let memory = DmaBuffer::new_quiet(function.parent(), SEGMENT_SIZE as usize)?;

        Ok(Backing::Direct(Arc::new(memory, GFP_KERNEL)?))
    }

    /// Allocates pages for the part `range` of segment `segment`, and their descriptors.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if a segment has no such pages.
    /// - `ENOMEM`.
    #[doc(alias = "irdma_add_pd_table_entry")]
    pub(crate) fn paged(
        function: &Function<'_>,
        segment: u32,
        range: core::ops::Range<u32>,
    ) -> Result<Self> {
        if range.end > PAGES_PER_SEGMENT {
            return Err(EINVAL);
        }

        let mut backing = PagedBacking {
            table: DmaBuffer::new(function.parent(), HW_PAGE_SIZE)?,
            first: range.start,
            pages: KVVec::with_capacity(range.len(), GFP_KERNEL)?,
        };

        for page in range {
            let memory = DmaBuffer::new(function.parent(), HW_PAGE_SIZE)?;

            // CAST: Widening.
            backing
                .table
                .write(page as usize, memory.address() | bit::<0>(true))?;
            function.regs().invalidate_page(segment, page)?;
            backing.pages.push(memory, GFP_KERNEL)?;
        }

        Ok(Backing::Paged(Arc::new(backing, GFP_KERNEL)?))
    }

    /// Writes the quadword at `offset` (in bytes) of the segment.
    ///
    /// # Errors
    ///
    /// `ERANGE` if nothing backs the place.
    pub(crate) fn write(&self, offset: usize, value: u64) -> Result {
        match self {
            Backing::Direct(memory) => memory.write(offset / 8, value),
            Backing::Paged(pages) => {
                let page = (offset / HW_PAGE_SIZE)
                    // CAST: Widening.
                    .checked_sub(pages.first as usize)
                    .ok_or(ERANGE)?;

                pages
                    .pages
                    .get(page)
                    .ok_or(ERANGE)?
                    .write(offset % HW_PAGE_SIZE / 8, value)
            }
        }
    }

    /// Writes the next of `values`, or as many as there are, to the `count` quadwords from `offset`
    /// (in bytes) of the segment on.
    ///
    /// # Errors
    ///
    /// `ERANGE` if nothing backs one of the places. What is before it may have been written.
    pub(crate) fn fill(
        &self,
        offset: usize,
        count: usize,
        values: &mut impl Iterator<Item = u64>,
    ) -> Result {
        let pages = match self {
            Backing::Direct(memory) => return fill_part(memory, offset / 8, count, values),
            Backing::Paged(pages) => pages,
        };
        let mut at = offset / 8;
        let mut left = count;

        while left > 0 {
            let page = (at / PAGE_WORDS)
                // CAST: Widening.
                .checked_sub(pages.first as usize)
                .ok_or(ERANGE)?;
            let now = left.min(PAGE_WORDS - at % PAGE_WORDS);

            fill_part(
                pages.pages.get(page).ok_or(ERANGE)?,
                at % PAGE_WORDS,
                now,
                values,
            )?;
            at += now;
            left -= now;
        }

        Ok(())
    }

    fn kind(&self) -> SegmentKind {
        match self {
            Backing::Direct(_) => SegmentKind::Direct,
            Backing::Paged(_) => SegmentKind::Paged,
        }
    }

    fn address(&self) -> u64 {
        match self {
            Backing::Direct(memory) => memory.address(),
            Backing::Paged(pages) => pages.table.address(),
        }
    }
}

/// A segment that the device knows, or is about to.
struct Segment {
    backing: Backing,
    /// How many kinds of object lie in it.
    users: u32,
    _counted: Counted,
}

/// The segments of a function.
pub(crate) struct Segments {
    segments: KVVec<Option<Segment>>,
    backed: Arc<Gauge>,
}

impl Segments {
    /// Makes a table of `count` segments that nothing backs.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(count: u32) -> Result<Self> {
        let mut segments = KVVec::new();

        for _ in 0..count {
            segments.push(None, GFP_KERNEL)?;
        }

        Ok(Self {
            segments,
            backed: Gauge::new()?,
        })
    }

    /// Returns what tells how many segments are backed.
    pub(crate) fn backed(&self) -> &Arc<Gauge> {
        &self.backed
    }

    fn get_mut(&mut self, index: u32) -> Result<&mut Option<Segment>> {
        // CAST: Widening.
        self.segments.get_mut(index as usize).ok_or(EINVAL)
    }

    /// Returns what backs a segment, if anything does.
    pub(crate) fn backing(&self, index: u32) -> Option<&Backing> {
        // CAST: Widening.
        let segment = self.segments.get(index as usize)?.as_ref()?;

        Some(&segment.backing)
    }

    /// Backs the segments of a range, for one more kind of object, and tells the device of those
    /// that nothing backed before.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the range is not inside of the table.
    /// - `ENOMEM`, and those of [`Function::execute`].
    ///
    /// What was backed stays so until [`Segments::release`].
    #[doc(alias = "irdma_sc_create_hmc_obj")]
    pub(crate) fn acquire(
        &mut self,
        function: &Function<'_>,
        range: core::ops::Range<u32>,
    ) -> Result {
        let backed = self.backed.clone();
        let mut next = range.start;

        while next < range.end {
            let first = next;
            let mut updates = Updates::new(function);

            // As many as one command takes.
            while next < range.end && updates.len() < MAX_SEGMENT_UPDATES {
                let index = next;
                let slot = self.get_mut(index)?;

                next += 1;
                if let Some(segment) = slot {
                    segment.users += 1;
                    continue;
                }

                let segment = Segment::new(function, index, &backed)?;

                // There is room for it.
                let _ = updates.push(segment.set(index));
                *slot = Some(segment);
            }

            let indices = updates.indices();
            if let Err(error) = updates.flush() {
                for index in (first..next).filter(|index| indices.contains(&Some(*index))) {
                    self.forget(function, index, error);
                }
                return Err(error);
            }
        }

        Ok(())
    }

    /// Drops a segment that the device was not told of because of `error`.
    fn forget(&mut self, function: &Function<'_>, index: u32, error: Error) {
        if let Some(segment) = self.get_mut(index).ok().and_then(Option::take) {
            // Having refused the command, the device does not use the memory.
            segment.give_back(function, error == EIO);
        }
    }

    /// Puts `backing` behind a segment that nothing backs, and tells the device.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the segment is not inside of the table.
    /// - `EEXIST` if it is backed already.
    /// - Those of [`Function::execute`].
    #[doc(alias = "irdma_hmc_sd_one")]
    pub(crate) fn set(&mut self, function: &Function<'_>, index: u32, backing: Backing) -> Result {
        let counted = Counted::new(&self.backed);
        let slot = self.get_mut(index)?;

        if slot.is_some() {
            return Err(EEXIST);
        }

        let segment = Segment {
            backing,
            users: 1,
            _counted: counted,
        };
        let update = segment.set(index);

        *slot = Some(segment);

        let mut updates = Updates::new(function);
        updates.push(update)?;
        let result = updates.flush();

        if let Err(error) = result {
            self.forget(function, index, error);
        }

        result
    }

    /// Takes the segments of a range away from one kind of object; those that are no other kind's
    /// are taken away from the device, and their memory is given back.
    #[doc(alias = "irdma_sc_del_hmc_obj")]
    pub(crate) fn release(&mut self, function: &Function<'_>, range: core::ops::Range<u32>) {
        let mut next = range.start;

        while next < range.end {
            let mut gone = [const { None }; MAX_SEGMENT_UPDATES];
            let mut updates = Updates::new(function);

            // As many as one command takes.
            while next < range.end && updates.len() < MAX_SEGMENT_UPDATES {
                let index = next;

                next += 1;
                let Ok(slot) = self.get_mut(index) else {
                    continue;
                };
                let Some(segment) = slot else {
                    continue;
                };

                segment.users = segment.users.saturating_sub(1);
                if segment.users != 0 {
                    continue;
                }
                let update = segment.clear(index);
                if let Some(place) = gone.get_mut(updates.len()) {
                    *place = slot.take();
                    // There is room for it.
                    let _ = updates.push(update);
                }
            }

            let cleared = updates.flush().is_ok();
            for segment in gone.into_iter().flatten() {
                Segment::give_back(segment, function, cleared);
            }
        }
    }
}

impl Segment {
    /// Backs a segment, by a contiguous region if there is one.
    #[doc(alias = "irdma_add_sd_table_entry")]
    fn new(function: &Function<'_>, index: u32, backed: &Arc<Gauge>) -> Result<Self> {
        let backing = match Backing::direct(function) {
            Ok(backing) => backing,
            Err(_) => Backing::paged(function, index, 0..PAGES_PER_SEGMENT)?,
        };

        Ok(Self {
            backing,
            users: 1,
            _counted: Counted::new(backed),
        })
    }

    fn set(&self, index: u32) -> SegmentUpdate {
        SegmentUpdate {
            index,
            kind: self.backing.kind(),
            address: Some(self.backing.address()),
        }
    }

    fn clear(&self, index: u32) -> SegmentUpdate {
        SegmentUpdate {
            index,
            kind: self.backing.kind(),
            address: None,
        }
    }

    /// Gives the memory back, or buries it when the device was not told to let go of it.
    fn give_back(self, function: &Function<'_>, cleared: bool) {
        if !cleared {
            function.bury(self);
        }
    }
}

/// Segment descriptors on their way to the device.
struct Updates<'f, 'a> {
    function: &'f Function<'a>,
    updates: [SegmentUpdate; MAX_SEGMENT_UPDATES],
    count: usize,
}

impl<'f, 'a> Updates<'f, 'a> {
    fn new(function: &'f Function<'a>) -> Self {
        Self {
            function,
            updates: [SegmentUpdate {
                index: 0,
                kind: SegmentKind::Direct,
                address: None,
            }; MAX_SEGMENT_UPDATES],
            count: 0,
        }
    }

    fn len(&self) -> usize {
        self.count
    }

    /// Returns the indices of the segments.
    fn indices(&self) -> [Option<u32>; MAX_SEGMENT_UPDATES] {
        let mut indices = [None; MAX_SEGMENT_UPDATES];

        for (index, update) in indices.iter_mut().zip(&self.updates).take(self.count) {
            *index = Some(update.index);
        }

        indices
    }

    fn push(&mut self, update: SegmentUpdate) -> Result {
        if self.count == MAX_SEGMENT_UPDATES {
            self.flush()?;
        }
        if let Some(slot) = self.updates.get_mut(self.count) {
            *slot = update;
            self.count += 1;
        }

        Ok(())
    }

    #[doc(alias = "irdma_hmc_sd_grp")]
    fn flush(&mut self) -> Result {
        let updates = self.updates.get(..self.count).unwrap_or(&[]);

        if let Some(command) = UpdateSds::new(self.function.hmc_function(), updates) {
            self.count = 0;
            self.function.execute(&command)?;
        }

        Ok(())
    }
}
