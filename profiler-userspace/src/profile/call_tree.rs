//! A profile as a tree of calls: each distinct path from a root once.
//!
//! In: a [`Profile`]. Out: nodes, which know their parents, and for each sample the node where it was taken and whose
//! it is. Owners are no frames, except in the tree of a [`View`](super::View).
//! Never: changes a weight.

use super::code_places::{Code, FrameId};
use super::model::{LabelsIndex, Profile, Sample};
use super::paths::{self, NodeIndex, Paths, upwards};
use super::stacks::{Builder, Frames, Owner, SampleNodes, VisibleSample};
use super::{Frame, FrameKind, WindowIndex, kernel_part, marks, number};
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexMap;
use profiler_common::abi::ThreadState;

/// A frame, and who called it.
pub type Node = paths::Node<FrameId>;

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

/// All that tells samples of a tree apart.
pub(super) type Key = (SampleNodes, LabelsIndex, ThreadState, WindowIndex);

impl CallTree {
    /// All calls of a profile.
    pub fn new(profile: &Profile) -> Self {
        Self::of(Builder::new(profile, Owner::Apart), profile.samples())
    }

    /// All calls of a profile, from and in lines that are apart, whether or not readers see them as frames of their own.
    pub fn by_line(profile: &Profile) -> Self {
        Self::of(Builder::by_line(profile, Owner::Apart), profile.samples())
    }

    /// All calls of these samples of the builder's profile.
    pub(super) fn of(mut builder: Builder<'_>, samples: &[Sample]) -> Self {
        let mut calls = builder.calls();
        let mut known: HashMap<VisibleSample, SampleNodes> = HashMap::default();
        let mut sums: IndexMap<Key, (u64, u64), RandomState> = IndexMap::default();
        // Where most stacks are there once, as in text, hardly anything would be met again.
        let is_repeated = samples.len() / 2 > builder.stacks_of_profile();
        if !is_repeated {
            sums.reserve(samples.len());
        }
        let is_apart = builder.is_apart();
        for at in builder.order(samples) {
            let sample = &samples[at as usize];
            let shown = builder.shown(sample);
            let mut place = || builder.put(&shown, &mut calls);
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
        drop(known);
        let mut nodes = calls.paths.into_nodes();
        let frames = in_use(&builder.frames, &mut nodes);
        let samples = sums.into_iter().map(TreeSample::from).collect();
        Self::from_parts(frames, nodes, samples)
    }

    /// The same stacks with a frame between the user and the kernel part of each.
    #[must_use]
    pub(super) fn delimited(mut self) -> Self {
        let delimiter = (Frame::new(marks::DELIMITER, FrameKind::Mark), None);
        let delimiter = FrameId(number(&mut self.frames, delimiter));
        let mut paths = Paths::default();
        let mut stack = Vec::new();
        for at in 0..self.samples.len() {
            let TreeSample { node, own, .. } = self.samples[at];
            stack.clear();
            stack.extend(self.callers(node));
            stack.reverse();
            let mut own = self.callers(own).count();
            if let Some(kernel) = kernel_part(&stack, |id| self.frame(*id).kind) {
                stack.insert(kernel, delimiter);
                own += usize::from(kernel < own);
            }
            let sample = &mut self.samples[at];
            sample.own = paths.place(stack[..own].iter().copied());
            sample.node = paths.place(stack.iter().copied());
        }
        let mut nodes = paths.into_nodes();
        let frames = in_use(&self.frames, &mut nodes);
        Self::from_parts(frames, nodes, self.samples)
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

    /// Samples, those of one owner one after another.
    pub(crate) fn samples_by_owner(&self) -> Vec<&TreeSample> {
        let mut samples: Vec<&TreeSample> = self.samples.iter().collect();
        samples.sort_by_key(|sample| sample.labels);
        samples
    }

    /// The nodes of the same stacks turned over, and for each sample the one that its stack ends in then.
    pub(crate) fn leaf_first(&self) -> (Vec<Node>, Vec<Option<NodeIndex>>) {
        let mut paths = Paths::default();
        let samples = self.samples.iter();
        let ends = samples.map(|sample| paths.place(self.callers(sample.node)));
        let ends = ends.collect();
        (paths.into_nodes(), ends)
    }

    /// The frames of a node and its callers, the node itself first.
    pub fn callers(&self, node: Option<NodeIndex>) -> impl Iterator<Item = FrameId> {
        upwards(&self.nodes, node)
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
        node.frame =
            *again[place].get_or_insert_with(|| FrameId(number(&mut frames, all[place].clone())));
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
