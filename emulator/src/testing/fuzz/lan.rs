// SPDX-License-Identifier: GPL-2.0
//! Descriptors of the LAN half.

use super::Fuzzer;
use crate::e810::regs;
use crate::testing::pair::place;

impl Fuzzer<'_> {
    /// Descriptors of the LAN half.
    pub(super) fn send_frame(&mut self, port: usize) {
        let mut frame = vec![
            2,
            0,
            0,
            0,
            0,
            2 - port as u8,
            2,
            0,
            0,
            0,
            0,
            1 + port as u8,
            8,
        ];
        frame.resize(14 + self.input.below(256) as usize, 0);
        for byte in frame.iter_mut().skip(13) {
            *byte = self.input.byte();
        }
        if frame.len() > 24 {
            frame[13..24].copy_from_slice(&[0, 0x45, 0, 0, 100, 0, 0, 0x40, 0, 64, 17]);
        }
        self.pair.put(port, place::FRAME, &frame);
        if self.input.chance(4) {
            let at = place::RX + self.input.below(64) * 32;
            let value = self.address(port);
            self.pair.put_words(port, at, &[value]);
            let tail = self.input.below(80) as u32;
            self.pair.write_named(port, "QRX_TAIL", 0, tail);
        }
        let count = 1 + self.input.below(4);
        let first = self.input.below(64);
        for n in 0..count {
            let kind = self.input.pick(&[0, 0, 0, 1, 8, 15]);
            let command = u64::from(self.input.byte()) | 1;
            let len = match self.input.byte() % 4 {
                0 => self.input.below(1 << 14),
                _ => frame.len() as u64,
            };
            let address = match self.input.byte() % 8 {
                0 => self.address(port),
                _ => place::FRAME,
            };
            let offsets = 7 << 16 | 5 << 23 | 2 << 30;
            let noise = match self.input.byte() % 4 {
                0 => self.input.word() & !0xffff,
                _ => offsets | len << 34,
            };
            let at = place::TX + (first + n) % 64 * 16;
            self.pair
                .put_words(port, at, &[address, kind | command << 4 | noise]);
        }
        let tail = (first + count) % 64;
        self.pair
            .write_named(port, "QTX_COMM_DBELL", 0, tail as u32);
    }

    /// A packet that the device cuts into segments.
    pub(super) fn segments(&mut self, port: usize) {
        let mut headers = vec![2, 0, 0, 0, 0, 2 - port as u8];
        headers.extend([2, 0, 0, 0, 0, 1 + port as u8, 8, 0]);
        headers.extend([0x45, 0, 1, 0, 0, 0, 0, 0, 64, 17, 0, 0]);
        headers.extend([10, 0, 0, 1 + port as u8, 10, 0, 0, 2 - port as u8]);
        headers.resize(42, 0);
        self.pair.put(port, place::FRAME, &headers);
        let (pieces, each) = (1 + self.input.below(20), 1 + self.input.below(16_000));
        let payload = pieces * each;
        let size = self.input.pick(&[64, 64, 1000, 1460, 9000, 63]);
        let offsets = (7 | 5 << 7 | 2 << 14) << 16 | 0x360 << 4;
        let data = self.pair.ports[port].data;
        let mut descriptors = vec![
            [0, 1 | 1 << 4 | payload << 30 | size << 50],
            [place::FRAME, 42 << 34 | offsets],
        ];
        for n in 0..pieces {
            let last = if n + 1 == pieces { 3 << 4 } else { 0 };
            descriptors.push([data + n * each, each << 34 | offsets | last]);
        }
        let head = regs::offset("QTX_COMM_HEAD", 0);
        let first = u64::from(self.pair.read(port, head.into()));
        for (at, descriptor) in (first..).zip(&descriptors) {
            self.pair
                .put_words(port, place::TX + at % 64 * 16, descriptor);
        }
        let tail = (first + descriptors.len() as u64) % 64;
        self.pair
            .write_named(port, "QTX_COMM_DBELL", 0, tail as u32);
    }
}
