// SPDX-License-Identifier: GPL-2.0

//! Rings in memory that the device reads and writes.

use kernel::sync::barrier::{
    dma_mb,
    Read,
    Write, //
};

use crate::{
    hw::dma::DmaBuffer,
    uk::memory::{
        EntrySource,
        RingMemory,
        QUANTUM_WORDS, //
    }, //
};

/// A ring of work-queue entries inside of a buffer.
pub(super) struct RingView<'a> {
    buffer: &'a DmaBuffer,
    /// Word of the buffer at which the ring begins.
    base: u32,
    /// Words of the ring.
    words: u32,
}

impl<'a> RingView<'a> {
    /// The ring of `bytes` bytes at byte `offset` of `buffer`.
    #[inline]
    pub(super) fn new(buffer: &'a DmaBuffer, offset: u32, bytes: u32) -> Self {
        Self {
            buffer,
            base: offset / 8,
            words: bytes / 8,
        }
    }
}

impl RingMemory for RingView<'_> {
    #[inline]
    fn put(&mut self, word: u32, value: u64) {
        if word < self.words {
            // The ring lies in the buffer, so this cannot fail.
            let _ = self
                .buffer
                .write(self.base.saturating_add(word) as usize, value);
        }
    }

    #[inline]
    fn publish(&mut self, word: u32, value: u64) {
        dma_mb(Write);
        self.put(word, value);
    }
}

/// A ring of completion-queue entries that fills a buffer.
pub(super) struct CompletionMemory<'a>(pub(super) &'a DmaBuffer);

impl EntrySource for CompletionMemory<'_> {
    #[inline]
    fn load(&self, entry: u32, word: u32) -> u64 {
        let index = entry.saturating_mul(QUANTUM_WORDS).saturating_add(word);

        self.0.read(index as usize).unwrap_or(0)
    }

    #[inline]
    fn order_loads(&self) {
        dma_mb(Read);
    }
}
