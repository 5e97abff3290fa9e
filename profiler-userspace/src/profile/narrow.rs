//! Call trees with narrow nodes as rests, for files that have a bound.
//!
//! In: a tree, and how many of its nodes are wanted. Out: a tree of the widest, with rests in place of the others, how many
//! nodes these stand for, and for each frame how much weight it has in them. Never: changes a weight.

use super::call_tree::{CallTree, Key, Node, TreeSample};
use super::code_places::FrameId;
use super::outline::{Call, Left, Outline, OutlineSlot};
use super::paths::NodeIndex;
use super::preorder::{Ordered, Preorder};
use super::stacks::Frames;
use super::{Frame, FrameKind, marks, number};
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
        let order = Preorder::as_they_came(self.nodes()).nodes;
        // A root below all roots; no frame reads as it does.
        let root = Call {
            depth: 0,
            word: self.frame_count() as u32,
            weight: u64::MAX,
        };
        let calls = order.iter().map(|node| Call {
            depth: node.depth + 1,
            word: self.nodes()[node.rank as usize].frame.0,
            weight: weights[node.rank as usize],
        });
        let calls = std::iter::once(root).chain(calls);
        let mut places = Vec::with_capacity(order.len() + 1);
        let words = self.frame_count() + 1;
        let outline = Outline::new(calls, words, most.saturating_add(1), |place| {
            places.push(place);
        });
        let mut frames = Renumbered::new(self, &outline);
        let mut nodes: Vec<Node> = Vec::with_capacity(outline.nodes.len());
        let mut path: Vec<NodeIndex> = Vec::new();
        let mut in_rests = 0;
        for left in &outline.nodes[1..] {
            let (depth, frame) = match *left {
                Left::Call(call) => {
                    let Ordered { rank, depth } = order[call as usize - 1];
                    (depth, frames.number(self.nodes()[rank as usize].frame))
                }
                Left::Rest { depth, calls, .. } => {
                    in_rests += calls;
                    (depth - 1, frames.rest())
                }
            };
            path.truncate(depth as usize);
            let parent = path.last().copied();
            path.push(NodeIndex::new(nodes.len()));
            nodes.push(Node { parent, frame });
        }
        let (only, unknown) = outline.only_in_rests(most);
        for frame in only {
            frames.number(FrameId(frame));
        }
        // By the tree's nodes.
        let mut moved = vec![None; order.len()];
        for (node, place) in order.iter().zip(&places[1..]) {
            moved[node.rank as usize] = Some(*place);
        }
        // The root is not there any more.
        let node = |place: OutlineSlot| NodeIndex::new(outline.node(place) as usize - 1);
        let samples = self.moved(|at| moved[at.index()].map(node));
        Narrowed {
            tree: Self::from_parts(frames.all, nodes, samples),
            nodes: in_rests,
            hidden: frames.hidden,
            unknown,
        }
    }

    /// The samples with their nodes elsewhere, added up there.
    fn moved(&self, to: impl Fn(NodeIndex) -> Option<NodeIndex>) -> Vec<TreeSample> {
        let mut sums: IndexMap<Key, (u64, u64), RandomState> = IndexMap::default();
        for sample in self.samples() {
            let place = (sample.node.and_then(&to), sample.own.and_then(&to));
            let key = (place, sample.labels, sample.thread_state, sample.window);
            let (weight, count) = sums.entry(key).or_default();
            *weight = weight.saturating_add(sample.weight);
            *count = count.saturating_add(sample.count);
        }
        sums.into_iter().map(TreeSample::from).collect()
    }

    /// The weight of each node and of all that it called.
    fn weights(&self) -> Vec<u64> {
        let mut weights = vec![0_u64; self.nodes().len()];
        let add = |weight: &mut u64, more: u64| *weight = weight.saturating_add(more);
        for sample in self.samples() {
            if let Some(node) = sample.node {
                add(&mut weights[node.index()], sample.weight);
            }
        }
        for at in (0..weights.len()).rev() {
            if let Some(parent) = self.nodes()[at].parent {
                let weight = weights[at];
                add(&mut weights[parent.index()], weight);
            }
        }
        weights
    }
}

/// The frames that nodes have, by the numbers that they have from now on.
struct Renumbered<'a> {
    tree: &'a CallTree,
    outline: &'a Outline,
    all: Frames,
    hidden: Vec<u64>,
    /// By the tree's frames; that of rests is the last.
    again: Vec<Option<FrameId>>,
}

impl<'a> Renumbered<'a> {
    fn new(tree: &'a CallTree, outline: &'a Outline) -> Self {
        Self {
            tree,
            outline,
            all: Frames::default(),
            hidden: Vec::new(),
            again: vec![None; tree.frame_count() + 1],
        }
    }

    fn number(&mut self, id: FrameId) -> FrameId {
        *self.again[id.index()].get_or_insert_with(|| {
            self.hidden.push(self.outline.words[id.index()].hidden);
            let frame = (self.tree.frame(id).clone(), self.tree.code(id));
            FrameId(number(&mut self.all, frame))
        })
    }

    fn rest(&mut self) -> FrameId {
        let rest = self.tree.frame_count();
        *self.again[rest].get_or_insert_with(|| {
            self.hidden.push(0);
            let frame = (Frame::new(marks::NARROW, FrameKind::Mark), None);
            FrameId(number(&mut self.all, frame))
        })
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
