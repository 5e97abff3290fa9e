//! Builds flame-bpf and becomes it.
//!
//! In: its arguments. Out: nothing: this process is replaced, so that signals and the exit code are flame-bpf's own. It builds
//! as the user who asked and runs as root.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;

use anyhow::{Context as _, Result, bail};

use crate::build;
use crate::root::Root;
use crate::workspace::Workspace;

/// Builds, then runs with `arguments`; returns only when that fails.
pub(crate) fn run(arguments: &[OsString]) -> Result<()> {
    let binary = build::flame_bpf(&Workspace::find()?)?;
    let root = match Root::find() {
        Ok(root) => root,
        Err(reason) => bail!("{reason}; run {} as root", binary.display()),
    };
    let error = root.command(&binary, &[]).args(arguments).exec();
    Err(error).with_context(|| format!("cannot start {}", binary.display()))
}
