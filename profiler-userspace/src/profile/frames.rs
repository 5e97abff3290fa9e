//! Profiles out of stacks of frames, as folded text tells them.
//!
//! In: frames from root to leaf. Out: a [`Profile`] whose [`View`](super::View) is these frames again. The labels in
//! front are the sample's, inlined functions become lines of what they are in, and what the kernel has is its own stack.

use super::frame::{cpu_label, thread_label};
use super::model::{Function, Labels, LabelsIndex, Line, Location, Profile, Sample};
use super::normalized::{LocationIndex, NormalizedStackIndex};
use super::numbers::Numbers;
use super::paths::{Node, NodeIndex};
use super::{Frame, FrameKind, FrameRef};
use foldhash::fast::RandomState;
use hashbrown::{Equivalent, HashMap};
use profiler_common::abi::{Fallbacks, StackEnd};
use std::ops::Range;

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

impl<'a> SourceFrame<'a> {
    /// A frame of which it is not known where in its source it was.
    pub fn nowhere(frame: FrameRef<'a>) -> Self {
        let (file, line) = ("", 0);
        Self { frame, file, line }
    }
}

/// Anything that can be a frame of a stack.
pub trait AsFrame {
    /// The frame.
    fn as_frame(&self) -> SourceFrame<'_>;
}

impl AsFrame for SourceFrame<'_> {
    fn as_frame(&self) -> SourceFrame<'_> {
        *self
    }
}

impl AsFrame for FrameRef<'_> {
    fn as_frame(&self) -> SourceFrame<'_> {
        SourceFrame::nowhere(*self)
    }
}

impl AsFrame for Frame {
    fn as_frame(&self) -> SourceFrame<'_> {
        let Self { name, kind } = self;
        SourceFrame::nowhere(FrameRef { name, kind: *kind })
    }
}

/// A frame without others that were compiled into it.
type Single = (Box<str>, FrameKind, Box<str>, u32);

/// Adds stacks of frames to a profile.
#[derive(Debug)]
pub struct FrameProfile {
    profile: Profile,
    singles: HashMap<Single, LocationIndex, RandomState>,
    /// StackFrames with others in them, by their functions, the innermost first, and the kind of the outermost.
    locations: foldhash::HashMap<(Box<[Line]>, FrameKind), LocationIndex>,
    samples: Numbers,
    /// The group of each sample.
    groups: Vec<u32>,
    group: u32,
    /// The stack before: neighbours in text mostly begin alike.
    last: Last,
}

/// StackFrames of a stack from root to leaf.
pub(super) trait StackFrames {
    /// How many there are.
    fn len(&self) -> usize;

    /// One of them.
    fn at(&self, at: usize) -> SourceFrame<'_>;
}

impl<F: AsFrame> StackFrames for [F] {
    fn len(&self) -> usize {
        self.len()
    }

    fn at(&self, at: usize) -> SourceFrame<'_> {
        self[at].as_frame()
    }
}

/// How much of a stack is as in the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Alike {
    /// Whether the first frame is.
    pub(super) first: bool,
    /// So many frames are, whether or not the first is, which is of the same kind all the same.
    pub(super) frames: usize,
}

/// A stack that was added.
#[derive(Debug, Default)]
struct Last {
    labels: LabelsIndex,
    /// How many frames in front are its labels.
    in_front: usize,
    /// Which is the first that is the kernel's, or how many there are.
    kernel: usize,
    /// The user and the kernel stack.
    parts: [Vec<Call>; 2],
}

/// A frame of a stack with those that were compiled into it.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// How many frames of its part there are from the root to it.
    end: usize,
    location: LocationIndex,
    node: NodeIndex,
}

impl FrameProfile {
    /// Adds to this profile.
    pub fn new(profile: Profile) -> Self {
        Self {
            groups: vec![0; profile.samples.len()],
            profile,
            singles: HashMap::default(),
            locations: foldhash::HashMap::default(),
            samples: Numbers::default(),
            group: 0,
            last: Last::default(),
        }
    }

    /// Begins or goes on with a group of samples; with those of other groups they are not added up.
    pub fn group(&mut self, group: u32) {
        self.group = group;
    }

    /// Adds what was counted for a stack to its sample, and returns the place of that.
    pub fn push(&mut self, stack: &[impl AsFrame], weight: u64, count: u64) -> usize {
        self.push_alike(stack, Alike::default(), weight, count)
    }

    /// As [`Self::push`], of a stack part of which is as in the one before.
    pub(super) fn push_alike(
        &mut self,
        stack: &(impl StackFrames + ?Sized),
        alike: Alike,
        weight: u64,
        count: u64,
    ) -> usize {
        let last = &self.last;
        // The frame behind labels may be one of them, if it is another.
        let (labels, in_front) = match alike.first && alike.frames > last.in_front {
            true => (last.labels, last.in_front),
            false => {
                let (labels, in_front) = labels(stack);
                (self.profile.labels(labels), in_front)
            }
        };
        let alike = match in_front == self.last.in_front && (alike.first || in_front > 0) {
            true => alike.frames,
            false => 0,
        };
        self.add(labels, in_front, stack, alike, (weight, count))
    }

    /// Adds what was counted for a stack without labels in front to its sample, and returns the place of that.
    pub fn push_of(
        &mut self,
        labels: Labels,
        stack: &[impl AsFrame],
        weight: u64,
        count: u64,
    ) -> usize {
        let labels = self.profile.labels(labels);
        self.add(labels, 0, stack, 0, (weight, count))
    }

    /// Adds a stack, the first frames of which are as before.
    fn add(
        &mut self,
        labels: LabelsIndex,
        in_front: usize,
        stack: &(impl StackFrames + ?Sized),
        alike: usize,
        (weight, count): (u64, u64),
    ) -> usize {
        let is_kernel = |at: &usize| stack.at(*at).frame.kind == FrameKind::Kernel;
        let kernel = match self.last.kernel < alike {
            true => self.last.kernel,
            false => (in_front.max(alike)..stack.len())
                .find(is_kernel)
                .unwrap_or(stack.len()),
        };
        let is_kernel_alike = kernel == self.last.kernel;
        let user = self.stack(0, stack, in_front..kernel, alike);
        let alike = if is_kernel_alike { alike } else { 0 };
        let kernel_stack = self.stack(1, stack, kernel..stack.len(), alike);
        self.last.labels = labels;
        self.last.in_front = in_front;
        self.last.kernel = kernel;
        let sample = Sample {
            labels,
            user,
            kernel: kernel_stack,
            weight,
            count,
            ..Sample::default()
        };
        let (groups, samples) = (&mut self.groups, &mut self.profile.samples);
        let key = |group: u32, sample: &Sample| (group, sample.labels, sample.user, sample.kernel);
        let own = key(self.group, &sample);
        let new = u32::try_from(groups.len()).expect("fewer than 2^32 samples");
        let is_it = |number: u32| key(groups[number as usize], &samples[number as usize]) == own;
        let number = self.samples.get_or_insert(own, new, is_it);
        if number == new {
            groups.push(self.group);
            samples.push(sample);
        } else {
            let known = &mut samples[number as usize];
            known.weight = known.weight.saturating_add(weight);
            known.count = known.count.saturating_add(count);
        }
        number as usize
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
            .saturating_add(of::<NormalizedStackIndex>(profile.stacks.len()))
            .saturating_add(of::<Node<LocationIndex>>(profile.stacks.node_count()))
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

    /// The stack of some frames. All before `alike` are as in the one before, and stand there where they stood.
    fn stack(
        &mut self,
        part: usize,
        stack: &(impl StackFrames + ?Sized),
        frames: Range<usize>,
        alike: usize,
    ) -> Option<NormalizedStackIndex> {
        let mut calls = std::mem::take(&mut self.last.parts[part]);
        let alike = alike.saturating_sub(frames.start);
        // Functions compiled into the last of those may follow now, or have followed.
        let is_inlined = |at: &usize| stack.at(*at).frame.kind == FrameKind::Inlined;
        let next = Some(frames.start + alike).filter(|at| *at < frames.end);
        let next_is_inlined = next.as_ref().is_some_and(is_inlined);
        let is_whole = |call: &Call| call.end < alike || (call.end == alike && !next_is_inlined);
        let mut depth = calls.partition_point(is_whole);
        let mut at = depth.checked_sub(1).map_or(0, |depth| calls[depth].end);
        let mut caller = depth.checked_sub(1).map(|depth| calls[depth].node);
        // A call whose callers are all as before is the same node.
        let mut is_same = true;
        while at < frames.len() {
            let outermost = stack.at(frames.start + at);
            let kind = outermost.frame.kind;
            let is_code = kind.is_user() || kind == FrameKind::Kernel;
            let inlined = (frames.start + at + 1..frames.end).map(|at| stack.at(at));
            let inlined = inlined.take_while(|at| is_code && at.frame.kind == FrameKind::Inlined);
            let inlined: Vec<_> = inlined.collect();
            let before = calls.get(depth).copied();
            // Where it is known what is alike, hardly anything behind that is, and looking is dear.
            let is_known = |call: &Call| {
                alike == 0 && inlined.is_empty() && self.is(call.location, &outermost)
            };
            let location = match before.filter(is_known) {
                Some(call) => call.location,
                None => self.location(&outermost, &inlined),
            };
            let node = match before {
                Some(call) if is_same && call.location == location => call.node,
                _ => {
                    is_same = false;
                    self.profile.stacks.call(caller, location)
                }
            };
            at += 1 + inlined.len();
            let call = Call {
                end: at,
                location,
                node,
            };
            match calls.get_mut(depth) {
                Some(last) => *last = call,
                None => calls.push(call),
            }
            caller = Some(node);
            depth += 1;
        }
        calls.truncate(depth);
        self.last.parts[part] = calls;
        let stacks = &mut self.profile.stacks;
        caller.map(|leaf| stacks.ending(Some(leaf), StackEnd::Root, Fallbacks::NONE))
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
            file: at.file.into(),
            ..Function::named(at.frame.name)
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
    profile.location(Location::new(None, 0, kind, lines))
}

/// The labels that a stack begins with, in the order in which views show them, and how many frames these are.
fn labels(stack: &(impl StackFrames + ?Sized)) -> (Labels, usize) {
    let frame = |at: usize| (at < stack.len()).then(|| stack.at(at).frame);
    let of_kind = |at: usize, kind: FrameKind| frame(at).filter(|frame| frame.kind == kind);
    let mut labels = Labels::default();
    let mut at = 0;
    let number = |digits: &str| {
        // A zero in front would be lost.
        let number: u32 = digits.parse().ok()?;
        (number.to_string() == digits).then_some(number)
    };
    if let Some(first) = of_kind(at, FrameKind::Label)
        && let Some(cpu) = cpu_label(first.name).and_then(number)
        && of_kind(at + 1, FrameKind::Process).is_some()
    {
        labels.cpu = Some(cpu);
        at += 1;
    }
    if let Some(process) = of_kind(at, FrameKind::Process) {
        labels.comm = Some(process.name.to_owned());
        at += 1;
    }
    if labels.comm.is_some()
        && let Some(first) = of_kind(at, FrameKind::Label)
        && let Some((digits, thread)) = thread_label(first.name)
        && let Some(tid) = number(digits)
        && thread != labels.comm.as_deref()
    {
        labels.tid = Some(tid);
        if let Some(thread) = thread {
            labels.process = labels.comm.replace(thread.to_owned());
        }
        at += 1;
    }
    (labels, at)
}
