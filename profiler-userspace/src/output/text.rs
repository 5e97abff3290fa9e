//! The text report: where time goes, for a terminal, a mail or a ticket.
//!
//! In: a profile and its style. Out: the balance, tables of functions, modules, processes, threads and files, and the tree
//! of calls from both ends. Whatever a table leaves out is counted under it. The same bytes for the same profile.
//! Never: a character that a terminal would obey, or a line wider than was asked for.

mod functions;
mod layout;
mod lines;
mod owners;
mod peek;
mod runtimes;
mod tree;

#[cfg(test)]
mod tests;

use super::text_style::TextStyle;
use super::{Error, SourceText, Style};
use crate::profile::fold::visible;
use crate::profile::{CallTree, Profile};
use crate::text::color::painted;
use crate::text::number::amount;
use functions::Functions;
use layout::percent;
pub(super) use layout::wrapped;
use std::fmt::Write as _;
use std::io::Write;

/// Material of every part of a report.
struct Report<'a> {
    profile: &'a Profile,
    tree: &'a CallTree,
    functions: &'a Functions<'a>,
    style: &'a TextStyle,
    /// Source to show beside lines.
    source: Option<&'a SourceText>,
    total: u64,
}

/// Writes the report.
pub(super) fn write(profile: &Profile, style: &Style, out: &mut dyn Write) -> Result<(), Error> {
    let tree = CallTree::new(profile);
    let functions = Functions::new(profile, &tree);
    let report = Report {
        profile,
        tree: &tree,
        functions: &functions,
        style: &style.text,
        source: style.source.as_deref(),
        total: profile.total_weight(),
    };
    let mut text = report.head(style);
    match &style.text.peek {
        Some(peek) => report.peek(peek, &mut text),
        None if style.text.lines => report.lines(functions::DEFAULT_ROWS, &mut text),
        None => {
            report.functions(functions::DEFAULT_ROWS, "--min 0 shows all", &mut text);
            report.owners(&mut text);
            report.calls(&mut text);
        }
    }
    if style.text.is_colored {
        text = painted(&text);
    }
    Ok(out.write_all(text.as_bytes())?)
}

/// The functions that most time was spent in, as a table of so many rows: of a program that a runtime runs those that it
/// runs, and native ones beside them.
pub fn hottest(profile: &Profile, style: &TextStyle, rows: usize) -> String {
    let tree = CallTree::new(profile);
    let functions = Functions::new(profile, &tree);
    let report = Report {
        profile,
        tree: &tree,
        functions: &functions,
        style,
        source: None,
        total: profile.total_weight(),
    };
    let (mut text, more) = (String::new(), "--report shows more");
    if !report.runtimes(rows, more, &mut text) {
        report.functions(rows, more, &mut text);
    }
    text
}

impl Report<'_> {
    fn head(&self, style: &Style) -> String {
        let columns = self.style.columns;
        let mut text = String::new();
        let title = [Some(&style.title), style.subtitle.as_ref()];
        let notes = style.notes.lines().filter(|line| *line != style.title);
        for line in title.into_iter().flatten().map(String::as_str).chain(notes) {
            for line in wrapped(&visible(line), columns) {
                let _ = writeln!(text, "{line}");
            }
        }
        let unit = &self.profile.unit;
        let weight = amount(unit.shown(self.total), &visible(unit.noun()));
        let shares = self.functions.shares(self.tree);
        let mut shares: Vec<String> = shares
            .into_iter()
            .filter(|(_, weight)| *weight > 0)
            .map(|(what, weight)| format!("{what} {}", percent(weight, self.total).trim_start()))
            .collect();
        shares.insert(0, format!("{weight}:"));
        for line in wrapped(&shares.join(" "), columns) {
            let _ = writeln!(text, "{line}");
        }
        text
    }
}
