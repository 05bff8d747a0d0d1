// SPDX-License-Identifier: GPL-2.0
//! Whatever happened, a reset makes a function new.

use super::Fuzzer;
use crate::rdma::layout;
use crate::testing::pair::place;

/// Frames that may wait on the wire after an access: what one event adds at
/// most before the wire is looked at again.
pub(super) const QUEUED: usize = 16 << 10;

impl Fuzzer<'_> {
    /// Both functions come back from a reset and work.
    pub(super) fn survives(&mut self) {
        let mut polls = 0;
        while let Some(at) = self.machine().next_deadline().filter(|_| polls < 100) {
            self.pair.now = self.pair.now.max(at);
            let now = self.pair.now;
            self.machine().poll(now);
            polls += 1;
        }
        assert!(self.machine().wire().queued() <= QUEUED, "frames heap up");
        for port in 0..2 {
            let now = self.pair.now;
            if let Some(faults) = self.machine().faults(port) {
                faults.clear();
            }
            self.machine().reset(port, now);
            self.pair.start_admin_queue(port);
            assert_eq!(self.pair.admin(port, 0x0001, &[], &[]), 0);
            let (context, ring) = (place::SCRATCH, place::SCRATCH + 0x1000);
            let words = [0x500 | (2 << 3), ring, 1, 0x77, 1 << 16, 0, 0, 0];
            self.pair.put_words(port, context, &words);
            let registers = &layout::E810.registers;
            self.pair.write(port, registers.ccqp_high.into(), 0);
            self.pair
                .write(port, registers.ccqp_low.into(), context as u32);
            let status = self.pair.read(port, registers.ccqp_status.into());
            assert_eq!(status, 1, "no control queue after a reset");
            let nop = [0, 0, 0, 1 << 63 | 0x24 << 32, 0, 0, 0, 0];
            self.pair.put_words(port, ring, &nop);
            self.pair.write(port, registers.cqp_db.into(), 1);
            let tail = self.pair.read(port, registers.cqp_tail.into());
            assert_eq!(tail, 1, "the control queue does nothing after a reset");
        }
    }
}
