// SPDX-License-Identifier: GPL-2.0

//! What differs between the generations of the device.
//!
//! There is one type a generation, which looks at the registers through a window of its own size.
//! Which one it is gets chosen once, when the LAN driver hands us a function; nobody asks for the
//! generation afterwards.
//!
//! # What another generation has to provide
//!
//! A file beside [`e810`] with [`Limits`] and a [`Hal`], and one in `lan/` that hands the functions
//! over. What of the E810 (GEN_2) is in neither yet, since there is nothing to choose from as long as
//! it is alone, is listed here with its place; the choice belongs into [`Limits`] or [`Hal`].
//!
//! | place | X722 (GEN_1) | E2000 (GEN_3) |
//! |---|---|---|
//! | `hw/hmc/fpm.rs`, `hw/hmc/plan.rs` | query and commit end with the timers but for page lists; other counts, CQs in bits 17:0 | more segments, no port bit vector, counts of its own |
//! | `hw/hmc.rs`, `hw/pble.rs` | | objects in the device's own memory |
//! | `hw/cqp/live.rs`, the queue's context | no protocol | sizes of blocks, timers |
//! | `hw/cqp/`, fields of commands | CQs, CEQs and PDs have narrower numbers | a flush names the failed WQEs |
//! | `hw/cqp/complete.rs` | | commands that complete twice, or out of order |
//! | `hw/aeq/event.rs` | | another layout |
//! | `hw/aeq.rs` | one piece of memory only | one piece of memory only |
//! | `hw/qp_context.rs` | iWARP only | another layout |
//! | `hw/arp.rs` | the MAC address in a table | |
//! | `uk/wqe/` | fragments and inline data in another form, no fragment that only fills up; a WQE of one quantum also invalidates the next | inline data up to 216 bytes; the fragment that only fills up is not counted |
//! | `uk/sizing.rs` | no immediate data, other steps of sizes, receive WQEs of 128 bytes | |
//! | `uk/cq.rs`, `verbs/cq.rs` | a user's shadow area behind the ring | entries of 64 bytes with time stamps |
//! | `verbs/qp.rs` | | GSI QPs of other numbers than 1, the right to bind windows |
//! | `verbs/poll.rs` | | the device flushes each work request itself |
//! | `verbs/device.rs` | | no local DMA key, windows of type 2B, a clock |
//! | `verbs/mr.rs` | | the right to bind windows |
//! | `verbs/ucontext.rs` | users of the first library | refuses users that don't know its WQEs |
//!
//! Queue sets are made by the work scheduler on the E810 only; the LAN drivers of the others have
//! them, and give them in [`QosParams::handles`](super::lan_ops::QosParams).

use kernel::prelude::*;

use super::{
    dma::DmaBuffer,
    features::Features,
    function::Function,
    hmc::object::Object, //
};
use crate::uk;

pub(crate) mod e810;

/// State of the control queue, as its status register tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CqpStatus {
    /// Any bit of the register is set: the device has answered.
    pub(crate) answered: bool,
    /// The queue exists.
    pub(crate) done: bool,
    /// Its creation failed.
    pub(crate) error: bool,
}

/// How far the device is with the control queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CqpTail {
    /// Index of the next entry that it will process.
    pub(crate) index: u32,
    /// The last command failed.
    pub(crate) error: bool,
}

/// Offsets in the BAR of the doorbells, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DoorbellOffsets {
    /// Tells of new entries of a queue pair's send queue.
    pub(crate) send_queue: usize,
    /// Arms a completion queue.
    pub(crate) arm_cq: usize,
    /// Acknowledges a completion event.
    pub(crate) ack_cq: usize,
    /// Page of doorbells that is mapped into user space.
    pub(crate) user_page: usize,
}

/// Limits of a generation; the function-private memory may limit further.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Number by which users' libraries know the generation.
    pub(crate) generation: u8,
    /// Version that the control queue's context states.
    pub(crate) cqp_major_version: u16,
    /// Greatest number of inbound read requests of a queue pair.
    pub(crate) max_ird: u32,
    /// Greatest number of outbound read requests of a queue pair.
    pub(crate) max_ord: u32,
    /// Page sizes of a region, as a bit mask of bytes.
    pub(crate) page_sizes: u64,
    /// Greatest length of a region in bytes.
    pub(crate) max_region: u64,
    /// Number of protection domains.
    pub(crate) max_pds: u32,
    /// Greatest number of entries of a completion queue that users' libraries are told of. What a
    /// queue may have is in [`Limits::queues`].
    #[doc(alias = "IRDMA_MAX_CQ_SIZE")]
    pub(crate) user_cq_entries: u32,
    /// Number of entries of the control queue's completion queue: one for each completion that can
    /// be outstanding, and two more.
    #[doc(alias = "IW_CCQ_SIZE")]
    #[doc(alias = "IW_GEN_3_CCQ_SIZE")]
    pub(crate) ccq_entries: u32,
    /// Greatest number of entries of a completion event queue.
    pub(crate) max_ceq_entries: u32,
    /// Greatest number of entries of the asynchronous event queue.
    pub(crate) max_aeq_entries: u32,
    /// Greatest number of pages of a fast registration.
    #[doc(alias = "IRDMA_MAX_PAGES_PER_FMR")]
    pub(crate) max_fast_reg_pages: u32,
    /// The device makes an event when a connection is established; users' libraries keep ring
    /// entries for it.
    #[doc(alias = "IRDMA_FEATURE_RTS_AE")]
    pub(crate) established_event: bool,
    /// Completion queues can be resized, and users register their shadow areas on their own.
    #[doc(alias = "IRDMA_FEATURE_CQ_RESIZE")]
    pub(crate) cq_resize: bool,
    /// How often the counters have to be gathered so that none wraps unseen, in milliseconds; `None`
    /// if they are as wide as what users see of them.
    #[doc(alias = "STATS_TIMER_DELAY")]
    pub(crate) stats_period_ms: Option<u32>,
    /// The objects in the function-private memory, in the order in which they get their memory and
    /// lose it.
    #[doc(alias = "iw_hmc_obj_types")]
    pub(crate) objects: &'static [Object],
    /// Those of the queues of users.
    pub(crate) queues: uk::limits::Limits,
}

/// Where the buffer of gathered statistics holds one counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StatField {
    /// Index of the quadword.
    pub(crate) word: usize,
    /// Lowest bit.
    pub(crate) shift: u32,
    /// Width in bits.
    pub(crate) width: u32,
}

/// The registers of a generation, and what it is asked in a way of its own.
///
/// An `index` or `vector` that the device does not have gives `EINVAL` and touches no register.
pub(crate) trait Hal: Send + Sync {
    /// Returns the limits.
    fn limits(&self) -> &'static Limits;

    /// Returns the layout of the gathered statistics, in the order of C's `irdma_hw_stats_index`.
    #[doc(alias = "irdma_hw_stats_index")]
    fn stat_fields(&self) -> &'static [StatField];

    /// Has the counters put into `buffer`, as [`Hal::stat_fields`] has it. Sleeps.
    ///
    /// A generation with counters in registers reads them.
    ///
    /// # Errors
    ///
    /// Those of [`Function::execute`]; after `ETIMEDOUT` the device may still write to `buffer`.
    #[doc(alias = "irdma_cqp_gather_stats_gen1")]
    fn gather_stats(&self, function: &Function<'_>, buffer: &DmaBuffer) -> Result;

    /// Asks for the firmware's version and features. Sleeps.
    ///
    /// A generation whose firmware can't be asked says what there is anyway.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the answer makes no sense, and those of [`Function::execute`].
    fn query_features(&self, function: &Function<'_>) -> Result<Features>;

    /// Returns where the doorbells are.
    fn doorbells(&self) -> DoorbellOffsets;

    /// Checks that the protocol engine is up.
    fn is_ready(&self) -> bool;

    /// Checks that the function's doorbells are switched on.
    fn has_doorbells(&self) -> bool;

    /// Clears what an earlier control queue left behind.
    fn clear_cqp(&self);

    /// Creates the control queue from the context at `address`; 0 destroys it.
    fn set_cqp_context(&self, address: u64);

    /// Reads the state of the control queue.
    fn cqp_status(&self) -> CqpStatus;

    /// Reads how far the device is with the control queue.
    fn cqp_tail(&self) -> CqpTail;

    /// Reads the (major, minor) codes of the control queue's last error.
    fn cqp_error(&self) -> (u16, u16);

    /// Tells the device of new commands; `head` is the index after the last one.
    fn ring_cqp(&self, head: u32);

    /// Lets `vector` interrupt, once.
    fn enable_vector(&self, vector: u32) -> Result;

    /// Stops `vector` from interrupting.
    fn disable_vector(&self, vector: u32) -> Result;

    /// Connects completion event queue `ceq` with `vector`, or takes it off.
    fn configure_ceq(&self, ceq: u32, vector: u32, enable: bool) -> Result;

    /// Connects the asynchronous event queue with `vector`, or takes it off.
    fn configure_aeq(&self, vector: u32, enable: bool) -> Result;

    /// Takes the asynchronous event queue off its vector before its destruction.
    fn clear_aeq(&self);

    /// Gives `count` entries of the asynchronous event queue back.
    fn return_aeq_entries(&self, count: u32);

    /// Has the device forget what it knows about a page descriptor of a segment.
    fn invalidate_page(&self, segment: u32, page: u32) -> Result;

    /// Reads the cause of a critical error.
    fn critical_error(&self) -> u32;

    /// Returns whether `cause` is a critical error that only a reset ends.
    fn is_fatal(&self, cause: u32) -> bool;

    /// Reads the (information, data) of an error in the function-private memory.
    fn hmc_error(&self) -> (u32, u32);
}
