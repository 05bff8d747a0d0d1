// SPDX-License-Identifier: GPL-2.0
//! The receiving half of a connection: requests of the peer, in order
//! (IBA 9.7.3 to 9.7.5, 9.9.3).

use std::collections::VecDeque;

use super::events::code;
use super::fetch::Cursor;
use super::read_responses::{ReadJob, Replay};
use super::timers::RNR_CODE;
use super::{Access, Completion, Counter, Endpoint, Event, Host, Psn, Right, Source};
use crate::rdma::packet::{Aeth, Ext, Opcode, Packet, Reth, Syndrome};
use crate::rdma::wqe::{RecvWqe, WqeError};

/// The message that is being received. There is one a queue pair, so its
/// size does not matter, while a box would be an allocation a message.
#[derive(Debug, Default)]
#[allow(clippy::large_enum_variant)]
enum Message {
    #[default]
    None,
    Send {
        index: u32,
        entry: RecvWqe,
        received: u64,
    },
    Write {
        reth: Reth,
        received: u32,
    },
}

/// The state of the receiving half.
#[derive(Debug, Default)]
pub(super) struct Responder {
    pub(super) next_receive: Cursor,
    /// The sequence number expected next.
    pub(super) epsn: Psn,
    /// The last packet of the last complete message.
    complete_psn: Psn,
    /// Messages completed, 24 bits.
    pub(super) msn: u32,
    message: Message,
    /// A sequence NAK for `epsn` is out; no second one until it arrives.
    nak_sent: bool,
    /// READs that are being answered, in order.
    pub(super) reads: VecDeque<ReadJob>,
    /// READs that were answered, for duplicates.
    pub(super) replays: VecDeque<Replay>,
    /// An acknowledge that waits for the READ responses in front of it.
    pub(super) pending: Option<(Psn, Syndrome)>,
    /// The request that ends the connection, once the READs in front of it are
    /// answered, and its number. Nothing behind it is taken.
    pub(super) fatal: Option<(Psn, Fatal)>,
    /// More READ responses are to be sent at once.
    pub(super) resume_at: Option<u64>,
}

impl Responder {
    pub(super) fn start(&mut self, epsn: Psn) {
        *self = Self {
            next_receive: self.next_receive,
            epsn,
            complete_psn: epsn.before(),
            ..Self::default()
        };
    }

    pub(super) fn stop(&mut self) {
        self.reads.clear();
        self.pending = None;
        self.fatal = None;
        self.resume_at = None;
    }

    pub(super) fn deadline(&self) -> Option<u64> {
        self.resume_at
    }

    /// Drops a half-received message.
    pub(super) fn forget_message(&mut self) {
        self.message = Message::None;
    }

    /// Index of the receive entry that a half-received message holds.
    pub(super) fn open_receive(&self) -> Option<u32> {
        match self.message {
            Message::Send { index, .. } => Some(index),
            _ => None,
        }
    }
}

/// How a request ends the connection: what the peer is told, and the event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fatal {
    syndrome: Syndrome,
    code: u16,
    source: Source,
}

impl Fatal {
    /// A request that the protocol does not allow here.
    fn invalid(code: u16) -> Self {
        Self {
            syndrome: Syndrome::InvalidRequest,
            code,
            source: Source::InboundRequest,
        }
    }

    /// A request for memory that it may not reach.
    fn access(code: u16) -> Self {
        Self {
            syndrome: Syndrome::RemoteAccess,
            code,
            source: Source::InboundRequest,
        }
    }

    /// A fault of our own receive entry.
    fn receive(syndrome: Syndrome, code: u16) -> Self {
        Self {
            syndrome,
            code,
            source: Source::ReceiveQueue,
        }
    }
}

/// What becomes of a request in order.
enum Taken {
    /// It was carried out.
    Done,
    /// No receive entry: the peer shall come again.
    NotReady,
}

impl Endpoint {
    pub(super) fn request<H: Host>(&mut self, host: &mut H, packet: &Packet<'_>) {
        if self.responder.fatal.is_some() {
            host.count(Counter::Dropped);
            return;
        }
        let psn = Psn::new(packet.bth.psn);
        match psn.ahead_of(self.responder.epsn) {
            0 => {}
            1.. => {
                // Something in front was lost. One NAK says so, until the
                // missing one comes.
                if !self.responder.nak_sent {
                    self.responder.nak_sent = true;
                    host.count(Counter::SequenceNaksSent);
                    let epsn = self.responder.epsn;
                    self.answer(host, epsn, Syndrome::Sequence);
                } else {
                    host.count(Counter::Dropped);
                }
                return;
            }
            _ => {
                host.count(Counter::Duplicates);
                self.duplicate(host, psn, packet);
                return;
            }
        }
        self.responder.nak_sent = false;
        let taken = match packet.bth.opcode {
            Opcode::READ_REQUEST => self.take_read(host, packet),
            opcode if opcode.is_send() => self.take_send(host, packet),
            opcode if opcode.is_write() => self.take_write(host, packet),
            _ => Err(Fatal::invalid(code::UNEXPECTED_OPCODE)),
        };
        match taken {
            Ok(Taken::Done) => {}
            Ok(Taken::NotReady) => {
                // What is already on its way behind it is dropped quietly.
                self.responder.nak_sent = true;
                host.count(Counter::RnrNaksSent);
                self.answer(host, psn, Syndrome::Rnr(RNR_CODE));
            }
            // The answers in front of it first.
            Err(fatal) if self.responder.reads.is_empty() => self.end(host, psn, fatal),
            Err(fatal) => self.responder.fatal = Some((psn, fatal)),
        }
    }

    /// Ends the connection: the peer is told, and the driver.
    pub(super) fn end<H: Host>(&mut self, host: &mut H, psn: Psn, fatal: Fatal) {
        self.send_answer(host, psn, fatal.syndrome);
        let event = Event {
            code: fatal.code,
            source: fatal.source,
            wqe_index: match fatal.source {
                Source::ReceiveQueue => self.receive_at_fault(),
                _ => 0,
            },
        };
        self.fail(host, event);
    }

    /// The receive entry that an error is about.
    fn receive_at_fault(&self) -> u32 {
        let next = self.responder.next_receive.index;
        self.responder.open_receive().unwrap_or(next)
    }

    /// A packet that was carried out before: answered again, not carried out.
    fn duplicate<H: Host>(&mut self, host: &mut H, psn: Psn, packet: &Packet<'_>) {
        if packet.bth.opcode == Opcode::READ_REQUEST {
            if let Some(reth) = packet.ext.reth {
                self.replay_read(host, psn, &reth);
            }
        } else if packet.bth.ack_request {
            // Soft-RoCE, told of half a message, goes on with a first packet
            // in its middle; so say no more than was asked. Say no less about
            // the message that is open: a peer whose window is full of packets
            // that arrived before would not get any further (IBA C9-105).
            let Responder {
                epsn, complete_psn, ..
            } = self.responder;
            let in_open_message = epsn.since(psn) < epsn.since(complete_psn);
            let last = if in_open_message { psn } else { complete_psn };
            self.answer(host, last, Syndrome::Ack(0x1f));
        }
    }

    fn take_send<H: Host>(&mut self, host: &mut H, packet: &Packet<'_>) -> Result<Taken, Fatal> {
        let opcode = packet.bth.opcode;
        host.count(Counter::SendPacketsReceived);
        if opcode.starts_message() {
            if !matches!(self.responder.message, Message::None) {
                return Err(Fatal::invalid(code::UNEXPECTED_OPCODE));
            }
            let Some(entry) = self.ready_receive(host)? else {
                return Ok(Taken::NotReady);
            };
            let index = self.take_receive();
            self.responder.message = Message::Send {
                index,
                entry,
                received: 0,
            };
        }
        let Message::Send {
            index,
            entry,
            received,
        } = self.responder.message
        else {
            return Err(Fatal::invalid(code::UNEXPECTED_OPCODE));
        };
        self.check_length(packet, opcode)?;
        let len = packet.payload.len() as u64;
        if received + len > entry.fragments.total() {
            return Err(Fatal::receive(
                Syndrome::InvalidRequest,
                code::MESSAGE_TOO_LONG,
            ));
        }
        self.scatter(host, &entry.fragments, received, packet.payload)
            .map_err(|code| Fatal::receive(Syndrome::RemoteOperational, code))?;
        let received = received + len;
        if !opcode.ends_message() {
            self.responder.message = Message::Send {
                index,
                entry,
                received,
            };
            self.advance_request(host, packet);
            return Ok(Taken::Done);
        }
        if let Some(rkey) = packet.ext.ieth {
            let owner = self.owner();
            host.invalidate(&owner, rkey, true)
                .map_err(|code| Fatal::receive(Syndrome::RemoteOperational, code))?;
        }
        self.responder.message = Message::None;
        self.complete_receive(host, packet, index, received as u32);
        self.end_message(host, packet);
        Ok(Taken::Done)
    }

    fn take_write<H: Host>(&mut self, host: &mut H, packet: &Packet<'_>) -> Result<Taken, Fatal> {
        let opcode = packet.bth.opcode;
        host.count(Counter::WritePacketsReceived);
        if let Some(reth) = packet.ext.reth {
            if !matches!(self.responder.message, Message::None) {
                return Err(Fatal::invalid(code::UNEXPECTED_OPCODE));
            }
            self.check_remote(host, &reth, Right::RemoteWrite)?;
            self.responder.message = Message::Write { reth, received: 0 };
        }
        let Message::Write { reth, received } = self.responder.message else {
            return Err(Fatal::invalid(code::UNEXPECTED_OPCODE));
        };
        self.check_length(packet, opcode)?;
        let last = opcode.ends_message();
        let end = u64::from(received) + packet.payload.len() as u64;
        let length = u64::from(reth.length);
        if end > length || last != (end == length) {
            return Err(Fatal::invalid(code::INVALID_WRITE_OR_RESPONSE));
        }
        // The receive entry that immediate data takes must be there before
        // anything is done.
        if packet.ext.imm.is_some() && self.ready_receive(host)?.is_none() {
            if opcode.starts_message() {
                self.responder.message = Message::None;
            }
            return Ok(Taken::NotReady);
        }
        if !packet.payload.is_empty() {
            let access = Access {
                owner: self.owner(),
                stag: reth.rkey,
                address: reth.address.wrapping_add(u64::from(received)),
                right: Right::RemoteWrite,
            };
            host.store(&access, packet.payload).map_err(Fatal::access)?;
        }
        if !last {
            self.responder.message = Message::Write {
                reth,
                received: end as u32,
            };
            self.advance_request(host, packet);
            return Ok(Taken::Done);
        }
        self.responder.message = Message::None;
        if packet.ext.imm.is_some() {
            let index = self.take_receive();
            self.complete_receive(host, packet, index, reth.length);
        }
        self.end_message(host, packet);
        Ok(Taken::Done)
    }

    fn take_read<H: Host>(&mut self, host: &mut H, packet: &Packet<'_>) -> Result<Taken, Fatal> {
        host.count(Counter::ReadRequestsReceived);
        let Some(reth) = packet.ext.reth else {
            return Err(Fatal::invalid(code::INVALID_READ_REQUEST));
        };
        if !matches!(self.responder.message, Message::None) || !packet.payload.is_empty() {
            return Err(Fatal::invalid(code::INVALID_READ_REQUEST));
        }
        if reth.length > 1 << 31 {
            return Err(Fatal::invalid(code::INVALID_READ_REQUEST));
        }
        if self.responder.reads.len() >= self.context.ird.max(1) as usize {
            return Err(Fatal::invalid(code::READ_QUEUE_FULL));
        }
        self.check_remote(host, &reth, Right::RemoteRead)?;
        let psn = self.responder.epsn;
        let packets = reth.length.div_ceil(self.mtu() as u32).max(1);
        self.responder.epsn = psn.add(packets);
        self.responder.complete_psn = self.responder.epsn.before();
        self.responder.msn = (self.responder.msn + 1) & 0xff_ffff;
        self.start_read(host, psn, packets, reth);
        Ok(Taken::Done)
    }

    /// Rights and bounds of a peer's access. Of no bytes, nothing is asked
    /// (IBA 9.7.4.1.5).
    fn check_remote<H: Host>(
        &mut self,
        host: &mut H,
        reth: &Reth,
        right: Right,
    ) -> Result<(), Fatal> {
        let allowed = match right {
            Right::RemoteRead => self.context.read_ok,
            _ => self.context.write_ok,
        };
        if !allowed {
            return Err(Fatal::access(code::AMP_RIGHTS_VIOLATION));
        }
        if reth.length == 0 {
            return Ok(());
        }
        // STag 0 is never a peer's to use.
        if reth.rkey == 0 {
            return Err(Fatal::access(code::AMP_INVALID_STAG));
        }
        let access = Access {
            owner: self.owner(),
            stag: reth.rkey,
            address: reth.address,
            right,
        };
        host.check(&access, u64::from(reth.length))
            .map_err(Fatal::access)
    }

    /// First and middle packets are full, last ones not empty (IBA 9.7.4.1.6).
    fn check_length(&self, packet: &Packet<'_>, opcode: Opcode) -> Result<(), Fatal> {
        let (len, mtu) = (packet.payload.len(), self.mtu());
        let right = match (opcode.starts_message(), opcode.ends_message()) {
            (true, true) => len <= mtu,
            (false, true) => len >= 1 && len <= mtu,
            _ => len == mtu,
        };
        if right {
            Ok(())
        } else {
            Err(Fatal::invalid(code::UNEXPECTED_OPCODE))
        }
    }

    /// The receive entry at the cursor, if the driver has posted one.
    fn ready_receive<H: Host>(&mut self, host: &mut H) -> Result<Option<RecvWqe>, Fatal> {
        match self.peek_receive(host) {
            None => Ok(None),
            Some(Ok(entry)) => Ok(Some(entry)),
            Some(Err(error)) => Err(Fatal::receive(
                Syndrome::RemoteOperational,
                receive_error(error),
            )),
        }
    }

    fn complete_receive<H: Host>(
        &mut self,
        host: &mut H,
        packet: &Packet<'_>,
        index: u32,
        length: u32,
    ) {
        let completion = Completion {
            send_queue: false,
            opcode: packet.bth.opcode.0 & 0x3f,
            wqe_index: index,
            length,
            error: None,
            solicited: packet.bth.solicited,
            imm: packet.ext.imm,
            invalidated: packet.ext.ieth,
            source: None,
        };
        host.complete(self, &completion);
    }

    /// The packet at the expected place was carried out.
    fn advance_request<H: Host>(&mut self, host: &mut H, packet: &Packet<'_>) {
        let psn = self.responder.epsn;
        self.responder.epsn = psn.add(1);
        if packet.bth.ack_request {
            self.answer(host, psn, Syndrome::Ack(0x1f));
        }
    }

    fn end_message<H: Host>(&mut self, host: &mut H, packet: &Packet<'_>) {
        self.responder.msn = (self.responder.msn + 1) & 0xff_ffff;
        self.responder.complete_psn = self.responder.epsn;
        self.advance_request(host, packet);
    }

    /// Acknowledges, or not: behind the READ responses that come before it.
    pub(super) fn answer<H: Host>(&mut self, host: &mut H, psn: Psn, syndrome: Syndrome) {
        if self.responder.reads.is_empty() {
            self.send_answer(host, psn, syndrome);
        } else {
            self.responder.pending = Some((psn, syndrome));
        }
    }

    pub(super) fn send_answer<H: Host>(&mut self, host: &mut H, psn: Psn, syndrome: Syndrome) {
        let Some(path) = self.path(host) else {
            return;
        };
        let bth = self.bth(Opcode::ACKNOWLEDGE, psn);
        let ext = Ext {
            aeth: Some(Aeth {
                syndrome,
                msn: self.responder.msn,
            }),
            ..Ext::default()
        };
        let draft = host.draft(&path, &bth, &ext, 0);
        host.transmit(draft.finish());
    }
}

/// The event code of a receive entry that cannot be used.
pub(super) fn receive_error(error: WqeError) -> u16 {
    match error {
        WqeError::Polarity { .. } => code::WQE_INVALID_FRAGMENT,
        _ => code::WQE_INVALID_PARAMETER,
    }
}
