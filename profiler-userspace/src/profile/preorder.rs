//! The nodes of any tree in preorder.
//!
//! In: for each node its caller, which has a lower number, and its rank among those that are called. Out: nodes in preorder, callees
//! by rank; those of one caller that have one rank are one node. Never: recursion, since stacks are as deep as programs like.

use super::{FrameId, Node, NodeIndex};
use std::ops::Range;

/// A node in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ordered {
    /// Its rank.
    pub(crate) rank: u32,
    /// How many nodes are between it and the roots; 0 for a root.
    pub(crate) depth: u32,
}

/// Nodes in preorder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Preorder {
    /// All of them.
    pub(crate) nodes: Vec<Ordered>,
    /// For each node as it was numbered its place among these.
    pub(crate) places: Vec<u32>,
}

impl Preorder {
    /// Orders the nodes of a tree by the ranks of their frames.
    pub(crate) fn of(nodes: &[Node], rank: impl Fn(FrameId) -> u32) -> Self {
        let callers = nodes.iter();
        let callers = callers.map(|node| node.parent.map(NodeIndex::number));
        Self::new(callers, |node| rank(nodes[node as usize].frame))
    }

    /// Orders the nodes of a tree as they came, each with its number as its rank.
    pub(crate) fn as_they_came(nodes: &[Node]) -> Self {
        let callers = nodes.iter();
        Self::new(
            callers.map(|node| node.parent.map(NodeIndex::number)),
            |node| node,
        )
    }

    /// Orders nodes with these callers.
    pub(crate) fn new(
        callers: impl ExactSizeIterator<Item = Option<u32>> + Clone,
        rank: impl Fn(u32) -> u32,
    ) -> Self {
        let mut ordering = Ordering::new(callers, &rank);
        let mut order = Self {
            nodes: Vec::with_capacity(ordering.begins.len() - 2),
            places: vec![0; ordering.begins.len() - 2],
        };
        // Nodes of one rank that are to come, the next ones last.
        let mut waiting = Vec::new();
        ordering.split(ordering.called_by(None), 0, &rank, &mut waiting);
        while let Some((same, depth)) = waiting.pop() {
            let place = order.nodes.len() as u32;
            let first = ordering.called[same.start];
            order.nodes.push(Ordered {
                rank: rank(first),
                depth,
            });
            for &node in &ordering.called[same.clone()] {
                order.places[node as usize] = place;
            }
            let called = match same.len() {
                1 => ordering.called_by(Some(first)),
                _ => ordering.called_by_all(same, &rank),
            };
            ordering.split(called, depth + 1, &rank, &mut waiting);
        }
        order
    }

    /// The place of the caller of each node; none of roots.
    pub(crate) fn callers(&self) -> impl Iterator<Item = Option<u32>> {
        let mut path: Vec<u32> = Vec::new();
        (0..).zip(&self.nodes).map(move |(place, node)| {
            path.truncate(node.depth as usize);
            let caller = path.last().copied();
            path.push(place);
            caller
        })
    }
}

struct Ordering {
    /// Nodes called by none, then those called by each in turn, by rank; behind them those called by several together.
    called: Vec<u32>,
    /// Where the first begin, and those of each; where the next begin, they end.
    begins: Vec<u32>,
}

impl Ordering {
    fn new(
        callers: impl ExactSizeIterator<Item = Option<u32>> + Clone,
        rank: impl Fn(u32) -> u32,
    ) -> Self {
        let nodes = callers.len();
        let slot = |caller: Option<u32>| caller.map_or(0, |caller| caller as usize + 1);
        let mut begins = vec![0_u32; nodes + 2];
        for caller in callers.clone() {
            begins[slot(caller) + 1] += 1;
        }
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        let mut called = vec![0_u32; nodes];
        // Where the next of each goes; in the end that is where those of the next caller begin.
        for (node, caller) in (0..).zip(callers) {
            let next = &mut begins[slot(caller)];
            called[*next as usize] = node;
            *next += 1;
        }
        begins.rotate_right(1);
        begins[0] = 0;
        // The last was the end already.
        begins[nodes + 1] = nodes as u32;
        for at in 0..=nodes {
            let called = &mut called[begins[at] as usize..begins[at + 1] as usize];
            if called.len() > 1 {
                called.sort_by_key(|&node| rank(node));
            }
        }
        Self { called, begins }
    }

    fn called_by(&self, caller: Option<u32>) -> Range<usize> {
        let at = caller.map_or(0, |caller| caller as usize + 1);
        self.begins[at] as usize..self.begins[at + 1] as usize
    }

    fn called_by_all(&mut self, callers: Range<usize>, rank: impl Fn(u32) -> u32) -> Range<usize> {
        let begin = self.called.len();
        for at in callers {
            let own = self.called_by(Some(self.called[at]));
            self.called.extend_from_within(own);
        }
        self.called[begin..].sort_by_key(|&node| rank(node));
        begin..self.called.len()
    }

    /// Puts nodes, which are sorted, among those that wait, those of one rank together.
    fn split(
        &self,
        called: Range<usize>,
        depth: u32,
        rank: impl Fn(u32) -> u32,
        waiting: &mut Vec<(Range<usize>, u32)>,
    ) {
        let mut end = called.end;
        while end > called.start {
            let own = rank(self.called[end - 1]);
            let mut begin = end - 1;
            while begin > called.start && rank(self.called[begin - 1]) == own {
                begin -= 1;
            }
            waiting.push((begin..end, depth));
            end = begin;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The ranks on the way to a node, its own included.
    fn path(nodes: &[(Option<u32>, u32)], node: u32) -> Vec<u32> {
        let above = |node: &u32| nodes[*node as usize].0;
        let way = std::iter::successors(Some(node), above);
        let mut path: Vec<u32> = way.map(|node| nodes[node as usize].1).collect();
        path.reverse();
        path
    }

    proptest! {
        #[test]
        fn nodes_are_the_distinct_paths_in_order(
            drawn in vec((any::<prop::sample::Index>(), 0..4_u32, any::<bool>()), 0..40),
        ) {
            let nodes: Vec<(Option<u32>, u32)> = (0_u32..)
                .zip(&drawn)
                .map(|(at, (caller, rank, is_root))| {
                    let is_root = *is_root && at % 5 == 0 || at == 0;
                    ((!is_root).then(|| caller.index(at.max(1) as usize) as u32), *rank)
                })
                .collect();
            let order = Preorder::new(nodes.iter().map(|node| node.0), |node| nodes[node as usize].1);
            let paths: BTreeSet<Vec<u32>> = (0..nodes.len() as u32).map(|node| path(&nodes, node)).collect();
            let mut read: Vec<Vec<u32>> = Vec::new();
            for (node, caller) in order.nodes.iter().zip(order.callers()) {
                let mut path = caller.map_or_else(Vec::new, |caller| read[caller as usize].clone());
                prop_assert_eq!(path.len(), node.depth as usize);
                path.push(node.rank);
                read.push(path);
            }
            prop_assert_eq!(&read, &paths.into_iter().collect::<Vec<_>>());
            for node in 0..nodes.len() as u32 {
                prop_assert_eq!(&read[order.places[node as usize] as usize], &path(&nodes, node));
            }
        }
    }
}
