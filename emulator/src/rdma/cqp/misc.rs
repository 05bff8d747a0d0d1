// SPDX-License-Identifier: GPL-2.0
//! Commands on what belongs to the function as a whole: features, MAC table, push pages, scheduler, statistics.

use serde_json::json;

use super::super::layout::wqe;
use super::super::qp_context::mac;
use super::super::stats::Stats;
use super::super::ws::{Node, TreeError};
use super::super::Rdma;
use super::{Command, Done, Failure, Outcome};
use crate::context::Context;

/// Firmware version that the function reports.
const FIRMWARE: (u64, u64) = (1, 60);

/// The feature records: type in bits 63:48, value below. The first one carries their number (47:32) and the
/// firmware version.
fn features() -> Vec<u64> {
    const HW_VERSION: u64 = 1;
    const QUEUE_SETS: u64 = 26;
    const FLAGS: u64 = 32;
    let record = |kind: u64, value: u64| (kind << 48) | value;
    let mut records = vec![
        0,
        record(HW_VERSION, 2),
        record(QUEUE_SETS, 1023),
        record(FLAGS, 0),
    ];
    let count = records.len() as u64;
    records[0] = (count << 32) | (FIRMWARE.0 << 16) | FIRMWARE.1;
    records
}

pub(super) fn query_features(cx: &mut Context<'_>, c: &Command) -> Outcome {
    let length = c.head(wqe::BUFFER_LENGTH);
    let bytes: Vec<u8> = features()
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let taken = bytes.len().min(length as usize);
    match cx.write("feature buffer", c.words[4], &bytes[..taken]) {
        Ok(()) => Ok(Done::OK),
        Err(_) => Err(Failure::INVALID_MEMORY),
    }
}

/// Entries of the local MAC table.
const MACS: u32 = 64;

pub(super) fn allocate_mac(rdma: &mut Rdma, _cx: &mut Context<'_>, _c: &Command) -> Outcome {
    let free = (0..MACS).find(|index| !rdma.macs.contains_key(index));
    let index = free.ok_or(Failure::EXHAUSTED)?;
    rdma.macs.insert(index, None);
    Ok(Done::value(index))
}

pub(super) fn manage_mac(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let index = c.head(wqe::MAC_INDEX) as u32;
    let Some(entry) = rdma.macs.get_mut(&index) else {
        let text = format!("entry {index} is not allocated");
        return Err(c.refuse(cx, Failure::INVALID_ID, text));
    };
    if c.flag(wqe::MAC_FREE) {
        rdma.macs.remove(&index);
    } else {
        *entry = Some(mac(c.get(4, wqe::MAC_ADDRESS)));
    }
    Ok(Done::OK)
}

/// What a driver gets that asks for a push page when there is none.
const NO_PUSH_PAGE: u32 = u32::MAX;

/// The function has no push pages: its doorbell BAR ends before them. Drivers then ring the doorbell.
pub(super) fn manage_push(cx: &mut Context<'_>, c: &Command) -> Outcome {
    if c.flag(wqe::PUSH_FREE) {
        let text = format!("page {} was never given out", c.head(wqe::PUSH_INDEX));
        return Err(c.refuse(cx, Failure::INVALID_ID, text));
    }
    Ok(Done::value(NO_PUSH_PAGE))
}

const ADD: u64 = 0;
const MODIFY: u64 = 1;
const DELETE: u64 = 2;

pub(super) fn work_scheduler(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let node = Node::decode(&c.words);
    let operation = c.head(wqe::WS_OPERATION);
    cx.trace(
        "ws_node",
        || json!({"op": operation, "node": format!("{node:?}")}),
    );
    let known_vsi = cx.port.vsis.contains(&node.vsi);
    if operation != DELETE && !known_vsi {
        c.violation(
            cx,
            format!("node {}: VSI {} does not exist", node.id, node.vsi),
        );
    }
    let result = match operation {
        ADD => rdma.ws.add(node),
        MODIFY => rdma.ws.modify(node),
        DELETE => rdma.ws.delete(node.id).map(|()| 0),
        other => {
            let text = format!("operation {other}");
            return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
        }
    };
    match result {
        Ok(handle) => Ok(Done::value(u32::from(handle))),
        Err(error) => {
            let failure = match error {
                TreeError::NoHandle => Failure::EXHAUSTED,
                TreeError::HasChildren => Failure::IN_USE,
                _ => Failure::INVALID_ID,
            };
            Err(c.refuse(cx, failure, format!("node {}: {error:?}", node.id)))
        }
    }
}

/// Statistics instances of a function.
const INSTANCES: u32 = 128;

pub(super) fn manage_stats(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    if c.flag(wqe::STATS_ALLOC) {
        let free = (0..INSTANCES).find(|index| !rdma.stats_instances.contains_key(index));
        let index = free.ok_or(Failure::EXHAUSTED)?;
        rdma.stats_instances.insert(index, Stats::default());
        return Ok(Done::value(index));
    }
    let index = c.head(wqe::STATS_INSTANCE) as u32;
    if rdma.stats_instances.remove(&index).is_none() {
        let text = format!("instance {index} is not allocated");
        return Err(c.refuse(cx, Failure::INVALID_ID, text));
    }
    Ok(Done::OK)
}

pub(super) fn gather_stats(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let function = c.get(5, wqe::STATS_FUNCTION);
    if function != u64::from(cx.port.pf_id) {
        let pf = cx.port.pf_id;
        c.violation(cx, format!("HMC function {function}, this is {pf}"));
    }
    let buffer = if c.flag(wqe::STATS_USE_INSTANCE) {
        let index = c.head(wqe::STATS_INSTANCE) as u32;
        match rdma.stats_instances.get(&index) {
            Some(stats) => stats.buffer(),
            None => {
                let text = format!("instance {index} is not allocated");
                return Err(c.refuse(cx, Failure::INVALID_ID, text));
            }
        }
    } else {
        rdma.stats.buffer()
    };
    match cx.write("statistics buffer", c.words[4], &buffer) {
        Ok(()) => Ok(Done::OK),
        Err(_) => Err(Failure::INVALID_MEMORY),
    }
}
