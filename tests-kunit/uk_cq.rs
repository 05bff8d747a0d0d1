// SPDX-License-Identifier: GPL-2.0

//! CQEs against vectors worked out by hand, and the way through a completion ring.
//!
//! Header bits, counted in the upper half: valid 0x8000_0000, send queue 0x4000_0000, operation in
//! 0x3f00_0000, error 0x0080_0000, solicited 0x0040_0000, STag or IPv4 0x0020_0000, extended
//! 0x0004_0000, WQE index in 0x0000_7fff. The lower half is major code above minor code.

use kernel::prelude::*;

use crate::uk::{
    cq::CompletionRing,
    memory::Word, //
};

use super::memory::Words;

/// A completion ring of `entries` entries whose valid bits are all 0.
fn ring(entries: u32) -> Result<(CompletionRing, Words)> {
    let memory = Words::new(entries as usize * 4)?;

    memory.fill(0);
    Ok((CompletionRing::new(entries)?, memory))
}

/// Writes an entry as the device does.
fn write(memory: &Words, entry: usize, words: [u64; 4]) {
    for (place, word) in memory.ring().iter().skip(entry * 4).zip(words) {
        place.store(word);
    }
}

/// Header of a SEND's completion.
fn plain(valid: bool) -> [u64; 4] {
    [0, 0, 0, u64::from(valid) << 63 | 0x4300_0000_0000_0000]
}

/// A receive completion that says that another entry belongs to it.
fn extended(valid: bool) -> [u64; 4] {
    [0, 0, 0, u64::from(valid) << 63 | 0x3e04_0000_0000_0000]
}

/// The other entry, with immediate data.
fn extension(valid: bool, data: u32) -> [u64; 4] {
    [data.into(), 0, 0, u64::from(valid) << 63 | 1 << 62]
}

#[kunit_tests(irdma_uk_cq)]
mod tests {
    use super::*;

    use crate::uk::{
        cqe::{
            Cqe,
            Queue, //
        },
        shadow::{
            CqArm,
            Notify, //
        },
        status::ErrorCodes, //
    };

    const NOTHING: Cqe = Cqe {
        queue: Queue::Recv,
        context: 0,
        wqe_index: 0,
        opcode: 0,
        error: None,
        solicited: false,
        bytes: 0,
        qp: 0,
        source: 0,
        stag_or_ipv4: false,
        immediate: None,
        source_mac: None,
        vlan: None,
    };

    // A SEND (3) at quantum 0x7ffe of QP 5.
    #[test]
    fn send_done() {
        let cqe = Cqe::decode(
            [0, 0xfeed_beef, 0x0000_0005_0000_0000, 0xc300_7ffe_0000_0000],
            None,
        );

        assert!(
            cqe == Cqe {
                queue: Queue::Send,
                context: 0xfeed_beef,
                wqe_index: 0x7ffe,
                opcode: 3,
                qp: 5,
                ..NOTHING
            }
        );
    }

    // 0x1234 bytes received (operation 0x3e), solicited, STag 0x89abcdef gone. The upper half of word
    // 0 is a round-trip time, bits 63:56 of word 2 nothing: both must not leak into fields.
    #[test]
    fn receive_with_invalidate() {
        let cqe = Cqe::decode(
            [
                0xffff_ffff_0000_1234,
                1,
                0xff00_0007_89ab_cdef,
                0xbe60_0010_0000_0000,
            ],
            None,
        );

        assert!(
            cqe == Cqe {
                context: 1,
                wqe_index: 0x10,
                opcode: 0x3e,
                solicited: true,
                bytes: 0x1234,
                qp: 7,
                source: 0x89ab_cdef,
                stag_or_ipv4: true,
                ..NOTHING
            }
        );
    }

    // An RDMA WRITE (0) flushed (major 1) since the peer's memory was denied (minor 3).
    #[test]
    fn failure() {
        let cqe = Cqe::decode([0, 9, 0, 0xc080_0002_0001_0003], None);

        assert!(cqe.queue == Queue::Send);
        assert!(cqe.error == Some(ErrorCodes { major: 1, minor: 3 }));
        assert_eq!(cqe.wqe_index, 2);
    }

    // A datagram from QP 0x12 of 00:11:22:33:44:55 in VLAN 5 at priority 3 (tag 0x6005), with
    // immediate data; flags are in bits 62, 61 and 60.
    #[test]
    fn datagram_with_everything() {
        let cqe = Cqe::decode(
            [0x28, 1, 0x12, 0xbe24_0000_0000_0000],
            Some([
                0xffff_ffff_0a0b_0c0d,
                0xffff,
                0x6005_0011_2233_4455,
                0xf000_0000_0000_0000,
            ]),
        );

        assert!(
            cqe == Cqe {
                context: 1,
                opcode: 0x3e,
                bytes: 0x28,
                source: 0x12,
                stag_or_ipv4: true,
                immediate: Some(0x0a0b_0c0d),
                source_mac: Some([0x00, 0x11, 0x22, 0x33, 0x44, 0x55]),
                vlan: Some(0x6005),
                ..NOTHING
            }
        );
    }

    // Words of the extended entry whose flag is not set are not looked at.
    #[test]
    fn extension_without_flags() {
        let cqe = Cqe::decode(
            [0, 0, 0, 0xbe04_0000_0000_0000],
            Some([1, 2, 3, 0x8000_0000_0000_0000]),
        );

        assert!(
            cqe == Cqe {
                opcode: 0x3e,
                ..NOTHING
            }
        );
    }

    #[test]
    fn empty_ring() -> Result {
        let (ring, memory) = ring(6)?;

        assert!(ring.is_empty(memory.ring()));
        assert!(ring.peek(memory.ring()).is_none());
        assert!(CompletionRing::new(0).is_err());
        assert!(CompletionRing::new(1).is_err());
        Ok(())
    }

    // Three laps: the entries of the last lap must not be taken for new ones.
    #[test]
    fn laps() -> Result {
        let (mut ring, memory) = ring(4)?;

        for lap in 0..3 {
            let valid = lap % 2 == 0;

            for entry in 0..4usize {
                assert!(ring.peek(memory.ring()).is_none());
                write(&memory, entry, plain(valid));
                assert!(!ring.is_empty(memory.ring()));
                let pending = ring.peek(memory.ring()).ok_or(EINVAL)?;
                assert_eq!(ring.next() as usize, entry);
                ring.consume(&pending);
            }
            assert_eq!(ring.next(), 0);
        }
        Ok(())
    }

    // The extended entry is complete only when the device has written its second half too.
    #[test]
    fn extended_waits_for_its_second_half() -> Result {
        let (mut ring, memory) = ring(4)?;

        write(&memory, 0, extended(true));
        assert!(ring.peek(memory.ring()).is_none());
        // Else its user would be told to look again and again.
        assert!(ring.is_empty(memory.ring()));
        write(&memory, 1, extension(true, 77));
        let pending = ring.peek(memory.ring()).ok_or(EINVAL)?;
        assert_eq!(pending.cqe.immediate, Some(77));
        ring.consume(&pending);
        assert_eq!(ring.next(), 2);
        assert!(ring.is_empty(memory.ring()));
        Ok(())
    }

    // The first half is the ring's last entry: the second half lies in the next lap and has the other
    // polarity.
    #[test]
    fn extended_over_the_end() -> Result {
        let (mut ring, memory) = ring(3)?;

        for entry in 0..2 {
            write(&memory, entry, plain(true));
            let pending = ring.peek(memory.ring()).ok_or(EINVAL)?;
            ring.consume(&pending);
        }
        write(&memory, 2, extended(true));
        // Entry 0 still has what was there before, valid in the old lap.
        assert!(ring.peek(memory.ring()).is_none());
        write(&memory, 0, extension(false, 78));
        let pending = ring.peek(memory.ring()).ok_or(EINVAL)?;
        assert_eq!(pending.cqe.immediate, Some(78));
        ring.consume(&pending);
        assert_eq!(ring.next(), 1);
        // The second lap goes on with the other polarity.
        assert!(ring.is_empty(memory.ring()));
        write(&memory, 1, plain(false));
        assert!(ring.peek(memory.ring()).is_some());
        Ok(())
    }

    // The second half is the ring's last entry, so that the lap ends with it.
    #[test]
    fn extended_at_the_end() -> Result {
        let (mut ring, memory) = ring(2)?;

        write(&memory, 0, extended(true));
        write(&memory, 1, extension(true, 79));
        let pending = ring.peek(memory.ring()).ok_or(EINVAL)?;
        ring.consume(&pending);
        assert_eq!(ring.next(), 0);
        assert!(ring.is_empty(memory.ring()));
        write(&memory, 0, plain(false));
        assert!(!ring.is_empty(memory.ring()));
        Ok(())
    }

    // Sequence in bits 17:16, solicited bit 15, next bit 14, select 13:0.
    #[test]
    fn arming() {
        let arm = CqArm::from_raw(0).rearmed(Notify::Next);
        assert_eq!(arm.into_raw(), 0x1_c000);
        let arm = arm.rearmed(Notify::Solicited);
        assert_eq!(arm.into_raw(), 0x2_8000);
        // The count of resizes stays as it is.
        let arm = CqArm::from_raw(0x2_8001).rearmed(Notify::Next);
        assert_eq!(arm.into_raw(), 0x3_c001);
        // The sequence has two bits.
        assert_eq!(arm.rearmed(Notify::Solicited).into_raw(), 0x0_8001);
    }
}
