//! The flags of text reports.
//!
//! In: nothing. Out: the flags, as clap reads them, their help, and what they mean for outputs.

use crate::output::{Format, MIN_COLUMNS, Peek, TextStyle};
use crate::plan::Output;
use std::ffi::OsString;

/// The columns of a report's prose where nobody knows how wide it will be shown.
const FILE_COLUMNS: usize = 80;

#[derive(Debug, clap::Args)]
pub(super) struct TextArgs {
    /// Write a text report to stdout: hottest functions, what they belong to, calls; or hottest lines (-o NAME.txt for a file)
    #[arg(long, value_name = "lines", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    report: Option<ReportOf>,
    /// Report what has at least this share, in percent [default: 40 functions, and calls of 1]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min: Option<f64>,
    /// Report callers and callees of functions that match REGEX
    #[arg(long, value_name = "REGEX")]
    peek: Option<Peek>,
    /// Cut names so that lines of reports have N columns [default: the terminal's, or COLUMNS; elsewhere none is cut]
    #[arg(long, value_name = "N", value_parser = columns)]
    columns: Option<usize>,
}

fn columns(text: &str) -> Result<usize, String> {
    let columns = text.parse().ok();
    columns
        .filter(|columns| *columns >= MIN_COLUMNS)
        .ok_or_else(|| format!("give {MIN_COLUMNS} or more"))
}

fn percent(text: &str) -> Result<f64, String> {
    let text = text.strip_suffix('%').unwrap_or(text);
    match text.parse() {
        Ok(share) if (0.0..=100.0).contains(&share) => Ok(share),
        _ => Err("give a share in percent, such as 0.5".to_owned()),
    }
}

/// Content of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ReportOf {
    /// Functions, owners, calls.
    All,
    /// The hottest lines.
    Lines,
}

/// Takes `--report lines` for `--report=lines`: whatever else follows `--report` is no part of it.
pub(super) fn join_report(arguments: &mut Vec<OsString>) {
    let behind = |pair: &[OsString]| pair[0] == "--report" && pair[1] == "lines";
    let end = arguments.iter().position(|argument| argument == "--");
    let ours = &arguments[..end.unwrap_or(arguments.len())];
    if let Some(at) = ours.windows(2).position(behind) {
        arguments[at] = "--report=lines".into();
        arguments.remove(at + 1);
    }
}

impl TextArgs {
    /// Whether a report is of lines, which names then have to know.
    pub(super) fn is_of_lines(&self) -> bool {
        self.report == Some(ReportOf::Lines)
    }

    /// Whether a report goes to stdout: it was asked for, or there is no other place for what was.
    pub(super) fn is_on_stdout(&self, outputs: &[Output]) -> bool {
        let is_report = |output: &Output| output.format() == Some(Format::TEXT);
        let is_shaped = self.peek.is_some() || self.min.is_some();
        self.report.is_some() || is_shaped && !outputs.iter().any(is_report)
    }

    /// How reports are to be.
    pub(super) fn style(&self) -> TextStyle {
        TextStyle {
            columns: self.columns.unwrap_or(FILE_COLUMNS),
            cuts_names: self.columns.is_some(),
            is_colored: false,
            min_percent: self.min,
            peek: self.peek.clone(),
            lines: self.is_of_lines(),
        }
    }
}
