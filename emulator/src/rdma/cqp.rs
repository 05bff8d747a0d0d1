// SPDX-License-Identifier: GPL-2.0
//! The control queue: its life, its ring, and how commands are completed.
//!
//! A command is completed twice: the tail register moves past it (with an error bit), and, once the control
//! completion queue (CQ 0) exists, an entry is written there.

use serde_json::json;

use super::claims::Owner;
use super::field::Field;
use super::layout::{self, cqe, host, wqe};
use super::ring::{Ring, RingBase};
use super::{cq, Deferred, Protocol, Rdma, Reported};
use crate::context::Context;
use crate::faults::{Action, Point};

mod ah;
mod cqs;
mod fpm;
mod misc;
mod opcode;
mod qps;
mod stags;

pub(crate) use opcode::Opcode;

/// The completion queue that hears of commands.
pub(crate) const CONTROL_CQ: u32 = 0;
/// Bytes of a command.
const ENTRY: u32 = 64;
/// Bytes of the host context.
const HOST_CONTEXT: usize = 64;

/// Why the device refuses a command: major and minor code.
///
/// The in-tree driver names two of the minor codes ("invalid state", "no WQE pending"); what it does not name is
/// chosen here, out of the way of those.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub major: u16,
    pub minor: u16,
}

impl Failure {
    const fn new(minor: u16) -> Self {
        Self {
            major: 0xffff,
            minor,
        }
    }

    /// The object is in a state that does not allow the command. The driver takes it as "busy".
    pub const INVALID_STATE: Failure = Failure::new(0x8002);
    /// The command is unknown or a field of it is wrong.
    pub const INVALID_COMMAND: Failure = Failure::new(0x8101);
    /// The object does not exist, exists already or its number is out of range.
    pub const INVALID_ID: Failure = Failure::new(0x8102);
    /// Guest memory that the command names cannot be used.
    pub const INVALID_MEMORY: Failure = Failure::new(0x8103);
    /// Something else still uses the object.
    pub const IN_USE: Failure = Failure::new(0x8104);
    /// The device has no more of what is asked for.
    pub const EXHAUSTED: Failure = Failure::new(0x8105);
    /// QUERY_STAG: the STag is not valid.
    pub const STAG_INVALID: Failure = Failure {
        major: 0xffff,
        minor: 0x0001,
    };
    /// The CQP host context is not one of this device.
    pub const HOST_CONTEXT: Failure = Failure::new(0x8106);
}

impl From<Reported> for Failure {
    fn from(_: Reported) -> Self {
        Failure::INVALID_MEMORY
    }
}

/// What a successful command hands back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Done {
    /// The operation's return value.
    pub value: u32,
    /// A code that is no error (FLUSH_WQES says what it flushed).
    pub minor: u16,
}

impl Done {
    pub const OK: Done = Done { value: 0, minor: 0 };

    pub fn value(value: u32) -> Self {
        Done { value, minor: 0 }
    }
}

pub(crate) type Outcome = Result<Done, Failure>;

/// A command to complete.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completion {
    index: u32,
    outcome: Outcome,
    /// Entries in the control completion queue: 0, 1 or 2.
    entries: u32,
    /// Changes the entry's header.
    corrupt: u64,
    /// The tail register does not move.
    silent: bool,
}

/// A command as read from the ring.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Command {
    pub opcode: Opcode,
    pub words: [u64; 8],
    /// The queue was told to refuse a command before: what that one should have
    /// taken apart is still there, and the driver cannot help it.
    pub after_refusal: bool,
}

impl Command {
    /// A field of quad word `word`.
    pub fn get(&self, word: usize, field: Field) -> u64 {
        self.words.get(word).map_or(0, |w| field.get(*w))
    }

    pub fn get32(&self, word: usize, field: Field) -> u32 {
        self.get(word, field) as u32
    }

    /// A field of the header.
    pub fn head(&self, field: Field) -> u64 {
        field.get(self.words[3])
    }

    pub fn flag(&self, field: Field) -> bool {
        field.is_set(self.words[3])
    }

    /// Records that the driver sent something that no correct driver sends.
    pub fn violation(&self, cx: &mut Context<'_>, text: impl std::fmt::Display) {
        cx.violation("cqp", format!("{}: {text}", self.opcode));
    }

    /// Records that the driver takes apart what something else still uses,
    /// unless that is left from a command that was refused on demand.
    pub fn used(&self, cx: &mut Context<'_>, text: impl std::fmt::Display) {
        if !self.after_refusal {
            self.violation(cx, text);
        }
    }

    /// Like [`Self::violation`], and the command fails.
    pub fn refuse(
        &self,
        cx: &mut Context<'_>,
        failure: Failure,
        text: impl std::fmt::Display,
    ) -> Failure {
        if failure == Failure::IN_USE {
            self.used(cx, text);
        } else {
            self.violation(cx, text);
        }
        failure
    }
}

/// The control queue.
#[derive(Debug)]
pub(crate) struct ControlQueue {
    ring: Ring,
    /// What completions carry: the driver's own word.
    context: u64,
    /// Value of the last doorbell.
    pub head: u32,
    /// Next command to process.
    tail: u32,
    /// Valid bit of the next command.
    polarity: bool,
    /// A delayed completion holds the ring up.
    stalled: bool,
    /// A command was refused on demand, or its end kept back or garbled: objects may be left that
    /// the driver could not destroy.
    refused: bool,
}

impl ControlQueue {
    /// Objects may be left that the driver could not destroy.
    pub fn was_refused(&self) -> bool {
        self.refused
    }

    /// Commands wait for one whose completion is delayed.
    pub fn is_stalled(&self) -> bool {
        self.stalled
    }
}

/// The driver wrote the address of a host context: creates the control queue.
pub(crate) fn create(rdma: &mut Rdma, cx: &mut Context<'_>, address: u64) {
    match try_create(rdma, cx, address) {
        Ok(()) => {
            rdma.registers.ccqp_status = rdma.layout.ccqp_done.mask() as u32;
            rdma.registers.cqp_tail = 0;
            rdma.registers.cqp_error_codes = 0;
        }
        Err(failure) => {
            rdma.registers.ccqp_status = rdma.layout.ccqp_err.mask() as u32;
            rdma.registers.cqp_error_codes = error_codes(failure);
        }
    }
}

fn error_codes(failure: Failure) -> u32 {
    (u32::from(failure.major) << 16) | u32::from(failure.minor)
}

fn read_words<const N: usize>(
    cx: &mut Context<'_>,
    what: &str,
    address: u64,
) -> Result<[u64; N], Reported> {
    let mut words = [0; N];
    for (offset, word) in (0u64..).step_by(8).zip(words.iter_mut()) {
        let at = address.checked_add(offset).ok_or(Reported)?;
        *word = cx.read_u64(what, at).map_err(|_| Reported)?;
    }
    Ok(words)
}

fn try_create(rdma: &mut Rdma, cx: &mut Context<'_>, address: u64) -> Result<(), Failure> {
    let words: [u64; HOST_CONTEXT / 8] = read_words(cx, "CQP host context", address)?;
    cx.trace("context", || json!({"cqp": address, "words": words}));
    if rdma.cqp.is_some() {
        cx.violation("cqp", "the control queue is created twice");
        return Err(Failure::INVALID_STATE);
    }
    let major = host::HW_MAJOR.get(words[4]);
    if major != rdma.layout.hw_major {
        cx.violation("cqp", format!("host context for hardware version {major}"));
        return Err(Failure::HOST_CONTEXT);
    }
    let code = host::SQ_SIZE.get32(words[0]);
    let base = words[1];
    // The code counts from 1 for 4 entries to 10 for 2048.
    if !(1..=10).contains(&code) || base % 512 != 0 || base == 0 {
        cx.violation(
            "cqp",
            format!("host context: ring of size code {code} at {base:#x}"),
        );
        return Err(Failure::HOST_CONTEXT);
    }
    let ring = Ring {
        owner: Owner::Cqp,
        base: RingBase::Contiguous(base),
        entry: ENTRY,
        count: 4 << (code - 1),
    };
    // The driver chooses among the protocols of the device; zero leaves the choice to it.
    match host::PROTOCOL.get(words[0]) {
        1 => rdma.config.protocol = Protocol::Iwarp,
        2 => rdma.config.protocol = Protocol::Roce,
        0 => {}
        other => {
            cx.violation("cqp", format!("host context: protocol {other}"));
            return Err(Failure::HOST_CONTEXT);
        }
    }
    ring.claim(cx, &rdma.hmc, &mut rdma.claims)?;
    rdma.cqp = Some(ControlQueue {
        ring,
        context: words[3],
        head: 0,
        tail: 0,
        polarity: true,
        stalled: false,
        refused: false,
    });
    Ok(())
}

/// The driver wrote a zero address: destroys the control queue. Everything made through it should be gone.
pub(crate) fn destroy(rdma: &mut Rdma, cx: &mut Context<'_>) {
    cx.trace("cqp_destroy", || json!({}));
    let Some(cqp) = rdma.cqp.take() else {
        // A driver that failed half-way destroys what it does not have; the device does not mind.
        rdma.registers.ccqp_status = 0;
        return;
    };
    let left = [
        ("QPs", rdma.qps.len()),
        ("CQs", rdma.cqs.len()),
        ("CEQs", rdma.ceqs.len()),
        ("AEQs", usize::from(rdma.aeq.is_some())),
        ("STags", rdma.mrs.len()),
        ("SD tables", usize::from(!rdma.hmc.is_empty())),
        ("scheduler trees", usize::from(!rdma.ws.is_empty())),
    ];
    // Behind a command that is delayed on demand the driver can destroy nothing more.
    let excused = cqp.refused || cqp.stalled;
    for (what, count) in left {
        if count != 0 && !excused {
            cx.violation("cqp", format!("destroyed while {count} {what} are left"));
        }
    }
    rdma.forget_objects();
    rdma.registers.ccqp_status = 0;
}

/// The doorbell: the driver filled the ring up to (not including) entry `head`.
pub(crate) fn doorbell(rdma: &mut Rdma, cx: &mut Context<'_>, head: u32) {
    cx.trace("doorbell", || json!({"cqp": head}));
    let Some(cqp) = &mut rdma.cqp else {
        // Drivers write a zero while they set up.
        if head != 0 {
            cx.violation("doorbell", "the control queue does not exist");
        }
        return;
    };
    if head >= cqp.ring.count {
        let count = cqp.ring.count;
        cx.violation("doorbell", format!("CQP head {head} of {count} entries"));
        return;
    }
    cqp.head = head;
    process(rdma, cx);
}

/// A delayed command is due.
pub(crate) fn resume(rdma: &mut Rdma, cx: &mut Context<'_>, completion: Completion) {
    if let Some(cqp) = &mut rdma.cqp {
        cqp.stalled = false;
        complete(rdma, cx, completion);
        process(rdma, cx);
    }
}

/// No driver need wait so many nanoseconds for a command.
const LONG_DELAY: u64 = 1_000_000_000;

fn process(rdma: &mut Rdma, cx: &mut Context<'_>) {
    loop {
        let Some(cqp) = &rdma.cqp else { return };
        if cqp.stalled || cqp.tail == cqp.head {
            return;
        }
        let (index, polarity, ring) = (cqp.tail, cqp.polarity, cqp.ring);
        let Ok(address) = ring.address(cx, &rdma.hmc, &rdma.claims, index) else {
            return;
        };
        let Ok(words) = read_words::<8>(cx, "CQP WQE", address) else {
            return;
        };
        if wqe::VALID.is_set(words[3]) != polarity {
            cx.violation(
                "cqp",
                format!("entry {index} rung for, but its valid bit says no"),
            );
            return;
        }
        if let Some(cqp) = &mut rdma.cqp {
            cqp.tail += 1;
            if cqp.tail >= cqp.ring.count {
                cqp.tail = 0;
                cqp.polarity = !cqp.polarity;
            }
        }
        run(rdma, cx, index, words);
    }
}

fn run(rdma: &mut Rdma, cx: &mut Context<'_>, index: u32, words: [u64; 8]) {
    let code = wqe::OPCODE.get(words[3]) as u8;
    let known = Opcode::from_code(code);
    cx.trace("cqp", || {
        json!({"index": index, "op": known.map(|op| op.to_string()), "code": code, "words": words})
    });
    if let Some(text) = rdma.page_taken.take() {
        if !rdma.cqp.as_ref().is_some_and(|cqp| cqp.refused) {
            cx.violation("hmc", text);
        }
    }
    let fault = cx.faults.check(Point::CqpCommand, u32::from(code));
    // A driver that is told something else of its command, or so late that it may have given up, may
    // leave things behind.
    let trouble = match fault {
        Some(Action::Fail(_) | Action::Drop | Action::Corrupt(_)) => true,
        Some(Action::Delay(time)) => time >= LONG_DELAY,
        _ => false,
    };
    if let Some(cqp) = rdma.cqp.as_mut().filter(|_| trouble) {
        cqp.refused = true;
    }
    let outcome = match (fault, known) {
        (Some(Action::Fail(codes)), _) => Err(Failure {
            major: (codes >> 16) as u16,
            minor: codes as u16,
        }),
        (_, None) => {
            cx.violation("cqp", format!("opcode {code:#x} is not implemented"));
            Err(Failure::INVALID_COMMAND)
        }
        (_, Some(opcode)) => {
            let command = Command {
                opcode,
                words,
                after_refusal: rdma.cqp.as_ref().is_some_and(|cqp| cqp.refused),
            };
            execute(rdma, cx, command)
        }
    };
    let mut completion = Completion {
        index,
        outcome,
        entries: 1,
        corrupt: 0,
        silent: false,
    };
    match fault {
        Some(Action::Drop) => {
            completion.entries = 0;
            completion.silent = true;
        }
        Some(Action::Duplicate) => completion.entries = 2,
        Some(Action::Corrupt(bits)) => completion.corrupt = bits,
        Some(Action::Delay(time)) => {
            if let Some(cqp) = &mut rdma.cqp {
                cqp.stalled = true;
            }
            let due = cx.now.saturating_add(time);
            rdma.later(due, Deferred::Command { completion });
            return;
        }
        Some(Action::Fail(_)) | None => {}
    }
    complete(rdma, cx, completion);
}

fn complete(rdma: &mut Rdma, cx: &mut Context<'_>, completion: Completion) {
    let Some(cqp) = &rdma.cqp else { return };
    let (count, context) = (cqp.ring.count, cqp.context);
    let Completion { index, outcome, .. } = completion;
    let (done, failure) = match outcome {
        Ok(done) => (done, None),
        Err(failure) => (Done::OK, Some(failure)),
    };
    cx.trace("cqp_done", || {
        json!({"index": index, "value": done.value, "minor": failure.map_or(done.minor, |f| f.minor),
            "error": failure.map(error_codes)})
    });
    if !completion.silent {
        let tail = layout::CQPTAIL_TAIL.put(u64::from((index + 1) % count));
        let error = layout::CQPTAIL_ERROR.flag(failure.is_some());
        rdma.registers.cqp_tail = (tail | error) as u32;
        if let Some(failure) = failure {
            rdma.registers.cqp_error_codes = error_codes(failure);
        }
    }
    let (major, minor) = failure.map_or((0, done.minor), |f| (f.major, f.minor));
    let header = cqe::MINOR.put(u64::from(minor))
        | cqe::MAJOR.put(u64::from(major))
        | cqe::WQE_INDEX.put(u64::from(index))
        | cqe::ERROR.flag(failure.is_some());
    let header = (header ^ completion.corrupt) & !cqe::VALID.mask();
    for _ in 0..completion.entries {
        if rdma.cqs.contains_key(&CONTROL_CQ) {
            let words = [0, context, u64::from(done.value)];
            // A failure is recorded by the ring.
            let _ = cq::post_control(rdma, cx, CONTROL_CQ, words, header);
        }
    }
}

fn execute(rdma: &mut Rdma, cx: &mut Context<'_>, command: Command) -> Outcome {
    let allowed = command.opcode.allowed();
    for (number, (word, allowed)) in command.words.iter().zip(allowed).enumerate() {
        let reserved = word & !allowed;
        if reserved != 0 {
            command.violation(
                cx,
                format!("reserved bits {reserved:#x} in quad word {number}"),
            );
        }
    }
    let c = &command;
    match command.opcode {
        Opcode::Nop => Ok(Done::OK),
        Opcode::CreateQp => qps::create(rdma, cx, c),
        Opcode::ModifyQp => qps::modify(rdma, cx, c),
        Opcode::DestroyQp => qps::destroy(rdma, cx, c),
        Opcode::FlushWqes => qps::flush(rdma, cx, c),
        Opcode::SuspendQp => qps::suspend(rdma, cx, c),
        Opcode::ResumeQp => qps::resume(rdma, cx, c),
        Opcode::UploadContext => qps::upload_context(rdma, cx, c),
        Opcode::CreateCq => cqs::create_cq(rdma, cx, c),
        Opcode::ModifyCq => cqs::modify_cq(rdma, cx, c),
        Opcode::DestroyCq => cqs::destroy_cq(rdma, cx, c),
        Opcode::CreateCeq => cqs::create_ceq(rdma, cx, c),
        Opcode::DestroyCeq => cqs::destroy_ceq(rdma, cx, c),
        Opcode::CreateAeq => cqs::create_aeq(rdma, cx, c),
        Opcode::DestroyAeq => cqs::destroy_aeq(rdma, cx, c),
        Opcode::AllocStag => stags::allocate(rdma, cx, c),
        Opcode::RegMr => stags::register(rdma, cx, c),
        Opcode::QueryStag => stags::query(rdma, cx, c),
        Opcode::DeallocStag => stags::deallocate(rdma, cx, c),
        Opcode::CreateAh | Opcode::ModifyAh => ah::create_or_modify(rdma, cx, c),
        Opcode::DestroyAh => ah::destroy(rdma, cx, c),
        Opcode::CreateMcast | Opcode::ModifyMcast => ah::create_or_modify_group(rdma, cx, c),
        Opcode::DestroyMcast => ah::destroy_group(rdma, cx, c),
        Opcode::ManageArp => ah::manage_arp(rdma, cx, c),
        Opcode::UpdateSds => fpm::update_sds(rdma, cx, c),
        Opcode::QueryFpm => fpm::query(cx, c),
        Opcode::CommitFpm => fpm::commit(rdma, cx, c),
        Opcode::PagesAllocated => fpm::pages_allocated(rdma, cx),
        Opcode::QueryFeatures => misc::query_features(cx, c),
        Opcode::AllocMac => misc::allocate_mac(rdma, cx, c),
        Opcode::ManageMac => misc::manage_mac(rdma, cx, c),
        Opcode::ManagePush => misc::manage_push(cx, c),
        Opcode::WorkSchedNode => misc::work_scheduler(rdma, cx, c),
        Opcode::ManageStats => misc::manage_stats(rdma, cx, c),
        Opcode::GatherStats => misc::gather_stats(rdma, cx, c),
        Opcode::UpMap => Ok(Done::OK),
    }
}
