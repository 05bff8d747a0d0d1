// SPDX-License-Identifier: GPL-2.0
//! The port: its address, what its PHY can, and whether the link is up.

use super::caps::MAX_FRAME;
use super::{AqError, Command, Result};
use crate::bits::{bit, put};
use crate::context::Context;
use crate::e810::E810;

/// 100GBASE-CR4 in the low half of a PHY type mask.
const PHY_100G_CR4: u64 = 1 << 51;
/// PHY configuration: the link is enabled; autonegotiation.
const PHY_LINK_ENABLED: u8 = 1 << 3;
const PHY_AUTONEG: u8 = 1 << 4;
/// Length of the link status without what the partner said.
const STATUS_V1: usize = 32;

/// The link as the driver has configured it.
#[derive(Debug)]
pub struct Link {
    enabled: bool,
    /// The driver wants an event when the link changes.
    events: bool,
    /// Kinds of events that the driver does not want.
    mask: u16,
    /// The address that the driver gave the port in place of the factory's.
    address: Option<[u8; 6]>,
}

impl Default for Link {
    fn default() -> Self {
        Link {
            enabled: true,
            events: false,
            mask: 0,
            address: None,
        }
    }
}

impl Link {
    fn up(&self, cx: &Context<'_>) -> bool {
        self.enabled && cx.port.link_up
    }

    fn status_data(&self, cx: &Context<'_>) -> [u8; STATUS_V1] {
        // Medium available, signal detected; link up, external link up.
        const MEDIUM: u8 = 0x40;
        const SIGNAL: u8 = 0x80;
        const UP: u8 = 0x21;
        // Negotiated, the partner can, the module is qualified.
        const AN_DONE: u8 = 0x03;
        const QUALIFIED: u8 = 0x80;
        const SPEED_100G: u16 = 1 << 10;
        let mut data = [0; STATUS_V1];
        let up = self.up(cx);
        data[2] = MEDIUM | if up { UP | SIGNAL } else { 0 };
        data[3] = QUALIFIED | if up { AN_DONE } else { 0 };
        put(&mut data, 6, &MAX_FRAME.to_le_bytes());
        if up {
            put(&mut data, 10, &SPEED_100G.to_le_bytes());
            put(&mut data, 16, &PHY_100G_CR4.to_le_bytes());
        }
        data
    }

    /// Command 0x0607: link status, and whether the driver wants events.
    pub fn status(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        const EVENTS: u16 = 3;
        const EVENTS_OFF: u16 = 2;
        const EVENTS_ON: u16 = 3;
        match command.u16(2) & EVENTS {
            EVENTS_ON => self.events = true,
            EVENTS_OFF => self.events = false,
            _ => {}
        }
        command.put(2, &u16::from(self.events).to_le_bytes());
        let data = self.status_data(cx);
        if command.buffer.len() < data.len() {
            return Err(AqError::Invalid);
        }
        command.buffer.fill(0);
        command.put_buffer(0, &data);
        Ok(())
    }

    /// Command 0x0613: which kinds of link events the driver does not want.
    pub fn set_event_mask(&mut self, command: &mut Command) -> Result {
        self.mask = command.u16(8);
        Ok(())
    }

    /// Command 0x0107: the port's addresses. A record is port `u8`, type `u8`,
    /// and the address.
    pub fn mac_address(&self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        const LAN_VALID: u16 = 0x10;
        if command.buffer.len() < 8 {
            return Err(AqError::Invalid);
        }
        command.put(0, &LAN_VALID.to_le_bytes());
        command.put(4, &[1]);
        command.buffer.fill(0);
        command.put_buffer(2, &self.address.unwrap_or(cx.port.mac));
        Ok(())
    }

    /// Command 0x0108: gives the port another address until the next reset.
    /// Parameters: reserved, flags, address.
    pub fn set_mac_address(&mut self, command: &mut Command) -> Result {
        let [_, _, address @ .., _, _, _, _, _, _, _, _] = command.params;
        if address[0] & 1 != 0 || address == [0; 6] {
            return Err(AqError::Invalid);
        }
        self.address = Some(address);
        Ok(())
    }

    /// The event that tells of a change, if the driver wants it.
    fn event(&self, cx: &Context<'_>) -> Option<Command> {
        const UP_DOWN: u32 = 1;
        if !self.events || bit(self.mask.into(), UP_DOWN) {
            return None;
        }
        let mut event = Command {
            opcode: 0x0607,
            buffer: self.status_data(cx).to_vec(),
            ..Command::default()
        };
        event.put(2, &1u16.to_le_bytes());
        Some(event)
    }
}

/// Command 0x0600: what the PHY can.
pub fn phy_capabilities(command: &mut Command) -> Result {
    if command.buffer.len() < 560 {
        return Err(AqError::Invalid);
    }
    command.buffer.fill(0);
    command.put_buffer(0, &PHY_100G_CR4.to_le_bytes());
    command.put_buffer(16, &[PHY_LINK_ENABLED | PHY_AUTONEG]);
    Ok(())
}

impl E810 {
    /// The cable was taken out or put back.
    pub(in crate::e810) fn tell_link(&mut self, cx: &mut Context<'_>) {
        if let Some(event) = self.link.event(cx) {
            self.send_event(cx, &event);
        }
    }

    /// Command 0x0601: PHY configuration. The speed is fixed; what counts is
    /// whether the link is enabled.
    pub(super) fn set_phy_configuration(
        &mut self,
        cx: &mut Context<'_>,
        command: &mut Command,
    ) -> Result {
        let caps = *command.buffer.get(16).ok_or(AqError::Invalid)?;
        self.enable_link(cx, caps & PHY_LINK_ENABLED != 0);
        Ok(())
    }

    /// Command 0x0605: restarts autonegotiation, which is done at once.
    pub(super) fn restart_link(&mut self, cx: &mut Context<'_>, command: &mut Command) -> Result {
        const LINK_ENABLE: u8 = 1 << 2;
        let enabled = command.params[2] & LINK_ENABLE != 0;
        self.enable_link(cx, enabled);
        Ok(())
    }

    fn enable_link(&mut self, cx: &mut Context<'_>, enabled: bool) {
        self.link.enabled = enabled;
        // The driver waits for the event also if nothing changed.
        self.tell_link(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[test]
    fn status_follows_the_cable() {
        let mut bench = Bench::new(0x1000);
        let mut link = Link::default();
        let mut command = Command {
            buffer: vec![0; 32],
            ..Command::default()
        };
        command.put(2, &3u16.to_le_bytes());
        link.status(&mut bench.context(), &mut command).unwrap();
        assert_eq!(command.u16(2), 1);
        assert_eq!(command.buffer[2..4], [0xe1, 0x83]);
        bench.port.link_up = false;
        assert!(link.event(&bench.context()).is_some());
        link.status(&mut bench.context(), &mut command).unwrap();
        assert_eq!(command.buffer[2..4], [0x40, 0x80]);
        command.put(2, &2u16.to_le_bytes());
        link.status(&mut bench.context(), &mut command).unwrap();
        assert!(link.event(&bench.context()).is_none());
    }
}
