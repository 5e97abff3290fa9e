//! Scratch memory of a report to user space.
//!
//! In: nothing but words. Never: reports.

use crate::platform::word::Word;
use profiler_common::abi::{MAPPING_EVENT_WORDS, NAME_BYTES, PATH_BYTES};

/// A mapping that is reported to user space.
#[repr(C)]
pub(crate) struct Report {
    /// How far the file's path has been put together.
    pub(crate) mount: Word,
    pub(crate) entry: Word,
    pub(crate) length: Word,
    /// A [`profiler_common::abi::MappingEventRecord`], and the path behind it; or a
    /// [`profiler_common::abi::FunctionEventRecord`], and its strings.
    pub(crate) record: [Word; REPORT_WORDS],
    /// Where in the stack a function's frame is.
    pub(crate) place: Word,
    /// Where a function's strings lie: what it belongs to, its name, its file.
    pub(crate) pieces: [ReportString; 3],
    pub(crate) first_line: Word,
    pub(crate) extra: Word,
}

/// A [`profiler_common::runtime::ReportString`].
#[repr(C)]
pub(crate) struct ReportString {
    pub(crate) address: Word,
    pub(crate) bytes: Word,
    pub(crate) encoding: Word,
}

/// Words of the longest record of a mapping.
pub(crate) const REPORT_WORDS: usize = MAPPING_EVENT_WORDS + (PATH_BYTES + NAME_BYTES) / 8;
