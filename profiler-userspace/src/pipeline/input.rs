//! Inputs that are to be rendered, whatever kind of file they are in.
//!
//! In: a path, or `-` for stdin. Out: a raw recording or a profile of another tool, told by how the file begins, of which no
//! more than the beginning was read.

use crate::input;
use crate::profile::fold::visible;
use crate::raw_recording;
use anyhow::{Context as _, Result};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

/// An input, by its kind.
pub(crate) enum Input {
    /// A raw recording of ours.
    Recording(Box<dyn BufRead>),
    /// A profile that another tool made, or that we wrote for other tools.
    Foreign(input::File<'static>),
}

/// Name of an input in sentences.
pub(crate) fn name(path: &Path) -> String {
    match is_stdin(path) {
        true => "stdin".to_owned(),
        false => visible(&path.display().to_string()).into_owned(),
    }
}

/// Whether an input can be read but once.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

impl Input {
    /// Opens what lies at `path`.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let open = || -> Result<Self> {
            let mut bytes: Box<dyn BufRead> = match is_stdin(path) {
                true => Box::new(io::stdin().lock()),
                false => Box::new(BufReader::with_capacity(READ_BYTES, fs::File::open(path)?)),
            };
            match raw_recording::is_one(bytes.fill_buf()?) {
                true => Ok(Self::Recording(bytes)),
                false => Ok(Self::Foreign(input::File::of(bytes)?)),
            }
        };
        open().with_context(|| format!("cannot read {}", name(path)))
    }
}

/// So much is read of a file at a time, in bytes.
const READ_BYTES: usize = 64 * 1024;
