// SPDX-License-Identifier: GPL-2.0
//! Compares what two drivers asked of the device in the same workload.
//!
//! Two traces are never equal as they are: addresses, the numbers of objects,
//! and how events of independent queues interleave differ from run to run. So
//! each is split into lanes of strict order ([`lanes`]), numbers that the
//! driver chose become symbols ([`objects`]), every other bit stays as it is
//! ([`fields`], [`command`], [`work`]), and only then are they compared
//! ([`diff`]). What is meant to differ is listed with its reason
//! ([`accepted`]).

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::{self, BufRead};

mod accepted;
mod command;
mod diff;
mod fields;
mod lanes;
mod objects;
mod trace;
mod work;

pub use accepted::Accepted;
use diff::{Difference, PRESENCE};

/// Why two traces could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A trace could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A trace holds something else.
    #[error("line {number}: {source}")]
    Line {
        /// Counted from 1.
        number: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// The list of accepted differences is not TOML of the right form.
    #[error("accepted differences: {0}")]
    Accepted(#[from] toml::de::Error),
    /// An accepted difference says not why.
    #[error("accepted differences: a rule without a reason")]
    NoReason,
    /// An accepted difference would fit all of them.
    #[error("accepted differences: a rule needs a lane or an event")]
    AcceptsAll,
}

/// What came out of a comparison.
#[derive(Debug)]
pub struct Report {
    names: [String; 2],
    /// Events that were compared.
    pub events: usize,
    found: Vec<(Difference, Option<String>)>,
}

impl Report {
    /// How many differences there are, the accepted ones too.
    pub fn differences(&self) -> usize {
        self.found.len()
    }

    /// How many of them are accepted.
    pub fn accepted(&self) -> usize {
        self.found
            .iter()
            .filter(|(_, reason)| reason.is_some())
            .count()
    }
}

/// Compares two traces; `names` is what to call them.
pub fn compare(
    a: impl BufRead,
    b: impl BufRead,
    names: [String; 2],
    accepted: &Accepted,
) -> Result<Report, Error> {
    let a = lanes::split(trace::read(a)?);
    let b = lanes::split(trace::read(b)?);
    let (events, found) = diff::compare(&a, &b);
    let found = found
        .into_iter()
        .map(|difference| {
            let reason = accepted.reason(&difference).map(str::to_owned);
            (difference, reason)
        })
        .collect();
    Ok(Report {
        names,
        events,
        found,
    })
}

/// Differences alike are told once, with their number; those that are not
/// accepted come first.
impl Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [name_a, name_b] = &self.names;
        let mut groups: Vec<(&Difference, Option<&str>, usize)> = vec![];
        let mut places = BTreeMap::new();
        for (d, reason) in &self.found {
            let key = (reason.is_some(), &d.event, &d.field, &d.a, &d.b);
            let place = *places.entry(key).or_insert_with(|| {
                groups.push((d, reason.as_deref(), 0));
                groups.len() - 1
            });
            if let Some((.., count)) = groups.get_mut(place) {
                *count += 1;
            }
        }
        groups.sort_by_key(|(_, reason, _)| reason.is_some());
        for (d, reason, count) in groups {
            let word = match reason {
                None => "DIFFERS",
                Some(_) => "accepted",
            };
            write!(f, "{word}: port {}, {}, ", d.lane.port, d.lane.name)?;
            if d.field == PRESENCE {
                let (who, place) = if d.b == "missing" {
                    (name_a, d.place.0)
                } else {
                    (name_b, d.place.1)
                };
                write!(f, "{} (no. {place}): only {who} has it", d.event)?;
            } else {
                write!(
                    f,
                    "{} (no. {}/{}): {}: {name_a} {}, {name_b} {}",
                    d.event, d.place.0, d.place.1, d.field, d.a, d.b
                )?;
            }
            if count > 1 {
                write!(f, " ({} more like it)", count - 1)?;
            }
            if let Some(reason) = reason {
                write!(f, ": {reason}")?;
            }
            writeln!(f)?;
        }
        write!(
            f,
            "{} events, {} differences, {} accepted",
            self.events,
            self.differences(),
            self.accepted()
        )
    }
}
