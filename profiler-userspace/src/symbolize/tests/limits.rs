//! Memory and time that naming takes, whatever it is given.

use super::memory_budget::NAMES_BYTES;
use super::native;
use super::program::Workshop;
use super::sources::{HERE, offset_of, opened};
use super::{Naming, dwarf};
use crate::allocator;
use crate::object::{DebugFile, Elf, ElfAddress, FileOffset, Search};
use ::object::{Object as _, ObjectSymbol as _};
use dwarf::{Level, QueryOutcome, Question};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// A limit on allocation is looked at every few steps, so it may be passed by what a few steps take.
const BETWEEN_STEPS: i64 = 1 << 20;

/// The names of addresses, and the most memory that finding them took.
fn look_up(
    program: &Path,
    addresses: &[ElfAddress],
    bytes: u64,
) -> (Vec<Vec<Level>>, QueryOutcome, i64) {
    let file = File::open(program).unwrap();
    let source = DebugFile::of(&file, &Elf::read(&file).unwrap()).unwrap();
    let mut symbols = vec![Vec::new(); addresses.len()];
    let question = Question {
        source: &source,
        shared: None,
        path: program,
        search: Search {
            directories: &[],
            roots: &[],
            fetch: None,
        },
        bytes,
    };
    let (asked, most) = allocator::most(|| {
        dwarf::look_up(question, addresses, |at, levels| {
            symbols[at] = levels;
        })
    });
    (symbols, asked, most)
}

fn addresses(program: &Path, of: &str) -> Vec<ElfAddress> {
    let bytes = fs::read(program).unwrap();
    let object = ::object::File::parse(bytes.as_slice()).unwrap();
    let symbols = object.symbols();
    let wanted = symbols.filter(|symbol| symbol.name().is_ok_and(|name| name.starts_with(of)));
    let mut found: Vec<ElfAddress> = wanted.map(|symbol| ElfAddress(symbol.address())).collect();
    found.sort_unstable();
    found
}

/// A program of so many compilation units, each of so many functions.
fn units(shop: &Workshop, units: usize, functions: usize) {
    let mut sources = vec![
        "-O1".to_owned(),
        "-g".to_owned(),
        "-o".to_owned(),
        "whole".to_owned(),
    ];
    for unit in 0..units {
        let mut text = String::new();
        for function in 0..functions {
            let _ = writeln!(
                text,
                "static inline __attribute__((always_inline)) int in_{unit}_{function}(volatile int *x) {{ return *x * {}; }}\n\
                 int work_{unit}_{function}(volatile int *x) {{ return in_{unit}_{function}(x) ^ {unit}; }}",
                function + 3,
            );
        }
        if unit == 0 {
            text.push_str("int main(void) { return 0; }\n");
        }
        let name = format!("unit{unit}.c");
        fs::write(shop.path(&name), text).unwrap();
        sources.push(name);
    }
    shop.run("gcc", sources.iter().map(String::as_str));
}

#[test]
fn little_memory_gives_the_same_names_in_several_rounds() {
    let shop = Workshop::new();
    units(&shop, 12, 400);
    let program = shop.path("whole");
    let starts = addresses(&program, "work_");
    assert_eq!(starts.len(), 12 * 400);
    // The first instruction is the function's own, one of the next of what was compiled into it.
    let within = |start: &ElfAddress| [0, 2, 4].map(|into| ElfAddress(start.0 + into));
    let all: Vec<ElfAddress> = starts.iter().flat_map(within).collect();
    let (plenty, asked, _) = look_up(&program, &all, 256 << 20);
    assert_eq!(asked, QueryOutcome::default());
    let both = plenty.iter().filter(|levels| levels.len() == 2);
    assert!(both.count() >= starts.len());
    let little = 9 << 20;
    let (symbols, asked, most) = look_up(&program, &all, little);
    assert!(asked.again && asked.left == 0, "{asked:?}, {most} bytes");
    assert!(symbols == plenty);
    assert!(most <= i64::try_from(little).unwrap(), "{most}");
    // With next to no memory there are no names, and the number of places without is reported.
    let (symbols, asked, most) = look_up(&program, &all, 256 << 10);
    assert_eq!(
        symbols.iter().filter(|levels| levels.is_empty()).count(),
        asked.left
    );
    assert!(asked.left > all.len() / 2, "{asked:?}");
    assert!(most < BETWEEN_STEPS, "{most}");
}

/// Two thousand functions, each of which is said to lie in twenty thousand places.
const EVERYWHERE: &str = r#"
    .globl main
main: xor %eax, %eax
    ret
    .section .debug_abbrev
    .byte 1, 0x11, 1, 0x11, 0x01, 0x12, 0x07, 0, 0
    .byte 2, 0x2e, 0, 0x55, 0x17, 0, 0
    .byte 0
    .section .debug_info
    .long 2f - 1f
1:  .short 4
    .long 0
    .byte 8, 1
    .quad main, 0x1000
    .rept 2000
    .byte 2
    .long 0
    .endr
    .byte 0
2:
    .section .debug_ranges
    .set from, 0
    .rept 20000
    .quad from, from + 1
    .set from, from + 2
    .endr
    .quad 0, 0
"#;

#[test]
fn a_decompression_bomb_is_skipped_and_counted() {
    let shop = Workshop::new();
    fs::write(shop.path("all.s"), EVERYWHERE).unwrap();
    shop.run("gcc", ["-no-pie", "-o", "all", "all.s"]);
    let program = shop.path("all");
    assert!(fs::metadata(&program).unwrap().len() < 1 << 20);
    let limit: u64 = 32 << 20;
    let began = Instant::now();
    let (symbols, asked, most) = look_up(&program, &addresses(&program, "main"), limit);
    assert_eq!((symbols.len(), symbols[0].len(), asked.left), (1, 0, 1));
    assert!(most <= i64::try_from(limit).unwrap(), "{most}");
    assert!(began.elapsed() < Duration::from_secs(60));
    // It is named all the same.
    let naming = Naming {
        lines: true,
        ..Naming::default()
    };
    let (opened, below) = opened(&shop, &program);
    let sources = native::Sources {
        naming: &naming,
        ..HERE
    };
    let named = native::name(&opened, &below, &[offset_of(&program, "main")], sources);
    assert_eq!(named.functions[0].outermost.name, "main");
    assert_eq!(named.asked.left, 1);
}

#[test]
fn the_last_address_of_all_is_in_no_function() {
    let shop = Workshop::new();
    units(&shop, 1, 1);
    let last = [ElfAddress(0), ElfAddress(u64::MAX)];
    let (symbols, asked, _) = look_up(&shop.path("whole"), &last, 256 << 20);
    assert_eq!(
        (symbols, asked),
        (vec![Vec::new(); 2], QueryOutcome::default())
    );
}

/// The memory that names alone take.
fn names(program: &Path, shop: &Workshop, offset: FileOffset) -> i64 {
    let (opened, below) = opened(shop, program);
    let (named, most) = allocator::most(|| native::name(&opened, &below, &[offset], HERE));
    assert!(named.is_object);
    most
}

#[test]
fn an_endless_symbol_table_costs_little_for_names() {
    let shop = Workshop::new();
    let program = shop.compile("gcc", "whole", super::TWO_FUNCTIONS, &["-O1"]);
    let inner = offset_of(&program, "inner");
    // The table lies far behind, where the file has nothing but zeros, and goes on for 8 GiB.
    let bytes = fs::read(&program).unwrap();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let (start, count) = (word(40), u16::from_le_bytes([bytes[60], bytes[61]]));
    let file = fs::OpenOptions::new().write(true).open(&program).unwrap();
    for section in (0..u64::from(count)).map(|index| start + 64 * index) {
        let at = usize::try_from(section).unwrap();
        if bytes[at + 4..at + 8] == ::object::elf::SHT_SYMTAB.to_le_bytes() {
            file.write_all_at(&(1u64 << 30).to_le_bytes(), section + 24)
                .unwrap();
            file.write_all_at(&(8u64 << 30).to_le_bytes(), section + 32)
                .unwrap();
        }
    }
    file.set_len(9 << 30).unwrap();
    let most = names(&program, &shop, inner);
    assert!(most < 4 << 20, "{most}");
}

#[test]
fn swelling_minidebuginfo_costs_little_for_names() {
    let shop = Workshop::new();
    let zeros = File::create(shop.path("zeros")).unwrap();
    zeros.set_len(100 << 20).unwrap();
    shop.compile("gcc", "whole", super::TWO_FUNCTIONS, &["-O1"]);
    if !shop.can_run("xz", ["zeros"]) {
        return;
    }
    let flags = ["--strip-all", "--add-section", ".gnu_debugdata=zeros.xz"];
    shop.run("objcopy", flags.into_iter().chain(["whole", "bare"]));
    let inner = offset_of(&shop.path("whole"), "inner");
    let most = names(&shop.path("bare"), &shop, inner);
    // A decoder's memory is this process's; a memory file, which ends at 24 MiB, is the kernel's.
    assert!(
        most + (24 << 20) < i64::try_from(NAMES_BYTES).unwrap(),
        "{most}"
    );
}
