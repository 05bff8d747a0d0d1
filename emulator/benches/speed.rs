// SPDX-License-Identifier: GPL-2.0
//! How fast data passes between two functions on one wire, in one thread:
//! `cargo bench`.
// What the macros of criterion make has no documentation.
#![allow(missing_docs)]

use criterion::{criterion_group, criterion_main, Criterion, Throughput};
use irdma_emulator::testing::load::{Load, BATCH};
use irdma_emulator::testing::pair::LEN;
use std::hint::black_box;

const MIB: usize = 1 << 20;

/// Offsets that walk through the data, a MiB a step, so that no cache holds it.
fn walk() -> impl FnMut() -> u64 {
    let mut next = 0;
    move || {
        next += MIB as u64;
        next % LEN
    }
}

fn large(c: &mut Criterion) {
    let mut group = c.benchmark_group("1 MiB");
    group.throughput(Throughput::Bytes(MIB as u64));
    let (source, mut copy) = (vec![1u8; LEN as usize], vec![2u8; LEN as usize]);
    let mut at = walk();
    group.bench_function("memcpy", |b| {
        b.iter(|| {
            let at = at() as usize;
            copy[at..at + MIB].copy_from_slice(black_box(&source[at..at + MIB]));
            black_box(&mut copy);
        });
    });
    let mut load = Load::new(1, 4096);
    load.fill();
    let mut at = walk();
    group.bench_function("RDMA WRITE", |b| b.iter(|| load.write(at(), MIB as u32)));
    group.bench_function("RDMA READ", |b| b.iter(|| load.read(at(), MIB as u32)));
    load.assert_clean();
}

fn small(c: &mut Criterion) {
    let mut group = c.benchmark_group("64-byte sends");
    let mut load = Load::new(1, 4096);
    group.throughput(Throughput::Elements(BATCH));
    group.bench_function("1 QP", |b| b.iter(|| load.sends(0)));
    load.assert_clean();
    let mut load = Load::new(1000, 4096);
    group.throughput(Throughput::Elements(1000));
    group.bench_function("1,000 QPs", |b| b.iter(|| load.send_on_each()));
    load.assert_clean();
}

criterion_group!(benches, large, small);
criterion_main!(benches);
