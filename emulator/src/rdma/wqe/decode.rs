// SPDX-License-Identifier: GPL-2.0
//! From the bytes of an entry to what it asks for.

use super::{op, BindWindow, Data, FastRegister, Fragment, Fragments, Header};
use super::{RecvWqe, SendWqe, Work, WqeError, MAX_FRAGMENTS, MAX_INLINE, MAX_QUANTA, QUANTUM};

const SIGNALED: u64 = 1 << 62;
const LOCAL_FENCE: u64 = 1 << 61;
const READ_FENCE: u64 = 1 << 60;
const INLINE: u64 = 1 << 57;
const IMMEDIATE: u64 = 1 << 47;
const OPCODE: u64 = 0x3f << 32;
const FRAGMENTS: u64 = 0xf << 38;
const INLINE_LENGTH: u64 = 0xff << 48;
const LOW: u64 = 0xffff_ffff;
const VALID: u64 = 1 << 63;
/// Bits that each send entry may have.
const COMMON: u64 = VALID | SIGNALED | LOCAL_FENCE | READ_FENCE | OPCODE;

/// Quadword `index` of the entry.
fn quad(bytes: &[u8], index: usize) -> u64 {
    let mut word = [0; 8];
    if let Some(part) = bytes.get(index * 8..index * 8 + 8) {
        word.copy_from_slice(part);
    }
    u64::from_le_bytes(word)
}

fn fragment(bytes: &[u8], index: usize) -> (Fragment, bool) {
    let (address, word) = (quad(bytes, index), quad(bytes, index + 1));
    let fragment = Fragment {
        address,
        length: (word >> 32) as u32 & 0x7fff_ffff,
        stag: word as u32,
    };
    (fragment, word & VALID != 0)
}

/// Checks the valid bits of the second and later quanta.
fn check_polarity(bytes: &[u8], quanta: usize, polarity: bool) -> Result<(), WqeError> {
    for quantum in 1..quanta {
        if (quad(bytes, quantum * 4 + 3) & VALID != 0) != polarity {
            return Err(WqeError::Polarity {
                quantum: quantum as u8,
            });
        }
    }
    Ok(())
}

/// The fragments of `bytes`; the first is left out where the place holds
/// immediate data. Each fragment carries the valid bit as well. An even number
/// is filled up with one that is all zero.
fn fragments(
    bytes: &[u8],
    quanta: usize,
    skip_first: bool,
    polarity: bool,
) -> Result<Fragments, WqeError> {
    let mut list = Fragments::EMPTY;
    let mut places = 0;
    let mut add = |index: usize, quantum: usize| -> Result<(), WqeError> {
        let (fragment, valid) = fragment(bytes, index);
        if valid != polarity {
            return Err(WqeError::Polarity {
                quantum: quantum as u8,
            });
        }
        places += 1;
        let fits = places <= MAX_FRAGMENTS || fragment == Fragment::default();
        if !fits || !list.push(fragment) {
            return Err(WqeError::TooManyFragments);
        }
        Ok(())
    };
    if !skip_first {
        add(0, 0)?;
    }
    for quantum in 1..quanta {
        add(quantum * 4, quantum)?;
        add(quantum * 4 + 2, quantum)?;
    }
    Ok(list)
}

/// Inline bytes: 8 in the second quadword, then 31 in each further quantum.
fn inline(bytes: &[u8], length: u8) -> Result<Data, WqeError> {
    let mut out = [0; MAX_INLINE];
    let len = usize::from(length);
    if len > MAX_INLINE {
        return Err(WqeError::InlineLength(length));
    }
    let mut source = bytes[8..16]
        .iter()
        .chain(bytes[QUANTUM..].chunks(QUANTUM).flat_map(|q| &q[..31]));
    for (to, from) in out[..len].iter_mut().zip(&mut source) {
        *to = *from;
    }
    Ok(Data::Inline { bytes: out, length })
}

/// Decodes the send entry that begins `bytes`, which holds as many quanta as
/// its header says ([`Header::send_quanta`]). The header's valid bit is the
/// polarity that the rest is held against.
pub fn decode_sq(bytes: &[u8]) -> Result<SendWqe, WqeError> {
    let header = quad(bytes, 3);
    let parsed = Header(header);
    let polarity = parsed.valid();
    let quanta = parsed.send_quanta();
    if quanta > MAX_QUANTA || bytes.len() < quanta * QUANTUM {
        return Err(WqeError::Overrun);
    }
    let opcode = parsed.opcode();
    let allowed = COMMON
        | match opcode {
            op::NOP | op::LOCAL_INV => 0,
            op::READ | op::READ_LOCAL_INV => FRAGMENTS | LOW,
            op::FAST_REGISTER => LOW | 3 << 44 | 3 << 46 | 0x1f << 48 | 1 << 53 | 1 << 55,
            op::BIND_WINDOW => 0x1f << 48 | 1 << 53 | 1 << 54 | 1 << 55,
            _ if parsed.is_inline() => INLINE | INLINE_LENGTH | IMMEDIATE | LOW,
            _ => FRAGMENTS | IMMEDIATE | LOW,
        };
    let data = |imm: bool| -> Result<Data, WqeError> {
        check_polarity(bytes, quanta, polarity)?;
        if parsed.is_inline() {
            inline(&bytes[..quanta * QUANTUM], parsed.inline_length())
        } else {
            fragments(bytes, quanta, imm, polarity).map(Data::Fragments)
        }
    };
    let imm = (header & IMMEDIATE != 0).then_some(quad(bytes, 0) as u32);
    let low = header as u32;
    let work = match opcode {
        op::NOP => Work::Nop,
        op::SEND | op::SEND_SOL | op::SEND_INV | op::SEND_SOL_INV => {
            let invalidating = matches!(opcode, op::SEND_INV | op::SEND_SOL_INV);
            Work::Send {
                data: data(imm.is_some())?,
                imm,
                invalidate: invalidating.then_some(low),
                solicited: matches!(opcode, op::SEND_SOL | op::SEND_SOL_INV),
                ah: low & 0x1ff_ffff,
                qkey: quad(bytes, 2) as u32,
                dest_qp: (quad(bytes, 2) >> 32) as u32 & 0xff_ffff,
            }
        }
        op::WRITE | op::WRITE_SOL => Work::Write {
            data: data(imm.is_some())?,
            imm,
            solicited: opcode == op::WRITE_SOL,
            address: quad(bytes, 2),
            rkey: low,
        },
        op::READ | op::READ_LOCAL_INV => {
            check_polarity(bytes, quanta, polarity)?;
            Work::Read {
                into: fragments(bytes, quanta, false, polarity)?,
                address: quad(bytes, 2),
                rkey: low,
                invalidate: opcode == op::READ_LOCAL_INV,
            }
        }
        op::LOCAL_INV => Work::LocalInvalidate {
            stag: quad(bytes, 1) as u32,
        },
        op::FAST_REGISTER => Work::FastRegister(fast_register(bytes, header)?),
        op::BIND_WINDOW => Work::BindWindow(BindWindow {
            window: quad(bytes, 1) as u32,
            parent: (quad(bytes, 1) >> 32) as u32,
            address: quad(bytes, 0),
            length: quad(bytes, 2),
            rights: (header >> 48) as u8 & 0x1f,
            va_based: header >> 53 & 1 != 0,
            type_1: header >> 54 & 1 != 0,
            remote_atomics: header >> 55 & 1 != 0,
        }),
        other => return Err(WqeError::Opcode(other)),
    };
    if header & !allowed != 0 {
        return Err(WqeError::Reserved(header & !allowed));
    }
    Ok(SendWqe {
        opcode,
        quanta: quanta as u8,
        signaled: header & SIGNALED != 0,
        local_fence: header & LOCAL_FENCE != 0,
        read_fence: header & READ_FENCE != 0,
        work,
    })
}

fn fast_register(bytes: &[u8], header: u64) -> Result<FastRegister, WqeError> {
    let (pages, length) = (quad(bytes, 1), quad(bytes, 2));
    let page_size = (header >> 46) as u8 & 3;
    let pbl_levels = (header >> 44) as u8 & 3;
    if page_size == 3 {
        return Err(WqeError::Parameter("page size"));
    }
    if pbl_levels == 2 {
        return Err(WqeError::Parameter("page list levels"));
    }
    // Between the length and the page list index.
    if length & 0x0000_fe00_0000_0000 != 0 {
        return Err(WqeError::Reserved(length & 0x0000_fe00_0000_0000));
    }
    Ok(FastRegister {
        stag: header as u32,
        address: quad(bytes, 0),
        length: length & 0x1ff_ffff_ffff,
        page_address: pages & !0xfff,
        first_pble: (pages as u32 & 0xfff) << 16 | (length >> 48) as u32,
        pbl_levels,
        page_size,
        rights: (header >> 48) as u8 & 0x1f,
        va_based: header >> 53 & 1 != 0,
        remote_atomics: header >> 55 & 1 != 0,
    })
}

/// Decodes the receive entry `bytes`, whose size is that of the queue's
/// entries. Its valid bit is the polarity for the rest.
pub fn decode_rq(bytes: &[u8]) -> Result<RecvWqe, WqeError> {
    let header = quad(bytes, 3);
    let parsed = Header(header);
    let quanta = parsed.fragment_quanta();
    if bytes.len() < quanta * QUANTUM {
        return Err(WqeError::Overrun);
    }
    if header & !(VALID | FRAGMENTS) != 0 {
        return Err(WqeError::Reserved(header & !(VALID | FRAGMENTS)));
    }
    if quad(bytes, 2) != 0 {
        return Err(WqeError::Parameter("receive entry's third quadword"));
    }
    check_polarity(bytes, quanta, parsed.valid())?;
    Ok(RecvWqe {
        fragments: fragments(bytes, quanta, false, parsed.valid())?,
    })
}
