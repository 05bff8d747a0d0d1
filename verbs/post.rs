// SPDX-License-Identifier: GPL-2.0

//! Posting work requests of in-kernel users.
//!
//! A work request is encoded where the device reads it. Nothing is allocated and no lock is taken
//! but the queue's.

use kernel::prelude::*;

use crate::{
    hw::doorbell::Doorbells,
    rdma::{
        self,
        RecvWr,
        RecvWrs,
        SendFlags,
        SendOp,
        SendWr,
        SendWrs, //
    },
    uk::{
        memory::Slot,
        sq::SendWork,
        wqe::{
            gather::{
                Measured,
                Sge, //
            },
            mr,
            recv,
            transfer::{
                Destination,
                Remote,
                SendExtra,
                Transfer, //
            },
            Flags,
            Opcode, //
        }, //
    }, //
};

use super::{
    qp::QpShared,
    qp_setup::{
        KernelQueues,
        RecvQueue,
        SendQueue, //
    },
    ring_memory::RingView,
    Driver, //
};

/// Posts `wrs` to the send queue of `qp`, and tells the device once.
///
/// # Errors
///
/// - `EINVAL` for a work request that the device cannot do, or with more elements or data than the
///   queue pair was granted, and for the queue pair of a user's library.
/// - `ENOMEM` if the queue is full.
///
/// The work request that was taken last is not posted then; those before it are.
#[doc(alias = "irdma_post_send")]
pub(super) fn send(
    doorbells: &Doorbells<'_>,
    qp: &QpShared,
    wrs: &mut SendWrs<'_, Driver>,
) -> Result {
    let queues = qp.queues().ok_or(EINVAL)?;
    let (result, broken) = queues.with_send(|queue| {
        let mut poster = SendPoster { qp, queues, queue };
        let mut posted = false;
        let result = wrs.try_for_each(|wr| {
            poster.post(&wr)?;
            posted = true;
            Ok(())
        });
        let broken = qp.is_broken();

        if posted && !broken && poster.queue.rings {
            doorbells.ring_sq(qp.number());
        }
        (result, posted && broken)
    });

    if broken {
        qp.send_cq().clone().kick();
    }
    result
}

/// Posts `wrs` to the receive queue of `qp`. The device looks there by itself.
///
/// # Errors
///
/// As [`send`].
#[doc(alias = "irdma_post_recv")]
pub(super) fn recv(qp: &QpShared, wrs: &mut RecvWrs<'_>) -> Result {
    let queues = qp.queues().ok_or(EINVAL)?;
    let result = queues.with_recv(|queue| wrs.try_for_each(|wr| post_recv(queues, queue, &wr)));

    if qp.is_broken() {
        qp.recv_cq().clone().kick();
    }
    result
}

fn post_recv(queues: &KernelQueues, queue: &mut RecvQueue, wr: &RecvWr<'_>) -> Result {
    let sges = wr.sges()?;
    let data = Measured::new(
        elements(sges),
        queues.granted.recv_sge,
        queues.limits.max_message,
    )?;

    queue.ring.post(&mut queues.recv_memory(), wr.id(), |slot| {
        recv::encode(slot, data, elements(sges))
    })
}

/// A user's elements as the encoders take them.
fn elements(sges: &[rdma::Sge]) -> impl Iterator<Item = Sge> + '_ {
    sges.iter().map(|sge| Sge {
        address: sge.addr(),
        length: sge.length(),
        stag: sge.lkey(),
    })
}

fn remote(address: u64, stag: u32) -> Remote {
    Remote { address, stag }
}

/// A send queue that is being posted to.
struct SendPoster<'a> {
    qp: &'a QpShared,
    queues: &'a KernelQueues,
    queue: &'a mut SendQueue,
}

impl<'a> SendPoster<'a> {
    fn flags(&self, given: SendFlags) -> Flags {
        Flags {
            signaled: given.signaled() || self.qp.signal_all(),
            fence: given.fence(),
            solicited: given.solicited(),
        }
    }

    fn post(&mut self, wr: &SendWr<'_, Driver>) -> Result {
        let flags = self.flags(wr.flags());

        let transfer = match wr.op()? {
            SendOp::Send => self.transfer(wr, flags, SendExtra::None)?,
            SendOp::SendWithImm(imm) => self.transfer(wr, flags, SendExtra::Immediate(imm))?,
            SendOp::SendWithInv(stag) => self.transfer(wr, flags, SendExtra::Invalidate(stag))?,
            SendOp::RdmaWrite { remote_addr, rkey } => {
                Transfer::write(flags, None, remote(remote_addr, rkey))
            }
            SendOp::RdmaWriteWithImm {
                remote_addr,
                rkey,
                imm,
            } => Transfer::write(flags, Some(imm), remote(remote_addr, rkey)),
            SendOp::RdmaRead {
                remote_addr,
                rkey,
                invalidate_local,
            } => {
                let read = Transfer::read(flags, invalidate_local, remote(remote_addr, rkey));

                return self.gather(wr, read, self.queues.limits.max_read_sge);
            }
            SendOp::LocalInv(stag) => {
                return self.put(wr, Opcode::LocalInvalidate, 0, 1, |slot| {
                    mr::encode_invalidate(slot, flags, stag)
                });
            }
            SendOp::RegMr { mr, key, access } => {
                let register = mr.data().registration(mr, flags, key, access)?;

                return self.put(wr, Opcode::RegisterMr, 0, 1, |slot| register.encode(slot));
            }
        };

        if wr.flags().inline() {
            self.inline(wr, transfer)
        } else {
            self.gather(wr, transfer, self.queues.limits.max_sge)
        }
    }

    /// A SEND, on a queue pair of datagrams to whom the work request says.
    fn transfer(
        &self,
        wr: &SendWr<'_, Driver>,
        flags: Flags,
        extra: SendExtra,
    ) -> Result<Transfer> {
        if !self.qp.is_datagram() {
            return Ok(Transfer::send(flags, extra));
        }

        let immediate = match extra {
            SendExtra::None => None,
            SendExtra::Immediate(data) => Some(data),
            SendExtra::Invalidate(_) => return Err(EINVAL),
        };
        let to = wr.ud()?;

        Transfer::send_datagram(
            flags,
            immediate,
            Destination {
                ah: to.ah.data().number(),
                qkey: to.remote_qkey,
                qpn: to.remote_qpn,
            },
        )
    }

    /// Posts `transfer` with its data in up to `max_sge` elements.
    fn gather(&mut self, wr: &SendWr<'_, Driver>, transfer: Transfer, max_sge: u32) -> Result {
        let sges = wr.sges()?;
        let data = Measured::new(
            elements(sges),
            max_sge.min(self.queues.granted.send_sge),
            self.queues.limits.max_message,
        )?;
        let quanta = transfer.gather_quanta(data)?;

        self.put(wr, transfer.opcode(), data.bytes, quanta, |slot| {
            transfer.encode_gather(slot, data, elements(sges))
        })
    }

    /// Posts `transfer` with its data in the WQE.
    fn inline(&mut self, wr: &SendWr<'_, Driver>, transfer: Transfer) -> Result {
        let data = Measured::new(
            elements(wr.sges()?),
            self.queues.granted.send_sge,
            self.queues.granted.inline_data,
        )?;
        let pieces = wr.inline_data()?;
        let quanta = transfer.inline_quanta(data);

        self.put(wr, transfer.opcode(), data.bytes, quanta, |slot| {
            transfer.encode_inline(slot, data, pieces)
        })
    }

    /// Puts a WQE of `quanta` quanta that moves `bytes` bytes in the ring.
    fn put(
        &mut self,
        wr: &SendWr<'_, Driver>,
        opcode: Opcode,
        bytes: u32,
        quanta: u32,
        encode: impl FnOnce(&mut Slot<'_, RingView<'a>>) -> u64,
    ) -> Result {
        let work = SendWork {
            wr_id: wr.id(),
            bytes,
            opcode,
            signaled: self.flags(wr.flags()).signaled,
        };

        self.queue
            .ring
            .post(&mut self.queues.send_memory(), work, quanta, encode)
    }
}
