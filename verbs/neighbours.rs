// SPDX-License-Identifier: GPL-2.0

//! Keeps the device's table of neighbours up to date.
//!
//! A QP's route names its neighbour by the index in that table, so a neighbour that moves to
//! another network card has to get the new MAC address there.

use kernel::{
    prelude::*,
    sync::{
        aref::ARef,
        Arc, //
    }, //
};

use super::path::ip_address;
use crate::{
    hw::{
        self,
        arp::ArpTable,
        function::Function, //
    },
    rdma::{
        tell_addresses,
        AddressEvent,
        Listener,
        NetDevice,
        Notifiers, //
    }, //
};

/// What listens to the kernel's news about IP addresses.
pub(super) struct Neighbours<'a> {
    function: Arc<Function<'a>>,
    arp: Arc<ArpTable>,
    netdev: ARef<NetDevice>,
}

impl<'a> Neighbours<'a> {
    /// Listens until what is returned is dropped.
    ///
    /// # Errors
    ///
    /// `ENOMEM`
    pub(super) fn listen(
        hw: &hw::device::Device<'a>,
        netdev: &ARef<NetDevice>,
    ) -> Result<Pin<KBox<Notifiers<Self>>>> {
        let listener = Arc::new(
            Self {
                function: hw.function().clone(),
                arp: hw.arp().clone(),
                netdev: netdev.clone(),
            },
            GFP_KERNEL,
        )?;

        let notifiers = KBox::pin_init(Notifiers::new(listener.clone()), GFP_KERNEL)?;

        // After that, so that no address is missed; one that is told twice does no harm.
        tell_addresses(netdev, &*listener);
        Ok(notifiers)
    }
}

impl Listener for Neighbours<'_> {
    #[doc(alias = "irdma_inetaddr_event")]
    #[doc(alias = "irdma_inet6addr_event")]
    #[doc(alias = "irdma_net_event")]
    fn address_event(&self, netdev: &NetDevice, event: AddressEvent) {
        if !netdev.is(&self.netdev) {
            return;
        }

        // When one can't be told to the device, the QP that needs it adds it, or fails.
        let _ = match event {
            AddressEvent::Valid(address, mac) => self
                .arp
                .add(&self.function, ip_address(address), mac)
                .map(|_| ()),
            AddressEvent::Gone(address) => self.arp.delete(&self.function, &ip_address(address)),
        };
    }
}
