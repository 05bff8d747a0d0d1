// SPDX-License-Identifier: GPL-2.0

//! The verbs, a file an object.
