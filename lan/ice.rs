// SPDX-License-Identifier: GPL-2.0

//! Functions of the E810, handed over by `ice`.

use kernel::{
    auxiliary::{
        self,
        DeviceId, //
    },
    prelude::*, //
};

use crate::bindings::iidc::{
    self,
    Event,
    Function,
    Protocol, //
};

/// The driver of the auxiliary devices `ice.roce` and `ice.iwarp`.
pub(crate) struct Ice;

kernel::auxiliary_device_table!(
    ICE_TABLE,
    <Ice as iidc::Driver>::IdInfo,
    [
        (DeviceId::new(c"ice", c"roce"), ()),
        (DeviceId::new(c"ice", c"iwarp"), ())
    ]
);

/// A bound function.
pub(crate) struct Bound<'bound> {
    _function: Function<'bound>,
}

impl iidc::Driver for Ice {
    type IdInfo = ();
    type Data<'bound> = Bound<'bound>;

    const NAME: &'static CStr = c"ice";
    const ID_TABLE: auxiliary::IdTable<Self::IdInfo> = &ICE_TABLE;

    fn probe<'bound>(
        function: Function<'bound>,
        _info: &'bound Self::IdInfo,
    ) -> impl PinInit<Self::Data<'bound>, Error> + 'bound {
        if function.protocol() != Protocol::Roce {
            dev_err!(
                function.device(),
                "iWARP is not supported yet, let the LAN driver offer RoCE (devlink enable_roce)\n"
            );
            return Err(ENODEV);
        }
        Ok(Bound {
            _function: function,
        })
    }

    fn unbind<'bound>(_function: Function<'bound>, _data: Pin<&Self::Data<'bound>>) {}

    fn event<'bound>(_function: Function<'bound>, _data: Pin<&Self::Data<'bound>>, _event: Event) {}
}
