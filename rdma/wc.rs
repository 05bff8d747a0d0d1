// SPDX-License-Identifier: GPL-2.0

//! Work completions.

use core::{
    marker::PhantomData,
    mem::ManuallyDrop, //
};

use kernel::prelude::*;

use crate::bindings;

use super::{
    NetworkType,
    QpLink,
    WcOpcode,
    WcStatus, //
};

/// What rides along with a completion of a receive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum WcExtra {
    /// Nothing.
    #[default]
    None,
    /// Immediate data, in host order.
    Imm(u32),
    /// The key that was invalidated.
    Invalidated(u32),
}

/// A work completion (IBTA volume 1, 11.4.2.1).
pub(crate) struct Completion<'q> {
    /// What the request was given as its id.
    pub(crate) wr_id: u64,
    /// How it ended. Unless it is success, only `wr_id`, `qp` and `vendor_err` mean something.
    pub(crate) status: WcStatus,
    /// What was done.
    pub(crate) opcode: WcOpcode,
    /// The device's own word for an error.
    pub(crate) vendor_err: u32,
    /// Bytes that were passed.
    pub(crate) byte_len: u32,
    /// The queue pair.
    pub(crate) qp: &'q QpLink,
    /// Immediate data or an invalidated key.
    pub(crate) extra: WcExtra,
    /// Queue pair that a datagram comes from.
    pub(crate) src_qp: u32,
    /// A global route header stands before a datagram.
    pub(crate) grh: bool,
    /// Kind of that header.
    pub(crate) network: Option<NetworkType>,
    /// Source MAC address of a datagram.
    pub(crate) smac: Option<[u8; 6]>,
    /// VLAN of a datagram.
    pub(crate) vlan: Option<u16>,
    /// Service level of a datagram.
    pub(crate) sl: u8,
    /// Index of the partition key.
    pub(crate) pkey_index: u16,
    /// Number of the port.
    pub(crate) port_num: u32,
}

impl<'q> Completion<'q> {
    /// A successful completion without anything special.
    #[inline]
    pub(crate) fn new(qp: &'q QpLink, wr_id: u64, opcode: WcOpcode) -> Self {
        Self {
            wr_id,
            status: WcStatus::Success,
            opcode,
            vendor_err: 0,
            byte_len: 0,
            qp,
            extra: WcExtra::None,
            src_qp: 0,
            grh: false,
            network: None,
            smac: None,
            vlan: None,
            sl: 0,
            pkey_index: 0,
            port_num: 1,
        }
    }
}

/// A consumer's array of work completions that is being filled.
///
/// # Invariants
///
/// `wcs` has room for `room` entries, of which the first `filled` are written.
pub(crate) struct WcArray<'a> {
    wcs: *mut bindings::ib_wc,
    room: usize,
    filled: usize,
    _array: PhantomData<&'a mut bindings::ib_wc>,
}

impl WcArray<'_> {
    /// Wraps an array.
    ///
    /// # Safety
    ///
    /// `wcs` has room for `room` entries for the lifetime, and nobody else uses it.
    #[inline]
    pub(super) unsafe fn new(wcs: *mut bindings::ib_wc, room: usize) -> Self {
        // INVARIANT: By this function's requirements.
        Self {
            wcs,
            room,
            filled: 0,
            _array: PhantomData,
        }
    }

    /// Entries that are filled.
    #[inline]
    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// Whether no more entries fit.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.filled >= self.room
    }

    /// Appends a completion.
    ///
    /// # Errors
    ///
    /// `ENOSPC` if none fits, `ENOENT` if the queue pair is gone. Then nothing is appended.
    #[inline]
    pub(crate) fn push(&mut self, completion: &Completion<'_>) -> Result {
        if self.is_full() {
            return Err(ENOSPC);
        }
        let qp = completion.qp.target();
        if qp.is_null() {
            return Err(ENOENT);
        }
        let mut flags = 0;
        let mut ex = bindings::ib_wc__bindgen_ty_2 {
            invalidate_rkey: ManuallyDrop::new(0),
        };
        match completion.extra {
            WcExtra::None => {}
            WcExtra::Imm(imm) => {
                flags |= bindings::ib_wc_flags_IB_WC_WITH_IMM;
                ex.imm_data = ManuallyDrop::new(imm.to_be());
            }
            WcExtra::Invalidated(rkey) => {
                flags |= bindings::ib_wc_flags_IB_WC_WITH_INVALIDATE;
                ex.invalidate_rkey = ManuallyDrop::new(rkey);
            }
        }
        if completion.grh {
            flags |= bindings::ib_wc_flags_IB_WC_GRH;
        }
        if completion.network.is_some() {
            flags |= bindings::ib_wc_flags_IB_WC_WITH_NETWORK_HDR_TYPE;
        }
        if completion.smac.is_some() {
            flags |= bindings::ib_wc_flags_IB_WC_WITH_SMAC;
        }
        if completion.vlan.is_some() {
            flags |= bindings::ib_wc_flags_IB_WC_WITH_VLAN;
        }
        let wc = bindings::ib_wc {
            __bindgen_anon_1: bindings::ib_wc__bindgen_ty_1 {
                wr_id: ManuallyDrop::new(completion.wr_id),
            },
            status: completion.status.into_raw(),
            opcode: completion.opcode.into_raw(),
            vendor_err: completion.vendor_err,
            byte_len: completion.byte_len,
            qp,
            ex,
            src_qp: completion.src_qp,
            slid: 0,
            // CAST: The flags are small.
            wc_flags: flags as c_int,
            pkey_index: completion.pkey_index,
            sl: completion.sl,
            dlid_path_bits: 0,
            port_num: completion.port_num,
            smac: completion.smac.unwrap_or_default(),
            vlan_id: completion.vlan.unwrap_or_default(),
            // CAST: The enum is `repr(u8)`.
            network_hdr_type: completion.network.map_or(0, |network| network as u8),
        };
        // SAFETY: `filled` is below `room`.
        unsafe { self.wcs.add(self.filled).write(wc) };
        // INVARIANT: The entry was written just now.
        self.filled += 1;
        Ok(())
    }
}
