//! The windows that a recording is divided into while it goes on.
//!
//! In: what the kernel half has counted by the end of each. Out: 20 to 40 windows of equal length, however long the
//! recording lasts: where that is not known before, windows begin short, and are put together in pairs.

use crate::plan::Plan;
use crate::profile::{MAX_WINDOWS, Window, WindowTotals};
use profiler_common::abi::{Class, Counters};
use std::time::Duration;

/// The most windows that there are. Where the length was not known before, there are at least half as many.
const MAX: u32 = 40;

/// The most where it was asked how long they are.
const MAX_ASKED_FOR: u32 = MAX_WINDOWS as u32;

/// More samples than this are about 60 MB.
const MAX_SAMPLES: usize = 1 << 19;

/// The least length: shorter ones would hold no sample at usual rates, and each costs a drain.
const SHORTEST: Duration = Duration::from_millis(50);

/// The length of the first window of a recording of unknown length.
const FIRST: Duration = Duration::from_millis(100);

/// Windows of a recording that is under way.
#[derive(Debug)]
pub(crate) struct Timeline {
    length: Duration,
    /// The most windows that there are.
    most: usize,
    /// More samples than this take much memory. Samples of different windows are different ones.
    most_samples: usize,
    /// How long the recording is to last, if that is known.
    duration: Option<Duration>,
    /// When the last window ended, from the beginning.
    until: Duration,
    /// Of each of the kernel half's events, by then.
    counters: Vec<Counters>,
    busy_ns: u64,
    /// Each with what happened in it of each of these events.
    windows: Vec<Vec<WindowTotals>>,
}

/// Whether windows are still what they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Divided {
    /// They are.
    AsBefore,
    /// Two neighbours are one now.
    Less,
}

impl Timeline {
    /// That of a plan, if one of its outputs tells of windows.
    pub(crate) fn of(plan: &Plan) -> Option<Self> {
        plan.has_windows()
            .then(|| Self::new(plan.duration, plan.resolution))
    }

    fn new(duration: Option<Duration>, resolution: Option<Duration>) -> Self {
        let (first, shortest, most) = match resolution {
            Some(resolution) => (resolution, resolution, MAX_ASKED_FOR),
            None => (FIRST, SHORTEST, MAX),
        };
        Self {
            length: duration.map_or(first, |duration| (duration / most).max(shortest)),
            most: most as usize,
            most_samples: MAX_SAMPLES,
            duration,
            until: Duration::ZERO,
            counters: Vec::new(),
            busy_ns: busy_ns(),
            windows: Vec::new(),
        }
    }

    /// When the next window ends, from the beginning; none if that is when the recording does.
    pub(crate) fn next_end(&self) -> Option<Duration> {
        // Each end comes a little late; the next one does not.
        let length = self.length.as_nanos().max(1);
        let ended = (self.until.as_nanos() + length / 2) / length;
        let end = self.length * u32::try_from(ended + 1).unwrap_or(u32::MAX);
        // The last one takes what is left.
        let is_last = (self.duration).is_some_and(|duration| end + self.length / 2 > duration);
        (!is_last).then_some(end)
    }

    /// How long windows are now.
    pub(crate) fn length(&self) -> Duration {
        self.length
    }

    /// Ends a window when the recording has lasted so long, the kernel half's events have been counted so often, and so
    /// many different samples are kept.
    pub(crate) fn end_window(
        &mut self,
        until: Duration,
        counters: Vec<Counters>,
        samples: usize,
    ) -> Divided {
        let window = Window {
            start: self.until,
            end: until,
        };
        let busy_ns = busy_ns();
        let busy = busy_ns.saturating_sub(self.busy_ns);
        let totals = counters.iter().enumerate().map(|(event, now)| {
            let before = self.counters.get(event).unwrap_or(&Counters::EMPTY);
            totals(window, &now.since(before), busy)
        });
        self.windows.push(totals.collect());
        self.until = until;
        self.counters = counters;
        self.busy_ns = busy_ns;
        let are_many = self.windows.len() >= self.most && self.duration.is_none();
        let is_large = samples > self.most_samples && self.windows.len() > MAX as usize;
        if !are_many && !is_large {
            return Divided::AsBefore;
        }
        // Where windows have little in common, it is not they that take the memory.
        self.most_samples = self.most_samples.max(samples + samples / 2);
        self.length *= 2;
        self.windows = (self.windows.chunks(2))
            .map(|pair| {
                let both = |event| pair.iter().map(|of| of[event]).reduce(WindowTotals::and);
                (0..self.counters.len()).filter_map(both).collect()
            })
            .collect();
        Divided::Less
    }

    /// Totals of each window of one of the kernel half's events.
    pub(crate) fn of_event(&self, event: usize) -> Vec<WindowTotals> {
        let of = |window: &Vec<WindowTotals>| window.get(event).copied();
        self.windows.iter().filter_map(of).collect()
    }
}

/// Totals of a window, by what was counted in it.
pub(crate) fn totals(window: Window, counters: &Counters, busy_ns: u64) -> WindowTotals {
    WindowTotals {
        window,
        firings: counters.sum(Class::Fired),
        filtered: counters.sum(Class::Filtered),
        lost: counters.sum(Class::Lost),
        busy_ns,
    }
}

/// How long all CPUs have been busy since the machine was started; zero where the kernel does not say.
pub(crate) fn busy_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks_a_second = rustix::param::clock_ticks_per_second().max(1);
    busy_ticks(&text).saturating_mul(1_000_000_000 / ticks_a_second)
}

/// `cpu user nice system idle iowait irq softirq steal …`, in ticks: see proc_stat(5). What a host stole was not ours.
fn busy_ticks(stat: &str) -> u64 {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let ticks = all.unwrap_or_default().split_ascii_whitespace();
    let ticks: Vec<u64> = ticks.map_while(|number| number.parse().ok()).collect();
    [0, 1, 2, 5, 6]
        .iter()
        .filter_map(|field| ticks.get(*field))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use profiler_common::abi::Counter;

    fn fired(count: u64) -> Vec<Counters> {
        let mut counters = Counters::EMPTY;
        counters.counters[Counter::Fired as usize] = count;
        vec![counters]
    }

    /// Ends windows whenever they are due, until the recording has lasted so long; once in a millisecond it fired.
    fn recorded(
        duration: Option<Duration>,
        resolution: Option<Duration>,
        lasted: Duration,
    ) -> Vec<WindowTotals> {
        let mut timeline = Timeline::new(duration, resolution);
        let end_window = |timeline: &mut Timeline, until: Duration| {
            timeline.end_window(until, fired(until.as_millis() as u64), 0)
        };
        while let Some(end) = timeline.next_end().filter(|end| *end < lasted) {
            end_window(&mut timeline, end);
        }
        end_window(&mut timeline, lasted);
        timeline.of_event(0)
    }

    #[test]
    fn windows_are_20_to_40_equal_ones_without_a_gap() {
        for seconds in [2, 3, 10, 61, 3600] {
            let lasted = Duration::from_secs(seconds);
            for duration in [None, Some(lasted)] {
                let windows = recorded(duration, None, lasted);
                assert!(
                    (20..=40).contains(&windows.len()),
                    "{seconds} s: {}",
                    windows.len()
                );
                let spans: Vec<Window> = windows.iter().map(|of| of.window).collect();
                assert!(spans.is_sorted_by(|one, next| one.end == next.start));
                assert_eq!(spans[0].start, Duration::ZERO);
                assert_eq!(spans[spans.len() - 1].end, lasted);
                let length = |span: &Window| span.end - span.start;
                let (_last, equal) = spans.split_last().unwrap();
                assert!(equal.iter().all(|span| length(span) == length(&spans[0])));
                let firings: u64 = windows.iter().map(|of| of.firings).sum();
                assert_eq!(firings, lasted.as_millis() as u64);
            }
        }
    }

    #[test]
    fn windows_are_as_long_as_was_asked_for_unless_there_are_too_many() {
        let asked = Duration::from_millis(50);
        for (seconds, expected) in [(1, 20), (10, 200), (100, 2000), (600, 3000)] {
            let lasted = Duration::from_secs(seconds);
            let windows = recorded(None, Some(asked), lasted);
            assert_eq!(windows.len(), expected, "{seconds} s");
            let known = recorded(Some(lasted), Some(asked), lasted).len();
            assert!(
                (expected..=MAX_WINDOWS).contains(&known),
                "{seconds} s: {known}"
            );
        }
    }

    #[test]
    fn many_different_samples_make_windows_longer() {
        let asked = Duration::from_millis(50);
        let mut timeline = Timeline::new(Some(Duration::from_secs(60)), Some(asked));
        for window in 1..=100 {
            let divided = timeline.end_window(asked * window, fired(1), 1000);
            assert_eq!(divided, Divided::AsBefore);
        }
        let many = MAX_SAMPLES + 1;
        assert_eq!(
            timeline.end_window(asked * 101, fired(1), many),
            Divided::Less
        );
        assert_eq!(timeline.length(), asked * 2);
        assert_eq!(timeline.of_event(0).len(), 51);
        // They were not fewer by that.
        assert_eq!(
            timeline.end_window(asked * 103, fired(1), many),
            Divided::AsBefore
        );
    }

    #[test]
    fn what_a_cpu_did_not_idle_away_is_busy() {
        let stat = "cpu  10 2 30 4000 500 6 7 80 9 0\ncpu0 1 1 1 1\n";
        assert_eq!(busy_ticks(stat), 10 + 2 + 30 + 6 + 7);
        assert_eq!(busy_ticks("nonsense"), 0);
    }
}
