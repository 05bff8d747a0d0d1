// SPDX-License-Identifier: GPL-2.0

//! Interrupt handlers for vectors that the LAN driver hands over.
//!
//! [`kernel::irq::Registration`] can be had for vectors of a device's own only.
//!
//! C header: [`include/linux/interrupt.h`](srctree/include/linux/interrupt.h)

use core::marker::PhantomPinned;

use kernel::{
    bindings,
    error::to_result,
    prelude::*,
    str::CString,
    sync::Arc, //
};

use crate::bindings::{
    iidc,
    irdma_helper_irq_update_affinity_hint, //
};

/// An interrupt vector that the LAN driver has allocated for us. The last clone gives it back.
#[derive(Clone)]
pub(crate) struct Vector<'a>(Arc<iidc::Vector<'a>>);

impl<'a> Vector<'a> {
    /// Takes over a vector.
    ///
    /// # Errors
    ///
    /// `ENOMEM`
    pub(crate) fn new(vector: iidc::Vector<'a>) -> Result<Self> {
        Ok(Self(Arc::new(vector, GFP_KERNEL)?))
    }

    /// Returns the number by which the device knows the vector.
    pub(crate) fn index(&self) -> u32 {
        self.0.index()
    }
}

/// What a hard interrupt handler leaves to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing.
    Done,
    /// The handler's thread goes on.
    Thread,
}

/// A handler of one vector.
pub(crate) trait Handler: Sync {
    /// Called in hard interrupt context.
    fn interrupt(&self) -> Then;

    /// Called in the handler's own thread after [`Handler::interrupt`] asked for it; may sleep.
    fn thread(&self) {}
}

/// Stands for no CPU in particular.
const ANY_CPU: u32 = u32::MAX;

/// A handler at work.
///
/// # Invariants
///
/// The handler is registered for `vector` with a pointer to this structure as its cookie.
#[pin_data(PinnedDrop)]
pub(crate) struct IrqHandler<'a, T: Handler + 'a> {
    vector: Vector<'a>,
    #[pin]
    handler: T,
    /// What `/proc/interrupts` shows; the kernel keeps a pointer to it.
    name: CString,
    #[pin]
    _pin: PhantomPinned,
}

impl<'a, T: Handler + 'a> IrqHandler<'a, T> {
    /// Returns an initializer that registers `handler` for `vector` as `name`. Whoever places
    /// interrupts is told that `cpu`, if one is given, is the best place.
    ///
    /// # Errors
    ///
    /// What `request_threaded_irq()` gives, such as `EBUSY` for a vector in use.
    #[doc(alias = "irdma_cfg_ceq_vector")]
    #[doc(alias = "irdma_cfg_aeq_vector")]
    pub(crate) fn new(
        vector: Vector<'a>,
        name: CString,
        cpu: Option<u32>,
        handler: impl PinInit<T, Error> + 'a,
    ) -> impl PinInit<Self, Error> + 'a {
        // INVARIANT: The registration is the last step of the initialization.
        try_pin_init!(&this in Self {
            vector,
            handler <- handler,
            name,
            _pin: PhantomPinned,
            _: {
                // SAFETY: `this` is valid and all other fields are initialized.
                let (irq, name) = unsafe {
                    let this = this.as_ref();

                    (this.vector.0.irq(), this.name.as_char_ptr())
                };

                // SAFETY:
                // - The vector is ours as long as `Self` holds it.
                // - The callbacks take a pointer to `Self` as their cookie, and it is valid until
                //   the handler is freed, which the destructor does: `Self` is pinned.
                // - `name` lives as long as `Self`.
                // - All fields are initialized, so that the callbacks may come at once.
                to_result(unsafe {
                    bindings::request_threaded_irq(
                        irq,
                        Some(hard_callback::<T>),
                        Some(thread_callback::<T>),
                        0,
                        name,
                        this.as_ptr().cast(),
                    )
                })?;
                // SAFETY: The vector is ours, and what is kept of the CPU is the kernel's own.
                unsafe { irdma_helper_irq_update_affinity_hint(irq, cpu.unwrap_or(ANY_CPU)) };
            },
        })
    }
}

impl<'a, T: Handler + 'a> IrqHandler<'a, T> {
    /// Returns the handler.
    pub(crate) fn handler(&self) -> &T {
        &self.handler
    }
}

#[pinned_drop]
impl<'a, T: Handler + 'a> PinnedDrop for IrqHandler<'a, T> {
    #[doc(alias = "irdma_destroy_irq")]
    fn drop(self: Pin<&mut Self>) {
        let irq = self.vector.0.irq();
        // SAFETY: Nothing is moved out of it.
        let this = core::ptr::from_mut(unsafe { self.get_unchecked_mut() });

        // SAFETY: The vector is ours.
        unsafe { irdma_helper_irq_update_affinity_hint(irq, ANY_CPU) };
        // SAFETY: The cookie is that of the registration. The call returns when no callback runs
        // any more, in hard interrupt context or in the thread.
        unsafe { bindings::free_irq(irq, this.cast()) };
    }
}

/// # Safety
///
/// `cookie` points to a live [`IrqHandler<'_, T>`].
unsafe extern "C" fn hard_callback<T: Handler>(
    _irq: c_int,
    cookie: *mut c_void,
) -> bindings::irqreturn_t {
    // SAFETY: The caller promises that this is what `cookie` points to.
    let this = unsafe { &*cookie.cast_const().cast::<IrqHandler<'_, T>>() };

    match this.handler.interrupt() {
        Then::Done => bindings::irqreturn::IRQ_HANDLED,
        Then::Thread => bindings::irqreturn::IRQ_WAKE_THREAD,
    }
}

/// # Safety
///
/// `cookie` points to a live [`IrqHandler<'_, T>`].
unsafe extern "C" fn thread_callback<T: Handler>(
    _irq: c_int,
    cookie: *mut c_void,
) -> bindings::irqreturn_t {
    // SAFETY: The caller promises that this is what `cookie` points to.
    let this = unsafe { &*cookie.cast_const().cast::<IrqHandler<'_, T>>() };

    this.handler.thread();

    bindings::irqreturn::IRQ_HANDLED
}
