// SPDX-License-Identifier: GPL-2.0

//! Event queues and their interrupt vectors.
//!
//! With enough vectors the asynchronous event queue has the first and each completion event queue
//! one of the others. With fewer than that, completion event queue 0 shares the first vector.

use kernel::{
    fmt,
    prelude::*,
    str::CString,
    sync::Arc, //
};

use super::{
    aeq::{
        Aeq,
        AeqVector,
        SharedVector, //
    },
    ceq::{
        Ceq,
        CeqVector, //
    },
    function::Function,
    irq::{
        IrqHandler,
        Vector, //
    }, //
};

/// Which vector is whose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VectorPlan {
    /// Completion event queue 0 shares the first vector with the asynchronous event queue.
    pub(crate) shared: bool,
    /// Number of completion event queues.
    pub(crate) ceqs: usize,
}

impl VectorPlan {
    /// Plans for `vectors` vectors, `cpus` CPUs and up to `max_ceqs` completion event queues.
    ///
    /// # Errors
    ///
    /// `EINVAL` if there is nothing to share out.
    #[doc(alias = "irdma_save_msix_info")]
    pub(crate) fn new(vectors: usize, cpus: usize, max_ceqs: usize) -> Result<Self> {
        if vectors == 0 || max_ceqs == 0 {
            return Err(EINVAL);
        }

        let shared = vectors <= cpus.max(1);
        let queues = vectors.min(max_ceqs);
        let ceqs = match shared {
            true => queues,
            false => queues.saturating_sub(1).max(1),
        };

        Ok(Self { shared, ceqs })
    }

    /// Returns the index of the vector of completion event queue `ceq`.
    pub(crate) const fn vector_of(&self, ceq: usize) -> usize {
        match self.shared {
            true => ceq,
            false => ceq + 1,
        }
    }
}

/// Returns what `/proc/interrupts` shows.
fn name(function: &Function<'_>, what: fmt::Arguments<'_>) -> Result<CString> {
    CString::try_from_fmt(fmt!("irdma-{}-{}", function.parent().name(), what))
}

/// Stops a vector from interrupting. Errors mean that there is no such vector.
fn silence(function: &Function<'_>, vector: &Vector<'_>) {
    let _ = function.regs().disable_vector(vector.index());
}

/// The handler of a completion event queue's vector.
enum CeqIrq<'a> {
    /// The queue has the vector for itself.
    #[expect(dead_code, reason = "held until it is dropped")]
    Own(Pin<KBox<IrqHandler<'a, CeqVector<'a>>>>),
    /// The asynchronous event queue has it too.
    Shared(Pin<KBox<IrqHandler<'a, SharedVector<'a>>>>),
}

/// A completion event queue with its interrupts. On drop it is taken away from the device.
pub(crate) struct CeqUnit<'a> {
    irq: Option<CeqIrq<'a>>,
    function: Arc<Function<'a>>,
    ceq: Arc<Ceq<'a>>,
    vector: Vector<'a>,
}

impl<'a> CeqUnit<'a> {
    /// Makes queue `id` and has it interrupt by `vector`, which is `shared` or not. The CPU of the
    /// same number is the best one for it.
    ///
    /// # Errors
    ///
    /// Those of [`Ceq::new`] and [`IrqHandler::new`].
    #[doc(alias = "irdma_setup_ceq_0")]
    #[doc(alias = "irdma_setup_ceqs")]
    pub(crate) fn new(
        function: Arc<Function<'a>>,
        id: u32,
        entries: u32,
        vector: Vector<'a>,
        shared: bool,
    ) -> Result<Self> {
        let ceq = Ceq::new(function.clone(), id, entries)?;
        // From here on a failure takes the queue away again.
        let mut unit = Self {
            irq: None,
            function,
            ceq,
            vector,
        };
        let function = &unit.function;
        let vector = &unit.vector;

        unit.irq = Some(match shared {
            true => CeqIrq::Shared(KBox::pin_init(
                IrqHandler::new(
                    vector.clone(),
                    name(function, fmt!("AEQCEQ-{}", id))?,
                    Some(id),
                    SharedVector::new(unit.ceq.clone(), vector.clone()),
                ),
                GFP_KERNEL,
            )?),
            false => CeqIrq::Own(KBox::pin_init(
                IrqHandler::new(
                    vector.clone(),
                    name(function, fmt!("CEQ-{}", id))?,
                    Some(id),
                    Ok(CeqVector::new(unit.ceq.clone(), vector.clone())),
                ),
                GFP_KERNEL,
            )?),
        });
        function.regs().configure_ceq(id, vector.index(), true)?;
        function.regs().enable_vector(vector.index())?;

        Ok(unit)
    }

    /// Returns the queue.
    pub(crate) fn ceq(&self) -> &Arc<Ceq<'a>> {
        &self.ceq
    }

    /// Has the shared vector attend to `aeq`, or to none.
    fn share_with(&self, aeq: Option<Arc<Aeq<'a>>>) {
        if let Some(CeqIrq::Shared(irq)) = &self.irq {
            irq.handler().set_aeq(aeq);
        }
    }
}

impl Drop for CeqUnit<'_> {
    #[doc(alias = "irdma_del_ceqs")]
    #[doc(alias = "irdma_del_ceq_0")]
    fn drop(&mut self) {
        let id = self.ceq.id();

        if let Some(irq) = self.irq.take() {
            if id != 0 || matches!(irq, CeqIrq::Shared(_)) {
                let _ = self
                    .function
                    .regs()
                    .configure_ceq(id, self.vector.index(), false);
            }
            silence(&self.function, &self.vector);
            drop(irq);
        }
        if id == 0 {
            // Nobody is told of completions any more.
            self.function.cqp.expect_interrupts(false);
        }
        self.ceq.destroy();
    }
}

/// The asynchronous event queue with its interrupts. On drop it is taken away from the device.
pub(crate) struct AeqUnit<'a> {
    irq: Option<Pin<KBox<IrqHandler<'a, AeqVector<'a>>>>>,
    function: Arc<Function<'a>>,
    aeq: Arc<Aeq<'a>>,
    vector: Vector<'a>,
    /// Whom the vector is shared with.
    ceq: Option<Arc<CeqUnit<'a>>>,
}

impl<'a> AeqUnit<'a> {
    /// Has `aeq` interrupt by `vector`, which it shares with `ceq` or not.
    ///
    /// # Errors
    ///
    /// Those of [`IrqHandler::new`].
    #[doc(alias = "irdma_setup_aeq")]
    pub(crate) fn new(
        function: Arc<Function<'a>>,
        aeq: Arc<Aeq<'a>>,
        vector: Vector<'a>,
        ceq: Option<Arc<CeqUnit<'a>>>,
    ) -> Result<Self> {
        // From here on a failure takes the queue away again.
        let mut unit = Self {
            irq: None,
            function,
            aeq,
            vector,
            ceq,
        };
        let function = &unit.function;
        let vector = &unit.vector;

        match &unit.ceq {
            Some(ceq) => ceq.share_with(Some(unit.aeq.clone())),
            None => {
                unit.irq = Some(KBox::pin_init(
                    IrqHandler::new(
                        vector.clone(),
                        name(function, fmt!("AEQ"))?,
                        None,
                        Ok(AeqVector::new(unit.aeq.clone(), vector.clone())),
                    ),
                    GFP_KERNEL,
                )?);
            }
        }
        function.regs().configure_aeq(vector.index(), true)?;
        if unit.irq.is_some() {
            function.regs().enable_vector(vector.index())?;
        }

        Ok(unit)
    }

    /// Returns the queue.
    pub(crate) fn aeq(&self) -> &Arc<Aeq<'a>> {
        &self.aeq
    }
}

impl Drop for AeqUnit<'_> {
    fn drop(&mut self) {
        self.aeq.set_handler(None);
        match (&self.ceq, self.irq.take()) {
            (Some(ceq), _) => ceq.share_with(None),
            (None, Some(irq)) => {
                let _ = self
                    .function
                    .regs()
                    .configure_aeq(self.vector.index(), false);
                silence(&self.function, &self.vector);
                drop(irq);
            }
            (None, None) => (),
        }
        self.aeq.destroy();
    }
}
