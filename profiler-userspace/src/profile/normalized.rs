//! The normalized profile: stacks of locations that mean the same in every process.
//!
//! In: locations, stacks and samples from [`crate::symbolize`], or read back from a raw recording. Out: the same
//! for whoever names them. Equal stacks of several processes are one stack here, and what was counted for
//! equal owners is one sample.
//! Never knows what an object is; whoever gave out its number does.

use super::cgroup::Cgroup;
use super::process_context::ProcessContext;
use super::raw::Who;
use super::{FrameKind, Window, WindowIndex, WindowTotals, marks, number};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use profiler_common::abi::{Fallbacks, StackEnd, ThreadState};
use std::sync::Arc;

pub use super::IndexSet;

/// A function whose name is known already.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedFunction {
    /// Its name for readers. Any characters at all.
    pub name: String,
    /// Its kind.
    pub kind: FrameKind,
    /// The source file with its directories; empty where it was not asked for, or is not known.
    pub file: Arc<str>,
    /// The line, from 1; 0 where it was not asked for, or is not known.
    pub line: u32,
    /// The line at which it is defined, where many functions have its name and readers need more to tell it from others; else 0.
    pub defined: u32,
}

impl NamedFunction {
    /// One without a line.
    pub fn new(name: impl Into<String>, kind: FrameKind) -> Self {
        Self {
            name: name.into(),
            kind,
            file: Arc::default(),
            line: 0,
            defined: 0,
        }
    }
}

/// An object's number, of whatever list its giver keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectIndex(pub u32);

/// Code at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Location {
    /// A place in an object.
    At {
        /// Which.
        object: ObjectIndex,
        /// How far into its file it is, or into the mapping if there is no file.
        offset: u64,
    },
    /// Something that has its name already: an index into [`NormalizedProfile::names`].
    Named(u32),
    /// A place in something that has its name already: in a function of the kernel how far into it, in code that was made at
    /// run time its address in the process.
    Within {
        /// An index into [`NormalizedProfile::names`].
        name: u32,
        /// The place.
        place: u64,
    },
    /// An address of the kernel, whose code is the same for all.
    Kernel(u64),
    /// Nothing that was mapped.
    Unknown,
}

/// An index into the [`NormalizedProfile`]'s locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocationIndex(pub u32);

/// A stack whose addresses have been normalized.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NormalizedStack {
    /// From leaf to root. The first is where the CPU was, the others are the calls.
    pub locations: Box<[LocationIndex]>,
    /// Why the walk stopped.
    pub end: StackEnd,
    /// Guesses that the walk used beside unwind instructions.
    pub fallbacks: Fallbacks,
}

impl NormalizedStack {
    /// A stack that is whole: it goes down to the root, without guesses.
    pub fn whole(locations: impl Into<Box<[LocationIndex]>>) -> Self {
        Self {
            locations: locations.into(),
            end: StackEnd::Root,
            fallbacks: Fallbacks::NONE,
        }
    }

    /// The same stack where its locations have these numbers.
    pub fn renumbered(&self, locations: impl Iterator<Item = LocationIndex>) -> Self {
        Self {
            locations: locations.collect(),
            ..*self
        }
    }
}

/// An index into the [`NormalizedProfile`]'s stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NormalizedStackIndex(pub u32);

/// Owner of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label {
    /// The process ID, as seen in our PID namespace; 0 is the idle task.
    pub pid: u32,
    /// When the process began, in nanoseconds since boot, and one more for each program that it ran before this one.
    /// Tells apart processes of the same PID. Zero where the kernel has no type information.
    pub start: u64,
    /// The thread's name, NUL-padded. Bytes from the target: anything may be in it.
    pub comm: [u8; 16],
    /// The thread ID, with `--per-thread`.
    pub tid: Option<u32>,
    /// The CPU, with `--per-cpu`.
    pub cpu: Option<u32>,
    /// The cgroup, where it is known.
    pub cgroup: Option<CgroupIndex>,
}

/// An index into the [`NormalizedProfile`]'s cgroups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CgroupIndex(pub u32);

/// A thread by its process's ID and start, its ID and its name.
pub type Thread = (u32, u64, u32, [u8; 16]);

impl Label {
    /// The thread, where threads are told apart.
    pub fn thread(&self) -> Option<Thread> {
        Some((self.pid, self.start, self.tid?, self.comm))
    }

    /// The thread's name without its padding. Anything may be in it, or nothing.
    pub fn thread_name(&self) -> &[u8] {
        self.comm
            .split(|&byte| byte == 0)
            .next()
            .unwrap_or_default()
    }

    /// The label of an owner, in a cgroup that is known.
    pub fn of(who: &Who, cgroup: Option<CgroupIndex>) -> Self {
        Self {
            pid: who.tgid,
            start: who.incarnation,
            comm: who.comm,
            tid: who.tid,
            cpu: who.cpu,
            cgroup,
        }
    }
}

/// Waker that ended waits, and what it did then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NormalizedWaker {
    /// The waker.
    pub label: Label,
    /// Its user stack; none for kernel threads and where it was not asked for.
    pub user: Option<NormalizedStackIndex>,
    /// Its kernel stack.
    pub kernel: Option<NormalizedStackIndex>,
}

/// An index into the [`NormalizedProfile`]'s wakers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WakerIndex(pub u32);

/// Facts that tell samples apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NormalizedKey {
    /// Owner.
    pub label: Label,
    /// The user stack; none for kernel threads and where it was not asked for.
    pub user: Option<NormalizedStackIndex>,
    /// The kernel stack; none where the CPU was in user mode or it was not asked for.
    pub kernel: Option<NormalizedStackIndex>,
    /// State of the thread.
    pub thread_state: ThreadState,
    /// The number of the event that counted it; zero where the profile is of one event.
    pub event: u8,
    /// Waker that ended the wait, where that is asked for and was seen.
    pub waker: Option<WakerIndex>,
    /// When it was counted.
    pub window: WindowIndex,
}

/// Weight, and number of firings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    /// The sum of the weights.
    pub weight: u64,
    /// The number of firings.
    pub count: u64,
}

/// Everything normalized so far.
#[derive(Clone, Debug, Default)]
pub struct NormalizedProfile {
    /// The window that this covers.
    pub window: Window,
    /// Those that it is divided into; empty where it is not.
    pub windows: Vec<WindowTotals>,
    /// Names of processes, by ID and start.
    processes: HashMap<(u32, u64), Arc<[u8]>>,
    /// Whole names of threads of which labels have the beginning.
    threads: HashMap<Thread, Arc<[u8]>>,
    /// Contexts of those that publish one.
    contexts: HashMap<(u32, u64), Arc<ProcessContext>>,
    cgroups: IndexSet<Arc<Cgroup>>,
    names: IndexSet<NamedFunction>,
    locations: IndexSet<Location>,
    stacks: IndexSet<NormalizedStack>,
    wakers: IndexSet<NormalizedWaker>,
    samples: IndexMap<NormalizedKey, Sums, RandomState>,
}

impl NormalizedProfile {
    /// Nothing yet, of some time.
    pub fn new(window: Window) -> Self {
        Self {
            window,
            ..Self::default()
        }
    }

    /// The same time, windows and processes, with nothing counted yet.
    #[must_use]
    pub fn without_samples(&self) -> Self {
        Self {
            window: self.window,
            windows: self.windows.clone(),
            processes: self.processes.clone(),
            threads: self.threads.clone(),
            contexts: self.contexts.clone(),
            cgroups: self.cgroups.clone(),
            ..Self::default()
        }
    }

    /// Notes the name of a process, the latest one.
    pub fn name_process(&mut self, pid: u32, start: u64, name: &Arc<[u8]>) {
        self.processes.insert((pid, start), Arc::clone(name));
    }

    /// The name of the process that a label is of, where it is known. Bytes from the target: anything may be in it.
    pub fn process_name(&self, label: &Label) -> Option<&Arc<[u8]>> {
        self.processes.get(&(label.pid, label.start))
    }

    /// Notes the whole name of the thread that a label is of.
    pub fn name_thread(&mut self, label: &Label, name: &Arc<[u8]>) {
        if let Some(thread) = label.thread() {
            self.threads.insert(thread, Arc::clone(name));
        }
    }

    /// The name of the thread that a label is of, as far as it is known. Bytes from the target: anything may be in it, or nothing.
    pub fn thread_name<'a>(&'a self, label: &'a Label) -> &'a [u8] {
        match self.whole_thread_name(label) {
            Some(name) => name,
            None => label.thread_name(),
        }
    }

    /// The whole name of the thread that a label is of, where that is longer than the label has it.
    pub fn whole_thread_name(&self, label: &Label) -> Option<&Arc<[u8]>> {
        self.threads.get(&label.thread()?)
    }

    /// Notes the context of a process.
    pub fn note_context(&mut self, pid: u32, start: u64, context: &Arc<ProcessContext>) {
        self.contexts.insert((pid, start), Arc::clone(context));
    }

    /// The context of the process that a label is of, if it publishes one.
    pub fn context_of(&self, label: &Label) -> Option<&Arc<ProcessContext>> {
        self.contexts.get(&(label.pid, label.start))
    }

    /// The index of a cgroup, which is added when it is not there yet.
    pub fn cgroup(&mut self, cgroup: &Arc<Cgroup>) -> CgroupIndex {
        CgroupIndex(number(&mut self.cgroups, Arc::clone(cgroup)))
    }

    /// All cgroups, by their indices.
    pub fn cgroups(&self) -> impl Iterator<Item = &Arc<Cgroup>> {
        self.cgroups.iter()
    }

    /// The cgroup of a label, where it is known.
    pub fn cgroup_of(&self, label: &Label) -> Option<&Arc<Cgroup>> {
        self.cgroups.get_index(label.cgroup?.0 as usize)
    }

    /// The location of a function that has its name.
    pub fn name(&mut self, function: NamedFunction) -> Location {
        Location::Named(number(&mut self.names, function))
    }

    /// The location of a place in a function that has its name.
    pub fn name_within(&mut self, function: NamedFunction, place: u64) -> Location {
        Location::Within {
            name: number(&mut self.names, function),
            place,
        }
    }

    /// The index of a location, which is added when it is not there yet.
    pub fn location(&mut self, location: Location) -> LocationIndex {
        LocationIndex(number(&mut self.locations, location))
    }

    /// The index of a stack, which is added when it is not there yet.
    pub fn stack(&mut self, stack: NormalizedStack) -> NormalizedStackIndex {
        debug_assert!(
            stack
                .locations
                .iter()
                .all(|location| (location.0 as usize) < self.locations.len())
        );
        NormalizedStackIndex(number(&mut self.stacks, stack))
    }

    /// The index of a waker, which is added when it is not there yet.
    pub fn waker(&mut self, waker: NormalizedWaker) -> WakerIndex {
        WakerIndex(number(&mut self.wakers, waker))
    }

    /// Adds what was counted: to the sample of the same owner and stacks, if there is one.
    pub fn add(&mut self, key: NormalizedKey, sums: Sums) {
        let known = self.samples.entry(key).or_default();
        known.weight = known.weight.saturating_add(sums.weight);
        known.count = known.count.saturating_add(sums.count);
    }

    /// Those samples that are `wanted`, with their stacks.
    #[must_use]
    pub fn part(&self, wanted: impl Fn(&NormalizedKey) -> bool) -> Self {
        self.changed(|key, sums| wanted(&key).then_some((key, sums)))
    }

    /// The samples that `change` makes of these, with their stacks; without those that it makes none of.
    #[must_use]
    pub fn changed(
        &self,
        change: impl FnMut(NormalizedKey, Sums) -> Option<(NormalizedKey, Sums)>,
    ) -> Self {
        self.rebuilt(change, |waker| waker)
    }

    /// The same samples, with the wakers that `change` makes of theirs.
    #[must_use]
    pub fn with_wakers(&self, change: impl Fn(NormalizedWaker) -> NormalizedWaker) -> Self {
        self.rebuilt(|key, sums| Some((key, sums)), change)
    }

    fn rebuilt(
        &self,
        mut change: impl FnMut(NormalizedKey, Sums) -> Option<(NormalizedKey, Sums)>,
        change_waker: impl Fn(NormalizedWaker) -> NormalizedWaker,
    ) -> Self {
        let mut part = self.without_samples();
        let kept = self.samples().filter_map(|(key, sums)| change(*key, sums));
        for (key, sums) in kept {
            let mut keep = |index: NormalizedStackIndex| part.keep(self, index);
            let (user, kernel) = (key.user.map(&mut keep), key.kernel.map(&mut keep));
            let waker = key.waker.map(|index| {
                let waker = change_waker(*self.waker_at(index));
                NormalizedWaker {
                    user: waker.user.map(&mut keep),
                    kernel: waker.kernel.map(&mut keep),
                    ..waker
                }
            });
            let key = NormalizedKey {
                user,
                kernel,
                waker: waker.map(|waker| part.waker(waker)),
                ..key
            };
            part.add(key, sums);
        }
        part
    }

    /// Half as many windows: what was counted in two neighbours is counted in one.
    pub fn halve_windows(&mut self) {
        self.windows = WindowTotals::halved(&self.windows);
        for (key, sums) in std::mem::take(&mut self.samples) {
            let window = WindowIndex(key.window.0 / 2);
            self.add(NormalizedKey { window, ..key }, sums);
        }
    }

    /// No windows: what was counted in them is counted together.
    pub fn join_windows(&mut self) {
        if std::mem::take(&mut self.windows).is_empty() {
            return;
        }
        let window = WindowIndex::default();
        for (key, sums) in std::mem::take(&mut self.samples) {
            self.add(NormalizedKey { window, ..key }, sums);
        }
    }

    /// The index here of a stack of another profile's.
    fn keep(&mut self, other: &Self, index: NormalizedStackIndex) -> NormalizedStackIndex {
        let stack = other.stack_at(index);
        let locations = stack.locations.iter().map(|location| {
            let location = match other.location_at(*location) {
                Location::Named(name) => self.name(other.names[name as usize].clone()),
                Location::Within { name, place } => {
                    self.name_within(other.names[name as usize].clone(), place)
                }
                same => same,
            };
            self.location(location)
        });
        let stack = stack.renumbered(locations);
        self.stack(stack)
    }

    /// The functions of named locations, by their numbers.
    pub fn names(&self) -> &IndexSet<NamedFunction> {
        &self.names
    }

    /// All locations, by their indices.
    pub fn locations(&self) -> &IndexSet<Location> {
        &self.locations
    }

    /// All stacks, of either kind, by their indices.
    pub fn stacks(&self) -> &IndexSet<NormalizedStack> {
        &self.stacks
    }

    /// All wakers, by their indices.
    pub fn wakers(&self) -> &IndexSet<NormalizedWaker> {
        &self.wakers
    }

    /// All samples.
    pub fn samples(&self) -> impl ExactSizeIterator<Item = (&NormalizedKey, Sums)> {
        self.samples.iter().map(|(key, sums)| (key, *sums))
    }

    /// The stack at an index of this profile.
    pub fn stack_at(&self, index: NormalizedStackIndex) -> &NormalizedStack {
        &self.stacks[index.0 as usize]
    }

    /// The stack that stands for all of the profiler's own, if there is one.
    pub fn profiler_stack(&self) -> Option<NormalizedStackIndex> {
        let mark = NamedFunction::new(marks::PROFILER, FrameKind::Mark);
        let name = self.names.get_index_of(&mark)? as u32;
        let location = self.locations.get_index_of(&Location::Named(name))? as u32;
        let is_it = |stack: &NormalizedStack| *stack.locations == [LocationIndex(location)];
        let index = self.stacks.iter().position(is_it)?;
        Some(NormalizedStackIndex(index as u32))
    }

    /// The waker at an index of this profile.
    pub fn waker_at(&self, index: WakerIndex) -> &NormalizedWaker {
        &self.wakers[index.0 as usize]
    }

    /// The location at an index of this profile.
    pub fn location_at(&self, index: LocationIndex) -> Location {
        self.locations[index.0 as usize]
    }

    /// The sum of all weights.
    pub fn total_weight(&self) -> u64 {
        let weights = self.samples.values().map(|sums| sums.weight);
        weights.fold(0, u64::saturating_add)
    }

    /// The sum of all counts.
    pub fn total_count(&self) -> u64 {
        let counts = self.samples.values().map(|sums| sums.count);
        counts.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_and_samples_are_stored_once() {
        let mut normalized = NormalizedProfile::default();
        let object = ObjectIndex(7);
        let locations: Vec<LocationIndex> = [1, 2, 1]
            .map(|offset| normalized.location(Location::At { object, offset }))
            .to_vec();
        assert_eq!(
            locations,
            [LocationIndex(0), LocationIndex(1), LocationIndex(0)]
        );
        let mut stack = |fallbacks| {
            normalized.stack(NormalizedStack {
                locations: locations.clone().into(),
                end: StackEnd::Root,
                fallbacks,
            })
        };
        let (one, again, other) = (
            stack(Fallbacks::NONE),
            stack(Fallbacks::NONE),
            stack(Fallbacks::CODE),
        );
        assert_eq!(one, again);
        assert_ne!(one, other);
        let key = NormalizedKey {
            label: Label {
                pid: 7,
                start: 70,
                comm: [b'a'; 16],
                cpu: Some(1),
                ..Label::default()
            },
            user: Some(one),
            ..NormalizedKey::default()
        };
        let sums = |weight, count| Sums { weight, count };
        normalized.add(key, sums(u64::MAX - 1, 2));
        normalized.add(key, sums(5, 3));
        normalized.add(
            NormalizedKey {
                user: Some(other),
                ..key
            },
            sums(1, 1),
        );
        assert_eq!(normalized.samples().len(), 2);
        assert_eq!(normalized.samples().next(), Some((&key, sums(u64::MAX, 5))));
        assert_eq!(normalized.total_count(), 6);
    }

    #[test]
    fn a_part_of_a_profile_keeps_wakers_and_their_stacks() {
        let mut normalized = NormalizedProfile::default();
        let mut stack = |address| {
            let location = normalized.location(Location::Kernel(address));
            normalized.stack(NormalizedStack::whole([location]))
        };
        let (left_out, wait, wake) = (stack(1), stack(2), stack(3));
        let label = |name| Label {
            pid: 7,
            start: 70,
            comm: [name; 16],
            ..Label::default()
        };
        let key = |waker, kernel| NormalizedKey {
            label: label(b'a'),
            kernel: Some(kernel),
            thread_state: ThreadState::Woken,
            waker,
            ..NormalizedKey::default()
        };
        let waker = |name, kernel| NormalizedWaker {
            label: label(name),
            user: None,
            kernel,
        };
        let first = normalized.waker(waker(b'x', Some(left_out)));
        let second = normalized.waker(waker(b'b', Some(wake)));
        assert_ne!(first, second);
        assert_eq!(second, normalized.waker(waker(b'b', Some(wake))));
        let sums = Sums {
            weight: 7,
            count: 1,
        };
        normalized.add(key(Some(first), wait), sums);
        normalized.add(key(Some(second), wait), sums);
        normalized.add(key(None, wait), sums);
        assert_eq!(normalized.samples().len(), 3, "{normalized:?}");
        let part = normalized.part(|key| key.waker == Some(second));
        let (kept, _) = part.samples().next().unwrap();
        let kept_waker = part.waker_at(kept.waker.unwrap());
        assert_eq!(kept_waker.label, label(b'b'));
        let address = |index: Option<NormalizedStackIndex>| {
            part.location_at(part.stack_at(index.unwrap()).locations[0])
        };
        assert_eq!(address(kept.kernel), Location::Kernel(2));
        assert_eq!(address(kept_waker.kernel), Location::Kernel(3));
        assert_eq!((part.stacks().len(), part.wakers().len()), (2, 1));
    }
}
