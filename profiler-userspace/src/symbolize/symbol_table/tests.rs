//! Symbol tables written by hand, honest and not.

use super::names::MAX_NAME_BYTES;
use super::*;
use crate::object::Segments;
use proptest::prelude::*;
use std::io::Write as _;
use std::ops::Range;

const TEXT: u16 = 1;
const DATA: u16 = 2;

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    kind: u8,
    section: u16,
    start: u64,
    size: u64,
}

fn entry(name: &str, start: u64, size: u64) -> Entry {
    Entry {
        name: name.to_owned(),
        kind: STT_FUNC,
        section: TEXT,
        start,
        size,
    }
}

/// Where an object has code.
const CODE: Range<u64> = 0x1000..0x2000;

fn elf() -> Elf {
    Elf {
        code: vec![None, Some(CODE), None],
        ..Elf::outline(Segments::default(), None)
    }
}

fn written(entries: &[Entry]) -> (File, SymbolTable) {
    let mut symbols = Vec::new();
    let mut names = vec![0];
    for entry in entries {
        let name = u32::try_from(names.len()).unwrap();
        symbols.extend(name.to_le_bytes());
        symbols.extend([entry.kind, 0]);
        symbols.extend(entry.section.to_le_bytes());
        symbols.extend(entry.start.to_le_bytes());
        symbols.extend(entry.size.to_le_bytes());
        names.extend(entry.name.as_bytes());
        names.push(0);
    }
    let mut file = tempfile::tempfile().unwrap();
    // Not at the beginning, nor anywhere round.
    file.write_all(b"before").unwrap();
    file.write_all(&symbols).unwrap();
    file.write_all(&names).unwrap();
    let middle = 6 + symbols.len() as u64;
    let table = SymbolTable {
        symbols: 6..middle,
        names: middle..middle + names.len() as u64,
    };
    (file, table)
}

fn names_of(entries: &[Entry], addresses: &[u64]) -> Vec<Option<String>> {
    names_in(&elf(), entries, addresses)
}

fn names_in(elf: &Elf, entries: &[Entry], addresses: &[u64]) -> Vec<Option<String>> {
    let (file, table) = written(entries);
    let addresses: Vec<ElfAddress> = addresses.iter().copied().map(ElfAddress).collect();
    let found = look_up(&file, elf, &table, &addresses, None);
    let sorted = Sorted::read(&file, elf, &table);
    if let Some(sorted) = &sorted {
        let again = look_up(&file, elf, &table, &addresses, Some(sorted));
        assert_eq!(again, found, "in the order of addresses");
    }
    let name = |index: usize| String::from_utf8(found.names[index].clone()).unwrap();
    found.of.iter().map(|of| of.map(name)).collect()
}

fn name_of(entries: &[Entry], address: u64) -> Option<String> {
    names_of(entries, &[address]).remove(0)
}

#[test]
fn a_function_covers_exactly_its_bytes() {
    let functions = [entry("late", 0x1100, 0x10), entry("early", 0x1000, 0x20)];
    let addresses = [
        0xfff,
        0x1000,
        0x101f,
        0x1020,
        0x10ff,
        0x1100,
        0x110f,
        0x1110,
        u64::MAX,
    ];
    let named = names_of(&functions, &addresses);
    let named: Vec<Option<&str>> = named.iter().map(Option::as_deref).collect();
    let (early, late) = (Some("early"), Some("late"));
    assert_eq!(
        named,
        [None, early, early, None, None, late, late, None, None]
    );
}

#[test]
fn a_function_of_unknown_size_reaches_the_next_symbol_or_the_sections_end() {
    let functions = [
        entry("asm", 0x1000, 0),
        entry("sized", 0x1100, 0x10),
        entry("tail", 0x1f00, 0),
    ];
    assert_eq!(name_of(&functions, 0x10ff).as_deref(), Some("asm"));
    assert_eq!(name_of(&functions, 0x1110), None, "the gap is nobody's");
    assert_eq!(name_of(&functions, 0x1fff).as_deref(), Some("tail"));
    assert_eq!(name_of(&functions, 0x2000), None, "another section");
}

#[test]
fn an_outer_function_continues_after_an_inner_one() {
    let functions = [
        entry("outer", 0x1000, 0x100),
        entry("inner", 0x1040, 0x10),
        entry("label", 0x1080, 0),
    ];
    for (address, name) in [
        (0x103f, "outer"),
        (0x1040, "inner"),
        (0x1050, "outer"),
        (0x1090, "outer"),
    ] {
        assert_eq!(name_of(&functions, address).as_deref(), Some(name));
    }
}

#[test]
fn an_enclosing_function_wins_over_a_nearer_ended_one() {
    // Known of long before the other is looked at, which is the first of the table.
    let mut functions = vec![entry("outer", 0x1000, 0xa00)];
    functions.extend((0..2 * FEW).map(|_| entry("inner", 0x18ff, 1)));
    let far = 0x2100;
    for last in (0x1901..far).step_by(0x80) {
        let named = names_of(&functions, &[0x1900, last]);
        assert_eq!(named[0].as_deref(), Some("outer"), "{last:x}");
    }
}

#[test]
fn the_public_name_is_chosen_among_several() {
    let named = |names: &[&str]| {
        let functions: Vec<Entry> = names.iter().map(|name| entry(name, 0x1000, 8)).collect();
        name_of(&functions, 0x1001).unwrap()
    };
    assert_eq!(
        named(&["__GI___libc_write", "__write", "write", "__libc_write"]),
        "write"
    );
    assert_eq!(named(&["_IO_puts", "puts"]), "puts");
    assert_eq!(
        named(&["clock_gettime", "__vdso_clock_gettime"]),
        "__vdso_clock_gettime"
    );
    assert_eq!(named(&["$x", "b", "a"]), "a");
}

#[test]
fn symbols_outside_code_are_skipped() {
    let data = |kind, section| Entry {
        kind,
        section,
        ..entry("data", 0x1000, 0x100)
    };
    let undefined = data(STT_FUNC, SHN_UNDEF);
    let absolute = data(STT_NOTYPE, object::elf::SHN_ABS);
    for other in [
        undefined,
        absolute,
        data(object::elf::STT_OBJECT, DATA),
        data(object::elf::STT_FILE, TEXT),
    ] {
        assert_eq!(name_of(&[other], 0x1010), None);
    }
    // A label at the end of all data does not end the function before it.
    let end = Entry {
        kind: STT_NOTYPE,
        ..entry("end", 0x1010, 0)
    };
    let end = Entry {
        section: DATA,
        ..end
    };
    assert_eq!(
        name_of(&[entry("asm", 0x1000, 0), end], 0x1020).as_deref(),
        Some("asm")
    );
}

#[test]
fn long_names_are_complete_and_endless_ones_cut() {
    let long = "n".repeat(5000);
    assert_eq!(name_of(&[entry(&long, 0x1000, 8)], 0x1000), Some(long));
    let endless = "n".repeat(100_000);
    assert_eq!(
        name_of(&[entry(&endless, 0x1000, 8)], 0x1000)
            .unwrap()
            .len(),
        MAX_NAME_BYTES
    );
}

#[test]
fn names_are_found_however_far_apart_they_lie() {
    // Names that are read together, far from others, and across the end of what is read together.
    let names: Vec<String> = [1, 300, 2, 5000, 255, 256, 257, 1, 70_000, 3, 4095, 2]
        .iter()
        .enumerate()
        .map(|(number, &length)| format!("{number:x}").repeat(length))
        .collect();
    let functions: Vec<Entry> = (0u64..)
        .zip(&names)
        .map(|(number, name)| entry(name, 0x1000 + number, 1))
        .collect();
    let all: Vec<u64> = functions.iter().map(|function| function.start).collect();
    // Together with the others, and alone.
    let together = names_of(&functions, &all);
    for ((name, address), together) in names.iter().zip(all).zip(together) {
        let most = &name[..name.len().min(MAX_NAME_BYTES)];
        assert_eq!(together.as_deref(), Some(most));
        assert_eq!(name_of(&functions, address).as_deref(), Some(most));
    }
}

#[test]
fn a_symbol_table_with_wrong_sizes_is_harmless() {
    let (file, honest) = written(&[entry("one", 0x1000, 8)]);
    let ask = |symbols: Range<u64>, names: Range<u64>| {
        look_up(
            &file,
            &elf(),
            &SymbolTable { symbols, names },
            &[ElfAddress(0x1000)],
            None,
        )
    };
    assert_eq!(
        ask(honest.symbols.clone(), honest.names.clone()).names,
        [b"one"]
    );
    assert_eq!(
        ask(honest.symbols.start..u64::MAX, honest.names.clone()).names,
        [b"one"]
    );
    assert_eq!(ask(u64::MAX - 5..u64::MAX, honest.names.clone()).of, [None]);
    assert_eq!(
        ask(honest.symbols.clone(), u64::MAX - 1..u64::MAX).of,
        [None]
    );
    assert_eq!(
        ask(
            honest.symbols.clone(),
            honest.names.start..honest.names.start
        )
        .of,
        [None]
    );
}

#[test]
fn endlessly_overlapping_functions_are_given_up() {
    let functions = vec![entry("all", 0x1000, 0x1000); 17_000];
    let addresses: Vec<u64> = (0x1000..0x1000 + 1000).collect();
    assert!(names_of(&functions, &addresses).iter().all(Option::is_none));
}

#[test]
fn symbols_of_32_bit_objects_are_read() {
    let mut file = tempfile::tempfile().unwrap();
    let mut bytes = vec![1, 0, 0, 0];
    bytes.extend(0x1000u32.to_le_bytes());
    bytes.extend(0x10u32.to_le_bytes());
    bytes.extend([STT_FUNC, 0, 1, 0]);
    bytes.extend(b"\0old\0");
    file.write_all(&bytes).unwrap();
    let table = SymbolTable {
        symbols: 0..16,
        names: 16..21,
    };
    let mut elf = elf();
    elf.layout.wide = false;
    assert_eq!(
        look_up(&file, &elf, &table, &[ElfAddress(0x100f)], None).names,
        [b"old"]
    );
}

/// The same answer, found slowly.
fn by_definition(code: &Range<u64>, entries: &[Entry], address: u64) -> Option<u64> {
    let before = || entries.iter().filter(|entry| entry.start <= address);
    let covering = before().filter(|entry| address - entry.start < entry.size);
    let nearest = before().map(|entry| entry.start).max();
    covering.map(|entry| entry.start).max().or_else(|| {
        let mut there = before().filter(|entry| Some(entry.start) == nearest);
        (there.all(|entry| entry.size == 0) && code.contains(&address)).then_some(nearest?)
    })
}

proptest! {
    #[test]
    fn the_index_finds_what_binary_search_finds(
        addresses in proptest::collection::btree_set(prop_oneof![0u64..5000, any::<u64>()], 0..60),
        starts in proptest::collection::vec(prop_oneof![0u64..5000, any::<u64>()], 1..60),
    ) {
        let addresses: Vec<ElfAddress> = addresses.into_iter().map(ElfAddress).collect();
        let index = Index::new(&addresses);
        let beside = addresses.iter().flat_map(|at| [at.0, at.0.saturating_sub(1), at.0.saturating_add(1)]);
        for start in starts.into_iter().chain(beside) {
            let halved = addresses.partition_point(|address| address.0 < start);
            prop_assert_eq!(index.first_from(start), halved);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_sweep_agrees_with_the_definition(
        functions in proptest::collection::vec((0x1000u64..0x1200, prop_oneof![Just(0u64), 1u64..64]), 0..40),
        addresses in proptest::collection::btree_set(0xff0u64..0x1300, 1..40),
    ) {
        // Named by their start, so that the choice among aliases does not matter.
        let entries: Vec<Entry> = functions
            .iter()
            .map(|&(start, size)| entry(&format!("{start:x}"), start, size))
            .collect();
        let addresses: Vec<u64> = addresses.into_iter().collect();
        let wanted: Vec<Option<String>> = addresses
            .iter()
            .map(|&address| by_definition(&CODE, &entries, address).map(|start| format!("{start:x}")))
            .collect();
        prop_assert_eq!(names_of(&entries, &addresses), wanted);
    }

    #[test]
    fn filtered_symbols_would_have_named_nothing(
        // From close together to far apart, at the beginning, in the middle and at the end of all addresses.
        unit in prop_oneof![Just(1u64), Just(0x100), Just(0x1000), Just(0x10_0000), Just(1 << 50)],
        base in prop_oneof![Just(0u64), Just(0x40_0000), Just(0xffff_ffff_8000_0000), Just(u64::MAX - 0x8000)],
        functions in proptest::collection::vec((0u64..300, prop_oneof![Just(0u64), 1u64..14, Just(80)]), 0..400),
        addresses in proptest::collection::btree_set(0u64..320, 1..12),
        sorted: bool,
        code_begins in 0u64..200,
    ) {
        let place = |number: u64| base.saturating_add(number.saturating_mul(unit));
        let mut entries: Vec<Entry> = functions
            .iter()
            .map(|&(number, size)| entry(&format!("{:x}", place(number)), place(number), size.saturating_mul(unit)))
            .collect();
        if sorted {
            entries.sort_by_key(|entry| entry.start);
        }
        let addresses: std::collections::BTreeSet<u64> =
            addresses.into_iter().map(|number| place(number).saturating_add(unit / 2)).collect();
        let addresses: Vec<u64> = addresses.into_iter().collect();
        let mut elf = elf();
        let code = place(code_begins)..u64::MAX;
        elf.code[1] = Some(code.clone());
        // Assembly that lies outside of its section is none.
        entries.retain(|entry| entry.size > 0 || code.contains(&entry.start));
        let wanted: Vec<Option<String>> = addresses
            .iter()
            .map(|&address| by_definition(&code, &entries, address).map(|start| format!("{start:x}")))
            .collect();
        prop_assert_eq!(names_in(&elf, &entries, &addresses), wanted);
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..500),
        addresses in proptest::collection::btree_set(any::<u64>(), 1..20),
        middle in 0u64..500,
        wide: bool,
    ) {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        let table = SymbolTable { symbols: 0..middle, names: middle..600 };
        let mut elf = elf();
        elf.layout.wide = wide;
        elf.code[1] = Some(0..u64::MAX);
        let addresses: Vec<ElfAddress> = addresses.into_iter().map(ElfAddress).collect();
        look_up(&file, &elf, &table, &addresses, None);
        if let Some(sorted) = Sorted::read(&file, &elf, &table) {
            look_up(&file, &elf, &table, &addresses, Some(&sorted));
        }
    }
}
