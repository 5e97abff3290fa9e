//! Finds the separate debug file of a stripped object.
//!
//! In: an object, its path, and where to look. Out: the open debug file, once build ID or checksum prove
//! that it belongs to the object. Never accepts a file by its name alone. The search order is that of
//! GDB's manual, "Debugging Information in Separate Files".

use super::{BuildId, DebugLink, Elf, RegularFile};
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

/// Where distributions install debug files, relative to a root directory.
const DEBUG_DIRECTORY: &str = "usr/lib/debug";

/// The largest debug file whose checksum is computed, in bytes. Nearly all have a build ID and need no
/// checksum.
const MAX_CHECKED_BYTES: u64 = 1 << 30;

/// A file with an object's debug information.
#[derive(Debug)]
pub struct DebugFile {
    /// The file.
    pub file: File,
    /// Its tables.
    pub elf: Elf,
    /// Its path, from which the link to a shared file is resolved. None if it came from a server.
    place: Option<(PathBuf, PathBuf)>,
}

impl DebugFile {
    /// An object that contains its own debug information.
    pub fn of(file: &File, elf: &Elf) -> Option<Self> {
        Some(Self {
            file: file.try_clone().ok()?,
            elf: elf.clone(),
            place: None,
        })
    }

    /// Its path relative to its root directory, if it is a separate file.
    pub(super) fn path(&self) -> Option<&Path> {
        self.place.as_ref().map(|(_, path)| path.as_path())
    }
}

/// Fetches a debug file by build ID.
pub type Fetch<'a> = dyn Fn(&BuildId) -> Option<RegularFile> + 'a;

/// Where debug files are searched, in this order.
#[derive(Clone, Copy)]
pub struct Search<'a> {
    /// Directories of debug files, each laid out like `/usr/lib/debug`.
    pub directories: &'a [PathBuf],
    /// Root directories: their `/usr/lib/debug` and the object's directory in them are searched.
    pub roots: &'a [&'a Path],
    /// The source asked last, such as debuginfod servers.
    pub fetch: Option<&'a Fetch<'a>>,
}

impl Search<'_> {
    /// The debug file of the object at `path` for which `wanted` holds.
    pub fn find(
        &self,
        path: &Path,
        elf: &Elf,
        is_wanted: impl Fn(&Elf) -> bool,
    ) -> Option<DebugFile> {
        let open = |file: RegularFile, place| {
            let found = Elf::read(&file.file)?;
            (is_wanted(&found) && belongs(elf, &found, &file.file)).then_some(DebugFile {
                file: file.file,
                elf: found,
                place,
            })
        };
        let named = self.directories.iter().find_map(|directory| {
            let candidates = in_directory(directory, path, elf);
            candidates.iter().find_map(|candidate| {
                let place = (PathBuf::from("/"), candidate.clone());
                open(RegularFile::open(candidate).ok()?, Some(place))
            })
        });
        let installed = || {
            self.roots.iter().find_map(|root| {
                let candidates = below_root(path, elf);
                candidates.iter().find_map(|candidate| {
                    let place = ((*root).to_owned(), candidate.clone());
                    open(RegularFile::open_within(root, candidate).ok()?, Some(place))
                })
            })
        };
        let fetched = || open((self.fetch?)(elf.build_id.as_ref()?)?, None);
        named.or_else(installed).or_else(fetched)
    }

    /// The shared file (`dwz`) that a debug file links to, if any.
    pub fn find_shared(&self, debug: &DebugFile) -> Option<DebugFile> {
        let link = debug.elf.debug.shared.as_ref()?;
        let id = BuildId::new(&link.build_id)?;
        let open = |file: RegularFile| {
            let found = Elf::read(&file.file)?;
            (found.build_id.as_ref() == Some(&id)).then_some(DebugFile {
                file: file.file,
                elf: found,
                place: None,
            })
        };
        let by_link = || {
            let (root, place) = debug.place.as_ref()?;
            let path = place.parent()?.join(&link.path);
            open(RegularFile::open_within(root, &path).ok()?)
        };
        let by_id = || {
            let (directory, rest) = id.split();
            let name = Path::new(".build-id").join(directory).join(rest + ".debug");
            let named = self
                .directories
                .iter()
                .find_map(|directory| open(RegularFile::open(&directory.join(&name)).ok()?));
            let path = Path::new(DEBUG_DIRECTORY).join(&name);
            named.or_else(|| {
                self.roots
                    .iter()
                    .find_map(|root| open(RegularFile::open_within(root, &path).ok()?))
            })
        };
        by_link()
            .or_else(by_id)
            .or_else(|| open((self.fetch?)(&id)?))
    }
}

/// A debug file may come with the path under which it was installed, or without.
fn in_directory(directory: &Path, path: &Path, elf: &Elf) -> Vec<PathBuf> {
    let mut candidates: Vec<PathBuf> = by_build_id(elf)
        .map(|name| directory.join(name))
        .into_iter()
        .collect();
    if let Some(link) = &elf.debug.link {
        if let Some(parent) = parent(path) {
            candidates.push(directory.join(parent).join(&link.name));
        }
        candidates.push(directory.join(&link.name));
    }
    candidates
}

fn below_root(path: &Path, elf: &Elf) -> Vec<PathBuf> {
    let installed = Path::new(DEBUG_DIRECTORY);
    let mut candidates: Vec<PathBuf> = by_build_id(elf)
        .map(|name| installed.join(name))
        .into_iter()
        .collect();
    if let (Some(link), Some(parent)) = (&elf.debug.link, parent(path)) {
        candidates.push(parent.join(&link.name));
        candidates.push(parent.join(".debug").join(&link.name));
        candidates.push(installed.join(parent).join(&link.name));
    }
    candidates
}

fn by_build_id(elf: &Elf) -> Option<PathBuf> {
    let (directory, rest) = elf.build_id.as_ref()?.split();
    Some(Path::new(".build-id").join(directory).join(rest + ".debug"))
}

/// The directory of an absolute path, from the root.
fn parent(path: &Path) -> Option<&Path> {
    path.parent()?.strip_prefix("/").ok()
}

/// Whether a debug file belongs to this object.
fn belongs(elf: &Elf, found: &Elf, file: &File) -> bool {
    match (&elf.build_id, &found.build_id, &elf.debug.link) {
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
