// SPDX-License-Identifier: GPL-2.0

//! What a generation of the device takes from its users' queues, as values.

use super::sizing::SQ_RESERVED;

/// Limits of the queues of one generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "irdma_uk_attrs")]
pub(crate) struct Limits {
    /// Most scatter/gather elements in a send or receive work request.
    #[doc(alias = "IRDMA_MAX_WQ_FRAGMENT_COUNT")]
    pub(crate) max_sge: u32,
    /// Most scatter/gather elements in an RDMA READ.
    #[doc(alias = "IRDMA_MAX_SGE_RD")]
    pub(crate) max_read_sge: u32,
    /// Most bytes of inline data in a send work request.
    #[doc(alias = "IRDMA_MAX_INLINE_DATA_SIZE")]
    pub(crate) max_inline_data: u32,
    /// Largest send ring, in quanta.
    #[doc(alias = "IRDMA_QP_SW_MAX_WQ_QUANTA")]
    pub(crate) max_sq_quanta: u32,
    /// Largest receive ring, in quanta.
    #[doc(alias = "IRDMA_QP_SW_MAX_RQ_QUANTA")]
    pub(crate) max_rq_quanta: u32,
    /// Smallest ring, in work requests of the ring's size.
    pub(crate) min_wqes: u32,
    /// Quanta that a send WQE may not straddle: it lies inside one block of so many, counted from
    /// the start of the ring.
    #[doc(alias = "IRDMA_MAX_QUANTA_PER_WR")]
    pub(crate) sq_chunk: u32,
    /// Most bytes that one work request moves.
    #[doc(alias = "IRDMA_MAX_OUTBOUND_MSG_SIZE")]
    pub(crate) max_message: u32,
    /// Most completions that a user may ask a CQ to hold.
    pub(crate) max_cqe: u32,
    /// Most CQEs in a CQ, with what is added to what its user asked for: the width of the size in
    /// the command that creates it, made even.
    pub(crate) max_cq_entries: u32,
    /// CQEs that one completion may take: two where extended CQEs lie in the next entry.
    pub(crate) entries_per_completion: u32,
    /// Largest shared receive queue, in quanta; 0 where there are none.
    #[doc(alias = "max_hw_srq_quanta")]
    pub(crate) max_srq_quanta: u32,
    /// Most work requests of a shared receive queue, the figure that is told to users who ask for
    /// the device's limits. It is told where there are none, too.
    #[doc(alias = "IRDMA_MAX_SRQ_WRS")]
    pub(crate) max_srq_wr: u32,
}

impl Limits {
    /// Work requests that fit in the largest send ring whatever their size, the figure that is told
    /// to users who ask for the device's limits.
    #[doc(alias = "IRDMA_MAX_QP_WRS")]
    pub(crate) const fn max_qp_wr(&self) -> u32 {
        match (self.max_sq_quanta - SQ_RESERVED).checked_div(self.sq_chunk) {
            Some(wrs) => wrs,
            None => 0,
        }
    }
}
