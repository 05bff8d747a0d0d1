// SPDX-License-Identifier: GPL-2.0
//! Bit positions and register addresses that the device and its driver agree on, one place per generation.
//!
//! Facts from the register names and masks of the in-tree driver (`icrdma_hw`, `defs.h`); what differs between
//! generations is in [`Layout`], the rest are plain constants.

use super::field::Field;

/// Everything whose position depends on the generation of the device.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    pub registers: Registers,
    pub ccqp_done: Field,
    pub ccqp_err: Field,
    pub stag_pd: Field,
    pub cq_id: Field,
    pub cq_ceq_id: Field,
    pub commit_cq_count: Field,
    pub sd_function: Field,
    /// The hardware major version that a driver writes into the CQP host context.
    pub hw_major: u64,
}

/// BAR0 offsets of the protocol engine of a physical function.
#[derive(Debug, Clone, Copy)]
pub struct Registers {
    pub cqp_tail: u32,
    pub cqp_db: u32,
    pub ccqp_status: u32,
    pub ccqp_high: u32,
    pub ccqp_low: u32,
    pub cq_arm: u32,
    pub cq_ack: u32,
    pub aeq_alloc: u32,
    pub cqp_err_codes: u32,
    pub wqe_alloc: u32,
    pub lbar_ctrl: u32,
    pub cpu_status: [u32; 3],
    pub aeq_ctl: u32,
    pub ceq_ctl: u32,
    pub ceq_ctl_count: u32,
    pub pd_inv: u32,
    pub hmc_error_info: u32,
    pub hmc_error_data: u32,
    pub crit_err: u32,
    /// The page that is mapped into user processes: +0 is the work-queue doorbell, +0x40 arms a CQ.
    pub user_page: u32,
}

/// E810 (generation 2).
pub const E810: Layout = Layout {
    registers: Registers {
        cqp_tail: 0x0050_0880,
        cqp_db: 0x0050_0800,
        ccqp_status: 0x0050_a000,
        ccqp_high: 0x0050_a100,
        ccqp_low: 0x0050_a080,
        cq_arm: 0x0050_2c00,
        cq_ack: 0x0050_2c80,
        aeq_alloc: 0x0050_2d00,
        cqp_err_codes: 0x0050_a200,
        wqe_alloc: 0x0050_4400,
        lbar_ctrl: 0x0009_de74,
        cpu_status: [0x0050_ba5c, 0x0050_ba60, 0x0050_ba64],
        aeq_ctl: 0x0016_cb00,
        ceq_ctl: 0x0015_c000,
        ceq_ctl_count: 2048,
        pd_inv: 0x0052_0300,
        hmc_error_info: 0x0052_0400,
        hmc_error_data: 0x0052_0500,
        crit_err: 0x0053_4000,
        user_page: 0x007f_0000,
    },
    ccqp_done: Field::bit(0),
    ccqp_err: Field::bit(31),
    stag_pd: Field::new(63, 46),
    cq_id: Field::new(18, 0),
    cq_ceq_id: Field::new(31, 22),
    commit_cq_count: Field::new(19, 0),
    sd_function: Field::new(5, 0),
    hw_major: 1,
};

/// Offset of the CQ arm doorbell in the user page.
pub const USER_PAGE_CQ_ARM: u32 = 0x40;

/// PFPE_CQPTAIL.
pub const CQPTAIL_TAIL: Field = Field::new(10, 0);
pub const CQPTAIL_ERROR: Field = Field::bit(31);

/// PFHMC_PDINV.
pub const PDINV_SD: Field = Field::new(11, 0);
pub const PDINV_PD: Field = Field::new(24, 16);

/// CQP host context.
pub mod host {
    use super::Field;
    pub const SQ_SIZE: Field = Field::new(11, 8);
    pub const PROTOCOL: Field = Field::new(4, 3);
    pub const HW_MAJOR: Field = Field::new(31, 16);
}

/// Completion queue entries and the shadow area.
pub mod cqe {
    use super::Field;
    pub const MINOR: Field = Field::new(15, 0);
    pub const MAJOR: Field = Field::new(31, 16);
    pub const WQE_INDEX: Field = Field::new(46, 32);
    pub const EXTENDED: Field = Field::bit(50);
    pub const STAG_OR_IPV4: Field = Field::bit(53);
    pub const SOLICITED: Field = Field::bit(54);
    pub const ERROR: Field = Field::bit(55);
    pub const OPCODE: Field = Field::new(61, 56);
    pub const IS_SQ: Field = Field::bit(62);
    pub const VALID: Field = Field::bit(63);
    pub const QP_ID: Field = Field::new(55, 32);
    pub const EXT_IMM_VALID: Field = Field::bit(62);
    pub const EXT_SMAC_VALID: Field = Field::bit(61);
    pub const EXT_VLAN_VALID: Field = Field::bit(60);
    pub const EXT_VLAN: Field = Field::new(63, 48);
    /// As wide as the size of a queue in CREATE_CQ; drivers name one bit less but do not mask.
    pub const SHADOW_CONSUMER: Field = Field::new(20, 0);
    pub const ARM_SELECT: Field = Field::new(13, 0);
    pub const ARM_NEXT: Field = Field::bit(14);
    pub const ARM_NEXT_SE: Field = Field::bit(15);
    pub const ARM_SEQUENCE: Field = Field::new(17, 16);
}

/// Asynchronous event queue entries.
pub mod aeqe {
    use super::Field;
    pub const ID_LOW: Field = Field::new(17, 0);
    pub const WQE_INDEX: Field = Field::new(32, 18);
    pub const OVERFLOW: Field = Field::bit(33);
    pub const CODE: Field = Field::new(45, 34);
    pub const ID_HIGH: Field = Field::bit(46);
    pub const SOURCE: Field = Field::new(53, 50);
    pub const QP_STATE: Field = Field::new(56, 54);
    pub const TCP_STATE: Field = Field::new(60, 57);
    pub const VALID: Field = Field::bit(63);
}

/// Control queue work-queue entries; `h` names fields of the header (quad word 3).
pub mod wqe {
    use super::Field;
    pub const OPCODE: Field = Field::new(37, 32);
    pub const VALID: Field = Field::bit(63);

    pub const QP_ID: Field = Field::new(23, 0);
    pub const QP_VIRTUAL: Field = Field::bit(45);
    pub const QP_CQ_VALID: Field = Field::bit(47);
    pub const QP_TYPE: Field = Field::new(50, 48);
    pub const QP_ARP_VALID: Field = Field::bit(59);
    pub const QP_NEXT_STATE: Field = Field::new(62, 60);

    pub const CQ_SIZE: Field = Field::new(20, 0);
    pub const CQ_CONTEXT: Field = Field::new(62, 0);
    pub const CQ_RESIZE: Field = Field::bit(43);
    pub const LEAF_SIZE: Field = Field::new(45, 44);
    pub const CQ_CHECK_OVERFLOW: Field = Field::bit(46);
    pub const VIRTUAL: Field = Field::bit(47);
    pub const CQ_CEQ_VALID: Field = Field::bit(49);
    pub const CQ_LARGE_ENTRIES: Field = Field::bit(61);
    pub const FIRST_PBLE: Field = Field::new(27, 0);
    pub const VSI: Field = Field::new(23, 8);

    pub const CEQ_SIZE: Field = Field::new(21, 0);
    pub const CEQ_ID: Field = Field::new(9, 0);
    pub const AEQ_SIZE: Field = Field::new(18, 0);

    pub const STAG_LENGTH: Field = Field::new(45, 0);
    pub const STAG_KEY: Field = Field::new(7, 0);
    pub const STAG_INDEX: Field = Field::new(31, 8);
    pub const STAG_IS_MR: Field = Field::bit(43);
    pub const STAG_MW_WIDE: Field = Field::bit(42);
    pub const STAG_PAGE_SIZE: Field = Field::new(47, 46);
    pub const STAG_RIGHTS: Field = Field::new(52, 48);
    pub const STAG_REMOTE: Field = Field::bit(53);
    pub const STAG_VA_BASED: Field = Field::bit(59);
    pub const STAG_ATOMICS: Field = Field::bit(61);

    pub const MAC_INDEX: Field = Field::new(5, 0);
    pub const MAC_FREE: Field = Field::bit(62);
    pub const ARP_INDEX: Field = Field::new(11, 0);
    pub const ARP_VALID: Field = Field::bit(42);
    pub const ARP_PERMANENT: Field = Field::bit(43);
    pub const ARP_QUERY: Field = Field::bit(44);
    pub const MAC_ADDRESS: Field = Field::new(47, 0);

    pub const PUSH_INDEX: Field = Field::new(31, 0);
    pub const PUSH_FREE: Field = Field::bit(62);
    pub const BUFFER_LENGTH: Field = Field::new(31, 0);

    pub const SD_COMMAND: Field = Field::new(31, 0);
    pub const SD_ENTRY_VALID: Field = Field::bit(63);
    pub const SD_ENTRY_COUNT: Field = Field::new(3, 0);

    pub const FLUSH_RQ_MINOR: Field = Field::new(15, 0);
    pub const FLUSH_RQ_MAJOR: Field = Field::new(31, 16);
    pub const FLUSH_SQ_MINOR: Field = Field::new(47, 32);
    pub const FLUSH_SQ_MAJOR: Field = Field::new(63, 48);
    pub const FLUSH_AE_CODE: Field = Field::new(15, 0);
    pub const FLUSH_AE_SOURCE: Field = Field::new(19, 16);
    pub const FLUSH_GENERATE_AE: Field = Field::bit(59);
    pub const FLUSH_USER_CODE: Field = Field::bit(60);
    pub const FLUSH_SQ: Field = Field::bit(61);
    pub const FLUSH_RQ: Field = Field::bit(62);

    pub const AH_INDEX: Field = Field::new(23, 0);
    pub const AH_MAC: Field = Field::new(63, 16);
    pub const AH_PD_LOW: Field = Field::new(63, 48);
    pub const AH_PD_HIGH: Field = Field::new(27, 20);
    pub const AH_TC: Field = Field::new(39, 32);
    pub const AH_VLAN: Field = Field::new(15, 0);
    pub const AH_ARP: Field = Field::new(63, 48);
    pub const AH_HOP_LIMIT: Field = Field::new(39, 32);
    pub const AH_FLOW_LABEL: Field = Field::new(19, 0);
    pub const AH_IPV4: Field = Field::bit(59);
    pub const AH_VLAN_INSERT: Field = Field::bit(60);
    pub const AH_LOOPBACK: Field = Field::bit(62);

    pub const MG_INDEX: Field = Field::new(12, 0);
    pub const MG_VLAN_VALID: Field = Field::bit(59);
    pub const MG_IPV4: Field = Field::bit(60);
    pub const MG_VLAN: Field = Field::new(43, 32);
    pub const MG_QS_HANDLE: Field = Field::new(9, 0);
    pub const MG_ENTRY_QP: Field = Field::new(17, 0);
    pub const MG_ENTRY_IGNORE_PORT: Field = Field::bit(30);
    pub const MG_ENTRY_VALID: Field = Field::bit(31);
    pub const MG_ENTRY_PORT: Field = Field::new(47, 32);

    pub const WS_NODE: Field = Field::new(13, 0);
    pub const WS_PARENT: Field = Field::new(29, 16);
    pub const WS_OPERATION: Field = Field::new(55, 52);
    pub const WS_TC: Field = Field::new(58, 56);
    pub const WS_PRIORITY: Field = Field::new(60, 59);
    pub const WS_LEAF: Field = Field::bit(61);
    pub const WS_ENABLE: Field = Field::bit(62);
    pub const WS_VSI: Field = Field::new(63, 48);
    pub const WS_WEIGHT: Field = Field::new(38, 32);

    pub const STATS_INSTANCE: Field = Field::new(6, 0);
    pub const STATS_USE_INSTANCE: Field = Field::bit(61);
    pub const STATS_ALLOC: Field = Field::bit(62);
    pub const STATS_FUNCTION: Field = Field::new(15, 0);

    pub const RESUME_QS_HANDLE: Field = Field::new(31, 0);
}

/// QP context of RoCEv2 and iWARP queue pairs; the number is the byte offset of the quad word.
pub mod qpc {
    use super::Field;
    // +0
    pub const IPV4: Field = Field::bit(3);
    pub const INSERT_VLAN: Field = Field::bit(5);
    pub const IS_QP1: Field = Field::bit(6);
    pub const RQ_WQE_SIZE: Field = Field::new(9, 8);
    pub const ERR_RQ_INDEX_VALID: Field = Field::bit(19);
    pub const PD_HIGH: Field = Field::new(21, 20);
    pub const DCTCP: Field = Field::bit(25);
    pub const TPH_ENABLES: Field = Field::new(31, 28);
    pub const PUSH_PAGE: Field = Field::new(41, 32);
    pub const PUSH_ENABLED: Field = Field::bit(47);
    pub const ROCE_VERSION: Field = Field::new(63, 60);
    // +24
    pub const TTL: Field = Field::new(7, 0);
    pub const RQ_SIZE: Field = Field::new(11, 8);
    pub const SQ_SIZE: Field = Field::new(15, 12);
    pub const TOS: Field = Field::new(31, 24);
    pub const SOURCE_PORT: Field = Field::new(47, 32);
    pub const DEST_PORT: Field = Field::new(63, 48);
    // +32, +40, +184, +192
    pub const ADDRESS_LOW: Field = Field::new(31, 0);
    // +48
    pub const MSS: Field = Field::new(29, 16);
    pub const VLAN_TAG: Field = Field::new(47, 32);
    pub const ARP_INDEX: Field = Field::new(63, 48);
    // +56
    pub const FLOW_LABEL: Field = Field::new(19, 0);
    pub const ACK_CREDITS: Field = Field::new(24, 20);
    pub const PKEY: Field = Field::new(47, 32);
    pub const PD_LOW: Field = Field::new(63, 48);
    // +64
    pub const DEST_QP: Field = Field::new(23, 0);
    pub const QKEY: Field = Field::new(63, 32);
    // +80
    pub const PSN_NEXT: Field = Field::new(23, 0);
    pub const LSN: Field = Field::new(55, 32);
    // +88
    pub const EPSN: Field = Field::new(23, 0);
    // +96
    pub const PSN_MAX: Field = Field::new(23, 0);
    pub const PSN_UNA: Field = Field::new(55, 32);
    // +112
    pub const CWND: Field = Field::new(55, 32);
    // +128
    pub const ERR_RQ_INDEX: Field = Field::new(46, 32);
    pub const REXMIT_THRESHOLD: Field = Field::new(53, 48);
    pub const RNR_THRESHOLD: Field = Field::new(56, 54);
    pub const RTO_MIN: Field = Field::new(63, 57);
    // +136
    pub const SEND_CQ: Field = Field::new(24, 0);
    pub const RECV_CQ: Field = Field::new(56, 32);
    // +144
    pub const STATS_INDEX: Field = Field::new(6, 0);
    // +152
    pub const MAC: Field = Field::new(63, 16);
    // +160
    pub const ORD: Field = Field::new(7, 0);
    pub const IRD: Field = Field::new(18, 16);
    pub const UD_PRIVATE_CQ: Field = Field::bit(19);
    pub const WRITE_OK: Field = Field::bit(20);
    pub const READ_OK: Field = Field::bit(21);
    pub const BIND_OK: Field = Field::bit(23);
    pub const FAST_REG_OK: Field = Field::bit(24);
    pub const PRIVILEGED: Field = Field::bit(25);
    pub const USE_STATS: Field = Field::bit(26);
    pub const DCQCN: Field = Field::bit(22);
    pub const TIMELY: Field = Field::bit(27);
    pub const FW_CC: Field = Field::bit(28);
    pub const NO_ICRC: Field = Field::bit(31);
    // +176
    pub const TPH_VALUES: Field = Field::new(15, 0);
    pub const QS_HANDLE: Field = Field::new(25, 16);
    // +200
    pub const T_LOW: Field = Field::new(39, 32);
    pub const T_HIGH: Field = Field::new(63, 52);
    // +208
    pub const REMOTE_ENDPOINT: Field = Field::new(16, 0);
    /// Length of the context in guest memory, bytes.
    pub const LENGTH: usize = 256;
}

/// HMC: segment descriptors, FPM query and commit buffers.
pub mod hmc {
    use super::Field;
    pub const SD_INDEX: Field = Field::new(11, 0);
    pub const SD_WRITE: Field = Field::bit(31);
    pub const SD_VALID: Field = Field::bit(0);
    pub const SD_DIRECT: Field = Field::bit(1);
    pub const SD_PAGE_COUNT: Field = Field::new(11, 2);
    pub const SD_ADDRESS: Field = Field::new(63, 12);
    pub const PD_VALID: Field = Field::bit(0);
    pub const FIRST_SD: Field = Field::new(13, 0);
    pub const MAX_SDS: Field = Field::new(44, 32);
    pub const QP_COUNT: Field = Field::new(20, 0);
    pub const MAX_CEQS: Field = Field::new(9, 0);
    pub const HT_MULTIPLIER: Field = Field::new(19, 16);
    pub const TIMER_BUCKET: Field = Field::new(47, 32);
    pub const QUERY_LENGTH: usize = 200;
    pub const COMMIT_LENGTH: usize = 208;
    /// Backing memory of one segment descriptor, bytes.
    pub const SD_SPAN: u64 = 2 << 20;
    /// A page of a paged segment descriptor, bytes.
    pub const PAGE: u64 = 4096;
}
