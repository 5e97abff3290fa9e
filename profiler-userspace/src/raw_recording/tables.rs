//! Tables of a raw recording, whose entries are referred to by number: names, places in code,
//! stacks, threads, and wakers.
//!
//! In: batches, one after the other, and how much memory there is. Out: tables of what the numbers stand for, each of which is
//! checked, so that those in the tables lead somewhere. A file may have far more than what is wanted of it, and may begin
//! its numbers anew; so nothing here is in the profile yet.

use super::batches::kind_of;
use super::budget::{Budget, Stop};
use super::callees::Callees;
use super::wire::{
    Batch, FALLBACKS_SHIFT, LOCATION_NAMED, LOCATION_OBJECT, LOCATION_UNKNOWN, STEP_CALLEE,
    STEP_NEW, STEP_NEXT,
};
use crate::profile::cgroup::Cgroup;
use crate::profile::normalized::{
    CgroupIndex, Label, Location, LocationIndex, NamedFunction, NormalizedStackIndex, ObjectIndex,
    Thread, WakerIndex,
};
use crate::profile::process_context::ProcessContext;
use profiler_common::abi::{Fallbacks, StackEnd};
use std::collections::HashMap;
use std::sync::Arc;

/// No process has a longer name, in bytes.
const MAX_PROCESS_NAME: usize = 256;

/// No thread has a longer name, in bytes; and the kernel's has no more than so many.
const MAX_THREAD_NAME: usize = 1024;
const MAX_COMM: usize = 16;

/// No stack is longer: a user stack has 1,024 frames, a kernel stack 127.
const MAX_FRAMES: usize = 4096;

/// Entries by number.
#[derive(Default)]
pub(super) struct Tables {
    /// Indices of objects, which are in the profile at once: there are few.
    pub(super) objects: Vec<ObjectIndex>,
    files: Vec<Arc<str>>,
    pub(super) names: Vec<NameEntry>,
    pub(super) locations: Vec<LocationEntry>,
    pub(super) labels: Vec<Label>,
    pub(super) cgroups: Vec<Arc<Cgroup>>,
    /// Names of processes, by ID and start.
    pub(super) processes: HashMap<(u32, u64), Arc<[u8]>>,
    /// Whole names of threads of which labels have the beginning.
    pub(super) threads: HashMap<Thread, Arc<[u8]>>,
    /// Those of processes, by ID and start.
    pub(super) contexts: HashMap<(u32, u64), Arc<ProcessContext>>,
    /// By number; none of one that says nothing that is known here.
    numbered_contexts: Vec<Option<Arc<ProcessContext>>>,
    pub(super) wakers: Vec<WakerEntry>,
    stacks: Vec<StackEntry>,
    /// The locations of all stacks, each from the root and without those that it shares.
    own: Vec<u32>,
    callees: Callees,
    /// One more than the highest number of a location that a stack has.
    next_location: u32,
}

/// Name of a function, and the profile's own location for it, once there is one.
pub(super) struct NameEntry {
    pub(super) function: NamedFunction,
    pub(super) normalized: Option<Location>,
}

/// Where a frame is.
#[derive(Clone, Copy)]
pub(super) struct LocationEntry {
    pub(super) place: CodeLocation,
    pub(super) normalized: Option<LocationIndex>,
}

/// A place, by the numbers of what it is in.
#[derive(Clone, Copy)]
pub(super) enum CodeLocation {
    Unknown,
    Named(u32),
    Within { name: u32, place: u64 },
    At { object: ObjectIndex, offset: u64 },
}

/// Waker of a thread, by the numbers of stacks, one more, and zero for none.
#[derive(Clone, Copy)]
pub(super) struct WakerEntry {
    pub(super) label: Label,
    pub(super) user: u32,
    pub(super) kernel: u32,
    pub(super) normalized: Option<WakerIndex>,
}

struct StackEntry {
    /// The number of the stack that has the last of the shared locations among its own. Means nothing where none is shared.
    base: u32,
    shared: u32,
    /// Where its own locations begin. They end where those of the next begin.
    begins: u32,
    end: StackEnd,
    fallbacks: Fallbacks,
    normalized: Option<NormalizedStackIndex>,
}

/// The number that is so much more than another; none if it is no number.
pub(super) fn sum(number: u32, difference: i64) -> Option<u32> {
    let sum = i64::from(number).checked_add(difference)?;
    u32::try_from(sum).ok()
}

impl Tables {
    /// Takes all of a batch but its objects and samples.
    pub(super) fn take(&mut self, batch: &mut Batch, budget: &mut Budget) -> Result<(), Stop> {
        self.take_names(batch, budget)?;
        self.take_locations(batch, budget)?;
        self.take_stacks(batch, budget)?;
        self.take_cgroups(batch, budget)?;
        self.take_contexts(batch, budget)?;
        self.take_labels(batch, budget)?;
        self.take_wakers(batch, budget)
    }

    fn take_names(&mut self, batch: &mut Batch, budget: &mut Budget) -> Result<(), Stop> {
        for file in std::mem::take(&mut batch.files) {
            budget.spend_for_number(48 + file.len())?;
            self.files.push(file.into());
        }
        let names = std::mem::take(&mut batch.names);
        if names.len() != batch.name_kinds.len() {
            return Err(Stop::Nonsense("there is a name without a kind"));
        }
        let lines = batch.name_lines.len();
        if batch.name_files.len() != lines || (lines > 0 && lines != names.len()) {
            return Err(Stop::Nonsense("there is a line of no name"));
        }
        let defined = batch.name_defined.len();
        if defined > 0 && defined != names.len() {
            return Err(Stop::Nonsense("there is a definition of no name"));
        }
        for (at, (name, kind)) in names.into_iter().zip(&batch.name_kinds).enumerate() {
            budget.spend_for_number(120 + name.len())?;
            let line = batch.name_lines.get(at).copied().unwrap_or(0);
            let file = batch.name_files.get(at).copied().unwrap_or(0);
            let file = match file.checked_sub(1) {
                None => Arc::default(),
                Some(file) => self
                    .files
                    .get(file as usize)
                    .cloned()
                    .ok_or(Stop::Nonsense("there is a name whose file is not there"))?,
            };
            let kind =
                kind_of(*kind).ok_or(Stop::Nonsense("there is a name of an unknown kind"))?;
            self.names.push(NameEntry {
                function: NamedFunction {
                    name,
                    kind,
                    file,
                    line,
                    defined: batch.name_defined.get(at).copied().unwrap_or(0),
                },
                normalized: None,
            });
        }
        Ok(())
    }

    fn take_locations(&mut self, batch: &Batch, budget: &mut Budget) -> Result<(), Stop> {
        if batch.location_kinds.len() != batch.location_values.len() {
            return Err(Stop::Nonsense("there is a location without a value"));
        }
        let places = &batch.location_places;
        if !places.is_empty() && places.len() != batch.location_kinds.len() {
            return Err(Stop::Nonsense("there is a location without a place"));
        }
        let mut values: HashMap<u32, u64> = HashMap::new();
        let locations = batch.location_kinds.iter().zip(&batch.location_values);
        for (at, (kind, difference)) in locations.enumerate() {
            budget.spend_for_number(64)?;
            let value = values.entry(*kind).or_default();
            *value = value.wrapping_add_signed(*difference);
            let place = match *kind {
                LOCATION_UNKNOWN => CodeLocation::Unknown,
                LOCATION_NAMED => {
                    let name = u32::try_from(*value).ok();
                    let name = name.filter(|name| (*name as usize) < self.names.len());
                    let name = name.ok_or(Stop::Nonsense(
                        "there is a location whose name is not there",
                    ))?;
                    match places.get(at).and_then(|place| place.checked_sub(1)) {
                        Some(place) => CodeLocation::Within { name, place },
                        None => CodeLocation::Named(name),
                    }
                }
                kind => {
                    let object = self.objects.get((kind - LOCATION_OBJECT) as usize);
                    CodeLocation::At {
                        object: *object.ok_or(Stop::Nonsense(
                            "there is a location whose object is not there",
                        ))?,
                        offset: *value,
                    }
                }
            };
            self.locations.push(LocationEntry {
                place,
                normalized: None,
            });
        }
        Ok(())
    }

    fn take_stacks(&mut self, batch: &Batch, budget: &mut Budget) -> Result<(), Stop> {
        let stacks = batch.stack_shared.len();
        let columns = [
            batch.stack_bases.len(),
            batch.stack_lengths.len(),
            batch.stack_ends.len(),
        ];
        if columns != [stacks; 3] {
            return Err(Stop::Nonsense("there is a stack that is incomplete"));
        }
        let mut steps = batch.stack_steps.iter();
        let mut differences = batch.stack_locations.iter();
        let mut last_base = 0;
        for at in 0..stacks {
            let (shared, length) = (batch.stack_shared[at], batch.stack_lengths[at] as usize);
            if (shared as usize).saturating_add(length) > MAX_FRAMES || length > steps.len() {
                return Err(Stop::Nonsense("there is a stack of no sensible length"));
            }
            budget.spend_for_number(64 + 16 * length)?;
            let base = self.base(batch.stack_bases[at], &mut last_base, shared)?;
            let flags = batch.stack_ends[at];
            let end = StackEnd::from_code((flags & 0xff) as u8)
                .ok_or(Stop::Nonsense("there is a stack with an unknown end"))?;
            let fallbacks = u8::try_from(flags >> FALLBACKS_SHIFT)
                .ok()
                .and_then(Fallbacks::from_bits)
                .ok_or(Stop::Nonsense(
                    "there is a stack that was walked in an unknown way",
                ))?;
            let begins = self.own.len();
            let callees = self.callees.bytes();
            let mut caller = shared.checked_sub(1).map(|last| self.own_at(base, last));
            for step in steps.by_ref().take(length) {
                let location = self.step(*step, caller, &mut differences);
                let location = location.ok_or(Stop::Nonsense(
                    "there is a stack whose location is not there",
                ))?;
                self.own.push(location);
                caller = Some(location);
            }
            budget.spend_for_number(self.callees.bytes() - callees)?;
            self.stacks.push(StackEntry {
                base,
                shared,
                begins: u32::try_from(begins).map_err(|_| Stop::Full)?,
                end,
                fallbacks,
                normalized: None,
            });
        }
        if steps.next().is_some() || differences.next().is_some() {
            return Err(Stop::Nonsense("there is a location that no stack has"));
        }
        Ok(())
    }

    /// The stack that has the last of the locations among its own that are shared. `written` is how the file names that stack.
    fn base(&self, written: u32, last: &mut usize, shared: u32) -> Result<u32, Stop> {
        if written == 0 && shared == 0 {
            return Ok(0);
        }
        let by = (written / 2) as usize;
        let base = match written % 2 {
            0 => self.stacks.len().checked_sub(by),
            _ => last.checked_add(by).inspect(|base| *last = *base),
        };
        let base = base.filter(|base| *base < self.stacks.len());
        let mut base = base.ok_or(Stop::Nonsense(
            "there is a stack that shares none's locations",
        ))?;
        let its = &self.stacks[base];
        if shared as usize > its.shared as usize + self.own_of(base).len() {
            return Err(Stop::Nonsense("there is a stack of no sensible length"));
        }
        // Each of these shares less than the one before it, so there are no more of them than locations.
        while shared > 0 && self.stacks[base].shared >= shared {
            base = self.stacks[base].base as usize;
        }
        u32::try_from(base).map_err(|_| Stop::Full)
    }

    /// The locations of a stack that it does not share.
    fn own_of(&self, stack: usize) -> &[u32] {
        let end = self.stacks.get(stack + 1);
        let end = end.map_or(self.own.len(), |next| next.begins as usize);
        &self.own[self.stacks[stack].begins as usize..end]
    }

    /// The location at this place from the root, of a stack that has it among its own.
    fn own_at(&self, stack: u32, place: u32) -> u32 {
        let its = &self.stacks[stack as usize];
        self.own_of(stack as usize)[(place - its.shared) as usize]
    }

    /// The location to which a step leads.
    fn step<'a>(
        &mut self,
        step: u32,
        caller: Option<u32>,
        differences: &mut impl Iterator<Item = &'a u32>,
    ) -> Option<u32> {
        let less = match step {
            STEP_NEW => 0,
            STEP_NEXT => *differences.next()?,
            callee => return self.callees.at(caller, (callee - STEP_CALLEE) as usize),
        };
        let location = self.next_location.checked_sub(less)?;
        if location as usize >= self.locations.len() {
            return None;
        }
        self.next_location = self.next_location.max(location + 1);
        self.callees.place(caller, location);
        Some(location)
    }

    fn take_labels(&mut self, batch: &Batch, budget: &mut Budget) -> Result<(), Stop> {
        let labels = batch.label_comms.len();
        let columns = [
            batch.label_pids.len(),
            batch.label_starts.len(),
            batch.label_tids.len(),
            batch.label_cpus.len(),
        ];
        let processes = batch.label_processes.len();
        let cgroups = batch.label_cgroups.len();
        let may_lack = [processes, cgroups, batch.label_contexts.len()];
        if columns != [labels; 4] || may_lack.iter().any(|it| ![0, labels].contains(it)) {
            return Err(Stop::Nonsense("there is a label that is incomplete"));
        }
        let number = |number: u64| match number.checked_sub(1) {
            None => Ok(None),
            Some(id) => u32::try_from(id)
                .map(Some)
                .map_err(|_| Stop::Nonsense("there is a thread or CPU of no sensible number")),
        };
        let (mut pid, mut start) = (0, 0u64);
        for (at, name) in batch.label_comms.iter().enumerate() {
            budget.spend_for_number(80)?;
            start = start.wrapping_add_signed(batch.label_starts[at]);
            pid = sum(pid, batch.label_pids[at])
                .ok_or(Stop::Nonsense("there is a process of no sensible number"))?;
            let tid = number(batch.label_tids[at])?;
            let is_whole = name.len() <= MAX_COMM;
            if name.len() > MAX_THREAD_NAME || !is_whole && tid.is_none() {
                return Err(Stop::Nonsense("there is a label that is too long"));
            }
            let mut comm = [0; 16];
            let kept = if is_whole { name.len() } else { comm.len() - 1 };
            comm[..kept].copy_from_slice(&name[..kept]);
            if let Some(process) = batch
                .label_processes
                .get(at)
                .filter(|name| !name.is_empty())
            {
                if process.len() > MAX_PROCESS_NAME {
                    return Err(Stop::Nonsense("there is a process whose name is too long"));
                }
                budget.spend_for_number(64 + process.len())?;
                self.processes
                    .insert((pid, start), process.as_slice().into());
            }
            let context = batch.label_contexts.get(at).copied().unwrap_or(0);
            if let Some(context) = self.context(context)? {
                budget.spend_for_number(64)?;
                self.contexts.insert((pid, start), context);
            }
            let label = Label {
                pid,
                start,
                comm,
                tid,
                cpu: number(batch.label_cpus[at])?,
                cgroup: self.cgroup(batch.label_cgroups.get(at).copied().unwrap_or(0))?,
            };
            if let Some(thread) = label.thread().filter(|_| !is_whole) {
                budget.spend_for_number(96 + name.len())?;
                self.threads.insert(thread, name.as_slice().into());
            }
            self.labels.push(label);
        }
        Ok(())
    }

    /// The cgroup of a number, one more than it has or zero.
    fn cgroup(&self, number: u32) -> Result<Option<CgroupIndex>, Stop> {
        match number.checked_sub(1) {
            None => Ok(None),
            Some(number) if (number as usize) < self.cgroups.len() => Ok(Some(CgroupIndex(number))),
            Some(_) => Err(Stop::Nonsense("there is a label whose cgroup is not there")),
        }
    }

    /// The context of a number, one more than it has or zero.
    fn context(&self, number: u32) -> Result<Option<Arc<ProcessContext>>, Stop> {
        let Some(number) = number.checked_sub(1) else {
            return Ok(None);
        };
        let context = self.numbered_contexts.get(number as usize).cloned();
        context.ok_or(Stop::Nonsense(
            "there is a label whose context is not there",
        ))
    }

    fn take_contexts(&mut self, batch: &Batch, budget: &mut Budget) -> Result<(), Stop> {
        let texts = batch.context_keys.len();
        let sum = batch.context_lengths.iter().map(|length| *length as usize);
        if batch.context_values.len() != texts || sum.fold(0, usize::saturating_add) != texts {
            return Err(Stop::Nonsense("there is a context that is incomplete"));
        }
        let mut attributes = (batch.context_keys.iter())
            .map(String::as_str)
            .zip(batch.context_values.iter().map(String::as_str));
        for length in &batch.context_lengths {
            let own = attributes.by_ref().take(*length as usize);
            let context = ProcessContext::of(own);
            let texts = context.iter().flat_map(ProcessContext::attributes);
            let bytes: usize = texts.map(|(_, text)| text.len()).sum();
            budget.spend_for_number(256 + bytes)?;
            self.numbered_contexts.push(context.map(Arc::new));
        }
        Ok(())
    }

    fn take_cgroups(&mut self, batch: &Batch, budget: &mut Budget) -> Result<(), Stop> {
        let cgroups = batch.cgroup_paths.len();
        if [batch.cgroup_containers.len(), batch.cgroup_pods.len()] != [cgroups; 2] {
            return Err(Stop::Nonsense("there is a cgroup that is incomplete"));
        }
        for (at, path) in batch.cgroup_paths.iter().enumerate() {
            let (container, pod) = (&batch.cgroup_containers[at], &batch.cgroup_pods[at]);
            budget.spend_for_number(256 + 2 * path.len() + container.len() + pod.len())?;
            let text = |text: &'_ str| (!text.is_empty()).then(|| text.to_owned());
            let (container, pod) = (text(container), text(pod));
            let cgroup = Cgroup::told(path, container.as_deref(), pod.as_deref());
            self.cgroups.push(Arc::new(cgroup));
        }
        Ok(())
    }

    fn take_wakers(&mut self, batch: &Batch, budget: &mut Budget) -> Result<(), Stop> {
        let wakers = batch.waker_labels.len();
        if [batch.waker_users.len(), batch.waker_kernels.len()] != [wakers; 2] {
            return Err(Stop::Nonsense("there is a waker that is incomplete"));
        }
        for (at, label) in batch.waker_labels.iter().enumerate() {
            budget.spend_for_number(96)?;
            let label = self.labels.get(*label as usize).copied();
            self.wakers.push(WakerEntry {
                label: label.ok_or(Stop::Nonsense("there is a waker whose label is not there"))?,
                user: self.stack(batch.waker_users[at])?,
                kernel: self.stack(batch.waker_kernels[at])?,
                normalized: None,
            });
        }
        Ok(())
    }

    /// The number, one more than a stack's or zero, if there is that stack.
    pub(super) fn stack(&self, number: u32) -> Result<u32, Stop> {
        if number as usize > self.stacks.len() {
            return Err(Stop::Nonsense("there is a sample whose stack is not there"));
        }
        Ok(number)
    }

    /// The locations of a stack, from the leaf to the root.
    pub(super) fn locations_of(&self, stack: u32) -> Vec<u32> {
        let mut locations = Vec::new();
        let mut stack = stack as usize;
        let mut own = self.own_of(stack);
        loop {
            locations.extend(own.iter().rev());
            let shared = self.stacks[stack].shared as usize;
            if shared == 0 {
                return locations;
            }
            stack = self.stacks[stack].base as usize;
            own = &self.own_of(stack)[..shared - self.stacks[stack].shared as usize];
        }
    }

    /// Why a stack ends, and what the walk used beside unwind instructions.
    pub(super) fn end_of(&self, stack: u32) -> (StackEnd, Fallbacks) {
        let stack = &self.stacks[stack as usize];
        (stack.end, stack.fallbacks)
    }

    /// The profile's own index for a stack, once there is one.
    pub(super) fn normalized(&mut self, stack: u32) -> &mut Option<NormalizedStackIndex> {
        &mut self.stacks[stack as usize].normalized
    }
}
