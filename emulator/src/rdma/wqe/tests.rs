// SPDX-License-Identifier: GPL-2.0
//! Vectors written out by hand from the field positions.
use super::*;

fn bytes(quads: &[u64]) -> Vec<u8> {
    quads.iter().flat_map(|q| q.to_le_bytes()).collect()
}

fn fragment(address: u64, length: u32, stag: u32) -> Fragment {
    Fragment {
        address,
        length,
        stag,
    }
}

#[test]
fn send_with_one_fragment() {
    let wqe = bytes(&[
        0x0000_7f00_1234_5000,
        0x8000_0040_0000_1b07, // valid, 64 bytes, STag 0x1b07
        0,
        0xc000_0003_0000_0000, // valid, signaled, SEND
    ]);
    let got = decode_sq(&wqe).unwrap();
    assert_eq!((got.quanta, got.opcode, got.signaled), (1, 3, true));
    assert!(!got.local_fence && !got.read_fence);
    let Work::Send {
        data,
        imm,
        invalidate,
        solicited,
        ..
    } = got.work
    else {
        panic!("{got:?}")
    };
    let Data::Fragments(list) = data else {
        panic!("{data:?}")
    };
    assert_eq!(list.as_slice(), [fragment(0x7f0012345000, 64, 0x1b07)]);
    assert_eq!((imm, invalidate, solicited), (None, None, false));
}

#[test]
fn datagram_send_with_immediate_and_two_fragments() {
    // Immediate takes the first place, so three places: ADDFRAGCNT 2.
    let wqe = bytes(&[
        0x0000_0000_cafe_f00d,
        0xffff_ffff_ffff_ffff, // left as it was by the driver
        0x0012_3456_8001_0000, // QPN 0x123456, Q_Key
        0xc000_8085_0000_0011, // signaled, immediate, 2 more, SEND_SOL, AH 0x11
        0x1000,
        0x8000_0003_0000_0200,
        0x2000,
        0x8000_0005_0000_0300,
    ]);
    let got = decode_sq(&wqe).unwrap();
    assert_eq!(got.quanta, 2);
    let Work::Send {
        data,
        imm,
        solicited,
        ah,
        qkey,
        dest_qp,
        ..
    } = got.work
    else {
        panic!("{got:?}")
    };
    let Data::Fragments(list) = data else {
        panic!("{data:?}")
    };
    assert_eq!(
        list.as_slice(),
        [fragment(0x1000, 3, 0x200), fragment(0x2000, 5, 0x300)]
    );
    assert_eq!(list.total(), 8);
    assert_eq!((imm, solicited), (Some(0xcafef00d), true));
    assert_eq!((ah, qkey, dest_qp), (0x11, 0x80010000, 0x123456));
}

#[test]
fn write_with_inverted_polarity() {
    // After a wrap the valid bit is 0; an even count has an empty last one.
    let wqe = bytes(&[
        0x1000,
        0x0000_0010_0000_0100,
        0xffff_8000_0000_0000, // remote address
        0x3000_0080_dead_be00, // fences, 2 more, WRITE, remote STag
        0x2000,
        0x0000_0020_0000_0100,
        0,
        0,
    ]);
    let got = decode_sq(&wqe).unwrap();
    assert!(!Header::of(wqe[..32].try_into().unwrap()).valid());
    assert!(got.local_fence && got.read_fence && !got.signaled);
    let Work::Write {
        data,
        address,
        rkey,
        imm,
        solicited,
    } = got.work
    else {
        panic!("{got:?}")
    };
    assert_eq!(data.total(), 0x30);
    assert_eq!((address, rkey), (0xffff_8000_0000_0000, 0xdeadbe00));
    assert_eq!((imm, solicited), (None, false));
}

#[test]
fn half_written_entry_is_seen() {
    let mut quads = [
        0x1000,
        0x8000_0010_0000_0100,
        0,
        0x8000_0083_0000_0000,
        0x2000,
        0x8000_0020_0000_0100,
        0,
        0x8000_0000_0000_0000,
    ];
    assert!(decode_sq(&bytes(&quads)).is_ok());
    quads[7] = 0;
    assert_eq!(
        decode_sq(&bytes(&quads)),
        Err(WqeError::Polarity { quantum: 1 })
    );
    assert_eq!(decode_sq(&bytes(&quads[..4])), Err(WqeError::Overrun));
}

/// Lays out inline data as the layout says, by counting.
fn inline_wqe(len: usize, polarity: bool) -> Vec<u8> {
    let data: Vec<u8> = (0..len).map(|i| i as u8 ^ 0xa5).collect();
    let quanta = match len {
        0..=8 => 1,
        9..=39 => 2,
        40..=70 => 3,
        71..=101 => 4,
        102..=132 => 5,
        133..=163 => 6,
        164..=194 => 7,
        _ => 8,
    };
    let mut wqe = vec![0u8; quanta * 32];
    for quantum in 1..quanta {
        wqe[quantum * 32 + 31] = u8::from(polarity) << 7;
    }
    for (i, byte) in data.iter().enumerate() {
        let at = if i < 8 {
            8 + i
        } else {
            32 + (i - 8) / 31 * 32 + (i - 8) % 31
        };
        wqe[at] = *byte;
    }
    let header = u64::from(polarity) << 63 | 1 << 57 | (len as u64) << 48 | 3 << 32;
    wqe[24..32].copy_from_slice(&header.to_le_bytes());
    wqe
}

#[test]
fn inline_lengths() {
    for polarity in [true, false] {
        for len in 0..=101 {
            let wqe = inline_wqe(len, polarity);
            let got = decode_sq(&wqe).unwrap();
            assert_eq!(usize::from(got.quanta) * 32, wqe.len(), "length {len}");
            let Work::Send {
                data: Data::Inline { bytes, length },
                ..
            } = got.work
            else {
                panic!("{got:?}")
            };
            assert_eq!(usize::from(length), len);
            assert!(bytes[..len]
                .iter()
                .enumerate()
                .all(|(i, b)| *b == i as u8 ^ 0xa5));
        }
    }
    let mut wqe = inline_wqe(101, true);
    wqe[64 + 31] = 0;
    assert_eq!(decode_sq(&wqe), Err(WqeError::Polarity { quantum: 2 }));
    // More than the device takes, and more than eight quanta hold.
    for len in [102, 103, 132, 133, 225] {
        let wqe = inline_wqe(len, true);
        assert_eq!(decode_sq(&wqe), Err(WqeError::InlineLength(len as u8)));
    }
    let mut wqe = inline_wqe(225, true);
    wqe[30] = 226;
    wqe.resize(9 * 32, 0);
    assert_eq!(decode_sq(&wqe), Err(WqeError::Overrun));
}

#[test]
fn read_and_its_invalidating_form() {
    let mut quads = [
        0x5000,
        0x8000_1000_0000_0400,
        0x9_0000,
        0x8000_0001_0000_0701,
    ];
    let got = decode_sq(&bytes(&quads)).unwrap();
    let Work::Read {
        into,
        address,
        rkey,
        invalidate,
    } = got.work
    else {
        panic!("{got:?}")
    };
    assert_eq!(into.as_slice(), [fragment(0x5000, 0x1000, 0x400)]);
    assert_eq!((address, rkey, invalidate), (0x90000, 0x701, false));
    quads[3] = 0x8000_000b_0000_0701;
    let got = decode_sq(&bytes(&quads)).unwrap();
    assert!(matches!(
        got.work,
        Work::Read {
            invalidate: true,
            ..
        }
    ));
}

#[test]
fn local_operations() {
    let nop = decode_sq(&bytes(&[0, 0, 0, 0x8000_000c_0000_0000])).unwrap();
    assert_eq!((nop.work, nop.quanta), (Work::Nop, 1));
    let inv = decode_sq(&bytes(&[
        0,
        0x0000_0000_0000_1a02,
        0,
        0xe000_000a_0000_0000,
    ]))
    .unwrap();
    assert_eq!(inv.work, Work::LocalInvalidate { stag: 0x1a02 });
    assert!(inv.local_fence && inv.signaled);
    let reg = decode_sq(&bytes(&[
        0xffff_8880_0123_4000,
        0x0000_0001_2345_6003, // page address, upper bits of the index: 3
        0x0042_0000_0010_0000, // index 0x0042, length 1 MiB
        0xa03d_1009_0012_3407, // local fence, VA, rights 0x1d, one level, 4 KiB
    ]))
    .unwrap();
    assert_eq!(
        reg.work,
        Work::FastRegister(FastRegister {
            stag: 0x123407,
            address: 0xffff_8880_0123_4000,
            length: 0x10_0000,
            page_address: 0x1_2345_6000,
            first_pble: 0x3_0042,
            pbl_levels: 1,
            page_size: 0,
            rights: 0x1d,
            va_based: true,
            remote_atomics: false,
        })
    );
}

#[test]
fn reserved_bits_and_opcodes() {
    for (header, want) in [
        (0x8100_0003_0000_0000, 1 << 56), // push
        (0x8800_0003_0000_0000, 1 << 59),
        (0x8400_0003_0000_0000, 1 << 58), // streaming mode: iWARP
        (0x8000_4003_0000_0000, 1 << 46),
        (0x8001_0003_0000_0000, 1 << 48), // inline length, not inline
        (0x8000_000c_0000_0001, 1),
    ] {
        let wqe = bytes(&[0, VALID, 0, header]);
        assert_eq!(decode_sq(&wqe), Err(WqeError::Reserved(want)), "{header:x}");
    }
    for opcode in [0x02u64, 0x07, 0x0e, 0x0f, 0x11, 0x3f] {
        let wqe = bytes(&[0, VALID, 0, VALID | opcode << 32]);
        assert_eq!(decode_sq(&wqe), Err(WqeError::Opcode(opcode as u8)));
    }
}

const VALID: u64 = 1 << 63;

#[test]
fn receive_entries() {
    let wqe = bytes(&[
        0x1000,
        0x8000_0100_0000_0500,
        0,
        0x8000_0080_0000_0000,
        0x3000,
        0x8000_0200_0000_0600,
        0x4000,
        0x8000_0300_0000_0700,
    ]);
    let got = decode_rq(&wqe).unwrap();
    assert_eq!(
        got.fragments.as_slice(),
        [
            fragment(0x1000, 0x100, 0x500),
            fragment(0x3000, 0x200, 0x600),
            fragment(0x4000, 0x300, 0x700)
        ]
    );
    // No memory at all: for immediate data of a WRITE.
    let empty = decode_rq(&bytes(&[0, VALID, 0, VALID])).unwrap();
    assert_eq!(empty.fragments.total(), 0);
    assert_eq!(
        decode_rq(&bytes(&[0, VALID, 0, VALID | 1 << 62])),
        Err(WqeError::Reserved(1 << 62))
    );
    assert_eq!(decode_rq(&wqe[..32]), Err(WqeError::Overrun));
}

/// The quads of an entry with fragments 1, 2, ... `count`, laid out as a driver
/// does it: an even number of places is filled up with an empty one.
fn many_fragments(count: u64, imm: bool, header: u64) -> Vec<u64> {
    let skip = u64::from(imm);
    let more = (count + skip - 1).next_multiple_of(2);
    let mut quads = vec![0; 4 * (1 + more as usize / 2)];
    for place in skip..=more {
        let at = if place == 0 {
            0
        } else {
            2 + 2 * place as usize
        };
        let n = place + 1 - skip;
        if n <= count {
            quads[at] = n << 12;
            quads[at + 1] = n << 32 | 0x500;
        }
        quads[at + 1] |= VALID;
    }
    quads[3] |= VALID | more << 38 | skip << 47 | header;
    quads
}

#[test]
fn at_most_thirteen_fragments() {
    const SEND: u64 = 3 << 32;
    const READ: u64 = 1 << 32;
    for (imm, header) in [(false, SEND), (true, SEND), (false, READ)] {
        for count in 1..=13 {
            let got = decode_sq(&bytes(&many_fragments(count, imm, header))).unwrap();
            let list = match got.work {
                Work::Read { into, .. } => into,
                Work::Send {
                    data: Data::Fragments(list),
                    ..
                } => list,
                other => panic!("{other:?}"),
            };
            assert_eq!(list.as_slice().len() as u64, count);
            assert_eq!(list.total(), (1..=count).sum::<u64>());
        }
        let quads = many_fragments(14, imm, header);
        assert_eq!(decode_sq(&bytes(&quads)), Err(WqeError::TooManyFragments));
    }
    for count in 1..=13 {
        let got = decode_rq(&bytes(&many_fragments(count, false, 0))).unwrap();
        assert_eq!(got.fragments.as_slice().len() as u64, count);
    }
    // A fragment of no bytes counts, unless it is all zero.
    let mut quads = many_fragments(14, false, 0);
    for length in [14, 0] {
        quads[28] = 0x1000;
        quads[29] = VALID | length << 32;
        assert_eq!(decode_rq(&bytes(&quads)), Err(WqeError::TooManyFragments));
    }
    quads[28] = 0;
    assert_eq!(
        decode_rq(&bytes(&quads))
            .unwrap()
            .fragments
            .as_slice()
            .len(),
        13
    );
}
