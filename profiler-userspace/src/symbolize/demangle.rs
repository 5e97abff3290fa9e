//! Demangles symbols.
//!
//! In: a linker's name. Out: text for a reader. Pure, bounded, never fails: a name that cannot be demangled
//! stays as it is.
//!
//! Rust names lose their hash, C++ names their parameters and return type, because boxes in a graph are
//! narrow. Every name loses the suffixes of parts and clones of a function. What goes only on request is in
//! [`super::simplify`].

use super::simplify::simplify;
use cpp_demangle::{BorrowedSymbol, DemangleOptions};
use std::fmt::{self, Write};

/// The longest name kept, in bytes. Nested templates reach a few thousand.
const MAX_BYTES: usize = 16 << 10;

/// How names are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Demangling {
    /// Demangled.
    #[default]
    Full,
    /// Demangled, without template and generic arguments.
    Simplified,
    /// As the linker knows them.
    Off,
}

/// Suffixes of parts and clones of a function, possibly with a number behind them.
const SUFFIXES: [&[u8]; 8] = [
    b"cold",
    b"part",
    b"isra",
    b"constprop",
    b"llvm",
    b"lto_priv",
    b"localalias",
    b"clone",
];

/// The readable form of `mangled`.
pub(super) fn demangle(mangled: &[u8], demangling: Demangling) -> String {
    // The linker's version of a symbol, as in `memcpy@@GLIBC_2.14`, is not its name.
    let end = mangled
        .iter()
        .skip(1)
        .position(|&byte| byte == b'@')
        .map_or(mangled.len(), |at| at + 1);
    let plain = &mangled[..end];
    if demangling == Demangling::Off {
        return visible(plain);
    }
    let name = unmangled(whole(plain));
    match demangling {
        Demangling::Simplified => simplify(&name).unwrap_or(name),
        Demangling::Full | Demangling::Off => name,
    }
}

/// The readable form of a whole name.
pub(super) fn unmangled(plain: &[u8]) -> String {
    str::from_utf8(plain)
        .ok()
        .and_then(|name| rust(name).or_else(|| cpp(name)))
        .unwrap_or_else(|| visible(plain))
}

/// The name of the whole function that this may be a part or a clone of.
fn whole(name: &[u8]) -> &[u8] {
    let mut whole = name;
    while let Some(dot) = whole.iter().rposition(|&byte| byte == b'.') {
        let (rest, last) = (&whole[..dot], &whole[dot + 1..]);
        let numbered = !last.is_empty() && last.iter().all(u8::is_ascii_digit);
        let (rest, word) = match rest.iter().rposition(|&byte| byte == b'.') {
            Some(dot) if numbered => (&rest[..dot], &rest[dot + 1..]),
            _ => (rest, last),
        };
        if rest.is_empty() || !SUFFIXES.contains(&word) {
            break;
        }
        whole = rest;
    }
    whole
}

/// Bytes that should be text. Invalid UTF-8 is written as `\xff`.
pub(super) fn visible(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes[..bytes.len().min(MAX_BYTES)].utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").expect("a string takes any text");
        }
    }
    text
}

/// The Rust path, without the hash.
fn rust(name: &str) -> Option<String> {
    let demangled = rustc_demangle::try_demangle(name).ok()?;
    let mut text = Bounded::default();
    write!(text, "{demangled:#}").ok()?;
    Some(text.0)
}

fn cpp(name: &str) -> Option<String> {
    // The demangler accepts `_Z`, `__Z` and the like; for anything else starting it is a waste.
    if !name.trim_start_matches('_').starts_with('Z') || !name.starts_with('_') {
        return None;
    }
    let symbol = BorrowedSymbol::new(name.as_bytes()).ok()?;
    let mut text = Bounded::default();
    symbol
        .structured_demangle(
            &mut text,
            &DemangleOptions::new().no_params().no_return_type(),
        )
        .ok()?;
    // Qualifiers of `this` are left of the parameters.
    Some(without_empty_packs(
        text.0.strip_suffix(" const").unwrap_or(&text.0),
    ))
}

/// A name without the commas that the demangler writes beside packs of no arguments: `A<int, >` is `A<int>`.
fn without_empty_packs(name: &str) -> String {
    const COMMA: &str = ", ";
    let mut text = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find(COMMA) {
        text.push_str(&rest[..at]);
        rest = &rest[at + COMMA.len()..];
        let operator = text.trim_end_matches(['<', '(', ',']);
        let begins = text.ends_with(['<', '(']) && !operator.ends_with("operator");
        if begins || rest.starts_with(COMMA) {
            continue;
        }
        match rest.chars().next() {
            Some('>') if text.ends_with('>') => text.push(' '),
            Some('>' | ')') => {}
            _ => text.push_str(COMMA),
        }
    }
    text + rest
}

/// Text of limited length: a short name can expand endlessly by repeating its own parts.
#[derive(Default)]
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > MAX_BYTES {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn full(mangled: &[u8]) -> String {
        demangle(mangled, Demangling::Full)
    }

    #[test]
    fn cold_parts_and_clones_have_the_functions_name() {
        for name in [
            "work.cold",
            "work.part.0",
            "work.isra.0",
            "work.constprop.12",
            "work.constprop.0.isra.1.cold",
            "work.llvm.1234567890",
            "work.lto_priv.0",
            "work.cold.3",
        ] {
            assert_eq!(full(name.as_bytes()), "work", "{name}");
            assert_eq!(demangle(name.as_bytes(), Demangling::Off), name);
        }
        assert_eq!(full(b"_ZN5space3fooEi.llvm.99"), "space::foo");
        assert_eq!(full(b"_ZN5space3fooEi.isra.0.cold"), "space::foo");
        assert_eq!(
            full(b"_RNvCs15kBYyAo9fc_7mycrate4main.llvm.7"),
            "mycrate::main"
        );
    }

    #[test]
    fn packs_of_no_arguments_leave_no_comma() {
        for (mangled, name) in [
            (&b"_ZN2PMIi2AMIiJEEJEE3runEi"[..], "PM<int, AM<int> >::run"),
            (b"_ZN1AIJEiE1fEv", "A<int>::f"),
            (b"_ZN1AIiJEJEcE1fEv", "A<int, char>::f"),
            (b"_ZN1AIJEE1fEv", "A<>::f"),
            (b"_ZN1AIicE1fEv", "A<int, char>::f"),
        ] {
            assert_eq!(full(mangled), name);
        }
        for name in ["f<&(operator<), int>", "operator, ", "f<&operator<, int>"] {
            assert_eq!(without_empty_packs(name), name);
        }
    }

    #[test]
    fn names_may_stay_mangled_or_lose_their_arguments() {
        let name = b"_ZNSt6vectorIiSaIiEE9push_backEOi@@VERS_1";
        let as_it_is = demangle(name, Demangling::Off);
        assert_eq!(as_it_is, "_ZNSt6vectorIiSaIiEE9push_backEOi");
        assert_eq!(
            demangle(name, Demangling::Simplified),
            "std::vector::push_back"
        );
    }

    #[test]
    fn demangles_rust_of_both_schemes_without_hash() {
        for (mangled, plain) in [
            (
                "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE",
                "core::fmt::Formatter::pad",
            ),
            ("_ZN3foo3bar17h0123456789abcdefE.llvm.1234", "foo::bar"),
            ("_RNvCs15kBYyAo9fc_7mycrate4main", "mycrate::main"),
            ("_RNvMCs1234_3fooNtB2_3Bar3baz", "<foo::Bar>::baz"),
            (
                "_ZN60_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..ops..Drop$GT$4drop17h0123456789abcdefE",
                "<alloc::vec::Vec<T> as core::ops::Drop>::drop",
            ),
        ] {
            assert_eq!(full(mangled.as_bytes()), plain);
        }
    }

    #[test]
    fn demangles_cpp_to_the_name_alone() {
        for (mangled, plain) in [
            ("_ZN5space3fooEibc", "space::foo"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backEOi",
                "std::vector<int, std::allocator<int> >::push_back",
            ),
            ("_Z3addIiET_S0_S0_", "add<int>"),
            ("_ZN12_GLOBAL__N_14workEv", "(anonymous namespace)::work"),
            ("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"),
            ("_ZN1AC1Ev", "A::A"),
            ("_ZN1AplERKS_", "A::operator+"),
            ("_ZTV1A", "{vtable(A)}"),
            ("_ZN5space3fooEi.part.0", "space::foo"),
            ("_ZNK5space3fooEi.cold", "space::foo"),
        ] {
            assert_eq!(full(mangled.as_bytes()), plain);
        }
    }

    #[test]
    fn leaves_other_names_alone() {
        for name in [
            "main",
            "_start",
            "__libc_start_main",
            "_Z",
            "_Zebra",
            "_ZN",
            "foo.0",
            "go.foo",
            ".cold",
            "foo.cold.bar",
            "",
        ] {
            assert_eq!(full(name.as_bytes()), name);
        }
        assert_eq!(full(b"memcpy@@GLIBC_2.14"), "memcpy");
        assert_eq!(full(b"pthread_create@GLIBC_2.2.5"), "pthread_create");
        assert_eq!(full(b"@odd"), "@odd");
    }

    #[test]
    fn names_that_are_not_utf8_are_made_visible() {
        assert_eq!(full(b"caf\xc3\xa9\xff;\n"), "caf\u{e9}\\xff;\n");
    }

    #[test]
    fn a_name_that_grows_without_end_is_left_alone() {
        // Each template argument is twice the one before.
        let mut mangled = String::from("_Z1fI1AIiiE");
        for substitution in [
            "S0_", "S1_", "S2_", "S3_", "S4_", "S5_", "S6_", "S7_", "S8_", "S9_", "SA_", "SB_",
        ] {
            mangled.push_str(&format!("1AI{substitution}{substitution}E"));
        }
        mangled.push_str("Evv");
        assert!(full(mangled.as_bytes()).len() <= MAX_BYTES);
    }

    proptest! {
        #[test]
        fn demangling_any_bytes_gives_a_bounded_name(prefix in "(_ZN|_R|_Z|)", bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let name = [prefix.as_bytes(), &bytes].concat();
            prop_assert!(full(&name).len() <= 4 * MAX_BYTES);
        }

        #[test]
        fn demangling_any_mangled_name_gives_a_bounded_name(name in "_(ZN|Z|R|RNv)([0-9]{1,2}|[a-zA-Z_]{1,3}|S[0-9]?_|T_|I|E|K){0,40}") {
            prop_assert!(full(name.as_bytes()).len() <= MAX_BYTES);
        }
    }
}
