// SPDX-License-Identifier: GPL-2.0

//! RDMA driver for Intel's Ethernet network functions.

#[cfg(irdma_kunit)]
use kernel::pci;
use kernel::{
    driver,
    prelude::*,
    InPlaceModule, //
};

use crate::{
    bindings::iidc::Adapter,
    hw::graveyard::Graveyard,
    lan::ice::Ice, //
};

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

#[pin_data]
struct IrdmaModule {
    #[pin]
    _ice: driver::Registration<Adapter<Ice>>,
    #[cfg(irdma_kunit)]
    #[pin]
    _null: driver::Registration<pci::Adapter<tests_kunit::null_device::Null>>,
    /// Goes after all drivers.
    _debugfs: hw::debugfs::Root,
    /// Goes last: what the devices left behind is in it.
    _graveyard: Graveyard,
}

impl InPlaceModule for IrdmaModule {
    fn init(module: &'static ThisModule) -> impl PinInit<Self, Error> {
        // Devices may be probed as soon as the driver is registered.
        // SAFETY: Nobody calls this again, and no driver is registered yet.
        let graveyard = unsafe { Graveyard::new() };

        try_pin_init!(Self {
            // SAFETY: As above.
            _debugfs: unsafe { hw::debugfs::Root::new() },
            _graveyard: graveyard,
            _ice <- Adapter::register(module),
            #[cfg(irdma_kunit)]
            _null <- driver::Registration::new(c"irdma_rs_null", module),
        })
    }
}

module! {
    type: IrdmaModule,
    name: "irdma_rs",
    authors: ["The irdma_rs developers"],
    description: "RDMA driver for Intel Ethernet network functions",
    license: "GPL",
}
