//! The frames that stand for what is no function: what a thread did, and who ended its wait.
//!
//! Constants only. The reasons of waits have names of their own, in [`super::WaitReason`].

/// The leaf of a thread that could have run, and had no CPU.
pub const RUNNABLE: &str = "[runnable]";

/// The leaf of a thread that waited for something to happen, where there are stacks of threads that ran beside it.
pub const BLOCKED: &str = "[blocked]";

/// The leaf of time on a CPU in which no sample was taken.
pub const NOT_SAMPLED: &str = "[on-CPU, not sampled]";

/// The name of what has none, and the stack of which nothing is known.
pub const UNKNOWN: &str = "[unknown]";

/// Stands between the user and the kernel part of a stack, where that is asked for.
pub const DELIMITER: &str = "-";

/// Stands between the stack of a thread that waited and that of the one that ended the wait.
pub const WOKEN_BY: &str = "--";

/// Stands for who ended a wait, where nobody was seen to.
pub const WAKER_UNSEEN: &str = "[waker not seen]";

/// Stands for who would end a wait that has not ended.
pub const NOT_WOKEN: &str = "[not woken]";

/// Stands for frames that are too narrow to be in a file one by one.
pub const NARROW: &str = "[narrow frames]";

/// The stack of the profiler's own samples, whose frames say nothing of the machine.
pub const PROFILER: &str = "[profiler]";

/// The module of the profiler's process, where its stacks are that process alone.
pub const ITSELF: &str = "the profiler itself";

/// Stands for who ended a wait, where that was no thread.
pub const INTERRUPT: &str = "[interrupt]";
