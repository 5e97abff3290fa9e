//! The small maps through which the halves speak while a recording runs: the counters, one per probe and
//! CPU, which the kernel half writes; the control map, whose first word user space writes; the name of a symbol.

use super::layout::boundary;
use super::{Class, Counter, Stamp};

/// How many counters one probe has room for on one CPU.
pub const COUNTERS_WORDS: usize = 32;

boundary! {
    /// One probe's counters on one CPU. Whole pairs of cache lines, so that CPUs do not share one.
    #[repr(C, align(128))]
    pub struct Counters<W = u64> {
        /// One sum per [`Counter`], in the order of [`Counter::ALL`]; the rest is zero.
        pub counters: [W; COUNTERS_WORDS],
    }
}

const _: () = assert!(
    Counter::ALL.len() <= COUNTERS_WORDS,
    "every counter has a place in the books"
);

impl Default for Counters {
    fn default() -> Self {
        Self::EMPTY
    }
}

impl Counters {
    /// Nothing counted yet.
    pub const EMPTY: Self = Self {
        counters: [0; COUNTERS_WORDS],
    };

    /// The sum under one counter.
    pub const fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize]
    }

    /// The sum of all counters of a class.
    pub fn sum(&self, class: Class) -> u64 {
        Counter::ALL
            .iter()
            .filter(|counter| counter.class() == class)
            .map(|&counter| self.get(counter))
            .sum()
    }

    /// Growth of the counters since they stood at `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let mut counters = *self;
        for (now, then) in counters.counters.iter_mut().zip(&before.counters) {
            *now = now.saturating_sub(*then);
        }
        counters
    }

    /// How many firings have ended, in whatever way. Equal to `Fired` whenever no firing is under way
    /// on this CPU.
    pub fn closed(&self) -> u64 {
        self.sum(Class::Recorded) + self.sum(Class::Filtered) + self.sum(Class::Lost)
    }
}

/// Bytes kept of what the kernel calls an address: its longest name (`include/linux/kallsyms.h`,
/// `KSYM_SYMBOL_LEN`) has 512 characters and what surrounds it. A whole number of words.
pub const SYMBOL_BYTES: usize = 640;

/// Bytes of the kernel's code that are read at once, into the same memory, from a multiple of as many on: these are in one
/// page. The byte behind them says whether they could be read.
pub const TEXT_BYTES: usize = 512;

/// How many sides each store has: one is live, the other is drained or empty.
pub const SIDES: usize = 2;

/// Which sides are live: bit 0 the tallies'; from bit 1 on the [epoch](Live::epoch) of the stacks, whose
/// lowest bit is their side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Live(pub u64);

impl Live {
    /// The given side of the tallies, and the given epoch of the stacks.
    pub const fn new(tallies: u32, epoch: u32) -> Self {
        Self((tallies & 1) as u64 | ((epoch & Stamp::LAST_EPOCH) as u64) << 1)
    }

    /// How often the stacks' live side has changed, modulo what a [`Stamp`] holds. A position means
    /// one stack within one epoch.
    pub const fn epoch(self) -> u32 {
        (self.0 >> 1) as u32 & Stamp::LAST_EPOCH
    }

    /// The live side of the tallies: 0 or 1.
    pub const fn tallies(self) -> u32 {
        self.0 as u32 & 1
    }

    /// The live side of the stacks: 0 or 1.
    pub const fn stacks(self) -> u32 {
        (self.0 as u32 >> 1) & 1
    }
}

boundary! {
    /// How far one side of one store is filled. Alone on its cache line: every new entry bumps it.
    #[repr(C, align(64))]
    pub struct Side<W = u64>, padding 56 {
        /// Entries given out so far: tallies, or blocks of stacks. Grows past the capacity when full.
        pub cursor: W,
    }
}

boundary! {
    /// The one value of the control map.
    #[repr(C, align(64))]
    pub struct Control<W = u64>, padding 16 {
        /// Which sides are live; written by user space alone. A [`Live`].
        pub live: W,
        /// How deep our PID namespace lies below the initial one; noted by the kernel half, before sampling,
        /// when user space has it look.
        pub namespace_level: W,
        /// How often user space has changed the index of code. What the kernel half has read of it and kept
        /// is out of date once this has another value.
        pub code_changes: W,
        /// When the recording began, by the monotonic clock; written by user space, before switches are seen.
        pub began: W,
        /// Of waits, look at about one of each thread in so many nanoseconds; zero: at all. Written by user space alone, and read with
        /// [`Switches::VARYING_WAITS`](super::Switches::VARYING_WAITS).
        pub wait_sample_period: W,
        /// The gap between waits that is presumed of a thread which was not seen to wait, at most the period; written and read so, too.
        pub first_gap: W,
        /// How far each side of the tallies is filled.
        pub tallies: [Side<W>; SIDES],
        /// How far each side of the stacks is filled.
        pub stacks: [Side<W>; SIDES],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_of_live_are_separate() {
        for (tallies, epoch) in [
            (0, 0),
            (1, 0),
            (0, 1),
            (1, 1),
            (1, 6),
            (0, Stamp::LAST_EPOCH),
        ] {
            let live = Live::new(tallies, epoch);
            assert_eq!(
                (live.tallies(), live.epoch(), live.stacks()),
                (tallies, epoch, epoch & 1)
            );
        }
        assert_eq!(Live::new(0, Stamp::LAST_EPOCH + 1).epoch(), 0);
    }

    #[test]
    fn a_firing_has_exactly_one_outcome() {
        for &counter in Counter::ALL {
            let mut counters = Counters::EMPTY;
            counters.counters[counter as usize] = 1;
            let closes = matches!(
                counter.class(),
                Class::Recorded | Class::Filtered | Class::Lost
            );
            assert_eq!(counters.closed(), u64::from(closes), "{}", counter.name());
        }
    }
}
