// SPDX-License-Identifier: GPL-2.0
//! The function as a driver sees it: through its registers.

use super::*;
use crate::bits::{le16, le32};
use crate::testing::Bench;

const SEND_RING: u64 = 0x1000;
const EVENT_RING: u64 = 0x2000;
const BUFFER: u64 = 0x4000;
const EVENT_BUFFER: u64 = 0x6000;

struct Driver {
    bench: Bench,
    nic: E810,
    tail: u32,
}

impl Driver {
    fn new() -> Self {
        let mut driver = Driver {
            bench: Bench::new(0x10000),
            nic: E810::new(Config::default()),
            tail: 0,
        };
        driver.start_queues();
        driver
    }

    fn write(&mut self, name: &str, index: u32, value: u32) {
        let offset = u64::from(regs::offset(name, index));
        let mut cx = self.bench.context();
        self.nic.write(&mut cx, offset, &value.to_le_bytes());
    }

    fn read(&mut self, name: &str, index: u32) -> u32 {
        let mut data = [0; 4];
        let offset = u64::from(regs::offset(name, index));
        self.nic.read(&mut self.bench.context(), offset, &mut data);
        u32::from_le_bytes(data)
    }

    fn start_queues(&mut self) {
        self.tail = 0;
        for (queue, ring) in [("ATQ", SEND_RING), ("ARQ", EVENT_RING)] {
            self.write(&format!("PF_FW_{queue}H"), 0, 0);
            self.write(&format!("PF_FW_{queue}T"), 0, 0);
            self.write(&format!("PF_FW_{queue}LEN"), 0, 8 | 1 << 31);
            self.write(&format!("PF_FW_{queue}BAL"), 0, ring as u32);
            self.write(&format!("PF_FW_{queue}BAH"), 0, 0);
            assert_eq!(self.read(&format!("PF_FW_{queue}BAL"), 0), ring as u32);
        }
    }

    /// Sends a command with a buffer; returns the return value and the
    /// descriptor. The buffer of the reply is in guest memory.
    fn command(&mut self, opcode: u16, params: &[u8], buffer: &[u8]) -> (u16, [u8; 32]) {
        let mut raw = [0; 32];
        let mut flags = 0u16;
        if !buffer.is_empty() {
            flags |= 0x1000 | if buffer.len() > 512 { 0x200 } else { 0 };
            raw[28..32].copy_from_slice(&(BUFFER as u32).to_le_bytes());
            self.bench.memory.write(BUFFER, buffer).unwrap();
        }
        raw[..2].copy_from_slice(&flags.to_le_bytes());
        raw[2..4].copy_from_slice(&opcode.to_le_bytes());
        raw[4..6].copy_from_slice(&(buffer.len() as u16).to_le_bytes());
        raw[16..16 + params.len()].copy_from_slice(params);
        let at = SEND_RING + u64::from(self.tail) * 32;
        self.bench.memory.write(at, &raw).unwrap();
        self.tail = (self.tail + 1) % 8;
        self.write("PF_FW_ATQT", 0, self.tail);
        assert_eq!(self.read("PF_FW_ATQH", 0), self.tail);
        self.bench.memory.read(at, &mut raw).unwrap();
        assert_eq!(le16(&raw, 0) & 3, 3);
        (le16(&raw, 6), raw)
    }

    fn reply(&self, len: usize) -> Vec<u8> {
        let mut buffer = vec![0; len];
        self.bench.memory.read(BUFFER, &mut buffer).unwrap();
        buffer
    }
}

#[test]
fn commands_complete() {
    let mut driver = Driver::new();
    let (code, raw) = driver.command(0x0001, &[], &[]);
    assert_eq!(code, 0);
    assert_eq!(raw[28..32], [0, 1, 5, 0]);
    // Nine commands go around the ring of eight.
    for _ in 0..9 {
        assert_eq!(driver.command(0x0107, &[], &[0; 16]).0, 0);
    }
    assert_eq!(driver.reply(8)[2..], driver.bench.port.mac);
    assert_eq!(driver.command(0x0108, &[0, 0, 2, 1, 2, 3, 4, 5], &[]).0, 0);
    driver.command(0x0107, &[], &[0; 16]);
    assert_eq!(driver.reply(8)[2..], [2, 1, 2, 3, 4, 5]);
    let (code, raw) = driver.command(0x7777, &[], &[]);
    assert_eq!((code, le16(&raw, 0)), (3, 7));
    assert_eq!(driver.bench.violations.count(), 1);
}

#[test]
fn link_event() {
    let mut driver = Driver::new();
    let mut raw = [0; 32];
    raw[4..6].copy_from_slice(&4096u16.to_le_bytes());
    raw[28..32].copy_from_slice(&(EVENT_BUFFER as u32).to_le_bytes());
    driver.bench.memory.write(EVENT_RING, &raw).unwrap();
    driver.write("PF_FW_ARQT", 0, 7);
    driver.write("PFINT_FW_CTL", 0, 1 << 30 | 5);
    driver.write("GLINT_DYN_CTL", 5, 1);
    driver.command(0x0607, &[0, 0, 3, 0], &[0; 32]);
    driver.bench.port.link_up = false;
    driver.nic.link_changed(&mut driver.bench.context());
    assert_eq!(driver.read("PF_FW_ARQH", 0), 1);
    driver.bench.memory.read(EVENT_RING, &mut raw).unwrap();
    assert_eq!((le16(&raw, 2), le16(&raw, 18)), (0x0607, 1));
    assert_eq!(driver.bench.interrupts.messages(5), 1);
    assert_eq!(driver.bench.violations.count(), 0);
}

#[test]
fn queue_sets_are_leaves() {
    let mut driver = Driver::new();
    driver.command(0x0400, &[], &[0; 4096]);
    let generic = le32(&driver.reply(128), 8 + 3 * 24 + 4);
    let mut buffer = generic.to_le_bytes().to_vec();
    buffer.extend([1, 0, 0, 0]);
    buffer.extend(7u16.to_le_bytes());
    buffer.extend([0; 22]);
    assert_eq!(driver.command(0x0c33, &[1], &buffer).0, 0);
    let teid = le32(&driver.reply(32), 12);
    assert_eq!(driver.nic.qsets.get(&7), Some(&teid));
    let mut disable = generic.to_le_bytes().to_vec();
    disable.extend([1, 0]);
    disable.extend((7u16 | 1 << 15).to_le_bytes());
    assert_eq!(driver.command(0x0c31, &[0, 1], &disable).0, 0);
    assert!(driver.nic.qsets.is_empty());
    assert_eq!(driver.command(0x0c31, &[0, 1], &disable).0, 2);
}

#[test]
fn function_reset_forgets() {
    let mut driver = Driver::new();
    driver.write("QINT_TQCTL", 3, 5);
    driver.command(0x0208, &[], &[0x60, 0, 1, 0, 9, 9]);
    driver.write("PFGEN_CTRL", 0, 1);
    assert_eq!(driver.read("PFGEN_CTRL", 0), 0);
    assert_eq!(driver.read("QINT_TQCTL", 3), 0);
    assert_eq!(driver.read("PF_FW_ATQLEN", 0), 0);
    driver.start_queues();
    driver.command(0x0208, &[], &[0x60, 0, 1, 0, 9, 9]);
    assert_eq!(le16(&driver.reply(6), 4), 0);
}

#[test]
fn core_reset_announces_itself() {
    let mut driver = Driver::new();
    driver.write("PFINT_OICR_CTL", 0, 1 << 30);
    driver.write("PFINT_OICR_ENA", 0, cause::GRST);
    driver.write("GLINT_DYN_CTL", 0, 1);
    driver.write("GLGEN_RTRIG", 0, 1);
    assert_eq!(driver.bench.interrupts.messages(0), 1);
    assert_eq!(driver.read("PFINT_OICR", 0), cause::GRST);
    assert_eq!(driver.read("GLGEN_RSTAT", 0), 0b0101);
    let at = driver.nic.next_deadline().unwrap();
    driver.bench.now = at;
    driver.nic.poll(&mut driver.bench.context());
    assert_eq!(driver.read("GLGEN_RSTAT", 0), 0b0100);
    assert_eq!(driver.read("PF_FW_ATQLEN", 0), 0);
}

#[test]
fn failed_function_is_forgiving() {
    let mut driver = Driver::new();
    let incident = Incident::CriticalError(5);
    driver.nic.incident(&mut driver.bench.context(), incident);
    driver.write("QTX_COMM_DBELL", 1, 0);
    assert_eq!(driver.bench.violations.count(), 0);
    driver.start_queues();
    driver.write("QTX_COMM_DBELL", 1, 0);
    assert_eq!(driver.bench.violations.count(), 1);
}

#[test]
fn odd_accesses() {
    let mut driver = Driver::new();
    let mut cx = driver.bench.context();
    let mut data = [0; 8];
    driver.nic.read(&mut cx, 0x380000, &mut data);
    driver.nic.read(&mut cx, 0xb6101, &mut data[..1]);
    assert_eq!(cx.violations.count(), 0);
    driver.nic.read(&mut cx, 0x380004, &mut data);
    driver.nic.write(&mut cx, 0x380000, &[0; 2]);
    driver.nic.read(&mut cx, BAR0_SIZE, &mut data);
    driver.nic.write(&mut cx, 0x80200, &[0xff; 4]);
    driver.nic.write(&mut cx, 0x80400, &[0xff; 4]);
    driver.nic.read(&mut cx, 0, &mut data[..4]);
    assert!(cx.violations.count() >= 4);
}

#[test]
fn frames_reach_the_queue_of_their_vsi() {
    let mut driver = Driver::new();
    let mut frame = driver.bench.port.mac.to_vec();
    frame.resize(60, 0);
    let nic = &mut driver.nic;
    let mut cx = driver.bench.context();
    nic.receive(&mut cx, &frame);
    let vsi = adminq::switch::tests::add(&mut nic.switch, &mut cx, &[]);
    let mut header = [0; 16];
    header[..6].copy_from_slice(&frame[..6]);
    adminq::switch::tests::add_rule(&mut nic.switch, &mut cx, 1, vsi, &header);
    nic.receive(&mut cx, &frame);
    // The queue is not running: the frame is counted and dropped.
    assert_eq!(nic.lan.stats.vsi(vsi).rx_discards, 1);
    assert_eq!(driver.read("GLV_RDPC", u32::from(vsi)), 1);
    assert_eq!(driver.read("GLPRT_UPRC", 0), 2);
}

#[test]
fn accesses_of_odd_lengths_and_places() {
    let mut driver = Driver::new();
    let mut cx = driver.bench.context();
    let bad = [
        (0xb6100, 0),
        (0xb6103, 3),
        (0xb6102, 4),
        (0xb6100, 16),
        (BAR0_SIZE, 1),
        (BAR0_SIZE - 4, 8),
        (u64::MAX, 1),
        (u64::MAX - 7, 8),
    ];
    for (n, (offset, len)) in (1..).step_by(2).zip(bad) {
        let mut data = vec![0xa5; len];
        driver.nic.read(&mut cx, offset, &mut data);
        assert_eq!(cx.violations.count(), n, "read of {len} at {offset:#x}");
        assert!(data.iter().all(|&byte| byte == 0xa5));
        driver.nic.write(&mut cx, offset, &data);
        assert_eq!(
            cx.violations.count(),
            n + 1,
            "write of {len} at {offset:#x}"
        );
    }
}

#[test]
fn traffic_classes_are_made_as_the_driver_asks() {
    let mut driver = Driver::new();
    let classes = |driver: &mut Driver| {
        assert_eq!(driver.command(0x040e, &[], &[0; 64]).0, 0);
        driver.reply(64)
    };
    let first = classes(&mut driver);
    assert_eq!((first[0], first[8], le32(&first, 4)), (1, 100, 0));
    let node = le32(&first, 32);
    assert_eq!(le32(&first, 36), u32::MAX);
    let unit = adminq::dcb::tests::unit();
    assert_eq!(driver.command(0x0a08, &[0], &unit).0, 0);
    let three = classes(&mut driver);
    // Priorities 0 to 2 in class 0, 3 and 4 in 1, the others in 2.
    let priorities = 1 << 9 | 1 << 12 | 2 << 15 | 2 << 18 | 2 << 21;
    assert_eq!((three[0], le32(&three, 4)), (7, priorities));
    assert_eq!(driver.read("PRTDCB_TUP2TC", 0), priorities);
    assert_eq!(three[8..16], [50, 30, 20, 0, 0, 0, 0, 0]);
    assert_eq!(le32(&three, 32), node);
    let (second, third) = (le32(&three, 36), le32(&three, 40));
    assert!(second != third && second != node && third != u32::MAX);
    assert_eq!(le32(&three, 44), u32::MAX);
    // The new node is a class below the root, and takes children.
    let mut element = [0; 24];
    element[4..8].copy_from_slice(&second.to_le_bytes());
    assert_eq!(driver.command(0x0404, &[1, 0], &element).0, 0);
    let element = driver.reply(24);
    assert_eq!((element[8], le32(&element, 4)), (2, second));
    // Back to one class, and again: the nodes are the same ones.
    let mut one = unit.clone();
    one[7..11].fill(0);
    driver.command(0x0a08, &[0], &one);
    assert_eq!(classes(&mut driver)[0], 1);
    driver.command(0x0a08, &[0], &unit);
    assert_eq!(le32(&classes(&mut driver), 36), second);
    assert_eq!(driver.bench.violations.count(), 0);
}
