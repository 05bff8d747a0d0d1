// SPDX-License-Identifier: GPL-2.0
//! Work requests and completions.

use super::objects::REGIONS;
use super::Fuzzer;
use crate::rdma::layout;
use crate::rdma::wqe::op;
use crate::testing::pair::{self, entry, CQ, LEN, SQ_DOORBELL, STAG, VA};

impl Fuzzer<'_> {
    /// An address and STag of data: good ones mostly.
    pub(super) fn piece(&mut self) -> (u64, u64, u64) {
        let len = match self.input.byte() % 8 {
            0 => self.input.below(LEN),
            1 => self.input.value() & 0x7fff_ffff,
            2 => 0,
            _ => self.input.below(3000),
        };
        let offset = self.input.below(LEN / 64) * 32;
        let (address, stag) = match self.input.byte() % 16 {
            0 => (self.input.word(), self.input.word() as u32),
            1 | 2 => (offset % pair::PAGED_LEN, pair::PAGED_STAG),
            3 => (VA + offset, pair::FAST_STAG | 5),
            4 => (VA + offset, pair::WINDOW | 7),
            5 => (self.input.word(), 0),
            6 => (VA + LEN - 16, STAG),
            7 => (offset % 9000, self.input.pick(&REGIONS)),
            8 => (VA + offset % (4 << 20), self.input.pick(&REGIONS)),
            _ => (VA + offset, STAG),
        };
        (address, len, stag.into())
    }

    /// A send entry, right or nearly so, and sometimes the doorbell.
    pub(super) fn work(&mut self, port: usize) {
        let qp = self.input.below(4) as usize;
        let opcode = match self.input.byte() % 16 {
            0 => self.input.byte() & 0x3f,
            n => [
                op::WRITE,
                op::READ,
                op::SEND,
                op::SEND_INV,
                op::SEND_SOL,
                op::SEND_SOL_INV,
                op::BIND_WINDOW,
                op::FAST_REGISTER,
                op::LOCAL_INV,
                op::READ_LOCAL_INV,
                op::NOP,
                op::WRITE_SOL,
                op::WRITE,
                op::READ,
                op::SEND,
                op::SEND,
            ][usize::from(n)],
        };
        let (address, len, stag) = self.piece();
        let mut quads = entry(opcode, 0, 0, 0, 0);
        quads[0] = address;
        quads[1] = 1 << 63 | len << 32 | stag;
        let (remote, _, rkey) = self.piece();
        (quads[2], quads[3]) = match opcode {
            op::BIND_WINDOW => {
                quads[1] = u64::from(STAG) << 32 | u64::from(pair::WINDOW | 7);
                (len, quads[3] | 0xc << 48 | 1 << 53)
            }
            op::FAST_REGISTER => {
                let data = self.pair.ports[port].data;
                quads[1] = data & !0xfff;
                let rights = 0xf << 48 | 1 << 53 | u64::from(pair::FAST_STAG | 5);
                (len.max(1), quads[3] | rights)
            }
            op::LOCAL_INV => {
                quads[1] = rkey;
                (0, quads[3])
            }
            _ if qp == 3 => (4 << 32 | 0x1234, quads[3] | u64::from(pair::HANDLE)),
            _ => (remote, quads[3] | rkey),
        };
        let quanta = match self.input.byte() % 8 {
            0 => 1 + self.input.below(8),
            _ => 1,
        };
        let mut words = quads.to_vec();
        for _ in 1..quanta {
            for _ in 0..2 {
                let (address, len, stag) = self.piece();
                words.extend([address, 1 << 63 | len << 32 | stag]);
            }
        }
        if quanta > 1 {
            words[3] |= (2 * (quanta - 1)) << 38;
        }
        if self.input.chance(8) {
            let at = self.input.below(words.len() as u64) as usize;
            words[at] ^= self.input.value();
        }
        if self.input.chance(4) {
            // Immediate data, inline data, fences.
            words[3] ^= 1 << self.input.pick(&[47, 57, 60, 61, 48, 52]);
        }
        self.place(port, qp, &words);
        if !self.input.chance(3) {
            self.pair.ring(port, qp);
        }
    }

    /// Puts a send entry into the ring with the valid bits that the ring wants.
    pub(super) fn place(&mut self, port: usize, qp: usize, words: &[u64]) {
        let live = &mut self.pair.ports[port].qps[qp];
        let at = live.sq_head % pair::SQ;
        let quanta = (words.len() as u64 / 4).min(pair::SQ - at);
        let flip = live.sq_head / pair::SQ % 2 == 1;
        live.sq_head += quanta;
        let base = live.rings.sq + at * 32;
        let mut words = words[..quanta as usize * 4].to_vec();
        if flip {
            words.iter_mut().skip(1).step_by(2).for_each(|word| {
                *word ^= 1 << 63;
            });
        }
        self.pair.put_words(port, base, &words);
    }

    pub(super) fn receive(&mut self, port: usize) {
        let qp = self.input.below(4) as usize;
        let offset = self.input.below(LEN / 64) * 32;
        let len = match self.input.byte() % 4 {
            0 => self.input.value() as u32 & 0x7fff_ffff,
            _ => 4096,
        };
        for _ in 0..self.input.below(8) {
            self.pair.post_receive(port, qp, offset, len);
        }
    }

    pub(super) fn completions(&mut self, port: usize) {
        if self.input.chance(4) {
            let shadow = self.pair.ports[port].cq.shadow;
            let value = self.input.value();
            self.pair.put_words(port, shadow, &[value]);
        } else {
            self.seen[port] = self.pair.consume(port, self.seen[port]);
        }
        let shadow = self.pair.ports[port].cq.shadow;
        let arm = 1 << 16 | self.input.below(4) << 14 | self.resizes[port] & 0x3fff;
        self.pair.put_words(port, shadow + 32, &[arm]);
        let registers = &layout::E810.registers;
        self.pair.write(port, registers.cq_arm.into(), CQ);
        self.pair
            .write(port, registers.aeq_alloc.into(), u32::from(port == 0));
    }

    pub(super) fn ring_all(&mut self, port: usize) {
        for qp in 0..4 {
            let id = self.pair.ports[port].qps[qp].id;
            self.pair.write(port, SQ_DOORBELL, id);
        }
    }
}
