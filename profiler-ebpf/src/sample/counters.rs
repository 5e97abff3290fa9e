//! Counters: one count for each outcome, on the CPU where the firing happened.

use crate::platform::{
    maps::{COUNTERS, Counters},
    subprog::{Niche, Scalar},
};
use core::hint::black_box;
use profiler_common::abi::{COUNTERS_WORDS, Counter};

/// The counters of one CPU slot: of one probe on one CPU. See [`crate::platform::maps::COUNTERS`].
#[inline(always)]
pub(crate) fn counters(cpu_slot: u32) -> Option<&'static Counters> {
    COUNTERS.get(cpu_slot)
}

/// Opens a firing.
///
/// A full barrier: once user space has swapped the live sides, it can tell who may still write to the old ones, because a
/// firing that is not yet counted here sees the new sides.
#[inline(always)]
pub(crate) fn open(counters: &Counters) {
    counters.counters[Counter::Fired as usize].fetch_add(1);
}

/// The outcome of a firing, as the index of a [`Counter`].
#[derive(Clone, Copy)]
pub(crate) struct Outcome(pub(crate) u32);

impl From<Counter> for Outcome {
    #[inline(always)]
    fn from(counter: Counter) -> Self {
        Self(counter as u32)
    }
}

impl Scalar for Outcome {
    #[inline(always)]
    fn into_word(self) -> u64 {
        u64::from(self.0)
    }

    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Self(word as u32)
    }
}

impl Niche for Outcome {
    const NONE: u64 = u32::MAX as u64;
}

/// Closes a firing.
#[inline(always)]
pub(crate) fn close(counters: &Counters, outcome: Outcome) {
    // The verifier knows nothing of counters. The compiler does and would drop the mask.
    if let Some(word) = counters
        .counters
        .get(black_box(outcome.0 as usize) & (COUNTERS_WORDS - 1))
    {
        word.add(1);
    }
}

/// Closes a firing that has an outcome.
#[inline(always)]
pub(crate) fn close_if(counters: &Counters, outcome: Option<Outcome>) {
    if let Some(outcome) = outcome {
        close(counters, outcome);
    }
}

/// Opens the handling of a switch, whose firing will last longer: as [`open`], in counters of its own.
#[inline(always)]
pub(crate) fn enter(counters: &Counters) {
    counters.counters[Counter::Entered as usize].fetch_add(1);
}

/// Adds one to a counter.
#[inline(always)]
pub(crate) fn bump(counters: &Counters, counter: Counter) {
    add(counters, counter, 1);
}

/// Adds to a counter.
#[inline(always)]
pub(crate) fn add(counters: &Counters, counter: Counter, amount: u64) {
    counters.counters[counter as usize].add(amount);
}
