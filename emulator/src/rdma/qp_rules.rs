// SPDX-License-Identifier: GPL-2.0
//! What a driver must keep in the context of a queue pair that begins to receive or to send. The device uses these
//! fields as they are.

use super::packet::ROCE_PORT;
use super::qp::QpState;
use super::qp_context::QpContext;

/// Payload bytes of a full packet: what a path MTU may be.
const PACKET_SIZES: [u16; 5] = [256, 512, 1024, 2048, 4096];
/// Alignment of a contiguous ring in bytes (IRDMA_Q_ALIGNMENT_M of the stock driver's headers).
const RING_ALIGNMENT: u64 = 128;

/// What is wrong with the context of a RoCE queue pair that MODIFY_QP moves from `old` to `next`. `contiguous`: the
/// rings are not lists of pages; `instance_exists`: the statistics instance of that number was allocated.
pub(crate) fn mistakes(
    context: &QpContext,
    old: QpState,
    next: QpState,
    contiguous: bool,
    instance_exists: impl Fn(u8) -> bool,
) -> Vec<String> {
    let mut found = vec![];
    let starts = matches!(next, QpState::ReadyToReceive | QpState::ReadyToSend);
    if !starts || next == old {
        return found;
    }
    if context.dest_port != ROCE_PORT {
        found.push(format!("destination port {}", context.dest_port));
    }
    if !PACKET_SIZES.contains(&context.mss) {
        found.push(format!("packets of {} bytes", context.mss));
    }
    // Later the driver leaves old numbers in its context.
    let numbers = [context.psn_next, context.psn_una, context.psn_max];
    let first = context.psn_next;
    if old == QpState::ReadyToReceive && numbers.iter().any(|number| *number != first) {
        found.push(format!(
            "next, oldest and highest sequence number are {numbers:#x?}"
        ));
    }
    if let Some(index) = context.stats_index.filter(|index| !instance_exists(*index)) {
        found.push(format!("statistics instance {index} is not allocated"));
    }
    for (name, base) in [("send", context.sq_base), ("receive", context.rq_base)] {
        if contiguous && (base == 0 || base % RING_ALIGNMENT != 0) {
            found.push(format!("{name} ring at {base:#x}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::testbench::{Driver, Rings};
    use super::*;
    use QpState::*;

    fn context() -> QpContext {
        let rings = Rings {
            context: 0,
            sq: 0x1000,
            rq: 0x1800,
            shadow: 0,
        };
        QpContext::decode(&Driver::context(rings, 3, 6))
    }

    /// The mistakes on the ways that a queue pair goes.
    fn counts(context: &QpContext, contiguous: bool) -> [usize; 5] {
        [
            (Idle, ReadyToReceive),
            (ReadyToReceive, ReadyToSend),
            (Drained, ReadyToSend),
            (ReadyToSend, ReadyToSend),
            (ReadyToSend, Error),
        ]
        .map(|(old, next)| mistakes(context, old, next, contiguous, |index| index == 1).len())
    }

    #[test]
    fn a_right_context_is_right_on_all_ways() {
        assert_eq!(counts(&context(), true), [0; 5]);
        for mss in PACKET_SIZES {
            let context = QpContext { mss, ..context() };
            assert_eq!(counts(&context, true), [0; 5]);
        }
        let stats_index = Some(1);
        let context = QpContext {
            stats_index,
            ..context()
        };
        assert_eq!(counts(&context, true), [0; 5]);
    }

    #[test]
    fn each_mistake_is_found_where_the_device_begins_to_use_it() {
        let right = context;
        for context in [
            QpContext {
                dest_port: 4790,
                ..right()
            },
            QpContext {
                mss: 1500,
                ..right()
            },
            QpContext {
                stats_index: Some(2),
                ..right()
            },
        ] {
            assert_eq!(counts(&context, true), [1, 1, 1, 0, 0], "{context:?}");
        }
        for context in [
            QpContext {
                psn_una: 0,
                ..right()
            },
            QpContext {
                psn_max: 0,
                ..right()
            },
        ] {
            assert_eq!(counts(&context, true), [0, 1, 0, 0, 0], "{context:?}");
        }
        for context in [
            QpContext {
                sq_base: 0,
                ..right()
            },
            QpContext {
                rq_base: 0x1840,
                ..right()
            },
        ] {
            assert_eq!(counts(&context, true), [1, 1, 1, 0, 0], "{context:?}");
            // The number of the first page, which may be any.
            assert_eq!(counts(&context, false), [0; 5], "{context:?}");
        }
    }
}
