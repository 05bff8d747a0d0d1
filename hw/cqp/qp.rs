// SPDX-License-Identifier: GPL-2.0

//! Commands about queue pairs.

use super::command::{
    Command,
    Opcode, //
};
use crate::hw::bits::{
    bit,
    field, //
};

/// The device's kinds of queue pair, bits 50:48 of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "some are for iWARP")]
#[repr(u8)]
pub(crate) enum QpType {
    /// iWARP.
    Iwarp = 1,
    /// Raw datagrams, for the driver's own use.
    Uda = 2,
    /// RoCE reliable connection.
    RoceRc = 3,
    /// RoCE unreliable datagram.
    RoceUd = 4,
}

/// The device's states of a queue pair, bits 62:60 of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(dead_code, reason = "one is for iWARP")]
#[repr(u8)]
pub(crate) enum QpState {
    /// No change of state is asked for.
    #[default]
    Unchanged = 0,
    /// Idle: INIT of the verbs.
    Idle = 1,
    /// Ready to send.
    Rts = 2,
    /// Send queue drained (RoCE), or closing (iWARP).
    Sqd = 3,
    /// Ready to receive.
    Rtr = 4,
    /// Terminating (iWARP).
    Terminate = 5,
    /// Error.
    Error = 6,
}

/// Makes a queue pair.
#[doc(alias = "irdma_sc_qp_create")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateQp {
    /// Number of the queue pair.
    pub(crate) qp_id: u32,
    /// Kind of the queue pair.
    pub(crate) kind: QpType,
    /// DMA address of the context.
    pub(crate) context: u64,
    /// DMA address of the shadow area.
    pub(crate) shadow: u64,
    /// The rings are given as page-list indices instead of addresses.
    pub(crate) virtual_map: bool,
    /// The context's outbound read depth counts.
    pub(crate) ord_valid: bool,
    /// The context's transport part counts (iWARP).
    pub(crate) tcp_context_valid: bool,
    /// The context's MAC address counts.
    pub(crate) mac_valid: bool,
    /// The context's completion queue numbers count.
    pub(crate) cq_valid: bool,
    /// The context's neighbour index counts.
    pub(crate) arp_valid: bool,
    /// Sends everything back to this port.
    pub(crate) force_loopback: bool,
    /// State after the command.
    pub(crate) next_state: QpState,
}

impl Command for CreateQp {
    const OPCODE: Opcode = Opcode::CreateQp;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header()
            | field::<23, 0>(self.qp_id.into())
            | bit::<42>(self.ord_valid)
            | bit::<43>(self.tcp_context_valid)
            | bit::<45>(self.virtual_map)
            | bit::<46>(self.force_loopback)
            | bit::<47>(self.cq_valid)
            | field::<50, 48>(self.kind as u64)
            | bit::<51>(self.mac_valid)
            | bit::<59>(self.arp_valid)
            | field::<62, 60>(self.next_state as u64);

        [0, 0, self.context, header, 0, self.shadow, 0, 0]
    }
}

/// Changes a queue pair's state or attributes.
#[doc(alias = "irdma_sc_qp_modify")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ModifyQp {
    /// Number of the queue pair.
    pub(crate) qp_id: u32,
    /// Kind of the queue pair.
    pub(crate) kind: QpType,
    /// DMA address of the context.
    pub(crate) context: u64,
    /// DMA address of the shadow area.
    pub(crate) shadow: u64,
    /// The rings are given as page-list indices instead of addresses.
    pub(crate) virtual_map: bool,
    /// New maximum segment size in bytes, if it changes.
    pub(crate) new_mss: Option<u16>,
    /// The context's outbound read depth counts.
    pub(crate) ord_valid: bool,
    /// The context's transport part counts (iWARP).
    pub(crate) tcp_context_valid: bool,
    /// The context's cached variables count.
    pub(crate) cached_valid: bool,
    /// The context's completion queue numbers count.
    pub(crate) cq_valid: bool,
    /// The context's MAC address counts.
    pub(crate) mac_valid: bool,
    /// The context's neighbour index counts.
    pub(crate) arp_valid: bool,
    /// Sends everything back to this port.
    pub(crate) force_loopback: bool,
    /// Takes the connection's hash entry away (iWARP).
    pub(crate) remove_hash: bool,
    /// Resets the TCP connection (iWARP).
    pub(crate) reset_connection: bool,
    /// What is sent when the next state is [`QpState::Terminate`] (iWARP).
    pub(crate) terminate: Option<Terminate>,
    /// State after the command.
    pub(crate) next_state: QpState,
}

/// What an iWARP queue pair sends when it terminates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terminate {
    /// Sends the terminate message.
    pub(crate) message: bool,
    /// Sends a FIN.
    pub(crate) fin: bool,
    /// Length of the terminate message in units of 4 bytes.
    pub(crate) length: u8,
}

impl Terminate {
    /// Bits 57:56 of the header: 0 both, 1 the message only, 2 the FIN only, 3 neither.
    const fn action(&self) -> u64 {
        match (self.message, self.fin) {
            (true, true) => 0,
            (true, false) => 1,
            (false, true) => 2,
            (false, false) => 3,
        }
    }
}

impl Command for ModifyQp {
    const OPCODE: Opcode = Opcode::ModifyQp;

    fn encode(&self) -> [u64; 8] {
        let terminate = match self.next_state {
            QpState::Terminate => self.terminate,
            _ => None,
        };
        let (action, length) = match terminate {
            Some(terminate) if terminate.message => (terminate.action(), terminate.length),
            Some(terminate) => (terminate.action(), 0),
            None => (0, 0),
        };
        let header = Self::OPCODE.header()
            | field::<23, 0>(self.qp_id.into())
            | bit::<42>(self.ord_valid)
            | bit::<43>(self.tcp_context_valid)
            | bit::<44>(self.cached_valid)
            | bit::<45>(self.virtual_map)
            | bit::<46>(self.force_loopback)
            | bit::<47>(self.cq_valid)
            | field::<50, 48>(self.kind as u64)
            | bit::<51>(self.mac_valid)
            | bit::<52>(self.new_mss.is_some())
            | bit::<55>(self.remove_hash)
            | field::<57, 56>(action)
            | bit::<58>(self.reset_connection)
            | bit::<59>(self.arp_valid)
            | field::<62, 60>(self.next_state as u64);
        let change =
            field::<45, 32>(self.new_mss.unwrap_or(0).into()) | field::<51, 48>(length.into());

        [0, change, self.context, header, 0, self.shadow, 0, 0]
    }
}

/// Takes a queue pair away.
#[doc(alias = "irdma_sc_qp_destroy")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct DestroyQp {
    /// Number of the queue pair.
    pub(crate) qp_id: u32,
    /// Kind of the queue pair.
    pub(crate) kind: QpType,
    /// DMA address of the context.
    pub(crate) context: u64,
    /// DMA address of the shadow area.
    pub(crate) shadow: u64,
    /// Takes the connection's hash entry away (iWARP).
    pub(crate) remove_hash: bool,
    /// Destroys it although memory windows are bound to it.
    pub(crate) ignore_bound_windows: bool,
}

impl Command for DestroyQp {
    const OPCODE: Opcode = Opcode::DestroyQp;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header()
            | field::<23, 0>(self.qp_id.into())
            | field::<50, 48>(self.kind as u64)
            | bit::<54>(self.ignore_bound_windows)
            | bit::<55>(self.remove_hash);

        [0, 0, self.context, header, 0, self.shadow, 0, 0]
    }
}

/// An error code of a completion: major and minor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FlushCode {
    /// Major code.
    pub(crate) major: u16,
    /// Minor code.
    pub(crate) minor: u16,
}

/// Flushes a queue pair's work queues.
///
/// The completions get the given codes, or the device's own where a queue has none.
#[doc(alias = "irdma_sc_qp_flush_wqes")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlushWqes {
    /// Number of the queue pair.
    pub(crate) qp_id: u32,
    /// Flushes the send queue.
    pub(crate) sq: bool,
    /// Flushes the receive queue.
    pub(crate) rq: bool,
    /// Codes of the first flushed entry; `None` leaves them to the device.
    pub(crate) codes: Option<FlushCodes>,
    /// Makes an asynchronous event too.
    pub(crate) event: Option<GeneratedEvent>,
}

/// The codes of a flush, one a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlushCodes {
    /// Code of the send queue.
    pub(crate) sq: FlushCode,
    /// Code of the receive queue.
    pub(crate) rq: FlushCode,
}

/// An asynchronous event that the driver asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GeneratedEvent {
    /// Code of the event.
    pub(crate) code: u16,
    /// Source of the event.
    pub(crate) source: u8,
}

impl GeneratedEvent {
    const fn encode(&self) -> u64 {
        // CAST: Widening.
        field::<15, 0>(self.code as u64) | field::<19, 16>(self.source as u64)
    }
}

impl Command for FlushWqes {
    const OPCODE: Opcode = Opcode::FlushWqes;

    fn encode(&self) -> [u64; 8] {
        let mut codes = 0;

        if let Some(given) = &self.codes {
            if self.rq {
                codes |= field::<15, 0>(given.rq.minor.into());
                codes |= field::<31, 16>(given.rq.major.into());
            }
            if self.sq {
                codes |= field::<47, 32>(given.sq.minor.into());
                codes |= field::<63, 48>(given.sq.major.into());
            }
        }

        let header = Self::OPCODE.header()
            | field::<23, 0>(self.qp_id.into())
            | bit::<59>(self.event.is_some())
            | bit::<60>(self.codes.is_some())
            | bit::<61>(self.sq)
            | bit::<62>(self.rq);
        let event = self.event.map_or(0, |event| event.encode());

        [0, event, codes, header, 0, 0, 0, 0]
    }
}

/// Stops a queue pair's transmission; an event tells when it has stopped.
#[doc(alias = "irdma_sc_suspend_qp")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct SuspendQp {
    /// Number of the queue pair.
    pub(crate) qp_id: u32,
}

impl Command for SuspendQp {
    const OPCODE: Opcode = Opcode::SuspendQp;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header() | field::<23, 0>(self.qp_id.into());

        [0, 0, 0, header, 0, 0, 0, 0]
    }
}

/// Resumes a suspended queue pair's transmission.
#[doc(alias = "irdma_sc_resume_qp")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResumeQp {
    /// Number of the queue pair.
    pub(crate) qp_id: u32,
    /// Queue set that it transmits on from now on.
    pub(crate) qs_handle: u16,
}

impl Command for ResumeQp {
    const OPCODE: Opcode = Opcode::ResumeQp;

    fn encode(&self) -> [u64; 8] {
        let header = Self::OPCODE.header() | field::<23, 0>(self.qp_id.into());

        [0, 0, self.qs_handle.into(), header, 0, 0, 0, 0]
    }
}
