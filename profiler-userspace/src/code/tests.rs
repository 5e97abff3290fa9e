//! Functions of programs without symbols, against what their symbols said before they were removed.

use super::*;
use crate::object::Part;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = r#"
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
static int numbers[64];
__attribute__((noinline, noclone)) static int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}
__attribute__((noinline, noclone)) static int deep(int n) { return n ? deep(n - 1) + numbers[n & 63] : 0; }
__asm__(".text\n.p2align 4\n ret\n.p2align 4\n.type bare, @function\nbare:\n lea 1(%rdi), %eax\n ret\n.p2align 4\n"
        "other:\n lea 2(%rdi), %eax\n ret\n");
extern int bare(int), other(int);
int main(int argc, char **argv) {
    qsort(numbers, 64, sizeof *numbers, compare);
    printf("%d %zu\n", deep(argc) + bare(argc) + other(argc), strlen(argv[0]));
    return 0;
}
"#;

/// A program's file, and its functions as its symbols have them.
struct Built {
    stripped: File,
    symbols: Vec<(String, Range<u64>)>,
    _folder: tempfile::TempDir,
}

fn build(flags: &[&str]) -> Built {
    let folder = tempfile::tempdir().unwrap();
    let run = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
    let (source, whole, stripped) = (
        folder.path().join("a.c"),
        folder.path().join("whole"),
        folder.path().join("stripped"),
    );
    std::fs::write(&source, PROGRAM).unwrap();
    run(Command::new("gcc")
        .args(["-O2", "-o"])
        .arg(&whole)
        .args(flags)
        .arg(&source));
    run(Command::new("strip").arg("-o").arg(&stripped).arg(&whole));
    Built {
        symbols: symbols(&whole),
        stripped: File::open(stripped).unwrap(),
        _folder: folder,
    }
}

fn symbols(path: &Path) -> Vec<(String, Range<u64>)> {
    let file = File::open(path).unwrap();
    let mut found = Vec::new();
    Elf::read(&file).unwrap().each_function(&file, |function| {
        if let Some(ElfAddress(at)) = function.address {
            let name = String::from_utf8(function.name.to_vec()).unwrap();
            found.push((name, at..at + function.size));
        }
    });
    found
}

impl Built {
    fn range(&self, name: &str) -> Range<u64> {
        let found = self.symbols.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("no {name}")).1.clone()
    }

    fn ask(&self, mut addresses: Vec<u64>) -> Vec<Option<Function>> {
        addresses.sort_unstable();
        let addresses: Vec<ElfAddress> = addresses.into_iter().map(ElfAddress).collect();
        let elf = Elf::read(&self.stripped).unwrap();
        functions(&self.stripped, &elf, &addresses, None)
    }
}

fn begins(range: &Range<u64>) -> Option<Function> {
    Some(Function::Begins(ElfAddress(range.start)))
}

#[test]
fn every_address_of_a_stripped_program_is_shown_as_its_function() {
    for flags in [
        &["-pie", "-fPIE"][..],
        &["-no-pie"],
        &["-static"],
        &["-static-pie", "-fPIE"],
    ] {
        let built = build(flags);
        for name in ["compare", "deep"] {
            let range = built.range(name);
            let found = built.ask(range.clone().collect());
            assert!(
                found.iter().all(|function| *function == begins(&range)),
                "{name} {flags:?}"
            );
        }
        for (name, shown) in [("main", "main"), ("_start", "_start")] {
            let range = built.range(name);
            let found = built.ask(range.collect());
            let wanted = Some(Function::Named(shown.to_owned()));
            assert!(
                found.iter().all(|function| *function == wanted),
                "{name} {flags:?}: {found:?}"
            );
        }
    }
}

#[test]
fn assembly_that_nothing_describes_begins_behind_the_return_before() {
    for flags in [&["-pie", "-fPIE"][..], &["-no-pie"]] {
        let built = build(flags);
        let bare = built.range("bare").start;
        let found = built.ask(vec![bare, bare + 3, bare + 16, bare + 19]);
        let wanted = [bare, bare, bare + 16, bare + 16].map(|at| begins(&(at..at)));
        assert_eq!(found, wanted, "{flags:?}");
    }
}

#[test]
fn stubs_are_called_by_what_they_jump_to() {
    for flags in [
        &["-pie", "-fPIE", "-Wl,-z,now"][..],
        &["-no-pie", "-Wl,-z,lazy"],
        &[
            "-pie",
            "-fPIE",
            "-Wl,-z,lazy",
            "-fcf-protection",
            "-Wl,-z,ibtplt",
        ],
    ] {
        let built = build(flags);
        let image = Image::read(&built.stripped).unwrap();
        let sections = [b".plt".as_slice(), b".plt.sec", b".plt.got"];
        let stubs = sections.iter().filter_map(|name| image.section(name));
        let all = stubs
            .flat_map(|section| Part::from(section).addresses())
            .collect();
        let found = built.ask(all);
        assert!(found.iter().all(Option::is_some), "{flags:?}");
        for name in ["qsort", "strlen"] {
            let wanted = Some(Function::Stub(name.to_owned()));
            let count = found.iter().filter(|function| **function == wanted).count();
            assert!(count >= 16, "{count} {name} {flags:?}");
        }
    }
}

#[test]
fn a_library_has_no_start_and_what_is_no_code_no_function() {
    let built = build(&["-shared", "-fPIC", "-Wl,-e,main"]);
    for name in ["deep", "main"] {
        let range = built.range(name);
        assert_eq!(built.ask(vec![range.start + 1]), [begins(&range)]);
    }
    assert_eq!(built.ask(vec![0, u64::MAX]), [None, None]);
}
