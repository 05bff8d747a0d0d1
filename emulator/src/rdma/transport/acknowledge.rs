// SPDX-License-Identifier: GPL-2.0
//! What comes back to the sending half: acknowledges and READ responses
//! (IBA 9.7.5 to 9.7.7).

use super::events::code;
use super::timers::rnr_time;
use super::{Counter, Endpoint, Host, Psn};
use crate::rdma::packet::{Opcode, Packet, Syndrome};
use crate::rdma::wqe::Work;

impl Endpoint {
    pub(super) fn response<H: Host>(&mut self, host: &mut H, packet: &Packet<'_>) {
        if self.state == super::State::ReadyToReceive {
            // Nothing was ever asked.
            host.count(Counter::Dropped);
            return;
        }
        let psn = Psn::new(packet.bth.psn);
        // One that was never sent is a stray; one before the oldest open one
        // an echo of what was sent twice.
        let echo = psn.ahead_of(self.requester.una) < 0;
        if !self.requester.is_open(psn) && !echo {
            host.count(Counter::Dropped);
            return;
        }
        match (packet.bth.opcode, packet.ext.aeth) {
            (Opcode::ACKNOWLEDGE, Some(aeth)) => self.acknowledge(host, psn, aeth.syndrome),
            (Opcode::ACKNOWLEDGE, None) => host.count(Counter::Dropped),
            _ => self.read_response(host, psn, packet),
        }
        self.pump(host);
    }

    fn acknowledge<H: Host>(&mut self, host: &mut H, psn: Psn, syndrome: Syndrome) {
        if psn.ahead_of(self.requester.una) < 0 {
            host.count(Counter::Duplicates);
            return;
        }
        match syndrome {
            Syndrome::Ack(_) => {
                self.acknowledged(host, psn.add(1));
            }
            Syndrome::Rnr(timer) => {
                host.count(Counter::RnrNaksReceived);
                if self.acknowledged(host, psn) {
                    self.wait_for_receiver(host, psn, rnr_time(timer));
                }
            }
            Syndrome::Sequence => {
                host.count(Counter::SequenceNaksReceived);
                if self.acknowledged(host, psn) {
                    self.retry(host, psn);
                }
            }
            Syndrome::InvalidRequest => self.refused(host, psn, code::INVALID_REQUEST),
            Syndrome::RemoteAccess => self.refused(host, psn, code::REMOTE_ACCESS_ERROR),
            Syndrome::RemoteOperational => self.refused(host, psn, code::REMOTE_OPERATION_ERROR),
            Syndrome::Other(_) => host.count(Counter::Dropped),
        }
    }

    /// The peer ended the connection at `psn`.
    fn refused<H: Host>(&mut self, host: &mut H, psn: Psn, code: u16) {
        if self.acknowledged(host, psn) {
            self.fail_oldest(host, code);
        }
    }

    /// All before `end` has arrived at the peer. A READ among it whose
    /// responses are missing was lost on the way back: it is asked for again,
    /// and the answer is false.
    fn acknowledged<H: Host>(&mut self, host: &mut H, end: Psn) -> bool {
        let missing = self
            .requester
            .ops
            .iter()
            .filter(|op| op.is_read() && !op.complete_read())
            .map(|op| op.first_psn.add(op.received))
            .find(|psn| psn.ahead_of(end) < 0);
        let reached = missing.unwrap_or(end);
        self.advance(host, reached);
        match missing {
            Some(psn) if self.requester.read_retry != Some(psn) => {
                self.requester.read_retry = Some(psn);
                self.retry(host, psn);
                false
            }
            Some(_) => false,
            None => true,
        }
    }

    /// Moves the oldest open sequence number up.
    fn advance<H: Host>(&mut self, host: &mut H, to: Psn) {
        let arrived = to.ahead_of(self.requester.una);
        if arrived <= 0 {
            return;
        }
        self.requester.una = to;
        self.requester.widen(arrived);
        self.requester.time_answer(to, host.now());
        self.requester.skip_to(to);
        let rto_min = self.context.rto_min;
        self.requester.progress(host.now(), rto_min);
        self.finish(host);
    }

    fn read_response<H: Host>(&mut self, host: &mut H, psn: Psn, packet: &Packet<'_>) {
        let open = self
            .requester
            .ops
            .iter()
            .position(|op| op.is_read() && op.packets > 0 && !op.complete_read());
        let Some(at) = open else {
            host.count(Counter::Duplicates);
            return;
        };
        let op = &self.requester.ops[at];
        let expected = op.first_psn.add(op.received);
        match psn.ahead_of(expected) {
            0 => {}
            ..0 => {
                host.count(Counter::Duplicates);
                return;
            }
            _ => {
                // A response in front of this one was lost.
                if self.requester.read_retry != Some(expected) {
                    self.requester.read_retry = Some(expected);
                    self.advance(host, expected);
                    self.retry(host, expected);
                }
                return;
            }
        }
        // What was asked before a READ is done when its response is there.
        self.advance(host, expected);
        let Some(at) = self
            .requester
            .ops
            .iter()
            .position(|op| op.is_read() && op.packets > 0 && !op.complete_read())
        else {
            return;
        };
        let mtu = self.mtu();
        let op = &self.requester.ops[at];
        let start = u64::from(op.received) * mtu as u64;
        let last = op.received + 1 == op.packets;
        let want = if last {
            (op.length - start) as usize
        } else {
            mtu
        };
        // Whether it is a first or middle one depends on where the peer began
        // when it was asked again; whether it is a last one does not.
        let says_last = packet.bth.opcode.ends_message();
        if packet.payload.len() != want || says_last != last {
            self.requester.ops[at].error = Some(code::RESPONSE_LENGTH);
            self.finish(host);
            return;
        }
        let Work::Read {
            into, invalidate, ..
        } = &op.wqe.work
        else {
            return;
        };
        let mut result = self.scatter(host, into, start, packet.payload);
        if last && result.is_ok() && *invalidate {
            if let Some(fragment) = into.as_slice().first() {
                let owner = self.owner();
                result = host.invalidate(&owner, fragment.stag, false);
            }
        }
        if let Err(code) = result {
            self.requester.ops[at].error = Some(code);
            self.finish(host);
            return;
        }
        self.requester.read_retry = None;
        self.requester.ops[at].received += 1;
        self.advance(host, psn.add(1));
    }
}
