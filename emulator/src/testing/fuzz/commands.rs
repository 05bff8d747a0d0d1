// SPDX-License-Identifier: GPL-2.0
//! Commands of the control queue.

use std::sync::PoisonError;

use super::{objects, Fuzzer};
use crate::rdma::cqp::Opcode as Command;
use crate::rdma::layout;
use crate::rdma::testbench::Driver;
use crate::testing::pair::{self, place};

/// The rings of a queue pair are lists of pages.
const QP_PAGED: u64 = 1 << 45;

/// Codes of the control queue's commands.
const CODES: [u8; 38] = [
    0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x09, 0x0a, 0x0b, 0x0d, 0x0e, 0x0f, 0x11, 0x12, 0x13, 0x14,
    0x16, 0x18, 0x19, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x24, 0x26, 0x27, 0x28, 0x29,
    0x2a, 0x2b, 0x2c, 0x2d, 0x2e, 0x2f,
];

impl Fuzzer<'_> {
    /// An address that the device knows, or one that it must not touch.
    pub(super) fn address(&mut self, port: usize) -> u64 {
        let port = &self.pair.ports[port];
        let rings = port.qps[self.input.below(4) as usize].rings;
        let known = [
            place::SCRATCH,
            place::SCRATCH + 8,
            rings.context,
            rings.sq,
            rings.rq,
            rings.shadow,
            port.cq.ring,
            port.cq.shadow,
            port.data,
            port.pbles,
            port.aeq,
        ];
        match self.input.byte() % 4 {
            0 => self.input.word(),
            1 => place::SCRATCH + self.input.below(1 << 16),
            _ => self.input.pick(&known),
        }
    }

    /// A control-queue command: its fields are random where it has any.
    pub(super) fn command(&mut self, port: usize) {
        let code = match self.input.byte() % 8 {
            0 => self.input.byte() & 0x3f,
            _ => self.input.pick(&CODES),
        };
        let allowed = Command::from_code(code).map_or([u64::MAX; 8], Command::allowed);
        let mut words = [0; 8];
        for (word, allowed) in words.iter_mut().zip(allowed) {
            let value = match self.input.byte() % 4 {
                0 => 0,
                1 => self.address(port),
                _ => self.input.value(),
            };
            *word = value & allowed;
            if self.input.chance(32) {
                *word ^= self.input.value();
            }
        }
        words[3] &= !(0x3f << 32);
        words[3] |= u64::from(code) << 32;
        if self.input.chance(2) {
            words[3] = words[3] & !0xff_ffff | self.input.pick(&[0, 1, 3, 4, 8, 9]);
        }
        self.post_command(port, words);
    }

    /// Posts a command. Gives whether it succeeded, if it was executed now.
    pub(super) fn post_command(&mut self, port: usize, mut words: [u64; 8]) -> Option<bool> {
        let registers = &layout::E810.registers;
        let (at, head, polarity) = self.pair.ports[port].cqp;
        words[3] = words[3] & !(1 << 63) | u64::from(polarity) << 63;
        self.pair.put_words(port, at, &words);
        let base = if head == 0 { at - 63 * 64 } else { at + 64 };
        self.pair.ports[port].cqp = (base, (head + 1) % 64, polarity ^ (head == 0));
        let before = self.pair.read(port, registers.cqp_tail.into());
        self.pair.write(port, registers.cqp_db.into(), head);
        let tail = self.pair.read(port, registers.cqp_tail.into());
        let executed = before & 0x7ff != head && tail & 0x7ff == head;
        executed.then_some(tail >> 31 == 0)
    }

    pub(super) fn queue_pair_command(&mut self, port: usize) {
        let number = self.input.below(4) as usize;
        let live = self.pair.ports[port].qps[number];
        let kind = if live.id == pair::UD_QP { 4 } else { 3 };
        let next = self.input.below(8);
        let code = self.input.pick(&[0, 1, 1, 1, 2, 0x22, 0x29, 0x2a, 0x13]);
        let mut words = match code {
            0x22 => {
                let codes = self.input.word();
                let flags = 7 << 60;
                let header = u64::from(live.id) | code << 32 | flags;
                [0, 0, codes, header, 0, 0, 0, 0]
            }
            0x29 | 0x2a => [0, 0, 0, u64::from(live.id) | code << 32, 0, 0, 0, 0],
            0x13 => {
                let header = u64::from(live.id) | code << 32 | kind << 48;
                [0, 0, place::SCRATCH, header, 0, 0, 0, 0]
            }
            _ => Driver::qp_command(code, live.id, kind, next, live.rings),
        };
        if self.paged[port].get(number) == Some(&true) && code < 2 {
            words[3] |= QP_PAGED;
        }
        if self.input.chance(4) {
            let at = live.rings.context + self.input.below(32) * 8;
            let value = self.input.value();
            self.pair.put_words(port, at, &[value]);
        }
        self.post_command(port, words);
    }

    /// Makes a connection anew, so that there is one that works: sometimes in
    /// rings that are lists of pages, or with numbers that soon wrap. Gives its
    /// place in the list for each port where all went well.
    pub(super) fn revive(&mut self) -> [Option<usize>; 2] {
        let qp = self.input.below(3) as usize;
        let starts = match self.input.byte() % 4 {
            0 => Some([0xff_fffe, 0xff_fff0]),
            _ => None,
        };
        let paged = self.input.chance(4);
        [0, 1].map(|port| {
            let live = self.pair.ports[port].qps[qp];
            let kind = 3;
            self.post_command(port, Driver::qp_command(2, live.id, kind, 0, live.rings));
            self.paged[port][qp] = paged;
            let (pbles, [sq, rq]) = objects::paged_rings(qp);
            if paged {
                self.list_pool(port);
                let rings = &mut self.pair.ports[port].qps[qp].rings;
                (rings.sq, rings.rq) = (sq, rq);
            }
            self.pair.reset_qp(port, qp);
            let live = self.pair.ports[port].qps[qp];
            let context = live.rings.context;
            if paged {
                self.pair.put_words(port, context + 8, &pbles);
            }
            let own = starts.map_or((port as u64 + 1) << 8, |starts| starts[port]);
            if let Some(starts) = starts {
                let words = [own, starts[1 - port], own | own << 32];
                self.pair.put_words(port, context + 80, &words);
            }
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.start(port, live.id, own as u32);
            drop(requests);
            let mut good = true;
            for (code, next) in [(0, 1), (1, 4), (1, 2)] {
                let mut words = Driver::qp_command(code, live.id, kind, next, live.rings);
                words[3] |= if paged { QP_PAGED } else { 0 };
                good &= self.post_command(port, words) == Some(true);
            }
            good.then_some(qp)
        })
    }
}
