//! The counters of all events, on both sides of the boundary.

use super::shared::Shared;
use super::{Result, grace};
use profiler_common::abi::{COUNTERS_WORDS, Counter, Counters};
use std::sync::atomic::Ordering::Relaxed;

/// Counters of the kernel half, and own counters for firings that it did not see begin or end.
pub(super) struct CounterMap {
    /// The map, in our memory for as long as we live: the CPUs of each event, one event after the other.
    shared: Shared,
    cpus: usize,
    /// Own counters of each event.
    own: Vec<Counters>,
    /// Counts of the time before the recording, of each event.
    before: Vec<Counters>,
    /// Firings that the kernel half recorded and that were left out here, of each event.
    left_out: Vec<u64>,
    /// And those of them of which nobody can say whether they were wanted.
    unknown: Vec<u64>,
    /// The event that counts firings which last longer than a run of a program.
    lasting: usize,
}

impl CounterMap {
    /// The counters of so many events.
    pub(super) fn new(shared: Shared, cpus: u32, events: usize, lasting: usize) -> Self {
        Self {
            shared,
            cpus: cpus as usize,
            own: vec![Counters::EMPTY; events],
            before: vec![Counters::EMPTY; events],
            left_out: vec![0; events],
            unknown: vec![0; events],
            lasting,
        }
    }

    /// How many events there are.
    pub(super) fn events(&self) -> usize {
        self.own.len()
    }

    /// Forgets what was counted until now. No program may run.
    pub(super) fn forget(&mut self) {
        self.before = (0..self.events()).map(|event| self.sum(event)).collect();
    }

    /// An event's counters of every CPU, added up.
    pub(super) fn of(&self, event: usize) -> Counters {
        self.sum(event).since(&self.before[event])
    }

    fn sum(&self, event: usize) -> Counters {
        let mut sum = self.own[event];
        let cpu_slots = self.shared.words().chunks_exact(COUNTERS_WORDS);
        for cpu in cpu_slots.skip(event * self.cpus).take(self.cpus) {
            for (sum, word) in sum.counters.iter_mut().zip(cpu) {
                *sum += word.load(Relaxed);
            }
        }
        let (left_out, unknown) = (self.left_out[event], self.unknown[event]);
        let all = &mut sum.counters;
        all[Counter::Recorded as usize] -= left_out + unknown;
        all[Counter::FilteredTarget as usize] += left_out;
        all[Counter::LostCgroup as usize] += unknown;
        sum
    }

    /// Counts firings as left out that were recorded: as those of no target, or as lost if nobody can say whose they were.
    pub(super) fn leave_out(&mut self, event: usize, count: u64, is_unknown: bool) {
        let sums = match is_unknown {
            true => &mut self.unknown,
            false => &mut self.left_out,
        };
        sums[event] += count;
    }

    /// The event that counts what lasts longer than a run of a program.
    pub(super) fn lasting(&self) -> usize {
        self.lasting
    }

    /// Counts here, for an event.
    pub(super) fn add(&mut self, event: usize, counter: Counter, amount: u64) {
        self.own[event].counters[counter as usize] += amount;
    }

    /// Counts here, for the event of firings that last.
    pub(super) fn add_lasting(&mut self, counter: Counter, amount: u64) {
        self.add(self.lasting, counter, amount);
    }

    /// Takes back what was counted here for the event of firings that last.
    pub(super) fn take_back(&mut self, counter: Counter, amount: u64) {
        self.own[self.lasting].counters[counter as usize] -= amount;
    }

    /// Waits until every run of a program has ended that began before this call.
    pub(super) fn wait(&self) -> Result<()> {
        grace::wait(self.shared.words())
    }
}
