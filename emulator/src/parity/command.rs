// SPDX-License-Identifier: GPL-2.0
//! Commands of the control queue: which bits are addresses and numbers.

use super::fields::{describe, span, split, Fields, Kind, Span, Subject, ALL};
use super::objects::{Class, Object, Objects};
use crate::rdma::cqp::Opcode;
use crate::rdma::field::Field;
use crate::rdma::layout::{hmc, qpc, wqe, E810};
use crate::rdma::qp::{QpState, QpType};

/// Operation of WORK_SCHED_NODE that removes one.
const DELETE_NODE: u64 = 2;
/// The address of a list that continues UPDATE_PE_SDS; the function is below.
const SD_LIST: Field = Field::new(63, 7);

/// A command, the memory that it pointed to, and how it ended.
#[derive(Debug)]
pub(super) struct Command {
    pub code: u8,
    pub words: [u64; 8],
    pub contexts: Vec<Vec<u64>>,
    /// Segment descriptors: index, valid, direct.
    pub sds: Vec<(u32, bool, bool)>,
    /// Error, minor code, value.
    pub done: Option<(Option<u32>, u16, u32)>,
}

impl Command {
    fn opcode(&self) -> Option<Opcode> {
        Opcode::from_code(self.code)
    }

    fn head(&self, field: Field) -> u64 {
        field.get(self.words[3])
    }

    fn failed(&self) -> bool {
        !matches!(self.done, Some((None, ..)))
    }

    /// The periodic reading of statistics is no part of a workload.
    pub fn is_periodic(&self) -> bool {
        self.opcode() == Some(Opcode::GatherStats)
    }

    /// Neighbours come and go on their own.
    pub fn is_neighbour(&self) -> bool {
        self.opcode() == Some(Opcode::ManageArp)
    }

    /// What kind of event it is: two that are called the same are held against
    /// each other.
    pub fn title(&self) -> String {
        let Some(opcode) = self.opcode() else {
            return format!("command {:#x}", self.code);
        };
        let state = self.head(wqe::QP_NEXT_STATE);
        match (opcode, QpState::from_code(state)) {
            (Opcode::ModifyQp, Some(state)) => format!("{opcode} to {state:?}"),
            (Opcode::ManageArp, _) if self.head(wqe::ARP_VALID) != 0 => {
                format!("{opcode} {:012x}", wqe::MAC_ADDRESS.get(self.words[2]))
            }
            _ => opcode.to_string(),
        }
    }

    /// The object that the command is about.
    fn object(&self) -> Option<Object> {
        let (class, id) = match self.opcode()? {
            Opcode::CreateQp
            | Opcode::ModifyQp
            | Opcode::DestroyQp
            | Opcode::FlushWqes
            | Opcode::SuspendQp
            | Opcode::ResumeQp
            | Opcode::UploadContext => (Class::Qp, self.head(wqe::QP_ID)),
            Opcode::CreateCq | Opcode::ModifyCq | Opcode::DestroyCq => {
                (Class::Cq, self.head(E810.cq_id))
            }
            Opcode::AllocStag | Opcode::RegMr | Opcode::QueryStag | Opcode::DeallocStag => {
                (Class::Stag, wqe::STAG_INDEX.get(self.words[2]))
            }
            Opcode::CreateAh | Opcode::ModifyAh | Opcode::DestroyAh => {
                (Class::Ah, self.head(wqe::AH_INDEX))
            }
            Opcode::ManageArp => (Class::Arp, self.head(wqe::ARP_INDEX)),
            Opcode::CreateMcast | Opcode::ModifyMcast | Opcode::DestroyMcast => {
                (Class::Mcast, self.head(wqe::MG_INDEX))
            }
            Opcode::WorkSchedNode => (Class::Node, self.head(wqe::WS_NODE)),
            _ => return None,
        };
        Some((class, id))
    }

    /// The queue pair that the command makes, and whether it is for datagrams.
    pub fn creates_queue_pair(&self) -> Option<(u64, bool)> {
        (self.opcode()? == Opcode::CreateQp).then(|| {
            let kind = QpType::from_code(self.head(wqe::QP_TYPE));
            let datagram = matches!(kind, Some(QpType::RoceUd | QpType::Uda));
            (self.head(wqe::QP_ID), datagram)
        })
    }

    fn creates(&self) -> bool {
        matches!(
            self.opcode(),
            Some(Opcode::CreateQp | Opcode::CreateCq | Opcode::AllocStag | Opcode::RegMr)
        ) || (self.opcode() == Some(Opcode::ModifyCq) && wqe::CQ_RESIZE.is_set(self.words[3]))
    }

    fn destroys(&self) -> bool {
        match self.opcode() {
            Some(
                Opcode::DestroyQp
                | Opcode::DestroyCq
                | Opcode::DeallocStag
                | Opcode::DestroyAh
                | Opcode::DestroyMcast,
            ) => true,
            Some(Opcode::ManageArp) => {
                !wqe::ARP_VALID.is_set(self.words[3]) && !wqe::ARP_QUERY.is_set(self.words[3])
            }
            Some(Opcode::WorkSchedNode) => self.head(wqe::WS_OPERATION) == DELETE_NODE,
            _ => false,
        }
    }

    /// All that the command says, in symbols.
    pub fn fields(&self, objects: &mut Objects) -> Fields {
        let mut fields = Fields::default();
        let object = self.object();
        if let (Some((Class::Arp, entry)), true) = (object, self.head(wqe::ARP_VALID) != 0) {
            objects.set_neighbour(entry, wqe::MAC_ADDRESS.get(self.words[2]));
        }
        let subject = Subject {
            object,
            new: self.creates(),
        };
        describe(
            &mut fields,
            "",
            &self.words,
            &self.spans(),
            subject,
            objects,
        );
        for (number, words) in self.contexts.iter().enumerate() {
            match self.opcode() {
                Some(Opcode::CreateQp | Opcode::ModifyQp) => {
                    let spans = qp_context(wqe::QP_VIRTUAL.is_set(self.words[3]));
                    describe(&mut fields, "context: ", words, &spans, subject, objects);
                }
                Some(Opcode::CreateMcast | Opcode::ModifyMcast) => {
                    members(&mut fields, words, objects);
                }
                _ => {
                    let prefix = format!("buffer {number}: ");
                    describe(&mut fields, &prefix, words, &[], subject, objects);
                }
            }
        }
        for (index, valid, direct) in &self.sds {
            let text = match (valid, direct) {
                (false, _) => "cleared",
                (true, true) => "direct",
                (true, false) => "paged",
            };
            fields.put(format!("SD {index}"), text);
        }
        match self.done {
            None => fields.put("result", "none"),
            Some((error, minor, value)) => {
                fields.raw("error", error.map_or(0, u64::from));
                fields.raw("minor code", minor.into());
                fields.raw("value", value.into());
            }
        }
        if let Some(object) = object.filter(|_| self.destroys() && !self.failed()) {
            objects.forget(object);
        }
        fields
    }

    fn spans(&self) -> Vec<Span> {
        use Kind::{Address, Hidden, Id, Own, OwnIndex, Raw};
        let mut spans = vec![
            span("valid", 3, wqe::VALID, Hidden),
            span("opcode", 3, wqe::OPCODE, Hidden),
        ];
        let paged = self.head(wqe::LEAF_SIZE) != 0;
        let pble = if paged { OwnIndex } else { Raw };
        let Some(opcode) = self.opcode() else {
            return spans;
        };
        match opcode {
            Opcode::CreateQp | Opcode::ModifyQp | Opcode::DestroyQp => spans.extend([
                span("QP", 3, wqe::QP_ID, Id(Class::Qp)),
                span("next state", 3, wqe::QP_NEXT_STATE, Raw),
                span("type", 3, wqe::QP_TYPE, Raw),
                span("CQ valid", 3, wqe::QP_CQ_VALID, Raw),
                span("ARP valid", 3, wqe::QP_ARP_VALID, Raw),
                // Whether the pages of a user's rings lie side by side is chance. A bit that is
                // wrong shows by itself: the device reads WQEs from where none are.
                span("virtual", 3, wqe::QP_VIRTUAL, Hidden),
                span("context address", 2, ALL, Own),
                span("shadow area", 5, ALL, Own),
            ]),
            Opcode::FlushWqes => spans.extend([
                span("QP", 3, wqe::QP_ID, Id(Class::Qp)),
                span("flush SQ", 3, wqe::FLUSH_SQ, Raw),
                span("flush RQ", 3, wqe::FLUSH_RQ, Raw),
                span("user code", 3, wqe::FLUSH_USER_CODE, Raw),
                span("generate AE", 3, wqe::FLUSH_GENERATE_AE, Raw),
                span("SQ major", 2, wqe::FLUSH_SQ_MAJOR, Raw),
                span("SQ minor", 2, wqe::FLUSH_SQ_MINOR, Raw),
                span("RQ major", 2, wqe::FLUSH_RQ_MAJOR, Raw),
                span("RQ minor", 2, wqe::FLUSH_RQ_MINOR, Raw),
            ]),
            Opcode::SuspendQp | Opcode::ResumeQp | Opcode::UploadContext => {
                spans.push(span("QP", 3, wqe::QP_ID, Id(Class::Qp)));
            }
            Opcode::CreateCq | Opcode::ModifyCq | Opcode::DestroyCq => spans.extend([
                span("CQ", 3, E810.cq_id, Id(Class::Cq)),
                span("CEQ", 3, E810.cq_ceq_id, Raw),
                span("CEQ valid", 3, wqe::CQ_CEQ_VALID, Raw),
                span("check overflow", 3, wqe::CQ_CHECK_OVERFLOW, Raw),
                span("resize", 3, wqe::CQ_RESIZE, Raw),
                span("leaf size", 3, wqe::LEAF_SIZE, Raw),
                span("virtual", 3, wqe::VIRTUAL, Raw),
                span("entries", 0, wqe::CQ_SIZE, Raw),
                span("completion context", 1, wqe::CQ_CONTEXT, OwnIndex),
                span("ring", 4, ALL, Own),
                span("shadow area", 5, ALL, Own),
                span("first PBLE", 6, wqe::FIRST_PBLE, pble),
                span("VSI", 7, wqe::VSI, Raw),
            ]),
            Opcode::CreateCeq | Opcode::DestroyCeq | Opcode::CreateAeq | Opcode::DestroyAeq => {
                // Page lists are not objects of ours; whether there is one is.
                let pble = if paged { Hidden } else { Raw };
                spans.extend([
                    span("entries", 2, wqe::CEQ_SIZE, Raw),
                    span("leaf size", 3, wqe::LEAF_SIZE, Raw),
                    span("virtual", 3, wqe::VIRTUAL, Raw),
                    span("ring", 4, ALL, Address),
                    span("first PBLE", 6, wqe::FIRST_PBLE, pble),
                    span("VSI", 7, wqe::VSI, Raw),
                ]);
            }
            Opcode::AllocStag | Opcode::RegMr | Opcode::QueryStag | Opcode::DeallocStag => {
                let start = if wqe::STAG_VA_BASED.is_set(self.words[3]) {
                    Address
                } else {
                    Raw
                };
                spans.extend([
                    span("start", 0, ALL, start),
                    span("length", 1, wqe::STAG_LENGTH, Raw),
                    span("PD", 1, E810.stag_pd, Id(Class::Pd)),
                    span("STag", 2, wqe::STAG_INDEX, Id(Class::Stag)),
                    // The key is the driver's choice, by chance as a rule.
                    span("key", 2, wqe::STAG_KEY, Hidden),
                    span("MR", 3, wqe::STAG_IS_MR, Raw),
                    span("rights", 3, wqe::STAG_RIGHTS, Raw),
                    span("remote access", 3, wqe::STAG_REMOTE, Raw),
                    span("page size", 3, wqe::STAG_PAGE_SIZE, Raw),
                    span("leaf size", 3, wqe::LEAF_SIZE, Raw),
                    span("VA based", 3, wqe::STAG_VA_BASED, Raw),
                    span("page address", 4, ALL, Own),
                    span("first PBLE", 6, wqe::FIRST_PBLE, pble),
                ]);
            }
            Opcode::ManageMac => spans.extend([
                span("entry", 3, wqe::MAC_INDEX, Raw),
                span("free", 3, wqe::MAC_FREE, Raw),
                span("MAC", 4, wqe::MAC_ADDRESS, Raw),
            ]),
            Opcode::ManageArp => spans.extend([
                span("entry", 3, wqe::ARP_INDEX, Id(Class::Arp)),
                span("valid entry", 3, wqe::ARP_VALID, Raw),
                span("permanent", 3, wqe::ARP_PERMANENT, Raw),
                span("MAC", 2, wqe::MAC_ADDRESS, Raw),
            ]),
            Opcode::UpdateSds => spans.extend([
                span("more entries", 3, wqe::SD_ENTRY_COUNT, Raw),
                span("first address", 1, hmc::SD_ADDRESS, Address),
                span("list", 2, SD_LIST, Address),
                span("second address", 5, hmc::SD_ADDRESS, Address),
                span("third address", 7, hmc::SD_ADDRESS, Address),
            ]),
            Opcode::QueryFpm | Opcode::CommitFpm | Opcode::QueryFeatures => spans.extend([
                span("buffer", 4, ALL, Address),
                span("length", 3, wqe::BUFFER_LENGTH, Raw),
            ]),
            Opcode::CreateAh | Opcode::ModifyAh | Opcode::DestroyAh => spans.extend([
                span("AH", 3, wqe::AH_INDEX, Id(Class::Ah)),
                split(
                    "PD",
                    (1, wqe::AH_PD_LOW),
                    (2, wqe::AH_PD_HIGH),
                    Id(Class::Pd),
                ),
                span("ARP entry", 2, wqe::AH_ARP, Id(Class::Arp)),
                span("MAC", 0, wqe::AH_MAC, Raw),
                span("traffic class", 1, wqe::AH_TC, Raw),
                span("VLAN", 1, wqe::AH_VLAN, Raw),
                span("hop limit", 2, wqe::AH_HOP_LIMIT, Raw),
                span("flow label", 2, wqe::AH_FLOW_LABEL, Raw),
                span("loopback", 3, wqe::AH_LOOPBACK, Raw),
                span("IPv4", 3, wqe::AH_IPV4, Raw),
            ]),
            Opcode::CreateMcast | Opcode::ModifyMcast | Opcode::DestroyMcast => spans.extend([
                span("group", 3, wqe::MG_INDEX, Id(Class::Mcast)),
                span("members", 4, ALL, Address),
                span("VLAN", 2, wqe::MG_VLAN, Raw),
                span("queue set", 2, wqe::MG_QS_HANDLE, Raw),
            ]),
            Opcode::WorkSchedNode => spans.extend([
                span("operation", 3, wqe::WS_OPERATION, Raw),
                span("node", 3, wqe::WS_NODE, Id(Class::Node)),
                span("parent", 3, wqe::WS_PARENT, Id(Class::Node)),
                span("leaf", 3, wqe::WS_LEAF, Raw),
                span("enable", 3, wqe::WS_ENABLE, Raw),
                span("priority type", 3, wqe::WS_PRIORITY, Raw),
                span("traffic class", 3, wqe::WS_TC, Raw),
                span("VSI", 4, wqe::WS_VSI, Raw),
                span("weight", 4, wqe::WS_WEIGHT, Raw),
            ]),
            Opcode::ManageStats => spans.extend([
                span("allocate", 3, wqe::STATS_ALLOC, Raw),
                span("instance", 3, wqe::STATS_INSTANCE, Raw),
            ]),
            Opcode::AllocMac
            | Opcode::ManagePush
            | Opcode::Nop
            | Opcode::PagesAllocated
            | Opcode::GatherStats
            | Opcode::UpMap => {}
        }
        spans
    }
}

fn members(fields: &mut Fields, words: &[u64], objects: &mut Objects) {
    for (number, word) in words.iter().enumerate() {
        if wqe::MG_ENTRY_VALID.is_set(*word) {
            let qp = objects.known(Class::Qp, wqe::MG_ENTRY_QP.get(*word));
            fields.put(format!("member {number}"), qp);
        }
        let rest = *word & !wqe::MG_ENTRY_QP.mask();
        fields.raw(format!("member {number}: flags"), rest);
    }
}

/// Fields of a queue-pair context; `paged`: its rings are page lists.
fn qp_context(paged: bool) -> Vec<Span> {
    use Kind::{Id, Own, OwnIndex, Raw};
    let ring = if paged { OwnIndex } else { Own };
    vec![
        split("PD", (7, qpc::PD_LOW), (0, qpc::PD_HIGH), Id(Class::Pd)),
        span("IPv4", 0, qpc::IPV4, Raw),
        span("insert VLAN", 0, qpc::INSERT_VLAN, Raw),
        span("QP1", 0, qpc::IS_QP1, Raw),
        span("RQ WQE size", 0, qpc::RQ_WQE_SIZE, Raw),
        span("TPH enables", 0, qpc::TPH_ENABLES, Raw),
        span("RoCE version", 0, qpc::ROCE_VERSION, Raw),
        span("SQ", 1, ALL, ring),
        span("RQ", 2, ALL, ring),
        span("TTL", 3, qpc::TTL, Raw),
        span("RQ size", 3, qpc::RQ_SIZE, Raw),
        span("SQ size", 3, qpc::SQ_SIZE, Raw),
        span("TOS", 3, qpc::TOS, Raw),
        // Made from the numbers of the two queue pairs.
        span("source port", 3, qpc::SOURCE_PORT, Own),
        span("destination port", 3, qpc::DEST_PORT, Raw),
        span("MSS", 6, qpc::MSS, Raw),
        span("VLAN tag", 6, qpc::VLAN_TAG, Raw),
        span("ARP entry", 6, qpc::ARP_INDEX, Id(Class::Arp)),
        span("flow label", 7, qpc::FLOW_LABEL, Raw),
        span("ACK credits", 7, qpc::ACK_CREDITS, Raw),
        span("P_Key", 7, qpc::PKEY, Raw),
        span("destination QP", 8, qpc::DEST_QP, Id(Class::Peer)),
        span("Q_Key", 8, qpc::QKEY, Raw),
        span("next PSN", 10, qpc::PSN_NEXT, Raw),
        span("LSN", 10, qpc::LSN, Raw),
        span("expected PSN", 11, qpc::EPSN, Raw),
        span("max PSN", 12, qpc::PSN_MAX, Raw),
        span("unacknowledged PSN", 12, qpc::PSN_UNA, Raw),
        span("CWND", 14, qpc::CWND, Raw),
        span("retries", 16, qpc::REXMIT_THRESHOLD, Raw),
        span("RNR retries", 16, qpc::RNR_THRESHOLD, Raw),
        span("RTO min", 16, qpc::RTO_MIN, Raw),
        span("send CQ", 17, qpc::SEND_CQ, Id(Class::Cq)),
        span("receive CQ", 17, qpc::RECV_CQ, Id(Class::Cq)),
        span("statistics", 18, qpc::STATS_INDEX, Raw),
        span("MAC", 19, qpc::MAC, Raw),
        span("ORD", 20, qpc::ORD, Raw),
        span("IRD", 20, qpc::IRD, Raw),
        span("write allowed", 20, qpc::WRITE_OK, Raw),
        span("read allowed", 20, qpc::READ_OK, Raw),
        span("bind allowed", 20, qpc::BIND_OK, Raw),
        span("fast registration allowed", 20, qpc::FAST_REG_OK, Raw),
        span("privileged", 20, qpc::PRIVILEGED, Raw),
        span("use statistics", 20, qpc::USE_STATS, Raw),
        span("completion context", 21, ALL, OwnIndex),
        span("queue set", 22, qpc::QS_HANDLE, Raw),
    ]
}
