//! Code in memory, in the kernel's library, and in libraries that come late.

use super::names;
use super::program::{Running, Workshop};
use crate::object::Elf;
use crate::process::{Processes, vdso};

/// Prints where it has code that no compiler made, and the kernel's; then loads a library.
const MAPPINGS: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int argc, char **argv) {
    int rx = PROT_READ | PROT_EXEC;
    char *plain = mmap(NULL, 8192, rx, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = memfd_create("jit code", 0);
    ftruncate(fd, 16384);
    char *memory = mmap(NULL, 8192, rx, MAP_SHARED, fd, 4096);
    char *vdso = (char *)getauxval(AT_SYSINFO_EHDR);
    printf("%p %p %p\n", plain + 5, memory + 6, vdso);
    fflush(stdout);
    getchar();
    void *library = dlopen(LIBRARY, RTLD_NOW);
    printf("%p\n", dlsym(library, "loaded_late"));
    fflush(stdout);
    getchar();
    return 0;
}
"#;

#[test]
fn memory_without_a_file_is_named_by_its_mapping() {
    let shop = Workshop::new();
    let args = ["-DLIBRARY=\"\"", "-ldl"];
    let program = shop.compile("gcc", "mappings", MAPPINGS, &args);
    let mut running = Running::start(&program);
    let found = running.addresses();
    let mut processes = Processes::new();
    let stack = [found[0], found[1] + 1, 0xdead_0000, 0, u64::MAX];
    assert_eq!(
        names(&mut processes, running.process_key(), &stack),
        [
            "[anon+0x5]",
            "[memfd:jit code+0x1006]",
            "[unknown]",
            "[unknown]",
            "[unknown]"
        ],
    );
}

#[test]
fn the_vdso_has_names() {
    let shop = Workshop::new();
    let args = ["-DLIBRARY=\"\"", "-ldl"];
    let program = shop.compile("gcc", "vdso", MAPPINGS, &args);
    let mut running = Running::start(&program);
    let start = running.addresses()[2];
    let image = vdso::image().unwrap();
    let elf = Elf::read(&image.file).unwrap();
    let mut processes = Processes::new();
    // Wherever its functions are, some lie on its pages.
    let everywhere: Vec<u64> = (0..elf
        .code
        .iter()
        .flatten()
        .map(|code| code.end)
        .max()
        .unwrap())
        .step_by(16)
        .map(|offset| start + offset)
        .collect();
    let named = names(&mut processes, running.process_key(), &everywhere);
    assert!(
        named.iter().any(|name| name == "__vdso_clock_gettime"),
        "{named:?}"
    );
    assert!(
        named
            .iter()
            .all(|name| name.starts_with("__vdso_") || name.starts_with("[vdso+0x")),
        "{named:?}"
    );
}

#[test]
fn a_library_loaded_after_the_first_scan_is_found() {
    let shop = Workshop::new();
    let source = "int loaded_late(int x) { return x + 1; }";
    let library = shop.compile("gcc", "libx.so", source, &["-shared", "-fPIC"]);
    let define = format!("-DLIBRARY=\"{}\"", library.display());
    let program = shop.compile("gcc", "loader", MAPPINGS, &[&define, "-ldl"]);
    let mut running = Running::start(&program);
    running.addresses();
    let mut processes = Processes::new();
    processes.see(running.process_key());
    running.resume();
    let late = running.addresses()[0];
    assert_eq!(
        names(&mut processes, running.process_key(), &[late]),
        ["loaded_late"]
    );
}
