// SPDX-License-Identifier: GPL-2.0

//! Ordinary memory in the place of rings.

use kernel::prelude::*;

use crate::uk::memory::{
    EntrySource,
    RingMemory, //
};

/// Word value that no encoder writes: it shows which words were left alone.
pub(crate) const UNTOUCHED: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// A ring of words that remembers how it was written.
pub(crate) struct Words {
    pub(crate) words: KVec<u64>,
    /// Number of stores, and of the last one that published something.
    stores: usize,
    published: usize,
    /// Stores outside the ring.
    pub(crate) outside: usize,
}

impl Words {
    /// A ring of `count` words, each [`UNTOUCHED`].
    pub(crate) fn new(count: usize) -> Result<Self> {
        Ok(Self {
            words: KVec::from_elem(UNTOUCHED, count, GFP_KERNEL)?,
            stores: 0,
            published: 0,
            outside: 0,
        })
    }

    /// The word at `index`; `None` outside the ring.
    pub(crate) fn word(&self, index: usize) -> Option<u64> {
        self.words.get(index).copied()
    }

    /// The words of `quanta` quanta from quantum `first` on are `expected`.
    pub(crate) fn holds(&self, first: usize, expected: &[u64]) -> bool {
        self.words.get(first * 4..first * 4 + expected.len()) == Some(expected)
    }

    /// Whether the last store was the one that handed an entry to the device.
    pub(crate) fn published_last(&self) -> bool {
        self.stores > 0 && self.published == self.stores
    }
}

impl RingMemory for Words {
    fn put(&mut self, word: u32, value: u64) {
        self.stores += 1;
        match self.words.get_mut(word as usize) {
            Some(place) => *place = value,
            None => self.outside += 1,
        }
    }

    fn publish(&mut self, word: u32, value: u64) {
        self.put(word, value);
        self.published = self.stores;
    }
}

impl EntrySource for Words {
    fn load(&self, entry: u32, word: u32) -> u64 {
        self.word((entry * 4 + word) as usize).unwrap_or(0)
    }

    fn order_loads(&self) {}
}
