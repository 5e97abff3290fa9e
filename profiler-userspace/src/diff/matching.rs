//! Which function of one build is which of another.
//!
//! In: a frame's name. Out: the part of it that stays the same when the program is built again: compilers number what they
//! copy, split and hash. Code without a name is known by its module alone. Never: a guess from where a function is called.

use crate::profile::{Frame, FrameKind};
use std::borrow::Cow;

/// What compilers and linkers put behind the name of a part or a copy of a function, each perhaps with a number.
const PARTS: [&str; 6] = ["isra", "constprop", "part", "cold", "lto_priv", "llvm"];

/// What of frames with equal names is told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A process or thread.
    Owner,
    /// Code of the program, its libraries, or what a runtime made of it, inlined or not.
    User,
    /// Code of the kernel.
    Kernel,
    /// What stands for no function.
    Mark,
}

impl Class {
    /// That of a kind of frame.
    pub fn of(kind: FrameKind) -> Self {
        match kind {
            FrameKind::Process | FrameKind::Label => Self::Owner,
            FrameKind::User | FrameKind::Jit | FrameKind::Inlined | FrameKind::Interpreted(_) => {
                Self::User
            }
            FrameKind::Kernel => Self::Kernel,
            FrameKind::Mark | FrameKind::State(_) => Self::Mark,
        }
    }

    /// Whether it is of functions.
    pub fn is_code(self) -> bool {
        matches!(self, Self::User | Self::Kernel)
    }
}

/// What a frame is known by in every build.
pub(super) fn stable(frame: &Frame) -> Cow<'_, str> {
    match Class::of(frame.kind) {
        Class::Owner => owner(&frame.name),
        Class::User => code(&frame.name),
        Class::Kernel => code(&frame.name),
        Class::Mark => Cow::Borrowed(&frame.name),
    }
}

/// Threads of a pool are numbered in any order: `worker-3` is `worker-0`.
fn owner(name: &str) -> Cow<'_, str> {
    if let Some(rest) = name.strip_prefix("kworker/")
        && !rest.is_empty()
    {
        return Cow::Borrowed("kworker");
    }
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let stem = &name[..name.len() - digits];
    match digits > 0 && stem.ends_with(['-', '/', '#', ':', '_', ' ']) {
        true => Cow::Owned(format!("{stem}0")),
        false => Cow::Borrowed(name),
    }
}

fn code(name: &str) -> Cow<'_, str> {
    if let Some(module) = unnamed(name) {
        return Cow::Owned(format!("[{}]", without_version(module)));
    }
    let name = without_line(name);
    let mut stem = without_parts(name);
    if let Some((path, hash)) = stem.rsplit_once("::h")
        && hash.len() == 16
        && hash.bytes().all(|b| b.is_ascii_hexdigit())
    {
        stem = path;
    }
    match stem.contains('#') {
        true => Cow::Owned(without_numbers(stem)),
        false => Cow::Borrowed(stem),
    }
}

/// The module of `[module+0x1f]`.
fn unnamed(name: &str) -> Option<&str> {
    let inside = name.strip_prefix('[')?.strip_suffix(']')?;
    let (module, offset) = inside.rsplit_once("+0x")?;
    let is_offset = !offset.is_empty() && offset.bytes().all(|b| b.is_ascii_hexdigit());
    is_offset.then_some(module)
}

/// `libssl.so.3` is `libssl.so`.
fn without_version(module: &str) -> &str {
    match module.find(".so.") {
        Some(at) => &module[..at + 3],
        None => module,
    }
}

/// Without ` (file.c:12)`.
fn without_line(name: &str) -> &str {
    let line = name
        .strip_suffix(')')
        .and_then(|name| name.rsplit_once(" ("));
    match line {
        Some((function, place)) => {
            let number = place.rsplit_once(':').map(|(_, number)| number);
            let is_number =
                |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            match number.is_some_and(is_number) {
                true => function,
                false => name,
            }
        }
        None => name,
    }
}

/// Without `.isra.0`, `.cold` and the like, as linkers write them or as demanglers do: ` [clone .isra.0]`.
fn without_parts(name: &str) -> &str {
    let mut stem = name;
    loop {
        let shorter = match stem.strip_suffix(']') {
            Some(cloned) => cloned
                .rsplit_once(" [clone .")
                .filter(|(_, part)| is_part(part))
                .map(|(function, _)| function),
            None => without_part(stem),
        };
        match shorter.filter(|shorter| !shorter.is_empty()) {
            Some(shorter) => stem = shorter,
            None => return stem,
        }
    }
}

fn without_part(name: &str) -> Option<&str> {
    let (stem, last) = name.rsplit_once('.')?;
    if is_part(last) {
        return Some(stem);
    }
    let is_number = !last.is_empty() && last.bytes().all(|b| b.is_ascii_digit());
    let (stem, part) = stem.rsplit_once('.')?;
    (is_number && is_part(part)).then_some(stem)
}

/// Whether a text is a part's name, perhaps with its number.
fn is_part(text: &str) -> bool {
    let word = text.split('.').next().unwrap_or_default();
    let behind = text[word.len()..].trim_start_matches('.');
    PARTS.contains(&word) && behind.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Without the numbers of closures and the like, in the order of the source: `{closure#1}`, `{lambda()#2}`.
fn without_numbers(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some((front, behind)) = rest.split_once('#') {
        let digits = behind.len()
            - behind
                .trim_start_matches(|c: char| c.is_ascii_digit())
                .len();
        let is_number = digits > 0 && behind[digits..].starts_with('}');
        text.push_str(front);
        if !is_number {
            text.push('#');
            rest = behind;
            continue;
        }
        rest = &behind[digits..];
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_a_build_numbers_is_left_out() {
        for (name, stable) in [
            ("parse_value.isra.0", "parse_value"),
            ("parse_value.constprop.0.isra.12", "parse_value"),
            ("parse_value.cold", "parse_value"),
            ("parse_value.part.3.cold", "parse_value"),
            ("parse_value.cold.7", "parse_value"),
            ("memo.lto_priv.0", "memo"),
            ("drop.llvm.1234567890", "drop"),
            ("foo(int) [clone .isra.0]", "foo(int)"),
            ("foo(int) [clone .part.0] [clone .cold]", "foo(int)"),
            ("core::fmt::write::h0123456789abcdef", "core::fmt::write"),
            ("a::b::{closure#12}", "a::b::{closure}"),
            (
                "f()::{lambda(int)#1}::operator()",
                "f()::{lambda(int)}::operator()",
            ),
            ("work (file.c:12)", "work"),
            ("[libssl.so.3+0x1f]", "[libssl.so]"),
            ("[redis-server+0xabc]", "[redis-server]"),
            // These mean what they say.
            ("partial.0", "partial.0"),
            ("a.party", "a.party"),
            (".cold", ".cold"),
            ("x::half", "x::half"),
            ("color#fff", "color#fff"),
            ("f(std::map<int>)", "f(std::map<int>)"),
            ("[unknown]", "[unknown]"),
        ] {
            assert_eq!(code(name), stable);
        }
    }

    #[test]
    fn threads_of_a_pool_are_one() {
        for (name, stable) in [
            ("worker-3", "worker-0"),
            ("kworker/u4:2-ev", "kworker"),
            ("ksoftirqd/1", "ksoftirqd/0"),
            ("python3", "python3"),
            ("cc1", "cc1"),
            ("7", "7"),
        ] {
            assert_eq!(owner(name), stable);
        }
    }

    proptest! {
        #[test]
        fn any_name_has_a_stable_part_that_is_its_own(name in "(\\PC|\\.cold|\\.isra\\.[0-9]|#[0-9]\\}|\\[|\\+0x1|\\]|::h| \\(a:1\\)){0,9}") {
            let once = code(&name).into_owned();
            prop_assert_eq!(code(&name).is_empty(), name.is_empty() || once.is_empty());
            let again = owner(&name).into_owned();
            prop_assert_eq!(owner(&again), &*again);
        }
    }
}
