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
    /// How far the beginnings of the thread's last waits lay apart.
    pub(crate) interval: Word,
}
