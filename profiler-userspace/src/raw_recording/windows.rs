//! Which windows of a raw recording are wanted, and what they hold.

use super::Error;
use super::wire;
use crate::profile::{self, WindowIndex, WindowTotals};
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// The part of a recording's time that is wanted, by when it began; none for all of it.
pub type WindowFilter<'a> = Option<&'a dyn Fn(SystemTime) -> Range<SystemTime>>;

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
    /// Summary from the end of the last of them; empty where there is none.
    pub closing: String,
    /// Whether it was recorded window by window.
    pub is_continuous: bool,
}

/// Whether windows are still told apart as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Divided {
    /// They are.
    AsBefore,
    /// Samples of two neighbours are to be put together.
    Less,
}

/// Windows seen so far.
pub(super) struct Seen<'a> {
    wanted: WindowFilter<'a>,
    all: usize,
    // Of all of them.
    time: Option<Range<SystemTime>>,
    taken: Option<Windows>,
    is_wanted: bool,
    /// The most windows that samples are told apart by. Where there are more, neighbours are put together.
    most: usize,
    /// Of those that were taken; each is so many of the file's, as a power of two.
    totals: Vec<WindowTotals>,
    together: u32,
}

impl<'a> Seen<'a> {
    /// None so far. Samples are told apart by at most so many windows.
    pub(super) fn new(wanted: WindowFilter<'a>, most: usize) -> Self {
        Self {
            wanted,
            all: 0,
            time: None,
            taken: None,
            is_wanted: false,
            totals: Vec::new(),
            most,
            together: if most > 1 { 0 } else { u32::BITS - 1 },
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all == 0
    }

    /// Whether the last one is wanted.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// How many that are wanted begin before the last one.
    pub(super) fn before(&self) -> u32 {
        let taken = self.taken.as_ref().map_or(0, |windows| windows.taken);
        u32::try_from(taken.saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// By which number the samples of a window are told apart that has so many wanted ones before it.
    pub(super) fn index(&self, before: u32) -> WindowIndex {
        WindowIndex(before >> self.together)
    }

    /// Sees one more, of a recording that `began` then.
    pub(super) fn see(&mut self, began: SystemTime, window: wire::Window) -> Divided {
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
            return Divided::AsBefore;
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
            is_continuous: false,
        });
        let first = self.taken.as_ref().map_or(time.start, |all| all.time.start);
        let since = |at: SystemTime| at.duration_since(first).unwrap_or_default();
        self.add(WindowTotals {
            window: profile::Window {
                start: since(time.start),
                end: since(time.end),
            },
            firings: window.firings,
            filtered: window.filtered,
            lost: window.lost,
            busy_ns: window.busy_ns,
        })
    }

    fn add(&mut self, totals: WindowTotals) -> Divided {
        let index = self.index(self.before()).0 as usize;
        if let Some(known) = self.totals.get_mut(index) {
            *known = known.and(totals);
            return Divided::AsBefore;
        }
        self.totals.push(totals);
        if self.totals.len() <= self.most.max(1) {
            return Divided::AsBefore;
        }
        self.totals = WindowTotals::halved(&self.totals);
        self.together += 1;
        Divided::Less
    }

    /// Those that were taken, and by which samples are told apart.
    pub(super) fn found(
        self,
        is_continuous: bool,
    ) -> Result<Option<(Windows, Vec<WindowTotals>)>, Error> {
        match (self.taken, self.time) {
            (Some(taken), _) => {
                let windows = Windows {
                    all: self.all,
                    is_continuous,
                    ..taken
                };
                Ok(Some((windows, self.totals)))
            }
            (None, Some(time)) => Err(Error::OtherTime { time }),
            (None, None) => Ok(None),
        }
    }
}

impl Windows {
    /// How long they lasted, from the first to the last.
    pub(super) fn window(&self) -> profile::Window {
        let length = self.time.end.duration_since(self.time.start);
        profile::Window::until(length.unwrap_or_default())
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
