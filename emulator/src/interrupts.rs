// SPDX-License-Identifier: GPL-2.0
//! The interrupt block of a function: MSI-X vectors with the automask of
//! GLINT_DYN_CTL, and the "other cause" register PFINT_OICR.
//!
//! A vector has three states that keep an event apart from its message:
//! enabled or not (the driver's INTENA), an event waiting for the enable
//! (`pending`), and a message waiting for an eventfd (`latched`), which the
//! client takes away and gives back while it changes its set of vectors.

use std::fs::File;
use std::io::Write;

use crate::bits::bit;

/// Bits of GLINT_DYN_CTL.
mod dyn_ctl {
    pub const INTENA: u32 = 0;
    pub const SWINT_TRIG: u32 = 2;
    pub const INTENA_MSK: u32 = 31;
}

/// Bits of PFINT_OICR that the emulator raises.
pub mod cause {
    /// A malicious driver was detected.
    pub const MAL_DETECT: u32 = 1 << 19;
    /// A global reset is under way.
    pub const GRST: u32 = 1 << 20;
    /// A PCI error.
    pub const PCI_EXCEPTION: u32 = 1 << 21;
    /// The HMC found an error.
    pub const HMC_ERR: u32 = 1 << 26;
    /// The protocol engine found an uncorrectable error.
    pub const PE_CRITERR: u32 = 1 << 28;
    /// The driver asked for an interrupt by writing PFINT_OICR_CTL.
    pub const SWINT: u32 = 1 << 31;
}

#[derive(Debug, Default)]
struct Vector {
    enabled: bool,
    pending: bool,
    latched: bool,
    event: Option<File>,
    messages: u64,
}

impl Vector {
    fn fire_if_due(&mut self) {
        if !(self.enabled && self.pending) {
            return;
        }
        self.enabled = false;
        self.pending = false;
        self.messages += 1;
        self.latched = true;
        self.send();
    }

    fn send(&mut self) {
        if !self.latched {
            return;
        }
        if let Some(event) = &mut self.event {
            // An eventfd only refuses when its counter is full: then the
            // message is already waiting.
            let _ = event.write(&1u64.to_ne_bytes());
            self.latched = false;
        }
    }
}

/// The interrupt block of one function.
#[derive(Debug)]
pub struct Interrupts {
    vectors: Vec<Vector>,
    /// PFINT_OICR, PFINT_OICR_ENA and PFINT_OICR_CTL.
    causes: u32,
    causes_enabled: u32,
    causes_control: u32,
}

/// CAUSE_ENA of every interrupt cause control register.
pub const CAUSE_ENABLE: u32 = 1 << 30;
/// MSIX_INDX of every interrupt cause control register.
pub const CAUSE_VECTOR: u32 = 0x7ff;

impl Interrupts {
    /// Returns a block with `vectors` vectors, all disabled.
    pub fn new(vectors: u16) -> Self {
        Interrupts {
            vectors: (0..vectors).map(|_| Vector::default()).collect(),
            causes: 0,
            causes_enabled: 0,
            causes_control: 0,
        }
    }

    /// Returns the number of vectors.
    pub fn count(&self) -> u16 {
        self.vectors.len() as u16
    }

    /// An event for `vector`. A vector that the function does not have is
    /// ignored, as the device does.
    pub fn raise(&mut self, vector: u16) {
        if let Some(v) = self.vectors.get_mut(usize::from(vector)) {
            v.pending = true;
            v.fire_if_due();
        }
    }

    /// An event whose cause control register (QINT_RQCTL, GLINT_CEQCTL, ...)
    /// holds `control`. Returns the vector raised, if the cause is enabled.
    pub fn raise_cause(&mut self, control: u32) -> Option<u16> {
        let vector = (control & CAUSE_VECTOR) as u16;
        (control & CAUSE_ENABLE != 0).then(|| {
            self.raise(vector);
            vector
        })
    }

    /// Sets bits of PFINT_OICR (see [`cause`]) and raises its vector if one
    /// of them is enabled.
    pub fn raise_other(&mut self, causes: u32) {
        self.causes |= causes;
        if self.causes & self.causes_enabled != 0 {
            self.raise_cause(self.causes_control);
        }
    }

    /// Reads PFINT_OICR, which clears it.
    pub fn take_other(&mut self) -> u32 {
        std::mem::take(&mut self.causes)
    }

    /// PFINT_OICR_ENA.
    pub fn other_enabled(&self) -> u32 {
        self.causes_enabled
    }

    /// Writes PFINT_OICR_ENA.
    pub fn set_other_enabled(&mut self, causes: u32) {
        self.causes_enabled = causes;
        self.raise_other(0);
    }

    /// PFINT_OICR_CTL.
    pub fn other_control(&self) -> u32 {
        self.causes_control
    }

    /// Writes PFINT_OICR_CTL.
    pub fn set_other_control(&mut self, control: u32) {
        self.causes_control = control;
        self.raise_other(0);
    }

    /// Reads GLINT_DYN_CTL of `vector`.
    pub fn read_dyn_ctl(&self, vector: u16) -> Option<u32> {
        let v = self.vectors.get(usize::from(vector))?;
        Some(u32::from(v.enabled) << dyn_ctl::INTENA)
    }

    /// Writes GLINT_DYN_CTL of `vector`. Returns false if there is no such
    /// vector.
    pub fn write_dyn_ctl(&mut self, vector: u16, value: u32) -> bool {
        let Some(v) = self.vectors.get_mut(usize::from(vector)) else {
            return false;
        };
        let value = u64::from(value);
        if !bit(value, dyn_ctl::INTENA_MSK) {
            v.enabled = bit(value, dyn_ctl::INTENA);
        }
        if bit(value, dyn_ctl::SWINT_TRIG) {
            v.pending = true;
        }
        v.fire_if_due();
        true
    }

    /// Gives `vector` the eventfd that delivers its message, or takes it away.
    /// Returns false if there is no such vector.
    pub fn set_event(&mut self, vector: u16, event: Option<File>) -> bool {
        let Some(v) = self.vectors.get_mut(usize::from(vector)) else {
            return false;
        };
        v.event = event;
        v.send();
        true
    }

    /// Takes all eventfds away.
    pub fn clear_events(&mut self) {
        for v in &mut self.vectors {
            v.event = None;
        }
    }

    /// Returns how many messages `vector` has sent since the start.
    pub fn messages(&self, vector: u16) -> u64 {
        self.vectors
            .get(usize::from(vector))
            .map_or(0, |v| v.messages)
    }

    /// Function reset: everything disabled and forgotten, except the
    /// eventfds, which belong to the client.
    pub fn reset(&mut self) {
        for v in &mut self.vectors {
            v.enabled = false;
            v.pending = false;
            v.latched = false;
        }
        self.causes = 0;
        self.causes_enabled = 0;
        self.causes_control = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::memory_file;
    use std::io::{Read, Seek};

    const ENABLE: u32 = 1;

    #[test]
    fn automask() {
        let mut irq = Interrupts::new(2);
        irq.raise(1);
        assert_eq!(irq.messages(1), 0);
        irq.write_dyn_ctl(1, ENABLE);
        assert_eq!((irq.messages(1), irq.read_dyn_ctl(1)), (1, Some(0)));
        irq.write_dyn_ctl(1, ENABLE);
        assert_eq!((irq.messages(1), irq.read_dyn_ctl(1)), (1, Some(1)));
        irq.raise(1);
        irq.raise(1);
        assert_eq!(irq.messages(1), 2);
        irq.write_dyn_ctl(1, ENABLE);
        assert_eq!(irq.messages(1), 3);
        irq.raise(2);
        assert!(!irq.write_dyn_ctl(2, ENABLE));
    }

    #[test]
    fn software_trigger_keeps_enable() {
        let mut irq = Interrupts::new(1);
        irq.write_dyn_ctl(0, 1 << 31 | 1 << 2);
        assert_eq!(irq.messages(0), 0);
        irq.write_dyn_ctl(0, ENABLE);
        assert_eq!(irq.messages(0), 1);
    }

    #[test]
    fn message_waits_for_its_eventfd() {
        let mut irq = Interrupts::new(1);
        irq.write_dyn_ctl(0, ENABLE);
        irq.raise(0);
        let mut file = memory_file(0);
        irq.set_event(0, Some(file.try_clone().unwrap()));
        let mut sent = vec![];
        file.rewind().unwrap();
        file.read_to_end(&mut sent).unwrap();
        assert_eq!(sent, 1u64.to_ne_bytes());
    }

    #[test]
    fn other_causes() {
        let mut irq = Interrupts::new(1);
        irq.write_dyn_ctl(0, ENABLE);
        irq.raise_other(cause::PE_CRITERR);
        irq.set_other_enabled(cause::PE_CRITERR);
        assert_eq!(irq.messages(0), 0);
        irq.set_other_control(CAUSE_ENABLE);
        assert_eq!(irq.messages(0), 1);
        assert_eq!(irq.take_other(), cause::PE_CRITERR);
        assert_eq!(irq.take_other(), 0);
    }
}
