//! What is taken from the batches of a raw recording.
//!
//! In: batches, one after the other, and how much memory there is. Out: a [`Located`] profile and its objects,
//! or why a batch cannot be taken. Every number is checked; a budget is spent before memory is.

use super::batches::KINDS;
use super::wire::{Batch, GUESSED, SPOT_NAMED, SPOT_OBJECT, SPOT_UNKNOWN};
use crate::object::{BuildId, Proof, RecordedObject, Segment, Segments};
use crate::profile::Frame;
use crate::profile::located::{
    Label, Located, LocatedKey, LocatedStack, LocatedStackIndex, LocatedWaker, ObjectIndex, Spot,
    SpotIndex, Sums, WakerIndex,
};
use profiler_common::abi::{Doing, StackEnd};
use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

/// No stack is longer: a user stack has 1,024 frames, a kernel stack 127.
const MOST_FRAMES: usize = 4096;

/// Why a batch was not taken.
pub(super) enum Stop {
    /// There is no memory left for it.
    Full,
    /// It makes no sense.
    Nonsense(&'static str),
}

/// What may still be taken into memory.
pub(super) struct Budget(u64);

impl Budget {
    /// Takes so many bytes, if there are so many.
    pub(super) fn spend(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.checked_sub(bytes as u64)?;
        Some(())
    }
}

/// What was taken from the batches so far. What a file numbers may be less once it is taken, where two of
/// it are equal; so there is a list for each.
pub(super) struct Taken {
    pub(super) budget: Budget,
    pub(super) located: Located,
    pub(super) objects: Vec<RecordedObject>,
    /// Whether samples are wanted: those of some windows may not be.
    pub(super) wanted: bool,
    object_indices: HashMap<RecordedObject, ObjectIndex>,
    object_numbers: Vec<ObjectIndex>,
    names: Vec<Spot>,
    spots: Vec<SpotIndex>,
    stacks: Vec<LocatedStackIndex>,
    labels: Vec<Label>,
    wakers: Vec<WakerIndex>,
    /// One more than the highest number of a spot that a stack has.
    next_spot: u32,
    /// All samples, wanted or not.
    pub(super) samples: u64,
    /// Of those that are wanted.
    pub(super) sums: Sums,
}

impl Taken {
    /// Nothing yet, and so many bytes to take.
    pub(super) fn new(most: u64) -> Self {
        Self {
            budget: Budget(most),
            located: Located::default(),
            objects: Vec::new(),
            wanted: true,
            object_indices: HashMap::new(),
            object_numbers: Vec::new(),
            names: Vec::new(),
            spots: Vec::new(),
            stacks: Vec::new(),
            labels: Vec::new(),
            wakers: Vec::new(),
            next_spot: 0,
            samples: 0,
            sums: Sums::default(),
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), Stop> {
        self.budget.spend(bytes).ok_or(Stop::Full)
    }

    /// Numbers begin at 0 again.
    pub(super) fn begin_anew(&mut self) {
        self.object_numbers.clear();
        self.names.clear();
        self.spots.clear();
        self.stacks.clear();
        self.labels.clear();
        self.wakers.clear();
        self.next_spot = 0;
    }

    /// Takes a batch.
    pub(super) fn take(&mut self, mut batch: Batch) -> Result<(), Stop> {
        self.take_objects(&mut batch)?;
        self.take_names(&mut batch)?;
        self.take_spots(&batch)?;
        self.take_stacks(&batch)?;
        self.take_labels(&batch)?;
        self.take_wakers(&batch)?;
        self.take_samples(&batch)
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
            self.spend(320 + 2 * path.len() + 80 * count)?;
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
            let index = self.object(object);
            self.object_numbers.push(index);
            next = end;
        }
        Ok(())
    }

    fn object(&mut self, object: RecordedObject) -> ObjectIndex {
        if let Some(index) = self.object_indices.get(&object) {
            return *index;
        }
        let index = ObjectIndex(u32::try_from(self.objects.len()).unwrap_or(u32::MAX));
        self.objects.push(object.clone());
        self.object_indices.insert(object, index);
        index
    }

    fn take_names(&mut self, batch: &mut Batch) -> Result<(), Stop> {
        let names = std::mem::take(&mut batch.names);
        if names.len() != batch.name_kinds.len() {
            return Err(Stop::Nonsense("there is a name without a kind"));
        }
        for (name, kind) in names.into_iter().zip(&batch.name_kinds) {
            self.spend(160 + 3 * name.len())?;
            let kind = KINDS.iter().find(|(_, number)| number == kind);
            let Some((kind, _)) = kind else {
                return Err(Stop::Nonsense("there is a name of an unknown kind"));
            };
            let frame = Frame { name, kind: *kind };
            self.names.push(self.located.name(frame));
        }
        Ok(())
    }

    fn take_spots(&mut self, batch: &Batch) -> Result<(), Stop> {
        if batch.spot_kinds.len() != batch.spot_values.len() {
            return Err(Stop::Nonsense("there is a spot without a value"));
        }
        let mut values: HashMap<u32, u64> = HashMap::new();
        for (kind, difference) in batch.spot_kinds.iter().zip(&batch.spot_values) {
            self.spend(120)?;
            let value = values.entry(*kind).or_default();
            *value = value.wrapping_add_signed(*difference);
            let spot = match *kind {
                SPOT_UNKNOWN => Spot::Unknown,
                SPOT_NAMED => *usize::try_from(*value)
                    .ok()
                    .and_then(|name| self.names.get(name))
                    .ok_or(Stop::Nonsense("there is a spot whose name is not there"))?,
                kind => {
                    let object = self.object_numbers.get((kind - SPOT_OBJECT) as usize);
                    Spot::At {
                        object: *object
                            .ok_or(Stop::Nonsense("there is a spot whose object is not there"))?,
                        offset: *value,
                    }
                }
            };
            self.spots.push(self.located.spot(spot));
        }
        Ok(())
    }

    fn take_stacks(&mut self, batch: &Batch) -> Result<(), Stop> {
        let stacks = batch.stack_shared.len();
        let columns = [
            batch.stack_bases.len(),
            batch.stack_lengths.len(),
            batch.stack_ends.len(),
        ];
        if columns != [stacks; 3] {
            return Err(Stop::Nonsense("there is a stack that is incomplete"));
        }
        let mut next = 0;
        // The stack's spots, from the root.
        let mut spots: Vec<SpotIndex> = Vec::new();
        for at in 0..stacks {
            let (shared, length) = (
                batch.stack_shared[at] as usize,
                batch.stack_lengths[at] as usize,
            );
            let end = next_end(next, length, batch.stack_spots.len());
            let base = match batch.stack_bases[at] {
                0 => &[][..],
                back => {
                    let base = self.stacks.len().checked_sub(back as usize);
                    let base = base.and_then(|base| self.stacks.get(base));
                    let base =
                        base.ok_or(Stop::Nonsense("there is a stack that shares none's spots"))?;
                    &*self.located.stack_at(*base).spots
                }
            };
            let end = end
                .filter(|_| shared <= base.len() && shared.saturating_add(length) <= MOST_FRAMES);
            let Some(end) = end else {
                return Err(Stop::Nonsense("there is a stack of no sensible length"));
            };
            spots.clear();
            spots.extend(base.iter().rev().take(shared));
            self.spend(128 + 4 * (shared + length))?;
            for difference in &batch.stack_spots[next..end] {
                let spot = self.next_spot.checked_sub(*difference);
                let spot = spot.filter(|spot| (*spot as usize) < self.spots.len());
                let spot =
                    spot.ok_or(Stop::Nonsense("there is a stack whose spot is not there"))?;
                self.next_spot = self.next_spot.max(spot + 1);
                spots.push(self.spots[spot as usize]);
            }
            next = end;
            let flags = batch.stack_ends[at];
            let why = u8::try_from(flags & !GUESSED)
                .ok()
                .and_then(StackEnd::from_code)
                .ok_or(Stop::Nonsense("there is a stack with an unknown end"))?;
            let stack = LocatedStack {
                spots: spots.iter().rev().copied().collect(),
                end: why,
                guessed: flags & GUESSED != 0,
            };
            self.stacks.push(self.located.stack(stack));
        }
        Ok(())
    }

    fn take_labels(&mut self, batch: &Batch) -> Result<(), Stop> {
        let labels = batch.label_comms.len();
        if [batch.label_tids.len(), batch.label_cpus.len()] != [labels; 2] {
            return Err(Stop::Nonsense("there is a label that is incomplete"));
        }
        let number = |number: u64| match number.checked_sub(1) {
            None => Ok(None),
            Some(id) => u32::try_from(id)
                .map(Some)
                .map_err(|_| Stop::Nonsense("there is a thread or CPU of no sensible number")),
        };
        for (at, name) in batch.label_comms.iter().enumerate() {
            self.spend(64)?;
            let mut comm = [0; 16];
            let Some(place) = comm.get_mut(..name.len()) else {
                return Err(Stop::Nonsense("there is a label that is too long"));
            };
            place.copy_from_slice(name);
            self.labels.push(Label {
                comm,
                tid: number(batch.label_tids[at])?,
                cpu: number(batch.label_cpus[at])?,
            });
        }
        Ok(())
    }

    fn take_wakers(&mut self, batch: &Batch) -> Result<(), Stop> {
        let wakers = batch.waker_labels.len();
        if [batch.waker_users.len(), batch.waker_kernels.len()] != [wakers; 2] {
            return Err(Stop::Nonsense("there is a waker that is incomplete"));
        }
        for (at, label) in batch.waker_labels.iter().enumerate() {
            self.spend(96)?;
            let label = self.labels.get(*label as usize).copied();
            let waker = LocatedWaker {
                label: label.ok_or(Stop::Nonsense("there is a waker whose label is not there"))?,
                user: self.stack(batch.waker_users[at])?,
                kernel: self.stack(batch.waker_kernels[at])?,
            };
            self.wakers.push(self.located.waker(waker));
        }
        Ok(())
    }

    fn take_samples(&mut self, batch: &Batch) -> Result<(), Stop> {
        let samples = batch.sample_labels.len();
        let columns = [
            batch.sample_users.len(),
            batch.sample_kernels.len(),
            batch.sample_doing.len(),
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
        let mut user = 0u32;
        for (at, &weight) in weights.iter().enumerate() {
            let label = self.labels.get(batch.sample_labels[at] as usize).copied();
            let label =
                label.ok_or(Stop::Nonsense("there is a sample whose label is not there"))?;
            user = i64::from(user)
                .checked_add(batch.sample_users[at])
                .and_then(|user| u32::try_from(user).ok())
                .ok_or(Stop::Nonsense("there is a sample whose stack is not there"))?;
            let kernel = self.stack(batch.sample_kernels[at])?;
            let doing = match batch.sample_doing[at] {
                0 => Doing::Running,
                1 => Doing::Blocked,
                2 => Doing::Runnable,
                3 => Doing::Ran,
                4 => Doing::Woken,
                _ => return Err(Stop::Nonsense("there is a sample of an unknown kind")),
            };
            let users = self.stack(user)?;
            let waker = self.waker(batch.sample_wakers.get(at).copied())?;
            if waker.is_some() && doing != Doing::Woken {
                return Err(Stop::Nonsense("there is a waker of no wait"));
            }
            let frames = |index: Option<LocatedStackIndex>| {
                index.map_or(0, |index| self.located.stack_at(index).spots.len())
            };
            let woke = waker.map_or(0, |index| {
                let waker = self.located.waker_at(index);
                frames(waker.user) + frames(waker.kernel)
            });
            // Naming makes one list of all stacks.
            let named = 4 * (frames(users) + frames(kernel) + woke);
            let key = LocatedKey {
                label,
                user: users,
                kernel,
                doing,
                track: 0,
                waker,
            };
            let sums = Sums {
                weight,
                count: batch.sample_counts[at],
            };
            // Whoever adds these up need not look out.
            let weight = self.sums.weight.checked_add(sums.weight);
            let count = self.sums.count.checked_add(sums.count);
            let (Some(weight), Some(count)) = (weight, count) else {
                return Err(Stop::Nonsense("there are more firings than can be"));
            };
            self.samples += 1;
            if self.wanted {
                self.sums = Sums { weight, count };
                let before = self.located.samples().len();
                self.located.add(key, sums);
                // What several windows have takes no more than what one has.
                if self.located.samples().len() > before {
                    self.spend(256 + 2 * named)?;
                }
            }
        }
        Ok(())
    }

    fn waker(&self, number: Option<u32>) -> Result<Option<WakerIndex>, Stop> {
        match number.unwrap_or(0).checked_sub(1) {
            None => Ok(None),
            Some(number) => self
                .wakers
                .get(number as usize)
                .map(|waker| Some(*waker))
                .ok_or(Stop::Nonsense("there is a sample whose waker is not there")),
        }
    }

    fn stack(&self, number: u32) -> Result<Option<LocatedStackIndex>, Stop> {
        match number.checked_sub(1) {
            None => Ok(None),
            Some(number) => self
                .stacks
                .get(number as usize)
                .map(|stack| Some(*stack))
                .ok_or(Stop::Nonsense("there is a sample whose stack is not there")),
        }
    }
}

/// Where `count` more from `next` on end, if there are so many.
fn next_end(next: usize, count: usize, all: usize) -> Option<usize> {
    next.checked_add(count).filter(|end| *end <= all)
}
