// SPDX-License-Identifier: GPL-2.0
//! Commands on queue pairs.

use serde_json::json;

use super::super::aeq::{self, AsyncEvent};
use super::super::claims::Owner;
use super::super::fpm::Object;
use super::super::layout::{qpc, wqe};
use super::super::qp::{self, Qp, QpState, QpType, QUANTUM};
use super::super::qp_context::QpContext;
use super::super::qp_rules;
use super::super::ring::{Ring, RingBase};
use super::super::transport::{self, FlushCodes, QpData};
use super::super::{Protocol, Rdma};
use super::{read_words, Command, Done, Failure, Outcome};
use crate::context::Context;

/// Bytes of a queue pair's shadow area.
const SHADOW: u64 = 64;
/// Ring lengths in quanta that the device takes.
const QUANTA: std::ops::RangeInclusive<u32> = 8..=32768;
/// Word of the completion code when FLUSH_WQES found work in: the receive queue, the send queue, both.
const FLUSHED_RQ: u16 = 2;
const FLUSHED_SQ: u16 = 3;
const FLUSHED_BOTH: u16 = 4;

fn id(c: &Command) -> u32 {
    c.head(wqe::QP_ID) as u32
}

/// Reads and decodes the context that the command points to.
fn read_context(cx: &mut Context<'_>, c: &Command) -> Result<QpContext, Failure> {
    let address = c.words[2];
    let words: [u64; qpc::LENGTH / 8] = read_words(cx, "QP context", address)?;
    cx.trace(
        "context",
        || json!({"qp": id(c), "address": address, "words": words.to_vec()}),
    );
    if let Some((offset, bits)) = QpContext::reserved_bits(&words) {
        c.violation(
            cx,
            format!(
                "QP {}: reserved bits {bits:#x} at +{offset} of the context",
                id(c)
            ),
        );
    }
    Ok(QpContext::decode(&words))
}

fn check_cqs(
    rdma: &Rdma,
    cx: &mut Context<'_>,
    c: &Command,
    ctx: &QpContext,
) -> Result<(), Failure> {
    for cq in [ctx.send_cq, ctx.recv_cq] {
        if !rdma.cqs.contains_key(&cq) || cq == super::CONTROL_CQ {
            let text = format!("QP {}: CQ {cq} does not exist", id(c));
            return Err(c.refuse(cx, Failure::INVALID_ID, text));
        }
    }
    Ok(())
}

pub(super) fn create(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let id = id(c);
    if rdma.qps.contains_key(&id) {
        return Err(c.refuse(cx, Failure::INVALID_ID, format!("QP {id} exists")));
    }
    rdma.hmc.check_backing(cx, Object::Qp, id)?;
    let Some(kind) = QpType::from_code(c.head(wqe::QP_TYPE)) else {
        return Err(c.refuse(
            cx,
            Failure::INVALID_COMMAND,
            format!("QP {id}: unknown type"),
        ));
    };
    let fits = match rdma.config.protocol {
        Protocol::Roce => matches!(kind, QpType::RoceRc | QpType::RoceUd),
        Protocol::Iwarp => matches!(kind, QpType::Iwarp | QpType::Uda),
    };
    if !fits {
        let text = format!(
            "QP {id}: {kind:?} on a function that speaks {:?}",
            rdma.config.protocol
        );
        return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
    }
    let state = QpState::from_code(c.head(wqe::QP_NEXT_STATE));
    let may_start = state == Some(QpState::Idle)
        || (kind == QpType::Uda && state == Some(QpState::ReadyToSend));
    let Some(state) = state.filter(|_| may_start) else {
        let text = format!("QP {id}: created in state {state:?}");
        return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
    };
    let ctx = read_context(cx, c)?;
    if !QUANTA.contains(&ctx.sq_quanta) || !QUANTA.contains(&ctx.rq_quanta) {
        let text = format!(
            "QP {id}: rings of {} and {} quanta",
            ctx.sq_quanta, ctx.rq_quanta
        );
        return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
    }
    check_cqs(rdma, cx, c, &ctx)?;
    let shadow = c.words[5];
    if shadow % 8 != 0 {
        let text = format!("QP {id}: shadow area at {shadow:#x}");
        return Err(c.refuse(cx, Failure::INVALID_MEMORY, text));
    }
    let paged = c.flag(wqe::QP_VIRTUAL);
    let ring = |base: u64, count| Ring {
        owner: Owner::Qp(id),
        base: RingBase::new(paged, base, base),
        entry: QUANTUM,
        count,
    };
    let (sq, rq) = (
        ring(ctx.sq_base, ctx.sq_quanta),
        ring(ctx.rq_base, ctx.rq_quanta),
    );
    if let Err(failure) = claim(rdma, cx, id, [sq, rq], shadow) {
        rdma.claims.release(Owner::Qp(id));
        return Err(failure);
    }
    rdma.qps.insert(
        id,
        Qp {
            id,
            kind,
            state,
            ctx,
            sq,
            rq,
            shadow,
            suspended: false,
            data: QpData::default(),
        },
    );
    transport::qp_state_changed(rdma, cx, id, state);
    Ok(Done::OK)
}

fn claim(
    rdma: &mut Rdma,
    cx: &mut Context<'_>,
    id: u32,
    rings: [Ring; 2],
    shadow: u64,
) -> Result<(), Failure> {
    for ring in rings {
        ring.claim(cx, &rdma.hmc, &mut rdma.claims)?;
    }
    if let Err(conflict) = rdma.claims.claim(Owner::Qp(id), shadow, SHADOW) {
        cx.violation("dma", format!("QP {id}: shadow area: {conflict}"));
        return Err(Failure::INVALID_MEMORY);
    }
    Ok(())
}

pub(super) fn modify(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let id = id(c);
    let Some(qp) = rdma.qps.get(&id) else {
        return Err(c.refuse(cx, Failure::INVALID_ID, format!("QP {id} does not exist")));
    };
    let (old, kind) = (qp.state, qp.kind);
    let (sq, rq, shadow) = (qp.sq, qp.rq, qp.shadow);
    if QpType::from_code(c.head(wqe::QP_TYPE)) != Some(kind) || c.words[5] != shadow {
        c.violation(
            cx,
            format!("QP {id}: type or shadow area is not that of its creation"),
        );
    }
    let code = c.head(wqe::QP_NEXT_STATE);
    let next = match (code, QpState::from_code(code)) {
        (0, _) => old,
        (_, Some(next)) => next,
        (_, None) => {
            let text = format!("QP {id}: unknown state {code}");
            return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
        }
    };
    if !old.may_become(next) {
        // The device may have moved to the error state before the driver knew.
        if old != QpState::Error {
            c.violation(cx, format!("QP {id}: {old:?} cannot become {next:?}"));
        }
        return Err(Failure::INVALID_STATE);
    }
    let ctx = read_context(cx, c)?;
    let same_rings = RingBase::new(c.flag(wqe::QP_VIRTUAL), ctx.sq_base, ctx.sq_base) == sq.base
        && RingBase::new(c.flag(wqe::QP_VIRTUAL), ctx.rq_base, ctx.rq_base) == rq.base
        && (ctx.sq_quanta, ctx.rq_quanta) == (sq.count, rq.count);
    if !same_rings {
        let text = format!("QP {id}: the context names other rings");
        return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
    }
    if c.flag(wqe::QP_CQ_VALID) {
        check_cqs(rdma, cx, c, &ctx)?;
    }
    let connects = matches!(next, QpState::ReadyToReceive | QpState::ReadyToSend) && next != old;
    if connects && !rdma.ws.is_enabled(ctx.qs_handle) {
        let text = format!("QP {id}: no enabled queue set {}", ctx.qs_handle);
        c.violation(cx, text);
    }
    let contiguous = matches!(sq.base, RingBase::Contiguous(_));
    let instance_exists = |index: u8| rdma.stats_instances.contains_key(&u32::from(index));
    for mistake in qp_rules::mistakes(&ctx, old, next, contiguous, instance_exists) {
        c.violation(cx, format!("QP {id} becomes {next:?}: {mistake}"));
    }
    let needs_arp = connects && kind == QpType::RoceRc && c.flag(wqe::QP_ARP_VALID);
    if needs_arp && !rdma.arp.contains_key(&u32::from(ctx.arp_index)) {
        let text = format!("QP {id}: ARP entry {} does not exist", ctx.arp_index);
        return Err(c.refuse(cx, Failure::INVALID_ID, text));
    }
    if let Some(qp) = rdma.qps.get_mut(&id) {
        qp.ctx = ctx;
    }
    qp::set_state(rdma, cx, id, next);
    if next == QpState::Drained && old != QpState::Drained && kind == QpType::RoceRc {
        transport::quiesce(rdma, cx, id);
    }
    Ok(Done::OK)
}

pub(super) fn destroy(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let id = id(c);
    let Some(qp) = rdma.qps.get(&id) else {
        return Err(c.refuse(cx, Failure::INVALID_ID, format!("QP {id} does not exist")));
    };
    if QpType::from_code(c.head(wqe::QP_TYPE)) != Some(qp.kind) || c.words[5] != qp.shadow {
        c.violation(
            cx,
            format!("QP {id}: type or shadow area is not that of its creation"),
        );
    }
    let group = rdma
        .mcast
        .values()
        .find(|g| g.members.iter().any(|m| m.qp_id == id))
        .map(|g| g.index);
    if let Some(group) = group {
        c.used(
            cx,
            format!("QP {id} is a member of multicast group {group}"),
        );
    }
    transport::qp_destroyed(rdma, cx, id);
    rdma.qps.remove(&id);
    rdma.claims.release(Owner::Qp(id));
    Ok(Done::OK)
}

pub(super) fn flush(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let id = id(c);
    let Some(qp) = rdma.qps.get(&id) else {
        return Err(c.refuse(cx, Failure::INVALID_ID, format!("QP {id} does not exist")));
    };
    let (state, context) = (qp.state, qp.ctx.completion_context);
    let user = c.flag(wqe::FLUSH_USER_CODE);
    let codes = |asked: bool, major, minor| {
        asked.then(|| {
            if user {
                (c.get(2, major) as u16, c.get(2, minor) as u16)
            } else {
                (1, 1)
            }
        })
    };
    let codes = FlushCodes {
        sq: codes(
            c.flag(wqe::FLUSH_SQ),
            wqe::FLUSH_SQ_MAJOR,
            wqe::FLUSH_SQ_MINOR,
        ),
        rq: codes(
            c.flag(wqe::FLUSH_RQ),
            wqe::FLUSH_RQ_MAJOR,
            wqe::FLUSH_RQ_MINOR,
        ),
    };
    let wanted = codes != FlushCodes::default();
    if wanted && !matches!(state, QpState::Error | QpState::Terminate) {
        c.violation(cx, format!("QP {id}: flushed in state {state:?}"));
        return Err(Failure::INVALID_STATE);
    }
    let mut minor = 0;
    if wanted {
        let flushed = transport::flush(rdma, cx, id, codes);
        minor = match (flushed.sq, flushed.rq) {
            (true, true) => FLUSHED_BOTH,
            (true, false) => FLUSHED_SQ,
            (false, true) => FLUSHED_RQ,
            (false, false) => 0,
        };
    }
    if c.flag(wqe::FLUSH_GENERATE_AE) {
        let event = AsyncEvent {
            code: c.get(1, wqe::FLUSH_AE_CODE) as u16,
            source: aeq::Source::from_code(c.get(1, wqe::FLUSH_AE_SOURCE)),
            id,
            context,
            wqe_index: 0,
            qp_state: state as u8,
            tcp_state: 0,
        };
        aeq::post(rdma, cx, event);
    }
    Ok(Done { value: 0, minor })
}

pub(super) fn suspend(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let id = id(c);
    let Some(qp) = rdma.qps.get_mut(&id) else {
        return Err(c.refuse(cx, Failure::INVALID_ID, format!("QP {id} does not exist")));
    };
    if qp.suspended {
        return Err(c.refuse(cx, Failure::INVALID_STATE, format!("QP {id} is suspended")));
    }
    qp.suspended = true;
    transport::quiesce(rdma, cx, id);
    Ok(Done::OK)
}

pub(super) fn resume(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let id = id(c);
    let handle = c.get(2, wqe::RESUME_QS_HANDLE) as u16;
    let Some(qp) = rdma.qps.get_mut(&id) else {
        return Err(c.refuse(cx, Failure::INVALID_ID, format!("QP {id} does not exist")));
    };
    if !qp.suspended {
        return Err(c.refuse(
            cx,
            Failure::INVALID_STATE,
            format!("QP {id} is not suspended"),
        ));
    }
    qp.suspended = false;
    qp.ctx.qs_handle = handle;
    if !rdma.ws.is_enabled(handle) {
        c.violation(cx, format!("QP {id}: no enabled queue set {handle}"));
    }
    transport::sq_doorbell(rdma, cx, id);
    Ok(Done::OK)
}

pub(super) fn upload_context(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let id = id(c);
    // Nothing in the field reads the image; its layout is not known beyond the host context.
    let text = format!("QP {id}: context upload is not implemented");
    let _ = rdma;
    Err(c.refuse(cx, Failure::INVALID_COMMAND, text))
}
