//! What came of running tests.
//!
//! In: the lines that test executables print. Out: how many passed, failed and were skipped, by name. A test that cannot run
//! here prints `SKIP name: reason` and returns, which the test runner takes for a pass; here it is counted as what it is. So is
//! one that passes only when it is run again.

use std::collections::BTreeSet;
use std::fmt;

/// The sum over any number of test executables.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    passed: usize,
    failed: Vec<String>,
    skipped: Vec<String>,
    unsteady: Vec<String>,
}

/// So many tests may pass only when they are run again. With more of them something is wrong that is not the machine's.
const MOST_UNSTEADY: usize = 2;

/// What one test executable said so far.
#[derive(Default)]
pub(crate) struct Transcript {
    passed: usize,
    failed: usize,
    names: Vec<String>,
    skips: BTreeSet<String>,
    ignored: Vec<String>,
    /// Between `failures:` and the empty line after it, where the runner lists the names.
    listing: bool,
    finished: bool,
}

impl Transcript {
    /// Takes the next line.
    pub(crate) fn read(&mut self, line: &str) {
        if let Some(skip) = skip(line) {
            self.skips.insert(skip.to_owned());
        }
        if let Some(counts) = line.strip_prefix("test result: ") {
            self.finished = true;
            self.passed += count(counts, "passed");
            self.failed += count(counts, "failed");
        } else if let Some(test) = line.strip_prefix("test ") {
            self.ignored.extend(ignored(test));
        }
        match line.strip_prefix("    ") {
            Some(name) if self.listing => self.names.push(name.to_owned()),
            _ => self.listing = line == "failures:",
        }
    }

    /// Adds this executable, called `name`, to the sum. `ended_well` is what its exit code says.
    pub(crate) fn finish(self, name: &str, ended_well: bool, sum: &mut Outcome) {
        sum.passed += self.passed.saturating_sub(self.skips.len());
        sum.skipped.extend(self.skips);
        let ignored = self.ignored.into_iter();
        sum.skipped
            .extend(ignored.map(|test| format!("{name}::{test}")));
        if self.names.len() == self.failed {
            sum.failed
                .extend(self.names.into_iter().map(|test| format!("{name}::{test}")));
        } else {
            sum.failed
                .extend((1..=self.failed).map(|number| format!("{name}: failure {number}")));
        }
        // A crash takes the runner's own account of it along.
        if !self.finished || (!ended_well && self.failed == 0) {
            sum.failed
                .push(format!("{name}: ended before it had run its tests"));
        }
    }
}

impl Outcome {
    /// Counts a check that is no test of an executable's as passed.
    pub(crate) fn pass(&mut self) {
        self.passed += 1;
    }

    /// Counts such a check as failed.
    pub(crate) fn fail(&mut self, check: &str, reason: &str) {
        self.failed.push(format!("{check}: {reason}"));
    }

    /// Counts a test as skipped.
    pub(crate) fn skip(&mut self, test: &str, reason: &str) {
        self.skipped.push(format!("{test}: {reason}"));
    }

    /// The names of those tests of an executable that failed.
    pub(crate) fn failed_of(&self, executable: &str) -> Vec<String> {
        let own = |test: &String| {
            Some(
                test.strip_prefix(executable)?
                    .strip_prefix("::")?
                    .to_owned(),
            )
        };
        self.failed.iter().filter_map(own).collect()
    }

    /// Takes in that a test that failed was run again, alone.
    pub(crate) fn again(&mut self, test: &str, second: &Self) {
        let has_passed = second.is_good() && second.passed == 1;
        if has_passed && self.unsteady.len() < MOST_UNSTEADY {
            self.failed.retain(|failed| failed != test);
            self.unsteady.push(test.to_owned());
            self.passed += 1;
        }
    }

    /// Whether every test that ran passed.
    pub(crate) fn is_good(&self) -> bool {
        self.failed.is_empty()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for skip in &self.skipped {
            writeln!(out, "skipped {skip}")?;
        }
        for test in &self.unsteady {
            writeln!(out, "unsteady {test}: passed when it was run again")?;
        }
        for failure in &self.failed {
            writeln!(out, "failed {failure}")?;
        }
        let (failed, skipped) = (self.failed.len(), self.skipped.len());
        write!(
            out,
            "{} passed, {failed} failed, {skipped} skipped",
            self.passed
        )
    }
}

/// What follows `SKIP ` at the start of a line, or behind the `test name ... ` that the runner has not ended yet.
fn skip(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("SKIP ")?;
    (before.is_empty() || (before.starts_with("test ") && before.ends_with(" ... ")))
        .then_some(after)
}

fn ignored(test: &str) -> Option<String> {
    let (name, said) = test.split_once(" ... ignored")?;
    let reason = said.strip_prefix(", ").unwrap_or("marked so in its source");
    Some(format!("{name}: {reason}"))
}

/// The number before `word` in `ok. 4 passed; 0 failed; …`.
fn count(counts: &str, word: &str) -> usize {
    let mut words = counts
        .split([' ', ';', '.'])
        .filter(|word| !word.is_empty());
    let mut before = "";
    words
        .find_map(|next| {
            if next == word {
                before.parse().ok()
            } else {
                before = next;
                None
            }
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(lines: &str, ended_well: bool) -> Outcome {
        let mut transcript = Transcript::default();
        lines.lines().for_each(|line| transcript.read(line));
        let mut sum = Outcome::default();
        transcript.finish("kernel_x", ended_well, &mut sum);
        sum
    }

    #[test]
    fn passes_are_what_the_runner_counts() {
        let sum = outcome(
            "running 2 tests\n..\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured\n",
            true,
        );
        assert_eq!(sum.to_string(), "2 passed, 0 failed, 0 skipped");
        assert!(sum.is_good());
    }

    #[test]
    fn a_skip_is_no_pass() {
        let sum = outcome(
            "test a ... SKIP kernel_x::a: no PMU\nok\nSKIP kernel_x::b: one CPU\ntest b ... ok\n\
             test c ... ignored, slow\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured\n",
            true,
        );
        assert_eq!(
            sum.to_string(),
            "skipped kernel_x::a: no PMU\nskipped kernel_x::b: one CPU\nskipped kernel_x::c: slow\n1 passed, 0 failed, 3 skipped"
        );
    }

    #[test]
    fn failures_are_named() {
        let sum = outcome(
            "failures:\n\n---- a stdout ----\n    indented\n\nfailures:\n    a\n    m::b\n\n\
             test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured\n",
            false,
        );
        assert_eq!(
            sum.to_string(),
            "failed kernel_x::a\nfailed kernel_x::m::b\n1 passed, 2 failed, 0 skipped"
        );
        assert!(!sum.is_good());
    }

    #[test]
    fn what_passes_when_run_again_is_named() {
        let mut sum = outcome(
            "failures:\n    a\n    b\n    c\n    d\n    e\n\ntest result: FAILED. 1 passed; 5 failed\n",
            false,
        );
        assert_eq!(sum.failed_of("kernel_x"), ["a", "b", "c", "d", "e"]);
        assert!(sum.failed_of("kernel").is_empty());
        let passed = outcome("test result: ok. 1 passed; 0 failed\n", true);
        let none = outcome("test result: ok. 0 passed; 0 failed\n", true);
        let failed = outcome(
            "failures:\n    b\n\ntest result: FAILED. 0 passed; 1 failed\n",
            false,
        );
        sum.again("kernel_x::a", &passed);
        sum.again("kernel_x::b", &failed);
        sum.again("kernel_x::c", &none);
        sum.again("kernel_x::d", &passed);
        // Those are enough.
        sum.again("kernel_x::e", &passed);
        assert_eq!(
            sum.to_string(),
            "unsteady kernel_x::a: passed when it was run again\nunsteady kernel_x::d: passed when it was run again\n\
             failed kernel_x::b\nfailed kernel_x::c\nfailed kernel_x::e\n3 passed, 3 failed, 0 skipped"
        );
        assert!(!sum.is_good());
    }

    #[test]
    fn a_crash_is_a_failure() {
        for sum in [
            outcome("running 2 tests\n", false),
            outcome("test result: ok. 2 passed; 0 failed\n", false),
        ] {
            assert_eq!(sum.failed, ["kernel_x: ended before it had run its tests"]);
        }
    }

    #[test]
    fn several_runs_of_one_command_add_up() {
        let sum = outcome(
            "test result: ok. 2 passed; 0 failed\n\ntest result: ok. 3 passed; 0 failed\n",
            true,
        );
        assert_eq!(sum.to_string(), "5 passed, 0 failed, 0 skipped");
    }
}
