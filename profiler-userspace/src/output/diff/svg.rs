//! The comparison as a flame graph, with what there is to read on each frame.

use super::numbers::{change, unit, value};
use super::{Report, text};
use crate::diff::Node;
use crate::output::bound::Bound;
use crate::output::svg::{Widths, write_differential};
use crate::output::{Error, Style};
use std::io::Write;

/// Writes a graph of such widths.
pub(super) fn graph(
    report: &Report<'_>,
    widths: Widths,
    (style, bound): (&Style, Bound),
    out: &mut dyn Write,
) -> Result<(), Error> {
    let comparison = report.comparison;
    let quantity = comparison.quantity;
    let unit = unit(comparison);
    let note = |node: &Node| {
        let of = &node.change;
        let [before, after] = of.estimate.values.map(|value_of| value(quantity, value_of));
        let interval = of.interval().map_or_else(String::new, |[low, high]| {
            format!(
                ", between {} and {}",
                change(quantity, low),
                change(quantity, high)
            )
        });
        let moved = of
            .partner
            .as_ref()
            .map_or_else(String::new, |partner| format!(": {partner}"));
        format!(
            "before {before}, after {after}: {} {unit}{interval}; {}{moved}",
            change(quantity, of.estimate.change()),
            of.verdict.word()
        )
    };
    let wide = match widths {
        Widths::Both => "Frames are as wide as the mean of before and after",
        Widths::Before => "Frames are as wide as before",
        Widths::After => "Frames are as wide as after",
    };
    let lines = text::summary_lines(report);
    let style = Style {
        notes: lines.join("\n"),
        ..style.clone()
    };
    let texts = [
        format!("{wide}. {}", lines.first().map_or("", |line| line)),
        lines.get(1).cloned().unwrap_or_default(),
    ];
    write_differential(comparison, widths, &note, texts, (&style, bound), out)
}
