//! Several profiles as one.
//!
//! In: profiles of the same unit, whose waits are shown alike. Out: one that has the samples of all. Weight is
//! conserved. Never: adds up what counts different things.

use super::model::{Line, Lines, Location, Profile, Sample, Waker};
use super::normalized::{LocationIndex, NormalizedStackIndex, WakerIndex};
use super::off_cpu_view::{OffCpuView, Wakers};
use super::{Activity, FunctionIndex, LabelsIndex, MappingIndex, WindowIndex};
use foldhash::HashMap;
use std::collections::hash_map::Entry;

/// Why profiles are not merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// They count different things.
    #[error("one profile counts {unit}, the other {added}; merge profiles of one event")]
    Unit {
        /// Unit of the first.
        unit: String,
        /// Unit of the other.
        added: String,
    },
    /// They show waits differently.
    #[error(
        "the profiles show waits differently; merge profiles that were recorded with the same flags"
    )]
    Waits,
}

/// A profile to which others are added. What is equal is there once, and equal samples are added up.
#[derive(Clone, Debug)]
pub struct Merging {
    profile: Profile,
    /// None before there is something to add.
    known: Option<MergeIndex>,
}

/// Places of what a profile has in lists.
#[derive(Clone, Debug, Default)]
struct MergeIndex {
    locations: HashMap<(Location, Box<[Line]>), LocationIndex>,
    wakers: HashMap<Waker, WakerIndex>,
    /// None where equal samples stay apart.
    samples: Option<HashMap<Sample, usize>>,
}

impl Merging {
    /// Adds to this profile.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            known: None,
        }
    }

    /// Adds the samples of another profile.
    ///
    /// # Errors
    /// When they count different things, or show waits differently.
    pub fn merge(&mut self, other: &Profile) -> Result<(), MergeError> {
        let profile = &mut self.profile;
        if profile.unit != other.unit {
            return Err(MergeError::Unit {
                unit: profile.unit.noun().to_owned(),
                added: other.unit.noun().to_owned(),
            });
        }
        one_view(profile.off_cpu, other.off_cpu)?;
        let origin = profile.origin.clone();
        begin(profile, other)?;
        let known = self.known.get_or_insert_with(|| MergeIndex::of(profile));
        if known.samples.is_none() {
            known.samples = Some(HashMap::default());
            for sample in profile.take_samples() {
                known.push(sample, profile);
            }
        }
        known.add(other, profile);
        let ours = &mut profile.origin;
        if origin.activity != other.origin.activity {
            ours.activity = Activity::Running;
        }
        ours.period_ns = (ours.period_ns).filter(|ns| Some(*ns) == other.origin.period_ns);
        if ours.event != other.origin.event {
            ours.event = None;
        }
        Ok(())
    }

    /// Adds the samples of another event behind its own, which stay as they are. What its weights count is for the caller to
    /// remember.
    ///
    /// # Errors
    /// When both show waits differently.
    pub fn add_event(&mut self, other: &Profile) -> Result<(), MergeError> {
        let profile = &mut self.profile;
        begin(profile, other)?;
        let known = self.known.get_or_insert_with(|| MergeIndex::of(profile));
        known.samples = None;
        known.add(other, profile);
        Ok(())
    }

    /// The profile so far.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The profile with all that was added.
    pub fn into_profile(self) -> Profile {
        self.profile
    }
}

/// Makes of all that is not of samples that of both.
fn begin(profile: &mut Profile, other: &Profile) -> Result<(), MergeError> {
    profile.off_cpu = view_beside(profile.off_cpu, other.off_cpu)?;
    profile.window.start = profile.window.start.min(other.window.start);
    profile.window.end = profile.window.end.max(other.window.end);
    let started = [profile.origin.started, other.origin.started];
    profile.origin.started = started.into_iter().flatten().min();
    if profile.origin.machine != other.origin.machine {
        profile.origin.machine = None;
    }
    // Recordings of different times have no windows in common.
    if !std::mem::take(&mut profile.windows).is_empty() {
        for sample in &mut profile.samples {
            sample.window = WindowIndex::default();
        }
    }
    Ok(())
}

impl MergeIndex {
    fn of(profile: &Profile) -> Self {
        let locations = (0..).map(LocationIndex).zip(&profile.locations);
        let locations = locations.map(|(index, at)| (place(at, profile.lines_at(at)), index));
        let wakers = (0..).map(WakerIndex).zip(&profile.wakers);
        Self {
            locations: locations.collect(),
            wakers: wakers.map(|(index, waker)| (*waker, index)).collect(),
            samples: None,
        }
    }

    /// Adds a sample, all parts of which are in the profile.
    fn push(&mut self, sample: Sample, profile: &mut Profile) {
        let Some(samples) = &mut self.samples else {
            return profile.push(sample);
        };
        let key = Sample {
            weight: 0,
            count: 0,
            ..sample
        };
        match samples.entry(key) {
            Entry::Occupied(place) => {
                let known = &mut profile.samples[*place.get()];
                known.weight = known.weight.saturating_add(sample.weight);
                known.count = known.count.saturating_add(sample.count);
            }
            Entry::Vacant(place) => {
                place.insert(profile.samples.len());
                profile.push(sample);
            }
        }
    }

    /// Adds the samples of another profile to this one.
    fn add(&mut self, other: &Profile, profile: &mut Profile) {
        let mappings: Vec<MappingIndex> = (other.mappings.iter())
            .map(|mapping| profile.mapping(mapping.clone()))
            .collect();
        let functions: Vec<FunctionIndex> = (other.functions.iter())
            .map(|function| profile.function(function.clone()))
            .collect();
        let labels: Vec<LabelsIndex> = (other.labels.iter())
            .map(|labels| profile.labels(labels.clone()))
            .collect();
        // Lines that are not shown stay hidden beside those that are.
        let has_lines = other.line_frames || !profile.line_frames;
        let locations: Vec<LocationIndex> = (other.locations.iter())
            .map(|location| {
                let lines = other.lines_at(location).iter().map(|line| Line {
                    function: functions[line.function.0 as usize],
                    line: if has_lines { line.line } else { 0 },
                });
                let lines: Box<[Line]> = lines.collect();
                let location = Location {
                    mapping: location.mapping.map(|mapping| mappings[mapping.0 as usize]),
                    ..*location
                };
                let known = self.locations.entry(place(&location, &lines));
                *known.or_insert_with(|| {
                    let lines = profile.lines(lines);
                    profile.location(Location { lines, ..location })
                })
            })
            .collect();
        let stacks = profile.stacks.join(&other.stacks, &locations);
        let stack = |index: NormalizedStackIndex| stacks[index.0 as usize];
        let wakers: Vec<WakerIndex> = (other.wakers.iter())
            .map(|waker| {
                let waker = Waker {
                    labels: labels[waker.labels.0 as usize],
                    user: waker.user.map(stack),
                    kernel: waker.kernel.map(stack),
                    interrupt: waker.interrupt,
                };
                *(self.wakers.entry(waker)).or_insert_with(|| profile.waker(waker))
            })
            .collect();
        for sample in &other.samples {
            let sample = Sample {
                window: WindowIndex::default(),
                labels: labels[sample.labels.0 as usize],
                user: sample.user.map(stack),
                kernel: sample.kernel.map(stack),
                waker: sample.waker.map(|waker| wakers[waker.0 as usize]),
                ..*sample
            };
            self.push(sample, profile);
        }
    }
}

/// All that tells a location from others, wherever its lines are kept.
fn place(location: &Location, lines: &[Line]) -> (Location, Box<[Line]>) {
    let location = Location {
        lines: Lines::default(),
        ..*location
    };
    (location, lines.into())
}

/// How the waits of two profiles are shown, if that is alike. Where one has none, nothing is said of who would end them.
fn one_view(
    ours: Option<OffCpuView>,
    theirs: Option<OffCpuView>,
) -> Result<Option<OffCpuView>, MergeError> {
    match (ours, theirs) {
        _ if ours == theirs => Ok(ours),
        (Some(view), None) | (None, Some(view)) if view.wakers == Wakers::None => Ok(Some(view)),
        _ => Err(MergeError::Waits),
    }
}

/// How waits are shown where events stand beside each other, whose kernel stacks are cut already: what is left to say of them
/// must be alike.
fn view_beside(
    ours: Option<OffCpuView>,
    theirs: Option<OffCpuView>,
) -> Result<Option<OffCpuView>, MergeError> {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) if (ours.ran, ours.wakers) == (theirs.ran, theirs.wakers) => {
            Ok(Some(ours))
        }
        _ => one_view(ours, theirs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Unit;
    use crate::profile::fold::{self, FoldStyle, parse};
    use proptest::prelude::*;

    fn text(profile: &Profile) -> String {
        fold::text(profile, FoldStyle::default())
    }

    #[test]
    fn profiles_of_different_units_are_not_merged() {
        let mut samples = Merging::new(parse(b"a;b 1\n", Unit::Samples).unwrap());
        let time = parse(b"a;b 1\n", Unit::Nanoseconds).unwrap();
        let error = samples.merge(&time).unwrap_err().to_string();
        assert!(error.contains("samples") && error.contains("µs"), "{error}");
    }

    #[test]
    fn events_stand_beside_each_other_whatever_was_cut_off_their_stacks() {
        let with = |scheduler, wakers| {
            let mut profile = parse(b"a;b 1\n", Unit::Samples).unwrap();
            profile.off_cpu = Some(OffCpuView {
                scheduler,
                wakers,
                ..OffCpuView::PLAIN
            });
            profile
        };
        let (of_calls, of_waits) = (with(true, Wakers::None), with(false, Wakers::None));
        let mut of_calls = Merging::new(of_calls);
        assert!(of_calls.clone().add_event(&of_waits).is_ok());
        assert_eq!(of_calls.merge(&of_waits), Err(MergeError::Waits));
        let of_wakers = with(false, Wakers::Above);
        assert_eq!(of_calls.add_event(&of_wakers), Err(MergeError::Waits));
    }

    proptest! {
        /// Weight is kept whatever is merged with what first, and what is equal is there once.
        #[test]
        fn merging_is_folding_all_texts(texts in prop::collection::vec("([a-c](;[a-c](_\\[[kji]\\])?){0,3} [1-9]\n){0,5}", 1..6)) {
            let read = |text: &str| parse(text.as_bytes(), Unit::Samples).unwrap();
            let all = read(&texts.concat());
            let merged = |texts: &[String]| {
                let (first, others) = texts.split_first().unwrap();
                let mut merged = Merging::new(read(first));
                others.iter().for_each(|other| merged.merge(&read(other)).unwrap());
                merged.into_profile()
            };
            let (one, other) = texts.split_at(texts.len() / 2);
            let mut grouped = Merging::new(merged(if one.is_empty() { other } else { one }));
            if !one.is_empty() {
                grouped.merge(&merged(other)).unwrap();
            }
            let backwards: Vec<String> = texts.iter().rev().cloned().collect();
            for merged in [merged(&texts), grouped.into_profile(), merged(&backwards)] {
                prop_assert_eq!(text(&merged), text(&all));
                prop_assert_eq!(merged.samples().len(), all.samples().len());
                prop_assert_eq!(merged.stacks.len(), all.stacks.len());
                prop_assert_eq!(merged.locations().len(), all.locations().len());
            }
        }
    }
}
