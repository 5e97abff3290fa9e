//! The tree of calls as lines: callers above what they called, the most first.
//!
//! In: a shape, and which nodes are turned. Out: lines with what joins them to those above.

use super::calls::Name;
use super::shape::{ROOT, Shape};
use std::collections::HashSet;

/// A node with at least such a share of all is open, unless it was turned.
const OPEN_SHARE: f64 = 0.05;

/// A node of the tree that is in sight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) node: u32,
    /// How far to the right it stands. Chains of calls without a choice stay in their column.
    pub(super) indent: u16,
    /// Whether what it called follows; none if it called nothing.
    pub(super) is_open: Option<bool>,
}

/// Whether what a node called is shown.
pub(super) fn is_open(shape: &Shape, node: u32, turned: &HashSet<Vec<Name>>) -> bool {
    let usually = shape.node(node).weight() >= OPEN_SHARE * shape.total();
    match turned.is_empty() {
        true => usually,
        false => usually != turned.contains(&shape.path(node)),
    }
}

/// The lines above a node, at most so many.
pub(super) fn lines(
    shape: &Shape,
    zoom: u32,
    turned: &HashSet<Vec<Name>>,
    most: usize,
) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut todo = vec![(zoom, 0)];
    while let Some((node, indent)) = todo.pop() {
        if lines.len() >= most {
            break;
        }
        let mut children = shape.node(node).children.clone();
        let is_open = (!children.is_empty()).then(|| is_open(shape, node, turned));
        if node != ROOT {
            lines.push(Line {
                node,
                indent,
                is_open,
            });
        }
        if is_open == Some(true) || node == ROOT {
            // The last is looked at first.
            let weight = |child: &u32| shape.node(*child).weight();
            children.sort_by(|a, b| weight(a).total_cmp(&weight(b)));
            let step = u16::from(children.len() > 1 && node != ROOT);
            todo.extend(children.into_iter().map(|child| (child, indent + step)));
        }
    }
    lines
}
