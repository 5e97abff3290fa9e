//! The symbolized profile: the model that every output reads.
//!
//! In: frames and samples from [`crate::symbolize`], or folded text read back by [`fold`].
//! Out: borrowed views for [`crate::output`].
//! Never: files, the kernel, or the network. This module depends on nothing else of ours, so each
//! output can be tested with a profile written by hand.

pub mod fold;
pub mod merge;
pub mod normalized;
pub mod raw;
mod raw_frame;
pub mod waits;
pub mod wall;

use std::collections::HashMap;
use std::time::Duration;

/// What a weight counts.
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

/// What one level of a stack is. Decides annotations, colours, and where the delimiter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FrameKind {
    /// The process's `comm`, at the root.
    Process,
    /// A label that the user asked for with `--per-thread` or `--per-cpu`, beside the process.
    Label,
    /// A function of the program or its libraries.
    User,
    /// A function that a runtime compiled while the program ran.
    Jit,
    /// A function that was compiled into the one below it, and has no frame of its own in memory.
    Inlined,
    /// A function of the kernel.
    Kernel,
    /// A synthetic frame that says what the walk could not, such as `[truncated]`.
    Mark,
}

/// One symbolized level of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Frame {
    /// The function's demangled name, or `[module+0xoffset]`. Any characters at all: it is the
    /// output's business to escape what its format cannot hold.
    pub name: String,
    /// What this level is.
    pub kind: FrameKind,
}

impl FrameKind {
    /// Whether this is code of the program's side, however it was made.
    pub fn is_user(self) -> bool {
        matches!(self, Self::User | Self::Jit | Self::Inlined)
    }
}

impl Frame {
    /// The label of one thread, for `--per-thread`. [`fold::parse`] knows it by its shape.
    pub fn thread(tid: u32) -> Self {
        Self {
            name: format!("[tid {tid}]"),
            kind: FrameKind::Label,
        }
    }

    /// The label of one CPU, for `--per-cpu`. [`fold::parse`] knows it by its shape.
    pub fn cpu(cpu: u32) -> Self {
        Self {
            name: format!("[cpu {cpu}]"),
            kind: FrameKind::Label,
        }
    }
}

/// A frame's place in its profile's table; meaningless in any other profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(u32);

/// One distinct stack with all that was counted for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// From root to leaf: labels and process, then user frames, then kernel frames.
    pub stack: Box<[FrameId]>,
    /// How much was counted, in the profile's [`Unit`].
    pub weight: u64,
    /// How many firings were counted.
    pub count: u64,
}

/// The span of time that a profile covers, measured from the start of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// When the first sample could have been taken.
    pub start: Duration,
    /// When the last sample could have been taken.
    pub end: Duration,
}

/// Samples of one window with the frames that they share.
#[derive(Clone, Debug)]
pub struct Profile {
    /// What the weights count.
    pub unit: Unit,
    /// When the samples were taken.
    pub window: Window,
    frames: Vec<Frame>,
    ids: HashMap<Frame, FrameId>,
    samples: Vec<Sample>,
}

impl Profile {
    /// A profile without samples.
    pub fn new(unit: Unit, window: Window) -> Self {
        Self {
            unit,
            window,
            frames: Vec::new(),
            ids: HashMap::new(),
            samples: Vec::new(),
        }
    }

    /// The ID of `frame`, which is added to the table when it is not there yet.
    pub fn intern(&mut self, frame: Frame) -> FrameId {
        if let Some(&id) = self.ids.get(&frame) {
            return id;
        }
        let id = FrameId(
            u32::try_from(self.frames.len())
                .expect("a profile has fewer than 2^32 distinct frames"),
        );
        self.frames.push(frame.clone());
        self.ids.insert(frame, id);
        id
    }

    /// The frame behind an ID of this profile.
    pub fn frame(&self, id: FrameId) -> &Frame {
        &self.frames[id.0 as usize]
    }

    /// All distinct frames.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Adds a sample whose frames were interned in this profile.
    pub fn push(&mut self, sample: Sample) {
        debug_assert!(
            sample
                .stack
                .iter()
                .all(|id| (id.0 as usize) < self.frames.len())
        );
        self.samples.push(sample);
    }

    /// All samples, in the order in which they were pushed; the same stack may occur repeatedly.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The sum of all weights.
    pub fn total_weight(&self) -> u64 {
        self.samples.iter().map(|sample| sample.weight).sum()
    }

    /// The sum of all counts.
    pub fn total_count(&self) -> u64 {
        self.samples.iter().map(|sample| sample.count).sum()
    }
}
