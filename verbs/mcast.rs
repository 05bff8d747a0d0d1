// SPDX-License-Identifier: GPL-2.0

//! Multicast groups: which QPs get a copy of the datagrams that come for a group's address.

use core::iter;

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

/// The multicast groups that QPs take part in, one for each address and VLAN.
///
/// A QP takes part on those networks on which its host did when it was attached: the verb names no
/// VLAN, and joining (by the connection manager, or a socket) comes before it. If the host takes part
/// on none, it is the one without a tag. A QP is attached as often to each of its groups of an address.
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
    vlan: Option<u16>,
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

    fn has(&self, qp: u32) -> bool {
        self.0.iter().flatten().any(|(number, _)| *number == qp)
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
    /// Returns whether QP `qp` takes part, and it is a group of `address`.
    #[doc(alias = "mcast_list_lookup_ip")]
    fn is_of(&self, address: &IpAddress, qp: u32) -> bool {
        self.address == *address && self.members.has(qp)
    }

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
            vlan: self.vlan,
            no_vlan: NO_VLAN,
            qs_handle: self.place.handle(),
            hmc_function: dev.function().hmc_function(),
        })
    }

    /// Tells the device of other members.
    #[doc(alias = "irdma_mcast_cqp_op")]
    fn tell(&self, dev: &Device<'_>, members: &Members) -> Result {
        self.write(members)?;
        dev.function()
            .execute(&ModifyMcastGroup(self.command(dev)?))?;

        Ok(())
    }

    /// Has QP `qp`, which is no member, take part.
    fn add(&mut self, dev: &Device<'_>, qp: u32) -> Result {
        let members = self.members.with(qp)?.0;

        self.tell(dev, &members).inspect_err(|_| {
            let _ = self.write(&self.members);
        })?;
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

        if groups.iter().any(|group| group.is_of(&address, qp)) {
            return groups
                .iter_mut()
                .filter(|group| group.is_of(&address, qp))
                .try_for_each(|group| {
                    group.members = group.members.with(qp)?.0;
                    Ok(())
                });
        }

        let mut vlans = dev.netdev().multicast_vlans(gid.0);
        let first = vlans.next().flatten();
        Iterator::chain(iter::once(first), vlans)
            .try_for_each(|vlan| join(&mut groups, dev, qp, (address, mac, vlan)))
            .inspect_err(|_| leave(&mut groups, dev, qp, &address))
    }

    /// Ends one [`Self::attach`] of QP `qp` to the group `gid`.
    ///
    /// A device that does not take the command doesn't keep the QP in the group: the core would never
    /// let go of it.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it does not take part.
    #[doc(alias = "irdma_detach_mcast")]
    #[doc(alias = "irdma_sc_del_mcast_grp")]
    pub(super) fn detach(&self, dev: &Device<'_>, qp: u32, gid: Gid) -> Result {
        let address = ip_address(gid.ip());
        let mut groups = self.groups.lock();

        if !groups.iter().any(|group| group.is_of(&address, qp)) {
            return Err(EINVAL);
        }

        leave(&mut groups, dev, qp, &address);
        Ok(())
    }
}

/// Has QP `qp`, which is no member, take part in the group of an address and a VLAN.
#[doc(alias = "mcast_list_add")]
fn join(
    groups: &mut KVec<Group>,
    dev: &Device<'_>,
    qp: u32,
    (address, mac, vlan): (IpAddress, [u8; 6], Option<u16>),
) -> Result {
    if let Some(group) = groups
        .iter_mut()
        .find(|group| group.address == address && group.vlan == vlan)
    {
        return group.add(dev, qp);
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
        vlan,
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

/// Ends one attachment of QP `qp` on all networks.
#[doc(alias = "mcast_list_del")]
fn leave(groups: &mut KVec<Group>, dev: &Device<'_>, qp: u32, address: &IpAddress) {
    for at in (0..groups.len()).rev() {
        let Some(group) = groups.get_mut(at).filter(|group| group.is_of(address, qp)) else {
            continue;
        };
        let Ok((members, gone)) = group.members.without(qp) else {
            continue;
        };

        group.members = members;
        if gone && !members.is_empty() {
            // A device that does not take it is told again with the group's next change.
            let _ = group.tell(dev, &members);
        } else if gone {
            if let Ok(group) = groups.remove(at) {
                destroy(group, dev);
            }
        }
    }
}

/// Takes a group without members away from the device. What the device may still use is kept, and so
/// is the number.
fn destroy(group: Group, dev: &Device<'_>) {
    let destroyed = group
        .command(dev)
        .and_then(|command| dev.function().execute(&DestroyMcastGroup(command)));

    dev.scheduler().remove(group.place);
    match destroyed {
        Ok(_) => dev.ids().mcast_groups.give_back(group.number),
        Err(_) => dev.function().bury(group.memory),
    }
}
