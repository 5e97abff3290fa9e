//! How walks ended.
//!
//! In: a [`NormalizedProfile`] profile. Out: numbers of firings, of which those with a waker have two user stacks. Names nothing but modules.

use super::objects::Objects;
use crate::process::Processes;
use crate::profile::FrameKind;
use crate::profile::normalized::{Location, LocationIndex, NormalizedProfile, NormalizedStack};
use profiler_common::abi::{Fallbacks, StackEnd};
use std::collections::BTreeMap;

/// How many firings' user stacks ended in each way: those that go on at an interpreter's frames behind a mark, by that mark.
pub fn stack_ends(normalized: &NormalizedProfile) -> BTreeMap<StackEnd, u64> {
    let marks = Marks::of(normalized);
    let mut counts = BTreeMap::new();
    for (stack, count) in user_stacks(normalized) {
        *counts.entry(marks.end(stack).0).or_default() += count;
    }
    counts
}

/// How many firings' user stacks used each fallback, in the order of [`Fallbacks::EACH`].
pub fn fallbacks(normalized: &NormalizedProfile) -> [u64; Fallbacks::EACH.len()] {
    let mut counts = [0; _];
    for (stack, count) in user_stacks(normalized) {
        for (sum, fallback) in counts.iter_mut().zip(Fallbacks::EACH) {
            *sum += if stack.fallbacks.has(fallback) {
                count
            } else {
                0
            };
        }
    }
    counts
}

/// How many firings' user stacks ended before their root, by the reason and by the module in which the
/// last frame lies; if `exact`, with how far into the file or the memory it does. Of code that a process
/// made and listed, it is the function.
pub fn cut_short(
    normalized: &NormalizedProfile,
    objects: &Objects,
    processes: &Processes,
    exact: bool,
) -> BTreeMap<(StackEnd, String), u64> {
    let marks = Marks::of(normalized);
    let mut counts = BTreeMap::new();
    for (stack, count) in user_stacks(normalized) {
        let (end, walked) = marks.end(stack);
        if end == StackEnd::Root {
            continue;
        }
        let last = walked
            .last()
            .map(|location| normalized.location_at(*location));
        // Of a caller, where its call will return to.
        let behind = u64::from(walked.len() > 1);
        let module = match last {
            Some(Location::At { object, offset }) => {
                let module = objects.module(object, processes);
                match exact {
                    true => format!("{module}+{:#x}", offset.saturating_add(behind)),
                    false => module,
                }
            }
            Some(Location::Named(name) | Location::Within { name, .. }) => {
                normalized.names()[name as usize].name.clone()
            }
            Some(Location::Kernel(_) | Location::Unknown) | None => "[unknown]".to_owned(),
        };
        *counts.entry((end, module)).or_default() += count;
    }
    counts
}

/// Locations that are marks within stacks, where frames are missing.
struct Marks(BTreeMap<LocationIndex, StackEnd>);

impl Marks {
    fn of(normalized: &NormalizedProfile) -> Self {
        let end = |location: &Location| {
            let Location::Named(name) = location else {
                return None;
            };
            let function = &normalized.names()[*name as usize];
            let is_of = |end: &StackEnd| end.mark() == Some(&*function.name);
            let ends = StackEnd::ALL.into_iter();
            // Behind a guess, no frame is known to be missing.
            let mut ends = ends.filter(|end| *end != StackEnd::Guess);
            (function.kind == FrameKind::Mark).then(|| ends.find(is_of))?
        };
        let locations = normalized.locations().iter().enumerate();
        let known = locations.filter_map(|(index, location)| {
            Some((LocationIndex(u32::try_from(index).ok()?), end(location)?))
        });
        Self(known.collect())
    }

    /// How the walk of a stack ended, and where it had come by then.
    fn end<'s>(&self, stack: &'s NormalizedStack) -> (StackEnd, &'s [LocationIndex]) {
        // Most profiles have no such marks.
        let looked_at = if self.0.is_empty() {
            &[]
        } else {
            &*stack.locations
        };
        let mut all = looked_at.iter().enumerate();
        match all.find_map(|(at, location)| Some((at, *self.0.get(location)?))) {
            Some((at, end)) => (end, &stack.locations[..at]),
            None => (stack.end, &stack.locations),
        }
    }
}

fn user_stacks(normalized: &NormalizedProfile) -> impl Iterator<Item = (&NormalizedStack, u64)> {
    let stacks = normalized.samples().flat_map(|(key, sums)| {
        let waker = key.waker.map(|index| normalized.waker_at(index));
        let woke = waker.and_then(|waker| waker.user);
        [(key.user, sums.count), (woke, sums.count)]
    });
    stacks.filter_map(|(index, count)| Some((normalized.stack_at(index?), count)))
}
