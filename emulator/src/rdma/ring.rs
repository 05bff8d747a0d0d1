// SPDX-License-Identifier: GPL-2.0
//! A ring in guest memory: contiguous, or a list of 4 KiB pages held in PBLEs.

use super::claims::{Claims, Owner};
use super::hmc::Hmc;
use super::Reported;
use crate::context::Context;

const PAGE: u64 = 4096;

/// Where a ring lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RingBase {
    Contiguous(u64),
    /// Page addresses are the PBLEs from this index on.
    Paged {
        first_pble: u32,
    },
}

impl RingBase {
    /// The base as commands encode it: an address, or a first PBLE index if the ring is virtually mapped.
    pub fn new(paged: bool, address: u64, first_pble: u64) -> Self {
        if paged {
            RingBase::Paged {
                first_pble: first_pble as u32,
            }
        } else {
            RingBase::Contiguous(address)
        }
    }
}

/// A ring of equal entries that the device owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ring {
    pub owner: Owner,
    pub base: RingBase,
    /// Bytes of an entry; a power of two not above a page.
    pub entry: u32,
    /// Number of entries.
    pub count: u32,
}

impl Ring {
    /// Claims the ring's memory; a conflict with a live object is a violation.
    pub fn claim(
        &self,
        cx: &mut Context<'_>,
        hmc: &Hmc,
        claims: &mut Claims,
    ) -> Result<(), Reported> {
        let length = u64::from(self.entry) * u64::from(self.count);
        let mut done = 0;
        while done < length {
            let (address, piece) = match self.base {
                RingBase::Contiguous(address) => (address, length),
                RingBase::Paged { .. } => (self.page(cx, hmc, done)?, PAGE.min(length - done)),
            };
            if !cx.memory.contains(address, piece as usize, true) {
                let owner = self.owner;
                cx.violation("dma", format!("{owner}: {address:#x} is not guest memory"));
                return Err(Reported);
            }
            if let Err(conflict) = claims.claim(self.owner, address, piece) {
                cx.violation("dma", format!("{}: {conflict}", self.owner));
                return Err(Reported);
            }
            done += piece;
        }
        Ok(())
    }

    fn page(&self, cx: &mut Context<'_>, hmc: &Hmc, offset: u64) -> Result<u64, Reported> {
        let RingBase::Paged { first_pble } = self.base else {
            return Err(Reported);
        };
        let page = hmc.pble(cx, u64::from(first_pble) + offset / PAGE)?;
        if page % PAGE != 0 {
            let owner = self.owner;
            cx.violation(
                "hmc",
                format!("{owner}: PBLE holds {page:#x}, not a page address"),
            );
            return Err(Reported);
        }
        Ok(page)
    }

    /// The guest address of entry `index` (modulo the ring's length). The memory must still be the ring's own.
    pub fn address(
        &self,
        cx: &mut Context<'_>,
        hmc: &Hmc,
        claims: &Claims,
        index: u32,
    ) -> Result<u64, Reported> {
        let index = index.checked_rem(self.count).unwrap_or(0);
        let offset = u64::from(index) * u64::from(self.entry);
        let address = match self.base {
            // All of it was claimed with the object, and lives as long.
            RingBase::Contiguous(base) => return Ok(base + offset),
            RingBase::Paged { .. } => self.page(cx, hmc, offset)? + offset % PAGE,
        };
        if !claims.covers(self.owner, address, u64::from(self.entry)) {
            let owner = self.owner;
            cx.violation(
                "dma",
                format!("{owner}: entry {index} at {address:#x} is not its memory"),
            );
            return Err(Reported);
        }
        Ok(address)
    }
}
