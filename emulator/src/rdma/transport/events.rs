// SPDX-License-Identifier: GPL-2.0
//! Asynchronous events that the transport raises: codes, sources, and the
//! number of the work queue entry at fault.

/// Event codes, as the device gives them to the driver.
#[rustfmt::skip]
pub(crate) mod code {
    pub(crate) const AMP_INVALID_STAG: u16             = 0x0103;
    pub(crate) const AMP_RIGHTS_VIOLATION: u16         = 0x0109;
    pub(crate) const MWBIND_BIND_DISABLED: u16         = 0x011b;
    pub(crate) const PRIV_OPERATION_DENIED: u16        = 0x011c;
    pub(crate) const DATAGRAM_TOO_LONG: u16            = 0x0132;
    pub(crate) const DATAGRAM_BAD_PD: u16              = 0x0133;
    pub(crate) const READ_WHILE_ORD_ZERO: u16          = 0x0205;
    pub(crate) const READ_QUEUE_FULL: u16              = 0x0207;
    pub(crate) const INVALID_REQUEST: u16              = 0x0208;
    pub(crate) const WQE_UNEXPECTED_OPCODE: u16        = 0x020a;
    pub(crate) const WQE_INVALID_PARAMETER: u16        = 0x020b;
    pub(crate) const WQE_INVALID_FRAGMENT: u16         = 0x020c;
    pub(crate) const REMOTE_ACCESS_ERROR: u16          = 0x020d;
    pub(crate) const REMOTE_OPERATION_ERROR: u16       = 0x020e;
    pub(crate) const MESSAGE_TOO_LONG: u16             = 0x0303;
    pub(crate) const UNEXPECTED_OPCODE: u16            = 0x0312;
    pub(crate) const INVALID_READ_REQUEST: u16         = 0x0313;
    pub(crate) const INVALID_WRITE_OR_RESPONSE: u16    = 0x0314;
    pub(crate) const RESPONSE_LENGTH: u16              = 0x0316;
    pub(crate) const INVALID_ARP_ENTRY: u16            = 0x0401;
    pub(crate) const INVALID_AH_ENTRY: u16             = 0x0406;
    pub(crate) const TOO_MANY_RETRIES: u16             = 0x050a;
    pub(crate) const TOO_MANY_RNRS: u16                = 0x050f;
    pub(crate) const LOCAL_CATASTROPHIC: u16           = 0x0704;
    pub(crate) const SUSPEND_COMPLETE: u16             = 0x0900;
}

/// Which part of the queue pair an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Source {
    Device = 0x0,
    ReceiveQueue = 0x1,
    SendQueue = 0x5,
    /// A WRITE or READ request of the peer.
    InboundRequest = 0x9,
}

/// An event about a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) code: u16,
    pub(crate) source: Source,
    /// In quanta.
    pub(crate) wqe_index: u32,
}
