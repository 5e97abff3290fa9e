//! Opens the file behind a mapping: that very file, or none.
//!
//! In: a mapped file and the processes that map it. Out: the open file. The path may lead to another file by
//! now: the file was deleted or replaced, or the process sees other mounts. So the inode is compared with
//! that of the mapping, and the file's age with the time when the mapping was seen.

use super::liveness::Liveness;
use super::patience::Patience;
use super::{MappedFile, ProcessKey};
use crate::object::{FileNumber, RegularFile};
use profiler_common::abi::CodeKey;
use rustix::fs::{Gid, Uid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// How many processes are tried for one file. All of them map the same one, so more help only if the first
/// have ended.
const MAX_ASKED: usize = 16;

/// A process that maps the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Which process.
    pub process_key: ProcessKey,
    /// Where the file is mapped.
    pub mapping: Range<u64>,
    /// When that was seen.
    pub seen: SystemTime,
}

impl Owner {
    /// This process, with the file mapped there at that time.
    pub fn new(process_key: ProcessKey, mapping: Range<u64>, seen: SystemTime) -> Self {
        Self {
            process_key,
            mapping,
            seen,
        }
    }
}

/// A file that was mapped.
#[derive(Debug)]
pub struct Opened {
    /// The file.
    pub file: RegularFile,
    /// The root directory in which the file, and what belongs to it, was found.
    pub root: PathBuf,
}

impl Opened {
    /// A memory file of ours.
    pub fn ours(file: RegularFile) -> Self {
        Self {
            file,
            root: PathBuf::from("/"),
        }
    }
}

/// Why a file was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// It is nowhere any more, or another file has its path.
    Gone,
    /// It is there, and we may not read it.
    Denied,
}

impl Unreachable {
    /// The reason in an error.
    fn new(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Gone,
        }
    }
}

/// Looks for a file where its owners have it. `code`: what the kernel half knows it by, if it reported it.
pub(super) fn reach(
    file: &MappedFile,
    owners: &[Owner],
    code: Option<CodeKey>,
    liveness: &Liveness,
) -> Result<Opened, Unreachable> {
    let current = || {
        let is_latest = |owner: &&Owner| liveness.is_latest(owner.process_key);
        owners.iter().filter(is_latest).take(MAX_ASKED)
    };
    let ours = || under_root(file, Path::new("/"));
    let theirs = |owner: &Owner| {
        let root = format!("/proc/{}/root", owner.process_key.tgid);
        under_root(file, Path::new(&root))
    };
    let exact = || {
        ours().and_then(|opened| match opened.file.number == file.number {
            true => Ok(opened),
            false => Err(Unreachable::Gone),
        })
    };
    let mut denied = false;
    let mut found = |result: Result<Opened, Unreachable>| {
        denied |= matches!(result, Err(Unreachable::Denied));
        result.ok()
    };
    let theirs_as_owner = |owner: &Owner| {
        let opened = as_owner(owner.process_key.tgid, &file.path);
        let (opened, root) = opened.ok_or(Unreachable::Denied)?;
        same(file, opened, &root)
    };
    let opened = found(exact())
        .or_else(|| current().find_map(|owner| found(theirs(owner))))
        .or_else(|| current().find_map(|owner| found(through_mapping(file, owner))))
        .or_else(|| ours().ok());
    let opened = match opened {
        None if denied => current()
            .next()
            .and_then(|owner| theirs_as_owner(owner).ok()),
        opened => opened,
    };
    match opened {
        Some(opened) if code.is_none_or(|code| has_its_age(&opened, code)) => Ok(opened),
        None if denied => Err(Unreachable::Denied),
        _ => Err(Unreachable::Gone),
    }
}

/// The file at its path in `root`, if it is still the same.
fn under_root(file: &MappedFile, root: &Path) -> Result<Opened, Unreachable> {
    if file.deleted {
        return Err(Unreachable::Gone);
    }
    let opened = RegularFile::open_within(root, &file.path);
    same(
        file,
        opened.map_err(|error| Unreachable::new(&error))?,
        root,
    )
}

/// A file that was opened in `root`, if it is the mapped one.
fn same(file: &MappedFile, opened: RegularFile, root: &Path) -> Result<Opened, Unreachable> {
    if !is_same(file.number, opened.number) {
        return Err(Unreachable::Gone);
    }
    let root = root.to_owned();
    Ok(Opened { file: opened, root })
}

/// Whether a file that was opened is still where it was, and anybody finds it there.
pub(super) fn is_in_place(file: &MappedFile, opened: &Opened) -> bool {
    let again = || under_root(file, Path::new("/"));
    opened.root == Path::new("/") && again().is_ok_and(|it| it.file.number == opened.file.number)
}

/// The file as the kernel holds it for the mapping, whatever became of its path.
fn through_mapping(file: &MappedFile, owner: &Owner) -> Result<Opened, Unreachable> {
    let held = held(owner).map_err(|error| Unreachable::new(&error))?;
    let root = format!("/proc/{}/root", owner.process_key.tgid);
    same(file, held, Path::new(&root))
}

/// The nameless file as which the kernel holds shared memory; none if the mapping is the process's own.
pub(super) fn shared_memory(owner: &Owner, liveness: &Liveness) -> Option<RegularFile> {
    let is_current = liveness.is_latest(owner.process_key);
    is_current.then(|| held(owner).ok()).flatten()
}

/// The file that the kernel holds for a mapping.
fn held(owner: &Owner) -> io::Result<RegularFile> {
    let Range { start, end } = owner.mapping;
    let tgid = owner.process_key.tgid;
    RegularFile::open(Path::new(&format!(
        "/proc/{tgid}/map_files/{start:x}-{end:x}"
    )))
}

/// How long the owner's file system may take for its files in an hour. It may be any program of that user's.
static PATIENCE: Patience = Patience::an_hour(3000, 3000, 0);

/// A copy of the file at a path as a process has it, and the root directory of that: opened as the process's user, where not
/// even root may read it. None if that does not work either, or takes too long.
pub(super) fn as_owner(tgid: u32, path: &Path) -> Option<(RegularFile, PathBuf)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let root = PathBuf::from(format!("/proc/{tgid}/root"));
    let (within, path) = (root.clone(), path.to_owned());
    // The thread alone becomes that user, and ends as such.
    let opened = PATIENCE.wait("as-owner", move || {
        become_owner(tgid)?;
        RegularFile::open_within(&within, &path)?.copied()
    });
    Some((opened.ok()?.ok()?, root))
}

/// Makes this thread act for the user of a process.
fn become_owner(tgid: u32) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let status = std::fs::metadata(format!("/proc/{tgid}"))?;
    let (user, group) = (Uid::from_raw(status.uid()), Gid::from_raw(status.gid()));
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    Ok(set_thread_res_uid(user, user, user)?)
}

/// Whether a file was last written at the same time as the one of the mapping event.
fn has_its_age(opened: &Opened, code: CodeKey) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    opened.file.file.metadata().is_ok_and(|status| {
        let (seconds, rest) = (status.mtime(), status.mtime_nsec());
        // Seconds and nanoseconds combined as in the kernel half.
        (seconds as u64) << 30 | rest as u64 == code.modified
    })
}

/// Whether a file that was found is the mapped one. btrfs and overlayfs show different devices in `maps` and
/// in `stat`, so only inodes are compared; two files under one path, on different devices, with the same
/// inode look the same.
fn is_same(mapped: FileNumber, found: FileNumber) -> bool {
    mapped.inode == found.inode
}

#[cfg(test)]
#[expect(clippy::print_stdout, reason = "tests say what they skip")]
mod tests {
    use super::super::{BackingId, Processes, proc_maps};
    use super::*;
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::symlink;
    use std::process::{Child, Command};
    use std::time::Duration;

    /// A sleeping program, at a path the test may change.
    struct SleepingProgram {
        directory: tempfile::TempDir,
        child: Child,
        processes: Processes,
        owner: Owner,
        backing: BackingId,
    }

    impl SleepingProgram {
        fn start() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("nap");
            fs::copy("/bin/sleep", &path).unwrap();
            // Another test may have forked while the copy was being written, and hold it open until its own `exec`.
            let child = loop {
                match Command::new(&path).arg("60").spawn() {
                    Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                        std::thread::yield_now();
                    }
                    started => break started.unwrap(),
                }
            };
            let process_key = ProcessKey::new(child.id(), 1);
            // A program's code is loaded only after its start was reported.
            let (processes, owner, backing) = loop {
                let mut processes = Processes::new();
                processes.see(process_key);
                let place = mapped_code(process_key.tgid, &path)
                    .and_then(|address| processes.get(process_key)?.place(address));
                if let Some(place) = place {
                    let owner = Owner::new(process_key, place.mapping, place.seen);
                    break (processes, owner, place.backing);
                }
                std::thread::yield_now();
            };
            Self {
                directory,
                child,
                processes,
                owner,
                backing,
            }
        }

        fn path(&self) -> PathBuf {
            self.directory.path().join("nap")
        }

        fn open(&self) -> Option<Opened> {
            self.processes
                .open(self.backing, std::slice::from_ref(&self.owner))
                .ok()
        }

        /// The program and its file as these processes saw them.
        fn seen_by(&self, processes: &Processes) -> (Owner, BackingId) {
            let process = processes.get(self.owner.process_key).unwrap();
            let place = process.place(self.owner.mapping.start).unwrap();
            let owner = Owner::new(self.owner.process_key, place.mapping, place.seen);
            (owner, place.backing)
        }

        fn end(&mut self) {
            self.child.kill().unwrap();
            self.child.wait().unwrap();
        }
    }

    impl Drop for SleepingProgram {
        fn drop(&mut self) {
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }

    /// The address of the program's code in a process.
    fn mapped_code(tgid: u32, path: &Path) -> Option<u64> {
        let maps = fs::read(format!("/proc/{tgid}/maps")).unwrap();
        let mut found = None;
        proc_maps::each_executable(maps.as_slice(), |entry| {
            if entry.name == path.as_os_str().as_encoded_bytes() {
                found = Some(entry.range.start);
            }
            found.is_none()
        })
        .unwrap();
        found
    }

    /// Only privileged users may follow the links of `map_files`.
    fn may_follow_mappings() -> bool {
        let may = rustix::process::geteuid().is_root();
        if !may {
            println!("SKIP: following /proc/PID/map_files needs root");
        }
        may
    }

    #[test]
    fn a_file_is_opened_by_path_while_its_process_runs_and_after() {
        let mut sleeping = SleepingProgram::start();
        assert!(sleeping.open().is_some());
        sleeping.end();
        assert!(sleeping.open().is_some());
    }

    #[test]
    fn a_deleted_file_is_opened_through_its_mapping_only_while_it_runs() {
        let mut sleeping = SleepingProgram::start();
        fs::remove_file(sleeping.path()).unwrap();
        if may_follow_mappings() {
            assert!(sleeping.open().is_some());
        }
        sleeping.end();
        assert!(sleeping.open().is_none());
    }

    #[test]
    fn a_replaced_file_is_not_opened_as_the_mapped_one() {
        let mut sleeping = SleepingProgram::start();
        let other = sleeping.directory.path().join("other");
        fs::copy("/bin/cat", &other).unwrap();
        fs::rename(&other, sleeping.path()).unwrap();
        if may_follow_mappings() {
            let mapped = sleeping.processes.backing(sleeping.backing).file().unwrap();
            let opened = sleeping.open().unwrap().file;
            assert_eq!(opened.number.inode, mapped.number.inode);
        }
        sleeping.end();
        assert!(sleeping.open().is_none());
        fs::remove_file(sleeping.path()).unwrap();
        symlink("/dev/zero", sleeping.path()).unwrap();
        assert!(sleeping.open().is_none());
    }

    #[test]
    fn an_open_file_outlives_its_name_and_its_process() {
        let mut sleeping = SleepingProgram::start();
        let mut processes = Processes::holding_files();
        processes.see(sleeping.owner.process_key);
        let (owner, backing) = sleeping.seen_by(&processes);
        fs::remove_file(sleeping.path()).unwrap();
        sleeping.end();
        for _ in 0..2 {
            let opened = processes.open(backing, std::slice::from_ref(&owner));
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut opened.unwrap().file.file, &mut bytes).unwrap();
            assert!(bytes.starts_with(b"\x7fELF"));
        }
        assert!(sleeping.open().is_none(), "kept by the other alone");
    }

    #[test]
    fn a_deleted_file_is_closed_when_no_process_maps_it() {
        let mut sleeping = SleepingProgram::start();
        let mut processes = Processes::holding_files();
        let process_key = sleeping.owner.process_key;
        processes.see(process_key);
        let (owner, backing) = sleeping.seen_by(&processes);
        let is_open = |processes: &Processes| {
            let opened = processes.open(backing, std::slice::from_ref(&owner));
            opened.is_ok()
        };
        sleeping.end();
        // It may run again.
        processes.close_named();
        assert!(is_open(&processes));
        fs::remove_file(sleeping.path()).unwrap();
        processes.close_named();
        assert!(is_open(&processes), "who mapped it has not been let go");
        processes.remove(process_key);
        assert!(is_open(&processes));
        processes.close_named();
        assert!(!is_open(&processes));
    }

    #[test]
    fn a_file_created_after_the_mapping_is_another_file() {
        let mut sleeping = SleepingProgram::start();
        if sleeping.open().unwrap().file.born.is_none() {
            println!("SKIP: this file system does not remember when a file was made");
            return;
        }
        sleeping.owner.seen -= Duration::from_secs(3600);
        assert!(sleeping.open().is_none());
    }

    #[test]
    fn a_file_is_the_same_if_its_inode_agrees_on_another_device() {
        let number = FileNumber {
            major: 1,
            minor: 2,
            inode: 3,
        };
        assert!(is_same(number, FileNumber { major: 9, ..number }));
        assert!(!is_same(number, FileNumber { inode: 4, ..number }));
    }
}
