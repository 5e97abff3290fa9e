//! The distinct stacks of a profile, as one tree: callers that several have in common are there once.
//!
//! In: stacks of locations, whole or a call at a time. Out: their numbers, and the stacks again.

use super::normalized::{LocationIndex, NormalizedStack, NormalizedStackIndex};
use super::paths::{Node, NodeIndex, Paths, upwards};
use profiler_common::abi::{Fallbacks, StackEnd};

/// Distinct stacks by their numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct StackTable {
    paths: Paths<LocationIndex>,
    stacks: Vec<Entry>,
    /// The last stack of no locations, and behind it that which ends at each node.
    last: Vec<Option<NormalizedStackIndex>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    leaf: Option<NodeIndex>,
    end: StackEnd,
    fallbacks: Fallbacks,
    /// Another stack of the same locations, whose walk ended otherwise.
    next: Option<NormalizedStackIndex>,
}

impl StackTable {
    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.stacks.len()
    }

    /// How many nodes their tree has.
    pub(super) fn node_count(&self) -> usize {
        self.paths.nodes().len()
    }

    /// The nodes of their tree.
    pub(super) fn nodes(&self) -> &[Node<LocationIndex>] {
        self.paths.nodes()
    }

    /// The node of a call, which is added when it is not there yet.
    pub(super) fn call(&mut self, caller: Option<NodeIndex>, location: LocationIndex) -> NodeIndex {
        self.paths.child(caller, location)
    }

    /// The number of a stack with this leaf, which is added when it is not there yet.
    pub(super) fn ending(
        &mut self,
        leaf: Option<NodeIndex>,
        end: StackEnd,
        fallbacks: Fallbacks,
    ) -> NormalizedStackIndex {
        let slot = leaf.map_or(0, |leaf| leaf.index() + 1);
        if self.last.len() <= slot {
            self.last.resize(self.node_count() + 1, None);
        }
        let mut at = self.last[slot];
        while let Some(index) = at {
            let known = &self.stacks[index.0 as usize];
            if (known.end, known.fallbacks) == (end, fallbacks) {
                return index;
            }
            at = known.next;
        }
        let number = u32::try_from(self.stacks.len()).expect("fewer than 2^32 stacks");
        let index = NormalizedStackIndex(number);
        self.stacks.push(Entry {
            leaf,
            end,
            fallbacks,
            next: self.last[slot].replace(index),
        });
        index
    }

    /// The number of a whole stack, which is added when it is not there yet.
    pub(super) fn add(&mut self, stack: &NormalizedStack) -> NormalizedStackIndex {
        let leaf = self.paths.place(stack.locations.iter().rev().copied());
        self.ending(leaf, stack.end, stack.fallbacks)
    }

    /// Adds those of another table, whose locations have these numbers here. Returns the numbers that they have here.
    pub(super) fn join(
        &mut self,
        other: &Self,
        locations: &[LocationIndex],
    ) -> Vec<NormalizedStackIndex> {
        let mut nodes = Vec::with_capacity(other.node_count());
        for node in other.nodes() {
            let caller = node.parent.map(|caller: NodeIndex| nodes[caller.index()]);
            nodes.push(self.call(caller, locations[node.frame.0 as usize]));
        }
        let stacks = other.stacks.iter().map(|stack| {
            let leaf = stack.leaf.map(|leaf| nodes[leaf.index()]);
            self.ending(leaf, stack.end, stack.fallbacks)
        });
        stacks.collect()
    }

    /// The stack of a number.
    pub(super) fn at(&self, index: NormalizedStackIndex) -> StackRef<'_> {
        let Entry {
            leaf,
            end,
            fallbacks,
            ..
        } = self.stacks[index.0 as usize];
        StackRef {
            nodes: self.nodes(),
            leaf,
            end,
            fallbacks,
        }
    }

    /// The number of the first stack that is one such location alone.
    pub(super) fn alone(
        &self,
        is_it: impl Fn(LocationIndex) -> bool,
    ) -> Option<NormalizedStackIndex> {
        let is_it = |stack: &Entry| {
            let node = stack.leaf.map(|leaf| self.nodes()[leaf.index()]);
            node.is_some_and(|node| node.parent.is_none() && is_it(node.frame))
        };
        let index = self.stacks.iter().position(is_it)?;
        Some(NormalizedStackIndex(index as u32))
    }
}

/// A stack of a profile.
#[derive(Clone, Copy, Debug)]
pub struct StackRef<'a> {
    nodes: &'a [Node<LocationIndex>],
    pub(super) leaf: Option<NodeIndex>,
    /// Why the walk stopped.
    pub end: StackEnd,
    /// Guesses that the walk used beside unwind instructions.
    pub fallbacks: Fallbacks,
}

impl<'a> StackRef<'a> {
    /// From leaf to root. The first is where the CPU was, the others are the calls.
    pub fn locations(self) -> impl Iterator<Item = LocationIndex> + Clone + use<'a> {
        upwards(self.nodes, self.leaf)
    }

    /// The stack by itself.
    pub fn to_stack(self) -> NormalizedStack {
        NormalizedStack {
            locations: self.locations().collect(),
            end: self.end,
            fallbacks: self.fallbacks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::IndexSet;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn stack() -> impl Strategy<Value = NormalizedStack> {
        let end = prop::sample::select(vec![StackEnd::Root, StackEnd::Truncated]);
        (vec(0..3_u32, 0..4), end).prop_map(|(locations, end)| NormalizedStack {
            locations: locations.into_iter().map(LocationIndex).collect(),
            end,
            fallbacks: Fallbacks::NONE,
        })
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_stacks(stacks in vec(stack(), 0..20)) {
            let mut table = StackTable::default();
            let mut set = IndexSet::default();
            for stack in &stacks {
                let (number, _) = set.insert_full(stack.clone());
                prop_assert_eq!(table.add(stack), NormalizedStackIndex(number as u32));
                prop_assert_eq!(&table.at(NormalizedStackIndex(number as u32)).to_stack(), stack);
            }
            prop_assert_eq!(table.len(), set.len());
        }

        #[test]
        fn joined_stacks_are_those_of_both(one in vec(stack(), 0..8), other in vec(stack(), 0..8)) {
            let table = |stacks: &[NormalizedStack]| {
                let mut table = StackTable::default();
                for stack in stacks {
                    table.add(stack);
                }
                table
            };
            let (mut joined, other) = (table(&one), table(&other));
            let again = [2, 0, 1].map(LocationIndex);
            let numbers = joined.join(&other, &again);
            for (at, number) in numbers.into_iter().enumerate() {
                let stack = other.at(NormalizedStackIndex(at as u32)).to_stack();
                let stack = stack.renumbered(stack.locations.iter().map(|at| again[at.0 as usize]));
                prop_assert_eq!(joined.add(&stack), number);
                prop_assert_eq!(joined.at(number).to_stack(), stack);
            }
        }
    }
}
