// SPDX-License-Identifier: GPL-2.0

//! A send ring: where WQEs go, and which work requests are outstanding.

use core::ops::DerefMut;

use kernel::prelude::*;

use super::{
    memory::{
        Slot,
        Word,
        QUANTUM_LEN,
        QUANTUM_WORDS, //
    },
    ring::{
        Polarity,
        Ring, //
    },
    sizing::SQ_RESERVED,
    wqe::{
        self,
        Opcode, //
    }, //
};

/// Quanta that are wiped at a time, ahead of the head.
const WIPE_QUANTA: u32 = 128;

/// Quanta that posting leaves free.
const KEPT_FREE: u32 = SQ_RESERVED - 1;

/// What is to be known of a send work request once it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendWork {
    /// The user's id of it.
    pub(crate) wr_id: u64,
    /// Bytes that it moves.
    pub(crate) bytes: u32,
    /// The operation.
    pub(crate) opcode: Opcode,
    /// A completion is wanted even if all goes well.
    pub(crate) signaled: bool,
}

/// Book-keeping of one quantum of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "irdma_sq_uk_wr_trk_info")]
pub(crate) enum Quantum {
    /// Not the start of a WQE.
    Rest,
    /// Padding of one quantum.
    Pad,
    /// The first quantum of a work request's WQE. The fields are those of [`SendWork`], flat, so
    /// that an entry takes 16 bytes.
    Work {
        /// See [`SendWork::wr_id`].
        wr_id: u64,
        /// See [`SendWork::bytes`].
        bytes: u32,
        /// See [`SendWork::opcode`].
        opcode: Opcode,
        /// See [`SendWork::signaled`].
        signaled: bool,
        /// Quanta of the WQE.
        quanta: u8,
    },
}

static_assert!(size_of::<Quantum>() == 16);

impl Quantum {
    /// The entry of a work request's WQE.
    fn work(work: SendWork, quanta: u8) -> Self {
        Self::Work {
            wr_id: work.wr_id,
            bytes: work.bytes,
            opcode: work.opcode,
            signaled: work.signaled,
            quanta,
        }
    }

    /// The work request whose WQE begins here, if one does, and the quanta to the next entry.
    fn split(self) -> (Option<SendWork>, u32) {
        match self {
            Self::Rest | Self::Pad => (None, 1),
            Self::Work {
                wr_id,
                bytes,
                opcode,
                signaled,
                quanta,
            } => (
                Some(SendWork {
                    wr_id,
                    bytes,
                    opcode,
                    signaled,
                }),
                quanta.into(),
            ),
        }
    }
}

/// A send ring with its book-keeping in `B`, one [`Quantum`] for each of the ring.
#[doc(alias = "irdma_qp_uk")]
pub(crate) struct SendRing<B> {
    ring: Ring,
    /// Polarity of the next WQE.
    polarity: Polarity,
    /// Quanta of a block, a power of two.
    chunk: u32,
    book: B,
}

impl<B: DerefMut<Target = [Quantum]>> SendRing<B> {
    /// An empty ring, as large as `book`, whose WQEs lie within blocks of `chunk` quanta.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the ring's size is not a power of two, not a multiple of what is wiped at a time,
    /// or has no room beside what stays free, or if `chunk` is not a power of two or larger.
    pub(crate) fn new(mut book: B, chunk: u32) -> Result<Self> {
        let size = u32::try_from(book.len()).map_err(|_| EINVAL)?;

        if size % WIPE_QUANTA != 0 || size <= SQ_RESERVED {
            return Err(EINVAL);
        }
        if !chunk.is_power_of_two() || chunk > size {
            return Err(EINVAL);
        }
        book.fill(Quantum::Rest);

        Ok(Self {
            ring: Ring::new(size)?,
            polarity: Polarity::ONE,
            chunk,
            book,
        })
    }

    /// Whether no work request is outstanding.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Head, tail and size of the ring, in quanta.
    #[cfg(irdma_kunit)]
    pub(crate) fn ring(&self) -> &Ring {
        &self.ring
    }

    /// Puts a WQE of `quanta` quanta in the ring, which lies at the beginning of `memory`.
    ///
    /// `encode` stores its words in the slot and returns its header; it is called once, after it is
    /// known that the WQE has room. The device owns the WQE afterwards, but is not told.
    ///
    /// # Errors
    ///
    /// `ENOMEM` if the ring has no room, `EINVAL` if no WQE has so many quanta. Nothing has changed
    /// then. `EINVAL`, too, if `memory` is smaller than the ring.
    #[doc(alias = "irdma_qp_get_next_send_wqe")]
    #[inline]
    pub(crate) fn post<W: Word>(
        &mut self,
        memory: &[W],
        work: SendWork,
        quanta: u32,
        encode: impl FnOnce(&Slot<'_, W>) -> u64,
    ) -> Result {
        if quanta == 0 || quanta > self.chunk {
            return Err(EINVAL);
        }

        // What there is before the next multiple of `chunk`.
        let in_chunk = self.ring.head() & self.chunk.wrapping_sub(1);
        let left_in_chunk = self.chunk.wrapping_sub(in_chunk);
        let padding = if quanta <= left_in_chunk {
            0
        } else {
            left_in_chunk
        };
        // Neither is above `chunk`, which is no larger than the ring.
        if !self.ring.has_room(quanta.wrapping_add(padding), KEPT_FREE) {
            return Err(ENOMEM);
        }

        if padding != 0 {
            self.pad(memory, padding);
        }

        let index = self.ring.head();
        let slot = Slot::new(memory, index, quanta, self.polarity).ok_or(EINVAL)?;

        if index % WIPE_QUANTA == 0 {
            self.wipe_ahead(memory, index);
        }

        let header = encode(&slot);

        // Book before publication: a completion can come at once. No block lies over the ring's end.
        if let Some([first, rest @ ..]) = self
            .book
            .get_mut(index as usize..index as usize + quanta as usize)
        {
            // CAST: At most `chunk`, which is 8 on the largest device.
            *first = Quantum::work(work, quanta as u8);
            rest.fill(Quantum::Rest);
        }
        self.advance(quanta);
        slot.publish(header);

        Ok(())
    }

    /// Fills `count` quanta with NOPs, so that the next WQE begins a block.
    #[inline]
    fn pad<W: Word>(&mut self, memory: &[W], count: u32) {
        let header = wqe::nop_header(self.polarity);
        let head = self.ring.head() as usize;

        for quantum in head..head + count as usize {
            let words = memory.get(quantum * QUANTUM_LEN..quantum * QUANTUM_LEN + QUANTUM_LEN);
            let (Some(place), Some([first, second, third, last])) =
                (self.book.get_mut(quantum), words)
            else {
                break;
            };

            *place = Quantum::Pad;
            first.store(0);
            second.store(0);
            third.store(0);
            last.publish(header);
        }
        self.advance(count);
    }

    /// Moves the head on; the polarity changes with the lap.
    #[inline]
    fn advance(&mut self, count: u32) {
        self.ring.advance_head(count);
        if self.ring.head() == 0 {
            self.polarity = self.polarity.flipped();
        }
    }

    /// Wipes the quanta that the ring comes to after the next 128, so that the device takes nothing
    /// of the last lap for a WQE or a fragment of this one.
    #[doc(alias = "irdma_clr_wqes")]
    #[inline(never)]
    fn wipe_ahead<W: Word>(&self, memory: &[W], index: u32) {
        let target = self.ring.after(index, WIPE_QUANTA);
        let polarity = if target == 0 {
            self.polarity.flipped()
        } else {
            self.polarity
        };
        let stale = polarity.stale_word();

        for word in memory
            .iter()
            .skip(target as usize * QUANTUM_WORDS as usize)
            .take((WIPE_QUANTA * QUANTUM_WORDS) as usize)
        {
            word.store(stale);
        }
    }

    /// Takes the work request whose WQE begins at quantum `index` out of the ring, and with it all
    /// before it: those were not signaled, and are done.
    ///
    /// `None` if no outstanding WQE begins there.
    #[inline]
    pub(crate) fn complete(&mut self, index: u32) -> Option<SendWork> {
        if !self.ring.holds(index) {
            return None;
        }
        let (work, quanta) = self.book.get(index as usize)?.split();

        if work.is_some() {
            self.ring.release_to(index, quanta);
        }
        work
    }

    /// Takes the oldest work request out of the ring. Padding before it goes too.
    pub(crate) fn flush_oldest(&mut self) -> Option<SendWork> {
        while !self.ring.is_empty() {
            let index = self.ring.tail();
            let (work, quanta) = self.book.get(index as usize)?.split();

            self.ring.release_to(index, quanta);
            if work.is_some() {
                return work;
            }
        }
        None
    }
}

const _: () = assert!(2 * WIPE_QUANTA < KEPT_FREE);
