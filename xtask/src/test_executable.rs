//! Starts one test executable and takes in what it says.
//!
//! In: an executable, arguments. Out: its lines, one by one, and an account of its tests.

use std::io::{BufRead as _, BufReader, pipe};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result};

use crate::build::Executable;
use crate::outcome::Outcome;
use crate::transcript::Transcript;
use crate::workspace::output;

/// Tells the tests which flame-bpf to run.
pub(crate) const BINARY: &str = "FLAME_BPF_BIN";

/// Names of the tests of an executable that have one of these in their name; of all without any.
pub(crate) fn names(test: &Executable, filters: &[String]) -> Result<Vec<String>> {
    let mut command = Command::new(&test.path);
    let listed = output(
        within(&mut command, test)
            .args(["--list", "--format=terse"])
            .args(filters),
    )?;
    let tests = listed
        .lines()
        .filter_map(|line| line.strip_suffix(": test"));
    Ok(tests.map(str::to_owned).collect())
}

/// As `cargo test` would start it.
pub(crate) fn within<'command>(
    command: &'command mut Command,
    test: &Executable,
) -> &'command mut Command {
    command
        .current_dir(&test.folder)
        .env("CARGO_MANIFEST_DIR", &test.folder)
}

/// How an executable runs its tests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// One after the other.
    Alone,
    /// Several at a time.
    Together,
}

/// Runs one test executable to its end. Each line that it says goes to `listen`, and what became of its tests to `sum`.
pub(crate) fn run(
    command: &mut Command,
    name: &str,
    order: Order,
    mut listen: impl FnMut(&str),
    sum: &mut Outcome,
) -> Result<()> {
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
        listen(&text);
        transcript.read(text.trim_end_matches('\n'), start.elapsed());
        line.clear();
    }
    let status = child
        .wait()
        .with_context(|| format!("cannot wait for {name}"))?;
    transcript.finish(name, status.success(), order == Order::Alone, sum);
    Ok(())
}
