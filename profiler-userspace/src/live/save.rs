//! The content of the screen as a profile, for every format.
//!
//! In: the calls, what of them is wanted, and the names that lead to what is zoomed to. Out: a profile of the stacks through
//! there, with files and modules as they were recorded.
//! Never: addresses, which are not kept; all that lies in one function is one place.

use super::calls::{Calls, Name, NodeKind, Owner, SavedFrame};
use super::shape::{self, CallSelection, Grouping, Time};
use crate::profile::normalized::{LocationIndex, NormalizedStack, NormalizedStackIndex};
use crate::profile::{
    FrameKind, Labels, LabelsIndex, Line, Location, Profile, Sample, Window, marks,
};
use foldhash::HashMap;
use profiler_common::abi::ThreadState;

/// The profile of what is wanted of these calls, as far as it leads through `zoom`.
pub(super) fn profile(
    calls: &Calls,
    wanted: &CallSelection,
    zoom: &[Name],
    window: Window,
) -> Profile {
    let mut profile = Profile::new(calls.unit.clone(), window);
    profile.label_frames.threads = wanted.grouping == Grouping::Threads;
    profile.label_frames.cpus = false;
    let mut saving = Saving {
        calls,
        wanted,
        profile,
        locations: HashMap::default(),
    };
    for (index, node) in calls.nodes.iter().enumerate() {
        let (owner, places) = saving.stack(index);
        if saving.is_seen(owner, &places, zoom) {
            for state in 0..2 {
                let is_wanted = match wanted.time {
                    Time::All => true,
                    Time::On => state == 0,
                    Time::Off => state == 1,
                };
                if is_wanted {
                    let sums = (node.own.weight[state], node.own.count[state]);
                    saving.add(owner, &places, sums);
                }
            }
        }
    }
    saving.profile
}

struct Saving<'a> {
    calls: &'a Calls,
    wanted: &'a CallSelection,
    profile: Profile,
    /// Places by the functions that they are of, the outermost first.
    locations: HashMap<Box<[SavedFrame]>, LocationIndex>,
}

impl<'a> Saving<'a> {
    /// The owner of a node, and the calls that lead to it as far as they are shown.
    fn stack(&self, mut index: usize) -> (&'a Owner, Vec<SavedFrame>) {
        let mut places = Vec::new();
        loop {
            let node = &self.calls.nodes[index];
            match node.what {
                NodeKind::Owner(owner) => {
                    places.reverse();
                    let mut is_run = false;
                    places.retain(|place: &SavedFrame| {
                        is_run = place.kind.is_of_runtime_within(is_run);
                        shape::is_shown(place.kind, is_run, self.wanted)
                    });
                    return (&self.calls.owners[owner as usize], places);
                }
                NodeKind::Call(place) => {
                    places.push(place);
                    index = node.parent.map_or(0, |parent| parent as usize);
                }
            }
        }
    }

    fn is_seen(&self, owner: &Owner, places: &[SavedFrame], zoom: &[Name]) -> bool {
        if self.wanted.only.as_ref().is_some_and(|only| only != owner) {
            return false;
        }
        let is_of_runtime = |place: &SavedFrame| place.kind.is_of_runtime();
        if self.wanted.runtime_only && !places.iter().any(is_of_runtime) {
            return false;
        }
        if zoom.is_empty() {
            return true;
        }
        let name = |place: &SavedFrame| self.calls.names[place.name as usize].clone();
        let owner = shape::owner_name(owner, self.wanted.grouping);
        let mut stack: Vec<Name> = owner.into_iter().chain(places.iter().map(name)).collect();
        if self.wanted.reverse {
            stack.reverse();
        }
        stack.starts_with(zoom)
    }

    fn add(&mut self, owner: &Owner, places: &[SavedFrame], (weight, count): (f64, f64)) {
        let weight = weight.round() as u64;
        if weight == 0 {
            return;
        }
        // A mark that a view makes of the thread's state is that state again.
        let state = (places.last()).and_then(|leaf| match leaf.kind {
            FrameKind::State(state) => {
                let name = &self.calls.functions[leaf.function as usize].name;
                is_usual_mark(state, name).then_some(state)
            }
            _ => None,
        });
        let places = &places[..places.len() - usize::from(state.is_some())];
        let kernel = (places.iter()).position(|place| place.kind == FrameKind::Kernel);
        let (user, kernel) = places.split_at(kernel.unwrap_or(places.len()));
        let sample = Sample {
            labels: self.labels(owner),
            user: self.stack_of(user),
            kernel: self.stack_of(kernel),
            thread_state: state.unwrap_or_default(),
            weight,
            count: (count.round() as u64).max(1),
            ..Sample::default()
        };
        self.profile.push(sample);
    }

    fn labels(&mut self, owner: &Owner) -> LabelsIndex {
        let is_named = self.wanted.grouping != Grouping::Nothing;
        let comm = owner.thread.as_ref().unwrap_or(&owner.name);
        self.profile.labels(Labels {
            process: is_named.then(|| owner.name.clone()),
            comm: is_named.then(|| comm.clone()),
            pid: owner.pid,
            start: owner.start,
            tid: owner.tid,
            cpu: owner.cpu,
            cgroup: None,
            context: None,
            source: None,
        })
    }

    fn stack_of(&mut self, places: &[SavedFrame]) -> Option<NormalizedStackIndex> {
        // Inlined functions stand behind the function that they were compiled into.
        let is_next = |_: &SavedFrame, next: &SavedFrame| next.kind == FrameKind::Inlined;
        let mut locations: Vec<LocationIndex> = (places.chunk_by(is_next))
            .map(|places| self.location(places))
            .collect();
        locations.reverse();
        (!locations.is_empty()).then(|| self.profile.stack(&NormalizedStack::whole(locations)))
    }

    fn location(&mut self, places: &[SavedFrame]) -> LocationIndex {
        if let Some(known) = self.locations.get(places) {
            return *known;
        }
        let (calls, profile) = (self.calls, &mut self.profile);
        let line = |place: &SavedFrame| Line {
            function: profile.function(calls.functions[place.function as usize].clone()),
            line: place.line,
        };
        let lines: Vec<Line> = places.iter().rev().map(line).collect();
        let lines = profile.lines(lines);
        let outermost = places[0];
        let mapping = outermost.mapping.map(|mapping| {
            let mapping = calls.mappings[mapping as usize].clone();
            profile.mapping(mapping)
        });
        let location = profile.location(Location::new(mapping, 0, outermost.kind, lines));
        self.locations.insert(places.into(), location);
        location
    }
}

/// Whether a view has such a mark for threads in that state of which nothing more is known.
fn is_usual_mark(state: ThreadState, name: &str) -> bool {
    match state {
        ThreadState::Ran => name == marks::NOT_SAMPLED,
        ThreadState::Runnable => name == marks::RUNNABLE,
        ThreadState::Blocked => name == marks::BLOCKED,
        ThreadState::Running | ThreadState::Woken => false,
    }
}
