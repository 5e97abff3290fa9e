#![expect(clippy::print_stdout, reason = "tests say why they were skipped")]

use super::found::UnwindFindings;
use super::*;
use ::object::{Object as _, ObjectSection as _};
use profiler_common::abi::{Origin, RuleKind, Slot};
use proptest::prelude::*;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// A small program of every Linux system that has one.
static PROGRAM: LazyLock<Vec<u8>> = LazyLock::new(|| std::fs::read("/proc/self/exe").unwrap());

/// From so many bytes on, this rule.
type Step = (u32, Rule);

/// Stretches of the given rules: each begins somewhere and has changes so many bytes further on.
fn found(stretches: &[(Range<u64>, &[Step])]) -> UnwindFindings {
    let mut found = UnwindFindings::default();
    for (addresses, changes) in stretches {
        let first = found.next_change();
        for &(after, rule) in *changes {
            found.change(after, rule);
        }
        found.add_stretch(addresses.clone(), first);
    }
    found
}

/// The rule at an address by looking at everything.
fn scan(code: &[Range<u64>], found: &UnwindFindings, address: u64) -> Option<Rule> {
    code.iter().find(|part| part.contains(&address))?;
    let stretch = found
        .stretches
        .iter()
        .rfind(|stretch| stretch.addresses.start <= address);
    let Some(stretch) = stretch.filter(|stretch| stretch.addresses.contains(&address)) else {
        return Some(Rule::MISSING);
    };
    let change = { found.changes_of(stretch).iter() }
        .rfind(|change| u64::from(change.after) <= address - stretch.addresses.start);
    let rule = change.map_or(0, |change| change.rule);
    Some(found.rules.rules()[usize::from(rule)])
}

fn table(code: &[Range<u64>], found: &UnwindFindings) -> UnwindTable {
    let mut table = compact::lay_out(code, found);
    table.rules = found.rules.rules().to_vec();
    table
}

#[test]
fn code_without_unwind_info_has_one_row_a_page() {
    let code = 0x1_0000..0x4_8000;
    let found = found(&[]);
    let table = table(std::slice::from_ref(&code), &found);
    assert_eq!((table.pages.len(), table.rows.len()), (4, 4));
    assert_eq!(table.rule_at(ElfAddress(0x2_0000)), Some(Rule::MISSING));
    assert_eq!(table.rule_at(ElfAddress(0xffff)), None);
    assert_eq!(table.rule_at(ElfAddress(0x4_8000)), None);
    assert!(table.is_empty());
}

#[test]
fn equal_neighbours_share_a_row_and_gaps_have_their_own() {
    let rule = Rule::new(RuleKind::Offset, 7, 8);
    let found = found(&[
        (0x1000..0x1100, &[(0, rule), (16, rule)]),
        (0x1100..0x1200, &[(0, rule)]),
        (0x1300..0x1400, &[(0, Rule::ROOT), (0, rule)]),
    ]);
    let code = 0x1000..0x2000;
    let table = table(std::slice::from_ref(&code), &found);
    let lows: Vec<u16> = table.rows.iter().map(|row| row.low).collect();
    assert_eq!(lows, [0, 0x1000, 0x1200, 0x1300, 0x1400]);
    assert_eq!(table.rule_at(ElfAddress(0x11ff)), Some(rule));
    assert_eq!(table.rule_at(ElfAddress(0x1200)), Some(Rule::MISSING));
    assert_eq!(table.rule_at(ElfAddress(0x1300)), Some(rule));
}

#[test]
fn rows_can_be_given_the_places_of_another_set() {
    let rule = Rule::new(RuleKind::Offset, 7, 8);
    let found = found(&[(0x1000..0x1100, &[(0, rule)])]);
    let code = 0x1000..0x2000;
    let mut table = table(std::slice::from_ref(&code), &found);
    let mut all = RuleSet::new();
    all.place(Rule::ROOT);
    table.adopt(&mut all);
    let rows = table.rows.iter();
    let rules: Vec<Rule> = rows.map(|row| all.rules()[usize::from(row.rule)]).collect();
    assert_eq!(rules, [Rule::MISSING, rule, Rule::MISSING]);
}

#[test]
fn a_table_is_printed_whole_or_at_one_address() {
    let found = found(&[(
        0x1000..0x1100,
        &[
            (0, Rule::new(RuleKind::Offset, 7, 8)),
            (
                16,
                Rule::new(RuleKind::Offset, 6, 16).with_slots(Origin::Cfa, Slot(-2), Slot::LOST),
            ),
        ],
    )]);
    let code = 0x1000..0x2000;
    let table = table(std::slice::from_ref(&code), &found);
    let text = show(&table, None);
    assert!(text.contains("4 rows of 4 rules in 1 pages"), "{text}");
    assert!(text.contains("0x1000  cfa=rsp+8\n"), "{text}");
    assert!(text.contains("0x1100  no unwind info\n"), "{text}");
    assert_eq!(
        show(&table, Some(ElfAddress(0x1080))),
        "        0x1010  cfa=rbp+16 rbp=[cfa-16] rbx lost\n"
    );
    assert_eq!(
        show(&table, Some(ElfAddress(0x9000))),
        "0x9000 is not in the object's code\n"
    );
}

/// The name of the test that runs.
fn thread() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// Compiles a program and has `objcopy` change it; none without these tools.
fn made(folder: &Path, compiler: &[&str], objcopy: &[&str]) -> Option<Vec<u8>> {
    let (source, program) = (folder.join("a.c"), folder.join("a"));
    let text = "int twice(int n) { char room[200]; __builtin_memset(room, n, 200); __asm__ volatile(\"\" :: \"r\"(room)); return room[n & 7]; }\nint main(int n, char **v) { return twice(n) + 1; }\n";
    std::fs::write(&source, text).unwrap();
    let compiled = Command::new("cc")
        .arg("-O2")
        .args(compiler)
        .args([source.as_os_str(), "-o".as_ref(), program.as_os_str()])
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        println!(
            "SKIP {}: there is no C compiler that can do {compiler:?}",
            thread()
        );
        return None;
    }
    if !objcopy.is_empty() {
        let changed = Command::new("objcopy").args(objcopy).arg(&program).status();
        assert!(changed.unwrap().success(), "objcopy {objcopy:?}");
    }
    Some(std::fs::read(program).unwrap())
}

#[test]
fn eh_frame_is_found_without_section_headers() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mut bytes) = made(folder.path(), &[], &[]) else {
        return;
    };
    let whole = UnwindTable::parse(bytes.as_slice()).unwrap();
    assert!(whole.origin.descriptions > 2);
    // The number of section headers, and where they are.
    bytes[60..62].fill(0);
    bytes[40..48].fill(0);
    let headless = UnwindTable::parse(bytes.as_slice()).unwrap();
    assert_eq!(headless.rows, whole.rows);
    assert_eq!(headless.rules, whole.rules);
}

#[test]
fn stacks_end_at_a_function_that_is_returned_to_and_one_byte_before() {
    let code = 0x1000..0x2000;
    let rule = Rule::new(RuleKind::Offset, 7, 8);
    for (before, at_byte_before) in [(0x1f0, Rule::ROOT), (0x200, rule)] {
        let mut found = found(&[
            (0x1100..0x1000 + before, &[(0, rule)]),
            (0x1200..0x1220, &[(0, rule), (4, Rule::UNSUPPORTED)]),
            (0x1230..0x1240, &[(0, rule)]),
        ]);
        found.end_stacks_at(0x1234);
        found.end_stacks_at(0x1200);
        let table = table(std::slice::from_ref(&code), &found);
        let at = |address| table.rule_at(ElfAddress(address)).unwrap();
        assert_eq!(at(0x11ff), at_byte_before);
        assert_eq!([at(0x1200), at(0x1210), at(0x121f)], [Rule::ROOT; 3]);
        assert_eq!(at(0x1220), Rule::MISSING);
        assert_eq!([at(0x1100), at(0x1234)], [rule; 2]);
    }
}

#[test]
fn debug_frame_fills_gaps_of_eh_frame() {
    let folder = tempfile::tempdir().unwrap();
    let without = [
        "-g",
        "-fno-asynchronous-unwind-tables",
        "-fno-unwind-tables",
    ];
    for packing in [&[][..], &["--compress-debug-sections=zlib"]] {
        let Some(bytes) = made(folder.path(), &without, packing) else {
            return;
        };
        let file = object::File::parse(bytes.as_slice()).unwrap();
        use object::{Object as _, ObjectSection as _, ObjectSymbol as _};
        let of = |name| {
            let symbol = file.symbols().find(|symbol| symbol.name() == Ok(name));
            ElfAddress(symbol.unwrap().address())
        };
        assert!(file.section_by_name(".debug_frame").unwrap().size() > 0);
        let table = UnwindTable::parse(bytes.as_slice()).unwrap();
        assert_eq!(
            table.rule_at(of("twice")),
            Some(Rule::new(RuleKind::Offset, 7, 8))
        );
        assert_eq!(table.rule_at(of("_start")), Some(Rule::ROOT));
    }
}

#[test]
fn an_object_other_than_64_bit_x86_is_refused() {
    for bytes in [b"".as_slice(), b"#!/bin/sh", b"\x7fELF\x02\x01\x01"] {
        assert_eq!(UnwindTable::parse(bytes), Err(Error::NotElf));
    }
    let mut other = PROGRAM[..64].to_vec();
    other[18] = 183;
    assert_eq!(
        UnwindTable::parse(other.as_slice()),
        Err(Error::OtherMachine)
    );
}

/// The unwind section of this program, and where its code is: small enough to damage it often.
fn piece() -> (Vec<u8>, u64, Vec<Range<u64>>) {
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let image = crate::object::Image::read(&file).unwrap();
    let sources = source::Sources::find(&image, source::Large::Read).unwrap();
    let section = sources.eh_frame.unwrap();
    (
        section.bytes[..20_000].to_vec(),
        section.address,
        sources.code,
    )
}

fn from_section(
    bytes: Vec<u8>,
    address: u64,
    code: &[Range<u64>],
) -> (UnwindTable, UnwindFindings) {
    let sources = source::Sources {
        code: code.to_vec(),
        loads: Vec::new(),
        eh_frame: Some(source::Section {
            bytes: bytes.clone(),
            address,
        }),
        index: None,
        debug_frame: Some(source::Section { bytes, address }),
        linkage: Vec::new(),
        bases: gimli::BaseAddresses::default().set_eh_frame(address),
    };
    let found = eh_frame::collect(&sources, Vec::new(), None);
    (table(code, &found), found)
}

/// That a table is one that can be walked with, and no larger than what it was made from.
fn check(table: &UnwindTable, found: &UnwindFindings) -> Result<(), TestCaseError> {
    let most = found.changes.len() + 2 * found.stretches.len() + table.pages.len();
    prop_assert!(table.rows.len() <= most);
    for page in &table.pages {
        let rows = &table.rows[page.first as usize..(page.first + page.count) as usize];
        prop_assert_eq!(rows[0].low, 0);
        prop_assert!(rows.is_sorted_by(|a, b| a.low < b.low && a.rule != b.rule));
        prop_assert!(
            rows.iter()
                .all(|row| usize::from(row.rule) < table.rules.len())
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn a_damaged_section_makes_a_table_or_none(
        damage in proptest::collection::vec((0usize..20_000, any::<u8>()), 1..40),
        cut in 0usize..20_000,
    ) {
        let (mut bytes, address, code) = piece();
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        bytes.truncate(20_000 - cut / 4);
        let (table, found) = from_section(bytes, address, &code);
        check(&table, &found)?;
    }

    #[test]
    fn any_bytes_make_a_table_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let (table, found) = from_section(bytes, 0x1000, &[0..0x10_0000, 0x2000_0000..0x2000_1000]);
        check(&table, &found)?;
    }

    #[test]
    fn a_damaged_file_makes_a_table_or_none(
        damage in proptest::collection::vec((0usize..2000, any::<u8>()), 1..10),
        cut in 64usize..200_000,
    ) {
        let mut bytes = PROGRAM[..200_000].to_vec();
        for (at, byte) in damage {
            bytes[at] = byte;
        }
        bytes.truncate(cut);
        if let Ok(table) = UnwindTable::parse(bytes.as_slice()) {
            let _shown = show(&table, None);
        }
    }

    #[test]
    fn compaction_loses_nothing(
        begin in 0u64..0x3_0000,
        stretches in proptest::collection::vec(
            (1u64..0x9000, 0u64..0xa000, proptest::collection::vec((0u32..0x4000, 0i32..3), 1..6)), 0..12),
        apart in 0x1_0000u64..0x5_0000,
    ) {
        // Sorted, and now and then overlapping.
        let mut start = begin;
        let mut given: Vec<(Range<u64>, Vec<Step>)> = Vec::new();
        for (bytes, gap, mut changes) in stretches {
            changes.sort_by_key(|change| change.0);
            changes[0].0 = 0;
            let changes = changes
                .into_iter()
                .map(|(after, size)| (after, Rule::new(RuleKind::Offset, 7, 8 * size)));
            given.push((start..start + bytes, changes.collect()));
            start += gap.max(1);
        }
        let given: Vec<(Range<u64>, &[Step])> = given
            .iter()
            .map(|(addresses, changes)| (addresses.clone(), changes.as_slice()))
            .collect();
        let found = found(&given);
        // A stretch never begins before its code, nor ends behind it.
        let end = given.iter().map(|(addresses, _)| addresses.end).max().unwrap_or(begin + 1);
        let code = [begin..end, end + apart..end + 2 * apart];
        let table = table(&code, &found);
        check(&table, &found)?;
        let edges = given.iter().flat_map(|(addresses, changes)| {
            changes.iter().map(|change| addresses.start + u64::from(change.0)).chain([addresses.end])
        });
        let pages = (0..10).map(|page| page << TABLE_PAGE_BITS);
        for edge in edges.chain(pages).chain([begin, end, end + apart, end + 2 * apart]) {
            for address in edge.saturating_sub(1)..=edge + 1 {
                let found = scan(&code, &found, address);
                prop_assert_eq!(table.rule_at(ElfAddress(address)), found, "at {:#x}", address);
            }
        }
    }
}

#[test]
fn an_oversized_section_is_reported_and_not_read_in_part() {
    let mut bytes = PROGRAM.clone();
    assert!(!UnwindTable::parse(bytes.as_slice()).unwrap().is_empty());
    let word = |bytes: &[u8], at: usize| {
        usize::try_from(u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())).unwrap()
    };
    // Section headers of 64 bytes: the address is the third word, the size the fifth.
    let place = {
        let elf = ::object::File::parse(bytes.as_slice()).unwrap();
        let section = elf.section_by_name(".eh_frame").unwrap();
        word(&bytes, 40) + 64 * section.index().0
    };
    bytes[place + 32..place + 40].copy_from_slice(&(65u64 << 20).to_le_bytes());
    assert_eq!(UnwindTable::parse(bytes.as_slice()), Err(Error::TooLarge));
}
