// SPDX-License-Identifier: GPL-2.0

//! Work requests as consumers post them.
//!
//! They are read in place: a chain of C structures that the consumer keeps unchanged while it is
//! being posted.

use core::{
    marker::PhantomData,
    ptr,
    slice, //
};

use kernel::prelude::*;

use crate::bindings;

use super::{
    Access,
    Ah,
    Mr,
    Operations,
    SendFlags, //
};

/// A piece of local memory.
#[repr(transparent)]
pub(crate) struct Sge(bindings::ib_sge);

impl Sge {
    /// DMA address, or virtual address for inline data.
    #[inline]
    pub(crate) fn addr(&self) -> u64 {
        self.0.addr
    }

    /// Bytes.
    #[inline]
    pub(crate) fn length(&self) -> u32 {
        self.0.length
    }

    /// Key of the region that the piece lies in.
    #[inline]
    pub(crate) fn lkey(&self) -> u32 {
        self.0.lkey
    }
}

/// Makes a slice of what a request says of its pieces.
///
/// # Errors
///
/// `EINVAL` for a negative number, or for a list that isn't there.
///
/// # Safety
///
/// If `list` isn't null, it has `num` entries that stay valid for `'a`.
#[inline]
unsafe fn sges<'a>(list: *const bindings::ib_sge, num: c_int) -> Result<&'a [Sge]> {
    let num = usize::try_from(num).map_err(|_| EINVAL)?;
    if num == 0 {
        return Ok(&[]);
    }
    if list.is_null() {
        return Err(EINVAL);
    }
    // SAFETY: By this function's requirements; `Sge` is a transparent wrapper.
    Ok(unsafe { slice::from_raw_parts(list.cast(), num) })
}

/// A chain of requests for a send queue.
///
/// # Invariants
///
/// `next` is null or starts a chain of valid requests for a queue pair of a device of `T`, each
/// in the larger structure that its opcode and the queue pair's type ask for. The chain and all
/// that it refers to stays valid and unchanged for the lifetime. `current` is the request that was
/// taken last, or the first one.
pub(crate) struct SendWrs<'a, T: Operations> {
    next: *const bindings::ib_send_wr,
    current: *const bindings::ib_send_wr,
    datagram: bool,
    _wrs: PhantomData<&'a Ah<T>>,
}

impl<'a, T: Operations> SendWrs<'a, T> {
    /// Wraps a chain. `datagram` says whether the queue pair is one of datagrams.
    ///
    /// # Safety
    ///
    /// `first` is as the invariant of the type says.
    #[inline]
    pub(super) unsafe fn new(first: *const bindings::ib_send_wr, datagram: bool) -> Self {
        // INVARIANT: By this function's requirements.
        Self {
            next: first,
            current: first,
            datagram,
            _wrs: PhantomData,
        }
    }

    /// The request that was taken last.
    pub(super) fn current(&self) -> *const bindings::ib_send_wr {
        self.current
    }
}

impl<'a, T: Operations> Iterator for SendWrs<'a, T> {
    type Item = SendWr<'a, T>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: By the type's invariant.
        let wr = unsafe { self.next.as_ref() }?;
        self.current = self.next;
        // Before it is posted: it may be done, and its memory in other use, at any time after that.
        self.next = wr.next;
        Some(SendWr {
            wr,
            datagram: self.datagram,
            _driver: PhantomData,
        })
    }
}

/// A request for a send queue.
///
/// # Invariants
///
/// `wr` is part of the larger structure that its opcode and `datagram` ask for.
pub(crate) struct SendWr<'a, T: Operations> {
    wr: &'a bindings::ib_send_wr,
    datagram: bool,
    _driver: PhantomData<&'a Ah<T>>,
}

// Not derived, since `T` is in a reference only.
impl<T: Operations> Clone for SendWr<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Operations> Copy for SendWr<'_, T> {}

/// What a request asks for.
pub(crate) enum SendOp<'a, T: Operations> {
    /// Sends into a receive of the peer.
    Send,
    /// The same with a word of immediate data, in host order.
    SendWithImm(u32),
    /// The same and the peer's device invalidates the key.
    SendWithInv(u32),
    /// Writes into the peer's memory.
    RdmaWrite {
        /// Where to.
        remote_addr: u64,
        /// Key of the peer's memory.
        rkey: u32,
    },
    /// The same, and consumes a receive of the peer.
    RdmaWriteWithImm {
        /// Where to.
        remote_addr: u64,
        /// Key of the peer's memory.
        rkey: u32,
        /// Immediate data, in host order.
        imm: u32,
    },
    /// Reads from the peer's memory.
    RdmaRead {
        /// Where from.
        remote_addr: u64,
        /// Key of the peer's memory.
        rkey: u32,
        /// Whether the key of the local memory is invalidated afterwards.
        invalidate_local: bool,
    },
    /// Invalidates a local key.
    LocalInv(u32),
    /// Makes the pages that were mapped to the region usable.
    RegMr {
        /// The region.
        mr: &'a Mr<T>,
        /// The key that it gets.
        key: u32,
        /// What may be done with it.
        access: Access,
    },
}

/// Where a datagram goes.
pub(crate) struct UdAddress<'a, T: Operations> {
    /// Route to the peer.
    pub(crate) ah: &'a Ah<T>,
    /// Queue pair of the peer.
    pub(crate) remote_qpn: u32,
    /// Key that the peer's queue pair asks for.
    pub(crate) remote_qkey: u32,
}

impl<'a, T: Operations> SendWr<'a, T> {
    /// The consumer's own number or pointer, which the completion gives back.
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        // SAFETY: Both fields of the union are 64 bits that may have any value.
        unsafe { *self.wr.__bindgen_anon_1.wr_id }
    }

    /// How to do it.
    #[inline]
    pub(crate) fn flags(&self) -> SendFlags {
        SendFlags(self.wr.send_flags)
    }

    /// The local memory.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the number of pieces is negative or the list isn't there.
    #[inline]
    pub(crate) fn sges(&self) -> Result<&'a [Sge]> {
        // SAFETY: The consumer's list has as many entries as it says and stays for `'a`.
        unsafe { sges(self.wr.sg_list, self.wr.num_sge) }
    }

    /// The local data of an inline request, piece by piece.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the request isn't inline, and those of [`SendWr::sges`].
    pub(crate) fn inline_data(&self) -> Result<impl Iterator<Item = &'a [u8]> + Clone + 'a> {
        if !self.flags().inline() {
            return Err(EINVAL);
        }
        Ok(self.sges()?.iter().map(|sge| {
            if sge.length() == 0 {
                return &[][..];
            }
            // SAFETY: The pieces of an inline request are valid kernel memory, by virtual address,
            // which the consumer doesn't change while it posts.
            // CAST: The machine has 64-bit addresses, and a length always fits.
            unsafe {
                slice::from_raw_parts(
                    ptr::with_exposed_provenance(sge.addr() as usize),
                    sge.length() as usize,
                )
            }
        }))
    }

    #[inline]
    fn imm(&self) -> u32 {
        // SAFETY: Both fields of the union are 32 bits that may have any value.
        u32::from_be(unsafe { *self.wr.ex.imm_data })
    }

    #[inline]
    fn invalidate_rkey(&self) -> u32 {
        // SAFETY: Both fields of the union are 32 bits that may have any value.
        unsafe { *self.wr.ex.invalidate_rkey }
    }

    #[inline]
    fn rdma(&self) -> (u64, u32) {
        // SAFETY: Only called for opcodes whose requests are part of a `struct ib_rdma_wr`, at
        // offset 0.
        let wr = unsafe { &*ptr::from_ref(self.wr).cast::<bindings::ib_rdma_wr>() };
        (wr.remote_addr, wr.rkey)
    }

    /// What is asked for.
    ///
    /// # Errors
    ///
    /// `EINVAL` if we don't know it, or if a queue pair of datagrams can't do it.
    #[inline]
    pub(crate) fn op(&self) -> Result<SendOp<'a, T>> {
        use crate::bindings as c;

        Ok(match self.wr.opcode {
            c::ib_wr_opcode_IB_WR_SEND => SendOp::Send,
            c::ib_wr_opcode_IB_WR_SEND_WITH_IMM => SendOp::SendWithImm(self.imm()),
            // All others would be part of another structure than the one of datagrams.
            _ if self.datagram => return Err(EINVAL),
            c::ib_wr_opcode_IB_WR_SEND_WITH_INV => SendOp::SendWithInv(self.invalidate_rkey()),
            c::ib_wr_opcode_IB_WR_RDMA_WRITE => {
                let (remote_addr, rkey) = self.rdma();
                SendOp::RdmaWrite { remote_addr, rkey }
            }
            c::ib_wr_opcode_IB_WR_RDMA_WRITE_WITH_IMM => {
                let (remote_addr, rkey) = self.rdma();
                SendOp::RdmaWriteWithImm {
                    remote_addr,
                    rkey,
                    imm: self.imm(),
                }
            }
            opcode @ (c::ib_wr_opcode_IB_WR_RDMA_READ
            | c::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV) => {
                let (remote_addr, rkey) = self.rdma();
                SendOp::RdmaRead {
                    remote_addr,
                    rkey,
                    invalidate_local: opcode == c::ib_wr_opcode_IB_WR_RDMA_READ_WITH_INV,
                }
            }
            c::ib_wr_opcode_IB_WR_LOCAL_INV => SendOp::LocalInv(self.invalidate_rkey()),
            c::ib_wr_opcode_IB_WR_REG_MR => {
                // SAFETY: A request with this opcode is part of a `struct ib_reg_wr`, at offset 0.
                let wr = unsafe { &*ptr::from_ref(self.wr).cast::<bindings::ib_reg_wr>() };
                if wr.mr.is_null() {
                    return Err(EINVAL);
                }
                SendOp::RegMr {
                    // SAFETY: The region is one of this device, made by `T`, and stays as long as
                    // the request.
                    mr: unsafe { Mr::from_raw(wr.mr) },
                    key: wr.key,
                    access: Access::from_raw(wr.access as u32),
                }
            }
            _ => return Err(EINVAL),
        })
    }

    /// Whether it moves nothing: an RDMA WRITE without local memory on a queue pair of datagrams,
    /// which is no operation but marks the end of what is flushed (`ib_drain_sq()`).
    #[cold]
    pub(crate) fn is_marker(&self) -> bool {
        self.datagram
            && self.wr.opcode == bindings::ib_wr_opcode_IB_WR_RDMA_WRITE
            && self.wr.num_sge == 0
    }

    /// Where a datagram goes.
    ///
    /// # Errors
    ///
    /// `EINVAL` if the queue pair is not one of datagrams, if the request does not send, or if the
    /// handle isn't there.
    #[inline]
    pub(crate) fn ud(&self) -> Result<UdAddress<'a, T>> {
        let sends = matches!(
            self.wr.opcode,
            bindings::ib_wr_opcode_IB_WR_SEND | bindings::ib_wr_opcode_IB_WR_SEND_WITH_IMM
        );
        // `ib_drain_sq()` posts a smaller structure.
        if !self.datagram || !sends {
            return Err(EINVAL);
        }
        // SAFETY: All requests to send on queue pairs of datagrams are part of a `struct ib_ud_wr`,
        // at offset 0.
        let wr = unsafe { &*ptr::from_ref(self.wr).cast::<bindings::ib_ud_wr>() };
        if wr.ah.is_null() {
            return Err(EINVAL);
        }
        Ok(UdAddress {
            // SAFETY: The handle is one of this device, made by `T`, and stays as long as the
            // request.
            ah: unsafe { Ah::from_raw(wr.ah) },
            remote_qpn: wr.remote_qpn,
            remote_qkey: wr.remote_qkey,
        })
    }
}

/// A chain of buffers for a receive queue.
///
/// # Invariants
///
/// As [`SendWrs`].
pub(crate) struct RecvWrs<'a> {
    next: *const bindings::ib_recv_wr,
    current: *const bindings::ib_recv_wr,
    _wrs: PhantomData<&'a bindings::ib_recv_wr>,
}

impl<'a> RecvWrs<'a> {
    /// Wraps a chain.
    ///
    /// # Safety
    ///
    /// `first` is as the invariant of the type says.
    #[inline]
    pub(super) unsafe fn new(first: *const bindings::ib_recv_wr) -> Self {
        // INVARIANT: By this function's requirements.
        Self {
            next: first,
            current: first,
            _wrs: PhantomData,
        }
    }

    /// The request that was taken last.
    pub(super) fn current(&self) -> *const bindings::ib_recv_wr {
        self.current
    }
}

impl<'a> Iterator for RecvWrs<'a> {
    type Item = RecvWr<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        // SAFETY: By the type's invariant.
        let wr = unsafe { self.next.as_ref() }?;
        self.current = self.next;
        // Before it is posted: it may be done, and its memory in other use, at any time after that.
        self.next = wr.next;
        Some(RecvWr(wr))
    }
}

/// Buffers for one message.
pub(crate) struct RecvWr<'a>(&'a bindings::ib_recv_wr);

impl<'a> RecvWr<'a> {
    /// As [`SendWr::id`].
    #[inline]
    pub(crate) fn id(&self) -> u64 {
        // SAFETY: Both fields of the union are 64 bits that may have any value.
        unsafe { *self.0.__bindgen_anon_1.wr_id }
    }

    /// As [`SendWr::sges`].
    #[inline]
    pub(crate) fn sges(&self) -> Result<&'a [Sge]> {
        // SAFETY: The consumer's list has as many entries as it says and stays for `'a`.
        unsafe { sges(self.0.sg_list, self.0.num_sge) }
    }
}
