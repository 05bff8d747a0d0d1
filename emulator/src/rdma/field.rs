// SPDX-License-Identifier: GPL-2.0
//! A bit field of a 64-bit little-endian word, named by its highest and lowest bit as data sheets do.

/// Bits `hi..=lo` of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    lo: u32,
    width: u32,
}

impl Field {
    /// Bits `hi` down to `lo`, both included. `hi >= lo` and `hi < 64` by construction of the tables.
    pub const fn new(hi: u32, lo: u32) -> Self {
        Self {
            lo,
            width: hi - lo + 1,
        }
    }

    /// A single bit.
    pub const fn bit(position: u32) -> Self {
        Self::new(position, position)
    }

    /// The field's bits within the word.
    pub const fn mask(self) -> u64 {
        (u64::MAX >> (64 - self.width)) << self.lo
    }

    /// The largest value that fits.
    pub const fn max(self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    pub const fn get(self, word: u64) -> u64 {
        (word >> self.lo) & self.max()
    }

    pub const fn get32(self, word: u64) -> u32 {
        self.get(word) as u32
    }

    pub const fn is_set(self, word: u64) -> bool {
        self.get(word) != 0
    }

    /// `value` placed at the field; bits that do not fit are dropped, as a register does.
    pub const fn put(self, value: u64) -> u64 {
        (value & self.max()) << self.lo
    }

    pub const fn flag(self, value: bool) -> u64 {
        self.put(value as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_cover_their_bits() {
        let pd = Field::new(63, 46);
        assert_eq!(pd.mask(), 0xffff_c000_0000_0000);
        assert_eq!(pd.get(0x8000_4000_0000_0001), 0x2_0001);
        assert_eq!(pd.put(0x2_0001), 0x8000_4000_0000_0000);
        assert_eq!(Field::new(63, 0).mask(), u64::MAX);
        assert_eq!(Field::bit(63).flag(true), 1 << 63);
        assert_eq!(Field::new(3, 0).put(0x1f), 0xf);
    }
}
