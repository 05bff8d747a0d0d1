// SPDX-License-Identifier: GPL-2.0

//! An end to delayed work, which `kernel::workqueue` lacks.

use kernel::{
    bindings,
    sync::Arc,
    workqueue::{
        HasDelayedWork,
        Work,
        WorkItem, //
    }, //
};

/// Takes `item` off its work queue, or waits until it has run. Nothing of it runs afterwards unless
/// it is enqueued again. May sleep.
///
/// Work items of a module have to end so: nobody keeps the module for them.
#[doc(alias = "cancel_delayed_work_sync")]
pub(crate) fn cancel_delayed_work<T, const ID: u64>(item: &Arc<T>)
where
    T: HasDelayedWork<T, ID> + WorkItem<ID, Pointer = Arc<T>>,
{
    let item = Arc::as_ptr(item);

    // SAFETY: `item` points to a valid value, hence so does what it holds. As `T` implements
    // `HasDelayedWork`, the work is that of a `struct delayed_work`, which begins with it.
    let cancelled = unsafe {
        let work = Work::raw_get(T::raw_get_work(item.cast_mut()));

        bindings::cancel_delayed_work_sync(work.cast())
    };

    if cancelled {
        // SAFETY: The work queue had taken over a reference when `item` was enqueued, and it has
        // just been taken off the queue without having run.
        drop(unsafe { Arc::from_raw(item) });
    }
}
