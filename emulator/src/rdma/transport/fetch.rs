// SPDX-License-Identifier: GPL-2.0
//! Taking entries off the work queues.
//!
//! There is no count of posted entries: the device follows the valid bits.
//! The driver rings the doorbell only if the tail that the device published
//! says that it had stopped, so the published tail must be followed by one
//! more look; the receive queue has no doorbell at all.

use super::{Endpoint, Host, Queue};
use crate::rdma::wqe::{decode_rq, decode_sq, Header, RecvWqe, SendWqe, WqeError};
use crate::rdma::wqe::{CHUNK, MAX_QUANTA, QUANTUM};

/// A place in a work queue, in quanta, and the valid bit expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) index: u32,
    pub(super) polarity: bool,
}

impl Default for Cursor {
    fn default() -> Self {
        Self {
            index: 0,
            polarity: true,
        }
    }
}

impl Cursor {
    /// Moves on by `quanta`, which do not go past the end of the ring.
    pub(super) fn advance(&mut self, quanta: u32, ring_quanta: u32) {
        self.index += quanta;
        if self.index >= ring_quanta {
            self.index = 0;
            self.polarity = !self.polarity;
        }
    }
}

/// A send entry as it was found.
pub(super) struct Fetched {
    pub(super) index: u32,
    /// What the entry says, or why it cannot be carried out and its opcode.
    pub(super) entry: Result<SendWqe, (WqeError, u8)>,
    pub(super) signaled: bool,
}

impl Endpoint {
    /// Whether a valid entry is at the send cursor.
    pub(super) fn send_entry_waits<H: Host>(&mut self, host: &mut H) -> bool {
        let mut first = [0; QUANTUM];
        let cursor = self.requester.tail;
        host.read_queue(self.number, Queue::Send, cursor.index, &mut first)
            && Header::of(&first).valid() == cursor.polarity
    }

    /// Takes the next send entry, if there is a valid one.
    pub(super) fn fetch_send<H: Host>(&mut self, host: &mut H) -> Option<Fetched> {
        let cursor = self.requester.tail;
        let index = cursor.index;
        let ring_quanta = self.context.sq_quanta;
        let mut bytes = [0; MAX_QUANTA * QUANTUM];
        let (first, _) = bytes.split_at_mut(QUANTUM);
        if !host.read_queue(self.number, Queue::Send, index, first) {
            return None;
        }
        let header = Header::of(bytes[..QUANTUM].try_into().ok()?);
        if header.valid() != cursor.polarity {
            return None;
        }
        let quanta = header.send_quanta();
        let fits = quanta <= MAX_QUANTA && index as usize + quanta <= ring_quanta as usize;
        let entry = if !fits {
            Err(WqeError::Overrun)
        } else {
            let (_, rest) = bytes.split_at_mut(QUANTUM);
            let rest = &mut rest[..(quanta - 1) * QUANTUM];
            for (quantum, at) in rest.chunks_mut(QUANTUM).zip(index + 1..) {
                if !host.read_queue(self.number, Queue::Send, at, quantum) {
                    return None;
                }
            }
            if index as usize % CHUNK + quanta > CHUNK {
                Err(WqeError::Chunk)
            } else {
                decode_sq(&bytes[..quanta * QUANTUM])
            }
        };
        let length = if fits { quanta } else { 1 };
        host.trace_wqe(self.number, Queue::Send, index, &bytes[..length * QUANTUM]);
        self.requester.tail.advance(length as u32, ring_quanta);
        if let Err(error) = &entry {
            host.violation(
                "wqe",
                format_args!("QP {} send entry {index}: {error:?}", self.number),
            );
        }
        Some(Fetched {
            index,
            entry: entry.map_err(|error| (error, header.opcode())),
            signaled: header.0 >> 62 & 1 != 0,
        })
    }

    /// The entry at the receive cursor, without taking it. `None`: the driver
    /// has posted none.
    pub(super) fn peek_receive<H: Host>(
        &mut self,
        host: &mut H,
    ) -> Option<Result<RecvWqe, WqeError>> {
        let cursor = self.responder.next_receive;
        let size = self.context.rq_wqe_size as usize;
        let mut bytes = [0; MAX_QUANTA * QUANTUM];
        // The header first: the rest may be half written until it is valid.
        let first = &mut bytes[..QUANTUM];
        if !host.read_queue(self.number, Queue::Receive, cursor.index, first) {
            return None;
        }
        let header = Header::of(bytes[..QUANTUM].try_into().ok()?);
        if header.valid() != cursor.polarity {
            return None;
        }
        let whole = bytes.get_mut(..size)?;
        for (quantum, at) in whole.chunks_mut(QUANTUM).zip(cursor.index..) {
            if !host.read_queue(self.number, Queue::Receive, at, quantum) {
                return None;
            }
        }
        host.trace_wqe(self.number, Queue::Receive, cursor.index, &bytes[..size]);
        let entry = decode_rq(&bytes[..size]);
        if let Err(error) = &entry {
            host.violation(
                "wqe",
                format_args!(
                    "QP {} receive entry {}: {error:?}",
                    self.number, cursor.index
                ),
            );
        }
        Some(entry)
    }

    /// Takes the entry that [`Self::peek_receive`] showed; gives its index.
    pub(super) fn take_receive(&mut self) -> u32 {
        let index = self.responder.next_receive.index;
        let quanta = self.context.rq_wqe_size / QUANTUM as u32;
        let ring_quanta = self.context.rq_quanta;
        self.responder.next_receive.advance(quanta, ring_quanta);
        index
    }

    /// Publishes how far the send queue was taken, if that is news. Gives
    /// true if an entry turned up meanwhile, whose doorbell may not come.
    pub(super) fn publish_tail<H: Host>(&mut self, host: &mut H) -> bool {
        let tail = self.requester.tail.index;
        if self.requester.published == Some(tail) {
            return false;
        }
        self.requester.published = Some(tail);
        host.write_tail(self.number, tail);
        self.send_entry_waits(host)
    }

    /// Takes everything off the send queue; gives index and opcode of the
    /// oldest entry that was not completed.
    pub(in crate::rdma) fn empty_send_queue<H: Host>(&mut self, host: &mut H) -> Option<(u32, u8)> {
        let mut oldest = self
            .requester
            .ops
            .front()
            .map(|op| (op.index, op.wqe.opcode));
        self.requester.forget_ops();
        for _ in 0..self.context.sq_quanta {
            let Some(fetched) = self.fetch_send(host) else {
                break;
            };
            let opcode = match fetched.entry {
                Ok(wqe) => wqe.opcode,
                Err((_, opcode)) => opcode,
            };
            oldest.get_or_insert((fetched.index, opcode));
        }
        self.publish_tail(host);
        oldest
    }

    /// Takes everything off the receive queue; gives the oldest entry's index.
    pub(in crate::rdma) fn empty_receive_queue<H: Host>(&mut self, host: &mut H) -> Option<u32> {
        let mut oldest = self.responder.open_receive();
        self.responder.forget_message();
        for _ in 0..self.context.rq_quanta {
            if self.peek_receive(host).is_none() {
                break;
            }
            let index = self.take_receive();
            oldest.get_or_insert(index);
        }
        oldest
    }
}
