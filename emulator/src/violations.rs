// SPDX-License-Identifier: GPL-2.0
//! What the guest's driver did wrong. Each violation is printed when it
//! happens, kept, and makes the emulator's exit status non-zero.

use std::fs::File;
use std::io::Write;

use serde::Serialize;

/// More than this many are counted but not kept.
const KEPT: usize = 1000;

/// One thing that the driver must not do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// A short word to filter by: `dma`, `register`, `adminq`, `cqp`, ...
    pub kind: String,
    /// What happened.
    pub text: String,
}

/// The violations of a run.
#[derive(Debug, Default)]
pub struct Violations {
    kept: Vec<Violation>,
    count: u64,
    file: Option<File>,
    quiet: bool,
}

impl Violations {
    /// Returns an empty list that prints to standard error.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns an empty list that prints nothing, for tests.
    pub fn quiet() -> Self {
        Violations {
            quiet: true,
            ..Self::default()
        }
    }

    /// Also writes each violation to `file`, one JSON line each.
    pub fn also_to(&mut self, file: File) {
        self.file = Some(file);
    }

    /// Records a violation.
    pub fn report(&mut self, kind: &str, text: impl Into<String>) {
        let violation = Violation {
            kind: kind.to_owned(),
            text: text.into(),
        };
        self.count += 1;
        if self.kept.len() >= KEPT {
            return;
        }
        if !self.quiet {
            eprintln!("violation: {}: {}", violation.kind, violation.text);
        }
        if let (Some(file), Ok(line)) = (&mut self.file, serde_json::to_string(&violation)) {
            let _ = writeln!(file, "{line}");
        }
        self.kept.push(violation);
    }

    /// Returns how many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the first ones.
    pub fn all(&self) -> &[Violation] {
        &self.kept
    }
}
