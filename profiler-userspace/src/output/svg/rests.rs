//! Narrow frames as one rest for each of their callers, so that files have a bound.
//!
//! In: the nodes of a tree, and how many of them are wanted. Out: the widest nodes, rests in place of the others, and for each
//! name how much of the weight its frames in rests have. Never: a weight that is lost.

use super::tree::{Node, Rests, Tree, rest};
use crate::profile::outline::{Call, Left, Outline};
use foldhash::HashMap;
use foldhash::fast::RandomState;

type IndexSet<T> = indexmap::IndexSet<T, RandomState>;

/// Where a name that is still there comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
    /// It has this place among the names before.
    Name(u32),
    /// Its frames are in rests alone, and read as this word.
    Word(u32),
    /// It is that of all rests.
    Rest,
}

/// A tree with rests.
#[derive(Debug)]
pub(super) struct Folded {
    pub(super) nodes: Vec<Node>,
    /// Its names, in the order in which nodes first have them; then those that are only in rests.
    pub(super) names: Vec<Source>,
    pub(super) rests: Rests,
}

impl Tree {
    /// The same with about so many frames, the widest, and rests in place of the others.
    pub(super) fn folded(&self, most: usize) -> Self {
        let words = (self.names.len(), |name: u32| name);
        let folded = fold(&self.nodes, words, most);
        let name = |source: &Source| match source {
            Source::Name(name) | Source::Word(name) => self.names[*name as usize].clone(),
            Source::Rest => rest(),
        };
        let is_profiler = |source: &Source| match source {
            Source::Name(name) => self.profilers.contains(name),
            Source::Word(_) | Source::Rest => false,
        };
        let places = (0..).zip(&folded.names);
        let profilers = places.filter(|(_, source)| is_profiler(source));
        let mut tree = Self {
            profilers: profilers.map(|(place, _)| place).collect(),
            names: folded.names.iter().map(name).collect(),
            nodes: folded.nodes,
            rests: folded.rests,
        };
        tree.pack_left();
        tree
    }
}

/// Leaves about so many nodes their own place, and as many words that are only in rests. `nodes` are in preorder, the root
/// first, and say what their names are; of these several may read as one of so many words.
pub(super) fn fold(
    nodes: &[Node],
    (words, word_of): (usize, impl Fn(u32) -> u32),
    most: usize,
) -> Folded {
    let calls = nodes.iter().map(|node| Call {
        depth: node.depth,
        word: word_of(node.name),
        weight: node.weight,
    });
    let outline = Outline::new(calls, words, most, |_| ());
    let mut names: IndexSet<Source> = IndexSet::default();
    let mut rests = Rests::default();
    let mut left = Vec::with_capacity(outline.nodes.len());
    // The place of the first name that reads as a word tells of all.
    let mut hidden: HashMap<u32, usize> = HashMap::default();
    for node in &outline.nodes {
        left.push(match *node {
            Left::Call(at) => {
                let node = &nodes[at as usize];
                let (name, _) = names.insert_full(Source::Name(node.name));
                hidden.entry(word_of(node.name)).or_insert(name);
                Node {
                    name: name as u32,
                    ..*node
                }
            }
            Left::Rest {
                depth,
                weight,
                calls,
            } => {
                let (name, _) = names.insert_full(Source::Rest);
                rests.name = Some(name as u32);
                rests.frames.push((left.len() as u32, calls));
                Node {
                    name: name as u32,
                    depth,
                    own: weight,
                    weight,
                    left: 0,
                }
            }
        });
    }
    let (only, unsearched) = outline.only_in_rests(most);
    for word in only {
        let (name, _) = names.insert_full(Source::Word(word));
        hidden.insert(word, name);
    }
    rests.unsearched = unsearched;
    rests.hidden = vec![0; names.len()];
    for (word, name) in hidden {
        rests.hidden[name] = outline.words[word as usize].hidden;
    }
    Folded {
        nodes: left,
        names: names.into_iter().collect(),
        rests,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::tests::tree;
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn narrow_frames_are_a_rest_of_their_caller() {
        let tree = tree("a;b 10\na;c;d 2\na;e;b 1\na;e 1\nf;c 20\n");
        let folded = fold(&tree.nodes, (tree.names.len(), |name| name), 5);
        let shown = |name: u32| match folded.names[name as usize] {
            Source::Name(name) | Source::Word(name) => &*tree.names[name as usize].name,
            Source::Rest => "rest",
        };
        let nodes: Vec<_> = folded
            .nodes
            .iter()
            .map(|node| (shown(node.name), node.depth, node.own, node.weight))
            .collect();
        let expected = [
            ("all", 0, 0, 34),
            ("a", 1, 0, 14),
            ("b", 2, 10, 10),
            ("rest", 2, 4, 4),
            ("f", 1, 0, 20),
            ("c", 2, 20, 20),
        ];
        assert_eq!(nodes, expected);
        assert_eq!(folded.rests.frames_at(3), Some(4));
        assert_eq!(folded.rests.frames_at(2), None);
        let hidden: Vec<_> = (0..folded.names.len() as u32)
            .map(|name| (shown(name), folded.rests.hidden[name as usize]))
            .filter(|(_, weight)| *weight > 0)
            .collect();
        assert_eq!(hidden, [("b", 1), ("c", 2), ("d", 2), ("e", 2)]);
        assert_eq!(folded.rests.unsearched, 0);
    }

    #[test]
    fn a_tree_that_is_small_enough_is_as_it_was() {
        let tree = tree("a;b 10\na;c 2\n");
        let folded = fold(&tree.nodes, (tree.names.len(), |name| name), 100);
        assert_eq!(folded.nodes, tree.nodes);
        assert_eq!(folded.rests.name, None);
    }

    proptest! {
        #[test]
        fn weight_and_frames_are_conserved(
            stacks in vec((vec("[a-d]", 1..6), 1..100_u32), 1..40),
            most in 1..20_usize,
        ) {
            let text: String = stacks
                .iter()
                .map(|(stack, weight)| format!("{} {weight}\n", stack.join(";")))
                .collect();
            let tree = tree(&text);
            let folded = fold(&tree.nodes, (tree.names.len(), |name| name), most);
            let own = |nodes: &[Node]| nodes.iter().map(|node| node.own).sum::<u64>();
            prop_assert_eq!(own(&folded.nodes), own(&tree.nodes));
            let kept = folded.nodes.len() - folded.rests.frames.len();
            prop_assert!(kept <= most.max(1));
            let frames: u64 = folded.rests.frames.iter().map(|(_, frames)| frames).sum();
            prop_assert_eq!(kept as u64 + frames, tree.nodes.len() as u64);
            for (place, node) in folded.nodes.iter().enumerate() {
                let below = folded.nodes[place + 1..].iter();
                let below: u64 = below
                    .take_while(|other| other.depth > node.depth)
                    .map(|other| other.own)
                    .sum();
                prop_assert_eq!(node.weight, node.own + below);
            }
        }
    }
}
