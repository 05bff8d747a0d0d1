// SPDX-License-Identifier: GPL-2.0
//! Packets that belong to a connection: answers to requests that wait for
//! some, and requests where the responder is.

use std::sync::PoisonError;

use super::Fuzzer;
use crate::rdma::packet::{Aeth, Bth, Draft, Ext, Opcode, Reth, Syndrome};
use crate::rdma::wqe::op;
use crate::testing::pair::{entry, FAST_STAG, STAG, VA, WINDOW};
use crate::wire::{When, WireFaults};

impl Fuzzer<'_> {
    /// The number of the last request of `port` on this connection; the
    /// context of a new one has the number of the port above 8 zero bits.
    fn last_request(&self, port: usize, qp: usize) -> u32 {
        let id = self.pair.ports[port].qps[qp].id;
        let requests = self.requests.lock();
        let last = requests
            .unwrap_or_else(PoisonError::into_inner)
            .last(port, id);
        last.unwrap_or(((port as u32 + 1) << 8) - 1)
    }

    /// Something arrives that fits: answers to what `port` asked for, or
    /// what it may be asked next.
    pub(super) fn answer(&mut self, port: usize) {
        if self.input.chance(3) {
            self.revive();
        }
        let qp = self.input.below(3) as usize;
        if self.input.chance(4) {
            self.request(port, qp);
            return;
        }
        // What the peer really says gets lost: the requests wait.
        let loss = When {
            rate: 1.0,
            nth: vec![],
        };
        let faults = WireFaults {
            loss,
            ..WireFaults::default()
        };
        self.machine().wire().set_faults(1 - port, faults, 1);
        for _ in 0..=self.input.below(3) {
            let opcode = self.input.pick(&[op::READ, op::READ, op::WRITE, op::SEND]);
            let len = self.input.pick(&[0, 1, 100, 1024, 2048, 3000, 5000]);
            let third = VA + 0x8000;
            self.pair
                .post(port, qp, &entry(opcode, 0x1000, len, STAG.into(), third));
        }
        self.pair.ring(port, qp);
        let mut psn = self.last_request(port, qp);
        psn = psn.wrapping_sub(self.input.below(4) as u32);
        for _ in 0..=self.input.below(6) {
            self.response(port, qp, psn & 0xff_ffff);
            psn = match self.input.byte() % 8 {
                0 => psn,
                1 => psn.wrapping_sub(1),
                2 => psn.wrapping_add(self.input.below(1 << 16) as u32),
                3 => psn.wrapping_add(1 << 23),
                _ => psn.wrapping_add(1),
            };
        }
        if !self.input.chance(4) {
            let none = WireFaults::default();
            self.machine().wire().set_faults(1 - port, none, 1);
        }
    }

    fn response(&mut self, port: usize, qp: usize, psn: u32) {
        let opcode = Opcode(
            self.input
                .pick(&[0x0d, 0x0e, 0x0f, 0x10, 0x10, 0x11, 0x11, 0x11]),
        );
        let id = self.pair.ports[port].qps[qp].id;
        let aeth = Aeth {
            syndrome: self.input.pick(&[
                Syndrome::Ack(0x1f),
                Syndrome::Ack(0x1f),
                Syndrome::Ack(3),
                Syndrome::Rnr(1),
                Syndrome::Sequence,
                Syndrome::InvalidRequest,
                Syndrome::RemoteAccess,
                Syndrome::RemoteOperational,
                Syndrome::Other(0x7f),
            ]),
            msn: self.input.below(4) as u32,
        };
        let mut ext = Ext::default();
        let fits = opcode.layout().is_some_and(|layout| layout.aeth);
        ext.aeth = (fits != self.input.chance(16)).then_some(aeth);
        let payload = match opcode.0 {
            0x11 => self.input.pick(&[0, 0, 0, 4]),
            _ => self.input.pick(&[0, 1, 100, 904, 952, 1024, 1024, 1025]),
        };
        let path = self.path(port);
        let bth = Bth::new(opcode, 0xffff, id, psn);
        let frame = Draft::new(vec![], &path, &bth, &ext, payload).finish();
        self.arrive(port, frame);
    }

    /// A request with the number that the responder waits for, or nearly.
    fn request(&mut self, port: usize, qp: usize) {
        let id = self.pair.ports[port].qps[qp].id;
        let mut psn = self.last_request(1 - port, qp);
        self.pair.post_receive(port, qp, 0x2000, 4096);
        for _ in 0..=self.input.below(4) {
            psn = match self.input.byte() % 8 {
                0 => psn,
                1 => psn.wrapping_add(2),
                _ => psn.wrapping_add(1),
            } & 0xff_ffff;
            let opcodes = [
                0x04, 0x05, 0x0a, 0x0b, 0x0c, 0x16, 0x17, 0x17, 0x00, 0x02, 0x06, 0x08,
            ];
            let opcode = Opcode(self.input.pick(&opcodes));
            let layout = opcode.layout().unwrap_or_default();
            let (address, len, rkey) = self.piece();
            let payload = self.input.pick(&[0, 1, 100, 1024, 1024, 1025, 4096]);
            let length = match self.input.byte() % 4 {
                0 => len as u32,
                _ => payload as u32,
            };
            let reth = Reth {
                address,
                rkey: rkey as u32,
                length,
            };
            let stag = self.input.pick(&[FAST_STAG | 5, WINDOW | 7, STAG, 0]);
            let ext = Ext {
                reth: layout.reth.then_some(reth),
                imm: layout.imm.then_some(0x1234_5678),
                ieth: layout.ieth.then_some(stag),
                ..Ext::default()
            };
            let path = self.path(port);
            let mut bth = Bth::new(opcode, 0xffff, id, psn);
            bth.ack_request = self.input.chance(2);
            bth.solicited = self.input.chance(4);
            let frame = Draft::new(vec![], &path, &bth, &ext, payload).finish();
            self.arrive(port, frame);
        }
    }
}
