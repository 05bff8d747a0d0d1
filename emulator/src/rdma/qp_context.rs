// SPDX-License-Identifier: GPL-2.0
//! The queue-pair context that the driver lays down in guest memory and the device takes over.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::field::Field;
use super::layout::qpc;

/// A decoded RoCEv2 context of generation 2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QpContext {
    pub ipv4: bool,
    /// VLAN tag (priority and id) to insert, if any.
    pub vlan: Option<u16>,
    pub is_qp1: bool,
    /// Bytes of a receive work-queue entry: 32, 64, 128 or 256.
    pub rq_wqe_size: u32,
    pub err_rq_index: Option<u32>,
    pub push_page: Option<u16>,
    /// Physical address, or index of the first PBLE if the rings are virtually mapped.
    pub sq_base: u64,
    pub rq_base: u64,
    /// Ring lengths in quanta of 32 bytes.
    pub sq_quanta: u32,
    pub rq_quanta: u32,
    pub ttl: u8,
    pub tos: u8,
    pub source_port: u16,
    pub dest_port: u16,
    pub dest_ip: IpAddr,
    pub local_ip: IpAddr,
    pub flow_label: u32,
    /// Path MTU: payload bytes of a packet.
    pub mss: u16,
    pub arp_index: u16,
    pub ack_credits: u8,
    pub pkey: u16,
    pub pd: u32,
    pub dest_qp: u32,
    pub qkey: u32,
    pub psn_next: u32,
    pub lsn: u32,
    pub epsn: u32,
    pub psn_max: u32,
    pub psn_una: u32,
    pub cwnd: u32,
    pub retry_limit: u8,
    pub rnr_limit: u8,
    pub rto_min: u8,
    pub send_cq: u32,
    pub recv_cq: u32,
    pub stats_index: Option<u8>,
    pub mac: [u8; 6],
    /// Outstanding read requests that we may send.
    pub ord: u32,
    /// Outstanding read requests that the peer may send (decoded entries).
    pub ird: u32,
    pub ud_private_cq: bool,
    pub write_ok: bool,
    pub read_ok: bool,
    pub bind_ok: bool,
    pub fast_reg_ok: bool,
    pub privileged: bool,
    pub no_icrc: bool,
    /// Value that completions carry in their second quad word.
    pub completion_context: u64,
    pub qs_handle: u16,
}

/// The fields that a RoCEv2 context of this generation may have set; a bit outside is a driver's mistake.
const ALLOWED: [u64; 32] = {
    use qpc::*;
    let mut words = [0u64; 32];
    words[0] = IPV4.mask()
        | INSERT_VLAN.mask()
        | IS_QP1.mask()
        | RQ_WQE_SIZE.mask()
        | ERR_RQ_INDEX_VALID.mask()
        | PD_HIGH.mask()
        | DCTCP.mask()
        | TPH_ENABLES.mask()
        | PUSH_PAGE.mask()
        | PUSH_ENABLED.mask()
        | ROCE_VERSION.mask();
    words[1] = u64::MAX;
    words[2] = u64::MAX;
    words[3] = TTL.mask()
        | RQ_SIZE.mask()
        | SQ_SIZE.mask()
        | TOS.mask()
        | SOURCE_PORT.mask()
        | DEST_PORT.mask();
    words[4] = u64::MAX;
    words[5] = u64::MAX;
    words[6] = MSS.mask() | VLAN_TAG.mask() | ARP_INDEX.mask();
    words[7] = FLOW_LABEL.mask() | ACK_CREDITS.mask() | PKEY.mask() | PD_LOW.mask();
    words[8] = DEST_QP.mask() | QKEY.mask();
    words[10] = PSN_NEXT.mask() | LSN.mask();
    words[11] = EPSN.mask();
    words[12] = PSN_MAX.mask() | PSN_UNA.mask();
    words[14] = CWND.mask();
    words[16] =
        ERR_RQ_INDEX.mask() | REXMIT_THRESHOLD.mask() | RNR_THRESHOLD.mask() | RTO_MIN.mask();
    words[17] = SEND_CQ.mask() | RECV_CQ.mask();
    words[18] = STATS_INDEX.mask();
    words[19] = MAC.mask();
    words[20] = ORD.mask()
        | IRD.mask()
        | UD_PRIVATE_CQ.mask()
        | WRITE_OK.mask()
        | READ_OK.mask()
        | DCQCN.mask()
        | BIND_OK.mask()
        | FAST_REG_OK.mask()
        | PRIVILEGED.mask()
        | USE_STATS.mask()
        | TIMELY.mask()
        | FW_CC.mask()
        | NO_ICRC.mask();
    words[21] = u64::MAX;
    words[22] = TPH_VALUES.mask() | QS_HANDLE.mask();
    words[23] = u64::MAX;
    words[24] = u64::MAX;
    words[25] = T_HIGH.mask() | T_LOW.mask();
    words[26] = REMOTE_ENDPOINT.mask();
    words
};

/// Q1 entries of a queue pair by their encoding in the context; each read takes one of two.
const IRD_BY_CODE: [u32; 5] = [4, 16, 64, 128, 256];

impl QpContext {
    /// Decodes the 32 quad words of a context.
    pub fn decode(words: &[u64; 32]) -> Self {
        let flag = |word: usize, field: Field| field.is_set(words[word]);
        let ipv4 = flag(0, qpc::IPV4);
        let ird_code = qpc::IRD.get(words[20]) as usize;
        Self {
            ipv4,
            vlan: flag(0, qpc::INSERT_VLAN).then(|| qpc::VLAN_TAG.get(words[6]) as u16),
            is_qp1: flag(0, qpc::IS_QP1),
            rq_wqe_size: 32 << qpc::RQ_WQE_SIZE.get(words[0]),
            err_rq_index: flag(0, qpc::ERR_RQ_INDEX_VALID)
                .then(|| qpc::ERR_RQ_INDEX.get32(words[16])),
            push_page: flag(0, qpc::PUSH_ENABLED).then(|| qpc::PUSH_PAGE.get(words[0]) as u16),
            sq_base: words[1],
            rq_base: words[2],
            sq_quanta: 4 << qpc::SQ_SIZE.get(words[3]),
            rq_quanta: 4 << qpc::RQ_SIZE.get(words[3]),
            ttl: qpc::TTL.get(words[3]) as u8,
            tos: qpc::TOS.get(words[3]) as u8,
            source_port: qpc::SOURCE_PORT.get(words[3]) as u16,
            dest_port: qpc::DEST_PORT.get(words[3]) as u16,
            dest_ip: address(ipv4, words[5], words[4]),
            local_ip: address(ipv4, words[24], words[23]),
            flow_label: qpc::FLOW_LABEL.get32(words[7]),
            mss: qpc::MSS.get(words[6]) as u16,
            arp_index: qpc::ARP_INDEX.get(words[6]) as u16,
            ack_credits: qpc::ACK_CREDITS.get(words[7]) as u8,
            pkey: qpc::PKEY.get(words[7]) as u16,
            pd: qpc::PD_LOW.get32(words[7]) | (qpc::PD_HIGH.get32(words[0]) << 16),
            dest_qp: qpc::DEST_QP.get32(words[8]),
            qkey: qpc::QKEY.get32(words[8]),
            psn_next: qpc::PSN_NEXT.get32(words[10]),
            lsn: qpc::LSN.get32(words[10]),
            epsn: qpc::EPSN.get32(words[11]),
            psn_max: qpc::PSN_MAX.get32(words[12]),
            psn_una: qpc::PSN_UNA.get32(words[12]),
            cwnd: qpc::CWND.get32(words[14]),
            retry_limit: qpc::REXMIT_THRESHOLD.get(words[16]) as u8,
            rnr_limit: qpc::RNR_THRESHOLD.get(words[16]) as u8,
            rto_min: qpc::RTO_MIN.get(words[16]) as u8,
            send_cq: qpc::SEND_CQ.get32(words[17]),
            recv_cq: qpc::RECV_CQ.get32(words[17]),
            stats_index: flag(20, qpc::USE_STATS).then(|| qpc::STATS_INDEX.get(words[18]) as u8),
            mac: mac(qpc::MAC.get(words[19])),
            ord: qpc::ORD.get32(words[20]),
            ird: IRD_BY_CODE.get(ird_code).copied().unwrap_or(0) / 2,
            ud_private_cq: flag(20, qpc::UD_PRIVATE_CQ),
            write_ok: flag(20, qpc::WRITE_OK),
            read_ok: flag(20, qpc::READ_OK),
            bind_ok: flag(20, qpc::BIND_OK),
            fast_reg_ok: flag(20, qpc::FAST_REG_OK),
            privileged: flag(20, qpc::PRIVILEGED),
            no_icrc: flag(20, qpc::NO_ICRC),
            completion_context: words[21],
            qs_handle: qpc::QS_HANDLE.get(words[22]) as u16,
        }
    }

    /// The first reserved bits that are set: (byte offset of the word, the bits).
    pub fn reserved_bits(words: &[u64; 32]) -> Option<(usize, u64)> {
        words
            .iter()
            .zip(ALLOWED)
            .enumerate()
            .map(|(index, (word, allowed))| (index * 8, word & !allowed))
            .find(|(_, bits)| *bits != 0)
    }
}

/// A MAC address held in the low 48 bits, first byte uppermost.
pub fn mac(value: u64) -> [u8; 6] {
    let bytes = value.to_be_bytes();
    [bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7]]
}

/// An IP address from its two quad words; an IPv4 address is the low half of the lower word.
pub fn address(ipv4: bool, upper: u64, lower: u64) -> IpAddr {
    if ipv4 {
        IpAddr::V4(Ipv4Addr::from(qpc::ADDRESS_LOW.get32(lower)))
    } else {
        IpAddr::V6(Ipv6Addr::from(
            (u128::from(upper) << 64) | u128::from(lower),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> [u64; 32] {
        let mut w = [0u64; 32];
        // IPv4, RQ WQE of 64 bytes, PD bit 16 set.
        w[0] = (1 << 3) | (1 << 8) | (1 << 20);
        w[1] = 0x1000;
        w[2] = 0x2000;
        // TTL 64, RQ 4<<3, SQ 4<<6, TOS 2, ports 0xc001 and 4791.
        w[3] = 64 | (3 << 8) | (6 << 12) | (2 << 24) | (0xc001 << 32) | (4791 << 48);
        w[4] = 0x0a00_0002;
        w[6] = (1024 << 16) | (7 << 48);
        w[7] = (0xffff << 32) | (5 << 48) | (16 << 20);
        w[8] = 0x11 | (0x8001_0000 << 32);
        w[10] = 0x123456 | (0xffff << 32);
        w[11] = 0x654321;
        w[12] = 0x123456 | (0x123456 << 32);
        w[16] = (7 << 48) | (6 << 54) | (5 << 57);
        w[17] = 3 | (4 << 32);
        w[19] = 0x5254_0012_3456_0000;
        w[20] = 255 | (4 << 16) | (3 << 20) | (1 << 25);
        w[21] = 0xdead_beef;
        w[22] = 9 << 16;
        w[23] = 0x0a00_0001;
        w
    }

    #[test]
    fn decodes_a_roce_context() {
        let words = sample();
        let c = QpContext::decode(&words);
        assert!(c.ipv4 && c.privileged && c.write_ok && c.read_ok && !c.bind_ok);
        assert_eq!(c.rq_wqe_size, 64);
        assert_eq!((c.sq_quanta, c.rq_quanta), (256, 32));
        assert_eq!((c.source_port, c.dest_port), (0xc001, 4791));
        assert_eq!(c.dest_ip, "10.0.0.2".parse::<IpAddr>().unwrap());
        assert_eq!(c.local_ip, "10.0.0.1".parse::<IpAddr>().unwrap());
        assert_eq!((c.mss, c.arp_index), (1024, 7));
        assert_eq!((c.pd, c.pkey), (0x1_0005, 0xffff));
        assert_eq!((c.dest_qp, c.qkey), (0x11, 0x8001_0000));
        assert_eq!(
            (c.psn_next, c.epsn, c.psn_una),
            (0x123456, 0x654321, 0x123456)
        );
        assert_eq!((c.retry_limit, c.rnr_limit, c.rto_min), (7, 6, 5));
        assert_eq!((c.send_cq, c.recv_cq), (3, 4));
        assert_eq!(c.mac, [0x52, 0x54, 0x00, 0x12, 0x34, 0x56]);
        assert_eq!((c.ord, c.ird), (255, 128));
        assert_eq!((c.completion_context, c.qs_handle), (0xdead_beef, 9));
        assert_eq!(QpContext::reserved_bits(&words), None);
    }

    #[test]
    fn reserved_bits_are_seen() {
        let mut words = sample();
        words[9] = 0x40;
        assert_eq!(QpContext::reserved_bits(&words), Some((72, 0x40)));
    }

    #[test]
    fn ipv6_addresses_join_both_words() {
        let mut words = sample();
        words[0] &= !(1 << 3);
        words[5] = 0xfe80_0000_0000_0000;
        words[4] = 0x5054_00ff_fe12_3456;
        let c = QpContext::decode(&words);
        assert_eq!(
            c.dest_ip,
            "fe80::5054:ff:fe12:3456".parse::<IpAddr>().unwrap()
        );
    }
}
