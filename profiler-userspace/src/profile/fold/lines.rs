//! The distinct stacks of a view by how their frames read, sorted and summed.
//!
//! In: a view, and how a frame reads. Out: lines of ranks of names: small, and quick to sort, since ranks compare as
//! names do. Never: a weight that is changed.

use crate::profile::{Frame, FrameKind, Unit, View};
use std::borrow::Cow;
use std::ops::Range;

/// Which end of a stack comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As in folded text.
    RootFirst,
    /// For graphs that merge stacks from where the time was spent.
    LeafFirst,
}

/// One line to be.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Indices into [`Lines::levels`].
    stack: Range<usize>,
    weight: u64,
}

/// So much of the whole, one in so many, rounding may move.
const ROUNDING: u64 = 1000;

/// Whether rounding each line to the unit that readers see would move shares.
fn is_fine(unit: &Unit, lines: &[Line]) -> bool {
    let weights = lines.iter().map(|line| line.weight);
    let total = weights.clone().fold(0, u64::saturating_add);
    let moved = weights.map(|weight| unit.shown(weight).saturating_mul(1000).abs_diff(weight));
    *unit == Unit::Nanoseconds && moved.fold(0, u64::saturating_add) > total / ROUNDING
}

impl Line {
    /// How much was counted, in the unit that [`Lines::noun`] names.
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }
}

/// A view's lines, whose frames read as an `N`.
pub(crate) struct Lines<'a, N: ?Sized + ToOwned> {
    /// Distinct names, sorted; a rank is an index into it.
    names: Vec<Cow<'a, N>>,
    /// All stacks, one behind the other, as ranks.
    levels: Vec<u32>,
    lines: Vec<Line>,
    /// Whether weights are nanoseconds: rounded to microseconds each, lines would not have the shares that stacks have.
    is_fine: bool,
}

impl<'a, N: ?Sized + ToOwned + Ord> Lines<'a, N> {
    /// The lines of a view. `fixed` are the names of the delimiter, which is put in where it is asked for, and of an
    /// empty stack.
    pub(crate) fn new(
        view: &'a View,
        is_delimited: bool,
        order: Order,
        fixed: [Cow<'a, N>; 2],
        name: impl Fn(&'a Frame) -> Cow<'a, N>,
    ) -> Self {
        let all = fixed.into_iter().chain(view.frames().map(name)).collect();
        let (names, ranks) = rank(all);
        let ([delimiter, unknown], ranks) = ranks.split_first_chunk().expect("two are fixed");

        let mut levels = Vec::with_capacity(view.samples().iter().map(|s| s.stack.len() + 1).sum());
        let mut lines = Vec::with_capacity(view.samples().len());
        for sample in view.samples() {
            let start = levels.len();
            let split = match is_delimited {
                true => kernel_part(&sample.stack, |id| view.frame(*id).kind),
                false => None,
            };
            for (depth, id) in sample.stack.iter().enumerate() {
                if split == Some(depth) {
                    levels.push(*delimiter);
                }
                levels.push(ranks[id.index()]);
            }
            if sample.stack.is_empty() {
                levels.push(*unknown);
            }
            if order == Order::LeafFirst {
                levels[start..].reverse();
            }
            lines.push(Line {
                stack: start..levels.len(),
                weight: sample.weight,
            });
        }
        lines.sort_unstable_by(|a, b| levels[a.stack.clone()].cmp(&levels[b.stack.clone()]));
        sum_neighbours(&mut lines, &levels);
        let is_fine = is_fine(&view.unit, &lines);
        if !is_fine {
            for line in &mut lines {
                line.weight = view.unit.shown(line.weight);
            }
        }
        Self {
            names,
            levels,
            lines,
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
    pub(super) fn weight_text(&self, line: &Line) -> String {
        let weight = line.weight;
        match self.is_fine && !weight.is_multiple_of(1000) {
            true => format!("{}.{:03}", weight / 1000, weight % 1000),
            false if self.is_fine => (weight / 1000).to_string(),
            false => weight.to_string(),
        }
    }

    /// The lines in order.
    pub(crate) fn iter(&self) -> std::slice::Iter<'_, Line> {
        self.lines.iter()
    }

    /// The distinct names, by their ranks.
    pub(crate) fn names(&self) -> &[Cow<'a, N>] {
        &self.names
    }

    /// The ranks of a line's names.
    pub(crate) fn stack(&self, line: &Line) -> &[u32] {
        &self.levels[line.stack.clone()]
    }
}

/// Lines of the same stack as one.
fn sum_neighbours(lines: &mut Vec<Line>, levels: &[u32]) {
    lines.dedup_by(|line, last| {
        let same = levels[line.stack.clone()] == levels[last.stack.clone()];
        if same {
            last.weight += line.weight;
        }
        same
    });
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

/// Where the kernel part begins, marks included, in a stack that has user frames before it.
pub(crate) fn kernel_part<T>(stack: &[T], kind: impl Fn(&T) -> FrameKind) -> Option<usize> {
    let kernel = stack
        .iter()
        .position(|frame| kind(frame) == FrameKind::Kernel)?;
    let user = stack[..kernel]
        .iter()
        .rposition(|frame| kind(frame).is_user())?;
    Some(user + 1)
}
