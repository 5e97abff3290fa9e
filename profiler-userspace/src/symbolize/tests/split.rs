//! Debug information that is packed in the old way, or that the compiler kept apart.

use super::Naming;
use super::native::{self, Named, Sources, Symbol};
use super::program::Workshop;
use super::sources::{HERE, offset_of, opened};
use crate::object::{Elf, FileOffset};
use std::fs::{self, File};

const INLINED: &str = r#"
static inline __attribute__((always_inline)) int core(volatile int *x) {
    return *x * 3;
}
__attribute__((noinline)) int outer(volatile int *x) {
    return core(x);
}
int main(void) {
    volatile int x = 1;
    return outer(&x);
}
"#;

/// What is told of a program's function `outer`, if debug files are looked for in these directories, too.
fn told(shop: &Workshop, program: &str, directories: &[&str]) -> Named {
    let program = shop.path(program);
    let (opened, below) = opened(shop, &program);
    let start = offset_of(&program, "outer").0;
    let offsets: Vec<FileOffset> = (start..start + 6).map(FileOffset).collect();
    let naming = Naming {
        debug_directories: directories.iter().map(|name| shop.path(name)).collect(),
        inlined: true,
        lines: true,
        ..Naming::default()
    };
    let sources = Sources {
        naming: &naming,
        ..HERE
    };
    native::name(&opened, &below, &offsets, sources)
}

/// Whether the inlined function is told.
fn has_inlined(named: &Named) -> bool {
    let mut functions = named.of.iter().map(|symbol| match symbol {
        Symbol::Named(index) => &named.functions[*index],
        other => panic!("{other:?} of {named:?}"),
    });
    functions.any(|function| {
        function.name == "outer (whole.c:6)" && function.inlined == ["core (whole.c:3)"]
    })
}

#[test]
fn sections_that_are_packed_in_the_old_way_are_read() {
    let shop = Workshop::new();
    let pack = ["--compress-debug-sections=zlib-gnu", "whole", "packed"];
    let made = shop
        .compile("gcc", "whole", INLINED, &["-O2", "-g"])
        .is_some()
        && shop.run("objcopy", pack);
    if !made {
        return;
    }
    let elf = Elf::read(&File::open(shop.path("packed")).unwrap()).unwrap();
    let bytes = fs::read(shop.path("packed")).unwrap();
    let old = b".zdebug_info\0";
    assert!(bytes.windows(old.len()).any(|name| name == old));
    let info = elf.debug.section(b".debug_info").unwrap();
    assert_eq!(info.packing, crate::object::Packing::Zlib);
    assert!(has_inlined(&told(&shop, "packed", &[])));
    // One that says what it is not is left alone.
    let mut bytes = bytes;
    let at = usize::try_from(info.file.start).unwrap();
    bytes[at - 12..at - 8].copy_from_slice(b"ZLIC");
    fs::write(shop.path("packed"), &bytes).unwrap();
    assert!(!has_inlined(&told(&shop, "packed", &[])));
    bytes[at - 12..at].copy_from_slice(b"ZLIB\xff\xff\xff\xff\xff\xff\xff\xff");
    fs::write(shop.path("packed"), &bytes).unwrap();
    assert!(!has_inlined(&told(&shop, "packed", &[])));
}

/// A program whose debug information is apart, in either version of DWARF; and the name of the part.
fn apart(version: &str) -> Option<(Workshop, String)> {
    let shop = Workshop::new();
    fs::write(shop.path("whole.c"), INLINED).unwrap();
    // As if the workshop were the root of the file system.
    let root = format!(
        "-fdebug-prefix-map={}=",
        shop.path("").to_str()?.trim_end_matches('/')
    );
    let flags = ["-O2", "-g", "-gsplit-dwarf", version, &root];
    let compile = flags.into_iter().chain(["-c", "-o", "whole.o", "whole.c"]);
    let made = shop.run("gcc", compile) && shop.run("gcc", ["-o", "whole", "whole.o"]);
    let part = "whole.dwo".to_owned();
    assert!(!made || shop.path(&part).exists());
    made.then_some((shop, part))
}

#[test]
fn parts_that_were_kept_apart_are_found_and_missed() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let Some((shop, part)) = apart(version) else {
            return;
        };
        let whole = told(&shop, "whole", &[]);
        assert!(has_inlined(&whole), "{version}: {whole:?}");
        assert_eq!((whole.asked.missing, &whole.asked.such_as), (0, &None));
        // In another directory, it is found if that is named.
        fs::create_dir(shop.path("elsewhere")).unwrap();
        fs::rename(shop.path(&part), shop.path("elsewhere").join(&part)).unwrap();
        assert!(has_inlined(&told(&shop, "whole", &["elsewhere"])));
        let without = told(&shop, "whole", &[]);
        assert!(!has_inlined(&without));
        assert_eq!(without.asked.missing, 1, "{version}");
        let such_as = without.asked.such_as.as_ref().unwrap();
        assert!(such_as.ends_with(&part), "{such_as:?}");
        // Lines are told all the same.
        let lines = without
            .functions
            .iter()
            .filter(|it| it.name.starts_with("outer (whole.c:"));
        assert!(lines.count() > 0, "{without:?}");
        // The part of another program is not taken.
        let other = INLINED.replace("core", "wrong");
        fs::write(shop.path("other.c"), other).unwrap();
        let flags = [
            "-O2",
            "-g",
            "-gsplit-dwarf",
            version,
            "-c",
            "-o",
            "whole2.o",
            "other.c",
        ];
        assert!(shop.run("gcc", flags));
        fs::rename(shop.path("whole2.dwo"), shop.path(&part)).unwrap();
        let wrong = told(&shop, "whole", &[]);
        assert!(!has_inlined(&wrong));
        assert_eq!(wrong.asked.missing, 1, "{version}: {wrong:?}");
    }
}

#[test]
fn a_package_of_parts_is_found_beside_the_program() {
    // GNU's dwp 2.40 makes empty packages of version 5.
    let Some((shop, part)) = apart("-gdwarf-4") else {
        return;
    };
    if !shop.run("dwp", ["-o", "whole.dwp", &part]) {
        return;
    }
    fs::remove_file(shop.path(&part)).unwrap();
    let whole = told(&shop, "whole", &[]);
    assert!(has_inlined(&whole), "{whole:?}");
    assert_eq!(whole.asked.missing, 0);
    // It may have the name of the debug file's program, too, and one of nothing is none.
    let made = shop.run("objcopy", ["--only-keep-debug", "whole", "apart.debug"])
        && shop.run("strip", ["-g", "whole"])
        && shop.run("objcopy", ["--add-gnu-debuglink=apart.debug", "whole"]);
    assert!(made);
    fs::rename(shop.path("whole.dwp"), shop.path("apart.dwp")).unwrap();
    assert!(has_inlined(&told(&shop, "whole", &[])));
    fs::remove_file(shop.path("apart.dwp")).unwrap();
    fs::write(shop.path("whole.dwp"), b"\x7fELF").unwrap();
    assert_eq!(told(&shop, "whole", &[]).asked.missing, 1);
}
