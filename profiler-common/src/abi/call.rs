//! Calls that take time: which system calls are wanted, and on which files.
//!
//! Numbers of system calls are the machine's business.

/// Which system calls are firings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WantedCalls {
    /// All of them.
    All = 0,
    /// Those that read, write and sync.
    Io = 1,
    /// Those that wait for a user lock.
    Futex = 2,
}

/// Weight of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum CallWeight {
    /// The nanoseconds that it took.
    Time = 0,
    /// The bytes that it moved.
    Bytes = 1,
    /// One.
    One = 2,
}

/// Kinds of files, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct FileKinds(pub u32);

impl FileKinds {
    /// Regular files and block devices.
    pub const FILES: Self = Self(1);
    /// Sockets.
    pub const SOCKETS: Self = Self(1 << 1);
    /// Pipes and FIFOs.
    pub const PIPES: Self = Self(1 << 2);
    /// Everything else: terminals and other devices, and descriptors of no file.
    pub const OTHERS: Self = Self(1 << 3);
    /// All of them.
    pub const ALL: Self = Self(0b1111);

    /// The kind of a file, from its inode's mode (`include/uapi/linux/stat.h`).
    #[inline(always)]
    pub const fn of(mode: u32) -> Self {
        match mode & 0o170_000 {
            0o100_000 | 0o060_000 => Self::FILES,
            0o140_000 => Self::SOCKETS,
            0o010_000 => Self::PIPES,
            _ => Self::OTHERS,
        }
    }

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether any of `other` is among these.
    #[inline(always)]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Which arguments of a system call are file descriptors: the first, and possibly another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Descriptors {
    /// The first argument alone.
    First = 1,
    /// The first and the second.
    FirstAndSecond = 2,
    /// The first and the third.
    FirstAndThird = 3,
}

/// The kernel lock that a thread waits for: its address, which is even, and in the lowest bit
/// whether the thread spins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct AwaitedLock(pub u64);

impl AwaitedLock {
    /// The longest that a thread spins for a lock, in nanoseconds: long before, the kernel reports a stuck
    /// CPU.
    const LONGEST_SPIN_NS: u64 = 1_000_000_000;

    /// A lock at this address, with the kernel's flags for it (`include/trace/events/lock.h`).
    #[inline(always)]
    pub const fn new(address: u64, flags: u32) -> Self {
        const SPIN: u32 = 1;
        const MUTEX: u32 = 32;
        Self(address & !1 | (flags & (SPIN | MUTEX) == SPIN) as u64)
    }

    /// Whether it is the lock at this address.
    #[inline(always)]
    pub const fn is_at(self, address: u64) -> bool {
        self.0 & !1 == address & !1
    }

    /// Whether the wait must have ended unseen, given how many nanoseconds it has lasted.
    #[inline(always)]
    pub const fn must_be_over(self, spent_ns: u64) -> bool {
        self.0 & 1 != 0 && spent_ns > Self::LONGEST_SPIN_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spin_without_an_end_is_counted_as_unseen() {
        let (address, second) = (0xffff_8880_0000_1234, 1_000_000_000);
        for (flags, over) in [
            (1, true),
            (1 | 2, true),
            (33, false),
            (32, false),
            (2, false),
        ] {
            let lock = AwaitedLock::new(address, flags);
            assert!(lock.is_at(address) && !lock.is_at(address + 4), "{flags}");
            assert!(!lock.must_be_over(second), "{flags}");
            assert_eq!(lock.must_be_over(second + 1), over, "{flags}");
        }
        assert!(!AwaitedLock(0).must_be_over(u64::MAX));
    }

    #[test]
    fn file_kinds_are_known_by_their_mode() {
        for (mode, kind) in [
            (0o100_644, FileKinds::FILES),
            (0o060_660, FileKinds::FILES),
            (0o140_777, FileKinds::SOCKETS),
            (0o010_600, FileKinds::PIPES),
            (0o020_620, FileKinds::OTHERS),
            (0o000_600, FileKinds::OTHERS),
        ] {
            assert_eq!(FileKinds::of(mode), kind, "{mode:o}");
            assert!(FileKinds::ALL.has(kind));
        }
    }
}
