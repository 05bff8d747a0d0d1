// SPDX-License-Identifier: GPL-2.0
//! What the transport needs of the device around it.

use std::fmt::Display;
use std::net::IpAddr;

use super::endpoint::Endpoint;
use super::events::Event;
use crate::rdma::packet::{Bth, Draft, Ext, Path};
use crate::rdma::wqe::{BindWindow, FastRegister};

/// Who touches memory: regions belong to protection domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) pd: u32,
    pub(crate) qp: u32,
    /// May use STag 0, which is all of the driver's memory.
    pub(crate) privileged: bool,
}

/// What an access wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    LocalRead,
    LocalWrite,
    RemoteRead,
    RemoteWrite,
}

/// Memory to reach through a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) owner: Owner,
    pub(crate) stag: u32,
    pub(crate) address: u64,
    pub(crate) right: Right,
}

/// One of the two work queues of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Send,
    Receive,
}

/// Where a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AddressHandle {
    pub(crate) pd: u32,
    pub(crate) path: Path,
}

/// Where a datagram came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DatagramSource {
    pub(crate) qp: u32,
    pub(crate) ip: IpAddr,
    /// Given only to queue pairs of the kernel.
    pub(crate) mac: Option<[u8; 6]>,
    pub(crate) vlan: Option<u16>,
}

/// A completion, in the device's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    pub(crate) send_queue: bool,
    /// The send entry's opcode, or the packet's (low six bits) on receive.
    pub(crate) opcode: u8,
    /// In quanta.
    pub(crate) wqe_index: u32,
    pub(crate) length: u32,
    /// Major and minor code.
    pub(crate) error: Option<(u16, u16)>,
    pub(crate) solicited: bool,
    pub(crate) imm: Option<u32>,
    /// The STag that the peer invalidated.
    pub(crate) invalidated: Option<u32>,
    pub(crate) source: Option<DatagramSource>,
}

/// Things that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Counter {
    SendPackets,
    WritePackets,
    ReadRequests,
    SendPacketsReceived,
    WritePacketsReceived,
    ReadRequestsReceived,
    Retransmits,
    SequenceNaksSent,
    SequenceNaksReceived,
    RnrNaksSent,
    RnrNaksReceived,
    Duplicates,
    Dropped,
    BadPkey,
    BadQkey,
    NoReceive,
    /// The way to an IPv4 (IPv6) peer has no entry in the ARP table.
    NoRoute4,
    NoRoute6,
    CongestionMarked,
    CnpSent,
    CnpReceived,
}

/// The device around a queue pair. An `Err` of a memory call is the code of
/// the asynchronous event that says why.
pub(crate) trait Host {
    fn now(&self) -> u64;

    /// Reads a work queue from quantum `index` on, not past the end of an
    /// entry; false (and a violation) if its memory is not there.
    fn read_queue(&mut self, qp: u32, queue: Queue, index: u32, out: &mut [u8]) -> bool;

    /// Publishes the send queue's tail in the shadow area; what is read of
    /// the queue afterwards is newer than what the driver's next look sees.
    fn write_tail(&mut self, qp: u32, tail: u32);

    /// Whether `length` bytes may be accessed.
    fn check(&mut self, access: &Access, length: u64) -> Result<(), u16>;

    /// Copies guest memory into `out`.
    fn load(&mut self, access: &Access, out: &mut [u8]) -> Result<(), u16>;

    /// Copies `data` into guest memory.
    fn store(&mut self, access: &Access, data: &[u8]) -> Result<(), u16>;

    fn fast_register(&mut self, owner: &Owner, register: &FastRegister) -> Result<(), u16>;

    fn bind_window(&mut self, owner: &Owner, bind: &BindWindow) -> Result<(), u16>;

    /// Takes a STag out of use; `remote`: the peer asked.
    fn invalidate(&mut self, owner: &Owner, stag: u32, remote: bool) -> Result<(), u16>;

    /// The MAC address of an ARP table entry.
    fn neighbour(&mut self, index: u16) -> Option<[u8; 6]>;

    fn address_handle(&mut self, index: u32) -> Option<AddressHandle>;

    fn complete(&mut self, endpoint: &Endpoint, completion: &Completion);

    fn event(&mut self, endpoint: &Endpoint, event: Event);

    /// Begins a frame, in a used buffer if there is one.
    fn draft(&mut self, path: &Path, bth: &Bth, ext: &Ext, payload: usize) -> Draft {
        Draft::new(Vec::new(), path, bth, ext, payload)
    }

    /// Whether so many frames are under way that more should wait for them.
    fn crowded(&self) -> bool {
        false
    }

    /// Sends a finished frame.
    fn transmit(&mut self, frame: Vec<u8>);

    fn count(&mut self, counter: Counter);

    /// The driver did something that it must not.
    fn violation(&mut self, kind: &str, text: impl Display);

    /// A work queue entry was taken.
    fn trace_wqe(&mut self, qp: u32, queue: Queue, index: u32, bytes: &[u8]);
}
