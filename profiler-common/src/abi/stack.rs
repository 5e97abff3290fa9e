//! Stacks as they cross the boundary.

/// The most frames kept of one user stack.
pub const MAX_USER_FRAMES: usize = 1024;

/// The most frames kept of one kernel stack: the default of `kernel.perf_event_max_stack`, which the
/// kernel's own walker obeys.
pub const MAX_KERNEL_FRAMES: usize = 127;

/// Why a walk stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum StackEnd {
    /// The outermost frame was reached.
    Root = 0,
    /// The limit on frames was reached; callers are missing.
    Truncated = 1,
    /// The stack memory of the next frame could not be read.
    Unreadable = 2,
    /// The frame pointer did not lead to a caller: code built without frame pointers.
    NoFramePointer = 3,
    /// A 32-bit process, whose frames are not walked.
    Compat = 4,
}

impl StackEnd {
    /// The end whose discriminant is `code`, if there is one.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Root),
            1 => Some(Self::Truncated),
            2 => Some(Self::Unreadable),
            3 => Some(Self::NoFramePointer),
            4 => Some(Self::Compat),
            _ => None,
        }
    }
}
