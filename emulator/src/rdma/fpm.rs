// SPDX-License-Identifier: GPL-2.0
//! What the function-private memory (FPM) can hold and where: the query and commit buffers of the device.

use std::ops::Range;

use super::layout::{hmc, Layout};

/// A kind of object that the device keeps in the HMC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Object {
    Qp,
    Cq,
    Srq,
    HashEntry,
    Arp,
    Apbvt,
    Mr,
    Transmit,
    TransmitFree,
    Q1,
    Q1Free,
    Timer,
    McastGroup,
    AddressHandle,
    Pble,
    ReadResponse,
    ReadResponseFree,
    Header,
    Md,
}

/// One row of the device's resource profile.
#[derive(Debug, Clone, Copy)]
struct Row {
    object: Object,
    /// Byte offset in both buffers.
    offset: usize,
    /// Log2 of the object's size, or for a free list 2 (an entry is 4 bytes).
    size_log2: u32,
    max: u32,
    /// The upper half of the query word: the size's exponent, or a block size for free lists.
    upper: u32,
}

const fn row(object: Object, offset: usize, size_log2: u32, max: u32) -> Row {
    Row {
        object,
        offset,
        size_log2,
        max,
        upper: size_log2,
    }
}

const fn free_list(object: Object, offset: usize, max: u32, block: u32) -> Row {
    Row {
        object,
        offset,
        size_log2: 2,
        max,
        upper: block,
    }
}

/// Queue pairs that the emulated function offers.
const QPS: u32 = 1024;
/// Objects that one entry of a free list stands for.
const BLOCK: u32 = 4;
/// Offset of the word with event-queue count, hash multiplier and timer bucket.
const MISC_OFFSET: usize = 120;
const MAX_CEQS: u64 = 64;
const MAX_SDS: u64 = 64;

/// The profile of an emulated E810. Sizes are the powers of two that the object's content needs; counts are small,
/// so that the backing memory of one function stays below 40 MiB.
const E810: [Row; 19] = [
    row(Object::Qp, 8, 9, QPS),
    row(Object::Cq, 16, 6, 2 * QPS),
    row(Object::Srq, 24, 6, 0),
    row(Object::HashEntry, 32, 6, 8 * QPS),
    row(Object::Arp, 40, 6, 1024),
    row(Object::Apbvt, 0, 13, 1),
    row(Object::Mr, 48, 5, 32768),
    row(Object::Transmit, 56, 6, 16 * BLOCK * QPS),
    free_list(Object::TransmitFree, 64, 16 * QPS, BLOCK),
    row(Object::Q1, 72, 6, 256 * QPS),
    free_list(Object::Q1Free, 80, 64 * QPS, BLOCK),
    row(Object::Timer, 88, 6, 4096),
    row(Object::McastGroup, 96, 6, 512),
    row(Object::AddressHandle, 104, 6, 8192),
    row(Object::ReadResponse, 128, 6, 32 * QPS),
    free_list(Object::ReadResponseFree, 136, 8 * QPS, BLOCK),
    row(Object::Header, 144, 6, QPS),
    row(Object::Md, 152, 6, 0),
    // Last, so that its segments can be added on demand; not a multiple of a segment, so that the last is paged.
    row(Object::Pble, 112, 3, 7 * (1 << 17)),
];

/// Offset of the APBVT bitmap in the commit buffer: the driver leaves its count zero, the device counts one.
const APBVT_COMMIT_OFFSET: usize = 40;

/// The query buffer: what the device offers.
pub(crate) fn query() -> [u64; hmc::QUERY_LENGTH / 8] {
    let mut words = [0u64; hmc::QUERY_LENGTH / 8];
    words[0] = hmc::FIRST_SD.put(0) | hmc::MAX_SDS.put(MAX_SDS);
    for row in E810.iter().filter(|r| r.object != Object::Apbvt) {
        let upper = if row.object == Object::Pble {
            0
        } else {
            row.upper
        };
        words[row.offset / 8] = u64::from(row.max) | (u64::from(upper) << 32);
    }
    words[MISC_OFFSET / 8] =
        hmc::MAX_CEQS.put(MAX_CEQS) | hmc::HT_MULTIPLIER.put(1) | hmc::TIMER_BUCKET.put(64);
    words
}

/// Why a commit was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMany {
    pub object: Object,
    pub wanted: u64,
    pub max: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Placed {
    object: Object,
    offset: usize,
    size_log2: u32,
    count: u32,
    base: u64,
}

/// The committed counts and where each kind of object lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    placed: Vec<Placed>,
}

impl Plan {
    /// Lays out the counts that a driver wrote into the commit buffer.
    pub fn from_commit(layout: &Layout, words: &[u64]) -> Result<Self, TooMany> {
        let mut next = 0u64;
        let mut placed = Vec::with_capacity(E810.len());
        for row in E810 {
            let (offset, wanted) = match row.object {
                Object::Apbvt => (APBVT_COMMIT_OFFSET, 1),
                // The commit buffer has no leading word and a reserved one after ARP.
                object => {
                    let offset = commit_offset(row.offset);
                    let word = words.get(offset / 8).copied().unwrap_or(0);
                    let wanted = match object {
                        Object::Qp => hmc::QP_COUNT.get(word),
                        Object::Cq => layout.commit_cq_count.get(word),
                        _ => word & 0xffff_ffff,
                    };
                    (offset, wanted)
                }
            };
            if wanted > u64::from(row.max) {
                return Err(TooMany {
                    object: row.object,
                    wanted,
                    max: row.max,
                });
            }
            if row.object == Object::Pble {
                next = next.next_multiple_of(hmc::SD_SPAN);
            }
            placed.push(Placed {
                object: row.object,
                offset,
                size_log2: row.size_log2,
                count: wanted as u32,
                base: next,
            });
            next += (wanted << row.size_log2).next_multiple_of(512);
        }
        Ok(Self { placed })
    }

    /// Writes counts and bases over the driver's counts.
    pub fn answer(&self, words: &mut [u64]) {
        for p in &self.placed {
            if let Some(word) = words.get_mut(p.offset / 8) {
                *word = u64::from(p.count) | ((p.base / 512) << 32);
            }
        }
    }

    fn find(&self, object: Object) -> Option<&Placed> {
        self.placed.iter().find(|p| p.object == object)
    }

    pub fn count(&self, object: Object) -> u32 {
        self.find(object).map_or(0, |p| p.count)
    }

    /// The FPM address of an object, if its number is in range.
    pub fn address(&self, object: Object, index: u32) -> Option<u64> {
        let p = self.find(object).filter(|p| index < p.count)?;
        Some(p.base + (u64::from(index) << p.size_log2))
    }

    /// Numbers of the objects that lie in the FPM addresses `start..end`, in part or whole.
    pub fn within(&self, object: Object, start: u64, end: u64) -> Range<u32> {
        let Some(p) = self.find(object).filter(|p| p.count != 0) else {
            return 0..0;
        };
        let (start, end) = (start.max(p.base), end.min(Self::end(p)));
        if start >= end {
            return 0..0;
        }
        let number = |at: u64| ((at - p.base) >> p.size_log2) as u32;
        number(start)..number(end - 1) + 1
    }

    /// Segment descriptors that the objects take.
    pub fn sd_count(&self) -> u32 {
        let end = self.placed.iter().map(Self::end).max().unwrap_or(0);
        end.div_ceil(hmc::SD_SPAN) as u32
    }

    /// FPM ranges of the objects whose memory must be there before the first of them is used.
    pub fn static_ranges(&self) -> impl Iterator<Item = (Object, u64, u64)> + '_ {
        self.placed
            .iter()
            .filter(|p| p.object != Object::Pble && p.count != 0)
            .map(|p| (p.object, p.base, Self::end(p)))
    }

    fn end(p: &Placed) -> u64 {
        p.base + (u64::from(p.count) << p.size_log2)
    }
}

/// Offset in the commit buffer of the object at `query` in the query buffer: the commit buffer has no leading word,
/// and the bitmap of ports stands where the query buffer goes straight from ARP to MR.
fn commit_offset(query: usize) -> usize {
    if query <= 40 {
        query - 8
    } else {
        query
    }
}

/// The number of completion event queues that the device offers.
pub(crate) fn max_ceqs() -> u32 {
    MAX_CEQS as u32
}

#[cfg(test)]
mod tests {
    use super::super::layout;
    use super::*;

    fn committed() -> Vec<u64> {
        // What the stock driver asks for with this profile (1024 queue pairs).
        let mut words = vec![0u64; hmc::COMMIT_LENGTH / 8];
        for (offset, count) in [
            (0, 1024),
            (8, 2048),
            (24, 2048),
            (32, 1024),
            (48, 32768),
            (56, 16384),
            (64, 4096),
            (72, 262144),
            (80, 65536),
            (88, 192),
            (96, 512),
            (104, 8192),
            (112, 917504),
            (128, 32768),
            (136, 8192),
            (144, 1024),
        ] {
            words[offset / 8] = count;
        }
        words
    }

    #[test]
    fn query_holds_counts_and_sizes() {
        let q = query();
        assert_eq!(q[0], 64 << 32);
        assert_eq!(q[1], 1024 | (9 << 32));
        assert_eq!(q[2], 2048 | (6 << 32));
        assert_eq!(q[6], 32768 | (5 << 32));
        assert_eq!(q[8], 16384 | (4 << 32));
        assert_eq!(q[14], 917504);
        assert_eq!(q[15], 64 | (1 << 16) | (64 << 32));
    }

    #[test]
    fn objects_do_not_overlap_and_fit() {
        let plan = Plan::from_commit(&layout::E810, &committed()).unwrap();
        let mut previous = 0;
        for p in &plan.placed {
            assert_eq!(p.base % 512, 0);
            assert!(p.base >= previous, "{p:?}");
            previous = Plan::end(p);
        }
        assert_eq!(plan.count(Object::Qp), 1024);
        assert_eq!(plan.count(Object::Arp), 1024);
        assert_eq!(plan.count(Object::HashEntry), 2048);
        assert_eq!(plan.count(Object::Apbvt), 1);
        assert_eq!(plan.address(Object::Qp, 3), Some(3 * 512));
        assert_eq!(plan.address(Object::Qp, 1024), None);
        let pbles = plan.address(Object::Pble, 0).unwrap();
        assert_eq!(pbles % hmc::SD_SPAN, 0);
        assert!(plan.sd_count() <= MAX_SDS as u32, "{}", plan.sd_count());
        assert!(u64::from(plan.sd_count()) * hmc::SD_SPAN <= 40 << 20);

        assert_eq!(plan.within(Object::Qp, 511, 1025), 0..3);
        assert_eq!(plan.within(Object::Qp, 512, 1024), 1..2);
        assert_eq!(plan.within(Object::Qp, 1024 * 512, u64::MAX), 0..0);
        assert_eq!(plan.within(Object::Pble, pbles + 8, pbles + 17), 1..3);
        assert_eq!(plan.within(Object::Srq, 0, u64::MAX), 0..0);

        let mut words = committed();
        plan.answer(&mut words);
        assert_eq!(words[0], 1024);
        assert_eq!(words[1], 2048 | (1024 << 32));
        assert_eq!(words[112 / 8], 917504 | ((pbles / 512) << 32));
        assert_eq!(words[40 / 8] & 0xffff_ffff, 1);
    }

    #[test]
    fn a_count_above_the_offer_is_refused() {
        let mut words = committed();
        words[0] = 1025;
        let error = Plan::from_commit(&layout::E810, &words).unwrap_err();
        assert_eq!((error.object, error.wanted), (Object::Qp, 1025));
    }
}
