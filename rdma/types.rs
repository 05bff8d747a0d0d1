// SPDX-License-Identifier: GPL-2.0

//! Numbers of the verbs as types.

use kernel::prelude::*;

use crate::bindings;

/// Declares an enum over constants of C, with the fallible way in and the infallible way out.
macro_rules! c_enum {
    (
        $(#[$meta:meta])*
        pub(crate) enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $value:ident, )+
        }
    ) => {
        $(#[$meta])*
        #[repr(u32)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name {
            $( $(#[$variant_meta])* $variant = bindings::$value, )+
        }

        impl $name {
            /// The number that C uses.
            pub(crate) const fn into_raw(self) -> u32 {
                // CAST: The enum is `repr(u32)`.
                self as u32
            }
        }

        impl TryFrom<u32> for $name {
            type Error = Error;

            /// Fails with `EINVAL` for a number that is not in the list.
            fn try_from(raw: u32) -> Result<Self> {
                match raw {
                    $( bindings::$value => Ok(Self::$variant), )+
                    _ => Err(EINVAL),
                }
            }
        }
    };
}

c_enum! {
    /// State of a queue pair (IBTA volume 1, 10.3.1).
    pub(crate) enum QpState {
        /// Newly made or reset.
        Reset = ib_qp_state_IB_QPS_RESET,
        /// Receives can be posted.
        Init = ib_qp_state_IB_QPS_INIT,
        /// Ready to receive.
        Rtr = ib_qp_state_IB_QPS_RTR,
        /// Ready to send.
        Rts = ib_qp_state_IB_QPS_RTS,
        /// Send queue drained.
        Sqd = ib_qp_state_IB_QPS_SQD,
        /// Send queue in error.
        Sqe = ib_qp_state_IB_QPS_SQE,
        /// Both queues in error.
        Err = ib_qp_state_IB_QPS_ERR,
    }
}

c_enum! {
    /// Service type of a queue pair.
    pub(crate) enum QpType {
        /// General services, queue pair 1.
        Gsi = ib_qp_type_IB_QPT_GSI,
        /// Reliable connection.
        Rc = ib_qp_type_IB_QPT_RC,
        /// Unreliable connection.
        Uc = ib_qp_type_IB_QPT_UC,
        /// Unreliable datagram.
        Ud = ib_qp_type_IB_QPT_UD,
        /// Raw Ethernet frames.
        RawPacket = ib_qp_type_IB_QPT_RAW_PACKET,
    }
}

c_enum! {
    /// Path MTU.
    pub(crate) enum Mtu {
        /// 256 bytes.
        Mtu256 = ib_mtu_IB_MTU_256,
        /// 512 bytes.
        Mtu512 = ib_mtu_IB_MTU_512,
        /// 1024 bytes.
        Mtu1024 = ib_mtu_IB_MTU_1024,
        /// 2048 bytes.
        Mtu2048 = ib_mtu_IB_MTU_2048,
        /// 4096 bytes.
        Mtu4096 = ib_mtu_IB_MTU_4096,
    }
}

impl Mtu {
    /// The MTU in bytes.
    pub(crate) const fn bytes(self) -> u32 {
        // `IB_MTU_256` is 1, and each next one doubles.
        128 << self.into_raw()
    }

    /// The largest MTU that is not above `bytes`, at least 256.
    #[doc(alias = "ib_mtu_int_to_enum")]
    pub(crate) const fn from_bytes(bytes: u32) -> Self {
        match bytes {
            4096.. => Self::Mtu4096,
            2048.. => Self::Mtu2048,
            1024.. => Self::Mtu1024,
            512.. => Self::Mtu512,
            _ => Self::Mtu256,
        }
    }
}

c_enum! {
    /// State of a port.
    pub(crate) enum PortState {
        /// No link.
        Down = ib_port_state_IB_PORT_DOWN,
        /// Can pass data.
        Active = ib_port_state_IB_PORT_ACTIVE,
    }
}

c_enum! {
    /// What a work completion reports.
    pub(crate) enum WcStatus {
        /// Done.
        Success = ib_wc_status_IB_WC_SUCCESS,
        /// The data is longer than the buffers.
        LocalLength = ib_wc_status_IB_WC_LOC_LEN_ERR,
        /// The queue pair can't do this request.
        LocalQpOperation = ib_wc_status_IB_WC_LOC_QP_OP_ERR,
        /// The local buffers may not be used so.
        LocalProtection = ib_wc_status_IB_WC_LOC_PROT_ERR,
        /// Not tried as the queue pair is in error.
        Flushed = ib_wc_status_IB_WC_WR_FLUSH_ERR,
        /// The memory window could not be bound.
        MwBind = ib_wc_status_IB_WC_MW_BIND_ERR,
        /// The peer's response made no sense.
        BadResponse = ib_wc_status_IB_WC_BAD_RESP_ERR,
        /// An incoming RDMA WRITE with immediate broke local protection.
        LocalAccess = ib_wc_status_IB_WC_LOC_ACCESS_ERR,
        /// The peer refused the request as malformed.
        RemoteInvalidRequest = ib_wc_status_IB_WC_REM_INV_REQ_ERR,
        /// The peer refused access to its memory.
        RemoteAccess = ib_wc_status_IB_WC_REM_ACCESS_ERR,
        /// The peer failed.
        RemoteOperation = ib_wc_status_IB_WC_REM_OP_ERR,
        /// The peer does not answer.
        RetryExceeded = ib_wc_status_IB_WC_RETRY_EXC_ERR,
        /// The peer has posted no receive.
        RnrRetryExceeded = ib_wc_status_IB_WC_RNR_RETRY_EXC_ERR,
        /// The peer aborted.
        RemoteAborted = ib_wc_status_IB_WC_REM_ABORT_ERR,
        /// The device failed.
        Fatal = ib_wc_status_IB_WC_FATAL_ERR,
        /// Anything else.
        General = ib_wc_status_IB_WC_GENERAL_ERR,
    }
}

c_enum! {
    /// What a work completion completes.
    pub(crate) enum WcOpcode {
        /// A SEND.
        Send = ib_wc_opcode_IB_WC_SEND,
        /// An RDMA WRITE.
        RdmaWrite = ib_wc_opcode_IB_WC_RDMA_WRITE,
        /// An RDMA READ.
        RdmaRead = ib_wc_opcode_IB_WC_RDMA_READ,
        /// A compare and swap.
        CompareSwap = ib_wc_opcode_IB_WC_COMP_SWAP,
        /// A fetch and add.
        FetchAdd = ib_wc_opcode_IB_WC_FETCH_ADD,
        /// A bind of a memory window.
        BindMw = ib_wc_opcode_IB_WC_BIND_MW,
        /// A local invalidate.
        LocalInvalidate = ib_wc_opcode_IB_WC_LOCAL_INV,
        /// A fast registration.
        RegMr = ib_wc_opcode_IB_WC_REG_MR,
        /// A receive.
        Recv = ib_wc_opcode_IB_WC_RECV,
        /// A receive taken by an RDMA WRITE with immediate.
        RecvRdmaWithImm = ib_wc_opcode_IB_WC_RECV_RDMA_WITH_IMM,
    }
}

c_enum! {
    /// Kind of a memory region that an in-kernel user allocates.
    pub(crate) enum MrType {
        /// Pages of one size.
        MemReg = ib_mr_type_IB_MR_TYPE_MEM_REG,
        /// Any scatter list.
        SgGaps = ib_mr_type_IB_MR_TYPE_SG_GAPS,
        /// All memory.
        Dma = ib_mr_type_IB_MR_TYPE_DMA,
        /// A user's memory.
        User = ib_mr_type_IB_MR_TYPE_USER,
        /// With signatures.
        Integrity = ib_mr_type_IB_MR_TYPE_INTEGRITY,
    }
}

c_enum! {
    /// Events of a queue pair.
    pub(crate) enum QpEvent {
        /// The queue pair failed.
        Fatal = ib_event_type_IB_EVENT_QP_FATAL,
        /// The peer sent a malformed request.
        RequestError = ib_event_type_IB_EVENT_QP_REQ_ERR,
        /// The peer broke access rights.
        AccessError = ib_event_type_IB_EVENT_QP_ACCESS_ERR,
        /// Data came before the connection was established.
        CommunicationEstablished = ib_event_type_IB_EVENT_COMM_EST,
        /// The send queue is drained.
        SendQueueDrained = ib_event_type_IB_EVENT_SQ_DRAINED,
        /// The last receive of a shared queue was consumed.
        LastWqeReached = ib_event_type_IB_EVENT_QP_LAST_WQE_REACHED,
    }
}

c_enum! {
    /// Events of a device or of its port.
    pub(crate) enum DeviceEvent {
        /// The device failed.
        Fatal = ib_event_type_IB_EVENT_DEVICE_FATAL,
        /// The port can pass data.
        PortActive = ib_event_type_IB_EVENT_PORT_ACTIVE,
        /// The port can't.
        PortError = ib_event_type_IB_EVENT_PORT_ERR,
        /// The GID table changed.
        GidChange = ib_event_type_IB_EVENT_GID_CHANGE,
    }
}

/// Network header of a received datagram (`enum rdma_network_type`).
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkType {
    /// InfiniBand global route header.
    Ib = 0,
    /// RoCEv1.
    RoceV1 = 1,
    /// RoCEv2 over IPv4.
    Ipv4 = 2,
    /// RoCEv2 over IPv6.
    Ipv6 = 3,
}

/// Flags of a request that is posted to a send queue (`enum ib_send_flags`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendFlags(pub(super) c_int);

impl SendFlags {
    const fn has(self, bit: c_int) -> bool {
        self.0 & bit != 0
    }

    /// Starts after all earlier RDMA READs have finished.
    pub(crate) const fn fence(self) -> bool {
        self.has(bindings::ib_send_flags_IB_SEND_FENCE)
    }

    /// Makes a completion.
    pub(crate) const fn signaled(self) -> bool {
        self.has(bindings::ib_send_flags_IB_SEND_SIGNALED)
    }

    /// Makes a solicited event at the peer.
    pub(crate) const fn solicited(self) -> bool {
        self.has(bindings::ib_send_flags_IB_SEND_SOLICITED)
    }

    /// The data goes into the queue entry itself.
    pub(crate) const fn inline(self) -> bool {
        self.has(bindings::ib_send_flags_IB_SEND_INLINE)
    }
}

/// Which completions a consumer wants to be told of (`enum ib_cq_notify_flags`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotifyFlags(pub(super) u32);

impl NotifyFlags {
    /// Solicited ones and errors only.
    pub(crate) const fn solicited_only(self) -> bool {
        self.0 & bindings::ib_cq_notify_flags_IB_CQ_SOLICITED_MASK
            == bindings::ib_cq_notify_flags_IB_CQ_SOLICITED
    }

    /// The consumer wants to know whether the queue had entries when it was armed.
    pub(crate) const fn report_missed(self) -> bool {
        self.0 & bindings::ib_cq_notify_flags_IB_CQ_REPORT_MISSED_EVENTS != 0
    }
}

/// Access rights to memory (`enum ib_access_flags`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access(u32);

impl Access {
    /// May be written locally.
    pub(crate) const LOCAL_WRITE: Self = Self(bindings::ib_access_flags_IB_ACCESS_LOCAL_WRITE);
    /// May be written by the peer.
    pub(crate) const REMOTE_WRITE: Self = Self(bindings::ib_access_flags_IB_ACCESS_REMOTE_WRITE);
    /// May be read by the peer.
    pub(crate) const REMOTE_READ: Self = Self(bindings::ib_access_flags_IB_ACCESS_REMOTE_READ);
    /// May be the target of the peer's atomics.
    pub(crate) const REMOTE_ATOMIC: Self = Self(bindings::ib_access_flags_IB_ACCESS_REMOTE_ATOMIC);
    /// Memory windows may be bound to it.
    pub(crate) const MW_BIND: Self = Self(bindings::ib_access_flags_IB_ACCESS_MW_BIND);
    /// Addresses start at zero.
    pub(crate) const ZERO_BASED: Self = Self(bindings::ib_access_flags_IB_ZERO_BASED);

    /// Wraps the number that C uses.
    pub(crate) const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// The number that C uses.
    pub(crate) const fn into_raw(self) -> u32 {
        self.0
    }

    /// Whether all rights of `other` are there.
    pub(crate) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// These rights and `other`.
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the memory must be writable for these rights.
    #[doc(alias = "ib_access_writable")]
    pub(crate) const fn needs_writable(self) -> bool {
        self.0
            & (Self::LOCAL_WRITE.0 | Self::REMOTE_WRITE.0 | Self::REMOTE_ATOMIC.0 | Self::MW_BIND.0)
            != 0
    }

    /// Both's rights.
    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Rights and ways of a port that the core asks for once (`RDMA_CORE_PORT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PortCaps(pub(super) u32);

impl PortCaps {
    /// RoCEv2, over UDP.
    pub(crate) const ROCE_V2: Self = Self(bindings::RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP);
}
