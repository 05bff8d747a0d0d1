// SPDX-License-Identifier: GPL-2.0
//! The emulator's command line.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

use clap::{Args, Parser, Subcommand};
use irdma_emulator::context::PortState;
use irdma_emulator::e810::{Config, E810};
use irdma_emulator::machine::{Machine, Shared};
use irdma_emulator::nic::Nic;
use irdma_emulator::parity::{self, Accepted};
use irdma_emulator::rdma::Protocol;
use irdma_emulator::remote::Remote;
use irdma_emulator::trace::Trace;
use irdma_emulator::violations::Violations;
use irdma_emulator::wire::Wire;
use irdma_emulator::{control, ddp, server};

#[derive(Parser)]
#[command(about = "An emulated RDMA network function, served over vfio-user")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves functions until every client has gone; the status is 1 if a
    /// driver did what it must not
    Run(Run),
    /// Writes a DDP package for the ice driver
    Ddp {
        /// Where to
        file: PathBuf,
    },
    /// Compares the traces of two drivers with addresses and numbers made
    /// symbolic; the status is 1 if they differ in what is not accepted
    Parity(Parity),
}

#[derive(Args)]
struct Parity {
    /// The first trace
    a: PathBuf,
    /// The second trace
    b: PathBuf,
    /// What to call them
    #[arg(long, num_args = 2, default_values_t = ["a".to_owned(), "b".to_owned()])]
    names: Vec<String>,
    /// Differences that are meant, with their reasons (TOML)
    #[arg(long)]
    accepted: Option<PathBuf>,
}

#[derive(Args)]
struct Run {
    /// A function: e810,socket=PATH[,proto=roce|iwarp][,vectors=N][,mac=XX:..][,rdma=on|off]
    #[arg(long = "nic", required = true)]
    nics: Vec<NicSpec>,
    /// What joins the ports: back-to-back, or socket=PATH to another emulator
    #[arg(long, default_value = "back-to-back")]
    wire: WireSpec,
    /// Writes a JSON line for each event
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Writes the frames that passed
    #[arg(long)]
    pcap: Option<PathBuf>,
    /// Takes commands at this socket
    #[arg(long)]
    control: Option<PathBuf>,
    /// Writes a JSON line for each violation
    #[arg(long)]
    violations: Option<PathBuf>,
}

#[derive(Clone)]
enum Generation {
    E810(Config),
}

#[derive(Clone)]
struct NicSpec {
    generation: Generation,
    socket: PathBuf,
    mac: Option<[u8; 6]>,
}

fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let bytes: Vec<u8> = text
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).ok())
        .collect::<Option<_>>()?;
    bytes.try_into().ok()
}

impl FromStr for NicSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut parts = text.split(',');
        let mut config = match parts.next() {
            Some("e810") => Config::default(),
            other => return Err(format!("unknown function {:?}", other.unwrap_or_default())),
        };
        let (mut socket, mut mac) = (None, None);
        for part in parts {
            let bad = || format!("cannot understand {part:?}");
            match part.split_once('=').ok_or_else(bad)? {
                ("socket", path) => socket = Some(PathBuf::from(path)),
                ("proto", "roce") => config.protocol = Protocol::Roce,
                ("proto", "iwarp") => config.protocol = Protocol::Iwarp,
                ("rdma", "on") => config.rdma = true,
                ("rdma", "off") => config.rdma = false,
                ("vectors", n) => {
                    config.vectors = n
                        .parse()
                        .ok()
                        .filter(|n| (1..=1024).contains(n))
                        .ok_or_else(bad)?;
                }
                ("mac", text) => mac = Some(parse_mac(text).ok_or_else(bad)?),
                _ => return Err(bad()),
            }
        }
        Ok(NicSpec {
            generation: Generation::E810(config),
            socket: socket.ok_or("socket=PATH is missing")?,
            mac,
        })
    }
}

impl NicSpec {
    fn nic(&self) -> Box<dyn Nic> {
        match &self.generation {
            Generation::E810(config) => Box::new(E810::new(config.clone())),
        }
    }

    fn port(&self, index: usize) -> PortState {
        PortState {
            index,
            pf_id: 0,
            // Locally administered, so that no real port has it.
            mac: self
                .mac
                .unwrap_or([0x02, 0x15, 0x92, 0, 0, index as u8 + 1]),
            addresses: vec![],
            link_up: true,
            max_frame: 9728,
            vsis: vec![],
            failed: false,
        }
    }
}

#[derive(Clone)]
enum WireSpec {
    BackToBack,
    Socket(PathBuf),
}

impl FromStr for WireSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "back-to-back" => Ok(WireSpec::BackToBack),
            Some(("socket", path)) => Ok(WireSpec::Socket(path.into())),
            _ => Err(format!("unknown wire {text:?}")),
        }
    }
}

type Error = Box<dyn std::error::Error>;

fn create(path: &PathBuf) -> Result<File, Error> {
    File::create(path).map_err(|error| format!("{}: {error}", path.display()).into())
}

fn run(options: &Run) -> Result<u64, Error> {
    let trace = match &options.trace {
        Some(path) => Trace::to(BufWriter::new(create(path)?)),
        None => Trace::off(),
    };
    let mut violations = Violations::new();
    if let Some(path) = &options.violations {
        violations.also_to(create(path)?);
    }
    let ports = options.nics.len();
    // Listen first: whoever started this waits for the sockets.
    let servers = options
        .nics
        .iter()
        .map(|spec| {
            server::listen(&spec.socket, &spec.nic().identity())
                .map_err(|error| format!("{}: {error}", spec.socket.display()).into())
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let remote = match &options.wire {
        WireSpec::BackToBack => None,
        WireSpec::Socket(path) => Some(Remote::open(path)?),
    };
    let mut wire = match &remote {
        None => Wire::back_to_back(ports),
        Some(remote) => Wire::remote(ports, || remote.writer()),
    };
    if let Some(path) = &options.pcap {
        wire.capture(Box::new(BufWriter::new(create(path)?)))?;
    }
    let mut machine = Machine::new(wire, trace, violations);
    for (index, spec) in options.nics.iter().enumerate() {
        machine.add(spec.nic(), spec.port(index));
    }
    let shared = Arc::new(Shared::new(machine));
    if let Some(remote) = remote {
        remote.start(shared.clone());
    }
    if let Some(path) = &options.control {
        control::listen(path, shared.clone())?;
    }
    let clock = {
        let shared = shared.clone();
        std::thread::spawn(move || shared.run_clock())
    };
    std::thread::scope(|scope| {
        for (index, server) in servers.iter().enumerate() {
            let shared = shared.clone();
            scope.spawn(move || {
                if let Err(error) = server::serve(server, shared, index) {
                    eprintln!("port {index}: {error}");
                }
            });
        }
    });
    shared.stop();
    let _ = clock.join();
    Ok(shared.with(|machine, _| machine.violations().count()))
}

fn open(path: &PathBuf) -> Result<BufReader<File>, Error> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(BufReader::new(file))
}

/// Prints how two traces differ; returns how many differences are not accepted.
fn compare(options: &Parity) -> Result<u64, Error> {
    let accepted = match &options.accepted {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            Accepted::parse(&text)?
        }
        None => Accepted::default(),
    };
    let names: [String; 2] = options.names.clone().try_into().map_err(|_| "two names")?;
    let (a, b) = (open(&options.a)?, open(&options.b)?);
    let report = parity::compare(a, b, names, &accepted)?;
    // Whoever reads it may have seen enough.
    let _ = writeln!(std::io::stdout(), "{report}");
    Ok((report.differences() - report.accepted()) as u64)
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(options) => run(&options),
        Command::Parity(options) => {
            return match compare(&options) {
                Ok(0) => ExitCode::SUCCESS,
                Ok(_) => ExitCode::FAILURE,
                Err(error) => {
                    eprintln!("irdma-emulator: {error}");
                    ExitCode::from(2)
                }
            }
        }
        Command::Ddp { file } => std::fs::write(&file, ddp::package())
            .map(|()| 0)
            .map_err(|error| format!("{}: {error}", file.display()).into()),
    };
    match result {
        Ok(0) => ExitCode::SUCCESS,
        Ok(count) => {
            eprintln!("{count} violations");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("irdma-emulator: {error}");
            ExitCode::FAILURE
        }
    }
}
