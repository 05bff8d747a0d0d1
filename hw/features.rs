// SPDX-License-Identifier: GPL-2.0

//! The firmware's version and features.

use kernel::prelude::*;

use super::{
    bits::get,
    cqp::memory::QueryFeatures,
    dma::DmaBuffer,
    function::Function, //
};

/// Number of kinds of record that are known.
#[doc(alias = "IRDMA_MAX_FEATURES")]
const KNOWN: usize = 34;

/// Kind of record: the firmware's version, and in bits 47:32 the number of records.
const KIND_FIRMWARE: u64 = 0;

/// Kind of record: flags.
const KIND_FLAGS: u64 = 32;

/// Flag: the device does atomic operations.
#[doc(alias = "IRDMA_ATOMICS_ALLOWED_BIT")]
const FLAG_ATOMICS: u64 = 1 << 0;

/// What the firmware says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Features {
    /// Major version of the firmware.
    pub(crate) firmware_major: u16,
    /// Minor version of the firmware.
    pub(crate) firmware_minor: u16,
    /// The device does atomic operations.
    pub(crate) atomics: bool,
}

impl Features {
    /// Takes one record; one of an unknown kind says nothing.
    pub(crate) fn take(&mut self, record: u64) {
        match get::<63, 48>(record) {
            KIND_FIRMWARE => {
                // CAST: The fields are not wider than their types.
                self.firmware_major = get::<31, 16>(record) as u16;
                self.firmware_minor = get::<15, 0>(record) as u16;
            }
            KIND_FLAGS => self.atomics = record & FLAG_ATOMICS != 0,
            _ => (),
        }
    }

    /// Asks the firmware.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the answer makes no sense.
    /// - Those of [`Function::execute`] and [`DmaBuffer::new`].
    #[doc(alias = "irdma_get_rdma_features")]
    pub(crate) fn query(function: &Function<'_>) -> Result<Self> {
        let mut buffer = Self::ask(function, KNOWN)?;
        let mut count = Self::count(&buffer)?;

        if count > KNOWN {
            buffer = Self::ask(function, count)?;
            count = Self::count(&buffer)?.min(count);
        }

        let mut features = Self::default();

        for i in 0..count.min(buffer.words().len()) {
            features.take(buffer.read(i)?);
        }

        Ok(features)
    }

    /// Returns the number of records.
    fn count(buffer: &DmaBuffer) -> Result<usize> {
        // CAST: The field has 16 bits.
        let count = get::<47, 32>(buffer.read(0)?) as usize;

        if count < 2 {
            return Err(EINVAL);
        }

        Ok(count)
    }

    fn ask(function: &Function<'_>, records: usize) -> Result<DmaBuffer> {
        let buffer = DmaBuffer::new(function.parent(), (records * 8).next_multiple_of(16))?;
        let result = function.execute(&QueryFeatures {
            buffer: buffer.address(),
            length: buffer.size().try_into()?,
        });

        match result {
            Ok(_) => Ok(buffer),
            Err(error) => {
                if error == ETIMEDOUT {
                    function.bury(buffer);
                }
                Err(error)
            }
        }
    }
}
