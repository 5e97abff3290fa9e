//! Opens files whose paths come from a profiled program.
//!
//! In: a path. Out: a [`RegularFile`] and its identity. Never opens anything but a regular file: opening
//! a FIFO may block forever, and opening a device may trigger it.

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags, open, openat, openat2, statx,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The identity of a file, whatever its path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileNumber {
    /// The major number of its device.
    pub major: u32,
    /// The device's minor number.
    pub minor: u32,
    /// The inode. Zero is one as any other: the first System V segment has it.
    pub inode: u64,
}

impl FileNumber {
    /// Whether it stands for no file, as in the lines of `/proc/PID/maps` that are of memory alone.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

/// An open regular file.
#[derive(Debug)]
pub struct RegularFile {
    /// Open for reading.
    pub file: File,
    /// Which file it is.
    pub number: FileNumber,
    /// When the file was created, if the file system records that. Unlike its other times, this one
    /// cannot be set.
    pub born: Option<SystemTime>,
    /// The file of which this is a copy in memory, where we may not read that itself; see [`copied`](Self::copied).
    original: Option<Arc<File>>,
}

/// The most that is copied of a file, in bytes.
const MAX_COPY_BYTES: u64 = 1 << 30;

impl RegularFile {
    /// Opens the regular file at `path`.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        // Looked up first (`O_PATH`) and only then opened, so that nothing but a regular file is opened even if
        // the path is replaced in between.
        let found = open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        Self::reopen(found.as_fd())
    }

    /// Whether the file may have been there at a time.
    pub(crate) fn existed(&self, at: SystemTime) -> bool {
        existed(self.born, at, SystemTime::now())
    }

    /// Opens the regular file at `path` as seen by a process with the root directory `root`: links
    /// resolve as they would for that process and never leave the directory.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be read.
    pub fn open_within(root: &Path, path: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(root, flags, Mode::empty())?;
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        Self::open_at(root.as_fd(), path, within)
    }

    /// Opens the regular file `name` in a directory, without following a link.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be read.
    pub fn open_entry(directory: BorrowedFd<'_>, name: &OsStr) -> io::Result<Self> {
        let strictly = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        Self::open_at(directory, Path::new(name), strictly)
    }

    /// Opens the regular file at `path` below an open directory. Links may lead elsewhere below it, and nowhere else.
    ///
    /// # Errors
    ///
    /// When there is none, or it cannot be read.
    pub fn open_beneath(directory: BorrowedFd<'_>, path: &Path) -> io::Result<Self> {
        let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        Self::open_at(directory, path, beneath)
    }

    fn open_at(directory: BorrowedFd<'_>, path: &Path, resolve: ResolveFlags) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let found = openat2(directory, path, flags, Mode::empty(), resolve)?;
        Self::reopen(found.as_fd())
    }

    /// Wraps a file that is already open.
    ///
    /// # Errors
    ///
    /// When it is no regular file, or may not be read.
    pub fn opened(file: &File) -> io::Result<Self> {
        Self::reopen(file.as_fd())
    }

    /// Opens the same file again, positioned at its beginning.
    ///
    /// # Errors
    ///
    /// When it can no longer be read.
    pub fn again(&self) -> io::Result<Self> {
        let again = Self::reopen(self.file.as_fd())?;
        Ok(match &self.original {
            None => again,
            Some(_) => Self {
                number: self.number,
                born: self.born,
                original: self.original.clone(),
                ..again
            },
        })
    }

    /// A copy in memory, which all may read who have it: some file systems answer but one user.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or is too large.
    pub fn copied(self) -> io::Result<Self> {
        let written = self.file.metadata()?.modified()?;
        let mut from = io::Read::take(&self.file, MAX_COPY_BYTES + 1);
        let copy = Self::written_in_memory("copy", |memory| match io::copy(&mut from, memory)? {
            0..=MAX_COPY_BYTES => Ok(()),
            _ => Err(io::ErrorKind::FileTooLarge.into()),
        })?;
        // By this a file that was replaced is recognized.
        copy.file.set_modified(written)?;
        Ok(Self {
            number: self.number,
            born: self.born,
            original: Some(Arc::new(self.file)),
            ..copy
        })
    }

    /// The file by which the kernel knows this one: itself, or the one that it is a copy of.
    pub fn known_file(&self) -> &File {
        self.original.as_deref().unwrap_or(&self.file)
    }

    /// A memory file that holds `bytes`.
    ///
    /// # Errors
    ///
    /// When the kernel refuses one.
    pub fn in_memory(name: &str, bytes: &[u8]) -> io::Result<Self> {
        Self::written_in_memory(name, |memory| io::Write::write_all(memory, bytes))
    }

    /// A memory file that holds what `write` writes.
    ///
    /// # Errors
    ///
    /// When the kernel refuses one, or writing fails.
    pub fn written_in_memory(
        name: &str,
        write: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<Self> {
        let memory = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?;
        write(&mut File::from(memory.try_clone()?))?;
        Ok(Self {
            // The age of the memory file says nothing about its contents.
            born: None,
            ..Self::reopen(memory.as_fd())?
        })
    }

    fn reopen(found: BorrowedFd<'_>) -> io::Result<Self> {
        let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
        let status = statx(found, "", AtFlags::EMPTY_PATH, wanted)?;
        if FileType::from_raw_mode(status.stx_mode.into()) != FileType::RegularFile {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a regular file",
            ));
        }
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let itself = format!("/proc/self/fd/{}", found.as_raw_fd());
        let born = StatxFlags::from_bits_retain(status.stx_mask).contains(StatxFlags::BTIME);
        Ok(Self {
            file: File::from(openat(CWD, itself, flags, Mode::empty())?),
            number: FileNumber {
                major: status.stx_dev_major,
                minor: status.stx_dev_minor,
                inode: status.stx_ino,
            },
            original: None,
            born: born.then_some(()).and_then(|()| {
                let seconds = Duration::from_secs(status.stx_btime.tv_sec.try_into().ok()?);
                let rest = Duration::from_nanos(status.stx_btime.tv_nsec.into());
                SystemTime::UNIX_EPOCH.checked_add(seconds + rest)
            }),
        })
    }
}

/// Whether what was born then was there at a time. What was made in the future was made before the clock was set back: when, nobody
/// knows.
fn existed(born: Option<SystemTime>, at: SystemTime, now: SystemTime) -> bool {
    born.is_none_or(|born| born <= at || born > now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn a_file_made_after_it_was_seen_is_another_unless_the_clock_was_set_back() {
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        assert!(existed(None, at(5), at(9)));
        assert!(existed(Some(at(5)), at(5), at(9)));
        assert!(!existed(Some(at(6)), at(5), at(9)));
        assert!(existed(Some(at(10)), at(5), at(9)));
    }

    #[test]
    fn a_file_is_identified() {
        let made = tempfile::NamedTempFile::new().unwrap();
        let opened = RegularFile::open(made.path()).unwrap();
        let status = made.as_file().metadata().unwrap();
        assert_eq!(opened.number.inode, status.ino());
        assert_eq!(
            rustix::fs::makedev(opened.number.major, opened.number.minor),
            status.dev(),
        );
        if let (Some(born), Ok(created)) = (opened.born, status.created()) {
            assert_eq!(born, created);
        }
    }

    #[test]
    fn a_file_that_is_not_regular_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let fifo = directory.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        for path in [
            &fifo,
            directory.path(),
            Path::new("/dev/zero"),
            Path::new("/nowhere"),
        ] {
            assert!(RegularFile::open(path).is_err(), "{path:?}");
        }
    }

    #[test]
    fn a_copy_has_the_number_of_its_original() {
        let made = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(made.path(), "hello").unwrap();
        let opened = RegularFile::open(made.path()).unwrap();
        let (number, born) = (opened.number, opened.born);
        let written = |file: &File| file.metadata().unwrap().modified().unwrap();
        let before = written(&opened.file);
        let copy = opened.copied().unwrap().again().unwrap();
        assert_eq!((copy.number, copy.born), (number, born));
        assert_eq!(written(&copy.file), before);
        assert_eq!(copy.known_file().metadata().unwrap().ino(), number.inode);
        assert_eq!(io::read_to_string(copy.file).unwrap(), "hello");
    }

    #[test]
    fn a_file_in_memory_reads_back() {
        let memory = RegularFile::in_memory("test", b"hello").unwrap();
        assert_eq!(io::read_to_string(memory.file).unwrap(), "hello");
    }
}
