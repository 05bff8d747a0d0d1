// SPDX-License-Identifier: GPL-2.0

//! Address handles: ways to peers that the device keeps, for datagrams.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Release, //
            },
            Atomic, //
        },
        Arc, //
    },
    time::{
        delay::udelay,
        Delta,
        Instant,
        Monotonic, //
    }, //
};

use super::{
    abi,
    device::Device,
    ids::Id,
    path::Path,
    pd::Pd,
    Driver, //
};
use crate::{
    hw::cqp::{
        address::{
            AddressHandle,
            CreateAh,
            DestroyAh, //
        },
        CommandDone,
        Outcome, //
    },
    rdma::{
        AhAttr,
        Udata, //
    }, //
};

/// How long the device may take to make a handle for a caller who can't sleep.
const ATOMIC_LIMIT: Delta = Delta::from_secs(5);

/// Pause between two looks, for the same caller.
const ATOMIC_STEP: Delta = Delta::from_micros(1);

/// An address handle.
pub(crate) struct Ah {
    handle: AddressHandle,
    path: Path,
    state: Arc<State>,
}

/// What the end of the command refers to, which may come after its caller has given up.
struct State {
    progress: Atomic<u32>,
    /// Belongs to the device as long as the command is under way.
    _id: Id,
}

const UNDER_WAY: u32 = 0;
const MADE: u32 = 1;
const REFUSED: u32 = 2;

impl CommandDone for State {
    #[doc(alias = "irdma_gsi_ud_qp_ah_cb")]
    fn done(&self, _cookie: u64, outcome: Outcome) {
        let progress = match outcome {
            Ok(_) => MADE,
            Err(_) => REFUSED,
        };
        self.progress.store(progress, Release);
    }
}

impl Ah {
    /// Makes an address handle; sleeps only if `may_sleep`.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the device has no way like that, or the user no room for the response.
    /// - `ENOMEM` if there is no handle or no neighbour left.
    /// - `ETIMEDOUT` if the device does not answer.
    #[doc(alias = "irdma_create_ah")]
    #[doc(alias = "irdma_create_user_ah")]
    #[doc(alias = "irdma_create_hw_ah")]
    pub(super) fn new(
        dev: &Device<'_>,
        pd: &Pd,
        attr: &AhAttr<'_>,
        may_sleep: bool,
        mut udata: Option<&mut Udata<'_, Driver>>,
    ) -> Result<Self> {
        if let Some(udata) = &mut udata {
            udata.no_request()?;
            if udata.response_len() < abi::MIN_CREATE_AH_RESP {
                return Err(EINVAL);
            }
        }

        let path = Path::new(dev, attr)?;
        let arp_index =
            dev.neighbours()
                .index_of(dev.function(), path.destination, path.destination_mac)?;
        let id = dev.objects().ahs.take()?;
        let handle = AddressHandle {
            index: id.get(),
            pd: pd.number(),
            source_mac: path.source_mac,
            vlan: path.vlan,
            arp_index,
            traffic_class: path.traffic_class,
            hop_limit: path.hop_limit,
            flow_label: path.flow_label,
            destination: path.destination,
            source: path.source,
            loopback: path.is_loopback(),
        };
        let gfp = if may_sleep { GFP_KERNEL } else { GFP_ATOMIC };
        let state = Arc::new(
            State {
                progress: Atomic::new(UNDER_WAY),
                _id: id,
            },
            gfp,
        )?;

        if may_sleep {
            // What is not answered may still be made. The number stays taken then, until the reset
            // that the timeout has asked for.
            dev.function()
                .execute(&CreateAh(handle))
                .inspect_err(|error| {
                    if *error == ETIMEDOUT {
                        dev.function().bury(state.clone());
                    }
                })?;
        } else {
            Self::make_without_sleep(dev, handle, &state)?;
        }

        let ah = Self {
            handle,
            path,
            state,
        };
        if let Some(udata) = udata {
            let response = abi::CreateAhResp {
                ah_id: handle.index,
                rsvd: [0; 4],
            };
            if let Err(error) = udata.respond(&response) {
                ah.destroy(dev);
                return Err(error);
            }
        }

        Ok(ah)
    }

    fn make_without_sleep(dev: &Device<'_>, handle: AddressHandle, state: &Arc<State>) -> Result {
        let function = dev.function();
        let begin = Instant::<Monotonic>::now();

        function.submit(&CreateAh(handle), state.clone(), 0)?;
        loop {
            match state.progress.load(Acquire) {
                MADE => return Ok(()),
                REFUSED => return Err(EINVAL),
                _ => (),
            }
            if begin.elapsed() > ATOMIC_LIMIT {
                return Err(ETIMEDOUT);
            }
            // The interrupt that would take the completion may be waiting for this very processor.
            function.process_completions();
            udelay(ATOMIC_STEP);
        }
    }

    /// Gives the handle back. Never sleeps: the device does it before it makes the next one.
    #[doc(alias = "irdma_destroy_ah")]
    pub(super) fn destroy(&self, dev: &Device<'_>) {
        let destroyed = dev.function().post(&DestroyAh(self.handle));

        if destroyed.is_err() {
            // The device may still use the number; it is lost until the function is reset.
            core::mem::forget(self.state.clone());
        }
    }

    /// Returns the number by which a work request names the handle.
    #[inline]
    pub(crate) fn number(&self) -> u32 {
        self.handle.index
    }

    /// Returns the way that the handle stands for.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}
