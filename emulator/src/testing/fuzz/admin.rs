// SPDX-License-Identifier: GPL-2.0
//! Commands of the admin queue.

use super::Fuzzer;
use crate::testing::pair::{self, place};

impl Fuzzer<'_> {
    pub(super) fn admin(&mut self, port: usize) {
        const OPCODES: [u16; 47] = [
            0x0001, 0x0008, 0x0009, 0x000a, 0x0107, 0x0108, 0x0200, 0x0208, 0x0209, 0x020d, 0x0210,
            0x0211, 0x0213, 0x02a0, 0x02a1, 0x02a2, 0x0400, 0x0401, 0x0403, 0x0404, 0x0408, 0x0409,
            0x040e, 0x040f, 0x0412, 0x0600, 0x0607, 0x0701, 0x0706, 0x0b02, 0x0b03, 0x0c30, 0x0c31,
            0x0c33, 0x0302, 0x0303, 0x0601, 0x0605, 0x0613, 0x06ea, 0x0a08, 0x0b04, 0x0b05, 0x0c40,
            0x0c41, 0x0c42, 0x0c43,
        ];
        let opcode = match self.input.byte() % 8 {
            0 => self.input.word() as u16,
            _ => self.input.pick(&OPCODES),
        };
        let mut raw = [0; 32];
        let len = self.input.pick(&[0, 4, 8, 16, 32, 56, 128, 512, 4096]);
        let mut flags = if len > 0 { 0x1000u16 } else { 0 };
        if len > 512 {
            flags |= 0x200;
        }
        if self.input.chance(16) {
            flags ^= self.input.word() as u16;
        }
        raw[..2].copy_from_slice(&flags.to_le_bytes());
        raw[2..4].copy_from_slice(&opcode.to_le_bytes());
        let claimed = match self.input.byte() % 16 {
            0 => self.input.word() as u16,
            _ => len as u16,
        };
        raw[4..6].copy_from_slice(&claimed.to_le_bytes());
        for byte in &mut raw[16..24] {
            *byte = self.input.pick(&[0, 0, 1, 2, 0xff]);
        }
        let buffer = match self.input.byte() % 16 {
            0 => self.address(port),
            _ => place::BUFFER,
        };
        raw[24..28].copy_from_slice(&((buffer >> 32) as u32).to_le_bytes());
        raw[28..32].copy_from_slice(&(buffer as u32).to_le_bytes());
        let fill: Vec<u8> = (0..len.min(64)).map(|_| self.input.byte() % 17).collect();
        self.pair.put(port, place::BUFFER, &fill);
        let tail = self.pair.ports[port].admin_tail;
        self.pair
            .put(port, place::ADMIN + u64::from(tail) * 32, &raw);
        let tail = (tail + 1) % pair::ADMIN_ENTRIES;
        self.pair.ports[port].admin_tail = tail;
        self.pair.write_named(port, "PF_FW_ATQT", 0, tail);
    }
}
