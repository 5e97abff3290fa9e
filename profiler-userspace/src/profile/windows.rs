//! The windows that a recording is divided into.
//!
//! In: when they were, and what the kernel half counted in them. Out: a list that samples refer to by index. Constants
//! aside, nothing is decided here: who divides says how long they are.

use super::Window;
use std::time::Duration;

/// A place in the list of a profile's windows; zero where there is no such list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WindowIndex(pub u32);

/// The most windows that samples are told apart by where it is asked for how long they are: at 50 ms, those of 200 s.
pub const MAX_WINDOWS: usize = 4096;

/// Facts of one window. How much was counted in it, its samples say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowTotals {
    /// When it was, from the beginning of the recording.
    pub window: Window,
    /// How often the probe fired: what was recorded, filtered and lost.
    pub firings: u64,
    /// How many firings were not wanted.
    pub filtered: u64,
    /// How many firings were wanted and are not in any sample.
    pub lost: u64,
    /// How much time of the CPUs was not idle, in nanoseconds; zero where that is not known.
    pub busy_ns: u64,
}

impl WindowTotals {
    /// One of several that are equally long, of which nothing else is known.
    #[cfg(test)]
    pub(crate) fn nth(length: Duration, index: u32) -> Self {
        let (start, end) = (length * index, length * (index + 1));
        Self {
            window: Window { start, end },
            ..Self::default()
        }
    }

    /// Both of two neighbours.
    #[must_use]
    pub fn and(self, next: Self) -> Self {
        Self {
            window: Window {
                start: self.window.start.min(next.window.start),
                end: self.window.end.max(next.window.end),
            },
            firings: self.firings.saturating_add(next.firings),
            filtered: self.filtered.saturating_add(next.filtered),
            lost: self.lost.saturating_add(next.lost),
            busy_ns: self.busy_ns.saturating_add(next.busy_ns),
        }
    }

    /// How long windows usually are; zero where there are none.
    pub fn resolution(windows: &[Self]) -> Duration {
        let mut lengths: Vec<Duration> = { windows.iter() }
            .map(|totals| totals.window.length())
            .collect();
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied().unwrap_or_default()
    }

    /// Half as many windows: each is two neighbours of before.
    #[must_use]
    pub fn halved(windows: &[Self]) -> Vec<Self> {
        let pairs = windows.chunks(2);
        let both = |pair: &[Self]| pair.iter().copied().reduce(Self::and);
        pairs.filter_map(both).collect()
    }
}
