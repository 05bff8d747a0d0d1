// SPDX-License-Identifier: GPL-2.0
//! Frames that no peer sent.

use super::Fuzzer;
use crate::rdma::packet::{Aeth, Bth, Draft, Ext, Opcode, Path, Reth, Syndrome};
use crate::wire::Message;

impl Fuzzer<'_> {
    /// A frame that no peer sent.
    pub(super) fn frame(&mut self, port: usize) {
        let peer = 2 - port as u8;
        let path = self.path(port);
        let opcode = match self.input.byte() % 8 {
            0 => self.input.byte(),
            1 => 0x81,
            2 => 0x64,
            _ => self.input.byte() % 0x18,
        };
        let id = self.input.pick(&[8, 9, 10, 4, 1, 0, 0xff_ffff]);
        let psn = (u32::from(peer) << 8).wrapping_add(self.input.below(64) as u32);
        let mut bth = Bth::new(Opcode(opcode), 0xffff, id, psn & 0xff_ffff);
        bth.ack_request = self.input.chance(2);
        let (address, len, rkey) = self.piece();
        let mut ext = Ext {
            reth: Some(Reth {
                address,
                rkey: rkey as u32,
                length: len as u32,
            }),
            aeth: Some(Aeth {
                syndrome: self.input.pick(&[
                    Syndrome::Ack(0x1f),
                    Syndrome::Rnr(1),
                    Syndrome::Sequence,
                    Syndrome::InvalidRequest,
                    Syndrome::RemoteAccess,
                ]),
                msn: 1,
            }),
            ..Ext::default()
        };
        // Some with the headers that the opcode wants, some with others.
        if self.input.chance(2) {
            ext.reth = None;
        }
        if self.input.chance(2) {
            ext.aeth = None;
        }
        let payload = self.input.pick(&[0, 4, 100, 1024, 4096]);
        let mut frame = Draft::new(vec![], &path, &bth, &ext, payload).finish();
        if self.input.chance(8) {
            let at = self.input.below(frame.len() as u64) as usize;
            frame[at] ^= self.input.byte();
        }
        if self.input.chance(8) {
            let len = self.input.below(frame.len() as u64) as usize;
            frame.truncate(len);
        }
        self.arrive(port, frame);
    }

    /// From the other port.
    pub(super) fn path(&mut self, port: usize) -> Path {
        let peer = 2 - port as u8;
        let me = 3 - peer;
        Path {
            src_mac: [2, 0, 0, 0, 0, peer],
            dst_mac: [2, 0, 0, 0, 0, me],
            vlan: self.input.chance(8).then_some(5),
            src_ip: [10, 0, 0, peer].into(),
            dst_ip: [10, 0, 0, me].into(),
            traffic_class: self.input.pick(&[0, 2, 3]),
            hop_limit: 64,
            flow_label: 0,
            src_port: 0xc000,
        }
    }

    pub(super) fn arrive(&mut self, port: usize, frame: Vec<u8>) {
        let now = self.pair.now;
        self.machine().message(Message::Frame(port, frame), now);
    }
}
