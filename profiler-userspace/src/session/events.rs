//! Reactions to the kernel half's events.
//!
//! In: [`KernelEvent`]s. Out: [`Processes`] that know what lay at each sampled address, with the files behind it held
//! open; unwind tables asked for. A process's own mappings are read where that says more: which other files it maps,
//! whose tables may be wanted next, and where it publishes code that it makes.

use super::cgroups::Watched;
use super::programs::{Comm, Programs};
use super::rescans::{LAST_STEP, RescanQueue};
use super::thread_names;
use crate::kernel::{self, Kernel, KernelEvent};
use crate::process::{
    FunctionEvent, MappingEvent, ProcessChange, ProcessKey, Processes, Todo, Unopened, vdso,
};
use crate::profile::raw::RawProfile;
use crate::runtime::{MAX_TOGETHER, Namer};
use crate::unwind::loader::{CodeKeys as _, TableLoader};
use anyhow::Result;
use std::time::{Duration, Instant};

/// So many functions are put off until all other events are taken in, at most.
const MAX_FUNCTIONS: usize = 1 << 12;

/// A process is young for this long. Those that are older have loaded what they begin with.
const YOUTH: Duration = Duration::from_secs(1);

/// The processes that were sampled, kept up to date by kernel events.
pub(super) struct EventHandler {
    pub(super) processes: Processes,
    /// None where stacks are walked by frame pointers alone.
    pub(super) loader: Option<TableLoader<kernel::Tables>>,
    pub(super) rescans: RescanQueue,
    programs: Programs,
    namer: Namer,
    /// None where the kernel has no cgroups, or does not tell them apart.
    cgroups: Option<Watched>,
}

impl EventHandler {
    /// No process has been sampled yet. `lines`: whether those of runtimes' functions are wanted.
    pub(super) fn new(
        kernel: &mut Kernel,
        loader: Option<TableLoader<kernel::Tables>>,
        cgroups: Option<Watched>,
        lines: bool,
    ) -> Result<Self> {
        let mut processes = Processes::holding_files();
        processes.compare_start_times();
        if kernel.reports_mappings() {
            let key = vdso::mapping().and_then(|mapping| kernel.code_key_at(mapping.start));
            processes.note_vdso(key);
        }
        let mut cgroups = cgroups.filter(|_| kernel.has_cgroups());
        if let Some(cgroups) = &mut cgroups {
            cgroups.begin(kernel, &mut processes)?;
        }
        Ok(Self {
            processes,
            loader,
            rescans: RescanQueue::default(),
            programs: Programs::default(),
            namer: Namer::new(lines),
            cgroups,
        })
    }

    /// Settles to which cgroups samples belong that were drained, whose events were taken in.
    pub(super) fn settle_cgroups(&mut self, kernel: &mut Kernel, raw: &mut RawProfile) {
        if let Some(cgroups) = &mut self.cgroups {
            cgroups.settle(kernel, &mut self.processes, raw);
        }
    }

    /// Looks for the whole names of threads of samples that were drained, whose events were taken in.
    pub(super) fn name_threads(&mut self, raw: &RawProfile) {
        thread_names::look(raw, &mut self.namer, &mut self.processes);
    }

    /// Takes in all events that are in the queue; returns whether one asks for a drain.
    pub(super) fn handle(&mut self, kernel: &mut Kernel) -> bool {
        let mut drain = false;
        let (mut unknown, mut unread, mut undescribed) = (Vec::new(), Vec::new(), Vec::new());
        let mut functions = Vec::new();
        while let Some(event) = kernel.next_event() {
            match event {
                KernelEvent::Mapping(event) => self.handle_mapping(kernel, &event),
                KernelEvent::Function(event) => {
                    if !self.processes.knows_function(&event) {
                        functions.push(event);
                    }
                    if functions.len() >= MAX_FUNCTIONS {
                        self.add_functions(kernel, &mut functions);
                    }
                }
                KernelEvent::NewProcess(process_key) => self.meet(kernel, process_key, None),
                KernelEvent::UnknownCode(process_key, address) => {
                    unknown.push((process_key, address));
                }
                KernelEvent::UnreadCode(process_key, address) => {
                    unread.push((process_key, address));
                }
                KernelEvent::UndescribedCode(process_key, address) => {
                    undescribed.push((process_key, address));
                }
                KernelEvent::Cgroup(event) => {
                    if let Some(cgroups) = &mut self.cgroups {
                        cgroups.meet(kernel, &mut self.processes, &event);
                    }
                }
                KernelEvent::HalfFull => drain = true,
            }
        }
        self.add_functions(kernel, &mut functions);
        // The mapping event for the address comes behind this one.
        for &(process_key, _) in &unknown {
            self.meet(kernel, process_key, None);
        }
        if let Some(loader) = &mut self.loader {
            loader.load_met(kernel, &mut self.processes, &unknown);
            loader.read_descriptions(kernel, &mut self.processes, &unread);
            loader.read_functions(kernel, &mut self.processes, &undescribed);
        }
        drain
    }

    fn handle_mapping(&mut self, kernel: &mut Kernel, event: &MappingEvent) {
        // A process with mapping events has no event of its own.
        self.meet(kernel, event.process_key, Some(event.leader));
        match self.processes.handle(event) {
            Todo::Nothing => {}
            Todo::LookAtProcess => {
                self.scan(kernel, event.process_key);
            }
            Todo::Open(file) => {
                self.open(kernel, &file, event);
                if file.is_new && is_young(event.process_key) {
                    // It may be the first of many that a new program brings.
                    self.scan(kernel, event.process_key);
                }
            }
        }
    }

    /// Names functions. Those of one process are read together.
    fn add_functions(&mut self, kernel: &Kernel, events: &mut Vec<FunctionEvent>) {
        let place = |event: &FunctionEvent| {
            let kind = event.function.runtime().map(|kind| kind as u8);
            (event.process_key, event.descriptor, event.bias, kind)
        };
        events.sort_by_key(place);
        for alike in events.chunk_by(|one, other| place(one) == place(other)) {
            let Some(descriptor) = kernel.descriptor(alike[0].descriptor) else {
                continue;
            };
            for together in alike.chunks(MAX_TOGETHER) {
                let functions = self.namer.functions(together, &descriptor);
                for (event, function) in together.iter().zip(functions) {
                    self.processes.add_function(event, function);
                }
            }
        }
        events.clear();
    }

    /// Opens the file of a mapping event, and has its table made.
    fn open(&mut self, kernel: &mut Kernel, file: &Unopened, event: &MappingEvent) {
        let mut candidates = self.processes.candidates(file, event);
        let found =
            candidates.find(|opened| kernel.code_key(opened.file.known_file()) == Some(file.code));
        drop(candidates);
        if let Some(opened) = found {
            if let Some(loader) = &self.loader {
                loader.load_known(file.code, &opened.file);
            }
            self.processes.adopt(file, opened);
        }
    }

    /// Takes in a process that was sampled, and queues a rescan if it is new to us, young, and still there. Where the
    /// kernel half reports mappings, neither the scan at once nor the first rescan is needed; and of a program of which all is
    /// known, only the last.
    fn meet(&mut self, kernel: &mut Kernel, process_key: ProcessKey, program: Option<Comm>) {
        if !self.processes.meet(process_key) || !kernel.walks_user_stacks() {
            return;
        }
        let (now, young) = (Instant::now(), is_young(process_key));
        if young && kernel.reports_mappings() {
            if !self.processes.has_gone(process_key) {
                let step = match program.is_some_and(|program| self.programs.is_known(&program)) {
                    true => LAST_STEP,
                    false => 1,
                };
                self.rescans.push(now, process_key, program, step);
            }
        } else if self.scan(kernel, process_key).is_some() && young {
            self.rescans.push(now, process_key, program, 0);
        }
    }

    /// Does the rescans that are due.
    pub(super) fn rescan(&mut self, kernel: &mut Kernel) {
        let now = Instant::now();
        while let Some(rescan) = self.rescans.pop_due(now) {
            let Some(found_new) = self.scan(kernel, rescan.process_key) else {
                continue;
            };
            if let Some(program) = rescan.program {
                self.programs.take(program, found_new);
            }
            let (process_key, step) = (rescan.process_key, rescan.next_step());
            self.rescans.push(now, process_key, rescan.program, step);
        }
    }

    /// Reads the mappings of a process; none if it has gone, otherwise whether it maps files that no other did. Of what a young one
    /// maps it has the tables made, before a walk comes there. Older ones have run for long without most of it.
    fn scan(&mut self, kernel: &mut Kernel, process_key: ProcessKey) -> Option<bool> {
        let look = self.processes.look(process_key);
        let mut found_new = false;
        if look == ProcessChange::Changed
            && is_young(process_key)
            && let Some(loader) = &mut self.loader
        {
            found_new = loader.load_process(kernel, &self.processes, process_key);
        }
        if look != ProcessChange::Gone
            && let Some(loader) = &mut self.loader
        {
            loader.load_moved(kernel, &self.processes, process_key);
        }
        (look != ProcessChange::Gone).then_some(found_new)
    }
}

/// Whether a process began a short while ago, or may have.
fn is_young(process_key: ProcessKey) -> bool {
    process_key.age().is_none_or(|age| age < YOUTH)
}
