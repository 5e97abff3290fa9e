//! The plan: what one recording was asked to do, as plain data.
//!
//! In: built by [`crate::cli`] from the command line, or by hand in a test.
//! Out: read by `session`, which does what it says; the facts that only a recording knows (which
//! event the machine offers, how long it really took) come back in through [`Plan::settled`],
//! [`Plan::default_title`] and [`Sampling::check`].
//! Never: parses, prints, reads a file, or asks the kernel anything.

mod diffing;
mod doctoring;
mod perf_event;
mod service;
mod title;

use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::clock::Moment;
use crate::debuginfod::Servers;
use crate::output::{Format, Palette, Style};
use crate::probe::{Probe, Waits};
use crate::profile::cgroup::{CgroupPart, CgroupPattern};
use crate::profile::select::{Pattern, Selection};
use crate::profile::{LabelFrames, Unit};
use crate::symbolize::Naming;
pub use diffing::{DiffOutput, Diffing};
pub use doctoring::Doctoring;
pub use perf_event::{
    DEFAULT_HZ, MAX_RATE, PerfEvent, PerfEventChoice, PerfEventKind, Sampling, SamplingError,
};
pub use service::Service;
pub use title::TitleFacts;

/// One recording, as it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Processes or threads whose stacks are sampled.
    pub target: Target,
    /// Whether children of the target's processes are sampled with them.
    pub children: Children,
    /// A command to run, program first; never empty. It is the target when that is
    /// [`Target::Launched`]; beside any other target it is the clock: recording ends when it does.
    pub launch: Option<Vec<OsString>>,
    /// The user that the command runs as; none for our own.
    pub run_as: Option<CommandUser>,
    /// The CPUs to sample on, sorted and distinct; none means every CPU.
    pub cpus: Option<Vec<u32>>,
    /// Events, all of the same target in the same time; never empty. Waits beside others come last.
    pub events: Vec<Event>,
    /// When to stop at the latest; none means at Ctrl-C, or when the target or the command ends.
    pub duration: Option<Duration>,
    /// How long each window of the raw recordings is that are the one output of each event; none where they have no
    /// windows.
    pub window: Option<Duration>,
    /// Whether it is shown on the terminal while it goes on. Then events have no outputs.
    pub live: bool,
    /// Where windows are sent to; none where nothing is sent. Then events have no outputs.
    pub service: Option<Service>,
    /// How long the windows are that outputs tell of; none for what is usual.
    pub resolution: Option<Duration>,
    /// Whether the first picture is opened in a browser.
    pub opens: bool,
    /// Stacks and labels to keep of each firing.
    pub capture: Capture,
    /// The title that was asked for; none means [`Plan::default_title`].
    pub title: Option<String>,
    /// The part of the profile that outputs show; raw recordings keep all of it.
    pub selection: Selection,
    /// How code is named.
    pub naming: Naming,
    /// Servers to ask for debug files that are not here.
    pub servers: Servers,
    /// How the result looks, but for its title, notes and source, which only the recording can fill in, and its colours.
    pub style: Style,
    /// Directories of source to show.
    pub source: Vec<PathBuf>,
    /// The palette that was asked for; none means the one that suits what is shown.
    pub colors: Option<Palette>,
    /// How much is said on stderr.
    pub verbosity: Verbosity,
    /// The most memory that may be used.
    pub memory: MemoryLimits,
    /// Limit on what the recording costs, in CPU seconds a second; none for what it takes.
    pub max_overhead: Option<f64>,
}

#[cfg(test)]
impl Plan {
    /// On-CPU samples of all stacks, without any output.
    pub(crate) fn usual(target: Target, sampling: Sampling) -> Self {
        Self {
            target,
            launch: None,
            cpus: None,
            events: vec![Event {
                probe: Probe::OnCpu,
                perf_event: PerfEventChoice::Auto,
                varies: false,
                sampling,
                outputs: Vec::new(),
            }],
            duration: None,
            window: None,
            live: false,
            service: None,
            resolution: None,
            opens: false,
            capture: Capture {
                user_stacks: true,
                call_graph: CallGraph::Auto,
                kernel_stacks: true,
                runtimes: true,
                guess: true,
                include_idle: false,
                include_self: false,
                per_thread: false,
                per_cpu: false,
                label_frames: LabelFrames {
                    threads: false,
                    cpus: false,
                },
                root_per: None,
            },
            title: None,
            selection: Selection::default(),
            naming: Naming::default(),
            servers: Servers::default(),
            style: Style::default(),
            source: Vec::new(),
            colors: None,
            children: Children::None,
            run_as: None,
            verbosity: Verbosity::default(),
            memory: MemoryLimits::default(),
            max_overhead: None,
        }
    }
}

/// One thing that is recorded, into a profile of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Trigger of samples.
    pub probe: Probe,
    /// The perf event on which the probe fires, where it fires on one.
    pub perf_event: PerfEventChoice,
    /// How often that is to be.
    pub sampling: Sampling,
    /// Whether that may change while the recording goes on.
    pub varies: bool,
    /// Where the profile goes; never empty unless it is only shown, no place twice, and none of another event's but a shared page or a file whose
    /// format takes several.
    pub outputs: Vec<Output>,
}

impl Event {
    /// The event that makes the probe fire, as far as that is settled.
    pub fn perf_event(&self) -> &PerfEvent {
        static EVERYWHERE: PerfEvent = PerfEvent::CPU_CLOCK;
        match &self.perf_event {
            PerfEventChoice::Auto => &EVERYWHERE,
            PerfEventChoice::Named(perf_event) => perf_event,
        }
    }

    /// Its name in sentences about several events.
    pub fn name(&self) -> String {
        let subject = self.probe.subject();
        subject.unwrap_or_else(|| self.perf_event().name.to_string())
    }

    /// Whether it may change while the recording goes on how many of its waits are looked at.
    pub fn has_varying_waits(&self) -> bool {
        self.varies && self.probe.waits().is_some()
    }

    /// Whether samples weigh the period behind them: those of an event that counts something, whose period the kernel
    /// may vary, and all whose rate we vary. Otherwise a clock's period is fixed, so its samples are simply counted.
    pub fn is_weighed(&self) -> bool {
        self.probe.is_on_event() && (self.varies || !self.perf_event().is_clock())
    }

    /// How much time of a CPU a sample stands for, in nanoseconds; none if it does not stand for time.
    pub fn period_ns(&self) -> Option<u64> {
        let is_time = self.unit() == Unit::Samples
            && self.probe.is_on_event()
            && self.perf_event().is_clock();
        match self.sampling {
            _ if !is_time => None,
            Sampling::Frequency(hz) => 1_000_000_000u64.checked_div(hz),
            Sampling::Period(ns) => Some(ns),
        }
    }

    /// Unit of the weights.
    pub fn unit(&self) -> Unit {
        self.probe.unit().unwrap_or_else(|| {
            if self.is_weighed() && self.perf_event().is_clock() {
                Unit::Nanoseconds
            } else if self.is_weighed() {
                Unit::Events(self.perf_event().name.to_string())
            } else {
                Unit::Samples
            }
        })
    }
}

impl Plan {
    /// Whether lines of code are shown, now or once a raw recording is drawn.
    pub fn keeps_lines(&self) -> bool {
        let mut outputs = self.events.iter().flat_map(|event| &event.outputs);
        self.naming.lines
            || self.live
            || outputs.any(|output| matches!(output, Output::RawRecording { .. }))
    }

    /// The waits that are wanted, if it is waits that are recorded, alone or beside samples.
    pub fn waits(&self) -> Option<&Waits> {
        self.events.iter().find_map(|event| event.probe.waits())
    }

    /// For each event the numbers that its probe's events have in the kernel half: one, or two where samples and what
    /// lasts are counted apart.
    pub fn kernel_events(&self) -> impl Iterator<Item = Range<usize>> {
        let mut next = 0;
        self.events.iter().map(move |event| {
            let first = next;
            next += event.probe.spec().events;
            first..next
        })
    }

    /// All outputs, of one event after the other.
    pub fn all_outputs(&self) -> impl Iterator<Item = &Output> {
        self.events.iter().flat_map(|event| &event.outputs)
    }

    /// Whether several events go to this output, as sample types of one file.
    pub fn is_shared(&self, output: &Output) -> bool {
        let has_it = |event: &&Event| event.outputs.contains(output);
        output.takes_several() && self.events.iter().filter(has_it).count() > 1
    }

    /// Whether an output tells of the windows that a recording is divided into, or is drawn in them. Where these are written as they end, each
    /// is a recording of its own.
    pub fn has_windows(&self) -> bool {
        let tells = self.style.chart || self.all_outputs().any(Output::has_windows);
        self.window.is_none() && tells
    }

    /// Whether one of the events has such a probe.
    pub fn has(&self, is_such: impl Fn(&Probe) -> bool) -> bool {
        self.events.iter().any(|event| is_such(&event.probe))
    }

    /// Whether the recording is about one event, and not about several that are alike: waits beside it do not count.
    pub fn has_one_subject(&self) -> bool {
        let mut others = self.events.iter().skip(1);
        others.all(|event| event.probe.waits().is_some())
    }

    /// The same plan where `event` is what the machine has for those events that left it open.
    #[must_use]
    pub fn settled(&self, perf_event: &PerfEvent) -> Self {
        let mut plan = self.clone();
        for event in &mut plan.events {
            if event.perf_event == PerfEventChoice::Auto {
                event.perf_event = PerfEventChoice::Named(perf_event.clone());
            }
        }
        plan
    }
}

/// The most memory that may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// For counting: all BPF maps but unwind tables, in bytes.
    pub map_bytes: u64,
    /// For unwind tables, in bytes. Taken only as they are loaded.
    pub unwind_bytes: u64,
    /// For these and this process together, in bytes; none for no limit.
    pub all_bytes: Option<u64>,
}

impl MemoryLimits {
    /// The least limit of all memory, in MiB.
    pub const MIN_MIB: u32 = 96;

    /// These, with no more for each than its part of so much for all: a quarter each for counting and for unwind tables.
    #[must_use]
    pub fn within(self, all_bytes: Option<u64>) -> Self {
        let part = all_bytes.map_or(u64::MAX, |bytes| bytes / 4);
        Self {
            map_bytes: self.map_bytes.min(part),
            unwind_bytes: self.unwind_bytes.min(part),
            all_bytes,
        }
    }
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            map_bytes: 32 << 20,
            unwind_bytes: 256 << 20,
            all_bytes: None,
        }
    }
}

/// Processes or threads whose stacks are sampled.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// Every process on the machine.
    All,
    /// Processes by PID, as seen in our PID namespace: distinct, in the order given, never empty.
    Processes(Vec<u32>),
    /// Processes that match when the recording begins.
    Matching(Matching),
    /// Processes in cgroups.
    Cgroups(CgroupTarget),
    /// Threads by TID: distinct, in the order given, never empty.
    Threads(Vec<u32>),
    /// The command in [`Plan::launch`] with all its descendants.
    Launched,
}

/// Cgroups, each with all below it, those that are made later too.
#[derive(Clone, Debug, PartialEq)]
pub struct CgroupTarget {
    /// Any that one of these meets; never empty.
    pub wanted: Vec<CgroupPattern>,
    /// The processes in there when the recording begins; empty before that is known.
    pub pids: Vec<u32>,
}

impl fmt::Display for CgroupTarget {
    /// As the end of a sentence about what is sampled: `unit nginx.service, container web`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let wanted: Vec<String> = self.wanted.iter().map(CgroupPattern::to_string).collect();
        out.write_str(&wanted.join(", "))
    }
}

/// Processes by name or by the file they run: any that one of these is true of.
#[derive(Clone, Debug, PartialEq)]
pub struct Matching {
    /// Patterns for the whole name, or the whole name of the file.
    pub names: Vec<Pattern>,
    /// Files.
    pub programs: Vec<PathBuf>,
}

impl Matching {
    /// Each pattern and each file by itself.
    pub(crate) fn each(&self) -> impl Iterator<Item = Self> {
        let names = self.names.iter().map(|name| Self {
            names: vec![name.clone()],
            programs: Vec::new(),
        });
        let programs = self.programs.iter().map(|program| Self {
            names: Vec::new(),
            programs: vec![program.clone()],
        });
        names.chain(programs)
    }
}

impl fmt::Display for Matching {
    /// As the end of a sentence about processes.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.names.iter().map(Pattern::name).collect();
        let programs = self.programs.iter();
        let programs: Vec<String> = programs.map(|path| path.display().to_string()).collect();
        let of = |verb: &str, all: &str| (!all.is_empty()).then(|| format!("{verb} {all}"));
        let named = of("is named", &names.join(" or "));
        let runs = of("runs", &programs.join(" or "));
        let all: Vec<String> = named.into_iter().chain(runs).collect();
        out.write_str(&all.join(" or "))
    }
}

/// The user that a command runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandUser {
    /// The user who called sudo.
    Caller,
    /// By name.
    Named(String),
}

impl CommandUser {
    /// The name, if one was said.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Caller => None,
            Self::Named(name) => Some(name),
        }
    }
}

/// Children of the processes that are sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Children {
    /// They are processes of their own.
    #[default]
    None,
    /// Those that begin while the recording goes on are sampled, too.
    ToCome,
    /// And those that run when it begins.
    All,
}

/// Stacks and labels to keep of each firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Walk user stacks.
    pub user_stacks: bool,
    /// How user stacks are walked.
    pub call_graph: CallGraph,
    /// Walk kernel stacks. Never false together with `user_stacks`.
    pub kernel_stacks: bool,
    /// Show the functions that interpreters run.
    pub runtimes: bool,
    /// In code without unwind instructions, look for callers in the words of the stack.
    pub guess: bool,
    /// Keep firings that found the CPU idle.
    pub include_idle: bool,
    /// Keep stacks of this very process; otherwise it is one frame.
    pub include_self: bool,
    /// Tell threads apart.
    pub per_thread: bool,
    /// Tell CPUs apart.
    pub per_cpu: bool,
    /// Which of these stacks begin with.
    pub label_frames: LabelFrames,
    /// The part of a process's cgroup that they begin with before that, if any.
    pub root_per: Option<CgroupPart>,
}

/// How user stacks are walked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallGraph {
    /// By unwind rows where an object has them, by frame pointers where it has not.
    #[default]
    Auto,
    /// By frame pointers alone.
    Fp,
    /// By unwind rows alone.
    Dwarf,
}

/// One place that the result goes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// This format on stdout, with nothing else there.
    Stdout(Format),
    /// A file.
    File {
        /// Where, as the user wrote it.
        path: PathBuf,
        /// Format of the file.
        format: Format,
    },
    /// A raw recording, to be named and drawn later.
    RawRecording {
        /// Where, as the user wrote it.
        path: PathBuf,
    },
    /// A page that holds the profiles of several events: all those that have this output.
    SharedPage {
        /// Where, as the user wrote it; the same for all of them.
        path: PathBuf,
    },
}

impl Output {
    /// In which format a profile with names is written there; none where it is a raw recording.
    pub fn format(&self) -> Option<Format> {
        match self {
            Self::Stdout(format) | Self::File { format, .. } => Some(*format),
            Self::SharedPage { .. } => Some(Format::HTML),
            Self::RawRecording { .. } => None,
        }
    }

    /// Whether what is written there tells of windows.
    pub fn has_windows(&self) -> bool {
        self.format().is_none_or(Format::has_windows)
    }

    /// Whether it tells of each window as it is in the recording.
    pub fn has_all_windows(&self) -> bool {
        self.format().is_some_and(Format::has_all_windows)
    }

    /// Whether several events can be written there.
    pub fn takes_several(&self) -> bool {
        self.format().is_some_and(Format::takes_several)
    }

    /// Whether a picture is written there.
    pub fn is_drawn(&self) -> bool {
        self.format().is_some_and(Format::is_drawn)
    }

    /// The file of a picture, if it is one.
    pub fn picture(&self) -> Option<&Path> {
        match self {
            Self::SharedPage { path } => Some(path),
            Self::File { path, .. } if self.is_drawn() => Some(path),
            _ => None,
        }
    }

    /// Its name in sentences.
    pub fn name(&self) -> String {
        match self {
            Self::Stdout(_) => "standard output".to_owned(),
            Self::File { path, .. } | Self::RawRecording { path } | Self::SharedPage { path } => {
                path.display().to_string()
            }
        }
    }
}

/// Root frame of the stacks, by which samples are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootPer {
    /// The name of the input.
    File,
    /// The host that a raw recording is of.
    Host,
    /// The container, unit, pod or cgroup that a process is in. One input has several.
    Part(CgroupPart),
}

/// Rendering of raw recordings and profiles of other tools.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendering {
    /// Raw recordings and profiles of other tools, which are shown together; never empty. `-` is stdin.
    pub files: Vec<PathBuf>,
    /// Which of the things that an input counts is shown; none for the usual one.
    pub sample_type: Option<String>,
    /// Whether inputs are told apart.
    pub root_per: Option<RootPer>,
    /// The part of the profile that is shown.
    pub selection: Selection,
    /// Where in the recording's time the first window lies that is wanted; none for its beginning.
    pub from: Option<Moment>,
    /// Before what time; none for its end.
    pub to: Option<Moment>,
    /// Where the result goes; never empty, no place twice, and none of them a raw recording.
    pub outputs: Vec<Output>,
    /// The title that was asked for; none means that of the recording.
    pub title: Option<String>,
    /// Whether the first picture is opened in a browser.
    pub opens: bool,
    /// How long windows are to be at least; none for as long as they were recorded.
    pub resolution: Option<Duration>,
    /// How code is named.
    pub naming: Naming,
    /// Servers to ask for debug files that are not here.
    pub servers: Servers,
    /// How the result looks, but for its title, notes, colours and source.
    pub style: Style,
    /// Directories of source to show.
    pub source: Vec<PathBuf>,
    /// The colours that were asked for; none means those that suit what was recorded.
    pub colors: Option<Palette>,
    /// How much is said on stderr.
    pub verbosity: Verbosity,
}

/// A function whose instructions are to be shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Annotating {
    /// The recording.
    pub recorded: Recorded,
    /// The function: its name, or a regular expression.
    pub function: String,
    /// From where in the recording's time on; none for its beginning.
    pub from: Option<Moment>,
    /// Before what time; none for its end.
    pub to: Option<Moment>,
    /// How code is named, and whether lines are shown.
    pub naming: Naming,
    /// Servers to ask for debug files that are not here.
    pub servers: Servers,
    /// Directories of source to show.
    pub source: Vec<PathBuf>,
    /// A jitdump, or its directory, for code of runtimes that have ended.
    pub jitdump: Option<PathBuf>,
}

/// A recording to annotate.
#[derive(Clone, Debug, PartialEq)]
pub enum Recorded {
    /// A raw recording.
    File(PathBuf),
    /// One to make now, of one event, as a raw recording that nobody keeps.
    Now(Box<Plan>),
}

/// How much is said on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verbosity {
    /// Say nothing but warnings and errors.
    pub quiet: bool,
    /// How many times more was asked for. Never more than 0 together with `quiet`.
    pub verbose: u8,
}
