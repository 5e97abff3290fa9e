//! What reading DWARF may take.
//!
//! In: a note of every step of reading. Out: whether to go on. Debug files are written by others; what a few of
//! their bytes make a reader do, and keep, has no end of itself: rows of lines, one range named by a thousand
//! functions. Each of these takes at least one step, and so every step asks here.

use super::super::counting;
use std::cell::Cell;

/// Reading stops at this part of what may be held: a table that is full takes as much again between two
/// questions.
const PART: u64 = 2;

/// Pages of files may take this part of that.
const PAGES: u64 = 4;

/// Memory is asked for at every so many steps.
const STEPS_UNASKED: u64 = 32;

/// Any file may take so many steps; a second or two.
const FREE_STEPS: u64 = 256 << 20;

/// And so many for each byte that it has.
const STEPS_A_BYTE: u64 = 2;

/// What may be taken, and has been.
#[derive(Debug)]
pub(super) struct Allowance {
    /// What this thread held before, in bytes.
    before: i64,
    /// At how much more reading stops, in bytes.
    bytes: u64,
    steps: Cell<u64>,
    most_steps: Cell<u64>,
    over: Cell<bool>,
}

impl Allowance {
    /// So many bytes.
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            before: counting::taken(),
            bytes: bytes / PART,
            steps: Cell::new(0),
            most_steps: Cell::new(FREE_STEPS),
            over: Cell::new(false),
        }
    }

    /// How much pages of files may take, in bytes.
    pub(super) fn page_bytes(&self) -> u64 {
        self.bytes / PAGES
    }

    /// How much more may be held now, in bytes.
    pub(super) fn left(&self) -> u64 {
        let held = u64::try_from(counting::taken() - self.before).unwrap_or(0);
        self.bytes.saturating_sub(held)
    }

    /// A file of so many bytes is going to be read.
    pub(super) fn expect(&self, bytes: u64) {
        let more = bytes.saturating_mul(STEPS_A_BYTE);
        self.most_steps
            .set(self.most_steps.get().saturating_add(more));
    }

    /// Takes so many steps; says whether to go on.
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

    /// Whether so many bytes may be held beside what is.
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

    /// Begins anew with what is left, once something was given back; says whether there is any point.
    pub(super) fn resume(&self) -> bool {
        self.over.set(false);
        self.steps.get() < self.most_steps.get() && self.left() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_held_ends_it_and_given_back_goes_on() {
        let allowance = Allowance::new(6 << 20);
        assert!((0..1000).all(|_| allowance.step(1)));
        assert!(allowance.grant(3 << 20) && !allowance.grant((3 << 20) + 1));
        assert!(allowance.is_over() && allowance.resume() && !allowance.is_over());
        let much = vec![1u8; 3 << 20];
        assert!(!(0..1000).all(|_| allowance.step(1)));
        assert!(allowance.is_over() && !allowance.resume());
        drop(much);
        assert!(allowance.resume() && allowance.step(1000));
    }

    #[test]
    fn steps_end_by_the_size_of_what_is_read() {
        let allowance = Allowance::new(4 << 20);
        assert!(allowance.step(FREE_STEPS));
        assert!(!allowance.step(STEPS_UNASKED) && !allowance.resume());
        let larger = Allowance::new(4 << 20);
        larger.expect(100);
        assert!(larger.step(FREE_STEPS + 200) && !larger.step(STEPS_UNASKED));
    }
}
