// SPDX-License-Identifier: GPL-2.0
//! The control socket: JSON lines in, one JSON line out for each. See the
//! emulator's README for examples.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{json, Value};

use crate::faults::Rule;
use crate::machine::{Machine, Shared};
use crate::nic::Incident;
use crate::wire::WireFaults;

/// A command of the control socket.
#[derive(Debug, Deserialize)]
#[serde(tag = "cmd", rename_all = "snake_case")]
enum Command {
    /// Takes the cable of a port out or puts it back.
    Link { port: usize, up: bool },
    /// Adds a fault to a function.
    Fault { port: usize, rule: Rule },
    /// Removes a function's faults.
    ClearFaults { port: usize },
    /// Sets the faults of the direction in which a port sends.
    Wire {
        port: usize,
        #[serde(default)]
        faults: WireFaults,
        #[serde(default = "seed")]
        seed: u64,
    },
    /// The protocol engine reports a critical error.
    CriticalError {
        port: usize,
        #[serde(default)]
        code: u32,
    },
    /// The HMC reports an error.
    HmcError {
        port: usize,
        #[serde(default)]
        info: u32,
        #[serde(default)]
        data: u32,
    },
    /// The protocol engine reports an asynchronous event.
    AsyncEvent {
        port: usize,
        code: u16,
        #[serde(default)]
        source: u8,
        #[serde(default)]
        id: u32,
    },
    /// The device's core is reset, as if by another function.
    CoreReset { port: usize },
    /// What passed, and what went wrong.
    Status,
}

fn seed() -> u64 {
    1
}

fn run(machine: &mut Machine, now: u64, command: Command) -> Result<Value, String> {
    let known = |found: bool, port: usize| {
        if found {
            Ok(json!({"ok": true}))
        } else {
            Err(format!("there is no port {port}"))
        }
    };
    let ports = machine.functions();
    match command {
        Command::Link { port, up } => {
            if port < ports {
                machine.set_link(port, up, now);
            }
            known(port < ports, port)
        }
        Command::Fault { port, rule } => {
            let faults = machine.faults(port).map(|faults| faults.add(rule));
            known(faults.is_some(), port)
        }
        Command::ClearFaults { port } => {
            let faults = machine.faults(port).map(|faults| faults.clear());
            known(faults.is_some(), port)
        }
        Command::Wire { port, faults, seed } => {
            known(machine.wire().set_faults(port, faults, seed), port)
        }
        Command::CriticalError { port, code } => {
            let incident = Incident::CriticalError(code);
            known(machine.incident(port, incident, now), port)
        }
        Command::HmcError { port, info, data } => {
            let incident = Incident::HmcError { info, data };
            known(machine.incident(port, incident, now), port)
        }
        Command::AsyncEvent {
            port,
            code,
            source,
            id,
        } => {
            let incident = Incident::AsyncEvent { code, source, id };
            known(machine.incident(port, incident, now), port)
        }
        Command::CoreReset { port } => {
            known(machine.incident(port, Incident::CoreReset, now), port)
        }
        Command::Status => {
            let status: Vec<Value> = (0..ports)
                .map(|port| {
                    json!({
                        "link_up": machine.port(port).is_some_and(|p| p.link_up),
                        "wire": machine.wire().counts(port),
                        "faults_hit": machine.faults(port).map(|f| f.hits()),
                    })
                })
                .collect();
            Ok(json!({
                "ok": true,
                "time": now,
                "ports": status,
                "violations": machine.violations().count(),
            }))
        }
    }
}

fn answer(shared: &Shared, line: &str) -> Value {
    let command: Result<Command, _> = serde_json::from_str(line);
    let result = match command {
        Ok(command) => shared.with(|machine, now| run(machine, now, command)),
        Err(error) => Err(error.to_string()),
    };
    result.unwrap_or_else(|error| json!({"ok": false, "error": error}))
}

fn talk(shared: &Shared, stream: &UnixStream) -> std::io::Result<()> {
    let mut out = stream;
    for line in BufReader::new(stream).lines() {
        let line = line?;
        if !line.trim().is_empty() {
            writeln!(out, "{}", answer(shared, &line))?;
        }
    }
    Ok(())
}

/// Listens at `path` and serves each client in a thread of its own, for as
/// long as the program runs.
pub fn listen(path: &Path, shared: Arc<Shared>) -> std::io::Result<()> {
    let _ = std::fs::remove_file(path);
    let listener = UnixListener::bind(path)?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let shared = shared.clone();
            // A client that goes away in the middle of a line is no error.
            std::thread::spawn(move || talk(&shared, &stream));
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::PortState;
    use crate::e810::{Config, E810};
    use crate::trace::Trace;
    use crate::violations::Violations;
    use crate::wire::Wire;

    #[test]
    fn commands() {
        let wire = Wire::back_to_back(2);
        let mut machine = Machine::new(wire, Trace::off(), Violations::quiet());
        for _ in 0..2 {
            let port = PortState {
                link_up: true,
                ..PortState::default()
            };
            machine.add(Box::new(E810::new(Config::default())), port);
        }
        let shared = Shared::new(machine);
        let ask = |line: &str| answer(&shared, line);
        assert_eq!(ask(r#"{"cmd":"link","port":0,"up":false}"#)["ok"], true);
        let status = ask(r#"{"cmd":"status"}"#);
        assert_eq!(status["ports"][1]["link_up"], false);
        assert_eq!(ask(r#"{"cmd":"link","port":2,"up":true}"#)["ok"], false);
        let wire = r#"{"cmd":"wire","port":1,"faults":{"loss":{"nth":[1,3]},"delay":1000}}"#;
        assert_eq!(ask(wire)["ok"], true);
        let fault = r#"{"cmd":"fault","port":0,"rule":{"point":"cqe","action":"drop"}}"#;
        assert_eq!(ask(fault)["ok"], true);
        assert_eq!(ask(r#"{"cmd":"critical_error","port":1}"#)["ok"], true);
        let event = r#"{"cmd":"async_event","port":1,"code":525,"source":5,"id":8}"#;
        assert_eq!(ask(event)["ok"], true);
        assert_eq!(ask(r#"{"cmd":"core_reset","port":7}"#)["ok"], false);
        assert_eq!(ask("nonsense")["ok"], false);
    }
}
