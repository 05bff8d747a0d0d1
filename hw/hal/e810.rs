// SPDX-License-Identifier: GPL-2.0

//! The E810 (GEN_2), as the LAN driver `ice` offers it.
//!
//! Register names are those of the E810 data sheet; PE is the protocol engine, CCQP the context of
//! the control queue pair, HMC the host memory cache (function-private memory).

use kernel::{
    io::{
        register,
        register::Array,
        Io, //
    },
    prelude::*, //
};

use super::{
    CqpStatus,
    CqpTail,
    DoorbellOffsets,
    Hal,
    Limits,
    StatField, //
};
use crate::{
    hw::{
        cqp::{
            self,
            scheduler::GatherStats, //
        },
        dma::DmaBuffer,
        features::Features,
        function::Function,
        hmc::object::Object,
        regs::{
            BarMapping,
            Window, //
        }, //
    },
    uk, //
};

register! {
    /// Index of the control queue's entry that is next.
    pub(crate) PFPE_CQPTAIL(u32) @ 0x0050_0880 {
        /// The last command failed.
        31:31 op_error => bool;
        10:0  tail;
    }

    /// Control queue doorbell.
    pub(crate) PFPE_CQPDB(u32) @ 0x0050_0800 {
        10:0 head;
    }

    /// State of the control queue.
    pub(crate) PFPE_CCQPSTATUS(u32) @ 0x0050_a000 {
        31:31 error => bool;
        0:0   done => bool;
    }

    /// Upper half of the address of the control queue's context.
    pub(crate) PFPE_CCQPHIGH(u32) @ 0x0050_a100 {
        31:0 address;
    }

    /// Lower half of the address of the control queue's context; writing it has an effect.
    pub(crate) PFPE_CCQPLOW(u32) @ 0x0050_a080 {
        31:0 address;
    }

    /// Codes of the control queue's last error.
    pub(crate) PFPE_CQPERRCODES(u32) @ 0x0050_a200 {
        31:16 major;
        15:0  minor;
    }

    /// Number of entries of the asynchronous event queue to give back.
    pub(crate) PFPE_AEQALLOC(u32) @ 0x0050_2d00 {
        31:0 count;
    }

    /// State of the protocol engine's processor 0.
    pub(crate) GLPE_CPUSTATUS0(u32) @ 0x0050_ba5c {
        31:0 status;
    }

    /// State of the protocol engine's processor 1.
    pub(crate) GLPE_CPUSTATUS1(u32) @ 0x0050_ba60 {
        31:0 status;
    }

    /// State of the protocol engine's processor 2.
    pub(crate) GLPE_CPUSTATUS2(u32) @ 0x0050_ba64 {
        31:0 status;
    }

    /// Layout of the BAR.
    pub(crate) GLPCI_LBARCTRL(u32) @ 0x0009_de74 {
        /// Size of the doorbell area: 1 for 4 MiB, 2 for 8 MiB.
        5:4 pe_db_size;
    }

    /// Control of one interrupt vector.
    pub(crate) GLINT_DYN_CTL(u32)[2048] @ 0x0016_0000 {
        /// Interval in units of 2 microseconds.
        16:5 interval;
        /// Which of the three intervals; 3 for none.
        4:3  itr_index;
        /// Clears a pending interrupt.
        1:1  clear_pba => bool;
        /// Enables the vector until it fires.
        0:0  enable => bool;
    }

    /// Vector of one completion event queue.
    pub(crate) GLINT_CEQCTL(u32)[2048] @ 0x0015_c000 {
        30:30 cause_enable => bool;
        12:11 itr_index;
        10:0  vector;
    }

    /// Vector of the asynchronous event queue.
    pub(crate) PFINT_AEQCTL(u32) @ 0x0016_cb00 {
        30:30 cause_enable => bool;
        12:11 itr_index;
        10:0  vector;
    }

    /// Has a page descriptor read again.
    pub(crate) PFHMC_PDINV(u32) @ 0x0052_0300 {
        24:16 page;
        /// Selects the part of the protocol engine.
        15:15 part => bool;
        11:0  segment;
    }

    /// What an access to the function-private memory failed of.
    pub(crate) PFHMC_ERRORINFO(u32) @ 0x0052_0400 {
        31:0 information;
    }

    /// More about a failed access to the function-private memory.
    pub(crate) PFHMC_ERRORDATA(u32) @ 0x0052_0500 {
        31:0 data;
    }

    /// Cause of a critical error of the protocol engine.
    pub(crate) GLPE_CRITERR(u32) @ 0x0053_4000 {
        31:0 cause;
    }
}

/// What each processor of the protocol engine says when its firmware runs.
const CPU_READY: u32 = 0x80;

/// The interval index that means "no interval".
const ITR_NONE: u32 = 3;

/// Cause of a critical error that is none: the resources for inbound reads are checked.
#[doc(alias = "IRDMA_Q1_RESOURCE_ERR")]
const CAUSE_Q1_RESOURCE: u32 = 0x0001_024d;

/// Bytes of the BAR: up to the end of the doorbell pages.
const BAR_SIZE: usize = 8 * 1024 * 1024;

/// The E810.
#[doc(alias = "icrdma_init_hw")]
pub(crate) struct E810<'a> {
    bar: Window<'a, BAR_SIZE>,
}

impl<'a> E810<'a> {
    /// Takes a function whose BAR is mapped by `mapping`.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the mapping is too small.
    pub(crate) fn new(mapping: &BarMapping<'a>) -> Result<Self> {
        Ok(Self {
            bar: mapping.window()?,
        })
    }
}

/// Number of this generation in the users' ABI.
#[doc(alias = "IRDMA_GEN_2")]
const GENERATION: u8 = 2;

pub(crate) const LIMITS: Limits = Limits {
    generation: GENERATION,
    cqp_major_version: 1,
    max_ird: 127,
    max_ord: 255,
    page_sizes: (1 << 12) | (1 << 21) | (1 << 30),
    max_region: 1 << 45,
    max_pds: 262_144,
    user_cq_entries: 1_048_575,
    ccq_entries: cqp::ENTRIES + 2,
    max_ceq_entries: 262_143,
    max_aeq_entries: 524_287,
    max_fast_reg_pages: 262_144,
    established_event: true,
    cq_resize: true,
    stats_period_ms: Some(60_000),
    objects: OBJECTS,
    queues: uk::limits::Limits {
        max_sge: 13,
        max_read_sge: 13,
        max_inline_data: 101,
        max_sq_quanta: 32_768,
        max_rq_quanta: 32_768,
        min_wqes: 8,
        sq_chunk: 8,
        max_message: 0x7fff_ffff,
        max_cqe: 1_048_574,
        max_cq_entries: 0x1f_fffe,
        entries_per_completion: 2,
        max_srq_quanta: 0,
        // What the first generation with shared receive queues has.
        max_srq_wr: (262_144 - 1) / 8,
    },
};

const OBJECTS: &[Object] = &[
    Object::Qp,
    Object::Cq,
    Object::Srq,
    Object::HashEntry,
    Object::Arp,
    Object::Apbvt,
    Object::Mr,
    Object::Xf,
    Object::XfFreeList,
    Object::Q1,
    Object::Q1FreeList,
    Object::Pble,
    Object::Timer,
    Object::McastGroup,
    Object::AddressHandle,
    Object::Rrf,
    Object::RrfFreeList,
    Object::Header,
    Object::Metadata,
    Object::Ooisc,
    Object::OoiscFreeList,
];

const fn stat(word: usize, shift: u32, width: u32) -> StatField {
    StatField { word, shift, width }
}

/// In the order of [`crate::hw::stats::Counter`].
#[doc(alias = "icrdma_hw_stat_map")]
const STAT_FIELDS: [StatField; 46] = [
    stat(3, 32, 32),
    stat(3, 0, 32),
    stat(23, 32, 24),
    stat(9, 32, 32),
    stat(9, 0, 32),
    stat(23, 0, 24),
    stat(27, 32, 32),
    stat(25, 32, 24),
    stat(25, 0, 24),
    stat(0, 32, 24),
    stat(1, 0, 48),
    stat(2, 0, 48),
    stat(4, 0, 48),
    stat(6, 0, 48),
    stat(13, 0, 48),
    stat(14, 0, 48),
    stat(15, 0, 48),
    stat(17, 0, 48),
    stat(7, 0, 48),
    stat(8, 0, 48),
    stat(10, 0, 48),
    stat(12, 0, 48),
    stat(18, 0, 48),
    stat(19, 0, 48),
    stat(20, 0, 48),
    stat(22, 0, 48),
    stat(24, 32, 48),
    stat(26, 0, 48),
    stat(31, 0, 48),
    stat(32, 0, 48),
    stat(30, 0, 48),
    stat(34, 0, 48),
    stat(35, 0, 48),
    stat(33, 0, 48),
    stat(36, 0, 48),
    stat(37, 0, 48),
    stat(5, 0, 48),
    stat(16, 0, 48),
    stat(11, 0, 48),
    stat(21, 0, 48),
    stat(28, 0, 48),
    stat(29, 0, 48),
    stat(38, 0, 56),
    stat(39, 0, 32),
    stat(39, 32, 24),
    stat(40, 0, 32),
];

impl Hal for E810<'_> {
    fn limits(&self) -> &'static Limits {
        &LIMITS
    }

    fn stat_fields(&self) -> &'static [StatField] {
        &STAT_FIELDS
    }

    #[doc(alias = "irdma_cqp_gather_stats_cmd")]
    fn gather_stats(&self, function: &Function<'_>, buffer: &DmaBuffer) -> Result {
        function.execute(&GatherStats {
            buffer: buffer.address(),
            instance: None,
        })?;

        Ok(())
    }

    fn query_features(&self, function: &Function<'_>) -> Result<Features> {
        Features::query(function)
    }

    fn doorbells(&self) -> DoorbellOffsets {
        DoorbellOffsets {
            send_queue: 0x0050_4400,
            arm_cq: 0x0050_2c00,
            ack_cq: 0x0050_2c80,
            user_page: BAR_SIZE - 64 * 1024,
        }
    }

    #[doc(alias = "irdma_wait_pe_ready")]
    fn is_ready(&self) -> bool {
        self.bar.read(GLPE_CPUSTATUS0).into_raw() == CPU_READY
            && self.bar.read(GLPE_CPUSTATUS1).into_raw() == CPU_READY
            && self.bar.read(GLPE_CPUSTATUS2).into_raw() == CPU_READY
    }

    fn has_doorbells(&self) -> bool {
        let size = self.bar.read(GLPCI_LBARCTRL).pe_db_size();

        size == 1 || size == 2
    }

    fn clear_cqp(&self) {
        self.bar.write_reg(PFPE_CQPTAIL::zeroed());
        self.bar.write_reg(PFPE_CQPDB::zeroed());
        self.bar.write_reg(PFPE_CCQPSTATUS::zeroed());
    }

    fn set_cqp_context(&self, address: u64) {
        // CAST: The address is written in halves.
        self.bar
            .write_reg(PFPE_CCQPHIGH::from_raw((address >> 32) as u32));
        self.bar.write_reg(PFPE_CCQPLOW::from_raw(address as u32));
    }

    fn cqp_status(&self) -> CqpStatus {
        let status = self.bar.read(PFPE_CCQPSTATUS);

        CqpStatus {
            answered: status.into_raw() != 0,
            done: status.done(),
            error: status.error(),
        }
    }

    fn cqp_tail(&self) -> CqpTail {
        let tail = self.bar.read(PFPE_CQPTAIL);

        CqpTail {
            index: tail.tail().get(),
            error: tail.op_error(),
        }
    }

    fn cqp_error(&self) -> (u16, u16) {
        let codes = self.bar.read(PFPE_CQPERRCODES).into_raw();

        // CAST: The codes are the halves of the register.
        ((codes >> 16) as u16, codes as u16)
    }

    fn ring_cqp(&self, head: u32) {
        self.bar.write_reg(PFPE_CQPDB::from_raw(head));
    }

    #[doc(alias = "icrdma_ena_irq")]
    fn enable_vector(&self, vector: u32) -> Result {
        let location = GLINT_DYN_CTL::try_at(vector.try_into()?).ok_or(EINVAL)?;

        self.bar.write(
            location,
            GLINT_DYN_CTL::zeroed()
                .with_enable(true)
                .with_clear_pba(true),
        );

        Ok(())
    }

    #[doc(alias = "icrdma_disable_irq")]
    fn disable_vector(&self, vector: u32) -> Result {
        let location = GLINT_DYN_CTL::try_at(vector.try_into()?).ok_or(EINVAL)?;

        self.bar.write(location, GLINT_DYN_CTL::zeroed());

        Ok(())
    }

    #[doc(alias = "icrdma_cfg_ceq")]
    fn configure_ceq(&self, ceq: u32, vector: u32, enable: bool) -> Result {
        let location = GLINT_CEQCTL::try_at(ceq.try_into()?).ok_or(EINVAL)?;
        let value = GLINT_CEQCTL::zeroed()
            .with_cause_enable(enable)
            .with_const_itr_index::<ITR_NONE>()
            .try_with_vector(vector)?;

        self.bar.write(location, value);

        Ok(())
    }

    #[doc(alias = "irdma_cfg_aeq")]
    fn configure_aeq(&self, vector: u32, enable: bool) -> Result {
        self.bar.write_reg(
            PFINT_AEQCTL::zeroed()
                .with_cause_enable(enable)
                .with_const_itr_index::<ITR_NONE>()
                .try_with_vector(vector)?,
        );

        Ok(())
    }

    fn clear_aeq(&self) {
        self.bar.write_reg(PFINT_AEQCTL::zeroed());
    }

    #[doc(alias = "irdma_sc_repost_aeq_entries")]
    fn return_aeq_entries(&self, count: u32) {
        self.bar.write_reg(PFPE_AEQALLOC::from_raw(count));
    }

    #[doc(alias = "irdma_invalidate_pf_hmc_pd")]
    fn invalidate_page(&self, segment: u32, page: u32) -> Result {
        self.bar.write_reg(
            PFHMC_PDINV::zeroed()
                .try_with_segment(segment)?
                .with_part(true)
                .try_with_page(page)?,
        );

        Ok(())
    }

    fn critical_error(&self) -> u32 {
        self.bar.read(GLPE_CRITERR).into_raw()
    }

    fn is_fatal(&self, cause: u32) -> bool {
        // Without a cause the LAN driver tells late of what a reset has ended by now.
        !matches!(cause, 0 | CAUSE_Q1_RESOURCE)
    }

    fn hmc_error(&self) -> (u32, u32) {
        (
            self.bar.read(PFHMC_ERRORINFO).into_raw(),
            self.bar.read(PFHMC_ERRORDATA).into_raw(),
        )
    }
}
