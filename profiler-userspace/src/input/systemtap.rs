//! Stacks as SystemTap prints them: `print_backtrace()`, `print_ubacktrace()`, `print_stack(@x)` and the like.
//!
//! In: frames from the leaf on, one to a line, then a line with a number: how often. Out: a profile.
//!
//! A frame is ` 0xffffffff8103ce3b : native_safe_halt+0xb/0x10 [kernel]`; where nothing has a name,
//! ` 0x7f2b1c : [libc.so.6+0x1234/0x1000]` or the address alone. The offset is left out, so that places in one function
//! are one frame.

use super::numbered::{self, Line, is_number};
use super::text::{address, without_offset};
use super::{Error, Head, ReadOptions, Reading, kind};
use crate::profile::{Frame, FrameKind};
use std::io::BufRead;

/// Whether there are lines of addresses, and then one with a number.
pub(super) fn looks_so(head: &Head<'_>) -> bool {
    let mut has_frame = false;
    for line in head.text.lines().map(str::trim) {
        if line.is_empty() {
            continue;
        }
        if has_frame && is_number(line) {
            return true;
        }
        has_frame |= frame(line).is_some();
        if !has_frame && !is_remark(line) {
            return false;
        }
    }
    // A long first stack.
    has_frame
}

/// Whether a line is a remark of SystemTap's, which stands beside stacks.
fn is_remark(line: &str) -> bool {
    line.starts_with("WARNING:") || line.starts_with("Pass ")
}

pub(super) fn read(from: &mut dyn BufRead, options: &ReadOptions<'_>) -> Result<Reading, Error> {
    let parse = |line: &str| match frame(line.trim()) {
        Some(frame) => Line::Frames(vec![frame]),
        None => Line::Odd,
    };
    let expected = "a frame such as `0xffffffff8103ce3b : cpu_idle+0xd6/0x120 [kernel]`, or a number below a stack";
    numbered::read(from, options, parse, expected)
}

/// A line as a frame, if it is one.
fn frame(line: &str) -> Option<Frame> {
    // Where a stack may be wrong, SystemTap says so.
    let line = line.strip_suffix("(inexact)").unwrap_or(line).trim_end();
    let line = (line
        .strip_prefix("Returning from:")
        .or(line.strip_prefix("Returning to  :")))
    .unwrap_or(line)
    .trim_start();
    let (first, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    let address = address(first)?;
    let rest = rest.trim_start();
    let rest = rest.strip_prefix(':').unwrap_or(rest).trim();
    let (name, module) = match rest.rsplit_once(" [") {
        Some((name, module)) => (name.trim_end(), module.strip_suffix(']')?),
        None => (rest, ""),
    };
    let kind = match module {
        "kernel" => FrameKind::Kernel,
        module => kind::of_code(module, address),
    };
    let name = match name.is_empty() {
        true => first.to_owned(),
        // `[libc.so.6+0x1234/0x1000]`: the size of the module is of no use.
        false if name.starts_with('[') => match name.rsplit_once('/') {
            Some((start, size)) if super::text::address(size.trim_end_matches(']')).is_some() => {
                format!("{start}]")
            }
            _ => name.to_owned(),
        },
        false => without_offset(name).to_owned(),
    };
    Some(Frame::new(name, kind))
}
