// SPDX-License-Identifier: GPL-2.0
//! Entries of work queues, completion queues and the event queue.

use std::collections::BTreeMap;

use super::fields::{describe, span, Fields, Kind, Span, Subject, ALL};
use super::objects::{Class, Object, Objects};
use crate::rdma::aeq::Source;
use crate::rdma::field::Field;
use crate::rdma::layout::{aeqe, cqe};
use crate::rdma::wqe::{op, Header};

/// Low half of a word: a STag, its key in the lowest byte.
const STAG: Field = Field::new(31, 8);
const KEY: Field = Field::new(7, 0);
const HIGH_STAG: Field = Field::new(63, 40);
const HIGH_KEY: Field = Field::new(39, 32);
/// Datagrams: address handle in the header; queue pair in the third word.
const HANDLE: Field = Field::new(24, 0);
const DEST_QP: Field = Field::new(55, 32);

/// The first word is immediate data.
const IMMEDIATE: u64 = 1 << 47;

/// Addresses in the order in which a queue's entries name them first.
pub(super) type Addresses = BTreeMap<u64, usize>;

fn stag(name: &'static str, word: usize) -> [Span; 2] {
    [
        span(name, word, STAG, Kind::Id(Class::Stag)),
        span("key", word, KEY, Kind::Hidden),
    ]
}

/// An entry of the send queue (`send`) or the receive queue of `qp`. Without
/// `addresses` it is only told whether there is one.
pub(super) fn entry(
    words: &[u64],
    send: bool,
    qp: Object,
    datagram: bool,
    objects: &mut Objects,
    addresses: Option<&mut Addresses>,
) -> (String, Fields) {
    let header = Header(words.get(3).copied().unwrap_or(0));
    let (mut spans, mut places): (Vec<Span>, Vec<usize>) = (vec![], vec![]);
    let mut fragments = |first: usize| {
        let used = 1 + usize::from(header.more_fragments());
        for number in first..used {
            let word = if number == 0 { 0 } else { 2 + 2 * number };
            places.push(word);
            spans.extend(stag("STag", word + 1));
        }
    };
    // Immediate data takes the first fragment's place.
    let first = usize::from(send && header.0 & IMMEDIATE != 0);
    let name = if !send {
        fragments(0);
        "receive"
    } else {
        match header.opcode() {
            opcode @ (op::SEND | op::SEND_SOL | op::SEND_INV | op::SEND_SOL_INV) => {
                if !header.is_inline() {
                    fragments(first);
                }
                if datagram {
                    spans.push(span("AH", 3, HANDLE, Kind::Id(Class::Ah)));
                    spans.push(span("peer", 2, DEST_QP, Kind::Id(Class::Peer)));
                } else if matches!(opcode, op::SEND_INV | op::SEND_SOL_INV) {
                    spans.extend(stag("invalidate", 3));
                }
                "SEND"
            }
            op::WRITE | op::WRITE_SOL => {
                if !header.is_inline() {
                    fragments(first);
                }
                places.push(2);
                spans.extend(stag("rkey", 3));
                "WRITE"
            }
            op::READ | op::READ_LOCAL_INV => {
                fragments(0);
                places.push(2);
                spans.extend(stag("rkey", 3));
                "READ"
            }
            op::LOCAL_INV => {
                spans.extend(stag("STag", 1));
                "LOCAL_INV"
            }
            op::FAST_REGISTER => {
                places.push(0);
                // The page list's index is in two parts around the address.
                spans.push(span("page list", 1, ALL, Kind::Address));
                spans.push(span("page list", 2, Field::new(63, 48), Kind::Hidden));
                spans.extend(stag("STag", 3));
                "FAST_REGISTER"
            }
            op::BIND_WINDOW => {
                places.push(0);
                spans.extend(stag("window", 1));
                spans.push(span("parent", 1, HIGH_STAG, Kind::Id(Class::Stag)));
                spans.push(span("key", 1, HIGH_KEY, Kind::Hidden));
                "BIND_WINDOW"
            }
            op::NOP => "NOP",
            _ => "unknown work",
        }
    };
    let mut fields = Fields::default();
    if let Some(addresses) = addresses {
        for &place in &places {
            let value = words.get(place).copied().unwrap_or(0);
            if value != 0 {
                let next = addresses.len() + 1;
                let number = addresses.entry(value).or_insert(next);
                fields.put(format!("address {place}"), format!("addr#{number}"));
            }
            spans.push(span("address", place, ALL, Kind::Hidden));
        }
    } else {
        for &place in &places {
            spans.push(span("address", place, ALL, Kind::Address));
        }
    }
    let subject = Subject {
        object: Some(qp),
        new: false,
    };
    describe(&mut fields, "", words, &spans, subject, objects);
    (name.to_owned(), fields)
}

/// Which queue pair a completion is for, and of which queue.
pub(super) fn completion_of(words: &[u64; 4]) -> (u64, bool) {
    (cqe::QP_ID.get(words[2]), cqe::IS_SQ.is_set(words[3]))
}

/// Whether the entry continues the one before it; such a one names no context
/// and no queue pair.
pub(super) fn is_extension(words: &[u64; 4]) -> bool {
    words[1] == 0 && cqe::QP_ID.get(words[2]) == 0 && !cqe::EXTENDED.is_set(words[3])
}

/// A completion, with the second half that was written before it.
pub(super) fn completion(
    words: &[u64; 4],
    extension: Option<&[u64; 4]>,
    datagram: bool,
    objects: &mut Objects,
) -> Fields {
    let (id, is_sq) = completion_of(words);
    let qp = (Class::Qp, id);
    let mut spans = vec![
        span("completion context", 1, ALL, Kind::Own),
        span("QP", 2, cqe::QP_ID, Kind::Id(Class::Qp)),
        span("minor", 3, cqe::MINOR, Kind::Raw),
        span("major", 3, cqe::MAJOR, Kind::Raw),
        span("WQE index", 3, cqe::WQE_INDEX, Kind::Raw),
        span("error", 3, cqe::ERROR, Kind::Raw),
        span("opcode", 3, cqe::OPCODE, Kind::Raw),
        // The place in the ring depends on what else completes there.
        span("valid", 3, cqe::VALID, Kind::Hidden),
    ];
    if !is_sq && datagram {
        spans.push(span("peer", 2, Field::new(31, 0), Kind::Id(Class::Peer)));
    } else if cqe::STAG_OR_IPV4.is_set(words[3]) {
        spans.extend(stag("invalidated", 2));
    }
    let subject = Subject {
        object: Some(qp),
        new: false,
    };
    let mut fields = Fields::default();
    describe(&mut fields, "", words, &spans, subject, objects);
    if let Some(extension) = extension {
        let spans = [span("valid", 3, cqe::VALID, Kind::Hidden)];
        describe(
            &mut fields,
            "extension: ",
            extension,
            &spans,
            subject,
            objects,
        );
    }
    fields
}

/// An asynchronous event: the object that it is about, and what it says.
pub(super) fn event(words: &[u64; 2], objects: &mut Objects) -> (String, Fields) {
    let id = aeqe::ID_LOW.get(words[1]) | (aeqe::ID_HIGH.get(words[1]) << 18);
    let source = Source::from_code(aeqe::SOURCE.get(words[1]));
    let class = match source {
        Source::Cq => Class::Cq,
        _ => Class::Qp,
    };
    let spans = [
        span("completion context", 0, ALL, Kind::Own),
        span("ID", 1, aeqe::ID_LOW, Kind::Hidden),
        span("ID", 1, aeqe::ID_HIGH, Kind::Hidden),
        span("valid", 1, aeqe::VALID, Kind::Hidden),
        span("code", 1, aeqe::CODE, Kind::Raw),
        span("source", 1, aeqe::SOURCE, Kind::Raw),
        span("QP state", 1, aeqe::QP_STATE, Kind::Raw),
        span("WQE index", 1, aeqe::WQE_INDEX, Kind::Raw),
    ];
    let subject = Subject {
        object: Some((class, id)),
        new: false,
    };
    let mut fields = Fields::default();
    describe(&mut fields, "", words, &spans, subject, objects);
    (objects.known(class, id), fields)
}
