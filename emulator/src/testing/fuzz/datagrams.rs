// SPDX-License-Identifier: GPL-2.0
//! Datagrams that no peer sent: to one queue pair, to the one of management,
//! to groups; over IPv4 and IPv6.

use std::net::IpAddr;

use super::Fuzzer;
use crate::rdma::packet::{Bth, Deth, Draft, Ext, Opcode};
use crate::testing::pair::UD_QP;

/// The Q_Key of the datagram queue pairs.
const QKEY: u32 = 0x1234;
/// That of the queue pair of management.
const MANAGEMENT_QKEY: u32 = 0x8001_0000;
/// The number that datagrams to a group carry.
const GROUP_QP: u32 = 0xff_ffff;

impl Fuzzer<'_> {
    pub(super) fn datagram(&mut self, port: usize) {
        if self.input.chance(2) {
            self.pair.post_receive(port, 3, 0x4000, 4096);
        }
        let mut path = self.path(port);
        let mut to = self.input.pick(&[UD_QP, UD_QP, UD_QP, 1, 0, 8, GROUP_QP]);
        if self.input.chance(3) {
            let address = |last: u16| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last]);
            (path.src_ip, path.dst_ip) = (address(2 - port as u16), address(1 + port as u16));
        }
        if self.input.chance(3) {
            to = GROUP_QP;
            (path.dst_mac, path.dst_ip) = match self.input.byte() % 3 {
                0 => (
                    [0x33, 0x33, 0, 0, 0, 5],
                    IpAddr::from([0xff0e, 0, 0, 0, 0, 0, 0, 5]),
                ),
                _ => ([1, 0, 0x5e, 1, 2, 3], IpAddr::from([224, 1, 2, 3])),
            };
        }
        let opcode = Opcode(self.input.pick(&[0x64, 0x64, 0x65]));
        let deth = Deth {
            qkey: match self.input.byte() % 8 {
                0 => self.input.word() as u32,
                1 => MANAGEMENT_QKEY,
                _ if to == 1 => MANAGEMENT_QKEY,
                _ => QKEY,
            },
            src_qp: self.input.pick(&[UD_QP, 1, 0xff_fffe]),
        };
        let ext = Ext {
            deth: Some(deth),
            imm: (opcode.0 == 0x65).then_some(7),
            ..Ext::default()
        };
        let payload = match self.input.byte() % 4 {
            0 => self.input.below(5000) as usize,
            _ => self.input.below(1100) as usize,
        };
        let mut bth = Bth::new(opcode, 0xffff, to, self.input.word() as u32 & 0xff_ffff);
        bth.solicited = self.input.chance(4);
        let frame = Draft::new(vec![], &path, &bth, &ext, payload).finish();
        self.arrive(port, frame);
    }
}
