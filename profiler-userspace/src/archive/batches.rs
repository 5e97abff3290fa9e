//! From what is located to batches of a raw recording.
//!
//! In: an [`Archive`], sample by sample, and what the file has already. Out: sections in which everything stands before its
//! first use.

use super::Archive;
use super::known::Known;
use super::section::{self, Kind};
use super::wire::{
    Batch, GUESSED, SPOT_NAMED, SPOT_OBJECT, SPOT_UNKNOWN, STEP_CALLEE, STEP_NEW, STEP_TOLD,
};
use crate::object::RecordedObject;
use crate::profile::FrameKind;
use crate::profile::located::{
    Label, LocatedKey, LocatedStack, LocatedStackIndex, ObjectIndex, Spot, SpotIndex, Sums,
    WakerIndex,
};
use std::collections::HashMap;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;

/// A batch is full with so many bytes, by a rough estimate. Less is lost with the end of a file than there is
/// in one of them; more packs hardly better.
const FULL: usize = 256 << 10;

/// The batch that is being filled, and what stands in it and in earlier ones.
pub(super) struct Batches<'a, 'o> {
    archive: &'a Archive,
    out: &'o mut dyn Write,
    batch: Batch,
    // About as many bytes as it has.
    filled: usize,
    known: &'o mut Known,
    // Numbers by the archive's own indices, as far as they are known; plus one.
    spots: Vec<u32>,
    stacks: Vec<u32>,
    // The number of the first stack that this archive adds.
    first: u32,
    // What the next entries of this batch are told in terms of.
    last: Last,
}

#[derive(Default)]
struct Last {
    // The last value of each kind of spot.
    values: HashMap<u32, u64>,
    user: u32,
    // The last base that was told as a difference.
    base: u32,
}

impl<'a, 'o> Batches<'a, 'o> {
    /// No batch yet.
    pub(super) fn new(archive: &'a Archive, known: &'o mut Known, out: &'o mut dyn Write) -> Self {
        Self {
            archive,
            out,
            batch: Batch::default(),
            filled: 0,
            first: known.stacks.next(),
            known,
            spots: vec![0; archive.located.spots().len()],
            stacks: vec![0; archive.located.stacks().len()],
            last: Last::default(),
        }
    }

    /// Writes what is in the batch.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let mut batch = std::mem::take(&mut self.batch);
        self.filled = 0;
        self.last = Last::default();
        if batch.sample_weights == batch.sample_counts {
            batch.sample_weights.clear();
        }
        if batch.sample_wakers.iter().all(|waker| *waker == 0) {
            batch.sample_wakers.clear();
        }
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

    /// Adds a sample.
    pub(super) fn sample(&mut self, key: &LocatedKey, sums: Sums) -> io::Result<()> {
        let label = self.label(key.label)?;
        let user = self.stack_or_none(key.user)?;
        let kernel = self.stack_or_none(key.kernel)?;
        let waker = self.waker_or_none(key.waker)?;
        self.room(16)?;
        let batch = &mut self.batch;
        batch.sample_labels.push(label);
        batch
            .sample_users
            .push(i64::from(user) - i64::from(self.last.user));
        self.last.user = user;
        batch.sample_kernels.push(kernel);
        batch.sample_doing.push(key.doing as u32);
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
        let waker = *self.archive.located.waker_at(index);
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
        if let Some(number) = self.known.labels.get(&label) {
            return Ok(number);
        }
        self.room(24)?;
        let number = |id: Option<u32>| id.map_or(0, |id| u64::from(id) + 1);
        let comm = label.comm.split(|&byte| byte == 0).next();
        self.batch
            .label_comms
            .push(comm.unwrap_or_default().to_vec());
        self.batch.label_tids.push(number(label.tid));
        self.batch.label_cpus.push(number(label.cpu));
        self.known.bytes += 64;
        Ok(self.known.labels.give(label))
    }

    /// One more than the stack's number; zero for none.
    pub(super) fn stack_or_none(&mut self, index: Option<LocatedStackIndex>) -> io::Result<u32> {
        match index {
            Some(index) => Ok(self.stack(index)? + 1),
            None => Ok(0),
        }
    }

    /// Adds a stack, unless the file has it.
    pub(super) fn stack(&mut self, index: LocatedStackIndex) -> io::Result<u32> {
        if let Some(number) = self.stacks[index.0 as usize].checked_sub(1) {
            return Ok(number);
        }
        let stack = self.archive.located.stack_at(index);
        let mut spots = Vec::with_capacity(stack.spots.len());
        for spot in stack.spots.iter().rev() {
            spots.push(self.spot(*spot)?);
        }
        let end = stack.end as u32 | if stack.guessed { GUESSED } else { 0 };
        let (shared, node, base) = self.known.tree.find(spots.iter().copied());
        let known = (shared == spots.len()).then(|| self.known.stacks.get(&(node, end)));
        let number = match known.flatten() {
            Some(number) => number,
            None => {
                self.room(6 + 3 * (spots.len() - shared))?;
                let number = self.known.stacks.next();
                let rest = &spots[shared..];
                self.new_stack(base.filter(|_| shared > 0), shared, &spots, end);
                let node = self.known.tree.add(node, rest, number);
                self.known.bytes += 32 + 40 * rest.len();
                self.known.stacks.give((node, end))
            }
        };
        self.stacks[index.0 as usize] = number + 1;
        Ok(number)
    }

    /// Adds a stack that shares spots with that of the number `base`, and then has others.
    fn new_stack(&mut self, base: Option<u32>, shared: usize, spots: &[u32], end: u32) {
        let base = base.map_or(0, |base| self.base(base));
        let batch = &mut self.batch;
        batch.stack_bases.push(base);
        batch.stack_shared.push(shared as u32);
        batch.stack_lengths.push((spots.len() - shared) as u32);
        batch.stack_ends.push(end);
        let mut caller = shared.checked_sub(1).map(|last| spots[last]);
        for &spot in &spots[shared..] {
            let new = self.known.next_spot;
            batch
                .stack_steps
                .push(match self.known.callees.place(caller, spot) {
                    Some(place) => STEP_CALLEE + place as u32,
                    None if spot == new => STEP_NEW,
                    None => {
                        batch.stack_spots.push(new - spot);
                        STEP_TOLD
                    }
                });
            self.known.next_spot = new.max(spot + 1);
            caller = Some(spot);
        }
    }

    /// How a batch tells of the stack of this number that another shares spots with.
    fn base(&mut self, number: u32) -> u32 {
        if number < self.first
            && let Some(more) = number.checked_sub(self.last.base)
        {
            self.last.base = number;
            return 2 * more + 1;
        }
        2 * (self.known.stacks.next() - number)
    }

    /// For each stack of the archive, the number of the one in the file that it shares the most spots with.
    pub(super) fn bases(&self) -> Vec<Option<u32>> {
        let located = &self.archive.located;
        let spots: Vec<Option<u32>> = located
            .spots()
            .iter()
            .map(|spot| self.known(spot))
            .collect();
        let base = |stack: &LocatedStack| {
            let from_root = stack.spots.iter().rev();
            let (_, _, base) =
                (self.known.tree).find(from_root.map_while(|spot| spots[spot.0 as usize]));
            base
        };
        located.stacks().iter().map(base).collect()
    }

    /// The number of a spot, if the file has it.
    fn known(&self, spot: &Spot) -> Option<u32> {
        let known = &*self.known;
        let key = match *spot {
            Spot::At { object, offset } => {
                let object = &self.archive.objects[object.0 as usize];
                (SPOT_OBJECT + known.objects.get(object)?, offset)
            }
            Spot::Named(name) => {
                let frame = &self.archive.located.names()[name as usize];
                (SPOT_NAMED, u64::from(known.names.get(frame)?))
            }
            Spot::Kernel(_) | Spot::Unknown => (SPOT_UNKNOWN, 0),
        };
        known.spots.get(&key)
    }

    fn spot(&mut self, index: SpotIndex) -> io::Result<u32> {
        if let Some(number) = self.spots[index.0 as usize].checked_sub(1) {
            return Ok(number);
        }
        let key = match self.archive.located.spot_at(index) {
            Spot::At { object, offset } => (SPOT_OBJECT + self.object(object)?, offset),
            Spot::Named(name) => (SPOT_NAMED, u64::from(self.name(name)?)),
            // What the kernel calls its addresses is known to that kernel alone.
            Spot::Kernel(_) | Spot::Unknown => (SPOT_UNKNOWN, 0),
        };
        let number = match self.known.spots.get(&key) {
            Some(number) => number,
            None => {
                self.room(8)?;
                let (kind, value) = key;
                self.batch.spot_kinds.push(kind);
                let before = self.last.values.insert(kind, value).unwrap_or(0);
                let difference = value.wrapping_sub(before).cast_signed();
                self.batch.spot_values.push(difference);
                self.known.bytes += 40;
                self.known.spots.give(key)
            }
        };
        self.spots[index.0 as usize] = number + 1;
        Ok(number)
    }

    fn name(&mut self, name: u32) -> io::Result<u32> {
        let frame = &self.archive.located.names()[name as usize];
        if let Some(number) = self.known.names.get(frame) {
            return Ok(number);
        }
        self.room(frame.name.len() + 8)?;
        self.batch.names.push(frame.name.clone());
        self.batch.name_kinds.push(kind_number(frame.kind));
        self.known.bytes += 96 + frame.name.len();
        Ok(self.known.names.give(frame.clone()))
    }

    fn object(&mut self, index: ObjectIndex) -> io::Result<u32> {
        let object = &self.archive.objects[index.0 as usize];
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

/// The format's numbers of the kinds that named spots have.
pub(super) const KINDS: [(FrameKind, u32); 4] = [
    (FrameKind::User, 0),
    (FrameKind::Jit, 1),
    (FrameKind::Inlined, 2),
    (FrameKind::Kernel, 3),
];

fn kind_number(kind: FrameKind) -> u32 {
    let known = KINDS.iter().find(|(known, _)| *known == kind);
    known.map_or(0, |(_, number)| *number)
}
