// SPDX-License-Identifier: GPL-2.0
//! A driver for tests and benchmarks: it lays out memory, posts commands and polls completions as a real one does.
//! What it expects of the device and does not get makes it panic.

use super::layout::qpc;
use super::{Rdma, RdmaConfig};
use crate::context::Context;
use crate::testing::Bench;

/// Memory of the test machine.
const MEMORY: u64 = 96 << 20;
/// Entries of the control queue (size code 5).
const CQP_ENTRIES: u32 = 64;
const CCQ_ENTRIES: u32 = 66;

/// The answer to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The command failed.
    pub error: bool,
    /// Major code.
    pub major: u16,
    /// Minor code.
    pub minor: u16,
    /// The operation's value.
    pub value: u32,
    /// The command's place in the ring.
    pub index: u32,
}

/// The rings of a queue pair that the test made.
#[derive(Debug, Clone, Copy)]
pub struct Rings {
    /// The context that commands point to.
    pub context: u64,
    /// Send queue.
    pub sq: u64,
    /// Receive queue.
    pub rq: u64,
    /// Shadow area.
    pub shadow: u64,
}

/// Memory of a completion queue that the test made.
#[derive(Debug, Clone, Copy)]
pub struct Queue {
    /// Ring.
    pub ring: u64,
    /// Shadow area.
    pub shadow: u64,
    /// Entries of the ring.
    pub entries: u32,
}

/// The driver of one function.
pub struct Driver {
    /// What the function uses.
    pub bench: Bench,
    /// The function.
    pub rdma: Rdma,
    /// Queue pairs that are committed.
    qps: u64,
    next: u64,
    cqp: u64,
    head: u32,
    polarity: bool,
    ccq: Queue,
    ccq_head: u32,
    /// Ring of CEQ 0.
    pub ceq0: u64,
    /// Ring of the AEQ.
    pub aeq: u64,
}

impl Driver {
    /// A function after reset.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        let none = Queue {
            ring: 0,
            shadow: 0,
            entries: 0,
        };
        Self {
            bench: Bench::new(MEMORY),
            rdma: Rdma::new(RdmaConfig::default()),
            qps: 64,
            // Zero is no address.
            next: 0x10_0000,
            cqp: 0,
            head: 0,
            polarity: true,
            ccq: none,
            ccq_head: 0,
            ceq0: 0,
            aeq: 0,
        }
    }

    /// A function that a driver has brought up: control queue, memory, CCQ, CEQ 0, AEQ, a queue set (handle 1) and
    /// two ARP entries.
    pub fn probed() -> Self {
        Self::sized(64)
    }

    /// Like [`Self::probed`], with memory for so many queue pairs.
    pub fn sized(qps: u32) -> Self {
        let mut d = Self::new();
        d.qps = qps.into();
        d.create_cqp();
        d.commit_memory();
        d.create_event_queues();
        d.create_tree();
        for (index, last) in [(1u64, 1u64), (2, 2)] {
            d.ok([
                0,
                0,
                0x0200_0000_0000 | last,
                (1 << 42) | (0x0f << 32) | index,
                0,
                0,
                0,
                0,
            ]);
        }
        d
    }

    /// Takes memory.
    pub fn alloc(&mut self, len: u64, align: u64) -> u64 {
        let address = self.next.next_multiple_of(align);
        self.next = address + len;
        assert!(self.next <= MEMORY, "test memory is used up");
        address
    }

    /// Runs `f` with the function and its surroundings.
    pub fn with<T>(&mut self, f: impl FnOnce(&mut Rdma, &mut Context<'_>) -> T) -> T {
        f(&mut self.rdma, &mut self.bench.context())
    }

    /// Writes a register of the RDMA half.
    pub fn write_register(&mut self, offset: u32, value: u32) {
        assert!(self.with(|rdma, cx| rdma.write(cx, offset, value)));
    }

    /// Reads a register of the RDMA half.
    pub fn read_register(&mut self, offset: u32) -> u32 {
        self.with(|rdma, cx| rdma.read(cx, offset)).unwrap()
    }

    /// Writes quad words to memory.
    pub fn put(&self, address: u64, words: &[u64]) {
        for (offset, word) in (0..).step_by(8).zip(words) {
            self.bench
                .memory
                .write_u64(address + offset, *word)
                .unwrap();
        }
    }

    /// Reads a quad word of memory.
    pub fn peek(&self, address: u64) -> u64 {
        self.bench.memory.read_u64(address).unwrap()
    }

    /// The kinds of the violations so far.
    pub fn violations(&self) -> Vec<String> {
        let all = self.bench.violations.all();
        all.iter()
            .map(|v| format!("{}: {}", v.kind, v.text))
            .collect()
    }

    /// Creates the control queue.
    pub fn create_cqp(&mut self) {
        let context = self.alloc(64, 64);
        self.cqp = self.alloc(u64::from(CQP_ENTRIES) * 64, 512);
        self.head = 0;
        self.polarity = true;
        let words = [
            0x500 | (2 << 3),
            self.cqp,
            1,
            0xffff_8880_0000_1000,
            1 << 16,
            0,
            0,
            0,
        ];
        self.put(context, &words);
        self.write_register(0x50_a100, (context >> 32) as u32);
        self.write_register(0x50_a080, context as u32);
        assert_eq!(self.read_register(0x50_a000), 1);
    }

    /// Posts a command (without valid bit) and rings for it.
    pub fn post(&mut self, mut words: [u64; 8]) -> u32 {
        let index = self.head;
        words[3] |= u64::from(self.polarity) << 63;
        self.put(self.cqp + u64::from(index) * 64, &words);
        self.head = (self.head + 1) % CQP_ENTRIES;
        if self.head == 0 {
            self.polarity = !self.polarity;
        }
        let head = self.head;
        self.write_register(0x50_0800, head);
        index
    }

    /// Where the next command goes: its address, the doorbell's value behind it and its valid bit.
    pub fn cqp_place(&self) -> (u64, u32, bool) {
        let head = (self.head + 1) % CQP_ENTRIES;
        (self.cqp + u64::from(self.head) * 64, head, self.polarity)
    }

    /// Polls the control completion queue.
    pub fn poll_ccq(&mut self) -> Option<Reply> {
        let at = self.ccq.ring + u64::from(self.ccq_head % self.ccq.entries) * 32;
        let header = self.peek(at + 24);
        let polarity = (self.ccq_head / self.ccq.entries) % 2 == 0;
        if (header >> 63 == 1) != polarity {
            return None;
        }
        assert_eq!(self.peek(at + 8), 0xffff_8880_0000_1000);
        self.ccq_head += 1;
        let consumer = u64::from(self.ccq_head % self.ccq.entries);
        self.put(self.ccq.shadow, &[consumer]);
        Some(Reply {
            error: header >> 55 & 1 == 1,
            major: (header >> 16) as u16,
            minor: header as u16,
            value: self.peek(at + 16) as u32,
            index: (header >> 32) as u32 & 0x7fff,
        })
    }

    /// The control completion queue.
    pub fn ccq(&self) -> Queue {
        self.ccq
    }

    /// Posts a command and returns its completion.
    pub fn command(&mut self, words: [u64; 8]) -> Reply {
        let index = self.post(words);
        let reply = self.poll_ccq().expect("no completion");
        assert_eq!(reply.index, index);
        reply
    }

    /// Posts a command that must succeed.
    pub fn ok(&mut self, words: [u64; 8]) -> Reply {
        let reply = self.command(words);
        assert!(!reply.error, "{reply:x?} {:?}", self.violations());
        reply
    }

    /// Posts a command before there is a completion queue; true if it succeeded.
    pub fn polled(&mut self, words: [u64; 8]) -> bool {
        let index = self.post(words);
        let tail = self.read_register(0x50_0880);
        assert_eq!(tail & 0x7ff, (index + 1) % CQP_ENTRIES);
        tail >> 31 == 0
    }

    fn commit_memory(&mut self) {
        let buffer = self.alloc(208, 4096);
        assert!(self.polled([0, 0, 0, 0x20 << 32, buffer, 0, 0, 0]));
        let counts: [(u64, u64); 15] = [
            (0, self.qps),
            (8, 128),
            (24, 512),
            (32, 64),
            (48, 1024),
            (56, 1024),
            (64, 256),
            (72, 16384),
            (80, 4096),
            (88, 128),
            (96, 64),
            (104, 256),
            (128, 2048),
            (136, 512),
            (144, 64),
        ];
        self.put(buffer, &[0; 26]);
        for (offset, count) in counts {
            self.put(buffer + offset, &[count]);
        }
        // A segment of PBLEs, and a part of one that is paged.
        self.put(buffer + 112, &[262_144 + 1024]);
        assert!(self.polled([0, 0, 0, (0x21 << 32) | 208, buffer, 0, 0, 0]));
        let pbles = (self.peek(buffer + 112) >> 32) * 512;
        for sd in 0..=pbles >> 21 {
            let block = self.alloc(2 << 20, 2 << 20);
            assert!(self.set_sd(sd, block | (512 << 2) | 3));
        }
        assert!(self.polled([0, 0, 0, 0x2b << 32, 0, 0, 0, 0]));
        assert_eq!(self.violations(), Vec::<String>::new());
    }

    /// Writes a segment descriptor; true if the device took it.
    pub fn set_sd(&mut self, index: u64, data: u64) -> bool {
        let command = index | (1 << 31) | (1 << 15);
        self.polled([command, data, 0, 0x1f << 32, 0, 0, 0, 0])
    }

    fn create_event_queues(&mut self) {
        let queue = Queue {
            ring: self.alloc(u64::from(CCQ_ENTRIES) * 32, 256),
            shadow: self.alloc(64, 64),
            entries: CCQ_ENTRIES,
        };
        self.ccq = queue;
        let header = (1 << 49) | (1 << 46) | (0x03 << 32);
        self.ok([
            CCQ_ENTRIES.into(),
            0,
            16,
            header,
            queue.ring,
            queue.shadow,
            0,
            0,
        ]);
        self.ceq0 = self.alloc(128 * 8, 256);
        self.ok([0, 0, 128, 0x16 << 32, self.ceq0, 0, 0, 0]);
        self.aeq = self.alloc(192 * 16, 256);
        self.ok([0, 0, 192, 0x19 << 32, self.aeq, 0, 0, 0]);
        // Vector 4 for asynchronous events, 5 for CEQ 0.
        self.write_register(0x16_cb00, (1 << 30) | 4);
        self.write_register(0x15_c000, (1 << 30) | 5);
        for vector in [4, 5] {
            self.bench.interrupts.write_dyn_ctl(vector, 1);
        }
    }

    fn create_tree(&mut self) {
        let vsi = 1u64 << 48;
        let op = 0x2c << 32;
        self.ok([0, 0, 0, op, vsi, 0, 0, 0]);
        self.ok([0, 0, 0, op | 1, vsi, 0, 0, 0]);
        let leaf = op | (1 << 61) | (1 << 16) | 2;
        let handle = self.ok([0, 0, 0, leaf, vsi, 0, 0, 0]).value;
        assert_eq!(handle, 1);
        self.rdma.add_qset(handle as u16, 100, 10);
        self.ok([0, 0, 0, leaf | (1 << 62) | (1 << 52), vsi, 0, 0, 0]);
    }

    /// Creates a completion queue on CEQ 0.
    pub fn create_cq(&mut self, id: u32, entries: u32) -> Queue {
        let queue = Queue {
            ring: self.alloc(u64::from(entries) * 32, 256),
            shadow: self.alloc(64, 64),
            entries,
        };
        self.ok(Self::cq_command(0x03, id, queue));
        queue
    }

    /// CREATE_CQ, MODIFY_CQ or DESTROY_CQ.
    pub fn cq_command(opcode: u64, id: u32, queue: Queue) -> [u64; 8] {
        // Drivers set the CEQE mask bit (48): events come only when the queue is armed.
        let header = u64::from(id) | (3 << 48) | (1 << 46) | (opcode << 32);
        [
            queue.entries.into(),
            id.into(),
            0,
            header,
            queue.ring,
            queue.shadow,
            0,
            1 << 8,
        ]
    }

    /// A RoCEv2 context between 10.0.0.1 and 10.0.0.2: PD 3, 64 quanta of SQ, 32 of RQ, queue set 1, ARP entry 2.
    pub fn context(rings: Rings, cq: u32, dest_qp: u32) -> [u64; qpc::LENGTH / 8] {
        let cq = u64::from(cq);
        let mut w = [0u64; qpc::LENGTH / 8];
        w[0] = 1 << 3;
        w[1] = rings.sq;
        w[2] = rings.rq;
        w[3] = 64 | (3 << 8) | (4 << 12) | (0xc001 << 32) | (4791 << 48);
        w[4] = 0x0a00_0002;
        w[6] = (1024 << 16) | (2 << 48);
        w[7] = (0xffff << 32) | (3 << 48);
        w[8] = u64::from(dest_qp);
        w[10] = 0x100;
        w[11] = 0x200;
        w[12] = 0x100 | (0x100 << 32);
        w[16] = (7 << 48) | (6 << 54) | (5 << 57);
        w[17] = cq | (cq << 32);
        w[19] = 0x0200_0000_0001_0000;
        w[20] = 127 | (4 << 16) | (3 << 20) | (1 << 25);
        w[21] = 0x5000 + u64::from(dest_qp);
        w[22] = 1 << 16;
        w[23] = 0x0a00_0001;
        w
    }

    /// Creates a connected-type (3) or datagram-type (4) queue pair whose queues complete to `cq`.
    pub fn create_qp(&mut self, id: u32, kind: u64, cq: u32, dest_qp: u32) -> Rings {
        let rings = Rings {
            context: self.alloc(256, 256),
            sq: self.alloc(64 * 32, 256),
            rq: self.alloc(32 * 32, 256),
            shadow: self.alloc(64, 64),
        };
        self.put(rings.context, &Self::context(rings, cq, dest_qp));
        self.ok(Self::qp_command(0x00, id, kind, 1, rings));
        rings
    }

    /// CREATE_QP, MODIFY_QP or DESTROY_QP.
    pub fn qp_command(opcode: u64, id: u32, kind: u64, next: u64, rings: Rings) -> [u64; 8] {
        let header = u64::from(id) | (opcode << 32) | (kind << 48) | (next << 60);
        let header = if opcode == 0x02 {
            header & !(7 << 60)
        } else {
            header
        };
        [0, 0, rings.context, header, 0, rings.shadow, 0, 0]
    }

    /// Moves a queue pair to the state `next`.
    pub fn modify_qp(&mut self, id: u32, kind: u64, next: u64, rings: Rings) -> Reply {
        self.command(Self::qp_command(0x01, id, kind, next, rings))
    }

    /// Idle, ready to receive, ready to send.
    pub fn connect_qp(&mut self, id: u32, kind: u64, rings: Rings) {
        for next in [4, 2] {
            let reply = self.modify_qp(id, kind, next, rings);
            assert!(!reply.error, "{reply:x?} {:?}", self.violations());
        }
    }

    /// Registers `len` bytes at `address` (contiguous, page aligned) under virtual address `va` with these rights.
    pub fn register(&mut self, stag: u32, va: u64, address: u64, len: u64, rights: u64) {
        let remote = u64::from(rights & 0xc != 0);
        let header = (0x0a << 32) | (1 << 43) | (rights << 48) | (remote << 53) | (1 << 59);
        self.ok([
            va,
            len | (3 << 46),
            u64::from(stag),
            header,
            address,
            0,
            0,
            0,
        ]);
    }

    /// Arms a completion queue for the next completion.
    pub fn arm(&mut self, id: u32, queue: Queue) {
        self.put(queue.shadow + 32, &[(1 << 14) | (1 << 15) | (1 << 16)]);
        self.write_register(0x50_2c00, id);
    }
}
