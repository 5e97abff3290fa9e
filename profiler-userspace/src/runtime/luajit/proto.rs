//! Fields of a `GCproto` that lines and names need: `lj_obj.h`.
//!
//! In: an address in a process. Out: a number there, if it can be read.

use crate::runtime::TargetMemory;

/// The most instructions of a function that are read.
pub(super) const MAX: u32 = 1 << 20;

/// In a `GCproto`: `sizebc`.
pub(super) const INSTRUCTIONS: u64 = 0xc;

/// A number of 32 bits.
pub(super) fn number(memory: &TargetMemory, address: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    memory.copy(address, &mut bytes)?;
    Some(u32::from_le_bytes(bytes))
}
