// SPDX-License-Identifier: GPL-2.0

//! Async events that break a QP: what they tell its user.
//!
//! The codes are those of an AEQE (`IRDMA_AE_*` in the C driver's user.h).

use super::status::FlushCode;

/// Kind of event by which a QP's user hears of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "irdma_qp_event_type")]
pub(crate) enum QpEvent {
    /// `IB_EVENT_QP_FATAL`.
    Catastrophic,
    /// `IB_EVENT_QP_ACCESS_ERR`.
    Access,
    /// `IB_EVENT_QP_REQ_ERR`.
    Request,
}

const AMP_UNALLOCATED_STAG: u16 = 0x0102;
const AMP_INVALID_STAG: u16 = 0x0103;
const AMP_BAD_QP: u16 = 0x0104;
const AMP_BAD_PD: u16 = 0x0105;
const AMP_BAD_STAG_KEY: u16 = 0x0106;
const AMP_BAD_STAG_INDEX: u16 = 0x0107;
const AMP_BOUNDS_VIOLATION: u16 = 0x0108;
const AMP_RIGHTS_VIOLATION: u16 = 0x0109;
const AMP_TO_WRAP: u16 = 0x010a;
const AMP_INVALIDATE_NO_REMOTE_ACCESS_RIGHTS: u16 = 0x0112;
const AMP_MWBIND_VALID_STAG: u16 = 0x0114;
const AMP_MWBIND_INVALID_RIGHTS: u16 = 0x0118;
const AMP_MWBIND_INVALID_BOUNDS: u16 = 0x0119;
const AMP_MWBIND_BIND_DISABLED: u16 = 0x011b;
const PRIV_OPERATION_DENIED: u16 = 0x011c;
const UDA_XMIT_DGRAM_TOO_LONG: u16 = 0x0132;
const UDA_XMIT_BAD_PD: u16 = 0x0133;
const UDA_XMIT_DGRAM_TOO_SHORT: u16 = 0x0134;
const UDA_L4LEN_INVALID: u16 = 0x0135;
const IB_INVALID_REQUEST: u16 = 0x0208;
const WQE_UNEXPECTED_OPCODE: u16 = 0x020a;
const IB_REMOTE_ACCESS_ERROR: u16 = 0x020d;
const IB_REMOTE_OP_ERROR: u16 = 0x020e;
const DDP_UBE_MESSAGE_TOO_LONG: u16 = 0x0303;
const DDP_UBE_INVALID_MO: u16 = 0x0305;
const ROCE_RSP_LENGTH_ERROR: u16 = 0x0316;
const LLP_RECEIVED_MPA_CRC_ERROR: u16 = 0x0505;
const LLP_SEGMENT_TOO_SMALL: u16 = 0x0507;
const LLP_TOO_MANY_RETRIES: u16 = 0x050a;
const LLP_TOO_MANY_RNRS: u16 = 0x050f;
const LCE_QP_CATASTROPHIC: u16 = 0x0700;
const REMOTE_QP_CATASTROPHIC: u16 = 0x0703;
const LOCAL_QP_CATASTROPHIC: u16 = 0x0704;
const RCE_QP_CATASTROPHIC: u16 = 0x0705;

/// What the flush that follows the async event `code` reports, and the event for the QP's user.
#[doc(alias = "irdma_ae_to_qp_err_code")]
pub(crate) fn qp_error(code: u16) -> (FlushCode, QpEvent) {
    match code {
        AMP_BOUNDS_VIOLATION
        | AMP_INVALID_STAG
        | AMP_RIGHTS_VIOLATION
        | AMP_UNALLOCATED_STAG
        | AMP_BAD_PD
        | AMP_BAD_QP
        | AMP_BAD_STAG_KEY
        | AMP_BAD_STAG_INDEX
        | AMP_TO_WRAP
        | PRIV_OPERATION_DENIED => (FlushCode::Protection, QpEvent::Access),

        UDA_XMIT_BAD_PD | WQE_UNEXPECTED_OPCODE => {
            (FlushCode::LocalQpOperation, QpEvent::Catastrophic)
        }

        UDA_XMIT_DGRAM_TOO_SHORT
        | UDA_XMIT_DGRAM_TOO_LONG
        | UDA_L4LEN_INVALID
        | DDP_UBE_INVALID_MO
        | DDP_UBE_MESSAGE_TOO_LONG => (FlushCode::LocalLength, QpEvent::Catastrophic),

        AMP_INVALIDATE_NO_REMOTE_ACCESS_RIGHTS | IB_REMOTE_ACCESS_ERROR => {
            (FlushCode::RemoteAccess, QpEvent::Access)
        }

        AMP_MWBIND_INVALID_RIGHTS
        | AMP_MWBIND_BIND_DISABLED
        | AMP_MWBIND_INVALID_BOUNDS
        | AMP_MWBIND_VALID_STAG => (FlushCode::MwBind, QpEvent::Access),

        LLP_TOO_MANY_RETRIES => (FlushCode::RetryExceeded, QpEvent::Catastrophic),

        IB_INVALID_REQUEST => (FlushCode::RemoteInvalidRequest, QpEvent::Request),

        LLP_SEGMENT_TOO_SMALL
        | LLP_RECEIVED_MPA_CRC_ERROR
        | ROCE_RSP_LENGTH_ERROR
        | IB_REMOTE_OP_ERROR => (FlushCode::RemoteOperation, QpEvent::Catastrophic),

        LLP_TOO_MANY_RNRS => (FlushCode::RnrRetryExceeded, QpEvent::Catastrophic),

        LCE_QP_CATASTROPHIC
        | REMOTE_QP_CATASTROPHIC
        | LOCAL_QP_CATASTROPHIC
        | RCE_QP_CATASTROPHIC => (FlushCode::Fatal, QpEvent::Catastrophic),

        _ => (FlushCode::General, QpEvent::Catastrophic),
    }
}

/// What the flush that follows the async event `code` reports.
pub(crate) fn flush_code(code: u16) -> FlushCode {
    qp_error(code).0
}
