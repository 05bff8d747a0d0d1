// SPDX-License-Identifier: GPL-2.0

//! What the device says of itself: asynchronous events, and QP contexts that it is told.

use kernel::prelude::*;

#[kunit_tests(irdma_hw_events)]
mod tests {
    use crate::hw::{
        aeq::event::{
            AsyncEvent,
            Source,
            Subject, //
        },
        cqp::address::IpAddress,
        qp_context::RoceContext, //
    };

    /// Word 1 of an entry: state 56:54, source 53:50, code 45:34, WQE index 32:18, number 17:0.
    fn word(valid: bool, state: u64, source: u64, code: u64, wqe: u64, number: u64) -> u64 {
        u64::from(valid) << 63 | state << 54 | source << 50 | code << 34 | wqe << 18 | number
    }

    // A denied access (0x20d) of QP 4's send queue (source 5) at WQE 0x7abc, state 6 (error).
    #[test]
    fn remote_access_error() {
        let entry = [0, word(true, 6, 5, 0x20d, 0x7abc, 4)];

        match AsyncEvent::decode(&entry, true) {
            Some(event) => {
                assert_eq!(event.code.0, 0x20d);
                assert!(event.subject == Subject::Qp(4));
                assert!(event.source == Source::SendQueue);
                assert_eq!(event.wqe_index, 0x7abc);
                assert_eq!(event.qp_state, 6);
                assert!(!event.overflow);
            }
            None => assert!(false),
        }
        assert!(AsyncEvent::decode(&entry, false).is_none());
    }

    // Sources 1 and 3 are a receive queue; numbers go on at bit 46.
    #[test]
    fn of_a_receive_queue() {
        for source in [1, 3] {
            let entry = [0, word(false, 0, source, 0x303, 0, 0x3_ffff) | 1 << 46];

            match AsyncEvent::decode(&entry, false) {
                Some(event) => {
                    assert!(event.subject == Subject::Qp(0x7_ffff));
                    assert!(event.source == Source::ReceiveQueue);
                }
                None => assert!(false),
            }
        }
    }

    // An overflown completion queue (0x203, source 2) names that queue.
    #[test]
    fn of_a_completion_queue() {
        let entry = [0, word(true, 0, 2, 0x203, 0, 17)];

        match AsyncEvent::decode(&entry, true) {
            Some(event) => assert!(event.subject == Subject::Cq(17)),
            None => assert!(false),
        }
    }

    fn context() -> RoceContext {
        RoceContext {
            pd: 0x1_0009,
            sq: 0x1000,
            rq: 0x2000,
            sq_size: 7,
            rq_size: 3,
            rq_wqe_size: 2,
            send_cq: 5,
            receive_cq: 6,
            completion_context: 0x1234_5678_9abc_def0,
            qs_handle: 0x123,
            privileged: true,
            ud_private_cq: true,
            remote_write: true,
            remote_read: true,
            fast_register: true,
            mac: [0x02, 0x11, 0x22, 0x33, 0x44, 0x55],
            local: IpAddress::V4(0x0a00_0101),
            remote: IpAddress::V4(0x0a00_0201),
            arp_index: 0x17,
            remote_endpoint: 0x18,
            hop_limit: 64,
            traffic_class: 0x68,
            source_port: 0xc001,
            destination_port: 4791,
            mtu: 1024,
            pkey: 0xffff,
            qkey: 0x8001_0000,
            remote_qp: 0xab_cdef,
            ack_credits: 0x1e,
            congestion_window: 0x400,
            psn_next: 0x11_1111,
            psn_expected: 0x22_2222,
            psn_max: 0x11_1111,
            psn_unacknowledged: 0x33_3333,
            retries: 2,
            rnr_retries: 3,
            rto_min: 5,
            ord: 255,
            ird: 127,
            ..RoceContext::default()
        }
    }

    // Word 0: upper bits of the domain 21:20, receive WQE 9:8, IPv4 3. Word 3: ports 63:48 and 47:32,
    // class 31:24, sizes 15:12 and 11:8, hop limit. Word 6: neighbour 63:48, MTU 29:16. Word 7: lower
    // bits of the domain 63:48, partition key 47:32, credits 24:20. Word 16: time-out 63:57, RNR
    // retries 56:54, retries 53:48. Word 20: privileged 25, fast registration 24, remote read 21 and
    // write 20, private CQ 19, inbound reads 18:16 (4 for up to 128), outbound reads 7:0. Word 22:
    // queue set 25:16. Word 26: remote endpoint 16:0. An IPv4 address is the last 32 bits of an address.
    #[test]
    fn context_of_ipv4() {
        let mut expected = [0; 32];

        expected[..9].copy_from_slice(&[
            0x10_0208,
            0x1000,
            0x2000,
            0x12b7_c001_6800_7340,
            0x0a00_0201,
            0,
            0x0017_0000_0400_0000,
            0x0009_ffff_01e0_0000,
            0x8001_0000_00ab_cdef,
        ]);
        expected[10] = 0x11_1111;
        expected[11] = 0x22_2222;
        expected[12] = 0x0033_3333_0011_1111;
        expected[14] = 0x0400_0000_0000;
        expected[16] = 0x0ac2_0000_0000_0000;
        expected[17] = 0x0006_0000_0005;
        expected[19] = 0x0211_2233_4455_0000;
        expected[20] = 0x033c_00ff;
        expected[21] = 0x1234_5678_9abc_def0;
        expected[22] = 0x0123_0000;
        expected[23] = 0x0a00_0101;
        expected[26] = 0x18;
        assert!(context().encode() == expected);
    }

    // VLAN: flag 5 of word 0, tag 47:32 of word 6. Flow label 19:0 of word 7. fd00::2, the last 64
    // bits first. An entry at fault: flag 19 of word 0, 46:32 of word 16.
    #[test]
    fn context_of_ipv6() {
        let words = RoceContext {
            local: IpAddress::V6([0xfd00_0000, 0, 0, 1]),
            remote: IpAddress::V6([0xfd00_0000, 0x10, 0x20, 2]),
            vlan: Some(0x6005),
            flow_label: 0xa_bcde,
            is_qp1: true,
            error_rq_index: Some(0x7abc),
            ..context()
        }
        .encode();

        assert_eq!(words[0], 0x18_0260);
        assert_eq!(words[4], 0x20_0000_0002);
        assert_eq!(words[5], 0xfd00_0000_0000_0010);
        assert_eq!(words[6], 0x0017_6005_0400_0000);
        assert_eq!(words[7], 0x0009_ffff_01ea_bcde);
        assert_eq!(words[16], 0x0ac2_7abc_0000_0000);
        assert_eq!(words[23], 1);
        assert_eq!(words[24], 0xfd00_0000_0000_0000);
    }
}
