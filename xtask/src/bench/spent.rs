//! What a command and all that it starts use.
//!
//! In: a command line. Out: its CPU time and the most memory that one of its processes ever held. The kernel adds these up for
//! the children of a process, for good; so each command gets a process of its own between it and us.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use clap::Args;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;

use super::recording::{Process, Step};
use super::tool::said;

/// What the process in between is told.
#[derive(Args)]
pub(crate) struct Order {
    /// Where to write what was used
    #[arg(long)]
    report: PathBuf,
    /// The command line
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// What was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Spent {
    /// In user and kernel mode, all processes together.
    pub(super) cpu: Duration,
    /// By the largest process, at its largest.
    pub(super) peak_bytes: u64,
}

/// In between: runs the command and reports; says whether it succeeded.
pub(crate) fn run(order: &Order) -> Result<bool> {
    let (program, arguments) = order.command.split_first().context("there is no command")?;
    let status = Command::new(program)
        .args(arguments)
        .status()
        .with_context(|| format!("cannot start {}", program.to_string_lossy()))?;
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("cannot read what was used")?;
    let cpu_us = (usage.user_time() + usage.system_time()).num_microseconds();
    fs::write(&order.report, format!("{cpu_us} {}", usage.max_rss()))
        .with_context(|| format!("cannot write {}", order.report.display()))?;
    Ok(status.success())
}

/// Runs a step in `folder` to its end.
pub(super) fn spend(step: &Step, folder: &Path) -> Result<Spent> {
    let report = tempfile::NamedTempFile::new().context("cannot make a file")?;
    let itself = std::env::current_exe().context("cannot find this program's own path")?;
    let mut arguments: Vec<OsString> = vec![
        "bench-spent".into(),
        "--report".into(),
        report.path().into(),
        "--".into(),
        step.program.clone(),
    ];
    arguments.extend(step.arguments.iter().cloned());
    let wrapped = Step {
        program: itself.into(),
        arguments,
    };
    let success = Process::start(&wrapped, folder)?.wait()?;
    let name = step.program.to_string_lossy();
    ensure!(success, "{name} failed{}", said(folder));
    let text = fs::read_to_string(report.path()).context("cannot read what was used")?;
    Spent::read(&text).with_context(|| format!("nobody knows what {name} used"))
}

impl Spent {
    fn read(text: &str) -> Option<Self> {
        let (cpu_us, peak_kib) = text.split_once(' ')?;
        Some(Self {
            cpu: Duration::from_micros(cpu_us.parse().ok()?),
            peak_bytes: peak_kib.parse::<u64>().ok()? * 1024,
        })
    }

    /// Both, one after the other.
    pub(super) fn and(self, next: Self) -> Self {
        Self {
            cpu: self.cpu + next.cpu,
            peak_bytes: self.peak_bytes.max(next.peak_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_adds_up_and_memory_does_not() {
        let one = Spent::read("1500000 2048").expect("a report");
        let sum = one.and(Spent::read("500000 1024").expect("a report"));
        assert_eq!(sum.cpu, Duration::from_secs(2));
        assert_eq!(sum.peak_bytes, 2048 * 1024);
        assert_eq!(Spent::read(""), None);
    }
}
