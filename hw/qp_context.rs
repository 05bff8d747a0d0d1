// SPDX-License-Identifier: GPL-2.0

//! The context of a RoCE queue pair: what the device has to know to send and to receive.
//!
//! The context is memory of the host. The device reads it when a command says so, and keeps
//! variables of its own elsewhere.

use super::{
    bits::{
        bit,
        field,
        mac_to_u64,
        pack, //
    },
    cqp::address::IpAddress, //
};

/// Number of quadwords of a context.
#[doc(alias = "IRDMA_QP_CTX_SIZE")]
pub(crate) const CONTEXT_WORDS: usize = 256 / 8;

/// ECN code point that says: capable, ECT(0).
const ECT0: u8 = 2;

/// The context of a RoCE queue pair.
///
/// Addresses are in the CPU's byte order. Fields that are not named are zero.
#[doc(alias = "irdma_qp_host_ctx_info")]
#[doc(alias = "irdma_roce_offload_info")]
#[doc(alias = "irdma_udp_offload_info")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoceContext {
    /// Protection domain.
    pub(crate) pd: u32,
    /// Send queue: DMA address, or index of its page list.
    pub(crate) sq: u64,
    /// Receive queue: DMA address, or index of its page list.
    pub(crate) rq: u64,
    /// Encoded number of quanta of the send queue.
    pub(crate) sq_size: u8,
    /// Encoded number of quanta of the receive queue.
    pub(crate) rq_size: u8,
    /// Logarithm of the number of quanta of a receive-queue entry.
    pub(crate) rq_wqe_size: u8,
    /// Completion queue of the send queue.
    pub(crate) send_cq: u32,
    /// Completion queue of the receive queue.
    pub(crate) receive_cq: u32,
    /// What completions carry to tell the queue pair.
    pub(crate) completion_context: u64,
    /// Queue set that it sends on.
    pub(crate) qs_handle: u16,
    /// Push page, if it has one.
    pub(crate) push_page: Option<u32>,
    /// The queue pair of the general services.
    pub(crate) is_qp1: bool,
    /// It may use the key for all memory.
    pub(crate) privileged: bool,
    /// The completions of a datagram queue pair carry addresses.
    pub(crate) ud_private_cq: bool,
    /// The remote side may write, and reads are answered.
    pub(crate) remote_write: bool,
    /// The remote side may read.
    pub(crate) remote_read: bool,
    /// Memory windows may be bound.
    pub(crate) bind: bool,
    /// Memory may be registered by work requests.
    pub(crate) fast_register: bool,
    /// Congestion control by DCQCN.
    pub(crate) dcqcn: bool,
    /// Congestion control by DCTCP.
    pub(crate) dctcp: bool,
    /// Congestion control by the firmware.
    pub(crate) firmware_cc: bool,
    /// Congestion control by TIMELY.
    pub(crate) timely: bool,
    /// Upper threshold of TIMELY.
    pub(crate) timely_high: u16,
    /// Lower threshold of TIMELY.
    pub(crate) timely_low: u8,
    /// Statistics instance, if not the function's own; else its number.
    pub(crate) stats_index: u8,
    /// `stats_index` counts.
    pub(crate) use_stats_index: bool,
    /// Local MAC address.
    pub(crate) mac: [u8; 6],
    /// Local IP address.
    pub(crate) local: IpAddress,
    /// Remote IP address, of the same family.
    pub(crate) remote: IpAddress,
    /// Index of the neighbour.
    pub(crate) arp_index: u16,
    /// The neighbour once more, from the time on when the queue pair sends.
    #[doc(alias = "rem_endpoint_idx")]
    pub(crate) remote_endpoint: u16,
    /// VLAN tag to insert, if there is one.
    pub(crate) vlan: Option<u16>,
    /// IPv4 TTL, or IPv6 hop limit.
    pub(crate) hop_limit: u8,
    /// IPv4 TOS, or IPv6 traffic class.
    pub(crate) traffic_class: u8,
    /// IPv6 flow label.
    pub(crate) flow_label: u32,
    /// Local UDP port.
    pub(crate) source_port: u16,
    /// Remote UDP port.
    pub(crate) destination_port: u16,
    /// Greatest payload of a packet in bytes.
    pub(crate) mtu: u16,
    /// Partition key.
    pub(crate) pkey: u16,
    /// Queue key.
    pub(crate) qkey: u32,
    /// Remote queue pair.
    pub(crate) remote_qp: u32,
    /// Credits of an acknowledgement.
    pub(crate) ack_credits: u8,
    /// Congestion window.
    pub(crate) congestion_window: u32,
    /// Next packet sequence number to send.
    pub(crate) psn_next: u32,
    /// Sequence number of the last message sent.
    pub(crate) last_sequence: u32,
    /// Next packet sequence number to receive.
    pub(crate) psn_expected: u32,
    /// Greatest packet sequence number sent.
    pub(crate) psn_max: u32,
    /// Oldest packet sequence number that is not acknowledged.
    pub(crate) psn_unacknowledged: u32,
    /// Number of retransmissions before giving up.
    pub(crate) retries: u8,
    /// Number of waits for a receiver that is not ready before giving up.
    pub(crate) rnr_retries: u8,
    /// Least retransmission time-out.
    pub(crate) rto_min: u8,
    /// Number of outbound reads.
    pub(crate) ord: u16,
    /// Number of inbound reads.
    pub(crate) ird: u16,
    /// Index of the receive-queue entry that an error is about.
    pub(crate) error_rq_index: Option<u16>,
    /// The version of the RoCE transport.
    pub(crate) transport_version: u8,
}

impl Default for RoceContext {
    fn default() -> Self {
        Self {
            pd: 0,
            sq: 0,
            rq: 0,
            sq_size: 0,
            rq_size: 0,
            rq_wqe_size: 0,
            send_cq: 0,
            receive_cq: 0,
            completion_context: 0,
            qs_handle: 0,
            push_page: None,
            is_qp1: false,
            privileged: false,
            ud_private_cq: false,
            remote_write: false,
            remote_read: false,
            bind: false,
            fast_register: false,
            dcqcn: false,
            dctcp: false,
            firmware_cc: false,
            timely: false,
            timely_high: 0,
            timely_low: 0,
            stats_index: 0,
            use_stats_index: false,
            mac: [0; 6],
            local: IpAddress::V6([0; 4]),
            remote: IpAddress::V6([0; 4]),
            arp_index: 0,
            remote_endpoint: 0,
            vlan: None,
            hop_limit: 0,
            traffic_class: 0,
            flow_label: 0,
            source_port: 0,
            destination_port: 0,
            mtu: 0,
            pkey: 0,
            qkey: 0,
            remote_qp: 0,
            ack_credits: 0,
            congestion_window: 0,
            psn_next: 0,
            last_sequence: 0,
            psn_expected: 0,
            psn_max: 0,
            psn_unacknowledged: 0,
            retries: 0,
            rnr_retries: 0,
            rto_min: 0,
            ord: 0,
            ird: 0,
            error_rq_index: None,
            transport_version: 0,
        }
    }
}

/// Returns the code of the number of inbound reads: 0 for 2, 1 for up to 8, 2 for up to 32, 3 for
/// up to 64, 4 for up to 128. What is greater counts as none is asked for.
#[doc(alias = "irdma_sc_get_encoded_ird_size")]
pub(crate) const fn encode_ird(ird: u16) -> u64 {
    match ird {
        3..=8 => 1,
        9..=32 => 2,
        33..=64 => 3,
        65..=128 => 4,
        _ => 0,
    }
}

impl RoceContext {
    /// Returns the context as the device reads it.
    #[doc(alias = "irdma_sc_qp_setctx_roce")]
    pub(crate) fn encode(&self) -> [u64; CONTEXT_WORDS] {
        let mut words = [0; CONTEXT_WORDS];
        let [.., remote2, remote3] = Self::device_words(&self.remote);
        let [remote0, remote1, ..] = Self::device_words(&self.remote);
        let [local0, local1, local2, local3] = Self::device_words(&self.local);
        let ecn = match (self.dcqcn || self.dctcp) && self.traffic_class & 3 == 0 {
            true => ECT0,
            false => 0,
        };

        words[0] = bit::<3>(self.remote.is_v4())
            | bit::<5>(self.vlan.is_some())
            | bit::<6>(self.is_qp1)
            | field::<9, 8>(self.rq_wqe_size.into())
            | bit::<19>(self.error_rq_index.is_some())
            | field::<21, 20>(u64::from(self.pd) >> 16)
            | bit::<25>(self.dctcp)
            | field::<41, 32>(self.push_page.unwrap_or(0).into())
            | bit::<47>(self.push_page.is_some())
            | field::<63, 60>(self.transport_version.into());
        words[1] = self.sq;
        words[2] = self.rq;
        words[3] = field::<7, 0>(self.hop_limit.into())
            | field::<11, 8>(self.rq_size.into())
            | field::<15, 12>(self.sq_size.into())
            | field::<31, 24>((self.traffic_class | ecn).into())
            | field::<47, 32>(self.source_port.into())
            | field::<63, 48>(self.destination_port.into());
        words[4] = pack(remote2, remote3);
        words[5] = pack(remote0, remote1);
        words[6] = field::<29, 16>(self.mtu.into())
            | field::<47, 32>(self.vlan.unwrap_or(0).into())
            | field::<63, 48>(self.arp_index.into());
        words[7] = field::<19, 0>(self.flow_label.into())
            | field::<24, 20>(self.ack_credits.into())
            | field::<47, 32>(self.pkey.into())
            | field::<63, 48>(self.pd.into());
        words[8] = field::<23, 0>(self.remote_qp.into()) | field::<63, 32>(self.qkey.into());
        words[10] =
            field::<23, 0>(self.psn_next.into()) | field::<55, 32>(self.last_sequence.into());
        words[11] = field::<23, 0>(self.psn_expected.into());
        words[12] =
            field::<23, 0>(self.psn_max.into()) | field::<55, 32>(self.psn_unacknowledged.into());
        words[14] = field::<55, 32>(self.congestion_window.into());
        words[16] = field::<46, 32>(self.error_rq_index.unwrap_or(0).into())
            | field::<53, 48>(self.retries.into())
            | field::<56, 54>(self.rnr_retries.into())
            | field::<63, 57>(self.rto_min.into());
        words[17] = field::<24, 0>(self.send_cq.into()) | field::<56, 32>(self.receive_cq.into());
        words[18] = field::<6, 0>(self.stats_index.into());
        words[19] = mac_to_u64(&self.mac) << 16;
        words[20] = field::<7, 0>(self.ord.into())
            | field::<18, 16>(encode_ird(self.ird))
            | bit::<19>(self.ud_private_cq)
            | bit::<20>(self.remote_write)
            | bit::<21>(self.remote_read)
            | bit::<22>(self.dcqcn)
            | bit::<23>(self.bind)
            | bit::<24>(self.fast_register)
            | bit::<25>(self.privileged)
            | bit::<26>(self.use_stats_index)
            | bit::<27>(self.timely)
            | bit::<28>(self.firmware_cc);
        words[21] = self.completion_context;
        words[22] = field::<25, 16>(self.qs_handle.into());
        words[23] = pack(local2, local3);
        words[24] = pack(local0, local1);
        words[25] =
            field::<39, 32>(self.timely_low.into()) | field::<63, 52>(self.timely_high.into());
        words[26] = field::<16, 0>(self.remote_endpoint.into());

        words
    }

    /// Returns the words of an address as the context has them: an IPv4 one is in the last.
    const fn device_words(address: &IpAddress) -> [u32; 4] {
        match address {
            IpAddress::V4(address) => [0, 0, 0, *address],
            IpAddress::V6(words) => *words,
        }
    }
}
