// SPDX-License-Identifier: GPL-2.0

//! KUnit suites, compiled in by `make IRDMA_KUNIT=1`.
