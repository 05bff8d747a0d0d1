// SPDX-License-Identifier: GPL-2.0
//! The E810 function: its registers, its firmware, its LAN queues, and the
//! RDMA half behind them.

pub mod adminq;
pub mod lan;
pub mod regs;

use std::collections::BTreeMap;

use serde_json::json;

use crate::context::Context;
use crate::interrupts::cause;
use crate::nic::{Identity, Incident, Nic};
use crate::rdma::{Protocol, Rdma, RdmaConfig};
use adminq::caps::MAX_FRAME;
use adminq::link::Link;
use adminq::package::Package;
use adminq::resources::Resources;
use adminq::sched::Scheduler;
use adminq::switch::{Lookup, Switch};
use adminq::AdminQueue;
use lan::rx::{status, Incoming, Outcome};
use lan::{filter, offload, packet, rss, Lan};
use regs::{Active, Kind, Spec, Storage, QUEUES};

/// BAR 0 in bytes. The last thing in it is the user doorbell page, 64 KiB
/// before the end.
pub(crate) const BAR0_SIZE: u64 = 8 << 20;

/// How an E810 function is made.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of MSI-X vectors.
    pub vectors: u16,
    /// The function offers RDMA.
    pub rdma: bool,
    /// The protocol that its RDMA half starts with.
    pub protocol: Protocol,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            vectors: 64,
            rdma: true,
            protocol: Protocol::Roce,
        }
    }
}

/// Which part of the device a reset reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reset {
    /// The whole core, through GLGEN_RTRIG.
    Core,
    /// Core and global configuration, through GLGEN_RTRIG.
    Global,
}

impl Reset {
    /// How GLGEN_RSTAT names it (bits 3:2).
    fn code(self) -> u32 {
        match self {
            Reset::Core => 1,
            Reset::Global => 2,
        }
    }
}

/// A core reset starts this long after it was asked for, so that every driver
/// can get out of the way, in nanoseconds.
const RESET_DELAY: u64 = 20_000_000;

/// One E810 function.
pub struct E810 {
    config: Config,
    storage: Storage,
    admin: AdminQueue,
    resources: Resources,
    package: Package,
    scheduler: Scheduler,
    switch: Switch,
    link: Link,
    /// RDMA queue sets: handle and scheduler node.
    qsets: BTreeMap<u16, u32>,
    lan: Lan,
    rdma: Rdma,
    /// A reset that is under way, and when it happens.
    reset: Option<(Reset, u64)>,
    last_reset: Option<Reset>,
}

impl E810 {
    /// Returns a function after power-on.
    pub fn new(config: Config) -> Self {
        let rdma = Rdma::new(RdmaConfig {
            protocol: config.protocol,
        });
        Self::around(config, rdma)
    }

    /// Returns a function whose LAN half comes from power-on, while a driver
    /// of `rdma` was at work already; only tests have that.
    pub fn around(config: Config, rdma: Rdma) -> Self {
        E810 {
            config,
            storage: Storage::default(),
            admin: AdminQueue::default(),
            resources: Resources::default(),
            package: Package::default(),
            scheduler: Scheduler::default(),
            switch: Switch::default(),
            link: Link::default(),
            qsets: BTreeMap::new(),
            lan: Lan::default(),
            rdma,
            reset: None,
            last_reset: None,
        }
    }

    /// Command 0x02A4, "clear PF configuration": what an earlier driver left.
    fn clear_configuration(&mut self, cx: &mut Context<'_>) {
        self.switch.reset(cx);
        self.scheduler = Scheduler::default();
        self.qsets.clear();
        self.lan.reset();
    }

    /// Everything that belongs to the function goes back to its reset value.
    fn function_reset(&mut self, cx: &mut Context<'_>) {
        self.clear_configuration(cx);
        self.storage.reset();
        self.admin = AdminQueue::default();
        self.resources.reset();
        self.link = Link::default();
        self.rdma.reset();
        cx.interrupts.reset();
        cx.frames.clear();
        self.publish_addresses(cx);
    }

    /// Tells the RDMA half its unicast addresses: those that rules forward to
    /// a VSI with the protocol engine. A driver moves the rule when the port
    /// gets another address.
    fn publish_addresses(&self, cx: &mut Context<'_>) {
        let own = &mut cx.port.addresses;
        own.clear();
        for (number, _) in self.switch.vsis().filter(|(_, vsi)| vsi.protocol_engine()) {
            for rule in self.switch.receive_rules() {
                let by_address = matches!(rule.lookup, Lookup::Mac | Lookup::MacVlan);
                let [first, b, c, d, e, f, ..] = rule.header;
                let address = [first, b, c, d, e, f];
                let new = first & 1 == 0 && !own.contains(&address);
                if by_address && new && self.switch.reaches(rule, number) {
                    own.push(address);
                }
            }
        }
    }

    /// GLGEN_RTRIG was written.
    fn trigger_reset(&mut self, cx: &mut Context<'_>, value: u32) {
        let kind = match value & 3 {
            0 => return,
            1 => Reset::Core,
            _ => Reset::Global,
        };
        self.announce_reset(cx, kind);
    }

    /// Tells the driver of a reset of the core and starts the countdown.
    fn announce_reset(&mut self, cx: &mut Context<'_>, kind: Reset) {
        cx.trace("reset", || json!({"kind": format!("{kind:?}")}));
        self.reset = Some((kind, cx.now + RESET_DELAY));
        self.last_reset = Some(kind);
        cx.interrupts.raise_other(cause::GRST);
    }

    fn reset_status(&self) -> u32 {
        const REQUESTED: u32 = 1;
        let state = if self.reset.is_some() { REQUESTED } else { 0 };
        state | self.last_reset.map_or(0, |kind| kind.code() << 2)
    }

    fn read_lan(&mut self, cx: &mut Context<'_>, spec: &Spec, index: u32, offset: u32) -> u32 {
        let queue = (index % QUEUES) as u16;
        match spec.kind {
            Kind::Constant(_) | Kind::Storage { .. } => self.storage.read(spec.kind, offset),
            Kind::Active(active) => match active {
                Active::SendQueue(part) => self.admin.send.read(part),
                Active::EventQueue(part) => self.admin.event.read(part),
                Active::DynCtl => cx.interrupts.read_dyn_ctl(index as u16).unwrap_or_default(),
                Active::Oicr => cx.interrupts.take_other(),
                Active::OicrEnable => cx.interrupts.other_enabled(),
                Active::OicrControl => cx.interrupts.other_control(),
                Active::VectorRange => {
                    const VALID: u32 = 1 << 31;
                    VALID | u32::from(cx.interrupts.count().saturating_sub(1)) << 12
                }
                Active::PriorityClasses => self.scheduler.ets().classes(),
                Active::FilterSpace => self.resources.filter_space(),
                // A reset is done as soon as it is asked for.
                Active::FunctionReset | Active::ResetTrigger => 0,
                Active::ResetStatus => self.reset_status(),
                Active::RxContext => self.lan.rx.read_context(queue, (index / QUEUES) as usize),
                Active::RxControl => self.lan.rx.read_control(queue),
                Active::RxTail => self.lan.rx.tail(queue),
                Active::TxDoorbell => 0,
                Active::TxHead => self.lan.tx.head(index as u16).into(),
                Active::Stat(stat) => {
                    let value = self.lan.stats.read(stat, index);
                    let high = (offset - spec.base) % spec.stride != 0;
                    (if high { value >> 32 } else { value }) as u32
                }
            },
        }
    }

    fn write_lan(
        &mut self,
        cx: &mut Context<'_>,
        spec: &Spec,
        index: u32,
        offset: u32,
        value: u32,
    ) {
        let queue = (index % QUEUES) as u16;
        let Kind::Active(active) = spec.kind else {
            self.storage.write(spec.kind, offset, value);
            return;
        };
        match active {
            Active::SendQueue(part) => {
                self.admin.send.write(part, value);
                if part == regs::Part::Length && self.admin.send.enabled() {
                    cx.port.failed = false;
                }
                if part == regs::Part::Tail && self.admin.send.enabled() {
                    self.run_admin_queue(cx);
                    self.publish_addresses(cx);
                }
            }
            Active::EventQueue(part) => self.admin.event.write(part, value),
            Active::DynCtl => {
                if !cx.interrupts.write_dyn_ctl(index as u16, value) {
                    cx.violation("register", format!("GLINT_DYN_CTL({index}) written"));
                }
            }
            Active::Oicr
            | Active::VectorRange
            | Active::PriorityClasses
            | Active::FilterSpace
            | Active::ResetStatus => {}
            Active::OicrEnable => cx.interrupts.set_other_enabled(value),
            Active::OicrControl => cx.interrupts.set_other_control(value),
            Active::FunctionReset => {
                if value & 1 != 0 {
                    cx.trace("reset", || json!({"kind": "pfr"}));
                    self.function_reset(cx);
                }
            }
            Active::ResetTrigger => self.trigger_reset(cx, value),
            Active::RxContext => {
                let word = (index / QUEUES) as usize;
                self.lan.rx.write_context(cx, queue, word, value);
            }
            Active::RxControl => self.lan.rx.write_control(cx, queue, value),
            Active::RxTail => self.lan.rx.set_tail(cx, queue, value),
            Active::TxDoorbell => {
                let queue = index as u16;
                if self
                    .lan
                    .tx
                    .doorbell(cx, &self.switch, &mut self.lan.stats, queue, value)
                {
                    let control = self.storage.cause(regs::QINT_TQCTL, index);
                    cx.interrupts.raise_cause(control);
                }
            }
            // Counters and heads do not change by a write.
            Active::TxHead | Active::Stat(_) => {}
        }
    }

    fn read_dword(&mut self, cx: &mut Context<'_>, offset: u32) -> u32 {
        if let Some((spec, index)) = regs::decode(offset) {
            return self.read_lan(cx, spec, index, offset);
        }
        let value = self.with_rdma(cx, |rdma, cx| rdma.read(cx, offset));
        if value.is_none() {
            cx.violation("register", format!("read of unknown register {offset:#x}"));
        }
        value.unwrap_or(0)
    }

    fn write_dword(&mut self, cx: &mut Context<'_>, offset: u32, value: u32) {
        if let Some((spec, index)) = regs::decode(offset) {
            cx.trace(
                "reg_write",
                || json!({"reg": spec.name, "index": index, "value": value}),
            );
            self.write_lan(cx, spec, index, offset, value);
            return;
        }
        cx.trace("reg_write", || json!({"offset": offset, "value": value}));
        if !self.with_rdma(cx, |rdma, cx| rdma.write(cx, offset, value)) {
            cx.violation(
                "register",
                format!("write of {value:#x} to unknown register {offset:#x}"),
            );
        }
    }

    /// Runs the RDMA half, and sends the frames that it made as the port does.
    fn with_rdma<R>(
        &mut self,
        cx: &mut Context<'_>,
        f: impl FnOnce(&mut Rdma, &mut Context<'_>) -> R,
    ) -> R {
        let before = cx.frames.len();
        let result = f(&mut self.rdma, cx);
        if !cx.port.link_up {
            let lost = cx.frames.len().saturating_sub(before);
            self.lan.stats.tx_link_down += lost as u64;
            cx.frames.truncate(before);
        }
        for frame in cx.frames.iter_mut().skip(before) {
            offload::pad(frame);
            self.lan.stats.tx.count(frame);
        }
        result
    }

    /// Gives a received frame to a VSI's queue.
    fn deliver(&mut self, cx: &mut Context<'_>, number: u16, frame: &[u8]) {
        let Some((_, vsi)) = self.switch.vsis().find(|&(n, _)| n == number) else {
            return;
        };
        let parsed = packet::parse(frame);
        let mut incoming = Incoming {
            parts: [frame, &[]],
            ptype: parsed.ptype,
            status: 0,
            tag: 0,
            hash: 0,
        };
        if let Some(checksums) = parsed.checksums {
            incoming.status |= status::CHECKSUMS;
            if !checksums.ip {
                incoming.status |= status::IP_ERROR;
            }
            if !checksums.l4 {
                incoming.status |= status::L4_ERROR;
            }
        }
        if let (Some(tag), true) = (filter::vlan_tag(frame), vsi.strips_vlan()) {
            let (before, rest) = frame.split_at(12);
            incoming.parts = [before, rest.get(4..).unwrap_or_default()];
            incoming.tag = tag;
            incoming.status |= status::TAG;
        }
        if !parsed.flow.is_empty() {
            incoming.hash = rss::toeplitz(&vsi.rss_key, &parsed.flow);
            incoming.status |= status::HASH;
        }
        let entries = vsi.rss_table.len().max(1);
        let entry = incoming.hash as usize % entries;
        let spread = vsi.rss_table.get(entry).copied().unwrap_or(0);
        let priority = filter::vlan_tag(frame).unwrap_or_default();
        let class = self.scheduler.ets().class_of(priority);
        let queue = vsi.queue(class, spread.into());
        let Some(queue) = queue.or_else(|| vsi.queue(class, 0)) else {
            return;
        };
        let outcome = self.lan.rx.deliver(cx, queue, &incoming);
        cx.trace("rx", || {
            json!({"vsi": number, "queue": queue, "len": frame.len(),
                   "outcome": format!("{outcome:?}")})
        });
        let stats = self.lan.stats.vsi(number);
        match outcome {
            Outcome::Delivered => {
                stats.rx.count(frame);
                let control = self.storage.cause(regs::QINT_RQCTL, queue.into());
                cx.interrupts.raise_cause(control);
            }
            Outcome::NoBuffer | Outcome::TooLong => stats.rx_discards += 1,
        }
    }
}

/// Whether a read of BAR 0 may be so long and there: a power of two up to
/// eight bytes, aligned to its length, inside.
fn is_access(offset: u64, len: u64) -> bool {
    matches!(len, 1 | 2 | 4 | 8)
        && offset % len == 0
        && offset.checked_add(len).is_some_and(|end| end <= BAR0_SIZE)
}

impl Nic for E810 {
    fn identity(&self) -> Identity {
        Identity {
            vendor: 0x8086,
            device: 0x1592,
            subsystem: (0x8086, 0x0002),
            revision: 2,
            bar0_size: BAR0_SIZE,
            vectors: self.config.vectors,
        }
    }

    fn read(&mut self, cx: &mut Context<'_>, offset: u64, data: &mut [u8]) {
        let len = data.len() as u64;
        if !is_access(offset, len) {
            cx.violation("register", format!("read of {len} bytes at {offset:#x}"));
            return;
        }
        for (i, chunk) in data.chunks_mut(4).enumerate() {
            let at = (offset & !3) as u32 + 4 * i as u32;
            let value = self.read_dword(cx, at).to_le_bytes();
            let skip = (offset & 3) as usize;
            chunk.copy_from_slice(&value[skip..skip + chunk.len()]);
        }
    }

    fn write(&mut self, cx: &mut Context<'_>, offset: u64, data: &[u8]) {
        let len = data.len() as u64;
        if len < 4 || !is_access(offset, len) {
            cx.violation("register", format!("write of {len} bytes at {offset:#x}"));
            return;
        }
        for (i, chunk) in data.chunks(4).enumerate() {
            let value = crate::bits::le32(chunk, 0);
            self.write_dword(cx, offset as u32 + 4 * i as u32, value);
        }
    }

    fn receive(&mut self, cx: &mut Context<'_>, frame: &[u8]) {
        if !cx.port.link_up {
            return;
        }
        self.lan.stats.rx.count(frame);
        if frame.len() > usize::from(MAX_FRAME) {
            self.lan.stats.rx_oversize += 1;
            return;
        }
        let receivers = filter::receivers(&self.switch, frame);
        let engine = self
            .switch
            .vsis()
            .any(|(number, vsi)| vsi.protocol_engine() && receivers.contains(&number));
        if engine && self.with_rdma(cx, |rdma, cx| rdma.receive(cx, frame)) {
            return;
        }
        for number in receivers {
            self.deliver(cx, number, frame);
        }
    }

    fn link_changed(&mut self, cx: &mut Context<'_>) {
        self.tell_link(cx);
    }

    fn poll(&mut self, cx: &mut Context<'_>) {
        if let Some((kind, _)) = self.reset.filter(|&(_, at)| at <= cx.now) {
            self.reset = None;
            self.function_reset(cx);
            self.package.reset();
            cx.trace(
                "reset",
                || json!({"kind": format!("{kind:?}"), "done": true}),
            );
        }
        if let Some(queue) = self.lan.tx.go_on(cx, &self.switch, &mut self.lan.stats) {
            let control = self.storage.cause(regs::QINT_TQCTL, queue.into());
            cx.interrupts.raise_cause(control);
        }
        self.with_rdma(cx, |rdma, cx| rdma.poll(cx));
    }

    fn next_deadline(&self) -> Option<u64> {
        let reset = self.reset.map(|(_, at)| at);
        // What waits for room on the wire is due as soon as that is quiet.
        let tx = self.lan.tx.waits().then_some(0);
        reset
            .into_iter()
            .chain(tx)
            .chain(self.rdma.next_deadline())
            .min()
    }

    fn incident(&mut self, cx: &mut Context<'_>, incident: Incident) {
        if let Incident::AsyncEvent { code, source, id } = incident {
            self.rdma.report_async_event(cx, code, source, id);
            return;
        }
        cx.port.failed = true;
        match incident {
            Incident::AsyncEvent { .. } => {}
            Incident::CriticalError(code) => self.rdma.report_critical_error(cx, code),
            Incident::HmcError { info, data } => self.rdma.report_hmc_error(cx, info, data),
            Incident::CoreReset => self.announce_reset(cx, Reset::Core),
        }
    }

    fn reset(&mut self, cx: &mut Context<'_>) {
        self.function_reset(cx);
    }
}

#[cfg(test)]
mod tests;
