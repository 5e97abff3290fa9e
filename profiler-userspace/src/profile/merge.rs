//! Several profiles as one.
//!
//! In: profiles of the same unit, whose waits are shown alike. Out: one that has the samples of all. Weight is
//! conserved. Never: adds up what counts different things.

use super::model::{Line, Location, Profile, Sample, Waker};
use super::normalized::{LocationIndex, NormalizedStack, NormalizedStackIndex, WakerIndex};
use super::off_cpu_view::{OffCpuView, Wakers};
use super::{Activity, FunctionIndex, LabelsIndex, MappingIndex, WindowIndex};

/// Why profiles are not merged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    /// They count different things.
    #[error("one profile counts {unit}, the other {added}; merge profiles of one event")]
    Unit {
        /// What the first counts.
        unit: String,
        /// What the other counts.
        added: String,
    },
    /// They show waits differently.
    #[error(
        "the profiles show waits differently; merge profiles that were recorded with the same flags"
    )]
    Waits,
}

impl Profile {
    /// Adds the samples of another profile.
    ///
    /// # Errors
    /// When they count different things, or show waits differently.
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        if self.unit != other.unit {
            return Err(MergeError::Unit {
                unit: self.unit.noun().to_owned(),
                added: other.unit.noun().to_owned(),
            });
        }
        one_view(self.off_cpu, other.off_cpu)?;
        self.add_event(other)?;
        if self.origin.activity != other.origin.activity {
            self.origin.activity = Activity::Running;
        }
        let ours = &mut self.origin.period_ns;
        *ours = ours.filter(|ns| Some(*ns) == other.origin.period_ns);
        Ok(())
    }

    /// Adds the samples of another event behind its own. What its weights count is for the caller to remember.
    ///
    /// # Errors
    /// When both show waits differently.
    pub fn add_event(&mut self, other: &Self) -> Result<(), MergeError> {
        self.off_cpu = view_beside(self.off_cpu, other.off_cpu)?;
        self.window.start = self.window.start.min(other.window.start);
        self.window.end = self.window.end.max(other.window.end);
        // Recordings of different times have no windows in common.
        self.windows.clear();
        for sample in &mut self.samples {
            sample.window = WindowIndex::default();
        }
        let started = [self.origin.started, other.origin.started];
        self.origin.started = started.into_iter().flatten().min();
        self.add(other);
        Ok(())
    }

    fn add(&mut self, other: &Self) {
        let mappings: Vec<MappingIndex> = (other.mappings.iter())
            .map(|mapping| self.mapping(mapping.clone()))
            .collect();
        let functions: Vec<FunctionIndex> = (other.functions.iter())
            .map(|function| self.function(function.clone()))
            .collect();
        let labels: Vec<LabelsIndex> = (other.labels.iter())
            .map(|labels| self.labels(labels.clone()))
            .collect();
        // Lines that are not shown stay hidden beside those that are.
        let has_lines = other.line_frames || !self.line_frames;
        let locations: Vec<LocationIndex> = (other.locations.iter())
            .map(|location| {
                let lines = other.lines_at(location).iter().map(|line| Line {
                    function: functions[line.function.0 as usize],
                    line: if has_lines { line.line } else { 0 },
                });
                let lines = self.lines(lines);
                self.location(Location {
                    mapping: location.mapping.map(|mapping| mappings[mapping.0 as usize]),
                    lines,
                    ..*location
                })
            })
            .collect();
        let stacks: Vec<NormalizedStackIndex> = (other.stacks.iter())
            .map(|stack| {
                let again = stack.locations.iter().map(|at| locations[at.0 as usize]);
                self.stack(NormalizedStack {
                    locations: again.collect(),
                    ..*stack
                })
            })
            .collect();
        let stack = |index: NormalizedStackIndex| stacks[index.0 as usize];
        let wakers: Vec<WakerIndex> = (other.wakers.iter())
            .map(|waker| {
                self.waker(Waker {
                    labels: labels[waker.labels.0 as usize],
                    user: waker.user.map(stack),
                    kernel: waker.kernel.map(stack),
                    interrupt: waker.interrupt,
                })
            })
            .collect();
        for sample in &other.samples {
            self.push(Sample {
                labels: labels[sample.labels.0 as usize],
                user: sample.user.map(stack),
                kernel: sample.kernel.map(stack),
                waker: sample.waker.map(|waker| wakers[waker.0 as usize]),
                window: WindowIndex::default(),
                ..*sample
            });
        }
    }
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
    use crate::profile::fold::{FoldStyle, fold, parse};
    use proptest::prelude::*;

    fn text(profile: &Profile) -> String {
        let mut text = Vec::new();
        fold(profile, FoldStyle::default(), &mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn profiles_of_different_units_are_not_merged() {
        let mut samples = parse(b"a;b 1\n", Unit::Samples).unwrap();
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
                reasons: false,
                kernel: true,
                ran: false,
                wakers,
            });
            profile
        };
        let (of_calls, of_waits) = (with(true, Wakers::None), with(false, Wakers::None));
        assert!(of_calls.clone().add_event(&of_waits).is_ok());
        assert_eq!(of_calls.clone().merge(&of_waits), Err(MergeError::Waits));
        let of_wakers = with(false, Wakers::Above);
        assert_eq!(
            of_calls.clone().add_event(&of_wakers),
            Err(MergeError::Waits)
        );
    }

    proptest! {
        #[test]
        fn merging_is_folding_both_texts(texts in prop::array::uniform2("([a-c](;[a-c](_\\[[kji]\\])?){0,3} [1-9]\n){0,5}")) {
            let [one, other] = texts;
            let read = |text: &str| parse(text.as_bytes(), Unit::Samples).unwrap();
            let mut merged = read(&one);
            merged.merge(&read(&other)).unwrap();
            prop_assert_eq!(text(&merged), text(&read(&(one + &other))));
        }
    }
}
