// SPDX-License-Identifier: GPL-2.0

//! Send WQEs that move data: SEND, RDMA WRITE and RDMA READ.

use kernel::{
    bitfield,
    num::Bounded,
    prelude::*, //
};

use super::{
    super::memory::{
        Slot,
        Word, //
    },
    gather::{
        self,
        Measured,
        Sge, //
    },
    inline,
    Flags,
    Header,
    Opcode, //
};

/// Receiver of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Destination {
    /// The device's id of the address handle, 25 bits.
    pub(crate) ah: u32,
    /// Q_Key of the receiver.
    pub(crate) qkey: u32,
    /// QP number of the receiver, 24 bits.
    pub(crate) qpn: u32,
}

/// What a SEND carries besides its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendExtra {
    /// Nothing.
    None,
    /// Immediate data, in the CPU's order.
    Immediate(u32),
    /// An STag that the receiver's device invalidates.
    Invalidate(u32),
}

/// Memory of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    /// Address, as the STag has it.
    pub(crate) address: u64,
    /// Remote key.
    pub(crate) stag: u32,
}

bitfield! {
    /// Word 2 of a datagram.
    struct DatagramAddress(u64) {
        55:32 qpn;
        31:0 qkey;
    }
}

/// A work request that moves data, all but the data itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    opcode: Opcode,
    flags: Flags,
    immediate: Option<u32>,
    /// Low half of the header.
    target: u32,
    /// Word 2.
    address: u64,
}

impl Transfer {
    /// A SEND on a connected QP.
    #[doc(alias = "irdma_uk_send")]
    #[doc(alias = "irdma_uk_inline_send")]
    #[inline]
    pub(crate) fn send(flags: Flags, extra: SendExtra) -> Self {
        let (opcode, immediate, target) = match (extra, flags.solicited) {
            (SendExtra::None, false) => (Opcode::Send, None, 0),
            (SendExtra::None, true) => (Opcode::SendSolicited, None, 0),
            (SendExtra::Immediate(data), false) => (Opcode::Send, Some(data), 0),
            (SendExtra::Immediate(data), true) => (Opcode::SendSolicited, Some(data), 0),
            (SendExtra::Invalidate(stag), false) => (Opcode::SendInvalidate, None, stag),
            (SendExtra::Invalidate(stag), true) => (Opcode::SendSolicitedInvalidate, None, stag),
        };

        Self {
            opcode,
            flags,
            immediate,
            target,
            address: 0,
        }
    }

    /// A SEND to `destination` on a datagram QP.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the address handle's id or the QP number has too many bits.
    #[inline]
    pub(crate) fn send_datagram(
        flags: Flags,
        immediate: Option<u32>,
        destination: Destination,
    ) -> Result<Self> {
        let qpn = Bounded::<u64, 24>::try_new(destination.qpn.into()).ok_or(EINVAL)?;
        let ah = Bounded::<u32, 25>::try_new(destination.ah).ok_or(EINVAL)?;

        Ok(Self {
            opcode: if flags.solicited {
                Opcode::SendSolicited
            } else {
                Opcode::Send
            },
            flags,
            immediate,
            target: ah.get(),
            address: DatagramAddress::from_raw(0)
                .with_qkey(destination.qkey)
                .with_qpn(qpn)
                .into_raw(),
        })
    }

    /// An RDMA WRITE.
    #[doc(alias = "irdma_uk_rdma_write")]
    #[doc(alias = "irdma_uk_inline_rdma_write")]
    #[inline]
    pub(crate) fn write(flags: Flags, immediate: Option<u32>, remote: Remote) -> Self {
        Self {
            opcode: if flags.solicited {
                Opcode::WriteSolicited
            } else {
                Opcode::Write
            },
            flags,
            immediate,
            target: remote.stag,
            address: remote.address,
        }
    }

    /// An RDMA READ; with `invalidate` the STag of its first fragment is invalidated afterwards.
    #[doc(alias = "irdma_uk_rdma_read")]
    #[inline]
    pub(crate) fn read(flags: Flags, invalidate: bool, remote: Remote) -> Self {
        Self {
            opcode: if invalidate {
                Opcode::ReadInvalidate
            } else {
                Opcode::Read
            },
            flags,
            immediate: None,
            target: remote.stag,
            address: remote.address,
        }
    }

    /// The operation.
    #[inline]
    pub(crate) fn opcode(&self) -> Opcode {
        self.opcode
    }

    /// Quanta of the WQE when its data is in the elements that `data` counts.
    ///
    /// # Errors
    ///
    /// `EINVAL` if no WQE holds so many.
    #[inline]
    pub(crate) fn gather_quanta(&self, data: Measured) -> Result<u32> {
        data.quanta(self.immediate.is_some())
    }

    /// Quanta of the WQE when its data is inline.
    #[inline]
    pub(crate) fn inline_quanta(&self, data: Measured) -> u32 {
        inline::quanta(data.bytes)
    }

    /// Encodes the WQE with its data in `sges`, and returns the header.
    #[inline]
    pub(crate) fn encode_gather<W: Word>(
        &self,
        slot: &Slot<'_, W>,
        data: Measured,
        sges: impl Iterator<Item = Sge>,
    ) -> u64 {
        let more = gather::put_list(slot, data, self.immediate, sges);

        slot.put(2, self.address);
        self.header(slot).with_more_fragments(more).into_raw()
    }

    /// Encodes the WQE with the bytes of `pieces` in it, and returns the header.
    #[inline]
    pub(crate) fn encode_inline<'d, W: Word>(
        &self,
        slot: &Slot<'_, W>,
        data: Measured,
        pieces: impl Iterator<Item = &'d [u8]>,
    ) -> u64 {
        // No limit of inline data is above 255.
        let length = Bounded::<u64, 8>::from_expr(u64::from(data.bytes) & 0xff);

        if let Some(data) = self.immediate {
            slot.put(0, data.into());
        }
        slot.put(2, self.address);
        inline::put(slot, length.cast::<u32>().get(), pieces);

        self.header(slot)
            .with_inline_data(true)
            .with_inline_length(length)
            .into_raw()
    }

    #[inline]
    fn header<W: Word>(&self, slot: &Slot<'_, W>) -> Header {
        Header::new(self.opcode, self.flags, slot.polarity())
            .with_immediate(self.immediate.is_some())
            .with_target(self.target)
    }
}
