//! Transcript of one test executable.
//!
//! In: the lines that it prints, and when. Out: an account of its tests, added to an [`Outcome`].
//!
//! Beside the test runner's own lines there are four of the harness's: `SKIP name: reason` of a test that cannot run here,
//! which the runner takes for a pass; `TIMING name` of one that measures time; `WAITED ms` of one that waited for its turn;
//! `BROKEN` of one that fails in something that has nothing to do with time, such as a program that the verifier refuses.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::outcome::{Failure, Outcome};

/// How much is kept of what a test says when it fails.
const REASON: usize = 200;

/// Transcript of one test executable so far.
#[derive(Default)]
pub(crate) struct Transcript {
    passed: usize,
    failed: usize,
    names: Vec<String>,
    skips: BTreeSet<String>,
    ignored: Vec<(String, String)>,
    timing: BTreeSet<String>,
    broken: BTreeSet<String>,
    reasons: BTreeMap<String, String>,
    times: Vec<(String, Duration)>,
    /// The test that runs. It is known only where one runs at a time and nothing is captured.
    current: Option<String>,
    /// When the test before it ended.
    since: Duration,
    /// The last line said that a test panicked; the next says why.
    panicked: bool,
    /// Between `failures:` and the empty line after it, where the runner lists the names.
    listing: bool,
    finished: bool,
}

impl Transcript {
    /// Takes the next line, which came so long after the executable was started.
    pub(crate) fn read(&mut self, line: &str, at: Duration) {
        let said = line.split_once(" ... ");
        let begun = said.and_then(|(before, rest)| Some((before.strip_prefix("test ")?, rest)));
        if let Some((test, _)) = begun {
            self.current = Some(test.to_owned());
        }
        let said = begun.map_or(line, |(_, rest)| rest);
        self.take_of_harness(said);
        if let Some(test) = self.current.clone() {
            self.take_of_test(test, said, at);
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

    fn take_of_harness(&mut self, said: &str) {
        if let Some(skip) = said.strip_prefix("SKIP ") {
            self.skips.insert(skip.to_owned());
        } else if let Some(test) = said.strip_prefix("TIMING ") {
            self.timing.insert(test.to_owned());
        }
    }

    fn take_of_test(&mut self, test: String, said: &str, at: Duration) {
        if self.panicked {
            let reason = said.chars().take(REASON).collect();
            self.reasons.entry(test.clone()).or_insert(reason);
        }
        self.panicked = said.starts_with("thread '") && said.contains(" panicked at ");
        let waited = said.strip_prefix("WAITED ").and_then(|ms| ms.parse().ok());
        if let Some(waited) = waited {
            self.since += Duration::from_millis(waited);
        } else if said == "BROKEN" {
            self.broken.insert(test);
        } else if said == "ok" || said == "FAILED" {
            self.times.push((test, at.saturating_sub(self.since)));
            self.since = at;
            self.current = None;
        }
    }

    /// Adds this executable, called `name`, to the sum. `ended_well` is what its exit code says; `alone` is whether its tests
    /// ran one after the other.
    pub(crate) fn finish(self, name: &str, ended_well: bool, alone: bool, sum: &mut Outcome) {
        sum.pass(self.passed.saturating_sub(self.skips.len()));
        for skip in &self.skips {
            let (test, reason) = skip.split_once(": ").unwrap_or((skip, ""));
            sum.skip(test, reason);
        }
        for (test, reason) in &self.ignored {
            sum.skip(&format!("{name}::{test}"), reason);
        }
        for number in 0..self.failed {
            sum.fail(self.failure(name, number));
        }
        // A crash takes the runner's own account of it along.
        if !self.finished || (!ended_well && self.failed == 0) {
            sum.fail_check(name, "ended before it had run its tests");
        }
        if alone {
            for (test, time) in self.times {
                sum.took(format!("{name}::{test}"), time);
            }
        }
    }

    fn failure(&self, executable: &str, number: usize) -> Failure {
        let name = self
            .names
            .get(number)
            .filter(|_| self.names.len() == self.failed);
        let Some(name) = name else {
            return Failure {
                test: format!("{executable}: failure {}", number + 1),
                reason: None,
                is_of_time: false,
            };
        };
        let test = format!("{executable}::{name}");
        Failure {
            is_of_time: self.timing.contains(&test) && !self.broken.contains(name),
            reason: self.reasons.get(name).cloned(),
            test,
        }
    }
}

fn ignored(test: &str) -> Option<(String, String)> {
    let (name, said) = test.split_once(" ... ignored")?;
    let reason = said.strip_prefix(", ").unwrap_or("marked so in its source");
    Some((name.to_owned(), reason.to_owned()))
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

    /// Outcome of these lines, of which one comes each second.
    fn outcome(lines: &str, ended_well: bool) -> Outcome {
        let mut transcript = Transcript::default();
        for (second, line) in (1..).zip(lines.lines()) {
            transcript.read(line, Duration::from_secs(second));
        }
        let mut sum = Outcome::default();
        transcript.finish("kernel_x", ended_well, false, &mut sum);
        sum
    }

    #[test]
    fn passed_tests_are_counted_by_the_runner() {
        let sum = outcome(
            "running 2 tests\n..\ntest result: ok. 2 passed; 0 failed; 0 ignored; 0 measured\n",
            true,
        );
        assert_eq!(sum.to_string(), "2 passed, 0 failed, 0 skipped");
        assert!(sum.is_good());
    }

    #[test]
    fn a_skipped_or_ignored_test_does_not_count_as_passed() {
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
    fn a_failure_that_is_not_one_of_time_must_not_be_retried() {
        let sum = outcome(
            "test a ... TIMING kernel_x::a\n\nthread 'a' (7) panicked at tests/x.rs:1:2:\n0.3 of 0.2\nnote: more\nFAILED\n\
             test b ... TIMING kernel_x::b\nBROKEN\nFAILED\ntest c ... \nthread 'main' panicked at tests/x.rs:1:2:\nno\nFAILED\n\
             failures:\n    a\n    b\n    c\n\ntest result: FAILED. 0 passed; 3 failed\n",
            false,
        );
        assert_eq!(sum.to_retry("kernel_x"), ["a"]);
        assert_eq!(
            sum.to_string(),
            "failed kernel_x::a: 0.3 of 0.2\nfailed kernel_x::b\nfailed kernel_x::c: no\n0 passed, 3 failed, 0 skipped"
        );
    }

    #[test]
    fn a_crash_is_a_failure() {
        for sum in [
            outcome("running 2 tests\n", false),
            outcome("test result: ok. 2 passed; 0 failed\n", false),
        ] {
            assert!(
                sum.to_string()
                    .contains("failed kernel_x: ended before it had run its tests")
            );
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

    #[test]
    fn a_test_takes_from_the_end_of_the_one_before_to_its_own() {
        let mut transcript = Transcript::default();
        for (second, line) in [
            (1, "test a ... ok"),
            (2, "test b ... one"),
            (5, "ok"),
            (9, "test c ... WAITED 1500"),
            (9, "ok"),
            (10, "test result: ok. 3 passed; 0 failed"),
        ] {
            transcript.read(line, Duration::from_secs(second));
        }
        let mut sum = Outcome::default();
        transcript.finish("x", true, true, &mut sum);
        assert_eq!(
            sum.to_string(),
            "slow 4.0 s x::b\nslow 2.5 s x::c\nslow 1.0 s x::a\n3 passed, 0 failed, 0 skipped"
        );
    }
}
