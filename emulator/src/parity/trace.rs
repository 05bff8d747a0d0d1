// SPDX-License-Identifier: GPL-2.0
//! The lines of a trace that the comparison looks at.

use std::io::BufRead;

use serde::Deserialize;

use super::Error;

/// A line: which port, and what happened there.
#[derive(Debug, Deserialize)]
pub(super) struct Line {
    pub port: usize,
    #[serde(flatten)]
    pub event: Event,
}

/// What happened. Fields that the comparison has no use for are left out.
#[derive(Debug, Deserialize)]
#[serde(tag = "ev", rename_all = "snake_case")]
pub(super) enum Event {
    /// Registers of the RDMA half have an offset, those of the LAN half a name.
    RegWrite {
        offset: Option<u32>,
        value: u64,
    },
    Cqp {
        code: u8,
        words: [u64; 8],
    },
    CqpDone {
        error: Option<u32>,
        minor: u16,
        value: u32,
    },
    CqpDestroy,
    /// Guest memory that belongs to a command, or the control queue's own.
    Context {
        cqp: Option<u64>,
        words: Vec<u64>,
    },
    Sd {
        index: u32,
        valid: bool,
        direct: bool,
    },
    Doorbell {
        sq: Option<u32>,
        arm: Option<u32>,
        next: Option<String>,
    },
    Wqe {
        qp: u32,
        queue: String,
        words: Vec<u64>,
    },
    Cqe {
        cq: u32,
        words: [u64; 4],
    },
    Aeqe {
        words: [u64; 2],
    },
    #[serde(other)]
    Other,
}

/// Reads a trace.
pub(super) fn read(input: impl BufRead) -> Result<Vec<Line>, Error> {
    let mut lines = Vec::new();
    for (number, text) in (1..).zip(input.lines()) {
        let line: Line =
            serde_json::from_str(&text?).map_err(|source| Error::Line { number, source })?;
        if !matches!(line.event, Event::Other) {
            lines.push(line);
        }
    }
    Ok(lines)
}
