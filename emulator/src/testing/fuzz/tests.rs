// SPDX-License-Identifier: GPL-2.0
//! The fuzzer with a fixed seed.

use super::survival::QUEUED;
use super::*;
use std::sync::mpsc;

/// Bytes that a seed makes its own (splitmix64).
fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        out.extend((z ^ z >> 31).to_le_bytes());
    }
    out
}

/// Accesses of one run, and runs. `FUZZ_SEED` and `FUZZ_RUNS` take others.
const ACCESSES: u64 = 100;
const RUNS: u64 = 100;

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.and_then(|v| v.parse().ok()).unwrap_or(default)
}

/// Far more than the whole takes on a slow machine: what is not done by
/// then hangs.
const LIMIT: Duration = Duration::from_secs(600);

#[test]
fn ten_thousand_random_accesses() {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let (seed, runs) = (number("FUZZ_SEED", 0x1592), number("FUZZ_RUNS", RUNS));
        let mut total = Report::default();
        for n in 0..runs {
            let seed = seed.wrapping_add(n << 32);
            let guard = Announce(seed);
            total.add(run(&bytes(seed, 64 << 10), ACCESSES));
            std::mem::forget(guard);
        }
        let _ = done.send((runs, total));
    });
    let (runs, total) = wait
        .recv_timeout(LIMIT)
        .expect("a run panicked or did not end; its seed is printed above");
    println!("{total:?}");
    assert_eq!(total.accesses, runs * ACCESSES);
    let ended = total.effects + total.violations + total.errors;
    assert_eq!(ended, total.accesses);
    assert_eq!(total.unnoticed, Vec::<String>::new());
    // All three happen, or the fuzzer does not reach what it should.
    for count in [total.effects, total.violations, total.errors] {
        assert!(count * 50 > total.accesses, "{total:?}");
    }
    // The deep parts were reached: work was done, refused and flushed,
    // commands and frames passed, queue pairs failed in many ways.
    let count = |event: &str| total.events.get(event).copied().unwrap_or(0);
    for event in ["cqe", "ceqe", "wqe", "qp_state", "cqp", "aq", "tx", "rx"] {
        assert!(count(event) >= 20 * runs / RUNS, "{event}: {total:?}");
    }
    for command in [
        "CREATE_QP",
        "CREATE_CQ",
        "MODIFY_CQ",
        "CREATE_CEQ",
        "CREATE_AEQ",
        "REG_MR",
        "CREATE_MCAST_GRP",
        "UPDATE_PE_SDS",
    ] {
        let did = count(&format!("did {command}"));
        assert!(did >= 2 * runs / RUNS, "{command}: {total:?}");
    }
    let codes = total.events.keys().filter(|e| e.starts_with("aeqe 0x"));
    assert!(codes.count() >= 15, "{total:?}");
    // What must be noticed was asked for often.
    assert!(total.wrong >= 100 * runs / RUNS, "{total:?}");
    assert!(total.queued <= QUEUED, "{total:?}");
    assert!(total.slowest < Duration::from_secs(20), "{total:?}");
}

/// Says the seed if a run panics.
struct Announce(u64);

impl Drop for Announce {
    fn drop(&mut self) {
        eprintln!("FUZZ_SEED={} FUZZ_RUNS=1 repeats it", self.0);
    }
}
