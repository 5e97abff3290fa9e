//! Tallies and their keys: who was sampled, where, and in which thread state.

use super::StackPosition;
use super::layout::{Zero, boundary};

/// Bytes of a thread's name in the kernel, its NUL included (`include/linux/sched.h`, `TASK_COMM_LEN`).
pub const COMM_BYTES: usize = 16;

/// A thread's name in the words that it crosses in.
pub fn comm_in([first, last]: [u64; 2]) -> [u8; COMM_BYTES] {
    let mut comm = [0; COMM_BYTES];
    let (head, rest) = comm.split_at_mut(8);
    head.copy_from_slice(&first.to_ne_bytes());
    rest.copy_from_slice(&last.to_ne_bytes());
    comm
}

/// Words in a [`SampleKey`].
pub const KEY_WORDS: usize = 6;

boundary! {
    /// Process, thread and stacks of samples. Firings with equal keys share one [`Tally`]; only
    /// parts that the user asked to tell apart are ever different from zero.
    #[repr(C)]
    pub struct SampleKey {
        /// When the process's first thread began, in nanoseconds since boot, plus the number of `exec`s
        /// behind it: differs between processes that wore one PID, and between one process's programs.
        /// Zero where the kernel has no type information.
        pub incarnation: u64,
        /// The process ID, as seen in our PID namespace; 0 is the idle task.
        pub tgid: u32,
        /// The thread ID with [`Switches::PER_THREAD`](super::Switches::PER_THREAD), else 0.
        pub tid: u32,
        /// The CPU with [`Switches::PER_CPU`](super::Switches::PER_CPU), else 0. Linux numbers no more than 8,192.
        pub cpu: u16,
        /// The number of the task's cgroup: see [`CROWDED_CGROUP`](super::CROWDED_CGROUP).
        pub cgroup: u16,
        /// Where the user stack is stored.
        pub user: StackPosition,
        /// Where the kernel stack is stored.
        pub kernel: StackPosition,
        /// When the stacks were stored, and what the thread was doing.
        pub stamp: Stamp,
        /// The thread's name, NUL-padded.
        pub comm: [u8; COMM_BYTES],
    }
}

impl SampleKey {
    /// Which of its [`words`](Self::words) is the incarnation.
    pub const INCARNATION_WORD: usize = 0;

    /// Which of them holds the process ID, in the lower half.
    pub const TGID_WORD: usize = 1;

    /// Which of them holds the stamp, in the upper half.
    pub const STAMP_WORD: usize = 3;

    /// The stamp in that word.
    pub const fn stamp_in(word: u64) -> Stamp {
        Stamp((word >> 32) as u32)
    }

    /// That word, for another thing that the thread was doing.
    pub const fn with_thread_state(word: u64, thread_state: ThreadState) -> u64 {
        let before = Self::stamp_in(word);
        let stamp = Stamp::new(before.epoch(), thread_state).of_event(before.event());
        word & 0xffff_ffff | (stamp.0 as u64) << 32
    }

    /// Which of them holds the CPU, the cgroup, and the user stack in the upper half.
    pub const USER_WORD: usize = 2;

    /// The cgroup's number in that word.
    pub const fn cgroup_in(word: u64) -> u16 {
        (word >> 16) as u16
    }

    /// The word of a kernel stack and a stamp.
    pub const fn stamp_word(kernel: StackPosition, stamp: Stamp) -> u64 {
        kernel.0 as u64 | (stamp.0 as u64) << 32
    }

    /// The key in these words.
    pub fn from_words(words: &[u64; KEY_WORDS]) -> Self {
        let high = |word: u64| (word >> 32) as u32;
        Self {
            incarnation: words[Self::INCARNATION_WORD],
            tgid: words[Self::TGID_WORD] as u32,
            tid: high(words[Self::TGID_WORD]),
            cpu: words[Self::USER_WORD] as u16,
            cgroup: Self::cgroup_in(words[Self::USER_WORD]),
            user: StackPosition(high(words[Self::USER_WORD])),
            kernel: StackPosition(words[Self::STAMP_WORD] as u32),
            stamp: Self::stamp_in(words[Self::STAMP_WORD]),
            comm: comm_in([words[4], words[5]]),
        }
    }

    /// The key as words, for hashing and comparing.
    pub fn words(&self) -> [u64; KEY_WORDS] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = self.comm;
        [
            self.incarnation,
            pair(self.tgid, self.tid),
            pair(self.cpu as u32 | (self.cgroup as u32) << 16, self.user.0),
            pair(self.kernel.0, self.stamp.0),
            u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            u64::from_ne_bytes([i, j, k, l, m, n, o, p]),
        ]
    }
}

/// State of a thread during the time that a sample stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum ThreadState {
    /// It was on a CPU.
    #[default]
    Running = 0,
    /// It waited for something to happen.
    Blocked = 1,
    /// It could have run, and another had the CPU.
    Runnable = 2,
    /// It was on a CPU, for as long as the scheduler says. No stack belongs to it.
    Ran = 3,
    /// It waited for something to happen, until another thread woke it. In the place of the kernel stack is a
    /// [`WaitPair`](super::WaitPair).
    Woken = 4,
}

/// Where a key's stacks come from: bits 0–23 the epoch in which they were stored ([`Live::epoch`]),
/// bits 24–27 the [`ThreadState`], bits 28–31 which event of the recording counts it.
///
/// [`Live::epoch`]: super::Live::epoch
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Stamp(pub u32);

impl Zero for Stamp {
    const ZERO: Self = Self(0);
}

impl Zero for StackPosition {
    const ZERO: Self = Self::NONE;
}

impl Stamp {
    /// The highest epoch that there is room for; after it comes the first again.
    pub const LAST_EPOCH: u32 = (1 << 24) - 1;

    /// Stacks of the given epoch.
    pub const fn new(epoch: u32, thread_state: ThreadState) -> Self {
        Self((epoch & Self::LAST_EPOCH) | (thread_state as u32) << 24)
    }

    /// The same, of another event than the first.
    #[must_use]
    pub const fn of_event(self, event: u32) -> Self {
        Self(self.0 | event << 28)
    }

    /// The number of the event.
    pub const fn event(self) -> u32 {
        self.0 >> 28
    }

    /// The epoch of the stacks.
    pub const fn epoch(self) -> u32 {
        self.0 & Self::LAST_EPOCH
    }

    /// The thread's state.
    pub const fn thread_state(self) -> ThreadState {
        match self.0 >> 24 & 0xf {
            1 => ThreadState::Blocked,
            2 => ThreadState::Runnable,
            3 => ThreadState::Ran,
            4 => ThreadState::Woken,
            _ => ThreadState::Running,
        }
    }
}

boundary! {
    /// Everything counted for one key in one epoch. One cache line.
    #[repr(C)]
    pub struct Tally<W = u64, K = SampleKey> {
        /// The sum of the firings' weights.
        pub weight: W,
        /// The number of firings.
        pub count: W,
        /// The key that they share.
        pub key: K,
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_EVENTS;
    use super::*;

    #[test]
    fn a_key_is_its_words() {
        let key = SampleKey {
            incarnation: 1,
            tgid: 2,
            tid: 3,
            cpu: 4,
            cgroup: 8,
            user: StackPosition(5),
            kernel: StackPosition(6),
            stamp: Stamp(7),
            comm: *b"0123456789abcdef",
        };
        assert_eq!(SampleKey::from_words(&key.words()), key);
    }

    #[test]
    fn a_stamp_holds_epoch_thread_state_and_event_separately() {
        for thread_state in [
            ThreadState::Running,
            ThreadState::Blocked,
            ThreadState::Runnable,
            ThreadState::Ran,
            ThreadState::Woken,
        ] {
            for epoch in [0, 1, Stamp::LAST_EPOCH] {
                for event in [0, 1, MAX_EVENTS as u32 - 1] {
                    let stamp = Stamp::new(epoch, thread_state).of_event(event);
                    assert_eq!(
                        (stamp.epoch(), stamp.thread_state(), stamp.event()),
                        (epoch, thread_state, event)
                    );
                    let word = SampleKey::stamp_word(StackPosition(7), stamp);
                    let later = SampleKey::stamp_in(SampleKey::with_thread_state(
                        word,
                        ThreadState::Runnable,
                    ));
                    assert_eq!(
                        later,
                        Stamp::new(epoch, ThreadState::Runnable).of_event(event)
                    );
                }
            }
        }
    }
}
