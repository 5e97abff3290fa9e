//! Counts of stacks.
//!
//! In: a normalized profile of a window. Out: sums that a balance tells of, and that add up over windows.

use super::busiest::Busiest;
use crate::profile::normalized::NormalizedProfile;
use crate::symbolize;
use profiler_common::abi::{Fallbacks, StackEnd};
use std::collections::BTreeMap;

/// Counts of the stacks of a window, or of several.
#[derive(Clone, Debug, Default)]
pub(crate) struct StackCounts {
    /// How many owners on how many stacks.
    pub(crate) samples: usize,
    /// How many firings.
    pub(crate) firings: u64,
    /// Processes that they are of.
    pub(crate) busiest: Busiest,
    /// Their weights, in the unit of the event.
    pub(crate) weight: u64,
    /// How many firings' user stacks ended in each way.
    pub(crate) ends: BTreeMap<StackEnd, u64>,
    /// How many firings' user stacks used each fallback, in the order of [`Fallbacks::EACH`].
    pub(crate) fallbacks: [u64; Fallbacks::EACH.len()],
}

impl StackCounts {
    /// Those of a profile.
    pub(crate) fn of(normalized: &NormalizedProfile) -> Self {
        Self {
            samples: normalized.samples().len(),
            firings: normalized.total_count(),
            busiest: Busiest::of(normalized),
            weight: normalized.total_weight(),
            ends: symbolize::stack_ends(normalized),
            fallbacks: symbolize::fallbacks(normalized),
        }
    }

    /// Adds those of another window.
    pub(crate) fn add(&mut self, other: Self) {
        self.samples += other.samples;
        self.firings += other.firings;
        self.busiest.add(other.busiest);
        self.weight = self.weight.saturating_add(other.weight);
        for (sum, more) in self.fallbacks.iter_mut().zip(other.fallbacks) {
            *sum += more;
        }
        for (end, count) in other.ends {
            *self.ends.entry(end).or_default() += count;
        }
    }
}
