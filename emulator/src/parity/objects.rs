// SPDX-License-Identifier: GPL-2.0
//! Numbers become symbols: an object is known by its class and the order of
//! creation, and what it brought along by the object that it belongs to.

use std::collections::{BTreeMap, BTreeSet};

/// A kind of number that the driver chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Qp,
    Cq,
    Pd,
    Stag,
    Ah,
    /// An entry of the ARP table. Who is in it is what matters: which entries
    /// there are depends on what else goes on at the port.
    Arp,
    Mcast,
    /// A node of the work scheduler.
    Node,
    /// A queue pair at the other end, as one of ours sees it.
    Peer,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Class::Qp => "qp",
            Class::Cq => "cq",
            Class::Pd => "pd",
            Class::Stag => "stag",
            Class::Ah => "ah",
            Class::Arp => "arp",
            Class::Mcast => "mcast",
            Class::Node => "node",
            Class::Peer => "peer",
        }
    }

    /// Numbers with a meaning of their own stay as they are: none, the control
    /// completion queue, the key to all memory, the queue pair of the GSI.
    fn fixed(self, id: u64) -> bool {
        id == 0 || (id == 1 && matches!(self, Class::Qp | Class::Peer))
    }
}

/// An object: its class and its number.
pub(super) type Object = (Class, u64);

/// The live objects of one port.
#[derive(Debug, Default)]
pub(super) struct Objects {
    live: BTreeMap<Object, u32>,
    made: BTreeMap<Class, u32>,
    /// Values that came with an object: what they are for, the value.
    own: BTreeMap<(Object, &'static str), u64>,
    /// Which objects use which others whose end nothing tells: when the last
    /// user goes, the number may come to mean another one.
    uses: BTreeSet<(Object, Object)>,
    /// MAC addresses of the ARP table.
    neighbours: BTreeMap<u64, u64>,
}

impl Objects {
    /// The symbol of an object; a number that is not known yet gets the next.
    pub fn symbol(&mut self, class: Class, id: u64) -> String {
        if class.fixed(id) || class == Class::Arp {
            return self.known(class, id);
        }
        let made = self.made.entry(class).or_default();
        let number = self.live.entry((class, id)).or_insert_with(|| {
            *made += 1;
            *made
        });
        format!("{}#{number}", class.name())
    }

    /// The symbol of an object that should exist.
    pub fn known(&self, class: Class, id: u64) -> String {
        if class.fixed(id) {
            return id.to_string();
        }
        if class == Class::Arp {
            let mac = self.neighbours.get(&id);
            return mac.map_or_else(|| "nobody".to_owned(), |mac| format!("{mac:012x}"));
        }
        match self.live.get(&(class, id)) {
            Some(number) => format!("{}#{number}", class.name()),
            None => format!("unknown {} {id:#x}", class.name()),
        }
    }

    /// Notes who is in an entry of the ARP table.
    pub fn set_neighbour(&mut self, entry: u64, mac: u64) {
        self.neighbours.insert(entry, mac);
    }

    /// The symbol of something that no command makes or removes, used by `user`.
    pub fn used(&mut self, user: Object, class: Class, id: u64) -> String {
        self.uses.insert((user, (class, id)));
        self.symbol(class, id)
    }

    /// An object is gone; its number may come back as another one.
    pub fn forget(&mut self, object: Object) {
        self.live.remove(&object);
        if let (Class::Arp, entry) = object {
            self.neighbours.remove(&entry);
        }
        self.own.retain(|(owner, _), _| *owner != object);
        let (gone, left) = std::mem::take(&mut self.uses)
            .into_iter()
            .partition(|(user, _)| *user == object);
        self.uses = left;
        let gone: BTreeSet<(Object, Object)> = gone;
        for (_, used) in gone {
            if !self.uses.iter().any(|(_, other)| *other == used) {
                self.live.remove(&used);
            }
        }
    }

    /// Everything is gone.
    pub fn forget_all(&mut self) {
        self.live.clear();
        self.neighbours.clear();
        self.own.clear();
        self.uses.clear();
    }

    /// Notes a value that belongs to `object`.
    pub fn set_own(&mut self, object: Object, what: &'static str, value: u64) {
        self.own.insert((object, what), value);
    }

    /// Tells whether `value` is the one that came with `object`.
    pub fn own(&self, object: Object, what: &'static str, value: u64) -> &'static str {
        match self.own.get(&(object, what)) {
            Some(own) if *own == value => "its own",
            _ if value == 0 => "0",
            _ => "another",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_comes_back_is_another_object() {
        let mut objects = Objects::default();
        assert_eq!(objects.symbol(Class::Cq, 7), "cq#1");
        assert_eq!(objects.symbol(Class::Cq, 9), "cq#2");
        assert_eq!(objects.symbol(Class::Cq, 7), "cq#1");
        objects.forget((Class::Cq, 7));
        objects.set_neighbour(3, 0x0215_9200_0001);
        assert_eq!(objects.symbol(Class::Arp, 3), "021592000001");
        assert_eq!(objects.symbol(Class::Arp, 4), "nobody");
        assert_eq!(objects.known(Class::Cq, 7), "unknown cq 0x7");
        assert_eq!(objects.symbol(Class::Cq, 7), "cq#3");
        assert_eq!(objects.symbol(Class::Qp, 1), "1");
    }

    #[test]
    fn a_protection_domain_ends_with_its_last_user() {
        let mut objects = Objects::default();
        objects.used((Class::Qp, 2), Class::Pd, 5);
        objects.used((Class::Stag, 3), Class::Pd, 5);
        objects.forget((Class::Qp, 2));
        assert_eq!(objects.symbol(Class::Pd, 5), "pd#1");
        objects.forget((Class::Stag, 3));
        assert_eq!(objects.symbol(Class::Pd, 5), "pd#2");
    }

    #[test]
    fn values_belong_to_their_object() {
        let mut objects = Objects::default();
        let qp = (Class::Qp, 2);
        objects.set_own(qp, "shadow", 0x1000);
        assert_eq!(objects.own(qp, "shadow", 0x1000), "its own");
        assert_eq!(objects.own(qp, "shadow", 0x2000), "another");
        assert_eq!(objects.own(qp, "shadow", 0), "0");
        // Zero may be a value like any other, if it came with the object.
        objects.set_own(qp, "context", 0);
        assert_eq!(objects.own(qp, "context", 0), "its own");
    }
}
