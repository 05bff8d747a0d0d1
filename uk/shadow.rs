// SPDX-License-Identifier: GPL-2.0

//! Shadow areas: 64 bytes beside a ring through which driver and device tell each other how far
//! they are without a register access.

use kernel::{
    bitfield,
    num::Bounded, //
};

/// Word of a CQ's shadow area in which the driver puts the index of the entry that it reads next.
pub(crate) const CQ_INDEX: usize = 0;

/// Word of a CQ's shadow area in which the driver puts a [`CqArm`] before it rings the CQ's
/// doorbell.
pub(crate) const CQ_ARM: usize = 4;

bitfield! {
    /// What a CQ is armed for (`IRDMA_CQ_DBSA_*` in the C driver's defs.h).
    pub(crate) struct CqArm(u64) {
        /// Counts the times that the CQ has been armed.
        17:16 sequence;
        /// An event at the next completion that is solicited or an error.
        15:15 next_solicited => bool;
        /// An event at the next completion.
        14:14 next => bool;
        /// Counts the resizes whose old memory has been read to its end.
        13:0 select;
    }
}

/// What a user of a CQ wants to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "irdma_cmpl_notify")]
pub(crate) enum Notify {
    /// The next completion.
    Next,
    /// The next completion that is solicited or an error.
    Solicited,
}

impl CqArm {
    /// The word to write in order to arm once more, `self` being the one written last.
    #[doc(alias = "irdma_uk_cq_request_notification")]
    pub(crate) fn rearmed(self, notify: Notify) -> Self {
        let sequence = Bounded::<u64, 2>::from_expr(self.sequence().get().wrapping_add(1) & 3);

        self.with_sequence(sequence)
            .with_next_solicited(true)
            .with_next(notify == Notify::Next)
    }
}
