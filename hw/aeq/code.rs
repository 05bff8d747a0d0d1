// SPDX-License-Identifier: GPL-2.0

//! Codes of asynchronous events.

/// The code of an asynchronous event. The names are those of the device's manual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AeCode(pub(crate) u16);

#[allow(missing_docs, reason = "the names say it")]
#[allow(dead_code, reason = "the list is the device's, and whole")]
impl AeCode {
    pub(crate) const AMP_UNALLOCATED_STAG: Self = Self(0x0102);
    pub(crate) const AMP_INVALID_STAG: Self = Self(0x0103);
    pub(crate) const AMP_BAD_QP: Self = Self(0x0104);
    pub(crate) const AMP_BAD_PD: Self = Self(0x0105);
    pub(crate) const AMP_BAD_STAG_KEY: Self = Self(0x0106);
    pub(crate) const AMP_BAD_STAG_INDEX: Self = Self(0x0107);
    pub(crate) const AMP_BOUNDS_VIOLATION: Self = Self(0x0108);
    pub(crate) const AMP_RIGHTS_VIOLATION: Self = Self(0x0109);
    pub(crate) const AMP_TO_WRAP: Self = Self(0x010a);
    pub(crate) const AMP_FASTREG_VALID_STAG: Self = Self(0x010c);
    pub(crate) const AMP_FASTREG_MW_STAG: Self = Self(0x010d);
    pub(crate) const AMP_FASTREG_INVALID_RIGHTS: Self = Self(0x010e);
    pub(crate) const AMP_FASTREG_INVALID_LENGTH: Self = Self(0x0110);
    pub(crate) const AMP_INVALIDATE_SHARED: Self = Self(0x0111);
    pub(crate) const AMP_INVALIDATE_NO_REMOTE_ACCESS_RIGHTS: Self = Self(0x0112);
    pub(crate) const AMP_INVALIDATE_MR_WITH_BOUND_WINDOWS: Self = Self(0x0113);
    pub(crate) const AMP_MWBIND_VALID_STAG: Self = Self(0x0114);
    pub(crate) const AMP_MWBIND_OF_MR_STAG: Self = Self(0x0115);
    pub(crate) const AMP_MWBIND_TO_ZERO_BASED_STAG: Self = Self(0x0116);
    pub(crate) const AMP_MWBIND_TO_MW_STAG: Self = Self(0x0117);
    pub(crate) const AMP_MWBIND_INVALID_RIGHTS: Self = Self(0x0118);
    pub(crate) const AMP_MWBIND_INVALID_BOUNDS: Self = Self(0x0119);
    pub(crate) const AMP_MWBIND_TO_INVALID_PARENT: Self = Self(0x011a);
    pub(crate) const AMP_MWBIND_BIND_DISABLED: Self = Self(0x011b);
    pub(crate) const PRIV_OPERATION_DENIED: Self = Self(0x011c);
    pub(crate) const AMP_INVALIDATE_TYPE1_MW: Self = Self(0x011d);
    pub(crate) const AMP_MWBIND_ZERO_BASED_TYPE1_MW: Self = Self(0x011e);
    pub(crate) const AMP_FASTREG_INVALID_PBL_HPS_CFG: Self = Self(0x011f);
    pub(crate) const AMP_MWBIND_WRONG_TYPE: Self = Self(0x0120);
    pub(crate) const AMP_FASTREG_PBLE_MISMATCH: Self = Self(0x0121);
    pub(crate) const UDA_XMIT_DGRAM_TOO_LONG: Self = Self(0x0132);
    pub(crate) const UDA_XMIT_BAD_PD: Self = Self(0x0133);
    pub(crate) const UDA_XMIT_DGRAM_TOO_SHORT: Self = Self(0x0134);
    pub(crate) const UDA_L4LEN_INVALID: Self = Self(0x0135);
    pub(crate) const BAD_CLOSE: Self = Self(0x0201);
    pub(crate) const RDMAP_ROE_BAD_LLP_CLOSE: Self = Self(0x0202);
    pub(crate) const CQ_OPERATION_ERROR: Self = Self(0x0203);
    pub(crate) const RDMA_READ_WHILE_ORD_ZERO: Self = Self(0x0205);
    pub(crate) const STAG_ZERO_INVALID: Self = Self(0x0206);
    pub(crate) const IB_RREQ_AND_Q1_FULL: Self = Self(0x0207);
    pub(crate) const IB_INVALID_REQUEST: Self = Self(0x0208);
    pub(crate) const SRQ_LIMIT: Self = Self(0x0209);
    pub(crate) const WQE_UNEXPECTED_OPCODE: Self = Self(0x020a);
    pub(crate) const WQE_INVALID_PARAMETER: Self = Self(0x020b);
    pub(crate) const WQE_INVALID_FRAG_DATA: Self = Self(0x020c);
    pub(crate) const IB_REMOTE_ACCESS_ERROR: Self = Self(0x020d);
    pub(crate) const IB_REMOTE_OP_ERROR: Self = Self(0x020e);
    pub(crate) const SRQ_CATASTROPHIC_ERROR: Self = Self(0x020f);
    pub(crate) const WQE_LSMM_TOO_LONG: Self = Self(0x0220);
    pub(crate) const ATOMIC_ALIGNMENT: Self = Self(0x0221);
    pub(crate) const ATOMIC_MASK: Self = Self(0x0222);
    pub(crate) const INVALID_REQUEST: Self = Self(0x0223);
    pub(crate) const PCIE_ATOMIC_DISABLE: Self = Self(0x0224);
    pub(crate) const DDP_INVALID_MSN_GAP_IN_MSN: Self = Self(0x0301);
    pub(crate) const DDP_UBE_DDP_MESSAGE_TOO_LONG_FOR_AVAILABLE_BUFFER: Self = Self(0x0303);
    pub(crate) const DDP_UBE_INVALID_DDP_VERSION: Self = Self(0x0304);
    pub(crate) const DDP_UBE_INVALID_MO: Self = Self(0x0305);
    pub(crate) const DDP_UBE_INVALID_MSN_NO_BUFFER_AVAILABLE: Self = Self(0x0306);
    pub(crate) const DDP_UBE_INVALID_QN: Self = Self(0x0307);
    pub(crate) const DDP_NO_L_BIT: Self = Self(0x0308);
    pub(crate) const RDMAP_ROE_INVALID_RDMAP_VERSION: Self = Self(0x0311);
    pub(crate) const RDMAP_ROE_UNEXPECTED_OPCODE: Self = Self(0x0312);
    pub(crate) const ROE_INVALID_RDMA_READ_REQUEST: Self = Self(0x0313);
    pub(crate) const ROE_INVALID_RDMA_WRITE_OR_READ_RESP: Self = Self(0x0314);
    pub(crate) const ROCE_RSP_LENGTH_ERROR: Self = Self(0x0316);
    pub(crate) const ROCE_EMPTY_MCG: Self = Self(0x0380);
    pub(crate) const ROCE_BAD_MC_IP_ADDR: Self = Self(0x0381);
    pub(crate) const ROCE_BAD_MC_QPID: Self = Self(0x0382);
    pub(crate) const MCG_QP_PROTOCOL_MISMATCH: Self = Self(0x0383);
    pub(crate) const INVALID_ARP_ENTRY: Self = Self(0x0401);
    pub(crate) const INVALID_TCP_OPTION_RCVD: Self = Self(0x0402);
    pub(crate) const STALE_ARP_ENTRY: Self = Self(0x0403);
    pub(crate) const INVALID_AH_ENTRY: Self = Self(0x0406);
    pub(crate) const LLP_CLOSE_COMPLETE: Self = Self(0x0501);
    pub(crate) const LLP_CONNECTION_RESET: Self = Self(0x0502);
    pub(crate) const LLP_FIN_RECEIVED: Self = Self(0x0503);
    pub(crate) const LLP_RECEIVED_MARKER_AND_LENGTH_FIELDS_DONT_MATCH: Self = Self(0x0504);
    pub(crate) const LLP_RECEIVED_MPA_CRC_ERROR: Self = Self(0x0505);
    pub(crate) const LLP_SEGMENT_TOO_SMALL: Self = Self(0x0507);
    pub(crate) const LLP_SYN_RECEIVED: Self = Self(0x0508);
    pub(crate) const LLP_TERMINATE_RECEIVED: Self = Self(0x0509);
    pub(crate) const LLP_TOO_MANY_RETRIES: Self = Self(0x050a);
    pub(crate) const LLP_TOO_MANY_KEEPALIVE_RETRIES: Self = Self(0x050b);
    pub(crate) const LLP_DOUBT_REACHABILITY: Self = Self(0x050c);
    pub(crate) const LLP_CONNECTION_ESTABLISHED: Self = Self(0x050e);
    pub(crate) const LLP_TOO_MANY_RNRS: Self = Self(0x050f);
    pub(crate) const RESOURCE_EXHAUSTION: Self = Self(0x0520);
    pub(crate) const RESET_SENT: Self = Self(0x0601);
    pub(crate) const TERMINATE_SENT: Self = Self(0x0602);
    pub(crate) const RESET_NOT_SENT: Self = Self(0x0603);
    pub(crate) const LCE_QP_CATASTROPHIC: Self = Self(0x0700);
    pub(crate) const LCE_FUNCTION_CATASTROPHIC: Self = Self(0x0701);
    pub(crate) const LCE_CQ_CATASTROPHIC: Self = Self(0x0702);
    pub(crate) const REMOTE_QP_CATASTROPHIC: Self = Self(0x0703);
    pub(crate) const LOCAL_QP_CATASTROPHIC: Self = Self(0x0704);
    pub(crate) const RCE_QP_CATASTROPHIC: Self = Self(0x0705);
    pub(crate) const QP_SUSPEND_COMPLETE: Self = Self(0x0900);
    pub(crate) const CQP_DEFERRED_COMPLETE: Self = Self(0x0901);
    pub(crate) const ADAPTER_CATASTROPHIC: Self = Self(0x0b0b);
}

impl AeCode {
    /// Returns whether an event of this code is a queue pair's, whatever its source says.
    pub(super) const fn is_of_qp(self) -> bool {
        self.has_no_source()
            || matches!(
                self,
                Self::PRIV_OPERATION_DENIED
                    | Self::AMP_INVALIDATE_TYPE1_MW
                    | Self::AMP_MWBIND_ZERO_BASED_TYPE1_MW
                    | Self::AMP_FASTREG_INVALID_PBL_HPS_CFG
                    | Self::AMP_FASTREG_PBLE_MISMATCH
                    | Self::UDA_XMIT_DGRAM_TOO_LONG
                    | Self::UDA_XMIT_BAD_PD
                    | Self::UDA_XMIT_DGRAM_TOO_SHORT
                    | Self::BAD_CLOSE
                    | Self::RDMA_READ_WHILE_ORD_ZERO
                    | Self::STAG_ZERO_INVALID
                    | Self::IB_RREQ_AND_Q1_FULL
                    | Self::IB_INVALID_REQUEST
                    | Self::WQE_UNEXPECTED_OPCODE
                    | Self::IB_REMOTE_ACCESS_ERROR
                    | Self::IB_REMOTE_OP_ERROR
                    | Self::DDP_UBE_INVALID_DDP_VERSION
                    | Self::DDP_UBE_INVALID_MO
                    | Self::DDP_UBE_INVALID_QN
                    | Self::DDP_NO_L_BIT
                    | Self::RDMAP_ROE_INVALID_RDMAP_VERSION
                    | Self::RDMAP_ROE_UNEXPECTED_OPCODE
                    | Self::ROE_INVALID_RDMA_READ_REQUEST
                    | Self::ROE_INVALID_RDMA_WRITE_OR_READ_RESP
                    | Self::ROCE_RSP_LENGTH_ERROR
                    | Self::INVALID_ARP_ENTRY
                    | Self::INVALID_TCP_OPTION_RCVD
                    | Self::STALE_ARP_ENTRY
                    | Self::INVALID_AH_ENTRY
                    | Self::LLP_RECEIVED_MPA_CRC_ERROR
                    | Self::LLP_SEGMENT_TOO_SMALL
                    | Self::LLP_TOO_MANY_RETRIES
                    | Self::LLP_TOO_MANY_RNRS
                    | Self::REMOTE_QP_CATASTROPHIC
                    | Self::LOCAL_QP_CATASTROPHIC
                    | Self::RCE_QP_CATASTROPHIC
                    | Self::LLP_DOUBT_REACHABILITY
                    | Self::LLP_CONNECTION_ESTABLISHED
                    | Self::RESET_SENT
                    | Self::TERMINATE_SENT
                    | Self::RESET_NOT_SENT
                    | Self::LCE_QP_CATASTROPHIC
                    | Self::QP_SUSPEND_COMPLETE
                    | Self::UDA_L4LEN_INVALID
            )
    }

    /// Returns whether the source of an event of this code says nothing.
    pub(super) const fn has_no_source(self) -> bool {
        matches!(
            self,
            Self::ROCE_EMPTY_MCG
                | Self::ROCE_BAD_MC_IP_ADDR
                | Self::ROCE_BAD_MC_QPID
                | Self::MCG_QP_PROTOCOL_MISMATCH
                | Self::LLP_CONNECTION_RESET
                | Self::LLP_SYN_RECEIVED
                | Self::LLP_FIN_RECEIVED
                | Self::LLP_CLOSE_COMPLETE
                | Self::LLP_TERMINATE_RECEIVED
                | Self::RDMAP_ROE_BAD_LLP_CLOSE
        )
    }
}
