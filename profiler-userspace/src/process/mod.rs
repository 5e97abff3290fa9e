//! Processes as they were when first seen. They are kept after their end, until they are let go.
//!
//! In: mapping events of the kernel half; `/proc`. Out: what an address of theirs
//! lies in, and the files behind it, opened only if they are the very files that were mapped.
//! Never names anything, and never fails: a process that has gone has no mappings.

mod backing;
mod code_maker;
mod functions;
mod jit_maps;
mod liveness;
mod mapping;
mod mapping_events;
mod mappings;
mod moved;
mod names;
mod open_files;
mod opening;
mod patience;
pub mod proc_maps;
mod registry;
mod reported;
mod shortage;
pub mod vdso;

pub use backing::{Backing, BackingId, MappedFile};
pub use code_maker::CodeMaker;
pub use functions::{CopiedText, FunctionEvent, FunctionLines, InlinedCall, RuntimeFunction};
pub use mapping::{Moved, Place};
pub use mapping_events::{MappingEvent, Todo, Unopened};
pub use mappings::{MovedText, Process};
pub(crate) use names::name_with_what_runs;
pub use opening::{Opened, Owner, Unreachable};
pub use registry::{Look, Processes};
pub use reported::Choice;
pub use shortage::Shortage;

use crate::profile::raw::Who;

/// One program that ran in one process. If a PID is reused, or a process calls `exec`, the incarnation
/// differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessKey {
    /// The process ID, as in our `/proc`.
    pub tgid: u32,
    /// Grows with each program under one PID; zero where the kernel does not say.
    pub incarnation: u64,
}

impl From<&Who> for ProcessKey {
    fn from(who: &Who) -> Self {
        Self {
            tgid: who.tgid,
            incarnation: who.incarnation,
        }
    }
}
