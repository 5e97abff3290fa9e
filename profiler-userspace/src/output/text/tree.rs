//! Trees of calls as text: from the roots to what they called, and from where time was spent to who called that.
//!
//! In: a profile's calls. Out: a line for each function that has a share, deeper where it is called. Lines go to the right
//! only where there is a choice, so that a chain of calls stays in its column.

use super::Report;
use super::layout::{SHARE_COLUMNS, percent};
use crate::output::text_style::TextStyle;
use crate::profile::LabelsIndex;
use crate::profile::fold::visible;
use foldhash::HashMap;
use foldhash::fast::RandomState;
use indexmap::IndexSet;
use std::fmt::Write as _;
use std::ops::Range;

/// Less than such a share is not shown, in percent, unless told otherwise.
const DEFAULT_PERCENT: f64 = 1.0;

/// The least columns that a name has, however deep it is.
const MIN_NAME_COLUMNS: usize = 32;

/// The stacks that trees are made of, as numbers of names. Those that begin alike stand together as far as a tree was looked into.
pub(super) struct Stacks {
    names: IndexSet<String, RandomState>,
    /// All stacks, one behind the other.
    levels: Vec<u32>,
    /// Where each is in the levels, and its weight.
    all: Vec<(Range<u32>, u64)>,
}

/// A node of a tree: the stacks that lead through it.
#[derive(Clone)]
struct Branch {
    stacks: Range<usize>,
    /// How many names lead to it, its own included.
    depth: usize,
    total: u64,
}

impl Stacks {
    /// Those of the distinct places of a report's samples, which begin with their processes.
    pub(super) fn new(report: &Report<'_>) -> Self {
        let mut stacks = Self {
            names: IndexSet::default(),
            levels: Vec::new(),
            all: Vec::new(),
        };
        let tree = report.tree;
        let names = tree
            .frame_ids()
            .map(|frame| stacks.number(report.name(frame)));
        let names: Vec<u32> = names.collect();
        let mut processes: HashMap<LabelsIndex, Option<u32>> = HashMap::default();
        let places = tree.samples().iter().map(|sample| {
            let process = *processes.entry(sample.labels).or_insert_with(|| {
                let name = report.profile.labels_at(sample.labels).name()?;
                Some(stacks.number(visible(name).into_owned()))
            });
            (process, sample.node, sample.weight)
        });
        let mut places: Vec<_> = places.collect();
        // Nodes that stand together lie together in memory.
        places.sort_unstable_by_key(|(process, node, _)| (*process, *node));
        places.dedup_by(
            |(process, node, weight), (known_process, known_node, sum)| {
                let is_same = process == known_process && node == known_node;
                if is_same {
                    *sum = sum.saturating_add(*weight);
                }
                is_same
            },
        );
        for (process, node, weight) in places {
            let start = stacks.levels.len();
            let frames = tree.callers(node).map(|frame| names[frame.index()]);
            stacks.levels.extend(frames.chain(process));
            let range = start as u32..stacks.levels.len() as u32;
            stacks.all.push((range, weight));
        }
        stacks
    }

    fn number(&mut self, name: String) -> u32 {
        self.names.insert_full(name).0 as u32
    }

    /// Turns all stacks over.
    pub(super) fn reverse(&mut self) {
        for (range, _) in &self.all {
            self.levels[range.start as usize..range.end as usize].reverse();
        }
    }

    fn stack(&self, (range, _): &(Range<u32>, u64)) -> &[u32] {
        &self.levels[range.start as usize..range.end as usize]
    }

    fn name(&self, branch: &Branch) -> &str {
        let first = self.stack(&self.all[branch.stacks.start]);
        &self.names[first[branch.depth - 1] as usize]
    }

    /// The weight of stacks that end with a branch's path.
    fn itself(&self, branch: &Branch) -> u64 {
        let ending = self.all[branch.stacks.clone()].iter();
        let ending = ending.filter(|stack| self.stack(stack).len() == branch.depth);
        ending.fold(0, |sum, (_, weight)| sum.saturating_add(*weight))
    }

    /// The branches that begin behind so many names of these stacks, which are put in order by the next one: few branches
    /// are large enough to be looked into.
    fn branches(&mut self, stacks: Range<usize>, depth: usize) -> Vec<Branch> {
        let levels = &self.levels;
        let all = &mut self.all[stacks.clone()];
        // Stacks that end here have none, and come first.
        let name = |(range, _): &(Range<u32>, u64)| {
            let names = &levels[range.start as usize..range.end as usize];
            names.get(depth).map_or(0, |name| name + 1)
        };
        // Each is looked up once: they lie all over the memory.
        let mut named: Vec<u32> = all.iter().map(name).collect();
        if named.iter().any(|name| *name != named[0]) {
            let mut ordered: Vec<_> = named
                .iter()
                .zip(&*all)
                .map(|(name, stack)| (*name, stack.clone()))
                .collect();
            ordered.sort_unstable_by_key(|(name, _)| *name);
            for ((name, stack), (ordered_name, ordered)) in
                named.iter_mut().zip(&mut *all).zip(ordered)
            {
                (*name, *stack) = (ordered_name, ordered);
            }
        }
        let mut branches: Vec<Branch> = Vec::new();
        let mut last = 0;
        for ((place, name), (_, weight)) in stacks.zip(named).zip(&*all) {
            match branches.last_mut().filter(|_| last == name) {
                Some(branch) => {
                    branch.stacks.end = place + 1;
                    branch.total = branch.total.saturating_add(*weight);
                }
                None if name == 0 => {}
                None => branches.push(Branch {
                    stacks: place..place + 1,
                    depth: depth + 1,
                    total: *weight,
                }),
            }
            last = name;
        }
        branches
    }

    /// The branches that are at least `least`, the most first, and how many others there are and what they weigh.
    fn shown(&self, branches: Vec<Branch>, least: f64) -> (Vec<Branch>, usize, u64) {
        let is_large = |branch: &Branch| branch.total as f64 >= least;
        let (mut large, small): (Vec<Branch>, Vec<Branch>) =
            branches.into_iter().partition(is_large);
        large.sort_by(|a, b| (b.total.cmp(&a.total)).then_with(|| self.name(a).cmp(self.name(b))));
        let weight = small.iter().map(|branch| branch.total);
        (large, small.len(), weight.fold(0, u64::saturating_add))
    }

    /// Appends the tree, with shares of `all`.
    pub(super) fn print(
        &mut self,
        all: u64,
        min_percent: f64,
        style: &TextStyle,
        text: &mut String,
    ) {
        let least = (all as f64 * min_percent / 100.0).max(f64::MIN_POSITIVE);
        let room = style.columns.saturating_sub(2 * SHARE_COLUMNS + 3);
        let most_edges = room.saturating_sub(MIN_NAME_COLUMNS) / 2;
        let roots = self.branches(0..self.all.len(), 0);
        // Branches still to be written, the next one last; a path may be deeper than any stack of calls.
        let mut todo = self.below(roots, least, &[], most_edges);
        while let Some(Todo { edges, what }) = todo.pop() {
            let room = room - 2 * edges.len();
            let (total, itself, name) = match &what {
                Pending::Branch(branch) => {
                    let itself = match self.itself(branch) {
                        0 => String::new(),
                        itself => percent(itself, all),
                    };
                    (branch.total, itself, style.name(self.name(branch), room))
                }
                Pending::Rest(count, weight) => (*weight, String::new(), format!("… {count} more")),
            };
            let drawn: String = edges.iter().map(|edge| edge.drawn()).collect();
            let _ = writeln!(
                text,
                "{} {itself:>SHARE_COLUMNS$}  {drawn}{name}",
                percent(total, all),
            );
            if let Pending::Branch(branch) = what {
                let edges: Vec<Edge> = edges.iter().map(|edge| edge.below()).collect();
                let below = self.branches(branch.stacks, branch.depth);
                todo.extend(self.below(below, least, &edges, most_edges));
            }
        }
    }

    /// Rows to be written of some branches, the last one first.
    fn below(&self, branches: Vec<Branch>, least: f64, edges: &[Edge], most: usize) -> Vec<Todo> {
        let (shown, rest, weight) = self.shown(branches, least);
        let rest = (rest > 0).then_some(Pending::Rest(rest, weight));
        let all: Vec<Pending> = shown.into_iter().map(Pending::Branch).chain(rest).collect();
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

/// Strokes that join a line to those above it, by columns of two.
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
    what: Pending,
}

enum Pending {
    Branch(Branch),
    Rest(usize, u64),
}

impl Report<'_> {
    /// Appends both trees of calls.
    pub(super) fn calls(&self, text: &mut String) {
        let min = self.style.min_percent.unwrap_or(DEFAULT_PERCENT);
        // From the leaf on, as they are.
        let mut stacks = Stacks::new(self);
        stacks.reverse();
        let _ = writeln!(text, "\n{:>6} {:>6}  calls, from the root", "total", "self");
        stacks.print(self.total, min, self.style, text);
        let _ = writeln!(
            text,
            "\n{:>6} {:>6}  callers, from where time was spent",
            "total", "root"
        );
        stacks.reverse();
        stacks.print(self.total, min, self.style, text);
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
