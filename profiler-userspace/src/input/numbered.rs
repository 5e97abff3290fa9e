//! Stacks that a line with a number ends, as SystemTap and DTrace print them.
//!
//! In: frames from the leaf on, one to a line, then a line with a number: how often. Out: a profile. A line that is
//! neither is left out; a number without a stack, a stack without a number, and one whose number is no weight, are left out
//! as well. All of them are counted, with the first line's number.

use super::text::{Lines, Summed, one_type};
use super::{Error, ReadOptions, Reading};
use crate::profile::Frame;
use crate::text::lines::LineReader;
use std::io::BufRead;

/// A line that stands in no stack's place of a number.
pub(super) enum Line {
    /// Frames, from the leaf on.
    Frames(Vec<Frame>),
    /// Text that the tool prints beside stacks and that tells nothing of them.
    Heading,
    /// Something else.
    Odd,
}

/// Whether a line is a number, be it one that no weight can be.
pub(super) fn is_number(line: &str) -> bool {
    let digits = line.strip_prefix('-').unwrap_or(line);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The profile in a text whose other lines `parse` understands.
pub(super) fn read(
    from: &mut dyn BufRead,
    options: &ReadOptions<'_>,
    mut parse: impl FnMut(&str) -> Line,
    expected: &str,
) -> Result<Reading, Error> {
    one_type(options)?;
    let mut summed = Summed::new(options.unit.clone());
    let mut stack: Vec<Frame> = Vec::new();
    let mut odd = Lines::default();
    let mut last = 0;
    let mut lines = LineReader::new(from);
    while let Some((line, text)) = lines.next()? {
        last = line;
        let trimmed = text.trim();
        if trimmed.is_empty() {
            continue;
        }
        if !is_number(trimmed) {
            match parse(&text) {
                Line::Frames(frames) => stack.extend(frames),
                Line::Heading => {}
                Line::Odd => odd.add(line, trimmed),
            }
            continue;
        }
        let shown = trimmed.parse().ok();
        match shown.and_then(|shown| options.unit.read(shown)) {
            Some(weight) if !stack.is_empty() => {
                stack.reverse();
                summed.push(line, &stack, (weight, options.count(weight)))?;
            }
            _ => odd.add(line, trimmed),
        }
        stack.clear();
    }
    let problem = "the file ends within a stack; a number should be below it";
    let cut = (!stack.is_empty()).then_some((last, problem));
    let what = "lines that end no stack and are no frame";
    summed.into_reading().leave_out(&odd, what, expected, cut)
}
