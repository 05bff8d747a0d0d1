// SPDX-License-Identifier: GPL-2.0

//! Completion queues.
//!
//! What interrupts and other queues refer to is [`CqShared`], which the table of the device's CQs
//! knows by number. The core's object only owns a reference to it.

use kernel::{
    device::{
        Bound,
        Device as CoreDevice, //
    },
    impl_has_work,
    new_spinlock_irq,
    new_work,
    prelude::*,
    sync::{
        barrier::{
            dma_mb,
            Read, //
        },
        Arc,
        SpinLockIrq, //
    },
    workqueue::{
        self,
        Work,
        WorkItem, //
    }, //
};

use super::{
    abi,
    device::Device,
    ids::Id,
    mr::QueueMemory,
    qp::QpShared,
    Driver, //
};
use crate::{
    hw::{
        cqp::cq::{
            CreateCq,
            DestroyCq,
            RingBase, //
        },
        dma::DmaBuffer, //
    },
    rdma::{
        CqInitAttr,
        CqLink,
        Udata, //
    },
    uk::{
        cq::CompletionRing,
        memory::{
            EntrySource,
            QUANTUM_BYTES,
            QUANTUM_WORDS, //
        },
        shadow::{
            CqArm,
            Notify, //
        },
        sizing, //
    }, //
};

/// Fewest entries of a CQ.
const MIN_ENTRIES: u32 = 4;

/// After how many entries at most the device looks for the consumer's index.
#[doc(alias = "IRDMA_MAX_CQ_READ_THRESH")]
const MAX_SHADOW_THRESHOLD: u32 = 0x3_ffff;

/// A completion queue, as the core's object owns it.
pub(crate) struct Cq {
    shared: Arc<CqShared>,
}

/// A completion queue.
#[pin_data]
pub(crate) struct CqShared {
    id: Id,
    link: Arc<CqLink>,
    entries: u32,
    ceq: u32,
    base: RingBase,
    shadow: u64,
    memory: CqOwner,
    /// Tells the consumer of completions that no interrupt will tell of.
    #[pin]
    kick: Work<CqShared>,
}

impl_has_work! {
    impl HasWork<CqShared> for CqShared { self.kick }
}

/// Who reads the queue.
enum CqOwner {
    /// This driver.
    Kernel(Pin<KBox<KernelCq>>),
    /// The user's library: its ring and its shadow area.
    User(Arc<QueueMemory>, Arc<QueueMemory>),
}

/// What it takes to read a queue.
#[pin_data]
pub(super) struct KernelCq {
    memory: Arc<CqMemory>,
    #[pin]
    state: SpinLockIrq<CqState>,
}

/// The memory of a queue, shared with the device.
pub(super) struct CqMemory {
    ring: DmaBuffer,
    shadow: DmaBuffer,
}

/// How far the consumer is, and which QPs complete here.
pub(super) struct CqState {
    /// The next entry.
    pub(super) ring: CompletionRing,
    /// What was last written to arm the queue.
    pub(super) arm: CqArm,
    /// What the consumer waits for, if it does.
    pub(super) armed: Option<Notify>,
    /// The kernel's QPs that complete here.
    pub(super) qps: KVec<Arc<QpShared>>,
    /// How many of them are in error.
    pub(super) broken: usize,
}

impl CqMemory {
    /// Returns memory for `entries` entries, none of which is valid.
    fn new(device: &CoreDevice<Bound>, entries: u32) -> Result<Self> {
        // CAST: Widening.
        let bytes = (entries as usize)
            .checked_mul(QUANTUM_BYTES as usize)
            .and_then(|bytes| bytes.checked_next_multiple_of(256))
            .ok_or(EINVAL)?;

        Ok(Self {
            ring: DmaBuffer::new(device, bytes)?,
            shadow: DmaBuffer::new(device, sizing::SHADOW_BYTES as usize)?,
        })
    }

    /// Writes word `word` of the shadow area.
    pub(super) fn write_shadow(&self, word: usize, value: u64) {
        // The words are constants inside of the area.
        let _ = self.shadow.write(word, value);
    }
}

impl EntrySource for CqMemory {
    #[inline]
    fn load(&self, entry: u32, word: u32) -> u64 {
        // CAST: Widening.
        let index = entry as usize * QUANTUM_WORDS as usize + word as usize;

        self.ring.read(index).unwrap_or(0)
    }

    #[inline]
    fn order_loads(&self) {
        dma_mb(Read);
    }
}

impl KernelCq {
    fn new(memory: Arc<CqMemory>, entries: u32) -> Result<Pin<KBox<Self>>> {
        let state = CqState {
            ring: CompletionRing::new(entries)?,
            arm: CqArm::zeroed(),
            armed: None,
            qps: KVec::new(),
            broken: 0,
        };

        KBox::pin_init(
            pin_init!(Self {
                memory,
                state <- new_spinlock_irq!(state, "KernelCq::state"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the memory.
    #[inline]
    pub(super) fn memory(&self) -> &CqMemory {
        &self.memory
    }

    /// Returns what the lock protects. It is taken before the locks of a QP.
    #[inline]
    pub(super) fn state(&self) -> &SpinLockIrq<CqState> {
        &self.state
    }
}

impl Cq {
    /// Makes a completion queue; also returns how many entries its consumer may count on.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP` for flags that the device does not have.
    /// - `EINVAL` if it is to have none or too many entries; for a user also if its memory is not
    ///   registered or too small, or has no room for the response.
    /// - `ENOMEM`
    /// - Those of [`Function::execute`](crate::hw::function::Function::execute).
    #[doc(alias = "irdma_create_cq")]
    pub(super) fn new(
        dev: &Device<'_>,
        link: &Arc<CqLink>,
        attr: &CqInitAttr,
        mut udata: Option<&mut Udata<'_, Driver>>,
    ) -> Result<(Self, u32)> {
        if attr.flags != 0 {
            return Err(EOPNOTSUPP);
        }

        let granted = attr.cqe.max(MIN_ENTRIES);
        let ceq = match attr.comp_vector {
            vector if vector < dev.ceq_count() => vector,
            _ => 0,
        };
        let (entries, base, shadow, memory) = match &mut udata {
            Some(udata) => Self::user_memory(dev, granted, udata)?,
            None => Self::kernel_memory(dev, attr.cqe)?,
        };

        let shared = Arc::pin_init(
            pin_init!(CqShared {
                id: dev.objects().cq_ids.take()?,
                link: link.clone(),
                entries,
                ceq,
                base,
                shadow,
                memory,
                kick <- new_work!("CqShared::kick"),
            }? Error),
            GFP_KERNEL,
        )?;
        let number = shared.number();

        dev.function()
            .execute(&CreateCq {
                cq_id: number,
                entries,
                ring: base,
                shadow,
                shadow_read_threshold: (entries / 2).min(MAX_SHADOW_THRESHOLD),
                ceq_id: Some(ceq),
                mask_events: true,
                check_overflow: true,
                vsi: dev.function().vsi(),
            })
            .inspect_err(|error| dev.keep_after(*error, &shared))?;

        let cq = Self { shared };
        if let Some(udata) = udata {
            let response = abi::CreateCqResp {
                cq_id: number,
                cq_size: entries,
            };
            if let Err(error) = udata.respond(&response) {
                cq.destroy(dev);
                return Err(error);
            }
        }
        if let Err(error) = dev.objects().cqs.insert(number, cq.shared.clone()) {
            cq.destroy(dev);
            return Err(error);
        }

        Ok((cq, granted))
    }

    fn kernel_memory(dev: &Device<'_>, cqe: u32) -> Result<(u32, RingBase, u64, CqOwner)> {
        let entries = sizing::cq_entries(dev.queue_limits(), cqe)?;
        let memory = Arc::new(CqMemory::new(dev.function().parent(), entries)?, GFP_KERNEL)?;
        let base = RingBase::Contiguous(memory.ring.address());
        let shadow = memory.shadow.address();
        let owner = CqOwner::Kernel(KernelCq::new(memory, entries)?);

        Ok((entries, base, shadow, owner))
    }

    fn user_memory(
        dev: &Device<'_>,
        entries: u32,
        udata: &mut Udata<'_, Driver>,
    ) -> Result<(u32, RingBase, u64, CqOwner)> {
        if udata.response_len() < abi::MIN_CREATE_CQ_RESP {
            return Err(EINVAL);
        }
        if entries > dev.limits().max_cq_entries {
            return Err(EINVAL);
        }

        let request: abi::CreateCqReq = udata.read(abi::MIN_CREATE_CQ_REQ)?;
        let context = udata.ucontext().ok_or(EINVAL)?.data();
        let ring = context.take_queue(abi::reg_type::CQ, request.user_cq_buf)?;
        let shadow = context.take_queue(abi::reg_type::CQ, request.user_shadow_area)?;
        // CAST: Widening.
        let bytes = u64::from(entries) * u64::from(QUANTUM_BYTES);

        // The device must not get beyond what was registered.
        let base = ring.ring_base(0, bytes)?;
        let address = shadow.address(0, sizing::SHADOW_BYTES.into())?;

        Ok((entries, base, address, CqOwner::User(ring, shadow)))
    }

    /// Takes the queue away from the device. Memory that the device may still use is kept.
    #[doc(alias = "irdma_destroy_cq")]
    #[doc(alias = "irdma_cq_wq_destroy")]
    pub(super) fn destroy(&self, dev: &Device<'_>) {
        let shared = &self.shared;

        // Events that come from now on find nothing.
        dev.objects().cqs.remove(shared.number());

        let destroyed = dev.function().execute(&DestroyCq {
            cq_id: shared.number(),
            entries: shared.entries,
            ring: shared.base,
            shadow: shared.shadow,
            ceq_id: Some(shared.ceq),
            mask_events: true,
        });
        if destroyed.is_err() {
            dev.function().bury(shared.clone());
        }
    }

    /// Returns what others than the core refer to.
    #[inline]
    pub(super) fn shared(&self) -> &Arc<CqShared> {
        &self.shared
    }
}

impl CqShared {
    /// Returns the number by which the device knows the queue.
    #[inline]
    pub(super) fn number(&self) -> u32 {
        self.id.get()
    }

    /// Returns what it takes to read the queue; `None` if a user's library does.
    #[inline]
    pub(super) fn kernel(&self) -> Option<&KernelCq> {
        match &self.memory {
            CqOwner::Kernel(kernel) => Some(kernel),
            CqOwner::User(..) => None,
        }
    }

    /// Tells the consumer that there are completions, after the device has said so.
    #[doc(alias = "irdma_iwarp_ce_handler")]
    pub(super) fn complete(&self) {
        if let Some(kernel) = self.kernel() {
            kernel.state.lock().armed = None;
        }
        self.link.complete();
    }

    /// Tells the consumer that the queue has failed.
    pub(super) fn fail(&self) {
        self.link.error();
    }

    /// Has the consumer told, if it waits, that there are completions which the device does not
    /// know of. Any context.
    #[doc(alias = "irdma_comp_handler")]
    pub(super) fn kick(self: Arc<Self>) {
        // It is no loss if it is on its way already.
        let _ = workqueue::system().enqueue::<Arc<Self>, 0>(self);
    }
}

impl WorkItem for CqShared {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let waited_for = this
            .kernel()
            .is_some_and(|kernel| kernel.state.lock().armed.take().is_some());

        if waited_for {
            this.link.complete();
        }
    }
}
