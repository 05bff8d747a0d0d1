// SPDX-License-Identifier: GPL-2.0
//! The DMA guard: which guest memory the device holds right now.
//!
//! Rings, queues, shadow areas and HMC backing pages are claimed when the object is created and released when it
//! is destroyed. Two live objects never share memory, so a claim that meets another one means that the driver
//! freed (and reused) memory that the device still owns. Every access of the device lies within its own claims.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The live object that holds a piece of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Cqp,
    Cq(u32),
    Qp(u32),
    Ceq(u32),
    Aeq,
    /// A segment descriptor of the HMC.
    Sd(u32),
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::Cqp => write!(f, "CQP"),
            Owner::Cq(id) => write!(f, "CQ {id}"),
            Owner::Qp(id) => write!(f, "QP {id}"),
            Owner::Ceq(id) => write!(f, "CEQ {id}"),
            Owner::Aeq => write!(f, "AEQ"),
            Owner::Sd(index) => write!(f, "SD {index}"),
        }
    }
}

/// Memory that a live object already holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conflict {
    pub owner: Owner,
    pub start: u64,
    pub end: u64,
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Conflict { owner, start, end } = self;
        write!(f, "{start:#x}..{end:#x} is held by the live {owner}")
    }
}

#[derive(Debug, Clone, Copy)]
struct Claim {
    end: u64,
    owner: Owner,
}

/// All claims of one function. They are looked up at each access and change only with the objects; an object may
/// have one for each page of a long list, so that neither a claim nor a release looks at all of them.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    /// By first address. Neighbours of one owner are one claim.
    by_start: BTreeMap<u64, Claim>,
    /// The same, by owner: the first addresses.
    by_owner: BTreeSet<(Owner, u64)>,
    /// A range that nobody holds, found by the last look-up: data is often in the same one.
    gap: Cell<(u64, u64)>,
}

impl Claims {
    /// Claims `len` bytes at `start`; refused if a live object holds part of them.
    pub fn claim(&mut self, owner: Owner, start: u64, len: u64) -> Result<(), Conflict> {
        if len == 0 {
            return Ok(());
        }
        if let Some(conflict) = self.find(start, len) {
            return Err(conflict);
        }
        self.gap.set((0, 0));
        let (mut first, mut end) = (start, start.saturating_add(len));
        if let Some((&before, claim)) = self.by_start.range(..start).next_back() {
            if claim.end == start && claim.owner == owner {
                first = before;
            }
        }
        if let Some(after) = self.by_start.get(&end).filter(|c| c.owner == owner) {
            let last = after.end;
            self.remove(owner, end);
            end = last;
        }
        self.insert(owner, first, end);
        Ok(())
    }

    fn insert(&mut self, owner: Owner, start: u64, end: u64) {
        self.by_start.insert(start, Claim { end, owner });
        self.by_owner.insert((owner, start));
    }

    fn remove(&mut self, owner: Owner, start: u64) {
        self.by_start.remove(&start);
        self.by_owner.remove(&(owner, start));
    }

    /// Gives back all memory of `owner`.
    pub fn release(&mut self, owner: Owner) {
        while let Some(&(_, start)) = self.by_owner.range((owner, 0)..=(owner, u64::MAX)).next() {
            self.remove(owner, start);
        }
    }

    /// Gives back these bytes, if `owner` holds all of them.
    pub fn release_part(&mut self, owner: Owner, start: u64, len: u64) {
        if !self.covers(owner, start, len) {
            return;
        }
        let Some((first, end)) = self
            .last_before(start.saturating_add(1))
            .map(|(first, claim)| (first, claim.end))
        else {
            return;
        };
        self.remove(owner, first);
        if first < start {
            self.insert(owner, first, start);
        }
        let rest = start.saturating_add(len);
        if rest < end {
            self.insert(owner, rest, end);
        }
    }

    /// The last claim that starts before `end`.
    fn last_before(&self, end: u64) -> Option<(u64, Claim)> {
        let (&start, &claim) = self.by_start.range(..end).next_back()?;
        Some((start, claim))
    }

    /// Whether `owner` holds all of the range (in one claim).
    pub fn covers(&self, owner: Owner, start: u64, len: u64) -> bool {
        self.last_before(start.saturating_add(1))
            .is_some_and(|(_, c)| c.owner == owner && start.saturating_add(len) <= c.end)
    }

    /// A live object that holds part of the range.
    pub fn find(&self, start: u64, len: u64) -> Option<Conflict> {
        let end = start.saturating_add(len);
        let gap = self.gap.get();
        if gap.0 <= start && end <= gap.1 {
            return None;
        }
        let before = self.last_before(end);
        if let Some((first, claim)) = before.filter(|(_, claim)| claim.end > start) {
            return Some(Conflict {
                owner: claim.owner,
                start: first,
                end: claim.end,
            });
        }
        let next = self.by_start.range(end..).next();
        let next = next.map_or(u64::MAX, |(&start, _)| start);
        self.gap
            .set((before.map_or(0, |(_, claim)| claim.end), next));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_objects_do_not_share_memory() {
        let mut claims = Claims::default();
        claims.claim(Owner::Cq(3), 0x1000, 0x400).unwrap();
        claims.claim(Owner::Qp(5), 0x1400, 0x40).unwrap();
        let conflict = claims.claim(Owner::Qp(6), 0x13ff, 2).unwrap_err();
        assert_eq!(conflict.owner, Owner::Qp(5));
        assert_eq!(
            claims.claim(Owner::Qp(6), 0x0f00, 0x101).unwrap_err().owner,
            Owner::Cq(3)
        );
        claims.release(Owner::Cq(3));
        claims.claim(Owner::Qp(6), 0x0f00, 0x101).unwrap();
        // What was free once is looked up again after a claim.
        assert_eq!(claims.find(0x8000, 0x100), None);
        assert_eq!(claims.find(0x9000, 0x100), None);
        claims.claim(Owner::Aeq, 0x9000, 0x100).unwrap();
        assert_eq!(claims.find(0x8fff, 2).unwrap().owner, Owner::Aeq);
        assert_eq!(claims.find(0x8000, 0x1000), None);
    }

    #[test]
    fn an_owner_covers_only_its_own() {
        let mut claims = Claims::default();
        claims.claim(Owner::Aeq, 0x2000, 0x100).unwrap();
        assert!(claims.covers(Owner::Aeq, 0x20f0, 16));
        assert!(!claims.covers(Owner::Aeq, 0x20f1, 16));
        assert!(!claims.covers(Owner::Ceq(0), 0x2000, 8));
        assert!(!claims.covers(Owner::Aeq, 0x1fff, 1));
        claims.release_part(Owner::Ceq(0), 0x2000, 0x100);
        assert!(claims.covers(Owner::Aeq, 0x2000, 0x100));
        claims.release_part(Owner::Aeq, 0x2040, 0x40);
        assert!(claims.covers(Owner::Aeq, 0x2000, 0x40));
        assert_eq!(claims.find(0x2040, 0x40), None);
        assert!(claims.covers(Owner::Aeq, 0x2080, 0x80));
        claims.release(Owner::Aeq);
        assert_eq!(claims.find(0, u64::MAX), None);
    }

    #[test]
    fn neighbours_of_one_owner_are_one_claim() {
        let mut claims = Claims::default();
        for page in [2, 0, 1, 4] {
            claims.claim(Owner::Cq(3), page << 12, 4096).unwrap();
        }
        claims.claim(Owner::Cq(4), 3 << 12, 4096).unwrap();
        assert!(claims.covers(Owner::Cq(3), 0, 3 << 12));
        assert!(!claims.covers(Owner::Cq(3), 0, 4 << 12));
        assert_eq!(claims.by_start.len(), 3);
        assert_eq!(claims.by_owner.len(), 3);
    }

    /// Long lists of pages in the worst order: moving what is there for each of them would take minutes.
    #[test]
    fn many_pages_are_claimed_in_no_time() {
        const PAGES: u64 = 1 << 18;
        let start = std::time::Instant::now();
        let mut claims = Claims::default();
        for page in (0..PAGES).rev() {
            claims.claim(Owner::Cq(3), page << 13, 4096).unwrap();
        }
        for id in 0..1000 {
            claims
                .claim(Owner::Qp(id), (PAGES << 13) + (u64::from(id) << 13), 64)
                .unwrap();
        }
        (0..1000).for_each(|id| claims.release(Owner::Qp(id)));
        claims.release(Owner::Cq(3));
        assert_eq!(claims.find(0, u64::MAX), None);
        assert!(start.elapsed() < std::time::Duration::from_secs(10));
    }
}
