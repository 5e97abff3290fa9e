//! Facts that a recording ends with, and how they are written.
//!
//! In: findings, each a label and a text. Out: an aligned table for a terminal, or a plain line per fact for everything
//! else. Knows nothing of what the facts are.

use crate::profile::fold::visible;
use crate::text::terminal;
use std::fmt::Write as _;
use std::io::IsTerminal as _;

/// Columns of the labels in a table, with the space behind them.
const LABEL_COLUMNS: usize = 12;

/// Narrower terminals are not wrapped for.
const MIN_COLUMNS: usize = 50;

/// Texts are not wider than this on any terminal: longer lines are hard to read.
const MAX_COLUMNS: usize = 110;

/// The label of notes.
const NOTE: &str = "note";

/// Columns of terminals that do not say.
const DEFAULT_COLUMNS: usize = 80;

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Its subject, in a word or two.
    pub(crate) label: String,
    /// The fact itself: one line, without a full stop.
    pub(crate) text: String,
}

impl Finding {
    /// A fact.
    pub(crate) fn new(label: &str, text: impl Into<String>) -> Self {
        Self {
            label: label.to_owned(),
            text: text.into(),
        }
    }

    /// Something to know that has no label of its own.
    pub(crate) fn note(text: impl Into<String>) -> Self {
        Self::new(NOTE, text)
    }

    /// Whether it says what to do: names a command or an option, or tells to do something. Facts of a file are known by
    /// their texts alone.
    fn has_remedy(&self) -> bool {
        let text = &self.text;
        let names_option = || {
            let behind = text.split("--").skip(1);
            behind
                .into_iter()
                .any(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
        };
        text.contains('`') || names_option() || REMEDIES.iter().any(|remedy| text.contains(remedy))
    }

    /// Whether it is a [`note`](Self::note).
    pub(crate) fn is_note(&self) -> bool {
        self.label == NOTE
    }
}

/// Findings on a recording, or on one event in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Subject of the recording, as in a title.
    pub(crate) title: String,
    pub(crate) findings: Vec<Finding>,
}

impl Summary {
    /// Parses the output of [`lines`](Self::lines), perhaps from a file that somebody else changed:
    /// control characters are made visible. A line without a label is a note.
    pub(crate) fn parse(text: &str) -> Self {
        let mut lines = text.lines().map(visible);
        let mut summary = Self {
            title: lines.next().unwrap_or_default().into_owned(),
            findings: Vec::new(),
        };
        for line in lines {
            match line.split_once(": ") {
                Some((label, text)) if label.len() < LABEL_COLUMNS => {
                    summary.findings.push(Finding::new(label, text));
                }
                _ => summary.findings.push(Finding::note(line.into_owned())),
            }
        }
        summary
    }

    /// The title, and each fact on a line of its own.
    pub(crate) fn lines(&self) -> String {
        format!("{}\n{}", visible(&self.title), lines(&self.findings))
            .trim_end()
            .to_owned()
    }

    /// For stderr: a table on a terminal, lines elsewhere. Ends with a line break.
    pub(crate) fn shown(&self) -> String {
        format!("{}\n{}", visible(&self.title), shown(&self.findings))
    }

    /// As [`shown`](Self::shown), on a terminal as much as a few lines hold, unless something was lost.
    pub(crate) fn shown_in_brief(&self) -> String {
        match terminal_columns() {
            Some(columns) => {
                let findings = brief(&self.findings, columns);
                format!("{}\n{}", visible(&self.title), table(&findings, columns))
            }
            None => self.shown(),
        }
    }
}

/// Beginnings of what to do, behind what is the matter.
const REMEDIES: [&str; 5] = ["; run ", "; install ", "; raise ", "; use ", "; record "];

/// Lines of a summary in brief, without its title.
const BRIEF_LINES: usize = 7;

/// Labels by how much they matter: the first are never left out.
const BY_WEIGHT: [&[&str]; 4] = [
    &[
        "processes",
        "recorded",
        "time",
        LOST_NOTHING,
        LOSS,
        "cost",
        "wrote",
        "sent",
        "input",
        "shown",
        "not shown",
        "hidden",
    ],
    &["unnamed", "partly", "note"],
    &["incomplete", "left out"],
    &[],
];

/// The label of losses, and that of a recording without.
pub(crate) const LOSS: &str = "LOST";
pub(crate) const LOST_NOTHING: &str = "lost";

/// As many findings as fit into so many lines, and how many others there are. All of them where something was lost.
fn brief(findings: &[Finding], columns: usize) -> Vec<Finding> {
    let mut shown = findings.to_vec();
    let has = |label: &str| findings.iter().any(|finding| finding.label == label);
    if has(LOSS) {
        return shown;
    }
    if has("recorded") && has(LOST_NOTHING) {
        shown.retain(|finding| finding.label != LOST_NOTHING);
    }
    let whole = shown.clone();
    loop {
        let left_out = whole.len() - shown.len();
        let mut all = shown.clone();
        if let Some(recorded) = all.iter_mut().find(|finding| finding.label == "recorded") {
            if has(LOST_NOTHING) {
                recorded.text.push_str("; lost nothing");
            }
            if left_out > 0 {
                recorded
                    .text
                    .push_str(&format!("; -v tells {left_out} more"));
            }
        }
        if table(&all, columns).lines().count() <= BRIEF_LINES {
            return all;
        }
        // The last of those that matter least; of those with a remedy, and then of the first of a label, only where there is no
        // other.
        let of = |place: usize| {
            let label = &*shown[place].label;
            let rank = BY_WEIGHT.iter().position(|labels| labels.contains(&label));
            let is_first = shown.iter().position(|finding| finding.label == label) == Some(place);
            let rank = rank.unwrap_or(BY_WEIGHT.len() - 1);
            (!shown[place].has_remedy(), !is_first, rank, place)
        };
        let least = (0..shown.len())
            .filter(|place| of(*place).2 > 0)
            .max_by_key(|place| of(*place));
        match least {
            Some(place) => {
                shown.remove(place);
            }
            None => return all,
        }
    }
}

/// Facts for stderr: a table on a terminal, lines elsewhere. Ends with a line break, unless it is empty.
pub(crate) fn shown(findings: &[Finding]) -> String {
    match terminal_columns() {
        Some(columns) => table(findings, columns),
        None => lines(findings),
    }
}

fn lines(findings: &[Finding]) -> String {
    let line = |Finding { label, text }: &Finding| format!("{label}: {}\n", visible(text));
    findings.iter().map(line).collect()
}

fn table(findings: &[Finding], columns: usize) -> String {
    let width = columns.clamp(MIN_COLUMNS, MAX_COLUMNS) - 2 - LABEL_COLUMNS;
    let mut table = String::new();
    let mut label_before = "";
    for Finding { label, text } in findings {
        // A label is said once for the facts that share it.
        let mut shown = if label == label_before { "" } else { label };
        for line in wrap(&visible(text), width) {
            let _ = writeln!(table, "  {shown:<LABEL_COLUMNS$}{line}");
            shown = "";
        }
        label_before = label;
    }
    table
}

/// A text in lines of at most so many characters, where its words allow it.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The width of the terminal that stderr is; none if it is no terminal.
pub(crate) fn terminal_columns() -> Option<usize> {
    let stderr = std::io::stderr();
    let is_terminal = stderr.is_terminal();
    is_terminal.then(|| terminal::columns(Some(stderr)).unwrap_or(DEFAULT_COLUMNS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary() -> Summary {
        Summary {
            title: "on-CPU: nginx, 10 s".to_owned(),
            findings: vec![
                Finding::new("recorded", "1,980 samples"),
                Finding::new("lost", "nothing"),
                Finding::new("note", "one: two"),
            ],
        }
    }

    #[test]
    fn a_summary_is_a_title_and_a_line_for_each_fact() {
        let lines = "on-CPU: nginx, 10 s\nrecorded: 1,980 samples\nlost: nothing\nnote: one: two";
        assert_eq!(summary().lines(), lines);
        assert_eq!(Summary::parse(lines), summary());
    }

    #[test]
    fn a_line_without_a_label_is_a_note() {
        let summary = Summary::parse("title\nno label here\n");
        assert_eq!(summary.findings, [Finding::note("no label here")]);
        assert_eq!(Summary::parse("").title, "");
    }

    #[test]
    fn a_table_is_aligned_wrapped_and_says_each_label_once() {
        let findings = [
            Finding::new("lost", "nothing"),
            Finding::new("note", "a ".repeat(30).trim_end()),
            Finding::new("note", "b"),
        ];
        let long = ["a"; 18].join(" ");
        let rest = ["a"; 12].join(" ");
        assert_eq!(
            table(&findings, 50),
            format!(
                "  lost        nothing\n  note        {long}\n              {rest}\n              b\n"
            )
        );
    }

    #[test]
    fn a_summary_in_brief_has_eight_lines_with_what_matters_most() {
        let mut findings = vec![
            Finding::new("processes", "a ".repeat(60).trim_end()),
            Finding::new("recorded", "3 samples"),
            Finding::new("lost", "nothing"),
            Finding::new("incomplete", "one"),
            Finding::new("walked", "two"),
            Finding::note("three"),
            Finding::new("unnamed", "four"),
            Finding::new("unnamed", "five"),
            Finding::new("cost", "six"),
            Finding::new("wrote", "seven"),
        ];
        let lines = |findings: &[Finding]| {
            table(&brief(findings, 80), 80)
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let shown = lines(&findings);
        assert_eq!(shown.len(), BRIEF_LINES, "{shown:#?}");
        let expected = "  recorded    3 samples; lost nothing; -v tells 3 more";
        assert_eq!(shown[2], expected);
        assert!(
            shown.iter().any(|line| line.ends_with("four")),
            "{shown:#?}"
        );
        assert!(
            !shown.iter().any(|line| line.ends_with("five")),
            "{shown:#?}"
        );
        findings[2] = Finding::new(LOSS, "1 sample");
        assert_eq!(lines(&findings).len(), findings.len() + 1);
        let few = &findings[..2];
        assert_eq!(brief(few, 80), few);
    }

    #[test]
    fn in_brief_what_says_what_to_do_outlasts_what_does_not() {
        let remedy = "18.9% of frames, in postgres (stripped); `apt install postgresql-15-dbgsym`, or use --debuginfod";
        let mut findings = vec![
            Finding::new("recorded", "3 samples"),
            Finding::note("one"),
            Finding::new("unnamed", "two"),
            Finding::new("incomplete", "three"),
            Finding::new("left out", "four"),
            Finding::new("unnamed", remedy),
            Finding::note("the table was full; raise --map-memory"),
            Finding::new("cost", "five"),
            Finding::new("wrote", "six"),
        ];
        let texts = |findings: &[Finding]| -> Vec<String> {
            let shown = brief(findings, 80);
            assert!(table(&shown, 80).lines().count() <= BRIEF_LINES);
            shown.into_iter().map(|finding| finding.text).collect()
        };
        let shown = texts(&findings);
        assert!(shown.iter().any(|text| text == remedy), "{shown:#?}");
        let has_note = shown.iter().any(|text| text.ends_with("--map-memory"));
        assert!(has_note, "{shown:#?}");
        assert!(shown[0].ends_with("; -v tells 3 more"), "{shown:#?}");
        assert!(shown.iter().any(|text| text == "one"), "{shown:#?}");
        // Where not even these fit, the first of a label stays.
        findings.insert(6, Finding::new("unnamed", format!("b {remedy} {remedy}")));
        let shown = texts(&findings);
        assert!(shown.iter().any(|text| text == remedy), "{shown:#?}");
        for (text, has) in [
            ("a-- b", false),
            ("5 stacks -- cut", false),
            ("the kernel hides it; run with sudo", true),
            ("it did not fit; raise DEBUGINFOD_MAXSIZE", true),
        ] {
            assert_eq!(Finding::note(text).has_remedy(), has, "{text}");
        }
    }

    #[test]
    fn a_word_wider_than_the_terminal_stays_whole() {
        assert_eq!(wrap("a bcdefgh i", 4), ["a", "bcdefgh", "i"]);
    }
}
