//! What is recorded: tasks, and places in the files that they run.
//!
//! In: the plan's target. Out: whether its tasks exist and run, and where the functions begin that uprobes are put on.
//! Never attaches anything.

pub(crate) mod allocators;
pub(crate) mod command;
pub(crate) mod needed_libs;
pub(crate) mod tasks;
pub(crate) mod uprobe_sites;
pub(crate) mod uprobe_targets;

use std::fs::File;
use std::num::NonZeroU32;

/// Where a function begins.
#[derive(Debug)]
pub struct UprobeSite {
    /// What messages call it.
    pub name: String,
    /// The file that it is in.
    pub file: File,
    /// The position of its first instruction in the file, in bytes.
    pub offset: u64,
    /// The process that is watched, or any of its threads; none to watch all processes, also later ones.
    pub process: Option<NonZeroU32>,
    /// What the program is told there: the number of the event; of an allocator, how it is asked.
    pub cookie: u64,
}
