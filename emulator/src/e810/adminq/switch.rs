// SPDX-License-Identifier: GPL-2.0
//! The switch: VSIs, rules that send received frames to them, and how a VSI
//! spreads frames over its queues. What a rule means for a frame is in
//! [`filter`](crate::e810::lan::filter).

use std::collections::{BTreeMap, BTreeSet};

use super::caps::{RSS_TABLE, VSIS};
use super::resources::{PRUNE_LIST, VSI_LIST};
use super::{AqError, Command, Result};
use crate::bits::{bit, field, le16, le32, put};
use crate::context::Context;

/// Size of a VSI's properties in bytes.
const PROPERTIES: usize = 128;
/// Sections of the properties: bit of "valid sections", first byte, end.
const SECTIONS: [(u32, usize, usize); 11] = [
    (0, 2, 6),
    (1, 6, 8),
    (2, 8, 16),
    (3, 24, 28),
    (4, 16, 20),
    (5, 20, 24),
    (6, 28, 78),
    (7, 78, 84),
    (8, 84, 88),
    (11, 90, 100),
    (12, 100, 104),
];
/// Low bits of a VSI number in a command; bit 15 marks it valid.
const VSI_NUMBER: u16 = 0x3ff;
/// Size of the RSS key, extended part included.
pub const RSS_KEY: usize = 52;

/// A virtual station interface.
#[derive(Clone, Debug)]
pub struct Vsi {
    properties: [u8; PROPERTIES],
    /// The hash key.
    pub rss_key: [u8; RSS_KEY],
    /// The table that maps a hash to a queue.
    pub rss_table: Vec<u8>,
}

impl Vsi {
    /// The protocol engine looks at received frames first.
    pub fn protocol_engine(&self) -> bool {
        self.properties[80] & 1 != 0
    }

    /// Received frames whose VLAN no rule allows are dropped.
    pub fn prunes_vlans(&self) -> bool {
        self.properties[4] & 1 != 0
    }

    /// What happens to a received VLAN tag.
    pub fn strips_vlan(&self) -> bool {
        field(self.properties[12].into(), 3, 2) != 3
    }

    /// The function's queue that is queue `n` of a traffic class (0 to 7) of
    /// this VSI, if the class has so many.
    pub fn queue(&self, class: u8, n: u16) -> Option<u16> {
        let mapping = le16(&self.properties, 62 + 2 * usize::from(class & 7));
        let first = mapping & 0x7ff;
        let count = 1u16 << (mapping >> 11 & 0xf).min(11);
        if n >= count {
            return None;
        }
        let scattered = le16(&self.properties, 28) & 1 != 0;
        if scattered {
            (first + n < 16).then(|| le16(&self.properties, 30 + 2 * usize::from(first + n)))
        } else {
            Some((le16(&self.properties, 30) & 0x7ff) + first + n)
        }
    }
}

/// What a rule looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The type of the frame.
    EtherType,
    /// The destination address.
    Mac,
    /// The destination address and VLAN.
    MacVlan,
    /// The class of the destination address (one, group, all).
    Class,
    /// The VLAN, for pruning.
    Vlan,
    /// Nothing: every frame.
    Default,
    /// The destination address and type.
    EtherTypeMac,
    /// The class of the destination address, and the VLAN.
    ClassVlan,
}

impl Lookup {
    fn from_recipe(recipe: u16) -> Option<Self> {
        Some(match recipe {
            0 => Lookup::EtherType,
            1 => Lookup::Mac,
            2 => Lookup::MacVlan,
            3 => Lookup::Class,
            4 => Lookup::Vlan,
            5 => Lookup::Default,
            8 => Lookup::EtherTypeMac,
            9 => Lookup::ClassVlan,
            _ => return None,
        })
    }
}

/// Where a rule's frames go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// To one VSI.
    Vsi(u16),
    /// To the VSIs of a list.
    List(u16),
    /// To one queue.
    Queue(u16),
    /// Nowhere.
    Drop,
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Looks at frames from the port (otherwise at those that a VSI sends).
    pub receive: bool,
    /// The port or the VSI.
    pub source: u16,
    /// What it looks at.
    pub lookup: Lookup,
    /// Where the frames go.
    pub target: Target,
    /// An Ethernet header with the values that must match.
    pub header: [u8; 16],
}

impl Rule {
    /// Parses a lookup rule: type `u16`, status `u16`, recipe `u16`, source
    /// `u16`, action `u32`, index `u16`, header length `u16`, header.
    fn parse(bytes: &[u8]) -> Option<Self> {
        const ACTION: u32 = 3;
        const FORWARD: u32 = 0;
        const TO_QUEUE: u32 = 1;
        const PRUNE: u32 = 2;
        let action = le32(bytes, 8);
        let wide = u64::from(action);
        let vsi = field(wide, 4, 10) as u16;
        let forward = if bit(wide, 14) {
            Target::List(vsi)
        } else {
            Target::Vsi(vsi)
        };
        let target = match action & ACTION {
            FORWARD if bit(wide, 18) => Target::Drop,
            FORWARD if bit(wide, 17) => forward,
            TO_QUEUE => Target::Queue(field(wide, 4, 11) as u16),
            PRUNE if !bit(wide, 18) => forward,
            _ => return None,
        };
        let mut header = [0; 16];
        put(&mut header, 0, bytes.get(16..)?);
        Some(Rule {
            receive: le16(bytes, 0) == RULE_RX,
            source: le16(bytes, 6),
            lookup: Lookup::from_recipe(le16(bytes, 4))?,
            target,
            header,
        })
    }
}

/// Types of entries of the rule commands.
const RULE_RX: u16 = 0;
const RULE_TX: u16 = 1;
const VSI_LIST_SET: u16 = 3;
const VSI_LIST_CLEAR: u16 = 4;
const PRUNE_LIST_SET: u16 = 5;
const PRUNE_LIST_CLEAR: u16 = 6;
/// Size of a lookup rule without its header.
const RULE: usize = 16;
/// Most rules that the function may have.
const RULES: u16 = 4096;

/// The switch of one function.
#[derive(Debug, Default)]
pub struct Switch {
    vsis: BTreeMap<u16, Vsi>,
    rules: BTreeMap<u16, Rule>,
    lists: BTreeMap<u16, BTreeSet<u16>>,
    prune_lists: BTreeMap<u16, BTreeSet<u16>>,
}

/// Command 0x0200: what is on the switch: the physical port. A record is
/// number and type (bits 15:14) `u16`, switch id `u16`, function `u16`.
pub fn configuration(cx: &mut Context<'_>, command: &mut Command) -> Result {
    if command.buffer.len() < 6 {
        return Err(AqError::Invalid);
    }
    command.put(2, &0u16.to_le_bytes());
    command.put(4, &1u16.to_le_bytes());
    command.buffer.fill(0);
    command.put_buffer(2, &1u16.to_le_bytes());
    command.put_buffer(4, &u16::from(cx.port.pf_id).to_le_bytes());
    Ok(())
}

impl Switch {
    /// Returns whether there is a VSI of this number.
    pub fn has_vsi(&self, number: u16) -> bool {
        self.vsis.contains_key(&number)
    }

    /// The VSIs by number.
    pub fn vsis(&self) -> impl Iterator<Item = (u16, &Vsi)> {
        self.vsis.iter().map(|(&number, vsi)| (number, vsi))
    }

    /// The rules that look at received frames. Those for a destination address
    /// or a VLAN do so whatever direction they were made for: a driver gives
    /// them as rules of its VSI.
    pub fn receive_rules(&self) -> impl Iterator<Item = &Rule> {
        self.rules.values().filter(|rule| {
            let both = matches!(rule.lookup, Lookup::Mac | Lookup::MacVlan | Lookup::Vlan);
            rule.receive || both
        })
    }

    /// The rules that drop frames which VSI `number` sends.
    pub fn send_drops(&self, number: u16) -> impl Iterator<Item = &Rule> {
        self.rules.values().filter(move |rule| {
            !rule.receive && rule.source == number && rule.target == Target::Drop
        })
    }

    /// Returns whether `rule` sends its frames to VSI `number`.
    pub fn reaches(&self, rule: &Rule, number: u16) -> bool {
        let lists = match rule.lookup {
            Lookup::Vlan => &self.prune_lists,
            _ => &self.lists,
        };
        match rule.target {
            Target::Vsi(vsi) => vsi == number,
            Target::List(list) => lists.get(&list).is_some_and(|l| l.contains(&number)),
            Target::Queue(_) | Target::Drop => false,
        }
    }

    fn known(&mut self, cx: &mut Context<'_>, number: u16) -> Result<&mut Vsi> {
        let vsi = self.vsis.get_mut(&number);
        if vsi.is_none() {
            cx.violation("adminq", format!("unknown VSI {number}"));
        }
        vsi.ok_or(AqError::NoEntry)
    }

    fn reply(&self, command: &mut Command, number: u16) {
        let used = self.vsis.len() as u16;
        command.put(0, &number.to_le_bytes());
        command.put(2, &0u16.to_le_bytes());
        command.put(4, &used.to_le_bytes());
        command.put(6, &VSIS.saturating_sub(used).to_le_bytes());
    }

    fn publish(&self, cx: &mut Context<'_>) {
        cx.port.vsis = self.vsis.keys().copied().collect();
    }

    /// Command 0x0210: adds a VSI; its number is the lowest free one.
    pub fn add_vsi(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        if command.buffer.len() < PROPERTIES {
            return Err(AqError::Invalid);
        }
        let number = (1..=VSIS)
            .find(|number| !self.vsis.contains_key(number))
            .ok_or(AqError::NoSpace)?;
        let mut vsi = Vsi {
            properties: [0; PROPERTIES],
            rss_key: [0; RSS_KEY],
            rss_table: vec![0; RSS_TABLE.0.into()],
        };
        // A new VSI takes all properties, marked valid or not.
        put(&mut vsi.properties, 0, &command.buffer);
        self.vsis.insert(number, vsi);
        self.publish(cx);
        self.reply(command, number);
        Ok(())
    }

    /// Command 0x0211: changes the sections that are marked valid.
    pub fn update_vsi(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        let number = command.u16(0) & VSI_NUMBER;
        if command.buffer.len() < PROPERTIES {
            return Err(AqError::Invalid);
        }
        merge(&mut self.known(cx, number)?.properties, &command.buffer);
        self.reply(command, number);
        Ok(())
    }

    /// Command 0x0213: removes a VSI.
    pub fn free_vsi(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        let number = command.u16(0) & VSI_NUMBER;
        self.known(cx, number)?;
        self.vsis.remove(&number);
        self.publish(cx);
        self.reply(command, number);
        Ok(())
    }

    /// Calls `f` with each entry of a rule command and its offset.
    fn each_entry(
        command: &mut Command,
        mut f: impl FnMut(&mut Command, usize, u16) -> Result,
    ) -> Result {
        let mut at = 0;
        for _ in 0..command.u16(0) {
            if at + 8 > command.buffer.len() {
                return Err(AqError::Invalid);
            }
            let kind = le16(&command.buffer, at);
            let len = match kind {
                RULE_RX | RULE_TX => RULE + usize::from(le16(&command.buffer, at + 14)),
                VSI_LIST_SET..=PRUNE_LIST_CLEAR => {
                    8 + 2 * usize::from(le16(&command.buffer, at + 6))
                }
                _ => return Err(AqError::Invalid),
            };
            if at + len > command.buffer.len() {
                return Err(AqError::Invalid);
            }
            f(command, at, kind)?;
            command.put_buffer(at + 2, &0u16.to_le_bytes());
            at += len;
        }
        Ok(())
    }

    /// Changes a VSI list: type, status, index, count, VSIs (all `u16`).
    fn change_list(
        &mut self,
        cx: &mut Context<'_>,
        command: &Command,
        at: usize,
        kind: u16,
    ) -> Result {
        let index = le16(&command.buffer, at + 4);
        let count = usize::from(le16(&command.buffer, at + 6));
        let prune = matches!(kind, PRUNE_LIST_SET | PRUNE_LIST_CLEAR);
        for i in 0..count {
            let vsi = le16(&command.buffer, at + 8 + 2 * i) & VSI_NUMBER;
            self.known(cx, vsi)?;
            let lists = if prune {
                &mut self.prune_lists
            } else {
                &mut self.lists
            };
            let list = lists.entry(index).or_default();
            match kind {
                VSI_LIST_SET | PRUNE_LIST_SET => list.insert(vsi),
                _ => list.remove(&vsi),
            };
        }
        Ok(())
    }

    /// Command 0x02A0: adds rules and VSI lists.
    pub fn add_rules(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        Self::each_entry(command, |command, at, kind| {
            if kind > RULE_TX {
                return self.change_list(cx, command, at, kind);
            }
            let rule = Self::parse_rule(cx, command, at)?;
            let index = (0..RULES)
                .find(|index| !self.rules.contains_key(index))
                .ok_or(AqError::NoSpace)?;
            self.rules.insert(index, rule);
            command.put_buffer(at + 12, &index.to_le_bytes());
            Ok(())
        })
    }

    /// Command 0x02A1: changes rules and VSI lists.
    pub fn update_rules(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        Self::each_entry(command, |command, at, kind| {
            if kind > RULE_TX {
                return self.change_list(cx, command, at, kind);
            }
            let index = le16(&command.buffer, at + 12);
            let new = Self::parse_rule(cx, command, at)?;
            let Some(rule) = self.rules.get_mut(&index) else {
                cx.violation("adminq", format!("update of unknown rule {index}"));
                return Err(AqError::NoEntry);
            };
            // An update carries the whole rule, but its header may be left
            // out.
            let header = if le16(&command.buffer, at + 14) == 0 {
                rule.header
            } else {
                new.header
            };
            *rule = Rule { header, ..new };
            Ok(())
        })
    }

    /// Command 0x02A2: removes rules and VSI lists.
    pub fn remove_rules(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        Self::each_entry(command, |command, at, kind| {
            let index = match kind {
                RULE_RX | RULE_TX => le16(&command.buffer, at + 12),
                _ => le16(&command.buffer, at + 4),
            };
            let found = match kind {
                RULE_RX | RULE_TX => self.rules.remove(&index).is_some(),
                VSI_LIST_SET | VSI_LIST_CLEAR => self.lists.remove(&index).is_some(),
                _ => self.prune_lists.remove(&index).is_some(),
            };
            if !found {
                cx.violation("adminq", format!("removal of unknown rule {index}"));
                return Err(AqError::NoEntry);
            }
            Ok(())
        })
    }

    /// The numbers of VSI lists were given back: the lists are gone.
    pub fn forget_lists(&mut self, kind: u16, numbers: &[u16]) {
        let lists = match kind {
            VSI_LIST => &mut self.lists,
            PRUNE_LIST => &mut self.prune_lists,
            _ => return,
        };
        lists.retain(|number, _| !numbers.contains(number));
    }

    fn parse_rule(cx: &mut Context<'_>, command: &Command, at: usize) -> Result<Rule> {
        let bytes = command.buffer.get(at..).unwrap_or_default();
        let rule = Rule::parse(bytes);
        if rule.is_none() {
            cx.violation(
                "adminq",
                format!(
                    "rule of recipe {}, action {:#x}",
                    le16(bytes, 4),
                    le32(bytes, 8)
                ),
            );
        }
        rule.ok_or(AqError::Invalid)
    }

    /// Commands 0x0B02 to 0x0B05: sets or gets the RSS key or table.
    pub fn rss(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        const SET_KEY: u16 = 0x0b02;
        const SET_TABLE: u16 = 0x0b03;
        const GET_KEY: u16 = 0x0b04;
        let number = command.u16(0) & VSI_NUMBER;
        let opcode = command.opcode;
        let vsi = self.known(cx, number)?;
        match opcode {
            SET_KEY => put(&mut vsi.rss_key, 0, &command.buffer),
            SET_TABLE => {
                vsi.rss_table.clear();
                vsi.rss_table.extend(&command.buffer);
            }
            GET_KEY => command.put_buffer(0, &vsi.rss_key),
            _ => command.put_buffer(0, &vsi.rss_table),
        }
        Ok(())
    }

    /// Function reset.
    pub fn reset(&mut self, cx: &mut Context<'_>) {
        *self = Switch::default();
        self.publish(cx);
    }
}

/// Takes the sections of `new` that are marked valid over into `properties`.
fn merge(properties: &mut [u8; PROPERTIES], new: &[u8]) {
    let valid = u64::from(le16(new, 0));
    for (section, start, end) in SECTIONS {
        if bit(valid, section) {
            if let Some(new) = new.get(start..end) {
                put(properties, start, new);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::Bench;

    /// Makes a VSI with these properties.
    pub fn add(switch: &mut Switch, cx: &mut Context<'_>, properties: &[(usize, u8)]) -> u16 {
        let mut command = Command {
            buffer: vec![0; PROPERTIES],
            ..Command::default()
        };
        for &(at, value) in properties {
            command.put_buffer(at, &[value]);
        }
        switch.add_vsi(cx, &mut command).unwrap();
        command.u16(0)
    }

    /// Makes a rule that forwards to `vsi`.
    pub fn add_rule(
        switch: &mut Switch,
        cx: &mut Context<'_>,
        recipe: u16,
        vsi: u16,
        header: &[u8; 16],
    ) -> u16 {
        let mut command = Command {
            buffer: vec![0; 32],
            ..Command::default()
        };
        let action = u32::from(vsi) << 4
            | if recipe == 4 {
                2 | 1 << 15 | 1 << 16
            } else {
                1 << 17
            };
        command.put(0, &1u16.to_le_bytes());
        command.put_buffer(4, &recipe.to_le_bytes());
        command.put_buffer(8, &action.to_le_bytes());
        command.put_buffer(14, &16u16.to_le_bytes());
        command.put_buffer(16, header);
        switch.add_rules(cx, &mut command).unwrap();
        le16(&command.buffer, 12)
    }

    #[test]
    fn vsi_numbers_and_sections() {
        let mut bench = Bench::new(0x1000);
        let mut cx = bench.context();
        let mut switch = Switch::default();
        assert_eq!(add(&mut switch, &mut cx, &[(80, 0), (4, 1)]), 1);
        assert_eq!(add(&mut switch, &mut cx, &[]), 2);
        assert_eq!(cx.port.vsis, [1, 2]);
        let mut update = Command {
            buffer: vec![0; PROPERTIES],
            ..Command::default()
        };
        update.put(0, &0x8001u16.to_le_bytes());
        update.put_buffer(0, &(1u16 << 7).to_le_bytes());
        update.put_buffer(80, &[1]);
        switch.update_vsi(&mut cx, &mut update).unwrap();
        assert_eq!(update.u16(0), 1);
        let (_, vsi) = switch.vsis().next().unwrap();
        assert!(vsi.protocol_engine() && vsi.prunes_vlans());
        switch.free_vsi(&mut cx, &mut update).unwrap();
        assert_eq!(add(&mut switch, &mut cx, &[]), 1);
    }

    #[test]
    fn queue_mapping() {
        let mut bench = Bench::new(0x1000);
        let mut switch = Switch::default();
        // Queues from 4 on, four of them in class 0, the next two in class 1.
        let properties = [(30, 4), (63, 2 << 3), (64, 4), (65, 1 << 3)];
        add(&mut switch, &mut bench.context(), &properties);
        let (_, vsi) = switch.vsis().next().unwrap();
        assert_eq!(vsi.queue(0, 0), Some(4));
        assert_eq!(vsi.queue(0, 3), Some(7));
        assert_eq!(vsi.queue(0, 4), None);
        assert_eq!((vsi.queue(1, 0), vsi.queue(1, 1)), (Some(8), Some(9)));
        assert_eq!(vsi.queue(1, 2), None);
    }

    #[test]
    fn rules_get_indices_back() {
        let mut bench = Bench::new(0x1000);
        let mut cx = bench.context();
        let mut switch = Switch::default();
        let vsi = add(&mut switch, &mut cx, &[]);
        assert_eq!(add_rule(&mut switch, &mut cx, 1, vsi, &[2; 16]), 0);
        assert_eq!(add_rule(&mut switch, &mut cx, 1, vsi, &[4; 16]), 1);
        let mut remove = Command {
            buffer: vec![0; 16],
            ..Command::default()
        };
        remove.put(0, &1u16.to_le_bytes());
        switch.remove_rules(&mut cx, &mut remove).unwrap();
        assert_eq!(add_rule(&mut switch, &mut cx, 1, vsi, &[2; 16]), 0);
        remove.put_buffer(12, &9u16.to_le_bytes());
        assert!(switch.remove_rules(&mut cx, &mut remove).is_err());
    }

    #[test]
    fn lists() {
        let mut bench = Bench::new(0x1000);
        let mut cx = bench.context();
        let mut switch = Switch::default();
        let vsi = add(&mut switch, &mut cx, &[]);
        let mut list = Command::default();
        for word in [VSI_LIST_SET, 0, 7, 1, vsi] {
            list.buffer.extend(word.to_le_bytes());
        }
        list.put(0, &1u16.to_le_bytes());
        switch.add_rules(&mut cx, &mut list).unwrap();
        let rule = Rule {
            receive: true,
            source: 0,
            lookup: Lookup::Mac,
            target: Target::List(7),
            header: [0; 16],
        };
        assert!(switch.reaches(&rule, vsi));
        list.put_buffer(0, &VSI_LIST_CLEAR.to_le_bytes());
        switch.update_rules(&mut cx, &mut list).unwrap();
        assert!(!switch.reaches(&rule, vsi));
    }
}
