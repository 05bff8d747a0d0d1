// SPDX-License-Identifier: GPL-2.0

//! What can be watched in `/sys/kernel/tracing/events/irdma_rs`.

use kernel::device::Device;

use super::{
    aeq::event::{
        AsyncEvent,
        Subject, //
    },
    cqp::{
        command::Opcode,
        qp::{
            FlushWqes,
            QpState, //
        },
        Outcome, //
    },
    function::Function, //
};
use crate::bindings::trace;

/// A command is in slot `slot` of the control queue's ring of `device`, which is told next.
#[inline]
pub(super) fn command(device: &Device, opcode: Opcode, slot: u32) {
    // CAST: The enum is `repr(u8)`.
    trace::cqp_command(device, opcode as u8, slot);
}

/// The device has completed the command in slot `slot`.
#[inline]
pub(super) fn completion(function: &Function<'_>, opcode: Opcode, slot: u32, outcome: Outcome) {
    let (error, major, minor, value) = match outcome {
        Ok(reply) => (false, 0, reply.minor, reply.value),
        Err(error) => (true, error.major, error.minor, 0),
    };

    trace::cqp_completion(
        function.parent(),
        // CAST: The enum is `repr(u8)`.
        opcode as u8,
        slot,
        error,
        major,
        minor,
        value,
    );
}

/// The device has raised an event.
#[inline]
pub(super) fn async_event(function: &Function<'_>, event: &AsyncEvent) {
    let number = match event.subject {
        Subject::Qp(number) | Subject::Cq(number) => number,
        Subject::Function => 0,
    };

    trace::async_event(
        function.parent(),
        event.code.0,
        event.raw_source,
        number,
        event.wqe_index,
    );
}

/// A queue pair's state has changed for the device; [`QpState::Unchanged`] is that of no queue
/// pair.
#[inline]
pub(crate) fn qp_state(function: &Function<'_>, qp: u32, from: QpState, to: QpState) {
    if from != to {
        // CAST: The enum is `repr(u8)`.
        trace::qp_state(function.parent(), qp, from as u8, to as u8);
    }
}

/// The device is asked for a queue pair's work requests.
#[inline]
pub(crate) fn flush(function: &Function<'_>, command: &FlushWqes) {
    let codes = command.codes.unwrap_or_default();

    trace::flush(
        function.parent(),
        command.qp_id,
        command.sq,
        command.rq,
        codes.sq.minor,
        codes.rq.minor,
    );
}
