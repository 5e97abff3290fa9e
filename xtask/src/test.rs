//! Runs the tests: those that run anywhere, then those that need root.
//!
//! In: the workspace. Out: every line that the tests print, then a summary whose last line is
//! `N passed, M failed, K skipped`. Everything is compiled as the user who asked; only the kernel tests' executables run as
//! root.
//!
//! Kernel tests measure what a machine does while it does other things, too. One that fails is run again, and if it passes
//! then, the summary says so; of more than a few, that does not count.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, pipe};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result};
use clap::Args;

use crate::build::{self, Executable};
use crate::outcome::{Outcome, Transcript};
use crate::root::Root;
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
    if !choice.kernel {
        run_on_host(&host, &binary, choice, &workspace, &mut outcome)?;
    }
    if !choice.host {
        run_as_root(&kernel, &binary, choice, &mut outcome)?;
    }
    // What goes wrong before the first kernel boots must not take the tests' results along.
    if choice.vm
        && let Err(error) = vm::boot_all(&mut outcome)
    {
        outcome.fail("vm", &format!("{error:#}"));
    }
    println!("\n{outcome}");
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
    for test in tests {
        let variables: [(&str, &OsStr); 2] = [
            (BINARY, binary.as_os_str()),
            ("CARGO_MANIFEST_DIR", test.folder.as_os_str()),
        ];
        let command = || {
            let mut command = root.command(&test.path, &variables);
            // One at a time: they would be in each other's samples.
            within(&mut command, test).args(["--test-threads=1", "--nocapture"]);
            command
        };
        run(command().args(&choice.filter), &test.name, sum)?;
        for name in sum.failed_of(&test.name) {
            let mut second = Outcome::default();
            run(command().args(["--exact", &name]), &test.name, &mut second)?;
            sum.again(&format!("{}::{name}", test.name), &second);
        }
    }
    Ok(())
}

fn skip_all(tests: &[Executable], choice: &Choice, reason: &str, sum: &mut Outcome) -> Result<()> {
    for test in tests {
        let mut command = Command::new(&test.path);
        let listed = output(
            within(&mut command, test)
                .args(["--list", "--format=terse"])
                .args(&choice.filter),
        )?;
        for name in listed
            .lines()
            .filter_map(|line| line.strip_suffix(": test"))
        {
            sum.skip(&format!("{}::{name}", test.name), reason);
        }
    }
    Ok(())
}

/// As `cargo test` would start it.
fn within<'command>(command: &'command mut Command, test: &Executable) -> &'command mut Command {
    command
        .current_dir(&test.folder)
        .env("CARGO_MANIFEST_DIR", &test.folder)
}

/// Runs one test executable; passes on and takes in what it says.
fn run(command: &mut Command, name: &str, sum: &mut Outcome) -> Result<()> {
    println!("\n== {name}");
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
        print!("{text}");
        transcript.read(text.trim_end_matches('\n'));
        line.clear();
    }
    let status = child
        .wait()
        .with_context(|| format!("cannot wait for {name}"))?;
    transcript.finish(name, status.success(), sum);
    Ok(())
}
