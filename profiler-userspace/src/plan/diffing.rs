//! What two sides are to be compared, and how.

use super::Verbosity;
use crate::debuginfod::Servers;
use crate::diff::{Condition, Wanted};
use crate::output::{DiffFormat, Style};
use crate::profile::select::Selection;
use crate::symbolize::Naming;
use std::path::PathBuf;

/// What is to be made of recordings of two sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Diffing {
    /// Raw recordings and profiles of other tools, of before; never empty. `-` is stdin.
    pub before: Vec<PathBuf>,
    /// Those of after; never empty.
    pub after: Vec<PathBuf>,
    /// Which of the things that an input counts is compared; none for the usual one.
    pub sample_type: Option<String>,
    /// What of the profiles is compared.
    pub selection: Selection,
    /// How they are compared.
    pub wanted: Wanted,
    /// What ends the process with another code.
    pub conditions: Vec<Condition>,
    /// Where the result goes; never empty, and no place twice.
    pub outputs: Vec<DiffOutput>,
    /// How graphs look, but for their title.
    pub style: Style,
    /// The title that was asked for; none means the names of both sides.
    pub title: Option<String>,
    /// How code is named.
    pub naming: Naming,
    /// Who is asked for debug files that are not here.
    pub servers: Servers,
    /// How much is said on stderr.
    pub verbosity: Verbosity,
}

/// One place that a comparison goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiffOutput {
    /// Where, as the user wrote it; none for stdout.
    pub path: Option<PathBuf>,
    /// What is written there.
    pub format: DiffFormat,
}
