//! How walks ended.
//!
//! In: a [`Located`] profile. Out: numbers of firings, of which those with a waker have two user stacks. Names nothing but modules.

use super::objects::Objects;
use crate::process::Processes;
use crate::profile::located::{Located, LocatedStack, Spot};
use profiler_common::abi::StackEnd;
use std::collections::BTreeMap;

/// How many firings' user stacks ended in each way.
pub fn stack_ends(located: &Located) -> BTreeMap<StackEnd, u64> {
    let mut counts = BTreeMap::new();
    for (stack, count) in user_stacks(located) {
        *counts.entry(stack.end).or_default() += count;
    }
    counts
}

/// How many firings' user stacks were guessed in part; see [`LocatedStack::guessed`].
pub fn guessed(located: &Located) -> u64 {
    user_stacks(located)
        .filter(|(stack, _)| stack.guessed)
        .map(|(_, count)| count)
        .sum()
}

/// How many firings' user stacks ended before their root, by the reason and by the module in which the
/// last frame lies; if `exact`, with how far into the file or the memory it does. Of code that a process
/// made and told of, it is the function.
pub fn cut_short(
    located: &Located,
    objects: &Objects,
    processes: &Processes,
    exact: bool,
) -> BTreeMap<(StackEnd, String), u64> {
    let mut counts = BTreeMap::new();
    for (stack, count) in user_stacks(located) {
        if stack.end == StackEnd::Root {
            continue;
        }
        let last = stack.spots.last().map(|spot| located.spot_at(*spot));
        // Of a caller, where its call will return to.
        let behind = u64::from(stack.spots.len() > 1);
        let module = match last {
            Some(Spot::At { object, offset }) => {
                let module = objects.module(object, processes);
                match exact {
                    true => format!("{module}+{:#x}", offset.saturating_add(behind)),
                    false => module,
                }
            }
            Some(Spot::Named(name)) => located.names()[name as usize].name.clone(),
            Some(Spot::Kernel(_) | Spot::Unknown) | None => "[unknown]".to_owned(),
        };
        *counts.entry((stack.end, module)).or_default() += count;
    }
    counts
}

fn user_stacks(located: &Located) -> impl Iterator<Item = (&LocatedStack, u64)> {
    let stacks = located.samples().flat_map(|(key, sums)| {
        let waker = key.waker.map(|index| located.waker_at(index));
        let woke = waker.and_then(|waker| waker.user);
        [(key.user, sums.count), (woke, sums.count)]
    });
    stacks.filter_map(|(index, count)| Some((located.stack_at(index?), count)))
}
