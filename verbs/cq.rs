// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use super::{
    abi,
    device::Device,
    kernel_cq::KernelCq,
    number::Number,
    ucontext::Queue,
    Verbs, //
};
use crate::{
    hw::{
        ceq::CompletionHandler,
        cqp::cq::{
            CreateCq,
            DestroyCq,
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
    entries: u32,
    ceq: u32,
    base: RingBase,
    shadow: u64,
    link: Arc<CqLink>,
    reader: Reader,
}

/// Who reads the queue. It is also what the device's events find.
enum Reader {
    /// This driver.
    Kernel(Arc<KernelCq>),
    /// The user's library.
    User(Arc<UserCq>),
}

/// A queue that a user's library reads.
struct UserCq {
    link: Arc<CqLink>,
    /// The ring and the shadow area, which stay registered as long as this lives.
    _memory: [Queue; 2],
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
        let number = Number::take(&dev.ids().cqs)?;
        let mut cq = match &mut udata {
            None => Self::for_kernel(dev, link, number.get(), attr.cqe)?,
            Some(udata) => Self::for_user(dev, link, number.get(), granted, udata)?,
        };
        if attr.comp_vector < dev.completion_vectors() {
            cq.ceq = attr.comp_vector;
        }

        let made = dev.function().execute(&CreateCq {
            cq_id: cq.number,
            entries: cq.entries,
            ring: cq.base,
            shadow: cq.shadow,
            shadow_read_threshold: (cq.entries / 2).min(MAX_SHADOW_THRESHOLD),
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

        Ok(Self {
            number,
            entries,
            ceq: 0,
            base: RingBase::Contiguous(kernel.entries_address()),
            shadow: kernel.shadow_address(),
            link: link.clone(),
            reader: Reader::Kernel(kernel),
        })
    }

    fn for_user(
        dev: &Device<'_>,
        link: &Arc<CqLink>,
        number: u32,
        entries: u32,
        udata: &mut Udata<'_, Verbs>,
    ) -> Result<Self> {
        if udata.response_len() < abi::MIN_CREATE_CQ_RESP || entries > dev.limits().max_cqe {
            return Err(EINVAL);
        }

        let request: abi::CreateCqReq = udata.read(abi::MIN_CREATE_CQ_REQ)?;
        let context = udata.context().ok_or(EINVAL)?.data();
        let ring = context.take_queue(abi::reg_type::CQ, request.user_cq_buf)?;
        let shadow = context.take_queue(abi::reg_type::CQ, request.user_shadow_area)?;
        let bytes = u64::from(entries) * u64::from(QUANTUM_BYTES);

        // The device must not get beyond what was registered.
        let base = ring.cq_ring(bytes)?;
        let shadow_address = shadow.shadow_area(sizing::SHADOW_BYTES.into())?;
        let user = UserCq {
            link: link.clone(),
            _memory: [ring, shadow],
        };

        Ok(Self {
            number,
            entries,
            ceq: 0,
            base,
            shadow: shadow_address,
            link: link.clone(),
            reader: Reader::User(Arc::new(user, GFP_KERNEL)?),
        })
    }

    /// Has the queue's events passed on, and tells a user of it.
    fn introduce(&self, dev: &Device<'_>, udata: Option<&mut Udata<'_, Verbs>>) -> Result {
        match &self.reader {
            Reader::Kernel(kernel) => {
                dev.register_cq(self.ceq, self.number, kernel.clone(), &self.link)?
            }
            Reader::User(user) => {
                dev.register_cq(self.ceq, self.number, user.clone(), &self.link)?
            }
        }

        match udata {
            Some(udata) => udata.respond(&abi::CreateCqResp {
                cq_id: self.number,
                cq_size: self.entries,
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
        let destroyed = dev.function().execute(&DestroyCq {
            cq_id: self.number,
            entries: self.entries,
            ring: self.base,
            shadow: self.shadow,
            ceq_id: Some(self.ceq),
            mask_events: true,
        });

        // After that, so that the last events are forgotten too.
        dev.unregister_cq(self.ceq, self.number);

        match destroyed {
            Ok(_) => dev.ids().cqs.give_back(self.number),
            Err(_) => self.bury(dev),
        }
    }

    fn bury(&self, dev: &Device<'_>) {
        match &self.reader {
            Reader::Kernel(kernel) => dev.function().bury(kernel.clone()),
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
            Reader::Kernel(kernel) => Ok(kernel),
            Reader::User(_) => Err(EINVAL),
        }
    }
}
