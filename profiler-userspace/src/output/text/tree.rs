//! Trees of calls as text: from the roots to what they called, and from where time was spent to who called that.
//!
//! In: a profile's calls. Out: a line for each function that has a share, deeper where it is called. Lines go to the right
//! only where there is a choice, so that a chain of calls stays in its column.

use super::Report;
use super::layout::{SHARE_COLUMNS, percent, shortened};
use crate::profile::fold::visible;
use foldhash::HashMap;
use std::fmt::Write as _;

/// Less than such a share is not shown, in percent, unless told otherwise.
const USUAL_PERCENT: f64 = 1.0;

/// The least columns that a name has, however deep it is.
const LEAST_NAME_COLUMNS: usize = 32;

/// A tree of names.
#[derive(Default)]
pub(super) struct Tree {
    nodes: Vec<Branch>,
    children: HashMap<(Option<usize>, String), usize>,
}

struct Branch {
    name: String,
    total: u64,
    itself: u64,
    children: Vec<usize>,
    is_root: bool,
}

impl Tree {
    /// Adds what was counted on a path.
    pub(super) fn add(&mut self, path: impl Iterator<Item = String>, weight: u64) {
        let mut at = None;
        for name in path {
            let nodes = &mut self.nodes;
            let next = *(self.children.entry((at, name))).or_insert_with_key(|(parent, name)| {
                nodes.push(Branch {
                    name: name.clone(),
                    total: 0,
                    itself: 0,
                    children: Vec::new(),
                    is_root: parent.is_none(),
                });
                let index = nodes.len() - 1;
                if let Some(parent) = parent {
                    nodes[*parent].children.push(index);
                }
                index
            });
            let total = &mut self.nodes[next].total;
            *total = total.saturating_add(weight);
            at = Some(next);
        }
        if let Some(last) = at {
            let itself = &mut self.nodes[last].itself;
            *itself = itself.saturating_add(weight);
        }
    }

    /// The children that are at least `least`, the most first, and how many others there are and what they weigh.
    fn shown(&self, children: &[usize], least: f64) -> (Vec<usize>, usize, u64) {
        let (mut large, small): (Vec<usize>, Vec<usize>) =
            (children.iter()).partition(|&&child| self.nodes[child].total as f64 >= least);
        large.sort_by(|&a, &b| {
            let (a, b) = (&self.nodes[a], &self.nodes[b]);
            (b.total.cmp(&a.total)).then_with(|| a.name.cmp(&b.name))
        });
        let weight = small.iter().map(|&child| self.nodes[child].total);
        (large, small.len(), weight.fold(0, u64::saturating_add))
    }

    /// Appends the tree, with shares of `all`.
    pub(super) fn print(&self, all: u64, min_percent: f64, columns: usize, text: &mut String) {
        let least = (all as f64 * min_percent / 100.0).max(f64::MIN_POSITIVE);
        let room = columns.saturating_sub(2 * SHARE_COLUMNS + 3);
        let most_edges = room.saturating_sub(LEAST_NAME_COLUMNS) / 2;
        let roots: Vec<usize> = (0..self.nodes.len())
            .filter(|&node| self.nodes[node].is_root)
            .collect();
        // What is still to be written, the next one last; a path may be deeper than any stack of calls.
        let mut todo = self.below(&roots, least, &[], most_edges);
        while let Some(Todo { edges, what }) = todo.pop() {
            let room = room - 2 * edges.len();
            let (total, itself, name) = match what {
                What::Node(node) => {
                    let node = &self.nodes[node];
                    let itself = match node.itself {
                        0 => String::new(),
                        itself => percent(itself, all),
                    };
                    (node.total, itself, shortened(&node.name, room))
                }
                What::Rest(count, weight) => (weight, String::new(), format!("… {count} more")),
            };
            let drawn: String = edges.iter().map(|edge| edge.drawn()).collect();
            let _ = writeln!(
                text,
                "{} {itself:>SHARE_COLUMNS$}  {drawn}{name}",
                percent(total, all),
            );
            if let What::Node(node) = what {
                let edges: Vec<Edge> = edges.iter().map(|edge| edge.below()).collect();
                let children = &self.nodes[node].children;
                todo.extend(self.below(children, least, &edges, most_edges));
            }
        }
    }

    /// What is to be written of some children, the last one first.
    fn below(&self, children: &[usize], least: f64, edges: &[Edge], most: usize) -> Vec<Todo> {
        let (shown, rest, weight) = self.shown(children, least);
        let rest = (rest > 0).then_some(What::Rest(rest, weight));
        let all: Vec<What> = shown.into_iter().map(What::Node).chain(rest).collect();
        let is_choice = all.len() > 1 && edges.len() < most;
        let mut todo = Vec::with_capacity(all.len());
        for (place, what) in all.into_iter().rev().enumerate() {
            let mut edges = edges.to_vec();
            if is_choice {
                edges.push(match place {
                    0 => Edge::Last,
                    _ => Edge::Fork,
                });
            }
            todo.push(Todo { edges, what });
        }
        todo
    }
}

/// What joins a line to those above it, by columns of two.
#[derive(Clone, Copy)]
enum Edge {
    /// The line is one of several, and more of them follow.
    Fork,
    /// It is the last of them.
    Last,
    /// Further lines follow below.
    Line,
    /// None do.
    Nothing,
}

impl Edge {
    const fn drawn(self) -> &'static str {
        match self {
            Self::Fork => "├ ",
            Self::Last => "└ ",
            Self::Line => "│ ",
            Self::Nothing => "  ",
        }
    }

    /// The edge under this one.
    const fn below(self) -> Self {
        match self {
            Self::Fork | Self::Line => Self::Line,
            Self::Last | Self::Nothing => Self::Nothing,
        }
    }
}

struct Todo {
    edges: Vec<Edge>,
    what: What,
}

#[derive(Clone, Copy)]
enum What {
    Node(usize),
    Rest(usize, u64),
}

impl Report<'_> {
    /// Appends both trees of calls.
    pub(super) fn calls(&self, text: &mut String) {
        let min = self.style.min_percent.unwrap_or(USUAL_PERCENT);
        let mut down = Tree::default();
        let mut up = Tree::default();
        for sample in self.tree.samples() {
            let comm = (self.profile.labels_at(sample.labels).comm.as_deref())
                .map(|comm| visible(comm).into_owned());
            let mut path: Vec<String> = (self.tree.callers(sample.node))
                .map(|frame| self.name(frame))
                .collect();
            up.add(path.iter().cloned().chain(comm.clone()), sample.weight);
            path.reverse();
            down.add(comm.into_iter().chain(path), sample.weight);
        }
        let _ = writeln!(text, "\n{:>6} {:>6}  calls, from the root", "total", "self");
        down.print(self.total, min, self.style.columns, text);
        let _ = writeln!(
            text,
            "\n{:>6} {:>6}  callers, from where time was spent",
            "total", "root"
        );
        up.print(self.total, min, self.style.columns, text);
        let _ = writeln!(
            text,
            "Shares below {min}% are summed as `… more`; `--min` changes that."
        );
    }

    /// How a frame reads in a tree: functions without their lines, marks as they are.
    pub(super) fn name(&self, frame: crate::profile::FrameId) -> String {
        match self.functions.of(frame) {
            Some(function) => self.functions.at(function).0.name.clone(),
            None => visible(&self.tree.frame(frame).name).into_owned(),
        }
    }
}
