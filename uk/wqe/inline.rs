// SPDX-License-Identifier: GPL-2.0

//! Data that lies in the WQE itself.
//!
//! The first eight bytes are in word 1. The rest begins in word 4, 31 bytes a quantum; the last byte
//! of each of these quanta has the valid bit at its top, since word 3 is no header there.

use super::super::{
    memory::{
        Slot,
        Word, //
    },
    sizing, //
};

/// Bytes of data in a word.
const WORD: usize = 8;

/// Bytes of data in a quantum's last word, beside the byte with the valid bit.
const LAST_WORD: usize = 7;

/// Bytes of data in a quantum.
const QUANTUM: usize = 3 * WORD + LAST_WORD;

/// Up to eight bytes as a word; bytes that carry nothing are those of `idle`.
#[inline(always)]
fn part(data: &[u8], idle: u64) -> u64 {
    data.iter()
        .rev()
        .fold(idle, |word, byte| word << 8 | u64::from(*byte))
}

/// The words of a quantum at the beginning of `data`, if there are 32 bytes of it.
#[inline(always)]
fn whole(data: &[u8]) -> Option<[u64; 4]> {
    let data = data.first_chunk::<{ 4 * WORD }>()?;
    let (first, rest) = data.split_first_chunk()?;
    let (second, rest) = rest.split_first_chunk()?;
    let (third, rest) = rest.split_first_chunk()?;

    Some([*first, *second, *third, *rest.first_chunk()?].map(u64::from_le_bytes))
}

/// Stores the words of a quantum behind the first.
#[inline(always)]
fn put_quantum<W: Word>(quantum: &[W], [a, b, c, d]: [u64; 4], valid: u64) {
    if let [first, second, third, last] = quantum {
        first.store(a);
        second.store(b);
        third.store(c);
        last.store(d << 8 >> 8 | valid);
    }
}

/// Data in pieces.
struct Source<'d, I> {
    /// What is left of the piece that has been begun.
    piece: &'d [u8],
    pieces: I,
    /// Bytes that the WQE is still to carry.
    left: usize,
}

impl<'d, I: Iterator<Item = &'d [u8]>> Source<'d, I> {
    /// Copies the next bytes to `buffer`, over the ends of pieces; returns them.
    fn take<'b>(&mut self, buffer: &'b mut [u8]) -> &'b [u8] {
        let count = self.left.min(buffer.len());
        let mut places = buffer.get_mut(..count).unwrap_or_default();

        self.left -= count;
        while !places.is_empty() {
            if self.piece.is_empty() {
                match self.pieces.next() {
                    Some(piece) => self.piece = piece,
                    // The user's list has shrunk since it was measured, but the WQE has the length
                    // that it says.
                    None => break,
                }
            }
            let now = places.len().min(self.piece.len());
            let (Some((to, rest)), Some((from, piece))) = (
                places.split_at_mut_checked(now),
                self.piece.split_at_checked(now),
            ) else {
                break;
            };

            to.copy_from_slice(from);
            places = rest;
            self.piece = piece;
        }
        buffer.get(..count).unwrap_or_default()
    }
}

/// Stores `length` bytes of `data` in the WQE, which has as many quanta as [`quanta`] says.
///
/// Bytes that carry nothing in words that are written get what the memory was wiped with.
#[doc(alias = "irdma_copy_inline_data")]
#[inline]
pub(super) fn put<'d, W: Word>(
    slot: &Slot<'_, W>,
    length: u32,
    mut data: impl Iterator<Item = &'d [u8]>,
) {
    let piece = data.next().unwrap_or_default();

    match piece.get(..length as usize) {
        Some(piece) => put_piece(slot, piece),
        None => put_pieces(
            slot,
            Source {
                piece,
                pieces: data,
                left: length as usize,
            },
        ),
    }
}

/// As [`put`], with all data in one piece.
#[inline(always)]
fn put_piece<W: Word>(slot: &Slot<'_, W>, data: &[u8]) {
    let idle = slot.polarity().stale_word();
    let valid = u64::from(slot.polarity().valid()) << 63;
    let Some((word, mut rest)) = data.split_first_chunk() else {
        if !data.is_empty() {
            slot.put(1, part(data, idle));
        }
        return;
    };

    slot.put(1, u64::from_le_bytes(*word));
    for quantum in slot.further().chunks_exact(4) {
        match whole(rest) {
            Some(words) => {
                put_quantum(quantum, words, valid);
                rest = rest.get(QUANTUM..).unwrap_or_default();
            }
            // Fewer than 32 bytes: there is no quantum after this one.
            None => return put_last(quantum, rest, idle, valid),
        }
    }
}

/// Stores up to 31 bytes in the last quantum. Words that get none of them were wiped.
#[inline(always)]
fn put_last<W: Word>(quantum: &[W], mut data: &[u8], idle: u64, valid: u64) {
    let [places @ .., last] = quantum else {
        return;
    };

    for place in places {
        match data.split_first_chunk() {
            Some((word, rest)) => {
                place.store(u64::from_le_bytes(*word));
                data = rest;
            }
            None => {
                if !data.is_empty() {
                    place.store(part(data, idle));
                }
                data = &[];
                break;
            }
        }
    }
    last.store(part(data, idle) << 8 >> 8 | valid);
}

/// As [`put`].
#[inline(never)]
fn put_pieces<'d, W: Word>(
    slot: &Slot<'_, W>,
    mut source: Source<'d, impl Iterator<Item = &'d [u8]>>,
) {
    let idle = slot.polarity().stale_word();
    let valid = u64::from(slot.polarity().valid()) << 63;

    slot.put(1, part(source.take(&mut [0; WORD]), idle));
    for quantum in slot.further().chunks_exact(4) {
        put_last(quantum, source.take(&mut [0; QUANTUM]), idle, valid);
    }
}

/// Quanta of a WQE with `length` bytes of inline data.
#[inline]
pub(crate) fn quanta(length: u32) -> u32 {
    sizing::inline_to_quanta(length)
}
