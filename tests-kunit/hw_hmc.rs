// SPDX-License-Identifier: GPL-2.0

//! Function-private memory: limits as the device tells them, what is asked for, and where it lies.

use kernel::prelude::*;

use crate::hw::hmc::fpm::{
    COMMIT_WORDS,
    QUERY_WORDS, //
};

/// What a device of 256 queue pairs answers. Each word has a count in its lower half and in the upper
/// the binary logarithm of the object's size, or the entries of a block; words 0 and 15 differ.
fn query() -> [u64; QUERY_WORDS] {
    let mut words = [0; QUERY_WORDS];
    let filled = [
        // First segment 0, 8 segments (44:32).
        (0, 8 << 32),
        // Queue pairs of 512 bytes, completion queues of 64, no shared queues.
        (1, 9 << 32 | 256),
        (2, 6 << 32 | 512),
        (3, 0),
        // Hash entries, neighbours, keys, transmit FIFO: 64, 64, 32 and 64 bytes.
        (4, 6 << 32 | 4096),
        (5, 6 << 32 | 256),
        (6, 5 << 32 | 8192),
        (7, 6 << 32 | 65536),
        // 4 entries a block.
        (8, 4 << 32 | 65536),
        (9, 6 << 32 | 131_072),
        (10, 4 << 32 | 131_072),
        (11, 6 << 32 | 4096),
        (12, 6 << 32 | 64),
        (13, 6 << 32 | 1024),
        (14, 262_144),
        // 8 event queues (9:0), hash multiplier 1 (19:16), 4 timers a bucket (47:32).
        (15, 4 << 32 | 1 << 16 | 8),
        (16, 6 << 32 | 65536),
        (17, 4 << 32 | 65536),
        (18, 6 << 32 | 256),
    ];

    for (index, word) in filled {
        if let Some(place) = words.get_mut(index) {
            *place = word;
        }
    }
    words
}

/// The same with one word changed.
fn query_with(index: usize, word: u64) -> [u64; QUERY_WORDS] {
    let mut words = query();

    if let Some(place) = words.get_mut(index) {
        *place = word;
    }
    words
}

/// The same where every object takes one byte, so that all of it fits in two segments.
fn query_of_bytes() -> [u64; QUERY_WORDS] {
    let mut words = query();

    for index in [1, 2, 4, 5, 6, 7, 9, 11, 12, 13, 16, 18] {
        if let Some(place) = words.get_mut(index) {
            *place &= 0xffff_ffff;
        }
    }
    words
}

/// An answer to a layout that was asked for: count below base (in units of 512 bytes).
fn commit(places: &[(usize, u32, u64)]) -> [u64; COMMIT_WORDS] {
    let mut words = [0; COMMIT_WORDS];

    for (index, count, base) in places {
        if let Some(place) = words.get_mut(*index) {
            *place = (base / 512) << 32 | u64::from(*count);
        }
    }
    words
}

#[kunit_tests(irdma_hw_hmc)]
mod tests {
    use super::*;

    use crate::hw::{
        function::Protocol,
        hmc::{
            fpm::{
                self,
                FpmLimits,
                Layout,
                ObjectLimit, //
            },
            object::{
                Object,
                PerObject, //
            },
            plan, //
        }, //
    };

    /// Read depth that the E810 answers at most.
    const MAX_IRD: u32 = 127;

    fn limits() -> Result<FpmLimits> {
        FpmLimits::parse(&query(), Protocol::Roce)
    }

    #[test]
    fn limits_of_the_device() -> Result {
        let limits = limits()?;
        let limit = |object| limits.objects.get(object);

        assert_eq!(limits.max_segments, 8);
        assert_eq!(limits.max_ceqs, 8);
        assert_eq!(limits.hash_multiplier, 1);
        assert_eq!(limits.timer_bucket, 4);
        assert_eq!(limits.xf_block, 4);
        assert_eq!(limits.q1_block, 4);
        assert_eq!(limits.rrf_block, 4);
        for (object, max, size) in [
            (Object::Qp, 256, 512),
            (Object::Cq, 512, 64),
            (Object::HashEntry, 4096, 64),
            (Object::Arp, 256, 64),
            (Object::Apbvt, 1, 8192),
            (Object::Mr, 8192, 32),
            (Object::Xf, 65536, 64),
            (Object::XfFreeList, 65536, 4),
            (Object::Q1, 131_072, 64),
            (Object::Q1FreeList, 131_072, 4),
            (Object::Timer, 4096, 64),
            (Object::McastGroup, 64, 64),
            (Object::AddressHandle, 1024, 64),
            (Object::Pble, 262_144, 8),
            (Object::RrfFreeList, 65536, 4),
            (Object::Header, 256, 64),
            (Object::Ooisc, 0, 0),
        ] {
            assert!(limit(object) == ObjectLimit { max, size });
        }
        Ok(())
    }

    // Blocks without entries would be divided by; no segments and no event queues are of no use;
    // objects of 2^22 bytes are larger than a segment.
    #[test]
    fn limits_without_sense() {
        for (index, word) in [
            (8, 65536),
            (10, 131_072),
            (17, 65536),
            (0, 0),
            (15, 4 << 32 | 1 << 16),
            (1, 22 << 32 | 256),
            (1, u64::from(u32::MAX) << 32 | 256),
        ] {
            assert!(FpmLimits::parse(&query_with(index, word), Protocol::Roce).is_err());
        }
        // This is just in reach.
        assert!(FpmLimits::parse(&query_with(1, 21 << 32 | 256), Protocol::Roce).is_ok());
        // Without a free list its blocks don't matter.
        assert!(FpmLimits::parse(&query_with(17, 0), Protocol::Roce).is_ok());
    }

    // Segments beyond 4096 have no descriptor; where the function's first one (13:0) is does not
    // matter.
    #[test]
    fn segments_in_reach() -> Result {
        for (word, max) in [
            (4096 << 32, 4096),
            (4096 << 32 | 1, 4096),
            (8191 << 32 | 0x3fff, 4096),
            (8 << 32 | 4095, 8),
        ] {
            let limits = FpmLimits::parse(&query_with(0, word), Protocol::Roce)?;

            assert_eq!(limits.max_segments, max);
        }
        Ok(())
    }

    // What is said of the size of shared receive queues, of which there are none, does not matter;
    // nor does what stands in their place in a layout.
    #[test]
    fn objects_that_there_are_none_of() -> Result {
        let limits = FpmLimits::parse(&query_with(3, 0xff << 32), Protocol::Roce)?;

        assert!(limits.objects.get(Object::Srq) == ObjectLimit::default());
        let answer = commit(&[(0, 256, 0), (2, u32::MAX, 4095 * (2 << 20))]);
        let layout = Layout::parse(&answer, &limits)?;
        assert_eq!(layout.count(Object::Srq), 0);
        assert_eq!(layout.segments, 1);
        Ok(())
    }

    // For 256 queue pairs: hash (256 + 64) up to 512, times 1; transmit FIFO 4 * 4 * 256; inbound
    // reads 127 * 2 * 256 + 512 = 65536, a power of two; timers (1 + 1) * 4.
    #[test]
    fn what_is_asked_for() -> Result {
        let limits = FpmLimits::parse(&query_of_bytes(), Protocol::Roce)?;
        let counts = plan::plan(&limits, Protocol::Roce, MAX_IRD, 256)?;

        for (object, count) in [
            (Object::Qp, 256),
            (Object::Cq, 512),
            (Object::Srq, 0),
            (Object::HashEntry, 512),
            (Object::Arp, 256),
            (Object::Apbvt, 1),
            (Object::Mr, 8192),
            (Object::Xf, 4096),
            (Object::XfFreeList, 1024),
            (Object::Q1, 65536),
            (Object::Q1FreeList, 16384),
            (Object::Timer, 8),
            (Object::McastGroup, 64),
            (Object::AddressHandle, 1024),
            (Object::Pble, 262_144),
            (Object::Rrf, 8192),
            (Object::RrfFreeList, 2048),
            (Object::Header, 256),
            (Object::Metadata, 0),
            (Object::Ooisc, 0),
            (Object::OoiscFreeList, 0),
        ] {
            assert_eq!(counts.get(object), count);
        }
        Ok(())
    }

    // The queue pairs asked for are a power of two, and as many as the inbound reads are enough for:
    // of 65535 entries 127 * 2 * 128 + 512 = 33024, up to 65536, are too many, those for 64 are not.
    #[test]
    fn what_limits_queue_pairs() -> Result {
        let limits = FpmLimits::parse(&query_of_bytes(), Protocol::Roce)?;

        for (asked, given) in [(1, 1), (3, 2), (200, 128), (256, 256), (1000, 256)] {
            let counts = plan::plan(&limits, Protocol::Roce, MAX_IRD, asked)?;

            assert_eq!(counts.get(Object::Qp), given);
        }
        assert!(plan::plan(&limits, Protocol::Roce, MAX_IRD, 0).is_err());

        let mut words = query_of_bytes();
        words[9] = 65535;
        let limits = FpmLimits::parse(&words, Protocol::Roce)?;
        let counts = plan::plan(&limits, Protocol::Roce, MAX_IRD, 256)?;
        assert_eq!(counts.get(Object::Qp), 64);

        // Fewer than 512 are never enough; the search must end all the same.
        words[9] = 511;
        let limits = FpmLimits::parse(&words, Protocol::Roce)?;
        assert!(plan::plan(&limits, Protocol::Roce, MAX_IRD, 256).is_err());
        Ok(())
    }

    // With objects of their real sizes 8 segments of 2 MiB hold what is planned, whatever is given up
    // for it.
    #[test]
    fn what_fits() -> Result {
        let limits = limits()?;
        let counts = plan::plan(&limits, Protocol::Roce, MAX_IRD, 256)?;
        let mut bytes = 0;

        for object in Object::ALL {
            let limit = limits.objects.get(object);

            assert!(counts.get(object) <= limit.max.max(1));
            bytes += (u64::from(counts.get(object)) * limit.size).next_multiple_of(512);
        }
        assert!(bytes <= 8 * (2 << 20));
        assert!(counts.get(Object::Qp) >= 1);

        // A device with one segment cannot hold the key table alone.
        let limits = FpmLimits::parse(&query_with(0, 1 << 32), Protocol::Roce)?;
        let planned = plan::plan(&limits, Protocol::Roce, MAX_IRD, 256);
        if let Ok(counts) = planned {
            assert!(counts.get(Object::Qp) >= 1);
        }
        Ok(())
    }

    // Counts stand at the objects' own words; the bit vector's word is reserved.
    #[test]
    fn words_of_a_layout() {
        let mut counts = PerObject::<u32>::default();

        for object in Object::ALL {
            counts.set(object, 100 + object as u32);
        }
        let words = fpm::encode_commit(&counts);

        assert_eq!(words[0], 100);
        assert_eq!(words[1], 101);
        assert_eq!(words[4], 104);
        assert_eq!(words[5], 0);
        assert_eq!(words[6], 106);
        assert_eq!(words[14], 114);
        assert_eq!(words[15], 0);
        assert_eq!(words[16], 115);
        assert_eq!(words[21], 120);
        assert_eq!(words[22], 0);
    }

    // Queue pairs from 2 MiB on, page-list entries from 4 MiB on: 262144 * 8 bytes fill the third
    // segment.
    #[test]
    fn placed_objects() -> Result {
        let limits = limits()?;
        let answer = commit(&[(0, 256, 2 << 20), (14, 262_144, 4 << 20)]);
        let layout = Layout::parse(&answer, &limits)?;

        assert_eq!(layout.segments, 3);
        assert_eq!(layout.count(Object::Qp), 256);
        assert_eq!(layout.count(Object::Cq), 0);
        assert_eq!(layout.objects.get(Object::Qp).base, 2 << 20);
        assert!(layout.objects.get(Object::Qp).segments() == (1..2));
        assert!(layout.objects.get(Object::Pble).segments() == (2..3));
        assert!(layout.objects.get(Object::Cq).segments() == (0..0));

        // An object that begins 512 bytes before a segment's end lies in two of them.
        let answer = commit(&[(0, 2, (2 << 20) - 512)]);
        let layout = Layout::parse(&answer, &limits)?;
        assert!(layout.objects.get(Object::Qp).segments() == (0..2));
        Ok(())
    }

    // More than the device said to have is taken as it comes, as long as it ends within the last of
    // 4096 segments: 4096 * 512 bytes fill one.
    #[test]
    fn placed_objects_in_reach() -> Result {
        let limits = limits()?;
        let layout = Layout::parse(&commit(&[(0, 257, 0), (1, 1, 0)]), &limits)?;

        assert_eq!(layout.count(Object::Qp), 257);
        assert_eq!(layout.count(Object::Cq), 1);

        for (count, base, reached) in [
            (4096, 4095 * (2 << 20), true),
            (4097, 4095 * (2 << 20), false),
            (1, 4096 * (2 << 20), false),
        ] {
            let answer = commit(&[(0, count, base)]);

            assert_eq!(Layout::parse(&answer, &limits).is_ok(), reached);
        }
        Ok(())
    }
}
