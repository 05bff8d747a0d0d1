// SPDX-License-Identifier: GPL-2.0

//! Ordinary memory in the place of rings.

use core::cell::Cell;

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering::Relaxed,
        Atomic, //
    }, //
};

use crate::uk::memory::Word;

/// Word value that no encoder writes: it shows which words were left alone.
pub(crate) const UNTOUCHED: u64 = 0x5a5a_5a5a_5a5a_5a5a;

/// Counts the stores of all tests.
static STORES: Atomic<u64> = Atomic::new(1);

/// A word that remembers when it was written, and how.
#[derive(Clone)]
pub(crate) struct TestWord {
    value: Cell<u64>,
    stored: Cell<u64>,
    published: Cell<bool>,
}

impl Word for TestWord {
    fn load(&self) -> u64 {
        self.value.get()
    }

    fn load_first(&self) -> u64 {
        self.load()
    }

    fn store(&self, value: u64) {
        self.value.set(value);
        self.stored.set(STORES.fetch_add(1, Relaxed));
        self.published.set(false);
    }

    fn publish(&self, value: u64) {
        self.store(value);
        self.published.set(true);
    }
}

/// A ring of words that remembers how it was written.
pub(crate) struct Words(KVec<TestWord>);

impl Words {
    /// A ring of `count` words, each [`UNTOUCHED`].
    pub(crate) fn new(count: usize) -> Result<Self> {
        let word = TestWord {
            value: Cell::new(UNTOUCHED),
            stored: Cell::new(0),
            published: Cell::new(false),
        };

        Ok(Self(KVec::from_elem(word, count, GFP_KERNEL)?))
    }

    /// The ring.
    pub(crate) fn ring(&self) -> &[TestWord] {
        &self.0
    }

    /// Fills the ring with `value`.
    pub(crate) fn fill(&self, value: u64) {
        for word in self.0.iter() {
            word.store(value);
        }
    }

    /// The word at `index`; `None` outside the ring.
    pub(crate) fn word(&self, index: usize) -> Option<u64> {
        self.0.get(index).map(Word::load)
    }

    /// The words of `quanta` quanta from quantum `first` on are `expected`.
    pub(crate) fn holds(&self, first: usize, expected: &[u64]) -> bool {
        self.0
            .get(first * 4..first * 4 + expected.len())
            .is_some_and(|words| words.iter().map(Word::load).eq(expected.iter().copied()))
    }

    /// Whether the last store was the one that handed an entry to the device.
    pub(crate) fn published_last(&self) -> bool {
        self.0
            .iter()
            .max_by_key(|word| word.stored.get())
            .is_some_and(|word| word.published.get())
    }
}
