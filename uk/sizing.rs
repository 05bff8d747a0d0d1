// SPDX-License-Identifier: GPL-2.0

//! From what a user asks for to the rings that the device gets.

use kernel::prelude::*;

use super::{
    limits::Limits,
    memory::QUANTUM_BYTES, //
};

/// Quanta of a send ring that stay free: 256 that may be wiped ahead of the head (the next 128 are,
/// see [`super::sq`]), one that tells full from empty, and one more that the device asks for.
#[doc(alias = "IRDMA_SQ_RSVD")]
pub(crate) const SQ_RESERVED: u32 = 258;

/// Quanta of a receive ring that stay free: the one that tells full from empty.
#[doc(alias = "IRDMA_RQ_RSVD")]
pub(crate) const RQ_RESERVED: u32 = 1;

/// Bytes of the shadow area of a QP or CQ.
#[doc(alias = "IRDMA_SHADOW_AREA_SIZE")]
pub(crate) const SHADOW_BYTES: u32 = 64;

/// Alignment of the memory of a QP's rings, in bytes.
const QP_MEMORY_ALIGN: u32 = 256;

/// Entries in a page of CQEs; a CQ of exactly one page is not used.
const CQES_PER_PAGE: u32 = 4096 / QUANTUM_BYTES;

/// What a user asks of a QP's queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[doc(alias = "ib_qp_cap")]
pub(crate) struct QueueRequest {
    /// Send work requests outstanding.
    pub(crate) send_wr: u32,
    /// Receive work requests outstanding.
    pub(crate) recv_wr: u32,
    /// Scatter/gather elements in a send work request.
    pub(crate) send_sge: u32,
    /// Scatter/gather elements in a receive work request.
    pub(crate) recv_sge: u32,
    /// Bytes of inline data in a send work request.
    pub(crate) inline_data: u32,
}

impl QueueRequest {
    /// Compares what is asked for with what there is.
    ///
    /// # Errors
    ///
    /// `EINVAL` if any of it is above the device's limit.
    #[doc(alias = "irdma_validate_qp_attrs")]
    pub(crate) fn validate(&self, limits: &Limits) -> Result {
        if self.send_sge > limits.max_sge
            || self.recv_sge > limits.max_sge
            || self.inline_data > limits.max_inline_data
            || self.send_wr > limits.max_sq_quanta
            || self.recv_wr > limits.max_rq_quanta
        {
            return Err(EINVAL);
        }
        Ok(())
    }
}

/// Size of one ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueSize {
    /// Quanta of the ring, a power of two.
    pub(crate) depth: u32,
    /// Binary logarithm of the quanta of the ring's largest WQE.
    pub(crate) shift: u8,
    /// Work requests that may be outstanding whatever their size; never fewer than asked.
    pub(crate) wrs: u32,
}

impl QueueSize {
    /// WQEs of the largest size that the ring has room for.
    pub(crate) fn wqes(&self) -> u32 {
        self.depth >> self.shift
    }

    /// Bytes of the ring.
    #[inline]
    pub(crate) fn bytes(&self) -> u32 {
        // A depth is at most 2^15 (see `Limits`), so the product stays far below 2^32.
        self.depth.saturating_mul(QUANTUM_BYTES)
    }

    /// The size as a QP context has it: 0 for 4 quanta, one more for each doubling.
    #[doc(alias = "irdma_get_encoded_wqe_size")]
    pub(crate) fn encoded(&self) -> u8 {
        encoded_wq_size(self.depth)
    }
}

/// Both rings of a QP, and the memory that holds them and the shadow area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QpLayout {
    /// The send ring, at the start of the memory.
    pub(crate) send: QueueSize,
    /// The receive ring.
    pub(crate) recv: QueueSize,
    /// Offset of the receive ring, in bytes.
    pub(crate) recv_offset: u32,
    /// Offset of the shadow area, in bytes.
    pub(crate) shadow_offset: u32,
    /// Bytes of it all, a multiple of 256.
    pub(crate) bytes: u32,
}

impl QpLayout {
    /// Sizes of the rings that hold what is asked for.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the device has no such rings.
    pub(crate) fn new(limits: &Limits, request: &QueueRequest) -> Result<Self> {
        request.validate(limits)?;

        let send = send_queue(
            limits,
            request.send_wr,
            request.send_sge,
            request.inline_data,
        )?;
        let recv = recv_queue(limits, request.recv_wr, request.recv_sge)?;
        let recv_offset = send.bytes();
        let shadow_offset = recv_offset.checked_add(recv.bytes()).ok_or(EINVAL)?;
        let bytes = shadow_offset
            .checked_add(SHADOW_BYTES)
            .and_then(|bytes| bytes.checked_next_multiple_of(QP_MEMORY_ALIGN))
            .ok_or(EINVAL)?;

        Ok(Self {
            send,
            recv,
            recv_offset,
            shadow_offset,
            bytes,
        })
    }
}

/// Binary logarithm of the quanta that hold a WQE of `fragments` fragments or `inline_data` bytes of
/// inline data, whichever is larger. WQEs of a ring are counted in 1, 2, 4 or 8 quanta.
#[doc(alias = "irdma_get_wqe_shift")]
pub(crate) fn wqe_shift(fragments: u32, inline_data: u32) -> u8 {
    // A quantum less its header holds one fragment, each further quantum two; inline data has 8
    // bytes in the first and 31 in each further quantum.
    match (fragments, inline_data) {
        (0..=1, 0..=8) => 0,
        (0..=3, 0..=39) => 1,
        (0..=7, 0..=101) => 2,
        _ => 3,
    }
}

/// Size of a send ring for `wrs` work requests of `sges` scatter/gather elements or `inline_data`
/// bytes each.
///
/// # Errors
///
/// `EINVAL` if the ring would be larger than the device's.
#[doc(alias = "irdma_uk_calc_depth_shift_sq")]
#[doc(alias = "irdma_get_sqdepth")]
pub(crate) fn send_queue(
    limits: &Limits,
    wrs: u32,
    sges: u32,
    inline_data: u32,
) -> Result<QueueSize> {
    // Immediate data takes the place of a fragment.
    let fragments = sges.checked_add(1).ok_or(EINVAL)?;
    let shift = wqe_shift(fragments, inline_data);

    queue(
        wrs,
        shift,
        SQ_RESERVED,
        limits.min_wqes,
        limits.max_sq_quanta,
    )
}

/// Size of a receive ring for `wrs` work requests of `sges` scatter/gather elements each.
///
/// # Errors
///
/// `EINVAL` if the ring would be larger than the device's.
#[doc(alias = "irdma_uk_calc_depth_shift_rq")]
#[doc(alias = "irdma_get_rqdepth")]
pub(crate) fn recv_queue(limits: &Limits, wrs: u32, sges: u32) -> Result<QueueSize> {
    let shift = wqe_shift(sges, 0);

    queue(
        wrs,
        shift,
        RQ_RESERVED,
        limits.min_wqes,
        limits.max_rq_quanta,
    )
}

/// Size of a ring of `wrs` WQEs of 2^`shift` quanta with `reserved` quanta more, rounded up to a
/// power of two, from `min_wqes` WQEs to `max` quanta.
#[doc(alias = "irdma_round_up_wq")]
fn queue(wrs: u32, shift: u8, reserved: u32, min_wqes: u32, max: u32) -> Result<QueueSize> {
    let wanted = u64::from(wrs)
        .checked_shl(shift.into())
        .and_then(|quanta| quanta.checked_add(reserved.into()))
        .and_then(u64::checked_next_power_of_two)
        .ok_or(EINVAL)?;
    let least = u64::from(min_wqes)
        .checked_shl(shift.into())
        .ok_or(EINVAL)?;
    let depth = u32::try_from(wanted.max(least)).map_err(|_| EINVAL)?;

    if depth > max {
        return Err(EINVAL);
    }

    let wrs = depth.saturating_sub(reserved) >> shift;

    Ok(QueueSize { depth, shift, wrs })
}

/// The size of a send or receive ring of `quanta` quanta as a QP context has it.
#[doc(alias = "irdma_get_encoded_wqe_size")]
pub(crate) fn encoded_wq_size(quanta: u32) -> u8 {
    // CAST: A binary logarithm of a 32-bit number is at most 31.
    (quanta >> 2).checked_ilog2().unwrap_or(0) as u8
}

/// Quanta of a ring whose size a QP context gives as `encoded`.
pub(crate) fn decoded_wq_size(encoded: u8) -> u32 {
    4u32.checked_shl(encoded.into()).unwrap_or(0)
}

/// Quanta of a send WQE with `fragments` fragments, immediate data counted as one.
///
/// # Errors
///
/// `EINVAL` if no WQE holds so many.
#[doc(alias = "irdma_fragcnt_to_quanta_sq")]
#[inline]
pub(crate) fn fragments_to_quanta(fragments: u32) -> Result<u32> {
    match fragments {
        // One fragment beside the header, two in each further quantum.
        0..=15 => Ok(fragments / 2 + 1),
        _ => Err(EINVAL),
    }
}

/// Quanta of a send WQE with `bytes` bytes of inline data.
#[doc(alias = "irdma_inline_data_size_to_quanta")]
#[inline]
pub(crate) fn inline_to_quanta(bytes: u32) -> u32 {
    // Eight bytes in the first quantum, 31 in each further one.
    // CAST: A 31st of 33 bits.
    1 + ((u64::from(bytes) + 31 - 1 - 8) / 31) as u32
}

/// CQEs of a CQ for a user who asks for room for `cqe` completions.
///
/// Two entries more than asked, twice as many where one completion can take two entries, an even
/// number, and not exactly a page of them.
///
/// # Errors
///
/// `EINVAL` if `cqe` is 0 or above the device's limit.
pub(crate) fn cq_entries(limits: &Limits, cqe: u32) -> Result<u32> {
    if cqe == 0 || cqe > limits.max_cqe {
        return Err(EINVAL);
    }

    let entries = cqe
        .checked_add(2)
        .and_then(|entries| entries.checked_mul(limits.entries_per_completion))
        .and_then(|entries| entries.checked_next_multiple_of(2))
        .ok_or(EINVAL)?;
    let entries = if entries == CQES_PER_PAGE {
        entries.saturating_add(2)
    } else {
        entries
    };

    Ok(entries.min(limits.max_cq_entries))
}
