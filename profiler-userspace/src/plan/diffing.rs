//! Comparisons: two sides, and how they are compared.

use super::Verbosity;
use crate::clock::Between;
use crate::debuginfod::Servers;
use crate::diff::{Condition, DiffOptions};
use crate::output::{DiffFormat, Style};
use crate::profile::select::Selection;
use crate::symbolize::Naming;
use std::path::PathBuf;

/// Comparison of recordings of two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Diffing {
    /// Raw recordings and profiles of other tools, of before; never empty. `-` is stdin.
    pub before: Vec<PathBuf>,
    /// Those of after; never empty.
    pub after: Vec<PathBuf>,
    /// The time of before that is compared; none for all.
    pub before_time: Option<Between>,
    /// That of after.
    pub after_time: Option<Between>,
    /// Which of the things that an input counts is compared; none for the usual one.
    pub sample_type: Option<String>,
    /// The part of the profiles that is compared.
    pub selection: Selection,
    /// How they are compared.
    pub options: DiffOptions,
    /// Conditions that end the process with another exit code.
    pub conditions: Vec<Condition>,
    /// Where the result goes; never empty, and no place twice.
    pub outputs: Vec<DiffOutput>,
    /// How graphs look, but for their title.
    pub style: Style,
    /// The title that was asked for; none means the names of both sides.
    pub title: Option<String>,
    /// How code is named.
    pub naming: Naming,
    /// Servers to ask for debug files that are not here.
    pub servers: Servers,
    /// How much is said on stderr.
    pub verbosity: Verbosity,
}

/// One place that a comparison goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffOutput {
    /// Where, as the user wrote it; none for stdout.
    pub path: Option<PathBuf>,
    /// Format of the output.
    pub format: DiffFormat,
}
