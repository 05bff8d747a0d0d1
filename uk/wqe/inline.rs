// SPDX-License-Identifier: GPL-2.0

//! Data that lies in the WQE itself.
//!
//! The first eight bytes are in word 1. The rest begins in word 4, 31 bytes a quantum; the last byte
//! of each of these quanta has the valid bit at its top, since word 3 is no header there.

use super::super::{
    memory::{
        RingMemory,
        Slot,
        QUANTUM_BYTES,
        QUANTUM_WORDS, //
    },
    sizing, //
};

/// Where the data lies in the quantum of the header.
const FIRST: core::ops::Range<usize> = 8..16;

/// Where it lies in each further quantum; the byte behind it has the valid bit.
const FURTHER: core::ops::Range<usize> = 0..31;

const QUANTUM: usize = QUANTUM_BYTES as usize;

const ZEROS: &[u8] = &[0; QUANTUM];

/// Gathers the bytes of a quantum and stores them.
struct Writer<'s, 'm, M> {
    slot: &'s mut Slot<'m, M>,
    /// Word of the WQE at which the quantum begins.
    word: u32,
    bytes: [u8; QUANTUM],
    /// Where the next byte goes.
    at: usize,
    /// Where the quantum's data ends.
    end: usize,
    /// Value of the bytes that carry nothing.
    idle: u8,
}

impl<M: RingMemory> Writer<'_, '_, M> {
    /// Appends data.
    fn push(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            if self.at >= self.end {
                self.store();
                self.word = self.word.saturating_add(QUANTUM_WORDS);
                self.bytes = [self.idle; QUANTUM];
                (self.at, self.end) = (FURTHER.start, FURTHER.end);
            }

            let (now, later) = data.split_at(data.len().min(self.end - self.at));
            if let Some(place) = self.bytes.get_mut(self.at..self.at + now.len()) {
                place.copy_from_slice(now);
            }
            self.at += now.len();
            data = later;
        }
    }

    /// Stores the quantum.
    fn store(&mut self) {
        let first = self.word == 0;

        if first {
            if self.at == FIRST.start {
                return;
            }
        } else if let Some(last) = self.bytes.last_mut() {
            *last = u8::from(self.slot.polarity().valid()) << 7;
        }
        for (word, bytes) in (self.word..).zip(self.bytes.chunks_exact(8)) {
            // Beside the header there is one word of data.
            if !first || word == 1 {
                self.slot
                    .put(word, bytes.try_into().map_or(0, u64::from_le_bytes));
            }
        }
    }
}

/// Stores `length` bytes of `data` in the WQE.
///
/// Bytes that carry nothing in words that are written get what the memory was wiped with.
#[doc(alias = "irdma_copy_inline_data")]
pub(super) fn put<'d, M: RingMemory>(
    slot: &mut Slot<'_, M>,
    length: u32,
    data: impl Iterator<Item = &'d [u8]>,
) {
    let idle = slot.polarity().stale_word().to_le_bytes()[0];
    let mut writer = Writer {
        slot,
        word: 0,
        bytes: [idle; QUANTUM],
        at: FIRST.start,
        end: FIRST.end,
        idle,
    };
    let mut left = length as usize;

    for piece in data {
        let piece = piece.get(..left).unwrap_or(piece);

        writer.push(piece);
        left -= piece.len();
    }
    // The user's list may have shrunk since it was measured; the WQE has the length that it says.
    while left > 0 {
        let zeros = ZEROS.get(..left).unwrap_or(ZEROS);

        writer.push(zeros);
        left -= zeros.len();
    }

    writer.store();
}

/// Quanta of a WQE with `length` bytes of inline data.
pub(crate) fn quanta(length: u32) -> u32 {
    sizing::inline_to_quanta(length)
}

const _: () = assert!(QUANTUM_WORDS * 8 == QUANTUM_BYTES);
