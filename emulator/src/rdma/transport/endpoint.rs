// SPDX-License-Identifier: GPL-2.0
//! The RoCEv2 transport of one queue pair: reliable connection and datagram.
//!
//! An [`Endpoint`] is a queue pair as the transport sees it. It is a plain
//! state machine: everything outside of it (guest memory through regions, the
//! wire, completion queues, time) comes with each call as a [`Host`].
//!
//! Source: InfiniBand Architecture Specification volume 1, chapters 9 to 11.

use std::net::IpAddr;

use super::events::Event;
use super::host::{Counter, Host, Owner};
use super::psn::Psn;
use super::requester::Requester;
use super::responder::Responder;
use super::timers;
use crate::rdma::packet::{Bth, Ext, Opcode, Packet, Path};
use crate::rdma::qp::QpState as State;
use crate::rdma::qp_context::QpContext;

/// The service of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    /// Reliable connection.
    Rc,
    /// Unreliable datagram, the management queue pair (1) among them.
    Ud,
}

/// Requests and datagrams of peers are taken in this state.
fn receives(state: State) -> bool {
    matches!(
        state,
        State::ReadyToSend | State::Drained | State::ReadyToReceive
    )
}

/// A queue pair as the transport sees it.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) number: u32,
    pub(crate) service: Service,
    pub(crate) state: State,
    pub(crate) context: QpContext,
    pub(super) requester: Requester,
    pub(super) responder: Responder,
    next_cnp: u64,
    /// A drain was asked for and its event is still to come.
    pub(super) draining: bool,
    /// No new send entries are begun until the driver resumes.
    pub(super) suspended: bool,
}

impl Endpoint {
    pub(crate) fn new(number: u32, service: Service, context: QpContext) -> Self {
        Self {
            number,
            service,
            state: State::Idle,
            context,
            requester: Requester::default(),
            responder: Responder::default(),
            next_cnp: 0,
            draining: false,
            suspended: false,
        }
    }

    /// The driver's command moved the queue pair to `next`, with `context` as
    /// it is then. Sequence numbers are taken over only where the state that
    /// uses them begins: the driver leaves old ones in the context later.
    pub(crate) fn modify<H: Host>(&mut self, host: &mut H, next: State, context: QpContext) {
        let last = self.state;
        self.context = context;
        self.state = next;
        match next {
            State::Idle => {
                self.requester = Requester::default();
                self.responder = Responder::default();
            }
            State::ReadyToReceive if last != State::ReadyToReceive => self.start_receiving(),
            State::ReadyToSend if last != State::ReadyToSend => {
                if !receives(last) {
                    self.start_receiving();
                }
                if last != State::Drained {
                    self.start_sending();
                }
                self.draining = false;
                self.pump(host);
            }
            State::Drained if last == State::ReadyToSend => {
                self.draining = true;
                self.pump(host);
            }
            State::Error | State::Terminate => self.stop(),
            _ => {}
        }
    }

    fn start_receiving(&mut self) {
        self.responder.start(Psn::new(self.context.epsn));
    }

    fn start_sending(&mut self) {
        let (retries, rnrs) = (self.context.retry_limit, self.context.rnr_limit);
        self.requester
            .start(Psn::new(self.context.psn_next), retries, rnrs);
    }

    /// No more is sent or answered; what is unfinished waits for a flush.
    fn stop(&mut self) {
        self.requester.stop();
        self.responder.stop();
        self.draining = false;
    }

    /// The doorbell: new send entries may be there.
    pub(crate) fn doorbell<H: Host>(&mut self, host: &mut H) {
        self.pump(host);
    }

    /// SUSPEND_QP: nothing new is begun; an event says when all is quiet.
    pub(crate) fn suspend<H: Host>(&mut self, host: &mut H) {
        self.suspended = true;
        self.draining = true;
        self.pump(host);
    }

    pub(crate) fn is_suspended(&self) -> bool {
        self.suspended
    }

    /// RESUME_QP.
    pub(crate) fn resume<H: Host>(&mut self, host: &mut H) {
        self.suspended = false;
        self.draining = false;
        self.pump(host);
    }

    /// A packet whose frame was right and whose destination is this one.
    pub(crate) fn receive<H: Host>(&mut self, host: &mut H, packet: &Packet<'_>) {
        if packet.bth.opcode == Opcode::CNP {
            host.count(Counter::CnpReceived);
            return;
        }
        if !receives(self.state) {
            host.count(Counter::Dropped);
            return;
        }
        if !pkey_matches(packet.bth.pkey, self.context.pkey) {
            host.count(Counter::BadPkey);
            return;
        }
        if packet.path.congestion_experienced() {
            self.notify_congestion(host, packet);
        }
        match self.service {
            Service::Ud => self.receive_datagram(host, packet),
            Service::Rc => {
                // A connection has one peer.
                if packet.bth.opcode.is_ud()
                    || packet.path.src_ip != self.context.dest_ip
                    || packet.path.dst_ip != self.context.local_ip
                {
                    host.count(Counter::Dropped);
                } else if packet.bth.opcode.is_response() {
                    self.response(host, packet);
                } else {
                    self.request(host, packet);
                }
            }
        }
    }

    /// What [`Self::deadline`] announced is due.
    pub(crate) fn poll<H: Host>(&mut self, host: &mut H) {
        if self.deadline().is_some_and(|at| at <= host.now()) {
            self.requester_timers(host);
            self.send_read_responses(host);
            self.pump(host);
        }
    }

    /// When [`Self::poll`] wants to be called, if at all.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let requester = self.requester.deadline();
        let responder = self.responder.deadline();
        match (requester, responder) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Ends the queue pair's work with an error: the driver hears of it and
    /// answers with a flush.
    pub(super) fn fail<H: Host>(&mut self, host: &mut H, event: Event) {
        if self.state == State::Error {
            return;
        }
        self.state = State::Error;
        self.stop();
        host.event(self, event);
    }

    /// Payload bytes of a full packet.
    pub(super) fn mtu(&self) -> usize {
        usize::from(self.context.mss).clamp(256, 4096)
    }

    pub(super) fn owner(&self) -> Owner {
        Owner {
            pd: self.context.pd,
            qp: self.number,
            privileged: self.context.privileged,
        }
    }

    /// The way to the connected peer; `None`: its ARP entry is not there.
    pub(super) fn path<H: Host>(&self, host: &mut H) -> Option<Path> {
        let context = &self.context;
        let Some(dst_mac) = host.neighbour(context.arp_index) else {
            host.count(no_route(context.dest_ip));
            return None;
        };
        Some(Path {
            src_mac: context.mac,
            dst_mac,
            vlan: context.vlan,
            src_ip: context.local_ip,
            dst_ip: context.dest_ip,
            traffic_class: context.tos,
            hop_limit: context.ttl,
            flow_label: context.flow_label,
            src_port: context.source_port,
        })
    }

    /// A congestion notification back to where `packet` came from (annex
    /// A17.9), not more often than the interval.
    fn notify_congestion<H: Host>(&mut self, host: &mut H, packet: &Packet<'_>) {
        host.count(Counter::CongestionMarked);
        // What came to a group cannot be answered: it has no address of ours.
        if packet.path.dst_ip.is_multicast() || host.now() < self.next_cnp {
            return;
        }
        self.next_cnp = host.now() + timers::CNP_INTERVAL;
        let peer = match (self.service, packet.ext.deth) {
            (Service::Rc, _) => self.context.dest_qp,
            (Service::Ud, Some(deth)) => deth.src_qp,
            (Service::Ud, None) => return,
        };
        let path = back(&packet.path);
        let mut bth = Bth::new(Opcode::CNP, packet.bth.pkey, peer, 0);
        bth.becn = true;
        let mut draft = host.draft(&path, &bth, &Ext::default(), 16);
        draft.payload_mut().fill(0);
        host.transmit(draft.finish());
        host.count(Counter::CnpSent);
    }
}

/// What counts a packet whose destination has no entry in the ARP table.
pub(super) fn no_route(dest: IpAddr) -> Counter {
    match dest {
        IpAddr::V4(_) => Counter::NoRoute4,
        IpAddr::V6(_) => Counter::NoRoute6,
    }
}

/// The way back of a packet, without its congestion mark.
fn back(path: &Path) -> Path {
    Path {
        src_mac: path.dst_mac,
        dst_mac: path.src_mac,
        src_ip: path.dst_ip,
        dst_ip: path.src_ip,
        traffic_class: path.traffic_class & !3,
        hop_limit: 64,
        ..*path
    }
}

/// Partition keys match by their low 15 bits, if one is a full member's.
fn pkey_matches(a: u16, b: u16) -> bool {
    a & 0x7fff == b & 0x7fff && (a | b) & 0x8000 != 0
}
