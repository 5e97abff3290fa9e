//! Both sides as one tree of calls.
//!
//! In: profiles of each side. Out: nodes in preorder, callees by name, and for each node and window what was counted right
//! there. A frame is one node on both sides if its stable name and its callers' are the same. Weight is conserved.

use super::matching::{Class, Matching};
use crate::profile::joining::Joining;
use crate::profile::paths::Paths;
use crate::profile::preorder::Preorder;
use crate::profile::{CallTree, Frame, FrameKind, IndexSet, Labels, NodeIndex, Profile};
use foldhash::HashMap;
use std::num::NonZeroU32;

/// A name's place in [`Tree::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NameIndex(pub(super) u32);

impl NameIndex {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A frame by what it is known by in all builds.
#[derive(Clone, Debug)]
pub(super) struct Name {
    stable: String,
    pub(super) class: Class,
    /// As it reads on each side.
    names: [IndexSet<String>; 2],
}

impl Name {
    /// How it is shown: as it reads after, where it is there; the plain form where there are several.
    pub(super) fn shown(&self) -> &str {
        let all = match self.names[1].is_empty() {
            true => &self.names[0],
            false => &self.names[1],
        };
        match all.iter().next() {
            Some(only) if all.len() == 1 => only,
            _ => &self.stable,
        }
    }

    /// Whether it is on both sides, and nowhere reads the same.
    pub(super) fn is_loose(&self) -> bool {
        let [before, after] = &self.names;
        let is_on_both = !before.is_empty() && !after.is_empty();
        self.class.is_code() && is_on_both && before.is_disjoint(after)
    }
}

/// A frame below those of its callers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) parent: Option<NonZeroU32>,
    pub(super) name: NameIndex,
    /// How many are below it.
    pub(super) depth: u32,
    /// The first node behind it that it did not call.
    pub(super) end: u32,
}

impl Node {
    /// The node of its caller.
    pub(super) fn parent(&self) -> Option<usize> {
        self.parent.map(|behind| behind.get() as usize - 1)
    }
}

/// The place of a caller, plus one, as nodes have it.
fn behind(parent: Option<u32>) -> Option<NonZeroU32> {
    parent.and_then(|parent| NonZeroU32::new(parent + 1))
}

/// Weight and count at a node in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) node: u32,
    /// Where the thread itself was.
    pub(super) own: u32,
    /// Of all windows of the side.
    pub(super) window: u32,
    side: u8,
    pub(super) weight: u64,
    pub(super) count: u64,
    /// The largest weight that is known to be of one firing; 0 if there is none.
    pub(super) lone: u64,
}

impl Entry {
    pub(super) fn side(&self) -> usize {
        usize::from(self.side)
    }

    /// All that tells entries apart.
    fn key(&self) -> (u32, u32, u8, u32) {
        (self.node, self.own, self.side, self.window)
    }
}

/// Both sides.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) names: Vec<Name>,
    pub(super) nodes: Vec<Node>,
    /// By node.
    pub(super) entries: Vec<Entry>,
    /// For each node, and behind the last, where entries from it on begin.
    begins: Vec<u32>,
    /// The weight of stacks with a frame that the other side calls differently, by side.
    pub(super) loose: [u64; 2],
    /// Names of the one program of each side, where they are taken for one.
    pub(super) programs: Option<[String; 2]>,
}

impl Tree {
    /// Of these profiles, by side; the memory of each is freed as soon as it is read.
    pub(super) fn new(sides: [Vec<Profile>; 2]) -> Self {
        let mut growing = Growing {
            matching: Matching::new(&sides),
            ..Growing::default()
        };
        growing.names_of_programs(&sides);
        for (side, profiles) in (0..).zip(sides) {
            let mut window = 0;
            for profile in profiles {
                let windows = profile.windows.len().max(1) as u32;
                growing.add(profile, side, window);
                window += windows;
            }
        }
        growing.sorted()
    }

    /// Entries of a node and of all that it called.
    pub(super) fn below(&self, node: usize) -> &[Entry] {
        let begin = |node: usize| self.begins[node] as usize;
        &self.entries[begin(node)..begin(self.nodes[node].end as usize)]
    }

    /// Entries of a node itself.
    pub(super) fn at(&self, node: usize) -> &[Entry] {
        &self.entries[self.begins[node] as usize..self.begins[node + 1] as usize]
    }

    /// A node and its callers, the node itself first.
    pub(super) fn callers(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(node), |&node| self.nodes[node].parent())
    }
}

/// A tree whose nodes are in the order in which they came.
#[derive(Default)]
struct Growing {
    names: Vec<Name>,
    known: HashMap<(String, Class), NameIndex>,
    calls: Paths<NameIndex>,
    entries: Vec<Entry>,
    /// Names of the program of each side, where each has one and they differ.
    program: Option<[String; 2]>,
    matching: Matching,
}

/// Placeholder for the program where both sides have one, of different names.
const PROGRAM: &str = "program";

impl Growing {
    /// Takes the programs of both sides for one, where each side has only one.
    fn names_of_programs(&mut self, sides: &[Vec<Profile>; 2]) {
        let only = |profiles: &Vec<Profile>| {
            let labels = profiles.iter().flat_map(Profile::all_labels);
            let mut names = labels.filter_map(Labels::name);
            let first = names.next()?;
            names.all(|name| name == first).then(|| first.to_owned())
        };
        if let (Some(before), Some(after)) = (only(&sides[0]), only(&sides[1]))
            && before != after
        {
            self.program = Some([before, after]);
        }
    }

    fn add(&mut self, profile: Profile, side: u8, first_window: u32) {
        let roots: Vec<Option<u32>> = profile
            .all_labels()
            .map(|labels| self.root(labels.name(), side))
            .collect();
        let tree = CallTree::new(&profile);
        drop(profile);
        let mut names: Vec<Option<NameIndex>> = vec![None; tree.frame_count()];
        let mut joining = Joining::new(&tree);
        let first = self.entries.len();
        let samples = tree.samples_by_owner().into_iter();
        for sample in samples.filter(|sample| sample.weight > 0) {
            let root = roots[sample.labels.0 as usize];
            let [node, own] = [sample.node, sample.own].map(|node| {
                joining.place(node, root, |caller, frame| {
                    let name = *names[frame.index()]
                        .get_or_insert_with(|| self.name_of(tree.frame(frame), side));
                    self.child(caller, name)
                })
            });
            let (node, own) = match (node.or(own), own.or(node)) {
                (Some(node), Some(own)) => (node, own),
                _ => {
                    let node = self.without_stack(side);
                    (node, node)
                }
            };
            self.entries.push(Entry {
                node,
                own,
                window: first_window + sample.window.0,
                side,
                weight: sample.weight,
                count: sample.count,
                lone: if sample.count == 1 { sample.weight } else { 0 },
            });
        }
        // Threads of one process, and states, are not told apart.
        self.entries[first..].sort_unstable_by_key(Entry::key);
        self.entries.dedup_by(|entry, last| {
            let is_same = entry.key() == last.key();
            if is_same {
                last.weight = last.weight.saturating_add(entry.weight);
                last.count = last.count.saturating_add(entry.count);
                last.lone = last.lone.max(entry.lone);
            }
            is_same
        });
    }

    fn name_of(&mut self, frame: &Frame, side: u8) -> NameIndex {
        let stable = self.matching.stable(frame).into_owned();
        self.name(stable, Class::of(frame.kind), &frame.name, side)
    }

    /// The frame that stands for a process.
    fn root(&mut self, name: Option<&str>, side: u8) -> Option<u32> {
        let owner = name?;
        let stable = match &self.program {
            Some(_) => PROGRAM.to_owned(),
            None => {
                let frame = Frame::new(owner, FrameKind::Process);
                self.matching.stable(&frame).into_owned()
            }
        };
        let name = self.name(stable, Class::Owner, owner, side);
        Some(self.child(None, name))
    }

    fn name(&mut self, stable: String, class: Class, reads: &str, side: u8) -> NameIndex {
        let names = &mut self.names;
        let index = *self
            .known
            .entry((stable, class))
            .or_insert_with_key(|(stable, class)| {
                names.push(Name {
                    stable: stable.clone(),
                    class: *class,
                    names: [IndexSet::default(), IndexSet::default()],
                });
                NameIndex(u32::try_from(names.len() - 1).expect("fewer than 2^32 names"))
            });
        let all = &mut self.names[index.index()].names[usize::from(side)];
        if !all.contains(reads) {
            all.insert(reads.to_owned());
        }
        index
    }

    fn child(&mut self, parent: Option<u32>, name: NameIndex) -> u32 {
        let parent = parent.map(|parent| NodeIndex::new(parent as usize));
        self.calls.child(parent, name).number()
    }

    /// The node of what is of nobody and nowhere.
    fn without_stack(&mut self, side: u8) -> u32 {
        let name = self.name("[no stack]".to_owned(), Class::Mark, "[no stack]", side);
        self.child(None, name)
    }

    /// The same in preorder, callees by name.
    fn sorted(self) -> Tree {
        let by_rank = self.by_rank();
        let mut ranks = vec![0; by_rank.len()];
        for (rank, name) in (0..).zip(&by_rank) {
            ranks[name.index()] = rank;
        }
        let calls = self.calls.into_nodes();
        let callers = calls.iter().map(|call| call.parent.map(NodeIndex::number));
        let rank = |node: u32| ranks[calls[node as usize].frame.index()];
        let order = Preorder::new(callers, rank);
        drop(calls);
        let mut nodes: Vec<Node> = (0..)
            .zip(order.nodes.iter().zip(order.callers()))
            .map(|(place, (node, parent))| Node {
                parent: behind(parent),
                name: by_rank[node.rank as usize],
                depth: node.depth,
                end: place + 1,
            })
            .collect();
        for place in (0..nodes.len()).rev() {
            if let Some(parent) = nodes[place].parent() {
                nodes[parent].end = nodes[parent].end.max(nodes[place].end);
            }
        }
        let again = order.places;
        let mut entries = self.entries;
        for entry in &mut entries {
            entry.node = again[entry.node as usize];
            entry.own = again[entry.own as usize];
        }
        entries.sort_unstable_by_key(Entry::key);
        let mut begins = vec![0; nodes.len() + 1];
        for entry in &entries {
            begins[entry.node as usize + 1] += 1;
        }
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        let mut tree = Tree {
            names: self.names,
            nodes,
            entries,
            begins,
            loose: [0; 2],
            programs: self.program,
        };
        tree.weigh_loose();
        tree
    }

    /// All names in the order of how they are shown.
    fn by_rank(&self) -> Vec<NameIndex> {
        let key = |name: &NameIndex| {
            let name = &self.names[name.index()];
            (name.shown(), name.class)
        };
        let mut by_name: Vec<NameIndex> = (0..self.names.len() as u32).map(NameIndex).collect();
        by_name.sort_by(|a, b| key(a).cmp(&key(b)));
        by_name
    }
}

impl Tree {
    fn weigh_loose(&mut self) {
        let mut is_loose = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let callers = node.parent().is_some_and(|parent: usize| is_loose[parent]);
            is_loose.push(callers || self.names[node.name.index()].is_loose());
        }
        let entries = self.entries.iter();
        for entry in entries.filter(|entry| is_loose[entry.node as usize]) {
            let sum = &mut self.loose[entry.side()];
            *sum = sum.saturating_add(entry.weight);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Unit, fold};

    pub(in crate::diff) fn tree(before: &str, after: &str) -> Tree {
        let profile = |text: &str| fold::parse(text.as_bytes(), Unit::Samples).expect("folded");
        Tree::new([vec![profile(before)], vec![profile(after)]])
    }

    fn shown(tree: &Tree) -> Vec<(u32, &str, [u64; 2])> {
        let sums = |node: usize| {
            let mut sums = [0; 2];
            for entry in tree.below(node) {
                sums[entry.side()] += entry.weight;
            }
            sums
        };
        (0..tree.nodes.len())
            .map(|node| {
                (
                    tree.nodes[node].depth,
                    tree.names[tree.nodes[node].name.index()].shown(),
                    sums(node),
                )
            })
            .collect()
    }

    #[test]
    fn both_sides_are_one_tree_that_has_all_weight() {
        let tree = tree("p;main;b 3\np;main;a 2\np 1\n", "p;main;b;c 5\nq;main 7\n");
        assert_eq!(
            shown(&tree),
            [
                (0, "p", [6, 5]),
                (1, "main", [5, 5]),
                (2, "a", [2, 0]),
                (2, "b", [3, 5]),
                (3, "c", [0, 5]),
                (0, "q", [0, 7]),
                (1, "main", [0, 7]),
            ]
        );
        assert_eq!(tree.loose, [0, 0]);
    }

    #[test]
    fn other_builds_of_one_program_have_the_same_frames() {
        let tree = tree(
            "old;main;f.isra.0;g 3\nold;main;h 1\n",
            "new;main;f.constprop.1;g 3\nnew;main;h 2\n",
        );
        assert_eq!(
            shown(&tree),
            [
                (0, "new", [4, 5]),
                (1, "main", [4, 5]),
                (2, "f.constprop.1", [3, 3]),
                (3, "g", [3, 3]),
                (2, "h", [1, 2]),
            ]
        );
        assert_eq!(tree.loose, [3, 3]);
        let programs = ["old".to_owned(), "new".to_owned()];
        assert_eq!(tree.programs, Some(programs));
    }
}
