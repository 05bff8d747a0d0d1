// SPDX-License-Identifier: GPL-2.0
//! Which VSIs a received frame is for.

use smallvec::SmallVec;

use crate::e810::adminq::switch::{Lookup, Rule, Switch, Target, Vsi};

const VLAN_TYPE: [u8; 2] = [0x81, 0x00];
const VLAN_ID: u16 = 0x0fff;

/// The VLAN tag of a frame (its control information).
pub fn vlan_tag(frame: &[u8]) -> Option<u16> {
    match frame.get(12..16) {
        Some(&[0x81, 0x00, high, low]) => Some(u16::from_be_bytes([high, low])),
        _ => None,
    }
}

/// The VLAN of a frame; 0 if it has no tag.
fn vlan(frame: &[u8]) -> u16 {
    vlan_tag(frame).unwrap_or(0) & VLAN_ID
}

/// The type of a frame, behind a VLAN tag if there is one.
fn ether_type(frame: &[u8]) -> Option<&[u8]> {
    if frame.get(12..14) == Some(&VLAN_TYPE) {
        frame.get(16..18)
    } else {
        frame.get(12..14)
    }
}

#[derive(PartialEq)]
enum Class {
    Unicast,
    Multicast,
    Broadcast,
}

fn class(address: &[u8]) -> Class {
    match address {
        [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, ..] => Class::Broadcast,
        [first, ..] if first & 1 != 0 => Class::Multicast,
        _ => Class::Unicast,
    }
}

fn matches(rule: &Rule, frame: &[u8]) -> bool {
    let want = &rule.header;
    let same_mac = || frame.get(..6) == want.get(..6);
    let same_vlan = || u16::from_be_bytes([want[14], want[15]]) & VLAN_ID == vlan(frame);
    let same_type = || ether_type(frame) == want.get(12..14);
    let same_class = || class(frame) == class(want);
    match rule.lookup {
        Lookup::EtherType => same_type(),
        Lookup::Mac => same_mac(),
        Lookup::MacVlan => same_mac() && same_vlan(),
        Lookup::Class => same_class(),
        Lookup::Vlan => same_vlan(),
        Lookup::Default => true,
        Lookup::EtherTypeMac => same_mac() && same_type(),
        Lookup::ClassVlan => same_class() && same_vlan(),
    }
}

/// Returns whether VSI `number` may send `frame`.
pub fn may_send(switch: &Switch, number: u16, frame: &[u8]) -> bool {
    !switch.send_drops(number).any(|rule| matches(rule, frame))
}

/// Numbers of VSIs.
pub type Receivers = SmallVec<[u16; 8]>;

/// Returns the numbers of the VSIs that are to receive `frame`.
pub fn receivers(switch: &Switch, frame: &[u8]) -> Receivers {
    let mut hits: SmallVec<[&Rule; 8]> = SmallVec::new();
    for rule in switch.receive_rules() {
        if matches(rule, frame) {
            hits.push(rule);
        }
    }
    let forwards = |number: u16| {
        hits.iter()
            .any(|rule| rule.lookup != Lookup::Vlan && switch.reaches(rule, number))
    };
    let allowed = |number: u16, vsi: &Vsi| {
        !vsi.prunes_vlans()
            || hits
                .iter()
                .any(|rule| rule.lookup == Lookup::Vlan && switch.reaches(rule, number))
    };
    if hits.iter().any(|rule| rule.target == Target::Drop) {
        return Receivers::new();
    }
    let mut all = Receivers::new();
    for (number, vsi) in switch.vsis() {
        if forwards(number) && allowed(number, vsi) {
            all.push(number);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::e810::adminq::switch::tests::{add, add_rule};
    use crate::e810::adminq::Command;
    use crate::testing::Bench;

    const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

    fn header(mac: [u8; 6], vlan: u16) -> [u8; 16] {
        let mut header = [0; 16];
        header[..6].copy_from_slice(&mac);
        header[12..14].copy_from_slice(&VLAN_TYPE);
        header[14..].copy_from_slice(&vlan.to_be_bytes());
        header
    }

    fn frame(mac: [u8; 6], vlan: Option<u16>) -> Vec<u8> {
        let mut frame = mac.to_vec();
        frame.extend([2, 0, 0, 0, 0, 9]);
        if let Some(vlan) = vlan {
            frame.extend(VLAN_TYPE);
            frame.extend(vlan.to_be_bytes());
        }
        frame.extend([0x08, 0x00, 0x45, 0]);
        frame
    }

    #[test]
    fn addresses_and_classes() {
        let mut bench = Bench::new(0x1000);
        let mut cx = bench.context();
        let mut switch = Switch::default();
        let vsi = add(&mut switch, &mut cx, &[]);
        let other = [2, 0, 0, 0, 0, 2];
        let group = [1, 0, 0x5e, 0, 0, 5];
        add_rule(&mut switch, &mut cx, 1, vsi, &header(MAC, 0));
        assert_eq!(receivers(&switch, &frame(MAC, None))[..], [vsi]);
        assert!(receivers(&switch, &frame(other, None)).is_empty());
        assert!(receivers(&switch, &frame(group, None)).is_empty());
        add_rule(&mut switch, &mut cx, 3, vsi, &header([1, 0, 0, 0, 0, 0], 0));
        assert_eq!(receivers(&switch, &frame(group, None))[..], [vsi]);
        assert!(receivers(&switch, &frame([0xff; 6], None)).is_empty());
        assert!(receivers(&switch, &frame(other, None)).is_empty());
        add_rule(&mut switch, &mut cx, 5, vsi, &header([0; 6], 0));
        assert_eq!(receivers(&switch, &frame(other, None))[..], [vsi]);
    }

    #[test]
    fn send_rules_do_not_receive() {
        let mut bench = Bench::new(0x1000);
        let mut cx = bench.context();
        let mut switch = Switch::default();
        let vsi = add(&mut switch, &mut cx, &[]);
        add_rule(&mut switch, &mut cx, 1, vsi, &header(MAC, 0));
        // What VSI 1 sends of type 0x88cc is dropped.
        let mut drop = Command {
            buffer: vec![0; 32],
            ..Command::default()
        };
        drop.put(0, &[1]);
        drop.put_buffer(0, &[1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0, 16, 0]);
        drop.put_buffer(28, &[0x88, 0xcc]);
        switch.add_rules(&mut cx, &mut drop).unwrap();
        let mut lldp = frame(MAC, None);
        lldp[12..14].copy_from_slice(&[0x88, 0xcc]);
        assert_eq!(receivers(&switch, &lldp)[..], [vsi]);
        assert!(!may_send(&switch, vsi, &lldp));
        assert!(may_send(&switch, vsi + 1, &lldp));
        assert!(may_send(&switch, vsi, &frame(MAC, None)));
    }

    #[test]
    fn vlans_are_pruned() {
        let mut bench = Bench::new(0x1000);
        let mut cx = bench.context();
        let mut switch = Switch::default();
        let vsi = add(&mut switch, &mut cx, &[(4, 1)]);
        add_rule(&mut switch, &mut cx, 1, vsi, &header(MAC, 0));
        assert!(receivers(&switch, &frame(MAC, None)).is_empty());
        add_rule(&mut switch, &mut cx, 4, vsi, &header([2, 0, 0, 0, 0, 0], 0));
        assert_eq!(receivers(&switch, &frame(MAC, None))[..], [vsi]);
        assert!(receivers(&switch, &frame(MAC, Some(5))).is_empty());
        add_rule(&mut switch, &mut cx, 4, vsi, &header([2, 0, 0, 0, 0, 0], 5));
        assert_eq!(receivers(&switch, &frame(MAC, Some(0x6005)))[..], [vsi]);
    }
}
