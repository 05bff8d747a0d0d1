// SPDX-License-Identifier: GPL-2.0
//! The DDP package that the driver downloads. The tables in it are not
//! interpreted; its name and version are told back.

use super::{Command, Result};
use crate::bits::{le16, le32, put};

/// Name, version and track id of a package, as they stand in its metadata:
/// version (4 bytes), name (28), track id `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata([u8; 36]);

/// Section type of the metadata.
const METADATA: u32 = 1;

impl Metadata {
    /// Finds the metadata in a package buffer: section count `u16`, end
    /// `u16`, then for each section type `u32`, offset `u16`, size `u16`.
    fn find(buffer: &[u8]) -> Option<Self> {
        (0..usize::from(le16(buffer, 0)))
            .map(|i| 4 + i * 8)
            .find(|&at| le32(buffer, at) == METADATA)
            .and_then(|at| {
                let offset = usize::from(le16(buffer, at + 4));
                let data = buffer.get(offset..offset + 36)?;
                data.try_into().ok().map(Metadata)
            })
    }
}

/// The package that the device has.
#[derive(Debug, Default)]
pub struct Package {
    metadata: Option<Metadata>,
    complete: bool,
}

impl Package {
    /// Returns whether a package has been downloaded. It stays through a
    /// function reset, and drivers must not download another.
    pub fn loaded(&self) -> bool {
        self.complete
    }

    /// Command 0x0C40: a buffer of the package. Parameters of the reply: error
    /// offset `u32`, error information `u32`.
    pub fn download(&mut self, command: &mut Command) -> Result {
        const LAST: u8 = 1;
        if let Some(metadata) = Metadata::find(&command.buffer) {
            self.metadata = Some(metadata);
        }
        self.complete |= command.params[0] & LAST != 0;
        command.put(0, &[0; 8]);
        Ok(())
    }

    /// Command 0x0C43: the packages that the device has: count `u32`, then
    /// metadata and four flags each: in NVM, active, active at boot, modified.
    pub fn list(&self, command: &mut Command) -> Result {
        command.buffer.fill(0);
        if let Some(Metadata(metadata)) = self.metadata.filter(|_| self.complete) {
            put(&mut command.buffer, 0, &1u32.to_le_bytes());
            put(&mut command.buffer, 4, &metadata);
            put(&mut command.buffer, 4 + metadata.len(), &[0, 1, 0, 0]);
        }
        Ok(())
    }

    /// Core reset: the package is lost.
    pub fn reset(&mut self) {
        *self = Package::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ddp;

    #[test]
    fn tells_back_what_was_downloaded() {
        let mut package = Package::default();
        let mut list = Command {
            buffer: vec![0xff; 4096],
            ..Command::default()
        };
        package.list(&mut list).unwrap();
        assert_eq!(le32(&list.buffer, 0), 0);
        let file = ddp::package();
        let mut download = Command {
            buffer: file[file.len() - 4096..].to_vec(),
            ..Command::default()
        };
        download.put(0, &[1]);
        package.download(&mut download).unwrap();
        assert!(package.loaded());
        package.list(&mut list).unwrap();
        assert_eq!(le32(&list.buffer, 0), 1);
        assert_eq!(list.buffer[4..8], [1, 3, 43, 0]);
        assert_eq!(&list.buffer[8..30], b"ICE OS Default Package");
        assert_eq!(list.buffer[40..44], [0, 1, 0, 0]);
    }
}
