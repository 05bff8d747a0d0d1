// SPDX-License-Identifier: GPL-2.0
//! Statistics of the port and of each VSI.

use std::collections::BTreeMap;

/// What a traffic counter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    /// Octets, frame checksum included.
    Bytes,
    /// Frames to one station.
    Unicast,
    /// Frames to a group.
    Multicast,
    /// Frames to everybody.
    Broadcast,
    /// Frames of a size class: up to 64, 127, 255, 511, 1023, 1522, 9522.
    Size(u8),
}

/// A statistics register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stat {
    /// What the port received.
    PortRx(Amount),
    /// What the port sent.
    PortTx(Amount),
    /// Frames larger than the link takes.
    PortRxOversize,
    /// Frames not sent because the link was down.
    PortTxLinkDown,
    /// What a VSI received.
    VsiRx(Amount),
    /// What a VSI sent.
    VsiTx(Amount),
    /// Frames for a VSI that had no buffer.
    VsiRxDiscards,
    /// Frames that a VSI could not send.
    VsiTxErrors,
    /// Something that does not happen here.
    Zero,
}

/// Upper bounds of the size classes, in octets with the checksum.
const SIZES: [usize; 7] = [64, 127, 255, 511, 1023, 1522, 9522];
const CHECKSUM: usize = 4;

/// Traffic in one direction.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    bytes: u64,
    unicast: u64,
    multicast: u64,
    broadcast: u64,
    sizes: [u64; SIZES.len()],
}

impl Traffic {
    /// Counts a frame (without checksum).
    pub fn count(&mut self, frame: &[u8]) {
        let len = frame.len() + CHECKSUM;
        self.bytes += len as u64;
        match frame.get(..6) {
            Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => self.broadcast += 1,
            Some([first, ..]) if first & 1 != 0 => self.multicast += 1,
            _ => self.unicast += 1,
        }
        let class = SIZES.iter().position(|&max| len <= max);
        if let Some(n) = class.and_then(|class| self.sizes.get_mut(class)) {
            *n += 1;
        }
    }

    fn get(&self, amount: Amount) -> u64 {
        match amount {
            Amount::Bytes => self.bytes,
            Amount::Unicast => self.unicast,
            Amount::Multicast => self.multicast,
            Amount::Broadcast => self.broadcast,
            Amount::Size(class) => self.sizes.get(usize::from(class)).copied().unwrap_or(0),
        }
    }
}

/// The counters of one VSI.
#[derive(Clone, Debug, Default)]
pub struct VsiStats {
    /// Received.
    pub rx: Traffic,
    /// Sent.
    pub tx: Traffic,
    /// Frames that found no buffer.
    pub rx_discards: u64,
    /// Frames that could not be sent.
    pub tx_errors: u64,
}

/// All counters of a function. They survive a function reset, as the device's
/// do; drivers look at differences.
#[derive(Clone, Debug, Default)]
pub struct Stats {
    /// Received by the port.
    pub rx: Traffic,
    /// Sent by the port.
    pub tx: Traffic,
    /// Frames larger than the link takes.
    pub rx_oversize: u64,
    /// Frames not sent because the link was down.
    pub tx_link_down: u64,
    vsis: BTreeMap<u16, VsiStats>,
}

impl Stats {
    /// The counters of VSI `number`.
    pub fn vsi(&mut self, number: u16) -> &mut VsiStats {
        self.vsis.entry(number).or_default()
    }

    /// Reads a statistics register. The emulated port is port 0 of its device.
    pub fn read(&self, stat: Stat, index: u32) -> u64 {
        let vsi = u16::try_from(index)
            .ok()
            .and_then(|index| self.vsis.get(&index));
        let of_vsi = |f: fn(&VsiStats) -> u64| vsi.map_or(0, f);
        match stat {
            Stat::VsiRx(amount) => vsi.map_or(0, |v| v.rx.get(amount)),
            Stat::VsiTx(amount) => vsi.map_or(0, |v| v.tx.get(amount)),
            Stat::VsiRxDiscards => of_vsi(|v| v.rx_discards),
            Stat::VsiTxErrors => of_vsi(|v| v.tx_errors),
            _ if index != 0 => 0,
            Stat::PortRx(amount) => self.rx.get(amount),
            Stat::PortTx(amount) => self.tx.get(amount),
            Stat::PortRxOversize => self.rx_oversize,
            Stat::PortTxLinkDown => self.tx_link_down,
            Stat::Zero => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_by_class() {
        let mut stats = Stats::default();
        let mut frame = vec![0u8; 60];
        stats.rx.count(&frame);
        frame[0] = 1;
        frame.resize(1514, 0);
        stats.rx.count(&frame);
        frame[..6].fill(0xff);
        stats.rx.count(&frame);
        stats.vsi(3).rx.count(&frame);
        let rx = |amount| stats.read(Stat::PortRx(amount), 0);
        assert_eq!(rx(Amount::Bytes), 64 + 2 * 1518);
        assert_eq!(
            (
                rx(Amount::Unicast),
                rx(Amount::Multicast),
                rx(Amount::Broadcast)
            ),
            (1, 1, 1)
        );
        assert_eq!((rx(Amount::Size(0)), rx(Amount::Size(5))), (1, 2));
        assert_eq!(stats.read(Stat::VsiRx(Amount::Broadcast), 3), 1);
        assert_eq!(stats.read(Stat::PortRx(Amount::Bytes), 1), 0);
    }
}
