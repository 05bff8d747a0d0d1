// SPDX-License-Identifier: GPL-2.0

//! Commands about neighbours, address handles and multicast groups.

use super::command::{
    Command,
    Opcode, //
};
use crate::hw::bits::{
    bit,
    field,
    mac_to_u64,
    pack, //
};

/// An IP address as the device takes it: 32-bit words in the CPU's byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IpAddress {
    /// IPv4.
    V4(u32),
    /// IPv6, the most significant word first.
    V6([u32; 4]),
}

impl IpAddress {
    /// Returns whether the address is an IPv4 one.
    pub(crate) const fn is_v4(&self) -> bool {
        matches!(self, IpAddress::V4(_))
    }

    /// Returns the address as (low, high) quadwords; an IPv4 one is in the lowest 32 bits.
    pub(crate) const fn quadwords(&self) -> (u64, u64) {
        match self {
            // CAST: Widening.
            IpAddress::V4(address) => (*address as u64, 0),
            IpAddress::V6([a, b, c, d]) => (pack(*c, *d), pack(*a, *b)),
        }
    }
}

/// Greatest number of neighbours that commands, address handles and queue pair contexts can name,
/// by 16 bits.
pub(crate) const MAX_NEIGHBOURS: u32 = 1 << 16;

/// Adds a neighbour's MAC address to the device's table.
#[doc(alias = "irdma_sc_add_arp_cache_entry")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddArp {
    /// Index in the table.
    pub(crate) index: u16,
    /// The neighbour's MAC address.
    pub(crate) mac: [u8; 6],
    /// How long the neighbour counts as reachable; 0 for a permanent entry.
    pub(crate) reach_max: u32,
    /// The entry does not age.
    pub(crate) permanent: bool,
}

impl Command for AddArp {
    const OPCODE: Opcode = Opcode::ManageArp;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header()
            | field::<15, 0>(self.index.into())
            | bit::<42>(true)
            | bit::<43>(self.permanent);

        [
            0,
            self.reach_max.into(),
            mac_to_u64(&self.mac),
            header,
            0,
            0,
            0,
            0,
        ]
    }
}

/// Deletes a neighbour from the device's table.
#[doc(alias = "irdma_sc_del_arp_cache_entry")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeleteArp {
    /// Index in the table.
    pub(crate) index: u16,
}

impl Command for DeleteArp {
    const OPCODE: Opcode = Opcode::ManageArp;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header() | field::<15, 0>(self.index.into());

        [0, 0, 0, header, 0, 0, 0, 0]
    }
}

/// What an address handle says; it is given on its destruction too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AddressHandle {
    /// Index of the handle.
    pub(crate) index: u32,
    /// Protection domain.
    pub(crate) pd: u32,
    /// The local port's MAC address.
    pub(crate) source_mac: [u8; 6],
    /// VLAN tag to insert, if there is one.
    pub(crate) vlan: Option<u16>,
    /// Index of the neighbour in the device's table.
    pub(crate) arp_index: u16,
    /// IPv4 TOS, or IPv6 traffic class.
    pub(crate) traffic_class: u8,
    /// IPv4 TTL, or IPv6 hop limit.
    pub(crate) hop_limit: u8,
    /// IPv6 flow label.
    pub(crate) flow_label: u32,
    /// Destination, of the same family as `source`.
    pub(crate) destination: IpAddress,
    /// Source.
    pub(crate) source: IpAddress,
    /// The destination is on this port.
    pub(crate) loopback: bool,
}

impl AddressHandle {
    fn encode(&self, opcode: Opcode) -> [u64; 8] {
        let header = opcode.header()
            | field::<23, 0>(self.index.into())
            | bit::<59>(self.destination.is_v4())
            | bit::<60>(self.vlan.is_some())
            | bit::<62>(self.loopback);
        let (destination_low, destination_high) = self.destination.quadwords();
        let (source_low, source_high) = self.source.quadwords();

        [
            mac_to_u64(&self.source_mac) << 16,
            field::<15, 0>(self.vlan.unwrap_or(0).into())
                | field::<39, 32>(self.traffic_class.into())
                | field::<63, 48>(self.pd.into()),
            field::<19, 0>(self.flow_label.into())
                | field::<27, 20>(u64::from(self.pd) >> 16)
                | field::<39, 32>(self.hop_limit.into())
                | field::<63, 48>(self.arp_index.into()),
            header,
            destination_low,
            destination_high,
            source_low,
            source_high,
        ]
    }
}

/// Makes an address handle.
#[doc(alias = "irdma_sc_access_ah")]
#[doc(alias = "irdma_sc_create_ah")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateAh(pub(crate) AddressHandle);

impl Command for CreateAh {
    const OPCODE: Opcode = Opcode::CreateAh;

    fn encode(&self) -> [u64; 8] {
        self.0.encode(Self::OPCODE)
    }
}

/// Takes an address handle away.
#[doc(alias = "irdma_sc_destroy_ah")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestroyAh(pub(crate) AddressHandle);

impl Command for DestroyAh {
    const OPCODE: Opcode = Opcode::DestroyAh;

    fn encode(&self) -> [u64; 8] {
        self.0.encode(Self::OPCODE)
    }
}

/// Number of multicast groups that a device has at most.
#[doc(alias = "IRDMA_UDA_MAX_FSI_MGS")]
pub(crate) const MAX_MCAST_GROUPS: u32 = 4096;

/// Greatest number of members of a multicast group.
#[doc(alias = "IRDMA_MAX_MGS_PER_CTX")]
pub(crate) const MAX_MCAST_MEMBERS: usize = 8;

/// A multicast group; its members are in memory of their own, see [`mcast_member`].
#[doc(alias = "irdma_access_mcast_grp")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct McastGroup {
    /// Index of the group, below [`MAX_MCAST_GROUPS`].
    pub(crate) index: u16,
    /// DMA address of [`MAX_MCAST_MEMBERS`] quadwords, the members first and then zeroes.
    pub(crate) members: u64,
    /// The group's MAC address.
    pub(crate) mac: [u8; 6],
    /// The group's IP address.
    pub(crate) address: IpAddress,
    /// VLAN of the group, if it has one.
    pub(crate) vlan: Option<u16>,
    /// What the field for the VLAN holds when the group has none.
    pub(crate) no_vlan: u16,
    /// Queue set.
    pub(crate) qs_handle: u16,
    /// Number of the function in the function-private memory.
    pub(crate) hmc_function: u8,
}

impl McastGroup {
    fn encode(&self, opcode: Opcode) -> [u64; 8] {
        let header = opcode.header()
            | field::<12, 0>(self.index.into())
            | bit::<59>(self.vlan.is_some())
            | bit::<60>(self.address.is_v4());
        let (low, high) = self.address.quadwords();

        [
            mac_to_u64(&self.mac),
            field::<5, 0>(self.hmc_function.into()),
            field::<9, 0>(self.qs_handle.into())
                | field::<43, 32>(self.vlan.unwrap_or(self.no_vlan).into()),
            header,
            self.members,
            0,
            low,
            high,
        ]
    }
}

/// Returns the quadword that stands for one member of a multicast group.
#[doc(alias = "irdma_create_mg_ctx")]
pub(crate) const fn mcast_member(qp_id: u32, port: u16) -> u64 {
    // CAST: Widening.
    field::<17, 0>(qp_id as u64) | bit::<31>(true) | field::<47, 32>(port as u64)
}

/// Makes a multicast group.
#[doc(alias = "irdma_sc_create_mcast_grp")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateMcastGroup(pub(crate) McastGroup);

impl Command for CreateMcastGroup {
    const OPCODE: Opcode = Opcode::CreateMcastGroup;

    fn encode(&self) -> [u64; 8] {
        self.0.encode(Self::OPCODE)
    }
}

/// Changes a multicast group's members.
#[doc(alias = "irdma_sc_modify_mcast_grp")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModifyMcastGroup(pub(crate) McastGroup);

impl Command for ModifyMcastGroup {
    const OPCODE: Opcode = Opcode::ModifyMcastGroup;

    fn encode(&self) -> [u64; 8] {
        self.0.encode(Self::OPCODE)
    }
}

/// Takes a multicast group away.
#[doc(alias = "irdma_sc_destroy_mcast_grp")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestroyMcastGroup(pub(crate) McastGroup);

impl Command for DestroyMcastGroup {
    const OPCODE: Opcode = Opcode::DestroyMcastGroup;

    fn encode(&self) -> [u64; 8] {
        self.0.encode(Self::OPCODE)
    }
}
