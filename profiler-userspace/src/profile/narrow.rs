//! Narrow nodes of a call tree as one rest for each of their callers, so that files have a bound.
//!
//! In: a tree, and how many of its nodes are wanted. Out: a tree of the widest, with rests in place of the others, how many
//! nodes these stand for, and for each frame how much weight it has in them. Never: changes a weight.

use super::call_tree::{CallTree, Key, Node, NodeIndex, TreeSample};
use super::view::{FrameId, Frames};
use super::{Frame, FrameKind, marks, number};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexMap;

/// A tree with rests, and what is in these.
#[derive(Clone, Debug)]
pub struct Narrowed {
    /// The tree.
    pub tree: CallTree,
    /// How many nodes are in rests.
    pub nodes: u64,
    /// For each frame of the tree how much weight it has in rests: at most so much more may match where it is sought.
    pub hidden: Vec<u64>,
    /// How many frames that are only in rests are not in the tree.
    pub unknown: u64,
}

impl CallTree {
    /// The same with about so many nodes, the widest, and about as many frames that are only in rests.
    pub fn narrowed(&self, most: usize) -> Narrowed {
        let weights = self.weights();
        let least = widest(weights.iter().copied(), most);
        let mut narrowing = Narrowing {
            tree: self,
            places: vec![None; weights.len()],
            nodes: Vec::new(),
            rests: HashMap::default(),
            in_rests: 0,
            hidden: vec![0; self.frame_count()],
        };
        // How many callers have each frame; stacks may be deep, so that nobody looks for them.
        let mut open: Vec<u32> = vec![0; self.frame_count()];
        self.walk(|at, is_entered| {
            let frame = self.nodes()[at].frame;
            let open = &mut open[frame.index()];
            if is_entered {
                narrowing.add(NodeIndex(at as u32), weights[at], least, *open > 0);
                *open += 1;
            } else {
                *open -= 1;
            }
        });
        narrowing.finish(most)
    }

    /// Enters each node before and leaves it behind all that it called.
    fn walk(&self, mut visit: impl FnMut(usize, bool)) {
        let root = self.nodes().len();
        let mut first: Vec<Option<u32>> = vec![None; root + 1];
        let mut next: Vec<Option<u32>> = vec![None; root];
        for (at, node) in self.nodes().iter().enumerate().rev() {
            let caller = node.parent.map_or(root, |parent| parent.0 as usize);
            next[at] = first[caller].replace(at as u32);
        }
        let mut path: Vec<usize> = Vec::new();
        let mut here = first[root];
        loop {
            if let Some(at) = here {
                visit(at as usize, true);
                path.push(at as usize);
                here = first[at as usize];
            } else if let Some(at) = path.pop() {
                visit(at, false);
                here = next[at];
            } else {
                return;
            }
        }
    }

    /// The weight of each node and of all that it called.
    fn weights(&self) -> Vec<u64> {
        let mut weights = vec![0_u64; self.nodes().len()];
        let add = |weight: &mut u64, more: u64| *weight = weight.saturating_add(more);
        for sample in self.samples() {
            if let Some(node) = sample.node {
                add(&mut weights[node.0 as usize], sample.weight);
            }
        }
        for at in (0..weights.len()).rev() {
            if let Some(parent) = self.nodes()[at].parent {
                let weight = weights[at];
                add(&mut weights[parent.0 as usize], weight);
            }
        }
        weights
    }
}

/// The weight from which on not more than so many are at least as heavy.
pub(crate) fn widest(weights: impl Iterator<Item = u64>, most: usize) -> u64 {
    let mut weights: Vec<u64> = weights.collect();
    match most < weights.len() {
        true => {
            let (_, first_too_many, _) = weights.select_nth_unstable_by(most, |a, b| b.cmp(a));
            first_too_many.saturating_add(1)
        }
        false => 0,
    }
}

/// Where a node is now.
#[derive(Clone, Copy)]
enum Place {
    Kept(NodeIndex),
    /// Part of this rest.
    Rest(NodeIndex),
}

struct Narrowing<'a> {
    tree: &'a CallTree,
    /// By the tree's nodes; callers have theirs first.
    places: Vec<Option<Place>>,
    nodes: Vec<Node>,
    /// The rest of each caller that has one.
    rests: HashMap<Option<NodeIndex>, NodeIndex>,
    in_rests: u64,
    hidden: Vec<u64>,
}

/// The frame of rests, behind all others.
fn rest_frame() -> Frame {
    Frame::new(marks::NARROW, FrameKind::Mark)
}

impl Narrowing<'_> {
    /// `is_again`: whether a caller of the node has its frame.
    fn add(&mut self, at: NodeIndex, weight: u64, least: u64, is_again: bool) {
        let node = self.tree.nodes()[at.0 as usize];
        let above = node
            .parent
            .and_then(|parent| self.places[parent.0 as usize]);
        let place = match above {
            Some(Place::Rest(rest)) => Place::Rest(rest),
            _ if weight >= least => {
                let parent = above.map(Place::node);
                let frame = node.frame;
                Place::Kept(self.push(Node { parent, frame }))
            }
            _ => {
                let parent = above.map(Place::node);
                let known = self.rests.get(&parent).copied();
                let rest = known.unwrap_or_else(|| {
                    let frame = FrameId(self.tree.frame_count() as u32);
                    let rest = self.push(Node { parent, frame });
                    self.rests.insert(parent, rest);
                    rest
                });
                Place::Rest(rest)
            }
        };
        if matches!(place, Place::Rest(_)) {
            self.in_rests += 1;
            if !is_again {
                let hidden = &mut self.hidden[node.frame.index()];
                *hidden = hidden.saturating_add(weight);
            }
        }
        self.places[at.0 as usize] = Some(place);
    }

    fn push(&mut self, node: Node) -> NodeIndex {
        self.nodes.push(node);
        NodeIndex(self.nodes.len() as u32 - 1)
    }

    fn finish(mut self, most: usize) -> Narrowed {
        let mut sums: IndexMap<Key, (u64, u64), RandomState> = IndexMap::default();
        let place = |node: Option<NodeIndex>| Some(self.places[node?.0 as usize]?.node());
        for sample in self.tree.samples() {
            let place = (place(sample.node), place(sample.own));
            let key = (place, sample.labels, sample.thread_state, sample.window);
            let (weight, count) = sums.entry(key).or_default();
            *weight = weight.saturating_add(sample.weight);
            *count = count.saturating_add(sample.count);
        }
        let samples = sums.into_iter().map(TreeSample::from).collect();
        let (frames, hidden, unknown) = self.frames(most);
        Narrowed {
            tree: CallTree::from_parts(frames, self.nodes, samples),
            nodes: self.in_rests,
            hidden,
            unknown,
        }
    }

    /// The frames that nodes have, by which these refer to them from now on; then the heaviest of those that are only in
    /// rests; and how many others there are.
    fn frames(&mut self, most: usize) -> (Frames, Vec<u64>, u64) {
        let mut frames = Frames::default();
        let mut hidden = Vec::new();
        let mut again: Vec<Option<FrameId>> = vec![None; self.tree.frame_count() + 1];
        let mut used: Vec<FrameId> = self.nodes.iter().map(|node| node.frame).collect();
        used.push(FrameId(self.tree.frame_count() as u32));
        let mut only: Vec<FrameId> = self.tree.frame_ids().collect();
        let mut add = |id: FrameId, again: &mut Vec<Option<FrameId>>| {
            *again[id.index()].get_or_insert_with(|| {
                let known = id.index() < self.tree.frame_count();
                let frame = match known {
                    true => (self.tree.frame(id).clone(), self.tree.code(id)),
                    false => (rest_frame(), None),
                };
                hidden.push(if known { self.hidden[id.index()] } else { 0 });
                FrameId(number(&mut frames, frame))
            })
        };
        for id in used {
            add(id, &mut again);
        }
        only.retain(|id| again[id.index()].is_none() && self.hidden[id.index()] > 0);
        only.sort_by_key(|id| std::cmp::Reverse(self.hidden[id.index()]));
        let unknown = only.len().saturating_sub(most) as u64;
        only.truncate(most);
        for id in only {
            add(id, &mut again);
        }
        for node in &mut self.nodes {
            node.frame = again[node.frame.index()].unwrap_or(node.frame);
        }
        (frames, hidden, unknown)
    }
}

impl Place {
    fn node(self) -> NodeIndex {
        let (Self::Kept(node) | Self::Rest(node)) = self;
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Unit, fold};
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn tree(text: &str) -> CallTree {
        let profile = fold::parse(text.as_bytes(), Unit::Samples).expect("folded text");
        CallTree::new(&profile)
    }

    fn stacks(tree: &CallTree) -> Vec<(String, u64)> {
        let stack = |sample: &TreeSample| {
            let callers = tree.callers(sample.node);
            let mut names: Vec<&str> = callers.map(|id| &*tree.frame(id).name).collect();
            names.reverse();
            (names.join(";"), sample.weight)
        };
        tree.samples().iter().map(stack).collect()
    }

    #[test]
    fn narrow_nodes_are_a_rest_of_their_caller() {
        let tree = tree("p;a;b 10\np;a;c;d 2\np;a;e;b 1\np;a;e 1\np;f;c 20\n");
        let narrowed = tree.narrowed(4);
        let of = |stack: &str, weight| (stack.to_owned(), weight);
        let expected = [of("a;b", 10), of("a;[narrow frames]", 4), of("f;c", 20)];
        assert_eq!(stacks(&narrowed.tree), expected);
        assert_eq!(narrowed.nodes, 4);
        let frames = narrowed.tree.frames().zip(&narrowed.hidden);
        let mut hidden: Vec<_> = frames
            .filter(|(_, weight)| **weight > 0)
            .map(|((frame, _), weight)| (&*frame.name, *weight))
            .collect();
        hidden.sort_unstable();
        assert_eq!(hidden, [("b", 1), ("c", 2), ("d", 2), ("e", 2)]);
        assert_eq!(tree.narrowed(1).unknown, 5);
    }

    #[test]
    fn a_tree_that_is_small_enough_has_no_rest() {
        let tree = tree("p;a;b 10\np;a;c 2\n");
        let narrowed = tree.narrowed(100);
        assert_eq!(stacks(&narrowed.tree), stacks(&tree));
        assert_eq!((narrowed.nodes, narrowed.unknown), (0, 0));
    }

    proptest! {
        #[test]
        fn weight_is_conserved(
            all in vec((vec("[a-d]", 1..6), 1..100_u32), 1..40),
            most in 1..20_usize,
        ) {
            let text: String = all
                .iter()
                .map(|(stack, weight)| format!("p;{} {weight}\n", stack.join(";")))
                .collect();
            let tree = tree(&text);
            let narrowed = tree.narrowed(most);
            let sum = |tree: &CallTree| tree.samples().iter().map(|it| it.weight).sum::<u64>();
            prop_assert_eq!(sum(&narrowed.tree), sum(&tree));
            prop_assert!(narrowed.tree.nodes().len() as u64 + narrowed.nodes >= tree.nodes().len() as u64);
            prop_assert!(narrowed.tree.nodes().len() <= 2 * most + 1);
        }
    }
}
