//! Comparisons as files that people and programs read.
//!
//! In: a [`Comparison`] and what its conditions came to. Out: bytes of one [`DiffFormat`]. Never: a claim that is not in
//! the comparison.

mod folded;
mod json;
mod numbers;
mod text;

use super::Error;
use crate::diff::{Answer, Comparison};
use std::io::Write;
use std::path::Path;
pub use text::summary;

/// What a comparison can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffFormat {
    /// A table of what changed, for terminals and logs.
    Text,
    /// All functions and nodes, for programs.
    Json,
    /// Stacks with what was counted before and after.
    Folded,
}

/// All there is to write.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    /// Both sides.
    pub comparison: &'a Comparison,
    /// What each side is called.
    pub titles: &'a [String; 2],
    /// Conditions, and what they came to.
    pub answers: &'a [(String, Answer)],
}

impl DiffFormat {
    /// The format that the name of `path` asks for.
    ///
    /// # Errors
    /// When it asks for none that comparisons can be written in.
    pub fn from_path(path: &Path) -> Result<Self, Error> {
        let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
        let all = [
            ("txt", Self::Text),
            ("json", Self::Json),
            ("folded", Self::Folded),
        ];
        let found = all.into_iter().find(|(known, _)| extension == *known);
        found
            .map(|(_, format)| format)
            .ok_or_else(|| Error::NoDiffFormat {
                path: path.to_owned(),
            })
    }
}

/// Writes a comparison.
///
/// # Errors
/// When the bytes are refused.
pub fn write(report: &Report<'_>, format: DiffFormat, out: &mut dyn Write) -> Result<(), Error> {
    match format {
        DiffFormat::Text => out.write_all(text::report(report).as_bytes())?,
        DiffFormat::Json => json::write(report, out)?,
        DiffFormat::Folded => folded::write(report.comparison, out)?,
    }
    Ok(())
}
