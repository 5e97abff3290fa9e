//! Files and folders, whose names are in what goes wrong with them.
//!
//! In: paths. Out: contents, lists, and files that are written.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// All bytes of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

/// All of a text.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Makes a file, and the folders that it lies in.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    make_parent(path)?;
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Makes an empty file, or empties one.
pub(crate) fn create(path: &Path) -> Result<File> {
    File::create(path).with_context(|| format!("cannot make {}", path.display()))
}

/// Copies a file to a place whose folder may be missing.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    make_parent(to)?;
    fs::copy(from, to)
        .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

fn make_parent(path: &Path) -> Result<()> {
    path.parent().map_or(Ok(()), make_folder)
}

/// Makes a folder, and those that it lies in.
pub(crate) fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
}

/// Paths of all that lies in a folder, in no order.
pub(crate) fn list(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot list {}", folder.display());
    let entries = fs::read_dir(folder).with_context(cannot)?;
    entries
        .map(|entry| Ok(entry.with_context(cannot)?.path()))
        .collect()
}

/// Files with an extension that lie in a folder or below, but for what Cargo made.
pub(crate) fn below(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for path in list(&folder)? {
            if !path.is_dir() {
                found.extend((path.extension() == Some(OsStr::new(extension))).then_some(path));
            } else if path.file_name() != Some(OsStr::new("target")) {
                folders.push(path);
            }
        }
    }
    Ok(found)
}
