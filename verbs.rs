// SPDX-License-Identifier: GPL-2.0

//! The verbs, a file an object.

#![allow(dead_code, reason = "the files come one by one")]

mod abi;
mod ids;
mod table;
