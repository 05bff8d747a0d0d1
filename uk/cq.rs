// SPDX-License-Identifier: GPL-2.0

//! A completion ring: which entry is next, and whether the device has written it.

use kernel::prelude::*;

use super::{
    cqe::{
        self,
        Cqe,
        Header, //
    },
    memory::EntrySource,
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
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Entries of the ring.
    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// Whether the next entry has not been written yet.
    #[doc(alias = "irdma_uk_cq_empty")]
    pub(crate) fn is_empty(&self, source: &impl EntrySource) -> bool {
        cqe::polarity(source.load(self.next, 3)) != self.polarity
    }

    /// The next completion, if the device has written it wholly. It stays in the ring.
    #[doc(alias = "irdma_uk_cq_poll_cmpl")]
    pub(crate) fn peek(&self, source: &impl EntrySource) -> Option<Pending> {
        let header = source.load(self.next, 3);

        if cqe::polarity(header) != self.polarity {
            return None;
        }
        // The rest of the entry was written before its header, and is read after it.
        source.order_loads();

        let extension = if Header::from_raw(header).extended() {
            let (entry, polarity) = self.step(self.next, self.polarity);
            let header = source.load(entry, 3);

            if cqe::polarity(header) != polarity {
                return None;
            }
            source.order_loads();
            Some(rest(source, entry, header))
        } else {
            None
        };

        Some(Pending {
            cqe: Cqe::decode(rest(source, self.next, header), extension),
            entries: 1 + u32::from(extension.is_some()),
        })
    }

    /// Goes on to the entry behind `pending`, which [`Self::peek`] has just returned.
    pub(crate) fn consume(&mut self, pending: &Pending) {
        for _ in 0..pending.entries {
            (self.next, self.polarity) = self.step(self.next, self.polarity);
        }
    }

    /// The entry after `entry`, and the polarity that it has when it is new.
    fn step(&self, entry: u32, polarity: Polarity) -> (u32, Polarity) {
        let next = entry.saturating_add(1);

        if next >= self.size {
            (0, polarity.flipped())
        } else {
            (next, polarity)
        }
    }
}

/// The entry's words, of which the header has been read.
fn rest(source: &impl EntrySource, entry: u32, header: u64) -> [u64; 4] {
    [
        source.load(entry, 0),
        source.load(entry, 1),
        source.load(entry, 2),
        header,
    ]
}
