// SPDX-License-Identifier: GPL-2.0

//! Neighbours: the device sends to MAC addresses that it has in a table of its own.

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::SpinLockIrq, //
};

use crate::hw::{
    cqp::address::{
        AddArp,
        DeleteArp,
        IpAddress, //
    },
    function::Function, //
};

/// What the driver knows of the device's table.
#[pin_data]
pub(crate) struct Neighbours {
    #[pin]
    table: SpinLockIrq<KVVec<Option<Neighbour>>>,
}

#[derive(Clone, Copy)]
struct Neighbour {
    ip: IpAddress,
    mac: [u8; 6],
}

impl Neighbours {
    /// Makes an empty table of `count` entries. The first one is never used.
    ///
    /// # Errors
    ///
    /// `ENOMEM`
    pub(super) fn new(count: u32) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(move || {
            let mut table = KVVec::with_capacity(count as usize, GFP_KERNEL)?;
            for _ in 0..count {
                table.push(None, GFP_KERNEL)?;
            }

            Ok(try_pin_init!(Self {
                table <- new_spinlock_irq!(table, "Neighbours::table"),
            }))
        })
    }

    /// Makes sure that the device knows the neighbour, and returns its index.
    ///
    /// The device does so before it acts on any later command. Never sleeps.
    ///
    /// # Errors
    ///
    /// - `ENOMEM` if the table is full.
    /// - Those of [`Function::post`].
    #[doc(alias = "irdma_add_arp")]
    #[doc(alias = "irdma_arp_table")]
    #[doc(alias = "irdma_manage_arp_cache")]
    pub(super) fn index_of(
        &self,
        function: &Function<'_>,
        ip: IpAddress,
        mac: [u8; 6],
    ) -> Result<u16> {
        let mut table = self.table.lock();
        let known = table
            .iter()
            .position(|entry| entry.is_some_and(|entry| entry.ip == ip));
        let index = match known {
            Some(index) => index,
            None => table
                .iter()
                .skip(1)
                .position(Option::is_none)
                .map(|index| index + 1)
                .ok_or(ENOMEM)?,
        };
        let number = u16::try_from(index)?;
        let slot = table.get_mut(index).ok_or(EINVAL)?;

        match slot {
            Some(entry) if entry.mac == mac => return Ok(number),
            Some(_) => {
                function.post(&DeleteArp { index: number })?;
                *slot = None;
            }
            None => (),
        }

        // Under the lock, so that the device gets the commands in the table's order.
        function.post(&AddArp {
            index: number,
            mac,
            reach_max: 0,
            permanent: true,
        })?;
        *slot = Some(Neighbour { ip, mac });

        Ok(number)
    }

    /// Has the device forget the neighbour, if it knows it. Never sleeps.
    ///
    /// # Errors
    ///
    /// Those of [`Function::post`].
    pub(super) fn forget(&self, function: &Function<'_>, ip: IpAddress) -> Result {
        let mut table = self.table.lock();

        for (index, slot) in table.iter_mut().enumerate() {
            if slot.is_some_and(|entry| entry.ip == ip) {
                function.post(&DeleteArp {
                    index: u16::try_from(index)?,
                })?;
                *slot = None;
                break;
            }
        }

        Ok(())
    }
}
