//! A line of a stack, as bpftrace prints it.
//!
//! In: a line. Out: a name without its offset, and where in its source it was, if that is told.

use crate::input::kind;
use crate::input::text::without_offset;
use crate::profile::{FrameKind, FrameRef, SourceFrame};

/// A line of a stack: `main+14`, with debug information `main+14@/src/a.c:3`, with its module behind or, as perf has
/// it, with its address in front: `ffffffff813a2413 main+14 (/usr/bin/a)`.
pub(super) fn parse(line: &str) -> SourceFrame<'_> {
    let mark = match line {
        "<unwind failure>" => Some("[unwind failure]"),
        "<truncated>" => Some("[truncated]"),
        _ => None,
    };
    if let Some(name) = mark {
        let kind = FrameKind::Mark;
        return SourceFrame::nowhere(FrameRef { name, kind });
    }
    let (line, kind) = match line.strip_prefix("[inlined] ") {
        Some(rest) => (rest, FrameKind::Inlined),
        None => (line, FrameKind::User),
    };
    let (address, line) = split_address(line.trim());
    let (line, module) = split_module(line);
    let (name, source) = with_source(line);
    let (file, line) = source.unwrap_or(("", 0));
    let kind = match (kind, address) {
        (FrameKind::User, address) => kind::of_code(module, address),
        (kind, _) => kind,
    };
    let name = without_offset(name.trim());
    SourceFrame {
        frame: FrameRef { name, kind },
        file,
        line,
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

/// The address in front of a frame, or as which it stands, and the rest; 0 where there is none.
fn split_address(line: &str) -> (u64, &str) {
    let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
    let digits = first.strip_prefix("0x").unwrap_or(first);
    let is_address = digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let known = u64::from_str_radix(digits, 16).ok().filter(|_| is_address);
    match known {
        // A function may be called `decade`.
        Some(_) if rest.is_empty() && digits.len() < 8 && digits.len() == first.len() => (0, line),
        Some(address) if rest.is_empty() || rest.starts_with(['(', '[']) => (address, line),
        Some(address) => (address, rest.trim()),
        None => (0, line),
    }
}

/// A frame, and the module in parentheses or brackets behind it.
fn split_module(line: &str) -> (&str, &str) {
    let is_behind_offset = |name: &str| without_offset(with_source(name).0) != with_source(name).0;
    let in_parentheses = || {
        let (name, module) = line.strip_suffix(')')?.rsplit_once(" (")?;
        // Parameters of a function look so, too.
        let is_module = module.starts_with(['/', '[', '.']) || module == "unknown";
        (is_module || is_behind_offset(name)).then_some((name, module))
    };
    let in_brackets = || {
        let (name, module) = line.split_at(line.rfind(" [")?);
        (module.ends_with(']') && is_behind_offset(name)).then_some((name, module.trim()))
    };
    // A path may hold parentheses.
    let whole_path = || {
        let at = line.find(" (/")?;
        let module = line[at..].strip_prefix(" (")?.strip_suffix(')')?;
        Some((&line[..at], module))
    };
    whole_path()
        .or_else(in_parentheses)
        .or_else(in_brackets)
        .unwrap_or((line, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_addresses_nor_modules_are_part_of_names() {
        for (line, expected) in [
            ("7f0011223344 spin+37 (/srv/app/bin)", "spin"),
            (
                "0x7f0011223344 spin+37@/srv/app/loop.c:14 (/srv/app/bin)",
                "spin",
            ),
            (
                "spin+37@/srv/my (app)/loop.c:14 (/srv/my (app)/bin)",
                "spin",
            ),
            ("spin+37 (/srv/my app/bin)", "spin"),
            (
                "std::map<int, int>::at(int const&)+7",
                "std::map<int, int>::at(int const&)",
            ),
            ("call(int (*)(void))", "call(int (*)(void))"),
            ("7f0011223344 call(int)+3 ([unknown])", "call(int)"),
            ("decade", "decade"),
            (
                "operator new[](unsigned long)+3",
                "operator new[](unsigned long)",
            ),
            ("operator[]", "operator[]"),
        ] {
            let at = parse(line).frame;
            assert_eq!((at.name, at.kind), (expected, FrameKind::User), "{line}");
        }
        for (line, expected) in [
            ("ffffffff813a2413 do_exit+12 ([kernel.kallsyms])", "do_exit"),
            ("nft_do_chain+3 [nf_tables]", "nft_do_chain"),
            ("nft_do_chain+3 ([nf_tables])", "nft_do_chain"),
            ("ffffffff813a2413", "ffffffff813a2413"),
            ("0xffffffff813a2413", "0xffffffff813a2413"),
        ] {
            let at = parse(line).frame;
            assert_eq!((at.name, at.kind), (expected, FrameKind::Kernel), "{line}");
        }
    }
}
