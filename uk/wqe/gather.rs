// SPDX-License-Identifier: GPL-2.0

//! Lists of fragments.

use kernel::{
    bitfield,
    num::Bounded,
    prelude::*, //
};

use super::super::{
    memory::{
        Slot,
        Word, //
    },
    ring::Polarity,
    sizing,
};

/// A scatter/gather element of a work request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sge {
    /// Address, as the STag has it.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) length: u32,
    /// Local key.
    pub(crate) stag: u32,
}

bitfield! {
    /// Second word of a fragment; the first is its address.
    struct FragmentInfo(u64) {
        63:63 valid => bool;
        62:32 length;
        31:0 stag;
    }
}

/// Count and sum of a work request's scatter/gather list, found to fit in a WQE.
///
/// The list itself may lie in memory that changes between the measuring and the encoding, so the
/// encoder takes the counts from here and stores no more fragments than they have room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Measured {
    /// Elements.
    pub(crate) count: u32,
    /// Bytes in all of them.
    pub(crate) bytes: u32,
}

impl Measured {
    /// Counts and sums `sges`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there are more than `max_count` elements or more than `max_bytes` bytes.
    #[inline]
    pub(crate) fn new(
        sges: impl ExactSizeIterator<Item = Sge>,
        max_count: u32,
        max_bytes: u32,
    ) -> Result<Self> {
        let count = sges.len();

        if count > max_count as usize {
            return Err(EINVAL);
        }
        let mut bytes: u32 = 0;

        for sge in sges {
            bytes = bytes.checked_add(sge.length).ok_or(EINVAL)?;
            if bytes > max_bytes {
                return Err(EINVAL);
            }
        }

        Ok(Self {
            // CAST: Not above a limit of 32 bits.
            count: count as u32,
            bytes,
        })
    }

    /// Quanta of a send WQE with these elements and, if `immediate`, immediate data before them.
    ///
    /// # Errors
    ///
    /// `EINVAL` if no WQE holds so many.
    #[inline]
    pub(crate) fn quanta(&self, immediate: bool) -> Result<u32> {
        let fragments = self.count.checked_add(immediate.into()).ok_or(EINVAL)?;

        sizing::fragments_to_quanta(fragments)
    }
}

/// The two words of a fragment; `None` is an empty one.
#[inline]
fn fragment(sge: Option<Sge>, valid: Polarity) -> [u64; 2] {
    let (address, info) = match sge {
        Some(sge) => (
            sge.address,
            FragmentInfo::from_raw(0)
                // Longer ones were refused when the list was measured.
                .with_length(Bounded::<u64, 31>::from_expr(
                    u64::from(sge.length) & 0x7fff_ffff,
                ))
                .with_stag(sge.stag),
        ),
        None => (0, FragmentInfo::from_raw(0)),
    };

    [address, info.with_valid(valid.valid()).into_raw()]
}

/// Stores the first fragment of the WQE.
#[doc(alias = "irdma_set_fragment")]
#[inline]
pub(super) fn put_first<W: Word>(slot: &Slot<'_, W>, sge: Option<Sge>, valid: Polarity) {
    let [address, info] = fragment(sge, valid);

    slot.put(0, address);
    slot.put(1, info);
}

/// Stores the fragments of `sges`, behind immediate data in word 0 if there is any, and returns how
/// many of them lie beyond the first, for the header.
#[inline(always)]
pub(super) fn put_list<W: Word>(
    slot: &Slot<'_, W>,
    measured: Measured,
    immediate: Option<u32>,
    mut sges: impl Iterator<Item = Sge>,
) -> Bounded<u64, 4> {
    let polarity = slot.polarity();
    let mut fragments = measured.count;

    if let Some(data) = immediate {
        slot.put(0, data.into());
        fragments = fragments.saturating_add(1);
    } else {
        put_first(slot, sges.next(), polarity);
    }

    // The device reads whole quanta, and knows them by the valid bits in both halves: an empty
    // fragment closes a list that ends in the middle of one.
    let more = fragments & !1;
    if more != 0 {
        let places = slot.further();
        let places = places.get(..more as usize * 2).unwrap_or(places);

        put_further(places, sges, polarity);
    }

    Bounded::from_expr(u64::from(more) & 0xf)
}

/// Fills `places` with the fragments of `sges`, and what is left with empty ones.
#[inline(never)]
fn put_further<W: Word>(mut places: &[W], sges: impl Iterator<Item = Sge>, valid: Polarity) {
    for sge in sges {
        let [first, second, rest @ ..] = places else {
            break;
        };
        let [address, info] = fragment(Some(sge), valid);

        first.store(address);
        second.store(info);
        places = rest;
    }
    while let [first, second, rest @ ..] = places {
        let [address, info] = fragment(None, valid);

        first.store(address);
        second.store(info);
        places = rest;
    }
}
