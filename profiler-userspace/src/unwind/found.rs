//! Stretches of code with their rules, as found in an object's tables.
//!
//! In: what the readers of tables add. Out: [`UnwindFindings`], sorted, to be laid out. Never reads a file.

use super::Statistics;
use super::rules::RuleSet;
use profiler_common::abi::Rule;
use std::ops::Range;

/// From this offset on, this rule holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// The offset from the beginning of the stretch, in bytes.
    pub(super) after: u32,
    /// The index of the rule.
    pub(super) rule: u16,
}

/// The code that one description covers.
#[derive(Clone, Debug)]
pub(super) struct Stretch {
    pub(super) addresses: Range<u64>,
    /// Where its changes are stored. The first is at its beginning.
    pub(super) changes: Range<u32>,
}

/// Everything that was found.
#[derive(Debug, Default)]
pub(super) struct UnwindFindings {
    /// Sorted by start, all starts distinct.
    pub(super) stretches: Vec<Stretch>,
    pub(super) changes: Vec<Change>,
    pub(super) rules: RuleSet,
    pub(super) statistics: Statistics,
}

impl UnwindFindings {
    /// Where the next change is going to be stored.
    pub(super) fn next_change(&self) -> u32 {
        count(self.changes.len())
    }

    /// Adds a change: so many bytes further on, this rule.
    pub(super) fn change(&mut self, after: u32, rule: Rule) {
        let rule = self.rules.place(rule);
        self.changes.push(Change { after, rule });
    }

    /// Adds a stretch of code whose changes are the first of these and all that were added since.
    pub(super) fn add_stretch(&mut self, addresses: Range<u64>, first: u32) {
        let changes = first..self.next_change();
        self.stretches.push(Stretch { addresses, changes });
    }

    /// The changes of one of its stretches.
    pub(super) fn changes_of(&self, stretch: &Stretch) -> &[Change] {
        let changes = stretch.changes.start as usize..stretch.changes.end as usize;
        self.changes.get(changes).unwrap_or_default()
    }

    /// Adds what `read` finds, where nothing is known yet.
    pub(super) fn add_where_silent(&mut self, read: impl FnOnce(&mut Self)) {
        let known = std::mem::take(&mut self.stretches);
        read(self);
        self.stretches
            .retain(|stretch| !touches(&known, &stretch.addresses));
        self.stretches.extend(known);
        self.sort();
    }

    /// Adds code that keeps frame pointers.
    pub(super) fn add_kept(&mut self, ranges: Vec<Range<u64>>) {
        let bytes = ranges.iter().map(|range| range.end - range.start);
        let bytes: u64 = bytes.sum();
        self.statistics.undescribed_bytes += bytes;
        self.statistics.kept_bytes += bytes;
        self.add_alike(ranges, Rule::FRAME_POINTER);
    }

    /// Adds code that has one rule.
    pub(super) fn add_alike(&mut self, ranges: Vec<Range<u64>>, rule: Rule) {
        let first = self.next_change();
        self.change(0, rule);
        let stretch = |addresses| Stretch {
            addresses,
            changes: first..first + 1,
        };
        self.stretches.extend(ranges.into_iter().map(stretch));
    }

    /// The addresses of its stretches.
    pub(super) fn addresses(&self) -> Vec<Range<u64>> {
        let all = self.stretches.iter();
        all.map(|stretch| stretch.addresses.clone()).collect()
    }

    /// Whether any of its stretches, which are sorted, has an address in the range.
    pub(super) fn touches(&self, range: &Range<u64>) -> bool {
        touches(&self.stretches, range)
    }

    /// Sorts its stretches; of those with the same beginning one is kept.
    pub(super) fn sort(&mut self) {
        let before = self.stretches.len();
        self.stretches
            .sort_by_key(|stretch| stretch.addresses.start);
        self.stretches
            .dedup_by_key(|stretch| stretch.addresses.start);
        self.statistics.overlaps += count(before - self.stretches.len());
    }

    /// Makes the function that begins at an address the outermost frame of stacks, also for those that return to its first byte
    /// and are looked up one byte before. Code before it that is described keeps its rules.
    pub(super) fn end_stacks_at(&mut self, begin: u64) {
        let place = self
            .stretches
            .partition_point(|stretch| stretch.addresses.start < begin);
        let free = place
            .checked_sub(1)
            .is_none_or(|before| self.stretches[before].addresses.end < begin);
        let first = self.next_change();
        let Some(stretch) = self.stretches.get_mut(place) else {
            return;
        };
        if stretch.addresses.start == begin {
            stretch.addresses.start = begin.saturating_sub(u64::from(free));
            stretch.changes = first..first + 1;
            self.change(0, Rule::ROOT);
        }
    }
}

/// Whether any of the sorted stretches has an address in the range.
fn touches(sorted: &[Stretch], range: &Range<u64>) -> bool {
    let behind = sorted.partition_point(|stretch| stretch.addresses.start < range.end);
    sorted[..behind]
        .last()
        .is_some_and(|stretch| stretch.addresses.end > range.start)
}

/// A number of things, as tables count them.
pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The part of the code that an address is in.
pub(super) fn part_at(code: &[Range<u64>], address: u64) -> Option<&Range<u64>> {
    let behind = code.partition_point(|part| part.start <= address);
    code[..behind].last().filter(|part| part.contains(&address))
}
