// SPDX-License-Identifier: GPL-2.0

//! How the owner of ring memory lends it to this room: as slices of words.

use super::ring::Polarity;

/// Words in a quantum and in a CQE.
pub(crate) const QUANTUM_WORDS: u32 = 4;

/// Bytes in a quantum and in a CQE.
pub(crate) const QUANTUM_BYTES: u32 = 32;

/// The same as a length of slices.
pub(super) const QUANTUM_LEN: usize = QUANTUM_WORDS as usize;

/// Word of a WQE that holds its header, and with it the valid bit.
pub(crate) const HEADER: usize = 3;

/// A 64-bit word that the device reads or writes, too: little endian in memory, in the CPU's order
/// here. A ring is a slice of these.
pub(crate) trait Word {
    /// Loads the word.
    fn load(&self) -> u64;

    /// Loads the word before all that is loaded later.
    fn load_first(&self) -> u64;

    /// Stores `value`.
    fn store(&self, value: u64);

    /// Makes all earlier stores visible to the device, then stores `value`.
    fn publish(&self, value: u64);
}

/// The words of entry `index` of a ring of quanta or CQEs, or `None` if it has no such entry.
#[inline]
pub(super) fn entry<W>(ring: &[W], index: u32) -> Option<&[W; QUANTUM_LEN]> {
    ring.get(index as usize * QUANTUM_LEN..)?.first_chunk()
}

/// The part of a ring in which one WQE is written, before it is published.
pub(crate) struct Slot<'a, W> {
    /// The quantum with the header.
    first: &'a [W; QUANTUM_LEN],
    further: &'a [W],
    polarity: Polarity,
}

impl<'a, W: Word> Slot<'a, W> {
    /// A slot of `quanta` quanta from quantum `quantum` of `ring` on; `None` if it is empty or not
    /// inside of the ring.
    #[inline]
    pub(crate) fn new(
        ring: &'a [W],
        quantum: u32,
        quanta: u32,
        polarity: Polarity,
    ) -> Option<Self> {
        let start = quantum as usize * QUANTUM_LEN;
        let (first, further) = ring
            .get(start..start + quanta as usize * QUANTUM_LEN)?
            .split_first_chunk()?;

        Some(Self {
            first,
            further,
            polarity,
        })
    }

    /// The valid bit that the WQE must carry.
    #[inline]
    pub(crate) fn polarity(&self) -> Polarity {
        self.polarity
    }

    /// Stores `value` in word `word` of the first quantum. The header's word is left alone, and
    /// there are none beyond it.
    #[inline]
    pub(crate) fn put(&self, word: usize, value: u64) {
        if word != HEADER {
            if let Some(place) = self.first.get(word) {
                place.store(value);
            }
        }
    }

    /// The words of all quanta but the first.
    #[inline]
    pub(crate) fn further(&self) -> &'a [W] {
        self.further
    }

    /// Hands the WQE to the device by storing its header last.
    #[inline]
    pub(crate) fn publish(self, header: u64) {
        let [_, _, _, place] = self.first;

        place.publish(header);
    }
}

const _: () = assert!(HEADER < QUANTUM_LEN);
