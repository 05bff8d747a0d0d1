// SPDX-License-Identifier: GPL-2.0
//! The admin queue: descriptor rings between driver and firmware, and the
//! firmware's commands, a file a subject.
//!
//! A descriptor is 32 bytes, little endian: flags `u16`, opcode `u16`, buffer
//! length `u16`, return value `u16`, two cookies `u32`, 16 bytes of
//! parameters, whose last eight are the buffer's address (high half first) if
//! the command has one.

pub mod caps;
pub mod dcb;
pub mod link;
pub mod nvm;
pub mod package;
pub mod queues;
pub mod resources;
pub mod sched;
pub mod switch;

use serde_json::json;

use super::regs::Part;
use super::E810;
use crate::bits::{le16, le32, put};
use crate::context::Context;
use crate::faults::{Action, Point};

/// Size of a descriptor in bytes.
const DESCRIPTOR: u64 = 32;
/// Largest buffer of a command in bytes.
const BUFFER_MAX: usize = 4096;
/// A buffer longer than this must be marked as large.
const SMALL_BUFFER: usize = 512;
/// So many bytes of a buffer are traced.
const TRACED: usize = 128;
/// Enable bit of a queue's length register.
const QUEUE_ENABLE: u32 = 1 << 31;
/// "Critical error" bit of a queue's length register.
const QUEUE_CRITICAL: u32 = 1 << 30;
const QUEUE_LENGTH: u32 = 0x3ff;

/// Flags of a descriptor.
mod flag {
    pub const DONE: u16 = 1 << 0;
    pub const COMPLETE: u16 = 1 << 1;
    pub const ERROR: u16 = 1 << 2;
    pub const LARGE: u16 = 1 << 9;
    pub const BUFFER: u16 = 1 << 12;
}

/// Return values of the firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum AqError {
    /// No such element.
    NoEntry = 2,
    /// Bad opcode.
    BadOpcode = 3,
    /// Input or output error.
    Io = 5,
    /// Resource is busy.
    Busy = 12,
    /// Object exists already.
    Exists = 13,
    /// Invalid argument.
    Invalid = 14,
    /// No space left.
    NoSpace = 16,
    /// Not implemented.
    NotImplemented = 17,
    /// A code that a fault asked for; its value is in the fault.
    Injected = 0xff,
}

/// A command while it is handled: the reply is written over the request.
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// What to do.
    pub opcode: u16,
    /// The 16 bytes of parameters.
    pub params: [u8; 16],
    /// The buffer, as long as the request says. A reply may shorten it.
    pub buffer: Vec<u8>,
}

impl Command {
    /// Reads a `u16` parameter.
    pub fn u16(&self, at: usize) -> u16 {
        le16(&self.params, at)
    }

    /// Reads a `u32` parameter.
    pub fn u32(&self, at: usize) -> u32 {
        le32(&self.params, at)
    }

    /// Writes a parameter of the reply.
    pub fn put(&mut self, at: usize, value: &[u8]) {
        put(&mut self.params, at, value);
    }

    /// Writes into the reply's buffer.
    pub fn put_buffer(&mut self, at: usize, value: &[u8]) {
        put(&mut self.buffer, at, value);
    }
}

/// What a handler says.
pub type Result<T = ()> = std::result::Result<T, AqError>;

/// The registers of one descriptor ring.
#[derive(Debug, Default)]
pub struct Ring {
    base: u64,
    length: u32,
    head: u32,
    tail: u32,
}

impl Ring {
    /// Reads a register of the ring.
    pub fn read(&self, part: Part) -> u32 {
        match part {
            Part::BaseLow => self.base as u32,
            Part::BaseHigh => (self.base >> 32) as u32,
            Part::Length => self.length,
            Part::Head => self.head,
            Part::Tail => self.tail,
        }
    }

    /// Writes a register of the ring.
    pub fn write(&mut self, part: Part, value: u32) {
        match part {
            Part::BaseLow => self.base = self.base >> 32 << 32 | u64::from(value),
            Part::BaseHigh => self.base = self.base & 0xffff_ffff | u64::from(value) << 32,
            Part::Length => self.length = value,
            Part::Head => self.head = value & QUEUE_LENGTH,
            Part::Tail => self.tail = value & QUEUE_LENGTH,
        }
    }

    pub(super) fn enabled(&self) -> bool {
        self.length & QUEUE_ENABLE != 0
    }

    fn len(&self) -> u32 {
        self.length & QUEUE_LENGTH
    }

    /// The address of the descriptor at the head, if the driver gave one.
    fn next(&self) -> Option<u64> {
        (self.enabled() && self.head != self.tail && self.head < self.len())
            .then(|| self.base.wrapping_add(u64::from(self.head) * DESCRIPTOR))
    }

    fn advance(&mut self) {
        self.head = (self.head + 1) % self.len().max(1);
    }
}

/// Both directions of the admin queue.
#[derive(Debug, Default)]
pub struct AdminQueue {
    /// Driver to firmware.
    pub send: Ring,
    /// Firmware to driver.
    pub event: Ring,
}

impl E810 {
    /// Handles the commands that the driver gave. The ring's registers stand
    /// as if the device had taken its time: the head moves last.
    pub(super) fn run_admin_queue(&mut self, cx: &mut Context<'_>) {
        if self.admin.send.tail >= self.admin.send.len().max(1) {
            cx.violation(
                "adminq",
                format!("tail {} outside of the ring", self.admin.send.tail),
            );
            return;
        }
        while let Some(address) = self.admin.send.next() {
            let mut descriptor = [0; DESCRIPTOR as usize];
            if cx
                .read("admin queue descriptor", address, &mut descriptor)
                .is_err()
            {
                self.admin.send.length |= QUEUE_CRITICAL;
                return;
            }
            if !self.run_descriptor(cx, address, &mut descriptor) {
                return;
            }
            self.admin.send.advance();
        }
    }

    /// Handles one command. Returns false if it never completes.
    fn run_descriptor(&mut self, cx: &mut Context<'_>, address: u64, raw: &mut [u8; 32]) -> bool {
        let flags = le16(raw, 0);
        let mut command = Command {
            opcode: le16(raw, 2),
            ..Command::default()
        };
        command.params.copy_from_slice(&raw[16..]);
        let buffer = u64::from(le32(raw, 24)) << 32 | u64::from(le32(raw, 28));
        let fault = cx
            .faults
            .check(Point::AdminCommand, u32::from(command.opcode));
        if fault == Some(Action::Drop) {
            return false;
        }
        let result = match self.fetch_buffer(cx, &mut command, flags, le16(raw, 4), buffer) {
            Ok(()) => match fault {
                Some(Action::Fail(_)) => Err(AqError::Injected),
                _ => self.execute(cx, &mut command),
            },
            Err(error) => Err(error),
        };
        let code = match (result, fault) {
            (Ok(()), _) => 0,
            (Err(AqError::Injected), Some(Action::Fail(code))) => code as u16,
            (Err(error), _) => error as u16,
        };
        cx.trace("aq", || {
            json!({
                "opcode": format!("{:#06x}", command.opcode),
                "retval": code,
                "datalen": command.buffer.len(),
                "params": hex(&command.params),
                "buffer": hex(&command.buffer[..command.buffer.len().min(TRACED)]),
            })
        });
        if flags & flag::BUFFER != 0 {
            if code == 0 && !command.buffer.is_empty() {
                // An address outside has been found when the buffer was read.
                let _ = cx.write("admin queue buffer", buffer, &command.buffer);
            }
            // The address comes back as it was.
            command.params[8..].copy_from_slice(&raw[24..]);
        }
        let error = if code == 0 { 0 } else { flag::ERROR };
        let flags = flags | flag::DONE | flag::COMPLETE | error;
        put(raw, 0, &flags.to_le_bytes());
        put(raw, 4, &(command.buffer.len() as u16).to_le_bytes());
        put(raw, 6, &code.to_le_bytes());
        put(raw, 16, &command.params);
        cx.write("admin queue descriptor", address, raw).is_ok()
    }

    fn fetch_buffer(
        &mut self,
        cx: &mut Context<'_>,
        command: &mut Command,
        flags: u16,
        len: u16,
        address: u64,
    ) -> Result {
        let len = usize::from(len);
        if flags & flag::BUFFER == 0 {
            return Ok(());
        }
        if len > BUFFER_MAX || (len > SMALL_BUFFER) != (flags & flag::LARGE != 0) {
            cx.violation(
                "adminq",
                format!(
                    "{:#06x}: buffer of {len} bytes, flags {flags:#x}",
                    command.opcode
                ),
            );
            return Err(AqError::Invalid);
        }
        let result = cx.memory.read_into(address, len, &mut command.buffer);
        cx.guard("admin queue buffer", result)
            .map_err(|_| AqError::Io)
    }

    /// Sends an event to the driver. It is lost if the driver gave no buffer,
    /// as it is on the device.
    pub(super) fn send_event(&mut self, cx: &mut Context<'_>, event: &Command) {
        let Some(address) = self.admin.event.next() else {
            return;
        };
        let mut raw = [0; DESCRIPTOR as usize];
        if cx
            .read("event queue descriptor", address, &mut raw)
            .is_err()
        {
            self.admin.event.length |= QUEUE_CRITICAL;
            return;
        }
        let room = usize::from(le16(&raw, 4));
        let buffer = u64::from(le32(&raw, 24)) << 32 | u64::from(le32(&raw, 28));
        if event.buffer.len() > room
            || cx
                .write("event queue buffer", buffer, &event.buffer)
                .is_err()
        {
            return;
        }
        let flags = flag::DONE | flag::COMPLETE | flag::BUFFER;
        put(&mut raw, 0, &flags.to_le_bytes());
        put(&mut raw, 2, &event.opcode.to_le_bytes());
        put(&mut raw, 4, &(event.buffer.len() as u16).to_le_bytes());
        put(&mut raw, 6, &[0, 0]);
        put(&mut raw, 16, &event.params[..8]);
        if cx.write("event queue descriptor", address, &raw).is_err() {
            return;
        }
        self.admin.event.advance();
        let control = self.storage.cause(super::regs::PFINT_FW_CTL, 0);
        cx.interrupts.raise_cause(control);
    }

    /// Does what a command says and turns it into its reply.
    fn execute(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        match command.opcode {
            0x0001 => caps::version(command),
            // Driver version, queue shutdown, clear PXE mode.
            0x0002 | 0x0003 | 0x0110 => Ok(()),
            0x0008 => self.resources.request(command, self.package.loaded()),
            0x0009 => self.resources.release(command),
            0x000a | 0x000b => caps::list(command, cx.interrupts.count(), &self.config),
            0x0107 => self.link.mac_address(cx, command),
            0x0108 => self.link.set_mac_address(command),
            0x0200 => switch::configuration(cx, command),
            // Set port parameters: nothing here depends on them.
            0x0203 => Ok(()),
            0x0208 => self.resources.allocate(command),
            0x0209 => {
                let (kind, numbers) = self.resources.free(cx, command)?;
                self.switch.forget_lists(kind, &numbers);
                Ok(())
            }
            // No package here knows of double VLAN mode: the mode is single.
            0x020d => {
                command.buffer.fill(0);
                Ok(())
            }
            0x0210 => self.switch.add_vsi(cx, command),
            0x0211 => self.switch.update_vsi(cx, command),
            0x0213 => self.switch.free_vsi(cx, command),
            0x02a0 => self.switch.add_rules(cx, command),
            0x02a1 => self.switch.update_rules(cx, command),
            0x02a2 => self.switch.remove_rules(cx, command),
            0x02a4 => {
                self.clear_configuration(cx);
                Ok(())
            }
            // Priority flow control by VLAN priority (0) or by DSCP (1).
            0x0302 | 0x0303 => Ok(()),
            0x0400 => self.scheduler.default_topology(command),
            0x0401 => self.scheduler.add(cx, command),
            0x0403 => self.scheduler.configure(cx, command),
            0x0404 => self.scheduler.query(cx, command),
            0x0408 => self.scheduler.relocate(cx, command),
            0x0409 => self.scheduler.suspend(cx, command, true),
            0x040a => self.scheduler.suspend(cx, command, false),
            0x040e => self.scheduler.port_classes(command),
            0x040f => self.scheduler.delete(cx, command),
            0x0412 => sched::resources(command),
            0x0600 => link::phy_capabilities(command),
            0x0601 => self.set_phy_configuration(cx, command),
            0x0603 => Ok(()),
            0x0605 => self.restart_link(cx, command),
            0x0607 => self.link.status(cx, command),
            0x0613 => self.link.set_event_mask(command),
            // No other device hangs on the port's topology, and a lane number
            // is only of use to a clock.
            0x06e0 | 0x06ea => Err(AqError::NoEntry),
            // The port's LED blinks; no module tells what it is.
            0x06e9 => Ok(()),
            0x06ee => Err(AqError::NoEntry),
            0x0701 => nvm::read(command),
            0x0706 => nvm::verify(command),
            // What the driver tells its link partner by LLDP, and with it how
            // it wants the port's traffic classes.
            0x0a08 => {
                if let Some(ets) = dcb::Ets::find(&command.buffer) {
                    self.scheduler.set_classes(ets);
                }
                Ok(())
            }
            0x0b02..=0x0b05 => self.switch.rss(cx, command),
            0x0c30 => self.add_tx_queues(cx, command),
            0x0c31 => self.disable_tx_queues(cx, command),
            0x0c33 => self.add_rdma_queue_sets(cx, command),
            0x0c40 => self.package.download(command),
            // Upload and update of package sections: the tables in them are
            // not interpreted; an upload reads as zeros.
            0x0c41 => {
                command.buffer.iter_mut().skip(12).for_each(|b| *b = 0);
                Ok(())
            }
            0x0c42 => Ok(()),
            0x0c43 => self.package.list(command),
            // Firmware logging: there is no log.
            0xff30..=0xff32 => {
                command.buffer.fill(0);
                Ok(())
            }
            opcode => {
                cx.violation("adminq", format!("unknown command {opcode:#06x}"));
                Err(AqError::BadOpcode)
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
