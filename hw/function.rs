// SPDX-License-Identifier: GPL-2.0

//! What every part of the device needs: registers, the control queue, the LAN driver, and asking for
//! a reset.

use kernel::{
    device::{
        self,
        Bound, //
    },
    prelude::*,
    sync::{
        atomic::{
            ordering::Relaxed,
            Atomic, //
        },
        Arc, //
    }, //
};

use super::{
    cqp::Cqp,
    doorbell::Doorbells,
    graveyard,
    irq::Vector,
    lan_ops::LanOps,
    regs::Regs,
    reset::ResetState, //
};

/// Things that a device should not do, counted.
#[derive(Default)]
pub(crate) struct Faults {
    /// Completions of commands that nobody waits for: doubled, unknown or of another queue.
    pub(crate) unknown_commands: Counter,
    /// Completions of commands that came after their time.
    pub(crate) late_commands: Counter,
    /// Completion events for queues that do not exist.
    pub(crate) stale_events: Counter,
    /// Asynchronous events for objects that do not exist, or that nobody asked for.
    pub(crate) stray_async_events: Counter,
}

/// A counter that may be advanced in any context.
pub(crate) struct Counter(Atomic<u64>);

impl Default for Counter {
    fn default() -> Self {
        Self(Atomic::new(0))
    }
}

impl Counter {
    /// Advances the counter by one.
    pub(crate) fn count(&self) {
        self.0.add(1, Relaxed);
    }

    /// Returns the count.
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// The common part of the device.
#[pin_data]
pub(crate) struct Function<'a> {
    /// The control queue. Goes first, since its commands need the rest.
    #[pin]
    pub(super) cqp: Cqp<'a>,
    device: &'a device::Device<Bound>,
    parent: &'a device::Device<Bound>,
    regs: Regs<'a>,
    doorbells: Doorbells<'a>,
    /// Goes after the control queue, whose memory may have to wait for the reset as well.
    reset: ResetState<'a>,
    faults: Arc<Faults>,
    info: FunctionInfo,
}

/// What the LAN driver says about the function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FunctionInfo {
    /// The function's VSI.
    pub(crate) vsi: u16,
    /// Number of the physical function, which is also that in the function-private memory.
    pub(crate) number: u8,
    /// Transport protocol.
    pub(crate) protocol: Protocol,
}

/// Transport protocol of the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Protocol {
    /// iWARP (RFC 5040).
    Iwarp = 1,
    /// RoCEv2 (IBTA annex A17).
    Roce = 2,
}

impl<'a> Function<'a> {
    /// Makes the common part, and with it the control queue.
    ///
    /// # Errors
    ///
    /// Those of [`Cqp::new`].
    pub(crate) fn new(
        device: &'a device::Device<Bound>,
        parent: &'a device::Device<Bound>,
        regs: Regs<'a>,
        lan: KBox<dyn LanOps + 'a>,
        info: FunctionInfo,
    ) -> Result<Arc<Self>> {
        Arc::pin_init(
            try_pin_init!(Self {
                cqp <- Cqp::new(device, parent, regs.clone(), info.protocol),
                device,
                parent,
                regs,
                doorbells: Doorbells::new(regs)?,
                reset: ResetState::new(parent, lan),
                faults: Arc::new(Faults::default(), GFP_KERNEL)?,
                info,
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Returns the device that messages name: that which our driver is bound to.
    #[inline]
    pub(crate) fn device(&self) -> &'a device::Device<Bound> {
        self.device
    }

    /// Returns the device that does the DMA.
    #[inline]
    pub(crate) fn parent(&self) -> &'a device::Device<Bound> {
        self.parent
    }

    /// Returns the registers.
    #[inline]
    pub(crate) fn regs(&self) -> &Regs<'a> {
        &self.regs
    }

    /// Lets `vector` interrupt, once. What it would have told of before is forgotten: who was to be
    /// told looks once more.
    #[inline]
    pub(super) fn enable(&self, vector: &Vector<'_>) {
        // The vector exists: it was enabled when its handler was made.
        let _ = self.regs.enable_vector(vector.index());
    }

    /// Returns the doorbells.
    #[inline]
    pub(crate) fn doorbells(&self) -> &Doorbells<'a> {
        &self.doorbells
    }

    /// Returns the LAN driver's side.
    #[inline]
    pub(crate) fn lan(&self) -> &(dyn LanOps + 'a) {
        self.reset.lan()
    }

    /// Returns the counters of the device's faults.
    #[inline]
    pub(crate) fn faults(&self) -> &Arc<Faults> {
        &self.faults
    }

    /// Returns the function's VSI.
    #[inline]
    pub(crate) fn vsi(&self) -> u16 {
        self.info.vsi
    }

    /// Returns the number of the function in the function-private memory.
    #[inline]
    pub(crate) fn hmc_function(&self) -> u8 {
        self.info.number
    }

    /// Returns whether a reset is pending.
    #[inline]
    pub(crate) fn is_reset_pending(&self) -> bool {
        self.reset.is_pending()
    }

    /// Notes that the function will be reset by somebody else: commands fail from now on.
    pub(crate) fn expect_reset(&self) {
        self.reset.set();
    }

    /// Notes that the function is going to be taken away, after it had come up.
    pub(crate) fn expect_removal(&self) {
        self.reset.set_leaving();
    }

    /// Asks the LAN driver for a reset, once.
    #[doc(alias = "icrdma_request_reset")]
    pub(crate) fn request_reset(&self) {
        if !self.reset.set() {
            dev_warn!(self.device, "requesting a reset\n");
            if let Err(error) = self.reset.request() {
                dev_warn!(
                    self.device,
                    "the LAN driver does not take it now: {:?}\n",
                    error
                );
            }
        }
    }

    /// Asks again for a reset that the LAN driver did not take: it takes none while it is at another.
    pub(super) fn repeat_reset_request(&self) {
        if self.is_reset_refused() && self.reset.request().is_ok() {
            dev_warn!(
                self.device,
                "the LAN driver takes the request for a reset\n"
            );
        }
    }

    /// Returns whether a reset is pending that the LAN driver did not take.
    pub(super) fn is_reset_refused(&self) -> bool {
        self.reset.is_refused()
    }

    /// Returns the transport protocol.
    #[inline]
    pub(crate) fn protocol(&self) -> Protocol {
        self.info.protocol
    }

    /// Keeps memory that the device may still own until the function has been reset. May sleep.
    pub(crate) fn bury<T: Send + 'static>(&self, memory: T) {
        if !self.is_reset_pending() {
            dev_warn!(
                self.device,
                "memory that the device may still use is kept until the function is reset\n"
            );
        }
        graveyard::bury(self.parent, memory);
    }
}
