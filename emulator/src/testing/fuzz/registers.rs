// SPDX-License-Identifier: GPL-2.0
//! Registers of every width and place, doorbells, configuration space, and
//! what the client does.

use super::{Fuzzer, Wrong};
use crate::e810::{regs, BAR0_SIZE};
use crate::rdma::layout;
use crate::rdma::regs::Register;
use crate::testing::memory_file;

impl Fuzzer<'_> {
    pub(super) fn any_offset(&mut self) -> u64 {
        match self.input.byte() % 4 {
            0 => self.input.below(1 << 16) << 7 & (BAR0_SIZE - 1),
            1 => {
                let spec = self.input.below(regs::TABLE.len() as u64) as usize;
                let spec = &regs::TABLE[spec];
                let index = self.input.below(spec.count.into());
                u64::from(spec.base) + index * u64::from(spec.stride)
            }
            2 => 0x50_0000 | self.input.below(1 << 16),
            _ => self.input.value(),
        }
    }

    /// A place and a length, and whether no register is there.
    pub(super) fn any_place(&mut self, write: bool) -> (u64, usize, Wrong) {
        let offset = self.any_offset();
        let len = self.input.pick(&[4, 4, 4, 8, 8, 1, 2, 0, 3, 16]);
        let shape = matches!(len, 1 | 2 | 4 | 8)
            && offset % len as u64 == 0
            && offset
                .checked_add(len as u64)
                .is_some_and(|n| n <= BAR0_SIZE);
        let known = |at: u64| {
            let at = at as u32 & !3;
            regs::decode(at).is_some() || Register::at(&layout::E810, at).is_some()
        };
        let wrong = !shape || write && len < 4 || !known(offset) || len == 8 && !known(offset + 4);
        (offset, len, wrong)
    }

    pub(super) fn any_read(&mut self, port: usize) -> Wrong {
        let (offset, len, wrong) = self.any_place(false);
        let mut data = vec![0; len];
        let now = self.pair.now;
        self.machine().read(port, offset, &mut data, now);
        wrong
    }

    pub(super) fn any_write(&mut self, port: usize) -> Wrong {
        let (offset, len, wrong) = self.any_place(true);
        // A reset in the middle of a wide write forgives what follows.
        let data: Vec<u8> = (0..len).map(|_| self.input.byte()).collect();
        let now = self.pair.now;
        self.machine().write(port, offset, &data, now);
        wrong
    }

    pub(super) fn known_register(&mut self, port: usize) {
        let spec = self.input.below(regs::TABLE.len() as u64) as usize;
        let spec = &regs::TABLE[spec];
        if matches!(spec.name, "PFGEN_CTRL" | "GLGEN_RTRIG") && !self.input.chance(8) {
            return;
        }
        let index = self.input.below(spec.count.min(8).into()) as u32;
        let offset = u64::from(spec.base + index * spec.stride);
        let value = self.input.value() as u32;
        self.pair.write(port, offset, value);
        self.pair.read(port, offset);
    }

    pub(super) fn doorbell(&mut self, port: usize) {
        let registers = &layout::E810.registers;
        let offset = self.input.pick(&[
            registers.cqp_db,
            registers.cq_arm,
            registers.cq_ack,
            registers.aeq_alloc,
            registers.wqe_alloc,
            registers.user_page,
            registers.user_page + 0x40,
            registers.pd_inv,
            registers.aeq_ctl,
            registers.ceq_ctl,
            registers.cqp_tail,
            registers.ccqp_high,
        ]);
        let value = self.input.value() as u32;
        self.pair.write(port, offset.into(), value);
    }

    pub(super) fn config(&mut self, port: usize) {
        let offset = self.input.value() & 0x1fff;
        let len = self.input.below(9) as usize;
        let mut data: Vec<u8> = (0..len).map(|_| self.input.byte()).collect();
        if let Some(config) = self.machine().config(port) {
            config.write(offset, &data);
            config.read(offset, &mut data);
        }
    }

    /// What the client may do: vectors and memory that come and go.
    pub(super) fn client(&mut self, port: usize) {
        let vector = self.input.value() as u16;
        self.machine().set_event(port, vector, None);
        let (address, size) = (self.input.value() | 1 << 32, self.input.value());
        let file = self.input.chance(2).then(|| (memory_file(8192), 0));
        if let Some(memory) = self.machine().memory(port) {
            // What overlaps or is no range is refused.
            let _ = memory.map(address, size, file, size & 1 == 0);
            if size & 2 == 0 {
                let _ = memory.unmap(address, size);
            }
        }
    }
}
