//! From what was recorded to outputs: symbolize, finish, write.
//!
//! In: normalized stacks of a recording, of one of its windows, or of a raw recording. Out: files, and the text to end with.

pub(crate) mod deliver;
pub(crate) mod finish;
pub(crate) mod input;
pub(crate) mod look;
pub(crate) mod naming;
pub(crate) mod progress;
pub(crate) mod recording_info;
pub(crate) mod render;
pub(crate) mod stored;
pub(crate) mod windows;

pub use render::render;

use crate::kernel::Kernel;
use crate::output::sink::Sink;
use crate::plan::Output;
use crate::process::Processes;
use crate::profile::normalized::NormalizedProfile;
use crate::symbolize::Objects;
use crate::unwind::loader::Loaded;
use anyhow::Result;
use std::time::Instant;

/// A recording that has ended, before anything in it has a name.
pub(crate) struct Recorded {
    /// When its end began.
    pub(crate) began: Instant,
    /// The kernel half, detached: it still has the counters, and names kernel functions.
    pub(crate) kernel: Kernel,
    pub(crate) processes: Processes,
    pub(crate) normalized: NormalizedProfile,
    pub(crate) objects: Objects,
    /// None where stacks were walked by frame pointers alone.
    pub(crate) loaded: Option<Loaded>,
}

/// Opens the way to every output, or refuses before anything is recorded.
pub(crate) fn prepare<'a>(outputs: impl Iterator<Item = &'a Output>) -> Result<Vec<Sink>> {
    outputs
        .map(|output| match output {
            Output::Stdout => Ok(Sink::stdout()),
            Output::File { path, .. } | Output::RawRecording { path } => Ok(Sink::prepare(path)?),
        })
        .collect()
}
