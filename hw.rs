// SPDX-License-Identifier: GPL-2.0

//! The device: registers, doorbells, queues, function-private memory.
