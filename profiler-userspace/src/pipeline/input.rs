//! Inputs that are to be rendered, whatever kind of file they are in.
//!
//! In: a path, or `-` for stdin. Out: a raw recording, or the bytes of a profile of another tool and their kind, told by
//! how the file begins.

use crate::input::{self, Kind};
use crate::profile::fold::visible;
use crate::raw_recording::{self, Read, Wanted};
use anyhow::{Context as _, Result, ensure};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

/// An input, by its kind.
pub(crate) enum Input {
    /// A raw recording of ours, or the windows of it that are wanted.
    Recording(Box<Read>),
    /// A profile that another tool made, or that we wrote for other tools.
    Foreign {
        kind: Kind,
        /// All of the file, unpacked.
        bytes: Vec<u8>,
    },
}

/// Name of an input in sentences.
pub(crate) fn name(path: &Path) -> String {
    match path == Path::new("-") {
        true => "stdin".to_owned(),
        false => visible(&path.display().to_string()).into_owned(),
    }
}

impl Input {
    /// Reads what lies at `path`; see [`raw_recording::read`] for what is `wanted`, and in how many windows.
    pub(crate) fn read(path: &Path, wanted: Wanted<'_>, windows: usize) -> Result<Self> {
        let read = || -> Result<Self> {
            if path == Path::new("-") {
                return Self::from(io::stdin().lock(), 0, wanted, windows);
            }
            let file = File::open(path)?;
            let size = file.metadata()?.len();
            Self::from(BufReader::new(file), size, wanted, windows)
        };
        read().with_context(|| format!("cannot read {}", name(path)))
    }

    /// Reads an input that is probably so large.
    fn from(
        mut input: impl BufRead,
        size: u64,
        wanted: Wanted<'_>,
        windows: usize,
    ) -> Result<Self> {
        if raw_recording::is_one(input.fill_buf()?) {
            let read = raw_recording::read(input, wanted, windows)?;
            return Ok(Self::Recording(Box::new(read)));
        }
        // One more, so that the end is found without room for another read.
        let room = size.min(input::MOST_BYTES) as usize + 1;
        let mut bytes = Vec::with_capacity(room);
        input.take(input::MOST_BYTES + 1).read_to_end(&mut bytes)?;
        ensure!(
            bytes.len() as u64 <= input::MOST_BYTES,
            "it is more than 1 GiB and no raw recording; divide it"
        );
        let bytes = input::unpacked(bytes)?;
        let kind = Kind::of(&bytes)?;
        ensure!(
            wanted.is_none(),
            "it is {}, and only raw recordings have windows; leave --from and --to out",
            kind.name()
        );
        Ok(Self::Foreign { kind, bytes })
    }
}
