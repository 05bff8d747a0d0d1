// SPDX-License-Identifier: GPL-2.0

//! Address handles: ways to peers that the device keeps, for datagrams.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering::{
                Acquire,
                Full, //
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
    path::{
        self,
        Path, //
    },
    pd::Pd,
    Verbs, //
};
use crate::{
    hw::{
        cqp::{
            address::{
                AddressHandle,
                CreateAh,
                DestroyAh, //
            },
            CommandDone,
            Outcome, //
        },
        function::Function,
        ids::IdPools, //
    },
    rdma::{
        AhAttr,
        Gid,
        QueriedAh,
        Udata, //
    }, //
};

mod shared;

pub(super) use shared::SharedAhs;

/// How long the device may take to make a handle for a caller who can't sleep.
const ATOMIC_LIMIT: Delta = Delta::from_secs(5);

/// Pause between two looks, for the same caller.
const ATOMIC_STEP: Delta = Delta::from_micros(1);

/// An address handle.
pub(crate) struct Ah {
    handle: AddressHandle,
    /// Others may have the same handle.
    shared: bool,
    dgid: Gid,
    sgid_index: u8,
}

/// How far the device is with a handle. The end of the command may come after its caller has given
/// up, hence this is counted, and knows what is to be taken back then.
struct Progress {
    state: Atomic<u32>,
    handle: AddressHandle,
    ids: Arc<IdPools>,
}

const UNDER_WAY: u32 = 0;
const MADE: u32 = 1;
const REFUSED: u32 = 2;
const GIVEN_UP: u32 = 3;
const MADE_LATE: u32 = 4;

impl Progress {
    /// Gives up the wait, unless the command has just ended; returns how.
    fn give_up(&self) -> Result {
        match self.state.cmpxchg(UNDER_WAY, GIVEN_UP, Full) {
            Err(MADE) => Ok(()),
            Err(_) => Err(EINVAL),
            Ok(_) => Err(ETIMEDOUT),
        }
    }
}

impl CommandDone for Progress {
    #[doc(alias = "irdma_gsi_ud_qp_ah_cb")]
    fn done(&self, _cookie: u64, outcome: Outcome) {
        let (in_time, late) = match outcome {
            Ok(_) => (MADE, MADE_LATE),
            Err(_) => (REFUSED, REFUSED),
        };

        if self.state.cmpxchg(UNDER_WAY, in_time, Full).is_err() {
            self.state.xchg(late, Full);
            if late == REFUSED {
                self.ids.ahs.give_back(self.handle.index);
            }
        }
    }

    /// Takes away a handle that came too late for its caller.
    fn follow_up(&self, function: &Function<'_>) {
        let late = self.state.load(Acquire) == MADE_LATE;

        if late && function.post(&DestroyAh(self.handle)).is_ok() {
            self.ids.ahs.give_back(self.handle.index);
        }
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
    #[doc(alias = "irdma_setup_ah")]
    pub(super) fn new(
        dev: &Device<'_>,
        pd: &Pd,
        attr: &AhAttr<'_>,
        may_sleep: bool,
        mut udata: Option<&mut Udata<'_, Verbs>>,
    ) -> Result<Self> {
        if let Some(udata) = &mut udata {
            udata.no_request()?;
            if udata.response_len() < abi::MIN_CREATE_AH_RESP {
                return Err(EINVAL);
            }
        }

        let path = Path::new(dev, attr, path::default_priority)?;
        let arp_index = path.neighbour(dev)?;
        let handle = AddressHandle {
            index: 0,
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

        // Those of the kernel may have to be given back where nobody may sleep.
        let shared = udata.is_some() && may_sleep;
        let handle = match shared {
            true => dev.shared_ahs().take(dev, handle)?,
            false => Self::make(dev, handle, may_sleep)?,
        };

        let ah = Self {
            handle,
            shared,
            dgid: attr.dgid(),
            sgid_index: attr.sgid_index(),
        };
        if let Some(udata) = udata {
            let response = abi::CreateAhResp {
                ah_id: handle.index,
                rsvd: [0; 4],
            };
            if let Err(error) = udata.respond(&response) {
                ah.destroy(dev, may_sleep);
                return Err(error);
            }
        }

        Ok(ah)
    }

    /// Has the device make a handle, and returns it with its index. A number whose handle may still
    /// be made stays taken until the command's end, or the reset that the device's silence asks for.
    #[doc(alias = "irdma_create_hw_ah")]
    #[doc(alias = "irdma_ah_cqp_op")]
    fn make(dev: &Device<'_>, handle: AddressHandle, may_sleep: bool) -> Result<AddressHandle> {
        let number = dev.ids().ahs.take()?;
        let handle = AddressHandle {
            index: number.get(),
            ..handle
        };
        let result = if may_sleep {
            dev.function().execute(&CreateAh(handle)).map(|_| ())
        } else {
            Self::make_without_sleep(dev, handle)
        };

        match result {
            Ok(()) | Err(ETIMEDOUT) => {
                number.keep();
            }
            Err(_) => (),
        }

        result.map(|()| handle)
    }

    fn make_without_sleep(dev: &Device<'_>, handle: AddressHandle) -> Result {
        let function = dev.function();
        let progress = Progress {
            state: Atomic::new(UNDER_WAY),
            handle,
            ids: dev.ids().clone(),
        };
        let progress = Arc::new(progress, GFP_ATOMIC)?;

        function.submit(&CreateAh(handle), progress.clone(), 0)?;
        await_without_sleep(function, || match progress.state.load(Acquire) {
            MADE => Some(Ok(())),
            REFUSED => Some(Err(EINVAL)),
            _ => None,
        })
        .unwrap_or_else(|| progress.give_up())
    }

    /// Gives the handle back. Sleeps if it is one that users share, else only if `may_sleep`.
    #[doc(alias = "irdma_destroy_ah")]
    pub(super) fn destroy(&self, dev: &Device<'_>, may_sleep: bool) {
        match self.shared {
            true => dev.shared_ahs().give_back(dev, &self.handle),
            false => Self::unmake(dev, &self.handle, may_sleep),
        }
    }

    /// Takes a handle away from the device, which does it before it makes the next one: nobody waits
    /// for that, but for room for the command.
    fn unmake(dev: &Device<'_>, handle: &AddressHandle, may_sleep: bool) {
        let function = dev.function();
        let command = DestroyAh(*handle);
        let told = match function.post(&command) {
            Err(EAGAIN) if may_sleep => function.execute(&command).map(|_| ()),
            Err(EAGAIN) => await_without_sleep(function, || match function.post(&command) {
                Err(EAGAIN) => None,
                told => Some(told),
            })
            .unwrap_or(Err(EAGAIN)),
            told => told,
        };

        // If the device can't be told, it may go on using the number, which is lost then until the
        // function is reset.
        if told.is_ok() {
            dev.ids().ahs.give_back(handle.index);
        }
    }

    /// Tells what the handle was made of.
    #[doc(alias = "irdma_query_ah")]
    pub(super) fn query(&self) -> QueriedAh {
        QueriedAh {
            dgid: self.dgid,
            flow_label: self.handle.flow_label,
            hop_limit: self.handle.hop_limit,
            traffic_class: self.handle.traffic_class,
            sgid_index: self.sgid_index,
        }
    }

    /// Returns the number by which a work request names the handle.
    #[inline]
    pub(super) fn number(&self) -> u32 {
        self.handle.index
    }
}

/// Looks by `f` again and again until it finds something, the device has had its time, or is about
/// to be reset. Never sleeps.
fn await_without_sleep<R>(function: &Function<'_>, mut f: impl FnMut() -> Option<R>) -> Option<R> {
    let begin = Instant::<Monotonic>::now();

    loop {
        let found = f();
        if found.is_some() || begin.elapsed() > ATOMIC_LIMIT || function.is_reset_pending() {
            return found;
        }
        // The interrupt that would take completions may be waiting for this very processor.
        function.process_completions();
        udelay(ATOMIC_STEP);
    }
}
