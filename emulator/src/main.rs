// SPDX-License-Identifier: GPL-2.0
//! The emulator's command line.

fn main() {}
