// SPDX-License-Identifier: GPL-2.0
//! Commands on completion queues and event queues.

use super::super::aeq::{self, Aeq};
use super::super::ceq::{self, Ceq};
use super::super::claims::Owner;
use super::super::cq::{self, Cq};
use super::super::fpm::{self, Object};
use super::super::layout::wqe;
use super::super::ring::{Ring, RingBase};
use super::super::Rdma;
use super::{Command, Done, Failure, Outcome, CONTROL_CQ};
use crate::context::Context;

/// Entries of a completion queue: what the command's field holds. Drivers offer half of it, as they set two entries
/// aside for each completion.
const CQ_ENTRIES: std::ops::RangeInclusive<u32> = 1..=0x1f_ffff;

fn cq_id(rdma: &Rdma, c: &Command) -> u32 {
    c.head(rdma.layout.cq_id) as u32
}

/// The ring that the command describes. A page list is one leaf of PBLEs.
fn ring(
    cx: &mut Context<'_>,
    c: &Command,
    owner: Owner,
    entry: u32,
    count: u32,
) -> Result<Ring, Failure> {
    let paged = c.flag(wqe::VIRTUAL);
    let leaf = c.head(wqe::LEAF_SIZE);
    if leaf != u64::from(paged) {
        let text = format!("{owner}: page list of {leaf} levels, virtually mapped: {paged}");
        return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
    }
    let base = c.words[4];
    if !paged && (base == 0 || base % 256 != 0) {
        let text = format!("{owner}: ring at {base:#x}");
        return Err(c.refuse(cx, Failure::INVALID_MEMORY, text));
    }
    Ok(Ring {
        owner,
        base: RingBase::new(paged, base, c.get(6, wqe::FIRST_PBLE)),
        entry,
        count,
    })
}

fn check_vsi(cx: &mut Context<'_>, c: &Command, owner: Owner) {
    let vsi = c.get(7, wqe::VSI) as u16;
    // The control queue's own objects are made before the driver knows its VSI.
    if vsi != 0 && !cx.port.vsis.contains(&vsi) {
        c.violation(cx, format!("{owner}: VSI {vsi} does not exist"));
    }
}

pub(super) fn create_cq(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let id = cq_id(rdma, c);
    let owner = Owner::Cq(id);
    if rdma.cqs.contains_key(&id) {
        return Err(c.refuse(cx, Failure::INVALID_ID, format!("{owner} exists")));
    }
    rdma.hmc.check_backing(cx, Object::Cq, id)?;
    let count = c.get(0, wqe::CQ_SIZE) as u32;
    if !CQ_ENTRIES.contains(&count) || c.flag(wqe::CQ_LARGE_ENTRIES) {
        let text = format!(
            "{owner}: {count} entries, 64 bytes each: {}",
            c.flag(wqe::CQ_LARGE_ENTRIES)
        );
        return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
    }
    let ceq = c
        .flag(wqe::CQ_CEQ_VALID)
        .then(|| c.head(rdma.layout.cq_ceq_id) as u32);
    // The control CQ comes before its event queue.
    let missing = ceq.filter(|ceq| id != CONTROL_CQ && !rdma.ceqs.contains_key(ceq));
    if let Some(ceq) = missing {
        return Err(c.refuse(
            cx,
            Failure::INVALID_ID,
            format!("{owner}: CEQ {ceq} does not exist"),
        ));
    }
    let shadow = c.words[5];
    if shadow % 8 != 0 {
        let text = format!("{owner}: shadow area at {shadow:#x}");
        return Err(c.refuse(cx, Failure::INVALID_MEMORY, text));
    }
    check_vsi(cx, c, owner);
    let ring = ring(cx, c, owner, cq::ENTRY, count)?;
    if let Err(failure) = claim_cq(rdma, cx, ring, shadow) {
        rdma.claims.release(owner);
        return Err(failure);
    }
    let mut cq = Cq::new(id, ring, shadow);
    cq.ceq = ceq;
    cq.context = c.get(1, wqe::CQ_CONTEXT);
    cq.check_overflow = c.flag(wqe::CQ_CHECK_OVERFLOW);
    rdma.cqs.insert(id, cq);
    Ok(Done::OK)
}

fn claim_cq(rdma: &mut Rdma, cx: &mut Context<'_>, ring: Ring, shadow: u64) -> Result<(), Failure> {
    ring.claim(cx, &rdma.hmc, &mut rdma.claims)?;
    if let Err(conflict) = rdma.claims.claim(ring.owner, shadow, cq::SHADOW) {
        cx.violation("dma", format!("{}: shadow area: {conflict}", ring.owner));
        return Err(Failure::INVALID_MEMORY);
    }
    Ok(())
}

/// Resizes a queue: the device goes on in the new ring, the driver first empties the old one.
pub(super) fn modify_cq(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let id = cq_id(rdma, c);
    let owner = Owner::Cq(id);
    let Some(cq) = rdma.cqs.get_mut(&id) else {
        return Err(c.refuse(cx, Failure::INVALID_ID, format!("{owner} does not exist")));
    };
    let shadow = cq.shadow;
    if c.words[5] != shadow {
        c.violation(
            cx,
            format!("{owner}: shadow area is not that of its creation"),
        );
    }
    cq.check_overflow = c.flag(wqe::CQ_CHECK_OVERFLOW);
    if !c.flag(wqe::CQ_RESIZE) {
        return Ok(Done::OK);
    }
    let count = c.get(0, wqe::CQ_SIZE) as u32;
    if !CQ_ENTRIES.contains(&count) {
        return Err(c.refuse(
            cx,
            Failure::INVALID_COMMAND,
            format!("{owner}: {count} entries"),
        ));
    }
    let old = cq.ring;
    let ring = ring(cx, c, owner, cq::ENTRY, count)?;
    rdma.claims.release(owner);
    if let Err(failure) = claim_cq(rdma, cx, ring, shadow) {
        rdma.claims.release(owner);
        // The old ring stays; what it held before cannot be refused now.
        let _ = claim_cq(rdma, cx, old, shadow);
        return Err(failure);
    }
    if let Some(cq) = rdma.cqs.get_mut(&id) {
        cq.resize(ring);
    }
    Ok(Done::OK)
}

pub(super) fn destroy_cq(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let id = cq_id(rdma, c);
    let owner = Owner::Cq(id);
    let Some(cq) = rdma.cqs.get(&id) else {
        return Err(c.refuse(cx, Failure::INVALID_ID, format!("{owner} does not exist")));
    };
    if c.words[5] != cq.shadow {
        c.violation(
            cx,
            format!("{owner}: shadow area is not that of its creation"),
        );
    }
    let user = rdma
        .qps
        .values()
        .find(|qp| qp.ctx.send_cq == id || qp.ctx.recv_cq == id)
        .map(|qp| qp.id);
    if let Some(qp) = user {
        return Err(c.refuse(cx, Failure::IN_USE, format!("{owner}: QP {qp} uses it")));
    }
    rdma.cqs.remove(&id);
    ceq::forget_cq(rdma, id);
    rdma.claims.release(owner);
    Ok(Done::OK)
}

pub(super) fn create_ceq(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let id = c.head(wqe::CEQ_ID) as u32;
    let owner = Owner::Ceq(id);
    if rdma.ceqs.contains_key(&id) || id >= fpm::max_ceqs() {
        let text = format!("{owner} exists or is not one of {}", fpm::max_ceqs());
        return Err(c.refuse(cx, Failure::INVALID_ID, text));
    }
    let count = c.get(2, wqe::CEQ_SIZE) as u32;
    if count == 0 {
        return Err(c.refuse(cx, Failure::INVALID_COMMAND, format!("{owner}: no entries")));
    }
    check_vsi(cx, c, owner);
    let ring = ring(cx, c, owner, ceq::ENTRY, count)?;
    claim_queue(rdma, cx, ring)?;
    rdma.ceqs.insert(id, Ceq::new(ring));
    Ok(Done::OK)
}

fn claim_queue(rdma: &mut Rdma, cx: &mut Context<'_>, ring: Ring) -> Result<(), Failure> {
    if ring.claim(cx, &rdma.hmc, &mut rdma.claims).is_err() {
        rdma.claims.release(ring.owner);
        return Err(Failure::INVALID_MEMORY);
    }
    Ok(())
}

pub(super) fn destroy_ceq(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let id = c.head(wqe::CEQ_ID) as u32;
    let owner = Owner::Ceq(id);
    let Some(old) = rdma.ceqs.remove(&id) else {
        return Err(c.refuse(cx, Failure::INVALID_ID, format!("{owner} does not exist")));
    };
    ceq::forget(rdma, old);
    rdma.claims.release(owner);
    for cq in rdma.cqs.values_mut().filter(|cq| cq.ceq == Some(id)) {
        cq.ceq = None;
        // The control CQ is polled from here on.
        if cq.id != CONTROL_CQ {
            c.used(cx, format!("{owner}: CQ {} uses it", cq.id));
        }
    }
    Ok(Done::OK)
}

pub(super) fn create_aeq(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let count = c.get(2, wqe::AEQ_SIZE) as u32;
    if rdma.aeq.is_some() || count == 0 {
        let text = format!("exists, or no entries ({count})");
        return Err(c.refuse(cx, Failure::INVALID_ID, text));
    }
    let ring = ring(cx, c, Owner::Aeq, aeq::ENTRY, count)?;
    claim_queue(rdma, cx, ring)?;
    rdma.aeq = Some(Aeq::new(ring));
    Ok(Done::OK)
}

pub(super) fn destroy_aeq(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    if rdma.aeq.take().is_none() {
        return Err(c.refuse(cx, Failure::INVALID_ID, "the queue does not exist"));
    }
    rdma.claims.release(Owner::Aeq);
    Ok(Done::OK)
}
