//! The frames of a flame graph as a tree.
//!
//! In: a profile's view. Out: nodes in preorder, a root above all of them, callees by name, and each distinct name once.
//! Never: a weight that is changed.

use crate::output::Style;
use crate::profile::fold::{Lines, visible};
use crate::profile::{Frame, FrameKind, View, marks};
use profiler_common::abi::ThreadState;
use std::borrow::Cow;
use std::collections::HashSet;

/// One frame: a name below those of its ancestors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    /// Its place among [`Tree::names`].
    pub(super) name: u32,
    /// How many frames are below it; 0 for the root.
    pub(super) depth: u32,
    /// The weight of the stacks that end in it.
    pub(super) own: u64,
    /// The weight of all stacks that lead through it.
    pub(super) weight: u64,
    /// The weight of all that is to the left of it.
    pub(super) left: u64,
}

/// All frames. The root is the first; the callees of a frame follow it, in the order of the lines.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    /// As they are drawn, in the order in which nodes first have them. The first is the root's.
    pub(super) names: Vec<Frame>,
    pub(super) nodes: Vec<Node>,
    /// The names of the profiler's process, which comes last at the root.
    pub(super) profilers: Vec<u32>,
    /// Frames that it does not have one by one.
    pub(super) rests: Rests,
}

/// Frames that a picture does not have one by one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rests {
    /// The place of the name of rests; none where all frames are there.
    pub(super) name: Option<u32>,
    /// The places of all rests among the nodes, and how many frames each stands for.
    pub(super) frames: Vec<(u32, u64)>,
    /// For each name how much weight its frames in rests have: at most as much again as a search finds may match there.
    pub(super) hidden: Vec<u64>,
    /// How many names are only in rests and are not there to be searched for.
    pub(super) unsearched: u64,
}

impl Rests {
    /// How many frames the node at a place stands for, if it is a rest.
    pub(super) fn frames_at(&self, node: usize) -> Option<u64> {
        let place = |(place, _): &(u32, u64)| *place as usize;
        let at = self.frames.binary_search_by_key(&node, place).ok()?;
        Some(self.frames[at].1)
    }
}

impl Tree {
    /// The tree of a view's stacks, and the plural noun of its weights. Stacks without weight are left out.
    pub(super) fn new<'v>(view: &'v View, style: &Style) -> (Self, &'v str) {
        let lines = Lines::new(view, style.stack_order(), drawn);
        let mut tree = Self::root();
        let profilers = profilers(view);
        // The cost of recording is no part of what was recorded.
        let mut apart = Vec::new();
        let mut is_apart = false;
        for (node, weight) in lines.nodes() {
            if node.depth == 0 {
                is_apart = profilers.contains(&*lines.names()[node.rank as usize]);
            }
            let nodes = match is_apart {
                true => &mut apart,
                false => &mut tree.nodes,
            };
            nodes.push(Node {
                name: node.rank,
                depth: node.depth + 1,
                own: weight.unwrap_or_default(),
                weight: 0,
                left: 0,
            });
        }
        tree.nodes.append(&mut apart);
        tree.add_up();
        let mut is_root = true;
        tree.nodes
            .retain(|node| std::mem::take(&mut is_root) || node.weight > 0);
        // For each rank of a name its place in `names`.
        let mut places: Vec<Option<u32>> = vec![None; lines.names().len()];
        for node in &mut tree.nodes[1..] {
            let rank = node.name as usize;
            node.name = *places[rank].get_or_insert_with(|| {
                tree.names.push(lines.names()[rank].clone().into_owned());
                tree.names.len() as u32 - 1
            });
        }
        tree.profilers = (0..tree.names.len() as u32)
            .filter(|name| profilers.contains(&tree.names[*name as usize]))
            .collect();
        tree.pack_left();
        (tree, lines.noun(&view.unit))
    }

    /// A tree in which there is nothing yet but the root, which stands for everything.
    pub(super) fn root() -> Self {
        let node = Node {
            name: 0,
            depth: 0,
            own: 0,
            weight: 0,
            left: 0,
        };
        Self {
            names: vec![all()],
            nodes: vec![node],
            profilers: Vec::new(),
            rests: Rests::default(),
        }
    }

    /// Gives each node the weight of its own and of all that it called.
    pub(super) fn add_up(&mut self) {
        // For each depth the weight of the nodes there whose caller is still to come.
        let mut called: Vec<u64> = Vec::new();
        for node in self.nodes.iter_mut().rev() {
            let depth = node.depth as usize;
            called.resize(called.len().max(depth + 2), 0);
            node.weight = node
                .own
                .saturating_add(std::mem::take(&mut called[depth + 1]));
            called[depth] = called[depth].saturating_add(node.weight);
        }
    }

    /// Moves callees to the left edge of their callers, so that what a frame did itself is on its right.
    pub(super) fn pack_left(&mut self) {
        // For each depth where the next node there begins.
        let mut next: Vec<u64> = vec![0];
        for node in &mut self.nodes {
            let depth = node.depth as usize;
            node.left = next[depth];
            next[depth] = node.left.saturating_add(node.weight);
            next.truncate(depth + 1);
            next.push(node.left);
        }
    }

    /// The places of all nodes, callers before what they called and the heaviest callee first, each with the weight that is
    /// then to the left of it. Of equal ones the first by name comes first.
    pub(super) fn by_weight(&self) -> Vec<(usize, u64)> {
        let behind = self.behind();
        let mut sorted = Vec::with_capacity(self.nodes.len());
        // The next one is the last.
        let mut waiting = vec![(0, 0_u64)];
        while let Some((node, left)) = waiting.pop() {
            sorted.push((node, left));
            let inside = |child: &usize| *child < behind[node];
            let next = |child: &usize| Some(behind[*child]).filter(inside);
            let called = std::iter::successors(Some(node + 1).filter(inside), next);
            let mut called: Vec<usize> = called.collect();
            called.sort_by_key(|child| {
                let child = &self.nodes[*child];
                (self.is_apart(child), std::cmp::Reverse(child.weight))
            });
            let mut at = left;
            let begin = waiting.len();
            for child in called {
                waiting.push((child, at));
                at = at.saturating_add(self.nodes[child].weight);
            }
            waiting[begin..].reverse();
        }
        sorted
    }

    /// Whether a node stands for the profiler, which comes last whatever the order.
    fn is_apart(&self, node: &Node) -> bool {
        node.depth == 1 && self.profilers.contains(&node.name)
    }

    /// For each node the place of the first one that is not above it.
    fn behind(&self) -> Vec<usize> {
        let mut behind = vec![0; self.nodes.len()];
        // The nodes below the one that is looked at.
        let mut open: Vec<usize> = Vec::new();
        for (place, node) in self.nodes.iter().enumerate() {
            for closed in open.drain((node.depth as usize).min(open.len())..) {
                behind[closed] = place;
            }
            open.push(place);
        }
        for left in open {
            behind[left] = self.nodes.len();
        }
        behind
    }

    /// The weight of everything.
    pub(super) fn total(&self) -> u64 {
        self.nodes[0].weight
    }

    /// A node's name.
    pub(super) fn name(&self, node: &Node) -> &str {
        &self.names[node.name as usize].name
    }
}

/// The frames of the profiler's process in a view, as they are drawn.
fn profilers(view: &View) -> HashSet<Frame> {
    let places = view.code_places();
    let all = view.tree().frames().zip(places.all());
    let own = all.filter(|(_, place)| places.module(*place) == marks::ITSELF);
    let own = own.filter(|((frame, _), _)| frame.kind == FrameKind::Mark);
    own.map(|((frame, _), _)| drawn(frame).into_owned())
        .collect()
}

/// A frame as it is drawn: names that can be read, and one kind for what looks alike.
pub(super) fn drawn(frame: &Frame) -> Cow<'_, Frame> {
    let name = match &*frame.name {
        "" => Cow::Borrowed(marks::UNKNOWN),
        name => visible(name),
    };
    let kind = match frame.kind {
        FrameKind::State(ThreadState::Woken) => FrameKind::State(ThreadState::Blocked),
        FrameKind::State(ThreadState::Ran) => FrameKind::State(ThreadState::Running),
        kind => kind,
    };
    if name == frame.name && kind == frame.kind {
        return Cow::Borrowed(frame);
    }
    Cow::Owned(Frame::new(&*name, kind))
}

/// The root.
pub(super) fn all() -> Frame {
    Frame::new("all", FrameKind::Mark)
}

/// The frame of all that are not there one by one.
pub(super) fn rest() -> Frame {
    Frame::new(marks::NARROW, FrameKind::Mark)
}

/// Separator between the user and the kernel part of a stack.
pub(super) fn delimiter() -> Frame {
    Frame::new(marks::DELIMITER, FrameKind::Mark)
}

/// Name of a stack without frames.
pub(super) fn unknown() -> Frame {
    Frame::new(marks::UNKNOWN, FrameKind::Mark)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::profile::fold::parse;
    use crate::profile::{FrameProfile, FrameRef, Profile, Unit, Window};

    pub(in crate::output::svg) fn tree(text: &str) -> Tree {
        let profile = parse(text.as_bytes(), Unit::Samples).expect("folded text");
        Tree::new(&View::new(&profile), &Style::default()).0
    }

    #[test]
    fn the_profiler_is_last_at_the_root_in_any_order() {
        let mut profile = FrameProfile::new(Profile::new(Unit::Samples, Window::default()));
        let frame = |name, kind| FrameRef { name, kind };
        for (process, leaf, kind, weight) in [
            ("flame-bpf", marks::PROFILER, FrameKind::Mark, 16),
            ("zsh", "work", FrameKind::User, 4),
            ("awk", "flame-bpf", FrameKind::User, 1),
            ("awk", "wait", FrameKind::User, 2),
        ] {
            let stack = [frame(process, FrameKind::Process), frame(leaf, kind)];
            profile.push(&stack, weight, weight);
        }
        let (tree, _) = Tree::new(&View::new(&profile.into_profile()), &Style::default());
        let names: Vec<&str> = tree.nodes.iter().map(|node| tree.name(node)).collect();
        assert_eq!(
            names,
            [
                "all",
                "awk",
                "flame-bpf",
                "wait",
                "zsh",
                "work",
                "flame-bpf"
            ]
        );
        let heaviest: Vec<&str> = (tree.by_weight().into_iter())
            .map(|(place, _)| tree.name(&tree.nodes[place]))
            .collect();
        assert_eq!(
            heaviest,
            [
                "all",
                "zsh",
                "work",
                "awk",
                "wait",
                "flame-bpf",
                "flame-bpf"
            ]
        );
        assert_eq!(tree.total(), 23);
    }

    #[test]
    fn by_weight_the_heaviest_callee_is_first_and_all_are_there() {
        let tree = tree("a;b;c 1\na;b 2\na 4\na;d 8\ne 16\nf 16\n");
        let sorted = tree.by_weight();
        let read: Vec<_> = sorted
            .iter()
            .map(|(place, left)| (tree.name(&tree.nodes[*place]), *left))
            .collect();
        assert_eq!(
            read,
            [
                ("all", 0),
                ("e", 0),
                ("f", 16),
                ("a", 32),
                ("d", 32),
                ("b", 40),
                ("c", 40)
            ]
        );
    }

    #[test]
    fn callees_stand_at_the_left_of_their_caller() {
        let tree = tree("a;b;c 1\na;b 2\na 4\na;d 8\ne 16\n");
        let nodes: Vec<_> = tree
            .nodes
            .iter()
            .map(|node| {
                (
                    tree.name(node),
                    node.depth,
                    node.own,
                    node.weight,
                    node.left,
                )
            })
            .collect();
        assert_eq!(
            nodes,
            [
                ("all", 0, 0, 31, 0),
                ("a", 1, 4, 15, 0),
                ("b", 2, 2, 3, 0),
                ("c", 3, 1, 1, 0),
                ("d", 2, 8, 8, 3),
                ("e", 1, 16, 16, 15),
            ]
        );
    }
}
