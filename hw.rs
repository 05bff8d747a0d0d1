// SPDX-License-Identifier: GPL-2.0

//! The device: registers, doorbells, queues, function-private memory.
//!
//! Only this room touches a register or a doorbell. Memory that the device reads or writes is in
//! [`dma`], registers are in [`regs`] and [`hal`], interrupts in [`irq`]; everything else is made
//! of these and needs no `unsafe`.

#![allow(dead_code, reason = "the rooms above come one by one")]

#[forbid(unsafe_code)]
pub(crate) mod bits;
#[forbid(unsafe_code)]
pub(crate) mod ccq;
mod completion;
#[forbid(unsafe_code)]
pub(crate) mod cqp;
pub(crate) mod dma;
#[forbid(unsafe_code)]
pub(crate) mod doorbell;
#[forbid(unsafe_code)]
pub(crate) mod function;
#[forbid(unsafe_code)]
mod graveyard;
#[forbid(unsafe_code)]
pub(crate) mod hal;
pub(crate) mod irq;
#[forbid(unsafe_code)]
pub(crate) mod lan_ops;
pub(crate) mod regs;
