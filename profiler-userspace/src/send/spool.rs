//! Files of bodies that wait.
//!
//! In: bodies. Out: a file for each, complete or not there, whose name says when it came and how many samples it has; and all that a
//! folder has of an earlier run.

use anyhow::Result;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// How names of files end.
const EXTENSION: &str = "body";

/// Files of an earlier run, the oldest first: path, samples, bytes. Removes what was not complete.
pub(super) fn left(folder: &Path) -> std::io::Result<Vec<(PathBuf, u64, u64)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let (path, bytes) = {
            let entry = entry?;
            (entry.path(), entry.metadata()?.len())
        };
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let samples = name.rsplit('-').next().and_then(|word| word.parse().ok());
        match samples.filter(|_| path.extension().is_some_and(|end| end == EXTENSION)) {
            Some(samples) => files.push((path, samples, bytes)),
            None if name.starts_with('.') => fs::remove_file(&path)?,
            None => {}
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Writes a body. Its file has its name when it is complete. Names are in the order of windows, across runs.
pub(super) fn write(folder: &Path, number: u64, samples: u64, bytes: &[u8]) -> Result<PathBuf> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
    let mut file = tempfile::Builder::new().prefix(".").tempfile_in(folder)?;
    file.write_all(bytes)?;
    let path = folder.join(format!("{now:024}-{number:08}-{samples}.{EXTENSION}"));
    file.persist(&path)?;
    Ok(path)
}
