//! Feeds broken input to everything that reads what others wrote.
//!
//! In: a target and a time. Out: a line for each target; inputs that were too much, in files; and whether there were none. The
//! loop itself is a program of the tests' package, since nothing here may use our own crates.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use clap::Args;

use crate::build;
use crate::workspace::Workspace;

/// Target to feed, and for how long.
#[derive(Args)]
pub(crate) struct Choice {
    /// unwind, elf, maps, folded, code-map, symbols, raw, inputs, memory, or all, which share the time
    #[arg(default_value = "all")]
    target: String,
    /// How long
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Makes the same inputs again; another number each time where none is given
    #[arg(long)]
    seed: Option<u64>,
}

/// Feeds; says whether everything was survived.
pub(crate) fn fuzz(choice: &Choice) -> Result<bool> {
    let workspace = Workspace::find()?;
    let program = build::fuzz(&workspace)?;
    let seed = match choice.seed {
        Some(seed) => seed,
        None => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            u64::from(now.context("the clock is before 1970")?.subsec_nanos())
        }
    };
    println!(
        "fuzz: seed {seed}; `cargo xtask fuzz {} --seed {seed}` makes the same inputs",
        choice.target
    );
    let mut command = Command::new(&program);
    command.args([
        &choice.target,
        &choice.seconds.to_string(),
        &seed.to_string(),
    ]);
    let status = command
        .arg(workspace.target.join("fuzz-failures"))
        // The sources of the corpus are found by it.
        .env("CARGO_MANIFEST_DIR", workspace.root.join("tests"))
        .status()
        .with_context(|| format!("cannot start {}", program.display()))?;
    Ok(status.success())
}
