// SPDX-License-Identifier: GPL-2.0

//! Access to the registers.

use kernel::{
    io::{
        Io,
        Mmio,
        MmioRaw,
        Region, //
    },
    prelude::*,
    sync::Arc, //
};

use super::hal::{
    CqpStatus,
    CqpTail,
    Hal, //
};
use crate::bindings::iidc;

/// A look at the function's BAR, of which at least `SIZE` bytes are mapped.
pub(crate) type Window<'a, const SIZE: usize> = Mmio<'a, Region<SIZE>>;

/// Where the LAN driver has mapped the function's BAR.
#[derive(Clone, Copy)]
pub(crate) struct BarMapping<'a>(iidc::Registers<'a>);

impl<'a> BarMapping<'a> {
    /// Takes over the LAN driver's mapping.
    pub(crate) fn new(registers: iidc::Registers<'a>) -> Self {
        Self(registers)
    }

    /// Returns a window of `SIZE` bytes or more.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the mapping is smaller or not aligned.
    pub(crate) fn window<const SIZE: usize>(&self) -> Result<Window<'a, SIZE>> {
        let raw = MmioRaw::<Region<SIZE>>::new_region(self.0.address(), self.0.size())?;

        // SAFETY: This is a mapping of I/O memory for `'a` by the invariant of `iidc::Registers`,
        // and its size and alignment have just been checked.
        Ok(unsafe { Mmio::from_raw(raw) })
    }

    /// Returns the doorbell at `offset`.
    fn doorbell(&self, offset: usize) -> Result<DoorbellRegister<'a>> {
        let end = offset.checked_add(size_of::<u32>()).ok_or(EINVAL)?;
        let address = self.0.address().wrapping_add(offset);

        if end > self.0.size() || address % align_of::<u32>() != 0 {
            return Err(EINVAL);
        }

        Ok(DoorbellRegister {
            // SAFETY: The register is aligned and inside of the mapping, which is good for `'a`.
            register: unsafe { Mmio::from_raw(MmioRaw::new(address)) },
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
#[derive(Clone)]
pub(crate) struct Regs<'a> {
    mapping: BarMapping<'a>,
    hal: Arc<dyn Hal + 'a>,
}

impl<'a> Regs<'a> {
    /// Makes registers of a mapping, and of the generation's look at it.
    ///
    /// # Errors
    ///
    /// `ENOMEM`
    pub(crate) fn new(mapping: BarMapping<'a>, hal: impl Hal + 'a) -> Result<Self> {
        let hal = Arc::new(hal, GFP_KERNEL)?;

        Ok(Self { mapping, hal })
    }

    /// Returns what is particular to the generation.
    pub(crate) fn hal(&self) -> &(dyn Hal + 'a) {
        &*self.hal
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
        self.hal.is_ready()
    }

    /// Checks that the function's doorbells are switched on.
    pub(crate) fn has_doorbells(&self) -> bool {
        self.hal.has_doorbells()
    }

    /// Clears what an earlier control queue left behind.
    pub(crate) fn clear_cqp(&self) {
        self.hal.clear_cqp();
    }

    /// Creates the control queue from the context at `address`; 0 destroys it.
    pub(crate) fn set_cqp_context(&self, address: u64) {
        self.hal.set_cqp_context(address);
    }

    /// Reads the state of the control queue.
    pub(crate) fn cqp_status(&self) -> CqpStatus {
        self.hal.cqp_status()
    }

    /// Reads how far the device is with the control queue.
    pub(crate) fn cqp_tail(&self) -> CqpTail {
        self.hal.cqp_tail()
    }

    /// Reads the (major, minor) codes of the control queue's last error.
    pub(crate) fn cqp_error(&self) -> (u16, u16) {
        self.hal.cqp_error()
    }

    /// Tells the device of new commands; `head` is the index after the last one.
    pub(crate) fn ring_cqp(&self, head: u32) {
        self.hal.ring_cqp(head);
    }

    /// Lets `vector` interrupt, once.
    pub(crate) fn enable_vector(&self, vector: u32) -> Result {
        self.hal.enable_vector(vector)
    }

    /// Stops `vector` from interrupting.
    pub(crate) fn disable_vector(&self, vector: u32) -> Result {
        self.hal.disable_vector(vector)
    }

    /// Connects completion event queue `ceq` with `vector`, or takes it off.
    pub(crate) fn configure_ceq(&self, ceq: u32, vector: u32, enable: bool) -> Result {
        self.hal.configure_ceq(ceq, vector, enable)
    }

    /// Connects the asynchronous event queue with `vector`, or takes it off.
    pub(crate) fn configure_aeq(&self, vector: u32, enable: bool) -> Result {
        self.hal.configure_aeq(vector, enable)
    }

    /// Takes the asynchronous event queue off its vector before its destruction.
    pub(crate) fn clear_aeq(&self) {
        self.hal.clear_aeq();
    }

    /// Gives `count` entries of the asynchronous event queue back.
    pub(crate) fn return_aeq_entries(&self, count: u32) {
        self.hal.return_aeq_entries(count);
    }

    /// Has the device forget what it knows about a page descriptor of a segment.
    pub(crate) fn invalidate_page(&self, segment: u32, page: u32) -> Result {
        self.hal.invalidate_page(segment, page)
    }

    /// Reads the cause of a critical error and tells whether only a reset ends it.
    pub(crate) fn critical_error(&self) -> (u32, bool) {
        let cause = self.hal.critical_error();

        (cause, self.hal.is_fatal(cause))
    }

    /// Reads the (information, data) of an error in the function-private memory.
    pub(crate) fn hmc_error(&self) -> (u32, u32) {
        self.hal.hmc_error()
    }
}
