//! What the kernel half is asked for, and which programs that takes. Pure.

use crate::probe::{Hook, Probe, SWITCH, Waits, Wakers};
use profiler_common::abi::{CallWeight, Switches, TargetKind};

/// What to sample, and what of it to keep.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is wanted of each sample. What the kernel supports is added at load.
    pub switches: Switches,
    /// Which tasks.
    pub target: TargetKind,
    /// The targets' IDs, as seen in our PID namespace; empty for [`TargetKind::All`].
    pub ids: Vec<u32>,
    /// What the maps may take, in bytes; unwind tables not counted.
    pub map_memory: u64,
    /// What unwind tables may take beside, in bytes.
    pub unwind_memory: u64,
    /// What triggers samples.
    pub probe: Probe,
    /// Waits that are recorded at the same time, beside what the probe samples.
    pub beside: Option<Waits>,
}

impl Request {
    /// The waits that are wanted, if it is waits that are recorded.
    pub(super) fn waits(&self) -> Option<&Waits> {
        self.probe.waits().or(self.beside.as_ref())
    }

    /// What firings weigh that begin and end; none if they do not.
    pub(super) fn timed_weight(&self) -> Option<CallWeight> {
        let beside = self.beside.as_ref().map(|_| CallWeight::Time);
        self.probe.timed_weight().or(beside)
    }

    /// Whether the kernel half keeps something of each thread from one firing to the next.
    pub(super) fn keeps_threads(&self) -> bool {
        self.probe.keeps_threads() || self.beside.is_some()
    }

    /// Whether all of the threads' time is accounted for.
    pub(super) fn is_wall(&self) -> bool {
        matches!(self.probe, Probe::Wall(_))
    }

    /// Whether it is wanted who ended waits.
    pub(super) fn has_wakers(&self) -> bool {
        let waits = self.waits();
        waits.is_some_and(|waits| waits.wakers != Wakers::None)
    }

    /// Whether switches are looked at by a second probe.
    pub(super) fn has_beside(&self) -> bool {
        self.beside.is_some() || self.is_wall()
    }

    /// The probes that run: one, or two.
    pub(super) fn probes(&self) -> u32 {
        1 + u32::from(self.has_beside())
    }

    /// The programs of the probes, and what they are attached to, in this order.
    pub(super) fn programs(&self) -> Vec<(&'static str, Hook)> {
        let switches = || ("off_cpu", Hook::Tracepoint(SWITCH.to_owned()));
        let beside = self.beside.is_some().then(switches);
        beside.into_iter().chain(self.probe.programs()).collect()
    }
}
