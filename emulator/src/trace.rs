// SPDX-License-Identifier: GPL-2.0
//! The trace: one JSON line an event, `{"t":ns,"port":n,"ev":"...",...}`.

use std::io::Write;

use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
struct Line<'a> {
    t: u64,
    port: usize,
    ev: &'a str,
    #[serde(flatten)]
    fields: Value,
}

/// Where events go, if anywhere.
#[derive(Default)]
pub struct Trace {
    out: Option<Box<dyn Write + Send>>,
}

impl Trace {
    /// Returns a trace that drops every event.
    pub fn off() -> Self {
        Self::default()
    }

    /// Returns a trace that writes to `out`.
    pub fn to(out: impl Write + Send + 'static) -> Self {
        Trace {
            out: Some(Box::new(out)),
        }
    }

    /// Returns whether anybody listens, so that an event worth some work is
    /// made only then.
    pub fn enabled(&self) -> bool {
        self.out.is_some()
    }

    /// Writes an event. `fields` (a JSON object) is made only if the trace is
    /// on.
    pub fn event(&mut self, now: u64, port: usize, ev: &str, fields: impl FnOnce() -> Value) {
        let Some(out) = &mut self.out else { return };
        let line = Line {
            t: now,
            port,
            ev,
            fields: fields(),
        };
        let written = serde_json::to_writer(&mut *out, &line).is_ok() && writeln!(out).is_ok();
        if !written {
            eprintln!("trace: cannot write, switched off");
            self.out = None;
        }
    }

    /// Writes out what is buffered.
    pub fn flush(&mut self) {
        if let Some(out) = &mut self.out {
            let _ = out.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::mpsc;

    struct Sender(mpsc::Sender<u8>);
    impl Write for Sender {
        fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
            buf.iter().for_each(|&b| self.0.send(b).unwrap());
            Ok(buf.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn one_line_an_event() {
        let (tx, rx) = mpsc::channel();
        let mut trace = Trace::to(Sender(tx));
        trace.event(7, 1, "doorbell", || json!({"qp": 3}));
        drop(trace);
        let text: Vec<u8> = rx.iter().collect();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "{\"t\":7,\"port\":1,\"ev\":\"doorbell\",\"qp\":3}\n"
        );
    }
}
