// SPDX-License-Identifier: GPL-2.0

//! QPs whose rings the user's library writes.

use kernel::prelude::*;

use super::{
    abi,
    device::Device,
    qp_setup::QpInitInfo,
    ucontext::Queue,
    Verbs, //
};
use crate::{
    rdma::{
        QpCap,
        Udata, //
    },
    uk::sizing::{
        self,
        QueueRequest,
        QueueSize, //
    }, //
};

/// Finds the rings of a user's QP, as large as `cap` asks for, in the memory that was registered for
/// them. Returns what the device is told of them, what is granted, and the memory.
///
/// # Errors
///
/// `EINVAL` if more is asked for than the device has, the memory is not registered or too small, or
/// the user has no room for the response.
#[doc(alias = "irdma_setup_umode_qp")]
pub(super) fn setup(
    dev: &Device<'_>,
    cap: QpCap,
    udata: &mut Udata<'_, Verbs>,
) -> Result<(QpInitInfo, QpCap, Queue)> {
    if udata.response_len() < abi::MIN_CREATE_QP_RESP {
        return Err(EINVAL);
    }

    let request: abi::CreateQpReq = udata.read(abi::MIN_CREATE_QP_REQ)?;
    let context = udata.context().ok_or(EINVAL)?.data();
    let limits = dev.limits();
    let asked = QueueRequest::from(cap);

    asked.validate(limits)?;
    let send_shift = sizing::wqe_shift(asked.send_sge.saturating_add(1), asked.inline_data);
    let recv_shift = sizing::wqe_shift(asked.recv_sge, 0);
    let (send, recv) = if context.has_raw_attrs() {
        (
            sizing::send_queue(limits, asked.send_wr, asked.send_sge, asked.inline_data)?,
            sizing::recv_queue(limits, asked.recv_wr, asked.recv_sge)?,
        )
    } else {
        // An older library has made the rings already, and says how large they are.
        (
            as_given(asked.send_wr, send_shift, limits.max_sq_quanta)?,
            as_given(asked.recv_wr, recv_shift, limits.max_rq_quanta)?,
        )
    };

    let memory = context.take_queue(abi::reg_type::QP, request.user_wqe_bufs)?;
    let rings = memory.qp_rings(send.bytes().into(), recv.bytes().into())?;
    let mut info = QpInitInfo {
        virtual_map: rings.virtual_map,
        sq_address: rings.send,
        rq_address: rings.recv,
        shadow_address: rings.shadow,
        completion_context: request.user_compl_ctx,
        ..QpInitInfo::default()
    };
    info.set_sizes(&send, &recv);

    let granted = QpCap {
        max_send_wr: send.wrs,
        max_recv_wr: recv.wrs,
        ..cap
    };

    Ok((info, granted, memory))
}

/// Size of a ring of `wqes` WQEs of 2^`shift` quanta.
fn as_given(wqes: u32, shift: u8, max: u32) -> Result<QueueSize> {
    let depth = wqes
        .checked_next_power_of_two()
        .and_then(|wqes| wqes.checked_shl(shift.into()))
        .filter(|depth| (4..=max).contains(depth))
        .ok_or(EINVAL)?;

    Ok(QueueSize {
        depth,
        shift,
        wrs: wqes,
    })
}
