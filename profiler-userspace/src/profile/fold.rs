//! Folded text: one line per distinct stack, root first, as `comm;main;work 42`.
//!
//! In: a [`Profile`], or folded text that we or another tool wrote.
//! Out: sorted lines in which equal stacks are summed, or the profile that such lines tell of.
//! Never: a line that holds more or less than one stack, whatever a program called its functions.
//!
//! Two frames are one here if they read the same, so folding is also where frames that differ only
//! in what text cannot hold come together. Weight is conserved both ways.
//!
//! The format is that of <https://github.com/brendangregg/FlameGraph>.

#[cfg(test)]
mod laws;
mod name;
mod parse;
#[cfg(test)]
mod tests;

pub use name::visible;
pub(crate) use parse::stack;
pub use parse::{MOST_MEMORY, ParseError, parse};

use super::{Frame, FrameId, FrameKind, Profile, View, ViewSample};
use profiler_common::runtime::RuntimeKind;
use std::borrow::Cow;
use std::io::{self, Write};
use std::ops::Range;

/// The frame that stands between the user and the kernel part of a stack.
const DELIMITER: &str = "-";
/// What ends the names of each kind of frame with `--annotate` (of inlined ones always), and what a name ends in instead
/// that has such an end of its own: only the kernel's frames may say that they are the kernel's, and so on.
const SUFFIXES: [(FrameKind, &str, &str); 9] = [
    (FrameKind::Kernel, "_[k]", "_(k)"),
    (FrameKind::Jit, "_[j]", "_(j)"),
    (FrameKind::Inlined, "_[i]", "_(i)"),
    (
        FrameKind::Interpreted(RuntimeKind::CPython),
        "_[py]",
        "_(py)",
    ),
    (
        FrameKind::Interpreted(RuntimeKind::Perl),
        "_[perl]",
        "_(perl)",
    ),
    (FrameKind::Interpreted(RuntimeKind::Php), "_[php]", "_(php)"),
    (FrameKind::Interpreted(RuntimeKind::Ruby), "_[rb]", "_(rb)"),
    (
        FrameKind::Interpreted(RuntimeKind::LuaJit),
        "_[luajit]",
        "_(luajit)",
    ),
    (FrameKind::Interpreted(RuntimeKind::Lua), "_[lua]", "_(lua)"),
];

/// The end of this kind's names; empty where there is none.
fn suffix(kind: FrameKind) -> &'static str {
    let row = SUFFIXES.iter().find(|(suffixed, ..)| *suffixed == kind);
    row.map_or("", |(_, suffix, _)| suffix)
}

/// The kind whose names end as this one does.
fn kind_by_suffix(name: &str) -> Option<FrameKind> {
    if name.as_bytes().last() != Some(&b']') {
        return None;
    }
    let row = SUFFIXES
        .iter()
        .find(|(_, suffix, _)| name.ends_with(suffix));
    row.map(|(kind, ..)| *kind)
}
/// What an empty name or an empty stack reads as.
const UNKNOWN: &str = "[unknown]";
/// How much text is gathered before it is written.
const CHUNK_BYTES: usize = 64 * 1024;

/// What folded text says beside names and weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldStyle {
    /// Puts a frame `-` between the user and the kernel part of a stack that has both.
    pub delimited: bool,
    /// Appends `_[k]` to kernel frames, and `_[j]` to those of code that a runtime made. Inlined
    /// frames, which are only there when they were asked for, always have their `_[i]`.
    pub annotate: bool,
}

/// Which end of a stack comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// As in folded text.
    RootFirst,
    /// For graphs that merge stacks from where the time was spent.
    LeafFirst,
}

/// Writes the profile as folded lines, sorted frame by frame, and equal stacks summed.
///
/// That order differs from that of `sort` where a name holds a character below `;`: here, all that
/// `main` called stays together, and `main(int)` follows.
pub fn fold(profile: &Profile, style: FoldStyle, out: &mut dyn Write) -> io::Result<()> {
    write(&View::new(profile), style, out)
}

/// Writes a profile's view as [`fold`] does the profile.
pub(crate) fn write(view: &View, style: FoldStyle, out: &mut dyn Write) -> io::Result<()> {
    let folded = Folded::new(view, style, Order::RootFirst);
    let mut chunk = String::new();
    for line in folded.lines() {
        folded.append(line, &mut chunk);
        if chunk.len() >= CHUNK_BYTES {
            out.write_all(chunk.as_bytes())?;
            chunk.clear();
        }
    }
    out.write_all(chunk.as_bytes())
}

/// How `frame` reads in a line.
pub(crate) fn frame_name(frame: &Frame, annotate: bool) -> Cow<'_, str> {
    let name = name::frame(&frame.name);
    if !annotate && frame.kind != FrameKind::Inlined {
        return name;
    }
    let suffix = suffix(frame.kind);
    if suffix.is_empty() {
        return name;
    }
    Cow::Owned(name.into_owned() + suffix)
}

/// One line to be.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Where the stack is in [`Folded::levels`].
    stack: Range<usize>,
    weight: u64,
}

/// A view's lines as ranks of names: small, and quick to sort, since ranks compare as names do.
#[derive(Debug)]
pub(crate) struct Folded<'a> {
    /// Distinct names as they will be written, sorted; a rank is an index into it.
    names: Vec<Cow<'a, str>>,
    /// All stacks, one behind the other, as ranks.
    levels: Vec<u32>,
    lines: Vec<Line>,
}

impl Line {
    pub(crate) fn weight(&self) -> u64 {
        self.weight
    }
}

impl<'a> Folded<'a> {
    pub(crate) fn new(view: &'a View, style: FoldStyle, order: Order) -> Self {
        let (names, ranks) = rank(view, style);
        let rank_of = |name: &str| {
            let found = names.binary_search_by(|known| known.as_ref().cmp(name));
            u32::try_from(found.expect("the fixed names are always among the ranked"))
                .expect("no more names than frame IDs")
        };
        let (delimiter, unknown) = (rank_of(DELIMITER), rank_of(UNKNOWN));

        let mut levels = Vec::with_capacity(view.samples().iter().map(|s| s.stack.len() + 1).sum());
        let mut lines = Vec::with_capacity(view.samples().len());
        for sample in view.samples() {
            let start = levels.len();
            let split = if style.delimited {
                kernel_part(view, sample)
            } else {
                None
            };
            for (depth, id) in sample.stack.iter().enumerate() {
                if split == Some(depth) {
                    levels.push(delimiter);
                }
                levels.push(ranks[id.0 as usize]);
            }
            if sample.stack.is_empty() {
                levels.push(unknown);
            }
            if order == Order::LeafFirst {
                levels[start..].reverse();
            }
            lines.push(Line {
                stack: start..levels.len(),
                weight: sample.weight,
            });
        }
        lines.sort_unstable_by(|a, b| levels[a.stack.clone()].cmp(&levels[b.stack.clone()]));
        let mut folded = Self {
            names,
            levels,
            lines,
        };
        folded.sum_neighbours();
        for line in &mut folded.lines {
            line.weight = view.unit.shown(line.weight);
        }
        folded
    }

    /// The lines in order.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Appends the line's text, with a line feed.
    pub(crate) fn append(&self, line: &Line, text: &mut String) {
        for (depth, &rank) in self.levels[line.stack.clone()].iter().enumerate() {
            if depth > 0 {
                text.push(';');
            }
            text.push_str(&self.names[rank as usize]);
        }
        text.push(' ');
        text.push_str(&line.weight.to_string());
        text.push('\n');
    }

    /// The distinct names as they are written, by their ranks.
    pub(crate) fn names(&self) -> &[Cow<'a, str>] {
        &self.names
    }

    /// The ranks of a line's names.
    pub(crate) fn stack(&self, line: &Line) -> &[u32] {
        &self.levels[line.stack.clone()]
    }

    fn sum_neighbours(&mut self) {
        let levels = &self.levels;
        self.lines.dedup_by(|line, last| {
            let same = levels[line.stack.clone()] == levels[last.stack.clone()];
            if same {
                last.weight += line.weight;
            }
            same
        });
    }
}

/// The distinct names, sorted, and for each frame of the view the rank of its name.
fn rank(view: &View, style: FoldStyle) -> (Vec<Cow<'_, str>>, Vec<u32>) {
    let fixed = [Cow::Borrowed(DELIMITER), Cow::Borrowed(UNKNOWN)];
    let shown: Vec<Cow<'_, str>> = view
        .frames()
        .map(|frame| frame_name(frame, style.annotate))
        .chain(fixed)
        .collect();

    let mut by_name: Vec<usize> = (0..shown.len()).collect();
    by_name.sort_unstable_by(|&a, &b| shown[a].cmp(&shown[b]));
    let mut ranks = vec![0; shown.len()];
    let mut names: Vec<Cow<'_, str>> = Vec::with_capacity(shown.len());
    for index in by_name {
        if names.last() != Some(&shown[index]) {
            names.push(shown[index].clone());
        }
        ranks[index] = u32::try_from(names.len() - 1).expect("no more names than frame IDs");
    }
    (names, ranks)
}

/// Where the kernel part begins, marks included, in a stack that has user frames before it.
fn kernel_part(view: &View, sample: &ViewSample) -> Option<usize> {
    let kind = |id: &FrameId| view.frame(*id).kind;
    let mut stack = sample.stack.iter();
    let kernel = stack.position(|id| kind(id) == FrameKind::Kernel)?;
    let mut before = sample.stack[..kernel].iter();
    let user = before.rposition(|id| kind(id).is_user())?;
    Some(user + 1)
}
