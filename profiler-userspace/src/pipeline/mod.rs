//! The pipeline: from a window of raw data to outputs.
//!
//! In: normalized stacks of a recording, of one of its windows, or of a raw recording. Out: files, and the text to end with.
//!
//! Four steps, each in a file of its own, and each only after the one before: [`normalize`], [`symbolize`], [`view`],
//! [`write`]. The conductors [`finish`], [`windows`] and [`render`] differ in where windows come from and where outputs go.

mod closing;
mod diff;
mod facts;
pub(crate) mod finish;
mod foreign;
mod input;
pub(crate) mod live;
mod normalize;
mod pieces;
pub(crate) mod progress;
mod read_summary;
pub(crate) mod recording_info;
mod render;
mod select;
mod shared;
pub(crate) mod symbolize;
pub(crate) mod timeline;
mod view;
pub(crate) mod windows;
mod write;

pub use diff::diff;
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
use timeline::Timeline;

/// A recording that has ended, before anything in it has a name.
pub(crate) struct Recorded {
    /// When its end began.
    pub(crate) began: Instant,
    /// The kernel half, detached: it still has the counters, and names kernel functions.
    pub(crate) kernel: Kernel,
    pub(crate) processes: Processes,
    pub(crate) normalized: NormalizedProfile,
    pub(crate) objects: Objects,
    /// None where no output tells of windows.
    pub(crate) timeline: Option<Timeline>,
    /// None where stacks were walked by frame pointers alone.
    pub(crate) loaded: Option<Loaded>,
}

/// Opens the way to every output, or refuses before anything is recorded.
pub(crate) fn prepare<'a>(outputs: impl Iterator<Item = &'a Output>) -> Result<Vec<Sink>> {
    outputs
        .map(|output| match output {
            Output::Stdout(_) => Ok(Sink::stdout()),
            Output::File { path, .. }
            | Output::RawRecording { path }
            | Output::SharedPage { path } => Ok(Sink::prepare(path)?),
        })
        .collect()
}
