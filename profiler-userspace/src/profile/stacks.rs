//! The samples of a profile as stacks of named frames, from root to leaf, made one at a time.
//!
//! In: a [`Profile`]. Out: for each sample its labels where these are wanted, functions and marks as frames. A line of source is put
//! behind the name that it belongs to, what a thread did or waited for stands at its leaf, and who ended the wait above or in
//! its place. What differs only in what is not shown, such as the process ID, is one stack here.

use super::code_places::{Code, FrameId};
use super::frame::kernel_part;
use super::model::{LabelFrames, Labels, LabelsIndex, Line, Profile, Sample};
use super::normalized::{LocationIndex, NormalizedStackIndex};
use super::off_cpu_view::{OffCpuView, Wakers};
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
    InStack {
        /// Whether a frame stands between its user and its kernel part.
        is_delimited: bool,
    },
    /// It is told apart from the stack.
    Apart,
}

/// A stack of frames.
pub(super) struct Stack {
    /// From root to leaf.
    pub(super) frames: Box<[FrameId]>,
    /// How many of the frames are of the thread itself. Those behind are of who ended its wait.
    pub(super) own: usize,
}

/// Part of labels that is shown, as an index into the builder's list.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
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
pub(super) struct Shown {
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
                Owner::InStack { .. } => profile.profiler_stack(),
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
    pub(super) fn shown(&mut self, sample: &Sample) -> Shown {
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
        Shown {
            thread: self.thread(sample.labels, sample.user, sample.kernel),
            thread_state: sample.thread_state,
            reason: sample.reason,
            waker,
        }
    }

    /// The stack of what is shown.
    pub(super) fn stack(&mut self, shown: &Shown) -> Stack {
        let (mut frames, mut own) = self.parts(shown);
        if let Owner::InStack { is_delimited } = self.owner {
            if frames.is_empty() {
                frames.push(self.mark(marks::UNKNOWN, FrameKind::Mark));
            }
            let kind = |id: &FrameId| self.frames[id.index()].0.kind;
            if is_delimited && let Some(kernel) = kernel_part(&frames, kind) {
                frames.insert(kernel, self.mark(marks::DELIMITER, FrameKind::Mark));
                own += usize::from(kernel < own);
            }
        }
        Stack {
            frames: frames.into(),
            own,
        }
    }

    /// The frames of what is shown, and how many of them are of the thread itself.
    fn parts(&mut self, shown: &Shown) -> (Vec<FrameId>, usize) {
        let view = self.profile.off_cpu;
        let mut frames = Vec::with_capacity(self.most_frames(shown.thread));
        if view.is_some_and(|view| view.wakers == Wakers::Alone) {
            self.push_waker(shown.waker, &mut frames);
            self.push_labels(shown.thread.labels, &mut frames);
            let own = frames.len();
            return (frames, own);
        }
        match self.owner {
            Owner::InStack { .. } => self.push_thread(shown.thread, &mut frames),
            Owner::Apart => self.push_stacks(shown.thread, &mut frames),
        }
        self.push_state(shown, view, &mut frames);
        let own = frames.len();
        if shown.waker != ShownWaker::None {
            frames.push(self.mark(marks::WOKEN_BY, FrameKind::Mark));
            let begin = frames.len();
            self.push_waker(shown.waker, &mut frames);
            if view.is_some() {
                frames[begin..].reverse();
            }
        }
        (frames, own)
    }

    /// How many frames most stacks of a thread have, whose code has nothing compiled into it.
    fn most_frames(&self, thread: Thread) -> usize {
        let stacks = [thread.user, thread.kernel].into_iter().flatten();
        let locations = stacks.map(|stack| self.profile.stack_at(stack).locations.len());
        let labels = match self.owner {
            Owner::InStack { .. } => self.labels[thread.labels.0 as usize].len(),
            Owner::Apart => 0,
        };
        locations.sum::<usize>() + labels
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
        let locations = self.profile.stack_at(stack).locations.iter().rev();
        for LocationIndex(location) in locations {
            let location = *location as usize;
            let range = self.begins[location] as usize..self.begins[location + 1] as usize;
            frames.extend_from_slice(&self.levels[range]);
        }
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

    /// State of the thread, where that is not what stacks are of anyway.
    fn push_state(&mut self, shown: &Shown, view: Option<OffCpuView>, frames: &mut Vec<FrameId>) {
        let is_marked = frames.last().is_some_and(|leaf| {
            self.frames
                .get_index(leaf.0 as usize)
                .is_some_and(|(leaf, _)| leaf.kind == FrameKind::Mark)
        });
        let mark = match shown.thread_state {
            ThreadState::Running => return,
            ThreadState::Ran => marks::NOT_SAMPLED,
            ThreadState::Runnable => marks::RUNNABLE,
            ThreadState::Blocked | ThreadState::Woken => match (shown.reason, view) {
                (Some(reason), _) => reason.name(),
                (None, None) => marks::BLOCKED,
                (None, Some(view)) if view.ran && !is_marked => marks::BLOCKED,
                (None, Some(_)) => return,
            },
        };
        frames.push(self.mark(mark, FrameKind::State(shown.thread_state)));
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
