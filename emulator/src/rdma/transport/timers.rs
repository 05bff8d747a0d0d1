// SPDX-License-Identifier: GPL-2.0
//! Times of the transport, in nanoseconds.

/// The code that this device puts into its RNR NAKs: 20.48 ms. The generation
/// 2 context has no field for it, so it is a property of the device.
pub(crate) const RNR_CODE: u8 = 22;

/// Between two congestion notifications of one queue pair.
pub(crate) const CNP_INTERVAL: u64 = 50_000;

/// A retry limit that means for ever (RNR only; IBA 9.7.5.2.8).
pub(crate) const RNR_FOREVER: u8 = 7;

/// RNR NAK timer codes in units of 10 microseconds (IBA table 45).
#[rustfmt::skip]
const RNR_TIMES: [u32; 32] = [
    65536,    1,    2,     3,     4,     6,     8,    12,
       16,   24,   32,    48,    64,    96,   128,   192,
      256,  384,  512,   768,  1024,  1536,  2048,  3072,
     4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

/// How long a requester waits after an RNR NAK with this code.
pub(crate) fn rnr_time(code: u8) -> u64 {
    u64::from(RNR_TIMES[usize::from(code & 0x1f)]) * 10_000
}

/// What a requester knows of the time that answers take.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrip {
    /// Smoothed, and its mean deviation.
    mean: u64,
    deviation: u64,
}

impl RoundTrip {
    /// Takes a measurement in (the weights are TCP's, RFC 6298).
    pub(crate) fn measured(&mut self, time: u64) {
        if self.mean == 0 {
            self.mean = time;
            self.deviation = time / 2;
        } else {
            let off = self.mean.abs_diff(time);
            self.deviation = (self.deviation * 3 + off) / 4;
            self.mean = (self.mean * 7 + time) / 8;
        }
    }

    /// How long to wait for an answer before sending again: what answers
    /// take, at least the context's minimum in milliseconds, doubled with each
    /// retry in a row.
    pub(crate) fn retry_time(&self, rto_min: u8, retries_in_a_row: u8) -> u64 {
        let minimum = u64::from(rto_min.max(1)) * 1_000_000;
        let base = (self.mean + 4 * self.deviation).clamp(minimum, 2_000_000_000);
        base << retries_in_a_row.min(8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_specification() {
        assert_eq!(rnr_time(0), 655_360_000);
        assert_eq!(rnr_time(1), 10_000);
        assert_eq!(rnr_time(12), 640_000);
        assert_eq!(rnr_time(14), 1_280_000);
        assert_eq!(rnr_time(RNR_CODE), 20_480_000);
        assert_eq!(rnr_time(31), 491_520_000);
    }

    #[test]
    fn retries_back_off() {
        let unknown = RoundTrip::default();
        assert_eq!(unknown.retry_time(5, 0), 5_000_000);
        assert_eq!(unknown.retry_time(5, 3), 40_000_000);
        assert_eq!(unknown.retry_time(0, 0), 1_000_000);
        assert_eq!(unknown.retry_time(127, 255), 127_000_000 << 8);
        let mut slow = RoundTrip::default();
        slow.measured(100_000_000);
        assert_eq!(slow.retry_time(5, 0), 300_000_000);
        for _ in 0..100 {
            slow.measured(1000);
        }
        assert_eq!(slow.retry_time(5, 0), 5_000_000);
    }
}
