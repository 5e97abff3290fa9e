//! How many stacks are complete, and why the others are not.
//!
//! In: folded user stacks. Out: [`Outcome`]s, and a [`Report`] that prints as a table in Markdown.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Context as _, Result};

/// The frames that flame-bpf puts below the outermost one it found, if that is not the root.
const MARKS: [&str; 8] = [
    "[truncated]",
    "[unreadable stack]",
    "[no frame pointer]",
    "[32-bit program]",
    "[no unwind info]",
    "[unwind info not understood]",
    "[implausible caller]",
    "[unwind info not loaded]",
];

/// Outcome of one program.
pub(super) enum Outcome {
    /// It was profiled.
    Profiled(Shares),
    /// It is not there; says what would change that.
    Absent(String),
    /// It did not run.
    Failed(String),
}

/// The stacks of one program.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Shares {
    /// Samples with a user stack.
    samples: u64,
    /// Frames of all of them.
    frames: u64,
    /// Samples whose top frame has a name.
    named: u64,
    /// Samples whose stacks are incomplete, by the mark that says why.
    marked: BTreeMap<&'static str, u64>,
}

/// One program.
struct ProgramRow {
    name: &'static str,
    /// The least share of its stacks that must go down to the root.
    target: f64,
    outcome: Outcome,
}

/// All programs.
#[derive(Default)]
pub(super) struct Report {
    rows: Vec<ProgramRow>,
}

impl Outcome {
    /// Reads folded user stacks; only those of threads whose names begin as one of `comms` count, if there are any.
    pub(super) fn of(folded: &[u8], comms: &[&str]) -> Result<Self> {
        let shares = Shares::read(&String::from_utf8_lossy(folded), comms)?;
        Ok(match shares.samples {
            0 => Self::Failed("there are no samples of it".to_owned()),
            _ => Self::Profiled(shares),
        })
    }
}

impl Shares {
    fn read(folded: &str, comms: &[&str]) -> Result<Self> {
        let mut shares = Self::default();
        for line in folded.lines().filter(|line| !line.starts_with("# ")) {
            let (stack, weight) = line
                .rsplit_once(' ')
                .with_context(|| format!("{line:?} is no folded stack"))?;
            let weight: u64 = weight
                .parse()
                .with_context(|| format!("{line:?} has no weight"))?;
            let mut frames = stack.split(';');
            let comm = frames.next().unwrap_or_default();
            if !comms.is_empty() && !comms.iter().any(|start| comm.starts_with(start)) {
                continue;
            }
            let frames: Vec<&str> = frames.collect();
            let mark = frames
                .first()
                .and_then(|frame| MARKS.into_iter().find(|mark| mark == frame));
            let depth = (frames.len() - usize::from(mark.is_some())) as u64;
            // A task that is being made or unmade has no user stack.
            if depth == 0 && mark.is_none() {
                continue;
            }
            shares.samples += weight;
            shares.frames += weight * depth;
            // Unnamed frames are `[module+0x1234]` or `[unknown]`; a stack may hold only the mark.
            let top = frames.last().filter(|frame| !frame.starts_with('['));
            shares.named += top.map_or(0, |_| weight);
            if let Some(mark) = mark {
                *shares.marked.entry(mark).or_default() += weight;
            }
        }
        Ok(shares)
    }

    /// The share of the stacks that go down to the root.
    fn complete(&self) -> f64 {
        1.0 - self.marked.values().sum::<u64>() as f64 / self.samples as f64
    }

    /// The share of the stacks whose top frame has a name.
    fn named(&self) -> f64 {
        self.named as f64 / self.samples as f64
    }

    fn rest(&self) -> String {
        let mut marked: Vec<_> = self.marked.iter().collect();
        marked.sort_by_key(|(_, weight)| std::cmp::Reverse(**weight));
        let share = |(mark, weight): (&&str, &u64)| {
            let share = *weight as f64 / self.samples as f64 * 100.0;
            format!("{share:.2}% `{mark}`")
        };
        marked.into_iter().map(share).collect::<Vec<_>>().join(", ")
    }
}

impl Report {
    /// One more program, and the least share of its stacks that must go down to the root.
    pub(super) fn add(&mut self, name: &'static str, target: f64, outcome: Outcome) {
        self.rows.push(ProgramRow {
            name,
            target,
            outcome,
        });
    }

    /// Whether every program that is here ran and reached its target.
    pub(super) fn is_good(&self) -> bool {
        self.rows.iter().all(|row| match &row.outcome {
            Outcome::Profiled(shares) => shares.complete() >= row.target,
            Outcome::Absent(_) => true,
            Outcome::Failed(_) => false,
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            out,
            "| program | samples | down to the root | top frame named | mean depth | the rest |"
        )?;
        writeln!(out, "| --- | ---: | ---: | ---: | ---: | --- |")?;
        for ProgramRow { name, outcome, .. } in &self.rows {
            match outcome {
                Outcome::Profiled(shares) => writeln!(
                    out,
                    "| {name} | {} | {:.2}% | {:.1}% | {:.1} | {} |",
                    shares.samples,
                    // Rounded down: what is not whole does not look so.
                    (shares.complete() * 10000.0).floor() / 100.0,
                    (shares.named() * 1000.0).floor() / 10.0,
                    shares.frames as f64 / shares.samples as f64,
                    shares.rest()
                ),
                Outcome::Absent(reason) | Outcome::Failed(reason) => {
                    writeln!(out, "| {name} | | | | | {} |", reason.replace('|', "/"))
                }
            }?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOLDED: &str = "app;_start;main;f 90\napp;[no unwind info];g;h 6\nother;x 100\n\
        app;[truncated];a 3\napp 50\napp;_start 1\n";

    fn shares() -> Shares {
        Shares::read(FOLDED, &["app"]).unwrap()
    }

    #[test]
    fn stacks_without_a_mark_are_complete() {
        let shares = shares();
        assert_eq!(shares.samples, 100);
        assert!((shares.complete() - 0.91).abs() < 1e-9);
        assert_eq!(shares.frames, 90 * 3 + 6 * 2 + 3 + 1);
        assert_eq!(
            shares.rest(),
            "6.00% `[no unwind info]`, 3.00% `[truncated]`"
        );
    }

    #[test]
    fn a_top_frame_in_brackets_has_no_name() {
        let folded = b"a;main;[sort+0x8850] 3\na;main 6\na;[unknown] 1\na;[truncated] 1\n";
        let Outcome::Profiled(shares) = Outcome::of(folded, &[]).unwrap() else {
            panic!("there are samples");
        };
        assert_eq!((shares.samples, shares.named), (11, 6));
    }

    #[test]
    fn all_threads_are_counted_unless_some_are_named() {
        assert_eq!(Shares::read(FOLDED, &[]).unwrap().samples, 200);
        assert!(Shares::read("no weight\n", &[]).is_err());
    }

    #[test]
    fn a_report_passes_only_if_every_row_reaches_its_target() {
        let mut report = Report::default();
        report.add("fine", 1.0, Outcome::of(b"a;b 1\n", &[]).unwrap());
        report.add(
            "missing",
            1.0,
            Outcome::Absent("it is not installed".into()),
        );
        assert!(report.is_good());
        report.add("poor", 0.91, Outcome::Profiled(shares()));
        assert!(report.is_good());
        report.add("poorer", 0.92, Outcome::Profiled(shares()));
        assert!(!report.is_good());
        let text = report.to_string();
        assert!(
            text.contains("| fine | 1 | 100.00% | 100.0% | 1.0 |  |"),
            "{text}"
        );
        assert!(text.contains("| poor | 100 | 91.00% | 100.0% |"), "{text}");
    }

    #[test]
    fn a_program_without_samples_has_failed() {
        let outcome = Outcome::of(b"other;x 1\n", &["app"]).unwrap();
        assert!(matches!(outcome, Outcome::Failed(_)));
    }
}
