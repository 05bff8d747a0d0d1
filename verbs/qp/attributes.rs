// SPDX-License-Identifier: GPL-2.0

//! Attributes of a QP: what its consumer has set, in the words of the device's context.

use kernel::prelude::*;

use crate::{
    hw::{
        qp_context::RoceContext,
        ws::Place, //
    },
    rdma::{
        Access,
        Mtu,
        QpAttr, //
    },
    verbs::{
        device::Device,
        path::{
            self,
            Path, //
        },
        port,
        qp_setup::QpInitInfo, //
    }, //
};

/// UDP port of RoCEv2 (IBTA annex A17, 17.9.2).
#[doc(alias = "ROCE_V2_UDP_DPORT")]
const ROCE_PORT: u16 = 4791;

/// Congestion window of a new QP.
#[doc(alias = "IRDMA_ROCE_CWND_DEFAULT")]
const CONGESTION_WINDOW: u32 = 0x400;

/// Credits of an acknowledgement: no limit.
#[doc(alias = "IRDMA_ROCE_ACKCREDS_DEFAULT")]
const ACK_CREDITS: u8 = 0x1e;

/// Least retransmission time-out, in units of the device.
const RTO_MIN: u8 = 5;

/// Times that a new QP retries before it gives up, until its consumer says how often.
const RETRIES: u8 = 2;

/// Most retries that a consumer can ask for; they have three bits (IBTA volume 1, 11.2.5.2).
const MAX_RETRIES: u8 = 7;

/// Greatest number of a QP.
const MAX_QPN: u32 = 0xff_ffff;

/// Sequence number of the last message: none has been sent.
const NO_MESSAGE: u32 = 0xffff;

/// Attributes of a QP.
///
/// A change is made to a copy, which replaces the original when the device has accepted it.
#[derive(Clone, Copy)]
pub(super) struct Attributes {
    /// What the device is told.
    pub(super) context: RoceContext,
    /// Place on the queue set in `context`.
    pub(super) place: Place,
    /// What the peer may do.
    pub(super) access: Access,
    /// MTU of the path.
    pub(super) mtu: Mtu,
    /// Code of the time-out of a response; the device has one of its own.
    pub(super) timeout: u8,
    /// Code of the time that the peer waits when there are no receives; the device has one of its
    /// own.
    pub(super) min_rnr_timer: u8,
    /// Reads that we ask at a time.
    pub(super) max_rd_atomic: u8,
    /// Reads that we answer at a time.
    pub(super) max_dest_rd_atomic: u8,
}

impl Attributes {
    /// Attributes of a new QP. `cqs` are the numbers of the send and of the receive queue's CQ.
    #[doc(alias = "irdma_roce_fill_and_set_qpctx_info")]
    pub(super) fn new(
        dev: &Device<'_>,
        info: &QpInitInfo,
        pd: u32,
        cqs: [u32; 2],
        place: Place,
        privileged: bool,
    ) -> Self {
        let mtu = Mtu::from_bytes(dev.netdev().mtu());
        let [send_cq, receive_cq] = cqs;
        let limits = dev.hw_limits();

        Self {
            context: RoceContext {
                pd,
                sq: info.sq_address,
                rq: info.rq_address,
                sq_size: info.sq_size,
                rq_size: info.rq_size,
                rq_wqe_size: info.rq_wqe_shift,
                send_cq,
                receive_cq,
                completion_context: info.completion_context,
                qs_handle: place.handle(),
                privileged,
                ud_private_cq: privileged,
                fast_register: privileged,
                mac: dev.netdev().mac(),
                source_port: path::FIRST_SOURCE_PORT,
                destination_port: ROCE_PORT,
                mtu: mtu_bytes(mtu),
                ack_credits: ACK_CREDITS,
                congestion_window: CONGESTION_WINDOW,
                retries: RETRIES,
                rnr_retries: RETRIES,
                rto_min: RTO_MIN,
                ord: saturate(limits.max_ord),
                ird: saturate(limits.max_ird),
                ..Default::default()
            },
            place,
            access: Access::from_raw(0),
            mtu,
            timeout: 0,
            min_rnr_timer: 0,
            max_rd_atomic: limits.max_ord.try_into().unwrap_or(u8::MAX),
            max_dest_rd_atomic: limits.max_ird.try_into().unwrap_or(u8::MAX),
        }
    }

    /// Takes over what `attr` changes, but for the path.
    ///
    /// # Errors
    ///
    /// `EINVAL` for what the device can't do.
    pub(super) fn change(&mut self, dev: &Device<'_>, attr: &QpAttr<'_>) -> Result {
        let limits = dev.hw_limits();
        let context = &mut self.context;

        if let Some(number) = attr.dest_qp_num() {
            if number > MAX_QPN {
                return Err(EINVAL);
            }
            context.remote_qp = number;
        }
        if let Some(index) = attr.pkey_index() {
            context.pkey = port::pkey(index)?;
        }
        if let Some(qkey) = attr.qkey() {
            context.qkey = qkey;
        }
        if let Some(mtu) = attr.path_mtu()? {
            self.mtu = mtu;
            context.mtu = mtu_bytes(mtu);
        }
        if let Some(psn) = attr.sq_psn() {
            context.psn_next = psn;
            context.psn_unacknowledged = psn;
            context.psn_max = psn;
            context.last_sequence = NO_MESSAGE;
        }
        if let Some(psn) = attr.rq_psn() {
            context.psn_expected = psn;
        }
        if let Some(retries) = attr.rnr_retry() {
            if retries > MAX_RETRIES {
                return Err(EINVAL);
            }
            context.rnr_retries = retries;
        }
        if let Some(retries) = attr.retry_cnt() {
            if retries > MAX_RETRIES {
                return Err(EINVAL);
            }
            context.retries = retries;
        }
        if let Some(timer) = attr.min_rnr_timer() {
            self.min_rnr_timer = timer;
        }
        if let Some(timeout) = attr.timeout() {
            self.timeout = timeout;
        }
        if let Some(reads) = attr.max_rd_atomic() {
            if u32::from(reads) > limits.max_ord {
                return Err(EINVAL);
            }
            self.max_rd_atomic = reads;
            // The device can't have none.
            if reads != 0 {
                context.ord = reads.into();
            }
        }
        if let Some(reads) = attr.max_dest_rd_atomic() {
            if u32::from(reads) > limits.max_ird {
                return Err(EINVAL);
            }
            self.max_dest_rd_atomic = reads;
            if reads != 0 {
                context.ird = reads.into();
            }
        }
        if let Some(access) = attr.access() {
            self.access = access;
            // Local write stands for the answers to our own reads, which come in by the same way
            // as the peer's writes.
            context.remote_write =
                access.contains(Access::REMOTE_WRITE) || access.contains(Access::LOCAL_WRITE);
            context.remote_read = access.contains(Access::REMOTE_READ);
        }

        Ok(())
    }

    /// Takes over a path of which the device knows the neighbour by `arp_index`. Its priority is
    /// that of `place`.
    pub(super) fn set_path(&mut self, path: &Path, arp_index: u16, place: Place, local_qpn: u32) {
        let context = &mut self.context;

        context.hop_limit = path.hop_limit;
        context.traffic_class = path.traffic_class;
        context.flow_label = path.flow_label;
        context.source_port = path.source_port(local_qpn, context.remote_qp);
        context.mac = path.source_mac;
        context.vlan = path.vlan;
        context.local = path.source;
        context.remote = path.destination;
        context.arp_index = arp_index;
        self.set_place(place);
    }

    /// Takes over a place on a queue set.
    pub(super) fn set_place(&mut self, place: Place) {
        self.context.qs_handle = place.handle();
        self.place = place;
    }
}

fn mtu_bytes(mtu: Mtu) -> u16 {
    // CAST: 4096 at most.
    mtu.bytes() as u16
}

fn saturate(number: u32) -> u16 {
    number.try_into().unwrap_or(u16::MAX)
}
