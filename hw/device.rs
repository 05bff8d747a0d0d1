// SPDX-License-Identifier: GPL-2.0

//! The device as a whole: brought up by its construction, taken down by its drop.

use kernel::{
    device::{
        self,
        Bound, //
    },
    io::poll::read_poll_timeout,
    prelude::*,
    sync::Arc,
    time::{
        msecs_to_jiffies,
        Delta, //
    }, //
};

use super::{
    aeq::{
        Aeq,
        EventHandler, //
    },
    arp::ArpTable,
    ccq::Ccq,
    ceq::{
        Ceq,
        CompletionHandler, //
    },
    cqp::address::IpAddress,
    debugfs::{
        self,
        Files,
        Tables, //
    },
    features::Features,
    function::{
        Function,
        FunctionInfo,
        Protocol, //
    },
    hal::Limits,
    hmc::{
        object::Object,
        Hmc, //
    },
    ids::IdPools,
    irq::Vector,
    lan_ops::{
        LanOps,
        QosParams, //
    },
    pble::{
        Depth,
        PageList,
        PageLists, //
    },
    periodic::Periodic,
    regs::Regs,
    reset::{
        self,
        Caretaker, //
    },
    stats::{
        Gatherer,
        Stats, //
    },
    vector::{
        AeqUnit,
        CeqUnit,
        VectorPlan, //
    },
    ws::WorkScheduler, //
};

/// How long the protocol engine may take to come up.
const READY_LIMIT: Delta = Delta::from_secs(15);

/// Pause between two looks at it.
const READY_STEP: Delta = Delta::from_millis(100);

/// What the LAN driver was told of the protocol engine by an interrupt. May be several at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CriticalErrors {
    /// An error of the protocol engine itself.
    pub(crate) engine: bool,
    /// An error in the function-private memory.
    pub(crate) memory: bool,
    /// An error of a push page.
    pub(crate) push: bool,
}

/// What the LAN driver hands over.
pub(crate) struct Config<'a> {
    /// The device that our driver is bound to; messages name it.
    pub(crate) device: &'a device::Device<Bound>,
    /// The PCI function, which does the DMA.
    pub(crate) parent: &'a device::Device<Bound>,
    /// The function's registers.
    pub(crate) regs: Regs<'a>,
    /// Numbers of the function.
    pub(crate) info: FunctionInfo,
    /// The interrupt vectors. Those that aren't needed are given back at once.
    pub(crate) vectors: KVec<Vector<'a>>,
    /// Number of CPUs that are online.
    pub(crate) online_cpus: usize,
    /// How the port shares itself among its traffic classes.
    pub(crate) qos: QosParams,
    /// The LAN driver's side.
    pub(crate) lan: KBox<dyn LanOps + 'a>,
}

/// The device. The order of the fields is that in which it is taken down.
pub(crate) struct Device<'a> {
    _files: Files,
    ws: Pin<KBox<WorkScheduler<'a>>>,
    _gatherer: Option<Pin<KBox<Periodic<Gatherer<'a>>>>>,
    _caretaker: Pin<KBox<Periodic<Caretaker<'a>>>>,
    stats: Arc<Stats<'a>>,
    arp: Arc<ArpTable>,
    aeq: AeqUnit<'a>,
    lists: Arc<PageLists<'a>>,
    /// The completion event queues but number 0.
    ceqs: KVec<CeqUnit<'a>>,
    ceq0: Arc<CeqUnit<'a>>,
    _ccq: Ccq<'a>,
    ids: Arc<IdPools>,
    _hmc: Arc<Hmc<'a>>,
    features: Features,
    function: Arc<Function<'a>>,
}

impl<'a> Device<'a> {
    /// Brings the device up. Sleeps.
    ///
    /// # Errors
    ///
    /// - `ETIMEDOUT` if the protocol engine is not up, or does not answer.
    /// - `EAGAIN` if it does not answer, and the LAN driver takes no request for a reset now.
    /// - `ENODEV` if the function has no doorbells.
    /// - `EINVAL` if what the device says of itself makes no sense.
    /// - `ENOMEM`, and those of [`Function::execute`].
    ///
    /// What had been brought up is taken down then.
    #[doc(alias = "irdma_ctrl_init_hw")]
    #[doc(alias = "irdma_rt_init_hw")]
    pub(crate) fn new(config: Config<'a>) -> Result<Self> {
        let Config {
            device,
            parent,
            regs,
            info,
            vectors,
            online_cpus,
            qos,
            lan,
        } = config;
        Self::wait_until_ready(&regs)?;

        let function = Function::new(device, parent, regs, lan, info)?;

        Self::bring_up(function.clone(), vectors, online_cpus, qos).map_err(|error| match function
            .is_reset_refused()
        {
            true => EAGAIN,
            false => error,
        })
    }

    /// Each step is undone in reverse when a later one fails.
    fn bring_up(
        function: Arc<Function<'a>>,
        vectors: KVec<Vector<'a>>,
        online_cpus: usize,
        qos: QosParams,
    ) -> Result<Self> {
        let hal = function.regs().hal();
        let limits = hal.limits();
        let features = hal.query_features(&function)?;
        let hmc = Hmc::new(function.clone())?;
        let layout = hmc.layout();
        let ids = Arc::pin_init(IdPools::new(layout, limits.max_pds), GFP_KERNEL)?;
        let ccq = Ccq::new(function.clone())?;

        // CAST: Widening.
        let max_ceqs = hmc.limits().max_ceqs as usize;
        let plan = VectorPlan::new(vectors.len(), online_cpus, max_ceqs)?;
        let ceq_entries = layout.count(Object::Cq).min(limits.max_ceq_entries);
        let ceq = |index: usize| -> Result<CeqUnit<'a>> {
            let vector = vectors.get(plan.vector_of(index)).ok_or(EINVAL)?.clone();
            let shared = plan.shared && index == 0;

            CeqUnit::new(
                function.clone(),
                index.try_into()?,
                ceq_entries,
                vector,
                shared,
            )
        };
        let ceq0 = Arc::new(ceq(0)?, GFP_KERNEL)?;

        function.cqp.expect_interrupts(true);
        function.arm_ccq();

        let mut ceqs = KVec::with_capacity(plan.ceqs, GFP_KERNEL)?;
        for index in 1..plan.ceqs {
            ceqs.push(ceq(index)?, GFP_KERNEL)?;
        }

        let lists = PageLists::new(hmc.clone())?;
        let aeq = Aeq::new(
            function.clone(),
            &lists,
            Self::aeq_entries(&hmc, function.protocol()),
        )?;
        let aeq = AeqUnit::new(
            function.clone(),
            aeq,
            vectors.first().ok_or(EINVAL)?.clone(),
            plan.shared.then(|| ceq0.clone()),
        )?;
        let arp = ArpTable::new(layout.count(Object::Arp))?;
        let stats = Stats::new(function.clone())?;
        let gatherer = match limits.stats_period_ms {
            Some(period) => Some(KBox::pin_init(
                Periodic::new(msecs_to_jiffies(period), Gatherer(stats.clone())),
                GFP_KERNEL,
            )?),
            None => None,
        };
        let caretaker = KBox::pin_init(
            Periodic::new(
                msecs_to_jiffies(reset::PERIOD_MS),
                Caretaker(function.clone()),
            ),
            GFP_KERNEL,
        )?;
        let ws = KBox::pin_init(WorkScheduler::new(function.clone(), qos), GFP_KERNEL)?;

        let files = debugfs::files(
            Tables {
                function: function.parent().into(),
                ids: ids.clone(),
                arp: arp.clone(),
                entries: lists.entries(),
                segments: hmc.backed_segments(),
                max_segments: layout.segments,
            },
            function.faults().clone(),
        )?;

        Ok(Self {
            _files: files,
            ws,
            _gatherer: gatherer,
            _caretaker: caretaker,
            stats,
            arp,
            aeq,
            lists,
            ceqs,
            ceq0,
            _ccq: ccq,
            ids,
            _hmc: hmc,
            features,
            function,
        })
    }

    #[doc(alias = "irdma_sc_dev_init")]
    fn wait_until_ready(regs: &Regs<'_>) -> Result {
        read_poll_timeout(
            || Ok(regs.is_ready()),
            |ready| *ready,
            READY_STEP,
            READY_LIMIT,
        )?;

        match regs.has_doorbells() {
            true => Ok(()),
            false => Err(ENODEV),
        }
    }

    fn aeq_entries(hmc: &Hmc<'_>, protocol: Protocol) -> u32 {
        let layout = hmc.layout();
        let qps = layout.count(Object::Qp);
        let per_qp = match protocol {
            Protocol::Iwarp => 2,
            Protocol::Roce => 1,
        };
        let max = hmc.function().regs().hal().limits().max_aeq_entries;

        qps.saturating_mul(per_qp)
            .saturating_add(layout.count(Object::Cq))
            .min(max)
    }

    /// Returns the common part, to which commands are given.
    pub(crate) fn function(&self) -> &Arc<Function<'a>> {
        &self.function
    }

    /// Returns the offset in bytes in the BAR of the page of doorbells for user space.
    pub(crate) fn user_doorbell_offset(&self) -> usize {
        self.function.regs().hal().doorbells().user_page
    }

    /// Returns the limits of the generation.
    pub(crate) fn limits(&self) -> &'static Limits {
        self.function.regs().hal().limits()
    }

    /// Returns the firmware's version and features.
    pub(crate) fn features(&self) -> &Features {
        &self.features
    }

    /// Returns the numbers of the objects.
    pub(crate) fn ids(&self) -> &Arc<IdPools> {
        &self.ids
    }

    /// Returns the work scheduler.
    pub(crate) fn ws(&self) -> &WorkScheduler<'a> {
        &self.ws
    }

    /// Returns the statistics.
    pub(crate) fn stats(&self) -> &Stats<'a> {
        &self.stats
    }

    /// Returns the number of completion vectors, of which each has an event queue.
    pub(crate) fn completion_vectors(&self) -> usize {
        self.ceqs.len() + 1
    }

    /// Returns the event queue of completion vector `vector`; one too large gets queue 0.
    pub(crate) fn ceq(&self, vector: u32) -> &Arc<Ceq<'a>> {
        // CAST: Widening.
        (vector as usize)
            .checked_sub(1)
            .and_then(|index| self.ceqs.get(index))
            .map_or_else(|| self.ceq0.ceq(), CeqUnit::ceq)
    }

    /// Has `handler` told of the events of completion queue `cq_id`, which completion vector
    /// `vector` serves; see [`Ceq::register`].
    ///
    /// # Errors
    ///
    /// Those of [`Ceq::register`].
    pub(crate) fn register_cq(
        &self,
        vector: u32,
        cq_id: u32,
        handler: Arc<dyn CompletionHandler + 'a>,
    ) -> Result {
        self.ceq(vector).register(cq_id, handler)
    }

    /// Ends what [`Device::register_cq`] began; see [`Ceq::unregister`].
    pub(crate) fn unregister_cq(&self, vector: u32, cq_id: u32) {
        self.ceq(vector).unregister(cq_id);
    }

    /// Has `handler` told of asynchronous events, or nobody; see [`Aeq::set_handler`].
    pub(crate) fn set_event_handler(&self, handler: Option<Arc<dyn EventHandler + 'a>>) {
        self.aeq.aeq().set_handler(handler);
    }

    /// Makes a page list of `count` entries; see [`PageList::new`].
    ///
    /// # Errors
    ///
    /// Those of [`PageList::new`].
    pub(crate) fn page_list(&self, count: u32, depth: Depth) -> Result<PageList> {
        PageList::new(&self.lists, count, depth)
    }

    /// Returns the neighbours that the device knows.
    pub(crate) fn arp(&self) -> &Arc<ArpTable> {
        &self.arp
    }

    /// Adds a neighbour and returns its index; see [`ArpTable::add`]. Never sleeps.
    ///
    /// # Errors
    ///
    /// Those of [`ArpTable::add`].
    pub(crate) fn add_neighbour(&self, address: IpAddress, mac: [u8; 6]) -> Result<u16> {
        self.arp.add(&self.function, address, mac)
    }

    /// Acts on critical errors that the LAN driver was told of.
    #[doc(alias = "icrdma_iidc_event_handler")]
    pub(crate) fn critical_error(&self, errors: CriticalErrors) {
        let device = self.function.device();
        let regs = self.function.regs();
        let mut reset = false;

        if errors.engine {
            let (cause, fatal) = regs.critical_error();

            dev_err!(
                device,
                "critical error of the protocol engine: {:#x}\n",
                cause
            );
            reset |= fatal;
        }
        if errors.memory {
            // Said only: a reset would take the LAN away from those who use no RDMA, and an error
            // that comes back would do so again and again.
            let (information, data) = regs.hmc_error();

            dev_warn!(
                device,
                "error in the function-private memory: {:#x} {:#x}\n",
                information,
                data
            );
        }
        if errors.push {
            dev_err!(device, "error of a push page\n");
            reset = true;
        }

        if reset {
            self.function.request_reset();
        }
    }
}
