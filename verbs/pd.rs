// SPDX-License-Identifier: GPL-2.0

//! Protection domains. The device knows them as numbers only.

use kernel::prelude::*;

use super::{
    abi,
    device::Device,
    ids::Id,
    Driver, //
};
use crate::rdma::Udata;

/// A protection domain.
pub(crate) struct Pd {
    id: Id,
}

impl Pd {
    /// Makes a protection domain.
    ///
    /// # Errors
    ///
    /// - `ENOMEM` if there is no number left.
    /// - `EINVAL` if the user has no room for the response.
    #[doc(alias = "irdma_alloc_pd")]
    pub(super) fn new(dev: &Device<'_>, udata: Option<&mut Udata<'_, Driver>>) -> Result<Self> {
        let Some(udata) = udata else {
            return Ok(Self {
                id: dev.objects().pds.take()?,
            });
        };

        udata.no_request()?;
        if udata.response_len() < abi::MIN_ALLOC_PD_RESP {
            return Err(EINVAL);
        }

        let id = dev.objects().pds.take()?;
        udata.respond(&abi::AllocPdResp {
            pd_id: id.get(),
            rsvd: [0; 4],
        })?;

        Ok(Self { id })
    }

    /// Returns the domain's number.
    pub(super) fn number(&self) -> u32 {
        self.id.get()
    }
}
