// SPDX-License-Identifier: GPL-2.0

//! Who hands us a function: the LAN drivers.

pub(crate) mod ice;
