//! Outcome of running tests and checks.
//!
//! In: what [`crate::transcript`] read of each test executable, and what came of running a test again. Out: how many passed,
//! failed and were skipped, by name, and which took longest.
//! Never: a pass that hides a failure. A test that passed only the second time is named, with what the first failure said.

use std::fmt;
use std::time::Duration;

/// How many of the slowest tests are named.
const SLOWEST: usize = 10;

/// The sum over any number of test executables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    passed: usize,
    failed: Vec<Failure>,
    skipped: Vec<String>,
    /// Tests that were run again, and what came of that.
    retried: Vec<String>,
    /// How long each test took that ran alone.
    times: Vec<(Duration, String)>,
}

/// A test or check that failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The executable and the test, such as `kernel_x::a`.
    pub(crate) test: String,
    /// Its first message, where that is known.
    pub(crate) reason: Option<String>,
    /// Whether it measures time and failed in nothing else, so that it may be run again.
    pub(crate) is_of_time: bool,
}

impl Outcome {
    /// Counts tests that passed.
    pub(crate) fn pass(&mut self, tests: usize) {
        self.passed += tests;
    }

    /// Adds the outcome of other tests.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed.extend(other.failed);
        self.skipped.extend(other.skipped);
        self.retried.extend(other.retried);
        self.times.extend(other.times);
    }

    /// Counts a test as failed.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failed.push(failure);
    }

    /// Counts a check that is no test of an executable's as failed.
    pub(crate) fn fail_check(&mut self, check: &str, reason: &str) {
        self.fail(Failure {
            test: check.to_owned(),
            reason: Some(reason.to_owned()),
            is_of_time: false,
        });
    }

    /// Counts a test as skipped.
    pub(crate) fn skip(&mut self, test: &str, reason: &str) {
        self.skipped.push(format!("{test}: {reason}"));
    }

    /// Takes in how long a test took.
    pub(crate) fn took(&mut self, test: String, time: Duration) {
        self.times.push((time, test));
    }

    /// How long tests took that ran alone.
    pub(crate) fn times(&self) -> &[(Duration, String)] {
        &self.times
    }

    /// The names of those tests of an executable that may be run again.
    pub(crate) fn to_retry(&self, executable: &str) -> Vec<String> {
        let failures = self.failed.iter().filter(|failure| failure.is_of_time);
        failures
            .filter_map(|failure| failure.test.strip_prefix(executable)?.strip_prefix("::"))
            .map(str::to_owned)
            .collect()
    }

    /// Takes in that a test that failed was run again, alone.
    pub(crate) fn retry(&mut self, test: &str, second: &Self) {
        let failed = |failure: &Failure| failure.test == test && failure.is_of_time;
        let Some(at) = self.failed.iter().position(failed) else {
            return;
        };
        let has_passed = second.is_good() && second.passed == 1;
        let first = self.failed[at]
            .reason
            .as_deref()
            .unwrap_or("it said nothing");
        let result = if has_passed { "passed" } else { "failed again" };
        self.retried
            .push(format!("{test}: {result}; the first time: {first}"));
        if has_passed {
            self.failed.remove(at);
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
        let mut times = self.times.clone();
        times.sort_by(|one, other| other.cmp(one));
        for (time, test) in times.iter().take(SLOWEST) {
            writeln!(out, "slow {:.1} s {test}", time.as_secs_f64())?;
        }
        for skip in &self.skipped {
            writeln!(out, "skipped {skip}")?;
        }
        for test in &self.retried {
            writeln!(out, "retried {test}")?;
        }
        for (number, failure) in self.failed.iter().enumerate() {
            let is_same = |other: &&Failure| other.test == failure.test;
            if self.failed[..number].iter().any(|other| is_same(&other)) {
                continue;
            }
            let times = match self.failed.iter().filter(is_same).count() {
                1 => String::new(),
                count => format!(", {count} times"),
            };
            let reason = failure
                .reason
                .as_deref()
                .map_or(String::new(), |reason| format!(": {reason}"));
            writeln!(out, "failed {}{times}{reason}", failure.test)?;
        }
        let (failed, skipped) = (self.failed.len(), self.skipped.len());
        write!(
            out,
            "{} passed, {failed} failed, {skipped} skipped",
            self.passed
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_failures(failures: &[(&str, bool)]) -> Outcome {
        let mut sum = Outcome::default();
        for (test, is_of_time) in failures {
            sum.fail(Failure {
                test: (*test).to_owned(),
                reason: Some("0.3 of 0.2".to_owned()),
                is_of_time: *is_of_time,
            });
        }
        sum
    }

    fn of_passes(passed: usize) -> Outcome {
        let mut sum = Outcome::default();
        sum.pass(passed);
        sum
    }

    #[test]
    fn only_tests_that_measure_time_are_run_again() {
        let mut sum = of_failures(&[
            ("kernel_x::a", true),
            ("kernel_x::b", false),
            ("kernel_xy::c", true),
        ]);
        assert_eq!(sum.to_retry("kernel_x"), ["a"]);
        sum.retry("kernel_x::b", &of_passes(1));
        assert_eq!(
            sum,
            of_failures(&[
                ("kernel_x::a", true),
                ("kernel_x::b", false),
                ("kernel_xy::c", true)
            ])
        );
    }

    #[test]
    fn a_retried_test_is_named_with_both_results() {
        let mut sum = of_failures(&[
            ("kernel_x::a", true),
            ("kernel_x::b", true),
            ("kernel_x::c", true),
        ]);
        sum.retry("kernel_x::a", &of_passes(1));
        sum.retry("kernel_x::b", &of_failures(&[("kernel_x::b", true)]));
        // It was not found under that name, so nothing ran.
        sum.retry("kernel_x::c", &of_passes(0));
        assert_eq!(
            sum.to_string(),
            "retried kernel_x::a: passed; the first time: 0.3 of 0.2\n\
             retried kernel_x::b: failed again; the first time: 0.3 of 0.2\n\
             retried kernel_x::c: failed again; the first time: 0.3 of 0.2\n\
             failed kernel_x::b: 0.3 of 0.2\nfailed kernel_x::c: 0.3 of 0.2\n1 passed, 2 failed, 0 skipped"
        );
        assert!(!sum.is_good());
    }

    #[test]
    fn what_failed_several_times_is_named_once_with_a_count() {
        let sum = of_failures(&[
            ("kernel_x::a", false),
            ("kernel_x::b", false),
            ("kernel_x::a", false),
        ]);
        assert_eq!(
            sum.to_string(),
            "failed kernel_x::a, 2 times: 0.3 of 0.2\nfailed kernel_x::b: 0.3 of 0.2\n0 passed, 3 failed, 0 skipped"
        );
    }

    #[test]
    fn the_slowest_tests_are_named_slowest_first() {
        let mut sum = of_passes(12);
        for number in 0..12 {
            sum.took(format!("x::{number}"), Duration::from_millis(100 * number));
        }
        let said = sum.to_string();
        assert!(
            said.starts_with("slow 1.1 s x::11\nslow 1.0 s x::10\n"),
            "{said}"
        );
        assert!(
            said.ends_with("slow 0.2 s x::2\n12 passed, 0 failed, 0 skipped"),
            "{said}"
        );
    }
}
