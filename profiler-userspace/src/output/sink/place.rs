//! The place of one file, and what is written beside it until it is complete.
//!
//! In: a path as given. Out: the file that it stands for when links are followed, and files beside it.
//! Never: a guess about permissions that a try could settle.

use super::Error;
use crate::caller::User;
use rustix::fs::{FallocateFlags, Gid, Uid};
use rustix::io::Errno;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// As many links behind each other as the kernel follows.
const MAX_LINKS: usize = 40;
/// The mode of a new file, of which the umask takes away.
const NEW_FILE_MODE: u32 = 0o644;
/// Mark in the names of files beside, for whoever finds one after a crash of the machine.
const BESIDE_PREFIX: &str = ".flame-bpf-";

/// Target of a path.
#[derive(Debug)]
pub(super) enum PathTarget {
    /// Our own standard output.
    Stdout,
    /// Something that is written as it is.
    Special,
    /// A file, existing or not, of which this is the name without links.
    File(PathBuf),
}

/// Follows `path` to where a file is or will be. Refuses what can hold no file.
pub(super) fn find(path: &Path) -> Result<PathTarget, Error> {
    let unsuitable = |what, remedy| Error::Unsuitable {
        path: path.to_owned(),
        what,
        remedy,
    };
    let refused = |source| Error::Refused {
        path: path.to_owned(),
        source,
    };
    let directory = || unsuitable("a directory", "name a file in it");

    if path.as_os_str().is_empty() {
        return Err(unsuitable("an empty name", "name a file"));
    }
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return Err(directory());
    }
    let mut file = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Some(found) = descriptor(&file) {
            return Ok(found);
        }
        let Some(name) = file.file_name() else {
            return Err(directory());
        };
        let parent = parent(&file);
        let place = match fs::canonicalize(parent) {
            Ok(parent) => parent.join(name),
            Err(reason) if reason.kind() == io::ErrorKind::NotFound => {
                return Err(Error::NoDirectory {
                    path: path.to_owned(),
                    directory: parent.to_owned(),
                });
            }
            Err(reason) => return Err(refused(reason)),
        };
        let kind = match fs::symlink_metadata(&place) {
            Ok(metadata) => metadata.file_type(),
            Err(reason) if reason.kind() == io::ErrorKind::NotFound => {
                return Ok(PathTarget::File(place));
            }
            Err(reason) => return Err(refused(reason)),
        };
        if kind.is_symlink() {
            let link = fs::read_link(&place).map_err(refused)?;
            file = parent.join(link);
        } else if kind.is_file() {
            return Ok(PathTarget::File(place));
        } else if kind.is_dir() {
            return Err(directory());
        } else if kind.is_block_device() {
            return Err(unsuitable("a disk or part of one", "name a file"));
        } else if kind.is_socket() {
            return Err(unsuitable("a socket", "name a file"));
        } else {
            return Ok(PathTarget::Special);
        }
    }
    Err(unsuitable("a link in a circle", "name a file"))
}

/// Whether `path` is one of the names for an open descriptor. Those look like links to files, but
/// the file behind them must not be replaced: whoever opened it would never see the new one.
fn descriptor(path: &Path) -> Option<PathTarget> {
    if path == Path::new("/dev/stdout") {
        return Some(PathTarget::Stdout);
    }
    let number = path.file_name()?.to_str()?.parse::<u32>().ok()?;
    let directory = path.parent()?;
    let ours = directory == Path::new("/dev/fd") || directory == Path::new("/proc/self/fd");
    match (ours, number) {
        (true, 1) => Some(PathTarget::Stdout),
        (true, _) => Some(PathTarget::Special),
        (false, _) => (directory.starts_with("/proc") && directory.ends_with("fd"))
            .then_some(PathTarget::Special),
    }
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Where one file goes.
#[derive(Debug)]
pub(super) struct FileDestination {
    file: PathBuf,
    owner: Option<User>,
    /// Whether a file that is there already is kept, with `.old` behind its name.
    pub(super) keeps_old: bool,
}

impl FileDestination {
    pub(super) fn new(file: PathBuf, owner: Option<User>) -> Self {
        Self {
            file,
            owner,
            keeps_old: false,
        }
    }

    /// Tries what [`Self::create`] and [`Self::replace`] will do, and undoes it.
    pub(super) fn probe(&self) -> io::Result<()> {
        let Some(existing) = self.existing()? else {
            let beside = self.create()?;
            reserve(beside.as_file())?;
            return beside.close();
        };
        // A file that may not be written is not ours to replace, even where the directory allows it.
        drop(File::options().write(true).open(&self.file)?);
        let beside = self.create()?;
        // In a directory such as /tmp, only a file's owner, or the directory's, may replace it.
        let directory = fs::metadata(parent(&self.file))?;
        let us = beside.as_file().metadata()?.uid();
        let sticky = directory.mode() & 0o1000 != 0;
        if sticky && us != 0 && us != existing.uid() && us != directory.uid() {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        reserve(beside.as_file())?;
        beside.close()
    }

    /// An empty file beside the place, which vanishes unless it is given to [`Self::replace`].
    pub(super) fn create(&self) -> io::Result<NamedTempFile> {
        // Tempfile's own error names a file that the user has never heard of.
        let mut reason = None;
        let open = |path: &Path| {
            let opened = File::options()
                .write(true)
                .create_new(true)
                .mode(NEW_FILE_MODE)
                .open(path);
            opened.inspect_err(|error| reason = error.raw_os_error())
        };
        let created = tempfile::Builder::new()
            .prefix(BESIDE_PREFIX)
            .make_in(parent(&self.file), open);
        created.map_err(|error| reason.map_or(error, io::Error::from_raw_os_error))
    }

    /// Puts the complete file into the place, with the owner and the mode that it should have.
    pub(super) fn replace(&self, beside: NamedTempFile) -> io::Result<()> {
        let existing = self.existing()?;
        let had_one = existing.is_some();
        let owner = existing
            .as_ref()
            .map(|old| User {
                uid: old.uid(),
                gid: old.gid(),
            })
            .or(self.owner);
        if let Some(User { uid, gid }) = owner {
            // Some file systems know no owners, and without root only the group may change, if that.
            // The profile is worth more than its owner being right.
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            let root = rustix::process::geteuid().is_root();
            let _refused = rustix::fs::fchown(beside.as_file(), root.then_some(uid), Some(gid));
        }
        if let Some(old) = existing {
            beside
                .as_file()
                .set_permissions(Permissions::from_mode(old.mode() & 0o777))?;
        }
        settle(beside.as_file())?;
        if self.keeps_old && had_one {
            keep_old(&self.file);
        }
        beside.persist(&self.file).map_err(|failed| failed.error)?;
        Ok(())
    }

    fn existing(&self) -> io::Result<Option<Metadata>> {
        match fs::metadata(&self.file) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(reason) if reason.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(reason) => Err(reason),
        }
    }
}

/// Refuses a full file system, where it can tell without being written to. How much room a profile takes, nobody knows yet.
fn reserve(file: &File) -> io::Result<()> {
    const BLOCK: u64 = 4096;
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, BLOCK) {
        Err(full @ (Errno::NOSPC | Errno::DQUOT)) => Err(full.into()),
        _ => Ok(()),
    }
}

/// Keeps a file that is about to be replaced, with `.old` behind its name, instead of what had that name. Where that is not
/// possible the new file matters more.
fn keep_old(file: &Path) {
    let mut old = file.as_os_str().to_owned();
    old.push(".old");
    let _there_may_be_none = fs::remove_file(&old);
    // At no moment there is neither file.
    if fs::hard_link(file, &old).is_err() {
        let _may_be_impossible = fs::rename(file, &old);
    }
}

/// Has a file system that only learns later whether there is room say so now.
///
/// Others have reserved the room with each write, and to wait there for the disk would cost the
/// machine that is profiled more than a profile is worth.
fn settle(file: &File) -> io::Result<()> {
    /// NFS, CIFS, SMB2, FUSE, 9p and Ceph, by the numbers in Linux's `magic.h`.
    const REMOTE: [u32; 6] = [
        0x6969,
        0xff53_4d42,
        0xfe53_4d42,
        0x6573_5546,
        0x0102_1997,
        0x00c3_6400,
    ];
    match rustix::fs::fstatfs(file) {
        Ok(system) if REMOTE.contains(&(system.f_type as u32)) => file.sync_data(),
        _ => Ok(()),
    }
}
