//! Processes as they were when first seen. They are kept after their end, until they are let go.
//!
//! In: mapping events of the kernel half; `/proc`. Out: what an address of theirs
//! lies in, and the files behind it, opened only if they are the very files that were mapped.
//! Never names anything, and never fails: a process that has gone has no mappings.

mod backing;
mod code_maker;
mod context;
mod contexts;
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
mod stat;
mod status;
mod thread_names;
mod unread;
pub mod vdso;

pub use backing::{Backing, BackingId, MappedFile};
pub use code_maker::CodeMaker;
pub(crate) use context::{CONTEXT_VERSION, MAX_CONTEXT_BYTES};
pub use functions::{CopiedText, FunctionEvent, FunctionLines, InlinedCall, RuntimeFunction};
pub use mapping::{MappedAddress, Moved};
pub use mapping_events::{MappingEvent, Todo, Unopened};
pub use mappings::{MovedText, Process};
pub(crate) use names::name_with_what_runs;
pub use opening::{Opened, Owner, Unreachable};
pub use registry::{ProcessChange, Processes};
pub use reported::Choice;
pub use shortage::Shortage;
pub(crate) use stat::Stat;
pub(crate) use status::{Status, own_thread_id};
pub use unread::{Unread, UnreadContexts};

use crate::profile::raw::Who;
use std::time::Duration;

/// One program that ran in one process. If a PID is reused, or a process calls `exec`, the incarnation
/// differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProcessKey {
    /// The process ID, as in our `/proc`.
    pub tgid: u32,
    /// Grows with each program under one PID; zero where the kernel does not say.
    pub incarnation: u64,
}

impl ProcessKey {
    /// The process of this thread group and incarnation.
    pub const fn new(tgid: u32, incarnation: u64) -> Self {
        Self { tgid, incarnation }
    }

    /// How long ago the process began; none where the kernel does not say when.
    pub(crate) fn age(&self) -> Option<Duration> {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let since_boot = Duration::new(
            u64::try_from(now.tv_sec).unwrap_or(0),
            u32::try_from(now.tv_nsec).unwrap_or(0),
        );
        let began = Duration::from_nanos(self.incarnation);
        (self.incarnation != 0).then(|| since_boot.saturating_sub(began))
    }
}

impl From<&Who> for ProcessKey {
    fn from(who: &Who) -> Self {
        Self::new(who.tgid, who.incarnation)
    }
}
