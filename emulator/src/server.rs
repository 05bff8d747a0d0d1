// SPDX-License-Identifier: GPL-2.0
//! The vfio-user server of one function: what the client (QEMU) asks becomes
//! calls on the [machine](crate::machine).
//!
//! The `vfio_user` crate leaves the payload of a message unread when the
//! backend refuses it, so nothing is ever refused here: what is wrong is
//! recorded as a violation and answered as a bus would.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use vfio_bindings::bindings::vfio::{
    vfio_region_info, VFIO_IRQ_INFO_EVENTFD, VFIO_IRQ_SET_ACTION_TRIGGER,
    VFIO_IRQ_SET_ACTION_TYPE_MASK, VFIO_IRQ_SET_DATA_EVENTFD, VFIO_IRQ_SET_DATA_NONE,
    VFIO_PCI_BAR0_REGION_INDEX, VFIO_PCI_BAR3_REGION_INDEX, VFIO_PCI_CONFIG_REGION_INDEX,
    VFIO_PCI_MSIX_IRQ_INDEX, VFIO_PCI_NUM_IRQS, VFIO_PCI_NUM_REGIONS, VFIO_REGION_INFO_FLAG_READ,
    VFIO_REGION_INFO_FLAG_WRITE,
};
use vfio_user::{DmaMapFlags, DmaUnmapFlags, IrqInfo, Server, ServerBackend, ServerRegion};

use crate::machine::Shared;
use crate::nic::Identity;
use crate::pci;

/// Listens at `path`. A socket that an earlier run left there is replaced.
pub fn listen(path: &Path, identity: &Identity) -> Result<Server, vfio_user::Error> {
    // What cannot be removed is reported by the bind that follows.
    let _ = std::fs::remove_file(path);
    Server::new(path, true, irqs(identity), regions(identity))
}

/// Serves one client of function `index` until it has gone.
pub fn serve(server: &Server, shared: Arc<Shared>, index: usize) -> Result<(), vfio_user::Error> {
    let mut backend = Backend {
        shared: shared.clone(),
        index,
    };
    let result = server.run(&mut backend);
    shared.with(|machine, now| {
        machine.clear_events(index);
        machine.reset(index, now);
        if let Some(memory) = machine.memory(index) {
            memory.clear();
        }
    });
    result
}

fn irqs(identity: &Identity) -> Vec<IrqInfo> {
    (0..VFIO_PCI_NUM_IRQS)
        .map(|index| IrqInfo {
            index,
            flags: VFIO_IRQ_INFO_EVENTFD,
            count: if index == VFIO_PCI_MSIX_IRQ_INDEX {
                u32::from(identity.vectors)
            } else {
                0
            },
        })
        .collect()
}

fn regions(identity: &Identity) -> Vec<ServerRegion> {
    (0..VFIO_PCI_NUM_REGIONS)
        .map(|index| {
            let size = match index {
                VFIO_PCI_BAR0_REGION_INDEX => identity.bar0_size,
                VFIO_PCI_BAR3_REGION_INDEX => pci::MSIX_BAR_SIZE,
                VFIO_PCI_CONFIG_REGION_INDEX => pci::SIZE as u64,
                _ => 0,
            };
            let flags = if size > 0 {
                VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE
            } else {
                0
            };
            ServerRegion {
                region_info: vfio_region_info {
                    argsz: std::mem::size_of::<vfio_region_info>() as u32,
                    index,
                    size,
                    flags,
                    ..Default::default()
                },
                sparse_areas: vec![],
                mmap_fd: None,
            }
        })
        .collect()
}

struct Backend {
    shared: Arc<Shared>,
    index: usize,
}

impl Backend {
    fn complain(&self, text: impl std::fmt::Display) {
        self.shared
            .with(|machine, _| machine.violation(self.index, "client", text));
    }
}

fn is_access(len: usize) -> bool {
    matches!(len, 1 | 2 | 4 | 8)
}

impl ServerBackend for Backend {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> io::Result<()> {
        data.fill(0xff);
        match region {
            VFIO_PCI_BAR0_REGION_INDEX if is_access(data.len()) => self
                .shared
                .with(|machine, now| machine.read(self.index, offset, data, now)),
            VFIO_PCI_CONFIG_REGION_INDEX => self.shared.with(|machine, _| {
                if let Some(config) = machine.config(self.index) {
                    config.read(offset, data);
                }
            }),
            // The client keeps the MSI-X table itself.
            VFIO_PCI_BAR3_REGION_INDEX => data.fill(0),
            _ => self.complain(format!(
                "read of {} bytes at {offset:#x} in region {region}",
                data.len()
            )),
        }
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> io::Result<()> {
        match region {
            VFIO_PCI_BAR0_REGION_INDEX if is_access(data.len()) => self
                .shared
                .with(|machine, now| machine.write(self.index, offset, data, now)),
            VFIO_PCI_CONFIG_REGION_INDEX => self.shared.with(|machine, _| {
                if let Some(config) = machine.config(self.index) {
                    config.write(offset, data);
                }
            }),
            VFIO_PCI_BAR3_REGION_INDEX => {}
            _ => self.complain(format!(
                "write of {} bytes at {offset:#x} in region {region}",
                data.len()
            )),
        }
        Ok(())
    }

    fn dma_map(
        &mut self,
        flags: DmaMapFlags,
        offset: u64,
        address: u64,
        size: u64,
        fd: Option<File>,
    ) -> io::Result<()> {
        let writable = flags.contains(DmaMapFlags::WRITE);
        let result = self.shared.with(|machine, _| {
            machine
                .memory(self.index)
                .map(|memory| memory.map(address, size, fd.map(|fd| (fd, offset)), writable))
        });
        if let Some(Err(error)) = result {
            self.complain(error);
        }
        Ok(())
    }

    fn dma_unmap(&mut self, _flags: DmaUnmapFlags, address: u64, size: u64) -> io::Result<()> {
        let result = self.shared.with(|machine, _| {
            machine
                .memory(self.index)
                .map(|memory| memory.unmap(address, size))
        });
        if let Some(Err(error)) = result {
            self.complain(error);
        }
        Ok(())
    }

    fn reset(&mut self) -> io::Result<()> {
        self.shared
            .with(|machine, now| machine.reset(self.index, now));
        Ok(())
    }

    fn set_irqs(
        &mut self,
        index: u32,
        flags: u32,
        start: u32,
        count: u32,
        fds: Vec<File>,
    ) -> io::Result<()> {
        if index != VFIO_PCI_MSIX_IRQ_INDEX
            || flags & VFIO_IRQ_SET_ACTION_TYPE_MASK != VFIO_IRQ_SET_ACTION_TRIGGER
        {
            return Ok(());
        }
        if flags & VFIO_IRQ_SET_DATA_NONE != 0 && count == 0 {
            self.shared
                .with(|machine, _| machine.clear_events(self.index));
        } else if flags & VFIO_IRQ_SET_DATA_EVENTFD != 0 {
            // A vector without a file loses the one it had.
            let mut fds = fds.into_iter();
            let known = self.shared.with(|machine, _| {
                (start..start.saturating_add(count.min(4096))).all(|vector| {
                    u16::try_from(vector)
                        .is_ok_and(|vector| machine.set_event(self.index, vector, fds.next()))
                })
            });
            if !known {
                self.complain(format!(
                    "eventfds for vectors {start}+{count}, of which some do not exist"
                ));
            }
        }
        Ok(())
    }
}
