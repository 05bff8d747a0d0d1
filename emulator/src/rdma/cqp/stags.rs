// SPDX-License-Identifier: GPL-2.0
//! Commands on memory regions and windows.

use serde_json::json;

use super::super::fpm::Object;
use super::super::layout::wqe;
use super::super::mr::{split_index, unbind, Kind, Mapping, Mr, PageSize, Rights, Translation};
use super::super::Rdma;
use super::{Command, Done, Failure, Outcome};
use crate::context::Context;

/// The region's number and the driver's own bits above it.
fn index(rdma: &Rdma, c: &Command) -> (u32, u32) {
    split_index(rdma, c.get32(2, wqe::STAG_INDEX))
}

fn pd(rdma: &Rdma, c: &Command) -> u32 {
    c.get32(1, rdma.layout.stag_pd)
}

/// Checks that the STag may be made: in range, not in use, backed by memory.
fn check_new(rdma: &Rdma, cx: &mut Context<'_>, c: &Command) -> Result<(u32, u32), Failure> {
    let (index, tag) = index(rdma, c);
    if index == 0 || rdma.mrs.contains_key(&index) {
        let text = format!("STag {index:#x} exists or is reserved");
        return Err(c.refuse(cx, Failure::INVALID_ID, text));
    }
    rdma.hmc.check_backing(cx, Object::Mr, index)?;
    Ok((index, tag))
}

fn page_size(cx: &mut Context<'_>, c: &Command) -> Result<PageSize, Failure> {
    let code = c.head(wqe::STAG_PAGE_SIZE);
    PageSize::from_code(code).ok_or_else(|| {
        c.refuse(
            cx,
            Failure::INVALID_COMMAND,
            format!("page size code {code}"),
        )
    })
}

fn translation(cx: &mut Context<'_>, c: &Command) -> Result<Translation, Failure> {
    let code = c.head(wqe::LEAF_SIZE);
    Translation::new(code, c.words[4], c.get(6, wqe::FIRST_PBLE)).ok_or_else(|| {
        c.refuse(
            cx,
            Failure::INVALID_COMMAND,
            format!("page list code {code}"),
        )
    })
}

/// ALLOC_STAG: a region for fast registration, or a memory window.
pub(super) fn allocate(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let (index, tag) = check_new(rdma, cx, c)?;
    let pd = pd(rdma, c);
    let (kind, max_length) = if c.flag(wqe::STAG_IS_MR) {
        page_size(cx, c)?;
        let length = c.get(1, wqe::STAG_LENGTH);
        if length == 0 {
            let text = format!("STag {index:#x} of length zero would be all of memory");
            return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
        }
        (Kind::Region, length)
    } else {
        let wide = c.flag(wqe::STAG_MW_WIDE);
        (Kind::Window { wide }, 0)
    };
    rdma.mrs.insert(
        index,
        Mr {
            index,
            tag,
            key: 0,
            kind,
            pd,
            remote: c.flag(wqe::STAG_REMOTE),
            max_length,
            mapping: None,
            windows: 0,
        },
    );
    Ok(Done::OK)
}

/// REG_MR: a region that is valid at once. Length zero is the kernel's key to all of memory.
pub(super) fn register(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let (index, tag) = check_new(rdma, cx, c)?;
    let page_size = page_size(cx, c)?;
    let translation = translation(cx, c)?;
    let length = c.get(1, wqe::STAG_LENGTH);
    let start = c.words[0];
    let va_based = c.flag(wqe::STAG_VA_BASED);
    let rights = Rights(c.head(wqe::STAG_RIGHTS) as u8);
    let remote = c.flag(wqe::STAG_REMOTE);
    if !c.flag(wqe::STAG_IS_MR) || remote != rights.is_remote() {
        let text = format!("STag {index:#x}: rights {rights:?}, remote access {remote}");
        c.violation(cx, text);
    }
    if c.flag(wqe::STAG_ATOMICS) {
        let text = format!("STag {index:#x}: atomics, which the device does not offer");
        c.violation(cx, text);
    }
    let size = page_size.bytes();
    if !va_based && start >= size {
        let text = format!("STag {index:#x}: offset {start:#x} in a page of {size:#x}");
        return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
    }
    if va_based && start.checked_add(length).is_none() {
        let text = format!("STag {index:#x}: {start:#x}+{length:#x} wraps around");
        return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
    }
    let pages = (start % size).saturating_add(length).div_ceil(size);
    check_translation(rdma, cx, c, translation, pages, size)?;
    if length == 0 {
        cx.trace(
            "all_memory_key",
            || json!({"stag": index, "rights": rights.0}),
        );
        if !matches!(translation, Translation::Contiguous(0)) || start != 0 {
            let text = format!("STag {index:#x} of length zero at {start:#x}");
            return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
        }
    }
    let mapping = Mapping {
        rights,
        start,
        length,
        va_based,
        page_size,
        translation,
        parent: None,
        qp: None,
    };
    rdma.mrs.insert(
        index,
        Mr {
            index,
            tag,
            key: c.get(2, wqe::STAG_KEY) as u8,
            kind: Kind::Region,
            pd: pd(rdma, c),
            remote,
            max_length: length,
            mapping: Some(mapping),
            windows: 0,
        },
    );
    Ok(Done::OK)
}

fn check_translation(
    rdma: &Rdma,
    cx: &mut Context<'_>,
    c: &Command,
    translation: Translation,
    pages: u64,
    size: u64,
) -> Result<(), Failure> {
    let available = u64::from(rdma.hmc.count(Object::Pble));
    let fits = |first: u64, count: u64| first.saturating_add(count) <= available;
    match translation {
        Translation::Contiguous(address) => {
            if address % size != 0 {
                let text = format!("block at {address:#x} with pages of {size:#x}");
                return Err(c.refuse(cx, Failure::INVALID_MEMORY, text));
            }
        }
        Translation::Level1 { first_pble } => {
            if !fits(first_pble, pages) {
                let text = format!("PBLEs {first_pble}+{pages} of {available}");
                return Err(c.refuse(cx, Failure::INVALID_MEMORY, text));
            }
            rdma.hmc.pble(cx, first_pble)?;
        }
        Translation::Level2 { root_pble } => {
            let leaves = pages.div_ceil(512);
            if !fits(root_pble, leaves) {
                let text = format!("root PBLEs {root_pble}+{leaves} of {available}");
                return Err(c.refuse(cx, Failure::INVALID_MEMORY, text));
            }
            for leaf in 0..leaves {
                let first = rdma.hmc.pble(cx, root_pble + leaf)?;
                let count = (pages - leaf * 512).min(512);
                if !fits(first, count) {
                    let text = format!("leaf {leaf}: PBLEs {first}+{count} of {available}");
                    return Err(c.refuse(cx, Failure::INVALID_MEMORY, text));
                }
            }
        }
    }
    Ok(())
}

pub(super) fn query(rdma: &mut Rdma, _cx: &mut Context<'_>, c: &Command) -> Outcome {
    let (index, tag) = index(rdma, c);
    match rdma.mrs.get(&index) {
        Some(mr) if mr.mapping.is_some() && mr.tag == tag => Ok(Done::OK),
        _ => Err(Failure::STAG_INVALID),
    }
}

pub(super) fn deallocate(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let (index, tag) = index(rdma, c);
    let Some(mr) = rdma.mrs.get(&index).copied() else {
        let text = format!("STag {index:#x} does not exist");
        return Err(c.refuse(cx, Failure::INVALID_ID, text));
    };
    let is_region = mr.kind == Kind::Region;
    if is_region != c.flag(wqe::STAG_IS_MR) || mr.pd != pd(rdma, c) || mr.tag != tag {
        let text = format!(
            "STag {index:#x} is a {:?} of PD {}, tag {:#x}",
            mr.kind, mr.pd, mr.tag
        );
        return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
    }
    if mr.windows != 0 {
        return Err(Failure::IN_USE);
    }
    if let Some(parent) = mr.mapping.and_then(|m| m.parent) {
        unbind(rdma, parent);
    }
    rdma.mrs.remove(&index);
    Ok(Done::OK)
}
