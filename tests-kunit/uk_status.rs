// SPDX-License-Identifier: GPL-2.0

//! Error codes of CQEs and async events against the statuses and events that verbs name.

use kernel::prelude::*;

#[kunit_tests(irdma_uk_status)]
mod tests {
    use crate::uk::{
        ae::{
            self,
            QpEvent, //
        },
        status::{
            ErrorCodes,
            FlushCode,
            Status, //
        }, //
    };

    // Major code 1 is a flush; the minor code is its cause.
    #[test]
    fn flushes() {
        for (minor, status) in [
            (0, Status::Fatal),
            (1, Status::WrFlush),
            (2, Status::LocalProtection),
            (3, Status::RemoteAccess),
            (4, Status::LocalQpOperation),
            (5, Status::RemoteOperation),
            (6, Status::LocalLength),
            (7, Status::Fatal),
            (8, Status::RetryExceeded),
            (9, Status::MwBind),
            (10, Status::RemoteInvalidRequest),
            (11, Status::RnrRetryExceeded),
            (12, Status::Fatal),
            (0xffff, Status::Fatal),
        ] {
            let codes = ErrorCodes { major: 1, minor };

            assert!(codes.is_flush());
            assert!(codes.status() == status);
        }
        for minor in 1..=11 {
            assert_eq!(
                FlushCode::from_minor(minor).map_or(0, FlushCode::minor),
                minor
            );
        }
    }

    #[test]
    fn other_errors() {
        for major in [0, 2, 0xfff, 0xe000, 0xffff] {
            let codes = ErrorCodes { major, minor: 3 };

            assert!(!codes.is_flush());
            assert!(codes.status() == Status::General);
        }
        assert!(ErrorCodes {
            major: 0xe123,
            minor: 0
        }
        .is_congestion());
        assert!(!ErrorCodes {
            major: 0xf123,
            minor: 0
        }
        .is_congestion());
        assert!(!ErrorCodes {
            major: 0x0e12,
            minor: 0
        }
        .is_congestion());
        assert_eq!(
            ErrorCodes {
                major: 0x1234,
                minor: 0x5678
            }
            .vendor(),
            0x1234_5678
        );
    }

    // Major code 0xfffe has the code of an async event as its minor code.
    #[test]
    fn flush_of_a_shared_queue() {
        let codes = ErrorCodes {
            major: 0xfffe,
            minor: 0x20d,
        };

        assert!(codes.is_flush());
        assert!(
            codes.normalized()
                == ErrorCodes {
                    major: 0xfffe,
                    minor: 3
                }
        );
        assert!(codes.status() == Status::RemoteAccess);
    }

    #[test]
    fn async_events() {
        for (code, flush, event) in [
            // STags and bounds on this side.
            (0x102, FlushCode::Protection, QpEvent::Access),
            (0x103, FlushCode::Protection, QpEvent::Access),
            (0x104, FlushCode::Protection, QpEvent::Access),
            (0x105, FlushCode::Protection, QpEvent::Access),
            (0x106, FlushCode::Protection, QpEvent::Access),
            (0x107, FlushCode::Protection, QpEvent::Access),
            (0x108, FlushCode::Protection, QpEvent::Access),
            (0x109, FlushCode::Protection, QpEvent::Access),
            (0x10a, FlushCode::Protection, QpEvent::Access),
            (0x11c, FlushCode::Protection, QpEvent::Access),
            // Bad work requests.
            (0x133, FlushCode::LocalQpOperation, QpEvent::Catastrophic),
            (0x20a, FlushCode::LocalQpOperation, QpEvent::Catastrophic),
            // Lengths.
            (0x132, FlushCode::LocalLength, QpEvent::Catastrophic),
            (0x134, FlushCode::LocalLength, QpEvent::Catastrophic),
            (0x135, FlushCode::LocalLength, QpEvent::Catastrophic),
            (0x303, FlushCode::LocalLength, QpEvent::Catastrophic),
            (0x305, FlushCode::LocalLength, QpEvent::Catastrophic),
            // The peer's memory.
            (0x112, FlushCode::RemoteAccess, QpEvent::Access),
            (0x20d, FlushCode::RemoteAccess, QpEvent::Access),
            // Windows.
            (0x114, FlushCode::MwBind, QpEvent::Access),
            (0x118, FlushCode::MwBind, QpEvent::Access),
            (0x119, FlushCode::MwBind, QpEvent::Access),
            (0x11b, FlushCode::MwBind, QpEvent::Access),
            // The peer's answers, and none.
            (0x208, FlushCode::RemoteInvalidRequest, QpEvent::Request),
            (0x20e, FlushCode::RemoteOperation, QpEvent::Catastrophic),
            (0x316, FlushCode::RemoteOperation, QpEvent::Catastrophic),
            (0x505, FlushCode::RemoteOperation, QpEvent::Catastrophic),
            (0x507, FlushCode::RemoteOperation, QpEvent::Catastrophic),
            (0x50a, FlushCode::RetryExceeded, QpEvent::Catastrophic),
            (0x50f, FlushCode::RnrRetryExceeded, QpEvent::Catastrophic),
            // The device's troubles.
            (0x700, FlushCode::Fatal, QpEvent::Catastrophic),
            (0x703, FlushCode::Fatal, QpEvent::Catastrophic),
            (0x704, FlushCode::Fatal, QpEvent::Catastrophic),
            (0x705, FlushCode::Fatal, QpEvent::Catastrophic),
            // Neighbours of these, and codes that nobody knows.
            (0x101, FlushCode::General, QpEvent::Catastrophic),
            (0x701, FlushCode::General, QpEvent::Catastrophic),
            (0xb0b, FlushCode::General, QpEvent::Catastrophic),
            (0xffff, FlushCode::General, QpEvent::Catastrophic),
        ] {
            assert!(ae::flush_code(code) == flush);
            assert!(ae::qp_error(code) == (flush, event));
        }
    }
}
