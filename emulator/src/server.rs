// SPDX-License-Identifier: GPL-2.0
//! The vfio-user server of one function.
