// SPDX-License-Identifier: GPL-2.0

use serde_json::{json, Value};

use super::super::diff::compare;
use super::super::trace;
use super::*;

fn lanes(events: &[Value]) -> Lanes {
    let text: String = events.iter().map(|event| format!("{event}\n")).collect();
    split(trace::read(text.as_bytes()).unwrap())
}

fn command(code: u8, words: [u64; 8]) -> Value {
    let words = words.map(|word| json!(word));
    json!({"t": 1, "port": 0, "ev": "cqp", "index": 3, "code": code, "op": "", "words": words})
}

fn done(value: u32) -> Value {
    json!({"t": 1, "port": 0, "ev": "cqp_done", "index": 3, "error": null, "minor": 0, "value": value})
}

/// CREATE_CQ of queue `id` of 16 entries, told to the driver as `context`.
fn create_cq(id: u64, ring: u64, shadow: u64, context: u64) -> Value {
    let head = (1 << 63) | (3 << 32) | (1 << 49) | id;
    command(3, [16, context, 0, head, ring, shadow, 0, 5 << 8])
}

fn destroy_cq(id: u64, shadow: u64) -> Value {
    command(5, [0, 0, 0, (5 << 32) | id, 0, shadow, 0, 0])
}

fn control(lanes: &Lanes) -> &[Item] {
    let lane = Lane {
        port: 0,
        name: "control".into(),
    };
    &lanes[&lane]
}

#[test]
fn numbers_and_addresses_do_not_matter() {
    let life = |id, ring, shadow, context| {
        [
            create_cq(id, ring, shadow, context),
            done(0),
            destroy_cq(id, shadow),
            done(0),
        ]
    };
    let a = lanes(&life(2, 0x10_0000, 0x20_0000, 0x7fff_8881_0000));
    let b = lanes(&life(9, 0x33_0000, 0x44_0040, 9));
    assert_eq!(control(&a)[0].fields.get("CQ"), "cq#1");
    assert_eq!(control(&a)[0].fields.get("ring"), "its own");
    assert_eq!(control(&a)[0].fields.get("entries"), "0x10");
    assert_eq!(control(&a)[1].fields.get("shadow area"), "its own");
    assert_eq!(compare(&a, &b), (2, vec![]));
}

#[test]
fn what_does_matter_is_named() {
    let a = lanes(&[create_cq(2, 0x10_0000, 0x20_0000, 1), done(0)]);
    // Another size, no shadow area, and a bit that no field names.
    let mut other = create_cq(2, 0x10_0000, 0, 1);
    other["words"][0] = json!(32);
    other["words"][2] = json!(4);
    let b = lanes(&[other, done(0)]);
    let (_, found) = compare(&a, &b);
    let short: Vec<_> = found
        .iter()
        .map(|d| (d.field.as_str(), d.a.as_str(), d.b.as_str()))
        .collect();
    assert_eq!(
        short,
        [
            ("entries", "0x10", "0x20"),
            ("shadow area", "its own", "0"),
            ("word 2", "0", "0x4"),
        ]
    );
}

#[test]
fn an_object_used_in_place_of_another_is_seen() {
    let make = [
        create_cq(2, 0x10_0000, 0x20_0000, 1),
        done(0),
        create_cq(3, 0x11_0000, 0x21_0000, 2),
        done(0),
    ];
    let with = |last: Value| {
        let mut events = make.to_vec();
        events.extend([last, done(0)]);
        lanes(&events)
    };
    let right = with(destroy_cq(3, 0x21_0000));
    let wrong_queue = with(destroy_cq(2, 0x20_0000));
    let (_, found) = compare(&right, &wrong_queue);
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].a.as_str(), found[0].b.as_str()), ("cq#2", "cq#1"));
    let wrong_shadow = with(destroy_cq(3, 0x20_0000));
    let (_, found) = compare(&right, &wrong_shadow);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].field, "shadow area");
    assert_eq!(found[0].b, "another");
}

#[test]
fn timing_does_not_matter() {
    let gather = command(0x2e, [0, 0, 0, 0x2e << 32, 0x1000, 0, 0, 0]);
    let doorbell = |at| json!({"t": at, "port": 0, "ev": "doorbell", "cqp": 1});
    let write = |offset, value| json!({"t": 1, "port": 0, "ev": "reg_write", "offset": offset, "value": value});
    let create = create_cq(2, 0x10_0000, 0x20_0000, 1);
    let a = lanes(&[create.clone(), done(0), write(0x0016_cb00, 7)]);
    let b = lanes(&[
        doorbell(5),
        write(0x0050_0800, 1),
        gather,
        done(0),
        write(0x0016_cb00, 7),
        create,
        done(0),
        write(0x0050_2c00, 2),
    ]);
    assert_eq!(compare(&a, &b), (2, vec![]));
    let c = lanes(&[
        create_cq(2, 0x10_0000, 0x20_0000, 1),
        done(0),
        write(0x0016_cb00, 8),
    ]);
    let (_, found) = compare(&a, &c);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].event, "AeqControl");
}

#[test]
fn results_are_compared() {
    let make = |result| lanes(&[create_cq(2, 0x10_0000, 0x20_0000, 1), result]);
    let (_, found) = compare(&make(done(0)), &make(done(7)));
    assert_eq!(found[0].field, "value");
    let never = make(json!({"t": 1, "port": 1, "ev": "cqp_destroy"}));
    let (_, found) = compare(&make(done(0)), &never);
    assert!(found.iter().any(|d| d.field == "result" && d.b == "none"));
}

fn wqe(qp: u32, words: [u64; 4]) -> Value {
    let words = words.map(|word| json!(word));
    json!({"t": 1, "port": 0, "ev": "wqe", "qp": qp, "queue": "Send", "index": 0, "words": words})
}

#[test]
fn work_is_compared_by_queue() {
    // Two WRITEs of 64 bytes: the same local buffer, another remote one.
    let head = (1 << 63) | (1 << 62) | 0x0000_0507;
    let work = |local, remote| wqe(4, [local, (64 << 32) | 0x203, remote, head]);
    let a = lanes(&[work(0x1000, 0x9000), work(0x1000, 0x9040)]);
    let b = lanes(&[work(0x5000, 0x7000), work(0x5000, 0x7040)]);
    assert_eq!(compare(&a, &b), (2, vec![]));
    let c = lanes(&[work(0x5000, 0x7000), work(0x5040, 0x7040)]);
    let (_, found) = compare(&a, &c);
    assert!(found.iter().all(|d| d.event == "WRITE"));
    assert_eq!(
        (found[0].a.as_str(), found[0].b.as_str()),
        ("addr#1", "addr#3")
    );
}

#[test]
fn a_completion_takes_its_second_half_along() {
    let cqe = |words: [u64; 4]| {
        let words = words.map(|word| json!(word));
        json!({"t": 1, "port": 0, "ev": "cqe", "cq": 2, "index": 0, "words": words})
    };
    // Receive of 8 bytes with immediate data 0xaabb.
    let second = cqe([0xaabb, 0, 0, (1 << 63) | (1 << 62)]);
    let first = cqe([8, 77, 4 << 32, (1 << 63) | (1 << 50) | (3 << 56)]);
    let lanes = lanes(&[second, first]);
    let (_, items) = lanes.first_key_value().unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].fields.get("extension: word 0"), "0xaabb");
    assert_eq!(items[0].fields.get("word 0"), "0x8");
    assert_eq!(items[0].fields.get("opcode"), "0x3");
}
