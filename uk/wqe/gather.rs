// SPDX-License-Identifier: GPL-2.0

//! Lists of fragments.

use kernel::{
    bitfield,
    num::Bounded,
    prelude::*, //
};

use super::super::{
    memory::{
        RingMemory,
        Slot, //
    },
    ring::Polarity,
    sizing,
};

/// Word of the second fragment; those after it follow, two words each.
const SECOND_FRAGMENT: u32 = 4;

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
/// encoder takes the counts from here and as many elements, no more and no fewer.
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
    pub(crate) fn new(
        sges: impl Iterator<Item = Sge>,
        max_count: u32,
        max_bytes: u32,
    ) -> Result<Self> {
        let mut measured = Self { count: 0, bytes: 0 };

        for sge in sges {
            if measured.count >= max_count {
                return Err(EINVAL);
            }
            measured.count = measured.count.checked_add(1).ok_or(EINVAL)?;
            measured.bytes = measured.bytes.checked_add(sge.length).ok_or(EINVAL)?;
            if measured.bytes > max_bytes {
                return Err(EINVAL);
            }
        }

        Ok(measured)
    }

    /// Quanta of a send WQE with these elements and, if `immediate`, immediate data before them.
    ///
    /// # Errors
    ///
    /// `EINVAL` if no WQE holds so many.
    pub(crate) fn quanta(&self, immediate: bool) -> Result<u32> {
        let fragments = self.count.checked_add(immediate.into()).ok_or(EINVAL)?;

        sizing::fragments_to_quanta(fragments)
    }
}

/// Stores one fragment at `word`; `None` is an empty one.
#[doc(alias = "irdma_set_fragment")]
pub(super) fn put_fragment<M: RingMemory>(
    slot: &mut Slot<'_, M>,
    word: u32,
    sge: Option<Sge>,
    valid: Polarity,
) {
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

    slot.put(word, address);
    slot.put(
        word.saturating_add(1),
        info.with_valid(valid.valid()).into_raw(),
    );
}

/// Stores the fragments of `sges`, behind immediate data in word 0 if there is any, and returns how
/// many of them lie beyond the first, for the header.
pub(super) fn put_list<M: RingMemory>(
    slot: &mut Slot<'_, M>,
    measured: Measured,
    immediate: Option<u32>,
    mut sges: impl Iterator<Item = Sge>,
) -> Bounded<u64, 4> {
    let polarity = slot.polarity();
    let mut fragments = measured.count;
    let mut left = measured.count;

    if let Some(data) = immediate {
        slot.put(0, data.into());
        fragments = fragments.saturating_add(1);
    } else {
        let first = if left > 0 { sges.next() } else { None };
        put_fragment(slot, 0, first, polarity);
        left = left.saturating_sub(1);
    }

    let mut word = SECOND_FRAGMENT;
    for _ in 0..left {
        put_fragment(slot, word, sges.next(), polarity);
        word = word.saturating_add(2);
    }

    let mut more = fragments.saturating_sub(1);

    // The device reads whole quanta, and knows them by the valid bits in both halves.
    if fragments != 0 && fragments % 2 == 0 {
        put_fragment(slot, word, None, polarity);
        more = more.saturating_add(1);
    }

    Bounded::from_expr(u64::from(more) & 0xf)
}
