//! Runs the tests that need root.
//!
//! In: the executables that were compiled as the user who asked. Out: every line that their tests print, and what became of them.
//! Only these executables run as root.
//!
//! Tests run in three rounds, as [`crate::sharing`] reads them in their files. Most wait for their own recordings and hold beside
//! a load, so many of them run at once. Those that measure time follow, one for each CPU, and last those that want the machine
//! for themselves. Mixed, each of the last would wait until all others have ended while none may begin. Tests of one file never
//! run at once: they may look for the same programs by name. In a round, files that took longest the last time begin first.
//!
//! A test that measures time and fails is run again, alone, and the summary says what came of it. No other test is, nor one
//! that failed in anything but what it measured: see [`crate::transcript`].

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, available_parallelism};
use std::time::Duration;
use std::{fs, panic};

use anyhow::{Context as _, Result};

use crate::build::Executable;
use crate::outcome::Outcome;
use crate::root::Root;
use crate::sharing::{self, Sharing};
use crate::source::Source;
use crate::test_executable::{BINARY, Order, names, run, within};
use crate::test_times::TestTimes;

/// So many files' tests run at once for each CPU, unless said otherwise.
const JOBS_OF_CPU: usize = 3;

/// The chosen tests of one file.
struct File<'executables> {
    executable: &'executables Executable,
    tests: Vec<(String, Sharing)>,
}

impl<'executables> File<'executables> {
    fn choose(executable: &'executables Executable, filters: &[String]) -> Result<Self> {
        let path = &executable.source;
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let sharing = sharing::of_tests(Source::new(path, text)?.tokens());
        let mut names = names(executable, &[])?;
        let is_chosen = |name: &String| {
            let name = full_name(executable, name);
            filters.is_empty() || filters.iter().any(|part| name.contains(part))
        };
        names.retain(is_chosen);
        let tests = names.into_iter().map(|name| {
            let sharing = sharing_of(&sharing, &name, path)?;
            Ok((name, sharing))
        });
        Ok(Self {
            executable,
            tests: tests.collect::<Result<_>>()?,
        })
    }

    /// The names of those of a round.
    fn of_round(&self, round: Sharing) -> Vec<&str> {
        let tests = self.tests.iter();
        let tests = tests.filter(|(_, sharing)| *sharing == round);
        tests.map(|(name, _)| name.as_str()).collect()
    }

    fn full_name(&self, test: &str) -> String {
        full_name(self.executable, test)
    }
}

/// The tests chosen, and how they are run.
pub(crate) struct KernelTests<'executables> {
    files: Vec<File<'executables>>,
    binary: &'executables Path,
    jobs: usize,
}

impl<'executables> KernelTests<'executables> {
    /// Chooses those tests that have one of these in their full name; all of them without any. `jobs` is of how many files tests
    /// run at once that share the machine.
    pub(crate) fn choose(
        executables: &'executables [Executable],
        binary: &'executables Path,
        filters: &[String],
        jobs: Option<u32>,
    ) -> Result<Self> {
        let files = executables.iter();
        let files = files.map(|executable| File::choose(executable, filters));
        Ok(Self {
            files: files.collect::<Result<_>>()?,
            binary,
            jobs: jobs.map_or(JOBS_OF_CPU * cpus(), |jobs| jobs as usize),
        })
    }

    /// Runs them once. Whether those that measure time are `retried` is up to the caller.
    pub(crate) fn run(
        &self,
        retried: bool,
        times: &mut TestTimes,
        sum: &mut Outcome,
    ) -> Result<()> {
        let root = match Root::find() {
            Ok(root) => root,
            Err(reason) => {
                for file in &self.files {
                    let names = file.tests.iter().map(|(name, _)| file.full_name(name));
                    names.for_each(|name| sum.skip(&name, &reason));
                }
                return Ok(());
            }
        };
        let mut outcome = Outcome::default();
        for round in Sharing::ALL {
            let jobs = match round {
                Sharing::Any => self.jobs,
                Sharing::Timing => self.jobs.min(cpus()),
                Sharing::Alone => 1,
            };
            outcome.add(self.round(round, jobs, &root, times)?);
        }
        if retried {
            self.retry(&root, &mut outcome)?;
        }
        times.keep(outcome.times())?;
        sum.add(outcome);
        Ok(())
    }

    fn round(
        &self,
        round: Sharing,
        jobs: usize,
        root: &Root,
        times: &TestTimes,
    ) -> Result<Outcome> {
        let files = self.files.iter().map(|file| (file, file.of_round(round)));
        let mut files: Vec<_> = files.filter(|(_, tests)| !tests.is_empty()).collect();
        files.sort_by_cached_key(|(file, tests)| {
            let times = tests.iter().map(|test| times.of(&file.full_name(test)));
            Reverse(times.fold(Duration::ZERO, Duration::saturating_add))
        });
        let queue = Mutex::new(files.into_iter());
        let sum = Mutex::new(Outcome::default());
        let work = || -> Result<()> {
            loop {
                let next = lock(&queue).next();
                let Some((file, tests)) = next else {
                    return Ok(());
                };
                let outcome = self.run_tests(file, &tests, root)?;
                lock(&sum).add(outcome);
            }
        };
        thread::scope(|scope| {
            let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| {
                worker
                    .join()
                    .unwrap_or_else(|panic| panic::resume_unwind(panic))
            })
        })?;
        Ok(sum.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    fn retry(&self, root: &Root, sum: &mut Outcome) -> Result<()> {
        for file in &self.files {
            for test in sum.to_retry(&file.executable.name) {
                let second = self.run_tests(file, &[&test], root)?;
                sum.retry(&file.full_name(&test), &second);
            }
        }
        Ok(())
    }

    /// Runs tests of one file one after the other: threads would hide what each of them says.
    fn run_tests(&self, file: &File<'_>, tests: &[&str], root: &Root) -> Result<Outcome> {
        let executable = file.executable;
        let variables: [(&str, &OsStr); 2] = [
            (BINARY, self.binary.as_os_str()),
            ("CARGO_MANIFEST_DIR", executable.folder.as_os_str()),
        ];
        let mut command = root.command(&executable.path, &variables);
        within(&mut command, executable)
            .args(["--test-threads=1", "--nocapture", "--exact"])
            .args(tests);
        let name = &executable.name;
        // Others speak meanwhile.
        let pass_on = |line: &str| print!("{name}: {line}");
        let mut sum = Outcome::default();
        run(&mut command, name, Order::Alone, pass_on, &mut sum)?;
        Ok(sum)
    }
}

fn full_name(executable: &Executable, test: &str) -> String {
    format!("{}::{test}", executable.name)
}

fn sharing_of(all: &HashMap<String, Sharing>, test: &str, path: &Path) -> Result<Sharing> {
    let found = all.get(test).copied();
    found.with_context(|| format!("{} has no test called {test}", path.display()))
}

fn cpus() -> usize {
    available_parallelism().map_or(1, usize::from)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
