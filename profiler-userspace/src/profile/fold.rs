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
mod lines;
mod name;
mod parse;
mod stack_line;
#[cfg(test)]
mod tests;

pub use crate::text::visible::visible;
pub(crate) use lines::{Lines, Order};
pub(crate) use parse::excerpt;
pub use parse::{MAX_MEMORY, ParseError, Parsed, parse, parse_lines};

use super::{Frame, FrameKind, Profile, View, marks};
use std::borrow::Cow;
use std::io::{self, Write};

/// The suffix of annotated names: `_[k]` of the kernel's, and so on.
fn suffix(kind: FrameKind) -> Option<String> {
    Some(format!("_[{}]", kind.short()?))
}

/// A name's stem and the kind that its suffix tells.
fn split_suffix(name: &str) -> Option<(&str, FrameKind)> {
    // Few names end so, and all of them are asked.
    if name.as_bytes().last() != Some(&b']') {
        return None;
    }
    let (stem, short) = name.strip_suffix(']')?.rsplit_once("_[")?;
    Some((stem, FrameKind::from_short(short)?))
}

/// How much text is gathered before it is written.
const CHUNK_BYTES: usize = 64 * 1024;

/// Parts of folded text beside names and weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldStyle {
    /// Puts a frame `-` between the user and the kernel part of a stack that has both.
    pub delimited: bool,
    /// Appends `_[k]` to kernel frames, `_[j]` to those of code that a runtime made, `_[py]` to Python's, and so on.
    /// Inlined frames, which are only there when they were asked for, always have their `_[i]`.
    pub annotate: bool,
}

#[cfg(test)]
impl FoldStyle {
    /// Kinds of frames, and nothing else, are said beside their names.
    pub(crate) const ANNOTATED: Self = Self {
        delimited: false,
        annotate: true,
    };
}

/// Writes the profile as folded lines, sorted frame by frame, and equal stacks summed.
///
/// That order differs from that of `sort` where a name holds a character below `;`: here, all that
/// `main` called stays together, and `main(int)` follows.
pub fn fold(profile: &Profile, style: FoldStyle, out: &mut dyn Write) -> io::Result<()> {
    write(&View::delimited(profile, style.delimited), style, out)
}

/// Text that [`fold`] writes.
#[cfg(test)]
pub(crate) fn text(profile: &Profile, style: FoldStyle) -> String {
    let mut bytes = Vec::new();
    fold(profile, style, &mut bytes).expect("a vector takes everything");
    String::from_utf8(bytes).expect("folded text is UTF-8")
}

/// Writes a profile's view as [`fold`] does the profile.
pub(crate) fn write(view: &View, style: FoldStyle, out: &mut dyn Write) -> io::Result<()> {
    let lines = Lines::new(view, Order::RootFirst, |frame| {
        frame_name(frame, style.annotate)
    });
    let mut chunk = String::new();
    each_line(&lines, |stack, weight| {
        chunk.push_str(stack);
        chunk.push(' ');
        chunk.push_str(&lines.weight_text(weight));
        chunk.push('\n');
        if chunk.len() >= CHUNK_BYTES {
            out.write_all(chunk.as_bytes())?;
            chunk.clear();
        }
        Ok(())
    })?;
    out.write_all(chunk.as_bytes())
}

/// Gives `put` each line in turn: its names, and its weight in the unit that [`Lines::noun`] names.
pub(crate) fn each_line(
    lines: &Lines<'_, str>,
    mut put: impl FnMut(&str, u64) -> io::Result<()>,
) -> io::Result<()> {
    // The names down to a node, and for each depth where they end.
    let (mut path, mut ends) = (String::new(), Vec::<usize>::new());
    for (node, weight) in lines.nodes() {
        ends.truncate(node.depth as usize);
        path.truncate(ends.last().copied().unwrap_or_default());
        if node.depth > 0 {
            path.push(';');
        }
        path.push_str(&lines.names()[node.rank as usize]);
        ends.push(path.len());
        if let Some(weight) = weight {
            put(&path, weight)?;
        }
    }
    Ok(())
}

/// How `frame` reads in a line.
pub(crate) fn frame_name(frame: &Frame, annotate: bool) -> Cow<'_, str> {
    if frame.kind == FrameKind::Mark && frame.name == marks::DELIMITER {
        return Cow::Borrowed(marks::DELIMITER);
    }
    let name = name::frame(&frame.name);
    if !annotate && frame.kind != FrameKind::Inlined {
        return name;
    }
    match suffix(frame.kind) {
        Some(suffix) => Cow::Owned(name.into_owned() + &suffix),
        None => name,
    }
}
