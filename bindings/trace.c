// SPDX-License-Identifier: GPL-2.0
/* The tracepoints, and the functions by which Rust code reaches them. */

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "irdma_rs_trace.h"
