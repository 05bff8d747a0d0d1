// SPDX-License-Identifier: GPL-2.0

//! The asynchronous event queue: errors of queues, and other things that nobody waits for.

use kernel::{
    alloc::KVVec,
    new_mutex,
    prelude::*,
    sync::{
        barrier::{
            dma_mb,
            Read, //
        },
        Arc,
        Mutex, //
    }, //
};

use super::{
    bits::get_bit,
    ceq::Ceq,
    cqp::{
        cq::RingBase,
        event_queue::{
            CreateAeq,
            DestroyAeq, //
        },
    },
    dma::{
        DmaBuffer,
        HW_PAGE_SIZE, //
    },
    function::Function,
    irq::{
        Handler,
        Then,
        Vector, //
    },
    pble::{
        Depth,
        PageList,
        PageLists, //
    },
    trace, //
};

#[forbid(unsafe_code)]
pub(crate) mod code;
#[forbid(unsafe_code)]
pub(crate) mod event;

use event::{
    AsyncEvent,
    ENTRY_WORDS, //
};

/// Size of an entry in bytes.
const ENTRY_SIZE: usize = ENTRY_WORDS * 8;

/// So many events are acted on before their entries are given back.
const BATCH: u32 = 16;

/// Somebody who acts on asynchronous events.
pub(crate) trait EventHandler: Send + Sync {
    /// Called for each event, one at a time, in a thread: may sleep and execute commands.
    fn event(&self, event: &AsyncEvent);
}

/// The memory of the ring.
enum RingMemory {
    /// A contiguous region.
    Contiguous(DmaBuffer),
    /// Pages.
    Pages(KVVec<DmaBuffer>),
}

impl RingMemory {
    fn read(&self, index: usize) -> Result<u64> {
        const WORDS: usize = HW_PAGE_SIZE / 8;

        match self {
            RingMemory::Contiguous(memory) => memory.read(index),
            RingMemory::Pages(pages) => pages.get(index / WORDS).ok_or(ERANGE)?.read(index % WORDS),
        }
    }
}

/// The consumer's end of the ring.
struct State {
    tail: usize,
    polarity: bool,
}

/// The asynchronous event queue.
#[pin_data]
pub(crate) struct Aeq<'a> {
    function: Arc<Function<'a>>,
    entries: u32,
    base: RingBase,
    memory: Arc<RingMemory>,
    /// Names the pages of a ring that is not contiguous.
    list: Option<PageList>,
    #[pin]
    state: Mutex<State>,
    #[pin]
    handler: Mutex<Option<Arc<dyn EventHandler + 'a>>>,
}

impl<'a> Aeq<'a> {
    /// Makes the queue with `entries` entries.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and those of [`Function::execute`].
    #[doc(alias = "irdma_create_aeq")]
    pub(crate) fn new(
        function: Arc<Function<'a>>,
        lists: &Arc<PageLists<'a>>,
        entries: u32,
    ) -> Result<Arc<Self>> {
        let (memory, list, base) = Self::allocate(&function, lists, entries)?;
        let aeq = Arc::pin_init(
            try_pin_init!(Self {
                function,
                entries,
                base,
                memory: Arc::new(memory, GFP_KERNEL)?,
                list,
                state <- new_mutex!(
                    State {
                        tail: 0,
                        polarity: true,
                    },
                    "irdma_rs::aeq"
                ),
                handler <- new_mutex!(None, "irdma_rs::event_handler"),
            }? Error),
            GFP_KERNEL,
        )?;

        if let Err(error) = aeq.function.execute(&CreateAeq {
            entries,
            ring: base,
        }) {
            if error == ETIMEDOUT {
                aeq.function.bury(aeq.memory.clone());
            }
            return Err(error);
        }

        Ok(aeq)
    }

    /// Allocates a contiguous ring, or pages and a list of them.
    #[doc(alias = "irdma_create_virt_aeq")]
    fn allocate(
        function: &Function<'_>,
        lists: &Arc<PageLists<'a>>,
        entries: u32,
    ) -> Result<(RingMemory, Option<PageList>, RingBase)> {
        // CAST: Widening.
        let size = entries as usize * ENTRY_SIZE;

        if let Ok(memory) = DmaBuffer::new_quiet(function.parent(), size) {
            let base = RingBase::Contiguous(memory.address());

            return Ok((RingMemory::Contiguous(memory), None, base));
        }

        let count = size.div_ceil(HW_PAGE_SIZE);
        let list = PageList::new(lists, count.try_into()?, Depth::One)?;
        let mut pages = KVVec::with_capacity(count, GFP_KERNEL)?;

        for index in 0..list.len() {
            let page = DmaBuffer::new(function.parent(), HW_PAGE_SIZE)?;

            list.write(index, page.address())?;
            pages.push(page, GFP_KERNEL)?;
        }

        let base = RingBase::PageList(list.first_index());

        Ok((RingMemory::Pages(pages), Some(list), base))
    }

    /// Takes the queue away from the device. No interrupt handler uses it any more.
    #[doc(alias = "irdma_destroy_aeq")]
    pub(crate) fn destroy(&self) {
        self.function.regs().clear_aeq();

        let result = self.function.execute(&DestroyAeq {
            entries: self.entries,
            ring: self.base,
        });

        if result.is_err() {
            self.function.bury(self.memory.clone());
        }
    }

    /// Has `handler` told of the events from now on, or nobody. When this returns, the earlier
    /// handler does not run any more.
    pub(crate) fn set_handler(&self, handler: Option<Arc<dyn EventHandler + 'a>>) {
        let earlier = core::mem::replace(&mut *self.handler.lock(), handler);

        drop(earlier);
    }

    /// Takes the next event, if there is one.
    fn next(&self) -> Option<AsyncEvent> {
        let mut state = self.state.lock();
        let at = state.tail * ENTRY_WORDS;
        let word = self.memory.read(at + 1).ok()?;

        if get_bit::<63>(word) != state.polarity {
            return None;
        }

        // The rest of the entry is read after its valid bit.
        dma_mb(Read);

        let entry = [self.memory.read(at).ok()?, word];
        let event = AsyncEvent::decode(&entry, state.polarity)?;

        state.tail += 1;
        // CAST: Widening.
        if state.tail == self.entries as usize {
            state.tail = 0;
            state.polarity = !state.polarity;
        }

        Some(event)
    }

    /// Acts on the events. May sleep.
    #[doc(alias = "irdma_process_aeq")]
    pub(crate) fn process(&self) {
        let mut owed = 0;

        // A device that never stops is left alone after one turn of the ring.
        for _ in 0..self.entries {
            let Some(event) = self.next() else {
                break;
            };

            if event.overflow {
                dev_err!(
                    self.function.device(),
                    "the asynchronous event queue overflowed\n"
                );
                self.function.request_reset();
                return;
            }

            trace::async_event(&self.function, &event);
            self.hand_over(&event);

            owed += 1;
            // Handlers take their time, and the device goes on raising events.
            if owed == BATCH {
                self.function.regs().return_aeq_entries(owed);
                owed = 0;
            }
        }

        if owed != 0 {
            self.function.regs().return_aeq_entries(owed);
        }
    }

    fn hand_over(&self, event: &AsyncEvent) {
        match &*self.handler.lock() {
            Some(handler) => handler.event(event),
            None => self.function.faults().stray_async_events.count(),
        }
    }
}

/// Handler of a vector that is the asynchronous event queue's alone.
pub(crate) struct AeqVector<'a> {
    aeq: Arc<Aeq<'a>>,
    vector: Vector<'a>,
}

impl<'a> AeqVector<'a> {
    /// Makes a handler.
    pub(crate) fn new(aeq: Arc<Aeq<'a>>, vector: Vector<'a>) -> Self {
        Self { aeq, vector }
    }
}

impl Handler for AeqVector<'_> {
    #[doc(alias = "irdma_irq_handler")]
    fn interrupt(&self) -> Then {
        Then::Thread
    }

    #[doc(alias = "irdma_dpc")]
    fn thread(&self) {
        self.aeq.process();
        self.aeq.function.enable(&self.vector);
        // What was raised after the last look was forgotten.
        self.aeq.process();
    }
}

/// Handler of a vector that completion event queue 0 and the asynchronous event queue share.
#[pin_data]
pub(crate) struct SharedVector<'a> {
    ceq: Arc<Ceq<'a>>,
    vector: Vector<'a>,
    /// Comes later and goes earlier than the vector.
    #[pin]
    aeq: Mutex<Option<Arc<Aeq<'a>>>>,
}

impl<'a> SharedVector<'a> {
    /// Returns an initializer for a handler that knows of no asynchronous event queue yet.
    pub(crate) fn new(ceq: Arc<Ceq<'a>>, vector: Vector<'a>) -> impl PinInit<Self, Error> + 'a {
        try_pin_init!(Self {
            ceq,
            vector,
            aeq <- new_mutex!(None, "irdma_rs::shared_vector"),
        })
    }

    /// Attends to `aeq` from now on, or to none. When this returns, the earlier one is left alone.
    pub(crate) fn set_aeq(&self, aeq: Option<Arc<Aeq<'a>>>) {
        let earlier = core::mem::replace(&mut *self.aeq.lock(), aeq);

        drop(earlier);
    }
}

impl Handler for SharedVector<'_> {
    fn interrupt(&self) -> Then {
        // The thread is needed for the asynchronous event queue, and goes on with what is left.
        let _ = self.ceq.interrupt(&self.vector);

        Then::Thread
    }

    fn thread(&self) {
        let events = || {
            if let Some(aeq) = &*self.aeq.lock() {
                aeq.process();
            }
        };

        self.ceq.thread(&self.vector, events);
        // Last, with the vector enabled: those who act on these events wait for commands, whose
        // completions this vector tells of.
        events();
    }
}
