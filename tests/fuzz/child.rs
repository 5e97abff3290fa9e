//! One target's inputs, one after the other, in a process that may die of them.
//!
//! In: a target, a seed, a time. Out: the number of the input that is being tried, in a file. Never catches a panic: its
//! message is on stderr, and its parent sees the rest.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::target::Target;

/// Address space for all that an input makes its reader allocate, the corpus and this program: several times the
/// most that one section is believed to unpack to.
const MEMORY_BYTES: u64 = 1 << 30;

/// How long a mebibyte of input may take, or an input that is smaller.
const PER_MEBIBYTE: Duration = Duration::from_secs(2);

/// Tries inputs for so many seconds; does not return if one is too much.
pub(crate) fn run(target: Target, seconds: f64, seed: u64, progress: &Path) -> Result<()> {
    let corpus = target.corpus()?;
    let progress = File::options()
        .write(true)
        .open(progress)
        .with_context(|| format!("cannot open {}", progress.display()))?;
    let limit = Rlimit {
        current: Some(MEMORY_BYTES),
        ..getrlimit(Resource::As)
    };
    setrlimit(Resource::As, limit).context("cannot limit this process's memory")?;
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let mut number = 0_u64;
    while Instant::now() < end {
        progress
            .write_all_at(&number.to_le_bytes(), 0)
            .context("cannot write progress")?;
        let input = target.input(&corpus, seed, number);
        let start = Instant::now();
        target.read(&input);
        let taken = start.elapsed();
        let mebibytes = (input.len() as f64 / f64::from(1 << 20)).max(1.0);
        if taken > PER_MEBIBYTE.mul_f64(mebibytes) {
            println!("input {number} took {taken:?} for {} bytes", input.len());
            process::abort();
        }
        number += 1;
    }
    Ok(())
}

/// The number of the input that is, or was, being tried; none if there was none yet.
pub(crate) fn read_progress(path: &Path) -> Option<u64> {
    let bytes = std::fs::read(path).ok()?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
