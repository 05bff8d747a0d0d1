// SPDX-License-Identifier: GPL-2.0
//! Objects that need more than fields of a command: rings that are lists of
//! pages, lists of lists, large pages, live resizing, groups, a segment of
//! pages that come and go.

use super::Fuzzer;
use crate::rdma::layout;
use crate::rdma::testbench::{Driver, Queue, Rings};
use crate::testing::pair::{self, CQ, UD_QP};

/// Pages for the rings, in low memory that nothing else uses.
const POOL: u64 = 0x7_0000;
/// Pages of the pool, and who has which.
mod page {
    pub const CEQ: u64 = 0;
    pub const CQ: u64 = 1;
    pub const AEQ: u64 = 3;
    /// Four rings of up to two pages for the resized queue, in turn.
    pub const RESIZED: u64 = 5;
    /// Send and receive queue of each connection.
    pub const QP: u64 = 16;
    pub const TABLE: u64 = 32;
    pub const BACKING: u64 = 33;
    pub const GROUP: u64 = 34;
    pub const CQ_SHADOW: u64 = 35;
    /// Context, rings and shadow area of queue pair 1.
    pub const MANAGEMENT: u64 = 36;
}
/// PBLE of the pool's first page; the list goes on with the pages in order.
const LIST: u64 = 1024;
/// PBLEs of a list of lists, and of a list of 2 MiB pages.
const ROOT: u64 = 2048;
const LARGE: u64 = 4096;

/// STags of the regions made here: through two levels, of large pages, zero
/// based.
pub(super) const REGIONS: [u32; 3] = [0x2507, 0x2608, 0x2709];

/// Bits of a command: the ring is a list of pages, of one level.
const PAGED: u64 = 1 << 47 | 1 << 44;

pub(super) fn page(number: u64) -> u64 {
    POOL + number * 4096
}

/// First PBLEs of the rings of connection number `qp` of the list, and the
/// addresses behind them.
pub(super) fn paged_rings(qp: usize) -> ([u64; 2], [u64; 2]) {
    let first = page::QP + qp as u64 * 2;
    let pbles = [LIST + first, LIST + first + 1];
    (pbles, [page(first), page(first + 1)])
}

impl Fuzzer<'_> {
    /// Fills the PBLEs that name the pool's pages.
    pub(super) fn list_pool(&mut self, port: usize) {
        let pages: Vec<u64> = (0..40).map(page).collect();
        let at = self.pair.ports[port].pbles + LIST * 8;
        self.pair.put_words(port, at, &pages);
    }

    pub(super) fn object(&mut self, port: usize) {
        self.list_pool(port);
        match self.input.byte() % 8 {
            0 => self.event_queues(port),
            1 => self.completion_queue(port),
            2 | 3 => self.resize(port),
            4 | 5 => self.regions(port),
            6 => self.groups(port),
            _ => self.backing(port),
        }
    }

    /// CEQ 1 and the AEQ, as lists of pages.
    fn event_queues(&mut self, port: usize) {
        if self.input.chance(2) {
            let header = 0x16 << 32 | PAGED | 1;
            let entries = self.input.pick(&[4, 512, 513]);
            let words = [0, 0, entries, header, 0, 0, LIST + page::CEQ, 0];
            self.post_command(port, words);
        } else {
            self.post_command(port, [0, 0, 0, 0x1b << 32, 0, 0, 0, 0]);
            let header = 0x19 << 32 | PAGED;
            let entries = self.input.pick(&[4, 256, 512]);
            let words = [0, 0, entries, header, 0, 0, LIST + page::AEQ, 0];
            self.post_command(port, words);
        }
        if self.input.chance(4) {
            self.post_command(port, [0, 0, 0, 0x18 << 32 | 1, 0, 0, 0, 0]);
        }
    }

    /// A completion queue on CEQ 1 or 0, as a list of pages.
    fn completion_queue(&mut self, port: usize) {
        let queue = Queue {
            ring: 0,
            shadow: page(page::CQ_SHADOW),
            entries: self.input.pick(&[1, 128, 256]),
        };
        for opcode in [0x03, 0x05] {
            let mut words = Driver::cq_command(opcode, 9, queue);
            words[3] |= PAGED | self.input.below(2) << 22;
            words[6] = LIST + page::CQ;
            if self.input.chance(2) {
                self.post_command(port, words);
            }
        }
    }

    /// The completion queue of all queue pairs gets another ring.
    fn resize(&mut self, port: usize) {
        self.seen[port] = self.pair.consume(port, self.seen[port]);
        let first = page::RESIZED + self.input.below(4) * 2;
        let queue = Queue {
            ring: page(first),
            entries: self.input.pick(&[64, 100, 256]),
            ..self.pair.ports[port].cq
        };
        if queue.ring == self.pair.ports[port].cq.ring {
            return;
        }
        self.pair.put(port, queue.ring, &[0; 8192]);
        let mut words = Driver::cq_command(0x04, CQ, queue);
        words[3] = (words[3] | 1 << 43) & !(1 << 49);
        if self.input.chance(2) {
            words[3] |= PAGED;
            (words[4], words[6]) = (0, LIST + first);
        }
        if self.post_command(port, words) == Some(true) {
            self.pair.ports[port].cq = queue;
            self.seen[port] = 0;
            self.resizes[port] += 1;
            // The driver has emptied the old ring: it says so when it arms.
            let arm = 1 << 16 | self.resizes[port] & 0x3fff;
            self.pair.put_words(port, queue.shadow, &[0]);
            self.pair.put_words(port, queue.shadow + 32, &[arm]);
        }
    }

    fn regions(&mut self, port: usize) {
        let data = self.pair.ports[port].data;
        let pbles = self.pair.ports[port].pbles;
        let which = self.input.below(3) as usize;
        let stag = REGIONS[which];
        if self.input.chance(3) {
            let words = [0, 3 << 46, stag.into(), 0x0d << 32 | 1 << 43, 0, 0, 0, 0];
            self.post_command(port, words);
            return;
        }
        let rights = 0x1f << 48 | 1 << 53;
        let header = 0x0a << 32 | 1 << 43 | rights;
        const LARGE_PAGE: u64 = 2 << 20;
        let (start, len, kind, first) = match which {
            // 600 pages through two lists.
            0 => {
                let root = self
                    .input
                    .pick(&[[ROOT + 512, ROOT + 1024], [ROOT, 1 << 40]]);
                self.pair.put_words(port, pbles + ROOT * 8, &root);
                for (list, count) in [(ROOT + 512, 512), (ROOT + 1024, 88)] {
                    let pages: Vec<u64> = (0..count).map(|n| data + n * 4096).collect();
                    self.pair.put_words(port, pbles + list * 8, &pages);
                }
                (0, 600 * 4096, 3 << 44 | 1 << 59, ROOT)
            }
            1 => {
                let aligned = data.next_multiple_of(LARGE_PAGE);
                let pages = [aligned + LARGE_PAGE, aligned];
                self.pair.put_words(port, pbles + LARGE * 8, &pages);
                (pair::VA, 2 * LARGE_PAGE, 1 << 44 | 1 << 46 | 1 << 59, LARGE)
            }
            _ => (self.input.below(5000), 9000, 1 << 44, ROOT + 512),
        };
        let words = [
            start,
            len | 3 << 46,
            stag.into(),
            header | kind,
            0,
            0,
            first,
            0,
        ];
        self.post_command(port, words);
    }

    /// A multicast group with the datagram queue pair.
    fn groups(&mut self, port: usize) {
        if self.input.chance(3) {
            self.management(port);
            return;
        }
        let member = (4791 << 32) | (1 << 31) | u64::from(UD_QP);
        self.pair.put_words(port, page(page::GROUP), &[member]);
        let code = self.input.pick(&[0x26u64, 0x26, 0x27, 0x28]);
        let header = code << 32 | 1 << 60 | 2;
        let context = page(page::GROUP);
        let words = [0x0100_5e01_0203, 0, 1, header, context, 0, 0xe001_0203, 0];
        self.post_command(port, words);
    }

    /// The queue pair of management, number 1, with work for what arrives.
    fn management(&mut self, port: usize) {
        const ID: u32 = 1;
        const DATAGRAMS: u64 = 4;
        let rings = Rings {
            context: page(page::MANAGEMENT),
            sq: page(page::MANAGEMENT + 1),
            rq: page(page::MANAGEMENT + 2),
            shadow: page(page::MANAGEMENT + 3),
        };
        self.post_command(port, Driver::qp_command(2, ID, DATAGRAMS, 0, rings));
        let mut words = Driver::context(rings, CQ, 0);
        words[0] |= layout::qpc::IS_QP1.mask();
        words[8] |= 0x8001_0000 << 32;
        self.pair.put_words(port, rings.context, &words);
        let valid = 1 << 63;
        for n in 0..16 {
            let len = valid | 4096 << 32 | u64::from(pair::STAG);
            let receive = [pair::VA + 0x6000, len, 0, valid];
            self.pair.put_words(port, rings.rq + n * 32, &receive);
        }
        for (code, next) in [(0, 1), (1, 4), (1, 2)] {
            let words = Driver::qp_command(code, ID, DATAGRAMS, next, rings);
            self.post_command(port, words);
        }
    }

    /// The last segment, which has pages of its own: they come, are used, go.
    fn backing(&mut self, port: usize) {
        /// PBLEs of the segments before.
        const BEFORE: u64 = 262_144;
        let table = page(page::TABLE);
        let valid = self.input.chance(2);
        let entry = page(page::BACKING) | u64::from(valid);
        self.pair.put_words(port, table, &[entry]);
        // Committed right after the segment of the other PBLEs.
        let sd = self.input.pick(&[2, 3, 2, 1]);
        if self.input.chance(2) {
            let descriptor = table | 512 << 2 | u64::from(!self.input.chance(4));
            let command = sd | 1 << 31 | 1 << 15;
            self.post_command(port, [command, descriptor, 0, 0x1f << 32, 0, 0, 0, 0]);
        }
        let invalidate = layout::E810.registers.pd_inv;
        self.pair
            .write(port, invalidate.into(), sd as u32 | 1 << 15);
        if self.input.chance(2) {
            let header = 0x0a << 32 | 1 << 43 | 1 << 44 | 3 << 48 | 1 << 59;
            let words = [0, 4096 | 3 << 46, 0x2a00, header, 0, 0, BEFORE, 0];
            self.post_command(port, words);
        }
    }
}
