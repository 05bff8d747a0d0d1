// SPDX-License-Identifier: GPL-2.0

//! Attributes of queue pairs and of completion queues.

use core::{
    marker::PhantomData,
    ops::BitOr, //
};

use kernel::prelude::*;

use crate::bindings;

use super::{
    Access,
    AhAttr,
    Cq,
    Mtu,
    Operations,
    QpState,
    QpType, //
};

/// What a consumer asks of a new completion queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CqInitAttr {
    /// Entries that it must have at least.
    pub(crate) cqe: u32,
    /// Vector that its events go to.
    pub(crate) comp_vector: u32,
    /// `IB_UVERBS_CQ_FLAGS_*`.
    pub(crate) flags: u32,
}

/// Sizes of a queue pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QpCap {
    /// Requests in the send queue.
    pub(crate) max_send_wr: u32,
    /// Requests in the receive queue.
    pub(crate) max_recv_wr: u32,
    /// Pieces of a request to send.
    pub(crate) max_send_sge: u32,
    /// Pieces of a receive.
    pub(crate) max_recv_sge: u32,
    /// Bytes that a request to send can hold itself.
    pub(crate) max_inline_data: u32,
}

impl QpCap {
    fn write_to(self, raw: &mut bindings::ib_qp_cap) {
        raw.max_send_wr = self.max_send_wr;
        raw.max_recv_wr = self.max_recv_wr;
        raw.max_send_sge = self.max_send_sge;
        raw.max_recv_sge = self.max_recv_sge;
        raw.max_inline_data = self.max_inline_data;
    }
}

/// What a consumer asks of a new queue pair.
///
/// # Invariants
///
/// `raw` is exclusively ours for the lifetime. Its queues are of a device of `T`.
pub(crate) struct QpInitAttr<'a, T: Operations> {
    raw: &'a mut bindings::ib_qp_init_attr,
    _driver: PhantomData<&'a Cq<T>>,
}

impl<'a, T: Operations> QpInitAttr<'a, T> {
    /// # Safety
    ///
    /// The queues that `raw` names are null or of a device of `T`, and stay for `'a`.
    pub(super) unsafe fn from_raw(raw: &'a mut bindings::ib_qp_init_attr) -> Self {
        // INVARIANT: By this function's requirements.
        Self {
            raw,
            _driver: PhantomData,
        }
    }

    /// The sizes, as asked for or as granted by [`QpInitAttr::set_cap`].
    pub(crate) fn cap(&self) -> QpCap {
        let cap = &self.raw.cap;
        QpCap {
            max_send_wr: cap.max_send_wr,
            max_recv_wr: cap.max_recv_wr,
            max_send_sge: cap.max_send_sge,
            max_recv_sge: cap.max_recv_sge,
            max_inline_data: cap.max_inline_data,
        }
    }

    /// Tells the consumer what it really gets.
    pub(crate) fn set_cap(&mut self, cap: QpCap) {
        cap.write_to(&mut self.raw.cap);
    }

    /// The service type.
    ///
    /// # Errors
    ///
    /// `EOPNOTSUPP` if it is not one that we know.
    pub(crate) fn qp_type(&self) -> Result<QpType> {
        QpType::try_from(self.raw.qp_type).map_err(|_| EOPNOTSUPP)
    }

    /// Whether each request to send makes a completion, asked for or not.
    pub(crate) fn signal_all(&self) -> bool {
        self.raw.sq_sig_type == bindings::ib_sig_type_IB_SIGNAL_ALL_WR
    }

    /// `IB_QP_CREATE_*`.
    pub(crate) fn create_flags(&self) -> u32 {
        self.raw.create_flags
    }

    /// Whether the receives come from a shared queue.
    pub(crate) fn has_srq(&self) -> bool {
        !self.raw.srq.is_null()
    }

    /// The queue for completions of requests to send.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is none.
    pub(crate) fn send_cq(&self) -> Result<&'a Cq<T>> {
        if self.raw.send_cq.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: By the type's invariant.
        Ok(unsafe { Cq::from_raw(self.raw.send_cq) })
    }

    /// The queue for completions of receives.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is none.
    pub(crate) fn recv_cq(&self) -> Result<&'a Cq<T>> {
        if self.raw.recv_cq.is_null() {
            return Err(EINVAL);
        }
        // SAFETY: By the type's invariant.
        Ok(unsafe { Cq::from_raw(self.raw.recv_cq) })
    }
}

/// Set of attributes (`enum ib_qp_attr_mask`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QpAttrMask(u32);

impl QpAttrMask {
    /// [`QpAttr::state`].
    pub(crate) const STATE: Self = Self(bindings::ib_qp_attr_mask_IB_QP_STATE);
    /// [`QpAttr::cur_state`].
    pub(crate) const CUR_STATE: Self = Self(bindings::ib_qp_attr_mask_IB_QP_CUR_STATE);
    /// [`QpAttr::access`].
    pub(crate) const ACCESS: Self = Self(bindings::ib_qp_attr_mask_IB_QP_ACCESS_FLAGS);
    /// [`QpAttr::pkey_index`].
    pub(crate) const PKEY_INDEX: Self = Self(bindings::ib_qp_attr_mask_IB_QP_PKEY_INDEX);
    /// [`QpAttr::port`].
    pub(crate) const PORT: Self = Self(bindings::ib_qp_attr_mask_IB_QP_PORT);
    /// [`QpAttr::qkey`].
    pub(crate) const QKEY: Self = Self(bindings::ib_qp_attr_mask_IB_QP_QKEY);
    /// [`QpAttr::ah`].
    pub(crate) const AV: Self = Self(bindings::ib_qp_attr_mask_IB_QP_AV);
    /// [`QpAttr::path_mtu`].
    pub(crate) const PATH_MTU: Self = Self(bindings::ib_qp_attr_mask_IB_QP_PATH_MTU);
    /// [`QpAttr::timeout`].
    pub(crate) const TIMEOUT: Self = Self(bindings::ib_qp_attr_mask_IB_QP_TIMEOUT);
    /// [`QpAttr::retry_cnt`].
    pub(crate) const RETRY_CNT: Self = Self(bindings::ib_qp_attr_mask_IB_QP_RETRY_CNT);
    /// [`QpAttr::rnr_retry`].
    pub(crate) const RNR_RETRY: Self = Self(bindings::ib_qp_attr_mask_IB_QP_RNR_RETRY);
    /// [`QpAttr::rq_psn`].
    pub(crate) const RQ_PSN: Self = Self(bindings::ib_qp_attr_mask_IB_QP_RQ_PSN);
    /// [`QpAttr::max_rd_atomic`].
    pub(crate) const MAX_RD_ATOMIC: Self = Self(bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC);
    /// An alternate path.
    pub(crate) const ALT_PATH: Self = Self(bindings::ib_qp_attr_mask_IB_QP_ALT_PATH);
    /// [`QpAttr::min_rnr_timer`].
    pub(crate) const MIN_RNR_TIMER: Self = Self(bindings::ib_qp_attr_mask_IB_QP_MIN_RNR_TIMER);
    /// [`QpAttr::sq_psn`].
    pub(crate) const SQ_PSN: Self = Self(bindings::ib_qp_attr_mask_IB_QP_SQ_PSN);
    /// [`QpAttr::max_dest_rd_atomic`].
    pub(crate) const MAX_DEST_RD_ATOMIC: Self =
        Self(bindings::ib_qp_attr_mask_IB_QP_MAX_DEST_RD_ATOMIC);
    /// [`QpAttr::dest_qp_num`].
    pub(crate) const DEST_QPN: Self = Self(bindings::ib_qp_attr_mask_IB_QP_DEST_QPN);
    /// All that there is without vendors' extensions (`IB_QP_ATTR_STANDARD_BITS`).
    pub(crate) const STANDARD: Self = Self(0x1f_ffff);

    /// The number that C uses.
    pub(crate) const fn into_raw(self) -> u32 {
        self.0
    }

    /// Whether all of `other` are in the set.
    pub(crate) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The set without `other`.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the set is empty.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether a change from `current` to `next` state must and may have these attributes
    /// (IBTA volume 1, 11.2.5.2).
    #[doc(alias = "ib_modify_qp_is_ok")]
    pub(crate) fn is_ok(self, current: QpState, next: QpState, qp_type: QpType) -> bool {
        // SAFETY: The function reads tables only, and checks the states; our type is in range.
        unsafe {
            bindings::ib_modify_qp_is_ok(
                current.into_raw(),
                next.into_raw(),
                qp_type.into_raw(),
                self.0,
            )
        }
    }
}

impl BitOr for QpAttrMask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Attributes that a consumer wants changed. Each is `None` if it shall stay.
pub(crate) struct QpAttr<'a> {
    raw: &'a bindings::ib_qp_attr,
    mask: QpAttrMask,
}

/// Declares functions that give an attribute if the mask has it.
macro_rules! attributes {
    ($( $(#[$meta:meta])* $name:ident($field:ident, $mask:ident): $type:ty, )+) => {
        $(
            $(#[$meta])*
            pub(crate) fn $name(&self) -> Option<$type> {
                self.mask
                    .contains(QpAttrMask::$mask)
                    .then_some(self.raw.$field)
            }
        )+
    };
}

impl<'a> QpAttr<'a> {
    /// Wraps what the core gives.
    pub(super) fn new(raw: &'a bindings::ib_qp_attr, mask: c_int) -> Self {
        Self {
            raw,
            // CAST: The mask is a set of bits.
            mask: QpAttrMask(mask as u32),
        }
    }

    /// What shall be changed.
    pub(crate) fn mask(&self) -> QpAttrMask {
        self.mask
    }

    attributes! {
        /// Index of the partition key.
        pkey_index(pkey_index, PKEY_INDEX): u16,
        /// Number of the port, from 1.
        port(port_num, PORT): u32,
        /// Key of a queue pair of datagrams.
        qkey(qkey, QKEY): u32,
        /// Timeout of a response: 4.096 microseconds times 2 to the power of this, 5 bits.
        timeout(timeout, TIMEOUT): u8,
        /// Times that a request is sent again, 3 bits.
        retry_cnt(retry_cnt, RETRY_CNT): u8,
        /// The same for a peer without receives, 7 means without end.
        rnr_retry(rnr_retry, RNR_RETRY): u8,
        /// First packet number that the peer uses, 24 bits.
        rq_psn(rq_psn, RQ_PSN): u32,
        /// RDMA READs and atomics that we ask at a time.
        max_rd_atomic(max_rd_atomic, MAX_RD_ATOMIC): u8,
        /// Code of the time that a peer waits if we have no receives, 5 bits.
        min_rnr_timer(min_rnr_timer, MIN_RNR_TIMER): u8,
        /// First packet number that we use, 24 bits.
        sq_psn(sq_psn, SQ_PSN): u32,
        /// RDMA READs and atomics that we answer at a time.
        max_dest_rd_atomic(max_dest_rd_atomic, MAX_DEST_RD_ATOMIC): u8,
        /// The peer's queue pair, 24 bits.
        dest_qp_num(dest_qp_num, DEST_QPN): u32,
    }

    /// The state to go to.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such state.
    pub(crate) fn state(&self) -> Result<Option<QpState>> {
        if !self.mask.contains(QpAttrMask::STATE) {
            return Ok(None);
        }
        QpState::try_from(self.raw.qp_state).map(Some)
    }

    /// The state that the consumer believes the queue pair to be in.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such state.
    pub(crate) fn cur_state(&self) -> Result<Option<QpState>> {
        if !self.mask.contains(QpAttrMask::CUR_STATE) {
            return Ok(None);
        }
        QpState::try_from(self.raw.cur_qp_state).map(Some)
    }

    /// What the peer may do.
    pub(crate) fn access(&self) -> Option<Access> {
        self.mask
            .contains(QpAttrMask::ACCESS)
            // CAST: The rights are a set of bits.
            .then_some(Access::from_raw(self.raw.qp_access_flags as u32))
    }

    /// The MTU of the path to the peer.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no such MTU.
    pub(crate) fn path_mtu(&self) -> Result<Option<Mtu>> {
        if !self.mask.contains(QpAttrMask::PATH_MTU) {
            return Ok(None);
        }
        Mtu::try_from(self.raw.path_mtu).map(Some)
    }

    /// The route to the peer.
    pub(crate) fn ah(&self) -> Option<AhAttr<'a>> {
        self.mask
            .contains(QpAttrMask::AV)
            // SAFETY: The attributes are valid and unchanged for `'a`.
            .then(|| unsafe { AhAttr::from_raw(&raw const self.raw.ah_attr) })
    }
}

/// What a driver tells of a queue pair.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QueriedQp {
    /// State.
    pub(crate) state: QpState,
    /// Sizes.
    pub(crate) cap: QpCap,
    /// MTU of the path.
    pub(crate) path_mtu: Option<Mtu>,
    /// As [`QpAttr::qkey`].
    pub(crate) qkey: u32,
    /// As [`QpAttr::rq_psn`].
    pub(crate) rq_psn: u32,
    /// As [`QpAttr::sq_psn`].
    pub(crate) sq_psn: u32,
    /// As [`QpAttr::dest_qp_num`].
    pub(crate) dest_qp_num: u32,
    /// As [`QpAttr::access`].
    pub(crate) access: Access,
    /// As [`QpAttr::pkey_index`].
    pub(crate) pkey_index: u16,
    /// As [`QpAttr::max_rd_atomic`].
    pub(crate) max_rd_atomic: u8,
    /// As [`QpAttr::max_dest_rd_atomic`].
    pub(crate) max_dest_rd_atomic: u8,
    /// As [`QpAttr::min_rnr_timer`].
    pub(crate) min_rnr_timer: u8,
    /// As [`QpAttr::timeout`].
    pub(crate) timeout: u8,
    /// As [`QpAttr::retry_cnt`].
    pub(crate) retry_cnt: u8,
    /// As [`QpAttr::rnr_retry`].
    pub(crate) rnr_retry: u8,
    /// As [`QpInitAttr::signal_all`].
    pub(crate) signal_all: bool,
}

impl QueriedQp {
    /// Fills in the structures that a consumer reads.
    pub(super) fn write_to(
        &self,
        attr: &mut bindings::ib_qp_attr,
        init: &mut bindings::ib_qp_init_attr,
    ) {
        *attr = bindings::ib_qp_attr {
            qp_state: self.state.into_raw(),
            cur_qp_state: self.state.into_raw(),
            path_mtu: self.path_mtu.map_or(0, Mtu::into_raw),
            qkey: self.qkey,
            rq_psn: self.rq_psn,
            sq_psn: self.sq_psn,
            dest_qp_num: self.dest_qp_num,
            // CAST: The rights are a set of bits.
            qp_access_flags: self.access.into_raw() as c_int,
            pkey_index: self.pkey_index,
            max_rd_atomic: self.max_rd_atomic,
            max_dest_rd_atomic: self.max_dest_rd_atomic,
            min_rnr_timer: self.min_rnr_timer,
            port_num: 1,
            timeout: self.timeout,
            retry_cnt: self.retry_cnt,
            rnr_retry: self.rnr_retry,
            ..Default::default()
        };
        self.cap.write_to(&mut attr.cap);
        self.cap.write_to(&mut init.cap);
        init.sq_sig_type = if self.signal_all {
            bindings::ib_sig_type_IB_SIGNAL_ALL_WR
        } else {
            bindings::ib_sig_type_IB_SIGNAL_REQ_WR
        };
    }
}
