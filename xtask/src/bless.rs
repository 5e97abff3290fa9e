//! Accepts what the golden tests see as what they shall see from now on.
//!
//! In: the golden tests. Out: the files that they compare with, rewritten; `git diff` shows what changed.

use anyhow::Result;

use crate::workspace::{Workspace, cargo, run};

/// Runs the golden tests in the mode in which they write.
pub(crate) fn bless() -> Result<()> {
    let workspace = Workspace::find()?;
    // Some of what they compare is written by the program, which cargo does not build for them.
    run(cargo()
        .args(["build", "--release", "--locked", "--package=flame-bpf"])
        .current_dir(&workspace.root))?;
    // Raw recordings first, of which others are made.
    for tests in [
        &["--test=raw_recording", "to_the_byte"][..],
        &["--test=golden"],
        &["--test=live_screens", "screen"],
        &["--test=pprof", "the_bytes_of"],
        &["--test=formats", "the_bytes_of"],
        &["--test=inputs", "by_what_is_in_them"],
    ] {
        run(cargo()
            .args(["test", "--locked", "--package=flame-bpf-tests"])
            .args(tests)
            .current_dir(&workspace.root)
            .env("FLAME_BPF_BLESS", "1"))?;
    }
    Ok(())
}
