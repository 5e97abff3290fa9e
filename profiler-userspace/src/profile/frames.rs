//! Profiles out of stacks of frames, as folded text tells them.
//!
//! In: frames from root to leaf. Out: a [`Profile`] whose [`View`](super::View) is these frames again. The labels in
//! front are the sample's, inlined functions become lines of what they are in, and what the kernel has is its own stack.

use super::frame::{cpu_label, thread_label};
use super::model::{Function, Labels, LabelsIndex, Line, Location, Profile, Sample};
use super::normalized::{LocationIndex, NormalizedStack, NormalizedStackIndex};
use super::{FrameKind, FrameRef, WindowIndex};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::{Equivalent, IndexMap};
use profiler_common::abi::{Fallbacks, StackEnd, ThreadState};
use std::collections::hash_map::Entry;

/// A frame, and where in its source it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceFrame<'a> {
    /// The frame.
    pub frame: FrameRef<'a>,
    /// The source file; empty where it is not known.
    pub file: &'a str,
    /// The line, from 1; 0 where it is not known.
    pub line: u32,
}

impl<'a, F> From<&'a F> for SourceFrame<'a>
where
    FrameRef<'a>: From<&'a F>,
{
    fn from(frame: &'a F) -> Self {
        Self {
            frame: frame.into(),
            file: "",
            line: 0,
        }
    }
}

impl From<&Self> for SourceFrame<'_> {
    fn from(frame: &Self) -> Self {
        *frame
    }
}

/// A frame without others that were compiled into it.
type Single = (Box<str>, FrameKind, Box<str>, u32);

/// Adds stacks of frames to a profile.
#[derive(Debug)]
pub struct FrameProfile {
    profile: Profile,
    singles: IndexMap<Single, LocationIndex, RandomState>,
    /// Frames with others in them, by their functions, the innermost first, and the kind of the outermost.
    locations: HashMap<(Box<[Line]>, FrameKind), LocationIndex>,
    samples: HashMap<SampleKey, usize>,
    group: u32,
    /// The user and the kernel stack before, from root to leaf: neighbours in text mostly begin alike.
    last: [Vec<LocationIndex>; 2],
    /// How many labels that stack had in front, if each frame of its user part is a location.
    last_labels: Option<usize>,
}

/// All that tells samples apart.
#[derive(Debug, PartialEq, Eq, Hash)]
struct SampleKey {
    group: u32,
    labels: LabelsIndex,
    user: Option<NormalizedStackIndex>,
    kernel: Option<NormalizedStackIndex>,
}

impl FrameProfile {
    /// Adds to this profile.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            singles: IndexMap::default(),
            locations: HashMap::default(),
            samples: HashMap::default(),
            group: 0,
            last: Default::default(),
            last_labels: None,
        }
    }

    /// Begins or goes on with a group of samples; with those of other groups they are not added up.
    pub fn group(&mut self, group: u32) {
        self.group = group;
    }

    /// Adds what was counted for a stack to its sample, and returns the place of that.
    pub fn push<'a, F>(&mut self, stack: &'a [F], weight: u64, count: u64) -> usize
    where
        SourceFrame<'a>: From<&'a F>,
    {
        self.push_alike(stack, 0, weight, count)
    }

    /// As [`Self::push`], of a stack whose first frames have the names that those of the one before had.
    pub(super) fn push_alike<'a, F>(
        &mut self,
        stack: &'a [F],
        alike: usize,
        weight: u64,
        count: u64,
    ) -> usize
    where
        SourceFrame<'a>: From<&'a F>,
    {
        let (labels, behind) = labels(stack);
        let in_front = stack.len() - behind.len();
        let alike = match self.last_labels == Some(in_front) {
            true => alike.saturating_sub(in_front),
            false => 0,
        };
        let place = self.add(labels, behind, alike, (weight, count));
        self.last_labels = self.last_labels.map(|_| in_front);
        place
    }

    /// Adds what was counted for a stack without labels in front to its sample, and returns the place of that.
    pub fn push_of<'a, F>(
        &mut self,
        labels: Labels,
        stack: &'a [F],
        weight: u64,
        count: u64,
    ) -> usize
    where
        SourceFrame<'a>: From<&'a F>,
    {
        self.add(labels, stack, 0, (weight, count))
    }

    fn add<'a, F>(
        &mut self,
        labels: Labels,
        stack: &'a [F],
        alike: usize,
        (weight, count): (u64, u64),
    ) -> usize
    where
        SourceFrame<'a>: From<&'a F>,
    {
        let kernel = stack
            .iter()
            .position(|at| SourceFrame::from(at).frame.kind == FrameKind::Kernel);
        let (user, kernel) = stack.split_at(kernel.unwrap_or(stack.len()));
        let key = SampleKey {
            group: self.group,
            labels: self.profile.labels(labels),
            user: self.stack(0, user, alike),
            kernel: self.stack(1, kernel, 0),
        };
        self.last_labels = (self.last[0].len() == user.len()).then_some(0);
        let sample = Sample {
            labels: key.labels,
            user: key.user,
            kernel: key.kernel,
            thread_state: ThreadState::Running,
            reason: None,
            waker: None,
            window: WindowIndex::default(),
            weight,
            count,
        };
        match self.samples.entry(key) {
            Entry::Occupied(place) => {
                let known = &mut self.profile.samples[*place.get()];
                known.weight = known.weight.saturating_add(weight);
                known.count = known.count.saturating_add(count);
                *place.get()
            }
            Entry::Vacant(place) => {
                self.profile.push(sample);
                *place.insert(self.profile.samples.len() - 1)
            }
        }
    }

    /// About how much memory the profile takes, in bytes, beside the characters of names.
    pub fn bytes(&self) -> u64 {
        // Of an entry, and of what finds it again: a hash, an index, a key.
        fn of<T>(entries: usize) -> u64 {
            (entries as u64).saturating_mul(size_of::<T>() as u64 + 48)
        }
        let profile = &self.profile;
        let locations = of::<Location>(profile.locations().len()).saturating_mul(2);
        of::<Sample>(profile.samples().len())
            .saturating_add(of::<Labels>(profile.labels.len()))
            .saturating_add(of::<NormalizedStack>(profile.stacks.len()))
            .saturating_add(of::<Function>(profile.functions().len()))
            .saturating_add(locations)
    }

    /// Whether nothing was added.
    pub fn is_empty(&self) -> bool {
        self.profile.samples.is_empty()
    }

    /// The profile.
    pub fn into_profile(self) -> Profile {
        self.profile
    }

    /// The stack of some frames, the first of which are `alike` in name to those of the one before.
    fn stack<'a, F>(
        &mut self,
        part: usize,
        frames: &'a [F],
        alike: usize,
    ) -> Option<NormalizedStackIndex>
    where
        SourceFrame<'a>: From<&'a F>,
    {
        let mut locations = std::mem::take(&mut self.last[part]);
        let (mut depth, mut rest) = (0, frames);
        while let Some((outermost, behind)) = rest.split_first() {
            let outermost = SourceFrame::from(outermost);
            let kind = outermost.frame.kind;
            let is_code = kind.is_user() || kind == FrameKind::Kernel;
            let inlined = behind.iter().map(SourceFrame::from);
            let inlined = inlined.take_while(|at| is_code && at.frame.kind == FrameKind::Inlined);
            let inlined: Vec<_> = inlined.collect();
            rest = &behind[inlined.len()..];
            match locations.get_mut(depth) {
                Some(last)
                    if depth < alike
                        && inlined.is_empty()
                        && self.profile.location_at(*last).kind == kind => {}
                Some(last) if inlined.is_empty() && self.is(*last, &outermost) => {}
                Some(last) => *last = self.location(&outermost, &inlined),
                None => locations.push(self.location(&outermost, &inlined)),
            }
            depth += 1;
        }
        locations.truncate(depth);
        let stack = (depth > 0).then(|| {
            self.profile.stack(NormalizedStack {
                locations: locations.iter().rev().copied().collect(),
                end: StackEnd::Root,
                fallbacks: Fallbacks::NONE,
            })
        });
        self.last[part] = locations;
        stack
    }

    /// Whether a location is a frame without others in it.
    fn is(&self, location: LocationIndex, at: &SourceFrame<'_>) -> bool {
        let location = self.profile.location_at(location);
        let [line] = self.profile.lines_at(location) else {
            return false;
        };
        let function = self.profile.function_at(line.function);
        location.kind == at.frame.kind
            && line.line == at.line
            && function.name == at.frame.name
            && is_same(&function.file, at.file)
    }

    fn location(
        &mut self,
        outermost: &SourceFrame<'_>,
        inlined: &[SourceFrame<'_>],
    ) -> LocationIndex {
        if inlined.is_empty() {
            return self.single(outermost);
        }
        let all = inlined.iter().rev().chain([outermost]);
        let lines: Box<[Line]> = all.map(|at| self.line(at)).collect();
        let profile = &mut self.profile;
        let new = |(lines, kind): &(Box<[Line]>, FrameKind)| place(profile, lines, *kind);
        *self
            .locations
            .entry((lines, outermost.frame.kind))
            .or_insert_with_key(new)
    }

    fn single(&mut self, at: &SourceFrame<'_>) -> LocationIndex {
        if let Some(known) = self.singles.get(at) {
            return *known;
        }
        let line = self.line(at);
        let FrameRef { name, kind } = at.frame;
        let location = place(&mut self.profile, &[line], kind);
        self.singles
            .insert((name.into(), kind, at.file.into(), at.line), location);
        location
    }

    fn line(&mut self, at: &SourceFrame<'_>) -> Line {
        let function = self.profile.function(Function {
            name: at.frame.name.to_owned(),
            file: at.file.into(),
            ..Function::default()
        });
        Line {
            function,
            line: at.line,
        }
    }
}

impl Equivalent<Single> for SourceFrame<'_> {
    fn equivalent(&self, (name, kind, file, line): &Single) -> bool {
        let FrameRef {
            name: own,
            kind: of,
        } = self.frame;
        (of, self.line, own) == (*kind, *line, name) && is_same(self.file, file)
    }
}

/// Whether texts are equal. glibc looks at the address of a text even if it is empty, and where nothing is mapped there,
/// as is usual for one that is, some CPUs take a tenth of a microsecond.
fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && (one.is_empty() || one == other)
}

/// A location with these lines, the innermost first.
fn place(profile: &mut Profile, lines: &[Line], kind: FrameKind) -> LocationIndex {
    let lines = profile.lines(lines.iter().copied());
    profile.location(Location {
        mapping: None,
        address: 0,
        kind,
        lines,
    })
}

/// The labels that a stack begins with, in the order in which views show them, and the rest.
fn labels<'a, F>(stack: &'a [F]) -> (Labels, &'a [F])
where
    SourceFrame<'a>: From<&'a F>,
{
    let frame = |at: &'a F| SourceFrame::from(at).frame;
    let mut labels = Labels::default();
    let mut rest = stack;
    let number = |digits: &str| {
        // A zero in front would be lost.
        let number: u32 = digits.parse().ok()?;
        (number.to_string() == digits).then_some(number)
    };
    if let Some((first, behind)) = rest.split_first()
        && frame(first).kind == FrameKind::Label
        && let Some(cpu) = cpu_label(frame(first).name).and_then(number)
        && behind
            .first()
            .is_some_and(|next| frame(next).kind == FrameKind::Process)
    {
        labels.cpu = Some(cpu);
        rest = behind;
    }
    if let Some((first, behind)) = rest.split_first()
        && frame(first).kind == FrameKind::Process
    {
        labels.comm = Some(frame(first).name.to_owned());
        rest = behind;
    }
    if labels.comm.is_some()
        && let Some((first, behind)) = rest.split_first()
        && frame(first).kind == FrameKind::Label
        && let Some((digits, thread)) = thread_label(frame(first).name)
        && let Some(tid) = number(digits)
        && thread != labels.comm.as_deref()
    {
        labels.tid = Some(tid);
        if let Some(thread) = thread {
            labels.process = labels.comm.replace(thread.to_owned());
        }
        rest = behind;
    }
    (labels, rest)
}
