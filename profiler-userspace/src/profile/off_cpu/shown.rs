//! How waits are shown, and what stands for what is no function.
//!
//! In: what the user wants. Out: plain values.

/// The leaf of a thread that could have run, and had no CPU.
pub const RUNNABLE: &str = "[runnable]";

/// The leaf of a thread that waited for something to happen, where there are stacks of threads that ran beside it.
pub const BLOCKED: &str = "[blocked]";

/// Stands between the stack of a thread that waited and that of the one that ended the wait.
pub const WOKEN_BY: &str = "--";

/// Stands for who ended a wait, where nobody was seen to.
pub const WAKER_UNSEEN: &str = "[waker not seen]";

/// Stands for who would end a wait that has not ended.
pub const NOT_WOKEN: &str = "[not woken]";

/// Stands for who ended a wait, where that was no thread.
pub const INTERRUPT: &str = "[interrupt]";

/// How it is shown who ended waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wakers {
    /// Not at all.
    #[default]
    None,
    /// With their stacks, under the names of who waited.
    Alone,
    /// With their stacks, upside down above those of who waited.
    Above,
}

/// How waits are shown, and what is made of kernel stacks for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffCpuView {
    /// Whether the scheduler's frames stay, and only the probe's are cut.
    pub scheduler: bool,
    /// Whether it is said at the leaf what was waited for.
    pub reasons: bool,
    /// Whether kernel frames stay.
    pub kernel: bool,
    /// Whether there are threads that ran, whose stacks stay as they are.
    pub ran: bool,
    /// How it is shown who ended waits.
    pub wakers: Wakers,
}
