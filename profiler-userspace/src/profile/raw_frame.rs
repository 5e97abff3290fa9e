//! A frame of a raw stack: what the kernel half noted, before it has a name.
//!
//! In: the words of a record. Out: frames, from leaf to root, and words again. Pure.

use profiler_common::abi::{FrameTag, FrameWord, StackEnd};

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RawFrame {
    /// Code of a program: where it was, of the first such frame of a stack; where a call will return to, of the others.
    Native(u64),
    /// The same of the kernel's code.
    Kernel(u64),
    /// A system call, by its number on the machine that was recorded.
    SystemCall(u32),
    /// A system call of a 32-bit program, by its number there.
    CompatSystemCall(u32),
    /// A lock of the kernel's, by the flags of what is waited for (`include/trace/events/lock.h`).
    KernelLock(u32),
    /// A lock of a program's.
    UserLock,
    /// A page of a mapped file that was waited for.
    PageIn,
    /// The name of the file that the next frame is about. Bytes from the target: anything may be in it.
    FileName(Box<FileName>),
    /// A function that an interpreter runs. A [`Position`](Self::Position) follows.
    Function(FrameWord),
    /// Where in the function before it.
    Position(FrameWord),
    /// Here the walk of native frames broke; what follows are frames of an interpreter.
    Mark(StackEnd),
    /// A word of no known kind.
    Unknown(u64),
}

/// A file's name without its directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FileName(pub Box<[u8]>);

impl RawFrame {
    /// The frames in the words of a record, header excluded.
    pub fn of_words(mut words: &[u64]) -> Box<[Self]> {
        let mut frames = Vec::with_capacity(words.len());
        while let Some((&word, rest)) = words.split_first() {
            words = rest;
            let word = FrameWord(word);
            let number = word.number();
            frames.push(match word.tag() {
                Some(FrameTag::Native) => Self::Native(word.address()),
                Some(FrameTag::Kernel) => Self::Kernel(word.address()),
                Some(FrameTag::SystemCall) => Self::SystemCall(number),
                Some(FrameTag::CompatSystemCall) => Self::CompatSystemCall(number),
                Some(FrameTag::KernelLock) => Self::KernelLock(number),
                Some(FrameTag::UserLock) => Self::UserLock,
                Some(FrameTag::PageIn) => Self::PageIn,
                Some(FrameTag::FileName) => {
                    // A record cut short has fewer words than it promises.
                    let (text, behind) = words.split_at((number as usize).min(words.len()));
                    words = behind;
                    let bytes = text.iter().flat_map(|word| word.to_ne_bytes());
                    let name = bytes.take_while(|&byte| byte != 0).collect();
                    Self::FileName(Box::new(FileName(name)))
                }
                Some(FrameTag::Position) => Self::Position(word),
                Some(FrameTag::Mark) => {
                    let end = u8::try_from(number).ok().and_then(StackEnd::from_code);
                    Self::Mark(end.unwrap_or(StackEnd::Implausible))
                }
                Some(FrameTag::Function) => Self::Function(word),
                None => Self::Unknown(word.0),
            });
        }
        frames.into()
    }

    /// Frames of code at these addresses.
    pub fn of_addresses(addresses: impl IntoIterator<Item = u64>) -> Box<[Self]> {
        let words: Vec<u64> = addresses.into_iter().collect();
        let at = |address: &u64| match FrameWord::at(*address).tag() {
            Some(FrameTag::Kernel) => Self::Kernel(*address),
            _ => Self::Native(*address),
        };
        words.iter().map(at).collect()
    }

    /// The address, of a frame of code.
    pub const fn address(&self) -> Option<u64> {
        match self {
            Self::Native(address) | Self::Kernel(address) => Some(*address),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_no_larger_than_two_words() {
        assert_eq!(size_of::<RawFrame>(), 16);
    }

    #[test]
    fn each_frame_word_becomes_a_frame_of_its_kind() {
        let kernel = 0xffff_ffff_8100_0000;
        let words = [
            FrameWord::new(FrameTag::SystemCall, 202).0,
            FrameWord::new(FrameTag::PageIn, 0).0,
            0x40_1000,
            kernel,
            0x7f << 56,
        ];
        assert_eq!(
            *RawFrame::of_words(&words),
            [
                RawFrame::SystemCall(202),
                RawFrame::PageIn,
                RawFrame::Native(0x40_1000),
                RawFrame::Kernel(kernel),
                RawFrame::Unknown(0x7f << 56),
            ]
        );
    }

    #[test]
    fn a_file_name_is_one_frame_whatever_it_contains() {
        let name = |words| FrameWord::new(FrameTag::FileName, words).0;
        let text = |text: &[u8; 8]| u64::from_ne_bytes(*text);
        let call = FrameWord::new(FrameTag::SystemCall, 0).0;
        let file = |name: &[u8]| RawFrame::FileName(Box::new(FileName(name.into())));
        assert_eq!(
            *RawFrame::of_words(&[
                name(2),
                text(b"a\n\xffcdefg"),
                text(b"h\0\0\0\0\0\0\0"),
                call
            ]),
            [file(b"a\n\xffcdefgh"), RawFrame::SystemCall(0)]
        );
        // Fewer words than were promised.
        assert_eq!(*RawFrame::of_words(&[name(2)]), [file(b"")]);
    }
}
