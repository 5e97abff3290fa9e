//! How walks ended.
//!
//! In: a [`RawProfile`]. Out: numbers of firings. Names nothing but modules.

use super::backings::module;
use crate::process::{Identity, Processes};
use crate::profile::raw::{RawProfile, RawSample, RawStack};
use profiler_common::abi::StackEnd;
use std::collections::BTreeMap;

/// How many firings' user stacks ended in each way.
pub fn stack_ends(raw: &RawProfile) -> BTreeMap<StackEnd, u64> {
    let mut counts = BTreeMap::new();
    for (sample, stack) in user_stacks(raw) {
        *counts.entry(stack.end).or_default() += sample.count;
    }
    counts
}

/// How many firings' user stacks were guessed in part; see [`RawStack::guessed`].
pub fn guessed(raw: &RawProfile) -> u64 {
    user_stacks(raw)
        .filter(|(_, stack)| stack.guessed)
        .map(|(sample, _)| sample.count)
        .sum()
}

/// How many firings' user stacks ended before their root, by the reason and by the module in which the
/// last frame lies; if `exact`, with how far into the file or the memory it does.
pub fn cut_short(
    raw: &RawProfile,
    processes: &Processes,
    exact: bool,
) -> BTreeMap<(StackEnd, String), u64> {
    let mut counts = BTreeMap::new();
    for (sample, stack) in user_stacks(raw) {
        if stack.end == StackEnd::Root {
            continue;
        }
        let process = processes.get(Identity::from(&sample.who));
        let place = stack
            .addresses
            .last()
            .and_then(|&address| process?.place(address));
        let module = place.map_or_else(
            || "[unknown]".to_owned(),
            |place| {
                let module = module(processes.backing(place.backing));
                if exact {
                    format!("{module}+{:#x}", place.offset)
                } else {
                    module
                }
            },
        );
        *counts.entry((stack.end, module)).or_default() += sample.count;
    }
    counts
}

fn user_stacks(raw: &RawProfile) -> impl Iterator<Item = (&RawSample, &RawStack)> {
    raw.samples
        .iter()
        .filter_map(|sample| Some((sample, raw.stack(sample.user?))))
}
