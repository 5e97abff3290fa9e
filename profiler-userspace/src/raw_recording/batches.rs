//! From what is normalized to batches of a raw recording.
//!
//! In: an [`RawRecording`], sample by sample, and what the file has already. Out: sections in which everything stands before its
//! first use.

use super::RawRecording;
use super::known::WrittenIds;
use super::section::{self, Kind};
use super::wire::{
    Batch, FALLBACKS_SHIFT, LOCATION_NAMED, LOCATION_OBJECT, LOCATION_UNKNOWN, STEP_CALLEE,
    STEP_NEW, STEP_NEXT, Window,
};
use crate::object::RecordedObject;
use crate::profile::FrameKind;
use crate::profile::cgroup::Cgroup;
use crate::profile::normalized::{
    CgroupIndex, Label, Location, LocationIndex, NormalizedKey, NormalizedStack,
    NormalizedStackIndex, ObjectIndex, Sums, WakerIndex,
};
use crate::profile::process_context::ProcessContext;
use foldhash::HashMap;
use profiler_common::runtime::RuntimeKind;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

/// A batch is full with so many bytes, by a rough estimate. Less is lost with the end of a file than there is
/// in one of them; more packs hardly better.
const FULL: usize = 256 << 10;

/// The batch that is being filled, and what stands in it and in earlier ones.
pub(super) struct Batches<'a, 'o> {
    raw_recording: &'a RawRecording,
    out: &'o mut dyn Write,
    batch: Batch,
    // About as many bytes as it has.
    filled: usize,
    known: &'o mut WrittenIds,
    // Numbers by the raw recording's own indices, as far as they are known; plus one.
    locations: Vec<u32>,
    stacks: Vec<u32>,
    // The number of the first stack that this raw recording adds.
    first: u32,
    // Values that the next entries of this batch are relative to.
    last: Last,
}

#[derive(Default)]
struct Last {
    // The last value of each kind of location.
    values: HashMap<u32, u64>,
    user: u32,
    label: u32,
    // The process of the last label, and when it began.
    pid: u32,
    start: u64,
    // The last base that was written as a difference.
    base: u32,
}

/// By what labels are put in order: the process's beginning first.
pub(super) fn by_age(label: &Label) -> (u64, Label) {
    (label.start, *label)
}

/// Empties a column in which no row has a value.
fn clear_if_unset<T: Default + PartialEq>(column: &mut Vec<T>) {
    if column.iter().all(|value| *value == T::default()) {
        column.clear();
    }
}

fn difference(number: u32, before: u32) -> i64 {
    i64::from(number) - i64::from(before)
}

impl<'a, 'o> Batches<'a, 'o> {
    /// No batch yet.
    pub(super) fn new(
        raw_recording: &'a RawRecording,
        known: &'o mut WrittenIds,
        out: &'o mut dyn Write,
    ) -> Self {
        Self {
            raw_recording,
            out,
            batch: Batch::default(),
            filled: 0,
            first: known.stacks.next(),
            known,
            locations: vec![0; raw_recording.normalized.locations().len()],
            stacks: vec![0; raw_recording.normalized.stacks().len()],
            last: Last::default(),
        }
    }

    /// Begins a window.
    pub(super) fn window(&mut self, window: &Window) -> io::Result<()> {
        if self.filled > 0 {
            self.flush()?;
        }
        section::write(self.out, Kind::Window, window)
    }

    /// Writes what is in the batch.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let mut batch = std::mem::take(&mut self.batch);
        self.filled = 0;
        self.last = Last::default();
        if batch.sample_weights == batch.sample_counts {
            batch.sample_weights.clear();
        }
        let have_no_file = batch.name_files.iter().all(|file| *file == 0);
        if have_no_file && batch.name_lines.iter().all(|line| *line == 0) {
            batch.name_files.clear();
            batch.name_lines.clear();
        }
        clear_if_unset(&mut batch.location_places);
        clear_if_unset(&mut batch.name_defined);
        clear_if_unset(&mut batch.label_processes);
        clear_if_unset(&mut batch.label_cgroups);
        clear_if_unset(&mut batch.label_contexts);
        clear_if_unset(&mut batch.sample_wakers);
        section::write(self.out, Kind::Batch, &batch)
    }

    /// Makes room for so many bytes.
    fn room(&mut self, bytes: usize) -> io::Result<()> {
        if self.filled > 0 && self.filled + bytes > FULL {
            self.flush()?;
        }
        self.filled += bytes;
        Ok(())
    }

    /// Adds all labels that the file has not, those of processes that began one after the other behind each other: their
    /// differences are small, and those of samples on the same stacks as well.
    pub(super) fn labels(&mut self) -> io::Result<()> {
        let normalized = &self.raw_recording.normalized;
        let of_wakers = normalized.wakers().iter().map(|waker| waker.label);
        let of_samples = normalized.samples().map(|(key, _)| key.label);
        let mut labels: Vec<Label> = of_wakers.chain(of_samples).collect();
        labels.sort_unstable_by_key(by_age);
        labels.dedup();
        labels.into_iter().try_for_each(|label| {
            self.label(label)?;
            Ok(())
        })
    }

    /// Adds a sample.
    pub(super) fn sample(&mut self, key: &NormalizedKey, sums: Sums) -> io::Result<()> {
        let label = self.label(key.label)?;
        let user = self.stack_or_none(key.user)?;
        let kernel = self.stack_or_none(key.kernel)?;
        let waker = self.waker_or_none(key.waker)?;
        self.room(16)?;
        let batch = &mut self.batch;
        batch.sample_labels.push(difference(label, self.last.label));
        self.last.label = label;
        batch.sample_users.push(difference(user, self.last.user));
        self.last.user = user;
        batch.sample_kernels.push(kernel);
        batch.sample_thread_state.push(key.thread_state as u32);
        batch.sample_counts.push(sums.count);
        batch.sample_weights.push(sums.weight);
        batch.sample_wakers.push(waker);
        Ok(())
    }

    /// One more than the waker's number; zero for none.
    fn waker_or_none(&mut self, index: Option<WakerIndex>) -> io::Result<u32> {
        let Some(index) = index else {
            return Ok(0);
        };
        let waker = *self.raw_recording.normalized.waker_at(index);
        let label = self.label(waker.label)?;
        let user = self.stack_or_none(waker.user)?;
        let kernel = self.stack_or_none(waker.kernel)?;
        let numbers = [label, user, kernel];
        if let Some(number) = self.known.wakers.get(&numbers) {
            return Ok(number + 1);
        }
        self.room(12)?;
        self.batch.waker_labels.push(label);
        self.batch.waker_users.push(user);
        self.batch.waker_kernels.push(kernel);
        self.known.bytes += 32;
        Ok(self.known.wakers.give(numbers) + 1)
    }

    fn label(&mut self, label: Label) -> io::Result<u32> {
        let cgroup = self.raw_recording.normalized.cgroup_of(&label);
        let cgroup = cgroup.map(|cgroup| self.cgroup(cgroup)).transpose()?;
        let label = Label {
            cgroup: cgroup.map(CgroupIndex),
            ..label
        };
        let context = self.raw_recording.normalized.context_of(&label);
        let context = context.map(|context| self.context(context)).transpose()?;
        let known = (label, context.map_or(0, |context| context + 1));
        if let Some(number) = self.known.labels.get(&known) {
            return Ok(number);
        }
        let normalized = &self.raw_recording.normalized;
        let comm = normalized.thread_name(&label).to_vec();
        self.room(40 + comm.len())?;
        self.batch
            .label_cgroups
            .push(cgroup.map_or(0, |cgroup| cgroup + 1));
        self.batch.label_contexts.push(known.1);
        let number = |id: Option<u32>| id.map_or(0, |id| u64::from(id) + 1);
        let start = label.start.wrapping_sub(self.last.start).cast_signed();
        self.last.start = label.start;
        let pid = difference(label.pid, self.last.pid);
        self.last.pid = label.pid;
        self.batch.label_pids.push(pid);
        self.batch.label_starts.push(start);
        self.batch.label_comms.push(comm);
        let process = self.raw_recording.normalized.process_name(&label);
        self.batch
            .label_processes
            .push(process.map_or_else(Vec::new, |name| name.to_vec()));
        self.batch.label_tids.push(number(label.tid));
        self.batch.label_cpus.push(number(label.cpu));
        self.known.bytes += 64;
        Ok(self.known.labels.give(known))
    }

    /// The number of a cgroup, which is added unless the file has it.
    fn cgroup(&mut self, cgroup: &Arc<Cgroup>) -> io::Result<u32> {
        if let Some(number) = self.known.cgroups.get(cgroup) {
            return Ok(number);
        }
        let container = cgroup.container_name().unwrap_or_default();
        let pod = cgroup.pod_name().unwrap_or_default();
        let bytes = cgroup.path.len() + container.len() + pod.len();
        self.room(bytes)?;
        self.batch.cgroup_paths.push(cgroup.path.to_string());
        self.batch.cgroup_containers.push(container);
        self.batch.cgroup_pods.push(pod);
        self.known.bytes += 128 + bytes;
        Ok(self.known.cgroups.give(Arc::clone(cgroup)))
    }

    /// The number of a context, which is added unless the file has it.
    fn context(&mut self, context: &Arc<ProcessContext>) -> io::Result<u32> {
        if let Some(number) = self.known.contexts.get(context) {
            return Ok(number);
        }
        let (keys, values): (Vec<_>, Vec<_>) = (context.attributes())
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .unzip();
        let bytes = keys.iter().chain(&values).map(|text| text.len() + 4).sum();
        self.room(bytes)?;
        self.batch.context_lengths.push(keys.len() as u32);
        self.batch.context_keys.extend(keys);
        self.batch.context_values.extend(values);
        self.known.bytes += 128 + bytes;
        Ok(self.known.contexts.give(Arc::clone(context)))
    }

    /// One more than the stack's number; zero for none.
    pub(super) fn stack_or_none(&mut self, index: Option<NormalizedStackIndex>) -> io::Result<u32> {
        match index {
            Some(index) => Ok(self.stack(index)? + 1),
            None => Ok(0),
        }
    }

    /// Adds a stack, unless the file has it.
    pub(super) fn stack(&mut self, index: NormalizedStackIndex) -> io::Result<u32> {
        if let Some(number) = self.stacks[index.0 as usize].checked_sub(1) {
            return Ok(number);
        }
        let stack = self.raw_recording.normalized.stack_at(index);
        let mut locations = Vec::with_capacity(stack.locations.len());
        for location in stack.locations.iter().rev() {
            locations.push(self.location(*location)?);
        }
        let end = stack.end as u32 | u32::from(stack.fallbacks.bits()) << FALLBACKS_SHIFT;
        let (shared, node, base) = self.known.tree.find(locations.iter().copied());
        let known = (shared == locations.len()).then(|| self.known.stacks.get(&(node, end)));
        let number = match known.flatten() {
            Some(number) => number,
            None => {
                self.room(6 + 3 * (locations.len() - shared))?;
                let number = self.known.stacks.next();
                let rest = &locations[shared..];
                self.new_stack(base.filter(|_| shared > 0), shared, &locations, end);
                let node = self.known.tree.add(node, rest, number);
                self.known.bytes += 32 + 40 * rest.len();
                self.known.stacks.give((node, end))
            }
        };
        self.stacks[index.0 as usize] = number + 1;
        Ok(number)
    }

    /// Adds a stack that shares locations with that of the number `base`, and then has others.
    fn new_stack(&mut self, base: Option<u32>, shared: usize, locations: &[u32], end: u32) {
        let base = base.map_or(0, |base| self.base(base));
        let batch = &mut self.batch;
        batch.stack_bases.push(base);
        batch.stack_shared.push(shared as u32);
        batch.stack_lengths.push((locations.len() - shared) as u32);
        batch.stack_ends.push(end);
        let mut caller = shared.checked_sub(1).map(|last| locations[last]);
        for &location in &locations[shared..] {
            let new = self.known.next_location;
            batch
                .stack_steps
                .push(match self.known.callees.place(caller, location) {
                    Some(place) => STEP_CALLEE + place as u32,
                    None if location == new => STEP_NEW,
                    None => {
                        batch.stack_locations.push(new - location);
                        STEP_NEXT
                    }
                });
            self.known.next_location = new.max(location + 1);
            caller = Some(location);
        }
    }

    /// How a batch refers to the stack of this number, with which another shares locations.
    fn base(&mut self, number: u32) -> u32 {
        if number < self.first
            && let Some(more) = number.checked_sub(self.last.base)
        {
            self.last.base = number;
            return 2 * more + 1;
        }
        2 * (self.known.stacks.next() - number)
    }

    /// For each stack of the raw recording, the number of the one in the file that it shares the most locations with.
    pub(super) fn bases(&self) -> Vec<Option<u32>> {
        let normalized = &self.raw_recording.normalized;
        let locations: Vec<Option<u32>> = normalized
            .locations()
            .iter()
            .map(|location| self.known(location))
            .collect();
        let base = |stack: &NormalizedStack| {
            let from_root = stack.locations.iter().rev();
            let (_, _, base) = (self.known.tree)
                .find(from_root.map_while(|location| locations[location.0 as usize]));
            base
        };
        normalized.stacks().iter().map(base).collect()
    }

    /// The number of a location, if the file has it.
    fn known(&self, location: &Location) -> Option<u32> {
        let known = &*self.known;
        let key = match *location {
            Location::At { object, offset } => {
                let object = &self.raw_recording.objects[object.0 as usize];
                (LOCATION_OBJECT + known.objects.get(object)?, offset, 0)
            }
            Location::Named(name) | Location::Within { name, .. } => {
                let function = &self.raw_recording.normalized.names()[name as usize];
                let name = known.names.get(function)?;
                (LOCATION_NAMED, u64::from(name), place_of(location))
            }
            Location::Kernel(_) | Location::Unknown => (LOCATION_UNKNOWN, 0, 0),
        };
        known.locations.get(&key)
    }

    fn location(&mut self, index: LocationIndex) -> io::Result<u32> {
        if let Some(number) = self.locations[index.0 as usize].checked_sub(1) {
            return Ok(number);
        }
        let location = self.raw_recording.normalized.location_at(index);
        let key = match location {
            Location::At { object, offset } => (LOCATION_OBJECT + self.object(object)?, offset, 0),
            Location::Named(name) | Location::Within { name, .. } => (
                LOCATION_NAMED,
                u64::from(self.name(name)?),
                place_of(&location),
            ),
            // Kernel addresses have a meaning until that machine starts again.
            Location::Kernel(_) | Location::Unknown => (LOCATION_UNKNOWN, 0, 0),
        };
        let number = match self.known.locations.get(&key) {
            Some(number) => number,
            None => {
                self.room(16)?;
                let (kind, value, place) = key;
                self.batch.location_kinds.push(kind);
                let before = self.last.values.insert(kind, value).unwrap_or(0);
                let difference = value.wrapping_sub(before).cast_signed();
                self.batch.location_values.push(difference);
                self.batch.location_places.push(place);
                self.known.bytes += 40;
                self.known.locations.give(key)
            }
        };
        self.locations[index.0 as usize] = number + 1;
        Ok(number)
    }

    fn name(&mut self, name: u32) -> io::Result<u32> {
        let function = &self.raw_recording.normalized.names()[name as usize];
        if let Some(number) = self.known.names.get(function) {
            return Ok(number);
        }
        let file = match function.line {
            0 => 0,
            _ => self.file(&function.file)? + 1,
        };
        self.room(function.name.len() + 12)?;
        self.batch.names.push(function.name.clone());
        self.batch.name_kinds.push(kind_number(function.kind));
        self.batch.name_files.push(file);
        self.batch.name_lines.push(function.line);
        self.batch.name_defined.push(function.defined);
        self.known.bytes += 120 + function.name.len();
        Ok(self.known.names.give(function.clone()))
    }

    fn file(&mut self, file: &Arc<str>) -> io::Result<u32> {
        if let Some(number) = self.known.files.get(file) {
            return Ok(number);
        }
        self.room(file.len() + 4)?;
        self.batch.files.push(file.as_ref().to_owned());
        self.known.bytes += 96 + file.len();
        Ok(self.known.files.give(Arc::clone(file)))
    }

    fn object(&mut self, index: ObjectIndex) -> io::Result<u32> {
        let object = &self.raw_recording.objects[index.0 as usize];
        if let Some(number) = self.known.objects.get(object) {
            return Ok(number);
        }
        let RecordedObject {
            path,
            proof,
            segments,
        } = object;
        let segments = segments.all();
        self.room(path.as_os_str().len() + 96 + 32 * segments.len())?;
        let batch = &mut self.batch;
        batch
            .object_paths
            .push(path.as_os_str().as_bytes().to_vec());
        batch.object_kinds.push(u32::from(proof.is_some()));
        let build_id = proof.as_ref().and_then(|proof| proof.build_id.as_ref());
        let build_id = build_id.map(|id| id.bytes().to_vec());
        batch.object_build_ids.push(build_id.unwrap_or_default());
        batch
            .object_sizes
            .push(proof.as_ref().map_or(0, |proof| proof.size));
        batch
            .object_modified_ns
            .push(proof.as_ref().map_or(0, |proof| proof.modified_ns));
        batch.object_segments.push(segments.len() as u32);
        for segment in segments {
            batch.segment_offsets.push(segment.file.start);
            batch
                .segment_sizes
                .push(segment.file.end.saturating_sub(segment.file.start));
            batch.segment_addresses.push(segment.address);
            batch.segment_kinds.push(u32::from(segment.executable));
        }
        self.known.bytes += 256 + path.as_os_str().len();
        Ok(self.known.objects.give(object.clone()))
    }
}

/// The format's place of a location in its function.
fn place_of(location: &Location) -> u64 {
    match *location {
        Location::Within { place, .. } => place.saturating_add(1),
        _ => 0,
    }
}

/// The first of the format's numbers of interpreted functions; their [`RuntimeKind`] is added to it.
const INTERPRETED: u32 = 5;

/// The kind of a named location with this number in the format.
pub(super) fn kind_of(number: u32) -> Option<FrameKind> {
    Some(match number {
        0 => FrameKind::User,
        1 => FrameKind::Jit,
        2 => FrameKind::Inlined,
        3 => FrameKind::Kernel,
        4 => FrameKind::Mark,
        _ => {
            let runtime = u8::try_from(number - INTERPRETED).ok()?;
            FrameKind::Interpreted(RuntimeKind::from_code(runtime)?)
        }
    })
}

/// The format's number of a kind. Owners and states are told elsewhere.
fn kind_number(kind: FrameKind) -> u32 {
    match kind {
        FrameKind::User | FrameKind::Process | FrameKind::Label | FrameKind::State(_) => 0,
        FrameKind::Jit => 1,
        FrameKind::Inlined => 2,
        FrameKind::Kernel => 3,
        FrameKind::Mark => 4,
        FrameKind::Interpreted(runtime) => INTERPRETED + runtime as u32,
    }
}
