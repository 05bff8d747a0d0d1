// SPDX-License-Identifier: GPL-2.0

//! WQEs against vectors worked out by hand.
//!
//! Header bits used below, counted in the header's upper half (bit 63 is bit 31 there):
//! valid 0x8000_0000, signaled 0x4000_0000, local fence 0x2000_0000, read fence 0x1000_0000, inline
//! 0x0200_0000, inline length in 0x00ff_0000, immediate 0x0000_8000, further fragments in
//! 0x0000_03c0 (one is 0x40), operation in 0x0000_003f. The lower half is an STag or handle id.
//!
//! A fragment is its address, then valid (bit 63), length (62:32) and STag (31:0).

use kernel::prelude::*;

use crate::uk::{
    memory::Slot,
    ring::Polarity,
    wqe::{
        gather::{
            Measured,
            Sge, //
        },
        Flags, //
    }, //
};

use super::memory::{
    TestWord,
    Words, //
};

const FIRST: Sge = Sge {
    address: 0x1122_3344_5566_7788,
    length: 0x100,
    stag: 0xabcd_ef01,
};
const FIRST_ADDRESS: u64 = 0x1122_3344_5566_7788;
const FIRST_INFO: u64 = 0x8000_0100_abcd_ef01;

const SECOND: Sge = Sge {
    address: 0x2000,
    length: 0x7fff_fe00,
    stag: 0,
};
const SECOND_ADDRESS: u64 = 0x2000;
const SECOND_INFO: u64 = 0xffff_fe00_0000_0000;

/// An empty fragment with its valid bit.
const EMPTY_INFO: u64 = 0x8000_0000_0000_0000;

const SIGNALED: Flags = Flags {
    signaled: true,
    fence: false,
    solicited: false,
};
const SOLICITED: Flags = Flags {
    signaled: false,
    fence: false,
    solicited: true,
};
const FENCED: Flags = Flags {
    signaled: false,
    fence: true,
    solicited: false,
};
const PLAIN: Flags = Flags {
    signaled: false,
    fence: false,
    solicited: false,
};

fn measure(sges: &[Sge]) -> Result<Measured> {
    Measured::new(sges.iter().copied(), 13, 0x7fff_ffff)
}

/// The memory after a WQE of `quanta` quanta has been encoded in quantum 0, its header stored.
fn encode(
    quanta: u32,
    polarity: Polarity,
    body: impl FnOnce(&Slot<'_, TestWord>) -> u64,
) -> Result<Words> {
    let memory = Words::new(36)?;
    let slot = Slot::new(memory.ring(), 0, quanta, polarity).ok_or(EINVAL)?;
    let header = body(&slot);

    slot.publish(header);
    Ok(memory)
}

#[kunit_tests(irdma_uk_wqe)]
mod tests {
    use super::{
        super::memory::UNTOUCHED,
        *, //
    };

    use crate::uk::wqe::{
        self,
        mr::{
            self,
            PageList,
            PageSize,
            RegisterMr,
            Rights, //
        },
        recv,
        transfer::{
            Destination,
            Remote,
            SendExtra,
            Transfer, //
        }, //
    };

    const REMOTE: Remote = Remote {
        address: 0xfeed_0000_0000_1000,
        stag: 0x1234_5678,
    };

    // Operation 3, signaled: upper half 0x8000_0000 | 0x4000_0000 | 3.
    #[test]
    fn send_of_one_fragment() -> Result {
        let send = Transfer::send(SIGNALED, SendExtra::None);
        let data = measure(&[FIRST])?;

        assert_eq!(send.gather_quanta(data)?, 1);
        assert_eq!(data.bytes, 0x100);
        let memory = encode(1, Polarity::ONE, |slot| {
            send.encode_gather(slot, data, [FIRST].into_iter())
        })?;
        assert!(memory.holds(
            0,
            &[
                FIRST_ADDRESS,
                FIRST_INFO,
                0,
                0xc000_0003_0000_0000,
                UNTOUCHED,
            ],
        ));
        assert!(memory.published_last());
        Ok(())
    }

    // In the second lap every valid bit is 0.
    #[test]
    fn polarity_is_in_header_and_fragments() -> Result {
        let send = Transfer::send(PLAIN, SendExtra::None);
        let data = measure(&[FIRST])?;
        let memory = encode(1, Polarity::ZERO, |slot| {
            send.encode_gather(slot, data, [FIRST].into_iter())
        })?;

        assert!(memory.holds(
            0,
            &[
                FIRST_ADDRESS,
                0x0000_0100_abcd_ef01,
                0,
                0x0000_0003_0000_0000
            ],
        ));
        Ok(())
    }

    // No fragment at all: an empty one with its valid bit, and none further.
    #[test]
    fn send_of_nothing() -> Result {
        let send = Transfer::send(SIGNALED, SendExtra::None);
        let data = measure(&[])?;

        assert_eq!(send.gather_quanta(data)?, 1);
        let memory = encode(1, Polarity::ONE, |slot| {
            send.encode_gather(slot, data, [].into_iter())
        })?;
        assert!(memory.holds(0, &[0, EMPTY_INFO, 0, 0xc000_0003_0000_0000]));
        Ok(())
    }

    // Two fragments end in the middle of a quantum: an empty one fills it, and both count, so that
    // there are 2 further fragments: 2 * 0x40 = 0x80.
    #[test]
    fn even_number_of_fragments_is_filled_up() -> Result {
        let send = Transfer::send(PLAIN, SendExtra::None);
        let data = measure(&[SECOND, FIRST])?;

        assert_eq!(send.gather_quanta(data)?, 2);
        let memory = encode(2, Polarity::ONE, |slot| {
            send.encode_gather(slot, data, [SECOND, FIRST].into_iter())
        })?;
        assert!(memory.holds(
            0,
            &[
                SECOND_ADDRESS,
                SECOND_INFO,
                0,
                0x8000_0083_0000_0000,
                FIRST_ADDRESS,
                FIRST_INFO,
                0,
                EMPTY_INFO,
                UNTOUCHED,
            ],
        ));
        Ok(())
    }

    // Immediate data takes word 0 and counts as a fragment; word 1 is left alone. With one fragment
    // that makes two, so an empty one follows: operation 5, 0x80 further, 0x8000 immediate.
    #[test]
    fn send_with_immediate() -> Result {
        let send = Transfer::send(SOLICITED, SendExtra::Immediate(0x0102_0304));
        let data = measure(&[FIRST])?;

        assert_eq!(send.gather_quanta(data)?, 2);
        let memory = encode(2, Polarity::ONE, |slot| {
            send.encode_gather(slot, data, [FIRST].into_iter())
        })?;
        assert!(memory.holds(
            0,
            &[
                0x0102_0304,
                UNTOUCHED,
                0,
                0x8000_8085_0000_0000,
                FIRST_ADDRESS,
                FIRST_INFO,
                0,
                EMPTY_INFO,
            ],
        ));
        Ok(())
    }

    // Immediate data alone: one fragment, nothing to fill up.
    #[test]
    fn immediate_alone() -> Result {
        let write = Transfer::write(PLAIN, Some(0xffff_ffff), REMOTE);
        let data = measure(&[])?;

        assert_eq!(write.gather_quanta(data)?, 1);
        let memory = encode(1, Polarity::ONE, |slot| {
            write.encode_gather(slot, data, [].into_iter())
        })?;
        assert!(memory.holds(
            0,
            &[
                0xffff_ffff,
                UNTOUCHED,
                0xfeed_0000_0000_1000,
                0x8000_8000_1234_5678,
            ],
        ));
        Ok(())
    }

    // Operation 4, with a solicited event 6; the STag is the lower half.
    #[test]
    fn send_with_invalidate() -> Result {
        let data = measure(&[FIRST])?;

        for (flags, header) in [
            (PLAIN, 0x8000_0004_0000_1234),
            (SOLICITED, 0x8000_0006_0000_1234),
        ] {
            let send = Transfer::send(flags, SendExtra::Invalidate(0x1234));
            let memory = encode(1, Polarity::ONE, |slot| {
                send.encode_gather(slot, data, [FIRST].into_iter())
            })?;

            assert_eq!(memory.word(3), Some(header));
        }
        Ok(())
    }

    // Word 2 is the QP number in 55:32 above the Q_Key; the header's lower half is the handle's id.
    #[test]
    fn datagram() -> Result {
        let to = Destination {
            ah: 0x101_2345,
            qkey: 0x8001_0000,
            qpn: 0xab_cdef,
        };
        let send = Transfer::send_datagram(SIGNALED, None, to)?;
        let data = measure(&[FIRST])?;
        let memory = encode(1, Polarity::ONE, |slot| {
            send.encode_gather(slot, data, [FIRST].into_iter())
        })?;

        assert!(memory.holds(
            0,
            &[
                FIRST_ADDRESS,
                FIRST_INFO,
                0x00ab_cdef_8001_0000,
                0xc000_0003_0101_2345,
            ],
        ));
        let wide = Destination {
            qpn: 0x100_0000,
            ..to
        };
        assert!(Transfer::send_datagram(SIGNALED, None, wide).is_err());
        let wide = Destination {
            ah: 0x200_0000,
            ..to
        };
        assert!(Transfer::send_datagram(SIGNALED, None, wide).is_err());
        Ok(())
    }

    // 13 fragments: 12 further ones, 12 * 0x40 = 0x300, in 7 quanta; the last lies in words 26, 27.
    #[test]
    fn write_of_most_fragments() -> Result {
        let sges = [FIRST; 13];
        let data = Measured::new(sges.into_iter(), 13, 13 * 0x100)?;
        let write = Transfer::write(PLAIN, None, REMOTE);

        assert_eq!(write.gather_quanta(data)?, 7);
        let memory = encode(7, Polarity::ONE, |slot| {
            write.encode_gather(slot, data, sges.into_iter())
        })?;
        assert!(memory.holds(
            0,
            &[
                FIRST_ADDRESS,
                FIRST_INFO,
                0xfeed_0000_0000_1000,
                0x8000_0300_1234_5678,
            ],
        ));
        for second_to_last in 1..7 {
            assert!(memory.holds(
                second_to_last,
                &[FIRST_ADDRESS, FIRST_INFO, FIRST_ADDRESS, FIRST_INFO],
            ));
        }
        assert_eq!(memory.word(28), Some(UNTOUCHED));
        Ok(())
    }

    // With immediate data it is 14, filled up to 15: 14 further ones, 14 * 0x40 = 0x380, in all 8
    // quanta. Operation 0xd for the solicited event.
    #[test]
    fn write_of_most_fragments_with_immediate() -> Result {
        let sges = [FIRST; 13];
        let data = measure(&sges)?;
        let write = Transfer::write(SOLICITED, Some(7), REMOTE);

        assert_eq!(write.gather_quanta(data)?, 8);
        let memory = encode(8, Polarity::ONE, |slot| {
            write.encode_gather(slot, data, sges.into_iter())
        })?;
        assert!(memory.holds(
            0,
            &[7, UNTOUCHED, 0xfeed_0000_0000_1000, 0x8000_838d_1234_5678,],
        ));
        assert!(memory.holds(7, &[FIRST_ADDRESS, FIRST_INFO, 0, EMPTY_INFO, UNTOUCHED]));
        Ok(())
    }

    // Operation 1; 0xb when the local STag goes. The read fence is 0x1000_0000.
    #[test]
    fn read() -> Result {
        let data = measure(&[FIRST])?;

        for (invalidate, header) in [
            (false, 0x9000_0001_1234_5678),
            (true, 0x9000_000b_1234_5678),
        ] {
            let read = Transfer::read(FENCED, invalidate, REMOTE);
            let memory = encode(1, Polarity::ONE, |slot| {
                read.encode_gather(slot, data, [FIRST].into_iter())
            })?;

            assert!(memory.holds(
                0,
                &[FIRST_ADDRESS, FIRST_INFO, 0xfeed_0000_0000_1000, header],
            ));
        }
        Ok(())
    }

    // A list that grew or shrank after it was measured gives a WQE of the measured form.
    #[test]
    fn list_that_changes_meanwhile() -> Result {
        let send = Transfer::send(PLAIN, SendExtra::None);
        let two = measure(&[FIRST, FIRST])?;
        let shrunk = encode(2, Polarity::ONE, |slot| {
            send.encode_gather(slot, two, [FIRST].into_iter())
        })?;

        assert!(shrunk.holds(
            0,
            &[
                FIRST_ADDRESS,
                FIRST_INFO,
                0,
                0x8000_0083_0000_0000,
                0,
                EMPTY_INFO,
                0,
                EMPTY_INFO,
            ],
        ));

        let one = measure(&[FIRST])?;
        let grown = encode(1, Polarity::ONE, |slot| {
            send.encode_gather(slot, one, [FIRST; 5].into_iter())
        })?;
        assert!(grown.holds(
            0,
            &[
                FIRST_ADDRESS,
                FIRST_INFO,
                0,
                0x8000_0003_0000_0000,
                UNTOUCHED,
            ],
        ));
        Ok(())
    }

    #[test]
    fn lists_that_do_not_fit() -> Result {
        let half = Sge {
            length: 0x4000_0000,
            ..FIRST
        };
        let top = Sge {
            length: 0x8000_0000,
            ..FIRST
        };
        let all = Sge {
            length: 0xffff_ffff,
            ..FIRST
        };

        assert!(measure(&[FIRST; 13]).is_ok());
        assert!(measure(&[FIRST; 14]) == Err(EINVAL));
        assert!(measure(&[top]) == Err(EINVAL));
        assert!(measure(&[half, half]) == Err(EINVAL));
        // The sum of these is 0xfe in 32 bits.
        assert!(measure(&[all, FIRST]) == Err(EINVAL));
        Ok(())
    }

    // Three pieces of 17 bytes, 0 to 50: 8 beside the header, 31 in the second quantum, 12 in the
    // third; the bytes that carry nothing are 0 as the memory was wiped, and a word that carries
    // nothing is left as it was. Length 51 is 0x33.
    #[test]
    fn inline_of_several_pieces() -> Result {
        let bytes: [u8; 51] = core::array::from_fn(|i| i as u8);
        let data = Measured {
            count: 3,
            bytes: 51,
        };
        let write = Transfer::write(PLAIN, None, REMOTE);

        assert_eq!(write.inline_quanta(data), 3);
        let memory = encode(3, Polarity::ONE, |slot| {
            write.encode_inline(slot, data, bytes.chunks(17))
        })?;
        assert!(memory.holds(
            0,
            &[
                UNTOUCHED,
                0x0706_0504_0302_0100,
                0xfeed_0000_0000_1000,
                0x8233_0000_1234_5678,
                0x0f0e_0d0c_0b0a_0908,
                0x1716_1514_1312_1110,
                0x1f1e_1d1c_1b1a_1918,
                0x8026_2524_2322_2120,
                0x2e2d_2c2b_2a29_2827,
                0x0000_0000_3231_302f,
                UNTOUCHED,
                0x8000_0000_0000_0000,
                UNTOUCHED,
            ],
        ));
        assert!(memory.published_last());
        Ok(())
    }

    // The same in the second lap: valid bits 0, wiped bytes 0xff.
    #[test]
    fn inline_in_the_second_lap() -> Result {
        let bytes: [u8; 51] = core::array::from_fn(|i| i as u8);
        let data = Measured {
            count: 1,
            bytes: 51,
        };
        let write = Transfer::write(PLAIN, None, REMOTE);
        let memory = encode(3, Polarity::ZERO, |slot| {
            write.encode_inline(slot, data, bytes.chunks(51))
        })?;

        assert_eq!(memory.word(3), Some(0x0233_0000_1234_5678));
        assert_eq!(memory.word(7), Some(0x0026_2524_2322_2120));
        assert_eq!(memory.word(9), Some(0xffff_ffff_3231_302f));
        assert_eq!(memory.word(10), Some(UNTOUCHED));
        assert_eq!(memory.word(11), Some(0x00ff_ffff_ffff_ffff));
        Ok(())
    }

    // Where each length ends, and that nothing beyond it is written: (length, quanta, last word).
    #[test]
    fn inline_at_the_edges() -> Result {
        let bytes = [0x11u8; 101];
        let send = Transfer::send(PLAIN, SendExtra::None);

        for (length, quanta, header) in [
            (0u32, 1u32, 0x8200_0003_0000_0000u64),
            (1, 1, 0x8201_0003_0000_0000),
            (8, 1, 0x8208_0003_0000_0000),
            (9, 2, 0x8209_0003_0000_0000),
            (39, 2, 0x8227_0003_0000_0000),
            (40, 3, 0x8228_0003_0000_0000),
            (70, 3, 0x8246_0003_0000_0000),
            (71, 4, 0x8247_0003_0000_0000),
            (101, 4, 0x8265_0003_0000_0000),
        ] {
            let data = Measured {
                count: 1,
                bytes: length,
            };

            assert_eq!(send.inline_quanta(data), quanta);
            let memory = encode(quanta, Polarity::ONE, |slot| {
                send.encode_inline(slot, data, bytes.chunks(13))
            })?;
            let end = quanta as usize * 4;

            assert_eq!(memory.word(3), Some(header));
            assert_eq!(memory.word(end), Some(UNTOUCHED));
            if quanta > 1 {
                let last = memory.word(end - 1).ok_or(EINVAL)?;
                assert_eq!(last >> 56, 0x80);
            }
            let ones: u32 = (0..end)
                .filter(|word| !matches!(word, 2 | 3))
                .filter_map(|word| memory.word(word))
                .filter(|word| *word != UNTOUCHED)
                .flat_map(u64::to_le_bytes)
                .map(|byte| u32::from(byte == 0x11))
                .sum();
            assert_eq!(ones, length);
        }
        Ok(())
    }

    // Immediate data beside inline data is in word 0 as ever, and takes no quantum.
    #[test]
    fn inline_with_immediate() -> Result {
        let data = Measured { count: 1, bytes: 8 };
        let send = Transfer::send(SIGNALED, SendExtra::Immediate(0x55));
        let memory = encode(1, Polarity::ONE, |slot| {
            send.encode_inline(slot, data, [[0xaau8; 8].as_slice()].into_iter())
        })?;

        assert!(memory.holds(
            0,
            &[
                0x55,
                0xaaaa_aaaa_aaaa_aaaa,
                0,
                0xc208_8003_0000_0000,
                UNTOUCHED,
            ],
        ));
        Ok(())
    }

    // Pieces that shrank after they were measured: zeros make up for it.
    #[test]
    fn inline_that_shrinks_meanwhile() -> Result {
        let data = Measured { count: 1, bytes: 4 };
        let send = Transfer::send(PLAIN, SendExtra::None);
        let memory = encode(1, Polarity::ZERO, |slot| {
            send.encode_inline(slot, data, [[0x77u8].as_slice()].into_iter())
        })?;

        assert_eq!(memory.word(1), Some(0xffff_ffff_0000_0077));
        Ok(())
    }

    // Operation 0xa with a local fence, 0x2000_0000; the STag is where a fragment has it, and its
    // word has no valid bit.
    #[test]
    fn local_invalidate() -> Result {
        let memory = encode(1, Polarity::ONE, |slot| {
            mr::encode_invalidate(slot, SIGNALED, 0xfedc_ba98)
        })?;

        assert!(memory.holds(0, &[0, 0xfedc_ba98, 0, 0xe000_000a_0000_0000]));
        Ok(())
    }

    // STag 0xabcdef12: index 0xabcdef, key 0x12. List index 0x1234567: 0x123 below the page's
    // address, 0x4567 on top of the length. Rights 0x01 | 0x02 | 0x0a | 0x05 = 0x0f in 0x001f_0000;
    // virtual addresses 0x0020_0000; one level 0x1000; local fence 0x2000_0000; operation 9.
    #[test]
    fn register_with_a_list() -> Result {
        let rights = Rights::from_ib_access(0b111);
        let pages = PageList::OneLevel {
            address: 0x1234_5000,
            index: 0x123_4567,
        };
        let register = RegisterMr::new(
            PLAIN,
            0xabcd_ef12,
            0x7000_1080,
            0x1_0000,
            PageSize::Size4K,
            pages,
            rights,
        )?;
        let memory = encode(1, Polarity::ONE, |slot| register.encode(slot))?;

        assert!(memory.holds(
            0,
            &[
                0x7000_1080,
                0x1234_5123,
                0x4567_0000_0001_0000,
                0xa02f_1009_abcd_ef12,
                UNTOUCHED,
            ],
        ));
        Ok(())
    }

    // One page of 2 MiB: page size 1 in 0x0000_c000.
    #[test]
    fn register_other_forms() -> Result {
        let register = |pages, page_size| {
            RegisterMr::new(
                SIGNALED,
                0x100,
                0,
                0x20_0000,
                page_size,
                pages,
                Rights::from_ib_access(0),
            )
        };
        let page = PageList::Contiguous {
            address: 0x4_0000_0000,
            index: 5,
        };
        let memory = encode(1, Polarity::ZERO, |slot| {
            register(page, PageSize::Size2M).map_or(0, |register| register.encode(slot))
        })?;

        assert!(memory.holds(
            0,
            &[
                0,
                0x4_0000_0000,
                0x0005_0000_0020_0000,
                0x6021_4009_0000_0100,
            ],
        ));
        Ok(())
    }

    // A length of 0 would give the peer all of memory. 2^41 has one bit too many.
    #[test]
    fn registrations_that_are_refused() -> Result {
        let register = |length, address, index| {
            RegisterMr::new(
                PLAIN,
                0x100,
                0,
                length,
                PageSize::Size4K,
                PageList::OneLevel { address, index },
                Rights::from_ib_access(1),
            )
            .map(|_| ())
        };

        assert!(register(1, 0x1000, 0) == Ok(()));
        assert!(register((1 << 41) - 1, 0x1000, 0) == Ok(()));
        assert!(register(0, 0x1000, 0) == Err(EINVAL));
        assert!(register(1 << 41, 0x1000, 0) == Err(EINVAL));
        assert!(register(1, 0x1008, 0) == Err(EINVAL));
        assert!(register(1, 0x1000, 0x1000_0000) == Err(EINVAL));
        Ok(())
    }

    // IB_ACCESS_LOCAL_WRITE 1, REMOTE_WRITE 2, REMOTE_READ 4, REMOTE_ATOMIC 8, MW_BIND 16, ZERO_BASED
    // 32; the device's local read 1, local write 2, remote read 5, remote write 0xa.
    #[test]
    fn rights() {
        assert_eq!(Rights::from_ib_access(0).bits(), 0x01);
        assert_eq!(Rights::from_ib_access(1).bits(), 0x03);
        assert_eq!(Rights::from_ib_access(2).bits(), 0x0b);
        assert_eq!(Rights::from_ib_access(4).bits(), 0x05);
        assert_eq!(Rights::from_ib_access(8).bits(), 0x01);
        assert_eq!(Rights::from_ib_access(16).bits(), 0x01);
        assert_eq!(Rights::from_ib_access(7).bits(), 0x0f);
        assert_eq!(Rights::from_ib_access(32).bits(), 0x01);
    }

    // Receive headers have nothing but valid bit and number of further fragments.
    #[test]
    fn receive() -> Result {
        let three = measure(&[FIRST; 3])?;
        let memory = encode(2, Polarity::ONE, |slot| {
            recv::encode(slot, three, [FIRST; 3].into_iter())
        })?;

        assert!(memory.holds(
            0,
            &[
                FIRST_ADDRESS,
                FIRST_INFO,
                0,
                0x8000_0080_0000_0000,
                FIRST_ADDRESS,
                FIRST_INFO,
                FIRST_ADDRESS,
                FIRST_INFO,
            ],
        ));

        let none = measure(&[])?;
        let memory = encode(1, Polarity::ONE, |slot| {
            recv::encode(slot, none, [].into_iter())
        })?;
        assert!(memory.holds(0, &[0, EMPTY_INFO, 0, 0x8000_0000_0000_0000]));
        Ok(())
    }

    #[test]
    fn nop() {
        assert_eq!(wqe::nop_header(Polarity::ONE), 0x8000_000c_0000_0000);
        assert_eq!(wqe::nop_header(Polarity::ZERO), 0x0000_000c_0000_0000);
    }
}
