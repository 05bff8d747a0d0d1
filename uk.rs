// SPDX-License-Identifier: GPL-2.0

//! Wire formats and ring arithmetic of the device's queues.
//!
//! This room holds pure functions and values: no register, no lock, no allocation, and no memory of
//! its own. Whoever owns ring memory lends it as a slice of [`memory::Word`]s, so the same code runs
//! on DMA memory in the driver and on plain arrays in the tests.
//!
//! # Words of this room
//!
//! - *Quantum*: 32 bytes (four 64-bit words), the unit in which send and receive rings are counted.
//! - *WQE*: work-queue entry, one to eight quanta.
//! - *CQE*: completion-queue entry, 32 bytes, or two in a row when it is an extended one.
//! - *Polarity*: the value of an entry's valid bit that means "new" in this lap of the ring.
//! - *Fragment*: one scatter/gather element as the device takes it.

pub(crate) mod ae;
pub(crate) mod cq;
pub(crate) mod cqe;
pub(crate) mod limits;
pub(crate) mod memory;
pub(crate) mod ring;
pub(crate) mod rq;
pub(crate) mod shadow;
pub(crate) mod sizing;
pub(crate) mod sq;
pub(crate) mod status;
pub(crate) mod wqe;
