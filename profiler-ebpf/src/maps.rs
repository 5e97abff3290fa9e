//! Every map, with its size and the reason for it.
//!
//! All but the ring buffer are arrays: the verifier turns their lookups into plain arithmetic, they take
//! no locks (so a firing in an NMI can use them), and user space maps them into its memory and drains
//! them without one system call per entry. What several CPUs write is atomic. The sizes here are
//! placeholders where they say so: user space sets them from the number of CPUs and the memory limit.

use crate::word::Word;
use aya_ebpf::{
    bindings::BPF_F_MMAPABLE,
    macros::map,
    maps::{Array, RingBuf},
};
use profiler_common::abi::{
    BLOCK_WORDS, KERNEL_SCRATCH_WORDS, KEY_WORDS, SIDES, SYMBOL_BYTES, USER_SCRATCH_WORDS,
};

/// [`profiler_common::abi::Books`], as the kernel half writes it.
pub(crate) type Books = [Word; 16];

/// [`profiler_common::abi::Side`], as the kernel half writes it.
#[repr(C, align(64))]
pub(crate) struct Side {
    pub(crate) cursor: Word,
}

/// [`profiler_common::abi::Control`], as the kernel half writes it.
#[repr(C, align(64))]
pub(crate) struct Control {
    pub(crate) live: Word,
    pub(crate) namespace_level: Word,
    pub(crate) tallies: [Side; SIDES],
    pub(crate) stacks: [Side; SIDES],
}

/// [`profiler_common::abi::Tally`], as the kernel half writes it.
#[repr(C, align(64))]
pub(crate) struct Tally {
    pub(crate) weight: Word,
    pub(crate) count: Word,
    pub(crate) key: [Word; KEY_WORDS],
}

/// [`profiler_common::abi::Block`], as the kernel half writes it.
pub(crate) type Block = [Word; BLOCK_WORDS];

/// Where a firing puts its records together: too large for the BPF stack.
#[repr(C, align(64))]
pub(crate) struct Scratch {
    pub(crate) user: [Word; USER_SCRATCH_WORDS],
    pub(crate) kernel: [Word; KERNEL_SCRATCH_WORDS],
}

/// One value: which sides are live and how far they are filled.
#[map]
pub(crate) static CONTROL: Array<Control> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// One value per possible CPU (set at load): its counters.
#[map]
pub(crate) static BOOKS: Array<Books> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// One value per possible CPU (set at load): where a firing puts its stacks together. Not a per-CPU
/// array, whose lookup is a call before Linux 6.10.
#[map]
pub(crate) static SCRATCH: Array<Scratch> = Array::with_max_entries(1, 0);

/// Both sides' tallies, one side after the other (capacity set at load).
#[map]
pub(crate) static TALLIES: Array<Tally> = Array::with_max_entries(2, BPF_F_MMAPABLE);

/// Both sides' index from hash to tally (size set at load: twice the tallies, a power of two).
#[map]
pub(crate) static TALLY_INDEX: Array<Word> = Array::with_max_entries(2, BPF_F_MMAPABLE);

/// Both sides' stacks (blocks set at load).
#[map]
pub(crate) static STACKS: Array<Block> = Array::with_max_entries(2, BPF_F_MMAPABLE);

/// Both sides' index from hash to stack (size set at load).
#[map]
pub(crate) static STACK_INDEX: Array<Word> = Array::with_max_entries(2, BPF_F_MMAPABLE);

/// One bit per task ID that the kernel gives out (size set at load from `kernel.pid_max`): is it a
/// target? Exact, never full, and cheaper than any hash.
#[map]
pub(crate) static TARGETS: Array<Word> = Array::with_max_entries(1, BPF_F_MMAPABLE);

/// Processes announced lately: slot by hash, holding the last process that fell into it. A process that
/// was pushed out is announced again, which does no harm. 4,096 slots, 32 KiB.
#[map]
pub(crate) static ANNOUNCED: Array<Word> = Array::with_max_entries(ANNOUNCED_SLOTS, 0);

/// Slots of [`ANNOUNCED`].
pub(crate) const ANNOUNCED_SLOTS: u32 = 4096;

/// News for user space, at most one record per new process: 64 KiB hold 2,700 of them, more than a
/// machine starts in the milliseconds that user space needs to wake up.
#[map]
pub(crate) static NOTICES: RingBuf = RingBuf::with_byte_size(64 * 1024, 0);

/// What the kernel calls an address; see [`crate::symbol`].
#[map]
pub(crate) static SYMBOL: Array<[u8; SYMBOL_BYTES]> = Array::with_max_entries(1, BPF_F_MMAPABLE);
