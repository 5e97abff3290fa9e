//! The plan: what one recording was asked to do, as plain data.
//!
//! In: built by [`crate::cli`] from the command line, or by hand in a test.
//! Out: read by `recording`, which does what it says; the facts that only a recording knows (which
//! event the machine offers, how long it really took) come back in through [`Plan::settled`],
//! [`Plan::default_title`] and [`Sampling::check`].
//! Never: parses, prints, reads a file, or asks the kernel anything.

mod title;

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::debuginfod::Servers;
use crate::output::{Format, Palette, Style};
use crate::probe::{Probe, Waits};
use crate::profile::Unit;
use crate::symbolize::Naming;
pub use title::TitleFacts;

/// What one recording was asked to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Whose stacks are sampled.
    pub target: Target,
    /// A command to run, program first; never empty. It is the target when that is
    /// [`Target::Launched`]; beside any other target it is the clock: recording ends when it does.
    pub launch: Option<Vec<OsString>>,
    /// The CPUs to sample on, sorted and distinct; none means every CPU.
    pub cpus: Option<Vec<u32>>,
    /// What is recorded, of the same target in the same time; never empty. Waits beside others come last.
    pub tracks: Vec<Track>,
    /// When to stop at the latest; none means at Ctrl-C, or when the target or the command ends.
    pub duration: Option<Duration>,
    /// What is kept of each firing.
    pub capture: Capture,
    /// The title that was asked for; none means [`Plan::default_title`].
    pub title: Option<String>,
    /// How code is named.
    pub naming: Naming,
    /// Who is asked for debug files that are not here.
    pub servers: Servers,
    /// How the result looks, but for its title and notes, which only the recording can fill in, and its colours.
    pub style: Style,
    /// The palette that was asked for; none means the one that suits what is shown.
    pub colors: Option<Palette>,
    /// How much is said on stderr.
    pub verbosity: Verbosity,
    /// The most memory that may be used.
    pub memory: MemoryLimits,
}

/// One thing that is recorded, into a profile of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Track {
    /// What triggers samples.
    pub probe: Probe,
    /// What makes the probe fire, where that is an event.
    pub event: EventChoice,
    /// How often that is to be.
    pub sampling: Sampling,
    /// Where the profile goes; never empty, no place twice, and none of another track's.
    pub outputs: Vec<Output>,
}

impl Track {
    /// The event that makes the probe fire, as far as that is settled.
    pub fn event(&self) -> &Event {
        static EVERYWHERE: Event = Event::CPU_CLOCK;
        match &self.event {
            EventChoice::Auto => &EVERYWHERE,
            EventChoice::Named(event) => event,
        }
    }

    /// What sentences call it that tell of several tracks.
    pub fn name(&self) -> String {
        let subject = self.probe.subject();
        subject.unwrap_or_else(|| self.event().name.to_string())
    }

    /// Whether samples weigh the period behind them: those of an event that counts something, whose period the kernel
    /// may vary. A clock's period is fixed, so its samples are simply counted.
    pub fn is_weighed(&self) -> bool {
        self.probe.is_on_event() && !self.event().is_clock()
    }

    /// What weights count.
    pub fn unit(&self) -> Unit {
        self.probe.unit().unwrap_or_else(|| {
            if self.is_weighed() {
                Unit::Events(self.event().name.to_string())
            } else {
                Unit::Samples
            }
        })
    }
}

impl Plan {
    /// The waits that are wanted, if it is waits that are recorded, alone or beside samples.
    pub fn waits(&self) -> Option<&Waits> {
        self.tracks.iter().find_map(|track| track.probe.waits())
    }

    /// All outputs, of one track after the other.
    pub fn all_outputs(&self) -> impl Iterator<Item = &Output> {
        self.tracks.iter().flat_map(|track| &track.outputs)
    }

    /// Whether one of the tracks has such a probe.
    pub fn has(&self, is_such: impl Fn(&Probe) -> bool) -> bool {
        self.tracks.iter().any(|track| is_such(&track.probe))
    }

    /// Whether the recording is about one track, and not about several that are alike: waits beside it do not count.
    pub fn has_one_subject(&self) -> bool {
        let others = self.tracks.iter().skip(1);
        others
            .into_iter()
            .all(|track| track.probe.waits().is_some())
    }

    /// The same plan where `event` is what the machine has for those tracks that left it open.
    #[must_use]
    pub fn settled(&self, event: &Event) -> Self {
        let mut plan = self.clone();
        for track in &mut plan.tracks {
            if track.event == EventChoice::Auto {
                track.event = EventChoice::Named(event.clone());
            }
        }
        plan
    }
}

/// The most memory that may be used in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimits {
    /// For counting: all BPF maps but unwind tables, in bytes.
    pub map_bytes: u64,
    /// For unwind tables, in bytes. Taken only as they are loaded.
    pub unwind_bytes: u64,
}

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            map_bytes: 32 << 20,
            unwind_bytes: 256 << 20,
        }
    }
}

/// Whose stacks are sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Every process on the machine.
    All,
    /// Processes by PID, as seen in our PID namespace: distinct, in the order given, never empty.
    Processes(Vec<u32>),
    /// Threads by TID: distinct, in the order given, never empty.
    Threads(Vec<u32>),
    /// The command in [`Plan::launch`] with all its descendants.
    Launched,
}

/// Which event makes the probe fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventChoice {
    /// [`Event::CYCLES`] where the machine has a performance counter for them, else
    /// [`Event::CPU_CLOCK`].
    Auto,
    /// This one and no other.
    Named(Event),
}

/// An event that `perf_event_open` can count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The name that outputs show, such as `cpu-clock`: the canonical one, whatever alias was typed.
    pub name: Cow<'static, str>,
    /// The family, which decides what `config` means.
    pub kind: EventKind,
    /// `perf_event_attr.config`.
    pub config: u64,
}

/// The families of events: the values of `perf_event_attr.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum EventKind {
    /// Counted by the processor, under a name that the kernel translates.
    Hardware = 0,
    /// Counted by the kernel.
    Software = 1,
    /// Counted by the processor: what a cache did.
    HardwareCache = 3,
    /// Counted by the processor, under the number in its manual.
    Raw = 4,
}

impl Event {
    /// Processor cycles: the default where there is a performance counter.
    pub const CYCLES: Self = Self::new("cycles", EventKind::Hardware, 0);
    /// A timer on each CPU: the default elsewhere.
    pub const CPU_CLOCK: Self = Self::new("cpu-clock", EventKind::Software, 0);
    /// A timer that runs while the sampled task does.
    pub const TASK_CLOCK: Self = Self::new("task-clock", EventKind::Software, 1);

    /// An event under its canonical name.
    pub const fn new(name: &'static str, kind: EventKind, config: u64) -> Self {
        Self {
            name: Cow::Borrowed(name),
            kind,
            config,
        }
    }

    fn is(&self, other: &Self) -> bool {
        (self.kind, self.config) == (other.kind, other.config)
    }

    /// Whether this is a timer, whose period is in nanoseconds.
    pub fn is_clock(&self) -> bool {
        self.is(&Self::CPU_CLOCK) || self.is(&Self::TASK_CLOCK)
    }

    /// Whether this is a fault, or a kind of them: `PERF_COUNT_SW_PAGE_FAULTS`, `…_MIN`, `…_MAJ`, `…_ALIGNMENT_FAULTS`
    /// and `…_EMULATION_FAULTS` of `include/uapi/linux/perf_event.h`.
    pub fn is_fault(&self) -> bool {
        self.kind == EventKind::Software && matches!(self.config, 2 | 5 | 6 | 7 | 8)
    }

    /// Whether a graph of this event shows where CPU time went.
    pub fn is_cpu_time(&self) -> bool {
        self.is_clock() || self.is(&Self::CYCLES)
    }

    /// How often to sample this event unless told otherwise: [`DEFAULT_HZ`], except for what the
    /// kernel counts one by one (page faults, context switches): there every occurrence is kept,
    /// since they are few enough, and a rate would have to guess at how many each sample stands for.
    pub fn default_sampling(&self) -> Sampling {
        if self.kind == EventKind::Software && !self.is_clock() {
            Sampling::Period(1)
        } else {
            Sampling::Frequency(DEFAULT_HZ)
        }
    }
}

/// Samples a second and CPU unless told otherwise. Not 100, so as not to march in step with
/// programs that do something every 10 ms.
pub const DEFAULT_HZ: u64 = 99;

/// The kernel fires its timer events this often at most, and silently stretches shorter periods
/// (`perf_swevent_start_hrtimer` in `kernel/events/core.c`), which would falsify weights.
const SHORTEST_CLOCK_PERIOD_NS: u64 = 10_000;

/// How often the probe fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// About this many times a second on each CPU; more than 0. The kernel adjusts the period.
    Frequency(u64),
    /// Once every so many occurrences (nanoseconds for a clock); more than 0.
    Period(u64),
}

impl Sampling {
    /// Whether the kernel would really sample `event` this often, where it allows `limit_hz`
    /// (the number in `/proc/sys/kernel/perf_event_max_sample_rate`).
    ///
    /// # Errors
    /// A rate above the kernel's limit, and a timer faster than the kernel's timers go.
    pub fn check(self, event: &Event, limit_hz: u64) -> Result<(), SamplingError> {
        let clock_hz = 1_000_000_000 / SHORTEST_CLOCK_PERIOD_NS;
        match self {
            Self::Frequency(asked_hz) if asked_hz > limit_hz => {
                Err(SamplingError::AboveLimit { asked_hz, limit_hz })
            }
            Self::Frequency(asked_hz) if event.is_clock() && asked_hz > clock_hz => {
                Err(SamplingError::ClockRate {
                    event: event.name.clone(),
                    asked_hz,
                    clock_hz,
                })
            }
            Self::Period(asked_ns) if event.is_clock() && asked_ns < SHORTEST_CLOCK_PERIOD_NS => {
                Err(SamplingError::ClockPeriod {
                    event: event.name.clone(),
                    asked_ns,
                })
            }
            Self::Frequency(_) | Self::Period(_) => Ok(()),
        }
    }
}

/// Why an event cannot be sampled as often as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SamplingError {
    /// The kernel refuses such a rate.
    #[error(
        "{asked_hz} Hz is above the {limit_hz} Hz that this kernel allows; ask for -F {limit_hz} or \
         less, or raise the limit: sysctl kernel.perf_event_max_sample_rate={asked_hz}"
    )]
    AboveLimit {
        /// The rate asked for.
        asked_hz: u64,
        /// The kernel's limit.
        limit_hz: u64,
    },
    /// The kernel would accept the rate and not keep it.
    #[error(
        "{asked_hz} Hz is more than {event} can do: the kernel's timer events fire at most \
         {clock_hz} times a second; ask for -F {clock_hz} or less"
    )]
    ClockRate {
        /// The clock's name.
        event: Cow<'static, str>,
        /// The rate asked for.
        asked_hz: u64,
        /// The rate that can be had.
        clock_hz: u64,
    },
    /// The kernel would accept the period and not keep it.
    #[error(
        "a period of {asked_ns} is too short for {event}, whose periods are nanoseconds: the kernel's \
         timer events fire at most every {SHORTEST_CLOCK_PERIOD_NS}; ask for \
         -c {SHORTEST_CLOCK_PERIOD_NS} or more"
    )]
    ClockPeriod {
        /// The clock's name.
        event: Cow<'static, str>,
        /// The period asked for.
        asked_ns: u64,
    },
}

/// What is kept of each firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Walk user stacks.
    pub user_stacks: bool,
    /// How user stacks are walked.
    pub call_graph: CallGraph,
    /// Walk kernel stacks. Never false together with `user_stacks`.
    pub kernel_stacks: bool,
    /// Keep firings that found the CPU idle.
    pub include_idle: bool,
    /// Tell threads apart.
    pub per_thread: bool,
    /// Tell CPUs apart.
    pub per_cpu: bool,
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
    /// Folded text on stdout, with nothing else there.
    Stdout,
    /// A file.
    File {
        /// Where, as the user wrote it.
        path: PathBuf,
        /// What is written there.
        format: Format,
    },
    /// A raw recording, to be named and drawn later.
    Archive {
        /// Where, as the user wrote it.
        path: PathBuf,
    },
}

impl Output {
    /// In which format a profile with names is written there; none where it is a raw recording.
    pub fn format(&self) -> Option<Format> {
        match self {
            Self::Stdout => Some(Format::Folded),
            Self::File { format, .. } => Some(*format),
            Self::Archive { .. } => None,
        }
    }

    /// What sentences call it.
    pub fn name(&self) -> String {
        match self {
            Self::Stdout => "standard output".to_owned(),
            Self::File { path, .. } | Self::Archive { path } => path.display().to_string(),
        }
    }
}

/// What is to be made of a raw recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Rendering {
    /// The raw recording; `-` is stdin.
    pub file: PathBuf,
    /// Where the result goes; never empty, no place twice, and none of them a raw recording.
    pub outputs: Vec<Output>,
    /// The title that was asked for; none means that of the recording.
    pub title: Option<String>,
    /// How code is named.
    pub naming: Naming,
    /// Who is asked for debug files that are not here.
    pub servers: Servers,
    /// How the result looks, but for its title, notes and colours.
    pub style: Style,
    /// The colours that were asked for; none means those that suit what was recorded.
    pub colors: Option<Palette>,
    /// How much is said on stderr.
    pub verbosity: Verbosity,
}

/// How much is said on stderr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verbosity {
    /// Say nothing but warnings and errors.
    pub quiet: bool,
    /// How many times more was asked for. Never more than 0 together with `quiet`.
    pub verbose: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_above_the_kernels_limit_names_the_command_that_raises_it() {
        let sampling = Sampling::Frequency(5000);
        assert_eq!(sampling.check(&Event::CYCLES, 5000), Ok(()));
        let refusal = sampling
            .check(&Event::CYCLES, 4999)
            .unwrap_err()
            .to_string();
        assert!(
            refusal.contains("sysctl kernel.perf_event_max_sample_rate=5000"),
            "{refusal}"
        );
        assert!(refusal.contains("4999 Hz"), "{refusal}");
    }

    #[test]
    fn a_clock_is_refused_what_the_kernel_would_silently_stretch() {
        let unlimited = u64::MAX;
        for (sampling, accepted) in [
            (Sampling::Frequency(100_000), true),
            (Sampling::Frequency(100_001), false),
            (Sampling::Period(10_000), true),
            (Sampling::Period(9_999), false),
        ] {
            assert_eq!(
                sampling.check(&Event::CPU_CLOCK, unlimited).is_ok(),
                accepted,
                "{sampling:?}"
            );
            assert_eq!(
                sampling.check(&Event::CYCLES, unlimited),
                Ok(()),
                "{sampling:?}"
            );
        }
    }

    #[test]
    fn what_the_kernel_counts_one_by_one_is_kept_one_by_one() {
        let page_faults = Event::new("page-faults", EventKind::Software, 2);
        assert_eq!(page_faults.default_sampling(), Sampling::Period(1));
        for timed in [Event::CYCLES, Event::CPU_CLOCK, Event::TASK_CLOCK] {
            assert_eq!(timed.default_sampling(), Sampling::Frequency(99));
        }
    }
}
