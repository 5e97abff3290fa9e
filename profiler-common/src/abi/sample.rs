//! What is counted, and for whom.

use super::StackPosition;

/// Bytes of a thread's name in the kernel, its NUL included (`include/linux/sched.h`, `TASK_COMM_LEN`).
pub const COMM_BYTES: usize = 16;

/// Words in a [`SampleKey`].
pub const KEY_WORDS: usize = 6;

/// Who was sampled, and where. Two firings with equal keys share one [`Tally`]; only what the user
/// asked to tell apart is ever different from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The CPU with [`Switches::PER_CPU`](super::Switches::PER_CPU), else 0.
    pub cpu: u32,
    /// Where the user stack is stored.
    pub user: StackPosition,
    /// Where the kernel stack is stored.
    pub kernel: StackPosition,
    /// Always zero; here so that there is no padding.
    pub reserved: u32,
    /// The thread's name, NUL-padded.
    pub comm: [u8; COMM_BYTES],
}

impl SampleKey {
    /// Which of its [`words`](Self::words) is the incarnation.
    pub const INCARNATION_WORD: usize = 0;

    /// Which of them holds the process ID, in the lower half.
    pub const TGID_WORD: usize = 1;

    /// The key as words, for hashing and comparing.
    pub fn words(&self) -> [u64; KEY_WORDS] {
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = self.comm;
        [
            self.incarnation,
            pair(self.tgid, self.tid),
            pair(self.cpu, self.user.0),
            pair(self.kernel.0, self.reserved),
            u64::from_ne_bytes([a, b, c, d, e, f, g, h]),
            u64::from_ne_bytes([i, j, k, l, m, n, o, p]),
        ]
    }
}

/// Everything counted for one key in one epoch. One cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Tally {
    /// The sum of the firings' weights.
    pub weight: u64,
    /// The number of firings.
    pub count: u64,
    /// Whose they are.
    pub key: SampleKey,
}
