// SPDX-License-Identifier: GPL-2.0
//! Answering READ requests, also ones that come again.
//!
//! A READ may be long, so its responses are sent in bursts: the state is kept
//! and the rest follows when the frames sent so far are on their way.

use super::responder::Responder;
use super::{Access, Endpoint, Event, Host, Psn, Right, Source};
use crate::rdma::packet::{Aeth, Ext, Opcode, Reth, Syndrome};

/// Responses sent in one go.
const BURST: u32 = 256;

/// A READ that is being answered.
#[derive(Debug)]
pub(super) struct ReadJob {
    first_psn: Psn,
    packets: u32,
    sent: u32,
    reth: Reth,
    msn: u32,
}

/// A READ that was answered: what its sequence numbers stood for.
#[derive(Debug)]
pub(super) struct Replay {
    first_psn: Psn,
    packets: u32,
    reth: Reth,
}

impl Endpoint {
    /// Answers a READ whose rights were checked.
    pub(super) fn start_read<H: Host>(&mut self, host: &mut H, psn: Psn, packets: u32, reth: Reth) {
        let keep = self.context.ird.max(1) as usize;
        let responder = &mut self.responder;
        if responder.replays.len() >= keep {
            responder.replays.pop_front();
        }
        responder.replays.push_back(Replay {
            first_psn: psn,
            packets,
            reth,
        });
        let msn = responder.msn;
        responder.reads.push_back(ReadJob {
            first_psn: psn,
            packets,
            sent: 0,
            reth,
            msn,
        });
        self.send_read_responses(host);
    }

    /// A READ came again, whole or from a later response on. One that is no
    /// longer known, or asks for other memory, is not answered (IBA 9.7.5.1.2).
    pub(super) fn replay_read<H: Host>(&mut self, host: &mut H, psn: Psn, reth: &Reth) {
        let mtu = self.mtu() as u32;
        // The newest first: sequence numbers of an old one may be in use again.
        let known = self.responder.replays.iter().rev().find(|replay| {
            let skipped = psn.since(replay.first_psn);
            if skipped >= replay.packets {
                return false;
            }
            let bytes = skipped.saturating_mul(mtu);
            let old = &replay.reth;
            reth.rkey == old.rkey
                && reth.address == old.address.wrapping_add(u64::from(bytes))
                && Some(reth.length) <= old.length.checked_sub(bytes)
        });
        if known.is_none() {
            return;
        }
        // The rest of the first answer would only repeat what now comes.
        let Responder { reads, epsn, .. } = &mut self.responder;
        let age = epsn.since(psn);
        reads.retain(|job| epsn.since(job.first_psn.add(job.packets)) >= age);
        let job = ReadJob {
            first_psn: psn,
            packets: reth.length.div_ceil(mtu).max(1),
            sent: 0,
            reth: *reth,
            msn: self.responder.msn,
        };
        self.responder.reads.push_back(job);
        self.send_read_responses(host);
    }

    /// Sends a burst of responses, and what waits behind the last one.
    pub(super) fn send_read_responses<H: Host>(&mut self, host: &mut H) {
        let mut left = BURST;
        self.responder.resume_at = None;
        while let Some(mut job) = self.responder.reads.pop_front() {
            while job.sent < job.packets {
                if left == 0 || host.crowded() {
                    self.responder.reads.push_front(job);
                    self.responder.resume_at = Some(host.now());
                    return;
                }
                left -= 1;
                if let Err(code) = self.send_read_response(host, &job) {
                    // Rights were there and are gone: the region was taken away.
                    self.responder.reads.clear();
                    let psn = job.first_psn.add(job.sent);
                    self.send_answer(host, psn, Syndrome::RemoteAccess);
                    let event = Event {
                        code,
                        source: Source::InboundRequest,
                        wqe_index: 0,
                    };
                    return self.fail(host, event);
                }
                job.sent += 1;
            }
        }
        if let Some((psn, syndrome)) = self.responder.pending.take() {
            self.send_answer(host, psn, syndrome);
        }
        if let Some((psn, fatal)) = self.responder.fatal.take() {
            self.end(host, psn, fatal);
        }
    }

    fn send_read_response<H: Host>(&mut self, host: &mut H, job: &ReadJob) -> Result<(), u16> {
        let Some(path) = self.path(host) else {
            return Ok(());
        };
        let mtu = self.mtu();
        let start = u64::from(job.sent) * mtu as u64;
        let len = (u64::from(job.reth.length) - start).min(mtu as u64) as usize;
        let opcode = match (job.sent == 0, job.sent + 1 == job.packets) {
            (true, true) => Opcode::READ_RESPONSE_ONLY,
            (true, false) => Opcode::READ_RESPONSE_FIRST,
            (false, true) => Opcode::READ_RESPONSE_LAST,
            (false, false) => Opcode::READ_RESPONSE_MIDDLE,
        };
        let bth = self.bth(opcode, job.first_psn.add(job.sent));
        let ext = Ext {
            aeth: (opcode != Opcode::READ_RESPONSE_MIDDLE).then_some(Aeth {
                syndrome: Syndrome::Ack(0x1f),
                msn: job.msn,
            }),
            ..Ext::default()
        };
        let mut draft = host.draft(&path, &bth, &ext, len);
        if len > 0 {
            let access = Access {
                owner: self.owner(),
                stag: job.reth.rkey,
                address: job.reth.address.wrapping_add(start),
                right: Right::RemoteRead,
            };
            host.load(&access, draft.payload_mut())?;
        }
        host.transmit(draft.finish());
        Ok(())
    }
}
