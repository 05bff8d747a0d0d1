// SPDX-License-Identifier: GPL-2.0

//! How the owner of ring memory lends it to this room.

use super::ring::Polarity;

/// Words in a quantum and in a CQE.
pub(crate) const QUANTUM_WORDS: u32 = 4;

/// Bytes in a quantum and in a CQE.
pub(crate) const QUANTUM_BYTES: u32 = 32;

/// Word of a WQE that holds its header, and with it the valid bit.
pub(crate) const HEADER: u32 = 3;

/// Memory of a ring of work-queue entries, addressed in 64-bit words from the ring's start.
///
/// The words are the device's, little endian in memory; values are passed in the CPU's order.
/// Accesses beyond the ring do nothing: the callers in this room never make one, and an owner must
/// not trust that.
pub(crate) trait RingMemory {
    /// Stores `value` in word `word`.
    fn put(&mut self, word: u32, value: u64);

    /// Makes all earlier stores visible to the device, then stores `value` in word `word`.
    ///
    /// After this the entry belongs to the device.
    fn publish(&mut self, word: u32, value: u64);

    /// Stores `value` in `count` words from `word` on.
    fn fill(&mut self, word: u32, count: u32, value: u64) {
        for word in word..word.saturating_add(count) {
            self.put(word, value);
        }
    }
}

/// Memory of a ring of completion-queue entries.
pub(crate) trait EntrySource {
    /// Loads word `word` (0 to 3) of entry `entry`.
    ///
    /// An entry beyond the ring reads as zero.
    fn load(&self, entry: u32, word: u32) -> u64;

    /// Orders the loads before this call before those after it.
    fn order_loads(&self);
}

/// The part of a ring in which one WQE is written, before it is published.
pub(crate) struct Slot<'a, M> {
    memory: &'a mut M,
    first_word: u32,
    words: u32,
    polarity: Polarity,
}

impl<'a, M: RingMemory> Slot<'a, M> {
    /// A slot of `quanta` quanta from quantum `quantum` of the ring on.
    pub(crate) fn new(memory: &'a mut M, quantum: u32, quanta: u32, polarity: Polarity) -> Self {
        Self {
            memory,
            first_word: quantum.saturating_mul(QUANTUM_WORDS),
            words: quanta.saturating_mul(QUANTUM_WORDS),
            polarity,
        }
    }

    /// The valid bit that the WQE must carry.
    pub(crate) fn polarity(&self) -> Polarity {
        self.polarity
    }

    /// Stores `value` in word `word` of the WQE. The header's word and words beyond the slot are
    /// left alone.
    pub(crate) fn put(&mut self, word: u32, value: u64) {
        if word < self.words && word != HEADER {
            self.memory.put(self.first_word.saturating_add(word), value);
        }
    }

    /// Hands the WQE to the device by storing its header last.
    pub(crate) fn publish(self, header: u64) {
        self.memory
            .publish(self.first_word.saturating_add(HEADER), header);
    }
}
