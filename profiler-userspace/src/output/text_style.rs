//! How a text report is to be.
//!
//! In: the user's words. Out: plain values.

use regex::Regex;
use std::str::FromStr;

/// The fewest columns that a report is made for.
pub const MIN_COLUMNS: usize = 60;

/// How a text report is to be.
#[derive(Clone, Debug, PartialEq)]
pub struct TextStyle {
    /// Columns of a line.
    pub columns: usize,
    /// Whether names that do not fit into them are cut. Where nobody knows how wide a report will be shown, they are not.
    pub cuts_names: bool,
    /// Whether it is for a terminal that shows colours.
    pub is_colored: bool,
    /// The least share of what is shown, in percent; without one, the usual number of rows is.
    pub min_percent: Option<f64>,
    /// The functions to tell callers and callees of, instead of all else: a regular expression.
    pub peek: Option<Peek>,
    /// The hottest lines, instead of all else.
    pub lines: bool,
}

impl Default for TextStyle {
    fn default() -> Self {
        Self {
            columns: 80,
            cuts_names: true,
            is_colored: false,
            min_percent: None,
            peek: None,
            lines: false,
        }
    }
}

/// Which functions are meant.
#[derive(Clone, Debug)]
pub struct Peek(pub(super) Regex);

impl PartialEq for Peek {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl FromStr for Peek {
    type Err = regex::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Regex::new(text).map(Self)
    }
}
