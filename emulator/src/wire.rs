// SPDX-License-Identifier: GPL-2.0
//! The wire between ports.
