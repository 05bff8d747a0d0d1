// SPDX-License-Identifier: GPL-2.0
//! The flash and its shadow RAM: just enough of an image that a driver finds
//! its way and reads versions.

use super::{AqError, Command, Result};
use crate::bits::put;

/// Size of flash and of shadow RAM in bytes.
const SIZE: usize = 0x10000;
/// Banks are measured in sectors.
const SECTOR: u16 = 4096;

/// Word addresses in shadow RAM.
mod word {
    pub const CONTROL: usize = 0x00;
    pub const NVM_VERSION: usize = 0x18;
    pub const IMAGE_ID: usize = 0x2d;
    pub const PFA: usize = 0x40;
    pub const NVM_BANK: usize = 0x42;
    pub const OROM_BANK: usize = 0x44;
    pub const NETLIST_BANK: usize = 0x46;
}

/// NVM version 4.60: major in the high 4 bits, then two decimal digits as hex.
const NVM_VERSION: u16 = 0x4060;
/// The image's identification ("EETRACK").
const IMAGE_ID: u32 = 0x8000_1000;
/// Where the preserved-fields area is, in words.
const PFA_AT: usize = 0x200;
/// Sectors of the first banks; the second one of each follows it.
const NVM_SECTOR: u16 = 1;
const OROM_SECTOR: u16 = 3;
const NETLIST_SECTOR: u16 = 5;
/// A pointer in sectors has this bit.
const IN_SECTORS: u16 = 0x8000;
/// Where the copy of the shadow RAM is in an NVM bank, in words, if the bank's
/// signed header has no length.
const COPY_AT: usize = 32;

/// Command 0x0701: reads flash or, without the "flash only" flag, shadow RAM.
/// Parameters: offset (24 bits), flags `u8`, module `u16`, length `u16`.
pub fn read(command: &mut Command) -> Result {
    const FLASH_ONLY: u8 = 0x80;
    let offset = (command.u32(0) & 0xff_ffff) as usize;
    let len = usize::from(command.u16(6));
    if command.u16(4) != 0 || len > command.buffer.len() {
        return Err(AqError::Invalid);
    }
    let image = if command.params[3] & FLASH_ONLY != 0 {
        flash()
    } else {
        shadow_ram()
    };
    let data = image.get(offset..offset + len).ok_or(AqError::Invalid)?;
    command.put_buffer(0, data);
    Ok(())
}

/// Command 0x0706: the image's checksum is right.
pub fn verify(command: &mut Command) -> Result {
    const RIGHT: u16 = 0xbaba;
    command.put(2, &RIGHT.to_le_bytes());
    Ok(())
}

fn put_word(image: &mut [u8], at: usize, value: u16) {
    put(image, at * 2, &value.to_le_bytes());
}

fn shadow_ram() -> Vec<u8> {
    let mut ram = vec![0; SIZE];
    // Valid (01 in bits 7:6), first banks active.
    put_word(&mut ram, word::CONTROL, 0x0040);
    put_word(&mut ram, word::NVM_VERSION, NVM_VERSION);
    put_word(&mut ram, word::IMAGE_ID, IMAGE_ID as u16);
    put_word(&mut ram, word::IMAGE_ID + 1, (IMAGE_ID >> 16) as u16);
    for (at, sector) in [
        (word::NVM_BANK, NVM_SECTOR),
        (word::OROM_BANK, OROM_SECTOR),
        (word::NETLIST_BANK, NETLIST_SECTOR),
    ] {
        put_word(&mut ram, at, IN_SECTORS | sector);
        put_word(&mut ram, at + 1, 1);
    }
    // A preserved-fields area of nothing but its length.
    put_word(&mut ram, word::PFA, PFA_AT as u16);
    put_word(&mut ram, PFA_AT, 2);
    ram
}

/// The option ROM's version record: "$CIV", checksum, version `u32`, length
/// and text of a name.
fn orom_record() -> [u8; 74] {
    let mut record = [0; 74];
    put(&mut record, 0, b"$CIV");
    // 1.3500.0: major in bits 31:24, build 23:8, patch 7:0.
    let version: u32 = 1 << 24 | 3500 << 8;
    put(&mut record, 5, &version.to_le_bytes());
    let sum = record.iter().fold(0u8, |sum, b| sum.wrapping_add(*b));
    put(&mut record, 4, &[sum.wrapping_neg()]);
    record
}

fn flash() -> Vec<u8> {
    let mut flash = vec![0; SIZE];
    let ram = shadow_ram();
    put(&mut flash, 0, &ram[..usize::from(SECTOR)]);
    let bank = |sector: u16| usize::from(sector) * usize::from(SECTOR);
    let copied = usize::from(SECTOR) - COPY_AT * 2;
    put(
        &mut flash,
        bank(NVM_SECTOR) + COPY_AT * 2,
        &ram[..copied.min(ram.len())],
    );
    put(&mut flash, bank(OROM_SECTOR), &orom_record());
    flash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bits::le16;

    fn read_at(offset: u32, flags: u8, len: u16) -> std::result::Result<Vec<u8>, AqError> {
        let mut command = Command {
            opcode: 0x0701,
            buffer: vec![0; usize::from(len)],
            ..Command::default()
        };
        command.put(0, &(offset | u32::from(flags) << 24).to_le_bytes());
        command.put(6, &len.to_le_bytes());
        read(&mut command).map(|()| command.buffer)
    }

    #[test]
    fn words() {
        assert_eq!(le16(&read_at(0x18 * 2, 0, 2).unwrap(), 0), 0x4060);
        assert_eq!(le16(&read_at(0x42 * 2, 0, 2).unwrap(), 0), 0x8001);
        let copy = read_at(0x1000 + 64 + 0x18 * 2, 0x80, 2).unwrap();
        assert_eq!(le16(&copy, 0), 0x4060);
    }

    #[test]
    fn end_of_flash() {
        assert_eq!(read_at(0xffff, 0x80, 1).unwrap(), [0]);
        assert_eq!(read_at(0x10000, 0x80, 1), Err(AqError::Invalid));
        assert_eq!(read_at(0xffff, 0x80, 2), Err(AqError::Invalid));
    }

    #[test]
    fn orom_sums_to_zero() {
        let record = read_at(0x3000, 0x80, 74).unwrap();
        assert_eq!(&record[..4], b"$CIV");
        assert_eq!(record.iter().fold(0u8, |s, b| s.wrapping_add(*b)), 0);
    }
}
