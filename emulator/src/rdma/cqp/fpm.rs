// SPDX-License-Identifier: GPL-2.0
//! Commands on the function-private memory.

use serde_json::json;

use super::super::backing;
use super::super::fpm::{self, Plan};
use super::super::layout::{hmc, wqe};
use super::super::Rdma;
use super::{read_words, Command, Done, Failure, Outcome};
use crate::context::Context;

pub(super) fn query(cx: &mut Context<'_>, c: &Command) -> Outcome {
    write(cx, c.words[4], &fpm::query())
}

fn write(cx: &mut Context<'_>, address: u64, words: &[u64]) -> Outcome {
    cx.trace("context", || json!({"fpm": address, "words": words}));
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    match cx.write("FPM buffer", address, &bytes) {
        Ok(()) => Ok(Done::OK),
        Err(_) => Err(Failure::INVALID_MEMORY),
    }
}

pub(super) fn commit(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let length = c.head(wqe::BUFFER_LENGTH);
    if length != hmc::COMMIT_LENGTH as u64 {
        let text = format!("a buffer of {length} bytes");
        return Err(c.refuse(cx, Failure::INVALID_COMMAND, text));
    }
    if !rdma.hmc.is_empty() {
        let text = "counts change under valid segment descriptors";
        return Err(c.refuse(cx, Failure::INVALID_STATE, text));
    }
    let address = c.words[4];
    let mut words: [u64; hmc::COMMIT_LENGTH / 8] = read_words(cx, "FPM buffer", address)?;
    cx.trace(
        "context",
        || json!({"fpm": address, "words": words.to_vec()}),
    );
    let plan = Plan::from_commit(rdma.layout, &words).map_err(|error| {
        let text = format!(
            "{:?}: {} wanted, {} offered",
            error.object, error.wanted, error.max
        );
        c.refuse(cx, Failure::EXHAUSTED, text)
    })?;
    plan.answer(&mut words);
    rdma.hmc.plan = Some(plan);
    write(cx, address, &words)
}

pub(super) fn pages_allocated(rdma: &mut Rdma, cx: &mut Context<'_>) -> Outcome {
    rdma.hmc.check_static(cx);
    Ok(Done::OK)
}

/// Bytes of an entry in the list that continues a command.
const ENTRY: u64 = 16;
/// The list's address is 128-byte aligned; the bits below hold the function.
const LIST: u64 = !0x7f;

pub(super) fn update_sds(rdma: &mut Rdma, cx: &mut Context<'_>, c: &Command) -> Outcome {
    let function = c.get(2, rdma.layout.sd_function);
    if function != u64::from(cx.port.pf_id) {
        let pf = cx.port.pf_id;
        c.violation(cx, format!("HMC function {function}, this is {pf}"));
    }
    let mut entries = vec![(c.words[0], c.words[1])];
    for at in [4, 6] {
        let (command, data) = (c.words[at], c.words[at + 1]);
        if wqe::SD_ENTRY_VALID.is_set(command) {
            entries.push((wqe::SD_COMMAND.get(command), data));
        }
    }
    let more = c.head(wqe::SD_ENTRY_COUNT);
    for number in 0..more {
        let address = (c.words[2] & LIST) + number * ENTRY;
        let entry: [u64; 2] = read_words(cx, "SD list", address)?;
        // The list holds (command, data) pairs; the command is 32 bits wide in the ring too.
        entries.push((wqe::SD_COMMAND.get(entry[0]), entry[1]));
    }
    for (command, data) in entries {
        let sd = hmc::SD_INDEX.get32(command);
        if rdma.hmc.has_sd(sd) {
            if let Some(object) = backing::in_segment(rdma, cx.memory, sd) {
                c.used(cx, format!("SD {sd} is taken from the live {object}"));
            }
        }
        rdma.hmc.write_sd(cx, &mut rdma.claims, command, data)?;
    }
    Ok(Done::OK)
}
