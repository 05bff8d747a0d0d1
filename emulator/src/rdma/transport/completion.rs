// SPDX-License-Identifier: GPL-2.0
//! Copying messages between fragments and packets, and finishing entries.

use super::{Access, Endpoint, Host, Right};
use crate::rdma::wqe::{Data, Fragment, Fragments};

/// The parts of `fragments` that hold bytes `start` to `start + len`.
fn pieces(
    fragments: &Fragments,
    start: u64,
    len: usize,
) -> impl Iterator<Item = (Fragment, usize, usize)> + '_ {
    let mut skip = start;
    let mut done = 0;
    fragments.as_slice().iter().filter_map(move |fragment| {
        let size = u64::from(fragment.length);
        if skip >= size {
            skip -= size;
            return None;
        }
        let here = (size - skip).min((len - done) as u64) as usize;
        if here == 0 {
            return None;
        }
        let piece = Fragment {
            address: fragment.address.wrapping_add(skip),
            length: here as u32,
            stag: fragment.stag,
        };
        let at = done;
        done += here;
        skip = 0;
        Some((piece, at, here))
    })
}

impl Endpoint {
    fn access(&self, fragment: &Fragment, right: Right) -> Access {
        Access {
            owner: self.owner(),
            stag: fragment.stag,
            address: fragment.address,
            right,
        }
    }

    /// Whether all fragments may be accessed.
    pub(super) fn check_fragments<H: Host>(
        &self,
        host: &mut H,
        fragments: &Fragments,
        right: Right,
    ) -> Result<(), u16> {
        fragments.as_slice().iter().try_for_each(|fragment| {
            host.check(&self.access(fragment, right), u64::from(fragment.length))
        })
    }

    /// Fills `out` with the message's bytes from `start` on.
    pub(super) fn gather<H: Host>(
        &self,
        host: &mut H,
        data: &Data,
        start: u64,
        out: &mut [u8],
    ) -> Result<(), u16> {
        match data {
            Data::Inline { bytes, .. } => {
                let start = start as usize;
                if let Some(part) = bytes.get(start..start + out.len()) {
                    out.copy_from_slice(part);
                }
                Ok(())
            }
            Data::Fragments(fragments) => {
                let len = out.len();
                pieces(fragments, start, len).try_for_each(|(piece, at, here)| {
                    host.load(
                        &self.access(&piece, Right::LocalRead),
                        &mut out[at..at + here],
                    )
                })
            }
        }
    }

    /// Puts `data` into the fragments from byte `start` of the message on.
    pub(super) fn scatter<H: Host>(
        &self,
        host: &mut H,
        fragments: &Fragments,
        start: u64,
        data: &[u8],
    ) -> Result<(), u16> {
        pieces(fragments, start, data.len()).try_for_each(|(piece, at, here)| {
            host.store(
                &self.access(&piece, Right::LocalWrite),
                &data[at..at + here],
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_message() {
        let mut list = Fragments::EMPTY;
        for (address, length) in [(100, 3), (200, 0), (300, 5), (400, 2)] {
            list.push(Fragment {
                address,
                length,
                stag: 0,
            });
        }
        let cut = |start, len| -> Vec<(u64, usize, usize)> {
            pieces(&list, start, len)
                .map(|(f, at, here)| (f.address, at, here))
                .collect()
        };
        assert_eq!(cut(0, 10), [(100, 0, 3), (300, 3, 5), (400, 8, 2)]);
        assert_eq!(cut(1, 4), [(101, 0, 2), (300, 2, 2)]);
        assert_eq!(cut(3, 5), [(300, 0, 5)]);
        assert_eq!(cut(7, 2), [(304, 0, 1), (400, 1, 1)]);
        assert_eq!(cut(10, 5), []);
        assert_eq!(cut(4, 0), []);
    }
}
