//! All processes that were seen.
//!
//! In: who was sampled, mapping events, `/proc`. Out: what an address lies in, and the files behind it. The parts that it
//! puts together know nothing of it: who still runs, what is mapped, which files are open, where JIT code is described.

use super::backing::Backings;
use super::contexts::Contexts;
use super::functions::Functions;
use super::jit_maps::{self, JitMaps};
use super::liveness::Liveness;
use super::mapping::Mapping;
use super::mapping_events::Reported;
use super::mappings::{Process, Reading};
use super::moved;
use super::names::ProcessNames;
use super::open_files::OpenFiles;
use super::opening::{self, Unreachable};
use super::thread_names::ThreadNames;
use super::{
    Backing, BackingId, CodeMaker, FunctionEvent, MappedFile, MappingEvent, Opened, Owner,
    ProcessKey, RuntimeFunction, Shortage, Todo, Unopened, UnreadContexts,
};
use crate::object::RegularFile;
use crate::profile::cgroup::Cgroup;
use crate::profile::process_context::ProcessContext;
use crate::profile::raw::Who;
use foldhash::{HashMap, HashSet};
use profiler_common::abi::{CodeKey, FrameWord};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

/// The most readings kept of one process; see [`Processes::refresh`].
const MAX_READINGS: usize = 8;

/// Result of reading a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessChange {
    /// Nothing: it has ended, or runs another program.
    Gone,
    /// Nothing new.
    Same,
    /// More than was known.
    Changed,
}

/// All processes seen so far.
#[derive(Debug, Default)]
pub struct Processes {
    known: HashMap<ProcessKey, Process>,
    pub(super) liveness: Liveness,
    backings: Backings,
    jit_maps: JitMaps,
    functions: Functions,
    names: ProcessNames,
    thread_names: ThreadNames,
    contexts: Contexts,
    // By the kernel half's numbers; none that nobody can tell.
    cgroups: HashMap<u16, Option<Arc<Cgroup>>>,
    pub(super) open_files: OpenFiles,
    // Key by which the kernel half knows the vDSO.
    vdso: Option<CodeKey>,
    refused: usize,
    shortage: Shortage,
}

impl Processes {
    /// No processes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// No processes yet. What they map will be kept open, so that it can be read after they and their
    /// files have gone.
    pub fn holding_files() -> Self {
        Self {
            open_files: OpenFiles::taking(),
            ..Self::default()
        }
    }

    /// Reads the mappings of a process that has not been seen yet, and says whether it was so. The
    /// sooner after its first sample, the more surely it still runs.
    pub fn see(&mut self, process_key: ProcessKey) -> bool {
        let process = self.known.entry(process_key).or_default();
        if std::mem::replace(&mut process.looked_at, true) {
            return false;
        }
        self.liveness.note(process_key);
        // Asked first, which takes a tenth of what looking in vain does: where processes come and go, most have gone.
        let reading = match (!self.has_gone(process_key)).then(|| self.read(process_key)) {
            Some(Ok(reading)) => Some(reading),
            Some(Err(error)) => {
                self.refused += usize::from(error.kind() == ErrorKind::PermissionDenied);
                None
            }
            None => None,
        };
        if let Some(reading) = &reading {
            self.contexts
                .take(process_key, &reading.contexts, &self.liveness);
            self.jit_maps
                .look_if_made(process_key, reading, &self.backings);
            self.open_files
                .keep_all(process_key, reading, &self.backings, &self.liveness);
        }
        if let Some(process) = self.known.get_mut(&process_key) {
            process.readings.extend(reading);
        }
        true
    }

    /// Notes that a process was sampled. Returns whether it is new, and its mappings should be read.
    pub fn meet(&mut self, process_key: ProcessKey) -> bool {
        self.liveness.note(process_key);
        let process = self.known.entry(process_key).or_default();
        !std::mem::replace(&mut process.met, true) && !process.looked_at
    }

    /// Whether a process has surely ended, or runs another program, so that reading its mappings would show nothing.
    pub fn has_gone(&self, process_key: ProcessKey) -> bool {
        self.liveness.has_gone(process_key)
    }

    /// Looks at a process: for the first time, or again.
    pub fn look(&mut self, process_key: ProcessKey) -> ProcessChange {
        let changed = self.see(process_key) || self.refresh(process_key);
        let has_gone = |process: &Process| process.readings.is_empty();
        if self.get(process_key).is_none_or(has_gone) || !self.liveness.is_latest(process_key) {
            ProcessChange::Gone
        } else if changed {
            ProcessChange::Changed
        } else {
            ProcessChange::Same
        }
    }

    /// Reads the mappings again, for an address that lies in none: libraries may have been loaded, and
    /// code made, since the process was seen. Says whether anything new was found; nothing is when the
    /// process has ended or runs another program.
    pub fn refresh(&mut self, process_key: ProcessKey) -> bool {
        let looked_at = self
            .known
            .get(&process_key)
            .is_some_and(|process| process.looked_at);
        if !looked_at || !self.liveness.is_latest(process_key) {
            return false;
        }
        let Ok(fresh) = self.read(process_key) else {
            return false;
        };
        let Some(Process { readings, .. }) = self.known.get(&process_key) else {
            return false;
        };
        let known = |mapping: &Mapping| {
            readings
                .iter()
                .any(|reading| reading.find(mapping.range.start) == Some(mapping))
        };
        // Another program has its files elsewhere. Where the kernel reports `exec`, a reading that
        // shares none with the first is of a program whose own samples have yet to come; unless the
        // first was taken so early in `exec` that there was nothing to share.
        let is_file = |mapping: &&Mapping| self.backings.get(mapping.backing).file().is_some();
        let mut before = readings.iter().flat_map(|reading| &reading.mappings);
        let none_before = !before.any(|mapping| is_file(&mapping));
        let same_program = process_key.incarnation == 0
            || none_before
            || fresh.mappings.iter().filter(is_file).any(known);
        let nothing_new = fresh.mappings.iter().all(known);
        if !same_program {
            return false;
        }
        self.contexts
            .take(process_key, &fresh.contexts, &self.liveness);
        self.jit_maps
            .look_if_made(process_key, &fresh, &self.backings);
        if nothing_new {
            return false;
        }
        self.open_files
            .keep_all(process_key, &fresh, &self.backings, &self.liveness);
        let Some(Process { readings, .. }) = self.known.get_mut(&process_key) else {
            return false;
        };
        // The first reading stays, being the one that most samples fit.
        if readings.len() == MAX_READINGS {
            readings.remove(1);
            self.shortage.readings += 1;
        }
        readings.push(fresh);
        true
    }

    /// A process that was seen.
    pub fn get(&self, process_key: ProcessKey) -> Option<&Process> {
        self.known.get(&process_key)
    }

    /// The backing of a [`Place`] of these processes.
    pub fn backing(&self, id: BackingId) -> &Backing {
        self.backings.get(id)
    }

    /// The files that a process has mapped as code, and where.
    pub fn code_files(
        &self,
        process_key: ProcessKey,
    ) -> impl Iterator<Item = (&MappedFile, BackingId, Range<u64>)> {
        let code = self.get(process_key).into_iter().flat_map(Process::code);
        code.filter_map(move |(id, range)| Some((self.backing(id).file()?, id, range)))
    }

    /// How many processes' mappings we were not allowed to read. None of their code has a name;
    /// running with sudo, or with `CAP_SYS_PTRACE`, mends it.
    pub fn refused(&self) -> usize {
        self.refused
    }

    fn read(&mut self, process_key: ProcessKey) -> io::Result<Reading> {
        let liveness = &self.liveness;
        let is_there = || liveness.is_there(process_key);
        let (mut reading, cut) = Reading::read(process_key.tgid, &mut self.backings, is_there)?;
        moved::find(process_key, &mut reading, &mut self.backings, liveness);
        self.shortage.mappings += usize::from(cut);
        Ok(reading)
    }

    /// Has start times compared, so that a reused PID is not taken for the process that was sampled.
    pub fn compare_start_times(&mut self) {
        self.liveness.compare_start_times();
    }

    /// Takes in what the kernel half reported of a mapping.
    pub fn handle(&mut self, event: &MappingEvent) -> Todo {
        self.liveness.note(event.process_key);
        self.names
            .take(event.process_key, &event.leader, &self.liveness);
        let process = self.known.entry(event.process_key).or_default();
        match event.add_to(process, &mut self.backings, self.vdso) {
            Reported::Memory { is_first: true } => Todo::LookAtProcess,
            Reported::File(file) if !self.open_files.was_opened(file.backing) => Todo::Open(file),
            Reported::File(_) | Reported::Memory { .. } | Reported::Known => Todo::Nothing,
        }
    }

    /// The name of a process that was sampled, where it has one that is not a thread's. Anything may be in it.
    pub fn name(&mut self, process_key: ProcessKey) -> Option<&Arc<[u8]>> {
        self.names.look(process_key, &self.liveness);
        self.names.get(process_key)
    }

    /// Notes the whole name of an owner's thread, of which the owner has what the kernel has of it; none if nobody knows it.
    pub fn name_thread(&mut self, who: &Who, name: Option<Arc<[u8]>>) {
        if let Some(tid) = who.tid {
            self.thread_names.note(who.into(), (tid, who.comm), name);
        }
    }

    /// The whole name of an owner's thread, where it was noted; none at all if it was not looked for yet.
    pub fn thread_name(&self, who: &Who) -> Option<Option<&Arc<[u8]>>> {
        self.thread_names.get(who.into(), (who.tid?, who.comm))
    }

    /// The context of a process that was sampled, if it publishes one.
    pub fn context(&mut self, process_key: ProcessKey) -> Option<&Arc<ProcessContext>> {
        self.contexts.look(process_key, &self.liveness);
        self.contexts.get(process_key)
    }

    /// Notes the cgroup that the kernel half gave this number; none where nobody can say which it is.
    pub fn note_cgroup(&mut self, number: u16, cgroup: Option<Arc<Cgroup>>) {
        self.cgroups.insert(number, cgroup);
    }

    /// Whether a cgroup of this number was noted.
    pub fn has_cgroup(&self, number: u16) -> bool {
        self.cgroups.contains_key(&number)
    }

    /// The cgroup of this number, where it is known.
    pub fn cgroup(&self, number: u16) -> Option<&Arc<Cgroup>> {
        self.cgroups.get(&number)?.as_ref()
    }

    /// Notes what the kernel half knows the vDSO by.
    pub fn note_vdso(&mut self, code: Option<CodeKey>) {
        self.vdso = code;
    }

    /// Opens what may be the file of a mapping event, one after the other. Which of them it is, if any, only the kernel half
    /// can say.
    pub fn candidates(
        &self,
        file: &Unopened,
        event: &MappingEvent,
    ) -> impl Iterator<Item = Opened> + use<> {
        let is_latest = self.liveness.is_latest(event.process_key);
        event.candidates(self.backing(file.backing), is_latest)
    }

    /// Keeps the file open that was found to be that of a mapping event.
    pub fn adopt(&mut self, file: &Unopened, opened: Opened) {
        self.open_files.keep(file.backing, opened);
    }

    /// Opens the file behind `backing`, if it can be reached: because it was kept open, under its path, under
    /// its path in the root directory of a running owner, or through that owner's mapping.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn open(&self, backing: BackingId, owners: &[Owner]) -> Result<Opened, Unreachable> {
        self.open_files
            .open(backing, owners, &self.backings, &self.liveness)
    }

    /// Opens the memory that a process shares with others where it has mapped some.
    pub(crate) fn open_shared_memory(&self, owner: &Owner) -> Option<RegularFile> {
        opening::shared_memory(owner, &self.liveness)
    }

    /// Closes files that no process that is known maps any more, where many are open and they can be opened again.
    pub fn close_unused(&mut self) {
        self.close(false);
    }

    /// As [`close_unused`](Self::close_unused), once all code that was sampled has its names: deleted files, too.
    pub fn close_named(&mut self) {
        self.close(true);
    }

    fn close(&mut self, are_named: bool) {
        let mapped: HashSet<BackingId> = self.known.values().flat_map(Process::backings).collect();
        self.open_files
            .close_unused(&mapped, &self.backings, are_named);
    }

    /// The perf map of a process, as it is now.
    pub fn code_map(&self, process_key: ProcessKey) -> Option<RegularFile> {
        self.jit_maps.open(process_key, &self.liveness)
    }

    /// The jitdumps that a process has mapped, the latest first.
    pub fn jitdumps(&self, process_key: ProcessKey) -> Vec<(BackingId, Owner)> {
        let process = self.get(process_key);
        process.map_or_else(Vec::new, |process| {
            jit_maps::jitdumps(process_key, process, &self.backings)
        })
    }

    /// Whether a report of an interpreter's function tells nothing new.
    pub fn knows_function(&self, event: &FunctionEvent) -> bool {
        self.functions.knows(event)
    }

    /// Keeps what the kernel half reported of an interpreter's function.
    pub fn add_function(&mut self, event: &FunctionEvent, function: RuntimeFunction) {
        self.functions.add(event, function);
    }

    /// The function that the two words of an interpreter's frame stand for, if it was reported.
    pub fn function(
        &self,
        process_key: ProcessKey,
        function: FrameWord,
        position: FrameWord,
    ) -> Option<&RuntimeFunction> {
        self.functions.get(process_key, function, position)
    }

    /// Which maker of code a process seems to be, by the names of its files.
    pub fn code_maker(&self, process_key: ProcessKey) -> Option<&'static CodeMaker> {
        CodeMaker::of(self.get(process_key)?, &self.backings)
    }

    /// Amounts left out, because there was no room for them.
    pub fn shortage(&self) -> Shortage {
        Shortage {
            files: self.open_files.turned_away(),
            code_maps: self.jit_maps.turned_away(),
            functions: self.functions.turned_away(),
            ..self.shortage
        }
    }

    /// Processes whose context was not read, though they publish one.
    pub fn unread_contexts(&self) -> UnreadContexts {
        self.contexts.unread()
    }

    /// Those that have ended, or run another program: after what was sampled until now, nothing will be sampled of them.
    pub fn ended(&self) -> Vec<ProcessKey> {
        let known = self.known.keys().copied();
        known
            .filter(|process_key| self.has_gone(*process_key))
            .collect()
    }

    /// How many are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// How many files are kept open.
    pub fn open_files(&self) -> usize {
        self.open_files.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Forgets a process, as if it had never been seen: so a storm of short-lived processes takes no more memory than those
    /// that run at one time.
    pub fn remove(&mut self, process_key: ProcessKey) {
        self.known.remove(&process_key);
        self.jit_maps.remove(process_key);
        self.functions.remove(process_key);
        self.names.remove(process_key);
        self.thread_names.remove(process_key);
        self.contexts.remove(process_key);
        self.liveness.forget(process_key);
    }
}

#[cfg(test)]
pub(super) mod tests;
