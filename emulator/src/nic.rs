// SPDX-License-Identifier: GPL-2.0
//! What a function of any generation can do for the machine around it.

use crate::context::Context;

/// What a generation's PCI function looks like from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// PCI vendor id.
    pub vendor: u16,
    /// PCI device id.
    pub device: u16,
    /// PCI subsystem vendor and device ids.
    pub subsystem: (u16, u16),
    /// PCI revision.
    pub revision: u8,
    /// Size of BAR 0 in bytes, a power of two.
    pub bar0_size: u64,
    /// Number of MSI-X vectors.
    pub vectors: u16,
}

/// Something that goes wrong in a function by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// The protocol engine meets an error that it cannot go on from; the
    /// number is told to the driver.
    CriticalError(u32),
    /// An access to the host memory cache fails.
    HmcError {
        /// What the error information register says.
        info: u32,
        /// What the error data register says.
        data: u32,
    },
    /// The protocol engine reports an asynchronous event.
    AsyncEvent {
        /// Its code, 12 bits.
        code: u16,
        /// What it is about, as the event queue encodes it: 1 receive queue,
        /// 2 completion queue, 5 send queue, 9 a request of the peer.
        source: u8,
        /// The number of the queue pair or completion queue.
        id: u32,
    },
    /// Another function resets the device's core.
    CoreReset,
}

/// A function of some generation. Time and everything outside of the function
/// come with each call, in the [`Context`].
pub trait Nic: Send {
    /// How the function shows itself on PCI.
    fn identity(&self) -> Identity;

    /// A read of `data.len()` (1, 2, 4 or 8) bytes of BAR 0.
    fn read(&mut self, cx: &mut Context<'_>, offset: u64, data: &mut [u8]);

    /// A write of `data.len()` (1, 2, 4 or 8) bytes to BAR 0.
    fn write(&mut self, cx: &mut Context<'_>, offset: u64, data: &[u8]);

    /// A frame arrives from the wire.
    fn receive(&mut self, cx: &mut Context<'_>, frame: &[u8]);

    /// The link went up or down (`cx.port.link_up`).
    fn link_changed(&mut self, cx: &mut Context<'_>);

    /// Timers whose time has come.
    fn poll(&mut self, cx: &mut Context<'_>);

    /// When [`Self::poll`] wants to be called next, in nanoseconds.
    fn next_deadline(&self) -> Option<u64>;

    /// Something goes wrong.
    fn incident(&mut self, cx: &mut Context<'_>, incident: Incident);

    /// Function-level reset.
    fn reset(&mut self, cx: &mut Context<'_>);
}
