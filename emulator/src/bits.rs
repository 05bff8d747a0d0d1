// SPDX-License-Identifier: GPL-2.0
//! Bit fields of registers, descriptors and packed contexts.

/// Returns `width` bits of `value` from bit `low` on.
pub const fn field(value: u64, low: u32, width: u32) -> u64 {
    if width >= 64 {
        return value >> low;
    }
    (value >> low) & ((1 << width) - 1)
}

/// Returns the 32-bit word with `width` bits of `value` placed at bit `low`.
pub const fn place(value: u64, low: u32, width: u32) -> u64 {
    field(value, 0, width) << low
}

/// Returns whether bit `n` of `value` is set.
pub const fn bit(value: u64, n: u32) -> bool {
    value >> n & 1 != 0
}

/// Reads a bit field that may cross byte borders from a packed little-endian
/// context: `width` (at most 64) bits from bit `low` on. Bits past the end of
/// `bytes` read as zero.
pub fn packed(bytes: &[u8], low: usize, width: usize) -> u64 {
    (0..width.min(64)).fold(0, |value, i| {
        let at = low + i;
        let bit = bytes.get(at / 8).map_or(0, |b| b >> (at % 8) & 1);
        value | u64::from(bit) << i
    })
}

/// Reads a little-endian `u16` at byte `at`; zero past the end.
pub fn le16(bytes: &[u8], at: usize) -> u16 {
    packed(bytes, at * 8, 16) as u16
}

/// Reads a little-endian `u32` at byte `at`; zero past the end.
pub fn le32(bytes: &[u8], at: usize) -> u32 {
    match bytes.get(at..at + 4) {
        Some(&[a, b, c, d]) => u32::from_le_bytes([a, b, c, d]),
        _ => packed(bytes, at * 8, 32) as u32,
    }
}

/// Reads a little-endian `u64` at byte `at`; zero past the end.
pub fn le64(bytes: &[u8], at: usize) -> u64 {
    u64::from(le32(bytes, at)) | u64::from(le32(bytes, at + 4)) << 32
}

/// Writes `value` at byte `at`. What does not fit is left out.
pub fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    for (to, from) in bytes.iter_mut().skip(at).zip(value) {
        *to = *from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        assert_eq!(field(0xabcd_1234, 8, 8), 0x12);
        assert_eq!(field(u64::MAX, 0, 64), u64::MAX);
        assert_eq!(place(0x1ff, 4, 8), 0xff0);
        assert!(bit(0x8000_0000, 31) && !bit(0x8000_0000, 30));
    }

    #[test]
    fn packed_crosses_bytes() {
        let bytes = [0x80, 0x01, 0xff];
        assert_eq!(packed(&bytes, 7, 2), 0b11);
        assert_eq!(packed(&bytes, 16, 16), 0x00ff);
        assert_eq!(le16(&bytes, 1), 0xff01);
        assert_eq!(le32(&bytes, 0), 0x00ff_0180);
    }

    #[test]
    fn put_is_clipped() {
        let mut bytes = [0; 3];
        put(&mut bytes, 2, &[7, 8]);
        assert_eq!(bytes, [0, 0, 7]);
    }
}
