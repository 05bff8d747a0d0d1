// SPDX-License-Identifier: GPL-2.0
//! PCI configuration space of a function: a type 0 header, MSI-X and PCI
//! Express capabilities.
//!
//! Layouts: PCI Local Bus 3.0 section 6.1 and 6.8.2, PCI Express 4.0 section
//! 7.5.3.

use crate::nic::Identity;

/// Size of the space in bytes, extended part included.
pub const SIZE: usize = 4096;
/// BAR that holds the MSI-X table and pending bits.
pub const MSIX_BAR: u32 = 3;
/// Size of that BAR in bytes.
pub const MSIX_BAR_SIZE: u64 = 0x10000;

const MSIX_PENDING: u32 = 0x8000;
const MSIX_CAP: usize = 0x70;
const EXPRESS_CAP: usize = 0xa0;
/// Device capabilities: 512-byte payload, extended tags, role-based error
/// reporting, 30 W, function-level reset.
const DEVICE_CAPS: u32 = 0x1000_8fc2;
/// Sixteen lanes at 16 GT/s.
const LINK: u16 = 0x104;

/// The configuration space of one function.
#[derive(Clone, Debug)]
pub struct ConfigSpace {
    bytes: Vec<u8>,
    /// Bits that a write changes.
    writable: Vec<u8>,
    /// Bits that a write of one clears.
    clears: Vec<u8>,
}

impl ConfigSpace {
    /// Returns the space of a function that shows itself as `identity`.
    pub fn new(identity: &Identity) -> Self {
        let mut space = ConfigSpace {
            bytes: vec![0; SIZE],
            writable: vec![0; SIZE],
            clears: vec![0; SIZE],
        };
        space.header(identity);
        space.msix(identity);
        space.express();
        space
    }

    fn header(&mut self, identity: &Identity) {
        self.set16(0x00, identity.vendor, 0);
        self.set16(0x02, identity.device, 0);
        // Memory, bus master, parity, SERR and INTx disable.
        self.set16(0x04, 0, 0x0546);
        // A capability list; the error bits of the status are write-to-clear.
        self.set16(0x06, 0x0010, 0);
        self.clears[0x07] = 0xf9;
        self.bytes[0x08] = identity.revision;
        // Class 02.00.00: an Ethernet controller.
        self.bytes[0x0b] = 0x02;
        self.set16(0x0c, 0, 0x00ff);
        self.bar64(0x10, identity.bar0_size, true);
        self.bar64(0x10 + 4 * MSIX_BAR as usize, MSIX_BAR_SIZE, true);
        self.set16(0x2c, identity.subsystem.0, 0);
        self.set16(0x2e, identity.subsystem.1, 0);
        self.bytes[0x34] = MSIX_CAP as u8;
        self.set16(0x3c, 0, 0x00ff);
    }

    fn msix(&mut self, identity: &Identity) {
        self.bytes[MSIX_CAP] = 0x11;
        self.bytes[MSIX_CAP + 1] = EXPRESS_CAP as u8;
        // Enable and function mask are writable.
        self.set16(MSIX_CAP + 2, identity.vectors.saturating_sub(1), 0xc000);
        self.set32(MSIX_CAP + 4, MSIX_BAR, 0);
        self.set32(MSIX_CAP + 8, MSIX_PENDING | MSIX_BAR, 0);
    }

    fn express(&mut self) {
        self.bytes[EXPRESS_CAP] = 0x10;
        // Version 2, an endpoint.
        self.set16(EXPRESS_CAP + 0x02, 0x0002, 0);
        self.set32(EXPRESS_CAP + 0x04, DEVICE_CAPS, 0);
        self.set16(EXPRESS_CAP + 0x08, 0x2810, 0x7fff);
        self.clears[EXPRESS_CAP + 0x0a] = 0x0f;
        self.set32(EXPRESS_CAP + 0x0c, u32::from(LINK), 0);
        self.set16(EXPRESS_CAP + 0x10, 0, 0x0fff);
        self.set16(EXPRESS_CAP + 0x12, LINK, 0);
        self.set16(EXPRESS_CAP + 0x28, 0, 0x001f);
        // Link speeds up to 16 GT/s, and that one as the target.
        self.set32(EXPRESS_CAP + 0x2c, 0x1e, 0);
        self.set16(EXPRESS_CAP + 0x30, 4, 0x000f);
    }

    fn bar64(&mut self, at: usize, size: u64, prefetchable: bool) {
        let mask = !(size - 1);
        self.set32(at, 0x4 | u32::from(prefetchable) << 3, mask as u32);
        self.set32(at + 4, 0, (mask >> 32) as u32);
    }

    fn set16(&mut self, at: usize, value: u16, writable: u16) {
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
        self.writable[at..at + 2].copy_from_slice(&writable.to_le_bytes());
    }

    fn set32(&mut self, at: usize, value: u32, writable: u32) {
        self.bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        self.writable[at..at + 4].copy_from_slice(&writable.to_le_bytes());
    }

    /// Reads `data.len()` bytes at `offset`; all ones past the end.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        for (i, byte) in data.iter_mut().enumerate() {
            let at = usize::try_from(offset).ok().and_then(|o| o.checked_add(i));
            *byte = at
                .and_then(|at| self.bytes.get(at))
                .copied()
                .unwrap_or(0xff);
        }
    }

    /// Writes `data` at `offset`; bits that the function owns keep their
    /// value.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        for (i, &value) in data.iter().enumerate() {
            let at = usize::try_from(offset).ok().and_then(|o| o.checked_add(i));
            let Some(at) = at.filter(|&at| at < SIZE) else {
                return;
            };
            let writable = self.writable[at];
            let byte = &mut self.bytes[at];
            *byte = (*byte & !writable | value & writable) & !(value & self.clears[at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space() -> ConfigSpace {
        ConfigSpace::new(&Identity {
            vendor: 0x8086,
            device: 0x1592,
            subsystem: (0x8086, 2),
            revision: 2,
            bar0_size: 8 << 20,
            vectors: 64,
        })
    }

    fn read32(space: &ConfigSpace, at: u64) -> u32 {
        let mut data = [0; 4];
        space.read(at, &mut data);
        u32::from_le_bytes(data)
    }

    #[test]
    fn header_and_capabilities() {
        let space = space();
        assert_eq!(read32(&space, 0), 0x1592_8086);
        assert_eq!(read32(&space, 8), 0x0200_0002);
        assert_eq!(read32(&space, 0x70), 0x003f_a011);
        assert_eq!(read32(&space, 0xa0), 0x0002_0010);
        assert_eq!(read32(&space, 0xa4) >> 28 & 1, 1);
        assert_eq!(read32(&space, 4096), u32::MAX);
    }

    #[test]
    fn bar_sizes_itself() {
        let mut space = space();
        space.write(0x10, &[0xff; 8]);
        assert_eq!(read32(&space, 0x10), 0xff80_000c);
        assert_eq!(read32(&space, 0x14), u32::MAX);
        space.write(0, &[0; 4]);
        assert_eq!(read32(&space, 0), 0x1592_8086);
        space.write(4094, &[1; 4]);
    }
}
