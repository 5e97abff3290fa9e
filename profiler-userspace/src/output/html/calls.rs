//! Calls as columns.
//!
//! In: a profile's tree of calls. Out: its frames, each once, and its nodes in the order in which a flame graph shows
//! them: callers before what they called, those of one caller by name.

use super::packed::{Columns, Names};
use crate::profile::fold::visible;
use crate::profile::preorder::Preorder;
use crate::profile::{CallTree, FrameId, FrameKind, NodeIndex, Profile};
use indexmap::IndexSet;
use profiler_common::abi::ThreadState;

/// A text that a function has.
type TextOf = fn(&Function) -> &str;

/// A function, as the viewer tells functions apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Function {
    name: String,
    kind: u32,
    module: String,
    /// The source file; empty if that is not known.
    file: String,
}

/// A line of a function, an index into the functions; 0 where lines are not told apart, or not known.
type Line = (u32, u32);

/// A node behind the root.
struct Node {
    /// How much nearer to the root than a child of the node before it.
    up: u32,
    /// An index into the lines.
    line: u32,
}

/// The calls of a profile.
pub(super) struct Calls {
    functions: IndexSet<Function>,
    lines: IndexSet<Line>,
    /// Whether nodes are lines of functions.
    is_by_line: bool,
    nodes: Vec<Node>,
    /// For each node of the tree its place among these.
    places: Vec<u32>,
    /// For each of the tree's frames its function.
    of_frames: Vec<u32>,
}

impl Calls {
    /// All calls of a tree; `is_by_line`: one that tells lines apart, which then are no part of names.
    pub(super) fn new(profile: &Profile, tree: &CallTree, is_by_line: bool) -> Self {
        let mut functions = IndexSet::new();
        let mut lines = IndexSet::new();
        let lines_of_frames: Vec<u32> = (tree.frames())
            .map(|(frame, code)| {
                let line = code.map_or(0, |code| code.line);
                let line = if is_by_line { line } else { 0 };
                let name = match code.filter(|_| line > 0) {
                    Some(code) => &profile.function_at(code.function).name,
                    None => &frame.name,
                };
                let module =
                    code.map(|code| profile.module(frame.kind, code.mapping, code.function));
                let file = code.map(|code| &*profile.function_at(code.function).file);
                let function = Function {
                    file: visible(file.unwrap_or_default()).into_owned(),
                    name: visible(name).into_owned(),
                    kind: kind(frame.kind),
                    module: module.map_or_else(String::new, |module| visible(module).into_owned()),
                };
                let function = functions.insert_full(function).0 as u32;
                lines.insert_full((function, line)).0 as u32
            })
            .collect();
        let of_frames = (lines_of_frames.iter()).map(|line| lines[*line as usize].0);
        let mut calls = Self {
            of_frames: of_frames.collect(),
            functions,
            lines,
            is_by_line,
            nodes: Vec::with_capacity(tree.nodes().len()),
            places: Vec::new(),
        };
        calls.walk(tree, |frame| lines_of_frames[frame.index()]);
        calls
    }

    /// Numbers all nodes.
    fn walk(&mut self, tree: &CallTree, line_of: impl Fn(FrameId) -> u32) {
        let mut by_name: Vec<u32> = (0..self.lines.len() as u32).collect();
        by_name.sort_by_key(|&place| {
            let (function, line) = self.lines[place as usize];
            (&self.functions[function as usize], line)
        });
        let mut ranks = vec![0; by_name.len()];
        for (rank, &place) in (0..).zip(&by_name) {
            ranks[place as usize] = rank;
        }
        let order = Preorder::of(tree.nodes(), |frame| ranks[line_of(frame) as usize]);
        let mut depth_before = 0;
        self.nodes.extend(order.nodes.iter().map(|node| {
            let depth = node.depth + 1;
            Node {
                up: std::mem::replace(&mut depth_before, depth) + 1 - depth,
                line: by_name[node.rank as usize],
            }
        }));
        self.places = order.places;
    }

    /// The place of a node, 0 where there is none.
    pub(super) fn place(&self, node: Option<NodeIndex>) -> u32 {
        node.map_or(0, |node| self.places[node.index()] + 1)
    }

    /// Adds the columns. `hidden`: for each of the tree's frames its weight in rests; nothing where there are none.
    pub(super) fn push(&self, hidden: &[u64], names: &mut Names, columns: &mut Columns) {
        let functions = &self.functions;
        let texts: [(&str, TextOf); 3] = [
            ("frame_name", |function| &function.name),
            ("frame_module", |function| &function.module),
            ("frame_file", |function| &function.file),
        ];
        for (column, of) in texts {
            let numbers = functions.iter().map(|function| names.number(of(function)));
            columns.push(column, numbers);
        }
        let kind = functions.iter().map(|function| function.kind.into());
        columns.push("frame_kind", kind);
        let mut weights = vec![0_u64; functions.len()];
        for (function, hidden) in self.of_frames.iter().zip(hidden) {
            let weight = &mut weights[*function as usize];
            *weight = weight.saturating_add(*hidden);
        }
        columns.push("frame_hidden", weights.into_iter());
        if self.is_by_line {
            let functions = self.lines.iter().map(|(function, _)| u64::from(*function));
            columns.push("line_frame", functions);
            let lines = self.lines.iter().map(|(_, line)| u64::from(*line));
            columns.push("line_number", lines);
        }
        columns.push("node_up", self.nodes.iter().map(|node| node.up.into()));
        let frame = self.nodes.iter().map(|node| node.line.into());
        columns.push("node_frame", frame);
    }
}

/// The first number of interpreted functions in the viewer; their [`RuntimeKind`] is added to it.
const INTERPRETED: u32 = 11;

/// A kind's number in the viewer, where 0 is the root.
fn kind(kind: FrameKind) -> u32 {
    match kind {
        FrameKind::Process => 1,
        FrameKind::Label => 2,
        FrameKind::User => 3,
        FrameKind::Jit => 4,
        FrameKind::Inlined => 5,
        FrameKind::Kernel => 6,
        FrameKind::Mark => 7,
        FrameKind::State(ThreadState::Running | ThreadState::Ran) => 8,
        FrameKind::State(ThreadState::Runnable) => 9,
        FrameKind::State(ThreadState::Blocked | ThreadState::Woken) => 10,
        FrameKind::Interpreted(runtime) => INTERPRETED + runtime as u32,
    }
}
