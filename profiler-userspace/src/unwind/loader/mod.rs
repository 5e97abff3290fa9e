//! Which files need unwind tables: those of the targets before sampling begins, those of new processes, and those that walks
//! come to and do not know.
//!
//! In: processes, and files that the kernel half does not know. Out: jobs for the workers. Each file is opened once; one that
//! cannot be opened is tried again when it is met again. Never names the kernel: it is given a [`TableStore`].

mod cache;
mod queue;
mod store;
mod worker;

pub(crate) use cache::Loaded;
pub(crate) use queue::Priority;
pub use store::{CodeKeys, CodeSegment, TableStore};

pub(crate) use super::Depth;

use crate::object::{FileNumber, RegularFile};
use crate::process::{
    Backing, BackingId, MappedAddress, MappedFile, Moved, Owner, ProcessKey, Processes, vdso,
};
use foldhash::{HashMap, HashSet};
use profiler_common::abi::CodeKey;
use queue::{CodeCopy, QueuedWork};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};
use worker::Workers;

/// Decides whose tables are loaded, and when.
pub(crate) struct TableLoader<S: TableStore> {
    workers: Workers<S>,
    /// Files that were opened.
    opened: HashSet<FileNumber>,
    /// Memory with text of files that is known, by its key and its place there.
    copies: HashSet<(CodeKey, u64)>,
}

impl<S: TableStore> TableLoader<S> {
    /// Starts the workers.
    ///
    /// # Errors
    /// The system has no thread to spare.
    pub(crate) fn start(store: S, keys: &mut impl CodeKeys) -> std::io::Result<Self> {
        let loader = Self {
            workers: Workers::start(store)?,
            opened: HashSet::default(),
            copies: HashSet::default(),
        };
        loader.load_vdso(keys);
        Ok(loader)
    }

    /// The code that the kernel maps into every process.
    fn load_vdso(&self, keys: &mut impl CodeKeys) {
        let key = vdso::mapping().and_then(|mapping| keys.code_key_at(mapping.start));
        if let (Some(key), Some(image)) = (key, vdso::image()) {
            self.workers.push(
                Priority::High,
                key,
                image.file,
                QueuedWork::Table(Depth::Code, Vec::new()),
            );
        }
    }

    /// Loads the tables of these tasks, and of files that will be mapped soon; returns when all are in place.
    pub(crate) fn prepare<'a>(
        &mut self,
        keys: &mut impl CodeKeys,
        ids: &[u32],
        files: impl Iterator<Item = &'a Path>,
        depth: Depth,
    ) {
        for &id in ids {
            self.load_running(keys, id, depth, |_| true);
        }
        for opened in files.filter_map(|path| RegularFile::open(path).ok()) {
            self.load(
                keys,
                Priority::High,
                &opened,
                QueuedWork::Table(depth, Vec::new()),
            );
        }
        self.workers.wait_until_idle(None);
    }

    /// Loads the tables of those files of these processes that are wanted, the first processes first, and returns when they are in
    /// place, but no later than at the deadline.
    pub(crate) fn prepare_until(
        &mut self,
        keys: &mut impl CodeKeys,
        pids: &[u32],
        is_wanted: impl Fn(&MappedFile) -> bool,
        deadline: Instant,
    ) {
        self.workers.set_preparing(true);
        for &pid in pids {
            if Instant::now() >= deadline {
                break;
            }
            self.load_running(keys, pid, Depth::Outline, &is_wanted);
        }
        self.wait_until(deadline);
    }

    /// Returns when all that was asked for is in place, but no later than at the deadline. Nothing is sampled meanwhile.
    pub(crate) fn wait_until(&self, deadline: Instant) {
        self.workers.set_preparing(true);
        self.workers.wait_until_idle(Some(deadline));
        self.workers.set_preparing(false);
    }

    /// Limits what is loaded to this share of one CPU from now on.
    pub(crate) fn limit(&self, share: f64) {
        self.workers.limit(share);
    }

    /// Has tables take no more memory in the kernel than now: others make room for new ones.
    pub(crate) fn stop_growing(&self) {
        self.workers.stop_growing();
    }

    /// The CPU time that loading has taken.
    pub(crate) fn spent(&self) -> Duration {
        self.workers.spent()
    }

    /// Whether all that was asked for is in place.
    pub(crate) fn is_idle(&self) -> bool {
        self.workers.is_idle()
    }

    /// Loads those files that a running task maps and that are wanted.
    fn load_running(
        &mut self,
        keys: &mut impl CodeKeys,
        id: u32,
        depth: Depth,
        is_wanted: impl Fn(&MappedFile) -> bool,
    ) {
        let mut processes = Processes::new();
        let process_key = ProcessKey::new(id, 0);
        processes.see(process_key);
        self.load_mapped(
            keys,
            (&processes, process_key),
            (Priority::Low, depth),
            is_wanted,
        );
    }

    /// Loads what a process that was seen maps. Says whether any of that was not loaded before.
    pub(crate) fn load_process(
        &mut self,
        keys: &mut impl CodeKeys,
        processes: &Processes,
        process_key: ProcessKey,
    ) -> bool {
        let before = self.opened.len();
        let soon = (Priority::High, Depth::Outline);
        self.load_mapped(keys, (processes, process_key), soon, |_| true);
        self.opened.len() > before
    }

    fn load_mapped(
        &mut self,
        keys: &mut impl CodeKeys,
        (processes, process_key): (&Processes, ProcessKey),
        (priority, depth): (Priority, Depth),
        is_wanted: impl Fn(&MappedFile) -> bool,
    ) {
        for (file, backing, mapping) in processes.code_files(process_key) {
            if is_wanted(file)
                && !self.opened.contains(&file.number)
                && let Some(opened) = open(processes, (process_key, mapping), backing)
                && self.load(
                    keys,
                    priority,
                    &opened,
                    QueuedWork::Table(depth, Vec::new()),
                )
            {
                self.opened.insert(file.number);
            }
        }
    }

    /// Has memory that holds text of files walked by their tables.
    pub(crate) fn load_moved(
        &mut self,
        keys: &mut impl CodeKeys,
        processes: &Processes,
        process_key: ProcessKey,
    ) {
        let Some(process) = processes.get(process_key) else {
            return;
        };
        for text in process.moved_text() {
            let owner = Owner::new(process_key, text.range.clone(), SystemTime::now());
            let ProcessKey { tgid, incarnation } = process_key;
            let place = match text.moved {
                Moved::Anonymous => {
                    let start = text.range.start;
                    Some((CodeKey::of_memory(tgid, incarnation, start), start))
                }
                Moved::Shared(offset) => { processes.open_shared_memory(&owner) }
                    .and_then(|memory| Some((keys.code_key(&memory.file)?, offset))),
            };
            let Some((key, start)) = place.filter(|place| self.copies.insert(*place)) else {
                continue;
            };
            let copy = CodeCopy {
                key,
                range: start..start + (text.range.end - text.range.start),
                offset: text.offset,
            };
            if let Ok(opened) = processes.open(text.backing, &[owner]) {
                self.load(keys, Priority::High, &opened.file, QueuedWork::Copy(copy));
            }
        }
    }

    /// Loads the code that walks came to and did not know.
    pub(crate) fn load_met(
        &mut self,
        keys: &mut impl CodeKeys,
        processes: &mut Processes,
        met: &[(ProcessKey, u64)],
    ) {
        let wanted = |positions| QueuedWork::Table(Depth::Outline, positions);
        self.read_more(keys, processes, met, Priority::High, wanted);
    }

    /// Has the descriptions read of code that walks came to and that the tables of their files leave out so far.
    pub(crate) fn read_descriptions(
        &mut self,
        keys: &mut impl CodeKeys,
        processes: &mut Processes,
        met: &[(ProcessKey, u64)],
    ) {
        self.read_more(
            keys,
            processes,
            met,
            Priority::High,
            QueuedWork::Descriptions,
        );
    }

    /// Has the functions read that walks came to and that the tables of their files leave out. Walks go on without.
    pub(crate) fn read_functions(
        &mut self,
        keys: &mut impl CodeKeys,
        processes: &mut Processes,
        met: &[(ProcessKey, u64)],
    ) {
        self.read_more(keys, processes, met, Priority::Low, QueuedWork::Functions);
    }

    fn read_more(
        &self,
        keys: &mut impl CodeKeys,
        processes: &mut Processes,
        met: &[(ProcessKey, u64)],
        priority: Priority,
        wanted: impl Fn(Vec<u64>) -> QueuedWork,
    ) {
        let mut files: HashMap<BackingId, (ProcessKey, Range<u64>, Vec<u64>)> = HashMap::default();
        for &(process_key, address) in met {
            for place in places(processes, process_key, address) {
                let none_yet = || (process_key, place.mapping, Vec::new());
                let file = files.entry(place.backing).or_insert_with(none_yet);
                file.2.push(place.offset);
            }
        }
        for (backing, (process_key, mapping, positions)) in files {
            if let Backing::Vdso = processes.backing(backing) {
                self.load_vdso(keys);
                continue;
            }
            let Some(opened) = open(processes, (process_key, mapping), backing) else {
                continue;
            };
            self.load(keys, priority, &opened, wanted(positions));
        }
    }

    /// Loads the table of a file of which it is known what the kernel half knows it by.
    pub(crate) fn load_known(&self, key: CodeKey, opened: &RegularFile) {
        if let Ok(file) = opened.file.try_clone() {
            self.workers.push(
                Priority::High,
                key,
                file,
                QueuedWork::Table(Depth::Outline, Vec::new()),
            );
        }
    }

    fn load(
        &self,
        keys: &mut impl CodeKeys,
        priority: Priority,
        opened: &RegularFile,
        wanted: QueuedWork,
    ) -> bool {
        let (Some(key), Ok(file)) = (keys.code_key(opened.known_file()), opened.file.try_clone())
        else {
            return false;
        };
        self.workers.push(priority, key, file, wanted);
        true
    }

    /// Totals of what has been loaded by now.
    pub(crate) fn loaded(&self) -> Loaded {
        self.workers.loaded()
    }
}

/// The mappings of a process at an address: where there were several, one after the other, any may be meant.
fn places(processes: &mut Processes, process_key: ProcessKey, address: u64) -> Vec<MappedAddress> {
    let places = |processes: &Processes| {
        let process = processes.get(process_key);
        process.map_or_else(Vec::new, |process| process.places(address))
    };
    let known = places(processes);
    if !known.is_empty() {
        return known;
    }
    processes.look(process_key);
    places(processes)
}

/// Opens the file of a mapping.
fn open(
    processes: &Processes,
    (process_key, mapping): (ProcessKey, Range<u64>),
    backing: BackingId,
) -> Option<RegularFile> {
    let owner = Owner::new(process_key, mapping, SystemTime::now());
    match processes.backing(backing) {
        // Known as code that has no table, it is walked as other memory is.
        Backing::Memory { .. } => processes.open_shared_memory(&owner),
        _ => Some(processes.open(backing, &[owner]).ok()?.file),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
