//! The separate file that holds what was stripped from an object.
//!
//! In: an object and where it was found. Out: the open debug file, once it has proved that it belongs
//! to the object. Never takes a file for its name alone. Where debuggers look is described in GDB's
//! manual, "Debugging Information in Separate Files".

use crate::object::{DebugLink, Elf, RegularFile};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Where distributions install debug files, below a root directory.
const DEBUG_DIRECTORY: &str = "usr/lib/debug";

/// The largest debug file whose checksum is taken, in bytes. Those that carry a build ID, as nearly all
/// do, need none.
const MAX_CHECKED_BYTES: u64 = 1 << 30;

/// A file that holds an object's symbols.
#[derive(Debug)]
pub(super) struct DebugFile {
    pub(super) file: File,
    pub(super) elf: Elf,
}

/// The debug file of the object at `path`, below one of the root directories. Links are followed as
/// a process would whose root directory that is.
pub(super) fn find(roots: &[&Path], path: &Path, elf: &Elf) -> Option<DebugFile> {
    roots.iter().find_map(|root| {
        candidates(path, elf).iter().find_map(|candidate| {
            let file = RegularFile::open_within(root, candidate).ok()?.file;
            let found = Elf::read(&file)?;
            (found.symbols.is_some() && belongs(elf, &found, &file))
                .then_some(DebugFile { file, elf: found })
        })
    })
}

fn candidates(path: &Path, elf: &Elf) -> Vec<PathBuf> {
    let installed = Path::new(DEBUG_DIRECTORY);
    let mut candidates = Vec::new();
    if let Some(id) = &elf.build_id {
        let (directory, rest) = id.split();
        candidates.push(
            installed
                .join(".build-id")
                .join(directory)
                .join(rest + ".debug"),
        );
    }
    let directory = path
        .parent()
        .and_then(|directory| directory.strip_prefix("/").ok());
    if let (Some(link), Some(directory)) = (&elf.debug_link, directory) {
        candidates.push(directory.join(&link.name));
        candidates.push(directory.join(".debug").join(&link.name));
        candidates.push(installed.join(directory).join(&link.name));
    }
    candidates
}

/// Whether a debug file was made from this very object.
fn belongs(elf: &Elf, found: &Elf, file: &File) -> bool {
    match (&elf.build_id, &found.build_id, &elf.debug_link) {
        (Some(wanted), Some(id), _) => id == wanted,
        (_, _, Some(DebugLink { crc, .. })) => checksum(file) == Some(*crc),
        _ => false,
    }
}

fn checksum(file: &File) -> Option<u32> {
    let end = file.metadata().ok()?.len();
    if end > MAX_CHECKED_BYTES {
        return None;
    }
    let mut hasher = crc32fast::Hasher::new();
    let mut block = vec![0; 64 << 10];
    let mut at = 0;
    while at < end {
        let read = file.read_at(&mut block, at).ok().filter(|read| *read > 0)?;
        hasher.update(&block[..read]);
        at += read as u64;
    }
    Some(hasher.finalize())
}
