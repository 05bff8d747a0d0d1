// SPDX-License-Identifier: GPL-2.0
//! The register file of the E810, the LAN half of it: a table that says what
//! each register is, the decoding of an offset, and the registers that only
//! remember what was written.
//!
//! Source: the register names and offsets of the E810 datasheet, as the
//! kernel's `ice_hw_autogen.h` has them.

use std::collections::HashMap;

use super::lan::stats::{Amount, Stat};

/// A part of an admin or mailbox queue's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Base address, low half.
    BaseLow,
    /// Base address, high half.
    BaseHigh,
    /// Length, error bits and enable.
    Length,
    /// Index of the descriptor that the device handles next.
    Head,
    /// Index behind the last descriptor that the driver gave.
    Tail,
}

/// A register that does more than remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Active {
    /// The firmware admin queue, driver to device.
    SendQueue(Part),
    /// The firmware admin queue, device to driver.
    EventQueue(Part),
    /// GLINT_DYN_CTL, by vector.
    DynCtl,
    /// PFINT_OICR.
    Oicr,
    /// PFINT_OICR_ENA.
    OicrEnable,
    /// PFINT_OICR_CTL.
    OicrControl,
    /// PFINT_ALLOC: the vectors that the function has.
    VectorRange,
    /// PRTDCB_TUP2TC: the traffic class of each user priority.
    PriorityClasses,
    /// PFQF_FD_SIZE: flow-director filters that the function has taken.
    FilterSpace,
    /// PFGEN_CTRL: function reset.
    FunctionReset,
    /// GLGEN_RTRIG: core and global reset.
    ResetTrigger,
    /// GLGEN_RSTAT: where a reset stands.
    ResetStatus,
    /// QRX_CONTEXT, by word and queue.
    RxContext,
    /// QRX_CTRL, by queue.
    RxControl,
    /// QRX_TAIL, by queue.
    RxTail,
    /// QTX_COMM_DBELL, by queue.
    TxDoorbell,
    /// QTX_COMM_HEAD, by queue.
    TxHead,
    /// A statistics counter, by port or VSI.
    Stat(Stat),
}

/// What a register is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads as this value; writes change nothing.
    Constant(u32),
    /// Remembers the bits of the mask; the others keep their reset value.
    Storage {
        /// Value after reset.
        reset: u32,
        /// Bits that a write changes.
        writable: u32,
    },
    /// Does something.
    Active(Active),
}

/// An array of registers.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The datasheet's name.
    pub name: &'static str,
    /// Offset of the first one.
    pub base: u32,
    /// Number of registers.
    pub count: u32,
    /// Distance between two, 4 or 8 (a 64-bit counter).
    pub stride: u32,
    /// What they are.
    pub kind: Kind,
}

const fn new(name: &'static str, base: u32, count: u32, kind: Kind) -> Spec {
    Spec {
        name,
        base,
        count,
        stride: 4,
        kind,
    }
}

const fn stat(name: &'static str, base: u32, count: u32, stat: Stat) -> Spec {
    Spec {
        name,
        base,
        count,
        stride: 8,
        kind: Kind::Active(Active::Stat(stat)),
    }
}

const fn active(name: &'static str, base: u32, count: u32, what: Active) -> Spec {
    new(name, base, count, Kind::Active(what))
}

const fn storage(name: &'static str, base: u32, count: u32) -> Spec {
    let kind = Kind::Storage {
        reset: 0,
        writable: u32::MAX,
    };
    new(name, base, count, kind)
}

const fn constant(name: &'static str, base: u32, value: u32) -> Spec {
    new(name, base, 1, Kind::Constant(value))
}

/// Number of LAN queues that the registers have room for.
pub const QUEUES: u32 = 2048;
/// Number of vectors that the registers have room for.
pub const VECTORS: u32 = 2048;
const TX_QUEUES: u32 = 16384;
const PORTS: u32 = 8;
const VSIS: u32 = 768;

use Active as A;
use Amount::{Broadcast, Bytes, Multicast, Size, Unicast};
use Stat as S;

/// All registers of the LAN half, by offset.
#[rustfmt::skip]
pub static TABLE: &[Spec] = &[
    storage("GL_MDCK_TX_TDPU", 0x49348, 1),
    active("PF_FW_ATQBAL", 0x80000, 1, A::SendQueue(Part::BaseLow)),
    active("PF_FW_ARQBAL", 0x80080, 1, A::EventQueue(Part::BaseLow)),
    active("PF_FW_ATQBAH", 0x80100, 1, A::SendQueue(Part::BaseHigh)),
    active("PF_FW_ARQBAH", 0x80180, 1, A::EventQueue(Part::BaseHigh)),
    active("PF_FW_ATQLEN", 0x80200, 1, A::SendQueue(Part::Length)),
    active("PF_FW_ARQLEN", 0x80280, 1, A::EventQueue(Part::Length)),
    active("PF_FW_ATQH", 0x80300, 1, A::SendQueue(Part::Head)),
    active("PF_FW_ARQH", 0x80380, 1, A::EventQueue(Part::Head)),
    active("PF_FW_ATQT", 0x80400, 1, A::SendQueue(Part::Tail)),
    active("PF_FW_ARQT", 0x80480, 1, A::EventQueue(Part::Tail)),
    // The firmware has no LLDP agent: DCB is the driver's business.
    constant("PRTDCB_GENC", 0x83000, 0),
    constant("PRTDCB_GENS", 0x83020, 7),
    active("PFGEN_CTRL", 0x91000, 1, A::FunctionReset),
    new("PFPM_WUS", 0x9db80, 1, Kind::Constant(0)),
    storage("PFPM_WUFC", 0x9dc00, 1),
    constant("PF_FUNC_RID", 0x9e880, 0),
    constant("PRTRPB_RDPC", 0xac260, 0),
    // All parts of the device have come up from reset, the protocol engine
    // (bit 10) too.
    constant("GLNVM_ULD", 0xb6008, 0x73b),
    // 64 KiB of shadow RAM.
    constant("GLNVM_GENS", 0xb6100, 6 << 5),
    // The flash is locked: it holds a valid image.
    constant("GLNVM_FLA", 0xb6108, 1 << 6),
    constant("GLGEN_STAT", 0xb612c, 0),
    constant("GL_MNG_FWSM", 0xb6134, 0),
    storage("PFPM_APM", 0xb8080, 1),
    constant("GLGEN_RSTCTL", 0xb8180, 0),
    active("GLGEN_RSTAT", 0xb8188, 1, A::ResetStatus),
    active("GLGEN_RTRIG", 0xb8190, 1, A::ResetTrigger),
    constant("GLGEN_MAC_LINK_TOPO", 0xb81dc, 0),
    constant("GLGEN_SWITCH_MODE_CONFIG", 0xb81e0, 0),
    constant("GL_PWR_MODE_CTL", 0xb820c, 0),
    constant("GLGEN_CLKSTAT_SRC", 0xb826c, 0),
    constant("GLPCI_CNF2", 0xbe004, 0),
    active("QTX_COMM_HEAD", 0xe0000, TX_QUEUES, A::TxHead),
    active("QRX_CTRL", 0x120000, QUEUES, A::RxControl),
    storage("QINT_TQCTL", 0x140000, TX_QUEUES),
    storage("QINT_RQCTL", 0x150000, QUEUES),
    storage("GLINT_ITR", 0x154000, 3 * VECTORS),
    storage("GLINT_RATE", 0x15a000, VECTORS),
    active("GLINT_DYN_CTL", 0x160000, VECTORS, A::DynCtl),
    storage("GLINT_VECT2FUNC", 0x162000, VECTORS),
    storage("PFINT_MBX_CTL", 0x16b280, 1),
    storage("PFINT_SB_CTL", 0x16b600, 1),
    storage("PFINT_FW_CTL", 0x16c800, 1),
    active("PFINT_OICR_ENA", 0x16c900, 1, A::OicrEnable),
    storage("PFINT_TSYN_MSK", 0x16c980, 1),
    active("PFINT_OICR", 0x16ca00, 1, A::Oicr),
    active("PFINT_OICR_CTL", 0x16ca80, 1, A::OicrControl),
    storage("GLINT_CTL", 0x16cc54, 1),
    active("PFINT_ALLOC", 0x1d2600, 1, A::VectorRange),
    active("PRTDCB_TUP2TC", 0x1d26c0, 1, A::PriorityClasses),
    constant("PRTMAC_HSEC_CTL_TX_PAUSE_QUANTA", 0x1e37e0, 0),
    constant("PRTMAC_HSEC_CTL_TX_PAUSE_REFRESH", 0x1e3900, 0),
    storage("GL_PREEXT_L2_PMASK0", 0x20f0fc, 3),
    storage("GL_PREEXT_L2_PMASK1", 0x20f108, 3),
    storage("PF_MBX_ATQBAL", 0x22e100, 1),
    storage("PF_MBX_ATQBAH", 0x22e180, 1),
    storage("PF_MBX_ATQLEN", 0x22e200, 1),
    storage("PF_MBX_ATQH", 0x22e280, 1),
    storage("PF_MBX_ATQT", 0x22e300, 1),
    storage("PF_MBX_ARQBAL", 0x22e380, 1),
    storage("PF_MBX_ARQBAH", 0x22e400, 1),
    storage("PF_MBX_ARQLEN", 0x22e480, 1),
    storage("PF_MBX_ARQH", 0x22e500, 1),
    storage("PF_MBX_ARQT", 0x22e580, 1),
    active("QRX_CONTEXT", 0x280000, 8 * QUEUES, A::RxContext),
    active("QRX_TAIL", 0x290000, QUEUES, A::RxTail),
    storage("QRX_ITR", 0x292000, QUEUES),
    storage("PF_MDET_RX", 0x294280, 1),
    storage("GL_MDET_RX", 0x294c00, 1),
    active("GLV_RDPC", 0x294c04, VSIS, A::Stat(S::VsiRxDiscards)),
    active("QTX_COMM_DBELL", 0x2c0000, TX_QUEUES, A::TxDoorbell),
    storage("PF_MDET_TX_PQM", 0x2d2c80, 1),
    storage("GL_MDET_TX_PQM", 0x2d2e00, 1),
    stat("GLV_GOTC", 0x300000, VSIS, S::VsiTx(Bytes)),
    stat("GLV_UPTC", 0x30a000, VSIS, S::VsiTx(Unicast)),
    stat("GLV_MPTC", 0x30c000, VSIS, S::VsiTx(Multicast)),
    stat("GLV_BPTC", 0x30e000, VSIS, S::VsiTx(Broadcast)),
    active("GLV_TEPC", 0x312000, VSIS, A::Stat(S::VsiTxErrors)),
    stat("GLPRT_GORC", 0x380000, PORTS, S::PortRx(Bytes)),
    stat("GLPRT_MLFC", 0x380040, PORTS, S::Zero),
    stat("GLPRT_MRFC", 0x380080, PORTS, S::Zero),
    stat("GLPRT_CRCERRS", 0x380100, PORTS, S::Zero),
    stat("GLPRT_RLEC", 0x380140, PORTS, S::Zero),
    stat("GLPRT_ILLERRC", 0x3801c0, PORTS, S::Zero),
    stat("GLPRT_RUC", 0x380200, PORTS, S::Zero),
    stat("GLPRT_ROC", 0x380240, PORTS, S::PortRxOversize),
    stat("GLPRT_LXONRXC", 0x380280, PORTS, S::Zero),
    stat("GLPRT_LXOFFRXC", 0x3802c0, PORTS, S::Zero),
    stat("GLPRT_PXONRXC", 0x380300, 8 * PORTS, S::Zero),
    stat("GLPRT_PXOFFRXC", 0x380500, 8 * PORTS, S::Zero),
    stat("GLPRT_RXON2OFFCNT", 0x380700, 8 * PORTS, S::Zero),
    stat("GLPRT_PRC64", 0x380900, PORTS, S::PortRx(Size(0))),
    stat("GLPRT_PRC127", 0x380940, PORTS, S::PortRx(Size(1))),
    stat("GLPRT_PRC255", 0x380980, PORTS, S::PortRx(Size(2))),
    stat("GLPRT_PRC511", 0x3809c0, PORTS, S::PortRx(Size(3))),
    stat("GLPRT_PRC1023", 0x380a00, PORTS, S::PortRx(Size(4))),
    stat("GLPRT_PRC1522", 0x380a40, PORTS, S::PortRx(Size(5))),
    stat("GLPRT_PRC9522", 0x380a80, PORTS, S::PortRx(Size(6))),
    stat("GLPRT_RFC", 0x380ac0, PORTS, S::Zero),
    stat("GLPRT_RJC", 0x380b00, PORTS, S::Zero),
    stat("GLPRT_GOTC", 0x380b40, PORTS, S::PortTx(Bytes)),
    stat("GLPRT_PTC64", 0x380b80, PORTS, S::PortTx(Size(0))),
    stat("GLPRT_PTC127", 0x380bc0, PORTS, S::PortTx(Size(1))),
    stat("GLPRT_PTC255", 0x380c00, PORTS, S::PortTx(Size(2))),
    stat("GLPRT_PTC511", 0x380c40, PORTS, S::PortTx(Size(3))),
    stat("GLPRT_PTC1023", 0x380c80, PORTS, S::PortTx(Size(4))),
    stat("GLPRT_PTC1522", 0x380cc0, PORTS, S::PortTx(Size(5))),
    stat("GLPRT_PTC9522", 0x380d00, PORTS, S::PortTx(Size(6))),
    stat("GLPRT_PXONTXC", 0x380d40, 8 * PORTS, S::Zero),
    stat("GLPRT_PXOFFTXC", 0x380f40, 8 * PORTS, S::Zero),
    stat("GLPRT_LXONTXC", 0x381140, PORTS, S::Zero),
    stat("GLPRT_LXOFFTXC", 0x381180, PORTS, S::Zero),
    stat("GLPRT_UPTC", 0x3811c0, PORTS, S::PortTx(Unicast)),
    stat("GLPRT_MPTC", 0x381200, PORTS, S::PortTx(Multicast)),
    stat("GLPRT_BPTC", 0x381240, PORTS, S::PortTx(Broadcast)),
    stat("GLPRT_TDOLD", 0x381280, PORTS, S::PortTxLinkDown),
    stat("GLPRT_UPRC", 0x381300, PORTS, S::PortRx(Unicast)),
    stat("GLPRT_MPRC", 0x381340, PORTS, S::PortRx(Multicast)),
    stat("GLPRT_BPRC", 0x381380, PORTS, S::PortRx(Broadcast)),
    stat("GLSTAT_FD_CNT0", 0x3a0000, 4096, S::Zero),
    stat("GLV_GORC", 0x3b0000, VSIS, S::VsiRx(Bytes)),
    stat("GLV_UPRC", 0x3b2000, VSIS, S::VsiRx(Unicast)),
    stat("GLV_MPRC", 0x3b4000, VSIS, S::VsiRx(Multicast)),
    stat("GLV_BPRC", 0x3b6000, VSIS, S::VsiRx(Broadcast)),
    // Parser, hash and flow-director tables: the package says how they work,
    // and this device does not interpret a package.
    storage("GLQF_HSYMM", 0x40f000, 768),
    storage("GLQF_HMASK", 0x40fc00, 32),
    storage("GLQF_HMASK_SEL", 0x410000, 128),
    storage("GLQF_FDMASK_SEL", 0x410400, 128),
    storage("GLQF_FDMASK", 0x410800, 32),
    storage("GLQF_FDINSET", 0x412000, 768),
    storage("GLQF_FDSWAP", 0x413000, 768),
    storage("PFQF_FD_ENA", 0x43a000, 1),
    storage("GLFLXP_RXDID_FLAGS", 0x45d000, 5 * 64),
    // Flow-director filters: 512 guaranteed, 512 best effort.
    constant("GLQF_FD_SIZE", 0x460010, 512 << 16 | 512),
    active("PFQF_FD_SIZE", 0x460100, 1, A::FilterSpace),
    storage("QRXFLXP_CNTXT", 0x480000, QUEUES),
];

/// Looks up the register at `offset`: its array and its number in that.
pub fn decode(offset: u32) -> Option<(&'static Spec, u32)> {
    let after = TABLE.partition_point(|s| s.base <= offset);
    let spec = TABLE.get(after.checked_sub(1)?)?;
    let at = offset - spec.base;
    // A 64-bit counter can also be read by its halves.
    let index = at / spec.stride;
    (index < spec.count && at % 4 == 0).then_some((spec, index))
}

/// Returns the offset of register `index` of the array called `name`.
pub fn offset(name: &str, index: u32) -> u32 {
    let spec = TABLE.iter().find(|s| s.name == name).expect("register");
    spec.base + index * spec.stride
}

/// The registers that only remember.
#[derive(Debug, Default)]
pub struct Storage {
    values: HashMap<u32, u32>,
}

impl Storage {
    /// Reads the register at `offset`, which is of this `kind`.
    pub fn read(&self, kind: Kind, offset: u32) -> u32 {
        match kind {
            Kind::Constant(value) => value,
            Kind::Storage { reset, .. } => self.values.get(&offset).copied().unwrap_or(reset),
            Kind::Active(_) => 0,
        }
    }

    /// Writes the register at `offset`, which is of this `kind`.
    pub fn write(&mut self, kind: Kind, offset: u32, value: u32) {
        if let Kind::Storage { reset, writable } = kind {
            self.values
                .insert(offset, reset & !writable | value & writable);
        }
    }

    /// Reads the control register of an interrupt cause.
    pub fn cause(&self, base: u32, index: u32) -> u32 {
        self.values.get(&(base + index * 4)).copied().unwrap_or(0)
    }

    /// Function reset.
    pub fn reset(&mut self) {
        self.values.clear();
    }
}

/// QINT_TQCTL, the cause control register of a Tx queue.
pub const QINT_TQCTL: u32 = 0x140000;
/// QINT_RQCTL, the cause control register of an Rx queue.
pub const QINT_RQCTL: u32 = 0x150000;
/// PFINT_FW_CTL, the cause control register of the admin queue's events.
pub const PFINT_FW_CTL: u32 = 0x16c800;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_disjoint() {
        for pair in TABLE.windows(2) {
            let end = pair[0].base + pair[0].count * pair[0].stride;
            assert!(end <= pair[1].base, "{} {}", pair[0].name, pair[1].name);
        }
    }

    #[test]
    fn decodes() {
        let (spec, index) = decode(0x16_0014).unwrap();
        assert_eq!((spec.name, index), ("GLINT_DYN_CTL", 5));
        let (spec, index) = decode(0x28_2004).unwrap();
        assert_eq!((spec.name, index), ("QRX_CONTEXT", 2049));
        let (spec, index) = decode(0x38_000c).unwrap();
        assert_eq!((spec.name, index), ("GLPRT_GORC", 1));
        assert!(decode(0).is_none());
        assert!(decode(0x50_a100).is_none());
        assert!(decode(0x8_0002).is_none());
    }

    #[test]
    fn storage_masks() {
        let mut storage = Storage::default();
        let kind = Kind::Storage {
            reset: 0xf0,
            writable: 0x0f,
        };
        assert_eq!(storage.read(kind, 4), 0xf0);
        storage.write(kind, 4, u32::MAX);
        assert_eq!(storage.read(kind, 4), 0xff);
        storage.write(Kind::Constant(7), 8, 1);
        assert_eq!(storage.read(Kind::Constant(7), 8), 7);
        storage.reset();
        assert_eq!(storage.read(kind, 4), 0xf0);
    }
}
