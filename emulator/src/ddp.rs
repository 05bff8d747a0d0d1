// SPDX-License-Identifier: GPL-2.0
//! A DDP package that the `ice` driver takes, without any of the vendor's
//! tables: one segment with one buffer that holds the metadata.
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
    const AT: u16 = 12;
    const SIZE: u16 = 36;
    let mut buffer = [0; BUFFER];
    put(&mut buffer, 0, &1u16.to_le_bytes());
    put(&mut buffer, 2, &(AT + SIZE).to_le_bytes());
    put(&mut buffer, 4, &METADATA.to_le_bytes());
    put(&mut buffer, 8, &AT.to_le_bytes());
    put(&mut buffer, 10, &SIZE.to_le_bytes());
    let at = usize::from(AT);
    put(&mut buffer, at, &VERSION);
    put(&mut buffer, at + 4, NAME);
    put(&mut buffer, at + 32, &TRACK_ID.to_le_bytes());
    buffer
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
        assert_eq!((le16(buffer, 0), le32(buffer, 4)), (1, 1));
        let data = &buffer[usize::from(le16(buffer, 8))..usize::from(le16(buffer, 2))];
        assert_eq!(data.len(), usize::from(le16(buffer, 10)));
        assert_eq!(data[..4], VERSION);
        assert!(data[4..].starts_with(NAME));
    }
}
