//! Narrow frames as one rest for each of their callers, so that files have a bound.
//!
//! In: the nodes of a tree, and how many of them are wanted. Out: the widest nodes, rests in place of the others, and for each
//! name how much of the weight its frames in rests have. Never: a weight that is lost.

use super::tree::{Node, Rests, Tree, rest};
use crate::profile::widest;
use foldhash::HashMap;
use std::cmp::Reverse;

/// Where a name that is still there comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        let mut tree = Self {
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
    let mut folding = Folding {
        least: widest(nodes.iter().map(|node| node.weight), most),
        path: Vec::new(),
        kept: 0,
        folded: Folded {
            nodes: Vec::new(),
            names: Vec::new(),
            rests: Rests::default(),
        },
        places: HashMap::default(),
        words: vec![Word::default(); words],
    };
    for node in nodes {
        folding.leave(node.depth);
        folding.enter(node, word_of(node.name));
    }
    folding.leave(0);
    folding.finish(most)
}

/// A word: where it stands, and how much of it is in rests.
#[derive(Clone, Copy, Default)]
struct Word {
    /// How many nodes on the path read so.
    open: u32,
    /// The place of the first name that does.
    place: Option<u32>,
    /// The weight of such frames in rests.
    hidden: u64,
}

/// A node on the way from the root.
struct Open {
    word: u32,
    /// Weight and number of the nodes below a kept one that are not.
    rest: (u64, u64),
}

struct Folding {
    least: u64,
    path: Vec<Open>,
    /// So many of them, from the root on, are kept.
    kept: usize,
    folded: Folded,
    /// The places of names that are still there.
    places: HashMap<u32, u32>,
    words: Vec<Word>,
}

impl Folding {
    fn enter(&mut self, node: &Node, word: u32) {
        let is_below_kept = self.kept == self.path.len();
        let is_kept = self.path.is_empty() || (is_below_kept && node.weight >= self.least);
        if is_kept {
            self.kept += 1;
            let place = self.place(node.name, word);
            self.folded.nodes.push(Node {
                name: place,
                ..*node
            });
        } else {
            self.count(node.weight, word);
        }
        self.words[word as usize].open += 1;
        self.path.push(Open { word, rest: (0, 0) });
    }

    /// Adds a node to the rest of the last of its callers that is kept.
    fn count(&mut self, added: u64, word: u32) {
        let word = &mut self.words[word as usize];
        if word.open == 0 {
            word.hidden = word.hidden.saturating_add(added);
        }
        // Those further below are part of its weight.
        let is_first = self.kept == self.path.len();
        let (weight, frames) = &mut self.path[self.kept - 1].rest;
        *frames += 1;
        if is_first {
            *weight = weight.saturating_add(added);
        }
    }

    /// Ends the nodes on the path from a depth on.
    fn leave(&mut self, depth: u32) {
        while self.path.len() > depth as usize {
            let Some(open) = self.path.pop() else { return };
            self.words[open.word as usize].open -= 1;
            self.kept = self.kept.min(self.path.len());
            let (weight, frames) = open.rest;
            if frames == 0 {
                continue;
            }
            let names = &mut self.folded.names;
            let name = *self.folded.rests.name.get_or_insert_with(|| {
                names.push(Source::Rest);
                names.len() as u32 - 1
            });
            let place = self.folded.nodes.len() as u32;
            self.folded.rests.frames.push((place, frames));
            self.folded.nodes.push(Node {
                name,
                depth: self.path.len() as u32 + 1,
                own: weight,
                weight,
                left: 0,
            });
        }
    }

    fn place(&mut self, name: u32, word: u32) -> u32 {
        let names = &mut self.folded.names;
        let place = *self.places.entry(name).or_insert_with(|| {
            names.push(Source::Name(name));
            names.len() as u32 - 1
        });
        self.words[word as usize].place.get_or_insert(place);
        place
    }

    fn finish(mut self, most: usize) -> Folded {
        let Folded { names, rests, .. } = &mut self.folded;
        // The heaviest of those that are only in rests are more likely to be searched for.
        let mut only: Vec<(u64, u32)> = Vec::new();
        rests.hidden = vec![0; names.len()];
        for (number, word) in (0..).zip(&self.words) {
            match word.place {
                Some(place) => rests.hidden[place as usize] = word.hidden,
                None if word.hidden > 0 => only.push((word.hidden, number)),
                None => {}
            }
        }
        only.sort_unstable_by_key(|&(hidden, number)| (Reverse(hidden), number));
        rests.unsearched = only.len().saturating_sub(most) as u64;
        only.truncate(most);
        for (hidden, number) in only {
            names.push(Source::Word(number));
            rests.hidden.push(hidden);
        }
        self.folded
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
