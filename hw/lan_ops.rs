// SPDX-License-Identifier: GPL-2.0

//! What the device needs of the LAN driver.

use kernel::prelude::*;

/// Number of user priorities of a port (IEEE 802.1Q).
pub(crate) const USER_PRIORITIES: usize = 8;

/// A queue set: the place where a leaf of the RDMA scheduler hangs in the LAN scheduler's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Qset {
    /// The queue set's handle, given by the RDMA side.
    pub(crate) handle: u16,
    /// Traffic class.
    pub(crate) traffic_class: u8,
    /// The function's VSI.
    pub(crate) vsi: u16,
}

/// How a port shares itself among its traffic classes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QosParams {
    /// Traffic class of each user priority.
    pub(crate) priority_to_class: [u8; USER_PRIORITIES],
    /// Relative bandwidth of each traffic class.
    pub(crate) bandwidth: [u8; USER_PRIORITIES],
    /// Priorities are chosen by DSCP instead of by VLAN priority.
    pub(crate) dscp: bool,
    /// Priority of each DSCP.
    pub(crate) dscp_map: [u8; 64],
    /// Packets outside of a VLAN carry a tag with their priority, by which the network knows their
    /// class (IEEE 802.1Q, VLAN 0).
    pub(crate) priority_tags: bool,
    /// Handle of the queue set of each user priority, where they are not made by the RDMA side; the
    /// work scheduler has nothing to do then.
    #[doc(alias = "qs_handle_list")]
    pub(crate) handles: Option<[u16; USER_PRIORITIES]>,
}

impl Default for QosParams {
    /// One traffic class for all.
    fn default() -> Self {
        Self {
            priority_to_class: [0; USER_PRIORITIES],
            bandwidth: [0; USER_PRIORITIES],
            dscp: false,
            dscp_map: [0; 64],
            priority_tags: false,
            handles: None,
        }
    }
}

/// The LAN driver's side of the function.
///
/// All but [`LanOps::request_reset`] and [`LanOps::is_unplugged`] may sleep.
pub(crate) trait LanOps: Send + Sync {
    /// Adds a queue set to the LAN scheduler's tree and returns its node there.
    fn add_qset(&self, qset: Qset) -> Result<u32>;

    /// Takes a queue set out of the LAN scheduler's tree. A failure is the LAN driver's to log.
    fn remove_qset(&self, qset: Qset, node: u32);

    /// Asks for a reset of the function. The LAN driver will remove the RDMA device for it, and
    /// bring it back. `EBUSY` while it is at another reset.
    fn request_reset(&self) -> Result;

    /// Returns whether the LAN driver takes the RDMA device away itself. Says nothing before the
    /// driver's probe has ended.
    fn is_unplugged(&self) -> bool;
}
