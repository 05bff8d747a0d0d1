// SPDX-License-Identifier: GPL-2.0

//! Protection domains. The device knows them as numbers only.

use kernel::prelude::*;

use super::{
    abi,
    device::Device,
    Verbs, //
};
use crate::rdma::Udata;

/// A protection domain.
pub(crate) struct Pd {
    number: u32,
}

impl Pd {
    /// Makes a protection domain.
    ///
    /// # Errors
    ///
    /// - `ENOMEM` if there is no number left.
    /// - `EINVAL` if the user has no room for the response.
    #[doc(alias = "irdma_alloc_pd")]
    #[doc(alias = "irdma_sc_pd_init")]
    pub(super) fn new(dev: &Device<'_>, udata: Option<&mut Udata<'_, Verbs>>) -> Result<Self> {
        let Some(udata) = udata else {
            return Ok(Self {
                number: dev.ids().pds.take()?.keep(),
            });
        };

        udata.no_request()?;
        if udata.response_len() < abi::MIN_ALLOC_PD_RESP {
            return Err(EINVAL);
        }

        let number = dev.ids().pds.take()?;
        udata.respond(&abi::AllocPdResp {
            pd_id: number.get(),
            rsvd: [0; 4],
        })?;

        Ok(Self {
            number: number.keep(),
        })
    }

    /// Gives the domain's number back.
    #[doc(alias = "irdma_dealloc_pd")]
    pub(super) fn destroy(&self, dev: &Device<'_>) {
        dev.ids().pds.give_back(self.number);
    }

    /// Returns the domain's number.
    pub(super) fn number(&self) -> u32 {
        self.number
    }
}
