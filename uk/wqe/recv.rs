// SPDX-License-Identifier: GPL-2.0

//! WQEs of a receive ring.

use kernel::bitfield;

use super::{
    super::memory::{
        Slot,
        Word, //
    },
    gather::{
        self,
        Measured,
        Sge, //
    }, //
};

bitfield! {
    /// Header of a receive WQE.
    struct RecvHeader(u64) {
        63:63 valid => bool;
        41:38 more_fragments;
    }
}

/// Encodes a receive WQE with the buffers in `sges`, and returns the header.
#[doc(alias = "irdma_uk_post_receive")]
#[inline]
pub(crate) fn encode<W: Word>(
    slot: &Slot<'_, W>,
    data: Measured,
    sges: impl Iterator<Item = Sge>,
) -> u64 {
    let more = gather::put_list(slot, data, None, sges);

    slot.put(2, 0);
    RecvHeader::from_raw(0)
        .with_valid(slot.polarity().valid())
        .with_more_fragments(more)
        .into_raw()
}
