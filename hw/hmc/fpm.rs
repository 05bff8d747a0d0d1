// SPDX-License-Identifier: GPL-2.0

//! The buffers that query the limits of the function-private memory and fix its layout.

use kernel::prelude::*;

use super::object::{
    Object,
    PerObject, //
};
use crate::hw::{
    bits::get,
    function::Protocol, //
};

/// Number of quadwords of the answer to a query.
#[doc(alias = "IRDMA_QUERY_FPM_BUF_SIZE")]
pub(crate) const QUERY_WORDS: usize = 200 / 8;

/// Number of quadwords of the buffer that fixes the layout.
#[doc(alias = "IRDMA_COMMIT_FPM_BUF_SIZE")]
pub(crate) const COMMIT_WORDS: usize = 208 / 8;

/// Size of a segment in bytes.
#[doc(alias = "IRDMA_HMC_DIRECT_BP_SIZE")]
pub(crate) const SEGMENT_SIZE: u64 = 2 << 20;

/// Number of segments that a descriptor can name.
const MAX_SEGMENTS: u32 = 4096;

/// Size of the bit vector of accelerated ports in bytes.
const APBVT_SIZE: u64 = 8192;

/// Bases are given in units of so many bytes.
const BASE_UNIT: u64 = 512;

/// Greatest exponent of an object's size that makes sense: no object is larger than a segment.
const MAX_SIZE_EXPONENT: u64 = 21;

/// What the device says about one kind of object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectLimit {
    /// Greatest number of objects.
    pub(crate) max: u32,
    /// Size of an object in bytes.
    pub(crate) size: u64,
}

/// The limits of the function-private memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FpmLimits {
    /// Limits of the objects.
    pub(crate) objects: PerObject<ObjectLimit>,
    /// Number of the function's segments, at most [`MAX_SEGMENTS`].
    pub(crate) max_segments: u32,
    /// Number of completion event queues.
    pub(crate) max_ceqs: u32,
    /// Factor of the number of hash entries.
    pub(crate) hash_multiplier: u32,
    /// Number of timers of a bucket.
    pub(crate) timer_bucket: u32,
    /// Number of transmit FIFO entries of a block.
    pub(crate) xf_block: u32,
    /// Number of inbound read queue entries of a block.
    pub(crate) q1_block: u32,
    /// Number of read response FIFO entries of a block.
    pub(crate) rrf_block: u32,
    /// Number of out-of-order segments of a block.
    pub(crate) ooisc_block: u32,
}

impl FpmLimits {
    /// Decodes the answer to a query.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the answer makes no sense, such as blocks without entries.
    #[doc(alias = "irdma_sc_parse_fpm_query_buf")]
    pub(crate) fn parse(words: &[u64; QUERY_WORDS], protocol: Protocol) -> Result<Self> {
        let at = |index: usize| words.get(index).copied().unwrap_or(0);
        // Quadword 0 is something else, hence the first objects stand one further than in the
        // buffer that fixes the layout. The reserved place after them makes up for it.
        let word = |object: Object| match object {
            Object::Qp | Object::Cq | Object::Srq | Object::HashEntry | Object::Arp => {
                at(object.commit_word() + 1)
            }
            _ => at(object.commit_word()),
        };
        let mut limits = Self {
            // CAST: The fields are not wider than their types.
            max_segments: (get::<44, 32>(at(0)) as u32).min(MAX_SEGMENTS),
            max_ceqs: get::<9, 0>(at(15)) as u32,
            hash_multiplier: get::<19, 16>(at(15)) as u32,
            timer_bucket: get::<47, 32>(at(15)) as u32,
            xf_block: get::<63, 32>(word(Object::XfFreeList)) as u32,
            q1_block: get::<63, 32>(word(Object::Q1FreeList)) as u32,
            rrf_block: get::<63, 32>(word(Object::RrfFreeList)) as u32,
            ..Self::default()
        };

        for object in Object::ALL {
            let raw = word(object);
            let limit = match object {
                Object::Apbvt => ObjectLimit {
                    max: 1,
                    size: APBVT_SIZE,
                },
                // Their upper half is the number of entries of a block.
                Object::XfFreeList | Object::Q1FreeList | Object::RrfFreeList => ObjectLimit {
                    max: raw as u32,
                    size: 4,
                },
                Object::Pble => ObjectLimit {
                    max: raw as u32,
                    size: 8,
                },
                Object::Ooisc | Object::OoiscFreeList if protocol != Protocol::Iwarp => {
                    ObjectLimit::default()
                }
                Object::OoiscFreeList => {
                    limits.ooisc_block = (raw >> 32) as u32;
                    ObjectLimit {
                        max: raw as u32,
                        size: 4,
                    }
                }
                _ => Self::limit(raw)?,
            };
            limits.objects.set(object, limit);
        }

        limits.check()?;

        Ok(limits)
    }

    /// Decodes a quadword of which the lower half is the greatest number of objects, the upper one
    /// the logarithm of their size.
    fn limit(raw: u64) -> Result<ObjectLimit> {
        // CAST: The number is in the lower half.
        let max = raw as u32;
        let exponent = raw >> 32;

        match exponent {
            0..=MAX_SIZE_EXPONENT => Ok(ObjectLimit {
                max,
                size: 1 << exponent,
            }),
            // What is said of objects that the device does not have means nothing.
            _ if max == 0 => Ok(ObjectLimit::default()),
            _ => Err(EINVAL),
        }
    }

    /// Checks that nothing that follows divides by zero.
    fn check(&self) -> Result {
        let max = |object| self.objects.get(object).max;

        if self.xf_block == 0
            || self.q1_block == 0
            || (max(Object::RrfFreeList) != 0 && self.rrf_block == 0)
            || (max(Object::OoiscFreeList) != 0 && self.ooisc_block == 0)
            || self.max_segments == 0
            || self.max_ceqs == 0
        {
            return Err(EINVAL);
        }

        Ok(())
    }
}

/// Encodes how many objects of each kind are wanted.
#[doc(alias = "irdma_sc_cfg_iw_fpm")]
pub(crate) fn encode_commit(counts: &PerObject<u32>) -> [u64; COMMIT_WORDS] {
    let mut words = [0; COMMIT_WORDS];

    for object in Object::ALL {
        // The place of the bit vector is reserved: there is always one.
        let count = match object {
            Object::Apbvt => 0,
            _ => counts.get(object),
        };

        if let Some(word) = words.get_mut(object.commit_word()) {
            *word = count.into();
        }
    }

    words
}

/// Where the objects of a kind are in the function-private memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Placement {
    /// Address of the first object.
    pub(crate) base: u64,
    /// Number of objects.
    pub(crate) count: u32,
    /// Size of an object in bytes.
    pub(crate) size: u64,
}

impl Placement {
    /// Returns the segments that the objects lie in; no object has an empty range.
    pub(crate) fn segments(&self) -> core::ops::Range<u32> {
        let length = u64::from(self.count) * self.size;

        if length == 0 {
            return 0..0;
        }

        // CAST: `Layout::parse` has checked that the memory ends within `MAX_SEGMENTS` segments.
        let first = (self.base / SEGMENT_SIZE) as u32;
        let last = ((self.base + length - 1) / SEGMENT_SIZE) as u32;

        first..last + 1
    }
}

/// The layout of the function-private memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Places of the objects.
    pub(crate) objects: PerObject<Placement>,
    /// Number of segments up to the end of the last object.
    pub(crate) segments: u32,
}

impl Layout {
    /// Decodes what the device made of the counts that were wanted.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the device puts something out of reach.
    #[doc(alias = "irdma_sc_decode_fpm_commit")]
    #[doc(alias = "irdma_sc_parse_fpm_commit_buf")]
    pub(crate) fn parse(words: &[u64; COMMIT_WORDS], limits: &FpmLimits) -> Result<Self> {
        let mut layout = Self::default();
        let mut end = 0;

        for object in Object::ALL {
            let raw = words.get(object.commit_word()).copied().unwrap_or(0);
            let size = limits.objects.get(object).size;
            // Firmware may round up what was wanted, so what it says counts.
            // CAST: The counts are in the lower half.
            let count = match object {
                // Objects that the device does not have; their words may be something else.
                _ if size == 0 => 0,
                Object::Qp => get::<20, 0>(raw) as u32,
                Object::Cq => get::<19, 0>(raw) as u32,
                Object::Apbvt => 1,
                _ => raw as u32,
            };
            let placement = Placement {
                base: (raw >> 32) * BASE_UNIT,
                count,
                size,
            };

            if count != 0 {
                // No overflow: 41 bits and 32 + 21 bits.
                end = end.max(placement.base + u64::from(count) * placement.size);
            }
            layout.objects.set(object, placement);
        }

        layout.segments = match end.div_ceil(SEGMENT_SIZE).try_into()? {
            segments @ 1..=MAX_SEGMENTS => segments,
            _ => return Err(EINVAL),
        };

        Ok(layout)
    }

    /// Returns the number of objects of a kind.
    pub(crate) fn count(&self, object: Object) -> u32 {
        self.objects.get(object).count
    }
}
