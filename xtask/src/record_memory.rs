//! Records memory of interpreters for the tests of their walks.
//!
//! In: an interpreter that is installed here. Out: a file under `tests/recorded`. The recording itself is a program of the
//! tests' package, since nothing here may use our own crates.

use std::process::Command;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::build;
use crate::workspace::Workspace;

/// Which interpreter.
#[derive(Args)]
pub(crate) struct Choice {
    /// Name of the recording: the runtime's name and its version, such as cpython-3.13
    name: String,
    /// The interpreter, and what stands before its program
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
    /// A folder with another system, in which the interpreter is
    #[arg(long)]
    root: Option<String>,
}

/// Records; says whether that went well.
pub(crate) fn record(choice: &Choice) -> Result<bool> {
    let workspace = Workspace::find()?;
    let program = build::record_memory(&workspace)?;
    let tests = workspace.root.join("tests");
    let mut command = Command::new(&program);
    command.arg(&choice.name);
    command.arg(tests.join(format!("recorded/{}.txt", choice.name)));
    if let Some(root) = &choice.root {
        command.args(["--root", root]);
    }
    let status = command
        .args(&choice.command)
        // Its programs are found by it.
        .env("CARGO_MANIFEST_DIR", &tests)
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    Ok(status.success())
}
