//! How walks ended.
//!
//! In: a [`NormalizedProfile`] profile. Out: numbers of firings, of which those with a waker have two user stacks. Names nothing but modules.

use super::objects::Objects;
use crate::process::Processes;
use crate::profile::normalized::{Location, NormalizedProfile, NormalizedStack};
use profiler_common::abi::{Fallbacks, StackEnd};
use std::collections::BTreeMap;

/// How many firings' user stacks ended in each way.
pub fn stack_ends(normalized: &NormalizedProfile) -> BTreeMap<StackEnd, u64> {
    let mut counts = BTreeMap::new();
    for (stack, count) in user_stacks(normalized) {
        *counts.entry(stack.end).or_default() += count;
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
    let mut counts = BTreeMap::new();
    for (stack, count) in user_stacks(normalized) {
        if stack.end == StackEnd::Root {
            continue;
        }
        let last = stack
            .locations
            .last()
            .map(|location| normalized.location_at(*location));
        // Of a caller, where its call will return to.
        let behind = u64::from(stack.locations.len() > 1);
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
        *counts.entry((stack.end, module)).or_default() += count;
    }
    counts
}

fn user_stacks(normalized: &NormalizedProfile) -> impl Iterator<Item = (&NormalizedStack, u64)> {
    let stacks = normalized.samples().flat_map(|(key, sums)| {
        let waker = key.waker.map(|index| normalized.waker_at(index));
        let woke = waker.and_then(|waker| waker.user);
        [(key.user, sums.count), (woke, sums.count)]
    });
    stacks.filter_map(|(index, count)| Some((normalized.stack_at(index?), count)))
}
