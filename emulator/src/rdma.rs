// SPDX-License-Identifier: GPL-2.0
//! The RDMA half of a function: the protocol engine behind its registers.
//!
//! Control half: registers, the control queue and its commands ([`cqp`]), host memory cache, queues, regions and the
//! other objects. Data half: [`transport`].

use std::collections::BTreeMap;

use serde_json::json;

use crate::context::Context;
use crate::faults::{Action, Point};
use crate::interrupts::{cause, CAUSE_VECTOR};

pub(crate) mod aeq;
pub(crate) mod ah;
pub(crate) mod backing;
pub(crate) mod ceq;
pub(crate) mod claims;
pub(crate) mod cq;
pub(crate) mod cqp;
pub(crate) mod field;
pub(crate) mod flush;
pub(crate) mod fpm;
pub(crate) mod hmc;
pub(crate) mod layout;
pub(crate) mod mr;
pub(crate) mod packet;
pub(crate) mod qp;
pub(crate) mod qp_context;
pub(crate) mod qp_rules;
pub(crate) mod regs;
pub(crate) mod ring;
pub(crate) mod stats;
pub(crate) mod table;
#[doc(hidden)]
pub mod testbench;
#[cfg(test)]
mod tests;
pub(crate) mod transport;
pub(crate) mod wqe;
pub(crate) mod ws;

use regs::Register;
use table::Table;

/// The protocol that the function speaks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// RoCEv2: InfiniBand transport over UDP.
    #[default]
    Roce,
    /// iWARP: RDMA over TCP.
    Iwarp,
}

/// What an RDMA half is made from.
#[derive(Clone, Debug, Default)]
pub struct RdmaConfig {
    /// The protocol to start with.
    pub protocol: Protocol,
}

/// Something went wrong that is recorded as a violation already (or that the object's state explains).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reported;

/// What a delayed event does when its time has come.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Deferred {
    Cqe {
        cq: u32,
        entry: cq::Cqe,
    },
    Ceqe {
        ceq: u32,
        cq: u32,
        context: u64,
    },
    Aeqe {
        event: aeq::AsyncEvent,
    },
    Interrupt {
        control: u32,
    },
    /// The control queue completes a command and goes on.
    Command {
        completion: cqp::Completion,
    },
}

/// The RDMA half of one function.
#[derive(Debug)]
pub struct Rdma {
    pub(crate) config: RdmaConfig,
    pub(crate) layout: &'static layout::Layout,
    pub(crate) registers: regs::Values,
    pub(crate) cqp: Option<cqp::ControlQueue>,
    pub(crate) hmc: hmc::Hmc,
    /// A page of the HMC was taken from a live object; to be recorded with the next command.
    page_taken: Option<String>,
    /// Memory that the device holds.
    pub(crate) claims: claims::Claims,
    pub(crate) cqs: Table<cq::Cq>,
    pub(crate) ceqs: Table<ceq::Ceq>,
    /// Acknowledgements of completion events that may still come.
    forgiven: ceq::Forgiven,
    pub(crate) aeq: Option<aeq::Aeq>,
    pub(crate) qps: Table<qp::Qp>,
    /// Regions and windows by STag index.
    pub(crate) mrs: Table<mr::Mr>,
    pub(crate) ahs: Table<ah::Ah>,
    pub(crate) arp: Table<ah::ArpEntry>,
    pub(crate) mcast: BTreeMap<u32, ah::Group>,
    /// Local MAC table.
    pub(crate) macs: BTreeMap<u32, Option<[u8; 6]>>,
    pub(crate) ws: ws::Tree,
    pub(crate) stats: stats::Stats,
    /// Statistics instances that the driver allocated.
    pub(crate) stats_instances: BTreeMap<u32, stats::Stats>,
    /// What the data path keeps beside its queue pairs.
    pub(crate) wire: transport::DataPath,
    /// Events on their way, with the time they are due; the sequence number keeps their order.
    deferred: BTreeMap<(u64, u64), Deferred>,
    sequence: u64,
}

impl Rdma {
    /// Returns the state after a function reset.
    pub fn new(config: RdmaConfig) -> Self {
        Rdma {
            config,
            layout: &layout::E810,
            registers: regs::Values::default(),
            cqp: None,
            hmc: hmc::Hmc::default(),
            page_taken: None,
            claims: claims::Claims::default(),
            cqs: Table::default(),
            ceqs: Table::default(),
            forgiven: ceq::Forgiven::default(),
            aeq: None,
            qps: Table::default(),
            mrs: Table::default(),
            ahs: Table::default(),
            arp: Table::default(),
            mcast: BTreeMap::new(),
            macs: BTreeMap::new(),
            ws: ws::Tree::default(),
            stats: stats::Stats::default(),
            stats_instances: BTreeMap::new(),
            wire: transport::DataPath::default(),
            deferred: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// Reads a register; `None` if it is not an RDMA register.
    pub fn read(&mut self, _cx: &mut Context<'_>, offset: u32) -> Option<u32> {
        let value = match Register::at(self.layout, offset)? {
            Register::CqpTail => self.registers.cqp_tail,
            Register::CqpDoorbell => self.cqp.as_ref().map_or(0, |cqp| cqp.head),
            Register::CcqpStatus => self.registers.ccqp_status,
            Register::CcqpHigh => self.registers.ccqp_high,
            Register::CqpErrorCodes => self.registers.cqp_error_codes,
            Register::DoorbellSize => regs::DOORBELLS_8M,
            Register::CpuStatus => regs::CPU_READY,
            Register::AeqControl => self.registers.aeq_control,
            Register::CeqControl(id) => self.registers.ceq_control(id),
            Register::HmcErrorInfo => self.registers.hmc_error_info,
            Register::HmcErrorData => self.registers.hmc_error_data,
            Register::CriticalError => self.registers.critical_error,
            // Write-only.
            Register::CcqpLow
            | Register::CqArm
            | Register::UserCqArm
            | Register::CqAck
            | Register::AeqAlloc
            | Register::SqDoorbell
            | Register::PdInvalidate => 0,
        };
        Some(value)
    }

    /// Writes a register; false if it is not an RDMA register.
    pub fn write(&mut self, cx: &mut Context<'_>, offset: u32, value: u32) -> bool {
        let Some(register) = Register::at(self.layout, offset) else {
            return false;
        };
        match register {
            Register::CqpTail => self.registers.cqp_tail = value,
            Register::CqpDoorbell => cqp::doorbell(self, cx, value),
            Register::CcqpStatus => self.registers.ccqp_status = value,
            Register::CcqpHigh => self.registers.ccqp_high = value,
            Register::CcqpLow => {
                let address = (u64::from(self.registers.ccqp_high) << 32) | u64::from(value);
                if address == 0 {
                    cqp::destroy(self, cx);
                } else {
                    cqp::create(self, cx, address);
                }
            }
            Register::CqArm => cq::arm(self, cx, value, false),
            Register::UserCqArm => cq::arm(self, cx, value, true),
            Register::CqAck => ceq::acknowledge(self, cx, value),
            Register::AeqAlloc => aeq::give_back(self, cx, value),
            Register::SqDoorbell => self.sq_doorbell(cx, value),
            Register::AeqControl => self.registers.aeq_control = value,
            Register::CeqControl(id) => self.registers.set_ceq_control(id, value),
            Register::PdInvalidate => {
                let value = u64::from(value);
                let sd = layout::PDINV_SD.get32(value);
                let page = layout::PDINV_PD.get32(value);
                self.check_page(cx, sd, page);
                self.hmc.invalidate_page(cx, &mut self.claims, sd, page);
            }
            Register::HmcErrorInfo => self.registers.hmc_error_info = value,
            Register::HmcErrorData => self.registers.hmc_error_data = value,
            Register::CriticalError => self.registers.critical_error = value,
            Register::CqpErrorCodes | Register::DoorbellSize | Register::CpuStatus => {
                cx.violation("register", format!("write of {value:#x} to {register:?}"));
            }
        }
        true
    }

    /// A page of the HMC may be taken away from a live object. That is wrong only if the driver goes on with the
    /// device: one that has given it up writes the register too, and sends no command before the reset.
    fn check_page(&mut self, cx: &mut Context<'_>, sd: u32, page: u32) {
        // What a command that is held up would destroy lives on, without the driver's doing.
        let waits = self.cqp.as_ref().is_none_or(|cqp| cqp.is_stalled());
        if waits || self.page_taken.is_some() || !self.hmc.takes_page(cx.memory, sd, page) {
            return;
        }
        if let Some(object) = backing::in_page(self, cx.memory, sd, page) {
            let text = format!("page {page} of SD {sd} was taken from the live {object}");
            self.page_taken = Some(text);
        }
    }

    fn sq_doorbell(&mut self, cx: &mut Context<'_>, value: u32) {
        let id = layout::wqe::QP_ID.get32(u64::from(value));
        cx.trace("doorbell", || json!({"sq": id}));
        if !self.qps.contains_key(&id) {
            cx.violation(
                "doorbell",
                format!("work for QP {id}, which does not exist"),
            );
            return;
        }
        transport::sq_doorbell(self, cx, id);
    }

    /// A frame from the wire; true if it was for this half.
    pub fn receive(&mut self, cx: &mut Context<'_>, frame: &[u8]) -> bool {
        transport::receive(self, cx, frame)
    }

    /// Timers whose time has come.
    pub fn poll(&mut self, cx: &mut Context<'_>) {
        while let Some(entry) = self.deferred.first_entry() {
            if entry.key().0 > cx.now {
                break;
            }
            match entry.remove() {
                Deferred::Cqe { cq, entry } => {
                    if self.cqs.contains_key(&cq) {
                        // An error here is recorded already.
                        let _ = cq::post_now(self, cx, cq, entry, None);
                    }
                }
                Deferred::Ceqe { ceq, cq, context } => {
                    if self.ceqs.contains_key(&ceq) {
                        ceq::post_now(self, cx, ceq, cq, context);
                    }
                }
                Deferred::Aeqe { event } => aeq::post_now(self, cx, event, 0),
                Deferred::Interrupt { control } => {
                    cx.interrupts.raise_cause(control);
                }
                Deferred::Command { completion } => cqp::resume(self, cx, completion),
            }
        }
        transport::poll(self, cx);
    }

    /// When [`Self::poll`] wants to be called next, in nanoseconds.
    pub fn next_deadline(&self) -> Option<u64> {
        let deferred = self.deferred.keys().next().map(|(due, _)| *due);
        match (deferred, transport::next_deadline(self)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Function reset.
    pub fn reset(&mut self) {
        *self = Rdma::new(self.config.clone());
    }

    /// The admin queue gave the function a queue set: its handle is `qset`, its scheduler node `teid`, below node
    /// `parent`.
    pub fn add_qset(&mut self, qset: u16, teid: u32, _parent: u32) {
        self.ws.add_qset(qset, teid);
    }

    /// The admin queue took a queue set away.
    pub fn remove_qset(&mut self, qset: u16) {
        self.ws.remove_qset(qset);
    }

    /// The control queue is gone, and with it everything that was made through it.
    fn forget_objects(&mut self) {
        let fresh = Rdma::new(self.config.clone());
        let old = std::mem::replace(self, fresh);
        self.registers = old.registers;
        self.stats = old.stats;
        self.ws.take_qsets(old.ws);
        self.sequence = old.sequence;
    }

    /// The engine met an error that it cannot go on from: GLPE_CRITERR holds `code`.
    pub fn report_critical_error(&mut self, cx: &mut Context<'_>, code: u32) {
        self.registers.critical_error = code;
        cx.interrupts.raise_other(cause::PE_CRITERR);
    }

    /// Raises an asynchronous event about a queue, which nothing here caused.
    pub fn report_async_event(&mut self, cx: &mut Context<'_>, code: u16, source: u8, id: u32) {
        let source = aeq::Source::from_code(source.into());
        let qp = self.qps.get(&id).filter(|_| source != aeq::Source::Cq);
        let event = aeq::AsyncEvent {
            code,
            source,
            id,
            context: qp.map_or(u64::from(id), |qp| qp.ctx.completion_context),
            qp_state: qp.map_or(0, |qp| qp.state as u8),
            ..aeq::AsyncEvent::default()
        };
        aeq::post(self, cx, event);
    }

    /// An access to the host memory cache failed: PFHMC_ERRORINFO and PFHMC_ERRORDATA say which.
    pub fn report_hmc_error(&mut self, cx: &mut Context<'_>, info: u32, data: u32) {
        self.registers.hmc_error_info = info;
        self.registers.hmc_error_data = data;
        cx.interrupts.raise_other(cause::HMC_ERR);
    }

    /// Raises the interrupt of an event queue, unless it is to go astray.
    pub(crate) fn raise(&mut self, cx: &mut Context<'_>, control: u32) {
        match cx.faults.check(Point::Interrupt, control & CAUSE_VECTOR) {
            Some(Action::Drop | Action::Fail(_)) => {}
            Some(Action::Delay(time)) => {
                let due = cx.now.saturating_add(time);
                self.later(due, Deferred::Interrupt { control });
            }
            Some(Action::Duplicate | Action::Corrupt(_)) | None => {
                cx.interrupts.raise_cause(control);
            }
        }
    }

    /// Puts an event off until `due`.
    pub(crate) fn later(&mut self, due: u64, event: Deferred) {
        self.sequence += 1;
        self.deferred.insert((due, self.sequence), event);
    }

    /// Adds to a counter of the function and of the statistics instance, if the queue pair names one.
    pub(crate) fn count(&mut self, instance: Option<u8>, counter: stats::Counter, amount: u64) {
        self.stats.add(counter, amount);
        if let Some(instance) = instance {
            self.count_in_instance(instance, counter, amount);
        }
    }

    /// Adds to a counter of a statistics instance, if it was allocated, and not to the function's.
    pub(crate) fn count_in_instance(&mut self, instance: u8, counter: stats::Counter, amount: u64) {
        if let Some(stats) = self.stats_instances.get_mut(&u32::from(instance)) {
            stats.add(counter, amount);
        }
    }
}
