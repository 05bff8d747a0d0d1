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
    hw::doorbell::Doorbells,
    rdma::{
        self,
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
    ring_memory::RingView,
    Verbs, //
};

/// A user's elements as the encoders take them.
fn elements(sges: &[rdma::Sge]) -> impl Iterator<Item = Sge> + '_ {
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
    pub(super) fn post_send(
        self: &Arc<Self>,
        doorbells: &Doorbells<'_>,
        wrs: &mut SendWrs<'_, Verbs>,
    ) -> Result {
        let (result, flushing) = self.with_send(|queue| {
            let mut posted = false;
            let result = wrs.try_for_each(|wr| {
                self.post_one_send(queue, &wr)?;
                posted = true;
                Ok(())
            });
            let flushing = self.is_flushing();

            if posted && queue.rings && !flushing {
                doorbells.ring_sq(self.number());
            }
            (result, posted && flushing)
        });

        if flushing {
            self.flush_soon();
        }
        result
    }

    /// Posts `wrs` to the receive queue. The device looks there by itself.
    ///
    /// # Errors
    ///
    /// As [`Self::post_send`].
    #[doc(alias = "irdma_post_recv")]
    pub(super) fn post_recv(self: &Arc<Self>, wrs: &mut RecvWrs<'_>) -> Result {
        let result = self.with_recv(|queue| wrs.try_for_each(|wr| self.post_one_recv(queue, &wr)));

        if self.is_flushing() {
            self.flush_soon();
        }
        result
    }

    fn post_one_recv(&self, queue: &mut RecvQueue, wr: &RecvWr<'_>) -> Result {
        let sges = wr.sges()?;
        let data = Measured::new(
            elements(sges),
            self.granted.recv_sge,
            self.limits.max_message,
        )?;

        queue.ring.post(&mut self.recv_memory(), wr.id(), |slot| {
            recv::encode(slot, data, elements(sges))
        })
    }

    fn post_one_send(&self, queue: &mut SendQueue, wr: &SendWr<'_, Verbs>) -> Result {
        let given = wr.flags();
        let flags = Flags {
            signaled: given.signaled() || self.signal_all,
            fence: given.fence(),
            solicited: given.solicited(),
        };

        let transfer = match wr.op()? {
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
                let read = Transfer::read(flags, invalidate_local, remote(remote_addr, rkey));

                return self.gather(queue, wr, flags, read, self.limits.max_read_sge);
            }
            SendOp::LocalInv(stag) => {
                return self.put(queue, wr, flags, Opcode::LocalInvalidate, 0, 1, |slot| {
                    mr::encode_invalidate(slot, flags, stag)
                });
            }
            SendOp::RegMr { mr, key, access } => {
                let register = mr.data().registration(mr, flags, key, access)?;

                return self.put(queue, wr, flags, Opcode::RegisterMr, 0, 1, |slot| {
                    register.encode(slot)
                });
            }
        };

        if given.inline() {
            self.inline(queue, wr, flags, transfer)
        } else {
            self.gather(queue, wr, flags, transfer, self.granted.send_sge)
        }
    }

    /// A SEND of a datagram.
    fn datagram(
        &self,
        wr: &SendWr<'_, Verbs>,
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

    /// Posts `transfer` with its data in up to `max_sge` elements.
    fn gather(
        &self,
        queue: &mut SendQueue,
        wr: &SendWr<'_, Verbs>,
        flags: Flags,
        transfer: Transfer,
        max_sge: u32,
    ) -> Result {
        let sges = wr.sges()?;
        let data = Measured::new(
            elements(sges),
            max_sge.min(self.granted.send_sge),
            self.limits.max_message,
        )?;
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
    fn inline(
        &self,
        queue: &mut SendQueue,
        wr: &SendWr<'_, Verbs>,
        flags: Flags,
        transfer: Transfer,
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

    /// Puts a WQE in the ring.
    #[expect(clippy::too_many_arguments)]
    fn put<'m>(
        &'m self,
        queue: &mut SendQueue,
        wr: &SendWr<'_, Verbs>,
        flags: Flags,
        opcode: Opcode,
        bytes: u32,
        quanta: u32,
        encode: impl FnOnce(&mut Slot<'_, RingView<'m>>) -> u64,
    ) -> Result {
        let work = SendWork {
            wr_id: wr.id(),
            bytes,
            opcode,
            signaled: flags.signaled,
        };

        queue
            .ring
            .post(&mut self.send_memory(), work, quanta, encode)
    }
}

fn remote(address: u64, stag: u32) -> Remote {
    Remote { address, stag }
}
