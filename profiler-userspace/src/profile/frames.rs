//! Profiles out of stacks of frames, as folded text tells them.
//!
//! In: frames from root to leaf. Out: a [`Profile`] whose [`View`](super::View) is these frames again. The labels in
//! front are the sample's, inlined functions become lines of what they are in, and what the kernel has is its own stack.

use super::model::{Function, FunctionIndex, Labels, Line, Location, Profile, Sample};
use super::normalized::{LocationIndex, NormalizedStack, NormalizedStackIndex};
use super::{Frame, FrameKind, FrameRef, WindowIndex};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::{Equivalent, IndexMap};
use profiler_common::abi::{Fallbacks, StackEnd, ThreadState};

/// A frame without others that were compiled into it.
type Single = (Box<str>, FrameKind);

/// Adds stacks of frames to a profile.
#[derive(Debug)]
pub struct FrameProfile {
    profile: Profile,
    singles: IndexMap<Single, LocationIndex, RandomState>,
    /// Frames with others in them, by their functions, the innermost first, and the kind of the outermost.
    locations: HashMap<(Box<[FunctionIndex]>, FrameKind), LocationIndex>,
}

impl FrameProfile {
    /// Adds to this profile.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            singles: IndexMap::default(),
            locations: HashMap::default(),
        }
    }

    /// Adds what was counted for a stack, and returns the place of its sample.
    pub fn push<'a, F>(&mut self, stack: &'a [F], weight: u64, count: u64) -> usize
    where
        FrameRef<'a>: From<&'a F>,
    {
        let stack: Vec<FrameRef<'a>> = stack.iter().map(FrameRef::from).collect();
        let (labels, stack) = labels(&stack);
        self.push_refs(labels, stack, weight, count)
    }

    /// Adds what was counted for a stack without labels in front.
    pub fn push_of(&mut self, labels: Labels, stack: &[Frame], weight: u64, count: u64) {
        let stack: Vec<FrameRef<'_>> = stack.iter().map(FrameRef::from).collect();
        self.push_refs(labels, &stack, weight, count);
    }

    fn push_refs(
        &mut self,
        labels: Labels,
        stack: &[FrameRef<'_>],
        weight: u64,
        count: u64,
    ) -> usize {
        let kernel = stack
            .iter()
            .position(|frame| frame.kind == FrameKind::Kernel);
        let (user, kernel) = stack.split_at(kernel.unwrap_or(stack.len()));
        let sample = Sample {
            labels: self.profile.labels(labels),
            user: self.stack(user),
            kernel: self.stack(kernel),
            thread_state: ThreadState::Running,
            reason: None,
            waker: None,
            window: WindowIndex::default(),
            weight,
            count,
        };
        self.profile.push(sample);
        self.profile.samples.len() - 1
    }

    /// Adds more to the sample at such a place.
    pub fn add(&mut self, sample: usize, weight: u64, count: u64) {
        let sample = &mut self.profile.samples[sample];
        sample.weight = sample.weight.saturating_add(weight);
        sample.count = sample.count.saturating_add(count);
    }

    /// About how much memory the profile takes, in bytes, beside the characters of names.
    pub fn bytes(&self) -> u64 {
        // Of an entry, and of what finds it again: a hash, an index, a key.
        fn of<T>(entries: usize) -> u64 {
            (entries as u64).saturating_mul(size_of::<T>() as u64 + 48)
        }
        let profile = &self.profile;
        let locations = of::<Location>(profile.locations().len()).saturating_mul(2);
        (size_of_val(profile.samples()) as u64)
            .saturating_add(of::<Labels>(profile.labels.len()))
            .saturating_add(of::<NormalizedStack>(profile.stacks.len()))
            .saturating_add(of::<Function>(profile.functions().len()))
            .saturating_add(locations)
    }

    /// The profile.
    pub fn into_profile(self) -> Profile {
        self.profile
    }

    fn stack(&mut self, frames: &[FrameRef<'_>]) -> Option<NormalizedStackIndex> {
        let mut locations = Vec::new();
        let mut rest = frames;
        while let Some((outermost, behind)) = rest.split_first() {
            let is_code = outermost.kind.is_user() || outermost.kind == FrameKind::Kernel;
            let inlined = behind
                .iter()
                .take_while(|frame| is_code && frame.kind == FrameKind::Inlined);
            let (inlined, behind) = behind.split_at(inlined.count());
            locations.push(self.location(outermost, inlined));
            rest = behind;
        }
        locations.reverse();
        (!locations.is_empty()).then(|| {
            self.profile.stack(NormalizedStack {
                locations: locations.into(),
                end: StackEnd::Root,
                fallbacks: Fallbacks::NONE,
            })
        })
    }

    fn location(&mut self, outermost: &FrameRef<'_>, inlined: &[FrameRef<'_>]) -> LocationIndex {
        if inlined.is_empty() {
            return self.single(outermost);
        }
        let all = inlined.iter().rev().chain([outermost]);
        let functions: Box<[FunctionIndex]> = all.map(|frame| self.function(frame.name)).collect();
        let profile = &mut self.profile;
        let new = |(functions, kind): &(Box<[FunctionIndex]>, FrameKind)| {
            place(profile, functions, *kind)
        };
        *self
            .locations
            .entry((functions, outermost.kind))
            .or_insert_with_key(new)
    }

    fn single(&mut self, frame: &FrameRef<'_>) -> LocationIndex {
        if let Some(known) = self.singles.get(frame) {
            return *known;
        }
        let function = self.function(frame.name);
        let location = place(&mut self.profile, &[function], frame.kind);
        self.singles
            .insert((frame.name.into(), frame.kind), location);
        location
    }

    fn function(&mut self, name: &str) -> FunctionIndex {
        self.profile.function(Function {
            name: name.to_owned(),
            ..Function::default()
        })
    }
}

impl Equivalent<Single> for FrameRef<'_> {
    fn equivalent(&self, (name, kind): &Single) -> bool {
        (self.name, self.kind) == (name, *kind)
    }
}

/// A location with these functions, the innermost first.
fn place(profile: &mut Profile, functions: &[FunctionIndex], kind: FrameKind) -> LocationIndex {
    let lines = functions.iter().map(|&function| Line { function, line: 0 });
    let lines = profile.lines(lines);
    profile.location(Location {
        mapping: None,
        address: 0,
        kind,
        lines,
    })
}

/// The labels that a stack begins with, in the order in which views show them, and the rest.
fn labels<'a, 'b>(stack: &'b [FrameRef<'a>]) -> (Labels, &'b [FrameRef<'a>]) {
    let mut labels = Labels::default();
    let mut rest = stack;
    let number = |frame: &FrameRef<'a>, start| {
        let digits = frame.name.strip_prefix(start)?.strip_suffix(']')?;
        // A zero in front would be lost.
        let number: u32 = digits.parse().ok()?;
        (number.to_string() == digits).then_some(number)
    };
    if let Some((first, behind)) = rest.split_first()
        && first.kind == FrameKind::Label
        && let Some(cpu) = number(first, "[cpu ")
        && behind
            .first()
            .is_some_and(|next| next.kind == FrameKind::Process)
    {
        labels.cpu = Some(cpu);
        rest = behind;
    }
    if let Some((first, behind)) = rest.split_first()
        && first.kind == FrameKind::Process
    {
        labels.comm = Some(first.name.to_owned());
        rest = behind;
    }
    if labels.comm.is_some()
        && let Some((first, behind)) = rest.split_first()
        && first.kind == FrameKind::Label
        && let Some(tid) = number(first, "[tid ")
    {
        labels.tid = Some(tid);
        rest = behind;
    }
    (labels, rest)
}
