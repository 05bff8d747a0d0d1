// SPDX-License-Identifier: GPL-2.0

//! Memory that the device may still own.
//!
//! When a queue's destruction fails or is not answered, the device may go on reading and writing
//! the queue's memory. Such memory is not given back but buried, until the function has been reset.
//! The reset takes the whole RDMA device away, so the graves outlive it: they are opened when the
//! function's next control queue is up, which is after the reset.

use kernel::{
    device::Device,
    new_mutex,
    prelude::*,
    sync::{
        aref::ARef,
        Arc,
        Mutex,
        SetOnce, //
    }, //
};

/// Anything that holds memory which the device may own, such as a ring or pinned user memory.
pub(crate) trait Buried: Send {}

impl<T: Send> Buried for T {}

/// Memory that is kept for one function.
struct Grave {
    function: ARef<Device>,
    /// Given back on drop.
    _memory: KBox<dyn Buried>,
}

/// The graves of all functions; made when the first is needed.
static GRAVES: SetOnce<Arc<Mutex<KVec<Grave>>>> = SetOnce::new();

fn graves() -> Option<&'static Mutex<KVec<Grave>>> {
    if GRAVES.as_ref().is_none() {
        let graves = Arc::pin_init(new_mutex!(KVec::new(), "irdma_rs::graves"), GFP_KERNEL).ok()?;

        // Somebody else's is as good as ours.
        GRAVES.populate(graves);
    }

    GRAVES.as_ref().map(|graves| &**graves)
}

/// Keeps `memory` until `function` has been reset.
///
/// Where there is no memory to remember it by, it is never given back: losing it is better than
/// the device writing to somebody else's. May sleep.
pub(crate) fn bury<T: Send + 'static>(function: &Device, memory: T) {
    let Ok(slot) = KBox::<T>::new_uninit(GFP_KERNEL) else {
        core::mem::forget(memory);
        return;
    };

    let memory: KBox<T> = KBox::write(slot, memory);

    bury_boxed(function, memory);
}

/// As [`bury`], for memory that is in a box already.
fn bury_boxed(function: &Device, memory: KBox<dyn Buried>) {
    if let Some(graves) = graves() {
        let mut graves = graves.lock();

        if graves.reserve(1, GFP_KERNEL).is_ok() {
            // There is room for it, so this cannot fail.
            let _ = graves.push_within_capacity(Grave {
                function: function.into(),
                _memory: memory,
            });
            return;
        }
    }

    core::mem::forget(memory);
}

/// Returns how many pieces of memory are kept for `function`. May sleep.
pub(crate) fn count(function: &Device) -> usize {
    GRAVES.as_ref().map_or(0, |graves| {
        graves
            .lock()
            .iter()
            .filter(|grave| core::ptr::eq::<Device>(&*grave.function, function))
            .count()
    })
}

/// Gives back what was kept for `function`, which has been reset.
pub(crate) fn open(function: &Device) {
    if let Some(graves) = GRAVES.as_ref() {
        graves
            .lock()
            .retain(|grave| !core::ptr::eq::<Device>(&*grave.function, function));
    }
}
