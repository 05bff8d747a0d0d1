// SPDX-License-Identifier: GPL-2.0

//! Queue pairs.
//!
//! What events and the driver's own work refer to is [`QpShared`], which the table of the device's
//! QPs knows by number.

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
    kernel_qp::{
        KernelQp,
        KernelQueues,
        QpIdentity, //
    },
    qp_setup::{
        irdma_setup_kmode_qp,
        QpInitInfo, //
    },
    ucontext::Queue,
    user_qp,
    Verbs, //
};
use crate::{
    hw::{
        completion::Completion,
        cqp::qp::{
            CreateQp,
            DestroyQp,
            QpState as HwState,
            QpType as HwType, //
        },
        dma::{
            DmaBuffer,
            DmaWord, //
        },
        function::Function,
        ids::Number,
        qp_context::CONTEXT_WORDS,
        trace, //
    },
    rdma::{
        NewQp,
        QpCap,
        QpInitAttr,
        QpLink,
        QpState,
        QpType,
        QueriedQp,
        Udata, //
    },
    uk::memory::Word, //
};

mod attributes;
mod error;
mod modify;
mod suspend;

use attributes::Attributes;

/// Number of the QP of general services, for its users and for the device (IBTA volume 1, 3.5.7).
#[doc(alias = "IRDMA_RSVD_QP_ID_GSI_ILQ")]
const GSI_NUMBER: u32 = 1;

/// A QP, as the core's object owns it.
pub(crate) struct Qp {
    shared: Arc<QpShared>,
    /// The queues of an in-kernel user.
    queues: Option<KernelQueues>,
}

/// A QP, as far as others than its owner refer to it.
#[pin_data]
pub(super) struct QpShared {
    number: u32,
    kind: QpType,
    link: Arc<QpLink>,
    cap: QpCap,
    signal_all: bool,
    info: QpInitInfo,
    /// The context, which the device reads, unless it lies behind the queues of an in-kernel user.
    context: Option<DmaBuffer>,
    /// The queues of an in-kernel user.
    kernel: Option<Arc<KernelQp>>,
    /// The memory of a user's queues.
    user: Option<Queue>,
    /// Happens when the device has drained the send queue.
    #[pin]
    drained: Completion,
    /// Happens when the device has stopped sending for a change of the traffic classes.
    #[pin]
    stopped: Completion,
    #[pin]
    state: Mutex<State>,
}

/// What changes.
struct State {
    attributes: Attributes,
    /// State for the consumer.
    ib: QpState,
    /// State of the device.
    hw: HwState,
    /// The QP is gone for the device.
    destroyed: bool,
    /// The QP does not send while the traffic classes change.
    suspended: bool,
}

/// What a new QP is made of.
struct Parts {
    info: QpInitInfo,
    cap: QpCap,
    queues: Option<KernelQueues>,
    user: Option<Queue>,
}

impl Qp {
    /// Makes a queue pair and tells what is really granted.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP` for service types and flags that the device does not have.
    /// - `EINVAL` if more is asked for than the device has; for a user also if its memory is not
    ///   registered or too small, or has no room for the response.
    /// - `ENOMEM`
    /// - Those of a command.
    ///
    /// `attr` is as it was then.
    #[doc(alias = "irdma_create_qp")]
    pub(super) fn new(
        dev: &Device<'_>,
        new: &NewQp<'_, Verbs>,
        attr: &mut QpInitAttr<'_, Verbs>,
        udata: Option<&mut Udata<'_, Verbs>>,
    ) -> Result<Self> {
        let asked = attr.cap();
        let qp = Self::make(dev, new, attr, udata);

        if qp.is_err() {
            attr.set_cap(asked);
        }
        qp
    }

    fn make(
        dev: &Device<'_>,
        new: &NewQp<'_, Verbs>,
        attr: &mut QpInitAttr<'_, Verbs>,
        mut udata: Option<&mut Udata<'_, Verbs>>,
    ) -> Result<Self> {
        if attr.create_flags() != 0 || attr.has_srq() {
            return Err(EOPNOTSUPP);
        }
        let kind = attr.qp_type()?;
        if !matches!(kind, QpType::Rc | QpType::Ud | QpType::Gsi) {
            return Err(EOPNOTSUPP);
        }

        // The number of the general services is nobody else's, hence isn't taken from the others.
        let number = match kind {
            QpType::Gsi if dev.tables().qps.find(GSI_NUMBER).is_some() => return Err(EBUSY),
            QpType::Gsi => None,
            _ => Some(dev.ids().qps.take()?),
        };
        let qp_number = number.as_ref().map_or(GSI_NUMBER, Number::get);
        new.set_number(qp_number);

        let parts = match &mut udata {
            None => Parts::for_kernel(dev, new, attr, kind, qp_number)?,
            Some(udata) => Parts::for_user(dev, attr, udata)?,
        };
        let place = dev.scheduler().add(0)?;
        let attributes = Attributes::new(
            dev,
            &parts.info,
            new.pd().data().number(),
            [
                attr.send_cq()?.data().number(),
                attr.recv_cq()?.data().number(),
            ],
            place,
            parts.queues.is_some(),
        );
        let made = Self::assemble(dev, new, attr, kind, qp_number, parts, attributes);
        let qp = match made {
            Ok(qp) => qp,
            Err(error) => {
                dev.scheduler().remove(place);
                return Err(error);
            }
        };

        if let Err(error) = qp.shared.create(dev.function()) {
            dev.scheduler().remove(place);
            if error == ETIMEDOUT {
                // The device may still make it.
                if let Some(number) = number {
                    number.keep();
                }
                qp.shared.release();
                dev.function().bury(qp.shared.clone());
            }
            return Err(error);
        }
        if let Some(number) = number {
            number.keep();
        }

        if let Err(error) = qp.introduce(dev, udata) {
            qp.destroy(dev);
            return Err(error);
        }
        // Those who change the traffic classes did not know of it before.
        qp.shared.catch_up(dev);

        Ok(qp)
    }

    fn assemble(
        dev: &Device<'_>,
        new: &NewQp<'_, Verbs>,
        attr: &QpInitAttr<'_, Verbs>,
        kind: QpType,
        number: u32,
        parts: Parts,
        attributes: Attributes,
    ) -> Result<Self> {
        let context = match &parts.queues {
            Some(_) => None,
            None => Some(DmaBuffer::new(dev.function().parent(), CONTEXT_WORDS * 8)?),
        };
        let state = State {
            attributes,
            ib: QpState::Reset,
            hw: HwState::Unchanged,
            destroyed: false,
            suspended: false,
        };
        let kernel = parts.queues.as_ref().map(|queues| queues.qp().clone());
        let shared = Arc::pin_init(
            try_pin_init!(QpShared {
                number,
                kind,
                link: new.link().clone(),
                cap: parts.cap,
                signal_all: attr.signal_all(),
                info: parts.info,
                context,
                kernel,
                user: parts.user,
                drained <- Completion::new(),
                stopped <- Completion::new(),
                state <- new_mutex!(state, "QpShared::state"),
            }? Error),
            GFP_KERNEL,
        )?;

        Ok(Self {
            shared,
            queues: parts.queues,
        })
    }

    /// Has the QP's events find it, and tells a user of it.
    fn introduce(&self, dev: &Device<'_>, udata: Option<&mut Udata<'_, Verbs>>) -> Result {
        let shared = &self.shared;

        dev.tables().qps.insert(shared.number, shared.clone())?;

        let Some(udata) = udata else {
            return Ok(());
        };
        let mut caps = abi::qp_cap::SEND_WITH_IMM | abi::qp_cap::ROCE | abi::qp_cap::PUSH_MODE;
        if shared.kind == QpType::Rc {
            caps |= abi::qp_cap::WRITE_WITH_IMM;
        }
        udata.respond(&abi::CreateQpResp {
            qp_id: shared.number,
            actual_sq_size: shared.info.sq_wqes(),
            actual_rq_size: shared.info.rq_wqes(),
            irdma_drv_opt: 0,
            push_idx: 0,
            lsmm: 0,
            rsvd: 0,
            qp_caps: caps,
        })
    }

    /// Takes the queue pair away from the device. What the device may still use is kept, and so is
    /// the number.
    #[doc(alias = "irdma_destroy_qp")]
    #[doc(alias = "_irdma_destroy_qp")]
    #[doc(alias = "irdma_cqp_qp_destroy_cmd")]
    #[doc(alias = "irdma_free_qp_rsrc")]
    pub(super) fn destroy(&self, dev: &Device<'_>) {
        let function = dev.function();
        let shared = &self.shared;

        // What is flushed now concerns nobody any more.
        if let Some(queues) = &self.queues {
            queues.detach();
        }
        let place = {
            let mut state = shared.state.lock();

            // What is under way ends before the device is asked to let go of the memory. Nothing is
            // when the queue pair was never used.
            if state.ib != QpState::Reset {
                let _ = shared.break_off(function, &mut state, None);
            }
            state.destroyed = true;
            trace::qp_state(function, shared.number, state.hw, HwState::Unchanged);
            state.attributes.place
        };

        let destroyed = function.execute(&DestroyQp {
            qp_id: shared.number,
            kind: shared.hw_type(),
            context: shared.context().0,
            shadow: shared.info.shadow_address,
            remove_hash: true,
            ignore_bound_windows: false,
        });

        drop(dev.tables().qps.remove(shared.number));
        dev.scheduler().remove(place);
        shared.release();
        match destroyed {
            Ok(_) if shared.kind != QpType::Gsi => dev.ids().qps.give_back(shared.number),
            Ok(_) => (),
            Err(_) => function.bury(shared.clone()),
        }
    }

    /// Returns the queues for this driver to write.
    ///
    /// # Errors
    ///
    /// `EINVAL` if a user's library writes them.
    #[inline]
    pub(super) fn kernel(&self) -> Result<&Arc<KernelQp>> {
        Ok(self.queues.as_ref().ok_or(EINVAL)?.qp())
    }

    /// Returns what events refer to.
    #[inline]
    pub(super) fn shared(&self) -> &Arc<QpShared> {
        &self.shared
    }
}

impl Parts {
    fn for_kernel(
        dev: &Device<'_>,
        new: &NewQp<'_, Verbs>,
        attr: &mut QpInitAttr<'_, Verbs>,
        kind: QpType,
        number: u32,
    ) -> Result<Self> {
        let identity = QpIdentity {
            number,
            link: new.link(),
            datagram: kind != QpType::Rc,
            signal_all: attr.signal_all(),
            send_cq: attr.send_cq()?.data().kernel()?,
            recv_cq: attr.recv_cq()?.data().kernel()?,
        };
        let mut info = QpInitInfo::default();
        let queues = irdma_setup_kmode_qp(dev, &identity, &mut info, attr)?;

        Ok(Self {
            info,
            cap: attr.cap(),
            queues: Some(queues),
            user: None,
        })
    }

    fn for_user(
        dev: &Device<'_>,
        attr: &QpInitAttr<'_, Verbs>,
        udata: &mut Udata<'_, Verbs>,
    ) -> Result<Self> {
        let (info, cap, user) = user_qp::setup(dev, attr.cap(), udata)?;

        Ok(Self {
            info,
            cap,
            queues: None,
            user: Some(user),
        })
    }
}

impl QpShared {
    /// The device's kind of QP.
    fn hw_type(&self) -> HwType {
        match self.kind {
            QpType::Rc => HwType::RoceRc,
            _ => HwType::RoceUd,
        }
    }

    /// Where the device finds the context, and its words.
    fn context(&self) -> (u64, &[DmaWord]) {
        match (&self.kernel, &self.context) {
            (Some(kernel), _) => kernel.device_context(),
            (None, Some(memory)) => (memory.address(), memory.words()),
            // `Qp::assemble` makes one or the other.
            (None, None) => (0, &[]),
        }
    }

    /// The QP is gone for its user: the memory of the queues may be deregistered, and nobody waits
    /// for the device any more. Others may have a reference for some time yet.
    fn release(&self) {
        if let Some(memory) = &self.user {
            memory.release();
        }
        self.drained.complete();
        self.stopped.complete();
    }

    /// Writes the context that the device reads at the next command.
    #[doc(alias = "irdma_sc_qp_setctx_roce")]
    fn write_context(&self, attributes: &Attributes) -> Result {
        let (_, places) = self.context();
        let words = attributes.context.encode();

        if places.len() < words.len() {
            return Err(EINVAL);
        }
        for (place, word) in places.iter().zip(words) {
            place.store(word);
        }

        Ok(())
    }

    /// Has the device make the QP.
    #[doc(alias = "irdma_cqp_create_qp_cmd")]
    fn create(&self, function: &Function<'_>) -> Result {
        let mut state = self.state.lock();

        self.write_context(&state.attributes)?;
        function.execute(&CreateQp {
            qp_id: self.number,
            kind: self.hw_type(),
            context: self.context().0,
            shadow: self.info.shadow_address,
            virtual_map: self.info.virtual_map,
            ord_valid: false,
            tcp_context_valid: false,
            mac_valid: true,
            cq_valid: true,
            arp_valid: false,
            force_loopback: false,
            next_state: HwState::Idle,
        })?;
        self.enter(function, &mut state, HwState::Idle);

        Ok(())
    }

    /// Notes the device's new state of the QP.
    fn enter(&self, function: &Function<'_>, state: &mut State, hw: HwState) {
        trace::qp_state(function, self.number, state.hw, hw);
        state.hw = hw;
    }

    /// Tells state and attributes.
    #[doc(alias = "irdma_query_qp")]
    pub(super) fn query(&self) -> QueriedQp {
        let state = self.state.lock();
        let attributes = &state.attributes;
        let context = &attributes.context;

        QueriedQp {
            state: state.ib,
            cap: self.cap,
            path_mtu: Some(attributes.mtu),
            qkey: context.qkey,
            rq_psn: context.psn_expected,
            sq_psn: context.psn_next,
            dest_qp_num: context.remote_qp,
            access: attributes.access,
            pkey_index: 0,
            max_rd_atomic: attributes.max_rd_atomic,
            max_dest_rd_atomic: attributes.max_dest_rd_atomic,
            min_rnr_timer: attributes.min_rnr_timer,
            timeout: attributes.timeout,
            retry_cnt: context.retries,
            rnr_retry: context.rnr_retries,
            signal_all: self.signal_all,
        }
    }
}
