// SPDX-License-Identifier: GPL-2.0
//! Command numbers, names, and which bits of each command mean something.

use std::fmt;

use super::super::layout::wqe::{OPCODE, VALID};

/// A command of the control queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opcode {
    CreateQp,
    ModifyQp,
    DestroyQp,
    CreateCq,
    ModifyCq,
    DestroyCq,
    AllocStag,
    RegMr,
    QueryStag,
    DeallocStag,
    ManageMac,
    ManageArp,
    ManagePush,
    QueryFeatures,
    UploadContext,
    AllocMac,
    CreateCeq,
    DestroyCeq,
    CreateAeq,
    DestroyAeq,
    CreateAh,
    ModifyAh,
    DestroyAh,
    UpdateSds,
    QueryFpm,
    CommitFpm,
    FlushWqes,
    Nop,
    CreateMcast,
    ModifyMcast,
    DestroyMcast,
    SuspendQp,
    ResumeQp,
    PagesAllocated,
    WorkSchedNode,
    ManageStats,
    GatherStats,
    UpMap,
}

/// Number, command, name.
const TABLE: [(u8, Opcode, &str); 38] = [
    (0x00, Opcode::CreateQp, "CREATE_QP"),
    (0x01, Opcode::ModifyQp, "MODIFY_QP"),
    (0x02, Opcode::DestroyQp, "DESTROY_QP"),
    (0x03, Opcode::CreateCq, "CREATE_CQ"),
    (0x04, Opcode::ModifyCq, "MODIFY_CQ"),
    (0x05, Opcode::DestroyCq, "DESTROY_CQ"),
    (0x09, Opcode::AllocStag, "ALLOC_STAG"),
    (0x0a, Opcode::RegMr, "REG_MR"),
    (0x0b, Opcode::QueryStag, "QUERY_STAG"),
    (0x0d, Opcode::DeallocStag, "DEALLOC_STAG"),
    (0x0e, Opcode::ManageMac, "MANAGE_LOC_MAC_TABLE"),
    (0x0f, Opcode::ManageArp, "MANAGE_ARP"),
    (0x11, Opcode::ManagePush, "MANAGE_PUSH_PAGES"),
    (0x12, Opcode::QueryFeatures, "QUERY_RDMA_FEATURES"),
    (0x13, Opcode::UploadContext, "UPLOAD_CONTEXT"),
    (0x14, Opcode::AllocMac, "ALLOCATE_LOC_MAC_TABLE_ENTRY"),
    (0x16, Opcode::CreateCeq, "CREATE_CEQ"),
    (0x18, Opcode::DestroyCeq, "DESTROY_CEQ"),
    (0x19, Opcode::CreateAeq, "CREATE_AEQ"),
    (0x1b, Opcode::DestroyAeq, "DESTROY_AEQ"),
    (0x1c, Opcode::CreateAh, "CREATE_ADDR_HANDLE"),
    (0x1d, Opcode::ModifyAh, "MODIFY_ADDR_HANDLE"),
    (0x1e, Opcode::DestroyAh, "DESTROY_ADDR_HANDLE"),
    (0x1f, Opcode::UpdateSds, "UPDATE_PE_SDS"),
    (0x20, Opcode::QueryFpm, "QUERY_FPM_VAL"),
    (0x21, Opcode::CommitFpm, "COMMIT_FPM_VAL"),
    (0x22, Opcode::FlushWqes, "FLUSH_WQES"),
    (0x24, Opcode::Nop, "NOP"),
    (0x26, Opcode::CreateMcast, "CREATE_MCAST_GRP"),
    (0x27, Opcode::ModifyMcast, "MODIFY_MCAST_GRP"),
    (0x28, Opcode::DestroyMcast, "DESTROY_MCAST_GRP"),
    (0x29, Opcode::SuspendQp, "SUSPEND_QP"),
    (0x2a, Opcode::ResumeQp, "RESUME_QP"),
    (0x2b, Opcode::PagesAllocated, "SHMC_PAGES_ALLOCATED"),
    (0x2c, Opcode::WorkSchedNode, "WORK_SCHED_NODE"),
    (0x2d, Opcode::ManageStats, "MANAGE_STATS"),
    (0x2e, Opcode::GatherStats, "GATHER_STATS"),
    (0x2f, Opcode::UpMap, "UP_MAP"),
];

impl Opcode {
    pub fn from_code(code: u8) -> Option<Self> {
        TABLE
            .iter()
            .find(|(number, ..)| *number == code)
            .map(|(_, opcode, _)| *opcode)
    }

    /// The bits of each quad word that the command may have set.
    pub fn allowed(self) -> [u64; 8] {
        const ALL: u64 = u64::MAX;
        let mut w = [0u64; 8];
        let header = match self {
            Opcode::Nop => 0,
            Opcode::CreateQp => {
                (w[2], w[5]) = (ALL, ALL);
                low(24) | bits(&[42, 43, 45, 46, 47, 48, 49, 50, 51, 59, 60, 61, 62])
            }
            Opcode::ModifyQp => {
                w[1] = range(45, 32) | range(51, 48);
                (w[2], w[5]) = (ALL, ALL);
                low(24) | range(48, 42) | range(52, 49) | range(62, 55)
            }
            Opcode::DestroyQp => {
                (w[2], w[5]) = (ALL, ALL);
                low(24) | range(50, 48) | bits(&[54, 55])
            }
            Opcode::CreateCq | Opcode::ModifyCq | Opcode::DestroyCq => {
                (w[0], w[1], w[2]) = (low(21), low(63), low(18));
                (w[4], w[5], w[6], w[7]) = (ALL, ALL, low(28), low(24));
                let resize = if self == Opcode::ModifyCq {
                    bits(&[43])
                } else {
                    0
                };
                low(32) | range(52, 44) | range(61, 54) | resize
            }
            Opcode::AllocStag => {
                (w[1], w[2]) = (ALL, range(31, 8) | range(59, 54));
                (w[5], w[6]) = (low(16), low(28));
                range(53, 42) | range(61, 58)
            }
            Opcode::RegMr => {
                (w[0], w[1], w[2]) = (ALL, ALL, low(32) | range(59, 54));
                (w[4], w[5], w[6]) = (ALL, low(16), low(28));
                range(53, 43) | range(61, 59)
            }
            Opcode::QueryStag => {
                w[2] = range(31, 8);
                0
            }
            Opcode::DeallocStag => {
                (w[1], w[2]) = (range(63, 46), range(31, 8) | range(59, 54));
                bits(&[43])
            }
            Opcode::ManageMac => {
                w[4] = low(48);
                low(6) | bits(&[61, 62])
            }
            Opcode::AllocMac => 0,
            Opcode::ManageArp => {
                (w[1], w[2]) = (low(32), low(48));
                low(12) | range(44, 42)
            }
            Opcode::ManagePush => {
                w[2] = low(32);
                low(32) | range(62, 60)
            }
            Opcode::QueryFeatures => {
                w[4] = ALL;
                low(32)
            }
            Opcode::UploadContext => {
                w[2] = ALL;
                low(24) | range(51, 48) | bits(&[61, 62])
            }
            Opcode::CreateCeq | Opcode::DestroyCeq => {
                (w[2], w[4], w[6]) = (low(22), ALL, low(28));
                w[7] = low(24);
                low(10) | range(47, 44) | bits(&[60])
            }
            Opcode::CreateAeq | Opcode::DestroyAeq => {
                (w[2], w[4], w[6]) = (low(19), ALL, low(28));
                range(47, 44)
            }
            Opcode::CreateAh | Opcode::ModifyAh | Opcode::DestroyAh => {
                w[0] = range(63, 16);
                w[1] = range(63, 48) | range(39, 32) | low(16);
                w[2] = range(63, 48) | range(39, 32) | low(28);
                (w[4], w[5], w[6], w[7]) = (ALL, ALL, ALL, ALL);
                low(24) | bits(&[59, 60, 62])
            }
            Opcode::UpdateSds => {
                (w[0], w[1], w[2]) = (low(32), ALL, ALL);
                (w[4], w[5]) = (low(32) | bits(&[63]), ALL);
                (w[6], w[7]) = (low(32) | bits(&[63]), ALL);
                low(4)
            }
            Opcode::QueryFpm => {
                (w[2], w[4]) = (low(16), ALL);
                0
            }
            Opcode::CommitFpm => {
                (w[2], w[4]) = (low(16), ALL);
                low(32)
            }
            Opcode::FlushWqes => {
                (w[1], w[2]) = (low(20), ALL);
                low(24) | range(62, 59)
            }
            Opcode::CreateMcast | Opcode::ModifyMcast | Opcode::DestroyMcast => {
                (w[0], w[1], w[2]) = (low(48), low(6), range(43, 32) | low(10));
                (w[4], w[6], w[7]) = (ALL, ALL, ALL);
                low(13) | bits(&[59, 60])
            }
            Opcode::SuspendQp => low(24),
            Opcode::ResumeQp => {
                w[2] = low(32);
                low(24)
            }
            Opcode::PagesAllocated => {
                w[2] = low(6);
                0
            }
            Opcode::WorkSchedNode => {
                w[4] = range(63, 48) | range(38, 32);
                low(14) | range(29, 16) | range(62, 42)
            }
            Opcode::ManageStats => {
                w[5] = low(16);
                low(7) | bits(&[60, 62])
            }
            Opcode::GatherStats => {
                (w[4], w[5]) = (ALL, low(16));
                low(7) | bits(&[60, 61])
            }
            Opcode::UpMap => {
                (w[0], w[5]) = (ALL, range(37, 32) | low(16));
                bits(&[61, 62])
            }
        };
        w[3] = header | OPCODE.mask() | VALID.mask();
        w
    }
}

const fn low(count: u32) -> u64 {
    u64::MAX >> (64 - count)
}

const fn range(hi: u32, lo: u32) -> u64 {
    low(hi - lo + 1) << lo
}

fn bits(positions: &[u32]) -> u64 {
    positions.iter().fold(0, |mask, bit| mask | (1 << bit))
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = TABLE
            .iter()
            .find(|(_, opcode, _)| opcode == self)
            .map_or("?", |(.., name)| name);
        f.write_str(name)
    }
}
