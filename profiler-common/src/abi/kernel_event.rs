//! Kernel events: what the kernel half reports between two drains.

use super::layout::{Zero, boundary};
use super::{COMM_BYTES, CodeKey, MappingKey};

/// Kind of a kernel event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum KernelEventKind {
    /// A process was sampled that had not been seen before, or not lately.
    NewProcess = 0,
    /// A live side has become half full: drain before the other half fills too.
    HalfFull = 1,
    /// A walk came to code that has not been published.
    UnknownCode = 2,
    /// The mapping at a sampled address: it begins a [`MappingEventRecord`].
    Mapping = 3,
    /// Names of a sampled function of an interpreter: it begins a [`FunctionEventRecord`].
    Function = 4,
    /// A walk came to code that the table of its file leaves out.
    UndescribedCode = 5,
    /// A walk came to code that its file describes, where that was not read yet.
    UnreadCode = 6,
    /// A cgroup was sampled that had not been seen before: it begins a [`CgroupEventRecord`].
    Cgroup = 7,
}

impl KernelEventKind {
    /// The kind whose discriminant is `code`, if there is one.
    pub const fn from_code(code: u32) -> Option<Self> {
        match code {
            0 => Some(Self::NewProcess),
            1 => Some(Self::HalfFull),
            2 => Some(Self::UnknownCode),
            3 => Some(Self::Mapping),
            4 => Some(Self::Function),
            5 => Some(Self::UndescribedCode),
            6 => Some(Self::UnreadCode),
            7 => Some(Self::Cgroup),
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
        /// For `UnknownCode`, `UndescribedCode` and `UnreadCode`, an address in that code; for `Mapping`, where the mapping
        /// begins; for `Function`, its frame word; otherwise zero.
        pub address: u64,
    }
}

boundary! {
    /// One executable mapping of a process, as the kernel had it when an address in it was sampled. Behind it,
    /// up to the record's end, stands where the file lies, unless that was reported before: the names on the way from
    /// the file up to the root directory, each ended by a NUL.
    #[repr(C)]
    pub struct MappingEventRecord {
        /// Head of the record, with the process and the start of the mapping.
        pub event: KernelEventRecord,
        /// Where it ends.
        pub end: u64,
        /// The offset of its first byte in the file.
        pub offset: u64,
        /// The file key of the mapped file.
        pub code: CodeKey,
        /// Its key in the [checks](super::MappingCheck) of stacks.
        pub mapping_key: MappingKey,
        /// Name of the process's first thread, NUL-padded.
        pub leader: [u8; COMM_BYTES],
    }
}

boundary! {
    /// A cgroup, when it was first sampled. Behind it stand the names on the way from its directory up to the root of its
    /// hierarchy, each ended by a NUL.
    #[repr(C)]
    pub struct CgroupEventRecord {
        /// In place of the process the cgroup's number, and of the incarnation its ID; the address is 1 if names on the way are
        /// missing, because there are too many.
        pub event: KernelEventRecord,
        /// Always zero; here so that names stand where they do behind a [`MappingEventRecord`].
        pub reserved: [u64; 8],
    }
}

boundary! {
    /// A function of an interpreter's, when it was first sampled in a process. Behind it stand the strings, one after the other,
    /// each as long as said: what the function belongs to, its name, its file.
    #[repr(C)]
    pub struct FunctionEventRecord {
        /// In which process, and which function.
        pub event: KernelEventRecord,
        /// Load bias of the runtime's file: added to an address of its own, it gives the process's.
        pub bias: u64,
        /// Whatever else the runtime has to say ([`Strings::extra`](crate::runtime::Strings::extra)).
        pub extra: u64,
        /// Check of the function: distinguishes functions at one address.
        pub check: u32,
        /// The number of the runtime's descriptor.
        pub descriptor: u32,
        /// The line at which the definition begins; zero if it is not known.
        pub first_line: u32,
        /// Owner of the function, such as its class: a [`CopiedString`].
        pub owner: CopiedString,
        /// Its name.
        pub name: CopiedString,
        /// Its file.
        pub file: CopiedString,
        /// The word of the frame behind it, if that is of the same runtime; else zero.
        pub caller: u64,
        /// Where it is in that: its second word.
        pub call: u64,
        /// Its own second word.
        pub position: u64,
    }
}

/// A string behind a [`FunctionEventRecord`]. Bits 0–15: its bytes; bits 16–23: its
/// [`Encoding`](crate::runtime::Encoding); bit 24: whether it was longer, and its end is missing; bit 25: its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct CopiedString(pub u32);

impl Zero for CopiedString {
    const ZERO: Self = Self(0);
}

impl CopiedString {
    /// Its end is missing.
    pub const NO_END: u32 = 1 << 24;
    /// Its beginning is missing.
    pub const NO_BEGINNING: u32 = 1 << 25;

    /// A string of so many bytes, at most 65,535, in an encoding.
    #[inline(always)]
    pub const fn new(bytes: u32, encoding: u32, missing: u32) -> Self {
        Self(bytes & 0xffff | (encoding & 0xff) << 16 | missing)
    }

    /// Its length in bytes.
    pub const fn bytes(self) -> usize {
        (self.0 & 0xffff) as usize
    }

    /// The number of its encoding.
    pub const fn encoding(self) -> u8 {
        (self.0 >> 16) as u8
    }
}

/// Words of a [`FunctionEventRecord`].
pub const FUNCTION_EVENT_WORDS: usize = size_of::<FunctionEventRecord>() / 8;

/// The most bytes that are copied of what a function belongs to.
pub const OWNER_BYTES: usize = 128;

/// The most bytes that are copied of a function's name.
pub const FUNCTION_NAME_BYTES: usize = 160;

/// The most bytes that are copied of the path of a function's file. Of longer ones the end is kept.
pub const FUNCTION_FILE_BYTES: usize = 256;

/// Words of a [`MappingEventRecord`].
pub const MAPPING_EVENT_WORDS: usize = size_of::<MappingEventRecord>() / 8;

const _: () = assert!(size_of::<CgroupEventRecord>() == size_of::<MappingEventRecord>());

/// Bytes of the names behind a [`MappingEventRecord`] after which no further name is begun.
pub const PATH_BYTES: usize = 1024;

/// Bytes of one name, its NUL included (`include/uapi/linux/limits.h`, `NAME_MAX`).
pub const NAME_BYTES: usize = 256;

/// The most names and mounts on the way from a file to the root directory.
pub const PATH_STEPS: u32 = 64;
