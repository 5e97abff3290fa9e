//! Outcome of one run of flame-bpf.
//!
//! In: exit status, stdout and stderr as [`crate::Running`] collected them. Out: the same, read as folded
//! stacks and as a balance where a test asks for that.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use crate::balance::Balance;
use crate::feature::broken;
use crate::folded::Folded;

/// Outcome of one run of flame-bpf: its exit status and output.
#[derive(Clone, Debug)]
pub struct Run {
    /// How it ended.
    pub status: ExitStatus,
    /// All that it wrote to stdout.
    pub stdout: Vec<u8>,
    /// All that it wrote to stderr.
    pub stderr: String,
    pub(crate) line: String,
}

impl Run {
    /// The exit code as a shell would show it: 128 and the signal's number where one ended the run.
    pub fn code(&self) -> i32 {
        self.status
            .code()
            .or_else(|| self.status.signal().map(|signal| 128 + signal))
            .expect("a process that ended has a code or a signal")
    }

    /// Panics unless the run ended with `code`, and without a panic of its own.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        let run = self.expect_no_panic();
        if run.code() != code {
            broken(&format!(
                "exit code of `{}` is {}, not {code}; stderr:\n{}",
                run.line,
                run.code(),
                run.stderr
            ));
        }
        run
    }

    /// Panics unless stderr holds `part`, whatever the case of the letters.
    #[track_caller]
    pub fn expect_stderr(self, part: &str) -> Self {
        self.expect_any_stderr(&[part])
    }

    /// Panics unless stderr holds one of `parts`, whatever the case of the letters.
    #[track_caller]
    pub fn expect_any_stderr(self, parts: &[&str]) -> Self {
        let said = self.stderr.to_lowercase();
        assert!(
            parts.iter().any(|part| said.contains(&part.to_lowercase())),
            "`{}` does not say any of {parts:?}; stderr:\n{}",
            self.line,
            self.stderr
        );
        self
    }

    /// Panics if the program did: that is never a clear sentence.
    #[track_caller]
    pub fn expect_no_panic(self) -> Self {
        if self.stderr.contains("panicked") || self.code() == 101 {
            broken(&format!("`{}` panicked:\n{}", self.line, self.stderr));
        }
        self
    }

    /// Stdout as folded stacks.
    ///
    /// # Panics
    ///
    /// When it holds anything else.
    #[track_caller]
    pub fn folded(&self) -> Folded {
        self.parse(&self.stdout)
    }

    /// A file that the run wrote, as folded stacks.
    ///
    /// # Panics
    ///
    /// When it is missing or holds anything else.
    #[track_caller]
    pub fn folded_file(&self, path: &Path) -> Folded {
        let bytes = fs::read(path).unwrap_or_else(|error| {
            broken(&format!(
                "`{}` left no readable {}: {error}; stderr:\n{}",
                self.line,
                path.display(),
                self.stderr
            ))
        });
        self.parse(&bytes)
    }

    /// The counters that a run with `-v` prints.
    ///
    /// # Panics
    ///
    /// When they are missing or cannot be read.
    #[track_caller]
    pub fn balance(&self) -> Balance {
        Balance::parse(&self.stderr).unwrap_or_else(|| {
            broken(&format!(
                "`{}` printed no balance; stderr:\n{}",
                self.line, self.stderr
            ))
        })
    }

    /// As [`Run::balance`], of a run that lost nothing.
    ///
    /// # Panics
    ///
    /// When something was lost, or is in no account.
    #[track_caller]
    pub fn lossless_balance(&self) -> Balance {
        let balance = self.balance();
        balance.assert_lossless();
        balance
    }

    /// As [`Run::balance`], of a second probe, which the lines begin with.
    ///
    /// # Panics
    ///
    /// When they are missing or cannot be read.
    #[track_caller]
    pub fn balance_of(&self, probe: &str) -> Balance {
        Balance::parse_of(probe, &self.stderr).unwrap_or_else(|| {
            broken(&format!(
                "`{}` printed no balance of {probe}; stderr:\n{}",
                self.line, self.stderr
            ))
        })
    }

    #[track_caller]
    fn parse(&self, bytes: &[u8]) -> Folded {
        Folded::parse(bytes).unwrap_or_else(|error| {
            broken(&format!(
                "`{}`: {error}; stderr:\n{}",
                self.line, self.stderr
            ))
        })
    }
}
