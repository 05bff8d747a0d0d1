// SPDX-License-Identifier: GPL-2.0
//! Faults that the control socket asks for: "at the n-th event of this kind,
//! do that". A device block asks at each point where it can misbehave.

use serde::{Deserialize, Serialize};

/// Where a device block can misbehave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Point {
    /// An admin-queue command; the key is its opcode.
    AdminCommand,
    /// A control-QP command; the key is its opcode.
    CqpCommand,
    /// A completion entry; the key is the CQ id.
    Cqe,
    /// A completion event entry; the key is the CEQ id.
    Ceqe,
    /// An asynchronous event entry; the key is its code.
    Aeqe,
    /// An interrupt; the key is the vector.
    Interrupt,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// It does not happen.
    Drop,
    /// It happens twice.
    Duplicate,
    /// It happens this many nanoseconds later.
    Delay(u64),
    /// It fails with this code (for a control-QP command major << 16 | minor).
    Fail(u32),
    /// Its first 64 bits are changed by exclusive or.
    Corrupt(u64),
}

/// A fault and when it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// Where.
    pub point: Point,
    /// Only events with this key; all if missing.
    #[serde(default)]
    pub key: Option<u32>,
    /// How many events pass unharmed first.
    #[serde(default)]
    pub skip: u64,
    /// How many events after those are hit; 1 if missing.
    #[serde(default = "once")]
    pub times: u64,
    /// What happens to them.
    pub action: Action,
}

fn once() -> u64 {
    1
}

/// The faults of one function.
#[derive(Debug, Default)]
pub struct Faults {
    rules: Vec<Rule>,
    hits: u64,
}

impl Faults {
    /// Returns an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule. Rules are asked in the order they came.
    pub fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// Removes all rules.
    pub fn clear(&mut self) {
        self.rules.clear();
    }

    /// Asked at each point: what is to go wrong with this event, if anything.
    /// The first rule that matches counts the event.
    pub fn check(&mut self, point: Point, key: u32) -> Option<Action> {
        let index = self
            .rules
            .iter()
            .position(|r| r.point == point && r.key.is_none_or(|k| k == key))?;
        let rule = self.rules.get_mut(index)?;
        if rule.skip > 0 {
            rule.skip -= 1;
            return None;
        }
        let action = rule.action;
        rule.times = rule.times.saturating_sub(1);
        if rule.times == 0 {
            self.rules.remove(index);
        }
        self.hits += 1;
        Some(action)
    }

    /// Returns how many events were hit so far.
    pub fn hits(&self) -> u64 {
        self.hits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strikes_the_nth_only() {
        let mut faults = Faults::new();
        faults.add(
            serde_json::from_str(
                r#"{"point":"cqp_command","key":3,"skip":1,"action":{"fail":65537}}"#,
            )
            .unwrap(),
        );
        assert_eq!(faults.check(Point::CqpCommand, 3), None);
        assert_eq!(faults.check(Point::CqpCommand, 4), None);
        assert_eq!(faults.check(Point::Cqe, 3), None);
        assert_eq!(
            faults.check(Point::CqpCommand, 3),
            Some(Action::Fail(0x10001))
        );
        assert_eq!(faults.check(Point::CqpCommand, 3), None);
        assert_eq!(faults.hits(), 1);
    }
}
