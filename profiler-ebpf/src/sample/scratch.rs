//! Scratch memory of a firing's context.
//!
//! In: nothing but words. Never: asks the kernel.

use crate::platform::word::Word;

/// Context of a firing; see [`crate::sample::context::SampleContext`].
#[repr(C)]
pub(crate) struct Context {
    /// The process's ID, and the thread's in the lower half.
    pub(crate) ids: Word,
    pub(crate) incarnation: Word,
    pub(crate) now: Word,
}

/// A wait that is over, and is about to be counted.
#[repr(C)]
pub(crate) struct Wait {
    pub(crate) since: Word,
    pub(crate) until: Word,
    /// The [`Chance`](profiler_common::wait_sampling::Chance) that it had of being looked at.
    pub(crate) chance: Word,
    /// The first draw for the wait that begins.
    pub(crate) draw: Word,
}
