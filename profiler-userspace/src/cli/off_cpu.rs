//! The flags about waiting.
//!
//! In: what was typed. Out: which waits are [`WaitSelection`] for, or a sentence about flags that do not go together. Never:
//! looks at the machine.

use super::flags::first_given;
use crate::probe::{ThreadKind, Waits, Wakers, Wall};
use anyhow::{Result, bail, ensure};
use profiler_common::abi::{States, TaskState};
use profiler_common::wait_sampling::LONGEST_PERIOD_NS;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Waiting")]
pub(super) struct OffCpuArgs {
    /// Show where threads wait: the time off the CPU, in microseconds
    #[arg(long, alias = "offcpu")]
    off_cpu: bool,
    /// Also write a graph of waits to FILE: on-CPU and off-CPU in one run
    #[arg(long, value_name = "FILE", conflicts_with = "off_cpu")]
    off_cpu_output: Vec<PathBuf>,
    /// Show all time of every thread: on a CPU, blocked, or waiting for a CPU, in microseconds
    #[arg(long, conflicts_with_all = ["off_cpu", "off_cpu_output"])]
    wall: bool,
    /// Show where threads wait and, above it upside down, who woke them, in microseconds
    #[arg(long, alias = "offwake")]
    off_wake: bool,
    /// Show who wakes others: wakers' stacks, weighted by the time waited, in microseconds
    #[arg(long)]
    wakeup: bool,
    /// With --wall, omit threads that sleep all the time
    #[arg(long, requires = "wall")]
    no_idle_threads: bool,
    /// Add what was waited for as the leaf: [futex], [epoll], [sleep], [read: pipe] ...
    #[arg(long)]
    reasons: bool,
    /// Omit waits shorter than this, in microseconds
    #[arg(short, long, value_name = "US", value_parser = microseconds)]
    min_block_time: Option<Duration>,
    /// Omit waits longer than this, in microseconds
    #[arg(short = 'M', long, value_name = "US", value_parser = microseconds)]
    max_block_time: Option<Duration>,
    /// Keep these states only: R runnable, S sleeping, D disk, T stopped, t traced, P parked, I idle
    #[arg(long, value_name = "LETTERS", value_parser = states)]
    state: Option<States>,
    /// Record about one wait per thread in this time, such as 1ms, weighted for the others: limits the cost
    #[arg(long, value_name = "TIME", value_parser = wait_sample_period)]
    switch_sample: Option<Duration>,
    /// Omit kernel threads
    #[arg(long)]
    user_threads_only: bool,
    /// Omit user threads
    #[arg(long)]
    kernel_threads_only: bool,
    /// Whether waits are recorded beside something else though no file is named.
    #[arg(skip)]
    beside: bool,
}

/// Which waits are to be recorded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WaitSelection {
    /// None.
    Nothing,
    /// These, and nothing else.
    Alone(Waits),
    /// These, while something else is sampled.
    Beside(Waits),
    /// All of the time of threads.
    Wall(Wall),
}

impl OffCpuArgs {
    /// Has waits recorded beside samples, where they go to what takes both; about one of each thread in this time, unless said.
    pub(super) fn set_beside(&mut self, period: Option<Duration>) {
        self.beside = true;
        self.switch_sample = self.switch_sample.or(period);
    }

    /// Where waits go that are recorded beside something else.
    pub(super) fn outputs_beside(&self) -> &[PathBuf] {
        &self.off_cpu_output
    }

    /// The waits that the flags ask for; an error where flags do not go together.
    pub(super) fn asked(&self) -> Result<WaitSelection> {
        let wakers = self.wakers()?;
        if self.wall {
            return self.wall();
        }
        if !self.off_cpu && wakers == Wakers::None && !self.is_beside() {
            return match self.first_flag() {
                Some(flag) => bail!("{flag} is about times off the CPU; add --off-cpu"),
                None => Ok(WaitSelection::Nothing),
            };
        }
        let waits = Waits {
            states: self.state.unwrap_or(Waits::all_states(wakers)),
            shortest: self.min_block_time.unwrap_or(Duration::ZERO),
            longest: self.max_block_time.unwrap_or(Duration::MAX),
            wait_sample_period: self.switch_sample.unwrap_or(Duration::ZERO),
            threads: match (self.user_threads_only, self.kernel_threads_only) {
                (false, false) => ThreadKind::Both,
                (true, false) => ThreadKind::User,
                (false, true) => ThreadKind::Kernel,
                (true, true) => bail!(
                    "--user-threads-only and --kernel-threads-only together leave no thread; without both, all threads are recorded"
                ),
            },
            reasons: self.reasons,
            wakers,
        };
        ensure!(
            waits.shortest <= waits.longest,
            "no wait is longer than -m {} and shorter than -M {}; swap them",
            waits.shortest.as_micros(),
            waits.longest.as_micros()
        );
        Ok(if self.is_beside() {
            WaitSelection::Beside(waits)
        } else {
            WaitSelection::Alone(waits)
        })
    }

    fn is_beside(&self) -> bool {
        self.beside || !self.off_cpu_output.is_empty()
    }

    /// How it is to be shown who ends waits.
    fn wakers(&self) -> Result<Wakers> {
        let (flag, wakers) = match (self.off_wake, self.wakeup) {
            (true, true) => bail!(
                "--off-wake shows wakers above the waits that they ended, --wakeup shows them alone; keep one of them"
            ),
            (true, false) => ("--off-wake", Wakers::Above),
            (false, true) => ("--wakeup", Wakers::Alone),
            (false, false) => return Ok(Wakers::None),
        };
        ensure!(
            !self.off_cpu,
            "{flag} shows waits as --off-cpu does, and who ended them; keep one of them"
        );
        ensure!(
            !self.wall && !self.is_beside(),
            "{flag} makes a graph of its own, and does not go with --wall, --off-cpu-output or --with-off-cpu; record twice"
        );
        ensure!(
            !self
                .state
                .is_some_and(|states| states.has(TaskState::Runnable)),
            "a thread in state R is not woken by another; leave R out of --state with {flag}"
        );
        ensure!(
            !(self.wakeup && self.reasons),
            "--reasons needs the stacks of waiting threads, and --wakeup does not record them; use --off-wake"
        );
        Ok(wakers)
    }

    fn wall(&self) -> Result<WaitSelection> {
        if let Some(flag) = self.first_narrowing_flag() {
            bail!(
                "{flag} leaves out some of the time, and --wall shows all of it; use --off-cpu with {flag}"
            );
        }
        Ok(WaitSelection::Wall(Wall {
            waits: Waits {
                reasons: self.reasons,
                ..Waits::default()
            },
            idle_threads: !self.no_idle_threads,
        }))
    }

    /// One of the flags that need `--off-cpu`, if any was given.
    fn first_flag(&self) -> Option<&'static str> {
        let reasons = self.reasons.then_some("--reasons");
        reasons.or_else(|| self.first_narrowing_flag())
    }

    /// One of the flags that leave out some waits, if any was given.
    fn first_narrowing_flag(&self) -> Option<&'static str> {
        first_given([
            ("-m", self.min_block_time.is_some()),
            ("-M", self.max_block_time.is_some()),
            ("--state", self.state.is_some()),
            ("--switch-sample", self.switch_sample.is_some()),
            ("--user-threads-only", self.user_threads_only),
            ("--kernel-threads-only", self.kernel_threads_only),
        ])
    }
}

fn microseconds(text: &str) -> Result<Duration, String> {
    text.parse().map(Duration::from_micros).map_err(|_| {
        "not a time; use a whole number of microseconds, such as 1000 for a millisecond".to_owned()
    })
}

/// How often to look, with its unit.
fn wait_sample_period(text: &str) -> Result<Duration, String> {
    let units = [("us", 1), ("ms", 1_000), ("s", 1_000_000)];
    let period = units.into_iter().find_map(|(unit, each)| {
        let number: u64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Some(Duration::from_micros(number.checked_mul(each)?))
    });
    let fits = Duration::from_micros(1)..=Duration::from_nanos(LONGEST_PERIOD_NS);
    period.filter(|period| fits.contains(period)).ok_or_else(|| {
        "not an interval from 1us to 1s; 1ms records about a thousand waits a second of each thread".to_owned()
    })
}

/// A set of states from their letters.
fn states(text: &str) -> Result<States, String> {
    let mut states = States(0);
    for letter in text.chars().filter(|letter| *letter != ',') {
        let known = TaskState::ALL
            .into_iter()
            .find(|state| state.letter() == letter);
        states = match (known, letter) {
            (Some(state), _) => states.with(state),
            (None, 'X' | 'Z') => {
                return Err(format!(
                    "a thread in state {letter} has ended and never comes back"
                ));
            }
            (None, _) => {
                let letters: String = TaskState::ALL.map(TaskState::letter).iter().collect();
                return Err(format!(
                    "`{letter}` is not a state; those that `ps` has are {letters}"
                ));
            }
        };
    }
    if states == States(0) {
        return Err(
            "no state is given, so nothing would be recorded; use for instance SD".to_owned(),
        );
    }
    Ok(states)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_from_letters() {
        let of = |letters| states(letters).unwrap();
        assert_eq!(of("S"), States(0).with(TaskState::Sleeping));
        assert_eq!(of("D,S"), of("SD"));
        assert_eq!(of("RSDTtPI"), States::ALL);
        for (wrong, answer) in [
            ("", "SD"),
            ("x", "RSDTtPI"),
            ("SZ", "ended"),
            ("2", "not a state"),
        ] {
            let refusal = states(wrong).unwrap_err();
            assert!(refusal.contains(answer), "{wrong}: {refusal}");
        }
    }

    #[test]
    fn a_sample_period_has_a_unit() {
        assert_eq!(wait_sample_period("1ms"), Ok(Duration::from_millis(1)));
        assert_eq!(wait_sample_period("250us"), Ok(Duration::from_micros(250)));
        assert_eq!(wait_sample_period("1s"), Ok(Duration::from_secs(1)));
        for wrong in [
            "",
            "1",
            "0ms",
            "2s",
            "1.5ms",
            "-1ms",
            "18446744073709551615s",
        ] {
            assert!(wait_sample_period(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn block_times_are_microseconds() {
        assert_eq!(microseconds("1500"), Ok(Duration::from_micros(1500)));
        for wrong in ["", "-1", "1.5", "1ms"] {
            assert!(microseconds(wrong).is_err(), "{wrong}");
        }
    }
}
