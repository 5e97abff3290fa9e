//! The pipeline: from a window of raw data to outputs.
//!
//! In: normalized stacks of a recording, of one of its windows, or of a raw recording. Out: files, and the text to end with.
//!
//! Four steps, each in a file of its own, and each only after the one before: [`normalize`], [`symbolize`], [`view`],
//! [`write`]. Windows of a recording pass [`window`], whatever their [`sink`]; [`render`] and [`diff`] read files.

mod annotate;
mod diff;
mod facts;
mod foreign;
mod input;
mod normalize;
mod pieces;
pub(crate) mod progress;
mod read_summary;
pub(crate) mod recording_info;
mod render;
mod select;
pub(crate) mod sink;
pub(crate) mod source;
mod symbolize;
pub(crate) mod timeline;
mod together;
mod view;
pub(crate) mod window;
mod write;

pub use crate::report::print;
pub use annotate::annotate;
pub use diff::diff;
pub use render::render;

use crate::output::sink::Sink;
use crate::plan::{Output, Plan};
use anyhow::Result;

/// Whether a service could begin as planned: what its plan names is there and can be read.
///
/// # Errors
/// When a certificate, a secret or a folder cannot be used.
pub fn check(plan: &Plan) -> Result<()> {
    plan.service.as_ref().map_or(Ok(()), sink::sent::check)
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
