// SPDX-License-Identifier: GPL-2.0

//! The operations that C calls, put on those of [`Operations`].
//!
//! Nothing is decided here: pointers become references, results become error numbers.

mod data_path;
mod device;
mod memory;
mod objects;

use core::marker::PhantomData;

use kernel::module::this_module;

use crate::bindings;

use super::{
    Ah,
    Cq,
    Operations,
    Pd,
    Qp,
    Ucontext, //
};

/// The operations of `T`.
pub(super) struct VTable<T: Operations>(PhantomData<T>);

/// The flag that says that all user data is checked as the core wants it.
const ROBUST_UDATA: u8 = 1 << 1;

/// `f` if the driver has the operation.
macro_rules! optional {
    ($has:expr, $f:expr) => {
        if $has {
            Some($f)
        } else {
            None
        }
    };
}

impl<T: Operations> VTable<T> {
    /// What the core copies into a device.
    pub(super) const VTABLE: bindings::ib_device_ops = bindings::ib_device_ops {
        owner: this_module::<T::OwnerModule>().as_ptr(),
        driver_id: T::DRIVER_ID,
        uverbs_abi_ver: T::ABI_VERSION,
        _bitfield_1: bindings::__BindgenBitfieldUnit::new([ROBUST_UDATA]),

        query_device: Some(Self::query_device),
        get_dev_fw_str: Some(Self::get_dev_fw_str),
        query_port: Some(Self::query_port),
        get_port_immutable: Some(Self::get_port_immutable),
        get_link_layer: Some(Self::get_link_layer),
        query_pkey: Some(Self::query_pkey),
        alloc_hw_port_stats: optional!(T::HAS_PORT_COUNTERS, Self::alloc_hw_port_stats),
        get_hw_stats: optional!(T::HAS_PORT_COUNTERS, Self::get_hw_stats),

        alloc_ucontext: Some(Self::alloc_ucontext),
        dealloc_ucontext: Some(Self::dealloc_ucontext),
        disassociate_ucontext: Some(Self::disassociate_ucontext),
        mmap: Some(Self::mmap),
        mmap_free: Some(Self::mmap_free),
        alloc_pd: Some(Self::alloc_pd),
        dealloc_pd: Some(Self::dealloc_pd),
        create_ah: Some(Self::create_ah),
        create_user_ah: Some(Self::create_ah),
        destroy_ah: Some(Self::destroy_ah),
        query_ah: optional!(T::HAS_QUERY_AH, Self::query_ah),
        create_cq: Some(Self::create_cq),
        pre_destroy_cq: Some(Self::pre_destroy_cq),
        destroy_cq: Some(Self::destroy_cq),
        resize_user_cq: optional!(T::HAS_RESIZE_CQ, Self::resize_cq),
        create_qp: Some(Self::create_qp),
        modify_qp: Some(Self::modify_qp),
        query_qp: Some(Self::query_qp),
        destroy_qp: Some(Self::destroy_qp),
        attach_mcast: optional!(T::HAS_ATTACH_MCAST, Self::attach_mcast),
        detach_mcast: optional!(T::HAS_DETACH_MCAST, Self::detach_mcast),

        get_dma_mr: Some(Self::get_dma_mr),
        reg_user_mr: Some(Self::reg_user_mr),
        reg_user_mr_dmabuf: optional!(T::HAS_REG_DMABUF_MR, Self::reg_dmabuf_mr),
        rereg_user_mr: optional!(T::HAS_REREG_MR, Self::rereg_mr),
        dereg_mr: Some(Self::dereg_mr),
        alloc_mr: optional!(T::HAS_ALLOC_MR, Self::alloc_mr),
        map_mr_sg: optional!(T::HAS_ADD_PAGE, Self::map_mr_sg),

        post_send: Some(Self::post_send),
        post_recv: Some(Self::post_recv),
        poll_cq: Some(Self::poll_cq),
        req_notify_cq: Some(Self::req_notify_cq),

        size_ib_ah: Ah::<T>::SIZE,
        size_ib_cq: Cq::<T>::SIZE,
        size_ib_pd: Pd::<T>::SIZE,
        size_ib_qp: Qp::<T>::SIZE,
        size_ib_ucontext: Ucontext::<T>::SIZE,

        ..pin_init::zeroed()
    };
}
