//! Finds split debug information (`-gsplit-dwarf`).
//!
//! In: an object, and the path its debug information gives for a part. Out: the first candidate file that the
//! caller accepts. A part is a `.dwo` file for each compilation unit, or all of them are in one `.dwp` package
//! beside the program. The search order is that of GDB's manual, "Debugging Information in Separate Files",
//! and DWARF 5, appendix F.

use super::{DebugFile, Elf, RegularFile, Search};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The extension of a package.
const PACKAGE: &str = ".dwp";

impl Search<'_> {
    /// The first result of `take` among the files that may hold the part at `part`: that path, beside `object`, or
    /// in a debug directory.
    pub fn find_part<T>(
        &self,
        object: &Path,
        part: &Path,
        take: impl Fn(DebugFile) -> Option<T>,
    ) -> Option<T> {
        let beside = object.parent()?;
        let mut installed = vec![beside.join(part)];
        installed.extend(part.file_name().map(|name| beside.join(name)));
        self.first(&installed, take)
    }

    /// The first result of `take` among the packages that may hold the parts of `object`, whose debug information
    /// is in `debug`.
    pub fn find_package<T>(
        &self,
        object: &Path,
        debug: &DebugFile,
        take: impl Fn(DebugFile) -> Option<T>,
    ) -> Option<T> {
        let mut installed = vec![with_end(object)];
        if let Some(place) = debug.path() {
            installed.push(with_end(place));
            installed.push(place.with_extension(&PACKAGE[1..]));
        }
        self.first(&installed, take)
    }

    /// Tries these paths: in the debug directories, by the whole path and by the file name, and in the root
    /// directories.
    fn first<T>(&self, paths: &[PathBuf], take: impl Fn(DebugFile) -> Option<T>) -> Option<T> {
        let open = |file: RegularFile| {
            let elf = Elf::read(&file.file)?;
            take(DebugFile::of(&file.file, &elf)?)
        };
        let named = || {
            self.directories.iter().find_map(|directory| {
                paths.iter().find_map(|path| {
                    let whole = path.strip_prefix("/").unwrap_or(path);
                    let end = path.file_name().map(Path::new);
                    let mut ends = [Some(whole), end].into_iter().flatten();
                    ends.find_map(|end| open(RegularFile::open(&directory.join(end)).ok()?))
                })
            })
        };
        let installed = || {
            self.roots.iter().find_map(|root| {
                let mut all = paths.iter();
                all.find_map(|path| open(RegularFile::open_within(root, path).ok()?))
            })
        };
        named().or_else(installed)
    }
}

fn with_end(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(PACKAGE);
    PathBuf::from(name)
}
