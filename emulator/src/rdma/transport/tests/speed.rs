// SPDX-License-Identifier: GPL-2.0
//! How fast the data path is: figures, no judgement (they depend on the
//! machine). `cargo test --release --lib speed -- --ignored --nocapture`.

use super::device::{carry, pair, piece, STAG, VA};
use super::rig::entry;
use crate::rdma::wqe::op;

use std::time::Instant;

/// Rounds of [`measure`].
const ROUNDS: u32 = 200;

#[test]
#[ignore = "measures"]
fn speed() {
    let (mut a, mut b) = pair();
    for port in [&mut a, &mut b] {
        port.set_mtu(4096);
    }
    let len = 1 << 20;
    let mut copy = vec![1u8; len];
    let source = a.bytes(0, len);
    let start = Instant::now();
    for _ in 0..ROUNDS {
        copy.copy_from_slice(std::hint::black_box(&source));
        std::hint::black_box(&mut copy);
    }
    let memcpy = start.elapsed();

    let start = Instant::now();
    for _ in 0..ROUNDS {
        a.post_round(&entry(op::WRITE, &[piece(0, len as u32)], None, STAG, VA));
        a.ring();
        carry(&mut a, &mut b);
        a.consume();
    }
    let writes = start.elapsed();
    let gigabytes =
        |time: std::time::Duration| f64::from(ROUNDS) * len as f64 / time.as_secs_f64() / 1e9;
    println!(
        "1 MiB writes: {:.2} GB/s, memcpy {:.2} GB/s: {:.0} %",
        gigabytes(writes),
        gigabytes(memcpy),
        100.0 * memcpy.as_secs_f64() / writes.as_secs_f64()
    );

    let sends = 200_000;
    let start = Instant::now();
    for n in 0..sends / 32 {
        for _ in 0..32 {
            b.receive_round(0, 64);
            a.post_round(&entry(op::SEND, &[piece(n % 64, 64)], None, 0, 0));
        }
        a.ring();
        carry(&mut a, &mut b);
        a.consume();
        b.consume();
    }
    println!(
        "64 byte sends: {:.0}/s",
        sends as f64 / start.elapsed().as_secs_f64()
    );
    assert_eq!(a.driver.violations(), Vec::<String>::new());
    assert_eq!(b.driver.violations(), Vec::<String>::new());
}
