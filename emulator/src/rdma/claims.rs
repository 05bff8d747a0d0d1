// SPDX-License-Identifier: GPL-2.0
//! The DMA guard: which guest memory the device holds right now.
//!
//! Rings, queues, shadow areas and HMC backing pages are claimed when the object is created and released when it
//! is destroyed. Two live objects never share memory, so a claim that meets another one means that the driver
//! freed (and reused) memory that the device still owns. Every access of the device lies within its own claims.

use std::cell::Cell;
use std::fmt;

/// The live object that holds a piece of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    start: u64,
    end: u64,
    owner: Owner,
}

/// All claims of one function, sorted by address. They are looked up at each access and change only with the objects.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    sorted: Vec<Claim>,
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
        let end = start.saturating_add(len);
        let at = self.sorted.partition_point(|claim| claim.start < start);
        self.sorted.insert(at, Claim { start, end, owner });
        self.gap.set((0, 0));
        Ok(())
    }

    /// Gives back all memory of `owner`.
    pub fn release(&mut self, owner: Owner) {
        self.sorted.retain(|claim| claim.owner != owner);
    }

    /// Gives back the one claim of `owner` that starts at `start`.
    pub fn release_at(&mut self, owner: Owner, start: u64) {
        let at = self.sorted.partition_point(|claim| claim.start < start);
        let found = self.sorted.get(at);
        if found.is_some_and(|claim| claim.start == start && claim.owner == owner) {
            self.sorted.remove(at);
        }
    }

    /// The last claim that starts before `end`.
    fn last_before(&self, end: u64) -> Option<&Claim> {
        let after = self.sorted.partition_point(|claim| claim.start < end);
        self.sorted.get(after.checked_sub(1)?)
    }

    /// Whether `owner` holds all of the range (in one claim).
    pub fn covers(&self, owner: Owner, start: u64, len: u64) -> bool {
        self.last_before(start.saturating_add(1))
            .is_some_and(|c| c.owner == owner && start.saturating_add(len) <= c.end)
    }

    /// The first live object that holds part of the range.
    pub fn find(&self, start: u64, len: u64) -> Option<Conflict> {
        let end = start.saturating_add(len);
        let gap = self.gap.get();
        if gap.0 <= start && end <= gap.1 {
            return None;
        }
        let after = self.sorted.partition_point(|claim| claim.start < end);
        let before = after.checked_sub(1).and_then(|at| self.sorted.get(at));
        if let Some(claim) = before.filter(|claim| claim.end > start) {
            return Some(Conflict {
                owner: claim.owner,
                start: claim.start,
                end: claim.end,
            });
        }
        let next = self.sorted.get(after).map_or(u64::MAX, |claim| claim.start);
        self.gap.set((before.map_or(0, |claim| claim.end), next));
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
        claims.release_at(Owner::Aeq, 0x2000);
        assert_eq!(claims.find(0, u64::MAX), None);
    }
}
