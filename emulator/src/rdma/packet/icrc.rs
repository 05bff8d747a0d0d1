// SPDX-License-Identifier: GPL-2.0
//! The invariant CRC of RoCEv2 (annex A17.3.3): the Ethernet CRC-32 over the
//! packet with every field that a router may change taken as ones, and with
//! eight bytes of ones in place of an InfiniBand local route header.

use crc32fast::Hasher;

/// The CRC of the packet whose IP header begins at `packet[0]` and which ends
/// in front of the ICRC. `l3_len` is 20 (IPv4) or 40 (IPv6); the UDP header
/// and the BTH follow it, which the caller has checked.
pub(crate) fn icrc(packet: &[u8], l3_len: usize) -> u32 {
    // 8 bytes of local route header, IP (40 at most), UDP 8, BTH 12.
    let mut head = [0xffu8; 8 + 40 + 8 + 12];
    let covered = l3_len + 8 + 12;
    let masked = &mut head[8..8 + covered];
    masked.copy_from_slice(&packet[..covered]);
    if l3_len == 20 {
        masked[1] = 0xff; // type of service
        masked[8] = 0xff; // time to live
        masked[10] = 0xff; // header checksum
        masked[11] = 0xff;
    } else {
        masked[0] |= 0x0f; // traffic class
        masked[1] = 0xff; // and flow label
        masked[2] = 0xff;
        masked[3] = 0xff;
        masked[7] = 0xff; // hop limit
    }
    masked[l3_len + 6] = 0xff; // UDP checksum
    masked[l3_len + 7] = 0xff;
    masked[l3_len + 8 + 4] = 0xff; // BTH: FECN, BECN and reserved
    let mut hasher = Hasher::new();
    hasher.update(&head[..8 + covered]);
    hasher.update(&packet[covered..]);
    hasher.finalize()
}
