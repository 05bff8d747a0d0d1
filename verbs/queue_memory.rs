// SPDX-License-Identifier: GPL-2.0

//! Memory of a user's queues: registered by the user, shared by the user's library and the device.

use kernel::{
    prelude::*,
    sync::atomic::{
        ordering::{
            Acquire,
            Release, //
        },
        Atomic, //
    }, //
};

use super::{
    abi,
    device::Device, //
};
use crate::{
    hw::{
        cqp::cq::RingBase,
        pble::{
            Depth,
            PageList, //
        }, //
    },
    rdma::Umem, //
};

/// Pages of queues are of this size, in bytes.
const PAGE: u64 = 4096;

/// Memory of a queue.
pub(super) struct QueueMemory {
    kind: u16,
    /// Where the user has it.
    address: u64,
    /// How its pages are used: so many for the send ring, the receive ring or the CQ's ring.
    split: Split,
    /// DMA addresses of the pages.
    pages: KVVec<u64>,
    /// The pages of the rings for the device, where a ring isn't contiguous.
    list: Option<PageList>,
    in_use: Atomic<bool>,
    _umem: Umem,
}

/// Pages that each part of a queue's memory has.
#[derive(Clone, Copy)]
struct Split {
    first: u32,
    second: u32,
}

impl QueueMemory {
    /// Makes memory for a queue of what the user asks for in `request`.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the kind is none, or the memory has fewer pages than the queue shall have.
    /// - `EOPNOTSUPP` if the memory doesn't begin on a page.
    /// - `ENOMEM`
    #[doc(alias = "irdma_handle_q_mem")]
    #[doc(alias = "irdma_reg_user_mr_type_qp")]
    #[doc(alias = "irdma_reg_user_mr_type_cq")]
    pub(super) fn new(
        dev: &Device<'_>,
        request: &abi::MemRegReq,
        address: u64,
        mut umem: Umem,
    ) -> Result<Self> {
        let (split, more) = match request.reg_type {
            // Behind the rings is the page of the shadow area.
            abi::reg_type::QP => (
                Split {
                    first: request.sq_pages.into(),
                    second: request.rq_pages.into(),
                },
                1,
            ),
            abi::reg_type::CQ => (
                Split {
                    first: request.cq_pages.into(),
                    second: 0,
                },
                0,
            ),
            _ => return Err(EINVAL),
        };
        let mut mapping = umem.mapping()?;
        let size = mapping.best_page_size(PAGE, address).ok_or(EOPNOTSUPP)?;
        let count = u32::try_from(mapping.count(size))?;
        let listed = split.first + split.second;

        if listed + more > count {
            return Err(EINVAL);
        }

        // CAST: Widening.
        let mut pages = KVVec::with_capacity(count as usize, GFP_KERNEL)?;
        for page in mapping.pages(size) {
            pages.push(page, GFP_KERNEL)?;
        }

        let mut memory = Self {
            kind: request.reg_type,
            address,
            split,
            pages,
            list: None,
            in_use: Atomic::new(false),
            _umem: umem,
        };
        if !memory.is_contiguous(0, split.first) || !memory.is_contiguous(split.first, split.second)
        {
            let list = dev.hw().page_list(listed, Depth::One)?;

            for index in 0..listed {
                list.write(index, memory.page(index)?)?;
            }
            memory.list = Some(list);
        }

        Ok(memory)
    }

    /// DMA address of a page.
    fn page(&self, index: u32) -> Result<u64> {
        // CAST: Widening.
        self.pages.get(index as usize).copied().ok_or(EINVAL)
    }

    /// Whether pages follow each other in the device's memory, too.
    #[doc(alias = "irdma_check_mem_contiguous")]
    fn is_contiguous(&self, first: u32, count: u32) -> bool {
        // CAST: Widening.
        let pages = self
            .pages
            .get(first as usize..first as usize + count as usize)
            .unwrap_or(&[]);

        pages
            .windows(2)
            .all(|pair| matches!(pair, [a, b] if a.checked_add(PAGE) == Some(*b)))
    }

    /// Returns whether this is memory of `kind` at `address`.
    pub(super) fn is(&self, kind: u16, address: u64) -> bool {
        self.kind == kind && self.address == address
    }

    /// Returns whether a queue uses the memory.
    pub(super) fn is_in_use(&self) -> bool {
        self.in_use.load(Acquire)
    }

    /// Notes whether a queue uses the memory.
    pub(super) fn set_in_use(&self, in_use: bool) {
        self.in_use.store(in_use, Release);
    }

    /// Returns where a CQ's ring of `bytes` bytes is.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the memory is too small for it.
    pub(super) fn cq_ring(&self, bytes: u64) -> Result<RingBase> {
        if bytes > u64::from(self.split.first) * PAGE {
            return Err(EINVAL);
        }

        Ok(match &self.list {
            Some(list) => RingBase::PageList(list.first_index()),
            None => RingBase::Contiguous(self.page(0)?),
        })
    }

    /// Returns the DMA address of a CQ's shadow area of `bytes` bytes.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the memory is too small for it.
    pub(super) fn shadow_area(&self, bytes: u64) -> Result<u64> {
        if bytes > PAGE {
            return Err(EINVAL);
        }
        self.page(0)
    }

    /// Returns where a QP's rings and its shadow area are, given the bytes of the send and of the
    /// receive ring.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the memory is too small for them.
    #[doc(alias = "irdma_setup_virt_qp")]
    pub(super) fn qp_rings(&self, send: u64, recv: u64) -> Result<QpRings> {
        let Split { first, second } = self.split;

        if send > u64::from(first) * PAGE || recv > u64::from(second) * PAGE {
            return Err(EINVAL);
        }

        let shadow = self.page(first + second)?;
        Ok(match &self.list {
            Some(list) => QpRings {
                virtual_map: true,
                send: list.first_index().into(),
                recv: u64::from(list.first_index()) + u64::from(first),
                shadow,
            },
            None => QpRings {
                virtual_map: false,
                send: self.page(0)?,
                recv: self.page(first)?,
                shadow,
            },
        })
    }
}

/// Where the rings of a user's QP are.
pub(super) struct QpRings {
    /// The rings are given by indices of page lists.
    pub(super) virtual_map: bool,
    /// Address or index of the send ring.
    pub(super) send: u64,
    /// Address or index of the receive ring.
    pub(super) recv: u64,
    /// Address of the shadow area.
    pub(super) shadow: u64,
}
