// SPDX-License-Identifier: GPL-2.0

//! Send and receive rings: room, padding, wrap, polarity, and who gets which completion.

use kernel::prelude::*;

use crate::uk::{
    rq::RecvRing,
    sq::{
        Quantum,
        SendRing,
        SendWork, //
    },
    wqe::Opcode, //
};

use super::memory::Words;

/// Quanta of the smallest send ring: 258 stay free, rounded up.
const SQ: usize = 512;

type Book = KVec<Quantum>;

fn send_ring() -> Result<(SendRing<Book>, Words)> {
    let book = KVec::from_elem(Quantum::Rest, SQ, GFP_KERNEL)?;
    let memory = Words::new(SQ * 4)?;

    memory.fill(0);
    Ok((SendRing::new(book, 8)?, memory))
}

fn recv_ring(wqes: usize, shift: u8) -> Result<(RecvRing<KVec<u64>>, Words)> {
    let ids = KVec::from_elem(0, wqes, GFP_KERNEL)?;

    Ok((
        RecvRing::new(ids, shift, 0)?,
        Words::new((wqes << shift) * 4)?,
    ))
}

fn work(wr_id: u64) -> SendWork {
    SendWork {
        wr_id,
        bytes: 0,
        opcode: Opcode::Send,
        signaled: true,
    }
}

/// A header for tests: valid bit, operation SEND, and the id in its lower half.
fn header(valid: bool, wr_id: u64) -> u64 {
    u64::from(valid) << 63 | 3 << 32 | wr_id
}

/// Posts a WQE of `quanta` quanta.
fn post(ring: &mut SendRing<Book>, memory: &Words, wr_id: u64, quanta: u32) -> Result {
    ring.post(memory.ring(), work(wr_id), quanta, |slot| {
        header(slot.polarity().valid(), wr_id)
    })
}

fn post_recv(ring: &mut RecvRing<KVec<u64>>, memory: &Words, wr_id: u64) -> Result {
    ring.post(memory.ring(), wr_id, |slot| {
        header(slot.polarity().valid(), wr_id)
    })
}

#[kunit_tests(irdma_uk_queues)]
mod tests {
    use super::*;

    use crate::uk::ring::{
        Polarity,
        Ring, //
    };

    const NOP: u64 = 0x8000_000c_0000_0000;

    #[test]
    fn ring_arithmetic() -> Result {
        let mut ring = Ring::new(8)?;

        assert!(ring.is_empty());
        assert_eq!(ring.used(), 0);
        assert!(ring.has_room(7, 1) && !ring.has_room(8, 1));
        assert!(ring.has_room(5, 3) && !ring.has_room(6, 3));
        assert!(!ring.has_room(u32::MAX, u32::MAX));
        assert!(!ring.holds(0));
        ring.advance_head(7);
        assert_eq!(ring.used(), 7);
        assert!(ring.has_room(0, 1) && !ring.has_room(1, 1));
        assert!(ring.holds(0) && ring.holds(6) && !ring.holds(7) && !ring.holds(8));
        ring.release_to(5, 1);
        assert_eq!(ring.tail(), 6);
        ring.advance_head(4);
        assert_eq!(ring.head(), 3);
        assert_eq!(ring.used(), 5);
        assert!(ring.holds(6) && ring.holds(0) && ring.holds(2));
        assert!(!ring.holds(3) && !ring.holds(5));
        assert_eq!(ring.after(7, 1), 0);
        assert_eq!(ring.after(7, 0xffff_ffff), 6);
        ring.release_to(2, 1);
        assert!(ring.is_empty());
        Ok(())
    }

    #[test]
    fn rings_that_cannot_be() -> Result {
        assert!(Ring::new(0).is_err());
        assert!(Ring::new(1 << 30).is_ok());
        assert!(Ring::new((1 << 30) + 1).is_err());
        assert!(Ring::new(u32::MAX).is_err());
        assert!(Ring::new(384).is_err());
        for quanta in [0, 128, 256, 258, 500, 640] {
            let book = KVec::from_elem(Quantum::Rest, quanta, GFP_KERNEL)?;
            assert!(SendRing::new(book, 8).is_err());
        }
        for chunk in [0, 6, 1024] {
            let book = KVec::from_elem(Quantum::Rest, 512, GFP_KERNEL)?;
            assert!(SendRing::new(book, chunk).is_err());
        }
        for wqes in [0, 1, 12] {
            assert!(RecvRing::new(KVec::from_elem(0u64, wqes, GFP_KERNEL)?, 0, 0).is_err());
        }
        Ok(())
    }

    // 512 quanta less 257 that stay free: 255 work requests of one quantum, and not one more.
    #[test]
    fn full_send_ring() -> Result {
        let (mut ring, memory) = send_ring()?;

        for id in 0..255 {
            post(&mut ring, &memory, id, 1)?;
        }
        assert!(post(&mut ring, &memory, 255, 1) == Err(ENOMEM));
        assert_eq!(ring.ring().head(), 255);
        assert_eq!(memory.word(255 * 4 + 3), Some(0));
        // The first one done makes room for one.
        assert_eq!(ring.complete(0).map(|work| work.wr_id), Some(0));
        post(&mut ring, &memory, 255, 1)?;
        assert!(post(&mut ring, &memory, 256, 1) == Err(ENOMEM));
        Ok(())
    }

    // Two WQEs of 3 quanta leave 2 in the block of 8: a WQE of 3 gets two NOPs before it, one of 2
    // would have gone there.
    #[test]
    fn padding() -> Result {
        let (mut ring, memory) = send_ring()?;

        for id in 1..=3 {
            post(&mut ring, &memory, id, 3)?;
        }
        assert_eq!(memory.word(3), Some(header(true, 1)));
        assert_eq!(memory.word(3 * 4 + 3), Some(header(true, 2)));
        assert!(memory.holds(6, &[0, 0, 0, NOP, 0, 0, 0, NOP]));
        assert_eq!(memory.word(8 * 4 + 3), Some(header(true, 3)));
        post(&mut ring, &memory, 4, 5)?;
        assert_eq!(memory.word(11 * 4 + 3), Some(header(true, 4)));
        assert_eq!(ring.ring().head(), 16);
        assert!(post(&mut ring, &memory, 5, 0) == Err(EINVAL));
        assert!(post(&mut ring, &memory, 5, 9) == Err(EINVAL));
        Ok(())
    }

    // Padding that does not fit is not begun: 252 quanta in use, a WQE of 5 does not fit in the 4
    // that are left in the block, nor in the 3 that are left in all.
    #[test]
    fn padding_that_does_not_fit() -> Result {
        let (mut ring, memory) = send_ring()?;

        for id in 0..252 {
            post(&mut ring, &memory, id, 1)?;
        }
        assert!(post(&mut ring, &memory, 252, 5) == Err(ENOMEM));
        assert_eq!(ring.ring().head(), 252);
        assert_eq!(memory.word(252 * 4 + 3), Some(0));
        post(&mut ring, &memory, 252, 3)?;
        Ok(())
    }

    // At the ring's end a NOP takes the old polarity and the WQE at its start the new one.
    #[test]
    fn wrap_with_padding() -> Result {
        let (mut ring, memory) = send_ring()?;

        for id in 0..511 {
            let at = ring.ring().head();

            post(&mut ring, &memory, id, 1)?;
            assert_eq!(ring.complete(at).map(|work| work.wr_id), Some(id));
        }
        assert_eq!(ring.ring().head(), 511);
        post(&mut ring, &memory, 1000, 2)?;
        assert_eq!(memory.word(511 * 4 + 3), Some(NOP));
        assert_eq!(memory.word(3), Some(header(false, 1000)));
        assert_eq!(ring.ring().head(), 2);
        assert_eq!(ring.complete(0).map(|work| work.wr_id), Some(1000));
        assert!(ring.is_empty());
        Ok(())
    }

    // A WQE at the start of each 128 quanta wipes the 128 after those: to 0 in the first lap, to ones
    // for the second lap, whose valid bit is 0.
    #[test]
    fn wiping_ahead() -> Result {
        let (mut ring, memory) = send_ring()?;

        memory.fill(0x77);
        post(&mut ring, &memory, 0, 1)?;
        assert_eq!(memory.word(127 * 4 + 3), Some(0x77));
        assert_eq!(memory.word(128 * 4), Some(0));
        assert_eq!(memory.word(256 * 4 - 1), Some(0));
        assert_eq!(memory.word(256 * 4), Some(0x77));
        for id in 1..385 {
            let at = ring.ring().head();

            ring.complete(at.wrapping_sub(1));
            post(&mut ring, &memory, id, 1)?;
        }
        // The WQE at 384 wiped the ring's start for the second lap.
        assert_eq!(memory.word(0), Some(u64::MAX));
        assert_eq!(memory.word(128 * 4 - 1), Some(u64::MAX));
        assert_eq!(memory.word(128 * 4), Some(0));
        assert_eq!(Polarity::ZERO.stale_word(), u64::MAX);
        Ok(())
    }

    // A completion takes those before it along; indices that are not outstanding, not the start of a
    // WQE, or not of the ring at all give nothing and change nothing.
    #[test]
    fn completions_by_index() -> Result {
        let (mut ring, memory) = send_ring()?;

        for id in 1..=3 {
            post(&mut ring, &memory, id, 3)?;
        }
        for index in [1, 2, 6, 7, 9, 11, 511, 512, 0x7fff, u32::MAX] {
            assert!(ring.complete(index).is_none());
        }
        assert_eq!(ring.complete(3).map(|work| work.wr_id), Some(2));
        assert!(ring.complete(0).is_none());
        assert!(ring.complete(3).is_none());
        assert_eq!(ring.complete(8).map(|work| work.wr_id), Some(3));
        assert!(ring.is_empty());
        assert!(ring.complete(8).is_none());
        Ok(())
    }

    // Each work request once, in order, and none for padding.
    #[test]
    fn flush() -> Result {
        let (mut ring, memory) = send_ring()?;
        let quanta = [3, 3, 8, 1, 5, 4, 8, 2];

        for (id, quanta) in (0u64..).zip(quanta) {
            post(&mut ring, &memory, id, quanta)?;
        }
        for id in 0..8 {
            assert_eq!(ring.flush_oldest().map(|work| work.wr_id), Some(id));
        }
        assert!(ring.flush_oldest().is_none());
        assert!(ring.is_empty());
        Ok(())
    }

    // The same after each start, so that padding and WQEs lie over the ring's end in every way.
    #[test]
    fn flush_over_the_end() -> Result {
        for start in 490..512 {
            let (mut ring, memory) = send_ring()?;

            for id in 0..start {
                let at = ring.ring().head();

                post(&mut ring, &memory, id, 1)?;
                ring.complete(at);
            }
            for (id, quanta) in (0u64..).zip([2, 7, 3, 8, 1, 6]) {
                post(&mut ring, &memory, id, quanta)?;
            }
            for id in 0..6 {
                assert_eq!(ring.flush_oldest().map(|work| work.wr_id), Some(id));
            }
            assert!(ring.flush_oldest().is_none());
        }
        Ok(())
    }

    // 8 WQEs of 2 quanta, of which one stays free; the polarity changes with the lap.
    #[test]
    fn receive_ring() -> Result {
        let (mut ring, memory) = recv_ring(8, 1)?;

        for id in 100..107 {
            post_recv(&mut ring, &memory, id)?;
        }
        assert!(post_recv(&mut ring, &memory, 107) == Err(ENOMEM));
        assert_eq!(memory.word(3), Some(header(true, 100)));
        assert_eq!(memory.word(6 * 8 + 3), Some(header(true, 106)));

        // Indices are in quanta; 14 and above are not outstanding.
        assert_eq!(ring.complete(0), Some(100));
        assert!(ring.complete(0).is_none());
        assert!(ring.complete(14).is_none());
        assert!(ring.complete(16).is_none());
        assert!(ring.complete(u32::MAX).is_none());
        post_recv(&mut ring, &memory, 107)?;
        assert_eq!(memory.word(7 * 8 + 3), Some(header(true, 107)));
        assert_eq!(ring.complete(4), Some(102));
        post_recv(&mut ring, &memory, 108)?;
        assert_eq!(memory.word(3), Some(header(false, 108)));

        for id in 103..109 {
            assert_eq!(ring.flush_oldest(), Some(id));
        }
        assert!(ring.flush_oldest().is_none());
        assert!(ring.is_empty());
        Ok(())
    }
}
