// SPDX-License-Identifier: GPL-2.0
//! Listens to what the ports ask of each other, so that answers that no peer
//! gave can fit. It reads the capture of the wire.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use crate::rdma::packet::is_roce;

/// The number (PSN) of the last request that a port sent to a connected queue
/// pair of the other one, by port and queue pair.
#[derive(Default)]
pub(super) struct Requests {
    last: BTreeMap<(usize, u32), u32>,
}

impl Requests {
    /// The last one, if there was any.
    pub(super) fn last(&self, port: usize, qp: u32) -> Option<u32> {
        self.last.get(&(port, qp)).copied()
    }

    /// The connection starts anew, with this number.
    pub(super) fn start(&mut self, port: usize, qp: u32, psn: u32) {
        self.last
            .insert((port, qp), psn.wrapping_sub(1) & 0xff_ffff);
    }

    fn frame(&mut self, frame: &[u8]) {
        // Untagged IPv4, as the connections have it: a BTH after 42 bytes. The
        // last byte of the sender's address is the port's number from 1 on.
        let (true, Some([8, 0]), Some(bth)) =
            (is_roce(frame), frame.get(12..14), frame.get(42..54))
        else {
            return;
        };
        let (opcode, sender) = (bth[0], frame[11]);
        if !matches!(opcode, 0x00..=0x0c | 0x16 | 0x17) || !matches!(sender, 1 | 2) {
            return;
        }
        let number = |at: usize| u32::from_be_bytes([0, bth[at], bth[at + 1], bth[at + 2]]);
        let key = (usize::from(sender) - 1, number(5));
        self.last.insert(key, number(9));
    }
}

/// Takes a capture in, packet by packet.
pub(super) struct Tap {
    bytes: Vec<u8>,
    started: bool,
    requests: Arc<Mutex<Requests>>,
}

impl Tap {
    pub(super) fn new(requests: Arc<Mutex<Requests>>) -> Self {
        Tap {
            bytes: vec![],
            started: false,
            requests,
        }
    }
}

impl Write for Tap {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        /// Bytes of the head of the capture, and of the head of a packet.
        const FILE: usize = 24;
        const PACKET: usize = 16;
        self.bytes.extend_from_slice(bytes);
        if !self.started && self.bytes.len() >= FILE {
            self.bytes.drain(..FILE);
            self.started = true;
        }
        while self.started {
            let Some(&[a, b, c, d]) = self.bytes.get(8..12) else {
                break;
            };
            // No frame is longer than 64 KiB: the other order of bytes shows.
            let len = u32::from_le_bytes([a, b, c, d]);
            let len = if len >> 16 == 0 {
                len
            } else {
                len.swap_bytes()
            } as usize;
            let Some(frame) = self.bytes.get(PACKET..PACKET + len) else {
                break;
            };
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.frame(frame);
            drop(requests);
            self.bytes.drain(..PACKET + len);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
