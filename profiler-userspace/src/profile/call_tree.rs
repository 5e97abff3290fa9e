//! A profile as a tree of calls: each distinct path from a root once.
//!
//! In: a [`Profile`]. Out: nodes, which know their parents, and for each sample the node where it was taken and whose
//! it is. Owners are no frames, except in the tree of a [`View`](super::View).
//! Never: changes a weight.

use super::code_places::{Code, FrameId};
use super::model::{LabelsIndex, Profile, Sample};
use super::stacks::{Builder, Frames, Owner, Shown};
use super::{Frame, WindowIndex};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use indexmap::IndexMap;
use profiler_common::abi::ThreadState;
use std::hash::BuildHasher as _;
use std::num::NonZeroU32;

/// A node's place in its tree. Kept plus one, so that none takes no more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeIndex(NonZeroU32);

impl NodeIndex {
    /// The place after so many others.
    pub(super) fn new(nodes: usize) -> Self {
        let behind = u32::try_from(nodes + 1).ok().and_then(NonZeroU32::new);
        Self(behind.expect("fewer than 2^32 nodes"))
    }

    /// The place as a number, from 0.
    pub const fn number(self) -> u32 {
        self.0.get() - 1
    }

    /// The place as an index, from 0.
    pub const fn index(self) -> usize {
        self.number() as usize
    }
}

/// A frame, and who called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node {
    /// The node of the caller, which always has a lower index; none at a root.
    pub parent: Option<NodeIndex>,
    /// Function that was called.
    pub frame: FrameId,
}

/// Weight of one owner at one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeSample {
    /// Where; none where there is no stack.
    pub node: Option<NodeIndex>,
    /// Where the thread itself was: `node`, or above it where that tells who ended a wait.
    pub own: Option<NodeIndex>,
    /// Owner; the first where owners are frames.
    pub labels: LabelsIndex,
    /// State of the thread.
    pub thread_state: ThreadState,
    /// When it was counted; the first where owners are frames.
    pub window: WindowIndex,
    /// How much was counted, in the profile's [`Unit`](super::Unit).
    pub weight: u64,
    /// How many firings were counted.
    pub count: u64,
}

impl From<(Key, (u64, u64))> for TreeSample {
    fn from((key, (weight, count)): (Key, (u64, u64))) -> Self {
        let ((node, own), labels, thread_state, window) = key;
        Self {
            node,
            own,
            labels,
            thread_state,
            window,
            weight,
            count,
        }
    }
}

/// The calls of a profile.
#[derive(Clone, Debug)]
pub struct CallTree {
    frames: Frames,
    nodes: Vec<Node>,
    samples: Vec<TreeSample>,
}

/// Nodes to be.
#[derive(Default)]
struct Calls {
    nodes: Vec<Node>,
    /// Places of nodes, found by what these are: there may be millions of them.
    numbers: HashTable<NodeIndex>,
    hashes: RandomState,
    /// The stack before: neighbours mostly begin alike.
    last: Vec<(FrameId, NodeIndex)>,
}

impl Calls {
    fn number(&mut self, node: Node) -> NodeIndex {
        let hash = |node: &Node| self.hashes.hash_one(node);
        let nodes = &self.nodes;
        let known = self.numbers.entry(
            hash(&node),
            |known| nodes[known.index()] == node,
            |known| hash(&nodes[known.index()]),
        );
        match known {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let index = NodeIndex::new(nodes.len());
                place.insert(index);
                self.nodes.push(node);
                index
            }
        }
    }

    /// The node of a stack, and that of its first `own` frames.
    fn place(&mut self, stack: &[FrameId], own: usize) -> Place {
        let last = self.last.iter().map(|(frame, _)| frame);
        let shared = last.zip(stack).take_while(|(a, b)| a == b).count();
        self.last.truncate(shared);
        for frame in &stack[shared..] {
            let index = self.number(Node {
                parent: self.last.last().map(|(_, node)| *node),
                frame: *frame,
            });
            self.last.push((*frame, index));
        }
        let at = |depth: usize| Some(self.last[depth.checked_sub(1)?].1);
        (at(stack.len()), at(own))
    }
}

/// All that tells samples of a tree apart.
pub(super) type Key = (Place, LabelsIndex, ThreadState, WindowIndex);

/// The node of a sample, and that of the thread itself.
pub(super) type Place = (Option<NodeIndex>, Option<NodeIndex>);

impl CallTree {
    /// All calls of a profile.
    pub fn new(profile: &Profile) -> Self {
        Self::of(
            Builder::new(profile, Owner::Apart),
            profile.samples().iter().copied(),
        )
    }

    /// All calls of a profile that nobody needs any more: its memory is freed as it is read.
    pub(crate) fn instead_of(mut profile: Profile) -> Self {
        let samples = profile.take_samples();
        Self::of(Builder::new(&profile, Owner::Apart), samples.into_iter())
    }

    /// All calls of a profile, from and in lines that are apart, whether or not readers see them as frames of their own.
    pub fn by_line(profile: &Profile) -> Self {
        Self::of(
            Builder::by_line(profile, Owner::Apart),
            profile.samples().iter().copied(),
        )
    }

    /// All calls of these samples of the builder's profile.
    pub(super) fn of(
        mut builder: Builder<'_>,
        samples: impl ExactSizeIterator<Item = Sample>,
    ) -> Self {
        let mut calls = Calls::default();
        let mut known: HashMap<Shown, Place> = HashMap::default();
        let mut sums: IndexMap<Key, (u64, u64), RandomState> = IndexMap::default();
        // Where each stack is there once, as in text, nothing would be met again.
        let is_repeated = samples.len() > builder.stacks_of_profile();
        if !is_repeated {
            sums.reserve(samples.len());
        }
        let is_apart = builder.is_apart();
        for sample in samples {
            let shown = builder.shown(&sample);
            let mut place = || {
                let stack = builder.stack(&shown);
                calls.place(&stack.frames, stack.own)
            };
            let place = match is_repeated {
                true => *known.entry(shown).or_insert_with(place),
                false => place(),
            };
            let (labels, window) = match is_apart {
                true => (sample.labels, sample.window),
                false => (LabelsIndex(0), WindowIndex(0)),
            };
            let key = (place, labels, sample.thread_state, window);
            let (weight, count) = sums.entry(key).or_default();
            *weight = weight.saturating_add(sample.weight);
            *count = count.saturating_add(sample.count);
        }
        drop((known, calls.numbers));
        let mut nodes = calls.nodes;
        let frames = in_use(&builder.frames, &mut nodes);
        let samples = sums.into_iter().map(TreeSample::from).collect();
        Self::from_parts(frames, nodes, samples)
    }

    /// A tree of these frames, nodes and samples.
    pub(super) fn from_parts(frames: Frames, nodes: Vec<Node>, samples: Vec<TreeSample>) -> Self {
        Self {
            frames,
            nodes,
            samples,
        }
    }

    /// How many distinct frames there are.
    pub fn frame_count(&self) -> usize {
        self.frames.len()
    }

    /// The IDs of all frames.
    pub fn frame_ids(&self) -> impl ExactSizeIterator<Item = FrameId> + use<> {
        (0..self.frames.len() as u32).map(FrameId)
    }

    /// The frame behind an ID of this tree.
    pub fn frame(&self, id: FrameId) -> &Frame {
        &self.frames[id.index()].0
    }

    /// Function that a frame of this tree stands for; none of marks.
    pub fn code(&self, id: FrameId) -> Option<Code> {
        self.frames[id.index()].1
    }

    /// All frames and what they stand for, by their IDs.
    pub fn frames(&self) -> impl ExactSizeIterator<Item = (&Frame, Option<Code>)> {
        self.frames.iter().map(|(frame, code)| (frame, *code))
    }

    /// All nodes, callers before what they called.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// All samples, no two of which have the same node, owner, state and window.
    pub fn samples(&self) -> &[TreeSample] {
        &self.samples
    }

    /// The nodes of the same stacks turned over, and for each sample the one that its stack ends in then.
    pub(crate) fn leaf_first(&self) -> (Vec<Node>, Vec<Option<NodeIndex>>) {
        let mut calls = Calls::default();
        let mut stack = Vec::new();
        let samples = self.samples.iter().map(|sample| {
            stack.clear();
            stack.extend(self.callers(sample.node));
            calls.place(&stack, 0).0
        });
        let ends = samples.collect();
        (calls.nodes, ends)
    }

    /// The frames of a node and its callers, the node itself first.
    pub fn callers(&self, node: Option<NodeIndex>) -> impl Iterator<Item = FrameId> {
        let above = |node: &NodeIndex| self.nodes[node.index()].parent;
        std::iter::successors(node, above).map(|node| self.nodes[node.index()].frame)
    }

    /// The frames from the root to a node.
    pub fn stack(&self, node: Option<NodeIndex>) -> Vec<&Frame> {
        let mut stack: Vec<&Frame> = self.callers(node).map(|id| self.frame(id)).collect();
        stack.reverse();
        stack
    }
}

/// The frames that nodes have, by which these refer to them from now on.
fn in_use(all: &Frames, nodes: &mut [Node]) -> Frames {
    let mut frames = Frames::default();
    let mut again = vec![None; all.len()];
    for node in nodes {
        let place = node.frame.index();
        node.frame = *again[place]
            .get_or_insert_with(|| FrameId(super::number(&mut frames, all[place].clone())));
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Unit;
    use crate::profile::fold;

    fn names(tree: &CallTree, sample: &TreeSample) -> Vec<String> {
        let stack = tree.stack(sample.node).into_iter();
        stack.map(|frame| frame.name.clone()).collect()
    }

    #[test]
    fn paths_are_shared_and_owners_are_apart() {
        let text = b"a;main;work 3\na;main;work;read_[k] 2\nb;main;work 4\n";
        let profile = fold::parse(text, Unit::Samples).unwrap();
        let tree = CallTree::new(&profile);
        let all: Vec<_> = tree
            .samples()
            .iter()
            .map(|s| (names(&tree, s), s.weight))
            .collect();
        let of = |names: &[&str], weight| (names.iter().map(|n| (*n).to_owned()).collect(), weight);
        let expected: Vec<(Vec<String>, u64)> = vec![
            of(&["main", "work"], 3),
            of(&["main", "work", "read"], 2),
            of(&["main", "work"], 4),
        ];
        assert_eq!(all, expected);
        assert_eq!(tree.nodes().len(), 3);
        let sum: u64 = tree.samples().iter().map(|sample| sample.weight).sum();
        assert_eq!(sum, profile.total_weight());
    }
}
