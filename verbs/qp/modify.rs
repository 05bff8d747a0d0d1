// SPDX-License-Identifier: GPL-2.0

//! Changes of a QP's state and attributes.

use kernel::{
    prelude::*,
    time::msecs_to_jiffies, //
};

use super::{
    attributes::Attributes,
    QpShared,
    State, //
};
use crate::{
    hw::cqp::qp::{
        ModifyQp,
        QpState as HwState, //
    },
    rdma::{
        AhAttr,
        QpAttr,
        QpAttrMask,
        QpState,
        Udata, //
    },
    verbs::{
        abi,
        device::Device,
        path::Path,
        Verbs, //
    }, //
};

/// How long the device may take to drain a send queue, in milliseconds.
#[doc(alias = "IRDMA_EVENT_TIMEOUT_MS")]
const DRAIN_LIMIT_MS: u32 = 5000;

/// What a change of state asks of the device.
enum Step {
    /// Nothing: it is the driver's business.
    None,
    /// A command that ends in this state.
    Command(HwState),
    /// The end of all that is under way.
    Error,
}

impl QpShared {
    /// Changes state and attributes.
    ///
    /// # Errors
    ///
    /// - `EOPNOTSUPP` for attributes that verbs don't have, and for the reset of a QP that has been
    ///   in use: the device can't do that.
    /// - `EINVAL` for a change of state that there is not, or with attributes that it must or must
    ///   not have; and for what the device can't do.
    /// - `ETIMEDOUT` if the send queue is not drained in time.
    /// - Those of a command.
    ///
    /// State and attributes are as they were then; but if draining takes too long the QP is in that
    /// state, and if it breaks meanwhile (`EINVAL`) it is in error.
    #[doc(alias = "irdma_modify_qp_roce")]
    pub(in crate::verbs) fn modify(
        &self,
        dev: &Device<'_>,
        attr: &QpAttr<'_>,
        udata: Option<&mut Udata<'_, Verbs>>,
    ) -> Result {
        let reflush = match udata {
            Some(udata) => Self::user_request(udata)?,
            None => None,
        };
        if !QpAttrMask::STANDARD.contains(attr.mask()) {
            return Err(EOPNOTSUPP);
        }

        let draining = {
            let mut state = self.state.lock();
            let next = attr.state()?.unwrap_or(state.ib);
            let step = self.step(&state, next, attr.mask())?;

            match step {
                Step::Error if state.hw == HwState::Error => {
                    state.ib = next;
                    if let Some(request) = reflush {
                        self.flush(
                            dev.function(),
                            request.sq_flush != 0,
                            request.rq_flush != 0,
                            None,
                        );
                    }
                    return Ok(());
                }
                Step::Error => return self.break_off(dev.function(), &mut state, None),
                Step::None => self.apply(dev, &mut state, attr, next, None)?,
                Step::Command(hw) => self.apply(dev, &mut state, attr, next, Some(hw))?,
            }

            matches!(step, Step::Command(HwState::Sqd))
        };

        if !draining {
            return Ok(());
        }
        // Without the lock, so that the event can come through.
        if !self.drained.wait(msecs_to_jiffies(DRAIN_LIMIT_MS)) {
            return Err(ETIMEDOUT);
        }
        match self.state.lock().hw {
            HwState::Error => Err(EINVAL),
            _ => Ok(()),
        }
    }

    /// Reads what a user's library adds; the response says that there are no push pages.
    fn user_request(udata: &mut Udata<'_, Verbs>) -> Result<Option<abi::ModifyQpReq>> {
        udata.respond_empty()?;
        if udata.response_len() != 0 && udata.response_len() < abi::MIN_MODIFY_QP_RESP {
            return Err(EINVAL);
        }
        if udata.request_len() == 0 {
            return Ok(None);
        }
        udata.read(abi::MIN_MODIFY_QP_REQ).map(Some)
    }

    /// Finds what a change from `state` to `next` asks for.
    fn step(&self, state: &State, next: QpState, mask: QpAttrMask) -> Result<Step> {
        if state.destroyed {
            return Err(EINVAL);
        }
        if !mask.is_ok(state.ib, next, self.kind) {
            return Err(EINVAL);
        }

        match next {
            // A new QP is in that state.
            QpState::Reset if state.ib == QpState::Reset => Ok(Step::None),
            // The rings would have to begin anew, of which neither the device nor the user's
            // library knows a way.
            QpState::Reset => Err(EOPNOTSUPP),
            QpState::Init if state.hw == HwState::Idle => Ok(Step::None),
            QpState::Rtr if state.hw == HwState::Idle => Ok(Step::Command(HwState::Rtr)),
            QpState::Rts if matches!(state.hw, HwState::Rtr | HwState::Rts | HwState::Sqd) => {
                Ok(Step::Command(HwState::Rts))
            }
            QpState::Sqd if state.hw == HwState::Sqd => Ok(Step::None),
            QpState::Sqd if state.hw == HwState::Rts => Ok(Step::Command(HwState::Sqd)),
            QpState::Err => Ok(Step::Error),
            _ => Err(EINVAL),
        }
    }

    /// Changes attributes, and the device's state to `hw` if that is given. All or nothing.
    fn apply(
        &self,
        dev: &Device<'_>,
        state: &mut State,
        attr: &QpAttr<'_>,
        next: QpState,
        hw: Option<HwState>,
    ) -> Result {
        let before = state.attributes;
        let mut attributes = before;

        attributes.change(dev, attr)?;
        if hw == Some(HwState::Rts) {
            attributes.context.remote_endpoint = attributes.context.arp_index;
        }
        match attr.ah() {
            Some(ah) => self.with_path(dev, &mut attributes, &ah, |attributes| {
                self.tell(dev, &before, attributes, hw)
            })?,
            None => self.tell(dev, &before, &attributes, hw)?,
        }

        state.attributes = attributes;
        state.ib = next;
        if let Some(hw) = hw {
            self.enter(dev.function(), state, hw);
            if let Some(kernel) = &self.kernel {
                // A device that does not send yet, or not any more, is not told of more to send.
                kernel.set_ringing(
                    dev.function().doorbells(),
                    matches!(hw, HwState::Idle | HwState::Rts),
                );
            }
        }

        Ok(())
    }

    /// Puts the path into `attributes` and calls `f` with them. The queue set of the earlier path
    /// is given back if all goes well, else that of the new one.
    fn with_path(
        &self,
        dev: &Device<'_>,
        attributes: &mut Attributes,
        ah: &AhAttr<'_>,
        f: impl FnOnce(&Attributes) -> Result,
    ) -> Result {
        let path = Path::new(dev, ah, |traffic_class| dev.priority_of(traffic_class))?;
        let arp_index = path.neighbour(dev)?;
        let earlier = attributes.place;
        let place = dev.scheduler().add(path.priority)?;

        attributes.set_path(&path, arp_index, place, self.number);
        f(attributes)
            .inspect(|()| dev.scheduler().remove(earlier))
            .inspect_err(|_| dev.scheduler().remove(place))
    }

    /// Writes the context, and issues the command if there is one. On failure the context is as
    /// it was.
    #[doc(alias = "irdma_hw_modify_qp")]
    fn tell(
        &self,
        dev: &Device<'_>,
        before: &Attributes,
        attributes: &Attributes,
        hw: Option<HwState>,
    ) -> Result {
        self.write_context(attributes)?;
        let Some(next_state) = hw else {
            return Ok(());
        };

        if next_state == HwState::Sqd {
            self.drained.reset();
        }
        let result = dev.function().execute(&ModifyQp {
            ord_valid: next_state == HwState::Rts,
            cq_valid: matches!(next_state, HwState::Rtr | HwState::Rts),
            arp_valid: matches!(next_state, HwState::Rtr | HwState::Rts),
            ..self.plain_modify(next_state)
        });
        if result.is_err() {
            let _ = self.write_context(before);
        }

        result.map(|_| ())
    }

    /// A command that changes the device's state and nothing else.
    pub(super) fn plain_modify(&self, next_state: HwState) -> ModifyQp {
        ModifyQp {
            qp_id: self.number,
            kind: self.hw_type(),
            context: self.context().0,
            shadow: self.info.shadow_address,
            virtual_map: self.info.virtual_map,
            new_mss: None,
            ord_valid: false,
            tcp_context_valid: false,
            cached_valid: false,
            cq_valid: false,
            mac_valid: false,
            arp_valid: false,
            force_loopback: false,
            remove_hash: false,
            reset_connection: false,
            terminate: None,
            next_state,
        }
    }
}
