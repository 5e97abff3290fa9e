//! News from the kernel half.

use super::CodeKey;
use super::layout::boundary;

/// What a notice tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum NoticeKind {
    /// A process was sampled that had not been seen before, or not lately.
    NewProcess = 0,
    /// A live side has become half full: drain before the other half fills too.
    HalfFull = 1,
    /// A walk came to code that has not been published.
    UnknownCode = 2,
    /// What lies at an address that was sampled: the notice begins a [`Mapped`].
    Mapped = 3,
}

impl NoticeKind {
    /// The kind whose discriminant is `code`, if there is one.
    pub const fn from_code(code: u32) -> Option<Self> {
        match code {
            0 => Some(Self::NewProcess),
            1 => Some(Self::HalfFull),
            2 => Some(Self::UnknownCode),
            3 => Some(Self::Mapped),
            _ => None,
        }
    }
}

boundary! {
    /// One record of the notices' ring buffer.
    #[repr(C)]
    pub struct Notice {
        /// A [`NoticeKind`].
        pub kind: u32,
        /// The process, as seen in our PID namespace; zero for `HalfFull`.
        pub tgid: u32,
        /// The process's [`SampleKey::incarnation`](super::SampleKey::incarnation).
        pub incarnation: u64,
        /// For `UnknownCode`, an address in that code; for `Mapped`, where the mapping begins; otherwise zero.
        pub address: u64,
    }
}

boundary! {
    /// One executable mapping of a process, as the kernel had it when an address in it was sampled. Behind it,
    /// up to the record's end, stands where the file lies, unless that was told before: the names on the way from
    /// the file up to the root directory, each ended by a NUL.
    #[repr(C)]
    pub struct Mapped {
        /// Whose mapping, and where it begins.
        pub notice: Notice,
        /// Where it ends.
        pub end: u64,
        /// The offset of its first byte in the file.
        pub offset: u64,
        /// What the kernel half knows the file by.
        pub code: CodeKey,
    }
}

/// Words of a [`Mapped`].
pub const MAPPED_WORDS: usize = size_of::<Mapped>() / 8;

/// Bytes of the names behind a [`Mapped`] after which no further name is begun.
pub const PATH_BYTES: usize = 1024;

/// Bytes of one name, its NUL included (`include/uapi/linux/limits.h`, `NAME_MAX`).
pub const NAME_BYTES: usize = 256;

/// The most names and mounts on the way from a file to the root directory.
pub const PATH_STEPS: u32 = 64;
