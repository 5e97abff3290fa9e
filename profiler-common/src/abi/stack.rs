//! Stacks as they are stored in the kernel and read by user space.
//!
//! A stack is a *record*: one [`Header`] word, the words of its frames from leaf to root, then zeros up to a
//! whole number of *blocks*. Records are stored one after the other. A block is one cache line, so comparing and copying
//! go line by line.

use super::Fallbacks;

/// The most frames kept of one user stack, native ones and those of interpreters together.
pub const MAX_USER_FRAMES: usize = 1024;

/// The most words kept of one user stack: a frame of an interpreter takes two.
pub const MAX_USER_WORDS: usize = 2 * MAX_USER_FRAMES;

/// The most frames kept of one kernel stack: the default of `kernel.perf_event_max_stack`, which the
/// kernel's own walker obeys (`include/linux/perf_event.h`, `PERF_MAX_STACK_DEPTH`).
pub const MAX_KERNEL_FRAMES: usize = 127;

/// Words in one block: 64 bytes, one cache line.
pub const BLOCK_WORDS: usize = 8;

/// Blocks in the longest record: the header and [`MAX_USER_WORDS`].
pub const RECORD_BLOCKS: usize = (1 + MAX_USER_WORDS).div_ceil(BLOCK_WORDS);

/// How many zeros the kernel half writes behind the last frame: enough to fill its block, wherever the frame
/// is in it.
pub const PADDING_WORDS: usize = BLOCK_WORDS - 1;

/// Words of the longest user stack's record while it is built.
pub const USER_SCRATCH_WORDS: usize = scratch(MAX_USER_WORDS);

/// Words of the longest kernel stack's record while it is built.
pub const KERNEL_SCRATCH_WORDS: usize = scratch(MAX_KERNEL_FRAMES);

/// Bytes of scratch memory for one event's firings on one CPU; the kernel half defines its fields.
pub const SCRATCH_BYTES: usize = 42_432;

/// Header, words and padding, in whole blocks.
const fn scratch(words: usize) -> usize {
    (1 + words + PADDING_WORDS).next_multiple_of(BLOCK_WORDS)
}

/// One value of the stack store.
pub type Block = [u64; BLOCK_WORDS];

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
    /// The frame pointer did not lead to a caller: the code was built without.
    NoFramePointer = 3,
    /// A 32-bit process, whose frames are not walked.
    Compat = 4,
    /// The code of the next frame has no unwind instructions.
    NoRow = 5,
    /// There are unwind instructions for the next frame, but they cannot be followed: their kind is not
    /// supported, or they need a lost register.
    BadRow = 6,
    /// Unwind instructions led to something that cannot be a caller.
    Implausible = 7,
    /// The next frame's unwind instructions were not in the kernel yet.
    NotLoaded = 8,
    /// No end, but a mark within a stack: the caller behind it was looked for in the words of the stack
    /// ([`guess`](crate::walk::guess)).
    Guess = 9,
}

impl StackEnd {
    /// Every end, in the order of the discriminants.
    pub const ALL: [Self; 10] = [
        Self::Root,
        Self::Truncated,
        Self::Unreadable,
        Self::NoFramePointer,
        Self::Compat,
        Self::NoRow,
        Self::BadRow,
        Self::Implausible,
        Self::NotLoaded,
        Self::Guess,
    ];

    /// The mark that stands for what is missing below the outermost frame; none at the root.
    pub const fn mark(self) -> Option<&'static str> {
        match self {
            Self::Root => None,
            Self::Truncated => Some("[truncated]"),
            Self::Unreadable => Some("[unreadable stack]"),
            Self::NoFramePointer => Some("[no frame pointer]"),
            Self::Compat => Some("[32-bit program]"),
            Self::NoRow => Some("[no unwind info]"),
            Self::BadRow => Some("[unwind info not understood]"),
            Self::Implausible => Some("[implausible caller]"),
            Self::NotLoaded => Some("[unwind info not loaded]"),
            Self::Guess => Some("[guessed caller]"),
        }
    }

    /// The end with the discriminant `code`, if there is one.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Root),
            1 => Some(Self::Truncated),
            2 => Some(Self::Unreadable),
            3 => Some(Self::NoFramePointer),
            4 => Some(Self::Compat),
            5 => Some(Self::NoRow),
            6 => Some(Self::BadRow),
            7 => Some(Self::Implausible),
            8 => Some(Self::NotLoaded),
            9 => Some(Self::Guess),
            _ => None,
        }
    }
}

/// The first word of a record: bits 0–15 the number of words, bits 16–23 the [`StackEnd`], bits 24–30 the
/// [`Fallbacks`], bit 31 whether it is a [pair](Self::is_pair), bits 32–63 the [`MappingCheck`](super::MappingCheck) of a
/// user stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header(pub u64);

impl Header {
    /// The header of a stack of so many words.
    pub const fn new(words: u16, end: StackEnd) -> Self {
        Self(words as u64 | (end as u64) << 16)
    }

    /// The header of a stack of so many words, from the number of a [`StackEnd`] and the bits of a [`Fallbacks`].
    #[inline(always)]
    pub const fn of_words(words: u64, end: u64, fallbacks: u64) -> Self {
        Self(words | end << 16 | fallbacks << 24)
    }

    /// The same header, of a walk that used these.
    #[must_use]
    pub const fn with_fallbacks(self, fallbacks: Fallbacks) -> Self {
        Self(self.0 | (fallbacks.bits() as u64) << 24)
    }

    /// The header of a [`WaitPair`](super::WaitPair), which is no stack.
    pub const PAIR: Self = Self((size_of::<super::WaitPair>() as u64 / 8) | 1 << 31);

    /// Whether a [`WaitPair`](super::WaitPair) follows.
    pub const fn is_pair(self) -> bool {
        self.0 >> 31 & 1 != 0
    }

    /// The same header, of a stack whose mappings have this [check](super::MappingCheck).
    #[inline(always)]
    #[must_use]
    pub const fn with_check(self, check: u32) -> Self {
        Self(self.0 & 0xffff_ffff | (check as u64) << 32)
    }

    /// The check of its mappings; zero if they are not known.
    #[inline(always)]
    pub const fn check(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The number of words behind the header.
    pub const fn words(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    /// Why the walk stopped; none if the word is not a header.
    pub const fn end(self) -> Option<StackEnd> {
        StackEnd::from_code((self.0 >> 16) as u8)
    }

    /// The walk's fallbacks beside unwind instructions; none if the word is not a header.
    pub const fn fallbacks(self) -> Option<Fallbacks> {
        Fallbacks::from_bits((self.0 >> 24 & 0x7f) as u8)
    }

    /// How many blocks a record of so many words takes.
    pub const fn blocks(words: u32) -> u32 {
        (words + 1).div_ceil(BLOCK_WORDS as u32)
    }
}

/// Where a record begins in one side of the stack store, in blocks, plus one; zero is "no stack". This is the
/// kernel half's name of a stack, valid until that side is cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct StackPosition(pub u32);

impl StackPosition {
    /// No stack.
    pub const NONE: Self = Self(0);

    /// The position of the record that begins at `block`.
    pub const fn at(block: u32) -> Self {
        Self(block + 1)
    }

    /// Where the record begins, if there is one.
    pub const fn block(self) -> Option<u32> {
        self.0.checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_header_holds_length_and_end() {
        for (code, end) in StackEnd::ALL.into_iter().enumerate() {
            assert_eq!(end as usize, code);
            let header = Header::new(1024, end);
            assert_eq!(header.words(), 1024);
            assert_eq!(header.end(), Some(end));
        }
        assert_eq!(Header(0xff_0000).end(), None);
        assert!(Header::PAIR.is_pair() && Header::PAIR.words() == 12);
        for fallbacks in Fallbacks::EACH {
            let header = Header::new(1024, StackEnd::Root).with_fallbacks(fallbacks);
            assert_eq!(header.fallbacks(), Some(fallbacks));
            assert_eq!(header.end(), Some(StackEnd::Root));
            let bits = u64::from(fallbacks.bits());
            assert_eq!(Header::of_words(1024, StackEnd::Root as u64, bits), header);
            assert!(!header.is_pair());
            let checked = header.with_check(u32::MAX).with_check(5);
            assert_eq!((checked.check(), header.check()), (5, 0));
            assert_eq!(checked.with_check(0), header);
        }
    }

    #[test]
    fn every_end_but_the_root_has_its_own_mark() {
        let marks = StackEnd::ALL.map(StackEnd::mark);
        assert_eq!(marks.iter().filter(|mark| mark.is_none()).count(), 1);
        for (i, mark) in marks.iter().enumerate() {
            assert!(!marks[..i].contains(mark), "{mark:?}");
        }
    }

    #[test]
    fn blocks_hold_the_header_and_every_word() {
        assert_eq!(Header::blocks(0), 1);
        assert_eq!(Header::blocks(7), 1);
        assert_eq!(Header::blocks(8), 2);
        let most = u32::try_from(MAX_USER_WORDS).unwrap();
        assert_eq!(Header::blocks(most) as usize, RECORD_BLOCKS);
    }
}
