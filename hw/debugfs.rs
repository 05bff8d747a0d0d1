// SPDX-License-Identifier: GPL-2.0

//! `/sys/kernel/debug/irdma_rs`: a folder for each function, named by its PCI address.
//!
//! `tables` there tells how many entries of each table of the device are in use, of how many. It is
//! for people, and for tests that look for what was not given back; its format may change. So is
//! `faults`, which counts what the device should not have done.

use kernel::{
    debugfs::{
        Dir,
        File, //
    },
    device::Device,
    fmt,
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use super::{
    arp::ArpTable,
    function::Faults,
    gauge::Gauge,
    graveyard,
    ids::{
        IdPools,
        Ids, //
    },
    pble::Entries, //
};

kernel::sync::global_lock! {
    // SAFETY: `Root::new` initializes it, before any function is probed.
    unsafe(uninit) static ROOT: Mutex<Option<Dir>> = None;
}

/// The module's folder, which is there for as long as this lives.
pub(crate) struct Root(());

impl Root {
    /// Makes the folder.
    ///
    /// # Safety
    ///
    /// To be called once, before anything else of this file.
    pub(crate) unsafe fn new() -> Self {
        // SAFETY: By this function's requirements nobody has initialized it or used it.
        unsafe { ROOT.init() };
        *ROOT.lock() = Some(Dir::new(c"irdma_rs"));

        Self(())
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let folder = ROOT.lock().take();

        // Not under the lock: it waits for readers.
        drop(folder);
    }
}

/// The tables of a function. None of them needs the device.
pub(super) struct Tables {
    pub(super) function: ARef<Device>,
    pub(super) ids: Arc<IdPools>,
    pub(super) arp: Arc<ArpTable>,
    pub(super) entries: Entries,
    pub(super) segments: Arc<Gauge>,
    pub(super) max_segments: u32,
}

impl Tables {
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids = |f: &mut fmt::Formatter<'_>, name: &str, ids: &Ids| {
            writeln!(f, "{name} {} {}", ids.used(), ids.usable())
        };

        ids(f, "qp", &self.ids.qps)?;
        ids(f, "cq", &self.ids.cqs)?;
        ids(f, "pd", &self.ids.pds)?;
        ids(f, "mr", &self.ids.mrs)?;
        ids(f, "ah", &self.ids.ahs)?;
        ids(f, "mcast_group", &self.ids.mcast_groups)?;

        let (used, usable) = self.arp.occupancy();
        writeln!(f, "arp {used} {usable}")?;
        let (used, usable) = self.entries.occupancy();
        writeln!(f, "pble {used} {usable}")?;
        writeln!(f, "segment {} {}", self.segments.get(), self.max_segments)?;
        writeln!(f, "grave {}", graveyard::count(&self.function))
    }
}

fn show_faults(faults: &Arc<Faults>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "unknown_command {}", faults.unknown_commands.get())?;
    writeln!(f, "late_command {}", faults.late_commands.get())?;
    writeln!(f, "stale_event {}", faults.stale_events.get())?;
    writeln!(f, "stray_async_event {}", faults.stray_async_events.get())
}

/// The files of a function, which are there for as long as this lives.
pub(super) struct Files {
    _tables: Pin<KBox<File<Tables>>>,
    _faults: Pin<KBox<File<Arc<Faults>>>>,
}

/// Makes the files of a function.
///
/// # Errors
///
/// `ENOMEM`. A file that cannot be made otherwise is merely missing.
pub(super) fn files(tables: Tables, faults: Arc<Faults>) -> Result<Files> {
    let folder = match &*ROOT.lock() {
        Some(root) => root.subdir(tables.function.name()),
        None => return Err(ENODEV),
    };

    Ok(Files {
        _tables: KBox::pin_init(
            folder.read_callback_file(c"tables", tables, &Tables::show),
            GFP_KERNEL,
        )?,
        _faults: KBox::pin_init(
            folder.read_callback_file(c"faults", faults, &show_faults),
            GFP_KERNEL,
        )?,
    })
}
