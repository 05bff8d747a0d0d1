// SPDX-License-Identifier: GPL-2.0
//! Packet sequence numbers: 24 bits, compared around the circle.

/// A packet (or message) sequence number.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Psn(u32);

const MASK: u32 = 0xff_ffff;

impl Psn {
    pub(crate) fn new(value: u32) -> Self {
        Self(value & MASK)
    }

    pub(crate) fn get(self) -> u32 {
        self.0
    }

    pub(crate) fn add(self, count: u32) -> Self {
        Self::new(self.0.wrapping_add(count))
    }

    pub(crate) fn before(self) -> Self {
        Self::new(self.0.wrapping_sub(1))
    }

    /// Numbers from `other` on to `self`, around the circle: 0 to 2^24 - 1.
    pub(crate) fn since(self, other: Self) -> u32 {
        self.0.wrapping_sub(other.0) & MASK
    }

    /// How far `self` is ahead of `other`: -2^23 to 2^23 - 1.
    pub(crate) fn ahead_of(self, other: Self) -> i32 {
        ((self.0.wrapping_sub(other.0) << 8) as i32) >> 8
    }
}

impl std::fmt::Debug for Psn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#08x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Psn;

    #[test]
    fn distance_around_the_circle() {
        let at = Psn::new;
        assert_eq!(at(5).ahead_of(at(3)), 2);
        assert_eq!(at(3).ahead_of(at(5)), -2);
        assert_eq!(at(1).ahead_of(at(0xff_ffff)), 2);
        assert_eq!(at(0xff_ffff).ahead_of(at(1)), -2);
        assert_eq!(at(0x7f_ffff).ahead_of(at(0)), 0x7f_ffff);
        assert_eq!(at(0x80_0000).ahead_of(at(0)), -0x80_0000);
        assert_eq!(at(0x80_0000).since(at(0)), 0x80_0000);
        assert_eq!(at(0).since(at(0x80_0000)), 0x80_0000);
        assert_eq!(at(1).since(at(0xff_ffff)), 2);
        assert_eq!(at(0xff_ffff).since(at(0)), 0xff_ffff);
        assert_eq!(at(0xff_ffff).add(2), at(1));
        assert_eq!(at(0).before(), at(0xff_ffff));
    }
}
