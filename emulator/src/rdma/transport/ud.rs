// SPDX-License-Identifier: GPL-2.0
//! Datagrams, management ones among them (IBA 9.8.3, 11.4.2.1; annex A17.4.4
//! for the header that a receiver finds in front of the data).

use super::events::code;
use super::responder::receive_error;
use super::{Completion, Counter, DatagramSource, Endpoint, Event, Host, Source};
use crate::rdma::packet::build::{ipv4_header, v6_octets};
use crate::rdma::packet::{Bth, Deth, Ext, Opcode, Packet, Path, ICRC_LEN};
use crate::rdma::wqe::Work;

use std::net::IpAddr;

/// Bytes in front of a received datagram.
const GRH: usize = 40;

/// Keys with this bit in a work request mean the queue pair's own.
const OWN_QKEY: u32 = 1 << 31;

impl Endpoint {
    /// Sends the datagram of operation `at`.
    pub(super) fn send_datagram<H: Host>(&mut self, host: &mut H, at: usize) -> Result<(), u16> {
        let op = &self.requester.ops[at];
        let Work::Send {
            imm,
            solicited,
            ah,
            qkey,
            dest_qp,
            ..
        } = op.wqe.work
        else {
            return Err(code::WQE_UNEXPECTED_OPCODE);
        };
        if op.length > self.mtu() as u64 {
            return Err(code::DATAGRAM_TOO_LONG);
        }
        let handle = host.address_handle(ah).ok_or(code::INVALID_AH_ENTRY)?;
        if handle.pd != self.context.pd {
            return Err(code::DATAGRAM_BAD_PD);
        }
        let path = Path {
            src_port: self.context.source_port,
            ..handle.path
        };
        let opcode = match imm {
            Some(_) => Opcode::UD_SEND_ONLY_IMM,
            None => Opcode::UD_SEND_ONLY,
        };
        // Each datagram takes a number, though nobody looks at it.
        let psn = self.requester.take_psn();
        let mut bth = Bth::new(opcode, self.context.pkey, dest_qp, psn.get());
        bth.solicited = solicited;
        let ext = Ext {
            deth: Some(Deth {
                qkey: if qkey & OWN_QKEY != 0 {
                    self.context.qkey
                } else {
                    qkey
                },
                src_qp: self.number,
            }),
            imm,
            ..Ext::default()
        };
        let op = &self.requester.ops[at];
        let Work::Send { ref data, .. } = op.wqe.work else {
            return Err(code::WQE_UNEXPECTED_OPCODE);
        };
        let mut draft = host.draft(&path, &bth, &ext, op.length as usize);
        self.gather(host, data, 0, draft.payload_mut())?;
        host.transmit(draft.finish());
        host.count(Counter::SendPackets);
        Ok(())
    }

    pub(super) fn receive_datagram<H: Host>(&mut self, host: &mut H, packet: &Packet<'_>) {
        let Some(deth) = packet.ext.deth else {
            host.count(Counter::Dropped);
            return;
        };
        if deth.qkey != self.context.qkey {
            host.count(Counter::BadQkey);
            return;
        }
        host.count(Counter::SendPacketsReceived);
        let entry = match self.peek_receive(host) {
            None => {
                host.count(Counter::NoReceive);
                return;
            }
            Some(Ok(entry)) => entry,
            Some(Err(error)) => {
                return self.datagram_fault(host, receive_error(error));
            }
        };
        let length = GRH + packet.payload.len();
        if length as u64 > entry.fragments.total() {
            // Anyone may send that: the receive entry waits for the next one
            // (IBA 9.9.3, class D).
            host.count(Counter::Dropped);
            return;
        }
        let stored = self
            .scatter(host, &entry.fragments, 0, &network_header(packet))
            .and_then(|()| self.scatter(host, &entry.fragments, GRH as u64, packet.payload));
        if let Err(code) = stored {
            return self.datagram_fault(host, code);
        }
        let index = self.take_receive();
        let private = self.context.ud_private_cq;
        let completion = Completion {
            send_queue: false,
            opcode: packet.bth.opcode.0 & 0x3f,
            wqe_index: index,
            length: length as u32,
            error: None,
            solicited: packet.bth.solicited,
            imm: packet.ext.imm,
            invalidated: None,
            source: Some(DatagramSource {
                qp: deth.src_qp,
                ip: packet.path.src_ip,
                mac: private.then_some(packet.path.src_mac),
                vlan: packet.path.vlan.filter(|_| private),
            }),
        };
        host.complete(self, &completion);
    }

    /// The receive entry at the cursor cannot take the datagram.
    fn datagram_fault<H: Host>(&mut self, host: &mut H, code: u16) {
        let event = Event {
            code,
            source: Source::ReceiveQueue,
            wqe_index: self.responder.next_receive.index,
        };
        self.fail(host, event);
    }
}

/// The 40 bytes in front of a received datagram: the IPv6 header, or 20 bytes
/// of zero and the IPv4 header.
fn network_header(packet: &Packet<'_>) -> [u8; GRH] {
    let path = &packet.path;
    let ext = packet.ext.layout().len();
    let pad = usize::from(packet.bth.pad);
    let udp_len = 8 + Bth::LEN + ext + packet.payload.len() + pad + ICRC_LEN;
    let mut out = [0; GRH];
    match (path.src_ip, path.dst_ip) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let header = ipv4_header(
                path.traffic_class,
                path.hop_limit,
                (20 + udp_len) as u16,
                src.octets(),
                dst.octets(),
            );
            out[20..].copy_from_slice(&header);
        }
        (src, dst) => {
            let first =
                6u32 << 28 | u32::from(path.traffic_class) << 20 | path.flow_label & 0xf_ffff;
            out[..4].copy_from_slice(&first.to_be_bytes());
            out[4..6].copy_from_slice(&(udp_len as u16).to_be_bytes());
            out[6] = 17;
            out[7] = path.hop_limit;
            out[8..24].copy_from_slice(&v6_octets(src));
            out[24..].copy_from_slice(&v6_octets(dst));
        }
    }
    out
}
