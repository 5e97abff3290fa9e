//! Names of a profile's values where formats name them in pairs of type and unit.
//!
//! In: a profile's unit, and what its threads did. Out: the words of pprof, which OTLP took over.

use crate::profile::{Activity, Profile, Unit};
use profiler_common::abi::ThreadState;
use std::time::Duration;

/// Name of a count of firings.
pub(super) const SAMPLES: (&str, &str) = ("samples", "count");

/// Name of the time between two samples.
pub(super) const PERIOD: (&str, &str) = ("cpu", "nanoseconds");

/// Type and unit of the weight; none where samples weigh one each, so that their number says it all.
pub(super) fn weight(profile: &Profile) -> Option<(String, &'static str)> {
    let time = match profile.origin.activity {
        Activity::Running => "time",
        Activity::Waiting => "off_cpu",
        Activity::Both => "wall",
    };
    match &profile.unit {
        Unit::Samples => None,
        Unit::Nanoseconds => Some((time.to_owned(), "nanoseconds")),
        Unit::Events(name) if name == "bytes" => Some(("space".to_owned(), "bytes")),
        Unit::Events(name) => Some((word(name), "count")),
    }
}

/// State of a thread.
pub(super) const fn state(state: ThreadState) -> &'static str {
    match state {
        ThreadState::Running | ThreadState::Ran => "running",
        ThreadState::Runnable => "runnable",
        ThreadState::Blocked | ThreadState::Woken => "blocked",
    }
}

/// A name as a type: some readers refuse a dash, and others take a colon for the end of the name.
pub(super) fn word(name: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || letter == '_';
    let letters = name.chars();
    letters
        .map(|letter| if is_plain(letter) { letter } else { '_' })
        .collect()
}

/// A number where formats have signed ones.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A time in nanoseconds, where formats have signed numbers.
pub(super) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
