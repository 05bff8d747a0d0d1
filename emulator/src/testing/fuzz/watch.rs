// SPDX-License-Identifier: GPL-2.0
//! What the trace of a run tells of.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// What passed in a trace.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) errors: u64,
    pub(super) events: BTreeMap<String, u64>,
    /// The command of the control queue that is being executed.
    command: String,
}

impl Seen {
    fn line(&mut self, line: &[u8]) {
        let Ok(Value::Object(event)) = serde_json::from_slice(line) else {
            return;
        };
        let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or("");
        let number = |key: &str| event.get(key).and_then(Value::as_u64).unwrap_or(0);
        let kind = text("ev");
        let failed = match kind {
            "aeqe" | "aeqe_lost" | "discard" | "cq_overflow" => true,
            "cqp_done" => event.get("error").is_some_and(Value::is_u64),
            "aq" => number("retval") != 0,
            _ => false,
        };
        self.errors += u64::from(failed);
        let name = match kind {
            "aeqe" => format!("aeqe {:#05x}", number("code")),
            "cqp" => {
                self.command = text("op").to_owned();
                kind.to_owned()
            }
            "cqp_done" if !failed => format!("did {}", self.command),
            "cqp_done" | "aq" if failed => format!("{kind} failed"),
            "discard" => format!("discard: {}", text("why")),
            _ => kind.to_owned(),
        };
        *self.events.entry(name).or_default() += 1;
    }
}

/// Takes a trace in.
pub(super) struct Watch {
    pub(super) line: Vec<u8>,
    pub(super) seen: Arc<Mutex<Seen>>,
}

pub(super) fn lock(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Write for Watch {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if bytes.ends_with(b"\n") {
            lock(&self.seen).line(&self.line);
            self.line.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
