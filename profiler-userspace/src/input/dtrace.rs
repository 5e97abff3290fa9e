//! Stacks as DTrace prints them: `stack()`, `ustack()`, `jstack()` as keys of an aggregation.
//!
//! In: frames from the leaf on, one to a line, then a line with a number: how often. Out: a profile.
//!
//! A frame is `unix`tsc_gethrtimeunscaled+0x21`, an address alone, or what a runtime's helper says, which may be any text.
//! Offsets are left out, and what C++ names have behind their function.

use super::numbered::{self, Line, is_number};
use super::text::{address, rust_name};
use super::{Error, Head, ReadOptions, Reading};
use crate::profile::{Frame, FrameKind};
use std::io::BufRead;

/// Whether there is a frame that can be of nothing else, a number below it, and little beside such frames.
pub(super) fn looks_so(head: &Head<'_>) -> bool {
    if head.is_binary {
        return false;
    }
    let (mut frames, mut others, mut has_number) = (0, 0, false);
    for line in head.text.lines() {
        match line.trim() {
            "" => {}
            number if is_number(number) => has_number |= frames > 0,
            frame if is_sure(frame) => frames += 1,
            _ if is_heading(line) => {}
            _ => others += 1,
        }
    }
    has_number && others <= frames
}

pub(super) fn read(from: &mut dyn BufRead, options: &ReadOptions<'_>) -> Result<Reading, Error> {
    // Text that lost its indentation.
    let mut is_flush = false;
    let parse = |line: &str| {
        let is_indented = line.starts_with([' ', '\t']);
        let text = line.trim();
        let is_sure = is_sure(text);
        is_flush |= is_sure && !is_indented;
        match () {
            () if is_sure => Line::Frames(frames(text)),
            () if is_heading(line) => Line::Heading,
            () if is_indented || is_flush => Line::Frames(frames(text)),
            () => Line::Odd,
        }
    };
    numbered::read(from, options, parse, "a frame such as `unix`main+0x1`")
}

/// Whether a line without its indentation is a frame, whatever is around it.
fn is_sure(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    word.contains('`') || address(text).is_some()
}

/// Whether a line tells of the probe that fired, or is the title above such lines.
fn is_heading(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("CPU"), Some("ID"), _) => true,
        (Some(cpu), Some(id), Some(probe)) => {
            is_number(cpu) && is_number(id) && probe.contains(':')
        }
        _ => false,
    }
}

/// Frames of a line, the innermost first. Of inlined functions Java's helper makes one line, with arrows.
fn frames(text: &str) -> Vec<Frame> {
    let name = match text.rsplit_once('+') {
        Some((name, _)) => name,
        None => text,
    };
    let name = match without_arguments(name) {
        "" => "-",
        name => name,
    };
    let name = match name.split_once('`') {
        Some((module, function)) => format!("{module}`{}", rust_name(function.trim_end())),
        None => name.to_owned(),
    };
    if !name.contains("->") || name.contains("operator->") {
        let kind = FrameKind::User;
        return vec![Frame::new(name, kind)];
    }
    let functions = name.split("->").enumerate().map(|(depth, function)| Frame {
        name: function.trim_start_matches('L').to_owned(),
        kind: match depth {
            0 => FrameKind::User,
            _ => FrameKind::Inlined,
        },
    });
    let mut frames: Vec<_> = functions.collect();
    frames.reverse();
    frames
}

/// A C++ name without what follows the last bracket that opens behind its scope.
fn without_arguments(name: &str) -> &str {
    let scope = name.find("::").map(|at| at + 2);
    let open = scope.and_then(|scope| Some(scope + name[scope..].rfind(['(', '<'])?));
    open.map_or(name, |open| &name[..open])
}

#[cfg(test)]
mod tests {
    use super::super::tests::{kind_and_text, notes, refused};

    const DTRACE: &str = "dtrace: description 'profile-997 ' matched 2 probes
CPU     ID                    FUNCTION:NAME
  0  64091                        :tick-60s

              libc.so.1`std::vector<int, std::allocator<int> >::at(int)+0x3
              app`_$LT$a..B$u20$as$u20$C$GT$::run::h30ecedc997ad7e32+0x9
              0x8051a3
                7

              libjvm.so`hot+0x1
              La/B.get->La/B.check+0x2
              app`main+0x2
               12
";

    const FOLDED: &str = "0x8051a3;app`<a::B as C>::run;libc.so.1`std::vector<int, std::allocator<int> >::at 7\n\
                          app`main;a/B.get;a/B.check_[i];libjvm.so`hot 12\n";

    #[test]
    fn dtrace_prints_a_stack_of_lines_and_then_a_number() {
        assert_eq!(kind_and_text(DTRACE), ("DTrace stacks", FOLDED.to_owned()));
        let (_, header) = DTRACE.split_once('\n').unwrap();
        assert_eq!(notes(header), [""; 0]);
    }

    #[test]
    fn odd_lines_of_dtrace_are_told_wherever_they_are() {
        let count = DTRACE.lines().count();
        for odd in ["dtrace: 3 drops on CPU 0", "-5", "99999999999999999999"] {
            // In front, between stacks and behind all of them.
            for at in [0, 4, 9, count] {
                let mut lines: Vec<_> = DTRACE.lines().collect();
                lines.insert(at, odd);
                lines.retain(|line| !line.starts_with("dtrace: description"));
                let (text, line) = (lines.join("\n"), at + usize::from(at == 0));
                assert_eq!(kind_and_text(&text).1, FOLDED, "{text}");
                let told = notes(&text).concat();
                let expected = format!("the first is line {line}: `{odd}`");
                assert!(told.contains(": 1 lines "), "{told}");
                assert!(told.contains(&expected), "{told}");
            }
        }
        let cut = DTRACE.strip_suffix("12\n").unwrap();
        assert!(kind_and_text(cut).1.ends_with(" 7\n"));
        let told = notes(cut).concat();
        assert!(told.contains(": 1 lines "), "{told}");
        assert!(told.contains("what should be behind line 13: "), "{told}");
    }

    #[test]
    fn dtrace_without_a_stack_that_counts_is_refused_by_line() {
        let refusal = refused("  unix`a+0x1\n  99999999999999999999\n");
        assert!(refusal.starts_with("line 2: "), "{refusal}");
    }
}
