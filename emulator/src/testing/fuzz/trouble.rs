// SPDX-License-Identifier: GPL-2.0
//! What goes wrong around a driver: faults, resets, incidents, memory that
//! changes, time that passes.

use super::input::Input;
use super::Fuzzer;
use crate::faults::{Action, Point, Rule};
use crate::nic::Incident;
use crate::wire::{Message, When, WireFaults};

impl Fuzzer<'_> {
    /// Memory changes under the device's hands.
    pub(super) fn disturb(&mut self, port: usize) {
        let at = self.address(port).wrapping_add(self.input.below(64) * 8);
        let value = self.input.value();
        if let Some(memory) = self.machine().memory(port) {
            // An address outside is no memory to change.
            let _ = memory.write_u64(at, value);
        }
    }

    pub(super) fn wait(&mut self) {
        let next = self.machine().next_deadline();
        self.pair.now = match (next, self.input.byte() % 4) {
            (Some(at), 0..=2) => self.pair.now.max(at),
            _ => self.pair.now + self.input.below(1 << 16) * 1000,
        };
        let now = self.pair.now;
        self.machine().poll(now);
    }

    pub(super) fn fault(&mut self, port: usize) {
        if self.input.chance(2) {
            let when = |input: &mut Input<'_>| When {
                rate: 0.0,
                nth: vec![1 + input.below(4)],
            };
            let mut faults = WireFaults::default();
            match self.input.byte() % 5 {
                0 => faults.loss = when(&mut self.input),
                1 => faults.duplicate = when(&mut self.input),
                2 => faults.corrupt = when(&mut self.input),
                3 => faults.reorder = when(&mut self.input),
                _ => faults.delay = self.input.below(1 << 16),
            }
            self.machine().wire().set_faults(port, faults, 1);
            return;
        }
        let point = self.input.pick(&[
            Point::AdminCommand,
            Point::CqpCommand,
            Point::Cqe,
            Point::Ceqe,
            Point::Aeqe,
            Point::Interrupt,
        ]);
        let action = match self.input.byte() % 5 {
            0 => Action::Drop,
            1 => Action::Duplicate,
            2 => Action::Delay(self.input.value()),
            3 => Action::Fail(self.input.word() as u32),
            _ => Action::Corrupt(self.input.word()),
        };
        let rule = Rule {
            point,
            key: None,
            skip: self.input.below(3),
            times: 1,
            action,
        };
        if let Some(faults) = self.machine().faults(port) {
            faults.clear();
            faults.add(rule);
        }
    }

    pub(super) fn reset(&mut self, port: usize) {
        let now = self.pair.now;
        match self.input.byte() % 9 {
            0 => self.machine().reset(port, now),
            1 => self.pair.write_named(port, "PFGEN_CTRL", 0, 1),
            2 => self.pair.write_named(port, "GLGEN_RTRIG", 0, 1),
            3 => {
                let up = self.input.chance(2);
                self.machine().set_link(port, up, now);
            }
            4 => {
                self.machine()
                    .incident(port, Incident::CriticalError(7), now);
            }
            5 => {
                let event = Incident::AsyncEvent {
                    code: self.input.word() as u16 & 0xfff,
                    source: self.input.byte() & 0xf,
                    id: self.input.pick(&[8, 9, 10, 4, 3, 1000]),
                };
                self.machine().incident(port, event, now);
            }
            6 => {
                self.machine().incident(port, Incident::CoreReset, now);
            }
            7 => {
                let up = self.input.chance(2);
                self.machine().message(Message::Link(port, up), now);
            }
            _ => {
                let error = Incident::HmcError { info: 1, data: 2 };
                self.machine().incident(port, error, now);
            }
        }
    }
}
