// SPDX-License-Identifier: GPL-2.0
//! All functions and the wire, behind one lock.
