//! The folder of a store: a table for each host and hour, and recordings of hours that are not over.
//!
//! In: a folder, hosts, hours. Out: paths, what is there, and room for what comes. A table is `host=H/date=D/HH.parquet`, in UTC; beside it
//! lie the recordings that it is made of, hidden, until it is whole. Never: reads a table or a recording.

use crate::clock::Hour;
use crate::profile::fold::visible;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

/// Extension of tables.
const TABLE: &str = "parquet";

/// Extension of recordings.
const RECORDING: &str = "fbpf";

/// Extension of recordings that nobody can read.
const BROKEN: &str = "broken";

/// How names of files begin that are not whole.
pub const UNFINISHED: &str = ".table-";

/// So deep lie tables in a store: below a host and a date.
const DEPTH: usize = 3;

/// Limits of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The oldest table that is kept.
    pub age: Duration,
    /// Bytes of all that is there of this host; the oldest go first.
    pub bytes: u64,
}

/// Sums of a store, for whoever asks.
#[derive(Debug, Default)]
pub struct Counts {
    /// Tables that were written.
    pub written: AtomicU64,
    /// Windows, or tables, that could not be written.
    pub failed: AtomicU64,
    /// Tables that went because of age or size.
    pub expired: AtomicU64,
    /// Bytes of all that is there.
    pub bytes: AtomicU64,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Table {
    /// Its hour; none if its path does not tell.
    pub hour: Option<Hour>,
    /// Where it is.
    pub path: PathBuf,
}

/// Contents of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// All tables, the oldest first.
    pub tables: Vec<Table>,
    /// Recordings, those of the oldest hour first: what is in no table yet, and perhaps what is in one of its hour.
    pub recordings: Vec<(Hour, PathBuf)>,
}

impl Listing {
    /// That of a folder.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let mut files = Vec::new();
        walk(folder, DEPTH, &mut files)?;
        let tables = files.extract_if(.., |path| is_table(path));
        let tables = tables.map(|path| Table {
            hour: hour(&path),
            path,
        });
        let mut tables: Vec<Table> = tables.collect();
        tables.sort();
        Ok(Self {
            tables,
            recordings: recordings_among(files),
        })
    }
}

fn recordings_among(files: Vec<PathBuf>) -> Vec<(Hour, PathBuf)> {
    let is_recording = |path: &PathBuf| path.extension().is_some_and(|end| end == RECORDING);
    let all = files.into_iter().filter(is_recording);
    let mut recordings: Vec<_> = all.filter_map(|path| Some((hour(&path)?, path))).collect();
    recordings.sort();
    recordings
}

fn is_table(path: &Path) -> bool {
    let is_hidden = name(path).starts_with('.');
    !is_hidden && path.extension().is_some_and(|end| end == TABLE)
}

/// The name of a file in a store.
pub fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// The hour that a path tells of, a table's or a recording's.
fn hour(path: &Path) -> Option<Hour> {
    let date = name(path.parent()?);
    let name = name(path);
    let number = name.trim_start_matches('.').split(['-', '.']).next()?;
    Hour::parse(date.strip_prefix("date=")?, number)
}

/// Adds the files in a folder and those below it.
fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true if depth > 1 => walk(&entry.path(), depth - 1, files)?,
            true => {}
            false => files.push(entry.path()),
        }
    }
    Ok(())
}

/// The folder of a host.
#[derive(Clone, Debug)]
pub struct HostFolder(PathBuf);

impl HostFolder {
    /// That of a host in a store, which is made where it is not there.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn make(store: &Path, host: &str) -> io::Result<Self> {
        let host = visible(host).replace('/', "_");
        let folder = store.join(format!("host={host}"));
        fs::create_dir_all(&folder)?;
        Ok(Self(folder))
    }

    /// The folder of an hour's day.
    pub fn day(&self, hour: Hour) -> PathBuf {
        self.0.join(format!("date={}", hour.date()))
    }

    /// A table of an hour. Only where a recorder has lost its recordings there is more than the first.
    pub fn table(&self, hour: Hour, number: usize) -> PathBuf {
        let behind = match number {
            0 | 1 => String::new(),
            more => format!("-{more}"),
        };
        let name = format!("{}{behind}.{TABLE}", hour.number());
        self.day(hour).join(name)
    }

    /// A recording of an hour, of one that a recorder began at some time, of an event by its number.
    pub fn recording(&self, hour: Hour, began: SystemTime, event: usize) -> PathBuf {
        let began = began.duration_since(SystemTime::UNIX_EPOCH);
        let began = began.unwrap_or_default().as_nanos();
        let name = format!(".{}-{began}-{event}.{RECORDING}", hour.number());
        self.day(hour).join(name)
    }

    /// All recordings, those of the oldest hour first. Removes what was not finished.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn recordings(&self) -> io::Result<Vec<(Hour, PathBuf)>> {
        let mut files = Vec::new();
        walk(&self.0, DEPTH - 1, &mut files)?;
        let unfinished = files.extract_if(.., |path| name(path).starts_with(UNFINISHED));
        unfinished.into_iter().try_for_each(fs::remove_file)?;
        Ok(recordings_among(files))
    }

    /// Gives a recording that nobody can read another name.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn set_aside(recording: &Path) -> io::Result<()> {
        fs::rename(recording, recording.with_extension(BROKEN))
    }

    /// Removes what is older than the limits allow, and the oldest beyond their size. Returns how many tables went, and how many bytes
    /// are there.
    ///
    /// # Errors
    /// When a folder cannot be read, or a file not removed.
    pub fn expire(&self, limits: &Limits, now: SystemTime) -> io::Result<(u64, u64)> {
        let mut files = Vec::new();
        walk(&self.0, DEPTH - 1, &mut files)?;
        let mut all = 0;
        let mut old = Vec::new();
        for path in files {
            let bytes = fs::metadata(&path).map_or(0, |of| of.len());
            all += bytes;
            let is_old = is_table(&path) || path.extension().is_some_and(|end| end == BROKEN);
            if let Some(hour) = hour(&path).filter(|_| is_old) {
                old.push((hour, path, bytes));
            }
        }
        old.sort();
        let mut expired = 0;
        for (hour, path, bytes) in old {
            let age = now.duration_since(hour.end()).unwrap_or_default();
            if age <= limits.age && all <= limits.bytes {
                break;
            }
            fs::remove_file(&path)?;
            all -= bytes;
            expired += u64::from(is_table(&path));
            if let Some(day) = path.parent() {
                // It is removed if it is empty.
                let _others = fs::remove_dir(day);
            }
        }
        Ok((expired, all))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(hours: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_374_000 + hours * 3600)
    }

    fn write(path: &Path, bytes: usize) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, vec![0; bytes]).unwrap();
    }

    #[test]
    fn tables_lie_by_host_date_and_hour_and_are_found_again() {
        let store = tempfile::tempdir().unwrap();
        let folder = HostFolder::make(store.path(), "a/b").unwrap();
        for hours in [30, 2, 1] {
            write(&folder.table(Hour::of(at(hours)), 1), 1);
        }
        write(&folder.recording(Hour::of(at(31)), at(31), 0), 1);
        write(&store.path().join("other.parquet"), 1);
        let found = Listing::of(store.path()).unwrap().tables;
        let shown: Vec<_> = found
            .iter()
            .map(|table| {
                table
                    .path
                    .strip_prefix(store.path())
                    .unwrap()
                    .to_str()
                    .unwrap()
            })
            .collect();
        assert_eq!(
            shown,
            [
                "other.parquet",
                "host=a_b/date=2026-11-22/20.parquet",
                "host=a_b/date=2026-11-22/21.parquet",
                "host=a_b/date=2026-11-24/01.parquet",
            ]
        );
        assert_eq!(found[1].hour, Some(Hour::of(at(1))));
    }

    #[test]
    fn recordings_are_kept_and_what_is_not_finished_is_removed() {
        let store = tempfile::tempdir().unwrap();
        let folder = HostFolder::make(store.path(), "h").unwrap();
        let hour = Hour::of(at(0));
        let all = [0, 1].map(|event| folder.recording(hour, at(0), event));
        all.iter().for_each(|path| write(path, 1));
        let unfinished = folder.day(hour).join(format!("{UNFINISHED}x"));
        write(&unfinished, 1);
        let all = all.map(|path| (hour, path));
        assert_eq!(Listing::of(store.path()).unwrap().recordings, all);
        assert_eq!(folder.recordings().unwrap(), all);
        assert!(!unfinished.exists());
    }

    #[test]
    fn the_oldest_tables_go_by_age_and_by_size() {
        let store = tempfile::tempdir().unwrap();
        let folder = HostFolder::make(store.path(), "h").unwrap();
        for hours in 0..6 {
            write(&folder.table(Hour::of(at(hours)), 1), 100);
        }
        let recording = folder.recording(Hour::of(at(6)), at(6), 0);
        write(&recording, 100);
        let limits = |hours: u64, bytes| Limits {
            age: Duration::from_secs(hours * 3600),
            bytes,
        };
        let expire = |limits| folder.expire(&limits, at(6)).unwrap();
        assert_eq!(expire(limits(100, 1000)), (0, 700));
        assert_eq!(expire(limits(3, 1000)), (2, 500));
        assert_eq!(expire(limits(3, 300)), (2, 300));
        // Recordings that are no table yet are never removed.
        assert_eq!(expire(limits(3, 0)), (2, 100));
        assert!(recording.exists());
    }
}
