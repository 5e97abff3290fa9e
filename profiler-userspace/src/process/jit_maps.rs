//! Finds a runtime's perf map and jitdump, and decides whether to trust them.
//!
//! In: a process with executable memory that no file holds. Out: the open file `/tmp/perf-PID.map` in its own
//! root directory, under its PID in its own namespace, and the jitdumps it has mapped. Never follows a link
//! out of the process's root directory, nor one to the map itself, and never accepts a map that another user
//! wrote or that is older than the process.
//!
//! Directory and file are opened while the process lives, so that they are still readable when it and its
//! mounts have gone.

use super::backing::Backings;
use super::liveness::Liveness;
use super::mappings::{Process, Reading};
use super::shortage::most_code_maps;
use super::status::Status;
use super::{BackingId, MappedFile, Owner, ProcessKey};
use crate::object::RegularFile;
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::time::{ClockId, clock_gettime};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::sync::OnceLock;
use std::time::Duration;

/// How much older than its process a file may seem: file timestamps are coarse.
const SLACK: Duration = Duration::from_secs(2);

/// Where one process writes its map.
#[derive(Debug)]
struct MapPath {
    /// The `/tmp` of the process.
    directory: OwnedFd,
    /// `perf-PID.map`, by the innermost PID.
    name: OsString,
    /// The owners of the process: real, effective, saved and file-system user.
    users: Vec<u32>,
}

/// Place of one process's map, and the map if there is one.
#[derive(Debug)]
struct MapLookup {
    place: MapPath,
    map: Option<RegularFile>,
}

/// The maps of all processes that were seen to compile code.
#[derive(Debug, Default)]
pub(super) struct JitMaps {
    found: HashMap<ProcessKey, MapLookup>,
    /// The most that are kept open; set when the first one is.
    most: OnceLock<usize>,
    /// Processes beyond that limit: their maps can be read only while they run.
    turned_away: HashSet<ProcessKey>,
}

impl JitMaps {
    /// Closes the files of a process.
    pub(super) fn remove(&mut self, process_key: ProcessKey) {
        self.found.remove(&process_key);
    }

    /// The perf map of a process, as it is now.
    pub(super) fn open(&self, process_key: ProcessKey, liveness: &Liveness) -> Option<RegularFile> {
        if let Some(found) = self.found.get(&process_key) {
            // A process that still writes has a path to it; a map without a path is as it was left.
            let now = found.place.open(process_key);
            return now.or_else(|| found.map.as_ref()?.again().ok());
        }
        let place = liveness
            .is_there(process_key)
            .then(|| MapPath::of(process_key.tgid))??;
        place.open(process_key)
    }

    /// Looks for the map of a process whose mappings were just read, if it compiles code.
    pub(super) fn look_if_made(
        &mut self,
        process_key: ProcessKey,
        reading: &Reading,
        backings: &Backings,
    ) {
        let mut mappings = reading.mappings.iter();
        if mappings.any(|mapping| backings.get(mapping.backing).may_be_made()) {
            self.look(process_key);
        }
    }

    /// Looks for the map of a running process.
    fn look(&mut self, process_key: ProcessKey) {
        if let Some(found) = self.found.get_mut(&process_key) {
            if found.map.is_none() {
                found.map = found.place.open(process_key);
            }
            return;
        }
        if self.found.len() >= *self.most.get_or_init(most_code_maps) {
            self.turned_away.insert(process_key);
        } else if let Some(place) = MapPath::of(process_key.tgid) {
            let map = place.open(process_key);
            self.found.insert(process_key, MapLookup { place, map });
        }
    }

    /// How many processes were beyond the limit.
    pub(super) fn turned_away(&self) -> usize {
        self.turned_away.len()
    }
}

impl MapPath {
    fn of(tgid: u32) -> Option<Self> {
        let status = Status::of(tgid)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(format!("/proc/{tgid}/root"), flags, Mode::empty()).ok()?;
        let within = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        Some(Self {
            directory: openat2(root, "tmp", flags, Mode::empty(), within).ok()?,
            name: format!("perf-{}.map", status.own_id().unwrap_or(tgid)).into(),
            users: status.numbers("Uid:")?,
        })
    }

    /// The map, if it exists and can be trusted.
    fn open(&self, process_key: ProcessKey) -> Option<RegularFile> {
        let map = RegularFile::open_entry(self.directory.as_fd(), &self.name).ok()?;
        let status = map.file.metadata().ok()?;
        let by_them = status.uid() == 0 || self.users.contains(&status.uid());
        let changed = Duration::from_secs(u64::try_from(status.ctime()).unwrap_or(0));
        (by_them && !is_older(changed, process_key)).then_some(map)
    }
}

/// Whether a file with this modification time (since 1970) is older than the process: then it belongs to an
/// earlier process with the same PID.
fn is_older(changed: Duration, process_key: ProcessKey) -> bool {
    // Zero if the kernel does not say.
    if process_key.incarnation == 0 {
        return false;
    }
    let age = now(ClockId::Boottime).saturating_sub(Duration::from_nanos(process_key.incarnation));
    changed + SLACK < now(ClockId::Realtime).saturating_sub(age)
}

fn now(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    let seconds = Duration::from_secs(u64::try_from(now.tv_sec).unwrap_or(0));
    seconds + Duration::from_nanos(u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// The jitdumps that a process has mapped, the latest first.
pub(super) fn jitdumps(
    process_key: ProcessKey,
    process: &Process,
    backings: &Backings,
) -> Vec<(BackingId, Owner)> {
    let mut dumps: Vec<(BackingId, Owner)> = Vec::new();
    for reading in process.readings.iter().rev() {
        for mapping in &reading.mappings {
            let file = backings.get(mapping.backing).file();
            let is_dump = file.is_some_and(MappedFile::is_jitdump);
            if is_dump && !dumps.iter().any(|(known, _)| *known == mapping.backing) {
                let owner = Owner::new(process_key, mapping.range.clone(), reading.taken);
                dumps.push((mapping.backing, owner));
            }
        }
    }
    dumps
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::CWD;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    const USER: u32 = 4_000_000;

    fn place(directory: &Path, users: &[u32]) -> MapPath {
        MapPath {
            directory: open(directory, OFlags::PATH, Mode::empty()).unwrap(),
            name: "perf-7.map".into(),
            users: users.to_vec(),
        }
    }

    fn ourselves() -> Vec<u32> {
        vec![rustix::process::geteuid().as_raw()]
    }

    /// A process that began now, but for so many seconds.
    fn born(ago: u64) -> ProcessKey {
        let began = now(ClockId::Boottime).saturating_sub(Duration::from_secs(ago));
        ProcessKey::new(7, u64::try_from(began.as_nanos()).unwrap().max(1))
    }

    #[test]
    fn a_perf_map_of_the_same_user_is_taken() {
        let tmp = tempfile::tempdir().unwrap();
        assert!(place(tmp.path(), &ourselves()).open(born(9)).is_none());
        fs::write(tmp.path().join("perf-7.map"), "1 1 f\n").unwrap();
        assert!(place(tmp.path(), &ourselves()).open(born(9)).is_some());
        let unknown = ProcessKey::new(7, 0);
        assert!(place(tmp.path(), &ourselves()).open(unknown).is_some());
    }

    #[test]
    fn another_users_perf_map_is_ignored() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let tmp = tempfile::tempdir().unwrap();
        let path = tmp.path().join("perf-7.map");
        fs::write(&path, "1 1 f\n").unwrap();
        std::os::unix::fs::chown(&path, Some(USER), None).unwrap();
        assert!(place(tmp.path(), &ourselves()).open(born(9)).is_none());
        assert!(place(tmp.path(), &[1, USER]).open(born(9)).is_some());
        std::os::unix::fs::chown(&path, Some(0), None).unwrap();
        assert!(place(tmp.path(), &[1, USER]).open(born(9)).is_some());
    }

    #[test]
    fn a_perf_map_older_than_the_process_is_ignored() {
        let ago = |seconds| now(ClockId::Realtime) - Duration::from_secs(seconds);
        assert!(!is_older(ago(0), born(0)));
        assert!(is_older(ago(10), born(5)));
        assert!(!is_older(ago(5), born(10)));
    }

    #[test]
    fn symbolic_links_and_special_files_are_not_taken_as_perf_maps() {
        let tmp = tempfile::tempdir().unwrap();
        let (real, path) = (tmp.path().join("real"), tmp.path().join("perf-7.map"));
        fs::write(&real, "1 1 f\n").unwrap();
        symlink("real", &path).unwrap();
        assert!(place(tmp.path(), &ourselves()).open(born(9)).is_none());
        fs::remove_file(&path).unwrap();
        let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::RUSR);
        rustix::fs::mknodat(CWD, &path, kind, mode, 0).unwrap();
        assert!(place(tmp.path(), &ourselves()).open(born(9)).is_none());
    }

    #[test]
    fn the_directory_and_users_of_a_process_are_read() {
        let place = MapPath::of(std::process::id()).unwrap();
        assert!(place.users.contains(&ourselves()[0]));
        let name = place.name.into_string().unwrap();
        assert!(name.starts_with("perf-") && name.ends_with(".map"));
        assert!(MapPath::of(u32::MAX).is_none());
    }
}
