// SPDX-License-Identifier: GPL-2.0

//! The function-private memory (host memory cache, HMC).
//!
//! The device keeps its objects, such as queue pair contexts and page lists, in host memory that it
//! caches. It says how many objects of each kind it can have ([`fpm`]), we say how many we want
//! ([`plan`]), it answers where they lie, and we back the segments that they lie in ([`segment`]).

use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    }, //
};

use super::{
    cqp::memory::{
        CommitFpm,
        QueryFpm,
        ShmcPagesAllocated, //
    },
    dma::DmaBuffer,
    function::Function,
    gauge::Gauge, //
};

#[forbid(unsafe_code)]
pub(crate) mod fpm;
#[forbid(unsafe_code)]
pub(crate) mod object;
#[forbid(unsafe_code)]
pub(crate) mod plan;
#[forbid(unsafe_code)]
pub(crate) mod segment;

use fpm::{
    FpmLimits,
    Layout,
    COMMIT_WORDS,
    QUERY_WORDS, //
};
use object::Object;
use segment::{
    Backing,
    Segments, //
};

/// Greatest number of queue pairs to ask for.
#[doc(alias = "rsrc_limits_table")]
const MAX_QPS: u32 = 256 * 1024;

/// What backs the memory.
struct Table<'a> {
    function: Arc<Function<'a>>,
    layout: Layout,
    segments: Segments,
    /// The kinds of object that have been backed, in the HAL's order.
    backed: [bool; object::OBJECTS],
    /// Segments that were backed for page lists.
    page_lists: KVec<u32>,
}

impl Table<'_> {
    /// Backs all kinds of object but the page lists, which grow when they are needed.
    #[doc(alias = "irdma_create_hmc_objs")]
    fn back(&mut self) -> Result {
        let objects = self.function.regs().hal().limits().objects;

        for (object, backed) in objects.iter().zip(&mut self.backed) {
            let placement = self.layout.objects.get(*object);

            if *object == Object::Pble || placement.count == 0 {
                continue;
            }

            // Even a part of it is given back.
            *backed = true;
            self.segments
                .acquire(&self.function, placement.segments())?;
        }

        Ok(())
    }
}

impl Drop for Table<'_> {
    #[doc(alias = "irdma_del_hmc_objects")]
    fn drop(&mut self) {
        let objects = self.function.regs().hal().limits().objects;

        for (object, backed) in objects.iter().zip(&self.backed) {
            if *object == Object::Pble {
                while let Some(index) = self.page_lists.pop() {
                    self.segments.release(&self.function, index..index + 1);
                }
            } else if *backed {
                let segments = self.layout.objects.get(*object).segments();

                self.segments.release(&self.function, segments);
            }
        }
    }
}

/// The function-private memory. It is taken away from the device on drop.
#[pin_data]
pub(crate) struct Hmc<'a> {
    function: Arc<Function<'a>>,
    limits: FpmLimits,
    layout: Layout,
    #[pin]
    table: Mutex<Table<'a>>,
}

impl<'a> Hmc<'a> {
    /// Asks for the memory and backs it.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the device's limits or its layout make no sense, or leave room for nothing.
    /// - `ENOMEM`, and those of [`Function::execute`].
    #[doc(alias = "irdma_hmc_setup")]
    pub(crate) fn new(function: Arc<Function<'a>>) -> Result<Arc<Self>> {
        let limits = Self::query(&function)?;
        let layout = Self::commit(&function, &limits)?;
        let mut table = Table {
            segments: Segments::new(layout.segments)?,
            function: function.clone(),
            layout,
            backed: [false; object::OBJECTS],
            page_lists: KVec::new(),
        };

        table.back()?;
        function.execute(&ShmcPagesAllocated {
            hmc_function: function.hmc_function(),
        })?;

        Arc::pin_init(
            try_pin_init!(Self {
                function,
                limits,
                layout,
                table <- new_mutex!(table, "irdma_rs::hmc"),
            }? Error),
            GFP_KERNEL,
        )
    }

    #[doc(alias = "irdma_sc_init_iw_hmc")]
    fn query(function: &Function<'_>) -> Result<FpmLimits> {
        let buffer = DmaBuffer::new(function.parent(), QUERY_WORDS * 8)?;
        let result = function.execute(&QueryFpm {
            hmc_function: function.hmc_function(),
            buffer: buffer.address(),
        });

        if let Err(error) = result {
            if error == ETIMEDOUT {
                function.bury(buffer);
            }
            return Err(error);
        }

        FpmLimits::parse(&buffer.read_all(0)?, function.protocol())
    }

    #[doc(alias = "irdma_sc_cfg_iw_fpm")]
    fn commit(function: &Function<'_>, limits: &FpmLimits) -> Result<Layout> {
        let max_ird = function.regs().hal().limits().max_ird;
        let wanted = plan::plan(limits, function.protocol(), max_ird, MAX_QPS)?;
        let buffer = DmaBuffer::new(function.parent(), COMMIT_WORDS * 8)?;

        buffer.write_all(0, &fpm::encode_commit(&wanted))?;

        let result = function.execute(&CommitFpm {
            hmc_function: function.hmc_function(),
            buffer: buffer.address(),
            length: buffer.size().try_into()?,
        });

        if let Err(error) = result {
            if error == ETIMEDOUT {
                function.bury(buffer);
            }
            return Err(error);
        }

        Layout::parse(&buffer.read_all(0)?, limits)
    }

    /// Returns what the memory belongs to.
    pub(crate) fn function(&self) -> &Arc<Function<'a>> {
        &self.function
    }

    /// Returns the limits of the memory.
    pub(crate) fn limits(&self) -> &FpmLimits {
        &self.limits
    }

    /// Returns where the objects are.
    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns what backs a segment, if anything does.
    pub(crate) fn backing(&self, segment: u32) -> Option<Backing> {
        self.table.lock().segments.backing(segment).cloned()
    }

    /// Returns what tells how many segments are backed.
    pub(crate) fn backed_segments(&self) -> Arc<Gauge> {
        self.table.lock().segments.backed().clone()
    }

    /// Puts `backing` behind a segment for page lists, and tells the device.
    ///
    /// # Errors
    ///
    /// Those of [`Segments::set`].
    pub(crate) fn back_page_lists(&self, segment: u32, backing: Backing) -> Result {
        let mut table = self.table.lock();

        table.page_lists.reserve(1, GFP_KERNEL)?;
        table.segments.set(&self.function, segment, backing)?;
        // There is room for it.
        let _ = table.page_lists.push_within_capacity(segment);

        Ok(())
    }
}
