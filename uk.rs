// SPDX-License-Identifier: GPL-2.0

//! Wire formats and ring arithmetic: pure functions and values.
