// SPDX-License-Identifier: GPL-2.0
//! Memory of the HMC: there before it is used, and taken back only when nothing uses it.

use super::super::backing;
use super::super::fpm::Object;
use super::super::layout::hmc;
use super::*;

/// Clears a segment descriptor through the control completion queue.
fn clear_sd(d: &mut Driver, index: u64) {
    let command = index | (1 << 31) | (1 << 15);
    d.ok([command, (512 << 2) | 2, 0, 0x1f << 32, 0, 0, 0, 0]);
}

/// A paged segment for the last PBLEs, with one page; gives the first index in it and the guest address of its
/// page descriptor.
fn paged_pbles(d: &mut Driver) -> (u64, u64) {
    const FIRST: u32 = 262_144;
    let plan = d.rdma.hmc.plan.clone().unwrap();
    let place = plan.address(Object::Pble, FIRST).unwrap();
    let (table, page) = (d.alloc(4096, 4096), d.alloc(4096, 4096));
    d.put(table, &[page | 1]);
    let command = (place >> 21) | (1 << 31) | (1 << 15);
    d.ok([command, table | (512 << 2) | 1, 0, 0x1f << 32, 0, 0, 0, 0]);
    d.write_register(0x52_0300, (place >> 21) as u32 | (1 << 15));
    let block = d.alloc(8192, 4096);
    d.put(page, &[block, block + 4096]);
    (FIRST.into(), table)
}

fn nop(d: &mut Driver) {
    d.ok([0, 0, 0, 0x24 << 32, 0, 0, 0, 0]);
}

/// The driver takes the page of [`paged_pbles`] away.
fn take_page(d: &mut Driver, first: u64, descriptor: u64) {
    let plan = d.rdma.hmc.plan.clone().unwrap();
    let place = plan.address(Object::Pble, first as u32).unwrap();
    d.put(descriptor, &[0]);
    d.write_register(0x52_0300, (place >> 21) as u32 | (1 << 15));
}

#[test]
fn a_segment_with_a_live_object_stays() {
    let mut d = Driver::probed();
    d.create_cq(3, 64);
    d.create_qp(5, RC, 3, 6);
    clear_sd(&mut d, 0);
    let text = d.violations();
    assert_eq!(text.len(), 1, "{text:?}");
    assert!(
        text[0].contains("SD 0 is taken from the live Qp 5"),
        "{text:?}"
    );
}

#[test]
fn what_a_refused_command_left_may_lose_its_segment() {
    let mut d = Driver::probed();
    d.bench
        .faults
        .add(next_command(0x24, Action::Fail(0xffff_8101)));
    assert!(d.command([0, 0, 0, 0x24 << 32, 0, 0, 0, 0]).error);
    clear_sd(&mut d, 0);
    assert_eq!(d.violations(), Vec::<String>::new());
}

#[test]
fn objects_are_found_in_their_pages() {
    let mut d = Driver::probed();
    let block = d.alloc(8192, 4096);
    d.register(0x1_23, 0x7f00_0000_0000, block, 0x1000, 0x03);
    let handle = (0x1c << 32) | (1 << 59) | 9;
    let arp = (2 << 48) | (64 << 32);
    let mac = 0x0200_0000_0002_0000;
    d.ok([mac, 3 << 48, arp, handle, 0x0a00_0002, 0, 0x0a00_0001, 0]);
    let plan = d.rdma.hmc.plan.clone().unwrap();
    let mut found = |object, index| {
        let at = plan.address(object, index).unwrap();
        let (sd, page) = (at / hmc::SD_SPAN, at % hmc::SD_SPAN / hmc::PAGE);
        d.with(|rdma, cx| backing::in_page(rdma, cx.memory, sd as u32, page as u32))
    };
    assert_eq!(found(Object::Mr, 1).as_deref(), Some("Mr 1"));
    assert_eq!(found(Object::Mr, 1000), None);
    // Drivers leave these when they go.
    assert_eq!(found(Object::AddressHandle, 9), None);
    assert_eq!(found(Object::Arp, 2), None);
}

#[test]
fn a_page_with_a_live_page_list_stays() {
    let mut d = Driver::probed();
    let (first, descriptor) = paged_pbles(&mut d);
    assert!(register_list(&mut d, 0x1_00, 1, first, 0x5_0000, 0x2000));
    take_page(&mut d, first, descriptor);
    // Only a driver that goes on did something wrong.
    assert_eq!(d.violations(), Vec::<String>::new());
    nop(&mut d);
    nop(&mut d);
    let text = d.violations();
    assert_eq!(text.len(), 1, "{text:?}");
    assert!(text[0].contains("live the page list of MR 1"), "{text:?}");

    // One that gives the device up does not tell it of its regions.
    let mut d = Driver::probed();
    let (first, descriptor) = paged_pbles(&mut d);
    assert!(register_list(&mut d, 0x1_00, 1, first, 0x5_0000, 0x2000));
    take_page(&mut d, first, descriptor);
    d.rdma.reset();
    d.create_cqp();
    assert!(d.polled([0, 0, 0, 0x24 << 32, 0, 0, 0, 0]));
    assert_eq!(d.violations(), Vec::<String>::new());
}

#[test]
fn lists_of_lists_and_rings_are_page_lists_too() {
    let mut d = Driver::probed();
    let (first, descriptor) = paged_pbles(&mut d);
    // The root is elsewhere, the list in the page.
    let plan = d.rdma.hmc.plan.clone().unwrap();
    let pbles = plan.address(Object::Pble, 0).unwrap();
    let list = d
        .with(|rdma, cx| rdma.hmc.translate(cx.memory, pbles))
        .unwrap();
    d.put(list + 8 * 8, &[first]);
    assert!(register_list(&mut d, 0x2_00, 3, 8, 0, 0x2000));
    take_page(&mut d, first, descriptor);
    nop(&mut d);
    assert!(
        d.violations()[0].contains("list of MR 2"),
        "{:?}",
        d.violations()
    );

    let mut d = Driver::probed();
    let (first, descriptor) = paged_pbles(&mut d);
    let shadow = d.alloc(64, 64);
    let header = 3 | (3 << 48) | (1 << 46) | (1 << 47) | (1 << 44) | (0x03 << 32);
    d.ok([256, 3, 0, header, 0, shadow, first, 1 << 8]);
    take_page(&mut d, first, descriptor);
    nop(&mut d);
    assert!(
        d.violations()[0].contains("list of CQ 3"),
        "{:?}",
        d.violations()
    );
}

#[test]
fn each_page_of_a_paged_segment_must_be_there() {
    const MISSING: u64 = 7;
    let mut d = Driver::probed();
    d.ok([0, 0, 192, 0x1b << 32, 0, 0, 0, 0]);
    d.ok([0, 0, 128, 0x18 << 32, 0, 0, 0, 0]);
    let ccq = d.ccq();
    assert!(d.polled(Driver::cq_command(0x05, 0, ccq)));
    assert!(d.set_sd(0, (512 << 2) | 2));
    let (table, pages) = (d.alloc(4096, 4096), d.alloc(2 << 20, 4096));
    for page in (0..512).filter(|&page| page != MISSING) {
        d.put(table + page * 8, &[(pages + page * 4096) | 1]);
    }
    assert!(d.set_sd(0, table | (512 << 2) | 1));
    assert_eq!(d.violations(), Vec::<String>::new());
    assert!(d.polled([0, 0, 0, 0x2b << 32, 0, 0, 0, 0]));
    let text = d.violations();
    assert_eq!(text.len(), 1, "{text:?}");
    assert!(text[0].contains("page 7 of SD 0 is not there"), "{text:?}");
}
