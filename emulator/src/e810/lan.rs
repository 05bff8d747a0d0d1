// SPDX-License-Identifier: GPL-2.0
//! The LAN queues of the function.

pub mod filter;
pub mod offload;
pub mod packet;
pub mod rss;
pub mod rx;
pub mod stats;
pub mod tx;

/// The LAN queues and their counters.
#[derive(Debug, Default)]
pub struct Lan {
    /// Tx queues.
    pub tx: tx::TxQueues,
    /// Rx queues.
    pub rx: rx::RxQueues,
    /// Counters.
    pub stats: stats::Stats,
}

impl Lan {
    /// Function reset. The counters go on.
    pub fn reset(&mut self) {
        self.tx = tx::TxQueues::default();
        self.rx = rx::RxQueues::default();
    }
}
