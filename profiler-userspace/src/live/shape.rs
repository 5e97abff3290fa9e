//! The tree that is on the screen: calls as they are asked for.
//!
//! In: [`Calls`], and what of them is wanted. Out: nodes with shares, sorted by name or by weight, from all that was counted down to the
//! last call; and back into a profile, for saving. The sum of all nodes is that of what is wanted.

use super::calls::{Calls, Name, NodeKind, Owner};
use crate::profile::fold::visible;
use crate::profile::{FrameKind, IndexSet};
use foldhash::HashMap;

/// Which time is shown, of threads that ran and of those that waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Time {
    /// Both.
    #[default]
    All,
    /// While they ran.
    On,
    /// While they did not.
    Off,
}

/// How owners are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Grouping {
    /// By name.
    #[default]
    Names,
    /// By process.
    Processes,
    /// By thread.
    Threads,
    /// Not at all.
    Nothing,
}

/// Selection and grouping of the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CallSelection {
    pub(super) time: Time,
    pub(super) grouping: Grouping,
    /// Whether frames of the kernel are shown.
    pub(super) kernel: bool,
    /// Whether only what runtimes run is shown, and nothing of other stacks.
    pub(super) runtime_only: bool,
    /// Whether stacks begin at the frame that the thread was in.
    pub(super) reverse: bool,
    /// Whether the heaviest callee is on the left, and not the first by name.
    pub(super) by_weight: bool,
    /// Nobody but this owner.
    pub(super) only: Option<Owner>,
}

impl Default for CallSelection {
    fn default() -> Self {
        Self {
            time: Time::All,
            grouping: Grouping::Names,
            kernel: true,
            runtime_only: false,
            reverse: false,
            by_weight: false,
            only: None,
        }
    }
}

/// A node.
#[derive(Clone, Debug)]
pub(super) struct ShapeNode {
    /// An index into [`Shape::names`].
    pub(super) name: u32,
    /// The node below; the root is its own.
    pub(super) parent: u32,
    /// Weight of this node and all above, of threads that ran, and of those that did not.
    pub(super) total: [f64; 2],
    /// Weight of this node alone.
    pub(super) own: f64,
    /// The same in firings.
    pub(super) own_count: f64,
    /// Its nodes above, in the order that is wanted.
    pub(super) children: Vec<u32>,
    /// How far it is from the root.
    pub(super) depth: u32,
    /// The node of the calls that it was first made of; none at the root.
    pub(super) source: Option<u32>,
}

impl ShapeNode {
    /// Weight of this node and all above.
    pub(super) fn weight(&self) -> f64 {
        self.total[0] + self.total[1]
    }
}

/// A tree, the root first.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) names: IndexSet<Name>,
    pub(super) nodes: Vec<ShapeNode>,
}

/// The node that all others stand on.
pub(super) const ROOT: u32 = 0;

/// Its name.
const ALL: &str = "all";

impl Shape {
    /// The tree of what is wanted.
    pub(super) fn new(calls: &Calls, wanted: &CallSelection) -> Self {
        let mut builder = Builder::new(calls, wanted);
        match wanted.reverse {
            false => builder.forward(),
            true => builder.backward(),
        }
        builder.finish()
    }

    /// The node at an index.
    pub(super) fn node(&self, index: u32) -> &ShapeNode {
        &self.nodes[index as usize]
    }

    /// Name of a node.
    pub(super) fn name(&self, index: u32) -> &Name {
        &self.names[self.node(index).name as usize]
    }

    /// The whole weight.
    pub(super) fn total(&self) -> f64 {
        self.node(ROOT).weight()
    }

    /// The names that lead from the root to a node.
    pub(super) fn path(&self, mut index: u32) -> Vec<Name> {
        let mut path = Vec::new();
        while index != ROOT {
            path.push(self.name(index).clone());
            index = self.node(index).parent;
        }
        path.reverse();
        path
    }

    /// The node at the end of a path, or as far on it as there are nodes.
    pub(super) fn find(&self, path: &[Name]) -> u32 {
        let mut at = ROOT;
        for name in path {
            let mut children = self.node(at).children.iter();
            match children.find(|child| self.name(**child) == name) {
                Some(child) => at = *child,
                None => break,
            }
        }
        at
    }

    /// Whether a node is another one, or above it.
    pub(super) fn is_above(&self, mut index: u32, other: u32) -> bool {
        while self.node(index).depth > self.node(other).depth {
            index = self.node(index).parent;
        }
        index == other
    }

    /// The heaviest of a node's children.
    pub(super) fn heaviest(&self, index: u32) -> Option<u32> {
        let children = self.node(index).children.iter().copied();
        children.max_by(|a, b| self.node(*a).weight().total_cmp(&self.node(*b).weight()))
    }
}

struct Builder<'a> {
    calls: &'a Calls,
    wanted: &'a CallSelection,
    shape: Shape,
    known: HashMap<(u32, u32), u32>,
    /// For each node of the calls its name; none of those that are not shown.
    names: Vec<Option<u32>>,
    /// For each node of the calls whether a runtime runs it, and whether what was counted there is shown.
    runtimes: Vec<[bool; 2]>,
}

impl<'a> Builder<'a> {
    fn new(calls: &'a Calls, wanted: &'a CallSelection) -> Self {
        let root = ShapeNode {
            name: 0,
            parent: ROOT,
            total: [0.0; 2],
            own: 0.0,
            own_count: 0.0,
            children: Vec::new(),
            depth: 0,
            source: None,
        };
        let mut builder = Self {
            calls,
            wanted,
            shape: Shape {
                names: calls.names.clone(),
                nodes: vec![root],
            },
            known: HashMap::default(),
            names: Vec::with_capacity(calls.nodes.len()),
            runtimes: Vec::with_capacity(calls.nodes.len()),
        };
        builder.shape.nodes[0].name = builder.name(ALL);
        let owners = calls.owners.iter();
        let owners: Vec<Option<u32>> = owners
            .map(|owner| {
                let name = owner_name(owner, wanted.grouping)?;
                Some(builder.shape.names.insert_full(name).0 as u32)
            })
            .collect();
        for node in &calls.nodes {
            let below = node.parent.map(|parent| builder.runtimes[parent as usize]);
            let [of_caller, is_inside] = below.unwrap_or_default();
            let is_run = match node.what {
                NodeKind::Owner(_) => false,
                NodeKind::Call(place) => place.kind.is_of_runtime_within(of_caller),
            };
            (builder.runtimes).push([is_run, is_run || is_inside || !wanted.runtime_only]);
            let name = match node.what {
                NodeKind::Owner(owner) => owners[owner as usize],
                NodeKind::Call(place) => is_shown(place.kind, is_run, wanted).then_some(place.name),
            };
            builder.names.push(name);
        }
        builder
    }

    fn name(&mut self, text: &str) -> u32 {
        let name = Name {
            text: text.into(),
            kind: FrameKind::Label,
        };
        self.shape.names.insert_full(name).0 as u32
    }

    /// Whether a node's owner is wanted.
    fn is_wanted(&self, what: NodeKind) -> bool {
        match (what, &self.wanted.only) {
            (NodeKind::Owner(owner), Some(only)) => self.calls.owners[owner as usize] == *only,
            _ => true,
        }
    }

    /// Weights and firings of a node, of the time that is wanted.
    fn own(&self, node: usize) -> ([f64; 2], f64) {
        let own = &self.calls.nodes[node].own;
        let of = |sums: &[f64; 2]| match self.wanted.time {
            Time::All => *sums,
            Time::On => [sums[0], 0.0],
            Time::Off => [0.0, sums[1]],
        };
        (of(&own.weight), of(&own.count).iter().sum())
    }

    fn forward(&mut self) {
        let calls = self.calls;
        let mut places: Vec<Option<u32>> = Vec::with_capacity(calls.nodes.len());
        for (index, node) in calls.nodes.iter().enumerate() {
            let below = match node.parent {
                Some(parent) => places[parent as usize],
                None => self.is_wanted(node.what).then_some(ROOT),
            };
            let at = below.map(|below| match self.names[index] {
                Some(name) => self.child(below, name, index),
                None => below,
            });
            places.push(at);
            if let Some(at) = at.filter(|_| self.runtimes[index][1]) {
                self.count(at, index);
            }
        }
    }

    fn backward(&mut self) {
        let calls = self.calls;
        for (index, node) in calls.nodes.iter().enumerate() {
            let (weight, _) = self.own(index);
            if weight == [0.0; 2] || !self.runtimes[index][1] {
                continue;
            }
            let mut owner = index;
            while let Some(parent) = calls.nodes[owner].parent {
                owner = parent as usize;
            }
            if !self.is_wanted(calls.nodes[owner].what) {
                continue;
            }
            let mut at = ROOT;
            let mut next = Some(index);
            while let Some(index) = next {
                if let Some(name) = self.names[index] {
                    at = self.child(at, name, index);
                }
                next = calls.nodes[index].parent.map(|parent| parent as usize);
            }
            debug_assert!(node.parent.is_none() || at != ROOT || self.names[index].is_none());
            self.count(at, index);
        }
    }

    fn child(&mut self, below: u32, name: u32, source: usize) -> u32 {
        let nodes = &mut self.shape.nodes;
        *self.known.entry((below, name)).or_insert_with(|| {
            let index = nodes.len() as u32;
            let depth = nodes[below as usize].depth + 1;
            nodes[below as usize].children.push(index);
            nodes.push(ShapeNode {
                name,
                parent: below,
                total: [0.0; 2],
                own: 0.0,
                own_count: 0.0,
                children: Vec::new(),
                depth,
                source: Some(source as u32),
            });
            index
        })
    }

    fn count(&mut self, at: u32, index: usize) {
        let (weight, count) = self.own(index);
        let node = &mut self.shape.nodes[at as usize];
        node.own += weight[0] + weight[1];
        node.own_count += count;
        node.total[0] += weight[0];
        node.total[1] += weight[1];
    }

    fn finish(self) -> Shape {
        let mut shape = self.shape;
        for index in (1..shape.nodes.len()).rev() {
            let ShapeNode { parent, total, .. } = shape.nodes[index];
            let below = &mut shape.nodes[parent as usize].total;
            below[0] += total[0];
            below[1] += total[1];
        }
        let is_empty: Vec<bool> = shape.nodes.iter().map(|n| n.weight() <= 0.0).collect();
        let names: Vec<u32> = shape.nodes.iter().map(|node| node.name).collect();
        let name = |child: &u32| &shape.names[names[*child as usize] as usize];
        let by_weight = self.wanted.by_weight;
        let weights: Vec<f64> = (shape.nodes.iter())
            .map(|node| if by_weight { node.weight() } else { 0.0 })
            .collect();
        let weight = |child: &u32| weights[*child as usize];
        for node in &mut shape.nodes {
            node.children.retain(|child| !is_empty[*child as usize]);
            node.children.sort_unstable_by(|a, b| {
                let by_name = || {
                    let (a, b) = (name(a), name(b));
                    (&a.text, a.kind).cmp(&(&b.text, b.kind))
                };
                weight(b).total_cmp(&weight(a)).then_with(by_name)
            });
        }
        shape
    }
}

/// Whether frames of such a kind are shown, which a runtime runs or does not.
pub(super) fn is_shown(kind: FrameKind, is_run: bool, wanted: &CallSelection) -> bool {
    let is_state = matches!(kind, FrameKind::State(_));
    (wanted.kernel || kind != FrameKind::Kernel) && (!wanted.runtime_only || is_run || is_state)
}

/// How an owner reads, as far as owners are told apart.
pub(super) fn owner_name(owner: &Owner, grouping: Grouping) -> Option<Name> {
    let name = visible(&owner.name);
    let text = match (grouping, owner.pid, owner.tid) {
        (Grouping::Nothing, ..) => return None,
        (Grouping::Threads, Some(pid), Some(tid)) => match &owner.thread {
            Some(thread) => format!("{name} ({pid}/{tid} {})", visible(thread)),
            None => format!("{name} ({pid}/{tid})"),
        },
        (Grouping::Processes | Grouping::Threads, Some(pid), _) => format!("{name} ({pid})"),
        _ => name.into_owned(),
    };
    Some(Name {
        text: text.into(),
        kind: FrameKind::Process,
    })
}
