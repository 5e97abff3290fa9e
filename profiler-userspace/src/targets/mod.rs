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
