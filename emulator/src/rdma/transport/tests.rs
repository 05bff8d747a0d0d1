// SPDX-License-Identifier: GPL-2.0
//! Two queue pairs and a wire between them, under a small model of a driver.

mod datagrams;
mod device;
mod errors;
mod loss;
mod messages;
mod multicast;
pub(in crate::rdma) mod rig;
mod sequence;
