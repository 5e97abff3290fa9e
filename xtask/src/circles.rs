//! Circles of files: such as use each other, directly or by way of others.
//!
//! In: the files of every crate and what they use. Out: each circle that is not known, and each known one that is gone. To
//! understand one file of a circle, one must read all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::imports::{self, Graph};
use crate::source::Source;

/// The folders of the crates' sources.
const CRATES: [&str; 4] = [
    "profiler-common/src",
    "profiler-ebpf/src",
    "profiler-userspace/src",
    "xtask/src",
];

/// Circles that are known, and why each is there. The list may only become shorter.
const KNOWN: &[KnownCircle] = &[KnownCircle {
    files: &["profiler-common/src/abi"],
    reason: "a sample names a stack, a thread's entry holds a sample, and a pair of stacks is written as an entry is",
}];

/// A circle that is not dissolved yet.
struct KnownCircle {
    /// The files, or folders, that it leads through.
    files: &'static [&'static str],
    reason: &'static str,
}

impl KnownCircle {
    fn covers(&self, circle: &BTreeSet<PathBuf>) -> bool {
        circle
            .iter()
            .all(|file| self.files.iter().any(|known| file.starts_with(known)))
    }
}

/// Every circle of files that is not known, one paragraph each.
pub(crate) fn unknown(sources: &[Source]) -> Vec<String> {
    let mut said = Vec::new();
    for folder in CRATES {
        let graph = imports::graph(sources, Path::new(folder));
        for circle in circles(&graph) {
            if !KNOWN.iter().any(|known| known.covers(&circle)) {
                said.push(described(&graph, &circle));
            }
        }
    }
    said
}

/// Every known circle, and whether it is still there.
pub(crate) fn known(sources: &[Source]) -> Vec<String> {
    let graphs = CRATES.map(|folder| imports::graph(sources, Path::new(folder)));
    let all: Vec<_> = graphs.iter().flat_map(circles).collect();
    let gone = KNOWN
        .iter()
        .filter(|known| !all.iter().any(|circle| known.covers(circle)));
    gone.map(|known| {
        let files = known.files.join(", ");
        format!(
            "the circle of {files} is gone ({}): strike it from the list",
            known.reason
        )
    })
    .collect()
}

fn described(graph: &Graph, circle: &BTreeSet<PathBuf>) -> String {
    let mut said = format!("{} files use each other in a circle:", circle.len());
    for file in circle {
        let used = graph[file].intersection(circle);
        let used: Vec<_> = used.map(|used| used.display().to_string()).collect();
        said.push_str(&format!(
            "\n    {} uses {}",
            file.display(),
            used.join(", ")
        ));
    }
    said
}

/// The largest sets of files that all lead to each other, of two files or more.
fn circles(graph: &Graph) -> Vec<BTreeSet<PathBuf>> {
    let reached: BTreeMap<&PathBuf, BTreeSet<&PathBuf>> = graph
        .keys()
        .map(|file| (file, reachable(graph, file)))
        .collect();
    let mut circles = BTreeSet::new();
    for (file, others) in &reached {
        let back = others.iter().filter(|other| reached[*other].contains(file));
        let circle: BTreeSet<PathBuf> = back.map(|other| (*other).clone()).collect();
        if circle.len() > 1 {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

/// All files that a file leads to, over any number of others.
fn reachable<'graph>(graph: &'graph Graph, from: &PathBuf) -> BTreeSet<&'graph PathBuf> {
    let mut found = BTreeSet::new();
    let mut open: Vec<&PathBuf> = graph[from].iter().collect();
    while let Some(next) = open.pop() {
        if found.insert(next) {
            open.extend(&graph[next]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| {
                let path = Path::new("xtask/src").join(path);
                Source::new(&path, (*text).to_owned()).expect("Rust")
            })
            .collect();
        unknown(&sources)
    }

    #[test]
    fn two_files_that_use_each_other_are_a_circle() {
        let said = said(&[
            ("main.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b; fn f() { b::g() }"),
            ("b.rs", "use super::a::f; fn g() {}"),
        ]);
        assert_eq!(
            said,
            [
                "2 files use each other in a circle:\n    xtask/src/a.rs uses xtask/src/b.rs\n    xtask/src/b.rs uses xtask/src/a.rs"
            ]
        );
    }

    #[test]
    fn a_circle_over_a_third_file_and_a_re_export_is_found() {
        let said = said(&[
            ("main.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::C; fn f() {}"),
            (
                "b/mod.rs",
                "mod c; mod d; pub(crate) use self::{c::C, d::*};",
            ),
            ("b/c.rs", "fn f() { crate::b::in_d() } struct C;"),
            ("b/d.rs", "pub(crate) fn in_d() { crate::a::f() }"),
        ]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("3 files"), "{said:?}");
        assert!(!said[0].contains("mod.rs"), "{said:?}");
    }

    #[test]
    fn a_file_and_the_files_below_it_are_no_circle() {
        let said = said(&[
            ("main.rs", "mod a;"),
            ("a.rs", "mod b; mod c; struct A; fn f() { b::g(); c::h() }"),
            ("a/b.rs", "use super::A; pub fn g() {}"),
            ("a/c.rs", "use crate::a::A; pub fn h() { super::b::g() }"),
        ]);
        assert!(said.is_empty(), "{said:?}");
    }

    #[test]
    fn what_only_tests_use_makes_no_circle() {
        let said = said(&[
            ("main.rs", "mod a; mod b;"),
            (
                "a.rs",
                "pub fn f() { crate::b::g() } #[cfg(test)] mod tests;",
            ),
            ("a/tests.rs", "use super::f;"),
            (
                "b.rs",
                "pub fn g() {} #[cfg(test)] mod tests { use crate::a::f; } #[cfg(test)] use crate::a::f;",
            ),
        ]);
        assert!(said.is_empty(), "{said:?}");
    }

    #[test]
    fn an_inline_module_uses_what_its_file_does() {
        let said = said(&[
            ("main.rs", "mod a; mod b;"),
            (
                "a.rs",
                "mod inner { use super::super::b::g; } pub struct A;",
            ),
            (
                "b.rs",
                "pub fn g() {} pub(in crate::a) mod inner { fn f(_: crate::a::A) {} }",
            ),
        ]);
        assert_eq!(said.len(), 1, "{said:?}");
    }
}
