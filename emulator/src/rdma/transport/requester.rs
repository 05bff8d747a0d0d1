// SPDX-License-Identifier: GPL-2.0
//! The sending half of a queue pair: entries become packets, in order, and
//! are kept until they are acknowledged, so that sending can go back.

use std::collections::VecDeque;

use super::events::code;
use super::fetch::{Cursor, Fetched};
use super::timers::{RoundTrip, RNR_FOREVER};
use super::{Completion, Counter, Endpoint, Event, Host, Psn, Right, Service, Source, State};
use crate::rdma::packet::{Bth, Ext, Opcode, Path, Reth};
use crate::rdma::wqe::{SendWqe, Work, WqeError};

/// Packets that may be under way on a path that loses nothing, and on the
/// worst one.
const WIDEST: i32 = 1024;
const NARROWEST: i32 = 16;

/// The longest message (IBA 9.7.8), bytes.
const MAX_MESSAGE: u64 = 1 << 31;

/// Sequence numbers that may be open at once: half of all, so that an old one
/// is told from a new one. The longest READ in the smallest packets takes
/// just so many.
const MAX_OPEN: u32 = 1 << 23;

/// What must be over before an entry begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fence {
    None,
    /// The READs in front.
    Reads,
    /// Everything in front.
    All,
}

/// A send entry between fetch and completion.
#[derive(Debug)]
pub(super) struct Op {
    /// In quanta.
    pub(super) index: u32,
    pub(super) wqe: SendWqe,
    pub(super) first_psn: Psn,
    /// Sequence numbers that it takes: packets sent, or responses of a READ.
    pub(super) packets: u32,
    pub(super) length: u64,
    /// READ: responses that have arrived, in order.
    pub(super) received: u32,
    fence: Fence,
    started: bool,
    /// A local operation was carried out.
    done: bool,
    /// The event code of what went wrong; it is raised when all in front is over.
    pub(super) error: Option<u16>,
}

impl Op {
    pub(super) fn is_read(&self) -> bool {
        matches!(self.wqe.work, Work::Read { .. })
    }

    pub(super) fn last_psn(&self) -> Psn {
        self.first_psn.add(self.packets.wrapping_sub(1))
    }

    pub(super) fn complete_read(&self) -> bool {
        self.received == self.packets
    }
}

/// The state of the sending half.
#[derive(Debug, Default)]
pub(super) struct Requester {
    pub(super) tail: Cursor,
    /// The tail that the shadow area has.
    pub(super) published: Option<u32>,
    /// Fetched and not finished, in order.
    pub(super) ops: VecDeque<Op>,
    /// The operation and its packet to send next; `ops.len()`: fetch one.
    send_op: usize,
    send_packet: u32,
    /// The sequence number for the next new operation.
    next_psn: Psn,
    /// One past the highest sequence number ever sent.
    pub(super) sent: Psn,
    /// The oldest sequence number not acknowledged.
    pub(super) una: Psn,
    pub(super) retry_limit: u8,
    pub(super) retries: u8,
    pub(super) rnr_limit: u8,
    pub(super) rnrs: u8,
    pub(super) rnr_until: Option<u64>,
    pub(super) retry_at: Option<u64>,
    round_trip: RoundTrip,
    /// Packets under way that the path has shown to bear.
    bears: i32,
    /// A packet whose answer is timed, and when it was sent.
    timed: Option<(Psn, u64)>,
    /// More packets are to be sent as soon as those before are on their way.
    resume_at: Option<u64>,
    /// The response that was asked for again; others are ignored until it comes.
    pub(super) read_retry: Option<Psn>,
}

impl Requester {
    pub(super) fn start(&mut self, psn: Psn, retry_limit: u8, rnr_limit: u8) {
        let (tail, published) = (self.tail, self.published);
        *self = Self {
            tail,
            published,
            next_psn: psn,
            sent: psn,
            una: psn,
            retry_limit,
            rnr_limit,
            bears: WIDEST,
            ..Self::default()
        };
    }

    pub(super) fn stop(&mut self) {
        self.rnr_until = None;
        self.retry_at = None;
        self.resume_at = None;
    }

    pub(super) fn deadline(&self) -> Option<u64> {
        let timer = self.rnr_until.or(self.retry_at);
        match (self.resume_at, timer) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Drops what is unfinished.
    pub(super) fn forget_ops(&mut self) {
        self.ops.clear();
        self.send_op = 0;
        self.send_packet = 0;
    }

    /// A datagram's number.
    pub(super) fn take_psn(&mut self) -> Psn {
        let psn = self.next_psn;
        self.next_psn = psn.add(1);
        psn
    }

    /// The peer made progress: the retry counts begin anew.
    pub(super) fn progress(&mut self, now: u64, rto_min: u8) {
        self.retries = 0;
        self.rnrs = 0;
        self.rnr_until = None;
        self.restart_timer(now, rto_min);
    }

    pub(super) fn restart_timer(&mut self, now: u64, rto_min: u8) {
        let waiting = self.open_before(self.sent) > 0;
        self.retry_at = waiting.then(|| now + self.round_trip.retry_time(rto_min, self.retries));
    }

    /// How many open sequence numbers are in front of `psn`: 0 to [`MAX_OPEN`].
    fn open_before(&self, psn: Psn) -> u32 {
        match psn.since(self.una) {
            // It is older than all of them.
            behind if behind > MAX_OPEN => 0,
            ahead => ahead,
        }
    }

    /// Whether `psn` was sent and waits for an answer.
    pub(super) fn is_open(&self, psn: Psn) -> bool {
        psn.since(self.una) < self.open_before(self.sent)
    }

    /// `packets` more have arrived: the path may bear more.
    pub(super) fn widen(&mut self, packets: i32) {
        self.bears = (self.bears + packets / 8 + 1).min(WIDEST);
    }

    /// Something was lost: half of what was under way is what the path bears.
    fn narrow(&mut self) {
        let under_way = self.open_before(self.sent) as i32;
        self.bears = (self.bears.min(under_way) / 2).max(NARROWEST);
    }

    /// All before `una` was answered at `now`.
    pub(super) fn time_answer(&mut self, una: Psn, now: u64) {
        if let Some((psn, sent_at)) = self.timed {
            if una.ahead_of(psn) > 0 {
                self.timed = None;
                self.round_trip.measured(now.saturating_sub(sent_at));
            }
        }
    }

    /// Sends again from `psn` on.
    pub(super) fn go_back(&mut self, psn: Psn) {
        // The answer to a packet sent twice tells nothing.
        self.timed = None;
        let found = self
            .ops
            .iter()
            .position(|op| op.packets > 0 && psn.ahead_of(op.last_psn()) <= 0);
        if let Some(index) = found {
            let op = &self.ops[index];
            self.send_op = index;
            self.send_packet = psn.ahead_of(op.first_psn).max(0) as u32;
        }
    }

    /// Nothing before `una` needs to be sent (again).
    pub(super) fn skip_to(&mut self, una: Psn) {
        let Some(op) = self.ops.get(self.send_op) else {
            return;
        };
        if !op.started {
            return;
        }
        let at = op.first_psn.add(self.send_packet);
        if una.ahead_of(at) > 0 {
            let open = |op: &Op| !op.started || op.packets > 0 && una.ahead_of(op.last_psn()) <= 0;
            self.send_op = self.ops.iter().position(open).unwrap_or(self.ops.len());
            self.send_packet = match self.ops.get(self.send_op) {
                Some(op) if op.packets > 0 => una.ahead_of(op.first_psn).max(0) as u32,
                _ => 0,
            };
        }
    }

    /// The number of READs that were begun and are not complete.
    fn reads_under_way(&self) -> u32 {
        let reads = self.ops.iter().filter(|op| op.is_read() && op.started);
        reads.filter(|op| !op.complete_read()).count() as u32
    }
}

/// What became of an attempt to send one packet.
enum Sent {
    More,
    /// Nothing can be sent now.
    Blocked,
}

impl Endpoint {
    /// Sends and completes as much as can be.
    pub(super) fn pump<H: Host>(&mut self, host: &mut H) {
        self.requester.resume_at = None;
        loop {
            while let Sent::More = self.step(host) {
                if host.crowded() {
                    self.requester.resume_at = Some(host.now());
                    break;
                }
            }
            self.finish(host);
            if self.requester.resume_at.is_some() {
                break;
            }
            let fetches = self.fetches();
            if !fetches || !self.publish_tail(host) {
                break;
            }
        }
        let requester = &mut self.requester;
        let alive = matches!(self.state, State::ReadyToSend | State::Drained);
        if alive && requester.retry_at.is_none() && requester.rnr_until.is_none() {
            requester.restart_timer(host.now(), self.context.rto_min);
        }
    }

    /// New entries are begun only here.
    fn fetches(&self) -> bool {
        self.state == State::ReadyToSend && !self.suspended
    }

    fn step<H: Host>(&mut self, host: &mut H) -> Sent {
        let sends = matches!(self.state, State::ReadyToSend | State::Drained);
        if !sends || self.requester.rnr_until.is_some() {
            return Sent::Blocked;
        }
        if self.requester.send_op >= self.requester.ops.len() {
            // A failed entry ends the queue pair as soon as those in front
            // are over: nothing behind it begins.
            let failed = self
                .requester
                .ops
                .back()
                .is_some_and(|op| op.error.is_some());
            let full = self.requester.ops.len() >= self.context.sq_quanta as usize;
            if !self.fetches() || failed || full {
                return Sent::Blocked;
            }
            let Some(fetched) = self.fetch_send(host) else {
                return Sent::Blocked;
            };
            self.admit(host, fetched);
        }
        self.send_next(host)
    }

    /// Makes an operation of a fetched entry.
    fn admit<H: Host>(&mut self, host: &mut H, fetched: Fetched) {
        let index = fetched.index;
        let (wqe, mut error) = match fetched.entry {
            Ok(wqe) => (wqe, None),
            Err((error, opcode)) => {
                let code = match error {
                    WqeError::Opcode(_) => code::WQE_UNEXPECTED_OPCODE,
                    WqeError::Polarity { .. } => code::WQE_INVALID_FRAGMENT,
                    _ => code::WQE_INVALID_PARAMETER,
                };
                let wqe = SendWqe {
                    opcode,
                    quanta: 1,
                    signaled: fetched.signaled,
                    local_fence: false,
                    read_fence: false,
                    work: Work::Nop,
                };
                (wqe, Some(code))
            }
        };
        let length = match &wqe.work {
            Work::Send { data, .. } | Work::Write { data, .. } => data.total(),
            Work::Read { into, .. } => into.total(),
            _ => 0,
        };
        let on_wire = matches!(
            wqe.work,
            Work::Send { .. } | Work::Write { .. } | Work::Read { .. }
        );
        if error.is_none() {
            error = self.refuse(host, &wqe, length).err();
        }
        let packets = if on_wire && error.is_none() && self.service == Service::Rc {
            length.div_ceil(self.mtu() as u64).max(1) as u32
        } else {
            0
        };
        let fence = match wqe.work {
            Work::LocalInvalidate { .. } => Fence::All,
            _ if wqe.read_fence || wqe.local_fence => Fence::Reads,
            _ => Fence::None,
        };
        let first_psn = self.requester.next_psn;
        self.requester.next_psn = first_psn.add(packets);
        self.requester.ops.push_back(Op {
            index,
            wqe,
            first_psn,
            packets,
            length,
            received: 0,
            fence,
            started: false,
            done: false,
            error,
        });
        self.requester.send_packet = 0;
    }

    /// Whether an entry can be carried out at all.
    fn refuse<H: Host>(&mut self, host: &mut H, wqe: &SendWqe, length: u64) -> Result<(), u16> {
        if length > MAX_MESSAGE {
            return Err(code::WQE_INVALID_PARAMETER);
        }
        let ud = self.service == Service::Ud;
        match &wqe.work {
            Work::Nop => Ok(()),
            Work::Send { invalidate, .. } if ud && invalidate.is_some() => {
                Err(code::WQE_UNEXPECTED_OPCODE)
            }
            Work::Send { .. } => Ok(()),
            _ if ud => Err(code::WQE_UNEXPECTED_OPCODE),
            Work::Read { into, .. } => {
                if self.context.ord == 0 {
                    return Err(code::READ_WHILE_ORD_ZERO);
                }
                self.check_fragments(host, into, Right::LocalWrite)
            }
            Work::FastRegister(_) if !self.context.fast_reg_ok => Err(code::PRIV_OPERATION_DENIED),
            Work::BindWindow(_) if !self.context.bind_ok => Err(code::MWBIND_BIND_DISABLED),
            _ => Ok(()),
        }
    }

    /// Sends the next packet of the operation at the cursor.
    fn send_next<H: Host>(&mut self, host: &mut H) -> Sent {
        let at = self.requester.send_op;
        let Some(op) = self.requester.ops.get(at) else {
            return Sent::Blocked;
        };
        if op.error.is_some() {
            return Sent::Blocked;
        }
        if !op.started && !self.may_start(at) {
            return Sent::Blocked;
        }
        if op.done {
            // Sending went back past it; what it did is done.
            self.requester.send_op += 1;
            return Sent::More;
        }
        if op.packets == 0 {
            return self.run_local(host, at);
        }
        let psn = op.first_psn.add(self.requester.send_packet);
        let read = op.is_read();
        if !self.window_open(psn, read, op.packets) {
            return Sent::Blocked;
        }
        let Some(path) = self.path(host) else {
            self.requester.ops[at].error = Some(code::INVALID_ARP_ENTRY);
            return Sent::Blocked;
        };
        let packet = self.requester.send_packet;
        let sent = if read {
            self.send_read_request(host, &path, at)
        } else {
            self.send_data(host, &path, at, packet)
        };
        if let Err(code) = sent {
            self.requester.ops[at].error = Some(code);
            return Sent::Blocked;
        }
        let requester = &mut self.requester;
        // The time to wait for an answer begins with the last packet.
        requester.retry_at = None;
        let op = &mut requester.ops[at];
        op.started = true;
        let (packets, last_psn) = (op.packets, op.last_psn());
        let next = if read { last_psn } else { psn }.add(1);
        if requester.open_before(next) > requester.open_before(requester.sent) {
            requester.sent = next;
            // Its answer comes without being asked for, or it is the last.
            if requester.timed.is_none() && (read || requester.send_packet + 1 == packets) {
                requester.timed = Some((next.before(), host.now()));
            }
        } else {
            host.count(Counter::Retransmits);
        }
        requester.send_packet += 1;
        if read || requester.send_packet == packets {
            requester.send_op += 1;
            requester.send_packet = 0;
        }
        Sent::More
    }

    fn may_start(&self, at: usize) -> bool {
        let ops = &self.requester.ops;
        let fence_met = match ops[at].fence {
            Fence::None => true,
            Fence::Reads => ops
                .iter()
                .take(at)
                .all(|op| !op.is_read() || op.complete_read()),
            Fence::All => at == 0,
        };
        fence_met && (!ops[at].is_read() || self.requester.reads_under_way() < self.context.ord)
    }

    /// Packets that may be under way: no more than the context's congestion
    /// window and than the path bears, since a loss costs all that follows it.
    fn window(&self) -> i32 {
        let bears = self.requester.bears;
        match self.context.cwnd {
            0 => bears,
            cwnd => bears.min(cwnd.clamp(64, 1 << 14) as i32),
        }
    }

    fn window_open(&self, psn: Psn, read: bool, packets: u32) -> bool {
        let under_way = self.requester.open_before(psn);
        if read {
            // What comes back is what the path must bear. A READ alone is bounded by the number
            // space only.
            let bears = under_way == 0 || under_way < self.requester.bears as u32;
            bears && under_way + packets <= MAX_OPEN
        } else {
            under_way < self.window() as u32
        }
    }

    fn send_read_request<H: Host>(
        &mut self,
        host: &mut H,
        path: &Path,
        at: usize,
    ) -> Result<(), u16> {
        let op = &self.requester.ops[at];
        let Work::Read { address, rkey, .. } = op.wqe.work else {
            return Err(code::LOCAL_CATASTROPHIC);
        };
        let done = u64::from(op.received) * self.mtu() as u64;
        let mut bth = self.bth(Opcode::READ_REQUEST, op.first_psn.add(op.received));
        bth.ack_request = true;
        let ext = Ext {
            reth: Some(Reth {
                address: address.wrapping_add(done),
                rkey,
                length: (op.length - done) as u32,
            }),
            ..Ext::default()
        };
        let draft = host.draft(path, &bth, &ext, 0);
        host.transmit(draft.finish());
        host.count(Counter::ReadRequests);
        Ok(())
    }

    fn send_data<H: Host>(
        &mut self,
        host: &mut H,
        path: &Path,
        at: usize,
        packet: u32,
    ) -> Result<(), u16> {
        let mtu = self.mtu();
        let op = &self.requester.ops[at];
        let start = u64::from(packet) * mtu as u64;
        let len = (op.length - start).min(mtu as u64) as usize;
        let first = packet == 0;
        let last = packet + 1 == op.packets;
        let psn = op.first_psn.add(packet);
        let (opcode, ext, data, solicited) = match &op.wqe.work {
            Work::Send {
                data,
                imm,
                invalidate,
                solicited,
                ..
            } => {
                let opcode = match (first, last, imm.is_some(), invalidate.is_some()) {
                    (true, true, true, _) => Opcode::SEND_ONLY_IMM,
                    (true, true, _, true) => Opcode::SEND_ONLY_INV,
                    (true, true, ..) => Opcode::SEND_ONLY,
                    (true, ..) => Opcode::SEND_FIRST,
                    (_, true, true, _) => Opcode::SEND_LAST_IMM,
                    (_, true, _, true) => Opcode::SEND_LAST_INV,
                    (_, true, ..) => Opcode::SEND_LAST,
                    _ => Opcode::SEND_MIDDLE,
                };
                let ext = Ext {
                    imm: imm.filter(|_| last),
                    ieth: invalidate.filter(|_| last && imm.is_none()),
                    ..Ext::default()
                };
                (opcode, ext, data, *solicited)
            }
            Work::Write {
                data,
                imm,
                solicited,
                address,
                rkey,
            } => {
                let opcode = match (first, last, imm.is_some()) {
                    (true, true, true) => Opcode::WRITE_ONLY_IMM,
                    (true, true, false) => Opcode::WRITE_ONLY,
                    (true, false, _) => Opcode::WRITE_FIRST,
                    (false, true, true) => Opcode::WRITE_LAST_IMM,
                    (false, true, false) => Opcode::WRITE_LAST,
                    (false, false, _) => Opcode::WRITE_MIDDLE,
                };
                let ext = Ext {
                    reth: first.then_some(Reth {
                        address: *address,
                        rkey: *rkey,
                        length: op.length as u32,
                    }),
                    imm: imm.filter(|_| last),
                    ..Ext::default()
                };
                (opcode, ext, data, *solicited)
            }
            _ => return Err(code::LOCAL_CATASTROPHIC),
        };
        let mut bth = self.bth(opcode, psn);
        bth.solicited = solicited && last;
        let window_ends = psn.ahead_of(self.requester.una) + 1 >= self.window();
        bth.ack_request = last || psn.get() & 0x3f == 0x3f || window_ends;
        let mut draft = host.draft(path, &bth, &ext, len);
        self.gather(host, data, start, draft.payload_mut())?;
        host.transmit(draft.finish());
        host.count(if opcode.is_write() {
            Counter::WritePackets
        } else {
            Counter::SendPackets
        });
        Ok(())
    }

    pub(super) fn bth(&self, opcode: Opcode, psn: Psn) -> Bth {
        Bth::new(opcode, self.context.pkey, self.context.dest_qp, psn.get())
    }

    /// Carries out an operation that needs no answer.
    fn run_local<H: Host>(&mut self, host: &mut H, at: usize) -> Sent {
        let owner = self.owner();
        let op = &self.requester.ops[at];
        let result = match op.wqe.work {
            Work::LocalInvalidate { stag } => host.invalidate(&owner, stag, false),
            Work::FastRegister(ref register) => host.fast_register(&owner, register),
            Work::BindWindow(ref bind) => host.bind_window(&owner, bind),
            Work::Send { .. } if self.service == Service::Ud => self.send_datagram(host, at),
            _ => Ok(()),
        };
        let op = &mut self.requester.ops[at];
        match result {
            Ok(()) => op.done = true,
            Err(code) => op.error = Some(code),
        }
        op.started = true;
        let failed = op.error.is_some();
        if failed {
            return Sent::Blocked;
        }
        self.requester.send_op += 1;
        // What is over leaves at once, or a fence behind it would wait.
        self.finish(host);
        Sent::More
    }

    /// Completes the operations in front that are over.
    pub(super) fn finish<H: Host>(&mut self, host: &mut H) {
        while self.state != State::Error {
            let requester = &self.requester;
            let Some(op) = requester.ops.front() else {
                break;
            };
            if let Some(code) = op.error {
                let event = Event {
                    code,
                    source: Source::SendQueue,
                    wqe_index: op.index,
                };
                return self.fail(host, event);
            }
            let over = if op.packets == 0 {
                op.done
            } else if op.is_read() {
                op.complete_read()
            } else {
                requester.una.ahead_of(op.last_psn()) > 0
            };
            if !over {
                break;
            }
            let Some(op) = self.requester.ops.pop_front() else {
                break;
            };
            self.requester.send_op = self.requester.send_op.saturating_sub(1);
            if op.wqe.signaled {
                let completion = Completion {
                    send_queue: true,
                    opcode: op.wqe.opcode,
                    wqe_index: op.index,
                    length: op.length as u32,
                    error: None,
                    solicited: false,
                    imm: None,
                    invalidated: None,
                    source: None,
                };
                host.complete(self, &completion);
            }
        }
        if self.draining && self.requester.ops.is_empty() {
            self.draining = false;
            let event = Event {
                code: code::SUSPEND_COMPLETE,
                source: Source::Device,
                wqe_index: 0,
            };
            host.event(self, event);
        }
    }

    /// The oldest operation without an answer has failed.
    pub(super) fn fail_oldest<H: Host>(&mut self, host: &mut H, code: u16) {
        let una = self.requester.una;
        let oldest = self.requester.ops.iter_mut().find(|op| {
            op.packets > 0
                && una.ahead_of(op.last_psn()) <= 0
                && !(op.is_read() && op.complete_read())
        });
        if let Some(op) = oldest {
            op.error = Some(code);
        }
        self.finish(host);
    }

    pub(super) fn requester_timers<H: Host>(&mut self, host: &mut H) {
        let now = host.now();
        if self.requester.rnr_until.is_some_and(|at| at <= now) {
            self.requester.rnr_until = None;
            self.requester.retry_at = None;
        }
        // Nobody answers before the last packet was sent.
        let sending = self.requester.resume_at.is_some();
        if !sending && self.requester.retry_at.is_some_and(|at| at <= now) {
            self.requester.retry_at = None;
            self.requester.read_retry = None;
            let una = self.requester.una;
            self.retry(host, una);
        }
    }

    /// Sends again from `psn` on, if the peer may be asked once more.
    pub(super) fn retry<H: Host>(&mut self, host: &mut H, psn: Psn) {
        if self.requester.retries >= self.requester.retry_limit {
            self.fail_oldest(host, code::TOO_MANY_RETRIES);
            return;
        }
        self.requester.retries += 1;
        self.requester.narrow();
        self.requester.go_back(psn);
        let rto_min = self.context.rto_min;
        self.requester.restart_timer(host.now(), rto_min);
    }

    /// The peer was not ready to receive: wait, then send again.
    pub(super) fn wait_for_receiver<H: Host>(&mut self, host: &mut H, psn: Psn, wait: u64) {
        let requester = &mut self.requester;
        if requester.rnr_limit != RNR_FOREVER && requester.rnrs >= requester.rnr_limit {
            self.fail_oldest(host, code::TOO_MANY_RNRS);
            return;
        }
        requester.rnrs = requester.rnrs.saturating_add(1);
        requester.go_back(psn);
        requester.retry_at = None;
        requester.rnr_until = Some(host.now() + wait);
    }
}
