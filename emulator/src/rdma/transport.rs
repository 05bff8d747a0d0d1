// SPDX-License-Identifier: GPL-2.0
//! The data path: RoCEv2 transport of all queue pairs of a function.
//!
//! The state machine of one queue pair is an [`Endpoint`]; it reaches the rest
//! of the device through [`Host`], which [`device`] implements. Here are the
//! entry points: doorbells, frames, timers and the control half's commands.

mod acknowledge;
mod completion;
mod device;
mod endpoint;
pub(crate) mod events;
mod fetch;
pub(crate) mod host;
mod psn;
mod read_responses;
mod requester;
mod responder;
mod timers;
mod ud;

pub(crate) use super::flush::{FlushCodes, Flushed};
pub(crate) use endpoint::{Endpoint, Service};
pub(crate) use events::{Event, Source};
pub(crate) use host::{Access, Completion, Counter, DatagramSource, Host, Owner, Queue, Right};

use super::ah::vlan_id;
use super::qp::{QpState as State, QpType};
use super::stats;
use super::Rdma;
use crate::context::Context;
use device::Device;
use psn::Psn;

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;

use super::packet::{is_roce, parse, Malformed, Packet};

/// Frames that a function may have under way before it waits with what can
/// wait: few enough that they are still in the processor's nearest cache when
/// they arrive.
const CROWDED: usize = 16;

/// Frames to itself that a port takes in one go; the rest waits for the clock,
/// so that no register write takes for ever.
const LOOPED_AT_ONCE: usize = 4096;

/// The number that datagrams to a multicast group carry as their destination.
const MULTICAST_QP: u32 = 0xff_ffff;

/// What the transport keeps for a queue pair.
#[derive(Debug, Default)]
pub(crate) struct QpData {
    /// `None` while it is at work, and for a queue pair of iWARP.
    endpoint: Option<Box<Endpoint>>,
    /// Its entry in [`DataPath::timers`].
    due: Option<u64>,
}

/// What the data path keeps beside its queue pairs.
#[derive(Debug, Default)]
pub(crate) struct DataPath {
    /// When which queue pair wants to be polled.
    timers: BTreeSet<(u64, u32)>,
    /// Frames to this port itself: the device loops them back inside, no
    /// wire (and no capture) sees them.
    loopback: VecDeque<Vec<u8>>,
}

/// Runs `f` on an endpoint, with the rest of the device as its host.
fn with_endpoint<R>(
    rdma: &mut Rdma,
    cx: &mut Context<'_>,
    id: u32,
    f: impl FnOnce(&mut Endpoint, &mut Device<'_, '_>) -> R,
) -> Option<R> {
    let mut endpoint = rdma.qps.get_mut(&id)?.data.endpoint.take()?;
    let mut device = Device {
        instance: endpoint.context.stats_index,
        rdma,
        cx,
    };
    let result = f(&mut endpoint, &mut device);
    let due = endpoint.deadline();
    if let Some(qp) = rdma.qps.get_mut(&id) {
        qp.data.endpoint = Some(endpoint);
        let old = std::mem::replace(&mut qp.data.due, due);
        if old != due {
            if let Some(old) = old {
                rdma.wire.timers.remove(&(old, id));
            }
            if let Some(due) = due {
                rdma.wire.timers.insert((due, id));
            }
        }
    }
    Some(result)
}

/// A send queue has new work, or may take new work again.
pub(crate) fn sq_doorbell(rdma: &mut Rdma, cx: &mut Context<'_>, qp_id: u32) {
    let suspended = rdma.qps.get(&qp_id).is_some_and(|qp| qp.suspended);
    let found = with_endpoint(rdma, cx, qp_id, |endpoint, host| {
        if endpoint.is_suspended() && !suspended {
            endpoint.resume(host);
        } else {
            endpoint.doorbell(host);
        }
    });
    if found.is_none() && rdma.qps.contains_key(&qp_id) {
        cx.violation(
            "transport",
            format!("work for QP {qp_id}, whose protocol is not implemented"),
        );
    }
    settle(rdma, cx);
}

/// A frame from the wire; true if it was for this half.
pub(crate) fn receive(rdma: &mut Rdma, cx: &mut Context<'_>, frame: &[u8]) -> bool {
    // Without a queue pair nobody has told the port to take these frames:
    // they are the host's (which may run a transport of its own in software).
    if rdma.qps.is_empty() || !is_roce(frame) {
        return false;
    }
    let dest = frame.get(..6).unwrap_or(&[]);
    let unicast = dest.first().is_some_and(|b| b & 1 == 0);
    if unicast && !cx.port.addresses.iter().any(|own| own == dest) {
        return false;
    }
    deliver(rdma, cx, frame, false);
    settle(rdma, cx);
    true
}

/// Hands a frame to its queue pair or queue pairs.
fn deliver(rdma: &mut Rdma, cx: &mut Context<'_>, frame: &[u8], looped: bool) {
    let packet = match parse(frame, true) {
        Ok(packet) => packet,
        Err(Malformed::Icrc) => match parse(frame, false) {
            // A queue pair may say that it does not care.
            Ok(packet) if takes_without_icrc(rdma, packet.bth.dest_qp) => packet,
            _ => return discard(rdma, cx, frame),
        },
        Err(_) => return discard(rdma, cx, frame),
    };
    if packet.path.dst_ip.is_multicast() {
        let sender = packet.ext.deth.filter(|_| looped).map(|deth| deth.src_qp);
        let mut receivers = members(rdma, &packet);
        receivers.retain(|id| Some(*id) != sender);
        count_received(rdma, &packet, frame.len(), &receivers);
        for id in receivers {
            with_endpoint(rdma, cx, id, |endpoint, host| {
                endpoint.receive(host, &packet)
            });
        }
        return;
    }
    let id = packet.bth.dest_qp;
    count_received(rdma, &packet, frame.len(), &[id]);
    let found = with_endpoint(rdma, cx, id, |endpoint, host| {
        endpoint.receive(host, &packet)
    });
    if found.is_none() {
        discard(rdma, cx, frame);
    }
}

fn takes_without_icrc(rdma: &Rdma, id: u32) -> bool {
    rdma.qps.get(&id).is_some_and(|qp| qp.ctx.no_icrc)
}

/// The members of the packet's multicast group.
fn members(rdma: &Rdma, packet: &Packet<'_>) -> Vec<u32> {
    let vlan = vlan_id(packet.path.vlan);
    let group = rdma
        .mcast
        .values()
        .find(|group| group.ip == packet.path.dst_ip && vlan_id(group.vlan) == vlan);
    match group {
        Some(group) if packet.bth.dest_qp == MULTICAST_QP => {
            group.members.iter().map(|member| member.qp_id).collect()
        }
        _ => vec![],
    }
}

fn discard(rdma: &mut Rdma, cx: &mut Context<'_>, frame: &[u8]) {
    cx.trace("discard", || {
        serde_json::json!({"frame": frame.len(), "why": format!("{:?}", parse(frame, true).err())})
    });
    let v6 = frame.get(12..14) == Some(&[0x86, 0xdd]);
    let counter = if v6 {
        stats::Counter::Ip6RxDiscards
    } else {
        stats::Counter::Ip4RxDiscards
    };
    rdma.count(None, counter, 1);
}

/// Counts a packet for the function, and once for each statistics instance of
/// the queue pairs that get it.
fn count_received(rdma: &mut Rdma, packet: &Packet<'_>, len: usize, receivers: &[u32]) {
    use stats::Counter::*;
    let octets = len as u64;
    let group = packet.path.dst_ip.is_multicast();
    let (packets, bytes) = match (packet.path.dst_ip, group) {
        (IpAddr::V4(_), false) => (Ip4RxPackets, Ip4RxOctets),
        (IpAddr::V4(_), true) => (Ip4RxMcastPackets, Ip4RxMcastOctets),
        (IpAddr::V6(_), false) => (Ip6RxPackets, Ip6RxOctets),
        (IpAddr::V6(_), true) => (Ip6RxMcastPackets, Ip6RxMcastOctets),
    };
    let counters = [(packets, 1), (bytes, octets), (UdpRxPackets, 1)];
    for (counter, amount) in counters {
        rdma.count(None, counter, amount);
    }
    let instance = |rdma: &Rdma, id: &u32| rdma.qps.get(id)?.ctx.stats_index;
    for (n, id) in receivers.iter().enumerate() {
        let Some(index) = instance(rdma, id) else {
            continue;
        };
        let counted = |id| instance(rdma, id) == Some(index);
        if receivers.iter().take(n).any(counted) {
            continue;
        }
        for (counter, amount) in counters {
            rdma.count_in_instance(index, counter, amount);
        }
    }
}

/// Delivers what was sent to this port itself, up to `left` frames; true if
/// none is left.
fn deliver_looped(rdma: &mut Rdma, cx: &mut Context<'_>, left: &mut usize) -> bool {
    while *left > 0 {
        let Some(frame) = rdma.wire.loopback.pop_front() else {
            return true;
        };
        deliver(rdma, cx, &frame, true);
        cx.pool.give(frame);
        *left -= 1;
    }
    rdma.wire.loopback.is_empty()
}

/// Ends an event: what was sent to this port itself arrives. No timer runs
/// here, since answers may be on the wire that a timer would miss only for
/// the emulator's own slowness.
fn settle(rdma: &mut Rdma, cx: &mut Context<'_>) {
    let mut left = LOOPED_AT_ONCE;
    deliver_looped(rdma, cx, &mut left);
}

/// Timers whose time has come, and queue pairs that wait to go on. To be
/// called when nothing that should have arrived by now is on the wire.
pub(crate) fn poll(rdma: &mut Rdma, cx: &mut Context<'_>) {
    let mut left = LOOPED_AT_ONCE;
    while deliver_looped(rdma, cx, &mut left) && cx.frames.len() < CROWDED {
        match rdma.wire.timers.first().copied() {
            Some((at, id)) if at <= cx.now => {
                with_endpoint(rdma, cx, id, |endpoint, host| endpoint.poll(host));
            }
            _ => break,
        }
    }
}

/// When [`poll`] wants to be called next, in nanoseconds.
pub(crate) fn next_deadline(rdma: &Rdma) -> Option<u64> {
    if !rdma.wire.loopback.is_empty() {
        return Some(0);
    }
    rdma.wire.timers.first().map(|(at, _)| *at)
}

/// Posts one failed completion for each named queue that still has a work
/// request, send queue first.
pub(crate) fn flush(
    rdma: &mut Rdma,
    cx: &mut Context<'_>,
    qp_id: u32,
    codes: FlushCodes,
) -> Flushed {
    with_endpoint(rdma, cx, qp_id, |endpoint, host| {
        super::flush::flush(endpoint, host, &codes)
    })
    .unwrap_or_default()
}

/// A queue pair was created or modified: its context was read again, its
/// state may have changed from `old`.
pub(crate) fn qp_state_changed(rdma: &mut Rdma, cx: &mut Context<'_>, qp_id: u32, old: State) {
    let Some(qp) = rdma.qps.get_mut(&qp_id) else {
        return;
    };
    let service = match qp.kind {
        QpType::RoceRc => Service::Rc,
        QpType::RoceUd => Service::Ud,
        QpType::Iwarp | QpType::Uda => return,
    };
    let (state, context) = (qp.state, qp.ctx.clone());
    if qp.data.endpoint.is_none() {
        if qp.state != old || state != State::Idle {
            // It is at work, and reported this state itself.
            return;
        }
        qp.data.endpoint = Some(Box::new(Endpoint::new(qp_id, service, context.clone())));
    }
    with_endpoint(rdma, cx, qp_id, |endpoint, host| {
        endpoint.modify(host, state, context);
    });
    settle(rdma, cx);
}

/// A queue pair is about to be destroyed.
pub(crate) fn qp_destroyed(rdma: &mut Rdma, _cx: &mut Context<'_>, qp_id: u32) {
    if let Some(qp) = rdma.qps.get_mut(&qp_id) {
        qp.data.endpoint = None;
        if let Some(due) = qp.data.due.take() {
            rdma.wire.timers.remove(&(due, qp_id));
        }
    }
}

/// SUSPEND_QP, or a modify to the drained state: no new work is taken, and an
/// event tells when what is under way is done.
pub(crate) fn quiesce(rdma: &mut Rdma, cx: &mut Context<'_>, qp_id: u32) {
    // The change of state has already begun the draining.
    if rdma.qps.get(&qp_id).is_some_and(|qp| qp.suspended) {
        with_endpoint(rdma, cx, qp_id, |endpoint, host| endpoint.suspend(host));
        settle(rdma, cx);
    }
}

#[cfg(test)]
mod tests;
