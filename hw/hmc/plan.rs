// SPDX-License-Identifier: GPL-2.0

//! How many objects of each kind the function asks for.
//!
//! The numbers are those that the device's firmware is known to accept: they follow from the
//! number of queue pairs, which is as large as the function's segments allow.

use kernel::prelude::*;

use super::{
    fpm::{
        FpmLimits,
        SEGMENT_SIZE, //
    },
    object::{
        Object,
        PerObject, //
    },
};
use crate::hw::function::Protocol;

/// Page-list entries and memory keys are reduced in multiples of this.
#[doc(alias = "FPM_MULTIPLIER")]
const STEP: u64 = 1024;

/// The search for numbers that fit ends after so many rounds.
const MAX_ROUNDS: u32 = 2000;

/// Sizes are rounded up to this.
const ALIGNMENT: u64 = 512;

/// What the search varies.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    qps: u64,
    mrs: u64,
    pbles: u64,
    cqs: u64,
    mcast_groups: u64,
    address_handles: u64,
}

/// Finds out how many objects of each kind to ask for, with up to `max_qps` queue pairs.
///
/// Ends after [`MAX_ROUNDS`] rounds at the latest, whatever the limits are.
///
/// # Errors
///
/// `EINVAL` if nothing fits.
#[doc(alias = "irdma_cfg_fpm_val")]
pub(crate) fn plan(
    limits: &FpmLimits,
    protocol: Protocol,
    max_ird: u32,
    max_qps: u32,
) -> Result<PerObject<u32>> {
    let max = |object| u64::from(limits.objects.get(object).max);
    let mut wanted = Wanted {
        qps: max(Object::Qp).min(max_qps.into()),
        mrs: max(Object::Mr),
        pbles: max(Object::Pble),
        cqs: max(Object::Cq),
        mcast_groups: max(Object::McastGroup),
        address_handles: max(Object::AddressHandle),
    };

    // A power of two that the inbound read queues suffice for.
    wanted.qps = match wanted.qps.checked_ilog2() {
        Some(exponent) => 1 << exponent,
        None => return Err(EINVAL),
    };
    while q1_entries(protocol, max_ird, wanted.qps) > max(Object::Q1) {
        wanted.qps /= 2;
        if wanted.qps == 0 {
            return Err(EINVAL);
        }
    }

    let available = u64::from(limits.max_segments);

    for round in 1..=MAX_ROUNDS {
        wanted.cqs = wanted.cqs.min(2 * wanted.qps);

        let counts = counts(limits, protocol, max_ird, &wanted);
        let needed = segments(limits, &counts);

        if needed <= available {
            return finish(limits, counts, round, available - needed);
        }
        shrink(&mut wanted, round, needed - available);
    }

    Err(EINVAL)
}

/// Uses up segments that the search left over.
fn finish(
    limits: &FpmLimits,
    mut counts: PerObject<u64>,
    round: u32,
    spare: u64,
) -> Result<PerObject<u32>> {
    if round > 1 && spare > 0 {
        let more = counts.get(Object::Pble) + spare * 256 * STEP;
        let max = u64::from(limits.objects.get(Object::Pble).max);

        counts.set(Object::Pble, more.min(max));
    }

    let mut result = PerObject::default();
    for object in Object::ALL {
        result.set(object, counts.get(object).try_into()?);
    }

    Ok(result)
}

/// Reduces what is wanted, the more the more is missing.
fn shrink(wanted: &mut Wanted, round: u32, missing: u64) {
    if missing > 128 {
        if round % 2 == 0 && wanted.qps > 128 {
            wanted.qps /= 2;
        } else {
            wanted.pbles /= 2;
            wanted.mrs /= 2;
        }
        return;
    }

    if wanted.pbles > 512 * STEP * missing {
        wanted.pbles -= 256 * STEP * missing;
        return;
    }

    if wanted.pbles > 100 * STEP {
        wanted.pbles -= 10 * STEP;
    } else if wanted.pbles > STEP {
        wanted.pbles -= STEP;
    } else if wanted.qps <= 128 {
        if wanted.mcast_groups > 256 {
            wanted.mcast_groups /= 2;
        }
        if wanted.address_handles > 256 {
            wanted.address_handles /= 2;
        }
    }
    if wanted.mrs > STEP {
        wanted.mrs -= STEP;
    }
    if round % 10 == 0 && wanted.qps > 128 {
        wanted.qps /= 2;
        if wanted.address_handles > 256 {
            wanted.address_handles /= 2;
        }
    }
}

/// Returns the number of inbound read queue entries for so many queue pairs.
#[doc(alias = "irdma_q1_cnt")]
fn q1_entries(protocol: Protocol, max_ird: u32, qps: u64) -> u64 {
    let entries = u64::from(max_ird) * 2 * qps;

    match protocol {
        Protocol::Roce => (entries + 512).next_power_of_two(),
        Protocol::Iwarp => entries,
    }
}

/// Returns the counts that follow from what is wanted.
#[doc(alias = "cfg_fpm_value_gen_2")]
fn counts(limits: &FpmLimits, protocol: Protocol, max_ird: u32, wanted: &Wanted) -> PerObject<u64> {
    let max = |object| u64::from(limits.objects.get(object).max);
    let qps = wanted.qps;
    let hash = (qps + wanted.mcast_groups)
        .next_multiple_of(512)
        .next_power_of_two();
    let xf = 4 * u64::from(limits.xf_block) * qps;
    let q1 = q1_entries(protocol, max_ird, qps);
    let if_any = |object, count: u64| match max(object) {
        0 => 0,
        _ => count,
    };
    let rrf = if_any(Object::Rrf, 32 * qps);
    let ooisc = if_any(Object::Ooisc, 32 * qps);
    let mut counts = PerObject::default();

    counts.set(Object::Qp, qps);
    counts.set(Object::Cq, wanted.cqs);
    counts.set(Object::Srq, 0);
    counts.set(Object::HashEntry, hash * u64::from(limits.hash_multiplier));
    counts.set(Object::Arp, max(Object::Arp));
    counts.set(Object::Apbvt, 1);
    counts.set(Object::Mr, wanted.mrs);
    counts.set(Object::Xf, xf);
    counts.set(Object::XfFreeList, blocks(xf, limits.xf_block));
    counts.set(Object::Q1, q1);
    counts.set(Object::Q1FreeList, blocks(q1, limits.q1_block));
    counts.set(
        Object::Timer,
        (qps.next_multiple_of(512) / 512 + 1) * u64::from(limits.timer_bucket),
    );
    counts.set(Object::McastGroup, wanted.mcast_groups);
    counts.set(Object::AddressHandle, wanted.address_handles);
    counts.set(Object::Pble, wanted.pbles);
    counts.set(Object::Rrf, rrf);
    counts.set(
        Object::RrfFreeList,
        if_any(
            Object::RrfFreeList,
            rrf.checked_div(limits.rrf_block.into()).unwrap_or(0),
        ),
    );
    counts.set(Object::Header, qps);
    counts.set(Object::Metadata, max(Object::Metadata));
    counts.set(Object::Ooisc, ooisc);
    counts.set(
        Object::OoiscFreeList,
        if_any(
            Object::OoiscFreeList,
            ooisc.checked_div(limits.ooisc_block.into()).unwrap_or(0),
        ),
    );

    counts
}

/// Blocks of `size` objects that hold `objects`. The size was checked when it was read.
fn blocks(objects: u64, size: u32) -> u64 {
    objects.checked_div(u64::from(size)).unwrap_or(0)
}

/// Returns the number of segments that so many objects need.
#[doc(alias = "irdma_est_sd")]
fn segments(limits: &FpmLimits, counts: &PerObject<u64>) -> u64 {
    let mut size = 0_u64;

    for object in Object::ALL {
        let bytes = counts
            .get(object)
            .saturating_mul(limits.objects.get(object).size);
        let rounded = bytes
            .checked_next_multiple_of(ALIGNMENT)
            .unwrap_or(u64::MAX);

        size = size.saturating_add(rounded);
    }

    size.div_ceil(SEGMENT_SIZE)
}
