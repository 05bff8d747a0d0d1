// SPDX-License-Identifier: GPL-2.0

//! Ways from an interrupt to an object's user.
//!
//! An interrupt names a queue by its number. What a driver finds under that number may outlive the
//! core's object, so it doesn't refer to the object but to a link. The object's destruction cuts the
//! link, which takes until nobody uses the object through it.

use core::{
    cell::UnsafeCell,
    mem::ManuallyDrop,
    ptr, //
};

use kernel::{
    new_spinlock_irq,
    prelude::*,
    sync::{
        Arc,
        Completion,
        SpinLockIrq, //
    },
};

use crate::bindings;

use super::QpEvent;

/// Pointer to an object of the core that is valid as long as it is in a link.
struct Target<T>(*mut T);

// SAFETY: A queue of the core may be told of events on any thread.
unsafe impl<T> Send for Target<T> {}

/// Link to a completion queue.
#[pin_data]
pub(crate) struct CqLink {
    #[pin]
    target: SpinLockIrq<Option<Target<bindings::ib_cq>>>,
}

impl CqLink {
    /// Makes a link that leads nowhere yet: a device may name a queue that is just being made.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                target <- new_spinlock_irq!(None, "rdma::CqLink::target"),
            }),
            GFP_KERNEL,
        )
    }

    /// From now on the link leads to `cq`.
    ///
    /// # Safety
    ///
    /// `cq` is complete, the driver's part included, and stays so until [`CqLink::cut`] has returned.
    pub(super) unsafe fn connect(&self, cq: *mut bindings::ib_cq) {
        *self.target.lock() = Some(Target(cq));
    }

    /// Afterwards the link leads nowhere, and nobody uses the queue through it.
    pub(super) fn cut(&self) {
        *self.target.lock() = None;
    }

    /// Calls the consumer's completion handler. Any context.
    pub(crate) fn complete(&self) {
        let guard = self.target.lock();
        let Some(Target(cq)) = *guard else {
            return;
        };
        // SAFETY: `cq` is valid while it is in the link, hence while `guard` lives.
        let (handler, context) = unsafe { ((*cq).comp_handler, (*cq).cq_context) };
        if let Some(handler) = handler {
            // SAFETY: The core set handler and context as a pair. Handlers may be called in
            // interrupt context, hence with interrupts off.
            unsafe { handler(cq, context) };
        }
    }

    /// Tells the consumer that the queue has failed (`IB_EVENT_CQ_ERR`). Any context.
    pub(crate) fn error(&self) {
        let guard = self.target.lock();
        let Some(Target(cq)) = *guard else {
            return;
        };
        // SAFETY: As in `complete`.
        let (handler, context, device) =
            unsafe { ((*cq).event_handler, (*cq).cq_context, (*cq).device) };
        if let Some(handler) = handler {
            let mut event = bindings::ib_event {
                device,
                element: bindings::ib_event__bindgen_ty_1 {
                    cq: ManuallyDrop::new(cq),
                },
                event: bindings::ib_event_type_IB_EVENT_CQ_ERR,
            };
            // SAFETY: As in `complete`; `event` lives during the call, which is all that handlers
            // may rely on.
            unsafe { handler(&raw mut event, context) };
        }
    }
}

/// What a [`QpLink`] guards.
struct QpLinkState {
    target: Option<Target<bindings::ib_qp>>,
    /// Calls of the consumer's handler that have not returned yet.
    calls: usize,
}

/// A queue pair's name in completions: null while the link leads nowhere.
struct Name(UnsafeCell<*mut bindings::ib_qp>);

// SAFETY: The pointer is only passed on, and each access is a single load or store of it, which are
// to other CPUs what those of `READ_ONCE()` and `WRITE_ONCE()` are.
unsafe impl Send for Name {}

// SAFETY: As above.
unsafe impl Sync for Name {}

impl Name {
    #[inline]
    fn get(&self) -> *mut bindings::ib_qp {
        // SAFETY: The pointer comes from a reference. As to races, see `Sync`.
        unsafe { self.0.get().read_volatile() }
    }

    fn set(&self, qp: *mut bindings::ib_qp) {
        // SAFETY: The pointer comes from a reference to a cell. As to races, see `Sync`.
        unsafe { self.0.get().write_volatile(qp) }
    }
}

/// Link to a queue pair.
#[pin_data]
pub(crate) struct QpLink {
    /// Read for each completion, hence without a lock: who polls may still report one while the
    /// link is being cut, as long as the queue pair's destruction has not returned.
    name: Name,
    #[pin]
    state: SpinLockIrq<QpLinkState>,
    /// Completed when the last call returns after the link was cut.
    #[pin]
    idle: Completion,
}

impl QpLink {
    /// Makes a link that leads nowhere yet: a device may name a queue pair that is just being made.
    pub(super) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                name: Name(UnsafeCell::new(ptr::null_mut())),
                state <- new_spinlock_irq!(
                    QpLinkState {
                        target: None,
                        calls: 0,
                    },
                    "rdma::QpLink::state"
                ),
                idle <- Completion::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// From now on the link leads to `qp`.
    ///
    /// # Safety
    ///
    /// `qp` is complete, the driver's part included, and stays so until [`QpLink::cut`] has returned.
    pub(super) unsafe fn connect(&self, qp: *mut bindings::ib_qp) {
        self.name.set(qp);
        self.state.lock().target = Some(Target(qp));
    }

    /// Afterwards the link leads nowhere, and nobody uses the queue pair through it.
    pub(super) fn cut(&self) {
        self.name.set(ptr::null_mut());
        let busy = {
            let mut state = self.state.lock();
            state.target = None;
            state.calls != 0
        };
        // Consumers must not destroy a queue pair from its handler, so this ends when the handler
        // does.
        if busy {
            self.idle.wait_for_completion();
        }
    }

    /// Tells the consumer of `event`.
    ///
    /// Consumers expect to be called in process context.
    pub(crate) fn event(&self, event: QpEvent) {
        let qp = {
            let mut state = self.state.lock();
            let Some(Target(qp)) = state.target else {
                return;
            };
            state.calls += 1;
            qp
        };
        // SAFETY: `qp` is valid until `cut` has returned, which waits for `calls` to be 0.
        let (handler, context, device) =
            unsafe { ((*qp).event_handler, (*qp).qp_context, (*qp).device) };
        if let Some(handler) = handler {
            let mut event = bindings::ib_event {
                device,
                element: bindings::ib_event__bindgen_ty_1 {
                    qp: ManuallyDrop::new(qp),
                },
                event: event.into_raw(),
            };
            // SAFETY: The core set handler and context as a pair, and `event` lives during the
            // call, which is all that handlers may rely on.
            unsafe { handler(&raw mut event, context) };
        }
        let mut state = self.state.lock();
        state.calls -= 1;
        if state.calls == 0 && state.target.is_none() {
            self.idle.complete_all();
        }
    }

    /// The queue pair for a work completion, or null after the link was cut.
    #[inline]
    pub(super) fn target(&self) -> *mut bindings::ib_qp {
        self.name.get()
    }
}
