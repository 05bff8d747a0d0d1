// SPDX-License-Identifier: GPL-2.0
//! Protocol counters and the buffer that GATHER_STATS fills.

/// A counter of the protocol engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counter {
    Ip4RxOctets,
    Ip4RxPackets,
    Ip4RxDiscards,
    Ip4RxMcastOctets,
    Ip4RxMcastPackets,
    Ip6RxOctets,
    Ip6RxPackets,
    Ip6RxDiscards,
    Ip6RxMcastOctets,
    Ip6RxMcastPackets,
    Ip4TxOctets,
    Ip4TxPackets,
    Ip4TxMcastOctets,
    Ip4TxMcastPackets,
    Ip6TxOctets,
    Ip6TxPackets,
    Ip6TxMcastOctets,
    Ip6TxMcastPackets,
    Ip4TxNoRoute,
    Ip6TxNoRoute,
    UdpRxPackets,
    UdpTxPackets,
    RdmaRxWrites,
    RdmaRxReads,
    RdmaRxSends,
    RdmaTxWrites,
    RdmaTxReads,
    RdmaTxSends,
    RdmaBinds,
    RdmaInvalidates,
    RxEcnMarked,
    RxCnpHandled,
    TxCnpSent,
}

/// Where a counter lies in the buffer: byte offset, shift, width in bits.
const fn place(counter: Counter) -> (usize, u32, u32) {
    use Counter::*;
    match counter {
        Ip4RxOctets => (8, 0, 48),
        Ip4RxPackets => (16, 0, 48),
        Ip4RxDiscards => (24, 32, 32),
        Ip4RxMcastOctets => (40, 0, 48),
        Ip4RxMcastPackets => (48, 0, 48),
        Ip6RxOctets => (56, 0, 48),
        Ip6RxPackets => (64, 0, 48),
        Ip6RxDiscards => (72, 32, 32),
        Ip6RxMcastOctets => (88, 0, 48),
        Ip6RxMcastPackets => (96, 0, 48),
        Ip4TxOctets => (104, 0, 48),
        Ip4TxPackets => (112, 0, 48),
        Ip4TxMcastOctets => (128, 0, 48),
        Ip4TxMcastPackets => (136, 0, 48),
        Ip6TxOctets => (144, 0, 48),
        Ip6TxPackets => (152, 0, 48),
        Ip6TxMcastOctets => (168, 0, 48),
        Ip6TxMcastPackets => (176, 0, 48),
        Ip4TxNoRoute => (184, 32, 24),
        Ip6TxNoRoute => (184, 0, 24),
        UdpRxPackets => (224, 0, 48),
        UdpTxPackets => (232, 0, 48),
        RdmaRxWrites => (240, 0, 48),
        RdmaRxReads => (248, 0, 48),
        RdmaRxSends => (256, 0, 48),
        RdmaTxWrites => (264, 0, 48),
        RdmaTxReads => (272, 0, 48),
        RdmaTxSends => (280, 0, 48),
        RdmaBinds => (288, 0, 48),
        RdmaInvalidates => (296, 0, 48),
        RxEcnMarked => (304, 0, 56),
        RxCnpHandled => (312, 0, 32),
        TxCnpSent => (320, 0, 32),
    }
}

/// Length of the gather buffer that the device writes, bytes.
pub(crate) const BUFFER: usize = 328;

/// The counters of one function, held as the device hands them out.
#[derive(Debug, Clone)]
pub(crate) struct Stats {
    words: [u64; BUFFER / 8],
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            words: [0; BUFFER / 8],
        }
    }
}

impl Stats {
    /// Adds to a counter, which wraps at its width.
    pub fn add(&mut self, counter: Counter, amount: u64) {
        let (offset, shift, width) = place(counter);
        let mask = (1u64 << width) - 1;
        if let Some(word) = self.words.get_mut(offset / 8) {
            let value = ((*word >> shift) & mask).wrapping_add(amount) & mask;
            *word = (*word & !(mask << shift)) | (value << shift);
        }
    }

    /// The gather buffer.
    pub fn buffer(&self) -> [u8; BUFFER] {
        let mut bytes = [0; BUFFER];
        for (to, word) in bytes.chunks_exact_mut(8).zip(self.words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_lie_where_the_driver_looks() {
        let mut stats = Stats::default();
        stats.add(Counter::RdmaTxSends, 5);
        stats.add(Counter::Ip4RxDiscards, 0xffff_ffff);
        stats.add(Counter::Ip4RxDiscards, 3);
        let buffer = stats.buffer();
        assert_eq!(buffer[280], 5);
        // The upper half of its word, which wraps by itself.
        assert_eq!(&buffer[24..32], &[0, 0, 0, 0, 2, 0, 0, 0]);
    }
}
