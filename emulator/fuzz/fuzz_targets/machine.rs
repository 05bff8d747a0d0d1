// SPDX-License-Identifier: GPL-2.0
//! Two functions whose driver does what the fuzzer says.
#![no_main]

use irdma_emulator::testing::fuzz;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let report = fuzz::run(data, 1000);
    assert!(report.unnoticed.is_empty(), "{report:?}");
});
