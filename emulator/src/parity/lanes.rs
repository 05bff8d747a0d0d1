// SPDX-License-Identifier: GPL-2.0
//! Splits a trace into lanes. What is in a lane has one strict order that no
//! timing changes; what is in different lanes may pass each other.

use std::collections::{BTreeMap, BTreeSet};

use super::command::Command;
use super::fields::{describe, span, Fields, Kind, Subject, ALL};
use super::objects::{Class, Objects};
use super::trace::{Event, Line};
use super::work::{self, Addresses};
use crate::rdma::cqp::CONTROL_CQ;
use crate::rdma::layout::E810;
use crate::rdma::regs::Register;

/// The queue pair of management datagrams.
const GSI: u64 = 1;

/// A lane: the port, and what goes on there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Lane {
    pub port: usize,
    pub name: String,
}

/// An event in symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub title: String,
    pub fields: Fields,
}

pub(super) type Lanes = BTreeMap<Lane, Vec<Item>>;

/// What is known of a port while its events are read.
#[derive(Debug, Default)]
struct Port {
    objects: Objects,
    /// The command that the device is at.
    pending: Option<Command>,
    /// Queue pairs that send datagrams.
    datagram: BTreeSet<u64>,
    /// The second half of a completion, by completion queue.
    extensions: BTreeMap<u32, [u64; 4]>,
    addresses: BTreeMap<String, Addresses>,
    /// Doorbells that were seen already.
    rung: BTreeSet<String>,
}

/// Splits a trace.
pub(super) fn split(lines: Vec<Line>) -> Lanes {
    let mut lanes = Lanes::new();
    let mut ports = BTreeMap::<usize, Port>::new();
    for line in lines {
        let mut sink = Sink {
            port: line.port,
            lanes: &mut lanes,
        };
        ports
            .entry(line.port)
            .or_default()
            .event(line.event, &mut sink);
    }
    for (number, port) in &mut ports {
        let mut sink = Sink {
            port: *number,
            lanes: &mut lanes,
        };
        port.finish_command(&mut sink);
    }
    lanes
}

struct Sink<'a> {
    port: usize,
    lanes: &'a mut Lanes,
}

impl Sink<'_> {
    fn put(&mut self, lane: impl Into<String>, title: impl Into<String>, fields: Fields) {
        let lane = Lane {
            port: self.port,
            name: lane.into(),
        };
        let item = Item {
            title: title.into(),
            fields,
        };
        self.lanes.entry(lane).or_default().push(item);
    }
}

impl Port {
    fn event(&mut self, event: Event, sink: &mut Sink<'_>) {
        match event {
            Event::RegWrite {
                offset: Some(offset),
                value,
            } => register(offset, value, sink),
            Event::Cqp { code, words } => {
                self.finish_command(sink);
                self.pending = Some(Command {
                    code,
                    words,
                    contexts: vec![],
                    sds: vec![],
                    done: None,
                });
            }
            Event::CqpDone {
                error,
                minor,
                value,
            } => {
                if let Some(command) = &mut self.pending {
                    command.done = Some((error, minor, value));
                }
                self.finish_command(sink);
            }
            Event::CqpDestroy => {
                self.finish_command(sink);
                self.objects.forget_all();
                sink.put("control", "control queue destroyed", Fields::default());
            }
            Event::Context {
                cqp: Some(_),
                words,
            } => self.host_context(&words, sink),
            Event::Context { words, .. } => {
                if let Some(command) = &mut self.pending {
                    command.contexts.push(words);
                }
            }
            Event::Sd {
                index,
                valid,
                direct,
            } => {
                if let Some(command) = &mut self.pending {
                    command.sds.push((index, valid, direct));
                }
            }
            Event::Doorbell { sq: Some(qp), .. } => {
                let qp = self.objects.known(Class::Qp, qp.into());
                self.ring(format!("{qp} doorbell"), "rung", sink);
            }
            // How often, and when, is a matter of time for the control queue.
            Event::Doorbell { arm: Some(cq), .. } if cq == CONTROL_CQ => {}
            Event::Doorbell {
                arm: Some(cq),
                next: Some(next),
                ..
            } => {
                let cq = self.objects.known(Class::Cq, cq.into());
                self.ring(format!("{cq} armed for {next}"), "armed", sink);
            }
            Event::Wqe { qp, queue, words } => self.work(qp.into(), &queue, &words, sink),
            Event::Cqe { cq, words } if cq != CONTROL_CQ => self.completion(cq, words, sink),
            Event::Aeqe { words } => {
                let (object, fields) = work::event(&words, &mut self.objects);
                sink.put(format!("{object} events"), "event", fields);
            }
            Event::RegWrite { offset: None, .. }
            | Event::Doorbell { .. }
            | Event::Cqe { .. }
            | Event::Other => {}
        }
    }

    fn finish_command(&mut self, sink: &mut Sink<'_>) {
        let Some(command) = self.pending.take() else {
            return;
        };
        if command.is_periodic() {
            return;
        }
        match command.creates_queue_pair() {
            Some((qp, true)) => drop(self.datagram.insert(qp)),
            Some((qp, false)) => drop(self.datagram.remove(&qp)),
            None => {}
        }
        let fields = command.fields(&mut self.objects);
        let lane = if command.is_neighbour() {
            "neighbours"
        } else {
            "control"
        };
        sink.put(lane, command.title(), fields);
    }

    fn host_context(&mut self, words: &[u64], sink: &mut Sink<'_>) {
        let spans = [
            span("ring", 1, ALL, Kind::Address),
            span("context", 3, ALL, Kind::Hidden),
        ];
        let subject = Subject {
            object: None,
            new: true,
        };
        let mut fields = Fields::default();
        describe(&mut fields, "", words, &spans, subject, &mut self.objects);
        sink.put("control", "control queue created", fields);
    }

    /// A doorbell: that it rings at all is told, not how often.
    fn ring(&mut self, lane: String, what: &str, sink: &mut Sink<'_>) {
        if self.rung.insert(lane.clone()) {
            sink.put(lane, what, Fields::default());
        }
    }

    fn work(&mut self, id: u64, queue: &str, words: &[u64], sink: &mut Sink<'_>) {
        let qp = self.objects.known(Class::Qp, id);
        let send = queue == "Send";
        let lane = format!("{qp} {} queue", if send { "send" } else { "receive" });
        // The buffers of the kernel's management datagrams come and go.
        let addresses = (id != GSI).then(|| self.addresses.entry(lane.clone()).or_default());
        let datagram = self.datagram.contains(&id);
        let (title, fields) = work::entry(
            words,
            send,
            (Class::Qp, id),
            datagram,
            &mut self.objects,
            addresses,
        );
        sink.put(lane, title, fields);
    }

    fn completion(&mut self, cq: u32, words: [u64; 4], sink: &mut Sink<'_>) {
        if work::is_extension(&words) {
            self.extensions.insert(cq, words);
            return;
        }
        let extension = self.extensions.remove(&cq);
        let (id, is_sq) = work::completion_of(&words);
        let datagram = self.datagram.contains(&id);
        let fields = work::completion(&words, extension.as_ref(), datagram, &mut self.objects);
        let cq = self.objects.known(Class::Cq, cq.into());
        let qp = self.objects.known(Class::Qp, id);
        let queue = if is_sq { "send" } else { "receive" };
        sink.put(
            format!("{cq}: {qp} {queue} completions"),
            "completion",
            fields,
        );
    }
}

/// Register writes that set something up; doorbells and what re-arms an
/// interrupt come as often as time has it.
fn register(offset: u32, value: u64, sink: &mut Sink<'_>) {
    let Some(register) = Register::at(&E810, offset) else {
        return;
    };
    let mut fields = Fields::default();
    match register {
        Register::CqpDoorbell
        | Register::CqArm
        | Register::CqAck
        | Register::AeqAlloc
        | Register::SqDoorbell
        // Half an address, which may well be zero.
        | Register::CcqpHigh => return,
        Register::CcqpLow if value != 0 => fields.put("value", "an address"),
        _ => fields.raw("value", value),
    }
    sink.put("registers", format!("{register:?}"), fields);
}

#[cfg(test)]
mod tests;
