// SPDX-License-Identifier: GPL-2.0
//! Completion event queues: one 8-byte entry for each armed completion queue that has something.

use std::collections::BTreeMap;

use serde_json::json;

use super::ring::Ring;
use super::{fpm, Deferred, Rdma};
use crate::context::Context;
use crate::faults::{Action, Point};

/// Bytes of an entry.
pub(crate) const ENTRY: u32 = 8;
const VALID: u64 = 1 << 63;

/// A completion event queue.
#[derive(Debug, Clone)]
pub(crate) struct Ceq {
    pub ring: Ring,
    pub producer: u32,
    pub polarity: bool,
    /// Entries that the driver has not acknowledged, by CQ.
    ///
    /// A driver acknowledges each entry that it takes (PFPE_CQACK), but those of a CQ that it destroyed meanwhile.
    /// When it passes over those cannot be known here: they count as taken when the CQ is gone.
    unacknowledged: BTreeMap<u32, u32>,
    /// The sum of these.
    waiting: u32,
}

impl Ceq {
    pub fn new(ring: Ring) -> Self {
        Self {
            ring,
            producer: 0,
            polarity: true,
            unacknowledged: BTreeMap::new(),
            waiting: 0,
        }
    }

    fn add(&mut self, cq: u32) {
        *self.unacknowledged.entry(cq).or_default() += 1;
        self.waiting += 1;
    }

    /// One entry of `cq` is acknowledged; false if there is none.
    fn take(&mut self, cq: u32) -> bool {
        let Some(count) = self.unacknowledged.get_mut(&cq) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            self.unacknowledged.remove(&cq);
        }
        self.waiting -= 1;
        true
    }

    fn forget(&mut self, cq: u32) -> u32 {
        let count = self.unacknowledged.remove(&cq).unwrap_or(0);
        self.waiting -= count;
        count
    }
}

/// Acknowledgements that are not held against the driver.
#[derive(Debug, Default)]
pub(crate) struct Forgiven {
    /// Of entries whose CQ or CEQ was destroyed before they were acknowledged, by CQ.
    gone: BTreeMap<u32, u32>,
    /// An entry was garbled on demand: the driver may take it for another CQ's.
    garbled: bool,
}

impl Forgiven {
    fn add(&mut self, cq: u32, count: u32) {
        if count != 0 {
            let sum = self.gone.entry(cq).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    fn take(&mut self, cq: u32) -> bool {
        match self.gone.get_mut(&cq) {
            Some(count) if *count > 1 => *count -= 1,
            Some(_) => {
                self.gone.remove(&cq);
            }
            None => return self.garbled,
        }
        true
    }
}

/// What becomes of an event when the driver has acknowledged too little.
enum Room {
    /// There is an entry for it.
    Entry,
    /// An earlier entry of the same CQ tells of it too.
    Merged,
    /// None.
    None,
}

/// What becomes of an event of `cq` in `ceq`.
///
/// A process may arm its CQ again and again while no interrupt handler runs, and its driver cannot help it: such
/// events are merged once half of the entries are taken, so that there is room for those of the driver's own CQs. Who
/// arms through the kernel's doorbell is held to its acknowledgements.
fn room(rdma: &Rdma, ceq: &Ceq, cq: u32) -> Room {
    let mergeable = ceq.unacknowledged.contains_key(&cq)
        && rdma.cqs.get(&cq).is_some_and(|cq| cq.armed_by_user);
    if mergeable && ceq.waiting >= ceq.ring.count / 2 {
        Room::Merged
    } else if ceq.waiting < ceq.ring.count {
        Room::Entry
    } else {
        Room::None
    }
}

/// A CQ is destroyed: nobody acknowledges its entries any more, or late.
pub(crate) fn forget_cq(rdma: &mut Rdma, cq: u32) {
    for ceq in rdma.ceqs.values_mut() {
        rdma.forgiven.add(cq, ceq.forget(cq));
    }
}

/// A CEQ was destroyed, with entries in it.
pub(crate) fn forget(rdma: &mut Rdma, ceq: Ceq) {
    for (cq, count) in ceq.unacknowledged {
        rdma.forgiven.add(cq, count);
    }
}

/// The driver has taken an entry of CQ `id` (PFPE_CQACK).
pub(crate) fn acknowledge(rdma: &mut Rdma, cx: &mut Context<'_>, id: u32) {
    cx.trace("doorbell", || json!({"ack": id}));
    if id >= rdma.hmc.count(fpm::Object::Cq) {
        let text = format!("acknowledge of CQ {id}, which is out of range");
        cx.violation("doorbell", text);
        return;
    }
    let taken = rdma.ceqs.values_mut().any(|ceq| ceq.take(id));
    if !taken && !rdma.forgiven.take(id) {
        let text = format!("acknowledge of CQ {id}, of which there is no event");
        cx.violation("doorbell", text);
    }
}

/// Writes an event entry of CQ `cq` and raises the queue's interrupt.
pub(crate) fn post(rdma: &mut Rdma, cx: &mut Context<'_>, id: u32, cq: u32, context: u64) {
    match cx.faults.check(Point::Ceqe, id) {
        None => post_now(rdma, cx, id, cq, context),
        Some(Action::Drop) | Some(Action::Fail(_)) => {}
        Some(Action::Duplicate) => {
            post_now(rdma, cx, id, cq, context);
            post_now(rdma, cx, id, cq, context);
        }
        Some(Action::Corrupt(bits)) => {
            rdma.forgiven.garbled = true;
            write(rdma, cx, id, (context ^ bits) & !VALID);
        }
        Some(Action::Delay(time)) => {
            let due = cx.now.saturating_add(time);
            rdma.later(
                due,
                Deferred::Ceqe {
                    ceq: id,
                    cq,
                    context,
                },
            );
        }
    }
}

pub(crate) fn post_now(rdma: &mut Rdma, cx: &mut Context<'_>, id: u32, cq: u32, context: u64) {
    let Some(ceq) = rdma.ceqs.get(&id) else {
        cx.violation(
            "ceq",
            format!("an event for CEQ {id}, which does not exist"),
        );
        return;
    };
    match room(rdma, ceq, cq) {
        Room::Entry => {}
        Room::Merged => {
            cx.trace("ceqe_merged", || json!({"ceq": id, "cq": cq}));
            let control = rdma.registers.ceq_control(id);
            rdma.raise(cx, control);
            return;
        }
        Room::None => {
            let count = ceq.ring.count;
            cx.trace("ceqe_lost", || json!({"ceq": id, "cq": cq}));
            // A CQ that the device would not destroy, on demand, has events that nobody waits for.
            if !rdma.cqp.as_ref().is_some_and(|cqp| cqp.was_refused()) && !rdma.forgiven.garbled {
                let text = format!(
                    "CEQ {id}: the event of CQ {cq} is lost, none of {count} entries is acknowledged"
                );
                cx.violation("ceq", text);
            }
            return;
        }
    }
    // A late event may be of a CQ that is gone. A driver acknowledges that if it has not heard yet that the CQ is.
    let exists = rdma.cqs.contains_key(&cq);
    match rdma.ceqs.get_mut(&id) {
        Some(ceq) if exists => ceq.add(cq),
        _ => rdma.forgiven.add(cq, 1),
    }
    write(rdma, cx, id, context);
}

fn write(rdma: &mut Rdma, cx: &mut Context<'_>, id: u32, context: u64) {
    let Some(ceq) = rdma.ceqs.get(&id) else {
        return;
    };
    let word = (context & !VALID) | if ceq.polarity { VALID } else { 0 };
    let index = ceq.producer;
    let Ok(address) = ceq.ring.address(cx, &rdma.hmc, &rdma.claims, index) else {
        return;
    };
    cx.trace("ceqe", || json!({"ceq": id, "index": index, "word": word}));
    if cx.write_u64("CEQE", address, word).is_err() {
        return;
    }
    if let Some(ceq) = rdma.ceqs.get_mut(&id) {
        ceq.producer += 1;
        if ceq.producer >= ceq.ring.count {
            ceq.producer = 0;
            ceq.polarity = !ceq.polarity;
        }
    }
    let control = rdma.registers.ceq_control(id);
    rdma.raise(cx, control);
}
