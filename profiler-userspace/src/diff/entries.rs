//! Both sides as one tree of calls.
//!
//! In: profiles of each side. Out: nodes in preorder, callees by name, and for each node and window what was counted right
//! there. A frame is one node on both sides if its stable name and its callers' are the same. Weight is conserved.

use super::matching::{Class, SameBuilds};
use crate::profile::{
    CallTree, Frame, FrameId, FrameKind, IndexSet, Labels, NodeIndex, Profile, TreeSample,
};
use foldhash::HashMap;

/// A name's place in [`Tree::names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NameIndex(u32);

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
    pub(super) parent: Option<usize>,
    pub(super) name: NameIndex,
    /// How many are below it.
    pub(super) depth: usize,
    /// The first node behind it that it did not call.
    pub(super) end: usize,
}

/// Weight and count at a node in a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) node: usize,
    /// Where the thread itself was.
    pub(super) own: usize,
    pub(super) side: usize,
    /// Of all windows of the side.
    pub(super) window: usize,
    pub(super) weight: u64,
    pub(super) count: u64,
    /// The largest weight that is known to be of one firing; 0 if there is none.
    pub(super) lone: u64,
}

/// Both sides.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) names: Vec<Name>,
    pub(super) nodes: Vec<Node>,
    /// By node.
    pub(super) entries: Vec<Entry>,
    /// The weight of stacks with a frame that the other side calls differently, by side.
    pub(super) loose: [u64; 2],
    /// Names of the one program of each side, where they are taken for one.
    pub(super) programs: Option<[String; 2]>,
}

impl Tree {
    /// Of these profiles, by side.
    pub(super) fn new(sides: &[Vec<Profile>; 2]) -> Self {
        let mut growing = Growing {
            same_builds: SameBuilds::new(sides),
            ..Growing::default()
        };
        growing.names_of_programs(sides);
        for (side, profiles) in sides.iter().enumerate() {
            let mut window = 0;
            for profile in profiles {
                growing.add(profile, side, window);
                window += profile.windows.len().max(1);
            }
        }
        growing.sorted()
    }

    /// Entries of a node and of all that it called.
    pub(super) fn below(&self, node: usize) -> &[Entry] {
        let end = self.nodes[node].end;
        let place = |node: usize| self.entries.partition_point(|entry| entry.node < node);
        &self.entries[place(node)..place(end)]
    }

    /// A node and its callers, the node itself first.
    pub(super) fn callers(&self, node: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(node), |&node| self.nodes[node].parent)
    }
}

/// Weight, count, and the largest weight that is of one firing.
type Sums = (u64, u64, u64);

/// A tree whose nodes are in the order in which they came.
#[derive(Default)]
struct Growing {
    names: Vec<Name>,
    known: HashMap<(String, Class), NameIndex>,
    nodes: Vec<(Option<usize>, NameIndex)>,
    children: HashMap<(Option<usize>, NameIndex), usize>,
    /// By node, own node, side and window.
    entries: HashMap<(usize, usize, usize, usize), Sums>,
    /// Names of the program of each side, where each has one and they differ.
    program: Option<[String; 2]>,
    same_builds: SameBuilds,
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

    fn add(&mut self, profile: &Profile, side: usize, first_window: usize) {
        let tree = CallTree::new(profile);
        let names: Vec<NameIndex> = tree
            .frames()
            .map(|(frame, _)| {
                let stable = self.same_builds.stable(frame).into_owned();
                self.name(stable, Class::of(frame.kind), &frame.name, side)
            })
            .collect();
        let roots: Vec<Option<usize>> = profile
            .all_labels()
            .map(|labels| self.root(labels.name(), side))
            .collect();
        let mut places: HashMap<(Option<usize>, NodeIndex), usize> = HashMap::default();
        for sample in tree.samples().iter().filter(|sample| sample.weight > 0) {
            let root = roots[sample.labels.0 as usize];
            let mut place = |node: Option<NodeIndex>| match node {
                Some(node) => Some(self.place(&tree, &names, &mut places, (root, node))),
                None => root,
            };
            let (node, own) = (place(sample.node), place(sample.own));
            match (node.or(own), own.or(node)) {
                (Some(node), Some(own)) => self.count((node, own), sample, side, first_window),
                _ => self.without_stack(sample, side, first_window),
            }
        }
    }

    /// The node of a call tree's, below whose it is.
    fn place(
        &mut self,
        tree: &CallTree,
        names: &[NameIndex],
        places: &mut HashMap<(Option<usize>, NodeIndex), usize>,
        (root, node): (Option<usize>, NodeIndex),
    ) -> usize {
        // Callers that have no place yet, the node itself first.
        let mut rest = Vec::new();
        let mut next = Some(node);
        let mut parent = root;
        while let Some(index) = next {
            if let Some(&known) = places.get(&(root, index)) {
                parent = Some(known);
                break;
            }
            rest.push(index);
            next = tree.nodes()[index.0 as usize].parent;
        }
        for index in rest.into_iter().rev() {
            let frame: FrameId = tree.nodes()[index.0 as usize].frame;
            let child = self.child(parent, names[frame.index()]);
            places.insert((root, index), child);
            parent = Some(child);
        }
        parent.expect("at least the node itself has a place")
    }

    /// The frame that stands for a process.
    fn root(&mut self, name: Option<&str>, side: usize) -> Option<usize> {
        let owner = name?;
        let stable = match &self.program {
            Some(_) => PROGRAM.to_owned(),
            None => {
                let frame = Frame {
                    name: owner.to_owned(),
                    kind: FrameKind::Process,
                };
                self.same_builds.stable(&frame).into_owned()
            }
        };
        let name = self.name(stable, Class::Owner, owner, side);
        Some(self.child(None, name))
    }

    fn name(&mut self, stable: String, class: Class, reads: &str, side: usize) -> NameIndex {
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
        let all = &mut self.names[index.index()].names[side];
        if !all.contains(reads) {
            all.insert(reads.to_owned());
        }
        index
    }

    fn child(&mut self, parent: Option<usize>, name: NameIndex) -> usize {
        *self.children.entry((parent, name)).or_insert_with(|| {
            self.nodes.push((parent, name));
            self.nodes.len() - 1
        })
    }

    /// Counts what is of nobody and nowhere.
    fn without_stack(&mut self, sample: &TreeSample, side: usize, first_window: usize) {
        let name = self.name("[no stack]".to_owned(), Class::Mark, "[no stack]", side);
        let node = self.child(None, name);
        self.count((node, node), sample, side, first_window);
    }

    fn count(
        &mut self,
        (node, own): (usize, usize),
        sample: &TreeSample,
        side: usize,
        first: usize,
    ) {
        let window = first + sample.window.0 as usize;
        let sums = self.entries.entry((node, own, side, window)).or_default();
        sums.0 = sums.0.saturating_add(sample.weight);
        sums.1 = sums.1.saturating_add(sample.count);
        if sample.count == 1 {
            sums.2 = sums.2.max(sample.weight);
        }
    }

    /// The same in preorder, callees by name.
    fn sorted(self) -> Tree {
        let mut callees: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        let mut roots: Vec<usize> = Vec::new();
        for (node, (parent, _)) in self.nodes.iter().enumerate() {
            match parent {
                Some(parent) => callees[*parent].push(node),
                None => roots.push(node),
            }
        }
        let by_name = |a: &usize, b: &usize| {
            let key = |node: usize| {
                let name = &self.names[self.nodes[node].1.index()];
                (name.shown(), name.class)
            };
            key(*a).cmp(&key(*b))
        };
        let mut nodes: Vec<Node> = Vec::with_capacity(self.nodes.len());
        let mut again = vec![0; self.nodes.len()];
        roots.sort_by(by_name);
        // Nodes to come, the next one last, with the place of the caller.
        let mut rest: Vec<(usize, Option<usize>)> =
            roots.into_iter().rev().map(|root| (root, None)).collect();
        while let Some((node, parent)) = rest.pop() {
            let place = nodes.len();
            again[node] = place;
            nodes.push(Node {
                parent,
                name: self.nodes[node].1,
                depth: parent.map_or(0, |parent| nodes[parent].depth + 1),
                end: place + 1,
            });
            let mut below = std::mem::take(&mut callees[node]);
            below.sort_by(by_name);
            rest.extend(below.into_iter().rev().map(|child| (child, Some(place))));
        }
        for place in (0..nodes.len()).rev() {
            if let Some(parent) = nodes[place].parent {
                nodes[parent].end = nodes[parent].end.max(nodes[place].end);
            }
        }
        let mut entries: Vec<Entry> = (self.entries.into_iter())
            .map(|((node, own, side, window), (weight, count, lone))| Entry {
                node: again[node],
                own: again[own],
                side,
                window,
                weight,
                count,
                lone,
            })
            .collect();
        entries.sort_unstable_by_key(|entry| (entry.node, entry.own, entry.side, entry.window));
        let mut tree = Tree {
            names: self.names,
            nodes,
            entries,
            loose: [0; 2],
            programs: self.program,
        };
        tree.weigh_loose();
        tree
    }
}

impl Tree {
    fn weigh_loose(&mut self) {
        let mut is_loose = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let callers = node.parent.is_some_and(|parent: usize| is_loose[parent]);
            is_loose.push(callers || self.names[node.name.index()].is_loose());
        }
        for entry in self.entries.iter().filter(|entry| is_loose[entry.node]) {
            let sum = &mut self.loose[entry.side];
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
        Tree::new(&[vec![profile(before)], vec![profile(after)]])
    }

    fn shown(tree: &Tree) -> Vec<(usize, &str, [u64; 2])> {
        let sums = |node: usize| {
            let mut sums = [0; 2];
            for entry in tree.below(node) {
                sums[entry.side] += entry.weight;
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
