//! Inputs that are to be rendered, whatever kind of file they are in.
//!
//! In: a path, or `-` for stdin. Out: a raw recording or a profile of another tool, told by how the file begins, of which no
//! more than the beginning was read.

use crate::input;
use crate::profile::fold::visible;
use crate::raw_recording;
use crate::store::Listing;
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// An input, by its kind.
pub(crate) enum Input {
    /// A raw recording of ours.
    Recording(Box<dyn BufRead>),
    /// A profile that another tool made, or that we wrote for other tools.
    Foreign(input::File<'static>),
    /// A folder with tables.
    Store(Listing),
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
    /// Opens what lies at `path`. So many bytes as are read are added to `read`.
    pub(crate) fn open(path: &Path, read: &Arc<AtomicU64>) -> Result<Self> {
        let open = || -> Result<Self> {
            if path.is_dir() {
                let listing = Listing::of(path)?;
                if !listing.tables.is_empty() {
                    return Ok(Self::Store(listing));
                }
                match &*listing.recordings {
                    [] => bail!(
                        "it is a folder without tables (.parquet), which a service makes with --store"
                    ),
                    [(_, first), ..] => bail!(
                        "no hour of this store is over, so there is no table yet; give a recording of the hour, such as {}",
                        visible(&first.display().to_string())
                    ),
                }
            }
            let mut bytes: Box<dyn BufRead> = match is_stdin(path) {
                true => counted(io::stdin().lock(), read),
                false => counted(fs::File::open(path)?, read),
            };
            match raw_recording::is_one(bytes.fill_buf()?) {
                true => Ok(Self::Recording(bytes)),
                false => Ok(Self::Foreign(input::File::of(bytes)?)),
            }
        };
        open().with_context(|| format!("cannot read {}", name(path)))
    }
}

/// A stream whose bytes are counted as they are read.
struct Counted<R> {
    from: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let bytes = self.from.read(into)?;
        self.read.fetch_add(bytes as u64, Relaxed);
        Ok(bytes)
    }
}

fn counted(from: impl Read + 'static, read: &Arc<AtomicU64>) -> Box<dyn BufRead> {
    let read = Arc::clone(read);
    Box::new(BufReader::with_capacity(READ_BYTES, Counted { from, read }))
}

/// So much is read of a file at a time, in bytes.
const READ_BYTES: usize = 64 * 1024;
