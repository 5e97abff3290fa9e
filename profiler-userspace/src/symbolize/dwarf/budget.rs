//! Limits on reading DWARF.
//!
//! In: each step of reading. Out: whether to go on. Debug files are written by others, and a few bytes of
//! them can make a reader compute and keep without end: rows of lines, one range claimed by a thousand
//! functions. Each of these takes at least one step, so every step is checked here.

use crate::allocator;
use std::cell::Cell;

/// Reading stops at this part of the memory limit: growing a full table takes as much again between two
/// checks.
const PART: u64 = 2;

/// Cached pages may take this part of that.
const PAGES: u64 = 4;

/// Memory is checked every so many steps.
const STEPS_UNASKED: u64 = 32;

/// How many steps any file may take; a second or two.
const FREE_STEPS: u64 = 256 << 20;

/// And so many more for each of its bytes.
const STEPS_A_BYTE: u64 = 2;

/// The limits, and what was used.
#[derive(Debug)]
pub(super) struct DwarfBudget {
    /// Memory that this thread held before, in bytes.
    before: i64,
    /// How much more it may hold before reading stops, in bytes.
    bytes: u64,
    steps: Cell<u64>,
    most_steps: Cell<u64>,
    over: Cell<bool>,
}

impl DwarfBudget {
    /// So many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            before: allocator::taken(),
            bytes: bytes / PART,
            steps: Cell::new(0),
            most_steps: Cell::new(FREE_STEPS),
            over: Cell::new(false),
        }
    }

    /// How much cached pages may take, in bytes.
    pub(super) fn page_bytes(&self) -> u64 {
        self.bytes / PAGES
    }

    /// How much more may be held now, in bytes.
    pub(super) fn left(&self) -> u64 {
        let held = u64::try_from(allocator::taken() - self.before).unwrap_or(0);
        self.bytes.saturating_sub(held)
    }

    /// Raises the step limit for a file of so many bytes.
    pub(super) fn expect(&self, bytes: u64) {
        let more = bytes.saturating_mul(STEPS_A_BYTE);
        self.most_steps
            .set(self.most_steps.get().saturating_add(more));
    }

    /// Counts so many steps; says whether to go on.
    pub(super) fn step(&self, steps: u64) -> bool {
        let before = self.steps.get();
        let now = before.saturating_add(steps);
        self.steps.set(now);
        if before / STEPS_UNASKED != now / STEPS_UNASKED
            && (now > self.most_steps.get() || self.left() == 0)
        {
            self.over.set(true);
        }
        !self.over.get()
    }

    /// Whether so many more bytes may be held.
    pub(super) fn grant(&self, bytes: u64) -> bool {
        if bytes > self.left() {
            self.over.set(true);
        }
        !self.over.get()
    }

    /// Whether reading had to stop.
    pub(super) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Starts again with what is left, after memory was freed; says whether that is worthwhile.
    pub(super) fn resume(&self) -> bool {
        self.over.set(false);
        self.steps.get() < self.most_steps.get() && self.left() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn held_memory_ends_the_budget_and_freed_memory_extends_it() {
        let budget = DwarfBudget::new(6 << 20);
        assert!((0..1000).all(|_| budget.step(1)));
        assert!(budget.grant(3 << 20) && !budget.grant((3 << 20) + 1));
        assert!(budget.is_over() && budget.resume() && !budget.is_over());
        let much = vec![1u8; 3 << 20];
        assert!(!(0..1000).all(|_| budget.step(1)));
        assert!(budget.is_over() && !budget.resume());
        drop(much);
        assert!(budget.resume() && budget.step(1000));
    }

    #[test]
    fn steps_are_limited_by_the_size_of_the_input() {
        let budget = DwarfBudget::new(4 << 20);
        assert!(budget.step(FREE_STEPS));
        assert!(!budget.step(STEPS_UNASKED) && !budget.resume());
        let larger = DwarfBudget::new(4 << 20);
        larger.expect(100);
        assert!(larger.step(FREE_STEPS + 200) && !larger.step(STEPS_UNASKED));
    }
}
