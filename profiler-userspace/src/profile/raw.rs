//! The raw profile: what one drain brings up from the kernel, before anything has a name.
//!
//! In: filled by [`crate::kernel`]. Out: read by [`crate::symbolize`].
//! It owns its stacks, so nothing in it depends on a kernel-side position still being valid.

use super::Window;
use profiler_common::abi::StackEnd;

/// Whom a sample belongs to: only what the user asked to tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Who {
    /// The process (thread group) ID, as seen in our PID namespace; 0 is the idle task.
    pub tgid: u32,
    /// Tells apart processes that wore the same PID, and one process before and after `exec`. Zero
    /// where the kernel has no type information. See `profiler_common::abi::Tally::incarnation`.
    pub incarnation: u64,
    /// The thread's name, NUL-padded. Bytes from the target: anything may be in it.
    pub comm: [u8; 16],
    /// The thread ID, with `--per-thread`.
    pub tid: Option<u32>,
    /// The CPU, with `--per-cpu`.
    pub cpu: Option<u32>,
}

/// A stack as the kernel walked it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RawStack {
    /// Addresses from leaf to root. The first is where the CPU was; the others are return addresses.
    pub addresses: Box<[u64]>,
    /// Why the walk stopped.
    pub end: StackEnd,
}

/// An index into the [`RawProfile`]'s `stacks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackIndex(pub u32);

/// One tally: everything that was counted for one combination of owner and stacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawSample {
    /// Whose.
    pub who: Who,
    /// The user stack; none for kernel threads and where it was not asked for.
    pub user: Option<StackIndex>,
    /// The kernel stack; none where the CPU was in user mode or it was not asked for.
    pub kernel: Option<StackIndex>,
    /// The sum of the weights.
    pub weight: u64,
    /// The number of firings.
    pub count: u64,
}

/// Everything drained from one window.
#[derive(Clone, Debug, Default)]
pub struct RawProfile {
    /// The window that this covers.
    pub window: Window,
    /// Distinct stacks, of either kind.
    pub stacks: Vec<RawStack>,
    /// One per tally.
    pub samples: Vec<RawSample>,
}
