//! Trees of calls since the live view began, one for each owner.
//!
//! In: profiles of windows, as outputs show them. Out: nodes with what was counted at each, while running and while waiting.
//! Memory is bounded: owners beyond a number are told apart by name alone, and where there are too many nodes, the lightest
//! are joined under a mark.
//! Never: loses a weight, but where it is asked to let old ones fade.

use crate::profile::fold::visible;
use crate::profile::joining::Joining;
use crate::profile::{
    CallTree, Code, Frame, FrameKind, Function, IndexSet, Labels, Mapping, Profile, Unit, with_line,
};
use foldhash::HashMap;
use profiler_common::abi::ThreadState;
use std::borrow::Cow;
use std::hash::Hash;
use std::sync::Arc;

/// More nodes than this are not kept. Of the whole machine, a minute has about 5,000.
const MAX_NODES: usize = 24_000;

/// So many owners are told apart by process ID and thread ID.
const MAX_OWNERS: usize = 512;

/// So many new owners of a window are, those with the most weight.
const MAX_NEW_OWNERS: usize = 32;

/// The mark that stands for stacks that are too rare to be kept.
pub(super) const JOINED: &str = "[rare stacks]";

/// Owner of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Owner {
    /// The name of the process, or of the thread where only that is known.
    pub(super) name: String,
    /// The process ID; none of owners that are told apart by name alone.
    pub(super) pid: Option<u32>,
    /// When the process began, as in [`Labels::start`].
    pub(super) start: u64,
    /// The thread ID, where threads are told apart.
    pub(super) tid: Option<u32>,
    /// The thread's name, where that is another.
    pub(super) thread: Option<String>,
    /// The CPU, where CPUs are told apart.
    pub(super) cpu: Option<u32>,
}

impl Owner {
    fn new(labels: &Labels) -> Self {
        Self {
            name: labels.name().unwrap_or_default().to_owned(),
            pid: labels.pid,
            start: labels.start,
            tid: labels.tid,
            thread: labels.thread().map(str::to_owned),
            cpu: labels.cpu,
        }
    }

    /// The same, by name alone.
    fn nameless(&self) -> Self {
        Self {
            name: self.name.clone(),
            ..Self::default()
        }
    }
}

/// Name of a frame.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Name {
    /// As readers see it; nothing in it would be obeyed by a terminal.
    pub(super) text: Arc<str>,
    pub(super) kind: FrameKind,
}

/// A frame that code has, or a mark, with all that saving it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SavedFrame {
    /// The function, or what holds the mark's name: an index into [`Calls::functions`].
    pub(super) function: u32,
    /// An index into [`Calls::mappings`].
    pub(super) mapping: Option<u32>,
    /// The line, from 1; 0 where it is not known.
    pub(super) line: u32,
    /// Kind of the frame.
    pub(super) kind: FrameKind,
    /// How it reads: an index into [`Calls::names`]. All else decides this.
    pub(super) name: u32,
}

/// Meaning of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum NodeKind {
    /// All that an owner did: an index into [`Calls::owners`].
    Owner(u32),
    /// A call.
    Call(SavedFrame),
}

/// Sums of a node. Not whole numbers, because fading takes parts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    /// Weights of threads that ran, and of those that did not.
    pub(super) weight: [f64; 2],
    /// Firings, of both.
    pub(super) count: [f64; 2],
}

impl Sums {
    fn add(&mut self, other: &Self, factor: f64) {
        for state in 0..2 {
            self.weight[state] += other.weight[state] * factor;
            self.count[state] += other.count[state] * factor;
        }
    }

    fn all(&self) -> f64 {
        self.weight[0] + self.weight[1]
    }
}

/// A node of a tree.
#[derive(Clone, Debug)]
pub(super) struct Node {
    /// The caller's node, which always has a lower index; none of owners.
    pub(super) parent: Option<u32>,
    pub(super) what: NodeKind,
    /// Sums of this node alone, without callees.
    pub(super) own: Sums,
}

/// Trees of calls, with all that they refer to.
#[derive(Clone, Debug)]
pub(super) struct Calls {
    /// Unit of the weights.
    pub(super) unit: Unit,
    pub(super) functions: IndexSet<Function>,
    pub(super) mappings: IndexSet<Mapping>,
    pub(super) owners: IndexSet<Owner>,
    pub(super) names: IndexSet<Name>,
    /// How functions read, by their numbers and lines.
    known_names: HashMap<(u32, u32, FrameKind), u32>,
    pub(super) nodes: Vec<Node>,
    children: HashMap<(Option<u32>, NodeKind), u32>,
    /// How many nodes were joined so far.
    pub(super) joined: u64,
}

impl Calls {
    /// Nothing counted yet.
    pub(super) fn new(unit: Unit) -> Self {
        Self {
            unit,
            functions: IndexSet::default(),
            mappings: IndexSet::default(),
            owners: IndexSet::default(),
            names: IndexSet::default(),
            known_names: HashMap::default(),
            nodes: Vec::new(),
            children: HashMap::default(),
            joined: 0,
        }
    }

    /// Adds a profile, each weight multiplied by `factor`.
    pub(super) fn add(&mut self, profile: &Profile, factor: f64) {
        let tree = CallTree::new(profile);
        let owners = self.new_owners(profile, &tree);
        let places: Vec<SavedFrame> = tree
            .frames()
            .map(|(frame, code)| self.place(profile, frame, code))
            .collect();
        let mut joining = Joining::new(&tree);
        for sample in tree.samples_by_owner() {
            let owner = NodeKind::Owner(owners[sample.labels.0 as usize]);
            let root = self.child(None, owner);
            let at = joining.place(sample.node, Some(root), |caller, frame| {
                self.child(caller, NodeKind::Call(places[frame.index()]))
            });
            let at = at.unwrap_or(root);
            let state = usize::from(!ran(sample.thread_state));
            let own = &mut self.nodes[at as usize].own;
            own.weight[state] += sample.weight as f64 * factor;
            own.count[state] += sample.count as f64 * factor;
        }
        self.keep_bounds(MAX_NODES, MAX_OWNERS);
    }

    /// Multiplies all weights. What has nearly vanished is forgotten.
    pub(super) fn fade(&mut self, factor: f64) {
        for node in &mut self.nodes {
            for state in 0..2 {
                node.own.weight[state] *= factor;
                node.own.count[state] *= factor;
            }
        }
        let least = self.total() / 1e6;
        let totals = self.totals();
        let vanished = totals.iter().filter(|total| **total < least).count();
        if vanished > self.nodes.len() / 4 {
            self.rebuild(|calls, node| (totals[node] >= least).then(|| calls.nodes[node].what));
        }
    }

    /// The sum of all weights.
    pub(super) fn total(&self) -> f64 {
        self.nodes.iter().map(|node| node.own.all()).sum()
    }

    /// Of each node what was counted in it and in all that it called.
    fn totals(&self) -> Vec<f64> {
        let mut totals: Vec<f64> = self.nodes.iter().map(|node| node.own.all()).collect();
        for (index, node) in self.nodes.iter().enumerate().rev() {
            if let Some(parent) = node.parent {
                totals[parent as usize] += totals[index];
            }
        }
        totals
    }

    /// The owners of a profile's labels, as indices.
    fn new_owners(&mut self, profile: &Profile, tree: &CallTree) -> Vec<u32> {
        let mut weights = vec![0_u64; profile.all_labels().len()];
        for sample in tree.samples() {
            let weight = &mut weights[sample.labels.0 as usize];
            *weight = weight.saturating_add(sample.weight);
        }
        let all: Vec<Owner> = profile.all_labels().map(Owner::new).collect();
        let mut new: Vec<usize> = (0..all.len())
            .filter(|label| self.owners.get_index_of(&all[*label]).is_none())
            .collect();
        new.sort_by_key(|label| std::cmp::Reverse(weights[*label]));
        for label in new.into_iter().take(MAX_NEW_OWNERS) {
            self.owners.insert(all[label].clone());
        }
        let index = |owner: Owner| match self.owners.get_index_of(&owner) {
            Some(index) => index as u32,
            None => self.owners.insert_full(owner.nameless()).0 as u32,
        };
        all.into_iter().map(index).collect()
    }

    fn place(&mut self, profile: &Profile, frame: &Frame, code: Option<Code>) -> SavedFrame {
        let mapping = code.and_then(|code| code.mapping);
        let mapping = mapping.map(|index| {
            let mapping = &profile.mappings()[index.0 as usize];
            number(&mut self.mappings, mapping)
        });
        match code {
            Some(code) => {
                let function = profile.function_at(code.function);
                self.place_of(function, mapping, code.line, frame.kind)
            }
            None => {
                let function = Function::named(frame.name.clone());
                self.place_of(&function, mapping, 0, frame.kind)
            }
        }
    }

    fn place_of(
        &mut self,
        function: &Function,
        mapping: Option<u32>,
        line: u32,
        kind: FrameKind,
    ) -> SavedFrame {
        let function_number = number(&mut self.functions, function);
        let key = (function_number, line, kind);
        let place = |name| SavedFrame {
            function: function_number,
            mapping,
            line,
            kind,
            name,
        };
        if let Some(name) = self.known_names.get(&key) {
            return place(*name);
        }
        let text = match line {
            0 => visible(&function.name),
            line => Cow::Owned({
                let name = with_line(&function.name, &function.file, line);
                visible(&name).into_owned()
            }),
        };
        let name = Name {
            text: Arc::from(&*text),
            kind,
        };
        let name = self.names.insert_full(name).0 as u32;
        self.known_names.insert(key, name);
        place(name)
    }

    /// The node of a call, which is added when it is not there yet.
    fn child(&mut self, parent: Option<u32>, what: NodeKind) -> u32 {
        *self.children.entry((parent, what)).or_insert_with(|| {
            self.nodes.push(Node {
                parent,
                what,
                own: Sums::default(),
            });
            self.nodes.len() as u32 - 1
        })
    }

    /// Joins the lightest owners and nodes, where there are more than may be.
    pub(super) fn keep_bounds(&mut self, most_nodes: usize, most_owners: usize) {
        if self.owners.len() > most_owners {
            self.join_owners(most_owners / 2);
        }
        if self.nodes.len() > most_nodes {
            self.join_nodes(most_nodes / 2);
        }
    }

    /// Has so many owners with an ID, those with the most weight. The others are told apart by name.
    fn join_owners(&mut self, most: usize) {
        let totals = self.totals();
        let mut by_weight: Vec<(usize, f64)> = (self.nodes.iter().zip(&totals))
            .filter_map(|(node, total)| match node.what {
                NodeKind::Owner(owner) => Some((owner as usize, *total)),
                NodeKind::Call(_) => None,
            })
            .collect();
        by_weight.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut keeps = vec![false; self.owners.len()];
        for (owner, _) in by_weight.into_iter().take(most) {
            keeps[owner] = true;
        }
        let mut again = IndexSet::default();
        let numbers: Vec<u32> = (self.owners.iter().zip(keeps))
            .map(|(owner, is_kept)| {
                let owner = match is_kept {
                    true => owner.clone(),
                    false => owner.nameless(),
                };
                again.insert_full(owner).0 as u32
            })
            .collect();
        self.owners = again;
        self.rebuild(|calls, node| {
            Some(match calls.nodes[node].what {
                NodeKind::Owner(owner) => NodeKind::Owner(numbers[owner as usize]),
                what => what,
            })
        });
    }

    /// Has so many nodes at most, those with the most weight. What others counted is at a mark above their callers.
    fn join_nodes(&mut self, most: usize) {
        let totals = self.totals();
        let mut sorted = totals.clone();
        sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        let least = sorted[most];
        let before = self.nodes.len();
        self.rebuild(|calls, node| (totals[node] > least).then(|| calls.nodes[node].what));
        self.joined += (before - self.nodes.len()) as u64;
    }

    /// Builds all anew, with the nodes that `change` makes of those that there are. What was counted in one that it makes
    /// none of is at a mark in the place of the first of its callers that is not there any more.
    fn rebuild(&mut self, change: impl Fn(&Self, usize) -> Option<NodeKind>) {
        let mut new = Self {
            owners: std::mem::take(&mut self.owners),
            joined: self.joined,
            ..Self::new(self.unit.clone())
        };
        // Where each node is now, and whether that is the mark.
        let mut moved: Vec<(Option<u32>, bool)> = Vec::with_capacity(self.nodes.len());
        for (index, node) in self.nodes.iter().enumerate() {
            let (parent, is_joined) = match node.parent {
                Some(parent) => moved[parent as usize],
                None => (None, false),
            };
            let at = match change(self, index).filter(|_| !is_joined) {
                Some(NodeKind::Call(place)) => {
                    let place = self.moved_place(place, &mut new);
                    (Some(new.child(parent, NodeKind::Call(place))), false)
                }
                Some(owner) => (Some(new.child(parent, owner)), false),
                None if node.own.all() > 0.0 && !is_joined => (Some(new.mark(parent)), true),
                None => (parent, is_joined),
            };
            if let Some(at) = at.0 {
                new.nodes[at as usize].own.add(&node.own, 1.0);
            }
            moved.push(at);
        }
        *self = new;
    }

    /// The mark of rare stacks, which a caller has, or an owner of its own.
    fn mark(&mut self, parent: Option<u32>) -> u32 {
        let parent = parent.unwrap_or_else(|| {
            let owner = self.owners.insert_full(Owner {
                name: JOINED.to_owned(),
                ..Owner::default()
            });
            self.child(None, NodeKind::Owner(owner.0 as u32))
        });
        let function = Function::named(JOINED);
        let place = self.place_of(&function, None, 0, FrameKind::Mark);
        self.child(Some(parent), NodeKind::Call(place))
    }

    fn moved_place(&self, place: SavedFrame, new: &mut Self) -> SavedFrame {
        let function = &self.functions[place.function as usize];
        let mapping = place.mapping;
        let mapping =
            mapping.map(|index| number(&mut new.mappings, &self.mappings[index as usize]));
        let name = self.names[place.name as usize].clone();
        SavedFrame {
            function: number(&mut new.functions, function),
            mapping,
            name: new.names.insert_full(name).0 as u32,
            ..place
        }
    }
}

/// The number of a value in a set, to which a copy is added when it is not there yet.
fn number<T: Clone + Hash + Eq>(set: &mut IndexSet<T>, value: &T) -> u32 {
    let known = set.get_index_of(value);
    known.unwrap_or_else(|| set.insert_full(value.clone()).0) as u32
}

/// Whether a thread was on a CPU.
fn ran(thread_state: ThreadState) -> bool {
    matches!(thread_state, ThreadState::Running | ThreadState::Ran)
}
