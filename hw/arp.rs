// SPDX-License-Identifier: GPL-2.0

//! The neighbours that the device knows.

use kernel::{
    alloc::KVVec,
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        SpinLockIrq, //
    }, //
};

use super::{
    cqp::{
        address::{
            AddArp,
            DeleteArp,
            IpAddress,
            MAX_NEIGHBOURS, //
        },
        CommandDone,
        Outcome, //
    },
    function::Function, //
};

/// A neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Neighbour {
    address: IpAddress,
    mac: [u8; 6],
}

/// The neighbours, at the indices by which the device knows them. Index 0 stays unused.
struct Neighbours {
    entries: KVVec<Option<Neighbour>>,
    next: usize,
}

impl Neighbours {
    fn find(&self, address: &IpAddress) -> Option<(usize, [u8; 6])> {
        self.entries.iter().enumerate().find_map(|(index, entry)| {
            let neighbour = entry.as_ref()?;

            (neighbour.address == *address).then_some((index, neighbour.mac))
        })
    }

    /// Puts a neighbour at the next index that is free, in turn.
    fn insert(&mut self, neighbour: Neighbour) -> Option<usize> {
        let free = |(_, entry): &(usize, &Option<Neighbour>)| entry.is_none();
        let (index, _) = self
            .entries
            .iter()
            .enumerate()
            .skip(self.next)
            .find(free)
            .or_else(|| self.entries.iter().enumerate().skip(1).find(free))?;

        *self.entries.get_mut(index)? = Some(neighbour);
        self.next = index + 1;

        Some(index)
    }

    fn remove(&mut self, index: usize) {
        if let Some(entry) = self.entries.get_mut(index) {
            *entry = None;
        }
    }
}

/// The table of neighbours. May be used in any context: the commands are not waited for, and the
/// device executes what follows them after them.
#[doc(alias = "irdma_arp_table")]
#[pin_data]
pub(crate) struct ArpTable {
    #[pin]
    neighbours: SpinLockIrq<Neighbours>,
}

impl CommandDone for ArpTable {
    /// A neighbour that the device refused is forgotten. The cookie is its index.
    fn done(&self, cookie: u64, outcome: Outcome) {
        if outcome.is_err() {
            if let Ok(index) = usize::try_from(cookie) {
                self.neighbours.lock().remove(index);
            }
        }
    }
}

impl ArpTable {
    /// Makes a table for `size` neighbours, or [`MAX_NEIGHBOURS`] if these are fewer, less the one
    /// that is reserved.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(size: u32) -> Result<Arc<Self>> {
        let mut entries = KVVec::new();

        for _ in 0..size.min(MAX_NEIGHBOURS) {
            entries.push(None, GFP_KERNEL)?;
        }

        Arc::pin_init(
            try_pin_init!(Self {
                neighbours <- new_spinlock_irq!(Neighbours { entries, next: 1 }, "irdma_rs::arp"),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Returns how many neighbours the table has and how many it can have.
    pub(crate) fn occupancy(&self) -> (usize, usize) {
        let neighbours = self.neighbours.lock();
        let used = neighbours.entries.iter().flatten().count();

        (used, neighbours.entries.len().saturating_sub(1))
    }

    /// Adds a neighbour, or gives it another MAC address, and returns its index.
    ///
    /// # Errors
    ///
    /// - `ENOMEM` if the table is full.
    /// - Those of [`Function::submit`]. Then the table has the neighbour no more.
    #[doc(alias = "irdma_add_arp")]
    pub(crate) fn add<'a>(
        self: &Arc<Self>,
        function: &Function<'a>,
        address: IpAddress,
        mac: [u8; 6],
    ) -> Result<u16> {
        let index = {
            let mut neighbours = self.neighbours.lock();

            match neighbours.find(&address) {
                Some((index, known)) if known == mac => return Ok(index.try_into()?),
                Some((index, _)) => {
                    neighbours.remove(index);
                    drop(neighbours);
                    self.delete_index(function, index)?;
                    neighbours = self.neighbours.lock();
                }
                None => (),
            }

            neighbours
                .insert(Neighbour { address, mac })
                .ok_or(ENOMEM)?
        };
        let added = index.try_into().map_err(Error::from).and_then(|index| {
            let command = AddArp {
                index,
                mac,
                reach_max: 0,
                permanent: true,
            };

            function.submit(&command, self.clone(), index.into())?;
            Ok(index)
        });

        if added.is_err() {
            self.neighbours.lock().remove(index);
        }

        added
    }

    /// Deletes a neighbour; one that the table does not have is none.
    ///
    /// # Errors
    ///
    /// Those of [`Function::post`]. The table has the neighbour no more, whatever happens.
    #[doc(alias = "irdma_manage_arp_cache")]
    pub(crate) fn delete(&self, function: &Function<'_>, address: &IpAddress) -> Result {
        let index = {
            let mut neighbours = self.neighbours.lock();
            let Some((index, _)) = neighbours.find(address) else {
                return Ok(());
            };

            neighbours.remove(index);
            index
        };

        self.delete_index(function, index)
    }

    #[doc(alias = "irdma_sc_del_arp_cache_entry")]
    fn delete_index(&self, function: &Function<'_>, index: usize) -> Result {
        function.post(&DeleteArp {
            index: index.try_into()?,
        })
    }
}
