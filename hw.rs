// SPDX-License-Identifier: GPL-2.0

//! The device: registers, doorbells, queues, function-private memory.
//!
//! Only this room touches a register or a doorbell. Memory that the device reads or writes is in
//! [`dma`], registers are in [`regs`] and [`hal`], interrupts in [`irq`]; everything else is made
//! of these, of a completion and of periodic work, and needs no `unsafe`. But for the global lock of
//! [`graveyard`], which a macro has it so.

#[forbid(unsafe_code)]
pub(crate) mod aeq;
#[forbid(unsafe_code)]
pub(crate) mod arp;
#[forbid(unsafe_code)]
pub(crate) mod bits;
#[forbid(unsafe_code)]
pub(crate) mod ccq;
#[forbid(unsafe_code)]
pub(crate) mod ceq;
pub(crate) mod completion;
#[forbid(unsafe_code)]
pub(crate) mod cqp;
pub(crate) mod debugfs;
#[forbid(unsafe_code)]
pub(crate) mod device;
pub(crate) mod dma;
#[forbid(unsafe_code)]
pub(crate) mod doorbell;
#[forbid(unsafe_code)]
pub(crate) mod features;
#[forbid(unsafe_code)]
pub(crate) mod function;
#[forbid(unsafe_code)]
pub(crate) mod gauge;
pub(crate) mod graveyard;
#[forbid(unsafe_code)]
pub(crate) mod hal;
#[forbid(unsafe_code)]
pub(crate) mod hmc;
#[forbid(unsafe_code)]
pub(crate) mod ids;
pub(crate) mod irq;
#[forbid(unsafe_code)]
pub(crate) mod lan_ops;
#[forbid(unsafe_code)]
pub(crate) mod pble;
mod periodic;
#[forbid(unsafe_code)]
pub(crate) mod qp_context;
pub(crate) mod regs;
#[forbid(unsafe_code)]
mod reset;
#[forbid(unsafe_code)]
pub(crate) mod stats;
#[forbid(unsafe_code)]
pub(crate) mod trace;
#[forbid(unsafe_code)]
pub(crate) mod vector;
#[forbid(unsafe_code)]
pub(crate) mod ws;
