// SPDX-License-Identifier: GPL-2.0
//! An emulated RDMA network function, served to a virtual machine over
//! vfio-user, on which the stock kernel drivers run.
//!
//! The parts, from the guest inwards:
//!
//! - [`server`] speaks vfio-user with QEMU, one thread a function;
//! - [`machine`] holds all functions and the wire behind one lock;
//! - [`nic`] names what a function of any generation can do;
//! - [`e810`] is the E810: registers, admin queue, LAN queues;
//! - [`rdma`] is the protocol engine of the function;
//! - [`context`] is what a block may use while it handles one event.
//!
//! Nothing in here may panic on what a guest does: a bad access is a recorded
//! [violation](violations) and the error that the device would give.

pub mod bits;
pub mod context;
pub mod control;
pub mod ddp;
pub mod e810;
pub mod faults;
pub mod interrupts;
pub mod machine;
pub mod memory;
pub mod nic;
pub mod parity;
pub mod pci;
pub mod rdma;
pub mod remote;
pub mod server;
pub mod testing;
pub mod trace;
pub mod violations;
pub mod wire;
