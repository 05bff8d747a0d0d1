// SPDX-License-Identifier: GPL-2.0
//! The DMA guard: which guest memory the device holds right now.
//!
//! Rings, queues, shadow areas and HMC backing pages are claimed when the object is created and released when it
//! is destroyed. Two live objects never share memory, so a claim that meets another one means that the driver
//! freed (and reused) memory that the device still owns. Every access of the device lies within its own claims.

use std::collections::BTreeMap;
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
    end: u64,
    owner: Owner,
}

/// All claims of one function.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    by_start: BTreeMap<u64, Claim>,
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
        self.by_start.insert(start, Claim { end, owner });
        Ok(())
    }

    /// Gives back all memory of `owner`.
    pub fn release(&mut self, owner: Owner) {
        self.by_start.retain(|_, claim| claim.owner != owner);
    }

    /// Gives back the one claim of `owner` that starts at `start`.
    pub fn release_at(&mut self, owner: Owner, start: u64) {
        if self.by_start.get(&start).is_some_and(|c| c.owner == owner) {
            self.by_start.remove(&start);
        }
    }

    /// Whether `owner` holds all of the range (in one claim).
    pub fn covers(&self, owner: Owner, start: u64, len: u64) -> bool {
        self.by_start
            .range(..=start)
            .next_back()
            .is_some_and(|(_, c)| c.owner == owner && start.saturating_add(len) <= c.end)
    }

    /// The first live object that holds part of the range.
    pub fn find(&self, start: u64, len: u64) -> Option<Conflict> {
        let end = start.saturating_add(len);
        self.by_start
            .range(..end)
            .next_back()
            .filter(|(_, claim)| claim.end > start)
            .map(|(&start, claim)| Conflict {
                owner: claim.owner,
                start,
                end: claim.end,
            })
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
