//! One frame of a stack, as a word: what kind it is in the highest eight bits, and what it is in the others.
//!
//! Addresses are words as they are. With page tables of five levels, an address has 57 bits, the last of which all bits above
//! repeat (Intel SDM, volume 1, section 3.3.7.1): so the highest eight are all clear in programs and all set in the
//! kernel, as they are on arm64 with 52 bits. Frames of other kinds have one of the tags between.
//!
//! A frame of an interpreter is two words: its function, tagged with the [`RuntimeKind`], and its [`Position`].

use super::RuntimeKind;

/// The bits of a function's address in a frame word: [`ChainFrame::function`](crate::runtime::ChainFrame::function). A program has addresses of more than 47 bits only
/// where it asks for them (the kernel's `5level-paging.rst`); bit 47 is the runtime's own.
pub const FUNCTION_BITS: u64 = (1 << 48) - 1;

/// The most words of a file's name: the kernel knows none longer than 255 bytes (`include/uapi/linux/limits.h`,
/// `NAME_MAX`).
pub const NAME_WORDS: usize = 32;

/// Kind of a [`FrameWord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameTag {
    /// An address of a program's.
    Native = 0x00,
    /// A system call, by its number.
    SystemCall = 0x01,
    /// A system call of a 32-bit program.
    CompatSystemCall = 0x02,
    /// A lock of the kernel's, by the flags of what is waited for (`include/trace/events/lock.h`).
    KernelLock = 0x03,
    /// A lock of a program's.
    UserLock = 0x04,
    /// A page of a mapped file that was waited for.
    PageIn = 0x05,
    /// A file's name: as many words follow as the payload says, of eight bytes each, filled up with zeros.
    FileName = 0x06,
    /// A function that a runtime runs, by the runtime's address of it. The tag is this and the [`RuntimeKind`], up to
    /// [`Position`](Self::Position), which follows it.
    Function = 0x40,
    /// Where in the function before it: bits 0–31 what names a line, bits 32–55 most of what tells
    /// functions at one address apart; the rest is in bits 48–55 of the function.
    Position = 0x60,
    /// Here the walk of native frames broke, for the reason in the payload, a [`StackEnd`](super::StackEnd). What follows are
    /// the frames of an interpreter, which are found without it; or, behind a [`Guess`](super::StackEnd::Guess), callers.
    Mark = 0x61,
    /// An address of the kernel's.
    Kernel = 0xff,
}

impl FrameTag {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Native,
        Self::SystemCall,
        Self::CompatSystemCall,
        Self::KernelLock,
        Self::UserLock,
        Self::PageIn,
        Self::FileName,
        Self::Function,
        Self::Position,
        Self::Mark,
        Self::Kernel,
    ];

    /// The tag with these eight bits, if there is one.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0x00 => Some(Self::Native),
            0x01 => Some(Self::SystemCall),
            0x02 => Some(Self::CompatSystemCall),
            0x03 => Some(Self::KernelLock),
            0x04 => Some(Self::UserLock),
            0x05 => Some(Self::PageIn),
            0x06 => Some(Self::FileName),
            0x60 => Some(Self::Position),
            0x61 => Some(Self::Mark),
            0xff => Some(Self::Kernel),
            _ if function_of(code).is_some() => Some(Self::Function),
            _ => None,
        }
    }
}

/// The runtime whose functions have this tag.
#[inline(always)]
const fn function_of(code: u8) -> Option<RuntimeKind> {
    RuntimeKind::from_code(code.wrapping_sub(FrameTag::Function as u8))
}

const _: () = assert!(
    FrameTag::Function as usize + RuntimeKind::ALL.len() <= FrameTag::Position as usize,
    "functions' tags end before that of positions"
);

/// A frame: bits 0–55 the payload, bits 56–63 the [`FrameTag`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct FrameWord(pub u64);

const TAG_SHIFT: u32 = 56;

/// A check has 32 bits: the lower ones are with the position, the others with the function.
const POSITION_CHECK_BITS: u32 = 24;
const POSITION_CHECK_MASK: u32 = (1 << POSITION_CHECK_BITS) - 1;
const HIGH_CHECK_SHIFT: u32 = 48;

const _: () = assert!(FUNCTION_BITS == (1 << HIGH_CHECK_SHIFT) - 1);

impl FrameWord {
    /// A frame of this kind.
    #[inline(always)]
    pub const fn new(tag: FrameTag, payload: u32) -> Self {
        Self((tag as u64) << TAG_SHIFT | payload as u64)
    }

    /// A function of a runtime's, by its address, and what of its check has no place in the [position](Self::position).
    #[inline(always)]
    pub const fn function(kind: RuntimeKind, address: u64, check: u32) -> Self {
        let tag = FrameTag::Function as u64 + kind as u64;
        let high = (check >> POSITION_CHECK_BITS) as u64;
        Self(tag << TAG_SHIFT | high << HIGH_CHECK_SHIFT | (address & FUNCTION_BITS))
    }

    /// Where in the function before it.
    #[inline(always)]
    pub const fn position(check: u32, position: u32) -> Self {
        let check = (check & POSITION_CHECK_MASK) as u64;
        Self((FrameTag::Position as u64) << TAG_SHIFT | check << 32 | position as u64)
    }

    /// The runtime whose function it is; none of any other frame.
    #[inline(always)]
    pub const fn runtime(self) -> Option<RuntimeKind> {
        function_of((self.0 >> TAG_SHIFT) as u8)
    }

    /// The address of a runtime's function.
    #[inline(always)]
    pub const fn function_address(self) -> u64 {
        self.0 & FUNCTION_BITS
    }

    /// The check of a function that this is a position in.
    #[inline(always)]
    pub const fn check_of(self, function: Self) -> u32 {
        let low = (self.0 >> 32) as u32 & POSITION_CHECK_MASK;
        let high = (function.0 >> HIGH_CHECK_SHIFT) as u8;
        low | (high as u32) << POSITION_CHECK_BITS
    }

    /// The frame of code at this address.
    #[inline(always)]
    pub const fn at(address: u64) -> Self {
        Self(address)
    }

    /// Whether it is an address of a program's.
    #[inline(always)]
    pub const fn is_native(self) -> bool {
        self.0 >> TAG_SHIFT == FrameTag::Native as u64
    }

    /// Its kind; none if that is not known.
    #[inline(always)]
    pub const fn tag(self) -> Option<FrameTag> {
        FrameTag::from_code((self.0 >> TAG_SHIFT) as u8)
    }

    /// The address, of a frame of code.
    pub const fn address(self) -> u64 {
        self.0
    }

    /// The number, of any other frame.
    pub const fn number(self) -> u32 {
        self.0 as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_tag_is_found_by_its_code() {
        for tag in FrameTag::ALL {
            assert_eq!(FrameTag::from_code(tag as u8), Some(tag));
        }
        assert_eq!(FrameTag::from_code(0x7f), None);
    }

    #[test]
    fn addresses_are_frames_with_four_and_with_five_levels_of_page_tables() {
        for (address, tag) in [
            (0, FrameTag::Native),
            (0x40_1000, FrameTag::Native),
            (0x7fff_ffff_f000, FrameTag::Native),
            (0x00ff_ffff_ffff_f000, FrameTag::Native),
            (0xff00_0000_0000_0000, FrameTag::Kernel),
            (0xffff_8000_0000_0000, FrameTag::Kernel),
            (0xffff_ffff_8100_0000, FrameTag::Kernel),
            (u64::MAX, FrameTag::Kernel),
        ] {
            let frame = FrameWord::at(address);
            assert_eq!((frame.tag(), frame.address()), (Some(tag), address));
        }
    }

    #[test]
    fn functions_and_positions_return_what_they_were_made_of() {
        for kind in RuntimeKind::ALL {
            let word = FrameWord::function(kind, 0x7fff_1234_5678, 0x1200_0000);
            assert_eq!(word.runtime(), Some(kind));
            assert_eq!(word.function_address(), 0x7fff_1234_5678);
            assert_eq!(word.tag(), Some(FrameTag::Function));
        }
        let check = 0x98ab_cdef;
        let word = FrameWord::position(check, u32::MAX);
        let function = FrameWord::function(RuntimeKind::Perl, 0x7fff_1234_5678, check);
        assert_eq!((word.check_of(function), word.number()), (check, u32::MAX));
        assert_eq!(
            (word.tag(), word.runtime()),
            (Some(FrameTag::Position), None)
        );
        assert_eq!(FrameWord::at(0x40_1000).runtime(), None);
    }

    #[test]
    fn other_frames_return_their_numbers() {
        for tag in FrameTag::ALL {
            for number in [0, 202, u32::MAX] {
                let frame = FrameWord::new(tag, number);
                assert_eq!((frame.tag(), frame.number()), (Some(tag), number));
            }
        }
    }
}
