//! The samples of a profile as stacks of named frames, from root to leaf.
//!
//! In: a [`Profile`]. Out: for each sample its labels where these are wanted, functions and marks as nodes of a tree. What begins
//! alike in the profile's own tree of stacks is looked at once. A line of source is put behind the name that it belongs to, what a thread did or waited for stands at its leaf, and who ended the wait above or in
//! its place. What differs only in what is not shown, such as the process ID, is one stack here.

use super::code_places::{Code, FrameId};
use super::model::{LabelFrames, Labels, LabelsIndex, Line, Profile, Sample};
use super::normalized::{LocationIndex, NormalizedStackIndex};
use super::off_cpu_view::{OffCpuView, Wakers};
use super::paths::{NodeIndex, Paths};
use super::wait_reason::WaitReason;
use super::{Frame, FrameKind, IndexSet, marks, number};
use foldhash::HashMap;
use profiler_common::abi::ThreadState;

impl Labels {
    /// Part of them that is shown in front of a stack, if it is `wanted`.
    pub fn frames(&self, wanted: LabelFrames) -> impl Iterator<Item = Frame> {
        let Self {
            tid, cpu, source, ..
        } = self;
        let named = |name: Option<&str>, kind| name.map(|name| Frame::new(name, kind));
        let frames = [
            named(source.as_deref(), FrameKind::Label),
            cpu.filter(|_| wanted.cpus).map(Frame::cpu),
            named(self.name(), FrameKind::Process),
            tid.filter(|_| wanted.threads)
                .map(|tid| Frame::thread(tid, self.thread())),
        ];
        frames.into_iter().flatten()
    }
}

/// Frames, and what those that are code stand for.
pub(super) type Frames = IndexSet<(Frame, Option<Code>)>;

/// Whether a stack begins with whose it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// It does. No stack is empty then.
    InStack,
    /// It is told apart from the stack.
    Apart,
}

/// The node of a sample, and that of the thread itself: above it where it tells who ended a wait. None where there is no stack.
pub(super) type SampleNodes = (Option<NodeIndex>, Option<NodeIndex>);

/// Nodes to be.
pub(super) struct Calls {
    pub(super) paths: Paths<FrameId>,
    /// For each node of the profile's stacks below which node it was put last, and the node that it is there.
    put: Vec<Option<(Option<NodeIndex>, NodeIndex)>>,
    /// The last labels, and the node of these.
    labels: Option<(ShownLabels, Option<NodeIndex>)>,
    /// Nodes on the way to a stack's root.
    way: Vec<NodeIndex>,
}

/// Part of labels that is shown, as an index into the builder's list.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct ShownLabels(u32);

/// A thread's labels and stacks, as far as they are shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Thread {
    labels: ShownLabels,
    user: Option<NormalizedStackIndex>,
    kernel: Option<NormalizedStackIndex>,
}

/// Waker that ended a wait, as far as that is shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ShownWaker {
    /// It is not shown who.
    None,
    /// Nobody has.
    NotWoken,
    /// Nobody was seen to.
    Unseen,
    /// An interrupt.
    Interrupt(Option<NormalizedStackIndex>),
    /// A thread.
    Thread(Thread),
}

/// All of a sample that is shown.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct VisibleSample {
    thread: Thread,
    thread_state: ThreadState,
    reason: Option<WaitReason>,
    waker: ShownWaker,
}

/// Makes stacks of frames.
pub(super) struct Builder<'a> {
    profile: &'a Profile,
    owner: Owner,
    line_frames: bool,
    pub(super) frames: Frames,
    /// For each location of the profile where its frames begin in `levels`, the outermost first; where the next
    /// location's do, they end.
    begins: Vec<u32>,
    levels: Vec<FrameId>,
    /// For each of the profile's labels what of them is shown.
    shown: Vec<ShownLabels>,
    labels: Vec<Box<[FrameId]>>,
    /// The stack of the profiler's own samples, whose process is shown as a mark.
    profiler: Option<NormalizedStackIndex>,
    /// Labels of the profiler, as marks.
    marked: HashMap<ShownLabels, ShownLabels>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(profile: &'a Profile, owner: Owner) -> Self {
        Self::with_lines(profile, owner, profile.line_frames)
    }

    /// One whose frames are apart where their lines are.
    pub(super) fn by_line(profile: &'a Profile, owner: Owner) -> Self {
        Self::with_lines(profile, owner, true)
    }

    fn with_lines(profile: &'a Profile, owner: Owner, line_frames: bool) -> Self {
        let mut builder = Self {
            profile,
            owner,
            line_frames,
            frames: IndexSet::default(),
            begins: Vec::with_capacity(profile.locations().len() + 1),
            levels: Vec::with_capacity(profile.locations().len()),
            shown: Vec::with_capacity(profile.labels.len()),
            labels: Vec::new(),
            profiler: match owner {
                Owner::InStack => profile.profiler_stack(),
                Owner::Apart => None,
            },
            marked: HashMap::default(),
        };
        builder.show_locations();
        builder.show_labels();
        builder
    }

    fn show_locations(&mut self) {
        let profile = self.profile;
        let mut known: HashMap<(Code, FrameKind), FrameId> = HashMap::default();
        for location in profile.locations() {
            self.begins.push(self.levels.len() as u32);
            let mut kind = location.kind;
            for line in profile.lines_at(location).iter().rev() {
                let line = Line {
                    line: if self.line_frames { line.line } else { 0 },
                    ..*line
                };
                let code = Code {
                    function: line.function,
                    line: line.line,
                    mapping: location.mapping,
                };
                let id = *known.entry((code, kind)).or_insert_with(|| {
                    let frame = (frame(profile, &line, kind), Some(code));
                    FrameId(number(&mut self.frames, frame))
                });
                self.levels.push(id);
                kind = FrameKind::Inlined;
            }
        }
        self.begins.push(self.levels.len() as u32);
    }

    /// Whether owners are told apart from stacks.
    pub(super) fn is_apart(&self) -> bool {
        self.owner == Owner::Apart
    }

    /// How many stacks the profile has.
    pub(super) fn stacks_of_profile(&self) -> usize {
        self.profile.stacks.len()
    }

    /// A tree without nodes.
    pub(super) fn calls(&self) -> Calls {
        Calls {
            paths: Paths::default(),
            put: vec![None; self.profile.stacks.node_count()],
            labels: None,
            way: Vec::new(),
        }
    }

    /// The places of samples in the order in which they are put best: what stands below one owner together.
    pub(super) fn order(&self, samples: &[Sample]) -> Vec<u32> {
        let count = u32::try_from(samples.len()).expect("fewer than 2^32 samples");
        let mut order: Vec<u32> = (0..count).collect();
        if self.owner == Owner::InStack {
            order.sort_by_key(|at| self.shown[samples[*at as usize].labels.0 as usize]);
        }
        order
    }

    fn show_labels(&mut self) {
        let mut known: HashMap<Box<[FrameId]>, ShownLabels> = HashMap::default();
        for labels in &self.profile.labels {
            let frames: Box<[FrameId]> = labels
                .frames(self.profile.label_frames)
                .map(|frame| FrameId(number(&mut self.frames, (frame, None))))
                .collect();
            let next = ShownLabels(self.labels.len() as u32);
            let shown = *known.entry(frames).or_insert_with_key(|frames| {
                self.labels.push(frames.clone());
                next
            });
            self.shown.push(shown);
        }
    }

    fn thread(
        &mut self,
        labels: LabelsIndex,
        user: Option<NormalizedStackIndex>,
        kernel: Option<NormalizedStackIndex>,
    ) -> Thread {
        let labels = self.shown[labels.0 as usize];
        let is_profiler = self.profiler.is_some() && user == self.profiler;
        Thread {
            labels: match is_profiler {
                true => self.as_mark(labels),
                false => labels,
            },
            user: user.filter(|_| !is_profiler),
            kernel,
        }
    }

    /// The same labels, the process's name being a mark.
    fn as_mark(&mut self, labels: ShownLabels) -> ShownLabels {
        if let Some(known) = self.marked.get(&labels) {
            return *known;
        }
        let mut frames = self.labels[labels.0 as usize].clone();
        for id in &mut frames {
            let mut frame = self.frames[id.index()].0.clone();
            if frame.kind == FrameKind::Process {
                frame.kind = FrameKind::Mark;
                *id = FrameId(number(&mut self.frames, (frame, None)));
            }
        }
        self.labels.push(frames);
        let marked = ShownLabels(self.labels.len() as u32 - 1);
        self.marked.insert(labels, marked);
        marked
    }

    /// Part of a sample that is shown.
    pub(super) fn shown(&mut self, sample: &Sample) -> VisibleSample {
        let wakers = self.profile.off_cpu.map(|view| view.wakers);
        let waker = sample.waker.map(|index| self.profile.waker_at(index));
        let waker = match (wakers, sample.thread_state, waker) {
            (Some(Wakers::None), ..) => ShownWaker::None,
            (_, ThreadState::Woken, Some(waker)) if waker.interrupt => {
                ShownWaker::Interrupt(waker.kernel)
            }
            (_, ThreadState::Woken, Some(waker)) => {
                ShownWaker::Thread(self.thread(waker.labels, waker.user, waker.kernel))
            }
            (_, ThreadState::Woken, None) => ShownWaker::Unseen,
            (Some(_), ..) => ShownWaker::NotWoken,
            (None, ..) => ShownWaker::None,
        };
        VisibleSample {
            thread: self.thread(sample.labels, sample.user, sample.kernel),
            thread_state: sample.thread_state,
            reason: sample.reason,
            waker,
        }
    }

    /// Puts what is shown into a tree.
    pub(super) fn put(&mut self, shown: &VisibleSample, calls: &mut Calls) -> SampleNodes {
        let view = self.profile.off_cpu;
        if view.is_some_and(|view| view.wakers == Wakers::Alone) {
            let mut frames = Vec::new();
            self.push_waker(shown.waker, &mut frames);
            self.push_labels(shown.thread.labels, &mut frames);
            let own = calls.paths.place(frames);
            return (self.or_unknown(own, calls), own);
        }
        let mut node = match self.owner {
            Owner::InStack => self.put_labels(shown.thread.labels, calls),
            Owner::Apart => None,
        };
        for stack in [shown.thread.user, shown.thread.kernel]
            .into_iter()
            .flatten()
        {
            let stack = self.profile.stack_at(stack);
            if let Some(mark) = stack.end.mark() {
                let mark = self.mark(mark, FrameKind::Mark);
                node = Some(calls.paths.child(node, mark));
            }
            node = self.put_below(node, stack.leaf, calls);
        }
        let leaf = node.map(|node| calls.paths.nodes()[node.index()].frame);
        if let Some(state) = self.state(shown, view, leaf) {
            node = Some(calls.paths.child(node, state));
        }
        if shown.waker == ShownWaker::None {
            return (self.or_unknown(node, calls), node);
        }
        let own = node;
        let mut frames = Vec::new();
        self.push_waker(shown.waker, &mut frames);
        if view.is_some() {
            frames.reverse();
        }
        let woken_by = self.mark(marks::WOKEN_BY, FrameKind::Mark);
        for frame in std::iter::once(woken_by).chain(frames) {
            node = Some(calls.paths.child(node, frame));
        }
        (node, own)
    }

    fn put_labels(&self, labels: ShownLabels, calls: &mut Calls) -> Option<NodeIndex> {
        match calls.labels {
            Some((last, node)) if last == labels => node,
            _ => {
                let frames = self.labels[labels.0 as usize].iter();
                let node = calls.paths.place(frames.copied());
                calls.labels = Some((labels, node));
                node
            }
        }
    }

    /// The node of a stack's leaf below another node.
    fn put_below(
        &self,
        start: Option<NodeIndex>,
        leaf: Option<NodeIndex>,
        calls: &mut Calls,
    ) -> Option<NodeIndex> {
        let nodes = self.profile.stacks.nodes();
        let (mut node, mut above) = (start, leaf);
        calls.way.clear();
        while let Some(at) = above {
            match calls.put[at.index()] {
                Some((below, put)) if below == start => {
                    node = Some(put);
                    break;
                }
                _ => calls.way.push(at),
            }
            above = nodes[at.index()].parent;
        }
        while let Some(at) = calls.way.pop() {
            for frame in self.frames_of(nodes[at.index()].frame) {
                node = Some(calls.paths.child(node, *frame));
            }
            calls.put[at.index()] = node.map(|node| (start, node));
        }
        node
    }

    /// This node, or that of an unknown stack: where owners are frames, no stack is empty.
    fn or_unknown(&mut self, node: Option<NodeIndex>, calls: &mut Calls) -> Option<NodeIndex> {
        if node.is_some() || self.owner == Owner::Apart {
            return node;
        }
        let unknown = self.mark(marks::UNKNOWN, FrameKind::Mark);
        Some(calls.paths.child(None, unknown))
    }

    fn push_labels(&self, labels: ShownLabels, frames: &mut Vec<FrameId>) {
        frames.extend_from_slice(&self.labels[labels.0 as usize]);
    }

    fn push_thread(&mut self, thread: Thread, frames: &mut Vec<FrameId>) {
        self.push_labels(thread.labels, frames);
        self.push_stacks(thread, frames);
    }

    fn push_stacks(&mut self, thread: Thread, frames: &mut Vec<FrameId>) {
        for stack in [thread.user, thread.kernel].into_iter().flatten() {
            if let Some(mark) = self.profile.stack_at(stack).end.mark() {
                frames.push(self.mark(mark, FrameKind::Mark));
            }
            self.push_locations(stack, frames);
        }
    }

    fn push_locations(&mut self, stack: NormalizedStackIndex, frames: &mut Vec<FrameId>) {
        let begin = frames.len();
        for location in self.profile.stack_at(stack).locations() {
            frames.extend(self.frames_of(location).iter().rev());
        }
        frames[begin..].reverse();
    }

    /// The frames of a location, the outermost first.
    fn frames_of(&self, LocationIndex(location): LocationIndex) -> &[FrameId] {
        let location = location as usize;
        &self.levels[self.begins[location] as usize..self.begins[location + 1] as usize]
    }

    /// The stack of who ended a wait, from its process to what it did.
    fn push_waker(&mut self, waker: ShownWaker, frames: &mut Vec<FrameId>) {
        let mark = match waker {
            ShownWaker::None => return,
            ShownWaker::Thread(thread) => return self.push_thread(thread, frames),
            ShownWaker::NotWoken => marks::NOT_WOKEN,
            ShownWaker::Unseen => marks::WAKER_UNSEEN,
            ShownWaker::Interrupt(_) => marks::INTERRUPT,
        };
        frames.push(self.mark(mark, FrameKind::Mark));
        if let ShownWaker::Interrupt(Some(kernel)) = waker {
            self.push_locations(kernel, frames);
        }
    }

    /// State of the thread, where that is not what stacks are of anyway, below such a leaf.
    fn state(
        &mut self,
        shown: &VisibleSample,
        view: Option<OffCpuView>,
        leaf: Option<FrameId>,
    ) -> Option<FrameId> {
        let is_marked = leaf.is_some_and(|leaf| {
            let leaf = self.frames.get_index(leaf.index());
            leaf.is_some_and(|(leaf, _)| leaf.kind == FrameKind::Mark)
        });
        let mark = match shown.thread_state {
            ThreadState::Running => return None,
            ThreadState::Ran => marks::NOT_SAMPLED,
            ThreadState::Runnable => marks::RUNNABLE,
            ThreadState::Blocked | ThreadState::Woken => match (shown.reason, view) {
                (Some(reason), _) => reason.name(),
                (None, None) => marks::BLOCKED,
                (None, Some(view)) if view.ran && !is_marked => marks::BLOCKED,
                (None, Some(_)) => return None,
            },
        };
        Some(self.mark(mark, FrameKind::State(shown.thread_state)))
    }

    fn mark(&mut self, name: &str, kind: FrameKind) -> FrameId {
        FrameId(number(&mut self.frames, (Frame::new(name, kind), None)))
    }
}

/// The longest file name behind a function, in characters.
const MAX_FILE_NAME_CHARS: usize = 64;

fn frame(profile: &Profile, line: &Line, kind: FrameKind) -> Frame {
    let function = profile.function_at(line.function);
    Frame::new(with_line(&function.name, &function.file, line.line), kind)
}

/// A function's name, with its file's name and the line behind it where they are known: `work (file.c:12)`.
pub fn with_line(function: &str, file: &str, line: u32) -> String {
    let file = file.rsplit('/').next().unwrap_or_default();
    if file.is_empty() || line == 0 {
        return function.to_owned();
    }
    let end = file.char_indices().nth(MAX_FILE_NAME_CHARS);
    let file = &file[..end.map_or(file.len(), |(end, _)| end)];
    format!("{function} ({file}:{line})")
}
