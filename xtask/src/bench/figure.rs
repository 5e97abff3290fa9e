//! Figures and the tables that they are printed in.
//!
//! In: what was measured, several times each. Out: text, with the median and its range, and the ratio to each peer.

use std::fmt;

/// The same quantity, measured several times.
#[derive(Clone, Default)]
pub(super) struct Figure {
    values: Vec<f64>,
}

/// Unit of a quantity.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    /// Hundredths.
    Percent,
    /// Billionths of a second.
    Nanoseconds,
    /// Millionths of a second.
    Microseconds,
    /// Thousandths of a second.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// 1024² bytes.
    Mebibytes,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Percent => "%",
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Mebibytes => "MiB",
        }
    }

    fn decimals(self) -> usize {
        match self {
            Self::Nanoseconds | Self::Milliseconds => 0,
            Self::Microseconds | Self::Mebibytes => 1,
            Self::Percent | Self::Seconds => 2,
        }
    }
}

impl Figure {
    /// One more measurement.
    pub(super) fn add(&mut self, value: f64) {
        self.values.push(value);
        self.values.sort_by(f64::total_cmp);
    }

    /// Whether it was never measured.
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The middle one, or the mean of the middle two; not a number if there is none.
    pub(super) fn median(&self) -> f64 {
        let (values, half) = (&self.values, self.values.len() / 2);
        match (values.len(), values.len() % 2) {
            (0, _) => f64::NAN,
            (_, 0) => f64::midpoint(values[half - 1], values[half]),
            _ => values[half],
        }
    }

    fn show(&self, unit: Unit) -> String {
        let (decimals, name) = (unit.decimals(), unit.name());
        let median = self.median();
        match (self.values.first(), self.values.last()) {
            (Some(lowest), Some(highest)) if self.values.len() > 1 => {
                format!("{median:.decimals$} {name} ({lowest:.decimals$}..{highest:.decimals$})")
            }
            _ => format!("{median:.decimals$} {name}"),
        }
    }
}

impl FromIterator<f64> for Figure {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut figure = Self::default();
        for value in values {
            figure.add(value);
        }
        figure
    }
}

/// A section's figures.
pub(super) struct Table {
    title: String,
    rows: Vec<[String; COLUMNS]>,
    notes: Vec<String>,
}

const COLUMNS: usize = 5;
const HEAD: [&str; COLUMNS] = ["figure", "flame-bpf", "peer", "the peer's", "ratio"];

impl Table {
    /// A table without rows.
    pub(super) fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Adds one quantity as the tools have it: flame-bpf first, then a row for each peer.
    pub(super) fn compare<'name>(
        &mut self,
        what: &str,
        unit: Unit,
        tools: impl IntoIterator<Item = (&'name str, Figure)>,
    ) {
        let mut tools = tools.into_iter();
        let Some((_, ours)) = tools.next() else {
            return;
        };
        let mut row = [what.to_owned(), ours.show(unit), "-".into(), "-".into()];
        let mut alone = true;
        for (name, theirs) in tools {
            row[2] = name.to_owned();
            row[3] = theirs.show(unit);
            self.push(&row, &ratio(ours.median(), theirs.median()));
            // The figure and ours are the same as in the row above.
            row[0].clear();
            row[1].clear();
            alone = false;
        }
        if alone {
            self.push(&row, "-");
        }
    }

    /// Adds a sentence under the rows.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    fn push(&mut self, row: &[String; COLUMNS - 1], ratio: &str) {
        let [what, ours, peer, theirs] = row.clone();
        self.rows.push([what, ours, peer, theirs, ratio.to_owned()]);
    }
}

/// Ratio of `ours` to `theirs`; a difference that drowned in noise has none.
fn ratio(ours: f64, theirs: f64) -> String {
    let ratio = ours / theirs;
    if !(ours > 0.0 && theirs > 0.0) {
        "-".to_owned()
    } else if ratio < 0.1 {
        format!("{ratio:.3}")
    } else {
        format!("{ratio:.2}")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "## {}\n", self.title)?;
        let head = HEAD.map(str::to_owned);
        let width = |column: usize| {
            let cells = self.rows.iter().chain([&head]).map(|row| &row[column]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: [usize; COLUMNS] = std::array::from_fn(width);
        let line = |f: &mut fmt::Formatter<'_>, row: &[String; COLUMNS]| {
            for (cell, width) in row.iter().zip(widths) {
                write!(f, "| {cell:width$} ")?;
            }
            writeln!(f, "|")
        };
        line(f, &head)?;
        line(f, &widths.map(|width| "-".repeat(width)))?;
        for row in &self.rows {
            line(f, row)?;
        }
        for note in &self.notes {
            write!(f, "\n{note}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(values: &[f64]) -> Figure {
        values.iter().copied().collect()
    }

    #[test]
    fn the_median_does_not_depend_on_the_order() {
        assert_eq!(figure(&[9.0, 1.0, 2.0]).median(), 2.0);
        assert_eq!(figure(&[4.0, 1.0, 2.0, 100.0]).median(), 3.0);
        assert!(figure(&[]).median().is_nan());
    }

    #[test]
    fn differences_within_noise_have_no_ratio() {
        assert_eq!(ratio(1.0, 4.0), "0.25");
        assert_eq!(ratio(0.1, 8.0), "0.013");
        assert_eq!(ratio(1.0, -0.1), "-");
        assert_eq!(ratio(-1.0, 2.0), "-");
        assert_eq!(ratio(f64::NAN, 2.0), "-");
    }

    #[test]
    fn a_row_holds_both_figures_and_their_ratio() {
        let mut table = Table::new("Cost");
        table.compare(
            "CPU time",
            Unit::Seconds,
            [
                ("flame-bpf", figure(&[0.1, 0.2, 0.3])),
                ("perf", figure(&[0.4])),
                ("bcc", figure(&[0.8])),
            ],
        );
        table.compare("peak", Unit::Mebibytes, [("flame-bpf", figure(&[12.34]))]);
        let text = table.to_string();
        let rows: Vec<String> = text
            .lines()
            .skip(4)
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            rows,
            [
                "| CPU time | 0.20 s (0.10..0.30) | perf | 0.40 s | 0.50 |",
                "| | | bcc | 0.80 s | 0.25 |",
                "| peak | 12.3 MiB | - | - | - |",
            ]
        );
    }
}
