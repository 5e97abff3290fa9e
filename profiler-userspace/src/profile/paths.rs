//! Paths from a root, which are kept once as far as they begin alike.
//!
//! In: steps, each below another. Out: nodes, which know what is above them and have higher numbers than that.
//! Never: recursion, or a limit of depth.

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::{BuildHasher as _, Hash};
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
pub struct Node<F> {
    /// The node of the caller, which always has a lower index; none at a root.
    pub parent: Option<NodeIndex>,
    /// Frame that was called.
    pub frame: F,
}

/// A tree that grows.
#[derive(Clone, Debug)]
pub(super) struct Paths<F> {
    nodes: Vec<Node<F>>,
    /// Places of nodes, found by what these are: there may be millions of them.
    numbers: HashTable<NodeIndex>,
    hashes: RandomState,
}

impl<F> Default for Paths<F> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            numbers: HashTable::new(),
            hashes: RandomState::default(),
        }
    }
}

impl<F: Copy + Eq + Hash> Paths<F> {
    /// Makes room for so many nodes: looking all of them up again as it grows takes as long as adding them.
    pub(super) fn reserve(&mut self, nodes: usize) {
        let hash = |index: &NodeIndex| self.hashes.hash_one(self.nodes[index.index()]);
        self.numbers.reserve(nodes, hash);
    }

    /// The node of a frame below another, which is added when it is not there yet.
    pub(super) fn child(&mut self, parent: Option<NodeIndex>, frame: F) -> NodeIndex {
        let node = Node { parent, frame };
        let hash = |node: &Node<F>| self.hashes.hash_one(node);
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

    /// The node of a whole path.
    pub(super) fn place(&mut self, path: impl IntoIterator<Item = F>) -> Option<NodeIndex> {
        let mut node = None;
        for frame in path {
            node = Some(self.child(node, frame));
        }
        node
    }

    /// All nodes.
    pub(super) fn nodes(&self) -> &[Node<F>] {
        &self.nodes
    }

    /// All nodes, when no more come.
    pub(super) fn into_nodes(self) -> Vec<Node<F>> {
        self.nodes
    }
}

/// The frames of a node and those above it, the node's own first.
pub(super) fn upwards<F: Copy>(
    nodes: &[Node<F>],
    node: Option<NodeIndex>,
) -> impl Iterator<Item = F> + Clone {
    let above = |node: &NodeIndex| nodes[node.index()].parent;
    std::iter::successors(node, above).map(|node| nodes[node.index()].frame)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equal_paths_are_one_node_and_read_back(drawn in vec(vec(0..3_u8, 0..6), 0..20)) {
            let mut paths = Paths::default();
            let nodes: Vec<_> = drawn.iter().map(|path| paths.place(path.iter().copied())).collect();
            for (path, node) in drawn.iter().zip(&nodes) {
                let mut read: Vec<u8> = upwards(paths.nodes(), *node).collect();
                read.reverse();
                prop_assert_eq!(&read, path);
                for (other, its) in drawn.iter().zip(&nodes) {
                    prop_assert_eq!(path == other, node == its);
                }
            }
            for (at, node) in paths.nodes().iter().enumerate() {
                prop_assert!(node.parent.is_none_or(|parent| parent.index() < at));
            }
        }
    }
}
