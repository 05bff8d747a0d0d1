// SPDX-License-Identifier: GPL-2.0

//! Ring sizes of the E810 for every limit: 0, 1, the most, one more, 2^31 and 2^32 - 1.

use kernel::prelude::*;

#[kunit_tests(irdma_uk_sizing)]
mod tests {
    use super::*;

    use crate::{
        hw::hal::e810,
        uk::{
            limits::Limits,
            sizing::{
                self,
                QpLayout,
                QueueRequest,
                QueueSize, //
            }, //
        }, //
    };

    const E810: &Limits = &e810::LIMITS.queues;

    // 258 of 32768 quanta stay free, and a work request may take 8: (32768 - 258) / 8 = 4063.
    #[test]
    fn limits() {
        assert_eq!(E810.max_qp_wr(), 4063);
    }

    // A request for nothing still has 258 quanta reserved, rounded up to 512; 512 - 258 = 254.
    // Receive: at least 8 WQEs, of which one stays free.
    #[test]
    fn nothing_asked() -> Result {
        let layout = QpLayout::new(E810, &QueueRequest::default())?;

        assert!(
            layout.send
                == QueueSize {
                    depth: 512,
                    shift: 0,
                    wrs: 254
                }
        );
        assert!(
            layout.recv
                == QueueSize {
                    depth: 8,
                    shift: 0,
                    wrs: 7
                }
        );
        // 512 * 32, then 8 * 32 more, then 64 more rounded up to 256.
        assert_eq!(layout.recv_offset, 16384);
        assert_eq!(layout.shadow_offset, 16640);
        assert_eq!(layout.bytes, 16896);
        Ok(())
    }

    // (send work requests, elements, inline bytes, depth, shift, granted), one element of a send
    // being kept for immediate data.
    #[test]
    fn send_rings() -> Result {
        for (wrs, sges, inline_data, depth, shift, granted) in [
            (1u32, 0u32, 0u32, 512u32, 0u8, 254u32),
            (254, 0, 8, 512, 0, 254),
            (255, 0, 8, 1024, 0, 766),
            (1, 1, 0, 512, 1, 127),
            (127, 2, 39, 512, 1, 127),
            (128, 2, 39, 1024, 1, 383),
            (1, 0, 9, 512, 1, 127),
            (1, 0, 40, 512, 2, 63),
            (1, 3, 0, 512, 2, 63),
            (1, 6, 101, 512, 2, 63),
            (1, 7, 0, 512, 3, 31),
            (1, 13, 101, 512, 3, 31),
            // The largest ring: 32768 - 258 = 32510.
            (32510, 0, 0, 32768, 0, 32510),
            (16255, 1, 0, 32768, 1, 16255),
            (8127, 3, 0, 32768, 2, 8127),
            (4063, 13, 101, 32768, 3, 4063),
        ] {
            let size = sizing::send_queue(E810, wrs, sges, inline_data)?;

            assert!(
                size == QueueSize {
                    depth,
                    shift,
                    wrs: granted
                }
            );
            assert!(size.wrs >= wrs);
            assert!(size.depth.is_power_of_two());
        }
        Ok(())
    }

    // (receive work requests, elements, depth, shift, granted).
    #[test]
    fn recv_rings() -> Result {
        for (wrs, sges, depth, shift, granted) in [
            (0u32, 0u32, 8u32, 0u8, 7u32),
            (7, 1, 8, 0, 7),
            (8, 1, 16, 0, 15),
            (1, 2, 16, 1, 7),
            (7, 3, 16, 1, 7),
            (8, 3, 32, 1, 15),
            (1, 4, 32, 2, 7),
            (1, 7, 32, 2, 7),
            (1, 8, 64, 3, 7),
            (1, 13, 64, 3, 7),
            (32767, 1, 32768, 0, 32767),
            (4095, 13, 32768, 3, 4095),
        ] {
            let size = sizing::recv_queue(E810, wrs, sges)?;

            assert!(
                size == QueueSize {
                    depth,
                    shift,
                    wrs: granted
                }
            );
            assert!(size.wrs >= wrs);
        }
        Ok(())
    }

    // One more than fits, and numbers whose sums and products would not fit in 32 bits.
    #[test]
    fn rings_that_do_not_exist() {
        for (wrs, sges, inline_data) in [
            (32511u32, 0u32, 0u32),
            (16256, 1, 0),
            (8128, 3, 0),
            (4064, 13, 101),
            (0x2000_0000, 13, 0),
            (0x7fff_ffff, 0, 0),
            (0x8000_0000, 0, 0),
            (0x8000_0000, 13, 0),
            (0xffff_ffff, 0, 0),
            (0xffff_ffff, 13, 101),
            (1, 0xffff_ffff, 0),
        ] {
            assert!(sizing::send_queue(E810, wrs, sges, inline_data) == Err(EINVAL));
        }
        for (wrs, sges) in [
            (32768u32, 1u32),
            (4096, 13),
            (0x2000_0000, 13),
            (0x8000_0000, 1),
            (0xffff_ffff, 1),
            (0xffff_ffff, 13),
        ] {
            assert!(sizing::recv_queue(E810, wrs, sges) == Err(EINVAL));
        }
    }

    #[test]
    fn each_limit_of_a_request() {
        let fits = |request: QueueRequest| QpLayout::new(E810, &request).is_ok();
        let none = QueueRequest::default();

        for (value, ok) in [
            (0, true),
            (1, true),
            (101, true),
            (102, false),
            (0x8000_0000, false),
            (0xffff_ffff, false),
        ] {
            assert_eq!(
                fits(QueueRequest {
                    inline_data: value,
                    ..none
                }),
                ok
            );
        }
        for (value, ok) in [
            (0, true),
            (1, true),
            (13, true),
            (14, false),
            (0x8000_0000, false),
            (0xffff_ffff, false),
        ] {
            assert_eq!(
                fits(QueueRequest {
                    send_sge: value,
                    ..none
                }),
                ok
            );
            assert_eq!(
                fits(QueueRequest {
                    recv_sge: value,
                    ..none
                }),
                ok
            );
        }
        for (value, ok) in [
            (0, true),
            (1, true),
            (32510, true),
            (32511, false),
            (0x8000_0000, false),
            (0xffff_ffff, false),
        ] {
            assert_eq!(
                fits(QueueRequest {
                    send_wr: value,
                    ..none
                }),
                ok
            );
        }
        for (value, ok) in [
            (0, true),
            (1, true),
            (32767, true),
            (32768, false),
            (0x8000_0000, false),
            (0xffff_ffff, false),
        ] {
            assert_eq!(
                fits(QueueRequest {
                    recv_wr: value,
                    ..none
                }),
                ok
            );
        }
    }

    // Both rings as large as they get: 2 * 32768 * 32 bytes, 64 more, rounded up to 256.
    #[test]
    fn most_of_all() -> Result {
        let layout = QpLayout::new(
            E810,
            &QueueRequest {
                send_wr: 4063,
                recv_wr: 4095,
                send_sge: 13,
                recv_sge: 13,
                inline_data: 101,
            },
        )?;

        assert_eq!(layout.recv_offset, 1 << 20);
        assert_eq!(layout.shadow_offset, 2 << 20);
        assert_eq!(layout.bytes, (2 << 20) + 256);
        assert_eq!(layout.send.wqes(), 4096);
        Ok(())
    }

    // A quantum holds a fragment beside the header, or two; 15 fill the largest WQE.
    #[test]
    fn quanta_of_fragments() -> Result {
        let quanta = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8];

        for (fragments, expected) in (0u32..).zip(quanta) {
            assert_eq!(sizing::fragments_to_quanta(fragments)?, expected);
        }
        assert!(sizing::fragments_to_quanta(16) == Err(EINVAL));
        assert!(sizing::fragments_to_quanta(0xffff_ffff) == Err(EINVAL));
        Ok(())
    }

    // 8 bytes, then 31 a quantum: 39, 70, 101, 132 ...
    #[test]
    fn quanta_of_inline_data() {
        for (bytes, quanta) in [
            (0, 1),
            (8, 1),
            (9, 2),
            (39, 2),
            (40, 3),
            (70, 3),
            (71, 4),
            (101, 4),
            (102, 5),
            (132, 5),
            (225, 8),
        ] {
            assert_eq!(sizing::inline_to_quanta(bytes), quanta);
        }
    }

    // 4 quanta are 0, each doubling one more; 32768 is 2^15, hence 13.
    #[test]
    fn encoded_sizes() {
        for (quanta, encoded) in [(4, 0), (8, 1), (16, 2), (512, 7), (32768, 13)] {
            assert_eq!(sizing::encoded_wq_size(quanta), encoded);
            assert_eq!(sizing::decoded_wq_size(encoded), quanta);
        }
    }

    // Two more than asked, doubled: (1 + 2) * 2 = 6. 62 would give exactly a page of 128.
    #[test]
    fn completion_queues() -> Result {
        for (cqe, entries) in [
            (1u32, 6u32),
            (2, 8),
            (3, 10),
            (61, 126),
            (62, 130),
            (63, 130),
            (64, 132),
            (127, 258),
            (128, 260),
            (1_048_574, 0x1f_fffe),
        ] {
            assert_eq!(sizing::cq_entries(E810, cqe)?, entries);
        }
        for cqe in [0, 1_048_575, 0x8000_0000, 0xffff_ffff] {
            assert!(sizing::cq_entries(E810, cqe) == Err(EINVAL));
        }
        Ok(())
    }
}
