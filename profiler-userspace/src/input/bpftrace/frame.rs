//! A line of a stack, as bpftrace prints it.
//!
//! In: a line. Out: a name without its offset, and where in its source it was, if that is told.

use crate::input::text::{address, without_offset};
use crate::profile::{FrameKind, FrameRef, SourceFrame};

/// A frame and where in its source it was.
pub(super) struct At<'a> {
    pub(super) name: &'a str,
    pub(super) kind: FrameKind,
    file: &'a str,
    line: u32,
}

impl<'a> From<&'a At<'a>> for SourceFrame<'a> {
    fn from(at: &'a At<'a>) -> Self {
        Self {
            frame: FrameRef {
                name: at.name,
                kind: at.kind,
            },
            file: at.file,
            line: at.line,
        }
    }
}

impl<'a> At<'a> {
    pub(super) fn of(name: &'a str, kind: FrameKind) -> Self {
        Self {
            name,
            kind,
            file: "",
            line: 0,
        }
    }

    /// A line of a stack: `main+14`, with debug information `main+14@/src/a.c:3`, or as perf has it,
    /// `ffffffff813a2413 main+14 (/usr/bin/a)`.
    pub(super) fn parse(line: &'a str) -> Self {
        if line == "<unwind failure>" {
            return Self::of("[unwind failure]", FrameKind::Mark);
        }
        let (line, kind) = match line.strip_prefix("[inlined] ") {
            Some(rest) => (rest, FrameKind::Inlined),
            None => (line, FrameKind::User),
        };
        let (name, source) = with_source(line);
        let (file, line) = source.unwrap_or(("", 0));
        Self {
            name: frame_name(name),
            kind,
            file,
            line,
        }
    }
}

/// A frame, and the file and line behind it. A file may hold any character, and a name may hold an `@`; behind an offset
/// there is nothing else.
fn with_source(text: &str) -> (&str, Option<(&str, u32)>) {
    let source = |at: usize| {
        let (file, line) = text[at + 1..].rsplit_once(':')?;
        Some((&text[..at], Some((file, line.parse().ok()?))))
    };
    let mut places = text.match_indices('@').map(|(at, _)| at);
    let behind_offset = places
        .clone()
        .find(|at| without_offset(&text[..*at]).len() < *at);
    let at = behind_offset.or_else(|| places.next());
    at.and_then(source).unwrap_or((text, None))
}

/// The function of a line without its source.
fn frame_name(line: &str) -> &str {
    let line = line.trim();
    let Some((first, rest)) = line.split_once(' ') else {
        return without_offset(line);
    };
    let is_address = first.len() >= 4 && first.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_address || address(first).is_some() {
        return without_offset(line);
    }
    let name = match rest.rsplit_once(" (") {
        Some((name, module)) if module.ends_with(')') => name,
        _ => rest,
    };
    without_offset(name.trim())
}
