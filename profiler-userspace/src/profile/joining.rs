//! Nodes of a call tree in a tree of another kind, into which several are put.
//!
//! In: a node, and the root that it is below there. Out: the node that stands for it there, made with all that leads to it where that is
//! not there yet. Never: looks for a node twice below one root, if those below one are asked for one after another.

use super::call_tree::CallTree;
use super::code_places::FrameId;
use super::paths::NodeIndex;

/// Where nodes of a tree are in the other.
pub(crate) struct Joining<'a> {
    tree: &'a CallTree,
    /// For each node where it is, and below which root that is.
    known: Vec<Option<(Option<u32>, u32)>>,
    /// Nodes on the way to one that is known, the last first.
    missing: Vec<NodeIndex>,
}

impl<'a> Joining<'a> {
    /// None of this tree's nodes yet.
    pub(crate) fn new(tree: &'a CallTree) -> Self {
        Self {
            tree,
            known: vec![None; tree.nodes().len()],
            missing: Vec::new(),
        }
    }

    /// The place of a node below a root, or that of the root where there is no node. `child` gives the callee of a place, or a root.
    pub(crate) fn place(
        &mut self,
        node: Option<NodeIndex>,
        root: Option<u32>,
        mut child: impl FnMut(Option<u32>, FrameId) -> u32,
    ) -> Option<u32> {
        let nodes = self.tree.nodes();
        let mut next = node;
        let mut at = loop {
            let Some(node) = next else { break root };
            match self.known[node.index()] {
                Some((below, known)) if below == root => break Some(known),
                _ => {}
            }
            self.missing.push(node);
            next = nodes[node.index()].parent;
        };
        while let Some(node) = self.missing.pop() {
            let place = child(at, nodes[node.index()].frame);
            self.known[node.index()] = Some((root, place));
            at = Some(place);
        }
        at
    }
}
