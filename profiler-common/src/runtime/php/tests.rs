//! Chains in memory made as PHP 8.2 lays it out.

extern crate std;

use super::{CURRENT_EXECUTE_DATA, Php, at, layout::CALL_GENERATOR};
use crate::runtime::{
    Encoding, FunctionInfo as _, NativeFrame,
    memory::{Recorded, StackEntry, walk},
    testing::{assert_distinct, changes, extent, function as shown, walk_changed},
};
use proptest::prelude::*;
use std::{vec, vec::Vec};

const BIAS: u64 = 0x5500_0000_0000;
const CURRENT: u64 = 0x1000;
const LOOP: u64 = 0x4000;
const BODY: u64 = 0x4020;
const COLD: u64 = 0x2000;

const MAIN: u64 = 0x7f00_0001_0000;
const SORT: u64 = 0x7f00_0001_0100;
const COMPARE: u64 = 0x7f00_0001_0200;

const FILE: u64 = 0x7f00_0002_0000;
const CODE_OF_FILE: u64 = 0x7f00_0003_0000;
const USORT: u64 = 0x7f00_0003_1000;
const ITEM_COMPARE: u64 = 0x7f00_0003_2000;
const ITEM: u64 = 0x7f00_0004_0000;

const TOP: u64 = 1 << 17;

fn text(process: &mut Recorded, address: u64, hash: u64, text: &str) {
    process.words(address, &[1, hash, text.len() as u64]);
    process.bytes(address + 24, text.as_bytes());
    process.bytes(address + 24 + text.len() as u64, &[0; 8]);
}

/// A function with its name at +0x400 and ten instructions at +0x600, on lines 100 to 109 from its own first line.
fn function(process: &mut Recorded, address: u64, kind: u64, name: &str, class: u64, line: u64) {
    text(process, address + 0x400, 0, name);
    let name = if name.is_empty() { 0 } else { address + 0x400 };
    process.words(address, &[0; 21]);
    process.words(address, &[kind, name, class]);
    process.words(address + 80, &[10, address + 0x600]);
    process.words(address + 152, &[FILE, line]);
    for place in 0..10 {
        let line = line + 100 + place;
        process.words(address + 0x600 + 32 * place + 24, &[line]);
    }
}

fn instruction(function: u64, place: u64) -> u64 {
    function + 0x600 + 32 * place
}

fn frame(process: &mut Recorded, address: u64, function: u64, place: u64, info: u64, next: u64) {
    let instruction = instruction(function, place);
    process.words(address, &[instruction, 0, 0, function, 0, info, next]);
}

/// `Item::compare`, called by `usort`, called by the code of a file.
fn process() -> Recorded {
    let mut process = Recorded {
        bias: BIAS,
        ..Recorded::default()
    };
    process.describe(&[
        (at::CURRENT, CURRENT),
        (at::OPCODES, 88),
        (at::OPCODE_COUNT, 80),
        (at::FILE, 152),
        (at::BODY, BODY),
        (at::LOOP, LOOP),
        (at::LOOP + 1, 0x5000),
        (at::LOOP + 2, COLD),
        (at::LOOP + 3, 0x2100),
    ]);
    text(&mut process, FILE, 77, "/srv/a.php");
    process.words(ITEM, &[0, ITEM + 0x100]);
    text(&mut process, ITEM + 0x100, 78, "Item");
    function(&mut process, CODE_OF_FILE, 2, "", 0, 1);
    function(&mut process, USORT, 1, "usort", 0, 0);
    function(&mut process, ITEM_COMPARE, 2, "compare", ITEM, 7);
    frame(&mut process, MAIN, CODE_OF_FILE, 4, TOP, 0);
    frame(&mut process, SORT, USORT, 0, 0, MAIN);
    frame(&mut process, COMPARE, ITEM_COMPARE, 2, TOP, SORT);
    process.words(BIAS + CURRENT, &[COMPARE]);
    process
}

/// A native frame; `saved` is what the function that it calls saved, first to last.
fn native(process: &mut Recorded, address: u64, sp: u64, saved: [u64; 2]) -> NativeFrame {
    process.words(sp - 32, &[0x55, saved[1], saved[0]]);
    NativeFrame {
        address,
        sp,
        caller_sp: sp + 0xa0,
        ..NativeFrame::default()
    }
}

const STACK: u64 = 0x7ffc_0000_0000;

/// The loop in a callback, the sort that calls it, the loop in the file's code.
fn stack(process: &mut Recorded) -> [NativeFrame; 3] {
    let inner = NativeFrame {
        is_first: 1,
        ..native(process, LOOP + 0x100, STACK, [0, 0])
    };
    process.registers[14] = COMPARE;
    process.registers[15] = instruction(ITEM_COMPARE, 3);
    [
        inner,
        native(process, 0x9000, STACK + 0x1000, [0, 0]),
        native(
            process,
            LOOP + 0x200,
            STACK + 0x2000,
            [instruction(CODE_OF_FILE, 4), MAIN],
        ),
    ]
}

const USORT_SHOWN: StackEntry = StackEntry::Function {
    function: USORT,
    position: 0,
};

#[test]
fn a_callback_stands_before_its_loop_and_the_sort_behind() {
    let mut process = process();
    let stack = stack(&mut process);
    let expected = [
        shown(ITEM_COMPARE, 110),
        StackEntry::Native(0),
        StackEntry::Native(1),
        USORT_SHOWN,
        shown(CODE_OF_FILE, 105),
        StackEntry::Native(2),
    ];
    assert_eq!(walk::<Php>(&process, &stack, false), expected);
    // Where the registers are not the loop's, the frame says the instruction.
    process.descriptor[at::BODY] = 0;
    process.registers = [0; 16];
    let mut saved = expected;
    saved[0] = shown(ITEM_COMPARE, 109);
    assert_eq!(walk::<Php>(&process, &stack, false), saved);
}

#[test]
fn variables_of_a_library_that_lie_in_the_program_are_found() {
    const SLOT: u64 = 0x9000;
    const GLOBALS: u64 = 0x55_5555_7000;
    let mut process = process();
    let stack = stack(&mut process);
    let own = walk::<Php>(&process, &stack, false);
    process.descriptor[at::SLOT] = SLOT;
    process.words(BIAS + SLOT, &[GLOBALS]);
    process.words(GLOBALS + CURRENT_EXECUTE_DATA, &[COMPARE]);
    // The library's own are not in use.
    process.words(BIAS + CURRENT, &[SORT]);
    assert_eq!(walk::<Php>(&process, &stack, false), own);
}

#[test]
fn the_cold_part_of_the_loop_is_the_loop() {
    let mut process = process();
    let mut stack = stack(&mut process);
    stack[2].address = COLD + 0x20;
    let shown = walk::<Php>(&process, &stack, false);
    assert_eq!(
        shown[3..],
        [
            USORT_SHOWN,
            self::shown(CODE_OF_FILE, 105),
            StackEntry::Native(2)
        ]
    );
    // An address behind either part is not in the loop.
    stack[2].address = COLD + 0x100;
    assert_eq!(walk::<Php>(&process, &stack, false).len(), 4);
}

#[test]
fn the_rest_of_the_chain_follows_where_the_native_walk_breaks() {
    let mut process = process();
    let stack = stack(&mut process);
    let rest = [USORT_SHOWN, shown(CODE_OF_FILE, 105)];
    let walked = walk::<Php>(&process, &stack[..2], true);
    assert_eq!(
        walked[..3],
        [
            shown(ITEM_COMPARE, 110),
            StackEntry::Native(0),
            StackEntry::Native(1)
        ]
    );
    assert_eq!(walked[3..], rest);
    let walked = walk::<Php>(&process, &[], true);
    assert_eq!(walked[0], shown(ITEM_COMPARE, 109));
    assert_eq!(walked[1..], rest);
}

#[test]
fn an_unlinked_frame_that_still_runs_has_its_level() {
    // The callback has returned and frees what it leaves: the loop itself, or a function that it calls.
    for is_first in [1, 0] {
        let mut process = process();
        let mut stack = stack(&mut process);
        process.words(BIAS + CURRENT, &[SORT]);
        stack[0] = native(&mut process, LOOP + 0x100, STACK, [COMPARE, 0x1234]);
        stack[0].is_first = is_first;
        let walked = walk::<Php>(&process, &stack, false);
        let line = if is_first == 1 { 110 } else { 109 };
        assert_eq!(
            walked[..2],
            [shown(ITEM_COMPARE, line), StackEntry::Native(0)]
        );
        assert_eq!(walked[3..5], [USORT_SHOWN, shown(CODE_OF_FILE, 105)]);
    }
}

#[test]
fn an_unlinked_frame_is_found_by_where_it_stands() {
    // A function has returned, and the destructor of what it leaves runs: nobody has saved the loop's registers.
    const HOLDER: u64 = 0x7f00_0003_3000;
    const SIZE: u64 = 16 * 5;
    let mut process = process();
    process.descriptor[at::TEMPORARIES] = 56;
    let mut stack = stack(&mut process);
    function(&mut process, HOLDER, 2, "holder", 0, 20);
    let (holder, destructor) = (MAIN + SIZE, MAIN + 2 * SIZE);
    frame(&mut process, holder, HOLDER, 3, 0, MAIN);
    frame(&mut process, destructor, ITEM_COMPARE, 2, TOP, MAIN);
    process.words(BIAS + CURRENT, &[destructor]);
    process.registers[14] = destructor;
    stack[2] = native(&mut process, LOOP + 0x200, STACK + 0x2000, [0, 0]);
    let expected = [
        shown(ITEM_COMPARE, 110),
        StackEntry::Native(0),
        StackEntry::Native(1),
        shown(HOLDER, 123),
        shown(CODE_OF_FILE, 105),
        StackEntry::Native(2),
    ];
    assert_eq!(walk::<Php>(&process, &stack, false), expected);
    // It does not fit between the others: a frame from before.
    process.words(HOLDER + 56, &[1]);
    let walked = walk::<Php>(&process, &stack, false);
    assert_eq!(
        walked[3..],
        [shown(CODE_OF_FILE, 105), StackEntry::Native(2)]
    );
}

#[test]
fn a_generator_that_has_moved_is_shown_once() {
    const OLD: u64 = 0x7f00_0001_0300;
    let mut process = process();
    let mut stack = stack(&mut process);
    let info = TOP | CALL_GENERATOR;
    frame(&mut process, COMPARE, ITEM_COMPARE, 2, info, MAIN);
    // Where it stood before still says who called it, and the loop has the address in a register.
    frame(&mut process, OLD, ITEM_COMPARE, 1, TOP, MAIN);
    stack[2] = native(&mut process, LOOP + 0x200, STACK + 0x2000, [0, OLD]);
    let walked = walk::<Php>(&process, &stack, false);
    assert_eq!(
        walked[3..],
        [shown(CODE_OF_FILE, 105), StackEntry::Native(2)]
    );
}

#[test]
fn a_frame_that_was_shown_is_not_unlinked() {
    // The loop's callee keeps the callback's frame in the register where others save the loop's.
    let mut process = process();
    let mut stack = stack(&mut process);
    frame(&mut process, COMPARE, ITEM_COMPARE, 2, TOP, MAIN);
    stack[2] = native(&mut process, LOOP + 0x200, STACK + 0x2000, [COMPARE, 0]);
    let walked = walk::<Php>(&process, &stack, false);
    assert_eq!(
        walked[3..],
        [shown(CODE_OF_FILE, 105), StackEntry::Native(2)]
    );
}

#[test]
fn a_loop_that_is_about_to_return_has_no_level() {
    let mut process = process();
    let stack = stack(&mut process);
    process.words(BIAS + CURRENT, &[SORT]);
    process.registers[14] = 0x1234;
    let walked = walk::<Php>(&process, &stack, false);
    assert_eq!(walked[..2], [StackEntry::Native(0), StackEntry::Native(1)]);
    assert_eq!(walked[2..4], [USORT_SHOWN, shown(CODE_OF_FILE, 105)]);
}

#[test]
fn a_loop_that_has_just_been_entered_has_its_level() {
    let mut process = process();
    let mut stack = stack(&mut process);
    stack[0].address = LOOP + 4;
    process.registers[14] = 0x1234;
    let walked = walk::<Php>(&process, &stack, false);
    assert_eq!(
        walked[..2],
        [shown(ITEM_COMPARE, 109), StackEntry::Native(0)]
    );
}

#[test]
fn a_function_whose_loop_is_not_entered_yet_is_not_shown() {
    let mut process = process();
    let stack = stack(&mut process);
    let walked = walk::<Php>(&process, &stack[1..], false);
    let expected = [
        StackEntry::Native(0),
        USORT_SHOWN,
        shown(CODE_OF_FILE, 105),
        StackEntry::Native(1),
    ];
    assert_eq!(walked, expected);
}

#[test]
fn included_code_that_has_just_been_linked_is_in_the_level() {
    let mut process = process();
    let stack = stack(&mut process);
    frame(&mut process, COMPARE, ITEM_COMPARE, 0, 0, MAIN);
    process.registers[14] = MAIN;
    let walked = walk::<Php>(&process, &stack[..1], false);
    let expected = [
        shown(ITEM_COMPARE, 107),
        shown(CODE_OF_FILE, 105),
        StackEntry::Native(0),
    ];
    assert_eq!(walked, expected);
}

#[test]
fn frames_without_a_function_are_passed() {
    let mut process = process();
    let stack = stack(&mut process);
    process.words(SORT, &[0, 0, 0, 0, 0, 0, MAIN]);
    let walked = walk::<Php>(&process, &stack, false);
    assert_eq!(
        walked[3..],
        [shown(CODE_OF_FILE, 105), StackEntry::Native(2)]
    );
    // Nor one whose function has no name, and is no code.
    frame(&mut process, SORT, USORT, 0, 0, MAIN);
    function(&mut process, USORT, 1, "", 0, 0);
    let walked = walk::<Php>(&process, &stack, false);
    assert_eq!(
        walked[3..],
        [shown(CODE_OF_FILE, 105), StackEntry::Native(2)]
    );
    // But not for ever.
    process.words(SORT, &[0, 0, 0, 0, 0, 0, SORT]);
    let walked = walk::<Php>(&process, &stack, false);
    assert_eq!(walked[3..], [StackEntry::Broken, StackEntry::Native(2)]);
}

#[test]
fn generators_that_delegate_to_others_are_shown() {
    /// The object of a generator, with its frame behind it.
    const fn generator(number: u64) -> u64 {
        0x5600_0000_0000 + 0x1000 * number
    }
    const FRAME: u64 = 0x400;
    for depth in [2, 3, 8] {
        let mut process = process();
        // The callback is a generator, and the others delegate to it, one to the next.
        let stands_for = generator(depth - 1);
        for number in 0..depth {
            let own = if number == 0 {
                COMPARE
            } else {
                generator(number) + FRAME
            };
            let parent = if number == 0 {
                0
            } else {
                generator(number - 1)
            };
            process.words(generator(number) + 56, &[own]);
            process.words(generator(number) + 152, &[parent]);
            if number > 0 {
                frame(&mut process, own, ITEM_COMPARE, number, TOP, 0x77);
            }
        }
        let placeholder = stands_for + 184;
        process.words(placeholder, &[0, 0, 0, 0, stands_for, 8, SORT]);
        frame(&mut process, COMPARE, ITEM_COMPARE, 2, TOP, placeholder);
        let natives = stack(&mut process);
        let walked = walk::<Php>(&process, &natives, false);
        let functions: Vec<u64> = walked
            .iter()
            .filter_map(|shown| match shown {
                StackEntry::Function { function, .. } => Some(*function),
                _ => None,
            })
            .collect();
        let mut expected = vec![ITEM_COMPARE; depth as usize];
        expected.extend([USORT, CODE_OF_FILE]);
        assert_eq!(functions, expected, "{walked:?}");
        // They run nothing: the level is that of whoever asked for a value.
        assert_eq!(walked[1], StackEntry::Native(0));
        assert_eq!(walked[2], StackEntry::Native(1));
    }
}

#[test]
fn an_endless_chain_ends() {
    let mut process = process();
    let stack = stack(&mut process);
    frame(&mut process, SORT, USORT, 0, 0, SORT);
    let walked = walk::<Php>(&process, &stack, false);
    assert_eq!(walked.len(), 1024 + 1);
}

#[test]
fn memory_that_is_no_function_is_a_mark() {
    let mut process = process();
    let stack = stack(&mut process);
    process.words(CODE_OF_FILE, &[3]);
    let walked = walk::<Php>(&process, &stack, false);
    assert_eq!(
        walked[3..],
        [USORT_SHOWN, StackEntry::Broken, StackEntry::Native(2)]
    );
}

#[test]
fn a_process_that_runs_no_php_shows_native_frames() {
    let mut process = process();
    let stack = stack(&mut process);
    process.words(BIAS + CURRENT, &[0]);
    process.registers = [0; 16];
    let only_native = vec![
        StackEntry::Native(0),
        StackEntry::Native(1),
        StackEntry::Native(2),
    ];
    assert_eq!(walk::<Php>(&process, &stack, true), only_native);
    process.memory.clear();
    assert_eq!(walk::<Php>(&process, &stack, true), only_native);
}

#[test]
fn functions_at_one_address_have_different_checks() {
    let mut process = process();
    let mut checks = vec![];
    for (name, class, line) in [
        ("compare", ITEM, 7),
        ("compared", ITEM, 7),
        ("compare", 0, 7),
        ("compare", ITEM, 8),
    ] {
        function(&mut process, ITEM_COMPARE, 2, name, class, line);
        checks.push(Php::check(&process, ITEM_COMPARE).unwrap());
    }
    function(&mut process, ITEM_COMPARE, 2, "compare", ITEM, 7);
    for hash in [1000, 1001] {
        process.words(FILE + 8, &[hash]);
        checks.push(Php::check(&process, ITEM_COMPARE).unwrap());
    }
    assert_distinct(&checks);
}

#[test]
fn strings_are_found() {
    let process = process();
    let strings = Php::strings(&process, ITEM_COMPARE).unwrap();
    assert_eq!(extent(strings.owner), (ITEM + 0x118, 4));
    assert_eq!(extent(strings.name), (ITEM_COMPARE + 0x418, 7));
    assert_eq!(extent(strings.file), (FILE + 24, 10));
    assert_eq!(strings.name.encoding, Encoding::Bytes as u32);
    assert_eq!((strings.first_line, strings.extra), (7, 0));
    let strings = Php::strings(&process, USORT).unwrap();
    assert_eq!((strings.owner.address, strings.file.address), (0, 0));
    assert_eq!((strings.first_line, strings.extra), (0, 1));
    assert_eq!(
        Php::strings(&process, CODE_OF_FILE).unwrap().name.address,
        0
    );
    assert_eq!(Php::strings(&process, FILE + 0x1000), None);
}

proptest! {
    #[test]
    fn broken_memory_ends_and_keeps_the_native_frames(changes in changes(), breaks: bool) {
        let mut process = process();
        let stack = stack(&mut process);
        let pointers = [MAIN, SORT, COMPARE, USORT, ITEM_COMPARE, CODE_OF_FILE, 0, u64::MAX];
        walk_changed::<Php>(process, &stack, (changes, &pointers), breaks)?;
    }
}
