// SPDX-License-Identifier: GPL-2.0

//! Why a work request failed: from a CQE's error codes to the status that verbs name.

use super::ae;

/// Major code of a CQE whose work request was flushed; the minor code is a [`FlushCode`].
#[doc(alias = "IRDMA_FLUSH_MAJOR_ERR")]
pub(crate) const MAJOR_FLUSH: u16 = 1;

/// Major code of a CQE of a shared receive queue; the minor code is that of an async event.
#[doc(alias = "IRDMA_SRQFLUSH_RSVD_MAJOR_ERR")]
pub(crate) const MAJOR_SRQ_FLUSH: u16 = 0xfffe;

/// High nibble of the major code by which a datagram send tells of congestion; it is no failure.
#[doc(alias = "IRDMA_CIE_SIGNATURE")]
const CONGESTION_NIBBLE: u16 = 0xe;

/// Cause of a flush, as it is passed to the device in a flush command and comes back in the minor
/// code of the first flushed CQE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[doc(alias = "irdma_flush_opcode")]
pub(crate) enum FlushCode {
    /// Flushed because the QP is in error; the cause is elsewhere.
    General = 1,
    /// A local buffer or STag does not allow the access.
    Protection = 2,
    /// The peer's memory does not allow the access.
    RemoteAccess = 3,
    /// The work request is malformed.
    LocalQpOperation = 4,
    /// The peer could not do the operation.
    RemoteOperation = 5,
    /// The message does not fit in the local buffers.
    LocalLength = 6,
    /// The QP is broken.
    Fatal = 7,
    /// The peer did not answer.
    RetryExceeded = 8,
    /// A memory window could not be bound.
    MwBind = 9,
    /// The peer found the request invalid.
    RemoteInvalidRequest = 10,
    /// The peer had no receive buffer, time and again.
    RnrRetryExceeded = 11,
}

impl FlushCode {
    /// The cause that a CQE's minor code names.
    pub(crate) fn from_minor(minor: u16) -> Option<Self> {
        Some(match minor {
            1 => Self::General,
            2 => Self::Protection,
            3 => Self::RemoteAccess,
            4 => Self::LocalQpOperation,
            5 => Self::RemoteOperation,
            6 => Self::LocalLength,
            7 => Self::Fatal,
            8 => Self::RetryExceeded,
            9 => Self::MwBind,
            10 => Self::RemoteInvalidRequest,
            11 => Self::RnrRetryExceeded,
            _ => return None,
        })
    }

    /// The code's value in commands and CQEs.
    pub(crate) const fn minor(self) -> u16 {
        self as u16
    }

    /// The status of a work request that was flushed for this cause.
    #[doc(alias = "irdma_flush_err_to_ib_wc_status")]
    pub(crate) fn status(self) -> Status {
        match self {
            Self::General => Status::WrFlush,
            Self::Protection => Status::LocalProtection,
            Self::RemoteAccess => Status::RemoteAccess,
            Self::LocalQpOperation => Status::LocalQpOperation,
            Self::RemoteOperation => Status::RemoteOperation,
            Self::LocalLength => Status::LocalLength,
            Self::Fatal => Status::Fatal,
            Self::RetryExceeded => Status::RetryExceeded,
            Self::MwBind => Status::MwBind,
            Self::RemoteInvalidRequest => Status::RemoteInvalidRequest,
            Self::RnrRetryExceeded => Status::RnrRetryExceeded,
        }
    }
}

/// How a work request failed (`enum ib_wc_status`; IBTA volume 1, 11.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The message does not fit in the local buffers.
    LocalLength,
    /// The work request is malformed.
    LocalQpOperation,
    /// A local buffer or STag does not allow the access.
    LocalProtection,
    /// Flushed, the QP being in error.
    WrFlush,
    /// A memory window could not be bound.
    MwBind,
    /// The peer found the request invalid.
    RemoteInvalidRequest,
    /// The peer's memory does not allow the access.
    RemoteAccess,
    /// The peer could not do the operation.
    RemoteOperation,
    /// The peer did not answer.
    RetryExceeded,
    /// The peer had no receive buffer, time and again.
    RnrRetryExceeded,
    /// The QP is broken.
    Fatal,
    /// Anything else.
    General,
}

/// Error codes of a CQE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorCodes {
    /// What kind of error.
    pub(crate) major: u16,
    /// Which one.
    pub(crate) minor: u16,
}

impl ErrorCodes {
    /// The codes of a work request that was flushed without a cause of its own.
    pub(crate) const FLUSHED: Self = Self {
        major: MAJOR_FLUSH,
        minor: FlushCode::General.minor(),
    };

    /// Whether the CQE stands for all that is outstanding in its queue.
    pub(crate) fn is_flush(self) -> bool {
        matches!(self.major, MAJOR_FLUSH | MAJOR_SRQ_FLUSH)
    }

    /// Whether a datagram send with these codes was sent all the same.
    pub(crate) fn is_congestion(self) -> bool {
        self.major >> 12 == CONGESTION_NIBBLE
    }

    /// The codes that users see: those of an SRQ's flush have the cause of its async event.
    pub(crate) fn normalized(self) -> Self {
        match self.major {
            MAJOR_SRQ_FLUSH => Self {
                major: self.major,
                minor: ae::flush_code(self.minor).minor(),
            },
            _ => self,
        }
    }

    /// The status of the work request.
    pub(crate) fn status(self) -> Status {
        if !self.is_flush() {
            return Status::General;
        }
        FlushCode::from_minor(self.normalized().minor).map_or(Status::Fatal, FlushCode::status)
    }

    /// Both codes in a number, for `ib_wc::vendor_err`.
    pub(crate) fn vendor(self) -> u32 {
        u32::from(self.major) << 16 | u32::from(self.minor)
    }
}
