// SPDX-License-Identifier: GPL-2.0

//! The control queue's completion queue.

use kernel::{
    device::{
        Bound,
        Device, //
    },
    prelude::*,
    sync::{
        barrier::{
            dma_mb,
            Read,
            Write, //
        },
        Arc, //
    }, //
};

use super::{
    bits::{
        bit,
        field,
        get,
        get_bit, //
    },
    cqp::cq::{
        CreateCq,
        DestroyCq,
        RingBase, //
    },
    dma::DmaBuffer,
    function::Function, //
};

/// Number of the queue.
#[doc(alias = "IRDMA_RSVD_CQ_ID_CQP")]
pub(crate) const CCQ_ID: u32 = 0;

/// Number of quadwords of an entry.
const CQE_WORDS: usize = 4;

/// Number of quadwords of a shadow area.
pub(crate) const SHADOW_WORDS: usize = 8;

/// The quadword of a shadow area that arms the queue.
pub(crate) const SHADOW_ARM: usize = 4;

/// The completion of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CommandCompletion {
    /// What the control queue's context says the completions shall carry.
    pub(crate) context: u64,
    /// Index of the command's entry.
    pub(crate) index: u32,
    /// Value that the command returns.
    pub(crate) value: u32,
    /// The command failed.
    pub(crate) error: bool,
    /// Major code.
    pub(crate) major: u16,
    /// Minor code.
    pub(crate) minor: u16,
}

impl CommandCompletion {
    /// Decodes an entry; `None` if its valid bit is not `polarity`.
    pub(crate) const fn decode(entry: &[u64; CQE_WORDS], polarity: bool) -> Option<Self> {
        let [_, context, value, flags] = *entry;

        if get_bit::<63>(flags) != polarity {
            return None;
        }

        // CAST: The fields are not wider than their types.
        Some(Self {
            context,
            index: get::<46, 32>(flags) as u32,
            value: value as u32,
            error: get_bit::<55>(flags),
            major: get::<31, 16>(flags) as u16,
            minor: get::<15, 0>(flags) as u16,
        })
    }
}

/// Returns the next value of quadword [`SHADOW_ARM`] of the control queue's completion queue.
const fn arm_word_ccq(previous: u64) -> u64 {
    rearm(previous) | bit::<14>(true) | bit::<15>(get_bit::<15>(previous))
}

/// Advances the sequence number and keeps the selected ring.
const fn rearm(previous: u64) -> u64 {
    field::<13, 0>(get::<13, 0>(previous)) | field::<17, 16>(get::<17, 16>(previous) + 1)
}

/// The memory of the queue.
pub(crate) struct CcqMemory {
    /// The entries.
    pub(crate) ring: DmaBuffer,
    /// The shadow area.
    pub(crate) shadow: DmaBuffer,
    /// Number of entries.
    pub(crate) entries: u32,
}

impl CcqMemory {
    /// Allocates the memory of a queue of `entries` entries.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(device: &Device<Bound>, entries: u32) -> Result<Self> {
        // CAST: Widening.
        Ok(Self {
            ring: DmaBuffer::new(device, entries as usize * CQE_WORDS * 8)?,
            shadow: DmaBuffer::new(device, SHADOW_WORDS * 8)?,
            entries,
        })
    }
}

/// The consumer's end of the queue.
pub(crate) struct CcqRing {
    memory: Arc<CcqMemory>,
    head: u32,
    polarity: bool,
}

impl CcqRing {
    /// Begins at the first entry of a fresh queue.
    pub(crate) fn new(memory: Arc<CcqMemory>) -> Self {
        Self {
            memory,
            head: 0,
            polarity: true,
        }
    }

    /// Takes the next completion, if there is one.
    #[doc(alias = "irdma_sc_ccq_get_cqe_info")]
    pub(crate) fn next(&mut self) -> Option<CommandCompletion> {
        // CAST: Widening.
        let at = self.head as usize * CQE_WORDS;
        let flags = self.memory.ring.read(at + CQE_WORDS - 1).ok()?;

        if get_bit::<63>(flags) != self.polarity {
            return None;
        }

        // The rest of the entry is read after its valid bit.
        dma_mb(Read);

        let mut entry = self.memory.ring.read_all::<CQE_WORDS>(at).ok()?;
        // The flags as they were checked, even if the device changes them meanwhile.
        if let Some(last) = entry.last_mut() {
            *last = flags;
        }
        let completion = CommandCompletion::decode(&entry, self.polarity)?;

        self.head += 1;
        if self.head == self.memory.entries {
            self.head = 0;
            self.polarity = !self.polarity;
        }

        // The device may use the entry again.
        let _ = self.memory.shadow.hand_back(0, self.head.into());
        dma_mb(Write);

        Some(completion)
    }

    /// Asks for an event with the next completion; the doorbell is left to the caller.
    #[doc(alias = "irdma_sc_ccq_arm")]
    pub(crate) fn arm(&mut self) {
        // Nothing can fail: the quadword is inside of the shadow area.
        let previous = self.memory.shadow.read(SHADOW_ARM).unwrap_or(0);
        let _ = self.memory.shadow.write(SHADOW_ARM, arm_word_ccq(previous));
        dma_mb(Write);
    }
}

/// The device reads the consumer index from the shadow area after this many entries.
const SHADOW_READ_THRESHOLD: u32 = 16;

/// The queue. On drop it is taken away from the device.
pub(crate) struct Ccq<'a> {
    function: Arc<Function<'a>>,
    memory: Arc<CcqMemory>,
}

impl<'a> Ccq<'a> {
    /// Makes the queue; the completions of commands arrive in it from now on.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, and those of [`Function::execute`].
    #[doc(alias = "irdma_create_ccq")]
    pub(crate) fn new(function: Arc<Function<'a>>) -> Result<Self> {
        let entries = function.regs().hal().limits().ccq_entries;
        let memory = Arc::new(CcqMemory::new(function.parent(), entries)?, GFP_KERNEL)?;
        let command = CreateCq {
            cq_id: CCQ_ID,
            entries,
            ring: RingBase::Contiguous(memory.ring.address()),
            shadow: memory.shadow.address(),
            shadow_read_threshold: SHADOW_READ_THRESHOLD,
            ceq_id: Some(0),
            mask_events: false,
            check_overflow: true,
            vsi: function.vsi(),
        };

        // The first completion in it is that of its own creation.
        function.cqp.attach_ccq(memory.clone());
        if let Err(error) = function.execute_first(&command) {
            function.cqp.detach_ccq();
            if error == ETIMEDOUT {
                function.bury(memory);
            }
            return Err(error);
        }

        Ok(Self { function, memory })
    }
}

impl Drop for Ccq<'_> {
    #[doc(alias = "irdma_destroy_ccq")]
    fn drop(&mut self) {
        // The completion of its destruction cannot arrive in it.
        self.function.cqp.detach_ccq();

        let result = self.function.execute(&DestroyCq {
            cq_id: CCQ_ID,
            entries: self.memory.entries,
            ring: RingBase::Contiguous(self.memory.ring.address()),
            shadow: self.memory.shadow.address(),
            ceq_id: Some(0),
            mask_events: false,
        });

        if result.is_err() {
            self.function.bury(self.memory.clone());
        }
    }
}
