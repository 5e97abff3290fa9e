//! Several windows made one profile.
//!
//! In: profiles, each with its own table of frames. Out: one profile that spans all their windows.
//! Never: a weight or a count that gets lost. Equal stacks of several windows are summed, and stay in
//! the order in which they were first seen.

use super::{FrameId, Profile, Sample, Unit, Window};
use std::collections::HashMap;

/// Two windows whose weights cannot be added.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot add a profile of {added} to one of {unit}; merge only profiles of the same event")]
pub struct UnitMismatch {
    unit: String,
    added: String,
}

/// Merges all `windows`, whose weights are in `unit`.
pub fn merge(
    unit: Unit,
    windows: impl IntoIterator<Item = Profile>,
) -> Result<Profile, UnitMismatch> {
    let mut merge = Merge::new(unit);
    for window in windows {
        merge.add(window)?;
    }
    Ok(merge.finish())
}

/// A merge that is given its windows one by one, so that each can be dropped once it is in.
#[derive(Debug)]
pub struct Merge {
    unit: Unit,
    /// All windows so far. One window alone stays as it is, which costs nothing.
    profile: Option<Profile>,
    /// Where each stack is among the samples; empty until there are two windows.
    sums: HashMap<Box<[FrameId]>, Sum>,
}

#[derive(Debug)]
struct Sum {
    /// How many other stacks were seen before.
    order: usize,
    weight: u64,
    count: u64,
}

impl Merge {
    /// Nothing yet, in `unit`.
    pub fn new(unit: Unit) -> Self {
        Self {
            unit,
            profile: None,
            sums: HashMap::new(),
        }
    }

    /// Adds one window.
    pub fn add(&mut self, window: Profile) -> Result<(), UnitMismatch> {
        if window.unit != self.unit {
            return Err(UnitMismatch {
                unit: self.unit.noun().to_owned(),
                added: window.unit.noun().to_owned(),
            });
        }
        let Some(profile) = &mut self.profile else {
            self.profile = Some(window);
            return Ok(());
        };
        profile.window.start = profile.window.start.min(window.window.start);
        profile.window.end = profile.window.end.max(window.window.end);

        let Profile {
            frames, samples, ..
        } = window;
        let ids: Vec<FrameId> = frames
            .into_iter()
            .map(|frame| profile.intern(frame))
            .collect();
        let first = std::mem::take(&mut profile.samples);
        self.sums.reserve(first.len());
        for sample in first {
            sum(&mut self.sums, sample);
        }
        for mut sample in samples {
            sample
                .stack
                .iter_mut()
                .for_each(|id| *id = ids[id.0 as usize]);
            sum(&mut self.sums, sample);
        }
        Ok(())
    }

    /// The sum of all that was added.
    pub fn finish(self) -> Profile {
        let mut profile = self
            .profile
            .unwrap_or_else(|| Profile::new(self.unit, Window::default()));
        let mut sums: Vec<_> = self.sums.into_iter().collect();
        sums.sort_unstable_by_key(|(_, sum)| sum.order);
        let samples = sums
            .into_iter()
            .map(|(stack, Sum { weight, count, .. })| Sample {
                stack,
                weight,
                count,
            });
        profile.samples.extend(samples);
        profile
    }
}

fn sum(
    sums: &mut HashMap<Box<[FrameId]>, Sum>,
    Sample {
        stack,
        weight,
        count,
    }: Sample,
) {
    let order = sums.len();
    let sum = sums.entry(stack).or_insert(Sum {
        order,
        weight: 0,
        count: 0,
    });
    sum.weight += weight;
    sum.count += count;
}

#[cfg(test)]
mod tests;
