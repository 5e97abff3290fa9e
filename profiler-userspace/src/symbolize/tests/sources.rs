//! Where an object's names come from, and in which order.

use super::demangle::Demangling;
use super::memory_budget::MemoryBudget;
use super::native::{self, Sources, Symbol};
use super::program::Workshop;
use super::{DEFAULT, DEFAULT_MEMORY, Naming, TWO_FUNCTIONS};
use crate::object::{BuildId, Elf, ElfAddress, Fetch, FileOffset, RegularFile};
use crate::process::Opened;
use ::object::read::elf::{ElfFile64, ProgramHeader as _};
use ::object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _};
use std::fs;
use std::path::{Path, PathBuf};

/// Usual names, from this machine alone.
pub(super) const HERE: Sources<'static> = Sources {
    naming: &DEFAULT,
    fetch: None,
    memory: &MEMORY,
    cache: None,
};

/// Such names, from this machine alone.
pub(super) fn with(naming: &Naming) -> Sources<'_> {
    Sources { naming, ..HERE }
}

pub(super) static MEMORY: MemoryBudget = MemoryBudget::new(DEFAULT_MEMORY);

/// A program of the workshop's, as if that were the root of the file system, and its path there.
pub(super) fn opened(shop: &Workshop, program: &Path) -> (Opened, PathBuf) {
    let opened = Opened {
        file: RegularFile::open(program).unwrap(),
        root: shop.path(""),
    };
    let below = Path::new("/").join(program.strip_prefix(shop.path("")).unwrap());
    (opened, below)
}

/// Where a function lies in a program's file.
pub(super) fn offset_of(program: &Path, function: &str) -> FileOffset {
    let bytes = fs::read(program).unwrap();
    let elf: ElfFile64<'_, Endianness> = ElfFile64::parse(bytes.as_slice()).unwrap();
    let address = elf
        .symbols()
        .find(|symbol| symbol.name() == Ok(function))
        .unwrap()
        .address();
    let endian = Endianness::Little;
    elf.elf_program_headers()
        .iter()
        .find_map(|segment| {
            let into = address.checked_sub(segment.p_vaddr(endian))?;
            (segment.p_type(endian) == ::object::elf::PT_LOAD && into < segment.p_filesz(endian))
                .then(|| FileOffset(segment.p_offset(endian) + into))
        })
        .unwrap()
}

/// Name of a program's function, if debug files are looked for below the workshop.
fn name(shop: &Workshop, program: &Path, offset: FileOffset) -> Option<String> {
    name_from(shop, program, offset, HERE)
}

/// The same, from these sources.
fn name_from(
    shop: &Workshop,
    program: &Path,
    offset: FileOffset,
    sources: Sources<'_>,
) -> Option<String> {
    let (opened, below) = opened(shop, program);
    let mut named = native::name(&opened, &below, &[offset], sources);
    match named.of[0] {
        Symbol::Named(index) => Some(named.functions.swap_remove(index).outermost.name),
        Symbol::Within(_) | Symbol::Unsymbolized => {
            assert!(
                named.addresses[0].is_some(),
                "the offset was taken from the program"
            );
            None
        }
    }
}

/// A program, and the same one stripped, with what was stripped beside it.
struct Stripped {
    shop: Workshop,
    bare: PathBuf,
    debug: PathBuf,
    inner: FileOffset,
}

impl Stripped {
    fn make(build_id: &str) -> Self {
        let shop = Workshop::new();
        let linker = format!("-Wl,--build-id={build_id}");
        let whole = shop.compile("gcc", "whole", TWO_FUNCTIONS, &["-O1", "-g", &linker]);
        shop.run("objcopy", ["--only-keep-debug", "whole", "bare.debug"]);
        let link = "--add-gnu-debuglink=bare.debug";
        shop.run("objcopy", ["--strip-all", link, "whole", "bare"]);
        Self {
            bare: shop.path("bare"),
            debug: shop.path("bare.debug"),
            inner: offset_of(&whole, "inner"),
            shop,
        }
    }

    fn name(&self) -> Option<String> {
        name(&self.shop, &self.bare, self.inner)
    }

    /// Moves the debug file to a path in the workshop.
    fn move_debug(&mut self, path: &str) {
        let path = self.shop.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::rename(&self.debug, &path).unwrap();
        self.debug = path;
    }
}

#[test]
fn a_debug_file_is_found_by_its_link() {
    let mut stripped = Stripped::make("none");
    assert_eq!(stripped.name().as_deref(), Some("inner"));
    for path in [".debug/bare.debug", "usr/lib/debug/bare.debug"] {
        stripped.move_debug(path);
        assert_eq!(stripped.name().as_deref(), Some("inner"), "{path}");
    }
    stripped.move_debug("elsewhere/bare.debug");
    assert_eq!(stripped.name(), None);
}

#[test]
fn stripped_code_is_its_function_or_each_address_itself() {
    let stripped = Stripped::make("none");
    fs::remove_file(&stripped.debug).unwrap();
    // One byte into the function.
    let inside = FileOffset(stripped.inner.0 + 1);
    let symbol = |addresses| {
        let naming = Naming {
            addresses,
            ..Naming::default()
        };
        let sources = with(&naming);
        let (opened, below) = opened(&stripped.shop, &stripped.bare);
        let named = native::name(&opened, &below, &[inside], sources);
        assert!(!named.has_symbols, "the summary says what to install");
        (named.of[0], named.addresses[0].unwrap())
    };
    let (symbol_of_function, ElfAddress(address)) = symbol(false);
    let begin = Symbol::Within(ElfAddress(address - 1));
    assert_eq!(symbol_of_function, begin);
    assert_eq!(symbol(true), (Symbol::Unsymbolized, ElfAddress(address)));
}

#[test]
fn a_linkage_stub_is_its_function_at_plt() {
    let shop = Workshop::new();
    let library = "namespace outer { int call(int x) { return x + 1; } }";
    let program =
        "namespace outer { int call(int); } int main(int c, char **) { return outer::call(c); }";
    let library = shop.compile("g++", "libouter.so", library, &["-shared", "-fPIC"]);
    let library = library.to_str().unwrap();
    let flags = ["-O1", "-s", "-Wl,-z,lazy,--no-as-needed", library];
    let program = shop.compile("g++", "program", program, &flags);
    let shown = |demangling| {
        let naming = Naming {
            demangling,
            ..Naming::default()
        };
        let sources = with(&naming);
        let bytes = fs::read(&program).unwrap();
        let file = ElfFile64::<'_, Endianness>::parse(bytes.as_slice()).unwrap();
        let (start, size) = [".plt.sec", ".plt"]
            .iter()
            .find_map(|name| file.section_by_name(name)?.file_range())
            .unwrap();
        let stubs = (start..start + size).step_by(8);
        stubs
            .filter_map(|at| name_from(&shop, &program, FileOffset(at), sources))
            .collect::<Vec<_>>()
    };
    let demangled = shown(Demangling::Full);
    assert!(
        demangled.contains(&"outer::call@plt".to_owned()),
        "{demangled:?}"
    );
    let mangled = shown(Demangling::Off);
    assert!(
        mangled.contains(&"_ZN5outer4callEi@plt".to_owned()),
        "{mangled:?}"
    );
}

#[test]
fn a_debug_file_is_found_by_its_build_id() {
    let mut stripped = Stripped::make("sha1");
    let elf = Elf::read(&fs::File::open(&stripped.bare).unwrap()).unwrap();
    let (directory, rest) = elf.build_id.unwrap().split();
    stripped.move_debug(&format!("usr/lib/debug/.build-id/{directory}/{rest}.debug"));
    assert_eq!(stripped.name().as_deref(), Some("inner"));
}

#[test]
fn a_debug_file_is_found_in_a_given_directory() {
    for build_id in ["none", "sha1"] {
        let mut stripped = Stripped::make(build_id);
        let elsewhere = tempfile::tempdir().unwrap();
        let elf = Elf::read(&fs::File::open(&stripped.bare).unwrap()).unwrap();
        let place = match elf.build_id {
            Some(id) => {
                let (directory, rest) = id.split();
                format!("named/.build-id/{directory}/{rest}.debug")
            }
            None => "named/bare.debug".to_owned(),
        };
        stripped.move_debug(&place);
        assert_eq!(stripped.name(), None);
        let directories = [elsewhere.path().to_owned(), stripped.shop.path("named")];
        let naming = Naming {
            debug_directories: directories.to_vec(),
            ..Naming::default()
        };
        let sources = with(&naming);
        let (shop, bare, inner) = (&stripped.shop, &stripped.bare, stripped.inner);
        let name = name_from(shop, bare, inner, sources);
        assert_eq!(name.as_deref(), Some("inner"), "{build_id}");
    }
}

#[test]
fn a_debug_file_missing_locally_is_fetched() {
    let mut stripped = Stripped::make("sha1");
    stripped.move_debug("elsewhere/bare.debug");
    let wanted = Elf::read(&fs::File::open(&stripped.bare).unwrap()).unwrap();
    let fetch = |id: &BuildId| {
        assert_eq!(Some(id), wanted.build_id.as_ref());
        RegularFile::open(&stripped.debug).ok()
    };
    let fetched = |fetch: &Fetch<'_>| {
        let sources = Sources {
            fetch: Some(fetch),
            ..HERE
        };
        name_from(&stripped.shop, &stripped.bare, stripped.inner, sources)
    };
    assert_eq!(fetched(&fetch).as_deref(), Some("inner"));
    assert_eq!(fetched(&|_: &BuildId| None), None);
    // Servers may answer with anything.
    let other = |_: &BuildId| RegularFile::open(Path::new("/proc/self/exe")).ok();
    assert_eq!(fetched(&other), None);
}

#[test]
fn a_link_does_not_lead_out_of_the_root_directory() {
    let mut stripped = Stripped::make("sha1");
    stripped.move_debug("usr/lib/debug/real");
    let elf = Elf::read(&fs::File::open(&stripped.bare).unwrap()).unwrap();
    let (directory, rest) = elf.build_id.unwrap().split();
    let by_id = stripped
        .shop
        .path(&format!("usr/lib/debug/.build-id/{directory}"));
    fs::create_dir_all(&by_id).unwrap();
    let link = by_id.join(rest + ".debug");
    let root = stripped.shop.path("");
    for (target, leads_there) in [
        ("/usr/lib/debug/real".to_owned(), true),
        ("../../real".to_owned(), true),
        (
            "../../../../../../../../usr/lib/debug/real".to_owned(),
            true,
        ),
        (root.join("usr/lib/debug/real").display().to_string(), false),
    ] {
        std::os::unix::fs::symlink(&target, &link).unwrap();
        assert_eq!(stripped.name().is_some(), leads_there, "{target}");
        fs::remove_file(&link).unwrap();
    }
}

#[test]
fn minidebuginfo_names_functions_that_are_not_exported() {
    let shop = Workshop::new();
    let flags = ["-O1", "-g", "-rdynamic"];
    let whole = shop.compile("gcc", "whole", TWO_FUNCTIONS, &flags);
    let inner = offset_of(&whole, "inner");
    shop.run("objcopy", ["--only-keep-debug", "whole", "debug"]);
    shop.run("objcopy", ["--strip-debug", "debug", "minimal"]);
    shop.run("strip", ["-o", "bare", "whole"]);
    if !shop.can_run("xz", ["minimal"]) {
        return;
    }
    let bare = shop.path("bare");
    assert_eq!(name(&shop, &bare, inner), None);
    let add = |section, made| shop.run("objcopy", ["--add-section", section, "bare", made]);
    add(".gnu_debugdata=minimal.xz", "carrying");
    let carrying = shop.path("carrying");
    assert_eq!(name(&shop, &carrying, inner).as_deref(), Some("inner"));
    let outer = offset_of(&whole, "outer");
    assert_eq!(name(&shop, &carrying, outer).as_deref(), Some("outer"));
    // A broken one is as good as none.
    let bytes = fs::read(shop.path("minimal.xz")).unwrap();
    fs::write(shop.path("broken.xz"), &bytes[..bytes.len() / 2]).unwrap();
    add(".gnu_debugdata=broken.xz", "torn");
    assert_eq!(name(&shop, &shop.path("torn"), inner), None);
}

#[test]
fn a_debug_file_of_another_build_is_ignored() {
    for build_id in ["none", "sha1"] {
        let stripped = Stripped::make(build_id);
        let other = TWO_FUNCTIONS.replace("inner", "false_name");
        let linker = format!("-Wl,--build-id={build_id}");
        let shop = &stripped.shop;
        shop.compile("gcc", "other", &other, &["-O1", "-g", &linker]);
        shop.run("objcopy", ["--only-keep-debug", "other", "bare.debug"]);
        assert_eq!(stripped.name(), None, "{build_id}");
    }
}

#[test]
fn a_special_file_in_place_of_a_debug_file_does_not_block() {
    let stripped = Stripped::make("none");
    fs::remove_file(&stripped.debug).unwrap();
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR);
    rustix::fs::mknodat(rustix::fs::CWD, &stripped.debug, kind, mode, 0).unwrap();
    assert_eq!(stripped.name(), None);
}

#[test]
fn an_object_with_symbols_needs_no_debug_file() {
    let shop = Workshop::new();
    let whole = shop.compile("gcc", "whole", TWO_FUNCTIONS, &["-O1"]);
    assert_eq!(
        name(&shop, &whole, offset_of(&whole, "inner")).as_deref(),
        Some("inner")
    );
}

/// Turns the symbol table of a program into a section that nobody reads.
fn hide_symbols(program: &Path) {
    let mut bytes = fs::read(program).unwrap();
    let word = |at: usize| {
        usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
    };
    let (sections, count) = (
        word(40),
        usize::from(u16::from_le_bytes([bytes[60], bytes[61]])),
    );
    for section in (0..count).map(|index| sections + 64 * index) {
        if bytes[section + 4..section + 8] == ::object::elf::SHT_SYMTAB.to_le_bytes() {
            bytes[section + 4..section + 8].copy_from_slice(&0x6fff_0000u32.to_le_bytes());
        }
    }
    fs::write(program, bytes).unwrap();
}

#[test]
fn dwarf_names_functions_missing_from_symbol_tables() {
    for flags in [["-O1", "-g"].as_slice(), &["-O1", "-g", "-gz=zlib"]] {
        let shop = Workshop::new();
        let program = shop.compile("gcc", "dwarf", TWO_FUNCTIONS, flags);
        let inner = offset_of(&program, "inner");
        hide_symbols(&program);
        assert_eq!(
            name(&shop, &program, inner).as_deref(),
            Some("inner"),
            "{flags:?}"
        );
    }
}

#[test]
fn compressed_dwarf_of_endless_size_is_skipped() {
    let shop = Workshop::new();
    let flags = ["-O1", "-g", "-gz=zlib"];
    let program = shop.compile("gcc", "bomb", TWO_FUNCTIONS, &flags);
    let inner = offset_of(&program, "inner");
    hide_symbols(&program);
    let mut bytes = fs::read(&program).unwrap();
    // Every packed section starts with its kind, a word of nothing, and the size it claims.
    let packed: Vec<usize> = (0..bytes.len() - 24)
        .filter(|&at| {
            bytes[at..at + 8] == [1, 0, 0, 0, 0, 0, 0, 0] && bytes[at + 24..at + 25] == [0x78]
        })
        .collect();
    assert!(!packed.is_empty());
    for at in packed {
        bytes[at + 8..at + 16].copy_from_slice(&(u64::MAX / 4).to_le_bytes());
    }
    fs::write(&program, bytes).unwrap();
    assert_eq!(name(&shop, &program, inner), None);
}

#[test]
fn damaged_programs_are_read_without_a_panic() {
    let shop = Workshop::new();
    let program = shop.compile("gcc", "damaged", TWO_FUNCTIONS, &["-O1", "-g"]);
    let whole = fs::read(&program).unwrap();
    let inner = offset_of(&program, "inner");
    hide_symbols(&program);
    let hidden = fs::read(&program).unwrap();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for bytes in [&whole, &hidden] {
        for _ in 0..60 {
            let mut bytes = bytes.clone();
            for _ in 0..200 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let at = usize::try_from(random % bytes.len() as u64).unwrap();
                bytes[at] = random.to_le_bytes()[7];
            }
            fs::write(&program, bytes).unwrap();
            let opened = Opened::ours(RegularFile::open(&program).unwrap());
            let named = native::name(&opened, &program, &[inner, FileOffset(u64::MAX)], HERE);
            assert_eq!(named.of.len(), 2);
        }
    }
}
