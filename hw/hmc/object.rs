// SPDX-License-Identifier: GPL-2.0

//! The kinds of object that the device keeps in the function-private memory.

/// A kind of object.
#[doc(alias = "irdma_hmc_rsrc_type")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Object {
    /// Queue pair contexts.
    Qp = 0,
    /// Completion queue contexts.
    Cq,
    /// Shared receive queue contexts.
    Srq,
    /// Hash table entries.
    HashEntry,
    /// Neighbours.
    Arp,
    /// The bit vector of accelerated TCP ports.
    Apbvt,
    /// Memory keys.
    Mr,
    /// Transmit FIFO entries.
    Xf,
    /// Free list of the transmit FIFO.
    XfFreeList,
    /// Inbound read queue entries.
    Q1,
    /// Free list of the inbound read queue.
    Q1FreeList,
    /// Timers.
    Timer,
    /// Multicast groups.
    McastGroup,
    /// Address handles.
    AddressHandle,
    /// Page-list entries.
    Pble,
    /// Read response FIFO entries.
    Rrf,
    /// Free list of the read response FIFO.
    RrfFreeList,
    /// Headers.
    Header,
    /// Metadata.
    Metadata,
    /// Out-of-order segments (iWARP).
    Ooisc,
    /// Free list of the out-of-order segments (iWARP).
    OoiscFreeList,
}

/// Number of kinds.
pub(crate) const OBJECTS: usize = 21;

impl Object {
    /// All kinds, in the order of their numbers.
    pub(crate) const ALL: [Object; OBJECTS] = [
        Object::Qp,
        Object::Cq,
        Object::Srq,
        Object::HashEntry,
        Object::Arp,
        Object::Apbvt,
        Object::Mr,
        Object::Xf,
        Object::XfFreeList,
        Object::Q1,
        Object::Q1FreeList,
        Object::Timer,
        Object::McastGroup,
        Object::AddressHandle,
        Object::Pble,
        Object::Rrf,
        Object::RrfFreeList,
        Object::Header,
        Object::Metadata,
        Object::Ooisc,
        Object::OoiscFreeList,
    ];

    /// Returns the index of the quadword that stands for the kind in the buffers that query and fix
    /// the layout.
    pub(crate) const fn commit_word(self) -> usize {
        match self {
            Object::Qp => 0,
            Object::Cq => 1,
            Object::Srq => 2,
            Object::HashEntry => 3,
            Object::Arp => 4,
            Object::Apbvt => 5,
            Object::Mr => 6,
            Object::Xf => 7,
            Object::XfFreeList => 8,
            Object::Q1 => 9,
            Object::Q1FreeList => 10,
            Object::Timer => 11,
            Object::McastGroup => 12,
            Object::AddressHandle => 13,
            Object::Pble => 14,
            Object::Rrf => 16,
            Object::RrfFreeList => 17,
            Object::Header => 18,
            Object::Metadata => 19,
            Object::Ooisc => 20,
            Object::OoiscFreeList => 21,
        }
    }
}

/// One value for each kind of object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PerObject<T>([T; OBJECTS]);

impl<T: Copy> PerObject<T> {
    /// Returns the value of a kind.
    #[inline]
    pub(crate) fn get(&self, object: Object) -> T {
        // PANIC: The kinds are numbered from 0 to `OBJECTS - 1`.
        self.0[object as usize]
    }

    /// Sets the value of a kind.
    #[inline]
    pub(crate) fn set(&mut self, object: Object, value: T) {
        // PANIC: The kinds are numbered from 0 to `OBJECTS - 1`.
        self.0[object as usize] = value;
    }
}
