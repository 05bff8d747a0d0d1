// SPDX-License-Identifier: GPL-2.0
//! What no driver may do, whatever happened before: each must be recorded.

use super::{Fuzzer, Wrong};
use crate::rdma::layout;
use crate::rdma::wqe::op;
use crate::testing::pair::{entry, SQ_DOORBELL, STAG, VA};

/// Commands that are wrong in any state: about numbers that were never
/// committed, with bits that mean nothing, unknown.
const COMMANDS: [[u64; 8]; 10] = [
    [0, 0, 0, 0x3f << 32, 0, 0, 0, 0],
    [0, 0, 0, 0x0c << 32, 0, 0, 0, 0],
    [1, 0, 0, 0x24 << 32, 0, 0, 0, 0],
    [0, 0, 0, 0x24 << 32 | 1 << 20, 0, 0, 0, 0],
    // QP, CQ, region, address handle, ARP entry.
    [0, 0, 0, 3 << 48 | 1 << 60 | 0xffff, 0, 0, 0, 0],
    [64, 0, 0, 0x03 << 32 | 0x3_ffff, 0x10_0000, 0, 0, 0],
    [
        0,
        4096,
        0x3fff << 8,
        0x0a << 32 | 1 << 43 | 1 << 48,
        0,
        0,
        0,
        0,
    ],
    [0, 0, 0, 0x1c << 32 | 0xffff, 0, 0, 0, 0],
    [0, 0, 0, 0x0f << 32 | 1 << 42 | 0xfff, 0, 0, 0, 0],
    // A commit buffer of no length.
    [0, 0, 0, 0x21 << 32, 0, 0, 0, 0],
];

impl Fuzzer<'_> {
    pub(super) fn wrong(&mut self, port: usize) -> Wrong {
        // A fault would do something else with it.
        if let Some(faults) = self.machine().faults(port) {
            faults.clear();
        }
        let registers = &layout::E810.registers;
        let value = self.input.word() as u32;
        match self.input.byte() % 8 {
            0 => self.pair.write(port, SQ_DOORBELL, value | 0xffff),
            1 => {
                let arm = self
                    .input
                    .pick(&[registers.cq_arm, registers.user_page + 0x40]);
                self.pair.write(port, arm.into(), value | 0xffff);
            }
            2 => self
                .pair
                .write(port, registers.cq_ack.into(), value | 0xffff),
            3 => self
                .pair
                .write(port, registers.cqp_db.into(), value | 0xfff),
            4 => self
                .pair
                .write_named(port, "QTX_COMM_DBELL", 0, value | 0xffff),
            5 => return self.broken_entry(port),
            _ => {
                let words = self.input.pick(&COMMANDS);
                return self.post_command(port, words).is_some();
            }
        }
        true
    }

    /// A send entry that cannot be decoded, at the start of a new connection.
    fn broken_entry(&mut self, port: usize) -> Wrong {
        let Some(qp) = self.revive()[port] else {
            return false;
        };
        let mut words = entry(op::WRITE, 0, 16, STAG.into(), VA);
        // An opcode that does not exist, more fragments than an entry has.
        words[3] |= self.input.pick(&[0x3f << 32, 0xf << 38]);
        self.pair.post(port, qp, &words);
        self.pair.ring(port, qp);
        true
    }
}
