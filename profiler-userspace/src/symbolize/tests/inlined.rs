//! Details of a function beside its plain name: inlined functions, lines, the linker's name.

use super::native::{self, Sources, Symbol};
use super::program::Workshop;
use super::sources::{MEMORY, offset_of, opened};
use super::{Demangling, Naming, ObjectFrame};
use crate::object::FileOffset;
use std::path::Path;

const INLINED: &str = r#"
#include <stdio.h>
static inline __attribute__((always_inline)) int core(volatile int *x) {
    return *x * 3;
}
static inline __attribute__((always_inline)) int middle(volatile int *x) {
    return core(x) + 1;
}
__attribute__((noinline)) int outer(volatile int *x) {
    return middle(x);
}
int main(void) {
    volatile int x = 1;
    return outer(&x);
}
"#;

/// All that is known of a function's first instructions, the outermost function first.
fn symbols(shop: &Workshop, program: &Path, function: &str, naming: &Naming) -> Vec<Vec<String>> {
    let (opened, below) = opened(shop, program);
    let start = offset_of(&shop.path("whole"), function).0;
    let offsets: Vec<FileOffset> = (start..start + 7).map(FileOffset).collect();
    let sources = Sources {
        naming,
        fetch: None,
        memory: &MEMORY,
        cache: None,
    };
    let named = native::name(&opened, &below, &offsets, sources);
    let function = |symbol: Symbol| match symbol {
        Symbol::Named(index) => {
            let function = &named.functions[index];
            let levels = std::iter::once(&function.outermost).chain(&function.inlined);
            levels.map(|level| ObjectFrame::of(level).shown()).collect()
        }
        other => panic!("{other:?} of {named:?}"),
    };
    named.of.iter().map(|symbol| function(*symbol)).collect()
}

#[test]
fn inlined_functions_and_lines_are_shown_on_request() {
    let shop = Workshop::new();
    let flags = ["-O2", "-g", "-Wl,--build-id=sha1"];
    shop.compile("gcc", "whole", INLINED, &flags);
    shop.run("strip", ["-o", "bare", "whole"]);
    shop.run("objcopy", ["--only-keep-debug", "whole", "bare.debug"]);
    shop.run("objcopy", ["--add-gnu-debuglink=bare.debug", "bare"]);
    let naming = |inlined, lines| Naming {
        inlined,
        lines,
        ..Naming::default()
    };
    let function = |name: &str, inlined: &[&str]| -> Vec<String> {
        let names = std::iter::once(&name).chain(inlined);
        names.map(|name| (*name).to_owned()).collect()
    };
    // From the program itself, and from its debug file.
    for program in ["whole", "bare"] {
        let symbols =
            |inlined, lines| symbols(&shop, &shop.path(program), "outer", &naming(inlined, lines));
        assert_eq!(symbols(false, false), vec![function("outer", &[]); 7]);
        let both = function(
            "outer (whole.c:10)",
            &["middle (whole.c:7)", "core (whole.c:4)"],
        );
        assert!(
            symbols(true, true).contains(&both),
            "{:?}",
            symbols(true, true)
        );
        let inlined = function("outer", &["middle", "core"]);
        assert!(symbols(true, false).contains(&inlined), "{program}");
        // Without its parts, a function has the line where it calls the first of them.
        let lines = function("outer (whole.c:10)", &[]);
        assert!(
            symbols(false, true).contains(&lines),
            "{:?}",
            symbols(false, true)
        );
    }
}

#[test]
fn names_stay_mangled_on_request() {
    let shop = Workshop::new();
    let source = "namespace space { __attribute__((noinline)) int work(int x) { return x; } }\n\
                  int main() { return space::work(0); }\n";
    let program = shop.compile("g++", "whole", source, &["-O1"]);
    for (demangling, name) in [
        (Demangling::Full, "space::work"),
        (Demangling::Off, "_ZN5space4workEi"),
    ] {
        let naming = Naming {
            demangling,
            ..Naming::default()
        };
        let symbols = symbols(&shop, &program, "_ZN5space4workEi", &naming);
        assert_eq!(symbols[0], [name]);
    }
}
