// SPDX-License-Identifier: GPL-2.0

//! Error codes of control-queue completions.

use kernel::prelude::*;

/// Major code of an error that the command itself caused.
#[doc(alias = "IRDMA_CQPSQ_MAJ_ERROR")]
const MAJOR_COMMAND: u16 = 0xffff;

/// Minor code: the object is not in a state for the command.
const INVALID_STATE: u16 = 0x8002;

/// Minor code: the device is in a state that a reset only ends.
const NEEDS_RESET: u16 = 0x8029;

/// The codes that a command ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandError {
    /// Major code.
    pub(crate) major: u16,
    /// Minor code.
    pub(crate) minor: u16,
}

impl CommandError {
    /// Returns the errno that stands for the codes: `EBUSY` where another state helps, else `EIO`.
    #[doc(alias = "irdma_wait_event")]
    pub(crate) fn errno(self) -> Error {
        match (self.major, self.minor) {
            (MAJOR_COMMAND, INVALID_STATE) => EBUSY,
            _ => EIO,
        }
    }

    /// Returns whether only a reset of the function brings the device back.
    pub(crate) const fn needs_reset(self) -> bool {
        matches!((self.major, self.minor), (MAJOR_COMMAND, NEEDS_RESET))
    }

    /// Returns what happened when that is a part of normal operation, and `None` for a fault.
    #[doc(alias = "irdma_cqp_crit_err")]
    pub(crate) const fn harmless(self) -> Option<&'static str> {
        match (self.major, self.minor) {
            (MAJOR_COMMAND, INVALID_STATE) => Some("invalid state"),
            (MAJOR_COMMAND, 0x8006) => Some("nothing to flush"),
            (MAJOR_COMMAND, 0x8007) => Some("bad close"),
            (MAJOR_COMMAND, 0x8009) => Some("connection closed"),
            (MAJOR_COMMAND, 0x800a) => Some("reset not sent"),
            _ => None,
        }
    }
}

impl From<CommandError> for Error {
    fn from(error: CommandError) -> Self {
        error.errno()
    }
}
