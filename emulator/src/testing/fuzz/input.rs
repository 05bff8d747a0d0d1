// SPDX-License-Identifier: GPL-2.0
//! Random bytes become decisions.

/// Random bytes, read one after the other; zeros when they are used up.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl Input<'_> {
    pub(super) fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&byte, rest)) => {
                self.0 = rest;
                byte
            }
            None => 0,
        }
    }

    pub(super) fn word(&mut self) -> u64 {
        u64::from_le_bytes(std::array::from_fn(|_| self.byte()))
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        let value = u64::from(self.byte()) | u64::from(self.byte()) << 8;
        value % end.max(1)
    }

    pub(super) fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }

    /// One time in `n`.
    pub(super) fn chance(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// A number as drivers have them: small, one bit, or anything.
    pub(super) fn value(&mut self) -> u64 {
        match self.byte() % 4 {
            0 => self.below(16),
            1 => 1 << (self.byte() % 64),
            2 => self.below(1 << 16),
            _ => self.word(),
        }
    }
}
