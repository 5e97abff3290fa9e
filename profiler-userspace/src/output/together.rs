//! Profiles of several events as one, for formats whose samples have a value for each of them.
//!
//! In: profiles, each with the name of its event. Out: one [`Profile`] whose samples stand in the order of their events,
//! and which of them are whose. Weights of different events are never added up.

use super::value_types;
use crate::profile::{MergeError, Merging, Profile, Sample};
use std::ops::Range;

/// Profiles of several events.
#[derive(Clone, Debug)]
pub struct Together {
    /// With the samples of all.
    all: Merging,
    events: Vec<Event>,
}

/// One of the events.
#[derive(Clone, Debug)]
struct Event {
    /// Which of the samples are its own.
    samples: Range<usize>,
    /// Type and unit of the values that samples have; the weight is the last.
    values: Vec<(String, &'static str)>,
}

/// Where an event's samples have their values.
pub(super) struct Column<'a> {
    pub(super) samples: &'a [Sample],
    /// The place of its first value; behind it are those of the same event.
    pub(super) first: usize,
    /// Whether the number of firings is a value, and the weight another.
    pub(super) is_weighed: bool,
}

impl Together {
    /// A profile alone, whose types need no name of an event.
    pub(super) fn alone(profile: &Profile) -> Vec<(String, &'static str)> {
        let (samples, unit) = value_types::SAMPLES;
        let mut values = vec![(samples.to_owned(), unit)];
        values.extend(value_types::weight(profile));
        values
    }

    /// The first event, which readers show unless told otherwise.
    pub fn new(event: &str, profile: Profile) -> Self {
        let values = values(event, &profile, &[]);
        let all = Merging::new(profile);
        let samples = 0..all.profile().samples().len();
        Self {
            all,
            events: vec![Event { samples, values }],
        }
    }

    /// Adds another event.
    ///
    /// # Errors
    /// When waits are shown differently in both.
    pub fn add(&mut self, event: &str, profile: &Profile) -> Result<(), MergeError> {
        let begin = self.profile().samples().len();
        let values = values(event, profile, &self.events);
        self.all.add_event(profile)?;
        self.events.push(Event {
            samples: begin..self.profile().samples().len(),
            values,
        });
        Ok(())
    }

    /// The samples of all, and what they refer to.
    pub fn profile(&self) -> &Profile {
        self.all.profile()
    }

    /// Type and unit of all values of a sample. The first event's are the last, which some readers take for the usual ones.
    pub(super) fn values(&self) -> Vec<(String, &'static str)> {
        let events = self.events.iter().rev();
        events.flat_map(|event| event.values.clone()).collect()
    }

    /// The samples of each event, the first event's first, and where their values stand.
    pub(super) fn columns(&self) -> Vec<Column<'_>> {
        let mut first = 0;
        let mut columns: Vec<_> = (self.events.iter().rev())
            .map(|event| {
                let begin = first;
                first += event.values.len();
                Column {
                    samples: &self.profile().samples()[event.samples.clone()],
                    first: begin,
                    is_weighed: event.values.len() > 1,
                }
            })
            .collect();
        columns.reverse();
        columns
    }
}

/// The types of an event beside `others`, none of which is called the same.
fn values(event: &str, profile: &Profile, others: &[Event]) -> Vec<(String, &'static str)> {
    let (kind, unit) = match value_types::weight(profile) {
        // Readers know these two, whatever the event is called.
        Some((kind, unit)) if matches!(&*kind, "off_cpu" | "wall") => (kind, Some(unit)),
        Some((_, unit)) => (value_types::word(event), Some(unit)),
        None => (value_types::word(event), None),
    };
    let taken = |kind: &str| {
        let mut values = others.iter().flat_map(|other| &other.values);
        values.any(|(other, _)| other == kind)
    };
    let numbered = (2..).map(|number| format!("{kind}_{number}"));
    let mut names = std::iter::once(kind.clone()).chain(numbered);
    let kind = names.find(|name| !taken(name)).unwrap_or(kind);
    let (samples, count) = value_types::SAMPLES;
    match unit {
        Some(unit) => vec![(format!("{kind}_{samples}"), count), (kind, unit)],
        None => vec![(kind, count)],
    }
}
