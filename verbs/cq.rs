// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

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
    kernel_cq::KernelCq,
    ucontext::Queue,
    Verbs, //
};
use crate::{
    hw::{
        ceq::CompletionHandler,
        cqp::cq::{
            CreateCq,
            DestroyCq,
            ResizeCq,
            RingBase, //
        }, //
    },
    rdma::{
        CqInitAttr,
        CqLink,
        Udata, //
    },
    uk::{
        memory::QUANTUM_BYTES,
        sizing, //
    }, //
};

/// Fewest entries that a consumer is told of.
const MIN_ENTRIES: u32 = 4;

/// After how many entries at most the device looks for the consumer's index.
#[doc(alias = "IRDMA_MAX_CQ_READ_THRESH")]
const MAX_SHADOW_THRESHOLD: u32 = 0x3_ffff;

/// A completion queue.
pub(crate) struct Cq {
    number: u32,
    ceq: u32,
    shadow: u64,
    /// The device looks for the consumer's index after so many entries.
    shadow_threshold: u32,
    link: Arc<CqLink>,
    reader: Reader,
}

/// Who reads the queue. It is also what the device's events find.
enum Reader {
    /// This driver.
    Kernel(Arc<KernelCq>, Ring),
    /// The user's library.
    User(Arc<UserCq>),
}

/// A ring, for the device.
#[derive(Clone, Copy)]
struct Ring {
    entries: u32,
    base: RingBase,
}

/// A queue that a user's library reads.
#[pin_data]
struct UserCq {
    link: Arc<CqLink>,
    /// The ring's memory, which stays registered as long as it is here.
    #[pin]
    ring: Mutex<(Ring, Queue)>,
    /// The same of the shadow area.
    shadow: Queue,
}

impl UserCq {
    fn new(link: Arc<CqLink>, ring: Ring, memory: Queue, shadow: Queue) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                link,
                ring <- new_mutex!((ring, memory), "UserCq::ring"),
                shadow,
            }),
            GFP_KERNEL,
        )
    }
}

impl CompletionHandler for KernelCq {
    fn completed(&self) {
        self.event();
    }
}

impl CompletionHandler for UserCq {
    #[doc(alias = "irdma_iwarp_ce_handler")]
    fn completed(&self) {
        self.link.complete();
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
    /// - Those of a command.
    #[doc(alias = "irdma_create_cq")]
    pub(super) fn new(
        dev: &Device<'_>,
        link: &Arc<CqLink>,
        attr: &CqInitAttr,
        mut udata: Option<&mut Udata<'_, Verbs>>,
    ) -> Result<(Self, u32)> {
        if attr.flags != 0 {
            return Err(EOPNOTSUPP);
        }

        let granted = attr.cqe.max(MIN_ENTRIES);
        let number = dev.ids().cqs.take()?;
        let mut cq = match &mut udata {
            None => Self::for_kernel(dev, link, number.get(), attr.cqe)?,
            Some(udata) => Self::for_user(dev, link, number.get(), granted, udata)?,
        };
        if attr.comp_vector < dev.completion_vectors() {
            cq.ceq = attr.comp_vector;
        }

        let ring = cq.ring();
        let made = dev.function().execute(&CreateCq {
            cq_id: cq.number,
            entries: ring.entries,
            ring: ring.base,
            shadow: cq.shadow,
            shadow_read_threshold: cq.shadow_threshold,
            ceq_id: Some(cq.ceq),
            mask_events: true,
            check_overflow: true,
            vsi: dev.function().vsi(),
        });
        if let Err(error) = made {
            if error == ETIMEDOUT {
                // The device may still make it.
                number.keep();
                cq.bury(dev);
            }
            return Err(error);
        }
        number.keep();

        if let Err(error) = cq.introduce(dev, udata) {
            cq.destroy(dev);
            return Err(error);
        }

        Ok((cq, granted))
    }

    fn for_kernel(dev: &Device<'_>, link: &Arc<CqLink>, number: u32, cqe: u32) -> Result<Self> {
        let entries = sizing::cq_entries(dev.limits(), cqe)?;
        let kernel = KernelCq::new(dev.function().parent(), link.clone(), number, entries)?;

        let ring = Ring {
            entries,
            base: RingBase::Contiguous(kernel.entries_address()),
        };

        Ok(Self {
            number,
            ceq: 0,
            shadow: kernel.shadow_address(),
            shadow_threshold: shadow_threshold(entries),
            link: link.clone(),
            reader: Reader::Kernel(kernel, ring),
        })
    }

    fn for_user(
        dev: &Device<'_>,
        link: &Arc<CqLink>,
        number: u32,
        entries: u32,
        udata: &mut Udata<'_, Verbs>,
    ) -> Result<Self> {
        // The library has already added to what its user asked for, who may ask for `max_cqe`.
        if udata.response_len() < abi::MIN_CREATE_CQ_RESP || entries > dev.limits().max_cq_entries {
            return Err(EINVAL);
        }

        let request: abi::CreateCqReq = udata.read(abi::MIN_CREATE_CQ_REQ)?;
        let context = udata.context().ok_or(EINVAL)?.data();
        let memory = context.take_queue(abi::reg_type::CQ, request.user_cq_buf)?;
        let shadow = context.take_queue(abi::reg_type::CQ, request.user_shadow_area)?;
        let ring = Self::user_ring(&memory, entries)?;
        let shadow_address = shadow.shadow_area(sizing::SHADOW_BYTES.into())?;

        Ok(Self {
            number,
            ceq: 0,
            shadow: shadow_address,
            shadow_threshold: shadow_threshold(entries),
            link: link.clone(),
            reader: Reader::User(UserCq::new(link.clone(), ring, memory, shadow)?),
        })
    }

    /// The ring of `entries` entries in a user's memory.
    fn user_ring(memory: &Queue, entries: u32) -> Result<Ring> {
        let bytes = u64::from(entries) * u64::from(QUANTUM_BYTES);

        Ok(Ring {
            entries,
            // The device must not get beyond what was registered.
            base: memory.cq_ring(bytes)?,
        })
    }

    /// Gives a user's queue another ring, and returns how many entries its consumer may count on
    /// then. What is in the old ring is the user's to read before the new one.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if it is to have too many entries, or the new ring's memory is not registered or
    ///   too small.
    /// - `EOPNOTSUPP` for a queue of the kernel, and where the device can't.
    /// - Those of a command.
    ///
    /// The queue keeps its ring then.
    #[doc(alias = "irdma_resize_cq")]
    #[doc(alias = "irdma_sc_cq_resize")]
    #[doc(alias = "irdma_process_resize_list")]
    #[doc(alias = "irdma_free_cqbuf")]
    pub(super) fn resize(
        &self,
        dev: &Device<'_>,
        cqe: u32,
        udata: &mut Udata<'_, Verbs>,
    ) -> Result<u32> {
        let Reader::User(user) = &self.reader else {
            return Err(EOPNOTSUPP);
        };
        if !dev.hw_limits().cq_resize {
            return Err(EOPNOTSUPP);
        }
        // As for a new one.
        if cqe > dev.limits().max_cq_entries {
            return Err(EINVAL);
        }

        udata.respond_empty()?;
        let request: abi::ResizeCqReq = udata.read(abi::MIN_RESIZE_CQ_REQ)?;
        let context = udata.context().ok_or(EINVAL)?.data();
        let entries = cqe.max(MIN_ENTRIES);
        let memory = context.take_queue(abi::reg_type::CQ, request.user_cq_buffer)?;
        let ring = Self::user_ring(&memory, entries)?;
        let mut current = user.ring.lock();

        let resized = dev.function().execute(&ResizeCq {
            cq_id: self.number,
            entries,
            ring: ring.base,
            shadow: self.shadow,
            shadow_read_threshold: self.shadow_threshold,
            mask_events: true,
            // As the stock driver has it: the library keeps the old ring's entries beside.
            check_overflow: false,
            vsi: dev.function().vsi(),
        });
        if let Err(error) = resized {
            if error == ETIMEDOUT {
                // The device may still do it.
                memory.release();
                dev.function().bury(memory);
            }
            return Err(error);
        }

        // The old ring's memory may be deregistered from here on.
        current.1.release();
        *current = (ring, memory);
        Ok(entries - 1)
    }

    /// The ring that the device writes.
    fn ring(&self) -> Ring {
        match &self.reader {
            Reader::Kernel(_, ring) => *ring,
            Reader::User(user) => user.ring.lock().0,
        }
    }

    /// Has the queue's events passed on, and tells a user of it.
    fn introduce(&self, dev: &Device<'_>, udata: Option<&mut Udata<'_, Verbs>>) -> Result {
        match &self.reader {
            Reader::Kernel(kernel, _) => {
                dev.register_cq(self.ceq, self.number, kernel.clone(), &self.link)?
            }
            Reader::User(user) => {
                dev.register_cq(self.ceq, self.number, user.clone(), &self.link)?
            }
        }

        match udata {
            Some(udata) => udata.respond(&abi::CreateCqResp {
                cq_id: self.number,
                cq_size: self.ring().entries,
            }),
            None => Ok(()),
        }
    }

    /// Takes the queue away from the device. What the device may still use is kept, and so is the
    /// number.
    #[doc(alias = "irdma_destroy_cq")]
    #[doc(alias = "irdma_cq_wq_destroy")]
    #[doc(alias = "irdma_cq_free_rsrc")]
    pub(super) fn destroy(&self, dev: &Device<'_>) {
        let ring = self.ring();
        let destroyed = dev.function().execute(&DestroyCq {
            cq_id: self.number,
            entries: ring.entries,
            ring: ring.base,
            shadow: self.shadow,
            ceq_id: Some(self.ceq),
            mask_events: true,
        });

        // After that, so that the last events are forgotten too.
        dev.unregister_cq(self.ceq, self.number);

        match destroyed {
            Ok(_) => {
                self.release();
                dev.ids().cqs.give_back(self.number);
            }
            Err(_) => self.bury(dev),
        }
    }

    /// The queue is gone for its user, who may deregister its memory.
    fn release(&self) {
        if let Reader::User(user) = &self.reader {
            user.ring.lock().1.release();
            user.shadow.release();
        }
    }

    fn bury(&self, dev: &Device<'_>) {
        self.release();
        match &self.reader {
            Reader::Kernel(kernel, _) => dev.function().bury(kernel.clone()),
            Reader::User(user) => dev.function().bury(user.clone()),
        }
    }

    /// Returns the queue's number.
    #[inline]
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Returns the queue for this driver to read.
    ///
    /// # Errors
    ///
    /// `EINVAL` if a user's library reads it.
    #[inline]
    pub(super) fn kernel(&self) -> Result<&Arc<KernelCq>> {
        match &self.reader {
            Reader::Kernel(kernel, _) => Ok(kernel),
            Reader::User(_) => Err(EINVAL),
        }
    }
}

/// After how many entries of `entries` the device looks for the consumer's index.
fn shadow_threshold(entries: u32) -> u32 {
    (entries / 2).min(MAX_SHADOW_THRESHOLD)
}
