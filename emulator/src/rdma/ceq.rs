// SPDX-License-Identifier: GPL-2.0
//! Completion event queues: one 8-byte entry for each armed completion queue that has something.

use serde_json::json;

use super::ring::Ring;
use super::{Deferred, Rdma};
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
}

impl Ceq {
    pub fn new(ring: Ring) -> Self {
        Self {
            ring,
            producer: 0,
            polarity: true,
        }
    }
}

/// Writes an event entry and raises the queue's interrupt.
pub(crate) fn post(rdma: &mut Rdma, cx: &mut Context<'_>, id: u32, context: u64) {
    match cx.faults.check(Point::Ceqe, id) {
        None => post_now(rdma, cx, id, context),
        Some(Action::Drop) | Some(Action::Fail(_)) => {}
        Some(Action::Duplicate) => {
            post_now(rdma, cx, id, context);
            post_now(rdma, cx, id, context);
        }
        Some(Action::Corrupt(bits)) => post_now(rdma, cx, id, (context ^ bits) & !VALID),
        Some(Action::Delay(time)) => {
            let due = cx.now.saturating_add(time);
            rdma.later(due, Deferred::Ceqe { ceq: id, context });
        }
    }
}

pub(crate) fn post_now(rdma: &mut Rdma, cx: &mut Context<'_>, id: u32, context: u64) {
    let Some(ceq) = rdma.ceqs.get(&id) else {
        cx.violation(
            "ceq",
            format!("an event for CEQ {id}, which does not exist"),
        );
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
