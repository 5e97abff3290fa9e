//! What is to be rendered, whatever kind of file it is in.
//!
//! In: a path, or `-` for stdin. Out: a raw recording, or folded text, told apart by how the file begins.

use crate::raw_recording::{self, Read, Wanted};
use anyhow::{Context as _, Result, ensure};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

/// The most folded text that is read, in bytes.
const MOST_TEXT: u64 = 1 << 30;

/// An input, by its kind.
pub(crate) enum Input {
    /// A raw recording of ours, or the windows of it that are wanted.
    Recording(Box<Read>),
    /// Folded text of any tool.
    Folded(Vec<u8>),
}

impl Input {
    /// Reads what lies at `path`; see [`raw_recording::read`] for what is `wanted`, and `divided`.
    pub(crate) fn read(path: &Path, wanted: Wanted<'_>, divided: bool) -> Result<Self> {
        let cannot = || format!("cannot render {}", path.display());
        let read = || -> Result<Self> {
            if path == Path::new("-") {
                return Self::from(io::stdin().lock(), wanted, divided);
            }
            Self::from(BufReader::new(File::open(path)?), wanted, divided)
        };
        read().with_context(cannot)
    }

    fn from(mut input: impl BufRead, wanted: Wanted<'_>, divided: bool) -> Result<Self> {
        if raw_recording::is_one(input.fill_buf()?) {
            let read = raw_recording::read(input, wanted, divided)?;
            return Ok(Self::Recording(Box::new(read)));
        }
        ensure!(
            wanted.is_none(),
            "it is folded text, which has no times; leave --from and --to out"
        );
        let mut text = Vec::new();
        input.take(MOST_TEXT + 1).read_to_end(&mut text)?;
        ensure!(
            text.len() as u64 <= MOST_TEXT,
            "it is folded text of more than 1 GiB; divide it"
        );
        Ok(Self::Folded(text))
    }
}
