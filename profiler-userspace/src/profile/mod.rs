//! Profiles, from what a drain brings up to what outputs read.
//!
//! In: addresses from [`crate::kernel`] ([`raw`]), locations from [`crate::symbolize`] ([`normalized`]), symbols
//! ([`Profile`]). Out: the model that every output reads, and [`View`], which says how it reads as text.
//! Never: files, the kernel, or the network. This module depends on nothing else of ours, so each
//! output can be tested with a profile written by hand.

mod call_tree;
pub mod cgroup;
mod code_places;
pub mod fold;
mod frame;
mod frames;
pub mod interpreters;
pub(crate) mod joining;
pub mod marks;
mod merge;
mod model;
mod narrow;
pub mod normalized;
mod numbers;
pub mod off_cpu;
mod off_cpu_view;
pub(crate) mod outline;
pub(crate) mod paths;
pub(crate) mod preorder;
pub mod process_context;
pub mod raw;
mod raw_frame;
pub mod select;
mod stack_table;
mod stacks;
mod view;
mod wait_reason;
pub mod wall;
mod widen;
mod windows;
pub(crate) mod x86_64;

pub use call_tree::{CallTree, Node, TreeSample};
pub use code_places::{Code, CodePlace, CodePlaces, FrameId};
pub use frame::{Frame, FrameKind, FrameRef, interpreted_module};
pub(crate) use frame::{is_mark, kernel_part};
pub use frames::{AsFrame, FrameProfile, SourceFrame};
pub use merge::{MergeError, Merging};
pub use model::{
    Function, FunctionIndex, LabelFrames, Labels, LabelsIndex, Line, Lines, Location, Mapping,
    MappingIndex, Profile, Sample, Waker,
};
pub use narrow::Narrowed;
pub use off_cpu_view::{OffCpuView, Wakers};
pub use paths::NodeIndex;
pub use stack_table::StackRef;
pub use stacks::with_line;
pub use view::View;
pub use wait_reason::WaitReason;

pub use windows::{MAX_WINDOWS, WindowIndex, WindowTotals};
pub(crate) use x86_64 as arch;

use foldhash::fast::RandomState;
use std::hash::Hash;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Values in the order in which they came. Hashing what `std` does took a sixth of the time that flame-bpf spends
/// on a storm of processes.
pub type IndexSet<T> = indexmap::IndexSet<T, RandomState>;

/// The number of a value in a set, to which it is added when it is not there yet.
fn number<T: Hash + Eq>(set: &mut IndexSet<T>, value: T) -> u32 {
    let (index, _) = set.insert_full(value);
    u32::try_from(index).expect("a profile has fewer than 2^32 distinct parts")
}

/// Unit of a weight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Firings of a fixed-period event: each sample weighs one.
    Samples,
    /// Occurrences of a named event, such as `cycles`, where each sample weighs its period.
    Events(String),
    /// Time, kept in nanoseconds and shown in microseconds.
    Nanoseconds,
}

impl Unit {
    /// The plural noun that a reader sees behind a weight.
    pub fn noun(&self) -> &str {
        match self {
            Self::Samples => "samples",
            Self::Events(name) => name,
            Self::Nanoseconds => "µs",
        }
    }

    /// Unit that weights are kept in.
    pub fn name(&self) -> &str {
        match self {
            Self::Samples => "samples",
            Self::Events(name) => name,
            Self::Nanoseconds => "nanoseconds",
        }
    }

    /// A weight as a reader sees it, in the unit that [`Self::noun`] names. What was sampled at all is
    /// never nothing.
    pub fn shown(&self, weight: u64) -> u64 {
        match self {
            Self::Samples | Self::Events(_) => weight,
            Self::Nanoseconds => weight.saturating_add(500) / 1000,
        }
        .max(u64::from(weight > 0))
    }

    /// The weight that a reader sees as `shown`; none if it is too large to be one.
    pub fn read(&self, shown: u64) -> Option<u64> {
        match self {
            Self::Samples | Self::Events(_) => Some(shown),
            Self::Nanoseconds => shown.checked_mul(1000),
        }
    }
}

/// State of the threads whose stacks a profile holds. Decides the colours that a graph has unless told otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// They ran.
    #[default]
    Running,
    /// They waited.
    Waiting,
    /// They did either, and all of their time is accounted for.
    Both,
}

impl Activity {
    /// One word, as outputs have it.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Both => "both",
        }
    }
}

/// A machine that samples were taken on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its name.
    pub host: String,
    /// The release of its kernel.
    pub kernel: String,
    /// The build ID of its kernel; empty if that is not known.
    pub kernel_build_id: Box<[u8]>,
}

/// Where a profile comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// When its first sample could have been taken; none if that is not known.
    pub started: Option<SystemTime>,
    /// How much time of a CPU a sample stands for, in nanoseconds; none if it does not stand for time.
    pub period_ns: Option<u64>,
    /// State of the threads.
    pub activity: Activity,
    /// The event that was sampled; none if that is not known, or several were.
    pub event: Option<Arc<str>>,
    /// The machine; none if that is not known, or there were several.
    pub machine: Option<Arc<Machine>>,
}

impl Origin {
    /// When it started, as time since 1970.
    pub fn since_1970(&self) -> Option<Duration> {
        self.started?.duration_since(SystemTime::UNIX_EPOCH).ok()
    }
}

/// The span of time that a profile covers, measured from the start of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// When the first sample could have been taken.
    pub start: Duration,
    /// When the last sample could have been taken.
    pub end: Duration,
}

impl Window {
    /// From the start of the recording to then.
    pub const fn until(end: Duration) -> Self {
        Self {
            start: Duration::ZERO,
            end,
        }
    }

    /// How long it is.
    pub const fn length(&self) -> Duration {
        self.end.saturating_sub(self.start)
    }
}
