// SPDX-License-Identifier: GPL-2.0
//! The list of differences that are meant: what differs, and why it may.

use serde::Deserialize;

use super::diff::Difference;
use super::Error;

/// Differences that are accepted, in TOML: a table `[[accepted]]` each.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    #[serde(default)]
    accepted: Vec<Rule>,
}

/// What a difference must be like. In each text `*` stands for anything; a
/// text that is missing fits everything.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    lane: Option<String>,
    event: Option<String>,
    field: Option<String>,
    a: Option<String>,
    b: Option<String>,
    /// Why it may differ. Without a reason nothing is accepted.
    reason: String,
}

impl Accepted {
    /// Reads the list.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let list: Accepted = toml::from_str(text)?;
        for rule in &list.accepted {
            if rule.reason.trim().is_empty() {
                return Err(Error::NoReason);
            }
            if rule.event.is_none() && rule.lane.is_none() {
                return Err(Error::AcceptsAll);
            }
        }
        Ok(list)
    }

    /// The reason for which a difference is accepted, if it is.
    pub(super) fn reason(&self, difference: &Difference) -> Option<&str> {
        self.accepted
            .iter()
            .find(|rule| rule.fits(difference))
            .map(|rule| rule.reason.as_str())
    }
}

impl Rule {
    fn fits(&self, difference: &Difference) -> bool {
        [
            (&self.lane, &difference.lane.name),
            (&self.event, &difference.event),
            (&self.field, &difference.field),
            (&self.a, &difference.a),
            (&self.b, &difference.b),
        ]
        .iter()
        .all(|(pattern, text)| {
            pattern
                .as_ref()
                .is_none_or(|pattern| matches(pattern, text))
        })
    }
}

/// Whether `text` is like `pattern`, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, after)) => text.strip_prefix(before).is_some_and(|rest| {
            (0..=rest.len())
                .filter_map(|at| rest.get(at..))
                .any(|rest| matches(after, rest))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::Lane;
    use super::*;

    fn difference(field: &str, a: &str) -> Difference {
        Difference {
            lane: Lane {
                port: 1,
                name: "control".into(),
            },
            event: "CREATE_CQ".into(),
            place: (1, 1),
            field: field.into(),
            a: a.into(),
            b: "0".into(),
        }
    }

    #[test]
    fn stars_stand_for_anything() {
        assert!(matches("a*c", "abbc"));
        assert!(matches("*", ""));
        assert!(matches("*b*", "abc"));
        assert!(!matches("a*c", "abcd"));
        assert!(!matches("b*", "abc"));
    }

    #[test]
    fn rules_need_a_reason_and_an_event() {
        let text =
            "[[accepted]]\nevent = \"CREATE_*\"\nfield = \"VSI\"\na = \"0x5\"\nreason = \"why\"";
        let list = Accepted::parse(text).unwrap();
        assert_eq!(list.reason(&difference("VSI", "0x5")), Some("why"));
        assert_eq!(list.reason(&difference("VSI", "0x6")), None);
        assert_eq!(list.reason(&difference("ring", "0x5")), None);
        let parse = |text| Accepted::parse(text).map(|_| ());
        assert!(parse("[[accepted]]\nevent = \"NOP\"").is_err());
        assert!(parse("[[accepted]]\nevent = \"NOP\"\nreason = \" \"").is_err());
        assert!(parse("[[accepted]]\nreason = \"all of it\"").is_err());
        assert!(parse("[[accepted]]\nevnt = \"NOP\"\nreason = \"a typing error\"").is_err());
    }
}
