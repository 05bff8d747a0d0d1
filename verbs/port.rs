// SPDX-License-Identifier: GPL-2.0

//! The port: its state is that of the network device.

use kernel::prelude::*;

use super::{
    device::Device,
    Verbs, //
};
use crate::rdma::{
    self,
    Mtu,
    PortAttr,
    PortCaps,
    PortImmutable,
    PortState, //
};

/// Entries of the GID table. They live in the core; the device needs none of it.
const GID_TABLE: i32 = 32;

/// Partition keys: the default one.
#[doc(alias = "IRDMA_PKEY_TBL_SZ")]
const PKEYS: u16 = 1;

/// The default partition key, with full membership (IBTA volume 1, 10.9.1).
#[doc(alias = "IRDMA_DEFAULT_PKEY")]
pub(super) const DEFAULT_PKEY: u16 = 0xffff;

/// Tells the port's state.
///
/// # Errors
///
/// `ENODEV` if there is no network device.
#[doc(alias = "irdma_query_port")]
pub(super) fn query(
    core: &rdma::Device<Verbs>,
    dev: &Device<'_>,
    port: u32,
    attr: &mut PortAttr<'_>,
) -> Result {
    let netdev = dev.netdev();
    let state = if netdev.is_running() && netdev.has_carrier() {
        PortState::Active
    } else {
        PortState::Down
    };

    attr.set_state(state)
        .set_mtu(Mtu::Mtu4096, Mtu::from_bytes(netdev.mtu()))
        // Ethernet has no local identifiers; 1 is what the users of this device know.
        .set_lid(1)
        .set_gid_tbl_len(GID_TABLE)
        .set_pkey_tbl_len(PKEYS)
        .set_max_msg_sz(dev.limits().max_message)
        .set_ip_gids()
        .set_cm_and_reinit();

    attr.set_ethernet_speed(core, port)
}

/// Tells what of the port never changes.
#[doc(alias = "irdma_roce_port_immutable")]
pub(super) fn immutable(immutable: &mut PortImmutable<'_>) -> Result {
    immutable
        .set_caps(PortCaps::ROCE_V2)
        .set_gid_tbl_len(GID_TABLE)
        .set_pkey_tbl_len(PKEYS.into())
        .set_mads();

    Ok(())
}

/// Returns the partition key at `index`.
///
/// # Errors
///
/// `EINVAL` if there is none.
#[doc(alias = "irdma_query_pkey")]
pub(super) fn pkey(index: u16) -> Result<u16> {
    if index < PKEYS {
        Ok(DEFAULT_PKEY)
    } else {
        Err(EINVAL)
    }
}
