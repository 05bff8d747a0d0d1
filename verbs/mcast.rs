// SPDX-License-Identifier: GPL-2.0

//! Multicast groups: which QPs get a copy of the datagrams that come for a group's address.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use super::{
    device::Device,
    path::{
        ip_address,
        multicast_mac, //
    },
};
use crate::{
    hw::{
        cqp::address::{
            mcast_member,
            CreateMcastGroup,
            DestroyMcastGroup,
            IpAddress,
            McastGroup,
            ModifyMcastGroup,
            MAX_MCAST_MEMBERS, //
        },
        dma::DmaBuffer,
        ws::Place, //
    },
    rdma::Gid, //
};

/// Groups are for packets of this user priority.
const PRIORITY: u8 = 0;

/// What the device is told of a group without a VLAN.
const NO_VLAN: u16 = 0xffff;

/// The multicast groups that QPs take part in.
#[pin_data]
pub(super) struct McastGroups {
    #[pin]
    groups: Mutex<KVec<Group>>,
}

/// A group that the device knows.
struct Group {
    number: u32,
    address: IpAddress,
    mac: [u8; 6],
    place: Place,
    members: Members,
    /// The members, for the device.
    memory: Arc<DmaBuffer>,
}

/// QPs of a group, the first ones of the array, and how often each was attached.
#[derive(Clone, Copy, Default)]
struct Members([Option<(u32, u32)>; MAX_MCAST_MEMBERS]);

impl Members {
    fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Returns the members with `qp` attached once more, and whether it is a new one.
    fn with(mut self, qp: u32) -> Result<(Self, bool)> {
        for (number, uses) in self.0.iter_mut().flatten() {
            if *number == qp {
                *uses = uses.checked_add(1).ok_or(ENOMEM)?;
                return Ok((self, false));
            }
        }

        *self
            .0
            .iter_mut()
            .find(|slot| slot.is_none())
            .ok_or(ENOMEM)? = Some((qp, 1));
        Ok((self, true))
    }

    /// Returns the members with `qp` attached once less, and whether it is none any more.
    fn without(mut self, qp: u32) -> Result<(Self, bool)> {
        let at = self
            .0
            .iter()
            .position(|slot| matches!(slot, Some((number, _)) if *number == qp))
            .ok_or(EINVAL)?;
        let slot = self.0.get_mut(at).ok_or(EINVAL)?;

        if let Some((_, uses)) = slot {
            if *uses > 1 {
                *uses -= 1;
                return Ok((self, false));
            }
        }
        *slot = None;
        // The device takes the first ones: the last member takes the free place.
        if let Some(last) = self.0.iter().rposition(Option::is_some) {
            if last > at {
                self.0.swap(at, last);
            }
        }

        Ok((self, true))
    }
}

impl Group {
    /// Writes members for the device, which reads them at the next command.
    #[doc(alias = "irdma_create_mg_ctx")]
    fn write(&self, members: &Members) -> Result {
        for (index, slot) in members.0.iter().enumerate() {
            self.memory
                .write(index, slot.map_or(0, |(qp, _)| mcast_member(qp, 0)))?;
        }

        Ok(())
    }

    fn command(&self, dev: &Device<'_>) -> Result<McastGroup> {
        Ok(McastGroup {
            index: self.number.try_into()?,
            members: self.memory.address(),
            mac: self.mac,
            address: self.address,
            vlan: None,
            no_vlan: NO_VLAN,
            qs_handle: self.place.handle(),
            hmc_function: dev.function().hmc_function(),
        })
    }

    /// Tells the device of other members. It has the earlier ones if that fails.
    #[doc(alias = "irdma_mcast_cqp_op")]
    fn change(&mut self, dev: &Device<'_>, members: Members) -> Result {
        self.write(&members)?;
        let changed = dev
            .function()
            .execute(&ModifyMcastGroup(self.command(dev)?));
        if let Err(error) = changed {
            let _ = self.write(&self.members);
            return Err(error);
        }

        self.members = members;
        Ok(())
    }
}

impl McastGroups {
    /// No groups.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            groups <- new_mutex!(KVec::new(), "McastGroups::groups"),
        })
    }

    /// Has QP `qp` take part in the group `gid`; as often as that it has to be detached.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if `gid` is no multicast address.
    /// - `ENOMEM` if the group has as many members as the device takes, or there is no group left.
    /// - Those of a command.
    #[doc(alias = "irdma_attach_mcast")]
    #[doc(alias = "irdma_sc_add_mcast_grp")]
    pub(super) fn attach(&self, dev: &Device<'_>, qp: u32, gid: Gid) -> Result {
        let address = ip_address(gid.ip());
        let mac = multicast_mac(&address).ok_or(EINVAL)?;
        let mut groups = self.groups.lock();

        if let Some(group) = groups.iter_mut().find(|group| group.address == address) {
            let (members, new) = group.members.with(qp)?;

            if new {
                return group.change(dev, members);
            }
            group.members = members;
            return Ok(());
        }

        groups.reserve(1, GFP_KERNEL)?;
        let memory = DmaBuffer::new(dev.function().parent(), MAX_MCAST_MEMBERS * 8)?;
        let memory = Arc::new(memory, GFP_KERNEL)?;
        let number = dev.ids().mcast_groups.take()?;
        let place = dev.scheduler().add(PRIORITY)?;
        let group = Group {
            number: number.get(),
            address,
            mac,
            place,
            members: Members::default().with(qp)?.0,
            memory,
        };
        let made = group
            .write(&group.members)
            .and_then(|()| group.command(dev))
            .and_then(|command| dev.function().execute(&CreateMcastGroup(command)));

        if let Err(error) = made {
            dev.scheduler().remove(place);
            if error == ETIMEDOUT {
                // The device may still make it.
                number.keep();
                dev.function().bury(group.memory);
            }
            return Err(error);
        }

        number.keep();
        // There is room for it.
        let _ = groups.push_within_capacity(group);
        Ok(())
    }

    /// Ends one [`Self::attach`] of QP `qp` to the group `gid`.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if it does not take part.
    /// - Those of a command; it takes part as before then.
    #[doc(alias = "irdma_detach_mcast")]
    #[doc(alias = "irdma_sc_del_mcast_grp")]
    pub(super) fn detach(&self, dev: &Device<'_>, qp: u32, gid: Gid) -> Result {
        let address = ip_address(gid.ip());
        let mut groups = self.groups.lock();
        let at = groups
            .iter()
            .position(|group| group.address == address)
            .ok_or(EINVAL)?;
        let group = groups.get_mut(at).ok_or(EINVAL)?;
        let (members, gone) = group.members.without(qp)?;

        if !gone {
            group.members = members;
            return Ok(());
        }
        if !members.is_empty() {
            return group.change(dev, members);
        }

        dev.function()
            .execute(&DestroyMcastGroup(group.command(dev)?))?;
        dev.ids().mcast_groups.give_back(group.number);
        dev.scheduler().remove(group.place);
        drop(groups.remove(at));

        Ok(())
    }
}
