//! Values of a thread, from its thread pointer, which is at the beginning of the C library's own structure: variables lie below it.

use crate::runtime::Process;

/// glibc: pointers to the blocks of values lie here from the thread pointer (`pthread.specific`).
pub(in crate::runtime) const GLIBC_SPECIFIC: u64 = 1296;
/// musl: the pointer to the values lies here from the thread pointer.
pub(in crate::runtime) const MUSL_VALUES: u64 = 0x80;

/// The address of a thread-local variable of the executable: `below` is how far it lies below the thread pointer, the
/// segment's size rounded up to its alignment, less the variable's offset.
#[inline(always)]
pub fn executable_variable(process: &impl Process, below: u64) -> u64 {
    process.thread_pointer().wrapping_sub(below)
}
