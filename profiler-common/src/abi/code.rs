//! The index of code, which user space writes and the kernel half reads: which segment of which file has
//! which unwind table.
//!
//! For each address the kernel half sees the mapping, as the kernel has it at that moment, and its file. So
//! nothing is installed for each process: a program that starts, forks or loads a library is walked at once
//! if its files are known.

use super::layout::boundary;

boundary! {
    /// The key by which the kernel half knows a mapped file. The kernel half alone makes keys, for user space
    /// too, so that both always mean the same.
    #[derive(Default, Hash, PartialOrd, Ord)]
    #[repr(C)]
    pub struct CodeKey<W = u64> {
        /// The device (`super_block.s_dev`), plus one. Zero is memory: code the kernel itself maps.
        pub device: W,
        /// The inode; for memory, the address of what describes it to the kernel
        /// (`vm_area_struct.vm_private_data`), zero if nothing does.
        pub inode: W,
        /// When the file was last written, seconds and nanoseconds in one number: inode numbers are reused.
        pub modified: W,
    }
}

impl CodeKey {
    /// The key of memory without a description that begins there, of one program of one process.
    #[inline(always)]
    pub const fn of_memory(tgid: u32, incarnation: u64, start: u64) -> Self {
        Self {
            // No device has this number.
            device: 1 << 63 | tgid as u64,
            inode: incarnation,
            modified: start,
        }
    }

    /// Whether this is memory without a description: made by the process itself.
    #[inline(always)]
    pub const fn is_anonymous(self) -> bool {
        self.device == 0 && self.inode == 0
    }
}

boundary! {
    /// One slot of the index: a segment of a file that is mapped as code. Alone on its cache line.
    #[repr(C, align(64))]
    pub struct Code<W = u64> {
        /// The file.
        pub key: CodeKey<W>,
        /// The segment's offset in the file, in bytes.
        pub start: W,
        /// Its end in the file, in bytes.
        pub end: W,
        /// Distance from file offsets to the object's own addresses: address = offset + shift.
        pub shift: W,
        /// A [`CodeState`]; written last.
        pub state: W,
        /// When a walk last came here, as [`used_clock`] counts; written by the kernel half.
        pub used: W,
    }
}

/// The binary logarithm of how many slots the index of code has.
pub const CODE_SLOT_BITS: u32 = 13;

/// How many slots are looked at for a file, at most.
pub const CODE_PROBES: u32 = 32;

/// Clock of [`Code::used`]: counts about seconds, so that a slot is seldom written to.
#[inline(always)]
pub const fn used_clock(now_ns: u64) -> u64 {
    now_ns >> 30
}

/// Contents of a slot. Bits 0–31: where the [`PageRows`](super::PageRows) of the object's page 0
/// would be, in words of table memory, if there were one; it may wrap around. Bits 40–47: the
/// file's runtime descriptor, or zero. All zero: a slot never used, which ends a search for a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct CodeState(pub u64);

impl CodeState {
    /// Nothing any more; more may follow.
    pub const GONE: Self = Self(1 << 32);
    /// Code without any rows: to be walked by frame pointers.
    pub const BARE: Self = Self(1 << 33);
    const TABLE: u64 = 1 << 34;

    /// Code whose rows are found from there.
    pub const fn table(pages: u32) -> Self {
        Self(Self::TABLE | pages as u64)
    }

    /// The same code, in which lies a runtime with this descriptor, below [`DESCRIPTORS`](crate::runtime::DESCRIPTORS).
    #[must_use]
    pub const fn with_runtime(self, descriptor: u8) -> Self {
        Self(self.0 | (descriptor as u64) << RUNTIME_SHIFT)
    }

    /// The descriptor of the runtime that lies in this code; zero if there is none.
    #[inline(always)]
    pub const fn runtime(self) -> u32 {
        (self.0 >> RUNTIME_SHIFT) as u32 & 0xff
    }

    /// Whether there are rows.
    #[inline(always)]
    pub const fn has_table(self) -> bool {
        self.0 & Self::TABLE != 0
    }

    /// Where the pages are; see the type.
    #[inline(always)]
    pub const fn pages(self) -> u32 {
        self.0 as u32
    }
}

const RUNTIME_SHIFT: u32 = 40;

/// The binary logarithm of the words in one *slab* of table memory: 1 MiB, mapped by user space while it
/// writes. What lies in a slab does not cross its end.
pub const SLAB_BITS: u32 = 18;

/// Words of four bytes in one slab.
pub const SLAB_WORDS: usize = 1 << SLAB_BITS;

/// The slab of a place in table memory, and the word in it.
#[inline(always)]
pub const fn slab_of(place: u32) -> (u32, u32) {
    (place >> SLAB_BITS, place & (SLAB_WORDS as u32 - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_states_are_distinct() {
        let table = CodeState::table(u32::MAX);
        assert!(table.has_table() && table.pages() == u32::MAX);
        assert!(!CodeState::BARE.has_table() && !CodeState::GONE.has_table());
        assert_ne!(CodeState::table(0).0, 0);
        assert_eq!(table.runtime(), 0);
        let runtime = table.with_runtime(63);
        assert!(runtime.has_table() && runtime.pages() == u32::MAX && runtime.runtime() == 63);
    }

    #[test]
    fn places_are_numbered_across_slabs() {
        assert_eq!(slab_of(0), (0, 0));
        assert_eq!(slab_of((1 << SLAB_BITS) - 1), (0, (1 << SLAB_BITS) - 1));
        assert_eq!(slab_of(3 << SLAB_BITS | 5), (3, 5));
    }
}
