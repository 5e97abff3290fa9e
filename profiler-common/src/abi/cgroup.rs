//! Cgroups: how the kernel half numbers them, and what it notes of each.

use super::layout::boundary;

/// The most cgroups that are told apart in one recording, a power of two. A machine has hundreds.
pub const CGROUP_SLOTS: u32 = 16 << 10;

/// The number of cgroups for which there was no room; the others' are those of their slots, from 1. Zero is no cgroup.
pub const CROWDED_CGROUP: u16 = u16::MAX;

const _: () = assert!(CGROUP_SLOTS < CROWDED_CGROUP as u32);

boundary! {
    /// One cgroup: a slot, found by the hash of its ID, and never another's.
    #[repr(C)]
    pub struct CgroupSlot<W = u64> {
        /// Its ID: the inode number of its directory. Zero is a free slot.
        pub id: W,
        /// Where the kernel keeps that directory; zero if user space made the slot.
        pub node: W,
        /// Bits of [`CgroupState`].
        pub state: W,
        /// Always zero; here so that a slot lies in one cache line.
        pub reserved: W,
    }
}

/// Facts of a cgroup, as bits of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CgroupState(pub u64);

impl CgroupState {
    /// User space has its path.
    pub const REPORTED: Self = Self(1);
    /// User space says that it is no target. Until it does, firings in it are recorded, and left out by user space.
    pub const UNWANTED: Self = Self(2);

    /// Whether all of `other` are set.
    #[inline(always)]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
