//! Runs the tests: those that run anywhere, then those that need root.
//!
//! In: the workspace. Out: every line that the tests print, then a summary whose last line is
//! `N passed, M failed, K skipped`. Everything is compiled as the user who asked; only kernel tests run as root.
//!
//! With `--repeat`, kernel tests run several times, and `--loaded` keeps the CPUs busy meanwhile; then none is run again, and
//! the summary counts failures by name.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use anyhow::Result;
use clap::Args;

use crate::build::{self, Executable};
use crate::kernel_tests::KernelTests;
use crate::load::Load;
use crate::outcome::Outcome;
use crate::test_executable::{BINARY, Order, run, within};
use crate::test_times::TestTimes;
use crate::vm;
use crate::workspace::{Workspace, cargo};

/// How the names of the tests' files begin that need root.
const KERNEL: &str = "kernel_";

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
    /// Run kernel tests of so many files at once, but for those that measure time or want the machine for themselves [default: three for each CPU]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    jobs: Option<u32>,
    /// The checks of `cargo xtask vm`, too
    #[arg(long, conflicts_with_all = ["host", "filter"])]
    vm: bool,
    /// Only tests with one of these in their name, which of kernel tests begins with their file's
    filter: Vec<String>,
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
        let tests = KernelTests::choose(&kernel, &binary, &choice.filter, choice.jobs)?;
        let mut times = TestTimes::read(&workspace.target);
        let _load = choice.loaded.then(Load::new);
        for _ in 0..choice.repeat.unwrap_or(1) {
            tests.run(choice.repeat.is_none(), &mut times, &mut outcome)?;
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
        within(&mut command, test)
            .env(BINARY, binary)
            .args(&choice.filter);
        run_together(&mut command, &test.name, sum)?;
    }
    let mut examples = cargo();
    examples
        .args(["test", "--doc", "--quiet", "--locked", "--"])
        .args(&choice.filter)
        .current_dir(&workspace.root);
    run_together(&mut examples, "examples in the documentation", sum)
}

fn run_together(command: &mut Command, name: &str, sum: &mut Outcome) -> Result<()> {
    println!("\n== {name}");
    run(command, name, Order::Together, |line| print!("{line}"), sum)
}
