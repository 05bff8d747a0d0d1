// SPDX-License-Identifier: GPL-2.0

//! Memory that the device may still own.
//!
//! When a queue's destruction fails or is not answered, the device may go on reading and writing
//! the queue's memory. Such memory is not given back but buried, until the function has been reset.
//! The reset takes the whole RDMA device away, so the graves outlive it: those of a device that went
//! because of a reset are opened when the function's next control queue is up, which is after it.
//! The others wait for a later reset, if need be for our own when the module goes: a reset that the
//! LAN driver begins by itself looks like any other removal from here, as long as the device answers.

use core::{
    mem,
    ptr, //
};

use kernel::{
    device::Device,
    prelude::*,
    sync::aref::ARef, //
};

use crate::bindings::function::{
    self,
    BoundDriver, //
};

/// Anything that holds memory which the device may own, such as a ring or pinned user memory.
pub(crate) trait Buried: Send {}

impl<T: Send> Buried for T {}

/// Memory that is kept for one function.
struct Grave {
    /// Given back on drop, while `function` is still there to be asked about mappings.
    memory: Option<KBox<dyn Buried>>,
    function: ARef<Device>,
    /// The function is reset before it has a control queue again.
    reset_ahead: bool,
    /// Whose the function was: nobody else's reset is ours to ask for.
    driver: BoundDriver,
}

impl Grave {
    fn is_of(&self, function: &Device) -> bool {
        ptr::eq::<Device>(&*self.function, function)
    }
}

kernel::sync::global_lock! {
    // SAFETY: `Graveyard::new` runs when the module is loaded, before any device is probed.
    unsafe(uninit) static GRAVES: Mutex<KVec<Grave>> = KVec::new();
}

/// The graves of all functions. The module owns it, and lets go of it after the last device.
pub(crate) struct Graveyard(());

impl Graveyard {
    /// Makes the graveyard.
    ///
    /// # Safety
    ///
    /// To be called once, before anything else of this file.
    pub(crate) unsafe fn new() -> Self {
        // SAFETY: By this function's requirements nobody has initialized it or used it.
        unsafe { GRAVES.init() };

        Self(())
    }
}

impl Drop for Graveyard {
    fn drop(&mut self) {
        let mut graves = mem::take(&mut *GRAVES.lock());

        // Nobody will make a control queue any more, so the resets are up to us.
        while let Some(last) = graves.last() {
            let function = last.function.clone();

            if last.driver == BoundDriver::of(&function) && function::reset(&function).is_ok() {
                dev_info!(function, "reset, kept memory is given back\n");
            } else {
                dev_warn!(function, "not reset, memory that it may use is lost\n");
                graves
                    .iter_mut()
                    .filter(|grave| grave.is_of(&function))
                    .for_each(|grave| mem::forget(grave.memory.take()));
            }
            graves.retain(|grave| !grave.is_of(&function));
        }
    }
}

/// Keeps `memory` until `function` has been reset.
///
/// Where there is no memory to remember it by, it is never given back: losing it is better than
/// the device writing to somebody else's. May sleep.
pub(crate) fn bury<T: Send + 'static>(function: &Device, memory: T) {
    let Ok(slot) = KBox::<T>::new_uninit(GFP_KERNEL) else {
        mem::forget(memory);
        return;
    };

    let memory: KBox<T> = KBox::write(slot, memory);

    bury_boxed(function, memory);
}

/// As [`bury`], for memory that is in a box already.
fn bury_boxed(function: &Device, memory: KBox<dyn Buried>) {
    let mut graves = GRAVES.lock();

    if graves.reserve(1, GFP_KERNEL).is_err() {
        mem::forget(memory);
        return;
    }

    // There is room for it, so this cannot fail.
    let _ = graves.push_within_capacity(Grave {
        memory: Some(memory),
        function: function.into(),
        reset_ahead: false,
        driver: BoundDriver::of(function),
    });
}

/// Returns how many pieces of memory are kept for `function`. May sleep.
pub(crate) fn count(function: &Device) -> usize {
    GRAVES
        .lock()
        .iter()
        .filter(|grave| grave.is_of(function))
        .count()
}

/// Notes that `function`, which has no control queue any more, is going to be reset. May sleep.
pub(crate) fn expect_reset(function: &Device) {
    GRAVES
        .lock()
        .iter_mut()
        .filter(|grave| grave.is_of(function))
        .for_each(|grave| grave.reset_ahead = true);
}

/// Gives back what was kept for `function` before a reset that is over, since it has a control
/// queue again. May sleep.
pub(crate) fn open(function: &Device) {
    // One by one, and none under the lock: giving back a user's memory takes locks of others, under
    // which memory is buried, too.
    while let Some(grave) = take_out(function) {
        drop(grave);
    }
}

fn take_out(function: &Device) -> Option<Grave> {
    let mut graves = GRAVES.lock();
    let at = graves
        .iter()
        .rposition(|grave| grave.is_of(function) && grave.reset_ahead)?;

    graves.remove(at).ok()
}
