//! Which files need unwind tables: those of the targets before sampling begins, those of all running
//! processes in the background, and those that walks come to and do not know.
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
use crate::process::{Backing, BackingId, Owner, ProcessKey, Processes, vdso};
use profiler_common::abi::CodeKey;
use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};
use worker::Workers;

/// Decides whose tables are loaded, and when.
pub(crate) struct TableLoader<S: TableStore> {
    workers: Workers<S>,
    /// Files that were opened.
    opened: HashSet<FileNumber>,
    /// Running processes whose files are still to be loaded, the busiest first.
    waiting: VecDeque<u32>,
}

impl<S: TableStore> TableLoader<S> {
    /// Starts the workers. `on_idle` is called when they have nothing to do and [there are processes
    /// left](Self::has_waiting).
    ///
    /// # Errors
    /// The system has no thread to spare.
    pub(crate) fn start(
        store: S,
        keys: &mut impl CodeKeys,
        on_idle: impl Fn() + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let loader = Self {
            workers: Workers::start(store, Box::new(on_idle))?,
            opened: HashSet::new(),
            waiting: VecDeque::new(),
        };
        loader.load_vdso(keys);
        Ok(loader)
    }

    /// The code that the kernel maps into every process.
    fn load_vdso(&self, keys: &mut impl CodeKeys) {
        let key = vdso::mapping().and_then(|mapping| keys.code_key_at(mapping.start));
        if let (Some(key), Some(image)) = (key, vdso::image()) {
            self.workers
                .push(Priority::High, key, image.file, Depth::Code);
        }
    }

    /// Loads the tables of these tasks, and of files that will be mapped soon; returns when all are in place.
    pub(crate) fn prepare<'a>(
        &mut self,
        keys: &mut impl CodeKeys,
        ids: &[u32],
        files: impl Iterator<Item = &'a Path>,
    ) {
        for &id in ids {
            self.load_running(keys, id, Priority::Low, Depth::Code);
        }
        for opened in files.filter_map(|path| RegularFile::open(path).ok()) {
            self.load(keys, Priority::High, &opened, Depth::Code);
        }
        self.workers.wait_until_idle();
    }

    /// Loads the tables of these processes, the first ones first, and returns when they are in place, but no later than at the
    /// deadline. [`load_in_background`](Self::load_in_background) goes on with the rest.
    pub(crate) fn prepare_until(
        &mut self,
        keys: &mut impl CodeKeys,
        pids: Vec<u32>,
        deadline: Instant,
    ) {
        self.waiting = pids.into();
        self.workers.set_preparing(true);
        while Instant::now() < deadline
            && let Some(pid) = self.waiting.pop_front()
        {
            self.load_running(keys, pid, Priority::Low, Depth::Described);
        }
        self.workers.wait_until(deadline);
        self.workers.set_preparing(false);
    }

    /// Loads the tables of the processes that are left as time permits, one [at a time](Self::load_next).
    pub(crate) fn load_in_background(&mut self) {
        self.workers.notify_when_idle();
    }

    /// Whether processes are left whose tables are to be loaded in the background.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Loads the tables of the next process that waits.
    pub(crate) fn load_next(&mut self, keys: &mut impl CodeKeys) {
        if let Some(pid) = self.waiting.pop_front() {
            self.load_running(keys, pid, Priority::Low, Depth::Described);
            self.workers.notify_when_idle();
        }
    }

    /// Loads what a running task maps.
    fn load_running(
        &mut self,
        keys: &mut impl CodeKeys,
        id: u32,
        priority: Priority,
        depth: Depth,
    ) {
        let mut processes = Processes::new();
        let process_key = ProcessKey {
            tgid: id,
            incarnation: 0,
        };
        processes.see(process_key);
        self.load_process(keys, &processes, process_key, priority, depth);
    }

    /// Loads what a process that was seen maps.
    pub(crate) fn load_process(
        &mut self,
        keys: &mut impl CodeKeys,
        processes: &Processes,
        process_key: ProcessKey,
        priority: Priority,
        depth: Depth,
    ) {
        let code: Vec<_> = processes
            .get(process_key)
            .into_iter()
            .flat_map(|process| process.code())
            .collect();
        for (backing, mapping) in code {
            let Backing::File(file) = processes.backing(backing) else {
                continue;
            };
            if !self.opened.contains(&file.number)
                && self.open(
                    keys,
                    processes,
                    (process_key, mapping),
                    backing,
                    priority,
                    depth,
                )
            {
                self.opened.insert(file.number);
            }
        }
    }

    /// Loads the code that a walk came to and did not know, or that its file's table leaves out.
    pub(crate) fn load_at(
        &mut self,
        keys: &mut impl CodeKeys,
        processes: &mut Processes,
        process_key: ProcessKey,
        address: u64,
        depth: Depth,
    ) {
        let place = |processes: &Processes| processes.get(process_key)?.place(address);
        if place(processes).is_none() {
            processes.look(process_key);
        }
        if let Some(place) = place(processes) {
            // Reading code takes time, and walks go on without.
            let priority = match depth {
                Depth::Described => Priority::High,
                Depth::Code => Priority::Low,
            };
            self.open(
                keys,
                processes,
                (process_key, place.mapping),
                place.backing,
                priority,
                depth,
            );
        }
    }

    fn open(
        &self,
        keys: &mut impl CodeKeys,
        processes: &Processes,
        (process_key, mapping): (ProcessKey, Range<u64>),
        backing: BackingId,
        priority: Priority,
        depth: Depth,
    ) -> bool {
        let owner = Owner {
            process_key,
            mapping,
            seen: SystemTime::now(),
        };
        let opened = match processes.backing(backing) {
            // Known as code that has no table, it is walked as other memory is.
            Backing::Memory { .. } => processes.open_shared_memory(&owner),
            _ => processes.open(backing, &[owner]).map(|opened| opened.file),
        };
        opened.is_some_and(|opened| self.load(keys, priority, &opened, depth))
    }

    /// Loads the table of a file of which it is known what the kernel half knows it by.
    pub(crate) fn load_known(&self, key: CodeKey, opened: &RegularFile) {
        if let Ok(file) = opened.file.try_clone() {
            self.workers
                .push(Priority::High, key, file, Depth::Described);
        }
    }

    fn load(
        &self,
        keys: &mut impl CodeKeys,
        priority: Priority,
        opened: &RegularFile,
        depth: Depth,
    ) -> bool {
        let (Some(key), Ok(file)) = (keys.code_key(&opened.file), opened.file.try_clone()) else {
            return false;
        };
        self.workers.push(priority, key, file, depth);
        true
    }

    /// What has been loaded by now.
    pub(crate) fn loaded(&self) -> Loaded {
        self.workers.loaded()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
