// SPDX-License-Identifier: GPL-2.0
//! The E810 function.
