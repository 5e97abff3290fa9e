//! Chains in memory made as perl 5.36 lays it out.

extern crate std;

use super::{OF_FILE, Perl, at};
use crate::runtime::{
    Encoding, FunctionInfo as _, NativeFrame,
    memory::{Recorded, StackEntry, walk},
    testing::{assert_distinct, changes, extent, function as shown, walk_changed},
};
use proptest::prelude::*;
use std::vec;

const BIAS: u64 = 0x5500_0000_0000;
const KEY: u64 = 0x1000;
const LOOP: u64 = 0x4000;
const THREAD: u64 = 0x7f11_0000_0000;
const INTERPRETER: u64 = 0x7f00_0001_0000;
const MAIN: u64 = 0x7f00_0002_0000;
const SORT: u64 = 0x7f00_0002_1000;
const OP: u64 = 0x7f00_0003_0000;
const WORK: u64 = 0x7f00_0004_0000;
const COMPARE: u64 = 0x7f00_0004_1000;
const ANONYMOUS: u64 = 0x7f00_0004_2000;
const PACKAGE: u64 = 0x7f00_0005_0000;
const FILE: u64 = 0x7f00_0006_0000;
const EVAL_FILE: u64 = 0x7f00_0006_0100;
const STATEMENTS: u64 = 0x7f00_0007_0000;
const STACK: u64 = 0x7ffc_0000_0000;

const SUB: u64 = 9;
const EVAL: u64 = 11;
const BLOCK: u64 = 2;
const TRY: u64 = 0x40;

/// The statement on a line.
const fn statement(line: u64) -> u64 {
    STATEMENTS + 0x60 * line
}

fn name(process: &mut Recorded, address: u64, text: &str, flags: u8) {
    process.words(address, &[(text.len() as u64) << 32 | 0x1234]);
    process.bytes(address + 8, text.as_bytes());
    let end = address + 8 + text.len() as u64;
    process.bytes(end, &[0, flags, 0, 0, 0, 0, 0, 0]);
}

/// In the word of a sub's flags: its name is held without a glob.
const NAMED: u64 = 0x8000 << 32;

/// A sub whose name is held without a glob.
fn sub(process: &mut Recorded, address: u64, text: &str, line: u64) {
    process.words(address, &[address + 0x100, 13 << 32 | 1, 0]);
    name(process, address + 0x200, text, 0);
    let start = statement(line);
    let flags = NAMED;
    process.words(
        address + 0x120,
        &[PACKAGE, start, 0, address + 0x200, FILE, 0, 0, flags],
    );
}

fn stack(process: &mut Recorded, address: u64, kind: u64, previous: u64, contexts: &[[u64; 5]]) {
    let last = u64::from((contexts.len() as u32).wrapping_sub(1));
    let words = [0, address + 0x100, previous, 0, 50 << 32 | last, kind << 32];
    process.words(address, &words);
    for (place, [kind, statement, returns_to, sub, env]) in contexts.iter().enumerate() {
        let place = address + 0x100 + 0x68 * place as u64;
        process.words(place, &[*kind, 0, *statement, 0, 0, 0, *returns_to]);
        process.words(place + 56, &[0, 0, *sub, 0, 0, *env]);
    }
}

/// The context of `work`.
const WORKING: [u64; 5] = [SUB, statement(30), OP, WORK, 0];

/// `work` on line 12, called on line 30.
fn process() -> Recorded {
    let mut process = Recorded {
        bias: BIAS,
        thread_pointer: THREAD,
        ..Recorded::default()
    };
    process.describe(&[
        (at::KEY, KEY),
        (at::LOOP, LOOP),
        (at::LOOP + 1, LOOP + 0x50),
        (at::LOOP + 2, 0x3000),
        (at::LOOP + 3, 0x3100),
        (at::RUNOPS, 0x8f0),
    ]);
    process.words(BIAS + KEY, &[3]);
    process.words(THREAD + 1296, &[THREAD + 0x310]);
    process.words(THREAD + 0x310 + 16 * 3 + 8, &[INTERPRETER]);
    process.words(INTERPRETER + 8, &[OP]);
    process.words(INTERPRETER + 0xd0, &[statement(12), 0, MAIN]);
    process.words(INTERPRETER + 0x8f0, &[BIAS + LOOP]);
    process.bytes(FILE, b"/srv/a.pl\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    process.bytes(EVAL_FILE, b"(eval 3)\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    for line in 1..50 {
        let file = if line < 40 { FILE } else { EVAL_FILE };
        process.words(statement(line) + 0x20, &[line << 32, 0, file]);
    }
    process.words(PACKAGE, &[PACKAGE + 0x100, (0x0200_0000 | 12) << 32, 0]);
    process.words(PACKAGE + 0x120, &[PACKAGE + 0x200, 0, 0, 0]);
    name(&mut process, PACKAGE + 0x200, "main", 0);
    sub(&mut process, WORK, "work", 11);
    sub(&mut process, COMPARE, "compare", 21);
    let contexts = [[BLOCK, 0, 0, 0, 0], WORKING];
    stack(&mut process, MAIN, 1, 0, &contexts);
    process
}

/// Frames of the loop, from the innermost.
fn natives<const N: usize>() -> [NativeFrame; N] {
    std::array::from_fn(|place| NativeFrame {
        address: LOOP + 0x16,
        sp: STACK + 0x100 * place as u64,
        caller_sp: STACK + 0x100 * place as u64 + 0x10,
        ..NativeFrame::default()
    })
}

#[test]
fn subs_stand_before_the_code_of_their_file() {
    let process = process();
    let expected = [
        shown(WORK, 12),
        shown(FILE | OF_FILE, 30),
        StackEntry::Native(0),
    ];
    assert_eq!(walk::<Perl>(&process, &natives::<1>(), false), expected);
    // The same where the native walk breaks before it comes to the loop.
    assert_eq!(walk::<Perl>(&process, &[], true), expected[..2]);
}

/// `compare` on line 22, called by `sort` on line 12.
fn sorting(process: &mut Recorded, contexts: &[[u64; 5]]) {
    stack(process, SORT, 3, MAIN, contexts);
    process.words(INTERPRETER + 0xd0, &[statement(22), 0, SORT]);
}

const COMPARED: [u64; 5] = [SUB, statement(12), 0, COMPARE, 0];

#[test]
fn what_sort_calls_is_a_level_of_its_own() {
    let mut process = process();
    sorting(&mut process, &[COMPARED]);
    let rest = [
        StackEntry::Native(0),
        shown(WORK, 12),
        shown(FILE | OF_FILE, 30),
        StackEntry::Native(1),
    ];
    let walked = walk::<Perl>(&process, &natives::<2>(), false);
    assert_eq!(walked[0], shown(COMPARE, 22));
    assert_eq!(walked[1..], rest);
    // A block has no sub.
    sorting(&mut process, &[[0, statement(12), 0, 0, 0]]);
    assert_eq!(walk::<Perl>(&process, &natives::<2>(), false), rest);
    // Between two comparisons, the sub does not run.
    sorting(&mut process, &[COMPARED]);
    process.words(INTERPRETER + 8, &[0]);
    let walked = walk::<Perl>(&process, &natives::<1>(), false);
    assert_eq!(walked, [rest[1], rest[2], StackEntry::Native(0)]);
}

#[test]
fn a_call_that_ends_a_block_of_sort_or_of_a_pattern_is_in_its_level() {
    for base in [0, SUB | 0x80] {
        let mut process = process();
        let base = [base, statement(12), 0, WORK, 0];
        sorting(&mut process, &[base, [SUB, statement(12), 0, COMPARE, 0]]);
        let expected = [
            shown(COMPARE, 22),
            StackEntry::Native(0),
            shown(WORK, 12),
            shown(FILE | OF_FILE, 30),
            StackEntry::Native(1),
        ];
        assert_eq!(walk::<Perl>(&process, &natives::<2>(), true), expected);
    }
}

#[test]
fn an_eval_that_called_the_loop_again_is_in_its_level() {
    let mut process = process();
    let env = STACK + 0x80;
    sorting(
        &mut process,
        &[COMPARED, [EVAL | TRY, statement(21), OP, 0, env]],
    );
    let expected = [
        shown(COMPARE, 22),
        StackEntry::Native(0),
        StackEntry::Native(1),
        shown(WORK, 12),
        shown(FILE | OF_FILE, 30),
        StackEntry::Native(2),
    ];
    assert_eq!(walk::<Perl>(&process, &natives::<3>(), false), expected);
    // Of an eval that called no loop, errors jump elsewhere.
    sorting(
        &mut process,
        &[COMPARED, [EVAL | TRY, statement(21), OP, 0, STACK + 0x1000]],
    );
    let walked = walk::<Perl>(&process, &natives::<2>(), false);
    assert_eq!(walked[..2], expected[..2]);
    assert_eq!(walked[2..4], expected[3..5]);
}

#[test]
fn an_eval_in_a_guarded_sub_has_not_called_the_loop() {
    let mut process = process();
    let env = STACK + 0x80;
    let guard = [EVAL | TRY, statement(12), 0, 0, STACK + 0x1000];
    let eval = [EVAL | TRY, statement(21), OP, 0, env];
    stack(&mut process, SORT, 6, MAIN, &[guard, COMPARED, eval]);
    process.words(INTERPRETER + 0xd0, &[statement(22), 0, SORT]);
    let expected = [
        shown(COMPARE, 22),
        StackEntry::Native(0),
        shown(WORK, 12),
        shown(FILE | OF_FILE, 30),
        StackEntry::Native(1),
    ];
    assert_eq!(walk::<Perl>(&process, &natives::<2>(), false), expected);
}

#[test]
fn strings_that_are_run_and_files_have_frames() {
    let mut process = process();
    let eval = [EVAL, statement(12), OP, 0, STACK + 0x1000];
    let contexts = [[BLOCK, 0, 0, 0, 0], WORKING, eval];
    stack(&mut process, MAIN, 1, 0, &contexts);
    process.words(INTERPRETER + 0xd0, &[statement(45), 0, MAIN]);
    let walked = walk::<Perl>(&process, &natives::<1>(), false);
    assert_eq!(
        walked[..2],
        [shown(EVAL_FILE | OF_FILE, 45), shown(WORK, 12)]
    );
    let strings = Perl::strings(&process, EVAL_FILE | OF_FILE).unwrap();
    assert_eq!(strings.name.address, EVAL_FILE);
    // Before the first statement runs, the file is not known.
    process.words(INTERPRETER + 0xd0, &[statement(12), 0, MAIN]);
    let walked = walk::<Perl>(&process, &natives::<1>(), false);
    assert_eq!(walked[0], shown(WORK, 12));
}

#[test]
fn a_thread_has_no_main_program() {
    let mut process = process();
    let guard = [EVAL | TRY, 0, 0, 0, 0];
    stack(&mut process, MAIN, 1, 0, &[guard, [SUB, 0, 0, WORK, 0]]);
    let walked = walk::<Perl>(&process, &natives::<1>(), true);
    assert_eq!(walked, [shown(WORK, 12), StackEntry::Native(0)]);
}

#[test]
fn a_thread_that_runs_no_perl_shows_native_frames() {
    let natives = natives::<1>();
    let mut process = process();
    process.words(INTERPRETER + 0x8f0, &[BIAS + 0x9000]);
    assert_eq!(
        walk::<Perl>(&process, &natives, true),
        [StackEntry::Native(0)]
    );
    process.words(INTERPRETER + 0x8f0, &[BIAS + LOOP]);
    stack(&mut process, MAIN, 1, 0, &[]);
    assert_eq!(
        walk::<Perl>(&process, &natives, true),
        [StackEntry::Native(0)]
    );
    process.memory.clear();
    assert_eq!(
        walk::<Perl>(&process, &natives, true),
        [StackEntry::Native(0)]
    );
}

#[test]
fn names_are_found() {
    let mut process = process();
    let strings = Perl::strings(&process, WORK).unwrap();
    assert_eq!(extent(strings.owner), (PACKAGE + 0x208, 4));
    assert_eq!(extent(strings.name), (WORK + 0x208, 4));
    assert_eq!(strings.name.encoding, Encoding::Latin1 as u32);
    assert_eq!((strings.file.address, strings.first_line), (FILE, 11));
    name(&mut process, WORK + 0x200, "\u{e9}t\u{e9}", 1);
    let strings = Perl::strings(&process, WORK).unwrap();
    assert_eq!(strings.name.encoding, Encoding::Bytes as u32);
    // By a glob.
    let glob = ANONYMOUS + 0x400;
    sub(&mut process, ANONYMOUS, "", 11);
    process.words(ANONYMOUS + 0x138, &[glob, FILE, 0, 0, 0x80 << 32]);
    process.words(glob, &[glob + 0x100, 9 << 32, glob + 0x200]);
    name(&mut process, glob + 0x300, "__ANON__", 0);
    process.words(glob + 0x120, &[glob + 0x300, PACKAGE]);
    process.words(glob + 0x238, &[glob]);
    let strings = Perl::strings(&process, ANONYMOUS).unwrap();
    assert_eq!(strings.name.address, glob + 0x308);
    assert_eq!(strings.owner.address, PACKAGE + 0x208);
    assert_eq!(Perl::strings(&process, glob), None);
}

#[test]
fn subs_at_one_address_have_different_checks() {
    let mut process = process();
    let mut checks = vec![];
    for (line, sequence) in [(11, 1), (11, 2), (12, 1)] {
        sub(&mut process, WORK, "work", line);
        process.words(WORK + 0x120 + 0x38, &[NAMED | sequence]);
        checks.push(Perl::check(&process, WORK).unwrap());
    }
    // Under another name, and out of another file.
    for place in [0x18, 0x20] {
        process.words(WORK + 0x120 + place, &[WORK + 0x300]);
        checks.push(Perl::check(&process, WORK).unwrap());
    }
    assert_distinct(&checks);
    // Bytes behind the end of a file's name are not part of it.
    let before = Perl::check(&process, FILE | OF_FILE);
    process.bytes(FILE + 12, b"abc");
    assert_eq!(Perl::check(&process, FILE | OF_FILE), before);
}

proptest! {
    #[test]
    fn broken_memory_ends_and_keeps_the_native_frames(changes in changes(), breaks: bool) {
        let mut process = process();
        sorting(&mut process, &[COMPARED, [EVAL | TRY, statement(21), OP, 0, STACK + 0x80]]);
        let pointers = [MAIN, SORT, COMPARE, WORK, PACKAGE, FILE, 0, u64::MAX];
        walk_changed::<Perl>(process, &natives::<3>(), (changes, &pointers), breaks)?;
    }
}

/// The glob of a file, as statements have it without ithreads.
const FILE_GLOB: u64 = 0x7f00_0006_1000;
/// Variables of a perl without ithreads.
const VARIABLES: u64 = 0x8000;

/// As [`process`], without ithreads.
fn process_without_threads() -> Recorded {
    let mut process = process();
    process.describe(&[
        (at::KEY, 0),
        (at::RUNOPS, VARIABLES),
        (at::OP, VARIABLES + 0x40),
        (at::STATEMENT, VARIABLES + 0x80),
        (at::STACK, VARIABLES + 0xc0),
    ]);
    for (place, word) in [BIAS + LOOP, OP, statement(12), MAIN]
        .into_iter()
        .enumerate()
    {
        process.words(BIAS + VARIABLES + 0x40 * place as u64, &[word]);
    }
    process.words(THREAD + 1296, &[0]);
    process.words(FILE_GLOB, &[FILE_GLOB + 0x100, 9 << 32, 0]);
    process.words(FILE_GLOB + 0x120, &[FILE_GLOB + 0x200, PACKAGE]);
    name(&mut process, FILE_GLOB + 0x200, "_</srv/a.pl", 0);
    for line in 1..50 {
        process.words(statement(line) + 0x20, &[line << 32, 0, FILE_GLOB]);
    }
    process
}

#[test]
fn a_perl_without_ithreads_has_its_interpreter_in_variables() {
    let process = process_without_threads();
    // The name of the file, behind the hash, the length and `_<` of the glob's.
    let file = FILE_GLOB + 0x200 + 8 + 2;
    let expected = [
        shown(WORK, 12),
        shown(file | OF_FILE, 30),
        StackEntry::Native(0),
    ];
    assert_eq!(walk::<Perl>(&process, &natives::<1>(), false), expected);
    // Of a thread that has no frame of perl's, it is not known whether it runs Perl.
    assert_eq!(walk::<Perl>(&process, &[], true), []);
    let strings = Perl::strings(&process, file | OF_FILE).unwrap();
    assert_eq!((strings.file.address, strings.name.address), (file, 0));
}

#[test]
fn a_perl_without_ithreads_is_believed_if_it_makes_sense() {
    for (place, word) in [(0, BIAS + 0x9999), (3, 0x1234), (3, OP)] {
        let mut process = process_without_threads();
        process.words(BIAS + VARIABLES + 0x40 * place, &[word]);
        let walked = walk::<Perl>(&process, &natives::<1>(), false);
        assert_eq!(walked, [StackEntry::Native(0)]);
    }
    // A glob that is none, and one that is not a file's.
    let mut process = process_without_threads();
    name(&mut process, FILE_GLOB + 0x200, "STDOUT", 0);
    let walked = walk::<Perl>(&process, &natives::<1>(), false);
    assert_eq!(walked, [shown(WORK, 12), StackEntry::Native(0)]);
    process.words(FILE_GLOB, &[0, 0, 0]);
    let walked = walk::<Perl>(&process, &natives::<1>(), false);
    assert_eq!(walked, [shown(WORK, 12), StackEntry::Native(0)]);
}
