// SPDX-License-Identifier: GPL-2.0

//! Polling completions of in-kernel users.
//!
//! When a queue pair fails, the device reports one flushed work request for each of its queues; that
//! entry stays at the ring's head until all that is outstanding in the queue has been reported, one
//! completion for each work request and none for padding. What is posted later, and what the device
//! fails to report, is reported without the device.

use crate::{
    hw::dma::DmaWord,
    rdma::{
        Completion,
        NetworkType,
        WcArray,
        WcExtra,
        WcOpcode,
        WcStatus, //
    },
    uk::{
        cq::{
            CompletionRing,
            Pending,
            Sent, //
        },
        cqe::{
            Cqe,
            Queue, //
        },
        sq::SendWork,
        status::{
            ErrorCodes,
            Status, //
        },
        wqe::Opcode, //
    }, //
};

use super::{
    kernel_cq::{
        KernelCq,
        State, //
    },
    kernel_qp::KernelQp, //
};

/// Operation of a received message's last packet, for an RDMA WRITE with immediate data (BTH
/// opcodes; IBTA volume 1, 9.2.1).
const WRITE_LAST_WITH_IMMEDIATE: u8 = 0x09;
const WRITE_ONLY_WITH_IMMEDIATE: u8 = 0x0b;

/// Bits of a VLAN tag that hold the VLAN's number; the priority is above bit 13.
const VLAN_NUMBER: u16 = 0x0fff;
const VLAN_PRIORITY_SHIFT: u32 = 13;

impl KernelCq {
    /// Takes completions off the queue until it is empty or `wcs` is full.
    #[doc(alias = "irdma_poll_cq")]
    #[doc(alias = "__irdma_poll_cq")]
    pub(super) fn poll(&self, wcs: &mut WcArray<'_>) {
        self.with_state(|state| {
            let start = state.ring.next();

            // Half an entry, of a device that has stopped in between, does not hold up the rest.
            let is_drained = self.poll_ring(state, wcs);
            if is_drained && state.any_due {
                poll_due(state, wcs);
            }
            if state.ring.next() != start {
                self.show_index(state);
            }
        });
    }

    /// Takes completions off the ring; returns whether it has no more.
    #[doc(alias = "irdma_poll_one")]
    fn poll_ring(&self, state: &mut State, wcs: &mut WcArray<'_>) -> bool {
        let attached = &state.attached;
        let mut reader = Reader {
            // A device that writes entries of no use as fast as they are read does not keep us here.
            patience: state.ring.size(),
            ring: &mut state.ring,
            memory: self.memory(),
            wcs,
        };

        while !reader.is_done() {
            if let Some(sent) = reader.ring.peek_sent(reader.memory) {
                match attached.get(&sent.context) {
                    Some(attached) => reader.report_sent(&attached.qp, sent),
                    None => reader.skip_sent(),
                }
            } else if let Some(pending) = reader.ring.peek(reader.memory) {
                match attached.get(&pending.cqe.context) {
                    Some(attached) => reader.report(&attached.qp, &pending),
                    None => reader.skip(&pending),
                }
            } else {
                return true;
            }
        }

        false
    }
}

/// A completion queue's ring that is being read into a user's array.
struct Reader<'r, 'w> {
    ring: &'r mut CompletionRing,
    memory: &'r [DmaWord],
    wcs: &'r mut WcArray<'w>,
    /// Entries of no use that are still read.
    patience: u32,
}

impl Reader<'_, '_> {
    #[inline]
    fn is_done(&self) -> bool {
        self.wcs.is_full() || self.patience == 0
    }

    /// Takes an entry whose queue pair is gone, or never was, off the ring.
    fn skip_sent(&mut self) {
        self.ring.consume_sent();
        self.patience = self.patience.saturating_sub(1);
    }

    /// As [`Self::skip_sent`].
    fn skip(&mut self, pending: &Pending) {
        self.ring.consume(pending);
        self.patience = self.patience.saturating_sub(1);
    }

    /// Reports `sent` of `qp`, and those of the same queue pair that follow: its lock is taken once
    /// for all of them.
    #[inline]
    fn report_sent(&mut self, qp: &KernelQp, mut sent: Sent) {
        qp.with_send(|send| loop {
            self.ring.consume_sent();
            match send.ring.complete(sent.wqe_index) {
                Some(work) if work.signaled && push_sent(qp, work, self.wcs) => {}
                _ => self.patience = self.patience.saturating_sub(1),
            }
            if self.is_done() {
                return;
            }
            match self.ring.peek_sent(self.memory) {
                Some(next) if next.context == sent.context => sent = next,
                _ => return,
            }
        });
    }

    /// Reports the message in `pending` for `qp`, and those that follow as in [`Self::report_sent`].
    fn report_received(&mut self, qp: &KernelQp, pending: &Pending) {
        let mut pending = *pending;

        qp.with_recv(|recv| loop {
            self.ring.consume(&pending);
            match recv.ring.complete(pending.cqe.wqe_index) {
                Some(wr_id) if push_received(qp, wr_id, &pending.cqe, self.wcs) => {}
                _ => self.patience = self.patience.saturating_sub(1),
            }
            if self.is_done() {
                return;
            }
            match self.ring.peek(self.memory) {
                Some(next)
                    if next.cqe.context == pending.cqe.context
                        && next.cqe.queue == Queue::Recv
                        && next.cqe.error.is_none() =>
                {
                    pending = next
                }
                _ => return,
            }
        });
    }

    /// Reports what `pending` says of `qp`.
    #[doc(alias = "irdma_uk_cq_poll_cmpl")]
    fn report(&mut self, qp: &KernelQp, pending: &Pending) {
        let cqe = &pending.cqe;
        let error = cqe.error.filter(|codes| {
            // A datagram was sent even if it met congestion.
            !(qp.datagram && cqe.queue == Queue::Send && codes.is_congestion())
        });
        let before = self.wcs.filled();
        // Whether the entry has more to say, being that of a flush.
        let more = match (cqe.queue, error) {
            (Queue::Recv, None) => return self.report_received(qp, pending),
            (queue, Some(codes)) if codes.is_flush() => {
                flush_one(qp, queue, codes.normalized(), self.wcs) == Some(true)
            }
            (Queue::Send, error) => {
                let work = qp.with_send(|send| send.ring.complete(cqe.wqe_index));

                match (work, error) {
                    (Some(work), Some(codes)) => push_send_error(qp, work, codes, self.wcs),
                    (Some(work), None) if work.signaled => {
                        push_sent(qp, work, self.wcs);
                    }
                    _ => {}
                }
                false
            }
            (Queue::Recv, Some(codes)) => {
                // The entry does not say which receive failed; they are used in order.
                flush_one(qp, Queue::Recv, codes, self.wcs);
                false
            }
        };

        if self.wcs.filled() == before {
            self.patience = self.patience.saturating_sub(1);
        }
        if !more {
            self.ring.consume(pending);
        }
    }
}

/// Reports the oldest work request of `queue` as failed, with `codes` if none was before. Returns
/// whether there are more, or `None` if there was none.
fn flush_one(
    qp: &KernelQp,
    queue: Queue,
    codes: ErrorCodes,
    wcs: &mut WcArray<'_>,
) -> Option<bool> {
    let choose = |cause_told: &mut bool| {
        if core::mem::replace(cause_told, true) {
            ErrorCodes::FLUSHED
        } else {
            codes
        }
    };

    match queue {
        Queue::Send => {
            let (work, codes, more) = qp.with_send(|send| {
                let work = send.ring.flush_oldest()?;
                Some((work, choose(&mut send.cause_told), !send.ring.is_empty()))
            })?;

            push_send_error(qp, work, codes, wcs);
            Some(more)
        }
        Queue::Recv => {
            let (wr_id, codes, more) = qp.with_recv(|recv| {
                let wr_id = recv.ring.flush_oldest()?;
                Some((wr_id, choose(&mut recv.cause_told), !recv.ring.is_empty()))
            })?;

            push_recv_error(qp, wr_id, codes, wcs);
            Some(more)
        }
    }
}

/// Reports what is due without the device.
#[doc(alias = "irdma_generated_cmpls")]
fn poll_due(state: &mut State, wcs: &mut WcArray<'_>) {
    for attached in state.attached.values_mut() {
        for (queue, due) in [
            (Queue::Send, &mut attached.send_due),
            (Queue::Recv, &mut attached.recv_due),
        ] {
            while *due {
                if wcs.is_full() {
                    return;
                }
                *due = flush_one(&attached.qp, queue, ErrorCodes::FLUSHED, wcs).is_some();
            }
        }
    }
    state.any_due = false;
}

/// Appends a completion. One for a queue pair that is just being destroyed is left out. Returns
/// whether it was not.
#[inline]
fn push(wcs: &mut WcArray<'_>, completion: &Completion<'_>) -> bool {
    wcs.push(completion).is_ok()
}

#[inline]
fn push_sent(qp: &KernelQp, work: SendWork, wcs: &mut WcArray<'_>) -> bool {
    let mut completion = Completion::new(qp.link(), work.wr_id, send_opcode(work.opcode));

    completion.byte_len = work.bytes;
    completion.src_qp = qp.number();
    push(wcs, &completion)
}

fn push_send_error(qp: &KernelQp, work: SendWork, codes: ErrorCodes, wcs: &mut WcArray<'_>) {
    let mut completion = Completion::new(qp.link(), work.wr_id, send_opcode(work.opcode));

    completion.status = status(codes.status());
    completion.vendor_err = codes.vendor();
    completion.src_qp = qp.number();
    push(wcs, &completion);
}

fn push_recv_error(qp: &KernelQp, wr_id: u64, codes: ErrorCodes, wcs: &mut WcArray<'_>) {
    let mut completion = Completion::new(qp.link(), wr_id, WcOpcode::Recv);

    completion.status = status(codes.status());
    completion.vendor_err = codes.vendor();
    completion.src_qp = qp.number();
    push(wcs, &completion);
}

#[doc(alias = "irdma_process_cqe")]
fn push_received(qp: &KernelQp, wr_id: u64, cqe: &Cqe, wcs: &mut WcArray<'_>) -> bool {
    let opcode = match cqe.opcode {
        WRITE_LAST_WITH_IMMEDIATE | WRITE_ONLY_WITH_IMMEDIATE if !qp.datagram => {
            WcOpcode::RecvRdmaWithImm
        }
        _ => WcOpcode::Recv,
    };
    let mut completion = Completion::new(qp.link(), wr_id, opcode);

    completion.byte_len = cqe.bytes;
    completion.extra = match cqe.immediate {
        _ if cqe.stag_or_ipv4 && !qp.datagram => WcExtra::Invalidated(cqe.source),
        Some(data) => WcExtra::Imm(data),
        None => WcExtra::None,
    };
    completion.smac = cqe.source_mac;
    if let Some(tag) = cqe.vlan {
        let vlan = tag & VLAN_NUMBER;

        // Number 0 is a tag for the priority's sake only.
        completion.vlan = (vlan != 0).then_some(vlan);
        // CAST: Three bits are left.
        completion.sl = (tag >> VLAN_PRIORITY_SHIFT) as u8;
    }
    if qp.datagram {
        completion.src_qp = cqe.source;
        completion.grh = true;
        completion.network = Some(if cqe.stag_or_ipv4 {
            NetworkType::Ipv4
        } else {
            NetworkType::Ipv6
        });
    } else {
        completion.src_qp = qp.number();
    }
    push(wcs, &completion)
}

/// What the user asked for.
#[inline]
fn send_opcode(opcode: Opcode) -> WcOpcode {
    match opcode {
        Opcode::Write | Opcode::WriteSolicited => WcOpcode::RdmaWrite,
        Opcode::Read | Opcode::ReadInvalidate => WcOpcode::RdmaRead,
        Opcode::RegisterMr => WcOpcode::RegMr,
        Opcode::LocalInvalidate => WcOpcode::LocalInvalidate,
        Opcode::Send
        | Opcode::SendInvalidate
        | Opcode::SendSolicited
        | Opcode::SendSolicitedInvalidate
        | Opcode::Nop => WcOpcode::Send,
    }
}

fn status(status: Status) -> WcStatus {
    match status {
        Status::LocalLength => WcStatus::LocalLength,
        Status::LocalQpOperation => WcStatus::LocalQpOperation,
        Status::LocalProtection => WcStatus::LocalProtection,
        Status::WrFlush => WcStatus::Flushed,
        Status::MwBind => WcStatus::MwBind,
        Status::RemoteInvalidRequest => WcStatus::RemoteInvalidRequest,
        Status::RemoteAccess => WcStatus::RemoteAccess,
        Status::RemoteOperation => WcStatus::RemoteOperation,
        Status::RetryExceeded => WcStatus::RetryExceeded,
        Status::RnrRetryExceeded => WcStatus::RnrRetryExceeded,
        Status::Fatal => WcStatus::Fatal,
        Status::General => WcStatus::General,
    }
}
