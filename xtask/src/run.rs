//! Builds flame-bpf and becomes it.
//!
//! In: its arguments. Out: nothing: this process is replaced, so that signals and the exit code are flame-bpf's own. It builds
//! as the user who asked and runs as root.

use std::ffi::OsString;

use anyhow::Result;

use crate::build;
use crate::root::replace_by;
use crate::workspace::Workspace;

/// Builds, then runs with `arguments`; returns only when that fails.
pub(crate) fn run(arguments: Vec<OsString>) -> Result<()> {
    replace_by(&build::flame_bpf(&Workspace::find()?)?, arguments)
}
