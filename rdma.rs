// SPDX-License-Identifier: GPL-2.0

//! Safe layer over the RDMA core that the `kernel` crate lacks.
