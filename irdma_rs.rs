// SPDX-License-Identifier: GPL-2.0

//! RDMA driver for Intel's Ethernet network functions.

use kernel::prelude::*;

mod bindings;
mod hw;
#[forbid(unsafe_code)]
mod lan;
mod rdma;
#[forbid(unsafe_code)]
mod uk;
#[forbid(unsafe_code)]
mod verbs;

#[cfg(irdma_kunit)]
#[path = "tests-kunit/suites.rs"]
mod tests_kunit;

struct IrdmaModule;

impl kernel::Module for IrdmaModule {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        Ok(Self)
    }
}

module! {
    type: IrdmaModule,
    name: "irdma_rs",
    authors: ["The irdma_rs developers"],
    description: "RDMA driver for Intel Ethernet network functions",
    license: "GPL",
}
