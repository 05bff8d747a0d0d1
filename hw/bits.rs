// SPDX-License-Identifier: GPL-2.0

//! Bit fields of the quadwords that the device reads and writes.
//!
//! The device's layouts name a field by its highest and lowest bit, and so do these functions. They
//! are `const` and pure, so a layout can be tested against vectors worked out by hand.

/// Returns a quadword with bit `N` set when `value` is true.
#[inline]
pub(crate) const fn bit<const N: u32>(value: bool) -> u64 {
    (value as u64) << N
}

/// Places `value` into bits `HI..=LO`; what does not fit into the field is cut off.
#[inline]
pub(crate) const fn field<const HI: u32, const LO: u32>(value: u64) -> u64 {
    (value & mask(HI - LO + 1)) << LO
}

/// Reads bits `HI..=LO` of `word`.
#[inline]
pub(crate) const fn get<const HI: u32, const LO: u32>(word: u64) -> u64 {
    (word >> LO) & mask(HI - LO + 1)
}

/// Reads bit `N` of `word`.
#[inline]
pub(crate) const fn get_bit<const N: u32>(word: u64) -> bool {
    (word >> N) & 1 == 1
}

/// Returns a mask of the lowest `width` bits.
#[inline]
const fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// Returns a MAC address as the device holds it in a quadword: the first byte in bits 47:40.
#[doc(alias = "ether_addr_to_u64")]
#[inline]
pub(crate) const fn mac_to_u64(mac: &[u8; 6]) -> u64 {
    let [a, b, c, d, e, f] = *mac;

    u64::from_be_bytes([0, 0, a, b, c, d, e, f])
}

/// Packs two 32-bit words into a quadword.
#[inline]
pub(crate) const fn pack(high: u32, low: u32) -> u64 {
    // CAST: Widening.
    ((high as u64) << 32) | low as u64
}
