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
    /// Which of all the commands that add neighbours told the device of it.
    told: u32,
}

/// The neighbours, at the indices by which the device knows them. Index 0 stays unused.
struct Neighbours {
    entries: KVVec<Option<Neighbour>>,
    next: usize,
    /// Counts the commands that add neighbours.
    told: u32,
}

impl Neighbours {
    fn find(&self, address: &IpAddress) -> Option<(usize, [u8; 6])> {
        self.entries.iter().enumerate().find_map(|(index, entry)| {
            let neighbour = entry.as_ref()?;

            (neighbour.address == *address).then_some((index, neighbour.mac))
        })
    }

    /// Finds the next index that is free, in turn.
    fn take(&mut self) -> Option<usize> {
        let free = |(_, entry): &(usize, &Option<Neighbour>)| entry.is_none();
        let (index, _) = self
            .entries
            .iter()
            .enumerate()
            .skip(self.next)
            .find(free)
            .or_else(|| self.entries.iter().enumerate().skip(1).find(free))?;

        self.next = index + 1;
        Some(index)
    }

    fn set(&mut self, index: usize, neighbour: Option<Neighbour>) {
        if let Some(entry) = self.entries.get_mut(index) {
            *entry = neighbour;
        }
    }
}

/// The table of neighbours. May be used in any context: the commands are not waited for, and the
/// device executes what follows them after them. They are given under the table's lock, so that it
/// gets them in the order in which the table changes.
#[doc(alias = "irdma_arp_table")]
#[pin_data]
pub(crate) struct ArpTable {
    #[pin]
    neighbours: SpinLockIrq<Neighbours>,
}

/// What a command that adds a neighbour is known by.
struct Cookie {
    index: u16,
    told: u32,
}

impl From<u64> for Cookie {
    fn from(cookie: u64) -> Self {
        // CAST: The halves that `From<Cookie>` puts together.
        Self {
            index: cookie as u16,
            told: (cookie >> 32) as u32,
        }
    }
}

impl From<Cookie> for u64 {
    fn from(cookie: Cookie) -> Self {
        Self::from(cookie.told) << 32 | Self::from(cookie.index)
    }
}

impl CommandDone for ArpTable {
    /// A neighbour that the device refused is forgotten.
    fn done(&self, cookie: u64, outcome: Outcome) {
        if outcome.is_ok() {
            return;
        }
        let Cookie { index, told } = Cookie::from(cookie);
        let mut neighbours = self.neighbours.lock();

        // Another one may have its place by now.
        if let Some(Some(refused)) = neighbours.entries.get(usize::from(index)) {
            if refused.told == told {
                neighbours.set(index.into(), None);
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
                neighbours <- new_spinlock_irq!(Neighbours { entries, next: 1, told: 0 }, "irdma_rs::arp"),
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

    /// Adds a neighbour, or gives it another MAC address, and returns its index. It keeps that: queue
    /// pairs and address handles name it.
    ///
    /// # Errors
    ///
    /// - `ENOMEM` if the table is full.
    /// - Those of [`Function::submit`].
    #[doc(alias = "irdma_add_arp")]
    pub(crate) fn add<'a>(
        self: &Arc<Self>,
        function: &Function<'a>,
        address: IpAddress,
        mac: [u8; 6],
    ) -> Result<u16> {
        let mut neighbours = self.neighbours.lock();
        let index = match neighbours.find(&address) {
            Some((index, known)) if known == mac => return Ok(index.try_into()?),
            Some((index, _)) => {
                Self::delete_index(function, index)?;
                // Until it has the new one.
                neighbours.set(index, None);
                index
            }
            None => neighbours.take().ok_or(ENOMEM)?,
        };
        let told = neighbours.told.wrapping_add(1);
        let number = index.try_into()?;
        let command = AddArp {
            index: number,
            mac,
            reach_max: 0,
            permanent: true,
        };
        let cookie = Cookie {
            index: number,
            told,
        };

        function.submit(&command, self.clone(), cookie.into())?;
        neighbours.told = told;
        neighbours.set(index, Some(Neighbour { address, mac, told }));

        Ok(number)
    }

    /// Deletes a neighbour; one that the table does not have is none.
    ///
    /// # Errors
    ///
    /// Those of [`Function::post`]. The table has the neighbour no more, whatever happens.
    #[doc(alias = "irdma_manage_arp_cache")]
    pub(crate) fn delete(&self, function: &Function<'_>, address: &IpAddress) -> Result {
        let mut neighbours = self.neighbours.lock();
        let Some((index, _)) = neighbours.find(address) else {
            return Ok(());
        };

        neighbours.set(index, None);
        Self::delete_index(function, index)
    }

    #[doc(alias = "irdma_sc_del_arp_cache_entry")]
    fn delete_index(function: &Function<'_>, index: usize) -> Result {
        function.post(&DeleteArp {
            index: index.try_into()?,
        })
    }
}
