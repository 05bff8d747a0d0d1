// SPDX-License-Identifier: GPL-2.0

//! Functions of the E810, handed over by `ice`.

use kernel::{
    auxiliary::{
        self,
        DeviceId, //
    },
    prelude::*, //
};

use crate::{
    bindings::iidc::{
        self,
        Event, //
    },
    hw::{
        self,
        device::{
            Config,
            CriticalErrors, //
        },
        function::{
            FunctionInfo,
            Protocol, //
        },
        hal::e810::E810,
        irq::Vector,
        lan_ops::{
            LanOps,
            QosParams,
            Qset, //
        },
        regs::{
            BarMapping,
            Regs, //
        }, //
    },
    verbs, //
};

/// Vectors that events need at least: one for completions, one for the rest.
#[doc(alias = "IRDMA_MIN_MSIX")]
const MIN_VECTORS: usize = 2;

/// Cause of the function's interrupt (`PFINT_OICR`): an error in the function-private memory.
#[doc(alias = "IRDMAPFINT_OICR_HMC_ERR_M")]
const OICR_HMC_ERROR: u32 = 1 << 26;

/// Cause of the function's interrupt: an error of a push page.
#[doc(alias = "IRDMAPFINT_OICR_PE_PUSH_M")]
const OICR_PUSH_ERROR: u32 = 1 << 27;

/// Cause of the function's interrupt: a critical error of the protocol engine.
#[doc(alias = "IRDMAPFINT_OICR_PE_CRITERR_M")]
const OICR_CRITICAL_ERROR: u32 = 1 << 28;

/// The driver of the auxiliary devices `ice.roce` and `ice.iwarp`.
pub(crate) struct Ice;

kernel::auxiliary_device_table!(
    ICE_TABLE,
    <Ice as iidc::Driver>::IdInfo,
    [
        (DeviceId::new(c"ice", c"roce"), Protocol::Roce),
        (DeviceId::new(c"ice", c"iwarp"), Protocol::Iwarp)
    ]
);

/// How often a device is brought up that does not answer and can't be reset now: after a reset `ice`
/// has us probe before it takes a request for another one, and nobody has us probe again.
const ATTEMPTS: u32 = 3;

/// What the device asks of `ice`.
struct Lan<'bound>(iidc::Function<'bound>);

impl From<Qset> for iidc::Qset {
    fn from(qset: Qset) -> Self {
        Self {
            handle: qset.handle,
            traffic_class: qset.traffic_class,
            vsi: qset.vsi,
        }
    }
}

impl LanOps for Lan<'_> {
    fn add_qset(&self, qset: Qset) -> Result<u32> {
        self.0.add_qset(qset.into())
    }

    fn remove_qset(&self, qset: Qset, node: u32) {
        // `ice` has said why, and there is nothing else to be done.
        let _ = self.0.remove_qset(qset.into(), node);
    }

    fn request_reset(&self) -> Result {
        self.0.request_reset()
    }

    fn is_unplugged(&self) -> bool {
        self.0.is_unplugged()
    }
}

/// Takes a vector for each processor and one for asynchronous events, or as many as there are.
#[doc(alias = "icrdma_init_interrupts")]
fn vectors<'bound>(function: iidc::Function<'bound>) -> Result<KVec<Vector<'bound>>> {
    let wanted = iidc::online_cpus() + 1;
    let mut vectors = KVec::with_capacity(wanted, GFP_KERNEL)?;
    while vectors.len() < wanted {
        match function.vector() {
            Ok(vector) => vectors.push(Vector::new(vector)?, GFP_KERNEL)?,
            Err(_) if vectors.len() >= MIN_VECTORS => break,
            Err(error) => {
                dev_err!(
                    function.device(),
                    "the LAN driver has {} interrupt vectors for RDMA, {} are needed\n",
                    vectors.len(),
                    MIN_VECTORS
                );
                return Err(error);
            }
        }
    }
    Ok(vectors)
}

#[doc(alias = "icrdma_fill_qos_info")]
fn qos(function: iidc::Function<'_>) -> QosParams {
    let qos = function.qos();
    QosParams {
        priority_to_class: qos.priority_to_class,
        bandwidth: qos.bandwidth,
        dscp: qos.dscp,
        dscp_map: qos.dscp_map,
        priority_tags: qos.classes > 1 && !qos.dscp,
        handles: None,
    }
}

/// A bound function.
pub(crate) struct Bound<'bound> {
    registration: verbs::Registered<'bound>,
}

impl<'bound> Bound<'bound> {
    /// Brings a function up and offers it to the RDMA core.
    #[doc(alias = "icrdma_probe")]
    fn new(function: iidc::Function<'bound>, protocol: Protocol) -> Result<Self> {
        let device = function.device();
        if protocol != Protocol::Roce {
            dev_err!(
                device,
                "iWARP is not supported yet: have the LAN driver offer RoCE (devlink: enable_roce)\n"
            );
            return Err(ENODEV);
        }
        let mut attempt = 1;
        let hw = loop {
            match Self::bring_up(function, protocol) {
                Err(error) if error == EAGAIN && attempt < ATTEMPTS => {
                    dev_warn!(device, "bringing the device up once more\n");
                    attempt += 1;
                }
                result => {
                    break result.inspect_err(|error| {
                        dev_err!(device, "the device does not come up: {:?}\n", error)
                    })?
                }
            }
        };

        let registration =
            verbs::register(device.as_ref(), function.pci()?, hw, function.netdev()?).inspect_err(
                |error| {
                    dev_err!(
                        device,
                        "the RDMA core does not take the device: {:?}\n",
                        error
                    )
                },
            )?;

        // From here on the LAN driver passes RDMA packets to the device. Without it what is local works
        // all the same.
        if let Err(error) = function.set_filter(function.vsi(), true) {
            dev_warn!(
                device,
                "the LAN driver passes no RDMA packets: {:?}\n",
                error
            );
        }

        Ok(Self { registration })
    }

    fn bring_up(
        function: iidc::Function<'bound>,
        protocol: Protocol,
    ) -> Result<hw::device::Device<'bound>> {
        let mapping = BarMapping::new(function.registers()?);

        hw::device::Device::new(Config {
            device: function.device().as_ref(),
            parent: function.pci()?.as_ref(),
            regs: Regs::new(mapping, E810::new(&mapping)?)?,
            info: FunctionInfo {
                vsi: function.vsi(),
                number: function.number(),
                protocol,
            },
            vectors: vectors(function)?,
            online_cpus: iidc::online_cpus(),
            qos: qos(function),
            lan: KBox::new(Lan(function), GFP_KERNEL)?,
        })
    }

    /// The device.
    fn verbs(&self) -> &verbs::Device<'bound> {
        self.registration.data().get_ref()
    }

    /// The device below the verbs.
    fn hw(&self) -> &hw::device::Device<'bound> {
        self.verbs().hw()
    }
}

impl iidc::Driver for Ice {
    type IdInfo = Protocol;
    type Data<'bound> = Bound<'bound>;

    const NAME: &'static CStr = c"ice";
    const ID_TABLE: auxiliary::IdTable<Self::IdInfo> = &ICE_TABLE;

    fn probe<'bound>(
        function: iidc::Function<'bound>,
        protocol: &'bound Self::IdInfo,
    ) -> impl PinInit<Self::Data<'bound>, Error> + 'bound {
        Bound::new(function, *protocol)
    }

    #[doc(alias = "icrdma_remove")]
    fn unbind<'bound>(function: iidc::Function<'bound>, data: Pin<&Self::Data<'bound>>) {
        data.hw().function().expect_removal();
        // `ice` has said why if it fails, and there is nothing else to be done.
        let _ = function.set_filter(function.vsi(), false);
    }

    #[doc(alias = "icrdma_iidc_event_handler")]
    fn event<'bound>(
        function: iidc::Function<'bound>,
        data: Pin<&Self::Data<'bound>>,
        event: Event,
    ) {
        match event {
            Event::CriticalError(cause) => data.hw().critical_error(CriticalErrors {
                engine: cause & OICR_CRITICAL_ERROR != 0,
                memory: cause & OICR_HMC_ERROR != 0,
                push: cause & OICR_PUSH_ERROR != 0,
            }),
            Event::ResetWarning => data.hw().function().expect_reset(),
            Event::BeforeTcChange => data.verbs().begin_traffic_class_change(),
            Event::AfterTcChange => data.verbs().end_traffic_class_change(qos(function)),
            // What depends on the MTU asks the network device: the port's attributes and the
            // default of new queue pairs. Those that exist keep the MTU of their path.
            Event::AfterMtuChange => data.verbs().mtu_changed(),
            Event::BeforeMtuChange => {}
        }
    }
}
