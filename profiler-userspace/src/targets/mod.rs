//! The targets of a recording: tasks, and places in the files they run.
//!
//! In: the plan's target. Out: whether its tasks exist and run, and the entry points for uprobes. Never
//! attaches anything.

pub(crate) mod allocators;
pub(crate) mod code_files;
pub(crate) mod command;
pub(crate) mod needed_libs;
pub(crate) mod processes;
pub(crate) mod tasks;
pub(crate) mod uprobe_sites;
pub(crate) mod uprobe_targets;

use std::fs::File;
use std::num::NonZeroU32;

/// A function's entry point.
#[derive(Debug)]
pub struct UprobeSite {
    /// Its name in messages.
    pub name: String,
    /// The file that it is in.
    pub file: File,
    /// The file offset of its first instruction, in bytes.
    pub offset: u64,
    /// The watched process, or any of its threads; none to watch all processes, also future ones.
    pub process: Option<NonZeroU32>,
    /// The attach cookie: the event's number; for an allocator, which function it is.
    pub cookie: u64,
}
