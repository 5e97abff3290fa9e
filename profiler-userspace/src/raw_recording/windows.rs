//! Which windows of a raw recording are wanted, and what they hold.

use super::Error;
use super::wire;
use crate::profile;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// The part of a recording's time that is wanted, by when it began; none for all of it.
pub type Wanted<'a> = Option<&'a dyn Fn(SystemTime) -> Range<SystemTime>>;

/// The windows that were taken of a raw recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Windows {
    /// How many.
    pub taken: usize,
    /// How many there are.
    pub all: usize,
    /// The time from the first of them to the last.
    pub time: Range<SystemTime>,
    /// How many firings were recorded in them.
    pub recorded: u64,
    /// How many were lost.
    pub lost: u64,
    /// In how many of them any was.
    pub lost_in: usize,
    /// What the last of them said at its end.
    pub closing: String,
}

/// What was seen of windows so far.
pub(super) struct Seen<'a> {
    wanted: Wanted<'a>,
    all: usize,
    // Of all of them.
    time: Option<Range<SystemTime>>,
    taken: Option<Windows>,
    is_wanted: bool,
}

impl<'a> Seen<'a> {
    pub(super) fn new(wanted: Wanted<'a>) -> Self {
        Self {
            wanted,
            all: 0,
            time: None,
            taken: None,
            is_wanted: false,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// Whether the last one is wanted.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Sees one more, of a recording that `began` then.
    pub(super) fn see(&mut self, began: SystemTime, window: wire::Window) {
        let time = time(window.started_ns, window.duration_ns);
        self.all += 1;
        self.time = Some(
            self.time
                .take()
                .map_or_else(|| time.clone(), |all| both(&all, &time)),
        );
        let wanted = self.wanted.map(|wanted| wanted(began));
        self.is_wanted =
            wanted.is_none_or(|wanted| time.start < wanted.end && time.end > wanted.start);
        if !self.is_wanted {
            return;
        }
        let before = self.taken.take();
        let (taken, recorded, lost, lost_in) = before.as_ref().map_or((0, 0, 0, 0), |all| {
            (all.taken, all.recorded, all.lost, all.lost_in)
        });
        self.taken = Some(Windows {
            taken: taken + 1,
            all: self.all,
            time: before.map_or_else(|| time.clone(), |all| both(&all.time, &time)),
            recorded: window.count.saturating_add(recorded),
            lost: window.lost.saturating_add(lost),
            lost_in: lost_in + usize::from(window.lost > 0),
            closing: window.closing,
        });
    }

    /// Those that were taken.
    pub(super) fn found(self) -> Result<Option<Windows>, Error> {
        match (self.taken, self.time) {
            (Some(taken), _) => Ok(Some(Windows {
                all: self.all,
                ..taken
            })),
            (None, Some(time)) => Err(Error::OtherTime { time }),
            (None, None) => Ok(None),
        }
    }
}

impl Windows {
    /// How long they lasted, from the first to the last.
    pub(super) fn window(&self) -> profile::Window {
        profile::Window {
            start: Duration::ZERO,
            end: (self.time.end.duration_since(self.time.start)).unwrap_or_default(),
        }
    }
}

/// When a window was recorded. What a file says may be no time; then the nearest that is one.
fn time(started_ns: u64, duration_ns: u64) -> Range<SystemTime> {
    let start = wire::time(started_ns);
    let end = start.checked_add(Duration::from_nanos(duration_ns));
    start..end.unwrap_or(start)
}

fn both(one: &Range<SystemTime>, other: &Range<SystemTime>) -> Range<SystemTime> {
    one.start.min(other.start)..one.end.max(other.end)
}
