//! Debug information that is packed in the old way, or that the compiler kept apart.

use super::native::{self, Named, Symbol};
use super::program::Workshop;
use super::sources::{offset_of, opened, with};
use super::{Naming, ObjectFrame};
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

/// The symbols of a program's function `outer`, if debug files are looked for in these directories, too.
fn symbols(shop: &Workshop, program: &str, directories: &[&str]) -> Named {
    symbols_of_function(shop, program, "outer", directories)
}

fn symbols_of_function(
    shop: &Workshop,
    program: &str,
    function: &str,
    directories: &[&str],
) -> Named {
    let program = shop.path(program);
    let (opened, below) = opened(shop, &program);
    let start = offset_of(&program, function).0;
    let offsets: Vec<FileOffset> = (start..start + 6).map(FileOffset).collect();
    let naming = Naming {
        debug_directories: directories.iter().map(|name| shop.path(name)).collect(),
        inlined: true,
        lines: true,
        ..Naming::default()
    };
    let sources = with(&naming);
    native::name(&opened, &below, &offsets, sources)
}

/// A function as readers see it.
fn shown(level: &native::Level) -> String {
    ObjectFrame::of(level).shown()
}

/// Whether the inlined function is symbols.
fn has_inlined(named: &Named) -> bool {
    let mut functions = named.of.iter().map(|symbol| match symbol {
        Symbol::Named(index) => &named.functions[*index],
        other => panic!("{other:?} of {named:?}"),
    });
    functions.any(|function| {
        let inlined: Vec<String> = function.inlined.iter().map(shown).collect();
        shown(&function.outermost) == "outer (whole.c:6)" && inlined == ["core (whole.c:3)"]
    })
}

#[test]
fn zdebug_sections_are_read() {
    let shop = Workshop::new();
    let pack = ["--compress-debug-sections=zlib-gnu", "whole", "packed"];
    shop.compile("gcc", "whole", INLINED, &["-O2", "-g"]);
    shop.run("objcopy", pack);
    let elf = Elf::read(&File::open(shop.path("packed")).unwrap()).unwrap();
    let bytes = fs::read(shop.path("packed")).unwrap();
    let old = b".zdebug_info\0";
    assert!(bytes.windows(old.len()).any(|name| name == old));
    let info = elf.debug.section(b".debug_info").unwrap();
    assert_eq!(info.packing, crate::object::Packing::Zlib);
    assert!(has_inlined(&symbols(&shop, "packed", &[])));
    // One that says what it is not is left alone.
    let mut bytes = bytes;
    let at = usize::try_from(info.file.start).unwrap();
    bytes[at - 12..at - 8].copy_from_slice(b"ZLIC");
    fs::write(shop.path("packed"), &bytes).unwrap();
    assert!(!has_inlined(&symbols(&shop, "packed", &[])));
    bytes[at - 12..at].copy_from_slice(b"ZLIB\xff\xff\xff\xff\xff\xff\xff\xff");
    fs::write(shop.path("packed"), &bytes).unwrap();
    assert!(!has_inlined(&symbols(&shop, "packed", &[])));
}

/// A program whose debug information is apart, in either version of DWARF; and the name of the part.
fn apart(version: &str) -> (Workshop, String) {
    let shop = Workshop::new();
    fs::write(shop.path("whole.c"), INLINED).unwrap();
    // As if the workshop were the root of the file system.
    let root = format!(
        "-fdebug-prefix-map={}=",
        shop.path("").to_str().unwrap().trim_end_matches('/')
    );
    let flags = ["-O2", "-g", "-gsplit-dwarf", version, &root];
    let compile = flags.into_iter().chain(["-c", "-o", "whole.o", "whole.c"]);
    shop.run("gcc", compile);
    shop.run("gcc", ["-o", "whole", "whole.o"]);
    let part = "whole.dwo".to_owned();
    assert!(shop.path(&part).exists());
    (shop, part)
}

#[test]
fn split_dwarf_files_are_found_or_reported_missing() {
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let (shop, part) = apart(version);
        let whole = symbols(&shop, "whole", &[]);
        assert!(has_inlined(&whole), "{version}: {whole:?}");
        assert_eq!((whole.asked.missing, &whole.asked.such_as), (0, &None));
        // In another directory, it is found if that is named.
        fs::create_dir(shop.path("elsewhere")).unwrap();
        fs::rename(shop.path(&part), shop.path("elsewhere").join(&part)).unwrap();
        assert!(has_inlined(&symbols(&shop, "whole", &["elsewhere"])));
        let without = symbols(&shop, "whole", &[]);
        assert!(!has_inlined(&without));
        assert_eq!(without.asked.missing, 1, "{version}");
        let such_as = without.asked.such_as.as_ref().unwrap();
        assert!(such_as.ends_with(&part), "{such_as:?}");
        // Lines are known all the same.
        let lines = without
            .functions
            .iter()
            .filter(|it| shown(&it.outermost).starts_with("outer (whole.c:"));
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
        shop.run("gcc", flags);
        fs::rename(shop.path("whole2.dwo"), shop.path(&part)).unwrap();
        let wrong = symbols(&shop, "whole", &[]);
        assert!(!has_inlined(&wrong));
        assert_eq!(wrong.asked.missing, 1, "{version}: {wrong:?}");
    }
}

#[test]
fn a_dwp_package_is_found_beside_the_program() {
    // GNU's dwp 2.40 makes empty packages of version 5; LLVM's are tested below.
    let (shop, part) = apart("-gdwarf-4");
    if !shop.can_run("dwp", ["-o", "whole.dwp", &part]) {
        return;
    }
    fs::remove_file(shop.path(&part)).unwrap();
    let whole = symbols(&shop, "whole", &[]);
    assert!(has_inlined(&whole), "{whole:?}");
    assert_eq!(whole.asked.missing, 0);
    // It may have the name of the debug file's program, too, and one of nothing is none.
    shop.run("objcopy", ["--only-keep-debug", "whole", "apart.debug"]);
    shop.run("strip", ["-g", "whole"]);
    shop.run("objcopy", ["--add-gnu-debuglink=apart.debug", "whole"]);
    fs::rename(shop.path("whole.dwp"), shop.path("apart.dwp")).unwrap();
    assert!(has_inlined(&symbols(&shop, "whole", &[])));
    fs::remove_file(shop.path("apart.dwp")).unwrap();
    fs::write(shop.path("whole.dwp"), b"\x7fELF").unwrap();
    assert_eq!(symbols(&shop, "whole", &[]).asked.missing, 1);
}

/// A unit with a function into which another is compiled twice, in several stretches.
const UNIT: &str = r#"
static inline __attribute__((always_inline)) int core_of_NAME(volatile int *x) {
    if (__builtin_expect(*x < 0, 0))
        __builtin_trap();
    return *x * 3;
}
__attribute__((noinline)) int NAME(volatile int *x) {
    return core_of_NAME(x) + core_of_NAME(x + 1);
}
"#;

/// Two of them, unlike each other, and one that calls both.
fn units() -> [(&'static str, String); 3] {
    let calls = "int one(volatile int *); int two(volatile int *);
        int main(void) { volatile int x[2] = {1, 2}; return one(x) + two(x); }\n";
    let types = "\n\nstruct of_two { long first; char *second; };\nstruct of_two *given;";
    [
        ("main", calls.to_owned()),
        ("one", UNIT.replace("NAME", "one")),
        ("two", types.to_owned() + &UNIT.replace("NAME", "two")),
    ]
}

/// Makes a package with an index of version 5, and a program without its parts; returns the symbols of two functions while
/// they were there.
fn packed_in_version_5(shop: &Workshop) -> Option<[Named; 2]> {
    for (name, text) in units() {
        let (source, object) = (format!("{name}.c"), format!("{name}.o"));
        fs::write(shop.path(&source), text).unwrap();
        let flags = ["-O2", "-g", "-gdwarf-5", "-gsplit-dwarf", "-c", "-o"];
        shop.run("gcc", flags.into_iter().chain([&*object, &*source]));
    }
    let parts = ["main.dwo", "one.dwo", "two.dwo"];
    shop.run("gcc", ["-o", "whole", "main.o", "one.o", "two.o"]);
    let made = shop.can_run("llvm-dwp", ["-o", "whole.dwp"].into_iter().chain(parts));
    made.then(|| {
        fs::rename(shop.path("whole.dwp"), shop.path("kept.dwp")).unwrap();
        // The parts lie where the compiler put them, which is beside the program for whoever takes the workshop for the root.
        let before =
            ["one", "two"].map(|function| symbols_of_function(shop, "whole", function, &[]));
        for part in parts {
            fs::remove_file(shop.path(part)).unwrap();
        }
        fs::rename(shop.path("kept.dwp"), shop.path("whole.dwp")).unwrap();
        before
    })
}

#[test]
fn a_dwarf_5_package_gives_the_lines_of_each_unit() {
    let shop = Workshop::new();
    let Some(before) = packed_in_version_5(&shop) else {
        return;
    };
    let package = File::open(shop.path("whole.dwp")).unwrap();
    let sections = Elf::read(&package).unwrap().debug;
    // The units have stretches of their own of all that is looked at.
    for name in ["info", "abbrev", "rnglists", "str_offsets"] {
        let name = format!(".debug_{name}.dwo");
        assert!(sections.section(name.as_bytes()).is_some(), "{name}");
    }
    let index = sections.section(b".debug_cu_index").unwrap().file.clone();
    let start = usize::try_from(index.start).unwrap();
    let bytes = fs::read(shop.path("whole.dwp")).unwrap();
    // Version, columns, units, and slots: the header of DWARF 5, section 7.3.5.3.
    assert_eq!(bytes[start..start + 4], [5, 0, 0, 0]);
    assert_eq!(bytes[start + 8..start + 12], [3, 0, 0, 0]);
    for (function, before) in ["one", "two"].into_iter().zip(&before) {
        let inlined = format!("core_of_{function}");
        let symbols = symbols_of_function(&shop, "whole", function, &[]);
        assert_eq!(symbols.asked.missing, 0, "{symbols:?}");
        let names = symbols.functions.iter().flat_map(|it| &it.inlined);
        assert!(names.clone().count() > 0, "{symbols:?}");
        assert!(
            names.clone().all(|name| shown(name).starts_with(&inlined)),
            "{symbols:?}"
        );
        assert_eq!(&symbols, before);
    }
    // Without the package, it is missed.
    fs::remove_file(shop.path("whole.dwp")).unwrap();
    let without = symbols_of_function(&shop, "whole", "two", &[]);
    assert_eq!(without.asked.missing, 1);
    assert!(without.functions.iter().all(|it| it.inlined.is_empty()));
}

#[test]
fn a_dwp_package_with_a_broken_index_is_harmless() {
    let shop = Workshop::new();
    if packed_in_version_5(&shop).is_none() {
        return;
    }
    let package = shop.path("whole.dwp");
    let whole = fs::read(&package).unwrap();
    let right = symbols_of_function(&shop, "whole", "two", &[]);
    let mut missed = 0;
    let sections = Elf::read(&File::open(&package).unwrap()).unwrap().debug;
    let index = sections.section(b".debug_cu_index").unwrap().file.clone();
    for at in usize::try_from(index.start).unwrap()..usize::try_from(index.end).unwrap() {
        let mut broken = whole.clone();
        broken[at] ^= 0xff;
        fs::write(&package, broken).unwrap();
        let symbols = symbols_of_function(&shop, "whole", "two", &[]);
        // The name from the symbol table is there all the same, so nothing panicked.
        assert!(
            symbols.is_object && symbols.functions[0].outermost.name.starts_with("two"),
            "{at}: {symbols:?}"
        );
        missed += symbols.asked.missing;
        assert!(
            symbols == right || symbols.asked.missing == 1,
            "{at}: {symbols:?}"
        );
    }
    assert!(missed > 0);
    // Behind the header and a signature of eight bytes for each slot are the numbers of rows.
    let start = usize::try_from(index.start).unwrap();
    let slots = usize::from(whole[start + 12]);
    let mut swapped = whole;
    for slot in 0..slots {
        let row = &mut swapped[start + 16 + slots * 8 + slot * 4];
        // Three units, the next one's row each.
        *row = if *row == 0 { 0 } else { *row % 3 + 1 };
    }
    fs::write(&package, swapped).unwrap();
    let symbols = symbols_of_function(&shop, "whole", "two", &[]);
    assert_eq!(symbols.asked.missing, 1, "{symbols:?}");
    assert!(symbols.functions.iter().all(|it| it.inlined.is_empty()));
}
