//! Memory of kernel stacks that were walked, from one wait to the next.
//!
//! In: nothing but words. Never: walks.

use crate::platform::word::Word;

/// Cache of the kernel stacks with which a CPU's threads began to wait.
#[repr(C, align(64))]
pub(crate) struct KernelStacks {
    /// Words read of the running task's kernel stack.
    pub(crate) stack: [Word; STACK_WORDS],
    /// How many words of it.
    pub(crate) words: Word,
    /// Where it lies.
    pub(crate) address: Word,
    /// Which of `known` it is, or takes the place of.
    pub(crate) chosen: Word,
    /// How many stacks were not found.
    pub(crate) turn: Word,
    /// In which words the return addresses of a stack are found.
    pub(crate) found: [Word; CACHED_FRAMES],
    /// Not zero if one is found twice.
    pub(crate) ambiguous: Word,
    /// The word in which the last return address was found that is not the tracepoint's own.
    pub(crate) last: Word,
    pub(crate) known: [KernelStack; CACHED_STACKS],
}

/// How much of a kernel stack is looked at: 1 KiB. A wait for a lock has about half of that below the scheduler.
pub(crate) const STACK_WORDS: usize = 128;

/// How many frames a kernel stack may have that is kept.
pub(crate) const CACHED_FRAMES: usize = 30;

/// How many kernel stacks are kept for each CPU, 32 KiB of them. A power of two.
pub(crate) const CACHED_STACKS: usize = 128;

/// A kernel stack that was walked.
#[repr(C, align(64))]
pub(crate) struct KernelStack {
    /// Its record's header; zero if there is none here.
    pub(crate) header: Word,
    /// Where it is stored: a [`profiler_common::abi::StackPosition`], and 32 bits higher the epoch, plus one.
    pub(crate) stored: Word,
    /// Its addresses from leaf to root, each with the word of the stack that it was found in
    /// in the place of its 16 highest bits.
    pub(crate) frames: [Word; CACHED_FRAMES],
}
