//! Tables of objects that are asked for names again and again.
//!
//! In: open files. Out: what was read of one before and is worth keeping: its symbols in the order of addresses, and where functions begin
//! that no symbol names. A file is known by its number, size and time of change, which nobody can set back; programs that come once take
//! nothing.

use super::symbol_table::Sorted;
use crate::code::Beginnings;
use crate::object::{Elf, SymbolTable};
use foldhash::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// The most memory that all of them take, in bytes; those that were asked for longest ago go first.
const MAX_BYTES: usize = 24 << 20;

/// The most files that are told apart.
const MAX_FILES: usize = 1024;

/// Tables are kept of a file that was asked so many times before.
const QUESTIONS_BEFORE: u32 = 2;

/// Tables with fewer bytes are read as quickly as they are found.
const MIN_BYTES: u64 = 64 << 10;

/// Tables of one file.
#[derive(Debug, Default)]
pub(super) struct CachedFile {
    symbols: OnceLock<Option<Sorted>>,
    dynamic: OnceLock<Option<Sorted>>,
    /// Where functions begin that the file lists.
    pub(super) beginnings: OnceLock<Beginnings>,
}

/// Tables of files.
#[derive(Debug, Default)]
pub(super) struct SymbolCache(Mutex<Files>);

#[derive(Debug, Default)]
struct Files {
    files: HashMap<FileVersion, Entry>,
    /// How many questions there were.
    questions: u64,
}

/// Device, inode, size, and time of change in seconds and nanoseconds. A time of writing may be set to any: names of other code would
/// be those of the file then.
type FileVersion = (u64, u64, u64, i64, i64);

#[derive(Debug, Default)]
struct Entry {
    times: u32,
    /// The number of the last question.
    last: u64,
    tables: Arc<CachedFile>,
}

impl SymbolCache {
    /// Tables of a file; none if it was not asked often.
    pub(super) fn of(&self, file: &File) -> Option<Arc<CachedFile>> {
        let status = file.metadata().ok()?;
        let version = (
            status.dev(),
            status.ino(),
            status.size(),
            status.ctime(),
            status.ctime_nsec(),
        );
        let mut known = self.lock();
        known.questions += 1;
        let now = known.questions;
        let asked = known.files.entry(version).or_default();
        asked.times = asked.times.saturating_add(1);
        asked.last = now;
        let tables = (asked.times > QUESTIONS_BEFORE).then(|| Arc::clone(&asked.tables));
        known.shrink();
        tables
    }

    /// Forgets all.
    pub(super) fn forget(&self) {
        *self.lock() = Files::default();
    }

    fn lock(&self) -> MutexGuard<'_, Files> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files {
    /// Forgets the files that were asked for longest ago, until the rest is within the bounds.
    fn shrink(&mut self) {
        let mut bytes: usize = self.files.values().map(|asked| asked.tables.bytes()).sum();
        while bytes > MAX_BYTES || self.files.len() > MAX_FILES {
            let oldest = self.files.iter().min_by_key(|(_, asked)| asked.last);
            let Some(oldest) = oldest.map(|(version, _)| *version) else {
                return;
            };
            let gone = self.files.remove(&oldest);
            bytes -= gone.map_or(0, |asked| asked.tables.bytes());
        }
    }
}

impl CachedFile {
    /// The symbols of a table of the file's own in the order of addresses; none where that is not worth it. The table is read if it was
    /// not yet.
    pub(super) fn sorted(&self, file: &File, elf: &Elf, table: &SymbolTable) -> Option<&Sorted> {
        let cached = match Some(table) {
            own if own == elf.symbols.as_ref() => &self.symbols,
            own if own == elf.dynamic_symbols.as_ref() => &self.dynamic,
            _ => return None,
        };
        let is_large = table.symbols.end.saturating_sub(table.symbols.start) >= MIN_BYTES;
        let read = || is_large.then(|| Sorted::read(file, elf, table)).flatten();
        cached.get_or_init(read).as_ref()
    }

    /// The memory that it takes, in bytes.
    fn bytes(&self) -> usize {
        let sorted = [&self.symbols, &self.dynamic].into_iter();
        let sorted = sorted.filter_map(|sorted| sorted.get()?.as_ref());
        let beginnings = self.beginnings.get().map_or(0, Beginnings::bytes);
        sorted.map(Sorted::bytes).sum::<usize>() + beginnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::FileExt as _;
    use std::time::Duration;

    /// A file, and its tables if they are kept.
    fn asked(cache: &SymbolCache, file: &File) -> bool {
        cache.of(file).is_some()
    }

    #[test]
    fn tables_are_kept_of_what_is_asked_often_until_it_is_another() {
        let cache = SymbolCache::default();
        let mut file = tempfile::tempfile().unwrap();
        for _ in 0..QUESTIONS_BEFORE {
            assert!(!asked(&cache, &file));
        }
        assert!(asked(&cache, &file));
        file.write_all(b"another").unwrap();
        assert!(!asked(&cache, &file));
        cache.forget();
        assert!(!asked(&cache, &file));
    }

    #[test]
    fn a_file_whose_time_of_writing_is_set_back_is_another() {
        let cache = SymbolCache::default();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"one").unwrap();
        let written = file.metadata().unwrap().modified().unwrap();
        for _ in 0..=QUESTIONS_BEFORE {
            asked(&cache, &file);
        }
        assert!(asked(&cache, &file));
        // Kernels' times have steps.
        std::thread::sleep(Duration::from_millis(20));
        file.write_all_at(b"two", 0).unwrap();
        file.set_modified(written).unwrap();
        assert!(!asked(&cache, &file));
    }

    #[test]
    fn what_is_kept_has_bounds() {
        let cache = SymbolCache::default();
        let often = tempfile::tempfile().unwrap();
        for _ in 0..QUESTIONS_BEFORE {
            asked(&cache, &often);
        }
        for size in 1..2 * MAX_FILES as u64 {
            let file = tempfile::tempfile().unwrap();
            file.set_len(size).unwrap();
            asked(&cache, &file);
            assert!(asked(&cache, &often), "{size}");
        }
        assert_eq!(cache.lock().files.len(), MAX_FILES);
    }

    #[test]
    fn a_large_table_of_the_file_itself_is_sorted_once() {
        let file = File::open("/proc/self/exe").unwrap();
        let elf = Elf::read(&file).unwrap();
        let table = elf.symbols.as_ref().unwrap();
        let of_file = CachedFile::default();
        let sorted = of_file.sorted(&file, &elf, table).unwrap();
        assert!(of_file.bytes() >= sorted.bytes() && sorted.bytes() > 1000);
        let again = of_file.sorted(&file, &elf, table).unwrap();
        assert!(std::ptr::eq(sorted, again));
        let other = SymbolTable {
            symbols: 0..1 << 20,
            names: 0..1,
        };
        assert!(of_file.sorted(&file, &elf, &other).is_none());
    }
}
