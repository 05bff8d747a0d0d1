// SPDX-License-Identifier: GPL-2.0

//! What the user-space library and the driver tell each other beside the verbs' arguments.
//!
//! C header: [`include/uapi/rdma/irdma-abi.h`](srctree/include/uapi/rdma/irdma-abi.h), version 5.
//! Of each response only its beginning must have room with the user; see the constants `MIN_*`.

use core::mem::offset_of;
use kernel::prelude::*;
use zerocopy_derive::Immutable;

use crate::hw::hal::Limits;

/// Version of the interface.
#[doc(alias = "IRDMA_ABI_VER")]
pub(crate) const VERSION: u8 = 5;

/// Oldest version of a user that is served.
pub(crate) const OLDEST_VERSION: u8 = 4;

/// The user gives the sizes of a QP in work requests, and the driver chooses the rings' sizes.
#[doc(alias = "IRDMA_ALLOC_UCTX_USE_RAW_ATTR")]
pub(crate) const USE_RAW_ATTR: u64 = 1 << 0;

/// [`AllocUcontextResp::min_hw_wq_size`] counts.
#[doc(alias = "IRDMA_ALLOC_UCTX_MIN_HW_WQ_SIZE")]
pub(crate) const MIN_HW_WQ_SIZE: u64 = 1 << 1;

/// [`AllocUcontextResp::max_hw_srq_quanta`] counts.
#[doc(alias = "IRDMA_ALLOC_UCTX_MAX_HW_SRQ_QUANTA")]
pub(crate) const MAX_HW_SRQ_QUANTA: u64 = 1 << 2;

/// The user knows the third generation's WQEs.
#[doc(alias = "IRDMA_SUPPORT_WQE_FORMAT_V2")]
pub(crate) const WQE_FORMAT_V2: u64 = 1 << 3;

/// The device makes an event when a connection is established; the user's library keeps ring
/// entries for it.
#[doc(alias = "IRDMA_FEATURE_RTS_AE")]
pub(crate) const FEATURE_RTS_AE: u64 = 1 << 0;

/// Completion queues can be resized, and their shadow area is registered on its own.
#[doc(alias = "IRDMA_FEATURE_CQ_RESIZE")]
pub(crate) const FEATURE_CQ_RESIZE: u64 = 1 << 1;

/// Returns [`AllocUcontextResp::feature_flags`] for a generation.
pub(crate) fn feature_flags(limits: &Limits) -> u64 {
    [
        (limits.established_event, FEATURE_RTS_AE),
        (limits.cq_resize, FEATURE_CQ_RESIZE),
    ]
    .iter()
    .filter(|(has, _)| *has)
    .fold(0, |flags, (_, flag)| flags | flag)
}

/// What a QP can do, in [`CreateQpResp::qp_caps`].
pub(crate) mod qp_cap {
    /// RDMA WRITE with immediate.
    #[doc(alias = "IRDMA_WRITE_WITH_IMM")]
    pub(crate) const WRITE_WITH_IMM: u32 = 1 << 0;
    /// SEND with immediate.
    #[doc(alias = "IRDMA_SEND_WITH_IMM")]
    pub(crate) const SEND_WITH_IMM: u32 = 1 << 1;
    /// The QP speaks RoCE.
    #[doc(alias = "IRDMA_ROCE")]
    pub(crate) const ROCE: u32 = 1 << 2;
    /// Work requests can be pushed into the device.
    #[doc(alias = "IRDMA_PUSH_MODE")]
    pub(crate) const PUSH_MODE: u32 = 1 << 3;
}

/// Kinds of a registration, in [`MemRegReq::reg_type`].
pub(crate) mod reg_type {
    /// A region.
    #[doc(alias = "IRDMA_MEMREG_TYPE_MEM")]
    pub(crate) const MEMORY: u16 = 0;
    /// The rings of a QP.
    #[doc(alias = "IRDMA_MEMREG_TYPE_QP")]
    pub(crate) const QP: u16 = 1;
    /// The ring or the shadow area of a CQ.
    #[doc(alias = "IRDMA_MEMREG_TYPE_CQ")]
    pub(crate) const CQ: u16 = 2;
}

/// Declares structures that are bytes to the kernel, with their size.
macro_rules! abi {
    ($(
        $(#[$meta:meta])*
        pub(crate) struct $name:ident ($size:literal) { $($fields:tt)* }
    )+) => {
        $(
            $(#[$meta])*
            #[repr(C)]
            #[derive(Clone, Copy, FromBytes, Immutable, IntoBytes)]
            pub(crate) struct $name { $($fields)* }

            static_assert!(size_of::<$name>() == $size);
        )+
    };
}

abi! {
    /// Request to open the device.
    #[doc(alias = "irdma_alloc_ucontext_req")]
    pub(crate) struct AllocUcontextReq(16) {
        rsvd32: u32,
        /// Version of the interface that the user speaks.
        pub(crate) userspace_ver: u8,
        pub(crate) rsvd8: [u8; 3],
        /// [`USE_RAW_ATTR`] and [`WQE_FORMAT_V2`].
        pub(crate) comp_mask: u64,
    }

    /// Response to it.
    #[doc(alias = "irdma_alloc_ucontext_resp")]
    pub(crate) struct AllocUcontextResp(80) {
        /// Unused since version 5.
        pub(crate) max_pds: u32,
        /// Unused since version 5.
        pub(crate) max_qps: u32,
        /// Unused since version 5.
        pub(crate) wq_size: u32,
        /// Version of the interface that the driver speaks.
        pub(crate) kernel_ver: u8,
        pub(crate) rsvd: [u8; 3],
        /// `FEATURE_*`.
        pub(crate) feature_flags: u64,
        /// Offset at which the page of doorbells can be mapped.
        pub(crate) db_mmap_key: u64,
        /// Elements of a work request.
        pub(crate) max_hw_wq_frags: u32,
        /// Elements of an RDMA READ.
        pub(crate) max_hw_read_sges: u32,
        /// Bytes of inline data.
        pub(crate) max_hw_inline: u32,
        /// Quanta of a receive ring.
        pub(crate) max_hw_rq_quanta: u32,
        /// Quanta of a send ring.
        pub(crate) max_hw_wq_quanta: u32,
        /// Entries of a CQ.
        pub(crate) min_hw_cq_size: u32,
        /// Entries of a CQ.
        pub(crate) max_hw_cq_size: u32,
        /// Quanta of one work request.
        pub(crate) max_hw_sq_chunk: u16,
        /// Generation of the device.
        pub(crate) hw_rev: u8,
        pub(crate) rsvd2: u8,
        /// Which of the fields below and above count.
        pub(crate) comp_mask: u64,
        /// Work requests of a ring.
        pub(crate) min_hw_wq_size: u16,
        pub(crate) rsvd3: [u8; 2],
        /// Quanta of a shared receive queue.
        pub(crate) max_hw_srq_quanta: u32,
    }

    /// Response to a new protection domain.
    #[doc(alias = "irdma_alloc_pd_resp")]
    pub(crate) struct AllocPdResp(8) {
        /// Its number.
        pub(crate) pd_id: u32,
        pub(crate) rsvd: [u8; 4],
    }

    /// Request for a completion queue.
    #[doc(alias = "irdma_create_cq_req")]
    pub(crate) struct CreateCqReq(16) {
        /// Address of the ring, which was registered before.
        pub(crate) user_cq_buf: u64,
        /// Address of the shadow area, which was registered before.
        pub(crate) user_shadow_area: u64,
    }

    /// Response to it.
    #[doc(alias = "irdma_create_cq_resp")]
    pub(crate) struct CreateCqResp(8) {
        /// The queue's number.
        pub(crate) cq_id: u32,
        /// Its entries.
        pub(crate) cq_size: u32,
    }

    /// Request to resize a completion queue.
    #[doc(alias = "irdma_resize_cq_req")]
    pub(crate) struct ResizeCqReq(8) {
        /// Address of the new ring, which was registered before.
        pub(crate) user_cq_buffer: u64,
    }

    /// Request for a QP.
    #[doc(alias = "irdma_create_qp_req")]
    pub(crate) struct CreateQpReq(32) {
        /// Address of the rings, which were registered before.
        pub(crate) user_wqe_bufs: u64,
        /// What the QP's completions shall carry.
        pub(crate) user_compl_ctx: u64,
        legacy_dontuse: [u64; 2],
    }

    /// Response to it.
    #[doc(alias = "irdma_create_qp_resp")]
    pub(crate) struct CreateQpResp(24) {
        /// The number that the device knows the QP by.
        pub(crate) qp_id: u32,
        /// Work requests of the send ring.
        pub(crate) actual_sq_size: u32,
        /// Work requests of the receive ring.
        pub(crate) actual_rq_size: u32,
        pub(crate) irdma_drv_opt: u32,
        pub(crate) push_idx: u16,
        /// iWARP only.
        pub(crate) lsmm: u8,
        pub(crate) rsvd: u8,
        /// [`qp_cap`].
        pub(crate) qp_caps: u32,
    }

    /// Request with a registration.
    #[doc(alias = "irdma_mem_reg_req")]
    pub(crate) struct MemRegReq(8) {
        /// [`reg_type`].
        pub(crate) reg_type: u16,
        /// Pages of a CQ.
        pub(crate) cq_pages: u16,
        /// Pages of a receive ring.
        pub(crate) rq_pages: u16,
        /// Pages of a send ring.
        pub(crate) sq_pages: u16,
    }

    /// Request with a change of a QP.
    #[doc(alias = "irdma_modify_qp_req")]
    pub(crate) struct ModifyQpReq(8) {
        /// Flush the send queue once more.
        pub(crate) sq_flush: u8,
        /// Flush the receive queue once more.
        pub(crate) rq_flush: u8,
        rsvd: [u8; 6],
    }

    /// Response to it.
    #[doc(alias = "irdma_modify_qp_resp")]
    pub(crate) struct ModifyQpResp(24) {
        pub(crate) push_wqe_mmap_key: u64,
        pub(crate) push_db_mmap_key: u64,
        pub(crate) push_offset: u16,
        /// The fields above count.
        pub(crate) push_valid: u8,
        pub(crate) rsvd: [u8; 5],
    }

    /// Response to a new address handle.
    #[doc(alias = "irdma_create_ah_resp")]
    pub(crate) struct CreateAhResp(8) {
        /// Its number.
        pub(crate) ah_id: u32,
        pub(crate) rsvd: [u8; 4],
    }
}

/// Least request to open the device: up to its version, with the bytes that fill it up.
pub(crate) const MIN_ALLOC_UCONTEXT_REQ: usize = offset_of!(AllocUcontextReq, comp_mask);

/// Room that the response to an opening of the device needs; a user who has no more is one of the
/// first generation's old library.
#[doc(alias = "IRDMA_ALLOC_UCTX_MIN_RESP_LEN")]
pub(crate) const MIN_ALLOC_UCONTEXT_RESP: usize = offset_of!(AllocUcontextResp, feature_flags);

/// Room that the response to a new protection domain needs.
#[doc(alias = "IRDMA_ALLOC_PD_MIN_RESP_LEN")]
pub(crate) const MIN_ALLOC_PD_RESP: usize = size_of::<AllocPdResp>();

/// Least request for a completion queue: the address of its ring.
pub(crate) const MIN_CREATE_CQ_REQ: usize = offset_of!(CreateCqReq, user_shadow_area);

/// Room that the response to a new completion queue needs.
#[doc(alias = "IRDMA_CREATE_CQ_MIN_RESP_LEN")]
pub(crate) const MIN_CREATE_CQ_RESP: usize = size_of::<CreateCqResp>();

/// Least request to resize a completion queue: all of it.
pub(crate) const MIN_RESIZE_CQ_REQ: usize = size_of::<ResizeCqReq>();

/// Least request for a QP: both addresses.
#[doc(alias = "IRDMA_CREATE_QP_MIN_REQ_LEN")]
pub(crate) const MIN_CREATE_QP_REQ: usize = offset_of!(CreateQpReq, legacy_dontuse);

/// Room that the response to a new QP needs.
#[doc(alias = "IRDMA_CREATE_QP_MIN_RESP_LEN")]
pub(crate) const MIN_CREATE_QP_RESP: usize = offset_of!(CreateQpResp, qp_caps);

/// Least request with a registration: all of it.
pub(crate) const MIN_MEM_REG_REQ: usize = size_of::<MemRegReq>();

/// Least request with a change of a QP: all of it.
pub(crate) const MIN_MODIFY_QP_REQ: usize = size_of::<ModifyQpReq>();

/// Room that the response to a change of a QP needs.
#[doc(alias = "IRDMA_MODIFY_QP_MIN_RESP_LEN")]
pub(crate) const MIN_MODIFY_QP_RESP: usize = offset_of!(ModifyQpResp, rsvd);

/// Room that the response to a new address handle needs.
#[doc(alias = "IRDMA_CREATE_AH_MIN_RESP_LEN")]
pub(crate) const MIN_CREATE_AH_RESP: usize = size_of::<CreateAhResp>();
