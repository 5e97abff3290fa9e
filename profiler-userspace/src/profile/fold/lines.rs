//! The distinct stacks of a view by how their frames read, in order and summed.
//!
//! In: a view, and how a frame reads. Out: a tree of the ranks of names, which compare as names do, in preorder: each node at
//! which stacks end is a line. Never: a weight that is changed.

use crate::profile::preorder::{Ordered, Preorder};
use crate::profile::{Frame, Unit, View};
use std::borrow::Cow;

/// Which end of a stack comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As in folded text.
    RootFirst,
    /// For graphs that merge stacks from where the time was spent.
    LeafFirst,
}

/// So much of the whole, one in so many, rounding may move.
const ROUNDING: u64 = 1000;

/// Whether rounding each line to the unit that readers see would move shares.
fn is_fine(unit: &Unit, weights: impl Iterator<Item = u64> + Clone) -> bool {
    let total = weights.clone().fold(0, u64::saturating_add);
    let moved = weights.map(|weight| unit.shown(weight).saturating_mul(1000).abs_diff(weight));
    *unit == Unit::Nanoseconds && moved.fold(0, u64::saturating_add) > total / ROUNDING
}

/// A view's lines, whose frames read as an `N`.
pub(crate) struct Lines<'a, N: ?Sized + ToOwned> {
    /// Distinct names, sorted; a rank is an index into it.
    names: Vec<Cow<'a, N>>,
    nodes: Vec<Ordered>,
    /// For each node the weight of the stacks that end there; none where none does.
    weights: Vec<Option<u64>>,
    /// Whether weights are nanoseconds: rounded to microseconds each, lines would not have the shares that stacks have.
    is_fine: bool,
}

impl<'a, N: ?Sized + ToOwned + Ord> Lines<'a, N> {
    /// The lines of a view.
    pub(crate) fn new(
        view: &'a View,
        order: Order,
        name: impl Fn(&'a Frame) -> Cow<'a, N>,
    ) -> Self {
        let tree = view.tree();
        let (names, ranks) = rank(tree.frames().map(|(frame, _)| name(frame)).collect());
        let ends = tree.samples().iter().map(|sample| sample.node);
        let (nodes, ends) = match order {
            Order::RootFirst => (Cow::Borrowed(tree.nodes()), ends.collect()),
            Order::LeafFirst => {
                let (nodes, ends) = tree.leaf_first();
                (Cow::Owned(nodes), ends)
            }
        };
        let Preorder { nodes, places } = Preorder::of(&nodes, |frame| ranks[frame.index()]);
        let mut weights = vec![None; nodes.len()];
        // No stack of a view is empty.
        for (sample, end) in tree.samples().iter().zip(ends) {
            let Some(end) = end else { continue };
            let weight = weights[places[end.index()] as usize].get_or_insert(0_u64);
            *weight = weight.saturating_add(sample.weight);
        }
        let is_fine = is_fine(&view.unit, weights.iter().flatten().copied());
        if !is_fine {
            for weight in weights.iter_mut().flatten() {
                *weight = view.unit.shown(*weight);
            }
        }
        Self {
            names,
            nodes,
            weights,
            is_fine,
        }
    }

    /// The plural noun behind a line's weight, in a profile that counts this.
    pub(crate) fn noun<'u>(&self, unit: &'u Unit) -> &'u str {
        match self.is_fine {
            true => "ns",
            false => unit.noun(),
        }
    }

    /// A line's weight in folded text: microseconds where it is fine, for the files beside it.
    pub(super) fn weight_text(&self, weight: u64) -> String {
        match self.is_fine && !weight.is_multiple_of(1000) {
            true => format!("{}.{:03}", weight / 1000, weight % 1000),
            false if self.is_fine => (weight / 1000).to_string(),
            false => weight.to_string(),
        }
    }

    /// The nodes in order, each with the weight of the stacks that end there, in the unit that [`Self::noun`] names; none where
    /// none does.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = (Ordered, Option<u64>)> {
        self.nodes.iter().copied().zip(self.weights.iter().copied())
    }

    /// The distinct names, by their ranks.
    pub(crate) fn names(&self) -> &[Cow<'a, N>] {
        &self.names
    }
}

/// The distinct names, sorted, and the rank of each.
fn rank<N: ?Sized + ToOwned + Ord>(all: Vec<Cow<'_, N>>) -> (Vec<Cow<'_, N>>, Vec<u32>) {
    let mut by_name: Vec<usize> = (0..all.len()).collect();
    by_name.sort_unstable_by(|&a, &b| all[a].cmp(&all[b]));
    let mut ranks = vec![0; all.len()];
    let mut names: Vec<Cow<'_, N>> = Vec::with_capacity(all.len());
    for index in by_name {
        if names.last() != Some(&all[index]) {
            names.push(all[index].clone());
        }
        ranks[index] = u32::try_from(names.len() - 1).expect("no more names than frame IDs");
    }
    (names, ranks)
}
