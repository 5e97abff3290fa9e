//! Raw recordings as one.
//!
//! In: what several hold, each with its own numbers of objects. Out: the same with equal parts once, and equal samples added up,
//! so that each object is named once. Weight is conserved.

use super::RawRecording;
use crate::object::RecordedObject;
use crate::profile::normalized::{
    CgroupIndex, Label, Location, LocationIndex, NormalizedKey, NormalizedProfile,
    NormalizedStackIndex, NormalizedWaker, ObjectIndex, WakerIndex,
};
use crate::profile::process_context::ProcessContext;
use crate::profile::{IndexSet, WindowIndex};
use foldhash::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

/// A process of one recording, by its ID and its start.
type Process = (u32, u64);

/// The name and the context of a process, as far as they are known.
type ProcessFacts = (Option<Arc<[u8]>>, Option<Arc<ProcessContext>>);

/// Samples of raw recordings, and the objects that they lie in.
#[derive(Default)]
pub struct Merged {
    normalized: NormalizedProfile,
    objects: IndexSet<RecordedObject>,
    /// All processes that have samples.
    processes: HashMap<Process, ProcessFacts>,
}

impl Merged {
    /// The samples of one recording, in its windows.
    pub fn of(recording: &mut RawRecording) -> Self {
        let normalized = std::mem::take(&mut recording.normalized);
        let processes = labels(&normalized);
        let processes = processes.map(|label| {
            let name = normalized.process_name(&label).cloned();
            let context = normalized.context_of(&label).cloned();
            ((label.pid, label.start), (name, context))
        });
        Self {
            processes: processes.collect(),
            objects: std::mem::take(&mut recording.objects).into_iter().collect(),
            normalized,
        }
    }

    /// Adds the samples of another recording. Recordings of different times have no windows in common.
    pub fn add(&mut self, other: Self) {
        self.normalized.join_windows();
        let window = &mut self.normalized.window;
        window.start = window.start.min(other.normalized.window.start);
        window.end = window.end.max(other.normalized.window.end);
        let starts = self.starts(&other);
        let objects = other.objects.into_iter();
        let objects: Vec<ObjectIndex> = objects
            .map(|object| {
                let (index, _) = self.objects.insert_full(object);
                ObjectIndex(u32::try_from(index).expect("fewer than 2^32 objects"))
            })
            .collect();
        self.add_samples(&other.normalized, &objects, &starts);
    }

    /// The samples, and the objects by their numbers.
    pub fn into_parts(self) -> (NormalizedProfile, Vec<RecordedObject>) {
        (self.normalized, self.objects.into_iter().collect())
    }

    /// The starts that processes of another recording have here: other ones where a process of this ID and start has another
    /// name or context, so is of another machine, or has run another program since.
    fn starts(&mut self, other: &Self) -> HashMap<Process, u64> {
        let mut theirs: Vec<_> = other.processes.iter().collect();
        theirs.sort_unstable();
        let mut starts = HashMap::default();
        for (&(pid, start), theirs) in theirs {
            let mut here = start;
            loop {
                match self.processes.entry((pid, here)) {
                    Entry::Occupied(known) if known.get() == theirs => break,
                    Entry::Occupied(_) => here = here.wrapping_add(1),
                    Entry::Vacant(place) => {
                        let (name, context) = place.insert(theirs.clone());
                        if let Some(name) = name {
                            self.normalized.name_process(pid, here, name);
                        }
                        if let Some(context) = context {
                            self.normalized.note_context(pid, here, context);
                        }
                        break;
                    }
                }
            }
            starts.insert((pid, start), here);
        }
        starts
    }

    fn add_samples(
        &mut self,
        other: &NormalizedProfile,
        objects: &[ObjectIndex],
        starts: &HashMap<Process, u64>,
    ) {
        let all = &mut self.normalized;
        let locations: Vec<LocationIndex> = (other.locations().iter())
            .map(|location| {
                let location = match *location {
                    Location::Named(name) => all.name(other.names()[name as usize].clone()),
                    Location::Within { name, place } => {
                        all.name_within(other.names()[name as usize].clone(), place)
                    }
                    Location::At { object, offset } => Location::At {
                        object: objects[object.0 as usize],
                        offset,
                    },
                    same => same,
                };
                all.location(location)
            })
            .collect();
        let stacks: Vec<NormalizedStackIndex> = (other.stacks().iter())
            .map(|stack| {
                let again = stack.locations.iter().map(|at| locations[at.0 as usize]);
                all.stack(stack.renumbered(again))
            })
            .collect();
        let stack = |index: NormalizedStackIndex| stacks[index.0 as usize];
        let cgroups: Vec<CgroupIndex> = other.cgroups().map(|cgroup| all.cgroup(cgroup)).collect();
        let label = |label: Label| Label {
            start: starts[&(label.pid, label.start)],
            cgroup: label.cgroup.map(|index| cgroups[index.0 as usize]),
            ..label
        };
        for theirs in labels(other) {
            if let Some(name) = other.whole_thread_name(&theirs) {
                all.name_thread(&label(theirs), name);
            }
        }
        let wakers: Vec<WakerIndex> = (other.wakers().iter())
            .map(|waker| {
                all.waker(NormalizedWaker {
                    label: label(waker.label),
                    user: waker.user.map(stack),
                    kernel: waker.kernel.map(stack),
                })
            })
            .collect();
        for (key, sums) in other.samples() {
            let key = NormalizedKey {
                label: label(key.label),
                user: key.user.map(stack),
                kernel: key.kernel.map(stack),
                waker: key.waker.map(|waker| wakers[waker.0 as usize]),
                window: WindowIndex::default(),
                ..*key
            };
            all.add(key, sums);
        }
    }
}

/// All labels of samples and wakers; some occur repeatedly.
fn labels(normalized: &NormalizedProfile) -> impl Iterator<Item = Label> {
    let of_samples = normalized.samples().map(|(key, _)| key.label);
    let of_wakers = normalized.wakers().iter().map(|waker| waker.label);
    of_samples.chain(of_wakers)
}
