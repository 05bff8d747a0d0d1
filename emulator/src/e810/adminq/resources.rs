// SPDX-License-Identifier: GPL-2.0
//! What the firmware lends: locks, and numbers from a pool for each type.

use std::collections::{BTreeMap, BTreeSet};

use super::{AqError, Command, Result};
use crate::bits::le16;
use crate::context::Context;

/// The lock that a driver must hold to download a package.
const GLOBAL_CONFIG_LOCK: u16 = 4;

/// The low bits of a resource type; above are flags.
const TYPE: u16 = 0x7f;

/// Type of a list of VSIs that rules send frames to.
pub const VSI_LIST: u16 = 0x03;
/// Type of a list of VSIs that a VLAN is allowed for.
pub const PRUNE_LIST: u16 = 0x04;

/// Flow-director entries, guaranteed and shared.
const FILTERS: u16 = 0x22;
const FILTERS_SHARED: u16 = 0x23;

/// Returns how many numbers of a type there are. Drivers index arrays of
/// exactly these sizes without a check of their own.
fn pool_size(kind: u16) -> Option<u16> {
    match kind {
        VSI_LIST | PRUNE_LIST => Some(1024),
        // Recipes.
        0x05 => Some(64),
        // Flow director: counter blocks, guaranteed and shared entries.
        0x21 => Some(16),
        FILTERS | FILTERS_SHARED => Some(512),
        // Profile builder: profile ids of switch, ACL, FD, RSS, PE ...
        0x48 | 0x50 | 0x58 | 0x60 | 0x68 => Some(128),
        // ... and their TCAM entries.
        0x49 | 0x51 | 0x59 | 0x61 | 0x69 => Some(512),
        _ => None,
    }
}

/// Numbers and locks that are taken.
#[derive(Debug, Default)]
pub struct Resources {
    taken: BTreeMap<u16, BTreeSet<u16>>,
    /// Numbers that a reset took away: a driver may still give them back.
    lost: BTreeSet<(u16, u16)>,
    locks: BTreeSet<u16>,
}

impl Resources {
    /// Command 0x0008: takes a lock. Parameters: id `u16`, access `u16`,
    /// timeout `u32` (milliseconds), number `u32`, status `u16`.
    pub fn request(&mut self, command: &mut Command, package_loaded: bool) -> Result {
        const IN_PROGRESS: u16 = 1;
        const DONE: u16 = 2;
        const TIMEOUT_MS: u32 = 3000;
        let id = command.u16(0);
        command.put(4, &TIMEOUT_MS.to_le_bytes());
        let status = if id == GLOBAL_CONFIG_LOCK && package_loaded {
            DONE
        } else if self.locks.insert(id) {
            0
        } else if id == GLOBAL_CONFIG_LOCK {
            IN_PROGRESS
        } else {
            return Err(AqError::Busy);
        };
        command.put(12, &status.to_le_bytes());
        Ok(())
    }

    /// Command 0x0009: gives a lock back.
    pub fn release(&mut self, command: &mut Command) -> Result {
        if self.locks.remove(&command.u16(0)) {
            Ok(())
        } else {
            Err(AqError::NoEntry)
        }
    }

    /// Command 0x0208: takes numbers, the lowest free ones first. The buffer
    /// is type `u16`, count `u16`, and a `u16` for each number. A count larger
    /// than the buffer asks for a block, of which the first number is told.
    pub fn allocate(&mut self, command: &mut Command) -> Result {
        let kind = le16(&command.buffer, 0) & TYPE;
        let count = le16(&command.buffer, 2);
        let room = (command.buffer.len().saturating_sub(4) / 2) as u16;
        let size = pool_size(kind).ok_or(AqError::Invalid)?;
        let taken = self.taken.entry(kind).or_default();
        let free = |n: &u16| !taken.contains(n);
        let numbers: Vec<u16> = if count <= room {
            (0..size).filter(free).take(count.into()).collect()
        } else {
            (0..size.saturating_sub(count) + 1)
                .find(|&first| (first..first + count).all(|n| free(&n)))
                .map(|first| (first..first + count).collect())
                .unwrap_or_default()
        };
        if count == 0 || count > size || room == 0 || numbers.len() != usize::from(count) {
            return Err(AqError::NoSpace);
        }
        taken.extend(&numbers);
        self.lost
            .retain(|(k, n)| *k != kind || !numbers.contains(n));
        for (i, number) in numbers.iter().take(room.into()).enumerate() {
            command.put_buffer(4 + 2 * i, &number.to_le_bytes());
        }
        Ok(())
    }

    /// Command 0x0209: gives numbers back. Returns their type and the numbers.
    pub fn free(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result<(u16, Vec<u16>)> {
        let kind = le16(&command.buffer, 0) & TYPE;
        let count = le16(&command.buffer, 2);
        let room = (command.buffer.len().saturating_sub(4) / 2) as u16;
        let first = le16(&command.buffer, 4);
        let numbers: Vec<u16> = if count <= room {
            (0..count)
                .map(|i| le16(&command.buffer, 4 + 2 * usize::from(i)))
                .collect()
        } else {
            (first..first.saturating_add(count)).collect()
        };
        let taken = self.taken.entry(kind).or_default();
        let missing: Vec<u16> = numbers
            .iter()
            .copied()
            .filter(|n| !taken.remove(n))
            .collect();
        if !missing.is_empty() {
            if missing.iter().all(|&n| self.lost.remove(&(kind, n))) {
                return Err(AqError::NoEntry);
            }
            cx.violation(
                "adminq",
                format!("free of resources {missing:?} of type {kind:#x}, not taken"),
            );
            return Err(AqError::NoEntry);
        }
        Ok((kind, numbers))
    }

    /// PFQF_FD_SIZE: guaranteed and shared filter entries taken.
    pub fn filter_space(&self) -> u32 {
        let count = |kind| self.taken.get(&kind).map_or(0, BTreeSet::len) as u32;
        count(FILTERS_SHARED) << 16 | count(FILTERS)
    }

    /// Function reset.
    pub fn reset(&mut self) {
        let taken = std::mem::take(&mut self.taken).into_iter();
        self.lost
            .extend(taken.flat_map(|(kind, numbers)| numbers.into_iter().map(move |n| (kind, n))));
        self.locks.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    fn command(kind: u16, count: u16, elements: &[u16]) -> Command {
        let words = [kind, count].into_iter().chain(elements.iter().copied());
        Command {
            buffer: words.flat_map(u16::to_le_bytes).collect(),
            ..Command::default()
        }
    }

    #[test]
    fn lowest_free_first() {
        let mut bench = Bench::new(0x1000);
        let mut resources = Resources::default();
        let mut take = command(0x60, 2, &[9, 9]);
        resources.allocate(&mut take).unwrap();
        assert_eq!(take.buffer, command(0x60, 2, &[0, 1]).buffer);
        resources
            .free(&mut bench.context(), &mut command(0x60, 1, &[0]))
            .unwrap();
        let mut take = command(0x60 | 1 << 7, 1, &[9]);
        resources.allocate(&mut take).unwrap();
        assert_eq!(le16(&take.buffer, 4), 0);
        for n in 2..128 {
            let mut take = command(0x60, 1, &[9]);
            resources.allocate(&mut take).unwrap();
            assert_eq!(le16(&take.buffer, 4), n);
        }
        assert_eq!(
            resources.allocate(&mut command(0x60, 1, &[9])),
            Err(AqError::NoSpace)
        );
        assert_eq!(bench.violations.count(), 0);
        let again = resources.free(&mut bench.context(), &mut command(0x61, 1, &[0]));
        assert!(again.is_err());
        assert_eq!(bench.violations.count(), 1);
    }

    #[test]
    fn blocks() {
        let mut bench = Bench::new(0x1000);
        let mut resources = Resources::default();
        let mut take = command(0x22, 512, &[7]);
        resources.allocate(&mut take).unwrap();
        assert_eq!(le16(&take.buffer, 4), 0);
        assert!(resources.allocate(&mut command(0x22, 1, &[7])).is_err());
        assert!(resources.allocate(&mut command(0x23, 513, &[7])).is_err());
        resources
            .free(&mut bench.context(), &mut command(0x22, 512, &[0]))
            .unwrap();
        assert!(resources.allocate(&mut command(0x22, 512, &[7])).is_ok());
    }

    #[test]
    fn lost_in_a_reset() {
        let mut bench = Bench::new(0x1000);
        let mut resources = Resources::default();
        resources.allocate(&mut command(0x22, 512, &[7])).unwrap();
        resources.allocate(&mut command(0x21, 1, &[7])).unwrap();
        assert_eq!(resources.filter_space(), 512);
        resources.reset();
        resources.reset();
        assert_eq!(resources.filter_space(), 0);
        let mut cx = bench.context();
        let mut free = command(0x21, 1, &[0]);
        assert!(resources.free(&mut cx, &mut free).is_err());
        assert_eq!(cx.violations.count(), 0);
        assert!(resources.free(&mut cx, &mut free).is_err());
        assert_eq!(cx.violations.count(), 1);
    }

    #[test]
    fn locks() {
        let mut resources = Resources::default();
        let mut lock = Command::default();
        lock.put(0, &1u16.to_le_bytes());
        resources.request(&mut lock, false).unwrap();
        assert_ne!(lock.u32(4), 0);
        assert_eq!(resources.request(&mut lock, false), Err(AqError::Busy));
        resources.release(&mut lock).unwrap();
        assert_eq!(resources.release(&mut lock), Err(AqError::NoEntry));
        lock.put(0, &GLOBAL_CONFIG_LOCK.to_le_bytes());
        resources.request(&mut lock, true).unwrap();
        assert_eq!(lock.u16(12), 2);
    }
}
