// SPDX-License-Identifier: GPL-2.0

//! Work that is done again and again.
//!
//! [`kernel::workqueue`] has no way to stop work, hence it takes only work that may outlive its
//! owner; ours may not.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use core::marker::PhantomPinned;

use kernel::{
    bindings,
    container_of,
    prelude::*,
    static_lock_class,
    time::Jiffies,
    types::Opaque, //
};

/// Somebody who does something from time to time.
pub(crate) trait Tick: Send + Sync {
    /// Called in a worker thread; may sleep.
    fn tick(&self);
}

/// Calls [`Tick::tick`] once a period, until it is dropped.
#[pin_data(PinnedDrop)]
pub(crate) struct Periodic<T: Tick> {
    #[pin]
    work: Opaque<bindings::delayed_work>,
    period: Jiffies,
    target: T,
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The work belongs to no particular thread, and neither does the target.
unsafe impl<T: Tick> Send for Periodic<T> {}

// SAFETY: All of it that can be shared is the target, which can be.
unsafe impl<T: Tick> Sync for Periodic<T> {}

impl<T: Tick> Periodic<T> {
    /// Returns an initializer that calls `target` after each `period`, for the first time after one.
    pub(crate) fn new<'a>(period: Jiffies, target: T) -> impl PinInit<Self> + 'a
    where
        T: 'a,
    {
        let work_key = static_lock_class!();
        let timer_key = static_lock_class!();

        pin_init!(&this in Self {
            work <- Opaque::ffi_init(move |slot: *mut bindings::delayed_work| {
                // SAFETY: `slot` is valid for writes and stays where it is, since it is pinned. The
                // callback expects what this is a part of.
                unsafe {
                    bindings::init_work_with_key(
                        &raw mut (*slot).work,
                        Some(callback::<T>),
                        false,
                        c"irdma_rs::periodic".as_char_ptr(),
                        work_key.as_ptr(),
                    )
                };
                // SAFETY: As above. The function is that of the timers of delayed work.
                unsafe {
                    bindings::timer_init_key(
                        &raw mut (*slot).timer,
                        Some(bindings::delayed_work_timer_fn),
                        bindings::TIMER_IRQSAFE,
                        c"irdma_rs::periodic_timer".as_char_ptr(),
                        timer_key.as_ptr(),
                    )
                };
            }),
            period,
            target,
            _pin: PhantomPinned,
            _: {
                // SAFETY: `this` is initialized, and pinned, and the work ends before it does.
                unsafe { enqueue(this.as_ptr()) };
            },
        })
    }
}

#[pinned_drop]
impl<T: Tick> PinnedDrop for Periodic<T> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: The work was initialized by `new`. When this returns, it does not run and is not
        // queued, even if it queued itself meanwhile.
        unsafe { bindings::cancel_delayed_work_sync(self.work.get()) };
    }
}

/// Queues the work for the next period.
///
/// # Safety
///
/// `this` is valid until the work has been cancelled.
unsafe fn enqueue<T: Tick>(this: *mut Periodic<T>) {
    // SAFETY: The caller promises that `this` is valid; the queue is there always.
    unsafe {
        bindings::queue_delayed_work_on(
            bindings::wq_misc_consts_WORK_CPU_UNBOUND as c_int,
            bindings::system_long_wq,
            Opaque::cast_into(&raw const (*this).work),
            (*this).period,
        )
    };
}

/// # Safety
///
/// `work` is that of a live [`Periodic<T>`].
unsafe extern "C" fn callback<T: Tick>(work: *mut bindings::work_struct) {
    // SAFETY: The caller promises that `work` is the work of delayed work.
    let work = unsafe { container_of!(work, bindings::delayed_work, work) };
    // SAFETY: The caller promises that this delayed work is that of a `Periodic<T>`.
    let this = unsafe { container_of!(Opaque::cast_from(work), Periodic<T>, work) };

    // SAFETY: `this` is live until the work has been cancelled.
    unsafe { (*this).target.tick() };
    // SAFETY: As above.
    unsafe { enqueue(this.cast_mut()) };
}
