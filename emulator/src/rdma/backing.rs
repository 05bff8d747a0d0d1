// SPDX-License-Identifier: GPL-2.0
//! Memory of the HMC that the driver takes back: no live object may lie in it.
//!
//! Entries of the ARP table and address handles are left out: drivers let them be when they take the memory away, and
//! without queue pairs nothing uses them.

use std::ops::Range;

use super::claims::Owner;
use super::fpm::Object;
use super::layout::hmc;
use super::mr::{Mr, Translation};
use super::ring::{Ring, RingBase};
use super::Rdma;
use crate::memory::GuestMemory;

/// Entries of page lists that are looked at for one piece of memory. Only regions of many GiB have more lists; a
/// guest that made thousands of them shall not hold the emulator up.
const LISTS: u64 = 1 << 13;

/// The first live object found that lies in segment `sd`, named for a report.
pub(super) fn in_segment(rdma: &Rdma, memory: &GuestMemory, sd: u32) -> Option<String> {
    let start = u64::from(sd) * hmc::SD_SPAN;
    in_range(rdma, memory, start, start + hmc::SD_SPAN)
}

/// The same for `page` of a paged segment.
pub(super) fn in_page(rdma: &Rdma, memory: &GuestMemory, sd: u32, page: u32) -> Option<String> {
    let start = u64::from(sd) * hmc::SD_SPAN + u64::from(page) * hmc::PAGE;
    in_range(rdma, memory, start, start + hmc::PAGE)
}

fn in_range(rdma: &Rdma, memory: &GuestMemory, start: u64, end: u64) -> Option<String> {
    let plan = rdma.hmc.plan.as_ref()?;
    let find = |object, lives: &dyn Fn(&u32) -> bool| {
        let number = plan.within(object, start, end).find(|id| lives(id))?;
        Some(format!("{object:?} {number}"))
    };
    find(Object::Qp, &|id| rdma.qps.contains_key(id))
        .or_else(|| find(Object::Cq, &|id| rdma.cqs.contains_key(id)))
        .or_else(|| find(Object::Mr, &|id| rdma.mrs.contains_key(id)))
        .or_else(|| find(Object::McastGroup, &|id| rdma.mcast.contains_key(id)))
        .or_else(|| list_in(rdma, memory, plan.within(Object::Pble, start, end)))
}

/// The first live object found that has its page list, or a part of it, in these PBLEs.
fn list_in(rdma: &Rdma, memory: &GuestMemory, pbles: Range<u32>) -> Option<String> {
    if pbles.is_empty() {
        return None;
    }
    let pbles = u64::from(pbles.start)..u64::from(pbles.end);
    let rings = rdma.qps.values().flat_map(|qp| [&qp.sq, &qp.rq]);
    let rings = rings
        .chain(rdma.cqs.values().map(|cq| &cq.ring))
        .chain(rdma.ceqs.values().map(|ceq| &ceq.ring))
        .chain(rdma.aeq.iter().map(|aeq| &aeq.ring));
    let owner = rings.into_iter().find_map(|ring| ring_in(ring, &pbles));
    if let Some(owner) = owner {
        return Some(format!("the page list of {owner}"));
    }
    let mut left = LISTS;
    let mr = rdma
        .mrs
        .values()
        .find(|mr| region_in(rdma, memory, mr, &pbles, &mut left))?;
    Some(format!("the page list of MR {}", mr.index))
}

fn meet(pbles: &Range<u64>, first: u64, count: u64) -> bool {
    count != 0 && first < pbles.end && pbles.start < first.saturating_add(count)
}

fn ring_in(ring: &Ring, pbles: &Range<u64>) -> Option<Owner> {
    let RingBase::Paged { first_pble } = ring.base else {
        return None;
    };
    let length = u64::from(ring.entry) * u64::from(ring.count);
    let pages = length.div_ceil(hmc::PAGE);
    meet(pbles, first_pble.into(), pages).then_some(ring.owner)
}

fn region_in(
    rdma: &Rdma,
    memory: &GuestMemory,
    mr: &Mr,
    pbles: &Range<u64>,
    left: &mut u64,
) -> bool {
    let Some(mapping) = mr.mapping else {
        return false;
    };
    let pages = mapping.pages();
    match mapping.translation {
        Translation::Contiguous(_) => false,
        Translation::Level1 { first_pble } => meet(pbles, first_pble, pages),
        Translation::Level2 { root_pble } => {
            let lists = pages.div_ceil(512);
            if meet(pbles, root_pble, lists) {
                return true;
            }
            let seen = lists.min(*left);
            *left -= seen;
            (0..seen).any(|list| {
                let count = (pages - list * 512).min(512);
                let first = rdma.hmc.peek_pble(memory, root_pble + list);
                first.is_some_and(|first| meet(pbles, first, count))
            })
        }
    }
}
