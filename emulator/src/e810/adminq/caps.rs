// SPDX-License-Identifier: GPL-2.0
//! What the firmware is and what the function can do.

use super::{AqError, Command, Result};
use crate::e810::Config;

/// Number of VSIs that the function may have.
pub const VSIS: u16 = 16;
/// Number of LAN queues in each direction.
pub const QUEUES: u16 = 64;
/// Largest Ethernet frame in bytes.
pub const MAX_FRAME: u16 = 9728;
/// Entries of the function's RSS table, and bits of one entry.
pub const RSS_TABLE: (u16, u8) = (2048, 7);
/// Flow-director filters.
const FILTERS: u32 = 1024;

/// Command 0x0001: firmware and interface version. 1.5 is the interface that
/// asks least of the firmware.
pub fn version(command: &mut Command) -> Result {
    command.params = [0; 16];
    // Firmware branch 0, 6.1.0.
    command.put(8, &[0, 6, 1, 0]);
    // Interface branch 0, 1.5.0.
    command.put(12, &[0, 1, 5, 0]);
    Ok(())
}

struct Capability {
    id: u16,
    version: u8,
    number: u32,
    logical: u32,
    physical: u32,
}

fn capabilities(vectors: u16, config: &Config) -> Vec<Capability> {
    let cap = |id, number, logical, physical| Capability {
        id,
        version: 1,
        number,
        logical,
        physical,
    };
    let (rss_size, rss_width) = RSS_TABLE;
    let mut caps = vec![
        // One function: bit 0 of a bitmap.
        cap(0x0005, 1, 0, 0),
        cap(0x0017, VSIS.into(), 0, 0),
        // DCB; class 0 is in use, of at most eight.
        cap(0x0018, 1, 1, 8),
        cap(0x0040, rss_size.into(), rss_width.into(), 0),
        // Number, and the first one.
        cap(0x0041, QUEUES.into(), 0, 0),
        cap(0x0042, QUEUES.into(), 0, 0),
        cap(0x0043, vectors.into(), 0, 0),
        // Without flow director the driver would take a vector that it counts
        // as RDMA's.
        cap(0x0045, FILTERS, 0, 0),
        cap(0x0047, MAX_FRAME.into(), 0, 0),
    ];
    if config.rdma {
        caps.push(cap(0x0051, 1, 0, 0));
    }
    caps
}

/// Commands 0x000A and 0x000B: capabilities of the function and of the device,
/// which are the same here. A record is 32 bytes: id `u16`, major, minor,
/// number `u32`, logical id `u32`, physical id `u32`, 16 reserved.
pub fn list(command: &mut Command, vectors: u16, config: &Config) -> Result {
    const RECORD: usize = 32;
    let caps = capabilities(vectors, config);
    if command.buffer.len() < caps.len() * RECORD {
        // The driver is to ask again with a larger buffer.
        return Err(AqError::NoSpace);
    }
    command.buffer.fill(0);
    for (i, cap) in caps.iter().enumerate() {
        let at = i * RECORD;
        command.put_buffer(at, &cap.id.to_le_bytes());
        command.put_buffer(at + 2, &[cap.version, 0]);
        command.put_buffer(at + 4, &cap.number.to_le_bytes());
        command.put_buffer(at + 8, &cap.logical.to_le_bytes());
        command.put_buffer(at + 12, &cap.physical.to_le_bytes());
    }
    command.put(4, &(caps.len() as u32).to_le_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::{le16, le32};

    #[test]
    fn capability_records() {
        let mut command = Command {
            buffer: vec![0xff; 4096],
            ..Command::default()
        };
        list(&mut command, 64, &Config::default()).unwrap();
        let count = command.u32(4) as usize;
        let value = |id| {
            (0..count)
                .map(|i| i * 32)
                .find(|&at| le16(&command.buffer, at) == id)
                .map(|at| le32(&command.buffer, at + 4))
        };
        assert_eq!(value(0x0043), Some(64));
        assert_eq!(value(0x0051), Some(1));
        assert_eq!(value(0x0012), None);
        command.buffer.truncate(64);
        assert_eq!(
            list(&mut command, 64, &Config::default()),
            Err(AqError::NoSpace)
        );
    }
}
