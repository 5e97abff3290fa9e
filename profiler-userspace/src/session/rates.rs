//! Rates of events that are lowered.
//!
//! In: an event, and a share of its rate. Out: its period, and how often waits are looked at; the least share there is. Pure.

use crate::plan::{Event, Sampling};
use crate::probe::Waits;
use std::fmt::{self, Display};
use std::time::Duration;

/// At this period most waits are looked at: few threads come and go more often.
const ALL_WAITS: Duration = Duration::from_micros(100);

/// Of threads that were not seen to wait, at least the first wait of one in so many is looked at. Where processes come and go, most waits are
/// first ones.
const FEWEST_FIRST: f64 = 1.0 / 64.0;

/// With fewer samples a second, there is hardly a profile.
const MIN_HZ: f64 = 1.0;

/// Waits that stand for more than this would make times that are anything: of a thread that waits for short times throughout, a window
/// of 10 s has 20 of them.
const LONGEST_WAIT_PERIOD: Duration = Duration::from_millis(500);

/// Of what is counted, at least one in so many is sampled.
const RAREST: f64 = 10_000.0;

/// How often waits are looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct WaitRate {
    /// About one of each thread in this time; zero: all.
    pub(super) period: Duration,
    /// The first one of this part of the threads.
    pub(super) first: f64,
}

impl WaitRate {
    /// Where this share, at most 1, is looked at of what was asked for: at first less of each thread, then of fewer threads.
    pub(super) fn at(waits: &Waits, share: f64) -> Self {
        let asked = waits.wait_sample_period;
        if share >= 1.0 {
            return Self {
                period: asked,
                first: 1.0,
            };
        }
        let (longest, period) = (
            longest_wait_period(waits),
            asked.max(ALL_WAITS).div_f64(share),
        );
        Self {
            period: period.min(longest),
            first: longest.div_duration_f64(period).min(1.0),
        }
    }
}

impl Display for WaitRate {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.period.is_zero() {
            true => write!(out, "every wait")?,
            false => write!(out, "a wait of each thread in {:.1?}", self.period)?,
        }
        let new_threads = (1.0 / self.first).round();
        if new_threads > 1.0 {
            write!(out, " and of one new thread in {new_threads}")?;
        }
        Ok(())
    }
}

/// The longest time in which a wait of each thread is looked at.
fn longest_wait_period(waits: &Waits) -> Duration {
    waits.wait_sample_period.max(LONGEST_WAIT_PERIOD)
}

/// The period of an event that has one, at this share of its rate, in seconds.
pub(super) fn period(event: &Event, share: f64) -> f64 {
    match event.sampling {
        // None of a wait is left out at a change.
        _ if event.probe.waits().is_some() => 0.0,
        Sampling::Frequency(hz) => 1.0 / (hz as f64 * share),
        Sampling::Period(ns) if event.perf_event().is_clock() => ns as f64 / 1e9 / share,
        Sampling::Period(_) => 0.0,
    }
}

/// The least share of its rate at which an event is sampled often enough.
pub(super) fn floor(event: &Event) -> f64 {
    let share = match (event.probe.waits(), event.sampling) {
        (Some(waits), _) => {
            let period = waits.wait_sample_period.max(ALL_WAITS);
            period.as_secs_f64() / longest_wait_period(waits).as_secs_f64() * FEWEST_FIRST
        }
        (None, Sampling::Frequency(hz)) => MIN_HZ / hz as f64,
        (None, Sampling::Period(ns)) if event.perf_event().is_clock() => MIN_HZ * ns as f64 / 1e9,
        (None, Sampling::Period(_)) => 1.0 / RAREST,
    };
    share.min(1.0)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::plan::PerfEventChoice;
    use crate::probe::Probe;

    /// An event whose rate varies.
    pub(in crate::session) fn event(probe: Probe, hz: u64) -> Event {
        Event {
            probe,
            perf_event: PerfEventChoice::Auto,
            sampling: Sampling::Frequency(hz),
            varies: true,
            outputs: Vec::new(),
        }
    }

    fn waits(period: Duration) -> Event {
        let waits = Waits {
            wait_sample_period: period,
            ..Waits::default()
        };
        event(Probe::OffCpu(waits), 99)
    }

    #[test]
    fn waits_are_looked_at_within_their_bounds() {
        let (all, some) = (waits(Duration::ZERO), waits(Duration::from_millis(2)));
        let at = |event: &Event, share| {
            let rate = WaitRate::at(event.probe.waits().unwrap(), share);
            (rate.period, rate.first)
        };
        assert_eq!(at(&all, 1.0), (Duration::ZERO, 1.0));
        assert_eq!(at(&all, 0.01), (Duration::from_millis(10), 1.0));
        assert_eq!(at(&some, 1.0), (Duration::from_millis(2), 1.0));
        assert_eq!(at(&some, 0.5), (Duration::from_millis(4), 1.0));
        assert_eq!(at(&all, 2e-4 / 4.0), (LONGEST_WAIT_PERIOD, 0.25));
        for event in [all, some] {
            let (period, first) = at(&event, floor(&event));
            assert_eq!(period, LONGEST_WAIT_PERIOD);
            assert!((first / FEWEST_FIRST - 1.0).abs() < 1e-6, "{first}");
        }
        let slow = waits(Duration::from_secs(2));
        assert_eq!(at(&slow, floor(&slow)).0, Duration::from_secs(2));
    }

    #[test]
    fn how_often_waits_are_looked_at_is_said() {
        let shown = |micros, first| {
            let period = Duration::from_micros(micros);
            WaitRate { period, first }.to_string()
        };
        assert_eq!(shown(0, 1.0), "every wait");
        assert_eq!(shown(1250, 1.0), "a wait of each thread in 1.2ms");
        assert_eq!(shown(1250, 0.9), shown(1250, 1.0));
        let fewest = shown(500_000, FEWEST_FIRST);
        assert_eq!(
            fewest,
            "a wait of each thread in 500.0ms and of one new thread in 64"
        );
    }
}
