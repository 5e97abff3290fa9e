//! From addresses to locations, while sampling goes on.
//!
//! In: raw profiles, drain by drain, and the [`Processes`] that they are of. Out: a [`NormalizedProfile`] profile and
//! its [`Objects`]. Raw stacks are emptied of all that could be normalized; what is left is of processes that
//! make code as they run: their code maps are complete only when they end, and until then their stacks stay raw.
//! Never names anything but such code: names come once, at the end, for each location.

use super::code_map;
use super::demangle::visible;
use super::leaf;
use super::lookups;
use super::objects::Objects;
use crate::process::{Choice, MappedAddress, Process, ProcessKey, Processes, RuntimeFunction};
use crate::profile::normalized::{
    Label, Location, LocationIndex, NamedFunction, NormalizedKey, NormalizedProfile,
    NormalizedStack, NormalizedStackIndex, NormalizedWaker, Sums,
};
use crate::profile::raw::{
    Parts, RawFrame, RawProfile, RawSample, RawStack, StackIndex, Waker, Who,
};
use crate::profile::{FrameKind, marks};
use foldhash::{HashMap, HashSet};
use profiler_common::abi::FrameWord;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Addresses that no program's code has, at either end. They come of walks that went astray, and are
/// not worth reading a process's mappings again.
const PLAUSIBLE: Range<u64> = 1 << 12..1 << 56;

/// An address, and the choice among what lay there.
type Lookup = (u64, Choice);

/// Distinct addresses, kept few while they come in.
#[derive(Debug, Default)]
struct Gathered {
    addresses: Vec<Lookup>,
    /// How many there may be before they are sorted out.
    limit: usize,
}

impl Gathered {
    fn extend(&mut self, addresses: impl Iterator<Item = Lookup>) {
        self.addresses.extend(addresses);
        if self.addresses.len() > self.limit {
            self.sort_out();
            self.limit = (2 * self.addresses.len()).max(4096);
        }
    }

    fn sort_out(&mut self) {
        self.addresses.sort_unstable();
        self.addresses.dedup();
    }

    fn into_distinct(mut self) -> Vec<Lookup> {
        self.sort_out();
        self.addresses
    }
}

/// Locations of the addresses of one process; none where they have yet to be seen.
struct Locations {
    // Ascending and distinct.
    addresses: Vec<Lookup>,
    // One for each address.
    locations: Vec<Option<LocationIndex>>,
}

impl Locations {
    fn of(&self, address: Lookup) -> Option<LocationIndex> {
        let at = self.addresses.binary_search(&address);
        self.locations[at.expect("all addresses of the raw profile were gathered")]
    }
}

/// A user and a kernel stack.
type Stacks = (Option<NormalizedStackIndex>, Option<NormalizedStackIndex>);

/// Input and lookup tables for a raw profile while it is being normalized.
struct NormalizeInput<'a> {
    raw: &'a RawProfile,
    processes: &'a Processes,
    locations: HashMap<ProcessKey, Locations>,
    // Stacks by whose they are, so that each is translated once.
    users: HashMap<(ProcessKey, StackIndex), Option<NormalizedStackIndex>>,
    kernels: HashMap<StackIndex, NormalizedStackIndex>,
}

/// Normalizes what drains bring.
#[derive(Debug, Default)]
pub struct Normalizer {
    normalized: NormalizedProfile,
    objects: Objects,
    /// Processes whose samples were normalized and that were not let go since, and the samples'
    /// parts.
    sampled: HashMap<ProcessKey, Parts>,
    /// A process whose stacks are one mark, by its ID.
    marked: Option<u32>,
}

impl Normalizer {
    /// Nothing normalized yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`new`](Self::new), but of a process, the profiler itself, each stack is [`marks::PROFILER`].
    pub fn marking(pid: u32) -> Self {
        Self {
            marked: Some(pid),
            ..Self::default()
        }
    }

    /// Takes what can be normalized out of `raw`. Of the processes in `ended` that is all, and they are let
    /// go: they must have ended before what `raw` holds was drained, so that no more will come.
    pub fn take(&mut self, raw: &mut RawProfile, processes: &mut Processes, ended: &[ProcessKey]) {
        let last: HashSet<ProcessKey> = ended.iter().copied().collect();
        self.normalize(raw, processes, |process_key| last.contains(&process_key));
        for process_key in ended {
            if let Some(parts) = self.sampled.remove(process_key) {
                self.objects.count_process(parts);
            }
            processes.remove(*process_key);
        }
    }

    /// Half as many windows: see [`NormalizedProfile::halve_windows`].
    pub fn halve_windows(&mut self) {
        self.normalized.halve_windows();
    }

    /// How many different samples were taken.
    pub fn samples(&self) -> usize {
        self.normalized.samples().len()
    }

    /// Takes all that is left in `raw`.
    pub fn finish(
        mut self,
        raw: &mut RawProfile,
        processes: &mut Processes,
    ) -> (NormalizedProfile, Objects) {
        self.normalize(raw, processes, |_| true);
        for parts in self.sampled.into_values() {
            self.objects.count_process(parts);
        }
        (self.normalized, self.objects)
    }

    /// Takes the names and contexts of all processes, which may be forgotten after this.
    fn name_processes(&mut self, raw: &RawProfile, processes: &mut Processes) {
        let wakers = raw.samples.iter().filter_map(|sample| sample.waker);
        let wakers = wakers.map(|index| ProcessKey::from(&raw.waker_at(index).who));
        let owners = raw
            .samples
            .iter()
            .map(|sample| ProcessKey::from(&sample.who));
        for process_key in owners.chain(wakers).collect::<HashSet<_>>() {
            let ProcessKey { tgid, incarnation } = process_key;
            if let Some(name) = processes.name(process_key) {
                self.normalized.name_process(tgid, incarnation, name);
            }
            if let Some(context) = processes.context(process_key) {
                self.normalized.note_context(tgid, incarnation, context);
            }
        }
    }

    fn normalize(
        &mut self,
        raw: &mut RawProfile,
        processes: &mut Processes,
        is_last: impl Fn(ProcessKey) -> bool,
    ) {
        let window = raw.window;
        let mut raw_now = std::mem::take(raw);
        if let Some(pid) = self.marked {
            raw_now.drop_stacks_of(pid);
        }
        raw.window = window;
        let mut known = HashMap::default();
        for (process_key, gathered) in gather(&raw_now, processes) {
            let addresses = gathered.into_distinct();
            let locations =
                self.locations(process_key, &addresses, processes, is_last(process_key));
            known.insert(
                process_key,
                Locations {
                    addresses,
                    locations,
                },
            );
        }
        self.name_processes(&raw_now, processes);
        let mut known = NormalizeInput {
            raw: &raw_now,
            processes,
            locations: known,
            users: HashMap::default(),
            kernels: HashMap::default(),
        };
        for sample in &raw_now.samples {
            let waker = sample.waker.map(|index| raw_now.waker_at(index));
            let is_marked = |who: &Who| self.marked == Some(who.tgid);
            let (is_own_marked, is_waker_marked) = (
                is_marked(&sample.who),
                waker.is_some_and(|waker| is_marked(&waker.who)),
            );
            let own = match is_own_marked {
                true => Some((Some(self.mark_of_profiler()), None)),
                false => self.stacks(&mut known, &sample.who, sample.user, sample.kernel),
            };
            let woke = waker.map(|waker| {
                if !is_waker_marked {
                    return self.stacks(&mut known, &waker.who, waker.user, waker.kernel);
                }
                // An interrupt that came upon the profiler is told by kernel frames.
                let (_, kernel) = self.stacks(&mut known, &waker.who, None, waker.kernel)?;
                Some((Some(self.mark_of_profiler()), kernel))
            });
            let (Some((user, kernel)), false) = (own, woke == Some(None)) else {
                keep(raw, &raw_now, sample);
                continue;
            };
            let parts = self
                .sampled
                .entry(ProcessKey::from(&sample.who))
                .or_default();
            parts.0 |= Parts::of(sample.thread_state, sample.event).0;
            let waker = waker.zip(woke.flatten()).map(|(waker, (user, kernel))| {
                let label = self.label(&waker.who, known.processes);
                self.normalized.waker(NormalizedWaker {
                    label,
                    user,
                    kernel,
                })
            });
            let key = NormalizedKey {
                label: self.label(&sample.who, known.processes),
                user,
                kernel,
                thread_state: sample.thread_state,
                event: sample.event,
                waker,
                window: sample.window,
            };
            let sums = Sums {
                weight: sample.weight,
                count: sample.count,
            };
            self.normalized.add(key, sums);
        }
    }

    /// The label of an owner.
    fn label(&mut self, who: &Who, processes: &Processes) -> Label {
        let cgroup = processes.cgroup(who.cgroup);
        let label = Label::of(who, cgroup.map(|cgroup| self.normalized.cgroup(cgroup)));
        if let Some(name) = processes.thread_name(who).flatten() {
            self.normalized.name_thread(&label, name);
        }
        label
    }

    /// Both stacks of a thread; none if the user stack has to wait.
    fn stacks(
        &mut self,
        known: &mut NormalizeInput<'_>,
        who: &Who,
        user: Option<StackIndex>,
        kernel: Option<StackIndex>,
    ) -> Option<Stacks> {
        let process_key = ProcessKey::from(who);
        let NormalizeInput {
            raw,
            processes,
            locations,
            users,
            kernels,
        } = known;
        let user = match user {
            None => None,
            Some(index) => Some(
                (*users.entry((process_key, index)).or_insert_with(|| {
                    let stack = raw.stack(index);
                    let locations = locations.get(&process_key)?;
                    let locations = self.user_locations(process_key, stack, locations, processes);
                    Some(self.stack(stack, locations?))
                }))?,
            ),
        };
        let kernel = kernel.map(|index| {
            *kernels.entry(index).or_insert_with(|| {
                let stack = raw.stack(index);
                // Frames that are no code come before all that are.
                let named = stack.frames.iter().filter_map(leaf::name);
                let mut locations: Vec<Location> = named
                    .map(|name| {
                        self.normalized
                            .name(NamedFunction::new(name, FrameKind::Mark))
                    })
                    .collect();
                locations.extend(lookups(stack).map(Location::Kernel));
                let locations = locations
                    .into_iter()
                    .map(|location| self.normalized.location(location))
                    .collect();
                self.stack(stack, locations)
            })
        });
        Some((user, kernel))
    }

    /// The locations of a user stack; none if one of them has to wait.
    fn user_locations(
        &mut self,
        process_key: ProcessKey,
        stack: &RawStack,
        locations: &Locations,
        processes: &Processes,
    ) -> Option<Box<[LocationIndex]>> {
        let mut all = Vec::with_capacity(stack.frames.len());
        let mut function = None;
        let process = processes.get(process_key);
        let mut lookups = chosen(process, stack);
        for frame in &stack.frames {
            if frame.address().is_some()
                && let Some(lookup) = lookups.next()
            {
                all.push(locations.of(lookup)?);
            }
            match (frame, function) {
                (RawFrame::Position(position), Some(function)) => {
                    let known = processes.function(process_key, function, *position);
                    self.add_levels(&mut all, known, function, position.number());
                }
                (RawFrame::Mark(end), _) => {
                    let mark = end.mark().unwrap_or("[implausible caller]");
                    all.push(self.named(NamedFunction::new(mark, FrameKind::Mark)));
                }
                _ => {}
            }
            function = match frame {
                RawFrame::Function(word) => Some(*word),
                _ => None,
            };
        }
        Some(all.into())
    }

    /// Adds the locations of a runtime's frame, by its two words: behind those of the calls that were compiled into its function.
    fn add_levels(
        &mut self,
        all: &mut Vec<LocationIndex>,
        function: Option<&RuntimeFunction>,
        word: FrameWord,
        position: u32,
    ) {
        let Some(function) = function else {
            self.objects.nameless_functions += 1;
            let kind = word
                .runtime()
                .map_or(FrameKind::User, FrameKind::Interpreted);
            all.push(self.named(NamedFunction::new("[function without a name]", kind)));
            return;
        };
        self.objects.functions_in_part += usize::from(function.is_in_part);
        let calls = function.inlined_at(position).iter();
        let levels = calls.map(|call| (&*call.function, call.position));
        for (function, position) in levels.chain([(function, position)]) {
            all.push(self.named(NamedFunction {
                name: visible(function.name.as_bytes()),
                kind: FrameKind::Interpreted(function.kind),
                file: Arc::clone(&function.file),
                line: function.line(position),
                defined: if function.is_nameless {
                    function.first_line
                } else {
                    0
                },
            }));
        }
    }

    fn mark_of_profiler(&mut self) -> NormalizedStackIndex {
        let mark = self.named(NamedFunction::new(marks::PROFILER, FrameKind::Mark));
        self.normalized.stack(NormalizedStack::whole([mark]))
    }

    /// The location of a function that has its name already.
    fn named(&mut self, function: NamedFunction) -> LocationIndex {
        let location = self.normalized.name(function);
        self.normalized.location(location)
    }

    fn stack(&mut self, raw: &RawStack, locations: Box<[LocationIndex]>) -> NormalizedStackIndex {
        self.normalized.stack(NormalizedStack {
            locations,
            end: raw.end,
            fallbacks: raw.fallbacks,
        })
    }

    /// Locations of addresses of a process. Code that it made has none yet, unless these are its
    /// last.
    fn locations(
        &mut self,
        process_key: ProcessKey,
        addresses: &[Lookup],
        processes: &mut Processes,
        last: bool,
    ) -> Vec<Option<LocationIndex>> {
        let places = find(process_key, addresses, processes);
        let is_made = |place: &Option<MappedAddress>| {
            let place = place.as_ref();
            place.is_some_and(|place| processes.backing(place.backing).may_be_made())
        };
        let made: Vec<usize> = (0..places.len())
            .filter(|at| is_made(&places[*at]))
            .collect();
        let mut locations: Vec<Option<LocationIndex>> = vec![None; places.len()];
        let mut has_code_map = false;
        if last && !made.is_empty() {
            let asked: Vec<u64> = made.iter().map(|at| addresses[*at].0).collect();
            let (found, whole) = code_map::name(processes, process_key, &asked);
            self.objects.cut_maps += usize::from(!whole);
            has_code_map = !found.names.is_empty();
            for (at, index) in made.iter().zip(&found.of) {
                locations[*at] = index.map(|index| {
                    let name = visible(&found.names[index]);
                    let function = NamedFunction::new(name, FrameKind::Jit);
                    let location = self.normalized.name_within(function, addresses[*at].0);
                    self.normalized.location(location)
                });
            }
        }
        let mut made = made.into_iter().peekable();
        for (at, place) in places.into_iter().enumerate() {
            let waits = made.next_if_eq(&at).is_some() && !last;
            if locations[at].is_none() && !waits {
                let location = match place {
                    Some(place) => {
                        self.objects
                            .location(process_key, place, has_code_map, processes)
                    }
                    None => Location::Unknown,
                };
                locations[at] = Some(self.normalized.location(location));
            }
        }
        locations
    }
}

/// The distinct addresses of each process's user stacks.
fn gather(raw: &RawProfile, processes: &Processes) -> BTreeMap<ProcessKey, Gathered> {
    let mut gathered: BTreeMap<ProcessKey, Gathered> = BTreeMap::new();
    let mut known = HashSet::default();
    let own = raw.samples.iter().map(|sample| (&sample.who, sample.user));
    let woke = raw.wakers.iter().map(|waker| (&waker.who, waker.user));
    for (who, user) in own.chain(woke) {
        let process_key = ProcessKey::from(who);
        if let Some(index) = user
            && known.insert((process_key, index))
        {
            let process = processes.get(process_key);
            gathered
                .entry(process_key)
                .or_default()
                .extend(chosen(process, raw.stack(index)));
        }
    }
    gathered
}

/// The addresses of a user stack, each with the choice among what lay there.
fn chosen(process: Option<&Process>, stack: &RawStack) -> impl Iterator<Item = Lookup> {
    let choices = process.and_then(|process| process.choices(lookups(stack), stack.check));
    let choices = choices.into_iter().flatten().map(Some);
    let choices = choices.chain(std::iter::repeat(None));
    lookups(stack)
        .zip(choices)
        .map(|(address, choice)| (address, choice.unwrap_or_default()))
}

/// Puts a sample back that has to wait.
fn keep(raw: &mut RawProfile, from: &RawProfile, sample: &RawSample) {
    let mut again = |index: StackIndex| raw.intern(from.shared(index));
    let (user, kernel) = (sample.user.map(&mut again), sample.kernel.map(&mut again));
    let waker = sample.waker.map(|index| {
        let waker = *from.waker_at(index);
        Waker {
            user: waker.user.map(&mut again),
            kernel: waker.kernel.map(&mut again),
            ..waker
        }
    });
    let waker = waker.map(|waker| raw.waker(waker));
    raw.add(RawSample {
        user,
        kernel,
        waker,
        ..*sample
    });
}

/// The place of each address of a process. Mappings that were read after an address was sampled,
/// and do not cover it, never will.
fn find(
    process_key: ProcessKey,
    addresses: &[Lookup],
    processes: &mut Processes,
) -> Vec<Option<MappedAddress>> {
    let known = |process: &Process| {
        let mut plausible = addresses
            .iter()
            .filter(|(address, _)| PLAUSIBLE.contains(address));
        plausible.all(|(address, _)| process.place(*address).is_some())
    };
    if !processes.get(process_key).is_some_and(known) {
        processes.look(process_key);
    }
    let process = processes.get(process_key);
    addresses
        .iter()
        .map(|(address, choice)| process?.place_in(*address, *choice))
        .collect()
}
