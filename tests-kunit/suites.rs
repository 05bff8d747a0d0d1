// SPDX-License-Identifier: GPL-2.0

//! KUnit suites, compiled in by `make IRDMA_KUNIT=1`.

mod hw_cqp;
mod hw_events;
mod hw_hmc;
mod hw_patience;
mod hw_tables;
mod memory;
pub(crate) mod null_device;
mod uk_cq;
mod uk_queues;
mod uk_sizing;
mod uk_status;
mod uk_wqe;
mod verbs_mr;
