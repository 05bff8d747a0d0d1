// SPDX-License-Identifier: GPL-2.0
//! The RDMA half of a function: the protocol engine behind its registers.

use crate::context::Context;

/// The protocol that the function speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// RoCEv2: InfiniBand transport over UDP.
    #[default]
    Roce,
    /// iWARP: RDMA over TCP.
    Iwarp,
}

/// What an RDMA half is made from.
#[derive(Clone, Debug, Default)]
pub struct RdmaConfig {
    /// The protocol to start with.
    pub protocol: Protocol,
}

/// The RDMA half of one function.
#[derive(Debug)]
pub struct Rdma {
    config: RdmaConfig,
}

impl Rdma {
    /// Returns the state after a function reset.
    pub fn new(config: RdmaConfig) -> Self {
        Rdma { config }
    }

    /// Reads a register; `None` if it is not an RDMA register.
    pub fn read(&mut self, _cx: &mut Context<'_>, _offset: u32) -> Option<u32> {
        None
    }

    /// Writes a register; false if it is not an RDMA register.
    pub fn write(&mut self, _cx: &mut Context<'_>, _offset: u32, _value: u32) -> bool {
        false
    }

    /// A frame from the wire; true if it was for this half.
    pub fn receive(&mut self, _cx: &mut Context<'_>, _frame: &[u8]) -> bool {
        false
    }

    /// Timers whose time has come.
    pub fn poll(&mut self, _cx: &mut Context<'_>) {}

    /// When [`Self::poll`] wants to be called next, in nanoseconds.
    pub fn next_deadline(&self) -> Option<u64> {
        None
    }

    /// Function reset.
    pub fn reset(&mut self) {
        *self = Rdma::new(self.config.clone());
    }

    /// The admin queue gave the function a queue set: its handle is `qset`,
    /// its scheduler node `teid`, below node `parent`.
    pub fn add_qset(&mut self, _qset: u16, _teid: u32, _parent: u32) {}

    /// The admin queue took a queue set away.
    pub fn remove_qset(&mut self, _qset: u16) {}
}
