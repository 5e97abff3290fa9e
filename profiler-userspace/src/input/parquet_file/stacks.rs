//! Stacks and owners of a table's rows, as parts of a profile.
//!
//! In: numbers of texts, as columns have them. Out: labels and stacks of a profile, each once. Frames that were compiled into others become
//! lines of these, and what stands from the first function of the kernel on is the kernel's stack.

use super::columns::{NONE, Texts};
use crate::input::kind;
use crate::profile::cgroup::Cgroup;
use crate::profile::normalized::{LocationIndex, NormalizedStack, NormalizedStackIndex};
use crate::profile::{
    FrameKind, Function, Labels, LabelsIndex, Line, Location, Mapping, Profile, marks,
};
use foldhash::HashMap;
use profiler_common::abi::ThreadState;
use std::sync::Arc;

/// A frame's cells: function, module, build ID, kind, file, line.
pub(super) type Raw = [u32; 6];

/// An owner's cells.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RawOwner {
    pub(super) cgroup: u32,
    pub(super) container: u32,
    pub(super) pod: u32,
    pub(super) source: u32,
    pub(super) process: u32,
    pub(super) thread: u32,
    pub(super) pid: Option<i64>,
    pub(super) tid: Option<i64>,
    pub(super) cpu: Option<i64>,
}

/// A row's stack in the profile.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RowStack {
    pub(super) user: Option<NormalizedStackIndex>,
    pub(super) kernel: Option<NormalizedStackIndex>,
    pub(super) thread_state: ThreadState,
}

/// A frame of the profile.
struct ProfileFrame {
    kind: FrameKind,
    line: Line,
    place: Location,
    /// Where it stands alone.
    alone: Option<LocationIndex>,
}

/// Parts of a profile that rows were found to have.
#[derive(Default)]
pub(super) struct Parts {
    frames: HashMap<(Raw, FrameKind), u32>,
    known: Vec<ProfileFrame>,
    /// Frames with others in them, from the outermost on.
    joined: HashMap<Box<[u32]>, LocationIndex>,
    owners: HashMap<RawOwner, LabelsIndex>,
    /// The row before: most have the same stack.
    last: Option<(Vec<Raw>, ThreadState, RowStack)>,
    /// Kinds by the numbers of their texts.
    kinds: HashMap<u32, Option<FrameKind>>,
    /// About how much memory all of it takes.
    pub(super) bytes: u64,
}

/// The state of a thread, by its word.
pub(super) fn thread_state(word: &str) -> ThreadState {
    match word {
        "blocked" => ThreadState::Blocked,
        "runnable" => ThreadState::Runnable,
        _ => ThreadState::Running,
    }
}

impl Parts {
    /// The labels of an owner.
    pub(super) fn owner(
        &mut self,
        profile: &mut Profile,
        texts: &Texts,
        owner: RawOwner,
    ) -> LabelsIndex {
        *self.owners.entry(owner).or_insert_with(|| {
            self.bytes += 512;
            let text = |number| texts.get(number).map(str::to_owned);
            let id = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
            let cgroup = texts.get(owner.cgroup).map(|path| {
                let (container, pod) = (texts.get(owner.container), texts.get(owner.pod));
                Arc::new(Cgroup::told(path, container, pod))
            });
            profile.labels(Labels {
                process: text(owner.process),
                comm: text(owner.thread),
                source: text(owner.source),
                cgroup,
                context: None,
                pid: id(owner.pid),
                tid: id(owner.tid),
                cpu: id(owner.cpu),
                start: 0,
            })
        })
    }

    /// The stack of a row, whose frames come from the leaf on.
    pub(super) fn stack(
        &mut self,
        profile: &mut Profile,
        texts: &Texts,
        frames: &[Raw],
        state: ThreadState,
    ) -> RowStack {
        if let Some((before, of, stack)) = &self.last
            && *of == state
            && before == frames
        {
            return *stack;
        }
        let stack = self.new_stack(profile, texts, frames, state);
        let (mut before, ..) = self.last.take().unwrap_or((Vec::new(), state, stack));
        before.clear();
        before.extend_from_slice(frames);
        self.last = Some((before, state, stack));
        stack
    }

    fn new_stack(
        &mut self,
        profile: &mut Profile,
        texts: &Texts,
        frames: &[Raw],
        state: ThreadState,
    ) -> RowStack {
        let (frames, thread_state) = self.without_state(texts, frames, state);
        let from_root: Vec<u32> = (frames.iter().rev())
            .map(|raw| self.frame(profile, texts, *raw, state))
            .collect();
        let is_kernel = |frame: &u32| self.known[*frame as usize].kind == FrameKind::Kernel;
        let kernel = from_root
            .iter()
            .position(is_kernel)
            .unwrap_or(from_root.len());
        let (user, kernel) = from_root.split_at(kernel);
        RowStack {
            user: self.part(profile, user),
            kernel: self.part(profile, kernel),
            thread_state,
        }
    }

    /// Frames without the one at the leaf that says what the thread did, where views add that; and what that is.
    fn without_state<'r>(
        &mut self,
        texts: &Texts,
        frames: &'r [Raw],
        state: ThreadState,
    ) -> (&'r [Raw], ThreadState) {
        let (mark, marked) = match state {
            // The marks of waits are frames.
            ThreadState::Blocked => return (frames, state),
            ThreadState::Runnable => (marks::RUNNABLE, state),
            _ => (marks::NOT_SAMPLED, ThreadState::Ran),
        };
        match frames.split_first() {
            Some((leaf, others))
                if matches!(self.kind(texts, leaf[3], state), FrameKind::State(_))
                    && texts.get(leaf[0]) == Some(mark) =>
            {
                (others, marked)
            }
            _ => (frames, ThreadState::Running),
        }
    }

    /// A kind by the number of its word; none where the row's state decides.
    fn kind(&mut self, texts: &Texts, word: u32, state: ThreadState) -> FrameKind {
        let kind = self.kinds.entry(word).or_insert_with(|| {
            let word = texts.get(word).unwrap_or_default();
            let words = [
                FrameKind::Process,
                FrameKind::Label,
                FrameKind::User,
                FrameKind::Jit,
                FrameKind::Inlined,
                FrameKind::Kernel,
                FrameKind::Mark,
            ];
            let known = words.into_iter().find(|kind| kind.word() == word);
            match word == FrameKind::State(ThreadState::Ran).word() {
                true => None,
                false => known
                    .or_else(|| FrameKind::from_short(word))
                    .or(Some(FrameKind::User)),
            }
        });
        kind.unwrap_or(FrameKind::State(match state {
            ThreadState::Running => ThreadState::Ran,
            state => state,
        }))
    }

    fn frame(&mut self, profile: &mut Profile, texts: &Texts, raw: Raw, state: ThreadState) -> u32 {
        let kind = self.kind(texts, raw[3], state);
        if let Some(known) = self.frames.get(&(raw, kind)) {
            return *known;
        }
        let [function, module, build_id, _, file, line] = raw;
        let text = |number| texts.get(number).unwrap_or_default();
        let function = profile.function(Function {
            name: text(function).to_owned(),
            system_name: String::new(),
            file: text(file).into(),
        });
        // The name of a kind itself is no file.
        let is_file = match kind {
            FrameKind::Interpreted(_) => build_id != NONE,
            kind => build_id != NONE || text(module) != kind.module_without_file(),
        };
        let mapping = (module != NONE && is_file).then(|| {
            profile.mapping(Mapping {
                path: text(module).into(),
                module: text(module).to_owned(),
                build_id: kind::build_id(text(build_id)),
                has_functions: true,
                ..Mapping::default()
            })
        });
        let number = u32::try_from(self.known.len()).expect("fewer than 2^32 frames");
        self.bytes += 512;
        self.known.push(ProfileFrame {
            kind,
            line: Line { function, line },
            place: Location::new(mapping, 0, kind, Default::default()),
            alone: None,
        });
        self.frames.insert((raw, kind), number);
        number
    }

    /// A stack of frames, which come from the root on.
    fn part(&mut self, profile: &mut Profile, frames: &[u32]) -> Option<NormalizedStackIndex> {
        let mut locations = Vec::with_capacity(frames.len());
        let mut rest = frames;
        while let Some(outermost) = rest.first() {
            let kind = self.known[*outermost as usize].kind;
            let is_code = kind.is_user() || kind == FrameKind::Kernel;
            let inlined = (rest[1..].iter())
                .take_while(|at| is_code && self.known[**at as usize].kind == FrameKind::Inlined)
                .count();
            let (place, behind) = rest.split_at(1 + inlined);
            locations.push(self.location(profile, place));
            rest = behind;
        }
        locations.reverse();
        if locations.is_empty() {
            return None;
        }
        self.bytes += 64 + 8 * locations.len() as u64;
        Some(profile.stack(&NormalizedStack::whole(locations)))
    }

    /// The location of a frame and those that were compiled into it.
    fn location(&mut self, profile: &mut Profile, frames: &[u32]) -> LocationIndex {
        let known = match frames {
            [alone] => self.known[*alone as usize].alone,
            joined => self.joined.get(joined).copied(),
        };
        if let Some(known) = known {
            return known;
        }
        let line = |frame: &u32| self.known[*frame as usize].line;
        let lines = profile.lines(frames.iter().rev().map(line));
        let place = self.known[frames[0] as usize].place;
        let location = profile.location(Location { lines, ..place });
        match frames {
            [alone] => self.known[*alone as usize].alone = Some(location),
            joined => {
                self.joined.insert(joined.into(), location);
            }
        }
        location
    }
}
