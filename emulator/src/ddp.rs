// SPDX-License-Identifier: GPL-2.0
//! A DDP package that the `ice` driver takes, without any of the vendor's
//! tables: one segment with one buffer that holds the metadata and names the
//! parser entries for UDP tunnels. Without those the driver offers the kernel
//! a tunnel table of no entries, and the kernel complains as soon as anything
//! loads its tunnel code (soft-RoCE does).
//!
//! Layout (all little endian): a header of format version (4 bytes), number of
//! segments `u32` and the offset of each; a segment of type `u32`, format
//! version, size `u32`, name (32 bytes), counts of device ids `u32`, NVM
//! entries `u32` and buffers `u32`; buffers of 4096 bytes.

use crate::bits::put;

const HEADER: usize = 12;
const SEGMENT_HEADER: usize = 44;
const COUNTS: usize = 12;
const BUFFER: usize = 4096;
/// Segment type "E810".
const SEGMENT_E810: u32 = 0x10;
/// Section type of the metadata.
const METADATA: u32 = 1;
/// Section type of the labels of parser entries.
const LABELS: u32 = 0x8000_0018;
/// Section type of the parser's boost table.
const BOOST: u32 = 56;
/// Functions that have tunnel entries of their own.
const FUNCTIONS: u8 = 8;
/// Kinds of tunnels, as labels begin; the function's digit follows.
const TUNNELS: [&str; 2] = ["TNL_VXLAN_PF", "TNL_GENEVE_PF"];
const LABEL: usize = 66;
const BOOST_ENTRY: usize = 88;
/// The drivers take version 1.3.
const VERSION: [u8; 4] = [1, 3, 43, 0];
const NAME: &[u8] = b"ICE OS Default Package";
const TRACK_ID: u32 = 0xc000_0001;

/// Returns the package.
pub fn package() -> Vec<u8> {
    let segment_size = SEGMENT_HEADER + COUNTS + BUFFER;
    let mut file = vec![0; HEADER + segment_size];
    // Format 1.0.0.0.
    put(&mut file, 0, &[1, 0, 0, 0]);
    put(&mut file, 4, &1u32.to_le_bytes());
    put(&mut file, 8, &(HEADER as u32).to_le_bytes());
    let segment = &mut file[HEADER..];
    put(segment, 0, &SEGMENT_E810.to_le_bytes());
    // Format 1.0.1.0.
    put(segment, 4, &[1, 0, 1, 0]);
    put(segment, 8, &(segment_size as u32).to_le_bytes());
    put(segment, 12, NAME);
    // No device ids, no NVM entries, one buffer.
    put(segment, SEGMENT_HEADER + 8, &1u32.to_le_bytes());
    let buffer = &mut segment[SEGMENT_HEADER + COUNTS..];
    buffer.copy_from_slice(&metadata_buffer());
    file
}

/// A buffer: number of sections `u16`, end of data `u16`, for each section
/// type `u32`, offset `u16`, size `u16`; then the data.
fn metadata_buffer() -> [u8; BUFFER] {
    let sections = [(METADATA, metadata()), (LABELS, labels()), (BOOST, boost())];
    let mut buffer = [0; BUFFER];
    let mut at = 4 + 8 * sections.len();
    put(&mut buffer, 0, &(sections.len() as u16).to_le_bytes());
    for (index, (kind, data)) in sections.iter().enumerate() {
        let entry = 4 + 8 * index;
        put(&mut buffer, entry, &kind.to_le_bytes());
        put(&mut buffer, entry + 4, &(at as u16).to_le_bytes());
        put(&mut buffer, entry + 6, &(data.len() as u16).to_le_bytes());
        put(&mut buffer, at, data);
        at += data.len().next_multiple_of(4);
    }
    put(&mut buffer, 2, &(at as u16).to_le_bytes());
    buffer
}

fn metadata() -> Vec<u8> {
    let mut data = vec![0; 36];
    put(&mut data, 0, &VERSION);
    put(&mut data, 4, NAME);
    put(&mut data, 32, &TRACK_ID.to_le_bytes());
    data
}

/// The addresses in the boost table and what they are for.
fn tunnels() -> impl Iterator<Item = (u16, String)> {
    let names = (0..FUNCTIONS).flat_map(|pf| TUNNELS.map(|name| format!("{name}{pf}")));
    (0u16..).zip(names)
}

/// Number of labels `u16`; for each its value `u16` and 64 bytes of name.
fn labels() -> Vec<u8> {
    let mut data = vec![0; 2];
    for (address, name) in tunnels() {
        let at = data.len();
        data.resize(at + LABEL, 0);
        put(&mut data, at, &address.to_le_bytes());
        put(&mut data, at + 2, name.as_bytes());
    }
    let count = (data.len() / LABEL) as u16;
    put(&mut data, 0, &count.to_le_bytes());
    data
}

/// Number of entries `u16`, two bytes reserved; for each its address `u16`,
/// then keys that match nothing until the driver gives them a port.
fn boost() -> Vec<u8> {
    let mut data = vec![0; 4];
    for (address, _) in tunnels() {
        let at = data.len();
        data.resize(at + BOOST_ENTRY, 0);
        put(&mut data, at, &address.to_le_bytes());
    }
    let count = (data.len() / BOOST_ENTRY) as u16;
    put(&mut data, 0, &count.to_le_bytes());
    data
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{le16, le32};

    #[test]
    fn sizes_add_up() {
        let file = package();
        assert_eq!(file.len(), 4164);
        let segment = &file[le32(&file, 8) as usize..];
        assert_eq!(le32(segment, 8) as usize, segment.len());
        assert_eq!(le32(segment, 52), 1);
        let buffer = &segment[56..];
        assert_eq!(buffer.len(), 4096);
        let section = |index: usize| {
            let entry = 4 + 8 * index;
            let at = usize::from(le16(buffer, entry + 4));
            let size = usize::from(le16(buffer, entry + 6));
            (le32(buffer, entry), &buffer[at..at + size])
        };
        assert_eq!(le16(buffer, 0), 3);
        let (kind, data) = section(0);
        assert_eq!((kind, data.len()), (1, 36));
        assert_eq!(data[..4], VERSION);
        assert!(data[4..].starts_with(NAME));
        let (kind, data) = section(1);
        assert_eq!((kind, le16(data, 0)), (0x8000_0018, 16));
        assert_eq!(data.len(), 2 + 16 * 66);
        assert!(data[4..].starts_with(b"TNL_VXLAN_PF0\0"));
        assert!(data[2 + 15 * 66 + 2..].starts_with(b"TNL_GENEVE_PF7\0"));
        let (kind, data) = section(2);
        assert_eq!((kind, le16(data, 0)), (56, 16));
        assert_eq!(data.len(), 4 + 16 * 88);
        assert_eq!(le16(data, 4 + 15 * 88), 15);
        assert_eq!(usize::from(le16(buffer, 2)), 28 + 36 + 1060 + 1412);
    }
}
