//! Judges the finished BPF object by what has gone wrong before.
//!
//! In: an object's bytes. Out: a short report, or everything that is wrong. It asks no kernel: the verifier has the last
//! word, in the kernel tests.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use object::{Object as _, ObjectSection as _};

use crate::btf;
use crate::object_code::Code;

/// License that lets the programs call the kernel's GPL-only functions.
const LICENSE: &[u8] = b"Dual MIT/GPL\0";

/// How much stack functions may take that call one another, each rounded up to [`STACK_STEP`], in bytes
/// (`check_max_stack_depth` in Linux 6.1's `kernel/bpf/verifier.c`).
const STACK_BYTES: u64 = 512;

/// See [`STACK_BYTES`].
const STACK_STEP: u64 = 32;

/// Checks an object; returns its size, its programs and the kernel functions that it calls.
pub(crate) fn lint(bytes: &[u8]) -> Result<String> {
    let file = object::File::parse(bytes).context("the BPF object is no object file")?;
    let code = Code::read(&file)?;
    let mut wrong = Vec::new();
    if section(&file, "license") != LICENSE {
        wrong.push(
            "its license is not \"Dual MIT/GPL\", and the kernel keeps most of its functions from it"
                .to_owned(),
        );
    }
    for name in [".BTF", ".BTF.ext"] {
        if section(&file, name).is_empty() {
            wrong.push(format!(
                "it has no {name}: maps and functions would be nameless"
            ));
        }
    }
    for section in file.sections() {
        let name = section.name().context("a section without a name")?;
        if name.contains(".debug_") {
            wrong.push(format!(
                "it carries {name}, which is large and tells where it was made"
            ));
        }
    }
    if code.programs().next().is_none() {
        wrong.push("it has no program".to_owned());
    }
    // Those are the ones that came compiled with Rust itself. LLVM writes a random number for their type: no two builds would
    // be equal, and the kernel would refuse the section. In practice they are `core`'s panics.
    for name in btf::functions_without_type(section(&file, ".BTF"))? {
        wrong.push(format!(
            "it carries {name} of Rust's own library: the source can still panic; index with `get` or mask the index"
        ));
    }
    for name in &code.undefined {
        wrong.push(format!("it calls {name}, which is nowhere"));
    }
    if let Some(circle) = circle(&code.calls) {
        wrong.push(format!(
            "these functions call in a circle, which the kernel refuses: {}",
            circle.join(" -> ")
        ));
    } else {
        for program in code.programs() {
            let (bytes, chain) = deepest(&program.name, &code);
            if bytes > STACK_BYTES {
                wrong.push(format!(
                    "these functions take {bytes} bytes of stack together, of {STACK_BYTES}: {}",
                    chain.join(" -> ")
                ));
            }
        }
    }
    for path in absolute_paths(&file) {
        wrong.push(format!("it holds an absolute path, {path}"));
    }
    ensure!(
        wrong.is_empty(),
        "the BPF object will not do:\n  {}",
        wrong.join("\n  ")
    );
    Ok(report(bytes.len(), &code))
}

fn section<'data>(file: &object::File<'data>, name: &str) -> &'data [u8] {
    let section = file.section_by_name(name);
    section
        .and_then(|section| section.data().ok())
        .unwrap_or_default()
}

fn report(size_bytes: usize, code: &Code) -> String {
    let mut lines = vec![format!("{size_bytes} bytes")];
    for function in code.programs() {
        let (name, section) = (&function.name, &function.section);
        lines.push(format!(
            "program {name} ({section}), {} instructions",
            function.instructions
        ));
    }
    for function in code.functions.iter().filter(|f| !f.is_program()) {
        lines.push(format!(
            "function {}, {} instructions",
            function.name, function.instructions
        ));
    }
    let numbers: Vec<String> = code.kernel.iter().map(i32::to_string).collect();
    lines.push(format!("kernel functions called: {}", numbers.join(" ")));
    lines.join("\n")
}

/// A chain of calls that leads back to where it began: `memset` made of a call of `memset` is the usual one.
fn circle(calls: &BTreeMap<String, BTreeSet<String>>) -> Option<Vec<String>> {
    let mut cleared = BTreeSet::new();
    calls
        .keys()
        .find_map(|name| circle_from(name, calls, &mut Vec::new(), &mut cleared))
}

fn circle_from<'code>(
    name: &'code str,
    calls: &'code BTreeMap<String, BTreeSet<String>>,
    chain: &mut Vec<&'code str>,
    cleared: &mut BTreeSet<&'code str>,
) -> Option<Vec<String>> {
    if let Some(start) = chain.iter().position(|link| *link == name) {
        let links = chain[start..].iter().copied().chain([name]);
        return Some(links.map(str::to_owned).collect());
    }
    if cleared.contains(name) {
        return None;
    }
    chain.push(name);
    let found = calls
        .get(name)
        .into_iter()
        .flatten()
        .find_map(|callee| circle_from(callee, calls, chain, cleared));
    chain.pop();
    cleared.insert(name);
    found
}

/// The calls from a function on that take the most stack, and how much that is in bytes. No call may lead back.
fn deepest<'code>(name: &'code str, code: &'code Code) -> (u64, Vec<&'code str>) {
    let function = code.functions.iter().find(|other| other.name == name);
    let own = function.map_or(0, |function| function.stack_bytes).max(1);
    let callees = code.calls.get(name).into_iter().flatten();
    let (bytes, mut chain) = callees
        .map(|callee| deepest(callee, code))
        .max()
        .unwrap_or_default();
    chain.insert(0, name);
    (own.next_multiple_of(STACK_STEP) + bytes, chain)
}

/// Paths of the machine where the object was made, in any section that holds text.
fn absolute_paths(file: &object::File<'_>) -> BTreeSet<String> {
    let texts = file
        .sections()
        .filter(|section| section.kind() != object::SectionKind::Text);
    texts
        .filter_map(|section| section.data().ok())
        .flat_map(paths_in)
        .collect()
}

/// Runs of printable bytes that begin with a slash and have another one, as `/home/me/src` does and `MIT/GPL` does not.
fn paths_in(bytes: &[u8]) -> Vec<String> {
    let printable = bytes.split(|byte| !byte.is_ascii_graphic());
    printable
        .filter_map(|run| std::str::from_utf8(run).ok())
        .filter(|run| run.starts_with('/') && run[1..].contains('/'))
        // Comments in the source lines that BTF quotes, and the name that every rustc gives to the source of `core`.
        .filter(|run| !run.starts_with("//") && !run.starts_with("/rustc/"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(pairs: &[(&str, &str)]) -> BTreeMap<String, BTreeSet<String>> {
        let mut calls: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (caller, callee) in pairs {
            calls
                .entry((*caller).to_owned())
                .or_default()
                .insert((*callee).to_owned());
        }
        calls
    }

    #[test]
    fn a_function_that_calls_itself_is_a_recursion() {
        let found = circle(&calls(&[("on_cpu", "memset"), ("memset", "memset")]));
        assert_eq!(found, Some(vec!["memset".to_owned(), "memset".to_owned()]));
    }

    #[test]
    fn a_recursion_through_other_functions_is_found() {
        let found = circle(&calls(&[("a", "b"), ("a", "x"), ("b", "c"), ("c", "b")]));
        assert_eq!(found, Some(["b", "c", "b"].map(str::to_owned).to_vec()));
    }

    #[test]
    fn functions_with_a_common_callee_are_no_recursion() {
        assert_eq!(
            circle(&calls(&[("a", "c"), ("b", "c"), ("a", "b"), ("c", "d")])),
            None
        );
    }

    #[test]
    fn only_absolute_paths_of_a_machine_are_reported() {
        assert_eq!(
            paths_in(b"\0/home/me/x.rs\0MIT/GPL\0/\0"),
            ["/home/me/x.rs"]
        );
        assert!(
            paths_in(b"src/main.rs\0    a / b // c/d\0/rustc/0/library/core/src/ptr/mod.rs")
                .is_empty()
        );
    }
}
