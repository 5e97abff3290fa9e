//! A `Proto` in a process, as far as user space reads it.
//!
//! In: its address (`lobject.h` of 5.3 and 5.4). Out: its numbers and its arrays, as far as they can be read.

use crate::runtime::TargetMemory;
use profiler_common::runtime::Described as _;
use profiler_common::walk::Memory as _;

/// The most elements of an array that are read.
const MAX: u32 = 1 << 20;

/// A `Proto` of the process's, as far as user space reads it.
pub(super) struct Proto<'m> {
    pub(super) memory: &'m TargetMemory,
    pub(super) address: u64,
    pub(super) is_5_3: bool,
}

impl<'m> Proto<'m> {
    pub(super) fn new(memory: &'m TargetMemory, address: u64) -> Self {
        Self {
            memory,
            address,
            is_5_3: memory.descriptor(0) >> 16 & 0xff == 3,
        }
    }

    /// A number of 32 bits.
    pub(super) fn number(&self, offset: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.memory
            .copy(self.address.checked_add(offset)?, &mut bytes)?;
        Some(u32::from_le_bytes(bytes))
    }

    /// An array: where its address and its length are, in bytes, and the size of an element. Of longer ones, the beginning.
    pub(super) fn array(&self, address: u64, length: u64, element: usize) -> Option<Vec<u8>> {
        let [array] = self.memory.read(self.address.checked_add(address)?)?;
        let length = self.number(length)?.min(MAX) as usize;
        let mut bytes = vec![0; length * element];
        self.memory.copy(array, &mut bytes)?;
        Some(bytes)
    }
}
