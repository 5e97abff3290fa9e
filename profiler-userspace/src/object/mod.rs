//! ELF files: segments, build ID, symbol tables, debug files.
//!
//! In: a path, an open file, or bytes. Out: its segments, its build ID, and where its symbols are. Never
//! maps a file into memory, where truncation by another process would kill us with SIGBUS, and never
//! trusts a size found in a file.

mod bounded;
pub mod build_id;
mod debug;
mod debug_file;
mod dynamic;
mod dynamic_table;
mod elf;
mod file;
mod frames;
mod functions;
pub mod image;
mod recorded;
mod split;
pub(crate) mod x86_64;

pub use build_id::BuildId;
pub use debug::{Debug, DebugLink, DebugSection, Packing, SharedLink};
pub use debug_file::{DebugFile, Fetch, Search};
pub use dynamic::Symbol;
pub use elf::{Elf, Layout, Segment, Segments, SymbolTable};
pub use file::{FileNumber, RegularFile};
pub use frames::{Frame, FrameIndex, FrameSections, MAX_FRAMES_BYTES, bases};
pub use functions::Function;
pub use image::{Image, NoImage, Part, read_into};
pub use recorded::{Proof, RecordedObject};
pub(crate) use x86_64 as arch;

/// A position in an object's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileOffset(pub u64);

/// An address in an object's own tables, before relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ElfAddress(pub u64);
