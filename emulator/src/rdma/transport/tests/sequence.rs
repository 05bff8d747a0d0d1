// SPDX-License-Identifier: GPL-2.0
//! The longest message in the smallest packets: its sequence numbers are half
//! of all that there are.
use super::rig::*;
use crate::rdma::packet::parse;
use crate::rdma::transport::*;
use crate::rdma::wqe::op;

/// Bytes of the message, and its packets of 256 bytes.
const LEN: u32 = (1 << 31) - 1;
const PACKETS: u32 = 1 << 23;
/// A region of that length; only what is copied must be there.
const LONG: u32 = 0x88_01;

fn receive(node: &mut Node, frame: &[u8]) {
    node.qp
        .receive(&mut node.device, &parse(frame, true).unwrap());
}

/// Lets the node's timer strike; gives the only frame that it sends then.
fn frame_of_timer(node: &mut Node) -> Vec<u8> {
    node.device.now = node.qp.deadline().expect("a timer");
    node.qp.poll(&mut node.device);
    assert_eq!(node.device.out.len(), 1);
    node.device.out.remove(0)
}

#[test]
fn the_longest_read_is_waited_for() {
    let mut pair = Pair::connected(Service::Rc, 256);
    let long = Region {
        start: DATA,
        len: LEN.into(),
        rights: 0xf,
    };
    for node in [&mut pair.a, &mut pair.b] {
        node.device.regions.insert(LONG, long);
    }
    let (mut a, mut b) = (pair.a, pair.b);
    let first = Psn::new(a.qp.context.psn_next);
    a.post(&entry(op::READ, &[(DATA, LEN, LONG)], None, LONG, DATA));
    a.post(&write(&[piece(0, 10)], 0));
    a.ring();
    assert_eq!(a.qp.requester.sent, first.add(PACKETS));
    // All numbers that may be open are: the WRITE waits.
    assert_eq!(a.device.out.len(), 1);
    // The request is lost, and sent again.
    a.device.out.clear();
    let request = frame_of_timer(&mut a);
    receive(&mut b, &request);
    assert_eq!(b.device.out.len(), 256);
    // It comes twice: the answer begins anew, and there is one.
    receive(&mut b, &request);
    assert_eq!(b.qp.responder.reads.len(), 1);
    for frame in b.device.out.iter().take(10) {
        receive(&mut a, frame);
    }
    assert_eq!(a.qp.requester.una, first.add(10));
    // The rest is lost.
    let reth = parse(&frame_of_timer(&mut a), true).unwrap().ext.reth;
    let reth = reth.expect("a READ request");
    assert_eq!((reth.address, reth.length), (DATA + 2560, LEN - 2560));
    assert_eq!((a.device.events, b.device.events), (vec![], vec![]));
}
