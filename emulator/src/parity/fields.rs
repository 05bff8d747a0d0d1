// SPDX-License-Identifier: GPL-2.0
//! Splits words into named fields, some of them symbols. The bits that no
//! field names are compared as they are.

use super::objects::{Class, Object, Objects};
use crate::rdma::field::Field;

/// All bits of a word.
pub(super) const ALL: Field = Field::new(63, 0);

/// How a field is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The value itself.
    Raw,
    /// Not at all: its value depends on what went before (a valid bit), or it
    /// is shown in another way.
    Hidden,
    /// A number that the driver chose.
    Id(Class),
    /// An address or a value of the driver's own that came with the object.
    Own,
    /// The same, and zero is a value like any other.
    OwnIndex,
    /// An address in guest memory, or nothing.
    Address,
}

/// A field: its name, the bits (low ones first), how it is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub name: &'static str,
    pub parts: [Option<(usize, Field)>; 2],
    pub kind: Kind,
}

/// A field of one word.
pub(super) const fn span(name: &'static str, word: usize, field: Field, kind: Kind) -> Span {
    Span {
        name,
        parts: [Some((word, field)), None],
        kind,
    }
}

/// A field in two parts, the low one first.
pub(super) const fn split(
    name: &'static str,
    low: (usize, Field),
    high: (usize, Field),
    kind: Kind,
) -> Span {
    Span {
        name,
        parts: [Some(low), Some(high)],
        kind,
    }
}

impl Span {
    /// The field's value.
    pub fn get(&self, words: &[u64]) -> u64 {
        let (mut value, mut shift) = (0, 0);
        for (word, field) in self.parts.iter().flatten() {
            let part = words.get(*word).map_or(0, |word| field.get(*word));
            value |= part << shift;
            shift += field.mask().count_ones() % 64;
        }
        value
    }
}

/// Named values of an event; one that is zero may be missing.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Fields(pub Vec<(String, String)>);

impl Fields {
    pub fn put(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.push((name.into(), value.into()));
    }

    pub fn raw(&mut self, name: impl Into<String>, value: u64) {
        if value != 0 {
            self.put(name, format!("{value:#x}"));
        }
    }

    pub fn get(&self, name: &str) -> &str {
        self.0
            .iter()
            .find(|(other, _)| other == name)
            .map_or("0", |(_, value)| value)
    }
}

/// Whose words they are, and whether it is being made.
#[derive(Debug, Clone, Copy)]
pub(super) struct Subject {
    pub object: Option<Object>,
    pub new: bool,
}

/// Adds the fields of `words`, each name after `prefix`.
pub(super) fn describe(
    fields: &mut Fields,
    prefix: &str,
    words: &[u64],
    spans: &[Span],
    subject: Subject,
    objects: &mut Objects,
) {
    let mut rest = words.to_vec();
    for span in spans {
        let value = span.get(words);
        for (word, field) in span.parts.iter().flatten() {
            if let Some(word) = rest.get_mut(*word) {
                *word &= !field.mask();
            }
        }
        let name = format!("{prefix}{}", span.name);
        match (span.kind, subject.object) {
            (Kind::Hidden, _) => {}
            (Kind::Raw, _) | (Kind::Own | Kind::OwnIndex, None) => fields.raw(name, value),
            (Kind::Id(_) | Kind::Address, _) if value == 0 => {}
            (Kind::Address, _) => fields.put(name, "an address"),
            (Kind::Id(class @ (Class::Pd | Class::Peer)), Some(object)) => {
                fields.put(name, objects.used(object, class, value));
            }
            (Kind::Id(class), _) => fields.put(name, objects.symbol(class, value)),
            (kind, Some(object)) if subject.new => {
                objects.set_own(object, span.name, value);
                if value != 0 || kind == Kind::OwnIndex {
                    fields.put(name, "its own");
                }
            }
            (Kind::Own | Kind::OwnIndex, Some(object)) => {
                fields.put(name, objects.own(object, span.name, value));
            }
        }
    }
    for (number, word) in rest.iter().enumerate() {
        fields.raw(format!("{prefix}word {number}"), *word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_field_names_is_left() {
        let spans = [
            span("size", 0, Field::new(7, 0), Kind::Raw),
            span("valid", 1, Field::bit(63), Kind::Hidden),
            split(
                "pd",
                (1, Field::new(15, 0)),
                (0, Field::new(11, 8)),
                Kind::Id(Class::Pd),
            ),
            span("ring", 2, ALL, Kind::Own),
        ];
        let words = [0x5_0312, (1 << 63) | (1 << 40) | 7, 0x1000];
        assert_eq!(spans[2].get(&words), 0x3_0007);
        let subject = Subject {
            object: Some((Class::Qp, 2)),
            new: true,
        };
        let mut fields = Fields::default();
        let mut objects = Objects::default();
        describe(&mut fields, "", &words, &spans, subject, &mut objects);
        let wanted = [
            ("size", "0x12"),
            ("pd", "pd#1"),
            ("ring", "its own"),
            ("word 0", "0x50000"),
            ("word 1", "0x10000000000"),
        ];
        assert_eq!(
            fields.0,
            wanted.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(fields.get("nothing"), "0");
    }
}
