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

/// Bytes of inline data beside the header.
const FIRST_BYTES: u32 = 8;

/// Word of the inline data beside the header.
const FIRST_WORD: u32 = 1;

/// Gathers bytes into words and stores these.
struct Writer<'s, 'm, M> {
    slot: &'s mut Slot<'m, M>,
    /// Where the next byte goes, counted from the WQE's start.
    position: u32,
    /// The word that the next byte lies in, as far as it is known.
    word: [u8; 8],
    /// Value of the bytes that carry nothing.
    idle: u8,
}

impl<M: RingMemory> Writer<'_, '_, M> {
    /// Appends a byte as it is, and stores its word if that is full.
    fn put(&mut self, byte: u8) {
        if let Some(place) = self.word.get_mut((self.position % 8) as usize) {
            *place = byte;
        }
        if self.position % 8 == 7 {
            self.store();
        }
        self.position = self.position.saturating_add(1);
    }

    /// Stores the word of the current position.
    fn store(&mut self) {
        self.slot
            .put(self.position / 8, u64::from_le_bytes(self.word));
        self.word = [self.idle; 8];
    }

    /// Appends a byte of data, and the valid bit where one is due.
    fn push(&mut self, byte: u8) {
        self.put(byte);

        if self.position == (FIRST_WORD * 8).saturating_add(FIRST_BYTES) {
            // The header's quantum is full; go on behind it.
            self.position = QUANTUM_BYTES;
        } else if self.position % QUANTUM_BYTES == QUANTUM_BYTES - 1 {
            self.close();
        }
    }

    /// Stores the byte with the valid bit at the end of a quantum.
    fn close(&mut self) {
        self.put(u8::from(self.slot.polarity().valid()) << 7);
    }

    /// Stores what is left, up to the end of the quantum.
    fn finish(mut self) {
        if self.position < QUANTUM_BYTES {
            if self.position > FIRST_WORD * 8 {
                self.store();
            }
        } else if self.position % QUANTUM_BYTES != 0 {
            while self.position % QUANTUM_BYTES != QUANTUM_BYTES - 1 {
                self.put(self.idle);
            }
            self.close();
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
        position: FIRST_WORD * 8,
        word: [idle; 8],
        idle,
    };
    let mut left = length;

    for byte in data.flatten() {
        if left == 0 {
            break;
        }
        left -= 1;
        writer.push(*byte);
    }
    // The user's list may have shrunk since it was measured; the WQE has the length that it says.
    for _ in 0..left {
        writer.push(0);
    }

    writer.finish();
}

/// Quanta of a WQE with `length` bytes of inline data.
pub(crate) fn quanta(length: u32) -> u32 {
    sizing::inline_to_quanta(length)
}

const _: () = assert!(QUANTUM_WORDS * 8 == QUANTUM_BYTES);
