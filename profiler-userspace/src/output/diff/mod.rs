//! Comparisons as files that people and programs read.
//!
//! In: a [`Comparison`] and what its conditions came to. Out: bytes of one [`DiffFormat`]. Never: a claim that is not in
//! the comparison.

mod folded;
mod html;
mod json;
mod numbers;
mod svg;
mod text;

use super::bound::Bound;
use super::svg::Widths;
use super::{Error, Style};
use crate::diff::{Answer, Comparison};
use std::io::Write;
use std::path::Path;
pub use text::summary;

/// The bound of a graph, whose frames each have a name and a note.
const BOUND: Bound = Bound {
    bytes: 2_900_000,
    parts: 60_000,
};

/// Formats of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffFormat {
    /// A flame graph of both sides.
    Svg,
    /// A page with graphs of both sides and all functions.
    Html,
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
    /// Names of both sides.
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
            ("svg", Self::Svg),
            ("html", Self::Html),
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
/// When the style cannot be drawn, or the bytes are refused.
pub fn write(
    report: &Report<'_>,
    format: DiffFormat,
    style: &Style,
    out: &mut dyn Write,
) -> Result<(), Error> {
    match format {
        DiffFormat::Svg => svg::graph(report, Widths::Both, (style, BOUND), out)?,
        DiffFormat::Html => html::write(report, style, out)?,
        DiffFormat::Text => out.write_all(text::report(report, &style.text).as_bytes())?,
        DiffFormat::Json => json::write(report, out)?,
        DiffFormat::Folded => folded::write(report.comparison, out)?,
    }
    Ok(())
}
