// SPDX-License-Identifier: GPL-2.0

//! Posting work requests of in-kernel users.
//!
//! A work request is encoded where the device reads it. Nothing is allocated and no lock is taken
//! but the queue's.

use kernel::{
    prelude::*,
    sync::Arc, //
};

use crate::{
    hw::{
        dma::DmaWord,
        doorbell::Doorbells, //
    },
    rdma::{
        self,
        Access,
        RecvWr,
        RecvWrs,
        SendOp,
        SendWr,
        SendWrs, //
    },
    uk::{
        memory::Slot,
        sq::SendWork,
        wqe::{
            self,
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
    kernel_qp::{
        KernelQp,
        RecvQueue,
        SendQueue, //
    },
    Verbs, //
};

/// A user's elements as the encoders take them.
#[inline]
fn elements(sges: &[rdma::Sge]) -> impl ExactSizeIterator<Item = Sge> + '_ {
    sges.iter().map(|sge| Sge {
        address: sge.addr(),
        length: sge.length(),
        stag: sge.lkey(),
    })
}

impl KernelQp {
    /// Posts `wrs` to the send queue, and tells the device once.
    ///
    /// # Errors
    ///
    /// - `EINVAL` for a work request that the device cannot do, or with more elements or data than
    ///   the queue pair was granted.
    /// - `ENOMEM` if the queue is full.
    ///
    /// The work request that was taken last is not posted then; those before it are.
    #[doc(alias = "irdma_post_send")]
    #[inline]
    pub(super) fn post_send(
        self: &Arc<Self>,
        doorbells: &Doorbells<'_>,
        wrs: &mut SendWrs<'_, Verbs>,
    ) -> Result {
        self.with_send(|queue| {
            let mut posted = false;
            let result = wrs.try_for_each(|wr| {
                self.post_one_send(queue, wr)?;
                posted = true;
                Ok(())
            });

            if posted {
                if queue.flushing {
                    self.flush_soon();
                } else if queue.rings {
                    doorbells.ring_sq(self.number());
                }
            }
            result
        })
    }

    /// Posts `wrs` to the receive queue. The device looks there by itself.
    ///
    /// # Errors
    ///
    /// As [`Self::post_send`].
    #[doc(alias = "irdma_post_recv")]
    #[inline]
    pub(super) fn post_recv(self: &Arc<Self>, wrs: &mut RecvWrs<'_>) -> Result {
        self.with_recv(|queue| {
            let result = wrs.try_for_each(|wr| self.post_one_recv(queue, wr));

            if queue.flushing {
                self.flush_soon();
            }
            result
        })
    }

    #[inline]
    fn post_one_recv(&self, queue: &mut RecvQueue, wr: RecvWr<'_>) -> Result {
        let sges = wr.sges()?;
        let data = Measured::new(
            elements(sges),
            self.granted.recv_sge,
            self.limits.max_message,
        )?;

        queue.ring.post(self.rings(), wr.id(), |slot| {
            recv::encode(slot, data, elements(sges))
        })
    }

    #[inline]
    fn post_one_send(&self, queue: &mut SendQueue, wr: SendWr<'_, Verbs>) -> Result {
        let given = wr.flags();
        let flags = Flags {
            signaled: given.signaled() || self.signal_all,
            fence: given.fence(),
            solicited: given.solicited(),
        };

        let mut max_sge = self.granted.send_sge;
        let mut inline = given.inline();
        let op = match wr.op() {
            Ok(op) => op,
            Err(_) if wr.is_marker() => return self.mark(queue, wr, flags),
            Err(error) => return Err(error),
        };
        let transfer = match op {
            SendOp::Send if self.datagram => self.datagram(wr, flags, None)?,
            SendOp::SendWithImm(imm) if self.datagram => self.datagram(wr, flags, Some(imm))?,
            SendOp::Send => Transfer::send(flags, SendExtra::None),
            SendOp::SendWithImm(imm) => Transfer::send(flags, SendExtra::Immediate(imm)),
            SendOp::SendWithInv(stag) => Transfer::send(flags, SendExtra::Invalidate(stag)),
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
                max_sge = max_sge.min(self.limits.max_read_sge);
                inline = false;
                Transfer::read(flags, invalidate_local, remote(remote_addr, rkey))
            }
            SendOp::LocalInv(stag) => {
                return self.invalidate(queue, wr, flags, stag);
            }
            SendOp::RegMr { mr, key, access } => {
                return self.register(queue, wr, flags, mr, key, access);
            }
        };

        if inline {
            return self.inline(queue, wr, flags, &transfer);
        }
        let sges = wr.sges()?;
        let data = Measured::new(elements(sges), max_sge, self.limits.max_message)?;
        let quanta = transfer.gather_quanta(data)?;

        self.put(
            queue,
            wr,
            flags,
            transfer.opcode(),
            data.bytes,
            quanta,
            |slot| transfer.encode_gather(slot, data, elements(sges)),
        )
    }

    /// Posts `transfer` with its data in the WQE.
    #[inline(never)]
    fn inline(
        &self,
        queue: &mut SendQueue,
        wr: SendWr<'_, Verbs>,
        flags: Flags,
        transfer: &Transfer,
    ) -> Result {
        let data = Measured::new(
            elements(wr.sges()?),
            self.granted.send_sge,
            self.granted.inline_data,
        )?;
        let pieces = wr.inline_data()?;
        let quanta = transfer.inline_quanta(data);

        self.put(
            queue,
            wr,
            flags,
            transfer.opcode(),
            data.bytes,
            quanta,
            |slot| transfer.encode_inline(slot, data, pieces),
        )
    }

    /// Posts the registration of `mr` under `key`.
    #[inline(never)]
    fn register(
        &self,
        queue: &mut SendQueue,
        wr: SendWr<'_, Verbs>,
        flags: Flags,
        mr: &rdma::Mr<Verbs>,
        key: u32,
        access: Access,
    ) -> Result {
        let register = mr.data().registration(mr, flags, key, access)?;

        self.put(queue, wr, flags, Opcode::RegisterMr, 0, 1, |slot| {
            register.encode(slot)
        })
    }

    /// Posts what only marks a place in a queue that is being flushed; a device at work has no such
    /// operation.
    #[inline(never)]
    fn mark(&self, queue: &mut SendQueue, wr: SendWr<'_, Verbs>, flags: Flags) -> Result {
        if !queue.flushing {
            return Err(EINVAL);
        }

        self.put(queue, wr, flags, Opcode::Write, 0, 1, |slot| {
            wqe::nop_header(slot.polarity())
        })
    }

    /// Posts the invalidation of `stag`.
    #[inline(never)]
    fn invalidate(
        &self,
        queue: &mut SendQueue,
        wr: SendWr<'_, Verbs>,
        flags: Flags,
        stag: u32,
    ) -> Result {
        self.put(queue, wr, flags, Opcode::LocalInvalidate, 0, 1, |slot| {
            mr::encode_invalidate(slot, flags, stag)
        })
    }

    /// A SEND of a datagram.
    #[inline]
    fn datagram(
        &self,
        wr: SendWr<'_, Verbs>,
        flags: Flags,
        immediate: Option<u32>,
    ) -> Result<Transfer> {
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

    /// Puts a WQE in the ring.
    #[expect(clippy::too_many_arguments)]
    #[inline(always)]
    fn put(
        &self,
        queue: &mut SendQueue,
        wr: SendWr<'_, Verbs>,
        flags: Flags,
        opcode: Opcode,
        bytes: u32,
        quanta: u32,
        encode: impl FnOnce(&Slot<'_, DmaWord>) -> u64,
    ) -> Result {
        let work = SendWork {
            wr_id: wr.id(),
            bytes,
            opcode,
            signaled: flags.signaled,
        };

        queue.ring.post(self.rings(), work, quanta, encode)
    }
}

fn remote(address: u64, stag: u32) -> Remote {
    Remote { address, stag }
}
