//! Runs the tests: those that run anywhere, then those that need root.
//!
//! In: the workspace. Out: every line that the tests print, then a summary whose last line is
//! `N passed, M failed, K skipped`. Everything is compiled as the user who asked; only the kernel tests' executables run as
//! root.
//!
//! Kernel tests wait for their own recordings most of the time, so several of their executables run at once. A test takes its
//! turn on the machine by itself, shared or alone.
//!
//! Some kernel tests measure time, on a machine that does other things, too: those that are marked `#[kernel_test(timing)]`. One
//! of them that fails is run again, and the summary says what came of it. No other test is, nor one that failed in anything
//! but what it measured: see [`crate::transcript`].
//!
//! With `--repeat`, kernel tests run several times, and `--loaded` keeps the CPUs busy meanwhile; then none is run again, and
//! the summary counts failures by name.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, pipe};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use std::{panic, thread};

use anyhow::{Context as _, Result};
use clap::Args;

use crate::build::{self, Executable};
use crate::load::Load;
use crate::outcome::Outcome;
use crate::root::Root;
use crate::transcript::Transcript;
use crate::vm;
use crate::workspace::{Workspace, cargo, output};

/// How the names of the tests' files begin that need root.
const KERNEL: &str = "kernel_";

/// Tells the tests which flame-bpf to run.
const BINARY: &str = "FLAME_BPF_BIN";

/// Which tests to run.
#[derive(Args)]
pub(crate) struct Choice {
    /// Only the tests that run anywhere
    #[arg(long, conflicts_with = "kernel")]
    host: bool,
    /// Only the tests that need root
    #[arg(long)]
    kernel: bool,
    /// Run the kernel tests so many times, none of them again, and count failures by name
    #[arg(long, value_name = "N", requires = "kernel", value_parser = clap::value_parser!(u32).range(1..))]
    repeat: Option<u32>,
    /// Keep the CPUs busy meanwhile, with two threads for each
    #[arg(long, requires = "kernel")]
    loaded: bool,
    /// Run kernel tests of so many files at once, but for those that want the machine for themselves
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    jobs: u32,
    /// The checks of `cargo xtask vm`, too
    #[arg(long, conflicts_with_all = ["host", "filter"])]
    vm: bool,
    /// Only tests with this in their name
    filter: Option<String>,
}

/// Runs the tests chosen; says whether every one that ran passed.
pub(crate) fn test(choice: &Choice) -> Result<bool> {
    let workspace = Workspace::find()?;
    let binary = build::flame_bpf(&workspace)?;
    let executables = build::tests(&workspace)?;
    let (kernel, host): (Vec<_>, Vec<_>) = executables
        .into_iter()
        .partition(|e| e.name.starts_with(KERNEL));
    let mut outcome = Outcome::default();
    let start = Instant::now();
    if !choice.kernel {
        run_on_host(&host, &binary, choice, &workspace, &mut outcome)?;
    }
    let on_host = start.elapsed();
    if !choice.host {
        let _load = choice.loaded.then(Load::new);
        for _ in 0..choice.repeat.unwrap_or(1) {
            run_as_root(&kernel, &binary, choice, &mut outcome)?;
        }
    }
    let as_root = start.elapsed() - on_host;
    // A failure before the first kernel boots must not take the tests' results along.
    if choice.vm
        && let Err(error) = vm::boot_all(&mut outcome)
    {
        outcome.fail_check("vm", &format!("{error:#}"));
    }
    println!(
        "\ntests that run anywhere took {} s, kernel tests {} s\n{outcome}",
        on_host.as_secs(),
        as_root.as_secs()
    );
    Ok(outcome.is_good())
}

fn run_on_host(
    tests: &[Executable],
    binary: &Path,
    choice: &Choice,
    workspace: &Workspace,
    sum: &mut Outcome,
) -> Result<()> {
    for test in tests {
        let mut command = Command::new(&test.path);
        run(
            within(&mut command, test)
                .env(BINARY, binary)
                .args(&choice.filter),
            &test.name,
            Order::Together,
            sum,
        )?;
    }
    let mut examples = cargo();
    examples
        .args(["test", "--doc", "--quiet", "--locked"])
        .current_dir(&workspace.root);
    run(
        examples.args(["--"]).args(&choice.filter),
        "examples in the documentation",
        Order::Together,
        sum,
    )
}

fn run_as_root(
    tests: &[Executable],
    binary: &Path,
    choice: &Choice,
    sum: &mut Outcome,
) -> Result<()> {
    let root = match Root::find() {
        Ok(root) => root,
        Err(reason) => return skip_all(tests, choice, &reason, sum),
    };
    // Those with the most tests first: the last to begin should not be the longest.
    let mut order = Vec::new();
    for test in tests {
        order.push((names(test, choice)?.len(), test));
    }
    order.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let queue = Mutex::new(order.into_iter().map(|(_, test)| test));
    let sum = Mutex::new(sum);
    let work = || {
        loop {
            let next = lock(&queue).next();
            let Some(test) = next else { return Ok(()) };
            let outcome = run_one_as_root(test, &root, binary, choice)?;
            lock(&sum).add(outcome);
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..choice.jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|panic| panic::resume_unwind(panic))
        })
    })
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the tests of one executable one after the other: threads would hide what each of them says.
fn run_one_as_root(
    test: &Executable,
    root: &Root,
    binary: &Path,
    choice: &Choice,
) -> Result<Outcome> {
    let variables: [(&str, &OsStr); 2] = [
        (BINARY, binary.as_os_str()),
        ("CARGO_MANIFEST_DIR", test.folder.as_os_str()),
    ];
    let command = || {
        let mut command = root.command(&test.path, &variables);
        within(&mut command, test).args(["--test-threads=1", "--nocapture"]);
        command
    };
    let mut sum = Outcome::default();
    run(
        command().args(&choice.filter),
        &test.name,
        Order::Alone,
        &mut sum,
    )?;
    let to_retry = match choice.repeat {
        None => sum.to_retry(&test.name),
        Some(_) => Vec::new(),
    };
    for name in to_retry {
        let mut second = Outcome::default();
        run(
            command().args(["--exact", &name]),
            &test.name,
            Order::Alone,
            &mut second,
        )?;
        sum.retry(&format!("{}::{name}", test.name), &second);
    }
    Ok(sum)
}

fn skip_all(tests: &[Executable], choice: &Choice, reason: &str, sum: &mut Outcome) -> Result<()> {
    for test in tests {
        for name in names(test, choice)? {
            sum.skip(&format!("{}::{name}", test.name), reason);
        }
    }
    Ok(())
}

/// Names of the tests of an executable that are chosen.
fn names(test: &Executable, choice: &Choice) -> Result<Vec<String>> {
    let mut command = Command::new(&test.path);
    let listed = output(
        within(&mut command, test)
            .args(["--list", "--format=terse"])
            .args(&choice.filter),
    )?;
    let tests = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"));
    Ok(tests.map(str::to_owned).collect())
}

/// As `cargo test` would start it.
fn within<'command>(command: &'command mut Command, test: &Executable) -> &'command mut Command {
    command
        .current_dir(&test.folder)
        .env("CARGO_MANIFEST_DIR", &test.folder)
}

/// How an executable runs its tests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    /// One after the other.
    Alone,
    /// Several at a time.
    Together,
}

/// Runs one test executable; passes on and takes in what it says.
fn run(command: &mut Command, name: &str, order: Order, sum: &mut Outcome) -> Result<()> {
    println!("\n== {name}");
    let start = Instant::now();
    // One pipe for both, so that the lines stay in the order in which they were said.
    let (said, out) = pipe().context("cannot make a pipe")?;
    let errors = out.try_clone().context("cannot share a pipe")?;
    let started = command
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(errors)
        .spawn();
    let mut child = started.with_context(|| format!("cannot start {command:?}"))?;
    // The command keeps our ends of the pipe, which would else never end.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut transcript = Transcript::default();
    let mut reader = BufReader::new(said);
    let mut line = Vec::new();
    while reader
        .read_until(b'\n', &mut line)
        .context("cannot read what the tests say")?
        > 0
    {
        let text = String::from_utf8_lossy(&line);
        match order {
            // Others speak meanwhile.
            Order::Alone => print!("{name}: {text}"),
            Order::Together => print!("{text}"),
        }
        transcript.read(text.trim_end_matches('\n'), start.elapsed());
        line.clear();
    }
    let status = child
        .wait()
        .with_context(|| format!("cannot wait for {name}"))?;
    transcript.finish(name, status.success(), order == Order::Alone, sum);
    Ok(())
}
