// SPDX-License-Identifier: GPL-2.0

//! A completion ring: which entry is next, and whether the device has written it.

use kernel::prelude::*;

use super::{
    cqe::{
        self,
        Cqe,
        Header, //
    },
    memory::{
        self,
        Word, //
    },
    ring::Polarity, //
};

/// Position in a completion ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "irdma_cq_uk")]
pub(crate) struct CompletionRing {
    next: u32,
    size: u32,
    polarity: Polarity,
}

/// A completion that the device has written, and the entries that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pending {
    /// What it says.
    pub(crate) cqe: Cqe,
    entries: u32,
}

/// A work request of a send queue that has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// The completion context of the QP.
    pub(crate) context: u64,
    /// Quantum of the ring at which the WQE begins.
    pub(crate) wqe_index: u32,
}

impl CompletionRing {
    /// An empty ring of `size` entries, all of whose valid bits are 0.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no room for a completion.
    #[doc(alias = "irdma_uk_cq_init")]
    pub(crate) fn new(size: u32) -> Result<Self> {
        if size < 2 {
            return Err(EINVAL);
        }
        Ok(Self {
            next: 0,
            size,
            polarity: Polarity::ONE,
        })
    }

    /// Index of the entry that is read next, for the shadow area.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Entries of the ring.
    #[inline]
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Whether the ring, which lies at the beginning of `memory`, has no completion that
    /// [`Self::peek`] would return: the first half of one is none yet.
    #[doc(alias = "irdma_uk_cq_empty")]
    pub(crate) fn is_empty(&self, memory: &[impl Word]) -> bool {
        self.peek(memory).is_none()
    }

    /// What the next entry says if it tells that a work request of a send queue has succeeded, as
    /// most do. It stays in the ring.
    #[inline]
    pub(crate) fn peek_sent(&self, memory: &[impl Word]) -> Option<Sent> {
        let (header, [_, context, ..]) = written(memory, self.next, self.polarity)?;

        header.is_sent().then(|| Sent {
            context: context.load(),
            wqe_index: header.wqe_index().cast::<u32>().get(),
        })
    }

    /// The next completion, if the device has written it wholly. It stays in the ring.
    #[doc(alias = "irdma_uk_cq_poll_cmpl")]
    #[inline]
    pub(crate) fn peek(&self, memory: &[impl Word]) -> Option<Pending> {
        let (header, words) = written(memory, self.next, self.polarity)?;
        let extension = if header.extended() {
            let (entry, polarity) = self.step(self.next, self.polarity);
            let (header, words) = written(memory, entry, polarity)?;

            Some(load(words, header.into_raw()))
        } else {
            None
        };

        Some(Pending {
            cqe: Cqe::decode(load(words, header.into_raw()), extension),
            entries: 1 + u32::from(extension.is_some()),
        })
    }

    /// Goes on to the entry behind the one that [`Self::peek_sent`] has just returned.
    #[inline]
    pub(crate) fn consume_sent(&mut self) {
        (self.next, self.polarity) = self.step(self.next, self.polarity);
    }

    /// Goes on to the entry behind `pending`, which [`Self::peek`] has just returned.
    #[inline]
    pub(crate) fn consume(&mut self, pending: &Pending) {
        for _ in 0..pending.entries {
            (self.next, self.polarity) = self.step(self.next, self.polarity);
        }
    }

    /// The entry after `entry`, and the polarity that it has when it is new.
    #[inline]
    fn step(&self, entry: u32, polarity: Polarity) -> (u32, Polarity) {
        let next = entry.saturating_add(1);

        if next >= self.size {
            (0, polarity.flipped())
        } else {
            (next, polarity)
        }
    }
}

/// The words and the header of entry `index`, if it is there and has been written.
#[inline]
fn written<W: Word>(memory: &[W], index: u32, polarity: Polarity) -> Option<(Header, &[W; 4])> {
    let words = memory::entry(memory, index)?;
    let [_, _, _, last] = words;
    // The rest of the entry was written before its header, and is read after it.
    let header = last.load_first();

    (cqe::polarity(header) == polarity).then(|| (Header::from_raw(header), words))
}

/// The entry's words, of which the header has been read.
#[inline]
fn load<W: Word>(words: &[W; 4], header: u64) -> [u64; 4] {
    let [first, second, third, _] = words;

    [first.load(), second.load(), third.load(), header]
}
