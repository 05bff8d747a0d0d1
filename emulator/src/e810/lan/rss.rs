// SPDX-License-Identifier: GPL-2.0
//! The receive-side scaling hash (Toeplitz).

/// Returns the Toeplitz hash of `input` under `key`.
pub fn toeplitz(key: &[u8], input: &[u8]) -> u32 {
    let mut window = key
        .iter()
        .take(4)
        .fold(0u32, |window, &byte| window << 8 | u32::from(byte));
    let mut hash = 0;
    for (i, &byte) in input.iter().enumerate() {
        let next = key.get(i + 4).copied().unwrap_or(0);
        for bit in (0..8).rev() {
            if byte >> bit & 1 != 0 {
                hash ^= window;
            }
            window = window << 1 | u32::from(next >> bit & 1);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    // Microsoft's verification suite for the RSS hash: 66.9.149.187:2794 to
    // 161.142.100.80:1766.
    const KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f,
        0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
        0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];

    #[test]
    fn verification_suite() {
        let mut input = vec![66, 9, 149, 187, 161, 142, 100, 80];
        assert_eq!(toeplitz(&KEY, &input), 0x323e_8fc2);
        input.extend(2794u16.to_be_bytes());
        input.extend(1766u16.to_be_bytes());
        assert_eq!(toeplitz(&KEY, &input), 0x51cc_c178);
    }
}
