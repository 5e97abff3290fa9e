//! The symbolized profile: mappings, functions, locations, stacks, and the samples that were counted on them.
//!
//! In: what [`crate::symbolize`] makes of a recording, or stacks of frames as folded text tells them. Out: tables that
//! refer to each other by index, as those of a pprof profile do. Nothing is put into a name: what a thread did, whose it
//! was, who woke it and where a line is are fields. How all that reads is the business of [`super::view`].
//! Never: files, the kernel, or the network.

use super::cgroup::{Cgroup, CgroupPart};
use super::normalized::{LocationIndex, NormalizedStack, NormalizedStackIndex, WakerIndex};
use super::off_cpu_view::OffCpuView;
use super::process_context::ProcessContext;
use super::stack_table::{StackRef, StackTable};
use super::wait_reason::WaitReason;
use super::{
    FrameKind, IndexSet, Origin, Unit, Window, WindowIndex, WindowTotals, interpreted_module,
    marks, number,
};
use profiler_common::abi::ThreadState;
use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

/// Code that lies in one file, or in memory that has a name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mapping {
    /// The file as its process saw it; empty where there is none.
    pub path: PathBuf,
    /// Its name in frames without a name.
    pub module: String,
    /// Which build it is; empty where it does not say so.
    pub build_id: Box<[u8]>,
    /// The addresses of its code, as disassemblers show them. Empty where nobody knows.
    pub range: Range<u64>,
    /// Where the first of these addresses lies in the file.
    pub offset: u64,
    /// Whether a symbol table, or what stands for one, named its functions.
    pub has_functions: bool,
}

impl Mapping {
    /// The path, or what stands for it where there is none.
    pub fn shown_path(&self) -> Cow<'_, str> {
        match self.path.as_os_str().is_empty() {
            true => Cow::Borrowed(&self.module),
            false => self.path.to_string_lossy(),
        }
    }

    /// The end of the addresses; the last address that there is where nobody knows.
    pub fn end(&self) -> u64 {
        match self.range.is_empty() {
            true => u64::MAX,
            false => self.range.end,
        }
    }

    /// The build ID in hexadecimal.
    pub fn build_id_hex(&self) -> String {
        let digits = self.build_id.iter().map(|byte| format!("{byte:02x}"));
        digits.collect()
    }
}

/// A function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name for readers, or `[module+0x1f]` where it has none. Any characters at all.
    pub name: String,
    /// The linker's name of it; empty where that is the same, or not known.
    pub system_name: String,
    /// The source file with its directories; empty where it was not asked for, or is not known.
    pub file: Arc<str>,
}

impl Function {
    /// A function of which no more than its name is known.
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }
}

/// An index into the [`Profile`]'s functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionIndex(pub u32);

/// An index into the [`Profile`]'s mappings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MappingIndex(pub u32);

/// A function at a location, and where in its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// The function.
    pub function: FunctionIndex,
    /// The line, from 1; 0 where it was not asked for, or is not known.
    pub line: u32,
}

/// A place in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Its module.
    pub mapping: Option<MappingIndex>,
    /// Where in the mapping's range, or its file where the range is not known; 0 without a mapping.
    pub address: u64,
    /// Kind of the outermost function. Those that were compiled into it are [`FrameKind::Inlined`].
    pub kind: FrameKind,
    /// Functions that are there.
    pub lines: Lines,
}

impl Location {
    /// A place of this kind, with what is known of it.
    pub const fn new(
        mapping: Option<MappingIndex>,
        address: u64,
        kind: FrameKind,
        lines: Lines,
    ) -> Self {
        Self {
            mapping,
            address,
            kind,
            lines,
        }
    }
}

/// An index into the [`Profile`]'s labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelsIndex(pub u32);

/// Owner of a sample.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Labels {
    /// The process's name; none where it is not known, or a thread's is all there is.
    pub process: Option<String>,
    /// The thread's name; none where text does not tell of one.
    pub comm: Option<String>,
    /// The process ID; none where it is not known.
    pub pid: Option<u32>,
    /// When the process began, in nanoseconds since the machine was started, and one more for each program that it ran
    /// before this one. Zero where that is not known.
    pub start: u64,
    /// The thread ID, where threads were told apart.
    pub tid: Option<u32>,
    /// The CPU, where CPUs were told apart.
    pub cpu: Option<u32>,
    /// The cgroup; none where it is not known.
    pub cgroup: Option<Arc<Cgroup>>,
    /// The context that the process publishes, where it does.
    pub context: Option<Arc<ProcessContext>>,
    /// The file, host or container that the sample came from, where these are told apart.
    pub source: Option<String>,
}

impl Labels {
    /// These without what changes from process to process of one program, so that sums of many stay few. Names of threads stay where
    /// these are told apart.
    #[must_use]
    pub fn without_ids(self, per_thread: bool) -> Self {
        Self {
            process: self.name().map(str::to_owned),
            comm: self.comm.filter(|_| per_thread),
            pid: None,
            start: 0,
            tid: None,
            ..self
        }
    }

    /// The name of the process, or of the thread where only that is known.
    pub fn name(&self) -> Option<&str> {
        self.process.as_deref().or(self.comm.as_deref())
    }

    /// The thread's name, where threads are told apart and it is not the process's.
    pub fn thread(&self) -> Option<&str> {
        let comm = self.comm.as_deref();
        comm.filter(|_| self.tid.is_some() && comm != self.name())
    }
}

/// Which labels are frames where samples have them: threads and CPUs may be told apart for readers who choose among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelFrames {
    /// The thread ID.
    pub threads: bool,
    /// The CPU.
    pub cpus: bool,
}

impl Default for LabelFrames {
    fn default() -> Self {
        Self {
            threads: true,
            cpus: true,
        }
    }
}

/// Waker that ended a wait, and what it did then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Waker {
    /// The waker.
    pub labels: LabelsIndex,
    /// Its user stack.
    pub user: Option<NormalizedStackIndex>,
    /// Its kernel stack.
    pub kernel: Option<NormalizedStackIndex>,
    /// Whether it was an interrupt, which has nothing to do with whom it came upon.
    pub interrupt: bool,
}

/// Weight of one owner on one pair of stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Sample {
    /// Owner.
    pub labels: LabelsIndex,
    /// The user stack.
    pub user: Option<NormalizedStackIndex>,
    /// The kernel stack, which the last of the user stack's functions called.
    pub kernel: Option<NormalizedStackIndex>,
    /// State of the thread.
    pub thread_state: ThreadState,
    /// Reason for its wait, where that is wanted.
    pub reason: Option<WaitReason>,
    /// Waker that ended the wait, where that is wanted and was seen.
    pub waker: Option<WakerIndex>,
    /// When it was counted.
    pub window: WindowIndex,
    /// How much was counted, in the profile's [`Unit`].
    pub weight: u64,
    /// How many firings were counted.
    pub count: u64,
}

/// Samples of one window, and all that they refer to.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Unit of the weights.
    pub unit: Unit,
    /// When the samples were taken.
    pub window: Window,
    /// The windows that this is divided into; empty where it is not known when samples were taken.
    pub windows: Vec<WindowTotals>,
    /// Where they come from.
    pub origin: Origin,
    /// How waits are shown; none where there are none, and before [`super::off_cpu::view`].
    pub off_cpu: Option<OffCpuView>,
    /// Which labels stacks of frames begin with.
    pub label_frames: LabelFrames,
    /// Whether lines of one function are frames of their own. Where lines cost work, they are there only if that is
    /// wanted; files of other tools may have them all the same.
    pub line_frames: bool,
    pub(super) mappings: IndexSet<Mapping>,
    pub(super) functions: IndexSet<Function>,
    pub(super) lines: Vec<Line>,
    pub(super) locations: Vec<Location>,
    pub(super) stacks: StackTable,
    pub(super) labels: IndexSet<Labels>,
    pub(super) wakers: Vec<Waker>,
    pub(super) samples: Vec<Sample>,
}

impl Profile {
    /// A profile without samples.
    pub fn new(unit: Unit, window: Window) -> Self {
        Self {
            unit,
            window,
            windows: Vec::new(),
            origin: Origin::default(),
            off_cpu: None,
            label_frames: LabelFrames::default(),
            line_frames: true,
            mappings: IndexSet::default(),
            functions: IndexSet::default(),
            lines: Vec::new(),
            locations: Vec::new(),
            stacks: StackTable::default(),
            labels: IndexSet::default(),
            wakers: Vec::new(),
            samples: Vec::new(),
        }
    }

    /// The index of a mapping, which is added when it is not there yet.
    pub fn mapping(&mut self, mapping: Mapping) -> MappingIndex {
        MappingIndex(number(&mut self.mappings, mapping))
    }

    /// The index of a function, which is added when it is not there yet.
    pub fn function(&mut self, function: Function) -> FunctionIndex {
        FunctionIndex(number(&mut self.functions, function))
    }

    /// The index of some labels, which are added when they are not there yet.
    pub fn labels(&mut self, labels: Labels) -> LabelsIndex {
        LabelsIndex(number(&mut self.labels, labels))
    }

    /// The index of a stack, which is added when it is not there yet.
    pub fn stack(&mut self, stack: &NormalizedStack) -> NormalizedStackIndex {
        self.stacks.add(stack)
    }

    /// A run of lines, the innermost function first, for as many locations as have these.
    pub fn lines(&mut self, lines: impl IntoIterator<Item = Line>) -> Lines {
        let start = self.lines.len();
        self.lines.extend(lines);
        let has = |lines: usize| u32::try_from(lines).expect("fewer than 2^32 lines");
        Lines(has(start), has(self.lines.len()))
    }

    /// Adds a location.
    pub fn location(&mut self, location: Location) -> LocationIndex {
        let index = u32::try_from(self.locations.len()).expect("fewer than 2^32 locations");
        self.locations.push(location);
        LocationIndex(index)
    }

    /// Adds a waker.
    pub fn waker(&mut self, waker: Waker) -> WakerIndex {
        let index = u32::try_from(self.wakers.len()).expect("fewer than 2^32 wakers");
        self.wakers.push(waker);
        WakerIndex(index)
    }

    /// Makes room for so many samples more.
    pub fn reserve(&mut self, samples: usize) {
        self.samples.reserve_exact(samples);
    }

    /// Its samples, which it has no more.
    pub(super) fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }

    /// Has no samples any more, but all that they refer to.
    pub fn clear(&mut self) {
        self.samples.clear();
    }

    /// Keeps what `change` makes of each sample, by its place; without those that it makes none of.
    pub fn change_samples(&mut self, mut change: impl FnMut(usize, Sample) -> Option<Sample>) {
        let mut places = 0..;
        self.samples.retain_mut(|sample| {
            let place = places.next().unwrap_or_default();
            let changed = change(place, *sample);
            *sample = changed.unwrap_or(*sample);
            changed.is_some()
        });
    }

    /// Adds a sample, all parts of which are in this profile.
    pub fn push(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    /// All mappings, by their indices.
    pub fn mappings(&self) -> &IndexSet<Mapping> {
        &self.mappings
    }

    /// All functions, by their indices.
    pub fn functions(&self) -> &IndexSet<Function> {
        &self.functions
    }

    /// All locations, by their indices.
    pub fn locations(&self) -> &[Location] {
        &self.locations
    }

    /// All samples, in the order in which they were pushed; equal ones may occur repeatedly.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The function at an index of this profile.
    pub fn function_at(&self, index: FunctionIndex) -> &Function {
        &self.functions[index.0 as usize]
    }

    /// The location at an index of this profile.
    pub fn location_at(&self, index: LocationIndex) -> &Location {
        &self.locations[index.0 as usize]
    }

    /// Functions at a location: the innermost first, and last the one that is no part of another.
    pub fn lines_at(&self, location: &Location) -> &[Line] {
        &self.lines[location.lines.0 as usize..location.lines.1 as usize]
    }

    /// The name of the outermost function at a location.
    pub fn name_at(&self, index: LocationIndex) -> &str {
        let lines = self.lines_at(self.location_at(index));
        lines
            .last()
            .map_or("", |line| &self.function_at(line.function).name)
    }

    /// The stack at an index of this profile.
    pub fn stack_at(&self, index: NormalizedStackIndex) -> StackRef<'_> {
        self.stacks.at(index)
    }

    /// The module of a function: what it lies in; the file or package of an interpreted one; else what its kind is called.
    pub fn module(
        &self,
        kind: FrameKind,
        mapping: Option<MappingIndex>,
        function: FunctionIndex,
    ) -> &str {
        if let Some(mapping) = mapping {
            return &self.mappings()[mapping.0 as usize].module;
        }
        let Function { name, file, .. } = self.function_at(function);
        match kind {
            FrameKind::Interpreted(runtime) => interpreted_module(runtime, name, file),
            _ => kind.module_without_file(),
        }
    }

    /// The stack that stands for all of the profiler's own, if there is one.
    pub fn profiler_stack(&self) -> Option<NormalizedStackIndex> {
        let is_mark = |location: LocationIndex| {
            let location = self.location_at(location);
            let [line] = self.lines_at(location) else {
                return false;
            };
            location.kind == FrameKind::Mark
                && self.function_at(line.function).name == marks::PROFILER
        };
        self.stacks.alone(is_mark)
    }

    /// The labels at an index of this profile.
    pub fn labels_at(&self, index: LabelsIndex) -> &Labels {
        &self.labels[index.0 as usize]
    }

    /// All labels, by their indices.
    pub fn all_labels(&self) -> impl ExactSizeIterator<Item = &Labels> {
        self.labels.iter()
    }

    /// The waker at an index of this profile.
    pub fn waker_at(&self, index: WakerIndex) -> &Waker {
        &self.wakers[index.0 as usize]
    }

    /// Says of all samples where they came from, in place of what was said before.
    pub fn set_source(&mut self, source: &str) {
        self.change_labels(|labels| Labels {
            source: Some(source.to_owned()),
            ..labels
        });
    }

    /// Says of all samples of which container, pod, unit or cgroup they are, in place of where they came from.
    pub fn root_per(&mut self, part: CgroupPart) {
        self.change_labels(|labels| Labels {
            source: Some(part.of(labels.cgroup.as_deref())),
            ..labels
        });
    }

    /// Has for all samples what `change` makes of their labels. Labels that become equal are one.
    pub fn change_labels(&mut self, change: impl FnMut(Labels) -> Labels) {
        let labels = std::mem::take(&mut self.labels);
        let numbers: Vec<_> = (labels.into_iter().map(change))
            .map(|labels| LabelsIndex(number(&mut self.labels, labels)))
            .collect();
        let samples = self.samples.iter_mut().map(|sample| &mut sample.labels);
        let wakers = self.wakers.iter_mut().map(|waker| &mut waker.labels);
        for labels in samples.chain(wakers) {
            *labels = numbers[labels.0 as usize];
        }
    }

    /// The sum of all weights.
    pub fn total_weight(&self) -> u64 {
        let weights = self.samples.iter().map(|sample| sample.weight);
        weights.fold(0, u64::saturating_add)
    }

    /// The sum of all counts.
    pub fn total_count(&self) -> u64 {
        let counts = self.samples.iter().map(|sample| sample.count);
        counts.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
impl Profile {
    /// A sample of a thread without a name, whose user stack is one address on a line of this function.
    pub(crate) fn push_line(
        &mut self,
        mapping: Option<MappingIndex>,
        address: u64,
        (function, line): (Function, u32),
        end: profiler_common::abi::StackEnd,
    ) {
        let labels = self.labels(Labels::default());
        let function = self.function(function);
        let lines = self.lines([Line { function, line }]);
        let location = self.location(Location::new(mapping, address, FrameKind::User, lines));
        let user = Some(self.stack(&NormalizedStack {
            locations: [location].into(),
            end,
            fallbacks: profiler_common::abi::Fallbacks::NONE,
        }));
        self.push(Sample {
            labels,
            user,
            weight: 1,
            count: 1,
            ..Sample::default()
        });
    }
}

/// Some lines of a [`Profile`], one behind the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Lines(u32, u32);
