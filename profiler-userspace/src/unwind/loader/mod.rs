//! Which files need unwind tables: those of the targets before sampling begins, those of all running
//! processes in the background, and those that walks come to and do not know.
//!
//! In: processes, and what the kernel half tells of code that it does not know. Out: orders to the
//! [`Loader`]. Each file is opened once; one that cannot be opened is tried again when it is met again.

mod cache;
mod queue;
mod worker;

pub(crate) use queue::Need;
pub(crate) use worker::Loaded;

use crate::kernel::Kernel;
use crate::object::{FileNumber, RegularFile};
use crate::process::{Backing, BackingId, Identity, Owner, Processes, vdso};
use crate::targets::needed_libs::linked_with;
use anyhow::{Context as _, Result};
use profiler_common::abi::CodeKey;
use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::Notify;
use worker::Loader;

/// The loading of unwind tables, as the recording steers it.
pub(crate) struct Unwinding {
    loader: Loader,
    /// Files that were opened.
    opened: HashSet<FileNumber>,
    /// Running processes whose turn has yet to come, the busiest first.
    waiting: VecDeque<u32>,
    /// Told by the loader when it has nothing to do.
    idle: Arc<Notify>,
}

impl Unwinding {
    /// Takes the kernel's tables; none if stacks are walked without.
    pub(crate) fn start(kernel: &mut Kernel) -> Result<Option<Self>> {
        let Some(tables) = kernel.take_tables() else {
            return Ok(None);
        };
        let idle = Arc::new(Notify::new());
        let loader = Loader::start(tables, Arc::clone(&idle))
            .context("cannot start the thread that loads unwind tables")?;
        let mut unwinding = Self {
            loader,
            opened: HashSet::new(),
            waiting: VecDeque::new(),
            idle,
        };
        unwinding.load_vdso(kernel);
        Ok(Some(unwinding))
    }

    /// The code that the kernel maps into every process.
    fn load_vdso(&mut self, kernel: &mut Kernel) {
        let key = vdso::mapping().and_then(|mapping| kernel.code_key_at(mapping.start));
        if let (Some(key), Some(image)) = (key, vdso::image()) {
            self.loader.load(Need::Now, key, image.file);
        }
    }

    /// Loads the tables of these tasks and of a command that is about to be run; returns when all are
    /// in place.
    pub(crate) fn prepare(&mut self, kernel: &mut Kernel, ids: &[u32], command: Option<&Path>) {
        for &id in ids {
            self.cover_running(kernel, id);
        }
        if let Some(command) = command {
            let libraries = linked_with(command);
            let files = std::iter::once(command).chain(libraries.iter().map(PathBuf::as_path));
            for opened in files.filter_map(|path| RegularFile::open(path).ok()) {
                self.load(kernel, Need::Now, &opened);
            }
        }
        self.loader.wait();
    }

    /// Loads the tables of all running processes as time permits.
    pub(crate) fn cover_machine(&mut self) {
        self.waiting = crate::targets::tasks::busiest().into();
        self.idle.notify_one();
    }

    /// Returns when the loader has nothing to do and there is a process left to cover; never, if there
    /// is none.
    pub(crate) async fn has_time(&self) {
        if self.waiting.is_empty() {
            std::future::pending::<()>().await;
        }
        self.idle.notified().await;
    }

    /// Covers the next process.
    pub(crate) fn cover_next(&mut self, kernel: &mut Kernel) {
        if let Some(pid) = self.waiting.pop_front() {
            self.cover_running(kernel, pid);
            // The answer to this order is what comes next.
            self.loader.ask_for_notice();
        }
    }

    /// Loads what a running task maps.
    fn cover_running(&mut self, kernel: &mut Kernel, id: u32) {
        let mut processes = Processes::new();
        let identity = Identity {
            tgid: id,
            incarnation: 0,
        };
        processes.see(identity);
        self.cover(kernel, &processes, identity, Need::Later);
    }

    /// Loads what a process that was seen maps.
    pub(crate) fn cover(
        &mut self,
        kernel: &mut Kernel,
        processes: &Processes,
        identity: Identity,
        need: Need,
    ) {
        let code: Vec<_> = processes
            .get(identity)
            .into_iter()
            .flat_map(|process| process.code())
            .collect();
        for (backing, mapping) in code {
            let Backing::File(file) = processes.backing(backing) else {
                continue;
            };
            if !self.opened.contains(&file.number)
                && self.open(kernel, processes, identity, backing, mapping, need)
            {
                self.opened.insert(file.number);
            }
        }
    }

    /// Loads the code that a walk came to and did not know.
    pub(crate) fn cover_address(
        &mut self,
        kernel: &mut Kernel,
        processes: &mut Processes,
        identity: Identity,
        address: u64,
    ) {
        let place = |processes: &Processes| processes.get(identity)?.place(address);
        if place(processes).is_none() {
            processes.look(identity);
        }
        if let Some(place) = place(processes) {
            self.open(
                kernel,
                processes,
                identity,
                place.backing,
                place.mapping,
                Need::Now,
            );
        }
    }

    fn open(
        &self,
        kernel: &mut Kernel,
        processes: &Processes,
        identity: Identity,
        backing: BackingId,
        mapping: Range<u64>,
        need: Need,
    ) -> bool {
        let owner = Owner {
            identity,
            mapping,
            seen: SystemTime::now(),
        };
        let Some(opened) = processes.open(backing, &[owner]) else {
            return false;
        };
        self.load(kernel, need, &opened.file)
    }

    /// Loads the table of a file of which it is known what the kernel half knows it by.
    pub(crate) fn load_known(&self, key: CodeKey, opened: &RegularFile) {
        if let Ok(file) = opened.file.try_clone() {
            self.loader.load(Need::Now, key, file);
        }
    }

    fn load(&self, kernel: &mut Kernel, need: Need, opened: &RegularFile) -> bool {
        let (Some(key), Ok(file)) = (kernel.code_key(&opened.file), opened.file.try_clone()) else {
            return false;
        };
        self.loader.load(need, key, file);
        true
    }

    /// What has been loaded by now.
    pub(crate) fn loaded(&self) -> Loaded {
        self.loader.loaded()
    }
}

/// Lets this process have as many files open as it may: those of a large program wait side by side, and all
/// that were sampled are kept open.
pub(crate) fn allow_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    let _as_it_was = setrlimit(Resource::Nofile, raised);
}
