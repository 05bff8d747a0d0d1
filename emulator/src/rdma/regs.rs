// SPDX-License-Identifier: GPL-2.0
//! The protocol engine's registers: which offset is which, and the ones that merely hold a value.

use super::layout::{self, Layout, Registers};

/// A register of the protocol engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Register {
    CqpTail,
    CqpDoorbell,
    CcqpStatus,
    CcqpHigh,
    CcqpLow,
    CqArm,
    /// The same in the page that is mapped into processes.
    UserCqArm,
    CqAck,
    AeqAlloc,
    CqpErrorCodes,
    SqDoorbell,
    DoorbellSize,
    CpuStatus,
    AeqControl,
    CeqControl(u32),
    PdInvalidate,
    HmcErrorInfo,
    HmcErrorData,
    CriticalError,
}

impl Register {
    /// The register at an offset of BAR 0, if it is one of the protocol engine's.
    pub fn at(layout: &Layout, offset: u32) -> Option<Self> {
        let r: &Registers = &layout.registers;
        let ceq_end = r.ceq_ctl + 4 * r.ceq_ctl_count;
        let register = match offset {
            o if o == r.cqp_tail => Register::CqpTail,
            o if o == r.cqp_db => Register::CqpDoorbell,
            o if o == r.ccqp_status => Register::CcqpStatus,
            o if o == r.ccqp_high => Register::CcqpHigh,
            o if o == r.ccqp_low => Register::CcqpLow,
            o if o == r.cq_arm => Register::CqArm,
            o if o == r.user_page + layout::USER_PAGE_CQ_ARM => Register::UserCqArm,
            o if o == r.cq_ack => Register::CqAck,
            o if o == r.aeq_alloc => Register::AeqAlloc,
            o if o == r.cqp_err_codes => Register::CqpErrorCodes,
            o if o == r.wqe_alloc || o == r.user_page => Register::SqDoorbell,
            o if o == r.lbar_ctrl => Register::DoorbellSize,
            o if r.cpu_status.contains(&o) => Register::CpuStatus,
            o if o == r.aeq_ctl => Register::AeqControl,
            o if (r.ceq_ctl..ceq_end).contains(&o) && o % 4 == 0 => {
                Register::CeqControl((o - r.ceq_ctl) / 4)
            }
            o if o == r.pd_inv => Register::PdInvalidate,
            o if o == r.hmc_error_info => Register::HmcErrorInfo,
            o if o == r.hmc_error_data => Register::HmcErrorData,
            o if o == r.crit_err => Register::CriticalError,
            _ => return None,
        };
        Some(register)
    }
}

/// All three CPUs of the engine run.
pub(crate) const CPU_READY: u32 = 0x80;
/// PE_DB_SIZE (bits 5:4) = 2: 8 MiB of doorbells.
pub(crate) const DOORBELLS_8M: u32 = 2 << 4;

/// Values of the registers that hold one.
#[derive(Debug, Default)]
pub(crate) struct Values {
    pub ccqp_high: u32,
    pub ccqp_status: u32,
    pub cqp_tail: u32,
    pub cqp_error_codes: u32,
    pub aeq_control: u32,
    pub hmc_error_info: u32,
    pub hmc_error_data: u32,
    pub critical_error: u32,
    ceq_controls: std::collections::BTreeMap<u32, u32>,
}

impl Values {
    pub fn ceq_control(&self, id: u32) -> u32 {
        self.ceq_controls.get(&id).copied().unwrap_or(0)
    }

    pub fn set_ceq_control(&mut self, id: u32, value: u32) {
        self.ceq_controls.insert(id, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_of_an_e810() {
        let at = |offset| Register::at(&layout::E810, offset);
        assert_eq!(at(0x500800), Some(Register::CqpDoorbell));
        assert_eq!(at(0x50a080), Some(Register::CcqpLow));
        assert_eq!(at(0x504400), Some(Register::SqDoorbell));
        assert_eq!(at(0x7f0000), Some(Register::SqDoorbell));
        assert_eq!(at(0x502c00), Some(Register::CqArm));
        assert_eq!(at(0x7f0040), Some(Register::UserCqArm));
        assert_eq!(at(0x15c008), Some(Register::CeqControl(2)));
        assert_eq!(at(0x15e000), None);
        assert_eq!(at(0x160000), None);
    }
}
