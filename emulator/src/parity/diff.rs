// SPDX-License-Identifier: GPL-2.0
//! Compares two traces lane by lane: first which events are there, then field
//! by field those that are there in both.

use std::collections::BTreeSet;

use similar::{capture_diff_slices, Algorithm, DiffOp};

use super::fields::Fields;
use super::lanes::{Item, Lane, Lanes};

/// The "field" of an event that is in one trace only.
pub(super) const PRESENCE: &str = "presence";

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub lane: Lane,
    /// What kind of event it is.
    pub event: String,
    /// Its number in its lane, from 1, in the first and the second trace.
    pub place: (usize, usize),
    pub field: String,
    pub a: String,
    pub b: String,
}

/// Compares; also returns how many events there were to compare.
pub(super) fn compare(a: &Lanes, b: &Lanes) -> (usize, Vec<Difference>) {
    let lanes: BTreeSet<&Lane> = a.keys().chain(b.keys()).collect();
    let (mut events, mut found) = (0, vec![]);
    for lane in lanes {
        let a = a.get(lane).map_or(&[][..], Vec::as_slice);
        let b = b.get(lane).map_or(&[][..], Vec::as_slice);
        events += a.len().max(b.len());
        compare_lane(lane, a, b, &mut found);
    }
    (events, found)
}

fn compare_lane(lane: &Lane, a: &[Item], b: &[Item], found: &mut Vec<Difference>) {
    let titles =
        |items: &[Item]| -> Vec<String> { items.iter().map(|item| item.title.clone()).collect() };
    let ops = capture_diff_slices(Algorithm::Myers, &titles(a), &titles(b));
    for op in ops {
        let (old, new) = (op.old_range(), op.new_range());
        if matches!(op, DiffOp::Equal { .. }) {
            for (at_a, at_b) in old.zip(new) {
                if let (Some(item_a), Some(item_b)) = (a.get(at_a), b.get(at_b)) {
                    let place = (at_a + 1, at_b + 1);
                    compare_items(lane, place, item_a, item_b, found);
                }
            }
            continue;
        }
        let mut only = |item: &Item, place, a: &str, b: &str| {
            found.push(Difference {
                lane: lane.clone(),
                event: item.title.clone(),
                place,
                field: PRESENCE.into(),
                a: a.into(),
                b: b.into(),
            });
        };
        for at in old.clone() {
            a.get(at)
                .inspect(|item| only(item, (at + 1, new.start), "there", "missing"));
        }
        for at in new {
            b.get(at)
                .inspect(|item| only(item, (old.end, at + 1), "missing", "there"));
        }
    }
}

fn compare_items(
    lane: &Lane,
    place: (usize, usize),
    a: &Item,
    b: &Item,
    found: &mut Vec<Difference>,
) {
    let mut seen = BTreeSet::new();
    let Fields(in_a) = &a.fields;
    let Fields(in_b) = &b.fields;
    for (name, _) in in_a.iter().chain(in_b) {
        let (value_a, value_b) = (a.fields.get(name), b.fields.get(name));
        if value_a != value_b && seen.insert(name) {
            found.push(Difference {
                lane: lane.clone(),
                event: a.title.clone(),
                place,
                field: name.clone(),
                a: value_a.into(),
                b: value_b.into(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(title: &str, fields: &[(&str, &str)]) -> Item {
        let mut list = Fields::default();
        for (name, value) in fields {
            list.put(*name, *value);
        }
        Item {
            title: title.into(),
            fields: list,
        }
    }

    fn lanes(items: Vec<Item>) -> Lanes {
        let lane = Lane {
            port: 0,
            name: "control".into(),
        };
        Lanes::from([(lane, items)])
    }

    #[test]
    fn one_more_event_does_not_shift_the_rest() {
        let a = lanes(vec![
            item("CREATE_CEQ", &[("entries", "0x800")]),
            item("CREATE_CQ", &[("VSI", "0x5"), ("ring", "its own")]),
        ]);
        let b = lanes(vec![
            item("CREATE_CEQ", &[("entries", "0x800")]),
            item("NOP", &[]),
            item("CREATE_CQ", &[("ring", "its own"), ("CEQ", "0x1")]),
        ]);
        let (events, found) = compare(&a, &b);
        assert_eq!(events, 3);
        let short: Vec<_> = found
            .iter()
            .map(|d| {
                (
                    d.event.as_str(),
                    d.field.as_str(),
                    d.a.as_str(),
                    d.b.as_str(),
                )
            })
            .collect();
        assert_eq!(
            short,
            [
                ("NOP", PRESENCE, "missing", "there"),
                ("CREATE_CQ", "VSI", "0x5", "0"),
                ("CREATE_CQ", "CEQ", "0", "0x1"),
            ]
        );
        assert_eq!(found[1].place, (2, 3));
        assert_eq!(compare(&a, &a), (2, vec![]));
    }

    #[test]
    fn a_lane_may_be_missing() {
        let a = lanes(vec![item("NOP", &[])]);
        assert_eq!(compare(&a, &Lanes::new()).1.len(), 1);
        assert_eq!(compare(&Lanes::new(), &a).1.len(), 1);
    }
}
