//! Threads that are off the CPU: in which state they left it, what is kept of them until they are back,
//! and what is told of those that left it before anybody looked.

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

    /// What a thread in this state is doing.
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

/// Words of a [`Sleeper`].
pub const SLEEPER_WORDS: usize = AWAITED_WORD + 1;

/// Which word of a [`Sleeper`] says since when the thread is off the CPU.
pub const SINCE_WORD: usize = 0;

/// Which word of a [`Sleeper`] is the first of its key.
pub const SLEEPER_KEY_WORD: usize = 1;

/// Which word of a [`Sleeper`] says when the thread was woken.
pub const WOKEN_WORD: usize = 1 + KEY_WORDS;

/// Which word of a [`Sleeper`] says since when the thread is on a CPU.
pub const ARRIVED_WORD: usize = WOKEN_WORD + 1;

/// Which word of a [`Sleeper`] says what the thread waits for.
pub const AWAITED_WORD: usize = ARRIVED_WORD + 1;

/// Which word of a [`Sleeper`] says when the thread's last wait began, where not every wait is looked at; wake-ups are
/// not noted there then.
pub const LEFT_WORD: usize = WOKEN_WORD;

/// Which word of a [`Sleeper`] says how far the beginnings of the thread's last waits lay apart on average, where not
/// every wait is looked at; see [`thin`](crate::thin). Zero until it has waited twice.
pub const GAP_WORD: usize = AWAITED_WORD;

/// Which word of a [`Sleeper`] says when the thread's last page fault began, where calls are waited for; wake-ups are
/// not noted there then. Zero once it is over, as far as that is seen, or the thread has begun a call.
pub const FAULT_WORD: usize = WOKEN_WORD;

/// Which word of a [`Sleeper`] says how often the thread had left the CPU of its own accord when that fault began;
/// [`FAULT_HAS_WAITED`] or [`FAULT_DECIDED`] from some time on. A thread that is in no call has no key.
pub const FAULT_SWITCHES_WORD: usize = SLEEPER_KEY_WORD;

/// Which word of a [`Sleeper`] says which instruction the program was at when that fault began.
pub const FAULT_PLACE_WORD: usize = SLEEPER_KEY_WORD + 1;

/// Which word of a [`Sleeper`] says which address that fault is about.
pub const FAULT_ADDRESS_WORD: usize = SLEEPER_KEY_WORD + 2;

/// See [`FAULT_SWITCHES_WORD`]: whether the thread has left the CPU does not matter any more.
pub const FAULT_DECIDED: u64 = u64::MAX;

/// See [`FAULT_SWITCHES_WORD`]: the thread has left the CPU.
pub const FAULT_HAS_WAITED: u64 = FAULT_DECIDED - 1;

/// What is kept of a thread from its switch out to its switch in. As words: the nanosecond, by the
/// monotonic clock, at which it left the CPU, or zero while it is on one; the
/// [`SampleKey`](super::SampleKey) that its time will be counted for; with
/// [`Switches::WALL`](super::Switches::WALL), when it was woken since, or zero, and when it was given the CPU
/// that it is on, or zero; what it waits for, where that matters.
pub type Sleeper = [u64; SLEEPER_WORDS];

/// Two keys as words, stored as if they were a stack: of the thread that waited, and of the one that woke it, which
/// is all zeros if nobody was seen to.
pub type Pair = [u64; 2 * KEY_WORDS];

/// Words of a [`Waker`].
pub const WAKER_WORDS: usize = WAKER_KEY_WORD + KEY_WORDS;

/// Which word of a [`Waker`] says when it woke the thread.
pub const WOKE_WORD: usize = 0;

/// Which word of a [`Waker`] is the first of its key.
pub const WAKER_KEY_WORD: usize = 1;

/// What is kept of who woke a thread, until the thread is back: when, in nanoseconds by the monotonic clock, or zero if
/// nobody has since; and the [`SampleKey`](super::SampleKey) of what the waker did then.
pub type Waker = [u64; WAKER_WORDS];

/// A thread may be woken while it is on its way to sleep: at most so long before it is seen to leave.
pub const WAKE_RACE_NS: u64 = 1_000_000;

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
        /// The thread's ID in the initial namespace, which names its [`Sleeper`].
        pub id: u32,
        /// How many addresses follow.
        pub frames: u32,
        /// The process's ID, as seen in our PID namespace.
        pub tgid: u32,
        /// The thread's ID, as seen in our PID namespace.
        pub tid: u32,
        /// See [`SampleKey::incarnation`](super::SampleKey::incarnation).
        pub incarnation: u64,
        /// What it is [`ThreadState`].
        pub thread_state: u32,
        /// How its registers are to be understood; a [`KeptRegisters`].
        pub kept: u32,
        /// The instruction that user mode goes on at.
        pub ip: u64,
        /// User mode's stack pointer.
        pub sp: u64,
        /// What user mode keeps in the frame-pointer register.
        pub fp: u64,
        /// What user mode keeps in the other register that frames are found by, `rbx` on x86-64.
        pub bx: u64,
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
