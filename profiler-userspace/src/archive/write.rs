//! From a raw recording to bytes.
//!
//! In: an [`Archive`]. Out: its sections, in an order that packs well: stacks that share callers follow each
//! other, and everything stands before its first use.

use super::section::{self, Kind, MAGIC, VERSION, VERSION_WITHOUT_WAKERS};
use super::wire::{
    Batch, End, FINISH, FINISH_KERNEL, FINISH_RAN, FINISH_REASONS, FINISH_SCHEDULER,
    FINISH_WAKERS_ABOVE, FINISH_WAKERS_ALONE, GUESSED, Head, SPOT_NAMED, SPOT_OBJECT, SPOT_UNKNOWN,
};
use super::{Archive, Facts};
use crate::object::RecordedObject;
use crate::profile::located::{
    Label, Located, LocatedKey, LocatedStackIndex, ObjectIndex, Spot, SpotIndex, Sums, WakerIndex,
};
use crate::profile::waits::Wakers;
use crate::profile::{FrameKind, Unit};
use std::collections::HashMap;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, SystemTime};

/// A batch is full with so many bytes, by a rough estimate. Less is lost with the end of a file than there is
/// in one of them; more packs hardly better.
const FULL: usize = 256 << 10;

/// The most of the command line that is kept, in bytes: longer ones name files by the thousand.
const MOST_COMMAND_LINE: usize = 64 << 10;

/// Writes a raw recording.
///
/// # Errors
/// When the bytes are refused.
pub fn write(archive: &Archive, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&MAGIC)?;
    let finish = archive.facts.finish;
    let wakers = finish.is_some_and(|finish| finish.wakers != Wakers::None);
    out.write_all(&[match wakers {
        true => VERSION,
        false => VERSION_WITHOUT_WAKERS,
    }])?;
    section::write(out, Kind::Head, &head(&archive.facts, &archive.located))?;
    let mut samples: Vec<(&LocatedKey, Sums)> = archive.located.samples().collect();
    let ranks = ranks(&archive.located);
    let rank = |index: Option<LocatedStackIndex>| index.map(|index| ranks[index.0 as usize]);
    samples.sort_unstable_by_key(|(key, _)| {
        let (user, kernel) = (rank(key.user), rank(key.kernel));
        (user, kernel, key.label, key.doing, key.waker)
    });
    let mut batches = Batches::new(archive, out);
    for (key, sums) in &samples {
        batches.sample(key, *sums)?;
    }
    batches.flush()?;
    let end = End {
        closing: archive.closing.clone().unwrap_or_default(),
        samples: samples.len() as u64,
    };
    section::write(out, Kind::End, &end)
}

fn head(facts: &Facts, located: &Located) -> Head {
    let (unit, event) = match &facts.unit {
        Unit::Samples => (0, &facts.event),
        Unit::Events(name) => (1, name),
        Unit::Nanoseconds => (2, &facts.event),
    };
    let mut left = MOST_COMMAND_LINE;
    let command_line = facts.command_line.iter().map_while(|word| {
        left = left.checked_sub(word.len() + 1)?;
        Some(word.as_bytes().to_vec())
    });
    let finish = facts.finish.map_or(0, |finish| {
        let bits = [
            (finish.scheduler, FINISH_SCHEDULER),
            (finish.reasons, FINISH_REASONS),
            (finish.kernel, FINISH_KERNEL),
            (finish.ran, FINISH_RAN),
            (finish.wakers == Wakers::Alone, FINISH_WAKERS_ALONE),
            (finish.wakers == Wakers::Above, FINISH_WAKERS_ABOVE),
        ];
        bits.into_iter()
            .filter(|(is_so, _)| *is_so)
            .fold(FINISH, |all, (_, bit)| all | bit)
    });
    let since_1970 = facts.started.duration_since(SystemTime::UNIX_EPOCH);
    Head {
        writer: facts.writer.clone(),
        title: facts.title.clone(),
        noun: facts.noun.clone(),
        event: event.clone(),
        unit,
        host: facts.host.clone(),
        kernel: facts.kernel.clone(),
        command_line: command_line.collect(),
        started_ns: nanoseconds(since_1970.unwrap_or_default()),
        duration_ns: nanoseconds(located.window.end),
        count: located.total_count(),
        finish,
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Each stack's place in an order in which those with the same callers follow each other.
fn ranks(located: &Located) -> Vec<u32> {
    let stacks = located.stacks();
    let mut order: Vec<u32> = (0..stacks.len() as u32).collect();
    let from_root = |index: &u32| stacks[*index as usize].spots.iter().rev();
    order.sort_unstable_by(|one, other| from_root(one).cmp(from_root(other)).then(one.cmp(other)));
    let mut ranks = vec![0; order.len()];
    for (rank, index) in order.into_iter().enumerate() {
        ranks[index as usize] = rank as u32;
    }
    ranks
}

/// The batch that is being filled, and what stands in it and in earlier ones.
struct Batches<'a, 'o> {
    archive: &'a Archive,
    out: &'o mut dyn Write,
    batch: Batch,
    // About as many bytes as it has.
    filled: usize,
    objects: HashMap<ObjectIndex, u32>,
    names: HashMap<u32, u32>,
    spots: HashMap<SpotIndex, u32>,
    stacks: HashMap<LocatedStackIndex, u32>,
    labels: HashMap<Label, u32>,
    wakers: HashMap<WakerIndex, u32>,
    // One more than the highest number of a spot that a stack has.
    next_spot: u32,
    // What the next entries of this batch are told in terms of.
    last: Last,
}

#[derive(Default)]
struct Last {
    // The numbers of the last stack's spots, from the root.
    stack: Vec<u32>,
    // The last value of each kind of spot.
    values: HashMap<u32, u64>,
    user: u32,
}

impl<'a, 'o> Batches<'a, 'o> {
    fn new(archive: &'a Archive, out: &'o mut dyn Write) -> Self {
        Self {
            archive,
            out,
            batch: Batch::default(),
            filled: 0,
            objects: HashMap::new(),
            names: HashMap::new(),
            spots: HashMap::new(),
            stacks: HashMap::new(),
            labels: HashMap::new(),
            wakers: HashMap::new(),
            next_spot: 0,
            last: Last::default(),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
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

    fn sample(&mut self, key: &LocatedKey, sums: Sums) -> io::Result<()> {
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
        if let Some(&number) = self.wakers.get(&index) {
            return Ok(number + 1);
        }
        let waker = *self.archive.located.waker_at(index);
        let label = self.label(waker.label)?;
        let user = self.stack_or_none(waker.user)?;
        let kernel = self.stack_or_none(waker.kernel)?;
        self.room(12)?;
        self.batch.waker_labels.push(label);
        self.batch.waker_users.push(user);
        self.batch.waker_kernels.push(kernel);
        Ok(give(&mut self.wakers, index) + 1)
    }

    fn label(&mut self, label: Label) -> io::Result<u32> {
        if let Some(&number) = self.labels.get(&label) {
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
        Ok(give(&mut self.labels, label))
    }

    /// One more than the stack's number; zero for none.
    fn stack_or_none(&mut self, index: Option<LocatedStackIndex>) -> io::Result<u32> {
        match index {
            Some(index) => Ok(self.stack(index)? + 1),
            None => Ok(0),
        }
    }

    fn stack(&mut self, index: LocatedStackIndex) -> io::Result<u32> {
        if let Some(&number) = self.stacks.get(&index) {
            return Ok(number);
        }
        let stack = self.archive.located.stack_at(index);
        let mut spots = Vec::with_capacity(stack.spots.len());
        for spot in stack.spots.iter().rev() {
            spots.push(self.spot(*spot)?);
        }
        self.room(4 + 3 * spots.len())?;
        let alike = self.last.stack.iter().zip(&spots);
        let shared = alike.take_while(|(one, other)| one == other).count();
        let batch = &mut self.batch;
        batch.stack_shared.push(shared as u32);
        batch.stack_lengths.push((spots.len() - shared) as u32);
        batch
            .stack_ends
            .push(stack.end as u32 | if stack.guessed { GUESSED } else { 0 });
        for &spot in &spots[shared..] {
            batch.stack_spots.push(self.next_spot - spot);
            self.next_spot = self.next_spot.max(spot + 1);
        }
        self.last.stack = spots;
        Ok(give(&mut self.stacks, index))
    }

    fn spot(&mut self, index: SpotIndex) -> io::Result<u32> {
        if let Some(&number) = self.spots.get(&index) {
            return Ok(number);
        }
        let (kind, value) = match self.archive.located.spot_at(index) {
            Spot::At { object, offset } => (SPOT_OBJECT + self.object(object)?, offset),
            Spot::Named(name) => (SPOT_NAMED, u64::from(self.name(name)?)),
            // What the kernel calls its addresses is known to that kernel alone.
            Spot::Kernel(_) | Spot::Unknown => (SPOT_UNKNOWN, 0),
        };
        self.room(8)?;
        self.batch.spot_kinds.push(kind);
        let before = self.last.values.insert(kind, value).unwrap_or(0);
        let difference = value.wrapping_sub(before).cast_signed();
        self.batch.spot_values.push(difference);
        Ok(give(&mut self.spots, index))
    }

    fn name(&mut self, name: u32) -> io::Result<u32> {
        if let Some(&number) = self.names.get(&name) {
            return Ok(number);
        }
        let frame = &self.archive.located.names()[name as usize];
        self.room(frame.name.len() + 8)?;
        self.batch.names.push(frame.name.clone());
        self.batch.name_kinds.push(kind_number(frame.kind));
        Ok(give(&mut self.names, name))
    }

    fn object(&mut self, index: ObjectIndex) -> io::Result<u32> {
        if let Some(&number) = self.objects.get(&index) {
            return Ok(number);
        }
        let RecordedObject {
            path,
            proof,
            segments,
        } = &self.archive.objects[index.0 as usize];
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
        Ok(give(&mut self.objects, index))
    }
}

/// Gives the next number.
fn give<T: std::hash::Hash + Eq>(numbers: &mut HashMap<T, u32>, of: T) -> u32 {
    let number = u32::try_from(numbers.len()).expect("what has 32 bits is given 32 bits");
    numbers.insert(of, number);
    number
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
