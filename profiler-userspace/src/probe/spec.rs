//! A probe's row.

use super::View;
use crate::profile::Unit;
use profiler_common::abi::{CallWeight, ProgramId};

/// Properties of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeSpec {
    /// Its programs, in the order in which they are attached.
    pub programs: Vec<Attachment>,
    /// How many of the kernel half's events it is: one, or one of samples and one of what lasts.
    pub events: usize,
    /// Weight of firings that begin with one run of a program and end with another, and the event
    /// that counts them; none if all are over at once.
    pub timed: Option<Timed>,
    /// Whether the kernel half keeps something of each thread from one firing to the next.
    pub keeps_threads: bool,
    /// Whether a frame at the leaf says what was sampled, which is no place in the kernel alone.
    pub names_leaf: bool,
    /// Beginning of the title; none where the event decides.
    pub subject: Option<String>,
    /// Name of one firing in sentences.
    pub noun: &'static str,
    /// Unit of the weights; none where the event decides.
    pub unit: Option<Unit>,
    /// How its graphs look unless the user says otherwise.
    pub view: View,
}

/// A program, and what it is attached to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// The program, of the first event if each event has its own.
    pub program: ProgramId,
    /// Point that it is attached to.
    pub at: AttachPoint,
    /// Whether a firing begins with a run of it.
    pub begins: bool,
    /// Which of the probe's events it is for.
    pub event: usize,
}

/// Attach point of a BPF program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttachPoint {
    /// The plan's event, on each CPU.
    PerfEvent,
    /// Each occurrence of an event of the kernel's own, on each CPU.
    Occurrence(Occurrence),
    /// The tracepoint of this name.
    Tracepoint(String),
    /// The functions that the recording found.
    Functions,
}

/// An event that the kernel itself counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Its name in messages.
    pub name: &'static str,
    /// Its number (`include/uapi/linux/perf_event.h`, `enum perf_sw_ids`).
    pub number: u64,
}

/// Firings that begin with one run of a program and end with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Their weight.
    pub weight: CallWeight,
    /// Which of the probe's events counts them.
    pub event: usize,
}

impl ProbeSpec {
    /// Which of the probe's events counts the firings that its profile is of.
    pub fn counting_event(&self) -> usize {
        self.timed.map_or(0, |timed| timed.event)
    }

    /// The row of a probe whose firings are over at once, are called `noun`, and count as that.
    pub(super) fn new(noun: &'static str, programs: Vec<Attachment>) -> Self {
        Self {
            programs,
            events: 1,
            timed: None,
            keeps_threads: false,
            names_leaf: false,
            subject: None,
            noun,
            unit: Some(Unit::Events(format!("{noun}s"))),
            view: View::RUNNING,
        }
    }

    /// The same, with firings that last and weigh this.
    pub(super) fn timed(self, weight: CallWeight) -> Self {
        Self {
            timed: Some(Timed { weight, event: 0 }),
            keeps_threads: true,
            unit: Some(match weight {
                CallWeight::Time => Unit::Nanoseconds,
                CallWeight::Bytes => Unit::Events("bytes".to_owned()),
                CallWeight::One => Unit::Events(format!("{}s", self.noun)),
            }),
            ..self
        }
    }

    /// The same, under this title.
    pub(super) fn titled(self, subject: impl Into<String>) -> Self {
        Self {
            subject: Some(subject.into()),
            ..self
        }
    }
}

impl Attachment {
    /// A program with whose runs firings begin.
    pub(super) const fn begins(program: ProgramId, at: AttachPoint) -> Self {
        Self {
            program,
            at,
            begins: true,
            event: 0,
        }
    }

    /// A program that has to do with firings that begin with another.
    pub(super) const fn follows(program: ProgramId, at: AttachPoint) -> Self {
        Self {
            program,
            at,
            begins: false,
            event: 0,
        }
    }
}

impl AttachPoint {
    /// The tracepoint of this name.
    pub(super) fn tracepoint(name: &str) -> Self {
        Self::Tracepoint(name.to_owned())
    }
}
