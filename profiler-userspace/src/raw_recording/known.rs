//! Values that a raw recording already holds, so that none is written twice.

use super::callees::Callees;
use crate::object::RecordedObject;
use crate::profile::cgroup::Cgroup;
use crate::profile::normalized::{Label, NamedFunction};
use crate::profile::process_context::ProcessContext;
use foldhash::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// The numbers of what has been written.
#[derive(Debug, Default)]
pub(super) struct WrittenIds {
    pub(super) objects: Numbers<RecordedObject>,
    pub(super) files: Numbers<Arc<str>>,
    pub(super) names: Numbers<NamedFunction>,
    /// By kind and value.
    pub(super) locations: Numbers<(u32, u64, u64)>,
    /// By where they end in the tree of callers, and how.
    pub(super) stacks: Numbers<(Node, u32)>,
    pub(super) tree: Tree,
    pub(super) callees: Callees,
    /// With the numbers that their cgroups have here; and one more than those of their contexts: a process may publish one later.
    pub(super) labels: Numbers<(Label, u32)>,
    pub(super) cgroups: Numbers<Arc<Cgroup>>,
    pub(super) contexts: Numbers<Arc<ProcessContext>>,
    /// By the numbers of their labels and stacks.
    pub(super) wakers: Numbers<[u32; 3]>,
    /// One more than the highest number of a location that a stack has.
    pub(super) next_location: u32,
    /// About as much memory as all but the callees takes, in bytes.
    pub(super) bytes: usize,
}

/// A place in the tree of callers: a stack, or the part of several next to the root that they share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Node(u32);

/// The tree of callers.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// By caller and location.
    nodes: HashMap<(Node, u32), Node>,
    /// The number of the first stack through each node but the root.
    stacks: Vec<u32>,
}

impl Tree {
    /// How many of these locations, from the root on, an earlier stack has as well, where that is, and the number of that stack.
    pub(super) fn find(
        &self,
        locations: impl IntoIterator<Item = u32>,
    ) -> (usize, Node, Option<u32>) {
        let (mut depth, mut node) = (0, Node::default());
        for location in locations {
            let Some(next) = self.nodes.get(&(node, location)) else {
                break;
            };
            (depth, node) = (depth + 1, *next);
        }
        (depth, node, self.stack(node))
    }

    fn stack(&self, node: Node) -> Option<u32> {
        let place = node.0.checked_sub(1)?;
        self.stacks.get(place as usize).copied()
    }

    /// Adds the rest of the stack that has this number, below the node that was found.
    pub(super) fn add(&mut self, mut node: Node, rest: &[u32], stack: u32) -> Node {
        for location in rest {
            self.stacks.push(stack);
            let next =
                Node(u32::try_from(self.stacks.len()).expect("what has 32 bits is given 32 bits"));
            self.nodes.insert((node, *location), next);
            node = next;
        }
        node
    }
}

/// Numbers of the values of one kind: from 0 on, in the order in which they came.
#[derive(Debug)]
pub(super) struct Numbers<T>(HashMap<T, u32>);

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<T: Hash + Eq> Numbers<T> {
    /// The number of this, if it has one.
    pub(super) fn get(&self, of: &T) -> Option<u32> {
        self.0.get(of).copied()
    }

    /// The number that comes next.
    pub(super) fn next(&self) -> u32 {
        u32::try_from(self.0.len()).expect("what has 32 bits is given 32 bits")
    }

    /// Gives it the next number.
    pub(super) fn give(&mut self, of: T) -> u32 {
        let number = self.next();
        self.0.insert(of, number);
        number
    }
}
