// SPDX-License-Identifier: GPL-2.0

//! User contexts: what a process that has opened the device has, and the queues' memory that it has
//! registered.

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use super::{
    abi,
    device::Device,
    queue_memory::QueueMemory,
    Verbs, //
};
use crate::rdma::{
    Caching,
    NewUcontext,
    Udata, //
};

/// A user context.
pub(crate) struct Ucontext {
    /// The sizes of QPs are given in work requests.
    raw_attrs: bool,
    waiting: Arc<Waiting>,
}

/// Memory that a user has registered for queues which don't exist yet.
#[pin_data]
pub(super) struct Waiting {
    #[pin]
    queues: Mutex<KVec<Arc<QueueMemory>>>,
}

/// Memory of a queue. As long as this lives the memory can't be deregistered. If it goes without
/// having been released, the queue has not come to be, and the memory waits for another.
pub(super) struct Queue {
    memory: Arc<QueueMemory>,
    waiting: Arc<Waiting>,
}

impl Ucontext {
    /// Opens the device for a user.
    ///
    /// # Errors
    ///
    /// - `EINVAL` for a version of the interface that we don't speak.
    /// - `EOPNOTSUPP` for a library of the first generation, and for features that we don't know.
    /// - `ENOMEM`
    #[doc(alias = "irdma_alloc_ucontext")]
    pub(super) fn new(
        dev: &Device<'_>,
        new: &mut NewUcontext<'_, Verbs>,
        udata: &mut Udata<'_, Verbs>,
    ) -> Result<Self> {
        if udata.response_len() < abi::MIN_ALLOC_UCONTEXT_RESP {
            return Err(EINVAL);
        }

        let request: abi::AllocUcontextReq = udata.read(abi::MIN_ALLOC_UCONTEXT_REQ)?;
        if request.comp_mask & !(abi::USE_RAW_ATTR | abi::WQE_FORMAT_V2) != 0 {
            return Err(EOPNOTSUPP);
        }
        if !(abi::OLDEST_VERSION..=abi::VERSION).contains(&request.userspace_ver) {
            return Err(EINVAL);
        }
        // The library of the first generation has room for so much and no more.
        if udata.response_len() == abi::MIN_ALLOC_UCONTEXT_RESP {
            return Err(EOPNOTSUPP);
        }

        let db_mmap_key = new.insert_page(dev.user_doorbells(), Caching::None)?;
        let limits = dev.limits();
        let hw = dev.hw_limits();
        udata.respond(&abi::AllocUcontextResp {
            max_pds: 0,
            max_qps: 0,
            wq_size: 0,
            kernel_ver: abi::VERSION,
            rsvd: [0; 3],
            feature_flags: abi::feature_flags(hw),
            db_mmap_key,
            max_hw_wq_frags: limits.max_sge,
            max_hw_read_sges: limits.max_read_sge,
            max_hw_inline: limits.max_inline_data,
            max_hw_rq_quanta: limits.max_rq_quanta,
            max_hw_wq_quanta: limits.max_sq_quanta,
            min_hw_cq_size: 1,
            max_hw_cq_size: hw.user_cq_entries,
            max_hw_sq_chunk: limits.sq_chunk.try_into()?,
            hw_rev: hw.generation,
            rsvd2: 0,
            comp_mask: abi::USE_RAW_ATTR | abi::MIN_HW_WQ_SIZE | abi::MAX_HW_SRQ_QUANTA,
            min_hw_wq_size: limits.min_wqes.try_into()?,
            rsvd3: [0; 2],
            max_hw_srq_quanta: limits.max_srq_quanta,
        })?;

        Ok(Self {
            raw_attrs: request.comp_mask & abi::USE_RAW_ATTR != 0,
            waiting: Arc::pin_init(
                pin_init!(Waiting {
                    queues <- new_mutex!(KVec::new(), "Waiting::queues"),
                }),
                GFP_KERNEL,
            )?,
        })
    }

    /// Returns whether the sizes of QPs are given in work requests, and the driver chooses the
    /// rings' sizes; else they are those of the rings, in quanta.
    pub(super) fn has_raw_attrs(&self) -> bool {
        self.raw_attrs
    }

    /// Returns the memory for queues that don't exist yet.
    pub(super) fn waiting(&self) -> &Arc<Waiting> {
        &self.waiting
    }

    /// Gives the memory for queues of `kind` that was registered at `address` to a queue.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is none, or it has been given to another queue.
    #[doc(alias = "irdma_get_pbl")]
    pub(super) fn take_queue(&self, kind: u16, address: u64) -> Result<Queue> {
        let mut queues = self.waiting.queues.lock();
        let at = queues
            .iter()
            .position(|memory| memory.is(kind, address))
            .ok_or(EINVAL)?;
        let memory = queues.remove(at).map_err(|_| EINVAL)?;

        memory.set_in_use(true);
        Ok(Queue {
            memory,
            waiting: self.waiting.clone(),
        })
    }
}

impl Waiting {
    /// Has `memory` wait for its queue.
    ///
    /// # Errors
    ///
    /// `ENOMEM`
    pub(super) fn offer(&self, memory: Arc<QueueMemory>) -> Result {
        Ok(self.queues.lock().push(memory, GFP_KERNEL)?)
    }

    /// Ends the wait of `memory`, which is deregistered.
    ///
    /// # Errors
    ///
    /// `EBUSY` if a queue uses it.
    #[doc(alias = "irdma_del_memlist")]
    pub(super) fn withdraw(&self, memory: &Arc<QueueMemory>) -> Result {
        let mut queues = self.queues.lock();

        if memory.is_in_use() {
            return Err(EBUSY);
        }
        queues.retain(|other| !Arc::ptr_eq(other, memory));

        Ok(())
    }
}

impl Queue {
    /// Lets the user deregister the memory, which no other queue gets; it stays pinned as long as
    /// this lives. For a queue that is gone for its user, but maybe not for the device.
    pub(super) fn release(&self) {
        self.memory.set_in_use(false);
    }
}

impl core::ops::Deref for Queue {
    type Target = QueueMemory;

    fn deref(&self) -> &QueueMemory {
        &self.memory
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if !self.memory.is_in_use() {
            return;
        }

        // Who deregisters the memory finds it in use or waiting.
        let mut queues = self.waiting.queues.lock();

        self.memory.set_in_use(false);
        // Without room for it, it can only be deregistered.
        let _ = queues.push(self.memory.clone(), GFP_KERNEL);
    }
}
