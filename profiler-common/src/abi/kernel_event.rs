//! Kernel events: what the kernel half reports between two drains.

use super::CodeKey;
use super::layout::boundary;

/// What a kernel event reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum KernelEventKind {
    /// A process was sampled that had not been seen before, or not lately.
    NewProcess = 0,
    /// A live side has become half full: drain before the other half fills too.
    HalfFull = 1,
    /// A walk came to code that has not been published.
    UnknownCode = 2,
    /// What lies at an address that was sampled: the record begins a [`MappingEventRecord`].
    Mapping = 3,
}

impl KernelEventKind {
    /// The kind whose discriminant is `code`, if there is one.
    pub const fn from_code(code: u32) -> Option<Self> {
        match code {
            0 => Some(Self::NewProcess),
            1 => Some(Self::HalfFull),
            2 => Some(Self::UnknownCode),
            3 => Some(Self::Mapping),
            _ => None,
        }
    }
}

boundary! {
    /// One record of the ring buffer of kernel events.
    #[repr(C)]
    pub struct KernelEventRecord {
        /// A [`KernelEventKind`].
        pub kind: u32,
        /// The process, as seen in our PID namespace; zero for `HalfFull`.
        pub tgid: u32,
        /// The process's [`SampleKey::incarnation`](super::SampleKey::incarnation).
        pub incarnation: u64,
        /// For `UnknownCode`, an address in that code; for `Mapping`, where the mapping begins; otherwise zero.
        pub address: u64,
    }
}

boundary! {
    /// One executable mapping of a process, as the kernel had it when an address in it was sampled. Behind it,
    /// up to the record's end, stands where the file lies, unless that was reported before: the names on the way from
    /// the file up to the root directory, each ended by a NUL.
    #[repr(C)]
    pub struct MappingEventRecord {
        /// Whose mapping, and where it begins.
        pub event: KernelEventRecord,
        /// Where it ends.
        pub end: u64,
        /// The offset of its first byte in the file.
        pub offset: u64,
        /// What the kernel half knows the file by.
        pub code: CodeKey,
    }
}

/// Words of a [`MappingEventRecord`].
pub const MAPPING_EVENT_WORDS: usize = size_of::<MappingEventRecord>() / 8;

/// Bytes of the names behind a [`MappingEventRecord`] after which no further name is begun.
pub const PATH_BYTES: usize = 1024;

/// Bytes of one name, its NUL included (`include/uapi/linux/limits.h`, `NAME_MAX`).
pub const NAME_BYTES: usize = 256;

/// The most names and mounts on the way from a file to the root directory.
pub const PATH_STEPS: u32 = 64;
