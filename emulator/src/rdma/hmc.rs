// SPDX-License-Identifier: GPL-2.0
//! Host memory cache: the function-private memory where the device keeps its objects, mapped by segment
//! descriptors (SD) of 2 MiB, each one block or a page of 4 KiB page pointers.

use std::collections::BTreeMap;

use serde_json::json;

use super::claims::{Claims, Owner};
use super::fpm::{Object, Plan};
use super::layout::hmc;
use super::Reported;
use crate::context::Context;
use crate::memory::GuestMemory;

/// A valid segment descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sd {
    /// 2 MiB of guest memory at this address.
    Direct(u64),
    /// A page of 512 page descriptors at this address.
    Paged(u64),
}

/// The page that a page descriptor names, if it is valid.
fn page_address(entry: u64) -> Option<u64> {
    hmc::PD_VALID
        .is_set(entry)
        .then_some(entry & hmc::SD_ADDRESS.mask())
}

/// The HMC of one function.
#[derive(Debug, Default)]
pub(crate) struct Hmc {
    /// Object counts and bases that the driver committed.
    pub plan: Option<Plan>,
    sds: BTreeMap<u32, Sd>,
    /// Pages of paged segment descriptors that are claimed, by SD and page number.
    pages: BTreeMap<(u32, u32), u64>,
}

impl Hmc {
    /// Writes one segment descriptor as UPDATE_PE_SDS does: a command word and a data word.
    pub fn write_sd(
        &mut self,
        cx: &mut Context<'_>,
        claims: &mut Claims,
        command: u64,
        data: u64,
    ) -> Result<(), Reported> {
        let index = hmc::SD_INDEX.get32(command);
        let address = data & hmc::SD_ADDRESS.mask();
        let direct = hmc::SD_DIRECT.is_set(data);
        let valid = hmc::SD_VALID.is_set(data);
        cx.trace(
            "sd",
            || json!({"index": index, "valid": valid, "direct": direct, "address": address}),
        );
        if !hmc::SD_WRITE.is_set(command) {
            cx.violation(
                "hmc",
                format!("SD {index}: command {command:#x} is not a write"),
            );
            return Err(Reported);
        }
        let limit = self.plan.as_ref().map_or(0, Plan::sd_count);
        if index >= limit {
            cx.violation(
                "hmc",
                format!("SD {index}: the committed objects take {limit} only"),
            );
            return Err(Reported);
        }
        claims.release(Owner::Sd(index));
        let pages = self.pages.range((index, 0)..=(index, u32::MAX));
        let pages: Vec<_> = pages.map(|(&place, _)| place).collect();
        for place in pages {
            self.pages.remove(&place);
        }
        if !valid {
            if self.sds.remove(&index).is_none() {
                cx.violation("hmc", format!("SD {index} is cleared but was not valid"));
            }
            return Ok(());
        }
        if self.sds.contains_key(&index) {
            cx.violation("hmc", format!("SD {index} is set a second time"));
        }
        let pages = hmc::SD_PAGE_COUNT.get(data);
        if pages != 512 {
            cx.violation("hmc", format!("SD {index}: {pages} backing pages, not 512"));
        }
        let (sd, length) = if direct {
            (Sd::Direct(address), hmc::SD_SPAN)
        } else {
            (Sd::Paged(address), hmc::PAGE)
        };
        if !cx.memory.contains(address, length as usize, true) {
            cx.violation(
                "hmc",
                format!("SD {index}: {address:#x} is not guest memory"),
            );
            return Err(Reported);
        }
        if let Err(conflict) = claims.claim(Owner::Sd(index), address, length) {
            cx.violation("dma", format!("SD {index}: {conflict}"));
            return Err(Reported);
        }
        self.sds.insert(index, sd);
        if let Sd::Paged(_) = sd {
            for page in 0..512 {
                self.refresh_page(cx, claims, index, page);
            }
        }
        Ok(())
    }

    /// The driver wrote PFHMC_PDINV: one page descriptor of a paged SD may have changed.
    pub fn invalidate_page(
        &mut self,
        cx: &mut Context<'_>,
        claims: &mut Claims,
        sd: u32,
        page: u32,
    ) {
        self.refresh_page(cx, claims, sd, page);
    }

    fn refresh_page(&mut self, cx: &mut Context<'_>, claims: &mut Claims, sd: u32, page: u32) {
        // Pages may be announced before their SD; the SD's own write reads them then.
        let Some(Sd::Paged(table)) = self.sds.get(&sd).copied() else {
            return;
        };
        let Ok(entry) = cx.read_u64("page descriptor", table + u64::from(page) * 8) else {
            return;
        };
        let new = page_address(entry);
        let old = self.pages.get(&(sd, page)).copied();
        if new == old {
            return;
        }
        if let Some(address) = old {
            claims.release_part(Owner::Sd(sd), address, hmc::PAGE);
            self.pages.remove(&(sd, page));
        }
        if let Some(address) = new {
            match claims.claim(Owner::Sd(sd), address, hmc::PAGE) {
                Ok(()) => {
                    self.pages.insert((sd, page), address);
                }
                Err(conflict) => {
                    cx.violation("dma", format!("page {page} of SD {sd}: {conflict}"));
                }
            }
        }
    }

    /// Whether the driver takes a page away that it had announced: `page` of the paged segment `sd`.
    pub fn takes_page(&self, memory: &GuestMemory, sd: u32, page: u32) -> bool {
        let (Some(Sd::Paged(table)), Some(&old)) = (self.sds.get(&sd), self.pages.get(&(sd, page)))
        else {
            return false;
        };
        let entry = memory.read_u64(table + u64::from(page) * 8);
        entry.is_ok_and(|entry| page_address(entry) != Some(old))
    }

    /// Whether a segment descriptor is valid.
    pub fn has_sd(&self, index: u32) -> bool {
        self.sds.contains_key(&index)
    }

    /// The guest address behind an address of the function-private memory, if a valid SD covers it.
    pub fn translate(&self, memory: &GuestMemory, fpm: u64) -> Option<u64> {
        let index = u32::try_from(fpm / hmc::SD_SPAN).ok()?;
        let offset = fpm % hmc::SD_SPAN;
        match *self.sds.get(&index)? {
            Sd::Direct(base) => Some(base + offset),
            Sd::Paged(table) => {
                let slot = table + offset / hmc::PAGE * 8;
                Some(page_address(memory.read_u64(slot).ok()?)? + offset % hmc::PAGE)
            }
        }
    }

    /// Checks that object number `index` has backing memory; missing memory is a violation.
    pub fn check_backing(
        &self,
        cx: &mut Context<'_>,
        object: Object,
        index: u32,
    ) -> Result<(), Reported> {
        let place = self.plan.as_ref().and_then(|p| p.address(object, index));
        let Some(address) = place else {
            let count = self.count(object);
            cx.violation(
                "hmc",
                format!("{object:?} {index}: only {count} are committed"),
            );
            return Err(Reported);
        };
        if self.translate(cx.memory, address).is_none() {
            cx.violation(
                "hmc",
                format!("{object:?} {index}: no SD covers {address:#x}"),
            );
            return Err(Reported);
        }
        Ok(())
    }

    /// The number of objects of a kind that the driver committed.
    pub fn count(&self, object: Object) -> u32 {
        self.plan.as_ref().map_or(0, |plan| plan.count(object))
    }

    /// The physical-buffer-list entry of this index, if there is one.
    pub fn peek_pble(&self, memory: &GuestMemory, index: u64) -> Option<u64> {
        let index = u32::try_from(index).ok()?;
        let address = self.plan.as_ref()?.address(Object::Pble, index)?;
        memory.read_u64(self.translate(memory, address)?).ok()
    }

    /// Reads a physical-buffer-list entry; an index out of range or without backing is a violation.
    pub fn pble(&self, cx: &mut Context<'_>, index: u64) -> Result<u64, Reported> {
        let count = self.count(Object::Pble);
        let place = u32::try_from(index)
            .ok()
            .and_then(|index| self.plan.as_ref()?.address(Object::Pble, index));
        let Some(address) = place else {
            cx.violation("hmc", format!("PBLE {index}: only {count} are committed"));
            return Err(Reported);
        };
        let Some(guest) = self.translate(cx.memory, address) else {
            cx.violation("hmc", format!("PBLE {index}: no SD covers {address:#x}"));
            return Err(Reported);
        };
        cx.read_u64("PBLE", guest).map_err(|_| Reported)
    }

    /// Whether every committed object but the PBLEs, which come on demand, has its backing memory.
    pub fn check_static(&self, cx: &mut Context<'_>) {
        let Some(plan) = &self.plan else {
            cx.violation(
                "hmc",
                "pages are reported allocated before the counts are committed",
            );
            return;
        };
        for (object, start, end) in plan.static_ranges() {
            let sds = start / hmc::SD_SPAN..end.div_ceil(hmc::SD_SPAN);
            let missing = sds
                .into_iter()
                .find_map(|sd| self.missing_page(cx.memory, sd, start, end));
            if let Some(page) = missing {
                let (sd, number) = (page / hmc::SD_SPAN, page % hmc::SD_SPAN / hmc::PAGE);
                let text = format!("{object:?}: page {number} of SD {sd} is not there");
                cx.violation("hmc", text);
            }
        }
    }

    /// The first page of segment `sd` within `start..end` that has no memory.
    fn missing_page(&self, memory: &GuestMemory, sd: u64, start: u64, end: u64) -> Option<u64> {
        if let Some(Sd::Direct(_)) = u32::try_from(sd).ok().and_then(|sd| self.sds.get(&sd)) {
            return None;
        }
        let from = start.max(sd * hmc::SD_SPAN);
        let to = end.min((sd + 1) * hmc::SD_SPAN);
        let mut pages = (from - from % hmc::PAGE..to).step_by(hmc::PAGE as usize);
        pages.find(|&page| {
            let place = self.translate(memory, page);
            !place.is_some_and(|at| memory.contains(at, hmc::PAGE as usize, true))
        })
    }

    /// Whether all segment descriptors were cleared.
    pub fn is_empty(&self) -> bool {
        self.sds.is_empty()
    }
}
