// SPDX-License-Identifier: GPL-2.0
//! Traffic classes. The firmware has no LLDP agent, so the driver decides
//! about the port's classes and tells the firmware by setting what the port
//! would announce: an LLDP data unit with the "ETS configuration" of IEEE
//! 802.1Qaz (802.1Q-2018, D.2.9).

/// Traffic classes and user priorities of a port.
pub const CLASSES: usize = 8;

/// What a port does with priorities and bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ets {
    /// The class of each user priority.
    pub class: [u8; CLASSES],
    /// The share of the bandwidth of each class, percent.
    pub share: [u8; CLASSES],
}

impl Default for Ets {
    /// All priorities in class 0, which has all of the bandwidth.
    fn default() -> Self {
        let mut share = [0; CLASSES];
        share[0] = 100;
        Ets {
            class: [0; CLASSES],
            share,
        }
    }
}

impl Ets {
    /// Finds the configuration in a data unit's elements: type (7 bits) and
    /// length (9 bits), contents.
    pub fn find(mut unit: &[u8]) -> Option<Self> {
        const ORGANIZATION: u16 = 127;
        const ETS: [u8; 4] = [0x00, 0x80, 0xc2, 9];
        while let Some((head, rest)) = unit.split_first_chunk::<2>() {
            let head = u16::from_be_bytes(*head);
            let (kind, len) = (head >> 9, usize::from(head & 0x1ff));
            let content = rest.get(..len)?;
            if kind == 0 {
                return None;
            }
            match content.strip_prefix(&ETS) {
                Some(ets) if kind == ORGANIZATION => return Self::parse(ets),
                _ => unit = rest.get(len..)?,
            }
        }
        None
    }

    /// Flags, the classes of two priorities a byte, shares, and how each class
    /// is chosen, which nothing here depends on.
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut ets = Ets::default();
        for (n, class) in ets.class.iter_mut().enumerate() {
            let pair = bytes.get(1 + n / 2)?;
            let nibble = if n % 2 == 0 { pair >> 4 } else { pair & 0xf };
            *class = nibble & 7;
        }
        ets.share.copy_from_slice(bytes.get(5..13)?);
        Some(ets)
    }

    /// Whether a priority belongs to this class; class 0 is always there.
    pub fn uses(&self, class: usize) -> bool {
        class == 0 || self.class.iter().any(|&c| usize::from(c) == class)
    }

    /// The classes of all user priorities, three bits each.
    pub fn classes(&self) -> u32 {
        (self.class.iter().rev()).fold(0, |classes, &class| classes << 3 | u32::from(class))
    }

    /// The class of a VLAN tag's priority.
    pub fn class_of(&self, tag: u16) -> u8 {
        self.class
            .get(usize::from(tag >> 13))
            .copied()
            .unwrap_or_default()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A data unit as the driver makes it: priorities 0 to 2 in class 0, 3 and
    /// 4 in class 1, the others in class 2.
    pub fn unit() -> Vec<u8> {
        let mut unit = vec![0xfe, 25, 0x00, 0x80, 0xc2, 9, 3];
        unit.extend([0x00, 0x01, 0x12, 0x22]);
        unit.extend([50, 30, 20, 0, 0, 0, 0, 0]);
        unit.extend([2, 2, 2, 0, 0, 0, 0, 0]);
        // Priority flow control, and the end.
        unit.extend([0xfe, 6, 0x00, 0x80, 0xc2, 11, 8, 0]);
        unit.extend([0, 0]);
        unit
    }

    #[test]
    fn the_configuration_is_found_among_others() {
        let want = Ets {
            class: [0, 0, 0, 1, 1, 2, 2, 2],
            share: [50, 30, 20, 0, 0, 0, 0, 0],
        };
        assert_eq!(Ets::find(&unit()), Some(want));
        let mut behind = vec![0x02, 3, 1, 2, 3];
        behind.extend(unit());
        assert_eq!(Ets::find(&behind), Some(want));
        assert!(want.uses(0) && want.uses(2) && !want.uses(3));
        assert_eq!((want.class_of(0x6005), want.class_of(0xe000)), (1, 2));
    }

    #[test]
    fn what_is_cut_off_is_none() {
        for len in 0..27 {
            assert_eq!(Ets::find(&unit()[..len]), None, "{len}");
        }
        assert_eq!(Ets::find(&[0, 0]), None);
        assert_eq!(Ets::find(&[0xff, 0xff, 0, 0]), None);
    }
}
