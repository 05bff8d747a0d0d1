// SPDX-License-Identifier: GPL-2.0

//! Polling completions of in-kernel users.
//!
//! When a queue pair fails, the device reports one flushed work request for each of its queues; that
//! entry stays at the ring's head until all that is outstanding in the queue has been reported, one
//! completion for each work request and none for padding. What is posted later, and what the device
//! fails to report, is reported without the device.

use crate::{
    rdma::{
        Completion,
        NetworkType,
        WcArray,
        WcExtra,
        WcOpcode,
        WcStatus, //
    },
    uk::{
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
    pub(super) fn poll(&self, wcs: &mut WcArray<'_>) {
        self.with_state(|state| {
            let start = state.ring.next();

            self.poll_ring(state, wcs);
            if state.any_due && !wcs.is_full() && state.ring.is_empty(&self.memory()) {
                poll_due(state, wcs);
            }
            if state.ring.next() != start {
                self.show_index(state);
            }
        });
    }

    /// Takes completions off the ring.
    #[doc(alias = "irdma_poll_one")]
    fn poll_ring(&self, state: &mut State, wcs: &mut WcArray<'_>) {
        let memory = self.memory();
        // A device that writes entries of no use as fast as they are read does not keep us here.
        let mut patience = state.ring.size();

        while !wcs.is_full() && patience > 0 {
            let Some(pending) = state.ring.peek(&memory) else {
                return;
            };
            let before = wcs.filled();
            let more = report(state, &pending.cqe, wcs);

            if wcs.filled() == before {
                patience -= 1;
            }
            if !more {
                state.ring.consume(&pending);
            }
        }
    }
}

/// Reports what `cqe` says. Returns whether it has more to say, being that of a flush.
#[doc(alias = "irdma_uk_cq_poll_cmpl")]
fn report(state: &State, cqe: &Cqe, wcs: &mut WcArray<'_>) -> bool {
    let Some(attached) = state
        .position(cqe.context)
        .and_then(|at| state.attached.get(at))
    else {
        // The queue pair is gone, or there never was one.
        return false;
    };
    let qp = &*attached.qp;
    let error = cqe.error.filter(|codes| {
        // A datagram was sent even if it met congestion.
        !(qp.datagram && cqe.queue == Queue::Send && codes.is_congestion())
    });

    match (cqe.queue, error) {
        (queue, Some(codes)) if codes.is_flush() => {
            flush_one(qp, queue, codes.normalized(), wcs) == Some(true)
        }
        (Queue::Send, error) => {
            let work = qp.with_send(|send| send.ring.complete(cqe.wqe_index));

            match (work, error) {
                (Some(work), Some(codes)) => push_send_error(qp, work, codes, wcs),
                (Some(work), None) if work.signaled => push_sent(qp, work, wcs),
                _ => {}
            }
            false
        }
        (Queue::Recv, Some(codes)) => {
            // The entry does not say which receive failed; they are used in order.
            flush_one(qp, Queue::Recv, codes, wcs);
            false
        }
        (Queue::Recv, None) => {
            if let Some(wr_id) = qp.with_recv(|recv| recv.ring.complete(cqe.wqe_index)) {
                push_received(qp, wr_id, cqe, wcs);
            }
            false
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
    for attached in state.attached.iter_mut() {
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

/// Appends a completion. One for a queue pair that is just being destroyed is left out.
fn push(wcs: &mut WcArray<'_>, completion: &Completion<'_>) {
    let _ = wcs.push(completion);
}

fn push_sent(qp: &KernelQp, work: SendWork, wcs: &mut WcArray<'_>) {
    let mut completion = Completion::new(qp.link(), work.wr_id, send_opcode(work.opcode));

    completion.byte_len = work.bytes;
    completion.src_qp = qp.number();
    push(wcs, &completion);
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
fn push_received(qp: &KernelQp, wr_id: u64, cqe: &Cqe, wcs: &mut WcArray<'_>) {
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
    push(wcs, &completion);
}

/// What the user asked for.
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
