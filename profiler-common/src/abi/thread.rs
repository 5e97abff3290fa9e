//! Threads from one firing to the next: in which state they left the CPU, what is kept of them until they are back, and
//! what is reported of those that left it before anybody looked.

use super::layout::boundary;
use super::{KEY_WORDS, ThreadState};

/// Why a thread is off the CPU: the kernel's task states, as `ps` has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum TaskState {
    /// Another thread was given the CPU; this one could go on.
    Runnable = 0,
    /// It waits, and signals end the wait.
    Sleeping = 1,
    /// It waits, and signals do not end the wait: for a disk, as a rule.
    DiskSleep = 2,
    /// A signal stopped it.
    Stopped = 3,
    /// A debugger stopped it.
    Traced = 4,
    /// A kernel thread that was set aside.
    Parked = 5,
    /// A kernel thread without work.
    Idle = 6,
}

impl TaskState {
    /// All of them, in the order of their discriminants.
    pub const ALL: [Self; 7] = [
        Self::Runnable,
        Self::Sleeping,
        Self::DiskSleep,
        Self::Stopped,
        Self::Traced,
        Self::Parked,
        Self::Idle,
    ];

    /// The state of a thread that is switched out, from the `task_struct.__state` that it had
    /// (`include/linux/sched.h`) and whether it was made to go. None if it never comes back.
    #[inline(always)]
    pub const fn of(state: u32, preempted: bool) -> Option<Self> {
        const INTERRUPTIBLE: u32 = 1;
        const STOPPED: u32 = 4;
        const TRACED: u32 = 8;
        const PARKED: u32 = 0x40;
        const DEAD: u32 = 0x80;
        const UNINTERRUPTIBLE: u32 = 2;
        const NO_LOAD: u32 = 0x400;
        if state & DEAD != 0 {
            None
        } else if preempted || state == 0 {
            Some(Self::Runnable)
        } else if state & INTERRUPTIBLE != 0 {
            Some(Self::Sleeping)
        } else if state & STOPPED != 0 {
            Some(Self::Stopped)
        } else if state & TRACED != 0 {
            Some(Self::Traced)
        } else if state & PARKED != 0 {
            Some(Self::Parked)
        } else if state & (UNINTERRUPTIBLE | NO_LOAD) == UNINTERRUPTIBLE | NO_LOAD {
            Some(Self::Idle)
        } else {
            Some(Self::DiskSleep)
        }
    }

    /// The letter that `ps` has for the state.
    pub const fn letter(self) -> char {
        match self {
            Self::Runnable => 'R',
            Self::Sleeping => 'S',
            Self::DiskSleep => 'D',
            Self::Stopped => 'T',
            Self::Traced => 't',
            Self::Parked => 'P',
            Self::Idle => 'I',
        }
    }

    /// The [`ThreadState`] of a thread in this state of the kernel's.
    #[inline(always)]
    pub const fn thread_state(self) -> ThreadState {
        match self {
            Self::Runnable => ThreadState::Runnable,
            _ => ThreadState::Blocked,
        }
    }
}

/// A set of task states: one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct States(pub u32);

impl States {
    /// Every state.
    pub const ALL: Self = Self((1 << TaskState::ALL.len()) - 1);

    /// The set with one more state in it.
    #[must_use]
    pub const fn with(self, state: TaskState) -> Self {
        Self(self.0 | 1 << state as u32)
    }

    /// The set without one of its states.
    #[must_use]
    pub const fn without(self, state: TaskState) -> Self {
        Self(self.0 & !(1 << state as u32))
    }

    /// Whether a state is in the set.
    #[inline(always)]
    pub const fn has(self, state: TaskState) -> bool {
        self.0 & (1 << state as u32) != 0
    }
}

boundary! {
    /// Record of a thread from one firing to the next.
    #[repr(C)]
    pub struct ThreadEntry<W = u64> {
        /// When it left the CPU, or began what firings wait for the end of, in nanoseconds by the monotonic clock; zero while
        /// it is on one, and has begun nothing.
        pub since: W,
        /// The words of the [`SampleKey`](super::SampleKey) that this time will be counted for.
        pub key: [W; KEY_WORDS],
        /// When it was woken since it left, or zero; kept where all of the threads' time is wanted.
        pub woken: W,
        /// When it was given the CPU that it is on, or zero; kept where all of the threads' time is wanted.
        pub arrived: W,
        /// When its last wait began, where not every wait is looked at.
        pub left: W,
        /// The [`Chance`](crate::wait_sampling::Chance) that its last wait had, where not every wait is looked at. Zero until it has
        /// waited twice.
        pub chance: W,
        /// The [`AwaitedLock`](super::AwaitedLock) that it waits for; zero in a call.
        pub awaited: W,
        /// The page fault that it is in, where calls are waited for.
        pub fault: PageFault<W>,
    }

    /// A page fault.
    #[repr(C)]
    pub struct PageFault<W = u64> {
        /// A [`FaultPhase`].
        pub phase: W,
        /// When it began.
        pub begun: W,
        /// How often the thread had left the CPU of its own accord when it began.
        pub switches: W,
        /// Which instruction the program was at.
        pub place: W,
        /// Which address it is about.
        pub address: W,
    }

    /// Waker of a thread, kept until the thread is back.
    #[repr(C)]
    pub struct WakerEntry<W = u64> {
        /// When, in nanoseconds by the monotonic clock; zero if nobody has since.
        pub woke: W,
        /// The words of the [`SampleKey`](super::SampleKey) of what the waker did then.
        pub key: [W; KEY_WORDS],
    }

    /// The keys of a thread that waited, and of the one that woke it, stored as if they were a stack.
    #[repr(C)]
    pub struct WaitPair<W = u64> {
        /// Of the thread that waited.
        pub waited: [W; KEY_WORDS],
        /// Of the one that woke it; all zeros if nobody was seen to.
        pub woke: [W; KEY_WORDS],
    }
}

/// How far a page fault has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum FaultPhase {
    /// The thread is in none, as far as is seen.
    None = 0,
    /// It has begun. Whether the thread leaves the CPU matters.
    Begun = 1,
    /// The thread has left the CPU.
    HasWaited = 2,
    /// Whether the thread leaves the CPU does not matter, or not any more.
    Decided = 3,
}

impl FaultPhase {
    /// The phase whose discriminant is `code`; none for all that is no phase.
    #[inline(always)]
    pub const fn from_code(code: u64) -> Self {
        match code {
            1 => Self::Begun,
            2 => Self::HasWaited,
            3 => Self::Decided,
            _ => Self::None,
        }
    }
}

/// A thread may be woken while it is on its way to sleep: at most so long before it is seen to leave.
pub const WAKE_RACE_NS: u64 = 1_000_000;

/// Threads of whose waits some are left out at once, a power of two. Where two that wait often have one slot, the one takes it from the
/// other.
pub const OFTEN_WAITING_SLOTS: u32 = 16 << 10;

/// How a thread's user registers are to be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum KeptRegisters {
    /// A kernel thread: there are none.
    None = 0,
    /// A 64-bit program's.
    Native = 1,
    /// A 32-bit program's.
    Compat = 2,
}

/// Words of an [`Asleep`].
pub const ASLEEP_WORDS: usize = size_of::<Asleep>() / 8;

boundary! {
    /// A thread that was off the CPU when the kernel half looked at it; the addresses of its kernel stack
    /// follow it, from leaf to root.
    #[repr(C)]
    pub struct Asleep {
        /// The thread's ID in the initial namespace, which names its [`ThreadEntry`].
        pub id: u32,
        /// How many addresses follow.
        pub frames: u16,
        /// See [`SampleKey::cgroup`](super::SampleKey::cgroup).
        pub cgroup: u16,
        /// The process's ID, as seen in our PID namespace.
        pub tgid: u32,
        /// The thread's ID, as seen in our PID namespace.
        pub tid: u32,
        /// See [`SampleKey::incarnation`](super::SampleKey::incarnation).
        pub incarnation: u64,
        /// The thread's state; a [`ThreadState`].
        pub thread_state: u32,
        /// How its registers are to be understood; a [`KeptRegisters`].
        pub kept: u32,
        /// The instruction that user mode goes on at.
        pub ip: u64,
        /// User mode's stack pointer.
        pub sp: u64,
        /// User mode's frame-pointer register.
        pub fp: u64,
        /// User mode's other register that frames are found by: [`SAVED`](crate::walk::arch::SAVED).
        pub saved: u64,
        /// The thread's name, NUL-padded, as two words.
        pub comm: [u64; 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_states_have_the_kernels_values() {
        for (state, preempted, expected) in [
            (0, false, Some(TaskState::Runnable)),
            (0, true, Some(TaskState::Runnable)),
            (1, true, Some(TaskState::Runnable)),
            (1, false, Some(TaskState::Sleeping)),
            (2, false, Some(TaskState::DiskSleep)),
            // TASK_KILLABLE, TASK_RTLOCK_WAIT, TASK_FROZEN, TASK_FREEZABLE with what it goes with.
            (0x102, false, Some(TaskState::DiskSleep)),
            (0x1000, false, Some(TaskState::DiskSleep)),
            (0x8000, false, Some(TaskState::DiskSleep)),
            (0x2001, false, Some(TaskState::Sleeping)),
            (0x104, false, Some(TaskState::Stopped)),
            (0x108, false, Some(TaskState::Traced)),
            (0x40, false, Some(TaskState::Parked)),
            (0x402, false, Some(TaskState::Idle)),
            (0x80, false, None),
            (0x80, true, None),
        ] {
            assert_eq!(TaskState::of(state, preempted), expected, "{state:#x}");
        }
    }

    #[test]
    fn a_state_set_contains_what_was_put_in() {
        for (place, state) in TaskState::ALL.into_iter().enumerate() {
            assert_eq!(state as usize, place);
            assert!(States::ALL.has(state));
            let alone = States(0).with(state);
            assert!(!States::ALL.without(state).has(state));
            assert_eq!(States::ALL.without(state).with(state), States::ALL);
            assert!(
                TaskState::ALL
                    .iter()
                    .all(|&other| alone.has(other) == (other == state))
            );
        }
    }

    #[test]
    fn asleep_is_whole_words_without_padding() {
        assert_eq!(size_of::<Asleep>(), 4 * 4 + 8 + 2 * 4 + 6 * 8);
        assert_eq!(ASLEEP_WORDS * 8, size_of::<Asleep>());
    }
}
