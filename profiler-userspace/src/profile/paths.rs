//! Paths from a root, which are kept once as far as they begin alike.
//!
//! In: steps, each below another. Out: nodes, which know what is above them and have higher numbers than that.
//! Never: recursion, or a limit of depth.

use super::numbers::Numbers;
use std::hash::Hash;
use std::num::NonZeroU32;

/// A node's place in its tree. Kept plus one, so that none takes no more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeIndex(NonZeroU32);

impl NodeIndex {
    /// The place after so many others.
    pub(crate) fn new(nodes: usize) -> Self {
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

/// So many nodes below one are looked through, the last first; others are found by their hashes. Most nodes are put below one that
/// is new itself, and need no look at memory far away.
const MAX_LOOKED_THROUGH: usize = 8;

/// A tree that grows.
#[derive(Clone, Debug)]
pub(crate) struct Paths<F> {
    nodes: Vec<Node<F>>,
    /// For each node the last one below it that is looked through, and the one before it below the same.
    links: Vec<Links>,
    /// The last root that is looked through.
    roots: Option<NodeIndex>,
    /// Nodes that are not looked through.
    others: Numbers,
}

#[derive(Clone, Copy, Debug, Default)]
struct Links {
    below: Option<NodeIndex>,
    beside: Option<NodeIndex>,
}

impl<F> Default for Paths<F> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            links: Vec::new(),
            roots: None,
            others: Numbers::default(),
        }
    }
}

impl<F: Copy + Eq + Hash> Paths<F> {
    /// The node of a frame below another, which is added when it is not there yet.
    pub(crate) fn child(&mut self, parent: Option<NodeIndex>, frame: F) -> NodeIndex {
        let last = match parent {
            Some(parent) => self.links[parent.index()].below,
            None => self.roots,
        };
        let (mut at, mut count) = (last, 0);
        while let Some(node) = at {
            if self.nodes[node.index()].frame == frame {
                return node;
            }
            at = self.links[node.index()].beside;
            count += 1;
        }
        let node = Node { parent, frame };
        let next = NodeIndex::new(self.nodes.len());
        if count == MAX_LOOKED_THROUGH {
            let nodes = &self.nodes;
            let is_it = |number: u32| nodes[number as usize] == node;
            let number = self.others.get_or_insert(node, next.number(), is_it);
            if number != next.number() {
                return NodeIndex::new(number as usize);
            }
            self.links.push(Links::default());
        } else {
            let (below, beside) = (None, last);
            self.links.push(Links { below, beside });
            match parent {
                Some(parent) => self.links[parent.index()].below = Some(next),
                None => self.roots = Some(next),
            }
        }
        self.nodes.push(node);
        next
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
    pub(crate) fn nodes(&self) -> &[Node<F>] {
        &self.nodes
    }

    /// All nodes, when no more come.
    pub(crate) fn into_nodes(self) -> Vec<Node<F>> {
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
        fn equal_paths_are_one_node_and_read_back(drawn in vec(vec(0..12_u8, 0..3), 0..80)) {
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
