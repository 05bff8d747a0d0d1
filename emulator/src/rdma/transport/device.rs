// SPDX-License-Identifier: GPL-2.0
//! The device around an endpoint: regions, queues, tables, counters and the
//! way out.

use serde_json::json;
use std::fmt::Display;
use std::net::IpAddr;
use std::sync::atomic::{fence, Ordering};

use super::endpoint::no_route;
use super::host::{AddressHandle, Counter};
use super::{
    events, Access, Completion, Endpoint, Event, Host, Owner, Queue, Right, Source, CROWDED,
};
use crate::context::Context;
use crate::rdma::mr::{self, Mapping, PageSize, Requester, Rights, Translation};
use crate::rdma::packet::{Bth, Draft, Ext, Path};
use crate::rdma::wqe::{BindWindow, FastRegister};
use crate::rdma::{aeq, cq, qp, stats, Rdma};

/// The device while one of its queue pairs is at work.
pub(super) struct Device<'a, 'c> {
    pub(super) rdma: &'a mut Rdma,
    pub(super) cx: &'a mut Context<'c>,
    /// The statistics instance that the queue pair at work counts in, beside
    /// the function's.
    pub(super) instance: Option<u8>,
}

impl From<&Owner> for Requester {
    fn from(owner: &Owner) -> Self {
        Self {
            pd: owner.pd,
            qp: owner.qp,
            privileged: owner.privileged,
        }
    }
}

impl From<Right> for Rights {
    fn from(right: Right) -> Self {
        match right {
            Right::LocalRead => Rights::LOCAL_READ,
            Right::LocalWrite => Rights::LOCAL_WRITE,
            Right::RemoteRead => Rights::REMOTE_READ,
            Right::RemoteWrite => Rights::REMOTE_WRITE,
        }
    }
}

impl From<Source> for aeq::Source {
    fn from(source: Source) -> Self {
        match source {
            Source::Device => aeq::Source::None,
            Source::ReceiveQueue => aeq::Source::Rq,
            Source::SendQueue => aeq::Source::Sq,
            Source::InboundRequest => aeq::Source::InboundRequest,
        }
    }
}

impl Device<'_, '_> {
    fn segments(&mut self, access: &Access, length: u64) -> Result<mr::Segments, u16> {
        mr::check(
            self.rdma,
            self.cx,
            access.stag,
            access.address,
            length,
            access.right.into(),
            (&access.owner).into(),
        )
        .map_err(mr::AccessError::event_code)
    }

    fn count_sent(&mut self, frame: &[u8]) {
        use stats::Counter::*;
        let group = frame.first().is_some_and(|byte| byte & 1 != 0);
        let kind = match frame.get(12..14) {
            Some([0x81, 0x00]) => frame.get(16..18),
            other => other,
        };
        let (packets, octets) = match (kind, group) {
            (Some([0x86, 0xdd]), false) => (Ip6TxPackets, Ip6TxOctets),
            (Some([0x86, 0xdd]), true) => (Ip6TxMcastPackets, Ip6TxMcastOctets),
            (_, false) => (Ip4TxPackets, Ip4TxOctets),
            (_, true) => (Ip4TxMcastPackets, Ip4TxMcastOctets),
        };
        self.rdma.count(self.instance, packets, 1);
        self.rdma.count(self.instance, octets, frame.len() as u64);
        self.rdma.count(self.instance, UdpTxPackets, 1);
    }
}

impl Host for Device<'_, '_> {
    fn now(&self) -> u64 {
        self.cx.now
    }

    fn read_queue(&mut self, id: u32, queue: Queue, index: u32, out: &mut [u8]) -> bool {
        let address = match queue {
            Queue::Send => qp::sq_address(self.rdma, self.cx, id, index),
            Queue::Receive => qp::rq_address(self.rdma, self.cx, id, index),
        };
        address.is_ok_and(|address| {
            // The valid bit first: what it covers is read after it.
            let valid = self.cx.read_u64("WQE", address + 24);
            valid.is_ok_and(|word| {
                let read = self.cx.read("WQE", address, out).is_ok();
                if let Some(place) = out.get_mut(24..32) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
                read
            })
        })
    }

    fn write_tail(&mut self, id: u32, tail: u32) {
        qp::write_sq_tail(self.rdma, self.cx, id, tail);
        // The driver writes an entry, then reads the tail; we write the tail,
        // then read the entry. One of the two sees the other.
        fence(Ordering::SeqCst);
    }

    fn check(&mut self, access: &Access, length: u64) -> Result<(), u16> {
        self.segments(access, length).map(|_| ())
    }

    fn load(&mut self, access: &Access, out: &mut [u8]) -> Result<(), u16> {
        let mut at = 0;
        for segment in self.segments(access, out.len() as u64)? {
            let end = at + segment.length as usize;
            let read = match out.get_mut(at..end) {
                Some(part) => self.cx.read("data", segment.address, part).is_ok(),
                None => false,
            };
            if !read {
                return Err(events::code::LOCAL_CATASTROPHIC);
            }
            at = end;
        }
        Ok(())
    }

    fn store(&mut self, access: &Access, data: &[u8]) -> Result<(), u16> {
        let mut at = 0;
        for segment in self.segments(access, data.len() as u64)? {
            let end = at + segment.length as usize;
            let written = match data.get(at..end) {
                Some(part) => self.cx.write("data", segment.address, part).is_ok(),
                None => false,
            };
            if !written {
                return Err(events::code::LOCAL_CATASTROPHIC);
            }
            at = end;
        }
        Ok(())
    }

    fn fast_register(&mut self, owner: &Owner, register: &FastRegister) -> Result<(), u16> {
        let first_pble = u64::from(register.first_pble);
        let translation = Translation::new(
            register.pbl_levels.into(),
            register.page_address,
            first_pble,
        );
        let (Some(translation), Some(page_size)) =
            (translation, PageSize::from_code(register.page_size.into()))
        else {
            return Err(events::code::WQE_INVALID_PARAMETER);
        };
        let request = mr::FastRegister {
            index: register.stag >> 8,
            key: register.stag as u8,
            mapping: Mapping {
                rights: Rights(register.rights),
                start: register.address,
                length: register.length,
                va_based: register.va_based,
                page_size,
                translation,
                parent: None,
                qp: None,
            },
        };
        mr::fast_register(self.rdma, owner.into(), request).map_err(mr::AccessError::event_code)
    }

    fn bind_window(&mut self, owner: &Owner, bind: &BindWindow) -> Result<(), u16> {
        let mapping = Mapping {
            rights: Rights(bind.rights),
            start: bind.address,
            length: bind.length,
            va_based: bind.va_based,
            page_size: PageSize::default(),
            translation: Translation::Contiguous(0),
            parent: Some(bind.parent),
            qp: None,
        };
        self.rdma.count(self.instance, stats::Counter::RdmaBinds, 1);
        mr::bind(self.rdma, owner.into(), bind.window, bind.parent, mapping)
            .map_err(mr::AccessError::event_code)
    }

    fn invalidate(&mut self, owner: &Owner, stag: u32, remote: bool) -> Result<(), u16> {
        self.rdma
            .count(self.instance, stats::Counter::RdmaInvalidates, 1);
        mr::invalidate(self.rdma, owner.into(), stag, remote).map_err(mr::AccessError::event_code)
    }

    fn neighbour(&mut self, index: u16) -> Option<[u8; 6]> {
        self.rdma.arp.get(&u32::from(index)).map(|entry| entry.mac)
    }

    fn address_handle(&mut self, index: u32) -> Option<AddressHandle> {
        let ah = self.rdma.ahs.get(&index)?;
        let Some(neighbour) = self.rdma.arp.get(&u32::from(ah.arp_index)) else {
            let counter = no_route(ah.dest_ip);
            self.count(counter);
            return None;
        };
        Some(AddressHandle {
            pd: ah.pd,
            path: Path {
                src_mac: ah.mac,
                dst_mac: neighbour.mac,
                vlan: ah.vlan,
                src_ip: ah.source_ip,
                dst_ip: ah.dest_ip,
                traffic_class: ah.traffic_class,
                hop_limit: ah.hop_limit,
                flow_label: ah.flow_label,
                src_port: 0,
            },
        })
    }

    fn complete(&mut self, endpoint: &Endpoint, completion: &Completion) {
        let id = if completion.send_queue {
            endpoint.context.send_cq
        } else {
            endpoint.context.recv_cq
        };
        let source = completion.source.as_ref();
        let extension = cq::Extension {
            immediate: completion.imm,
            source_mac: source.and_then(|source| source.mac),
            vlan: source.and_then(|source| source.vlan),
        };
        let entry = cq::Cqe {
            length: completion.length,
            context: endpoint.context.completion_context,
            qp_id: endpoint.number,
            is_sq: completion.send_queue,
            opcode: completion.opcode,
            wqe_index: completion.wqe_index,
            error: completion.error,
            solicited: completion.solicited,
            invalidated: completion.invalidated,
            source_qp: source.map(|source| source.qp),
            ipv4: source.is_some_and(|source| matches!(source.ip, IpAddr::V4(_))),
            extension: Some(extension).filter(|e| *e != cq::Extension::default()),
        };
        // What goes wrong is recorded and reported there.
        let _ = cq::post(self.rdma, self.cx, id, entry);
    }

    fn event(&mut self, endpoint: &Endpoint, event: Event) {
        if event.code == events::code::SUSPEND_COMPLETE {
            qp::report_suspended(self.rdma, self.cx, endpoint.number);
            return;
        }
        qp::to_error(
            self.rdma,
            self.cx,
            endpoint.number,
            event.code,
            event.source.into(),
            event.wqe_index,
        );
    }

    fn draft(&mut self, path: &Path, bth: &Bth, ext: &Ext, payload: usize) -> Draft {
        Draft::new(self.cx.pool.take(), path, bth, ext, payload)
    }

    fn crowded(&self) -> bool {
        self.cx.frames.len() + self.rdma.wire.loopback.len() >= CROWDED
    }

    fn transmit(&mut self, frame: Vec<u8>) {
        self.count_sent(&frame);
        let (dest, source) = (frame.get(..6), frame.get(6..12));
        let own = &self.cx.port.addresses;
        let local = dest == source || own.iter().any(|own| dest == Some(own));
        let group = frame.first().is_some_and(|byte| byte & 1 != 0);
        if local || group {
            if group {
                self.cx.frames.push(frame.clone());
            }
            self.rdma.wire.loopback.push_back(frame);
        } else {
            self.cx.frames.push(frame);
        }
    }

    fn count(&mut self, counter: Counter) {
        use stats::Counter as Device;
        let counter = match counter {
            Counter::SendPackets => Device::RdmaTxSends,
            Counter::WritePackets => Device::RdmaTxWrites,
            Counter::ReadRequests => Device::RdmaTxReads,
            Counter::SendPacketsReceived => Device::RdmaRxSends,
            Counter::WritePacketsReceived => Device::RdmaRxWrites,
            Counter::ReadRequestsReceived => Device::RdmaRxReads,
            Counter::CongestionMarked => Device::RxEcnMarked,
            Counter::CnpSent => Device::TxCnpSent,
            Counter::NoRoute4 => Device::Ip4TxNoRoute,
            Counter::NoRoute6 => Device::Ip6TxNoRoute,
            Counter::CnpReceived => Device::RxCnpHandled,
            // This generation has no register for these.
            Counter::Retransmits
            | Counter::SequenceNaksSent
            | Counter::SequenceNaksReceived
            | Counter::RnrNaksSent
            | Counter::RnrNaksReceived
            | Counter::Duplicates
            | Counter::Dropped
            | Counter::BadPkey
            | Counter::BadQkey
            | Counter::NoReceive => return,
        };
        self.rdma.count(self.instance, counter, 1);
    }

    fn violation(&mut self, kind: &str, text: impl Display) {
        self.cx.violation(kind, text);
    }

    fn trace_wqe(&mut self, qp: u32, queue: Queue, index: u32, bytes: &[u8]) {
        self.cx.trace("wqe", || {
            let words: Vec<u64> = bytes
                .chunks(8)
                .map(|chunk| {
                    let mut word = [0; 8];
                    word[..chunk.len()].copy_from_slice(chunk);
                    u64::from_le_bytes(word)
                })
                .collect();
            json!({"qp": qp, "queue": format!("{queue:?}"), "index": index, "words": words})
        });
    }
}
