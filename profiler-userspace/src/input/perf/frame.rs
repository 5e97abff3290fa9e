//! A frame of `perf script`: `ADDRESS NAME+0xOFFSET (MODULE)`.
//!
//! In: a line. Out: a name and a kind. Paths may hold anything, parentheses and blanks among it; no part of one is ever
//! left in a name.

use crate::input::kind;
use crate::profile::{Frame, FrameKind};

/// The parts of a frame's line.
pub(super) struct Line {
    /// None where it stands for no function.
    pub(super) frame: Option<Frame>,
    pub(super) has_module: bool,
    /// Whether there are columns behind the module, such as `insn:` or those of branches.
    pub(super) has_more: bool,
}

pub(super) fn is_address(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a line begins with an address that is no word, such as `add`.
pub(super) fn has_address(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    is_address(word) && word.len() >= if has_digit { 3 } else { 8 }
}

/// The parts of such a line; none if it is no line of a frame.
pub(super) fn parse(line: &str) -> Option<Line> {
    let line = line.trim();
    let (address, rest) = line.split_once(' ').unwrap_or((line, ""));
    if !is_address(address) {
        return None;
    }
    let rest = rest.trim();
    let (name, module, more) = split(rest);
    let name = without_offset(name.trim());
    let has_module = module.is_some();
    let has_more = !more.is_empty();
    let of = |frame| {
        Some(Line {
            frame,
            has_module,
            has_more,
        })
    };
    // A process's name and not a function's.
    if has_module && name.starts_with('(') && name.find(')') == Some(name.len() - 1) {
        return of(None);
    }
    let module = module.map_or("", |module| kind::without_deleted(without_offset(module)));
    let kind = kind::of_code(module, u64::from_str_radix(address, 16).unwrap_or(0));
    let name = match name {
        "" | "[unknown]" if kind == FrameKind::Inlined => "[unknown]".to_owned(),
        "" | "[unknown]" => kind::unnamed(module),
        name => name.to_owned(),
    };
    of(Some(Frame::new(name, kind)))
}

/// Name, module and what is behind it.
fn split(text: &str) -> (&str, Option<&str>, &str) {
    let Some(open) = opening(text) else {
        return (text, None, "");
    };
    let (name, rest) = (&text[..open], &text[open + 1..]);
    if let Some(module) = rest.strip_suffix(')') {
        return (name, Some(module), "");
    }
    let mut depth = 1;
    for (at, c) in rest.char_indices() {
        depth += match c {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        if depth == 0 && c == ')' && rest[at + 1..].starts_with(' ') {
            return (name, Some(&rest[..at]), rest[at + 1..].trim());
        }
    }
    match rest.rsplit_once(") ") {
        Some((module, more)) => (name, Some(module), more),
        // The line is cut, and so is the path.
        None => (name, Some(rest), ""),
    }
}

/// Where the module's parenthesis is. Paths begin in few ways, and behind an offset there is nothing else.
fn opening(text: &str) -> Option<usize> {
    if text.starts_with("[unknown] (") {
        return Some("[unknown] ".len());
    }
    let behind_offset = text.match_indices("+0x").find_map(|(at, _)| {
        let digits = &text[at + 3..];
        let end = digits.find(|c: char| !c.is_ascii_hexdigit())?;
        digits[end..].starts_with(" (").then_some(at + 3 + end + 1)
    });
    let begins = [" (/", " ([", " (inlined)", " (./", " (anon_inode:"];
    let of_path = || {
        begins
            .iter()
            .filter_map(|begin| text.find(begin))
            .min()
            .map(|at| at + 1)
    };
    let alone = || (text.starts_with("(/") || text.starts_with("([")).then_some(0);
    behind_offset
        .or_else(alone)
        .or_else(of_path)
        .or_else(|| last_pair(text))
}

/// The opening one of the pair of parentheses that ends a text, if it stands behind a blank or alone.
fn last_pair(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let is_apart = at == 0 || text[..at].ends_with(' ');
            return (c == '(' && is_apart).then_some(at);
        }
    }
    None
}

/// A name or a module without the offset behind it, which may be cut.
fn without_offset(name: &str) -> &str {
    match name.rsplit_once("+0x") {
        Some((stem, offset)) if offset.bytes().all(|byte| byte.is_ascii_hexdigit()) => stem,
        _ => name,
    }
}

/// The file and line of a place that `-F +srcline` prints below a frame.
pub(super) fn source(line: &str) -> Option<(&str, u32)> {
    let (file, line) = line.trim().rsplit_once(':')?;
    let line = line.split(' ').next()?.parse().ok()?;
    (!file.is_empty() && !file.contains(": ") && line > 0).then_some((file, line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(line: &str) -> (String, FrameKind) {
        let frame = parse(line).and_then(|line| line.frame).expect("a frame");
        (frame.name, frame.kind)
    }

    #[test]
    fn a_name_holds_no_part_of_a_path() {
        for (line, expected) in [
            ("7f0000001000 step (/memfd:engine (deleted))", "step"),
            (
                "7f0000001000 [unknown] (/usr/bin/serviced (deleted))",
                "[serviced]",
            ),
            (
                "7f0000001000 call(int (*)(void))+0x10 (/opt/my dir (1)/lib.so)",
                "call(int (*)(void))",
            ),
            (
                "7f0000001000 call(int (*)(void)) (/opt/my dir (1)/lib.so)",
                "call(int (*)(void))",
            ),
            ("7f0000001000 a+0x1 (/opt/a (b/lib.so)", "a"),
            ("7f0000001000 a (/opt/a) b/lib.so (deleted))", "a"),
            (
                "7f0000001000 (anonymous namespace)::f(int)+0x3 (/x)",
                "(anonymous namespace)::f(int)",
            ),
            ("7f0000001000 main+0x10 (/opt/x/app) insn: 48 89 e5", "main"),
            (
                "7f0000001000 main (/opt/x (1)/app) 0x1/f(int)+0x2/P/-/-/0",
                "main",
            ),
            ("7f0000001000 main+0x10 (/opt/x/app+0x1234)", "main"),
            ("7f0000001000 [unknown] (/opt/x/app+0x1234)", "[app]"),
            ("7f0000001000 main+0x10", "main"),
            ("7f0000001000 main (/opt/x/a", "main"),
            ("7f0000001000 main+0x10 (/opt/x/a)\u{fffd}", "main"),
            ("7f0000001000 f(int)", "f(int)"),
            ("7f0000001000", "[unknown]"),
            ("401b97 main+0x1f (./tests/inline-counter)", "main"),
            ("401b97 main (libc.so)", "main"),
        ] {
            assert_eq!(name(line).0, expected, "{line}");
        }
        assert_eq!(
            name("7f1 Lapp/Main;::run ([JIT] tid 100)"),
            ("Lapp/Main;::run".to_owned(), FrameKind::Jit)
        );
        assert_eq!(
            name("7f1 [unknown] ([JIT] tid 100)"),
            ("[JIT]".to_owned(), FrameKind::Jit)
        );
        assert_eq!(name("1140 work (inlined)").1, FrameKind::Inlined);
    }

    proptest! {
        #[test]
        fn any_path_behind_an_offset_is_told_from_the_name(
            name in "[a-z]{1,4}(\\([a-z ]{0,4}(\\(\\*\\))?\\))?",
            path in "/[a-z() \\[\\]:+.-]{1,12}",
            gone in any::<bool>(),
        ) {
            let gone = if gone { " (deleted)" } else { "" };
            let line = format!("7f0000001000 {name}+0x1f ({path}{gone})");
            prop_assert_eq!(self::name(&line).0, name);
        }

        #[test]
        fn any_line_is_a_frame_or_none(line in "[0-9a-f]{1,4} [a-z()+ é\u{fffd}/0x]{0,24}") {
            let _either = parse(&line);
        }
    }
}
