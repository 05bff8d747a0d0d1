// SPDX-License-Identifier: GPL-2.0

//! What the device says of itself: asynchronous events, and QP contexts that it is told.

use kernel::prelude::*;

#[kunit_tests(irdma_hw_events)]
mod tests {
    use crate::hw::aeq::event::{
        AsyncEvent,
        Source,
        Subject, //
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
}
