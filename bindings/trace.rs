// SPDX-License-Identifier: GPL-2.0

//! Tracepoints: `/sys/kernel/tracing/events/irdma_rs`.
//!
//! One that is off costs a jump that is not taken. May be called in any context.
//!
//! Header: `bindings/irdma_rs_trace.h`

use core::ptr;

use kernel::device::Device;

use super::raw as bindings;

/// Declares functions that call a tracepoint about a device. It does the work of
/// [`kernel::tracepoint::declare_trace`], which looks for the tracepoints of the kernel itself.
macro_rules! declare_device_traces {
    ($(
        $(#[$attr:meta])*
        fn $name:ident => $tracepoint:ident, $call:ident ($($arg:ident : $type:ty),* $(,)?);
    )*) => {$(
        $(#[$attr])*
        #[inline]
        pub(crate) fn $name(dev: &Device, $($arg: $type),*) {
            #[cfg(CONFIG_TRACEPOINTS)]
            {
                // SAFETY: This is a tracepoint, whose key may be read at any time.
                let on = unsafe {
                    kernel::jump_label::static_branch_unlikely!(
                        bindings::$tracepoint,
                        bindings::tracepoint,
                        key
                    )
                };

                if on {
                    // SAFETY: The device, whose name is read, is alive; the rest are values.
                    unsafe { bindings::$call(ptr::from_ref(dev).cast(), $($arg),*) };
                }
            }
            #[cfg(not(CONFIG_TRACEPOINTS))]
            let _ = (dev, $($arg),*);
        }
    )*};
}

declare_device_traces! {
    /// A command was put in the control queue's ring.
    fn cqp_command => __tracepoint_irdma_cqp_command, rust_do_trace_irdma_cqp_command(
        opcode: u8,
        slot: u32,
    );

    /// The device has completed a command.
    fn cqp_completion => __tracepoint_irdma_cqp_completion, rust_do_trace_irdma_cqp_completion(
        opcode: u8,
        slot: u32,
        error: bool,
        major: u16,
        minor: u16,
        value: u32,
    );

    /// A queue pair's state has changed.
    fn qp_state => __tracepoint_irdma_qp_state, rust_do_trace_irdma_qp_state(
        qp: u32,
        from: u8,
        to: u8,
    );

    /// The device has raised an asynchronous event.
    fn async_event => __tracepoint_irdma_async_event, rust_do_trace_irdma_async_event(
        code: u16,
        source: u8,
        number: u32,
        wqe: u16,
    );

    /// A queue pair's work requests are to come back.
    fn flush => __tracepoint_irdma_flush, rust_do_trace_irdma_flush(
        qp: u32,
        sq: bool,
        rq: bool,
        sq_code: u16,
        rq_code: u16,
    );
}
