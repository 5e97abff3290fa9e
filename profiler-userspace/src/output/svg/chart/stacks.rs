//! Weights in each window, by stack.
//!
//! In: a profile. Out: all its stacks as one tree of names, in which callees are in the order of names, and for each
//! lane and window the part of that tree in which something was counted.

use super::lanes::Lanes;
use super::spans;
use crate::output::svg::tree::{all, delimiter, drawn, unknown};
use crate::profile::fold::FoldStyle;
use crate::profile::preorder::Preorder;
use crate::profile::{
    CallTree, Frame, FrameKind, LabelFrames, LabelsIndex, NodeIndex, Profile, TreeSample,
    WindowTotals, kernel_part,
};
use std::collections::HashMap;
use std::time::Duration;

/// The stacks of a profile.
pub(super) struct Stacks {
    /// The root's, and then each distinct one, sorted.
    pub(super) names: Vec<Frame>,
    /// For each node its name. Nodes are in preorder; the first is the root.
    nodes: Vec<u32>,
    /// For each node the one below it.
    parents: Vec<u32>,
    /// In each lane: window, node, weight. Sorted, each window and node once.
    samples: Vec<Vec<(u32, u32, u64)>>,
    /// The name of each lane, as a place among all; none where there is but one chart.
    pub(super) lanes: Vec<u32>,
    windows: Vec<WindowTotals>,
}

/// Part of a window: a node, and what was counted there.
pub(super) struct NodeCount {
    pub(super) node: u32,
    /// On stacks that lead through it.
    pub(super) total: u64,
    /// On stacks that end in it.
    pub(super) own: u64,
    /// One behind the last place that is above this one.
    pub(super) behind: u32,
}

/// A window.
pub(super) struct WindowRow {
    /// Nanoseconds since the first window began.
    pub(super) start: u64,
    pub(super) end: u64,
    /// In preorder; the first is the root.
    pub(super) places: Vec<NodeCount>,
}

impl WindowRow {
    /// When that much of what was counted is on the left.
    pub(super) fn time(&self, weight: u64) -> u64 {
        let length = u128::from(self.end - self.start);
        let all = u128::from(self.places[0].total.max(1));
        self.start + (length * u128::from(weight) / all).min(length) as u64
    }
}

impl Stacks {
    pub(super) fn new(profile: &Profile, style: FoldStyle) -> Self {
        let tree = CallTree::new(profile);
        let lanes = Lanes::new(profile, &tree);
        let mut paths = Paths::new(&tree, profile, (style, lanes.names.is_empty()));
        for name in &lanes.names {
            paths.number(&drawn(name));
        }
        let last = profile.windows.len().saturating_sub(1) as u32;
        let found: Vec<(u32, u32, u32, u64)> = tree
            .samples()
            .iter()
            .filter(|sample| sample.weight > 0)
            .map(|sample| {
                let window = sample.window.0.min(last);
                (
                    lanes.of(sample.labels.0 as usize),
                    window,
                    paths.node(sample),
                    profile.unit.shown(sample.weight),
                )
            })
            .collect();
        let Paths { names, nodes, .. } = paths;
        let (names, nodes, parents, places) = in_order(names, &nodes);
        let mut samples = vec![Vec::new(); lanes.count()];
        for (lane, window, node, weight) in found {
            samples[lane as usize].push((window, places[node as usize], weight));
        }
        let place = |name: &Frame| {
            let name = drawn(name);
            let place = names.iter().position(|known| *known == *name);
            place.unwrap_or_default() as u32
        };
        Self {
            lanes: lanes.names.iter().map(place).collect(),
            samples: samples.into_iter().map(summed).collect(),
            names,
            nodes,
            parents,
            windows: profile.windows.clone(),
        }
    }

    /// Puts windows together in pairs.
    pub(super) fn halve(&mut self) {
        self.windows = WindowTotals::halved(&self.windows);
        for samples in &mut self.samples {
            let all = std::mem::take(samples).into_iter();
            let all = all.map(|(window, node, weight)| (window / 2, node, weight));
            *samples = summed(all.collect());
        }
    }

    pub(super) fn resolution(&self) -> Duration {
        WindowTotals::resolution(&self.windows)
    }

    pub(super) fn name_of(&self, node: u32) -> u32 {
        self.nodes[node as usize]
    }

    /// All windows of each lane.
    pub(super) fn lanes_of_rows(&self) -> Vec<Vec<WindowRow>> {
        self.samples.iter().map(|lane| self.rows(lane)).collect()
    }

    /// All windows of a lane.
    fn rows(&self, samples: &[(u32, u32, u64)]) -> Vec<WindowRow> {
        let mut rest = samples;
        let spans = spans(&self.windows).into_iter().enumerate();
        spans
            .map(|(window, (start, end))| {
                let of = rest.partition_point(|(of, ..)| *of as usize <= window);
                let (own, behind) = rest.split_at(of);
                rest = behind;
                WindowRow {
                    start,
                    end,
                    places: self.places(own),
                }
            })
            .collect()
    }

    /// The part of the tree where these samples are.
    fn places(&self, samples: &[(u32, u32, u64)]) -> Vec<NodeCount> {
        let place = |node| NodeCount {
            node,
            total: 0,
            own: 0,
            behind: 0,
        };
        let mut places = vec![place(0)];
        let mut path: Vec<usize> = vec![0];
        let mut missing = Vec::new();
        for &(_, node, weight) in samples {
            missing.clear();
            let mut above = node;
            // Nodes are in preorder: what is on the path and behind one is not below it.
            loop {
                while places[path[path.len() - 1]].node > above {
                    close(&mut places, &mut path);
                }
                if places[path[path.len() - 1]].node == above {
                    break;
                }
                missing.push(above);
                above = self.parents[above as usize];
            }
            for &next in missing.iter().rev() {
                path.push(places.len());
                places.push(place(next));
            }
            let own = &mut places[path[path.len() - 1]];
            own.own = own.own.saturating_add(weight);
            own.total = own.total.saturating_add(weight);
        }
        while !path.is_empty() {
            close(&mut places, &mut path);
        }
        places
    }
}

/// Ends the last place of a path, whose sum is part of that of the place below.
fn close(places: &mut [NodeCount], path: &mut Vec<usize>) {
    let Some(last) = path.pop() else { return };
    // Whatever was added since is above it.
    places[last].behind = places.len() as u32;
    if let Some(&below) = path.last() {
        places[below].total = places[below].total.saturating_add(places[last].total);
    }
}

/// Sorted, and those of the same window and node as one.
fn summed(mut samples: Vec<(u32, u32, u64)>) -> Vec<(u32, u32, u64)> {
    samples.sort_unstable();
    samples.dedup_by(|next, kept| {
        let is_same = (next.0, next.1) == (kept.0, kept.1);
        if is_same {
            kept.2 = kept.2.saturating_add(next.2);
        }
        is_same
    });
    samples
}

/// Makes a tree of paths, in the order in which these come.
struct Paths<'a> {
    tree: &'a CallTree,
    profile: &'a Profile,
    style: FoldStyle,
    /// Whether stacks begin with whose they are, which lanes tell otherwise.
    has_owners: bool,
    names: Vec<Frame>,
    numbers: HashMap<Frame, u32>,
    /// The node below, and the name.
    nodes: Vec<(u32, u32)>,
    known: HashMap<(u32, u32), u32>,
    of_samples: HashMap<(LabelsIndex, Option<NodeIndex>), u32>,
}

impl<'a> Paths<'a> {
    fn new(
        tree: &'a CallTree,
        profile: &'a Profile,
        (style, has_owners): (FoldStyle, bool),
    ) -> Self {
        Self {
            tree,
            profile,
            style,
            has_owners,
            names: vec![all()],
            numbers: HashMap::new(),
            nodes: vec![(0, 0)],
            known: HashMap::new(),
            of_samples: HashMap::new(),
        }
    }

    /// Where a sample is in the tree.
    fn node(&mut self, sample: &TreeSample) -> u32 {
        let key = (sample.labels, sample.node);
        if let Some(&node) = self.of_samples.get(&key) {
            return node;
        }
        let tree = self.tree;
        let stack = tree.stack(sample.node);
        let split = kernel_part(&stack, |frame| frame.kind).filter(|_| self.style.delimited);
        let mut node = 0;
        let wanted = match self.has_owners {
            true => self.profile.label_frames,
            false => LabelFrames {
                threads: false,
                ..self.profile.label_frames
            },
        };
        for frame in self.profile.labels_at(sample.labels).frames(wanted) {
            if self.has_owners || frame.kind != FrameKind::Process {
                node = self.step(node, &drawn(&frame));
            }
        }
        for (depth, frame) in stack.into_iter().enumerate() {
            if split == Some(depth) {
                node = self.step(node, &delimiter());
            }
            node = self.step(node, &drawn(frame));
        }
        if node == 0 {
            node = self.step(node, &unknown());
        }
        self.of_samples.insert(key, node);
        node
    }

    /// The number of a name, which is added when it is not there yet.
    fn number(&mut self, name: &Frame) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.clone());
        self.numbers.insert(name.clone(), number);
        number
    }

    fn step(&mut self, node: u32, name: &Frame) -> u32 {
        let number = self.number(name);
        let next = self.nodes.len() as u32;
        let nodes = &mut self.nodes;
        *self.known.entry((node, number)).or_insert_with(|| {
            nodes.push((node, number));
            next
        })
    }
}

/// The same tree in preorder, callees by name: names, names and parents by node, and where each node is now.
fn in_order(names: Vec<Frame>, nodes: &[(u32, u32)]) -> (Vec<Frame>, Vec<u32>, Vec<u32>, Vec<u32>) {
    let mut by_name: Vec<u32> = (0..names.len() as u32).collect();
    // The root's comes first, whatever it is called.
    by_name[1..].sort_unstable_by_key(|&number| &names[number as usize]);
    let mut ranks = vec![0; names.len()];
    for (rank, &number) in by_name.iter().enumerate() {
        ranks[number as usize] = rank as u32;
    }
    let names = by_name
        .iter()
        .map(|&number| names[number as usize].clone())
        .collect();
    let callers = nodes.iter().enumerate();
    let callers = callers.map(|(node, &(parent, _))| (node > 0).then_some(parent));
    let order = Preorder::new(callers, |node| ranks[nodes[node as usize].1 as usize]);
    let parents = order.callers().map(Option::unwrap_or_default).collect();
    let ordered = order.nodes.iter().map(|node| node.rank).collect();
    (names, ordered, parents, order.places)
}
