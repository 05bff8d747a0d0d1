// SPDX-License-Identifier: GPL-2.0
//! Completion queues: entries, arming and what happens on overflow.

use serde_json::json;

use super::aeq::{self, AsyncEvent, Source};
use super::ceq;
use super::claims::Owner;
use super::layout::cqe;
use super::ring::Ring;
use super::{Rdma, Reported};
use crate::context::Context;
use crate::faults::{Action, Point};

/// Bytes of a completion queue entry.
pub(crate) const ENTRY: u32 = 32;
/// Bytes of a shadow area.
pub(crate) const SHADOW: u64 = 64;
/// Byte offset of the arm word in the shadow area.
const SHADOW_ARM: u64 = 32;

/// What the driver asked to be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Armed {
    #[default]
    No,
    /// The next solicited or failed completion.
    Solicited,
    /// The next completion.
    Any,
}

/// A completion queue.
#[derive(Debug, Clone)]
pub(crate) struct Cq {
    pub id: u32,
    pub ring: Ring,
    pub shadow: u64,
    /// The event queue that hears of completions, if any.
    pub ceq: Option<u32>,
    /// What event entries carry.
    pub context: u64,
    pub check_overflow: bool,
    pub armed: Armed,
    /// Armed last through the page that processes have.
    pub armed_by_user: bool,
    /// Next entry to write.
    pub producer: u32,
    /// Valid bit of the next entry.
    pub polarity: bool,
    /// Distance (in entries) behind the producer of the last solicited completion.
    solicited_distance: Option<u32>,
    /// The queue overflowed; it takes no more completions.
    pub broken: bool,
    /// How often the ring was replaced; the driver counts along once it has emptied the old one.
    resizes: u64,
}

impl Cq {
    pub fn new(id: u32, ring: Ring, shadow: u64) -> Self {
        Self {
            id,
            ring,
            shadow,
            ceq: None,
            context: u64::from(id),
            check_overflow: false,
            armed: Armed::No,
            armed_by_user: false,
            producer: 0,
            polarity: true,
            solicited_distance: None,
            broken: false,
            resizes: 0,
        }
    }

    /// Starts over in another ring, as MODIFY_CQ does.
    pub fn resize(&mut self, ring: Ring) {
        self.ring = ring;
        self.resizes += 1;
        self.producer = 0;
        self.polarity = true;
        self.solicited_distance = None;
    }

    fn unconsumed(&self, consumer: u32) -> u32 {
        (self.producer + self.ring.count - consumer)
            .checked_rem(self.ring.count)
            .unwrap_or(0)
    }
}

/// Second half of an extended completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Extension {
    pub immediate: Option<u32>,
    pub source_mac: Option<[u8; 6]>,
    pub vlan: Option<u16>,
}

/// A completion as the data path hands it over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Cqe {
    /// Payload bytes received.
    pub length: u32,
    /// The completion context of the QP.
    pub context: u64,
    pub qp_id: u32,
    /// True for a send-queue completion.
    pub is_sq: bool,
    pub opcode: u8,
    /// Index of the first quantum of the work request.
    pub wqe_index: u32,
    /// Major and minor code of a failed completion.
    pub error: Option<(u16, u16)>,
    pub solicited: bool,
    /// The peer invalidated this STag.
    pub invalidated: Option<u32>,
    /// UD receive: the sender's QP number.
    pub source_qp: Option<u32>,
    /// UD receive: the GRH is an IPv4 header.
    pub ipv4: bool,
    pub extension: Option<Extension>,
}

impl Cqe {
    /// The four quad words, valid bit as given.
    pub fn encode(&self, polarity: bool) -> [u64; 4] {
        let low = self.invalidated.or(self.source_qp).unwrap_or(0);
        let (major, minor) = self.error.unwrap_or((0, 0));
        [
            u64::from(self.length),
            self.context,
            u64::from(low) | cqe::QP_ID.put(u64::from(self.qp_id)),
            cqe::MINOR.put(u64::from(minor))
                | cqe::MAJOR.put(u64::from(major))
                | cqe::WQE_INDEX.put(u64::from(self.wqe_index))
                | cqe::EXTENDED.flag(self.extension.is_some())
                | cqe::STAG_OR_IPV4.flag(self.invalidated.is_some() || self.ipv4)
                | cqe::SOLICITED.flag(self.solicited)
                | cqe::ERROR.flag(self.error.is_some())
                | cqe::OPCODE.put(u64::from(self.opcode))
                | cqe::IS_SQ.flag(self.is_sq)
                | cqe::VALID.flag(polarity),
        ]
    }
}

impl Extension {
    /// The four quad words of the second entry.
    pub fn encode(&self, polarity: bool) -> [u64; 4] {
        let mac = self.source_mac.map_or(0, |mac| {
            mac.iter()
                .fold(0u64, |value, byte| (value << 8) | u64::from(*byte))
        });
        [
            u64::from(self.immediate.unwrap_or(0)),
            0,
            mac | cqe::EXT_VLAN.put(u64::from(self.vlan.unwrap_or(0))),
            cqe::EXT_IMM_VALID.flag(self.immediate.is_some())
                | cqe::EXT_SMAC_VALID.flag(self.source_mac.is_some())
                | cqe::EXT_VLAN_VALID.flag(self.vlan.is_some())
                | cqe::VALID.flag(polarity),
        ]
    }
}

/// Writes a completion, overflows or tells the event queue, as the queue's state asks.
pub(crate) fn post(
    rdma: &mut Rdma,
    cx: &mut Context<'_>,
    id: u32,
    entry: Cqe,
) -> Result<(), Reported> {
    match cx.faults.check(Point::Cqe, id) {
        None => post_now(rdma, cx, id, entry, None),
        Some(Action::Drop) | Some(Action::Fail(_)) => Ok(()),
        Some(Action::Duplicate) => {
            post_now(rdma, cx, id, entry, None)?;
            post_now(rdma, cx, id, entry, None)
        }
        Some(Action::Corrupt(bits)) => post_now(rdma, cx, id, entry, Some(bits)),
        Some(Action::Delay(time)) => {
            let due = cx.now.saturating_add(time);
            rdma.later(due, super::Deferred::Cqe { cq: id, entry });
            Ok(())
        }
    }
}

pub(crate) fn post_now(
    rdma: &mut Rdma,
    cx: &mut Context<'_>,
    id: u32,
    entry: Cqe,
    corrupt: Option<u64>,
) -> Result<(), Reported> {
    let Some(cq) = rdma.cqs.get(&id) else {
        cx.violation(
            "cq",
            format!("a completion for CQ {id}, which does not exist"),
        );
        return Err(Reported);
    };
    if cq.broken {
        return Err(Reported);
    }
    let needed = 1 + u32::from(entry.extension.is_some());
    let consumer = consumer(rdma, cx, id)?;
    let Some(cq) = rdma.cqs.get(&id) else {
        return Err(Reported);
    };
    if cq.unconsumed(consumer) + needed >= cq.ring.count && cq.check_overflow {
        overflow(rdma, cx, id);
        return Err(Reported);
    }
    // The second half first: the first entry's valid bit publishes both.
    let (first, polarity) = (cq.producer, cq.polarity);
    let second = step(cq.ring.count, first, polarity);
    let mut words = entry.encode(polarity);
    if let Some(bits) = corrupt {
        words[0] ^= bits;
    }
    if let Some(extension) = &entry.extension {
        write_entry(rdma, cx, id, second.0, &extension.encode(second.1))?;
    }
    write_entry(rdma, cx, id, first, &words)?;
    let solicited = entry.solicited || entry.error.is_some();
    advance(rdma, id, needed, solicited);
    notify(rdma, cx, id, solicited);
    Ok(())
}

/// Writes a completion of the control queue.
pub(crate) fn post_control(
    rdma: &mut Rdma,
    cx: &mut Context<'_>,
    id: u32,
    words: [u64; 3],
    mut header: u64,
) -> Result<(), Reported> {
    let Some(cq) = rdma.cqs.get(&id) else {
        return Err(Reported);
    };
    let index = cq.producer;
    header |= cqe::VALID.flag(cq.polarity);
    write_entry(rdma, cx, id, index, &[words[0], words[1], words[2], header])?;
    advance(rdma, id, 1, true);
    notify(rdma, cx, id, true);
    Ok(())
}

fn step(count: u32, index: u32, polarity: bool) -> (u32, bool) {
    if index + 1 >= count {
        (0, !polarity)
    } else {
        (index + 1, polarity)
    }
}

fn advance(rdma: &mut Rdma, id: u32, entries: u32, solicited: bool) {
    let Some(cq) = rdma.cqs.get_mut(&id) else {
        return;
    };
    for _ in 0..entries {
        (cq.producer, cq.polarity) = step(cq.ring.count, cq.producer, cq.polarity);
    }
    cq.solicited_distance = if solicited {
        Some(entries)
    } else {
        cq.solicited_distance
            .map(|distance| distance.saturating_add(entries))
    };
}

fn write_entry(
    rdma: &Rdma,
    cx: &mut Context<'_>,
    id: u32,
    index: u32,
    words: &[u64; 4],
) -> Result<(), Reported> {
    let Some(cq) = rdma.cqs.get(&id) else {
        return Err(Reported);
    };
    let address = cq.ring.address(cx, &rdma.hmc, &rdma.claims, index)?;
    cx.trace("cqe", || json!({"cq": id, "index": index, "words": words}));
    for (offset, word) in (0u64..).step_by(8).zip(words).take(3) {
        cx.write_u64("CQE", address + offset, *word)
            .map_err(|_| Reported)?;
    }
    cx.write_u64("CQE", address + 24, words[3])
        .map_err(|_| Reported)
}

/// The driver's consumer index, from the shadow area.
fn consumer(rdma: &Rdma, cx: &mut Context<'_>, id: u32) -> Result<u32, Reported> {
    let Some(cq) = rdma.cqs.get(&id) else {
        return Err(Reported);
    };
    let owner = Owner::Cq(id);
    let arm = shadow_read(rdma, cx, owner, cq.shadow + SHADOW_ARM)?;
    if cqe::ARM_SELECT.get(arm) != cq.resizes & cqe::ARM_SELECT.max() {
        // The driver is still busy with the ring before a resize.
        return Ok(0);
    }
    let word = shadow_read(rdma, cx, owner, cq.shadow)?;
    let index = cqe::SHADOW_CONSUMER.get32(word);
    if index >= cq.ring.count {
        // Left over from a longer ring.
        return Ok(0);
    }
    Ok(index)
}

/// Reads a quad word of a shadow area, which must be the owner's.
pub(crate) fn shadow_read(
    rdma: &Rdma,
    cx: &mut Context<'_>,
    owner: Owner,
    address: u64,
) -> Result<u64, Reported> {
    if !rdma.claims.covers(owner, address, 8) {
        cx.violation(
            "dma",
            format!("{owner}: {address:#x} is not its shadow area"),
        );
        return Err(Reported);
    }
    cx.read_u64("shadow area", address).map_err(|_| Reported)
}

fn overflow(rdma: &mut Rdma, cx: &mut Context<'_>, id: u32) {
    if let Some(cq) = rdma.cqs.get_mut(&id) {
        cq.broken = true;
    }
    cx.trace("cq_overflow", || json!({"cq": id}));
    aeq::post(
        rdma,
        cx,
        AsyncEvent {
            code: aeq::CQ_OPERATION_ERROR,
            source: Source::Cq,
            id,
            context: u64::from(id),
            ..AsyncEvent::default()
        },
    );
}

/// The arm doorbell, `by_user` the one of processes: reads what the driver wants and fires at once if there is
/// something it has not seen.
pub(crate) fn arm(rdma: &mut Rdma, cx: &mut Context<'_>, id: u32, by_user: bool) {
    let Some(cq) = rdma.cqs.get(&id) else {
        cx.violation("doorbell", format!("arm of CQ {id}, which does not exist"));
        return;
    };
    let shadow = cq.shadow;
    let Ok(word) = shadow_read(rdma, cx, Owner::Cq(id), shadow + SHADOW_ARM) else {
        return;
    };
    let armed = if cqe::ARM_NEXT.is_set(word) {
        Armed::Any
    } else if cqe::ARM_NEXT_SE.is_set(word) {
        Armed::Solicited
    } else {
        Armed::No
    };
    cx.trace("doorbell", || {
        json!({"arm": id, "next": format!("{armed:?}"),
            "select": cqe::ARM_SELECT.get(word), "sequence": cqe::ARM_SEQUENCE.get(word)})
    });
    if armed == Armed::No {
        cx.violation(
            "doorbell",
            format!("CQ {id} is armed with {word:#x}, which asks for nothing"),
        );
    }
    let Ok(consumer) = consumer(rdma, cx, id) else {
        return;
    };
    let Some(cq) = rdma.cqs.get_mut(&id) else {
        return;
    };
    cq.armed = armed;
    cq.armed_by_user = by_user;
    let unseen = cq.unconsumed(consumer);
    let due = match armed {
        Armed::No => false,
        Armed::Any => unseen != 0,
        Armed::Solicited => cq.solicited_distance.is_some_and(|d| d <= unseen),
    };
    if due {
        fire(rdma, cx, id);
    }
}

fn notify(rdma: &mut Rdma, cx: &mut Context<'_>, id: u32, solicited: bool) {
    let due = rdma.cqs.get(&id).is_some_and(|cq| match cq.armed {
        Armed::No => false,
        Armed::Any => true,
        Armed::Solicited => solicited,
    });
    if due {
        fire(rdma, cx, id);
    }
}

fn fire(rdma: &mut Rdma, cx: &mut Context<'_>, id: u32) {
    let Some(cq) = rdma.cqs.get_mut(&id) else {
        return;
    };
    cq.armed = Armed::No;
    let (ceq, context) = (cq.ceq, cq.context);
    if let Some(ceq) = ceq {
        ceq::post(rdma, cx, ceq, id, context);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodes_a_send_completion() {
        let entry = Cqe {
            length: 0,
            context: 0xffff_8880_1234_5678,
            qp_id: 5,
            is_sq: true,
            opcode: 3,
            wqe_index: 0x12,
            ..Cqe::default()
        };
        assert_eq!(
            entry.encode(true),
            [0, 0xffff_8880_1234_5678, 5 << 32, 0xc300_0012_0000_0000]
        );
    }

    #[test]
    fn encodes_a_failed_receive_with_invalidation() {
        let entry = Cqe {
            length: 100,
            qp_id: 0x20,
            opcode: 0x3e,
            error: Some((1, 3)),
            invalidated: Some(0x1234_5601),
            extension: Some(Extension {
                immediate: Some(0xaabb_ccdd),
                ..Extension::default()
            }),
            ..Cqe::default()
        };
        let words = entry.encode(false);
        assert_eq!(words[2], (0x20 << 32) | 0x1234_5601);
        assert_eq!(
            words[3],
            (0x3e << 56) | (1 << 55) | (1 << 53) | (1 << 50) | 0x1_0003
        );
        let second = entry.extension.unwrap().encode(true);
        assert_eq!(second, [0xaabb_ccdd, 0, 0, (1 << 63) | (1 << 62)]);
    }

    #[test]
    fn encodes_source_mac_and_vlan() {
        let second = Extension {
            immediate: None,
            source_mac: Some([2, 0, 0, 0, 0, 9]),
            vlan: Some(5),
        }
        .encode(false);
        assert_eq!(second[2], 0x0005_0200_0000_0009);
        assert_eq!(second[3], (1 << 61) | (1 << 60));
    }
}
