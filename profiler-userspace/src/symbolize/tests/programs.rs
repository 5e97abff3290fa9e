//! Programs that tell where their functions are.

use super::program::{Running, Workshop};
use super::{NameCache, Sources, TWO_FUNCTIONS, named_from, names, raw, usual};
use crate::process::Processes;
use std::path::PathBuf;

/// A program of such a source that runs, and the folder in which it was made.
fn started(name: &str, source: &str, flags: &[&str]) -> (Workshop, PathBuf, Running) {
    let shop = Workshop::new();
    let program = shop.compile("gcc", name, source, flags);
    let running = Running::start(&program);
    (shop, program, running)
}

/// Names of a stack of a program that nobody has looked at before.
fn fresh_names(running: &Running, stack: &[u64]) -> Vec<String> {
    names(&mut Processes::new(), running.process_key(), stack)
}

#[test]
fn functions_have_names_after_their_program_exits() {
    let (_shop, _, mut running) = started("two", TWO_FUNCTIONS, &["-O1"]);
    let found = running.addresses();
    let mut processes = Processes::new();
    processes.see(running.process_key());
    running.end();
    let stack = [found[0] + 1, found[1] + 2];
    assert_eq!(
        names(&mut processes, running.process_key(), &stack),
        ["inner", "outer"]
    );
}

#[test]
fn names_that_are_kept_outlive_their_file() {
    let (_shop, program, mut running) = started("two", TWO_FUNCTIONS, &["-O1"]);
    let found = running.addresses();
    let mut processes = Processes::new();
    processes.see(running.process_key());
    let kept = NameCache::default();
    let sources = Sources {
        names: Some(&kept),
        ..usual()
    };
    let process_key = running.process_key();
    let mut name = |address| {
        let named = named_from(&sources, &mut processes, &raw(process_key, &[address]));
        named.into_iter().next_back().unwrap()
    };
    assert_eq!(name(found[0]), "inner");
    running.end();
    std::fs::remove_file(&program).unwrap();
    assert_eq!(name(found[0]), "inner");
    let new = name(found[1]);
    assert!(new.starts_with("[two+"), "{new}");
    // Given up, they are asked for again, and nobody knows them any more.
    assert!(kept.forget() > 0);
    let forgotten = name(found[0]);
    assert!(forgotten.starts_with("[two+"), "{forgotten}");
}

#[test]
fn a_stripped_function_is_shown_by_its_object_and_address() {
    let flags = ["-O1", "-s", "-no-pie", "-Wl,-Ttext-segment=0x10000000"];
    let (_shop, _, mut running) = started("bare prog", TWO_FUNCTIONS, &flags);
    let inner = running.addresses()[0];
    let mut processes = Processes::new();
    // Without PIE, the address in the object is that in the process.
    let wanted = format!("[bare prog+{inner:#x}]");
    assert_eq!(
        names(&mut processes, running.process_key(), &[inner]),
        [wanted]
    );
}

#[test]
fn exported_functions_of_a_stripped_program_have_names() {
    let (_shop, _, mut running) = started("exports", TWO_FUNCTIONS, &["-O1", "-s", "-rdynamic"]);
    let outer = running.addresses()[1];
    assert_eq!(fresh_names(&running, &[outer]), ["outer"]);
}

/// Assembly as nasm makes it: of three functions one is exported, and none has a size.
const ASSEMBLY: &str = r#"
#include <stdio.h>
__asm__(".text\n.p2align 4\n.globl exported\nexported:\n lea 1(%rdi), %eax\n ret\n"
        ".p2align 4\ntaken:\n lea 2(%rdi), %eax\n ret\n"
        ".p2align 4\ncalled:\n lea 3(%rdi), %eax\n ret\n");
extern int exported(int), taken(int), called(int);
int (*volatile pointer)(int) = taken;
int main(void) {
    printf("%p %p\n", (void *)exported, (void *)taken);
    fflush(stdout);
    getchar();
    return pointer(called(1));
}
"#;

#[test]
fn an_exported_function_without_a_size_ends_where_another_begins() {
    let flags = [
        "-O1",
        "-s",
        "-rdynamic",
        "-no-pie",
        "-Wl,-Ttext-segment=0x10000000",
    ];
    let (_shop, _, mut running) = started("sizeless", ASSEMBLY, &flags);
    let [exported, taken] = running.addresses()[..] else {
        panic!("it prints two addresses");
    };
    assert_eq!(taken, exported + 16);
    // All but the first are return addresses.
    let stack = [
        exported,
        exported + 4,
        taken + 1,
        taken + 4,
        taken + 17,
        taken + 20,
    ];
    let other = |at: u64| format!("[sizeless+{at:#x}]");
    let wanted = [
        "exported".to_owned(),
        "exported".to_owned(),
        other(taken),
        other(taken),
        other(taken + 16),
        other(taken + 16),
    ];
    assert_eq!(fresh_names(&running, &stack), wanted);
}

#[test]
fn exported_functions_missing_from_the_full_table_have_names() {
    let shop = Workshop::new();
    shop.compile("gcc", "full", TWO_FUNCTIONS, &["-O1", "-rdynamic"]);
    shop.run("strip", ["--keep-symbol=inner", "-o", "partly", "full"]);
    let mut running = Running::start(&shop.path("partly"));
    let found = running.addresses();
    let stack = [found[0] + 1, found[1] + 2];
    assert_eq!(fresh_names(&running, &stack), ["inner", "outer"]);
}

#[test]
fn a_deleted_program_that_runs_has_names() {
    let (_shop, program, mut running) = started("gone", TWO_FUNCTIONS, &["-O1"]);
    let inner = running.addresses()[0];
    std::fs::remove_file(&program).unwrap();
    let mut processes = Processes::new();
    let name = names(&mut processes, running.process_key(), &[inner]).remove(0);
    if rustix::process::geteuid().is_root() {
        assert_eq!(name, "inner");
    }
    running.end();
    let name = names(&mut processes, running.process_key(), &[inner]).remove(0);
    assert!(name.starts_with("[gone+0x"), "{name}");
}

#[test]
fn a_replaced_program_gives_no_names() {
    let (shop, program, mut running) = started("old", TWO_FUNCTIONS, &["-O1"]);
    let inner = running.addresses()[0];
    let mut processes = Processes::new();
    processes.see(running.process_key());
    running.end();
    let renamed = TWO_FUNCTIONS.replace("inner", "false_name");
    let new = shop.compile("gcc", "new", &renamed, &["-O1"]);
    std::fs::rename(new, program).unwrap();
    let name = names(&mut processes, running.process_key(), &[inner]).remove(0);
    assert!(name.starts_with("[old+0x"), "{name}");
}

#[test]
fn a_call_that_never_returns_belongs_to_its_caller() {
    let shop = Workshop::new();
    let source = r#"
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline, noreturn)) void last(void) {
    printf("%p\n", __builtin_return_address(0));
    fflush(stdout);
    getchar();
    exit(0);
}
__attribute__((noinline, noreturn)) void caller(void) { last(); }
__attribute__((noinline)) int next(void) { return rand(); }
int main(void) { if (next() == -1) return 1; caller(); }
"#;
    let flags = [
        "-O2",
        "-fno-reorder-functions",
        "-fno-toplevel-reorder",
        "-falign-functions=1",
    ];
    let program = shop.compile("gcc", "never", source, &flags);
    let mut running = Running::start(&program);
    let back = running.addresses()[0];
    let mut processes = Processes::new();
    let named = names(&mut processes, running.process_key(), &[back, back]);
    assert_eq!(named[1], "caller");
    assert_ne!(named[0], "caller", "as a leaf the address is where it is");
}

#[test]
fn rust_and_cpp_are_demangled() {
    let shop = Workshop::new();
    let rust = r#"
mod deep {
    pub struct Thing;
    pub trait Work { fn work(&self) -> usize; }
    impl Work for Thing { #[inline(never)] fn work(&self) -> usize { std::hint::black_box(7) } }
    #[inline(never)] pub fn generic<T: Copy>(t: T) -> T { std::hint::black_box(t) }
}
fn main() {
    use deep::Work;
    deep::Thing.work();
    deep::generic(3u8);
    println!("{:p} {:p}", <deep::Thing as Work>::work as *const (), deep::generic::<u8> as *const ());
    std::io::stdin().read_line(&mut String::new()).unwrap();
}
"#;
    let v0 = "-Csymbol-mangling-version=v0";
    for (scheme, generic) in [
        (None, "rusty::deep::generic"),
        (Some(v0), "rusty::deep::generic::<u8>"),
    ] {
        let mut args = vec!["--edition=2021", "-O", "--crate-name=rusty"];
        args.extend(scheme);
        let program = shop.compile("rustc", "rusty", rust, &args);
        let mut running = Running::start(&program);
        let found = running.addresses();
        let named = fresh_names(&running, &[found[0], found[1] + 1]);
        assert_eq!(
            named,
            ["<rusty::deep::Thing as rusty::deep::Work>::work", generic]
        );
    }
    let cpp = r#"
#include <cstdio>
#include <vector>
namespace deep {
template <typename T> struct Box { __attribute__((noinline)) static T twice(T t) { return t + t; } };
__attribute__((noinline)) int plain(std::vector<int> v, char) { return v[0]; }
}
int main() {
    std::printf("%p %p\n", (void *)&deep::Box<long>::twice, (void *)&deep::plain);
    std::fflush(stdout);
    std::getchar();
    return deep::plain({1}, 'c') + deep::Box<long>::twice(2);
}
"#;
    let program = shop.compile("g++", "cpp", cpp, &["-O1"]);
    let mut running = Running::start(&program);
    let found = running.addresses();
    let named = fresh_names(&running, &[found[0], found[1] + 1]);
    assert_eq!(named, ["deep::Box<long>::twice", "deep::plain"]);
}

#[test]
fn a_program_in_another_root_directory_has_names() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let shop = Workshop::new();
    // Moved within a mount namespace of its own, so that its path exists for it alone.
    let program = shop.compile("gcc", "inside", TWO_FUNCTIONS, &["-O1", "-static"]);
    let script = shop.path("enter.sh");
    let hidden = shop.path("hidden");
    std::fs::create_dir(&hidden).unwrap();
    let text = format!(
        "#!/bin/sh\nexec unshare -m sh -c 'mount -t tmpfs none {0} && cp {1} {0}/ && exec {0}/inside'\n",
        hidden.display(),
        program.display(),
    );
    std::fs::write(&script, text).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&script, executable).unwrap();
    let mut running = Running::start(&script);
    let inner = running.addresses()[0];
    assert_eq!(fresh_names(&running, &[inner]), ["inner"]);
}
