// SPDX-License-Identifier: GPL-2.0

//! Completion event queues: the device tells which completion queues have something new.

use kernel::{
    new_spinlock_irq,
    prelude::*,
    rbtree::{
        RBTree,
        RBTreeNode, //
    },
    sync::{
        Arc,
        SpinLockIrq, //
    },
    time::{
        delay::fsleep,
        Delta, //
    }, //
};

use super::{
    bits::get_bit,
    ccq::CCQ_ID,
    cqp::{
        cq::RingBase,
        event_queue::{
            CreateCeq,
            DestroyCeq, //
        },
    },
    dma::DmaBuffer,
    function::Function,
    irq::{
        Handler,
        Then,
        Vector, //
    }, //
};

/// What stands in the ring for a queue that is gone.
#[doc(alias = "IRDMA_INVALID_CQ_IDX")]
const FORGOTTEN: u32 = u32::MAX;

/// Greatest number of events that are acted on in one interrupt; the rest is left to a thread.
const INTERRUPT_BUDGET: usize = 256;

/// A device that is not done with its events after so many turns of the ring, none of which was for
/// anybody, is broken.
const MAX_TURNS: usize = 64;

/// Greatest number of events that are acted on in a thread until others get the processor: busy users
/// can keep the queue from ever being empty.
const THREAD_BUDGET: usize = 4096;

/// How long they get it.
const PAUSE: Delta = Delta::from_micros(100);

/// How many events are acted on, and whether one was for somebody.
struct Budget {
    events: usize,
    of_use: bool,
}

impl Budget {
    fn of(events: usize) -> Self {
        Self {
            events,
            of_use: false,
        }
    }
}

/// Whether there are events left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// There were none when the queue was last looked at.
    Nothing,
    /// There may be some.
    Something,
}

/// Somebody who wants to know of a completion queue's events.
pub(crate) trait CompletionHandler: Send + Sync {
    /// Called for each event of the queue, in hard interrupt context.
    ///
    /// The event queue's lock is held: no queue of the same event queue must be registered or taken
    /// away from here.
    fn completed(&self);
}

/// The consumer's end of the ring, and who is told of what.
struct State<'a> {
    tail: usize,
    polarity: bool,
    handlers: RBTree<u32, Arc<dyn CompletionHandler + 'a>>,
}

/// A completion event queue.
#[pin_data]
pub(crate) struct Ceq<'a> {
    function: Arc<Function<'a>>,
    id: u32,
    ring: Arc<DmaBuffer>,
    #[pin]
    state: SpinLockIrq<State<'a>>,
}

impl<'a> Ceq<'a> {
    /// Makes queue `id` of `entries` entries.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and those of [`Function::execute`].
    #[doc(alias = "irdma_create_ceq")]
    pub(crate) fn new(function: Arc<Function<'a>>, id: u32, entries: u32) -> Result<Arc<Self>> {
        // CAST: Widening.
        let ring = Arc::new(
            DmaBuffer::new(function.parent(), entries as usize * 8)?,
            GFP_KERNEL,
        )?;
        let command = CreateCeq {
            ceq_id: id,
            entries,
            ring: RingBase::Contiguous(ring.address()),
            vsi: function.vsi(),
        };
        let ceq = Arc::pin_init(
            try_pin_init!(Self {
                function,
                id,
                ring,
                state <- new_spinlock_irq!(
                    State {
                        tail: 0,
                        polarity: true,
                        handlers: RBTree::new(),
                    },
                    "irdma_rs::ceq"
                ),
            }? Error),
            GFP_KERNEL,
        )?;

        if let Err(error) = ceq.function.execute(&command) {
            if error == ETIMEDOUT {
                ceq.function.bury(ceq.ring.clone());
            }
            return Err(error);
        }

        Ok(ceq)
    }

    /// Takes the queue away from the device. No interrupt handler uses it any more.
    #[doc(alias = "irdma_destroy_ceq")]
    pub(crate) fn destroy(&self) {
        let result = self.function.execute(&DestroyCeq {
            ceq_id: self.id,
            // CAST: As many as there were.
            entries: self.ring.words().len() as u32,
            ring: RingBase::Contiguous(0),
        });

        if result.is_err() {
            self.function.bury(self.ring.clone());
        }
    }

    /// Returns the number of the queue.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// Has `handler` told of the events of completion queue `cq_id` from now on.
    ///
    /// # Errors
    ///
    /// - `ENOMEM`.
    /// - `EEXIST` if the queue has a handler.
    pub(crate) fn register(&self, cq_id: u32, handler: Arc<dyn CompletionHandler + 'a>) -> Result {
        let node = RBTreeNode::new(cq_id, handler, GFP_KERNEL)?;
        let mut state = self.state.lock();

        if state.handlers.get(&cq_id).is_some() {
            drop(state);
            return Err(EEXIST);
        }
        state.handlers.insert(node);

        Ok(())
    }

    /// Has nobody told of the events of completion queue `cq_id` any more. When this returns, no
    /// handler of it runs, and events that are still in the ring are forgotten.
    #[doc(alias = "irdma_sc_cleanup_ceqes")]
    pub(crate) fn unregister(&self, cq_id: u32) {
        let removed = {
            let mut state = self.state.lock();

            self.forget(&state, cq_id);
            state.handlers.remove_node(&cq_id)
        };

        // Not under the lock, since it may be the last reference.
        drop(removed);
    }

    /// Makes the waiting events of `cq_id` events of no queue.
    fn forget(&self, state: &State<'a>, cq_id: u32) {
        let entries = self.ring.words().len();
        let mut at = state.tail;
        let mut polarity = state.polarity;

        for _ in 0..entries {
            let Ok(event) = self.ring.read(at) else {
                return;
            };
            if get_bit::<63>(event) != polarity {
                return;
            }
            // CAST: The number is in the lower half.
            if event as u32 == cq_id {
                let _ = self
                    .ring
                    .write(at, (event & (1 << 63)) | u64::from(FORGOTTEN));
            }

            at += 1;
            if at == entries {
                at = 0;
                polarity = !polarity;
            }
        }
    }

    /// Takes the next event, if there is one.
    #[doc(alias = "irdma_sc_process_ceq")]
    fn next(&self, state: &mut State<'a>) -> Option<u32> {
        let event = self.ring.read(state.tail).ok()?;

        if get_bit::<63>(event) != state.polarity {
            return None;
        }

        state.tail += 1;
        if state.tail == self.ring.words().len() {
            state.tail = 0;
            state.polarity = !state.polarity;
        }

        // CAST: The number is in the lower half.
        Some(event as u32)
    }

    /// Acts on as many events as there is `budget` for; when there are none left, `vector` interrupts
    /// again. May be called in any context, and in several at once.
    #[doc(alias = "irdma_process_ceq")]
    #[must_use]
    fn process(&self, budget: &mut Budget, mut vector: Option<&Vector<'_>>) -> Left {
        while let Some(left) = budget.events.checked_sub(1) {
            budget.events = left;

            let mut state = self.state.lock();
            let next = self.next(&mut state).or_else(|| {
                self.function.enable(vector.take()?);
                // What was raised after the last look was forgotten.
                self.next(&mut state)
            });
            let Some(cq_id) = next else {
                return Left::Nothing;
            };

            if cq_id == CCQ_ID {
                drop(state);
                self.function.doorbells().ack_cq(cq_id);
                self.function.process_completions();
                continue;
            }

            if cq_id == FORGOTTEN {
                continue;
            }

            match state.handlers.get(&cq_id) {
                Some(handler) => {
                    self.function.doorbells().ack_cq(cq_id);
                    handler.completed();
                    budget.of_use = true;
                }
                None => self.function.faults().stale_events.count(),
            }
        }

        Left::Something
    }

    /// Acts on the events in an interrupt of `vector`, which interrupts again afterwards, unless
    /// there are too many of them.
    #[doc(alias = "irdma_ceq_handler")]
    #[must_use]
    pub(super) fn interrupt(&self, vector: &Vector<'_>) -> Left {
        self.process(&mut Budget::of(INTERRUPT_BUDGET), Some(vector))
    }

    /// Acts on what is left of the events in the thread of `vector`, which interrupts again
    /// afterwards. Where that takes long, `others` get their turn now and then.
    #[doc(alias = "irdma_ceq_dpc")]
    pub(super) fn thread(&self, vector: &Vector<'_>, others: impl Fn()) {
        let patience = self.ring.words().len().saturating_mul(MAX_TURNS);
        let mut useless: usize = 0;

        while useless < patience {
            let mut budget = Budget::of(THREAD_BUDGET);

            if self.process(&mut budget, Some(vector)) == Left::Nothing {
                return;
            }
            useless = match budget.of_use {
                true => 0,
                false => useless.saturating_add(THREAD_BUDGET),
            };
            others();
            fsleep(PAUSE);
        }

        dev_err!(
            self.function.device(),
            "completion event queue {} never ends\n",
            self.id
        );
        self.function.request_reset();
    }
}

/// Handler of a vector that is a completion event queue's alone.
pub(crate) struct CeqVector<'a> {
    ceq: Arc<Ceq<'a>>,
    vector: Vector<'a>,
}

impl<'a> CeqVector<'a> {
    /// Makes a handler.
    pub(crate) fn new(ceq: Arc<Ceq<'a>>, vector: Vector<'a>) -> Self {
        Self { ceq, vector }
    }
}

impl Handler for CeqVector<'_> {
    fn interrupt(&self) -> Then {
        match self.ceq.interrupt(&self.vector) {
            Left::Nothing => Then::Done,
            Left::Something => Then::Thread,
        }
    }

    fn thread(&self) {
        self.ceq.thread(&self.vector, || ());
    }
}
