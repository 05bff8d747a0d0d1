// SPDX-License-Identifier: GPL-2.0

//! Access to the registers.

use kernel::{
    io::{
        Io,
        Mmio,
        MmioRaw,
        Region, //
    },
    prelude::*, //
};

use super::hal::{
    CqpStatus,
    CqpTail,
    Hal, //
};
use crate::bindings::iidc;

/// Least size of the BAR in bytes: up to the end of the doorbell pages.
pub(crate) const BAR_SIZE: usize = 8 * 1024 * 1024;

/// The BAR of the function.
pub(crate) type Bar<'a> = Mmio<'a, Region<BAR_SIZE>>;

/// Where the LAN driver has mapped the function's BAR.
#[derive(Clone, Copy)]
pub(crate) struct BarMapping<'a> {
    bar: Bar<'a>,
    address: usize,
}

impl<'a> BarMapping<'a> {
    /// Takes over the LAN driver's mapping.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the mapping is smaller than [`BAR_SIZE`] or not aligned.
    pub(crate) fn new(registers: iidc::Registers<'a>) -> Result<Self> {
        let address = registers.address();
        let raw = MmioRaw::<Region<BAR_SIZE>>::new_region(address, registers.size())?;

        Ok(Self {
            // SAFETY: This is a mapping of I/O memory for `'a` by the invariant of
            // `iidc::Registers`, and its size and alignment have just been checked.
            bar: unsafe { Mmio::from_raw(raw) },
            address,
        })
    }

    /// Returns the doorbell at `offset`.
    fn doorbell(&self, offset: usize) -> Result<DoorbellRegister<'a>> {
        let end = offset.checked_add(size_of::<u32>()).ok_or(EINVAL)?;

        if end > self.bar.size() || offset % align_of::<u32>() != 0 {
            return Err(EINVAL);
        }

        Ok(DoorbellRegister {
            // SAFETY: The register is inside of the mapping, which is good for `'a`, and aligned:
            // the mapping begins at a multiple of 4.
            register: unsafe { Mmio::from_raw(MmioRaw::new(self.address.wrapping_add(offset))) },
        })
    }
}

/// A doorbell: a register that is only written.
#[derive(Clone, Copy)]
pub(crate) struct DoorbellRegister<'a> {
    register: Mmio<'a, u32>,
}

impl DoorbellRegister<'_> {
    /// Writes the doorbell. What was written to memory before is visible to the device first.
    #[inline]
    pub(crate) fn ring(&self, value: u32) {
        self.register.write_val(value);
    }
}

/// The registers of the function, through the eyes of its generation.
#[derive(Clone, Copy)]
pub(crate) struct Regs<'a> {
    bar: Bar<'a>,
    mapping: BarMapping<'a>,
    hal: &'static dyn Hal,
}

impl<'a> Regs<'a> {
    /// Makes registers of a mapping.
    pub(crate) fn new(mapping: BarMapping<'a>, hal: &'static dyn Hal) -> Self {
        Self {
            bar: mapping.bar,
            mapping,
            hal,
        }
    }

    /// Returns what is particular to the generation.
    pub(crate) fn hal(&self) -> &'static dyn Hal {
        self.hal
    }

    /// Returns the doorbell at `offset`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is no register at `offset`.
    pub(crate) fn doorbell(&self, offset: usize) -> Result<DoorbellRegister<'a>> {
        self.mapping.doorbell(offset)
    }

    /// Checks that the protocol engine is up.
    pub(crate) fn is_ready(&self) -> bool {
        self.hal.is_ready(self.bar)
    }

    /// Checks that the function's doorbells are switched on.
    pub(crate) fn has_doorbells(&self) -> bool {
        self.hal.has_doorbells(self.bar)
    }

    /// Clears what an earlier control queue left behind.
    pub(crate) fn clear_cqp(&self) {
        self.hal.clear_cqp(self.bar);
    }

    /// Creates the control queue from the context at `address`; 0 destroys it.
    pub(crate) fn set_cqp_context(&self, address: u64) {
        self.hal.set_cqp_context(self.bar, address);
    }

    /// Reads the state of the control queue.
    pub(crate) fn cqp_status(&self) -> CqpStatus {
        self.hal.cqp_status(self.bar)
    }

    /// Reads how far the device is with the control queue.
    pub(crate) fn cqp_tail(&self) -> CqpTail {
        self.hal.cqp_tail(self.bar)
    }

    /// Reads the (major, minor) codes of the control queue's last error.
    pub(crate) fn cqp_error(&self) -> (u16, u16) {
        self.hal.cqp_error(self.bar)
    }

    /// Tells the device of new commands; `head` is the index after the last one.
    pub(crate) fn ring_cqp(&self, head: u32) {
        self.hal.ring_cqp(self.bar, head);
    }

    /// Lets `vector` interrupt, once.
    pub(crate) fn enable_vector(&self, vector: u32) -> Result {
        self.hal.enable_vector(self.bar, vector)
    }

    /// Stops `vector` from interrupting.
    pub(crate) fn disable_vector(&self, vector: u32) -> Result {
        self.hal.disable_vector(self.bar, vector)
    }

    /// Connects completion event queue `ceq` with `vector`, or takes it off.
    pub(crate) fn configure_ceq(&self, ceq: u32, vector: u32, enable: bool) -> Result {
        self.hal.configure_ceq(self.bar, ceq, vector, enable)
    }

    /// Connects the asynchronous event queue with `vector`, or takes it off.
    pub(crate) fn configure_aeq(&self, vector: u32, enable: bool) -> Result {
        self.hal.configure_aeq(self.bar, vector, enable)
    }

    /// Takes the asynchronous event queue off its vector before its destruction.
    pub(crate) fn clear_aeq(&self) {
        self.hal.clear_aeq(self.bar);
    }

    /// Gives `count` entries of the asynchronous event queue back.
    pub(crate) fn return_aeq_entries(&self, count: u32) {
        self.hal.return_aeq_entries(self.bar, count);
    }

    /// Has the device forget what it knows about a page descriptor of a segment.
    pub(crate) fn invalidate_page(&self, segment: u32, page: u32) -> Result {
        self.hal.invalidate_page(self.bar, segment, page)
    }

    /// Reads the cause of a critical error and tells whether only a reset ends it.
    pub(crate) fn critical_error(&self) -> (u32, bool) {
        let cause = self.hal.critical_error(self.bar);

        (cause, self.hal.is_fatal(cause))
    }

    /// Reads the (information, data) of an error in the function-private memory.
    pub(crate) fn hmc_error(&self) -> (u32, u32) {
        self.hal.hmc_error(self.bar)
    }
}
