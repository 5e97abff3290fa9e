//! The comparison as text: what changed, what is noise, and what could not have been seen.
//!
//! In: a report, and how wide it may be. Out: lines of at most 80 columns but for names, which are cut on a terminal alone.
//! The same bytes for the same report.

use super::Report;
use super::numbers::{change, time, unit, value};
use crate::diff::stats::estimate::Clusters;
use crate::diff::{Change, Class, Comparison, Function, Quantity, Side, Verdict};
use crate::output::TextStyle;
use crate::output::text::wrapped;
use crate::profile::Unit;
use crate::profile::fold::visible;
use std::fmt::Write as _;

const COLUMNS: usize = 80;
/// So many functions are shown, and all that changed.
const ROWS: usize = 20;
/// Columns before a verdict, with those behind it.
const NUMBERS: usize = 42;

/// All of it.
pub(super) fn report(report: &Report<'_>, style: &TextStyle) -> String {
    let comparison = report.comparison;
    let mut text = String::new();
    line(&mut text, &verdict(comparison));
    for (side, title, which) in [
        (&comparison.sides[0], &report.titles[0], "before"),
        (&comparison.sides[1], &report.titles[1], "after"),
    ] {
        line(
            &mut text,
            &format!("{which}: {}: {}", visible(title), of_side(side, comparison)),
        );
    }
    for part in on_matching(comparison) {
        line(&mut text, &part);
    }
    if !comparison.claims {
        line(&mut text, NO_INTERVALS);
    }
    for table in [
        Table {
            name: "self",
            of: |function| &function.itself,
        },
        Table {
            name: "total",
            of: |function| &function.total,
        },
    ] {
        table.write(comparison, style, &mut text);
    }
    text.push('\n');
    closing(report, &mut text);
    text
}

/// Texts beside pictures.
pub fn summary(report: &Report<'_>) -> String {
    let mut text = String::new();
    line(&mut text, &verdict(report.comparison));
    if !report.comparison.claims {
        line(&mut text, NO_INTERVALS);
    }
    closing(report, &mut text);
    text
}

/// The same as whole sentences: what it comes to first.
pub(super) fn summary_lines(report: &Report<'_>) -> Vec<String> {
    let comparison = report.comparison;
    let mut lines = claims(comparison);
    if !comparison.claims {
        lines.push(NO_INTERVALS.to_owned());
    }
    let sides = comparison
        .sides
        .iter()
        .zip(report.titles)
        .zip(["Before", "After"]);
    lines.extend(sides.map(|((side, title), which)| {
        format!("{which}: {}: {}", visible(title), of_side(side, comparison))
    }));
    lines.extend(on_matching(comparison));
    lines.extend(answers(report));
    lines
}

/// Verdict on both sides: `CPU time: 812 ms/s before, 861 ms/s after: +6.0% (+2.1 to +9.9%), beyond noise.`
pub(super) fn verdict(comparison: &Comparison) -> String {
    let Some(whole) = &comparison.whole else {
        return "How much it costs altogether is not known: an input does not say how long it took."
            .to_owned();
    };
    let what = match (whole.quantity, &comparison.unit) {
        (Quantity::Time, Unit::Nanoseconds) => "Time",
        (Quantity::Time, _) => "CPU time",
        (Quantity::Rate | Quantity::Share, unit) => unit.noun(),
    };
    let rate = |of: f64| match whole.quantity {
        Quantity::Time => format!("{} ms/s", value(Quantity::Time, of)),
        Quantity::Rate | Quantity::Share => format!("{}/s", value(Quantity::Rate, of)),
    };
    let [before, after] = whole.estimate.values.map(rate);
    let percent = |part: f64| format!("{:+.1}", part * 100.0);
    let change = whole
        .relative()
        .map_or_else(String::new, |[change, low, high]| match whole.verdict {
            Verdict::NoClaim => format!(": {}%", percent(change)),
            _ => format!(
                ": {}% ({} to {}%)",
                percent(change),
                percent(low),
                percent(high)
            ),
        });
    let said = match whole.verdict {
        Verdict::NoClaim => "; whether that is noise is not known",
        Verdict::Noise => ", which is noise",
        _ => ", beyond noise",
    };
    format!("{what}: {before} before, {after} after{change}{said}.")
}

const NO_INTERVALS: &str = "No intervals: the inputs do not say how much they vary. Record with -o NAME.fbpf, for a \
                            second or more, to tell change from noise.";

fn line(text: &mut String, said: &str) {
    for line in wrapped(said, COLUMNS) {
        let _ = writeln!(text, "{line}");
    }
}

fn of_side(side: &Side, comparison: &Comparison) -> String {
    let mut text = format!("{} samples", side.samples);
    if side.recordings > 1 {
        let _ = write!(text, " in {} recordings", side.recordings);
    }
    if side.seconds.is_some() {
        let _ = write!(text, ", {} windows", side.windows);
    }
    if let Some(seconds) = side.seconds {
        let _ = write!(text, ", {seconds:.1} s");
    }
    if comparison.quantity != Quantity::Share {
        let all = value(comparison.quantity, side.total);
        let _ = write!(text, ", {all} {}", unit(comparison));
    }
    text
}

fn on_matching(comparison: &Comparison) -> Vec<String> {
    let mut parts = Vec::new();
    if let Some([before, after]) = &comparison.programs {
        parts.push(format!(
            "{} and {} are taken for one program.",
            visible(before),
            visible(after)
        ));
    }
    let loose = comparison.sides.each_ref().map(|side| side.loose * 100.0);
    if loose.iter().any(|share| *share > 0.0) {
        parts.push(format!(
            "Matched loosely, by what of a name stays the same in every build: stacks of {:.1}% before, {:.1}% after.",
            loose[0], loose[1]
        ));
    }
    parts
}

/// A table of functions.
struct Table {
    name: &'static str,
    of: fn(&Function) -> &Change,
}

impl Table {
    fn write(&self, comparison: &Comparison, style: &TextStyle, text: &mut String) {
        let of = self.of;
        let there = comparison
            .functions
            .iter()
            .filter(|function| of(function).weights != [0, 0]);
        let mut rows: Vec<&Function> = there.collect();
        let all = rows.len();
        rows.sort_by(|a, b| {
            let key = |function: &Function| {
                let change = of(function);
                (change.verdict.is_change(), change.estimate.change().abs())
            };
            let ((a_changed, a_by), (b_changed, b_by)) = (key(a), key(b));
            (b_changed.cmp(&a_changed))
                .then_with(|| b_by.total_cmp(&a_by))
                .then_with(|| a.name.cmp(&b.name))
        });
        let changed = rows
            .iter()
            .filter(|function| of(function).verdict.is_change())
            .count();
        rows.truncate(ROWS.max(changed));
        let verdicts = rows.iter().map(|row| of(row).verdict.word().len());
        let verdicts = verdicts.max().unwrap_or(0).max(8);
        let _ = writeln!(
            text,
            "\n{:>7} {:>7} {:>7}  {:<15} {:<verdicts$} function",
            "before",
            "after",
            "change",
            unit(comparison),
            self.name
        );
        let room = style.columns.saturating_sub(NUMBERS + verdicts);
        for function in &rows {
            let mark = match function.class {
                Class::Kernel => " [k]",
                _ => "",
            };
            let name = style.name(&visible(&function.name), room.saturating_sub(mark.len()));
            row(comparison, of(function), verdicts, &(name + mark), text);
        }
        let rest = all - rows.len();
        if rest > 0 {
            let _ = writeln!(
                text,
                "{rest} more, none of which changed beyond noise; -o NAME.json has all"
            );
        }
    }
}

fn row(comparison: &Comparison, of: &Change, verdicts: usize, name: &str, text: &mut String) {
    let quantity = comparison.quantity;
    let interval = of.interval().map_or_else(String::new, |[low, high]| {
        format!("[{}, {}]", change(quantity, low), change(quantity, high))
    });
    let [before, after] = of.estimate.values.map(|value_of| value(quantity, value_of));
    let _ = writeln!(
        text,
        "{before:>7} {after:>7} {:>7}  {interval:<15} {:<verdicts$} {name}",
        change(quantity, of.estimate.change()),
        of.verdict.word(),
    );
    let mut more: Vec<String> = Vec::new();
    if let Some(partner) = &of.partner {
        let direction = if of.estimate.change() > 0.0 {
            "from"
        } else {
            "to"
        };
        more.push(format!("cost moved {direction} {}", visible(partner)));
    }
    if comparison.unit == Unit::Nanoseconds && of.verdict != Verdict::Few {
        let mean = |side: usize| {
            let count = of.estimate.samples[side];
            let mean = of.weights[side] as f64 / count.max(1) as f64;
            format!("{count} × {}", time(mean))
        };
        more.push(format!("{} before, {} after", mean(0), mean(1)));
    }
    if let Some(wait) = of.lone {
        more.push(format!("one of {}", time(wait.get() as f64)));
    }
    if !more.is_empty() {
        let _ = writeln!(text, "{:25}{}", "", more.join("; "));
    }
}

/// The outcome, and what could not have been seen.
fn closing(report: &Report<'_>, text: &mut String) {
    let claims = claims(report.comparison).into_iter();
    for said in claims.chain(answers(report)) {
        line(text, &said);
    }
}

/// Claims that can be made of all functions, and what keeps from more.
fn claims(comparison: &Comparison) -> Vec<String> {
    match comparison.claims {
        true => vec![
            found(comparison),
            sight(comparison),
            why(comparison).to_owned(),
        ],
        false => Vec::new(),
    }
}

/// Answers to the conditions.
fn answers(report: &Report<'_>) -> impl Iterator<Item = String> {
    report.answers.iter().map(|(condition, answer)| {
        format!(
            "{}: {condition}: {}.",
            answer.outcome.word(),
            visible(&answer.reason)
        )
    })
}

fn found(comparison: &Comparison) -> String {
    format!(
        "{} of {} functions changed beyond noise; {} have enough samples to tell. Of such findings 5% are expected to be \
         false.",
        comparison.changed(),
        comparison.functions.len(),
        comparison.tests[1].tests,
    )
}

fn sight(comparison: &Comparison) -> String {
    let Some(sight) = comparison.sight else {
        return "No function has enough samples to be tested: record for longer.".to_owned();
    };
    let in_unit = |value: f64| {
        let text = match comparison.quantity {
            Quantity::Share => format!("{:.2}", value * 100.0),
            Quantity::Time => format!("{:.2}", value / 1e6),
            Quantity::Rate => change(comparison.quantity, value)
                .trim_start_matches('+')
                .to_owned(),
        };
        format!("±{text} {}", unit(comparison))
    };
    let longer = match (comparison.clusters, &comparison.sides) {
        (Clusters::Recordings, sides) => format!(
            "{} and {} recordings",
            sides[0].recordings * 4,
            sides[1].recordings * 4
        ),
        (
            _,
            [
                Side {
                    seconds: Some(before),
                    ..
                },
                Side {
                    seconds: Some(after),
                    ..
                },
            ],
        ) => {
            format!("recordings of {:.0} and {:.0} s", before * 4.0, after * 4.0)
        }
        _ => "four times as many samples".to_owned(),
    };
    format!(
        "Changes below {} of a function of 10% cannot be seen here; {longer} would show {}.",
        in_unit(sight.least),
        in_unit(sight.least / 2.0)
    )
}

fn why(comparison: &Comparison) -> &'static str {
    match comparison.clusters {
        Clusters::Windows => {
            "One recording a side: this says that the recordings differ, not why. Several of each, as in `diff A1 A2 A3 \
             -- B1 B2 B3`, rule out what differs from run to run."
        }
        Clusters::Recordings => "Noise is what differs from run to run of the same side.",
        Clusters::Samples => {
            "Samples are taken for independent, as was asked for. They are not: equal programs are called different \
             this way."
        }
    }
}
