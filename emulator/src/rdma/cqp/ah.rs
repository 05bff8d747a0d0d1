// SPDX-License-Identifier: GPL-2.0
//! Commands on address handles, the ARP table and multicast groups.

use serde_json::json;

use super::super::ah::{vlan_id, Ah, ArpEntry, Group, GROUP_MEMBERS};
use super::super::fpm::Object;
use super::super::layout::wqe;
use super::super::qp::QpType;
use super::super::qp_context::mac;
use super::super::Rdma;
use super::{read_words, Command, Done, Failure, Opcode, Outcome};
use crate::context::Context;

pub(super) fn create_or_modify(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let ah = Ah::decode(&c.words);
    let index = ah.index;
    let exists = rdma.ahs.contains_key(&index);
    if exists != (c.opcode == Opcode::ModifyAh) || index == 0 {
        let text = format!("AH {index} exists: {exists}");
        return Err(c.refuse(cx, Failure::INVALID_ID, text));
    }
    rdma.hmc.check_backing(cx, Object::AddressHandle, index)?;
    if !rdma.arp.contains_key(&u32::from(ah.arp_index)) {
        let text = format!("AH {index}: ARP entry {} does not exist", ah.arp_index);
        return Err(c.refuse(cx, Failure::INVALID_ID, text));
    }
    if ah.loopback != ah.loops() {
        let text = format!(
            "AH {index}: loopback flag {} from {} to {}",
            ah.loopback, ah.source_ip, ah.dest_ip
        );
        c.violation(cx, text);
    }
    rdma.ahs.insert(index, ah);
    Ok(Done::OK)
}

pub(super) fn destroy(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let index = c.head(wqe::AH_INDEX) as u32;
    if rdma.ahs.remove(&index).is_none() {
        return Err(c.refuse(
            cx,
            Failure::INVALID_ID,
            format!("AH {index} does not exist"),
        ));
    }
    Ok(Done::OK)
}

pub(super) fn manage_arp(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let index = c.head(wqe::ARP_INDEX) as u32;
    if c.flag(wqe::ARP_QUERY) {
        let known = rdma.arp.contains_key(&index);
        return known.then_some(Done::OK).ok_or(Failure::INVALID_ID);
    }
    if !c.flag(wqe::ARP_VALID) {
        if rdma.arp.remove(&index).is_none() {
            let text = format!("entry {index} does not exist");
            return Err(c.refuse(cx, Failure::INVALID_ID, text));
        }
        return Ok(Done::OK);
    }
    rdma.hmc.check_backing(cx, Object::Arp, index)?;
    rdma.arp.insert(
        index,
        ArpEntry {
            mac: mac(c.get(2, wqe::MAC_ADDRESS)),
            permanent: c.flag(wqe::ARP_PERMANENT),
            reach_max: c.words[1] as u32,
        },
    );
    Ok(Done::OK)
}

pub(super) fn create_or_modify_group(
    rdma: &mut Rdma,
    cx: &mut Context<'_>,
    c: &Command,
) -> Outcome {
    let context: [u64; GROUP_MEMBERS] = read_words(cx, "multicast group context", c.words[4])?;
    cx.trace(
        "context",
        || json!({"mcast": c.head(wqe::MG_INDEX), "words": context}),
    );
    let group = Group::decode(&c.words, &context);
    let index = group.index;
    let exists = rdma.mcast.contains_key(&index);
    if exists != (c.opcode == Opcode::ModifyMcast) || index == 0 {
        let text = format!("multicast group {index} exists: {exists}");
        return Err(c.refuse(cx, Failure::INVALID_ID, text));
    }
    rdma.hmc.check_backing(cx, Object::McastGroup, index)?;
    for member in &group.members {
        let kind = rdma.qps.get(&member.qp_id).map(|qp| qp.kind);
        if !matches!(kind, Some(QpType::RoceUd | QpType::Uda)) {
            let text = format!("multicast group {index}: QP {} is {kind:?}", member.qp_id);
            c.violation(cx, text);
        }
    }
    let twin = rdma
        .mcast
        .values()
        .find(|g| g.index != index && g.ip == group.ip && vlan_id(g.vlan) == vlan_id(group.vlan));
    if let Some(twin) = twin {
        let text = format!("multicast group {index} is the same as {}", twin.index);
        c.violation(cx, text);
    }
    rdma.mcast.insert(index, group);
    Ok(Done::OK)
}

pub(super) fn destroy_group(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let index = c.head(wqe::MG_INDEX) as u32;
    if rdma.mcast.remove(&index).is_none() {
        let text = format!("multicast group {index} does not exist");
        return Err(c.refuse(cx, Failure::INVALID_ID, text));
    }
    Ok(Done::OK)
}
