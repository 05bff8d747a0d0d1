// SPDX-License-Identifier: GPL-2.0

//! The port's counters.

use super::device::Device;
use crate::rdma::CounterDesc;

/// Names of the counters, in the order of [`crate::hw::stats::Counter`].
#[doc(alias = "irdma_hw_stat_descs")]
#[doc(alias = "irdma_alloc_hw_port_stats")]
pub(super) const COUNTERS: &[CounterDesc] = &[
    CounterDesc::new(c"ip4InDiscards"),
    CounterDesc::new(c"ip4InTruncatedPkts"),
    CounterDesc::new(c"ip4OutNoRoutes"),
    CounterDesc::new(c"ip6InDiscards"),
    CounterDesc::new(c"ip6InTruncatedPkts"),
    CounterDesc::new(c"ip6OutNoRoutes"),
    CounterDesc::new(c"RetransSegs"),
    CounterDesc::new(c"InOptErrors"),
    CounterDesc::new(c"InProtoErrors"),
    CounterDesc::new(c"rxVlanErrors"),
    CounterDesc::new(c"ip4InOctets"),
    CounterDesc::new(c"ip4InPkts"),
    CounterDesc::new(c"ip4InReasmRqd"),
    CounterDesc::new(c"ip4InMcastPkts"),
    CounterDesc::new(c"ip4OutOctets"),
    CounterDesc::new(c"ip4OutPkts"),
    CounterDesc::new(c"ip4OutSegRqd"),
    CounterDesc::new(c"ip4OutMcastPkts"),
    CounterDesc::new(c"ip6InOctets"),
    CounterDesc::new(c"ip6InPkts"),
    CounterDesc::new(c"ip6InReasmRqd"),
    CounterDesc::new(c"ip6InMcastPkts"),
    CounterDesc::new(c"ip6OutOctets"),
    CounterDesc::new(c"ip6OutPkts"),
    CounterDesc::new(c"ip6OutSegRqd"),
    CounterDesc::new(c"ip6OutMcastPkts"),
    CounterDesc::new(c"InSegs"),
    CounterDesc::new(c"OutSegs"),
    CounterDesc::new(c"InRdmaReads"),
    CounterDesc::new(c"InRdmaSends"),
    CounterDesc::new(c"InRdmaWrites"),
    CounterDesc::new(c"OutRdmaReads"),
    CounterDesc::new(c"OutRdmaSends"),
    CounterDesc::new(c"OutRdmaWrites"),
    CounterDesc::new(c"RdmaBnd"),
    CounterDesc::new(c"RdmaInv"),
    CounterDesc::new(c"ip4InMcastOctets"),
    CounterDesc::new(c"ip4OutMcastOctets"),
    CounterDesc::new(c"ip6InMcastOctets"),
    CounterDesc::new(c"ip6OutMcastOctets"),
    CounterDesc::new(c"RxUDP"),
    CounterDesc::new(c"TxUDP"),
    CounterDesc::new(c"RxECNMrkd"),
    CounterDesc::new(c"cnpHandled"),
    CounterDesc::new(c"cnpIgnored"),
    CounterDesc::new(c"cnpSent"),
];

/// Reads the counters, in the order of their names. When the device does not answer, they are what
/// they were when it did last.
#[doc(alias = "irdma_get_hw_stats")]
pub(super) fn read(dev: &Device<'_>, values: &mut [u64]) {
    let stats = dev.hw().stats();

    // The command queue has said so.
    let _ = stats.gather();

    stats.copy_totals(values);
}
