//! Events and windows of tables.
//!
//! In: the tables' events and times. Out: the event that is shown, the windows of it that are wanted, and by which samples are told apart.

use super::BATCH_ROWS;
use super::columns::{Cells, Column, Table, Texts};
use super::group::needed;
use crate::clock::shown;
use crate::input::{Error, ReadOptions};
use crate::parquet_schema::{EventFacts, Facts, KEY};
use crate::profile::{Unit, Window, WindowIndex, WindowTotals};
use crate::text::number::counted;
use foldhash::{HashMap, HashSet};
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Begin and length of a window, in nanoseconds, as rows have them.
type Raw = (Option<i64>, i64);

/// Events and windows of tables.
pub(super) struct Survey {
    /// The event that is shown.
    pub(super) event: String,
    pub(super) facts: EventFacts,
    pub(super) kernel: Option<String>,
    is_asked: bool,
    events: BTreeSet<String>,
    unit: Option<String>,
    windows: HashSet<Raw>,
}

impl Survey {
    /// One of no table, for the event that was asked for, or the first that is there.
    pub(super) fn new(asked: Option<&str>) -> Self {
        Self {
            event: asked.unwrap_or_default().to_owned(),
            facts: EventFacts::default(),
            kernel: None,
            is_asked: asked.is_some(),
            events: BTreeSet::new(),
            unit: None,
            windows: HashSet::default(),
        }
    }

    /// Sees a table.
    pub(super) fn see(&mut self, table: &mut Table, texts: &mut Texts) -> Result<(), Error> {
        let facts = table.value(KEY).and_then(Facts::read).unwrap_or_default();
        let mut cells = (Cells::default(), Cells::default());
        let (mut times, mut durations) = (Cells::default(), Cells::default());
        let mut known = None;
        for group in 0..table.groups() {
            let rows = table.rows(group)?;
            let mut events = needed(table.column(group, "event")?, "event")?;
            let mut units = needed(table.column(group, "unit")?, "unit")?;
            let mut time = needed(table.column(group, "time")?, "time")?;
            let mut duration = needed(table.column(group, "duration_ns")?, "duration_ns")?;
            let mut done = 0;
            while done < rows {
                let batch = BATCH_ROWS.min(rows - done);
                done += batch;
                Column::texts(&mut events, batch, texts, &mut cells.0)?;
                Column::texts(&mut units, batch, texts, &mut cells.1)?;
                Column::numbers(&mut time, batch, &mut times)?;
                Column::numbers(&mut duration, batch, &mut durations)?;
                for row in 0..batch {
                    let event = cells.0.all[row];
                    if known.is_none_or(|(known, _)| known != event) {
                        let name = texts.get(event).unwrap_or_default();
                        if !self.is_asked && self.events.is_empty() {
                            let first = facts.events.first();
                            self.event = first.map_or(name, |first| &first.name).to_owned();
                        }
                        self.events.insert(name.to_owned());
                        known = Some((event, name == self.event));
                    }
                    if known.is_some_and(|(_, is_shown)| is_shown) {
                        let window = (times.all[row], durations.all[row].unwrap_or(0).max(0));
                        self.windows.insert(window);
                        if self.unit.is_none() {
                            self.unit = texts.get(cells.1.all[row]).map(str::to_owned);
                        }
                    }
                }
            }
        }
        if self.kernel.is_none() {
            self.kernel = facts.kernel;
        }
        if self.facts.name.is_empty()
            && let Some(own) = { facts.events }
                .into_iter()
                .find(|of| of.name == self.event)
        {
            self.facts = own;
        }
        Ok(())
    }

    /// Unit of the weights.
    pub(super) fn unit(&self) -> Unit {
        match self.unit.as_deref() {
            None | Some("samples") => Unit::Samples,
            Some("nanoseconds") => Unit::Nanoseconds,
            Some(event) => Unit::Events(event.to_owned()),
        }
    }

    /// The events that are not shown, in a sentence.
    pub(super) fn others(&self) -> Option<String> {
        let others = self.events.iter().filter(|name| **name != self.event);
        let others: Vec<&str> = others.map(String::as_str).collect();
        (!others.is_empty())
            .then(|| format!("{}: choose one with --sample-type", others.join(", ")))
    }

    /// The windows that are wanted.
    pub(super) fn windows(&self, options: &ReadOptions<'_>) -> Result<Windows, Error> {
        if self.windows.is_empty() && self.is_asked {
            let events: Vec<&str> = self.events.iter().map(String::as_str).collect();
            let problem = format!("it has no `{}`; it has {}", self.event, events.join(", "));
            return Err(Error::Whole(problem));
        }
        let mut all: Vec<Raw> = self.windows.iter().copied().collect();
        all.sort_unstable();
        let (first, last) = (all.first(), all.last());
        if let Some(time) = options.time {
            let began = first.and_then(|(began, _)| *began);
            let began = began.ok_or_else(|| {
                let problem = "nothing says when its samples were taken; leave --from and --to out";
                Error::whole(problem)
            })?;
            let range = time(at(began));
            let (from, to) = (at(began), last.map_or(at(began), |last| end(*last)));
            all.retain(|window| {
                window.0.is_some_and(|begin| at(begin) < range.end) && end(*window) > range.start
            });
            if all.is_empty() {
                return Err(Error::Whole(format!(
                    "none of its windows is of that time; they begin at {} and end at {}",
                    shown(from),
                    shown(to)
                )));
            }
        }
        Ok(Windows::new(&all, self.windows.len(), options.windows))
    }
}

/// A time that a table has.
fn at(nanoseconds: i64) -> SystemTime {
    let since = Duration::from_nanos(nanoseconds.unsigned_abs());
    let time = match nanoseconds < 0 {
        true => UNIX_EPOCH.checked_sub(since),
        false => UNIX_EPOCH.checked_add(since),
    };
    time.unwrap_or(UNIX_EPOCH)
}

fn end((begin, duration): Raw) -> SystemTime {
    let begin = at(begin.unwrap_or(0));
    let duration = Duration::from_nanos(duration.unsigned_abs());
    begin.checked_add(duration).unwrap_or(begin)
}

/// Windows that are wanted.
pub(super) struct Windows {
    /// By which of these samples are told apart.
    places: HashMap<Raw, WindowIndex>,
    /// How many there are, wanted or not.
    all: usize,
    totals: Vec<WindowTotals>,
    started: Option<SystemTime>,
    /// The last that was asked for.
    last: Option<(Raw, Option<WindowIndex>)>,
}

impl Windows {
    /// Some of `all`, in their order, as at most so many.
    fn new(options: &[Raw], all: usize, most: usize) -> Self {
        let started = options.first().and_then(|(began, _)| began.map(at));
        let since = |time: SystemTime| {
            let since = started.and_then(|started| time.duration_since(started).ok());
            since.unwrap_or_default()
        };
        let totals = options.iter().map(|window| WindowTotals {
            window: Window {
                start: since(at(window.0.unwrap_or(0))),
                end: match started {
                    Some(_) => since(end(*window)),
                    None => Duration::from_nanos(window.1.unsigned_abs()),
                },
            },
            ..WindowTotals::default()
        });
        let mut totals: Vec<WindowTotals> = totals.collect();
        let mut together = 0;
        while totals.len() > most.max(1) {
            totals = WindowTotals::halved(&totals);
            together += 1;
        }
        let places = (0_u32..).zip(options);
        let places = places.map(|(place, window)| (*window, WindowIndex(place >> together)));
        Self {
            places: places.collect(),
            all,
            totals,
            started,
            last: None,
        }
    }

    /// The place of a row's window among those that are wanted.
    pub(super) fn index(
        &mut self,
        time: Option<i64>,
        duration: Option<i64>,
    ) -> Option<WindowIndex> {
        let window = (time, duration.unwrap_or(0).max(0));
        if let Some((last, place)) = self.last
            && last == window
        {
            return place;
        }
        let place = self.places.get(&window).copied();
        self.last = Some((window, place));
        place
    }

    /// Sums of a window.
    pub(super) fn totals(&mut self, window: WindowIndex) -> Option<&mut WindowTotals> {
        self.totals.get_mut(window.0 as usize)
    }

    /// When the first of them began.
    pub(super) fn started(&self) -> Option<SystemTime> {
        self.started
    }

    /// All of their time, from the first on.
    pub(super) fn window(&self) -> Window {
        let ends = self.totals.iter().map(|totals| totals.window.end);
        Window::until(ends.max().unwrap_or_default())
    }

    /// Sums of each; none where nobody knows when they were.
    pub(super) fn into_totals(self) -> Vec<WindowTotals> {
        match self.started {
            Some(_) => self.totals,
            None => Vec::new(),
        }
    }

    /// Notes on them: those of the recording, where they are all of one, and else sums.
    pub(super) fn notes(&self, is_one: bool, balance: &[String]) -> Vec<(&'static str, String)> {
        let taken = self.places.len();
        if is_one && taken == self.all && !balance.is_empty() {
            return balance
                .iter()
                .map(|line| ("comment", line.clone()))
                .collect();
        }
        let sum =
            |of: fn(&WindowTotals) -> u64| self.totals.iter().map(of).fold(0, u64::saturating_add);
        let of_windows = format!("{taken} of {}", counted(self.all as u64, "window"));
        let lost = match sum(|totals| totals.lost) {
            0 => ("lost", "nothing".to_owned()),
            lost => ("LOST", counted(lost, "firing")),
        };
        vec![("shown", of_windows), lost]
    }
}
