//! Samples taken from the batches of a raw recording.
//!
//! In: batches, one after the other, and how much memory there is. Out: a [`NormalizedProfile`] of those samples that are wanted,
//! and its objects, or why a batch cannot be taken. Every number is checked; a budget is spent before much memory is.

use super::budget::{Budget, Stop};
use super::tables::{CodeLocation, Tables, sum};
use super::wire::Batch;
use crate::object::{BuildId, Proof, RecordedObject, Segment, Segments};
use crate::profile::WindowIndex;
use crate::profile::normalized::{
    CgroupIndex, Label, Location, LocationIndex, NormalizedKey, NormalizedProfile, NormalizedStack,
    NormalizedStackIndex, NormalizedWaker, ObjectIndex, Sums, WakerIndex,
};
use profiler_common::abi::ThreadState;
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// Samples taken from the batches so far, with all that they refer to.
pub(super) struct Taken {
    budget: Budget,
    tables: Tables,
    pub(super) normalized: NormalizedProfile,
    pub(super) objects: Vec<RecordedObject>,
    object_indices: HashMap<RecordedObject, ObjectIndex>,
    /// All samples, wanted or not.
    pub(super) samples: u64,
    /// Of those that are wanted.
    pub(super) sums: Sums,
}

impl Taken {
    /// Nothing yet, and so many bytes to take.
    pub(super) fn new(most: u64) -> Self {
        Self {
            budget: Budget::new(most),
            tables: Tables::default(),
            normalized: NormalizedProfile::default(),
            objects: Vec::new(),
            object_indices: HashMap::new(),
            samples: 0,
            sums: Sums::default(),
        }
    }

    /// Numbers begin at 0 again.
    pub(super) fn begin_anew(&mut self) {
        self.tables = Tables::default();
        self.budget.begin_anew();
    }

    /// Takes a batch: its samples, too, if they are `wanted`, as those of a window.
    pub(super) fn take(
        &mut self,
        mut batch: Batch,
        wanted: Option<WindowIndex>,
    ) -> Result<(), Stop> {
        self.take_objects(&mut batch)?;
        self.tables.take(&mut batch, &mut self.budget)?;
        self.take_samples(&batch, wanted)
    }

    fn take_objects(&mut self, batch: &mut Batch) -> Result<(), Stop> {
        let wrong = Stop::Nonsense("there is an object that is incomplete");
        let objects = batch.object_paths.len();
        let columns = [
            batch.object_kinds.len(),
            batch.object_build_ids.len(),
            batch.object_sizes.len(),
            batch.object_modified_ns.len(),
            batch.object_segments.len(),
        ];
        let segments = batch.segment_offsets.len();
        let segment_columns = [
            batch.segment_sizes.len(),
            batch.segment_addresses.len(),
            batch.segment_kinds.len(),
        ];
        if columns != [objects; 5] || segment_columns != [segments; 3] {
            return Err(wrong);
        }
        let mut next = 0;
        for (at, path) in std::mem::take(&mut batch.object_paths)
            .into_iter()
            .enumerate()
        {
            let count = batch.object_segments[at] as usize;
            let Some(end) = next_end(next, count, segments) else {
                return Err(wrong);
            };
            let all = (next..end).map(|of| Segment {
                file: batch.segment_offsets[of]
                    ..batch.segment_offsets[of].saturating_add(batch.segment_sizes[of]),
                address: batch.segment_addresses[of],
                executable: batch.segment_kinds[of] != 0,
            });
            let build_id = &batch.object_build_ids[at];
            let proof = (batch.object_kinds[at] != 0).then(|| Proof {
                build_id: BuildId::new(build_id),
                size: batch.object_sizes[at],
                modified_ns: batch.object_modified_ns[at],
            });
            if proof.as_ref().is_some_and(|proof| proof.build_id.is_none()) && !build_id.is_empty()
            {
                return Err(Stop::Nonsense("there is a build ID of no sensible length"));
            }
            let object = RecordedObject {
                path: PathBuf::from(OsString::from_vec(path)),
                proof,
                segments: Segments::new(all.collect()),
            };
            let index = self.object(object)?;
            self.tables.objects.push(index);
            next = end;
        }
        Ok(())
    }

    fn object(&mut self, object: RecordedObject) -> Result<ObjectIndex, Stop> {
        self.budget.spend_for_number(8)?;
        if let Some(index) = self.object_indices.get(&object) {
            return Ok(*index);
        }
        let (path, segments) = (object.path.as_os_str(), object.segments.all());
        self.budget
            .spend(320 + 2 * path.len() + 80 * segments.len())?;
        let index = ObjectIndex(u32::try_from(self.objects.len()).unwrap_or(u32::MAX));
        self.objects.push(object.clone());
        self.object_indices.insert(object, index);
        Ok(index)
    }

    fn take_samples(&mut self, batch: &Batch, wanted: Option<WindowIndex>) -> Result<(), Stop> {
        let samples = batch.sample_labels.len();
        let columns = [
            batch.sample_users.len(),
            batch.sample_kernels.len(),
            batch.sample_thread_state.len(),
            batch.sample_counts.len(),
        ];
        let weights = match batch.sample_weights.is_empty() {
            true => &batch.sample_counts,
            false => &batch.sample_weights,
        };
        if columns != [samples; 4] || weights.len() != samples {
            return Err(Stop::Nonsense("there is a sample that is incomplete"));
        }
        if !batch.sample_wakers.is_empty() && batch.sample_wakers.len() != samples {
            return Err(Stop::Nonsense("there is a sample that is incomplete"));
        }
        let (mut number, mut user) = (0, 0);
        for (at, &weight) in weights.iter().enumerate() {
            let no_label = || Stop::Nonsense("there is a sample whose label is not there");
            number = sum(number, batch.sample_labels[at]).ok_or_else(no_label)?;
            let label = self.tables.labels.get(number as usize);
            let label = *label.ok_or_else(no_label)?;
            user = sum(user, batch.sample_users[at])
                .ok_or(Stop::Nonsense("there is a sample whose stack is not there"))?;
            let (user, kernel) = (
                self.tables.stack(user)?,
                self.tables.stack(batch.sample_kernels[at])?,
            );
            let thread_state = match batch.sample_thread_state[at] {
                0 => ThreadState::Running,
                1 => ThreadState::Blocked,
                2 => ThreadState::Runnable,
                3 => ThreadState::Ran,
                4 => ThreadState::Woken,
                _ => return Err(Stop::Nonsense("there is a sample of an unknown kind")),
            };
            let waker = batch.sample_wakers.get(at).copied().unwrap_or(0);
            if waker as usize > self.tables.wakers.len() {
                return Err(Stop::Nonsense("there is a sample whose waker is not there"));
            }
            if waker > 0 && thread_state != ThreadState::Woken {
                return Err(Stop::Nonsense("there is a waker of no wait"));
            }
            let sums = Sums {
                weight,
                count: batch.sample_counts[at],
            };
            // So later sums cannot overflow.
            let weight = self.sums.weight.checked_add(sums.weight);
            let count = self.sums.count.checked_add(sums.count);
            let (Some(weight), Some(count)) = (weight, count) else {
                return Err(Stop::Nonsense("there are more firings than can be"));
            };
            self.samples += 1;
            if let Some(window) = wanted {
                let key = NormalizedKey {
                    label: self.label(label),
                    user: self.stack(user)?,
                    kernel: self.stack(kernel)?,
                    thread_state,
                    event: 0,
                    waker: self.waker(waker)?,
                    window,
                };
                self.sample(key, sums)?;
                self.sums = Sums { weight, count };
            }
        }
        Ok(())
    }

    /// Takes the name and the context of the process that a label is of, and the thread's whole name.
    fn name_process(&mut self, label: &Label) {
        let Label { pid, start, .. } = *label;
        if let Some(context) = self.tables.contexts.get(&(pid, start)) {
            self.normalized.note_context(pid, start, context);
        }
        if let Some(name) = self.tables.processes.get(&(pid, start)) {
            self.normalized.name_process(pid, start, name);
        }
        let threads = &self.tables.threads;
        let name = label.thread().and_then(|thread| threads.get(&thread));
        if let Some(name) = name {
            self.normalized.name_thread(label, name);
        }
    }

    /// A label with the profile's own index of its cgroup.
    fn label(&mut self, label: Label) -> Label {
        let cgroup = label.cgroup.map(|CgroupIndex(number)| {
            let cgroup = &self.tables.cgroups[number as usize];
            self.normalized.cgroup(cgroup)
        });
        Label { cgroup, ..label }
    }

    fn sample(&mut self, key: NormalizedKey, sums: Sums) -> Result<(), Stop> {
        let before = self.normalized.samples().len();
        self.normalized.add(key, sums);
        self.name_process(&key.label);
        // Samples of several windows with the same key take no more memory than one.
        if self.normalized.samples().len() == before {
            return Ok(());
        }
        let frames = |index: Option<NormalizedStackIndex>| {
            index.map_or(0, |index| self.normalized.stack_at(index).locations.len())
        };
        let woke = key.waker.map_or(0, |index| {
            let waker = self.normalized.waker_at(index);
            frames(waker.user) + frames(waker.kernel)
        });
        // Naming makes one list of all stacks.
        let named = 4 * (frames(key.user) + frames(key.kernel) + woke);
        self.budget.spend(256 + 2 * named)
    }

    /// The profile's stack for a number, one more than a stack's or zero, that is known to be there.
    fn stack(&mut self, number: u32) -> Result<Option<NormalizedStackIndex>, Stop> {
        let Some(stack) = number.checked_sub(1) else {
            return Ok(None);
        };
        if let Some(index) = *self.tables.normalized(stack) {
            return Ok(Some(index));
        }
        let numbers = self.tables.locations_of(stack);
        self.budget.spend(128 + 4 * numbers.len())?;
        let mut locations = Vec::with_capacity(numbers.len());
        for location in numbers {
            locations.push(self.location(location)?);
        }
        let (end, fallbacks) = self.tables.end_of(stack);
        let index = self.normalized.stack(NormalizedStack {
            locations: locations.into(),
            end,
            fallbacks,
        });
        *self.tables.normalized(stack) = Some(index);
        Ok(Some(index))
    }

    fn location(&mut self, number: u32) -> Result<LocationIndex, Stop> {
        let entry = self.tables.locations[number as usize];
        if let Some(index) = entry.normalized {
            return Ok(index);
        }
        self.budget.spend(64)?;
        let location = match entry.place {
            CodeLocation::Unknown => Location::Unknown,
            CodeLocation::Named(name) => self.name(name)?,
            CodeLocation::Within { name, place } => match self.name(name)? {
                Location::Named(name) => Location::Within { name, place },
                other => other,
            },
            CodeLocation::At { object, offset } => Location::At { object, offset },
        };
        let index = self.normalized.location(location);
        self.tables.locations[number as usize].normalized = Some(index);
        Ok(index)
    }

    fn name(&mut self, number: u32) -> Result<Location, Stop> {
        let entry = &mut self.tables.names[number as usize];
        if let Some(location) = entry.normalized {
            return Ok(location);
        }
        self.budget.spend(160 + 3 * entry.function.name.len())?;
        let location = self.normalized.name(entry.function.clone());
        entry.normalized = Some(location);
        Ok(location)
    }

    fn waker(&mut self, number: u32) -> Result<Option<WakerIndex>, Stop> {
        let Some(number) = number.checked_sub(1) else {
            return Ok(None);
        };
        let entry = self.tables.wakers[number as usize];
        if entry.normalized.is_some() {
            return Ok(entry.normalized);
        }
        self.budget.spend(96)?;
        self.name_process(&entry.label);
        let waker = NormalizedWaker {
            label: self.label(entry.label),
            user: self.stack(entry.user)?,
            kernel: self.stack(entry.kernel)?,
        };
        let index = self.normalized.waker(waker);
        self.tables.wakers[number as usize].normalized = Some(index);
        Ok(Some(index))
    }
}

/// Where `count` more from `next` on end, if there are so many.
fn next_end(next: usize, count: usize, all: usize) -> Option<usize> {
    next.checked_add(count).filter(|end| *end <= all)
}
