// SPDX-License-Identifier: GPL-2.0
//! Work for benchmarks, between the two functions of a [`Pair`].

use super::pair::{entry, Pair, LEN, STAG, VA};
use crate::rdma::wqe::op;
use crate::trace::Trace;

/// Bytes of a send of [`Load::sends`].
pub const SMALL: u32 = 64;
/// Sends of one doorbell.
pub const BATCH: u64 = 32;

/// A pair at work, and how many completions it has seen.
pub struct Load {
    pair: Pair,
    seen: [u64; 2],
}

impl Load {
    /// A pair with so many connections, whose packets carry `mtu` bytes.
    pub fn new(qps: u32, mtu: u16) -> Self {
        Load {
            pair: Pair::new(qps, mtu, Trace::off()),
            seen: [0; 2],
        }
    }

    /// Fills the data of both ports, so that its memory is there.
    pub fn fill(&mut self) {
        for port in 0..2 {
            let data = self.pair.ports[port].data;
            self.pair.put(port, data, &vec![port as u8; LEN as usize]);
        }
    }

    fn consume(&mut self, port: usize, expected: u64) {
        let seen = self.pair.consume(port, self.seen[port]);
        assert_eq!(seen - self.seen[port], expected, "completions");
        self.seen[port] = seen;
    }

    /// One RDMA WRITE from `offset` of the data of port 0 to the same place of
    /// port 1, until it is completed.
    pub fn write(&mut self, offset: u64, len: u32) {
        self.large(op::WRITE, offset, len);
    }

    /// One RDMA READ by port 0, from `offset` of the data of port 1 to the
    /// same place, until it is completed.
    pub fn read(&mut self, offset: u64, len: u32) {
        self.large(op::READ, offset, len);
    }

    fn large(&mut self, opcode: u8, offset: u64, len: u32) {
        let entry = entry(opcode, offset, len, STAG.into(), VA + offset);
        self.pair.post(0, 0, &entry);
        self.pair.ring(0, 0);
        self.consume(0, 1);
    }

    /// [`BATCH`] small sends over connection number `qp`, until they are
    /// completed on both sides.
    pub fn sends(&mut self, qp: usize) {
        for n in 0..BATCH {
            self.pair.post_receive(1, qp, n * 64, SMALL);
            self.pair.post(0, qp, &entry(op::SEND, n * 64, SMALL, 0, 0));
        }
        self.pair.ring(0, qp);
        self.consume(0, BATCH);
        self.consume(1, BATCH);
    }

    /// One small send over each connection, until all are completed.
    pub fn send_on_each(&mut self) -> u64 {
        // The last one of the list is for datagrams.
        let count = self.pair.ports[0].qps.len() - 1;
        for qp in 0..count {
            let offset = qp as u64 * 64;
            self.pair.post_receive(1, qp, offset, SMALL);
            self.pair.post(0, qp, &entry(op::SEND, offset, SMALL, 0, 0));
        }
        for qp in 0..count {
            self.pair.ring(0, qp);
        }
        let count = count as u64;
        self.consume(0, count);
        self.consume(1, count);
        count
    }

    /// The driver did nothing wrong.
    pub fn assert_clean(&mut self) {
        assert_eq!(self.pair.machine.violations().all(), []);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::time::{clock_gettime, ClockId};
    use std::hint::black_box;

    /// Seconds that this thread has computed: others on the machine do not
    /// count.
    fn computed() -> f64 {
        let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
        time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9
    }

    fn timed(f: impl FnOnce()) -> f64 {
        let start = computed();
        f();
        computed() - start
    }

    /// The shortest of many rounds each, which take turns: a busy machine
    /// makes some slower, but none faster.
    fn shortest<const N: usize>(rounds: u32, mut work: [&mut dyn FnMut(); N]) -> [f64; N] {
        let mut best = [f64::INFINITY; N];
        for _ in 0..rounds {
            for (work, best) in work.iter_mut().zip(&mut best) {
                *best = best.min(timed(work));
            }
        }
        best
    }

    /// Offsets that walk through `span` bytes, a MiB a step.
    fn walk(span: u64) -> impl FnMut() -> u64 {
        let mut next = 0;
        move || {
            let offset = next % span;
            next += 1 << 20;
            offset
        }
    }

    /// Prints the figures of the README; asserts nothing, since they depend on
    /// the machine: `cargo test --release --lib speed -- --ignored --nocapture`.
    #[test]
    #[ignore = "measures"]
    fn speed_of_large_messages() {
        const MIB: usize = 1 << 20;
        let mut load = Load::new(1, 4096);
        let (source, mut copy) = (vec![1u8; LEN as usize], vec![2u8; LEN as usize]);
        load.fill();
        // In the processor's cache, and through all of the data.
        for (name, span) in [("the same MiB", 1 << 20), ("32 MiB in turn", LEN)] {
            let (mut from, mut at, mut there) = (walk(span), walk(span), walk(span));
            let mut memcpy = || {
                let from = from() as usize;
                copy[from..from + MIB].copy_from_slice(black_box(&source[from..from + MIB]));
                black_box(&mut copy);
            };
            let [plain, write] = shortest(300, [&mut memcpy, &mut || load.write(at(), MIB as u32)]);
            let [_, read] = shortest(300, [&mut memcpy, &mut || load.read(there(), MIB as u32)]);
            let rate = |seconds: f64| MIB as f64 / seconds / 1e9;
            let percent = |time: f64| 100.0 * plain / time;
            println!(
                "1 MiB, {name}: memcpy {:.2} GB/s, WRITE {:.2} GB/s ({:.0} %), READ {:.2} GB/s ({:.0} %)",
                rate(plain),
                rate(write),
                percent(write),
                rate(read),
                percent(read)
            );
        }
        load.assert_clean();
    }

    #[test]
    #[ignore = "measures"]
    fn speed_of_small_messages() {
        let mut load = Load::new(1, 4096);
        let [batch] = shortest(5000, [&mut || load.sends(0)]);
        println!("64-byte sends: {:.0}/s", BATCH as f64 / batch);
        load.assert_clean();
    }

    #[test]
    #[ignore = "measures"]
    fn speed_with_many_queue_pairs() {
        let mut load = Load::new(1000, 4096);
        let [each] = shortest(
            50,
            [&mut || {
                load.send_on_each();
            }],
        );
        println!("64-byte sends over 1,000 QPs: {:.0}/s", 1000.0 / each);
        load.assert_clean();
    }

    /// A small form of the same, which is checked.
    #[test]
    fn loads_complete() {
        let mut load = Load::new(40, 4096);
        load.write(0, 1 << 20);
        load.read(1 << 20, 1 << 20);
        for _ in 0..10 {
            load.sends(3);
        }
        assert_eq!(load.send_on_each(), 40);
        load.assert_clean();
    }
}
