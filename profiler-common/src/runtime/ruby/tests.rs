//! Chains in memory made as Ruby 3.1 lays it out.

extern crate std;

use super::{Access, ClassPath, Length, Ruby, at};
use crate::runtime::{
    Encoding, FunctionInfo as _, NativeFrame,
    memory::{Recorded, StackEntry, walk},
    testing::{assert_distinct, changes, extent, function, walk_changed},
};
use proptest::prelude::*;
use std::{vec, vec::Vec};

const BIAS: u64 = 0x7f00_0000_0000;
const THREAD: u64 = 0x5500_0000_0000;
const BLOCK: u64 = 0x5500_0000_1000;
const MODULE: u64 = 0x1000;
const CONTEXT: u64 = 0x5500_0000_2000;
const STACK: u64 = 0x5500_0010_0000;
const STACK_WORDS: u64 = 0x1000;
const FRAME_BYTES: u64 = 64;

const EXECUTE: u64 = 0x4000;
const LOOP: u64 = 0x6000;
const LOOP_BODY: u64 = 0x6020;
const NATIVE: u64 = 0x7ffc_0000_0000;

const MAIN: u64 = 0x5500_0020_0000;
const COMPARE: u64 = 0x5500_0020_1000;

const FINISH: u64 = 0x20;
const METHOD: u64 = 0x1111_0001;
const IN_BLOCK: u64 = 0x2222_0001;
const EVAL: u64 = 0x7777_0001;
const C: u64 = 0x5555_0081;

/// The place of a frame, counted from the outermost.
const fn place(number: u64) -> u64 {
    STACK + 8 * STACK_WORDS - (2 + number) * FRAME_BYTES
}

fn text(process: &mut Recorded, address: u64, text: &str) {
    process.bytes(address, &[0; 48]);
    if text.len() < 24 {
        process.words(address, &[5 | (text.len() as u64) << 14, 0]);
        process.bytes(address + 16, text.as_bytes());
    } else {
        let flags = 5 | 1 << 13;
        process.words(address, &[flags, 0, text.len() as u64, address + 0x40]);
        process.bytes(address + 0x40, text.as_bytes());
    }
}

/// An `rb_iseq_t`, with its body at +0x100, code at +0x200, label at +0x400, path at +0x500.
fn iseq(process: &mut Recorded, address: u64, label: &str, line: u64) {
    process.words(address + 16, &[address + 0x100]);
    process.words(address + 0x100, &[0; 24]);
    process.words(address + 0x108, &[address + 0x200]);
    let location = [address + 0x500, 0, address + 0x400, line << 1 | 1];
    process.words(address + 0x140, &location);
    text(process, address + 0x400, label);
    text(process, address + 0x500, "/srv/app/with/a/long/name.rb");
}

/// A frame at its place, with what its environment's flags are, at a word of its code.
fn frame(process: &mut Recorded, number: u64, iseq: u64, word: u64, flags: u64) {
    let environment = STACK + 8 * number;
    let instruction = if iseq == 0 {
        0
    } else {
        iseq + 0x200 + 8 * word
    };
    process.words(environment, &[flags]);
    process.words(place(number), &[instruction, 0, iseq, 0, environment]);
}

/// A block that a sort calls, which the main program calls.
fn process() -> Recorded {
    let mut process = Recorded {
        bias: BIAS,
        thread_pointer: THREAD,
        ..Recorded::default()
    };
    process.describe(&[
        (at::ACCESS, Access::Module as u64),
        (at::PLACE, MODULE),
        (at::OFFSET, 8),
        (at::EXECUTE, EXECUTE),
        (at::EXECUTE + 1, EXECUTE + 0x1000),
        (at::LOOP, LOOP),
        (at::LOOP + 1, LOOP + 0x1000),
        (at::BODY, LOOP_BODY),
        (at::FRAME_BYTES, FRAME_BYTES),
    ]);
    process.words(BIAS + MODULE, &[1]);
    process.words(THREAD + 8, &[THREAD + 0x100]);
    process.words(THREAD + 0x100 + 16, &[BLOCK]);
    process.words(BLOCK + 8, &[CONTEXT]);
    process.words(CONTEXT, &[STACK, STACK_WORDS, place(2)]);
    iseq(&mut process, MAIN, "<main>", 1);
    iseq(&mut process, COMPARE, "block in <main>", 3);
    frame(&mut process, 0, MAIN, 6, EVAL | FINISH);
    frame(&mut process, 1, 0, 0, C);
    frame(&mut process, 2, COMPARE, 4, IN_BLOCK | FINISH);
    process
}

fn native(process: &mut Recorded, address: u64, sp: u64, saved: u64) -> NativeFrame {
    process.words(sp - 32, &[0x66, 0x55, saved]);
    NativeFrame {
        address,
        sp,
        caller_sp: sp + 0x100,
        ..NativeFrame::default()
    }
}

/// The loop and what called it, twice, with the sort between.
fn stack(process: &mut Recorded) -> [NativeFrame; 5] {
    process.registers[15] = place(2);
    process.registers[14] = COMPARE + 0x200 + 8 * 5;
    let first = NativeFrame {
        is_first: 1,
        ..native(process, LOOP + 0x100, NATIVE, 0)
    };
    [
        first,
        native(process, EXECUTE + 0x100, NATIVE + 0x100, 0),
        native(process, 0x9000, NATIVE + 0x200, 0),
        native(process, LOOP + 0x200, NATIVE + 0x300, place(0)),
        native(process, EXECUTE + 0x100, NATIVE + 0x400, 0),
    ]
}

fn shown(iseq: u64, position: u32) -> StackEntry {
    function(iseq + 0x100, position)
}

#[test]
fn a_block_stands_before_its_loop_and_what_called_it_behind() {
    let mut process = process();
    let stack = stack(&mut process);
    let expected = [
        shown(COMPARE, 4),
        StackEntry::Native(0),
        StackEntry::Native(1),
        StackEntry::Native(2),
        shown(MAIN, 5),
        StackEntry::Native(3),
        StackEntry::Native(4),
    ];
    assert_eq!(walk::<Ruby>(&process, &stack, false), expected);
    // Where the registers are not the loop's, the frame says the instruction.
    process.descriptor[at::BODY] = 0;
    process.registers = [0; 16];
    let walked = walk::<Ruby>(&process, &stack, false);
    assert_eq!(walked[0], shown(COMPARE, 3));
    assert_eq!(walked[1..], expected[1..]);
}

#[test]
fn a_level_without_the_loop_stands_before_what_handles_exceptions() {
    let mut process = process();
    let stack = stack(&mut process);
    let natives = [
        native(&mut process, 0x9000, NATIVE, 0),
        stack[1],
        stack[2],
        stack[3],
    ];
    let walked = walk::<Ruby>(&process, &natives, false);
    assert_eq!(
        walked[..3],
        [
            StackEntry::Native(0),
            shown(COMPARE, 3),
            StackEntry::Native(1)
        ]
    );
    assert_eq!(walked[3..5], [StackEntry::Native(2), shown(MAIN, 5)]);
}

#[test]
fn what_has_left_its_frame_has_no_level() {
    let mut process = process();
    let stack = stack(&mut process);
    process.words(CONTEXT + 16, &[place(1)]);
    // The loop, which is about to return, and the function that called it.
    process.registers[15] = 0x1234;
    for natives in [&stack[..], &stack[1..]] {
        let mut natives = natives.to_vec();
        natives[0].is_first = 1;
        let walked = walk::<Ruby>(&process, &natives, false);
        let before = natives.len() - 2;
        assert_eq!(walked[before], shown(MAIN, 5), "{walked:?}");
        assert_eq!(walked[before + 1], StackEntry::Native(before));
    }
}

#[test]
fn an_unlinked_frame_that_still_runs_has_its_level() {
    let mut process = process();
    let stack = stack(&mut process);
    process.words(CONTEXT + 16, &[place(1)]);
    let walked = walk::<Ruby>(&process, &stack, false);
    assert_eq!(walked[..2], [shown(COMPARE, 3), StackEntry::Native(0)]);
    assert_eq!(walked[4], shown(MAIN, 5));
}

#[test]
fn a_block_whose_loop_is_not_entered_yet_is_not_shown() {
    let mut process = process();
    let stack = stack(&mut process);
    let walked = walk::<Ruby>(&process, &stack[2..], false);
    assert_eq!(walked[..2], [StackEntry::Native(0), shown(MAIN, 5)]);
}

#[test]
fn a_method_that_the_same_loop_runs_is_of_its_level() {
    let mut process = process();
    let stack = stack(&mut process);
    frame(&mut process, 3, COMPARE, 8, METHOD);
    process.words(CONTEXT + 16, &[place(3)]);
    process.registers[15] = place(3);
    process.registers[14] = COMPARE + 0x200 + 8 * 9;
    let walked = walk::<Ruby>(&process, &stack, false);
    assert_eq!(
        walked[..3],
        [shown(COMPARE, 8), shown(COMPARE, 3), StackEntry::Native(0)]
    );
}

#[test]
fn the_rest_of_the_chain_follows_where_the_native_walk_breaks() {
    let mut process = process();
    let stack = stack(&mut process);
    let walked = walk::<Ruby>(&process, &stack[..2], true);
    assert_eq!(walked[3..], [shown(MAIN, 5)]);
    assert_eq!(
        walk::<Ruby>(&process, &[], true),
        [shown(COMPARE, 3), shown(MAIN, 5)]
    );
}

#[test]
fn a_program_s_own_thread_variables_are_below_the_thread_pointer() {
    let mut process = process();
    process.descriptor[at::ACCESS] = Access::Executable as u64;
    process.descriptor[at::PLACE] = 0x40;
    process.words(THREAD - 0x40, &[CONTEXT]);
    assert_eq!(
        walk::<Ruby>(&process, &[], true),
        [shown(COMPARE, 3), shown(MAIN, 5)]
    );
}

#[test]
fn a_thread_without_ruby_has_no_chain() {
    let mut process = process();
    let stack = stack(&mut process);
    let only_native: Vec<StackEntry> = (0..stack.len()).map(StackEntry::Native).collect();
    process.words(BLOCK + 8, &[0]);
    assert_eq!(walk::<Ruby>(&process, &stack, true), only_native);
    process.words(THREAD + 0x100 + 16, &[u64::MAX]);
    assert_eq!(walk::<Ruby>(&process, &stack, true), only_native);
}

#[test]
fn memory_that_is_no_function_is_a_mark() {
    let mut process = process();
    let stack = stack(&mut process);
    process.words(MAIN + 0x400, &[7]);
    let walked = walk::<Ruby>(&process, &stack, false);
    assert_eq!(walked[4..6], [StackEntry::Broken, StackEntry::Native(3)]);
}

/// Names and lines of different functions.
const DIFFERENT: [(&str, u64); 7] = [
    ("call", 3),
    ("calm", 3),
    ("call", 4),
    ("call_the_next", 3),
    ("call_the_nest", 3),
    ("call_the_next_of_all_the_others", 3),
    ("call_the_next_of_all_the_other", 3),
];

#[test]
fn functions_at_one_address_have_different_checks() {
    let mut process = process();
    let mut checks = vec![];
    for (label, line) in DIFFERENT {
        iseq(&mut process, COMPARE, label, line);
        checks.push(Ruby::check(&process, COMPARE + 0x100).unwrap());
    }
    assert_distinct(&checks);
    // Bytes behind a string do not count, nor do the collector's marks.
    iseq(&mut process, COMPARE, "call", 3);
    process.bytes(COMPARE + 0x400 + 16 + 4, b"garbage");
    process.bytes(COMPARE + 0x400, &[5 | 1 << 5]);
    assert_eq!(Ruby::check(&process, COMPARE + 0x100).unwrap(), checks[0]);
    // Methods of two classes may differ in nothing else than in where their parts lie.
    process.descriptor[at::LOCAL] = LOCAL;
    let mut checks = vec![];
    for place in [8, LOCAL] {
        for word in [0x70, 0x80] {
            process.words(COMPARE + 0x100 + place, &[word]);
            checks.push(Ruby::check(&process, COMPARE + 0x100).unwrap());
        }
    }
    assert_distinct(&checks);
}

#[test]
fn strings_are_found() {
    let mut process = process();
    let body = COMPARE + 0x100;
    let strings = Ruby::strings(&process, body).unwrap();
    assert_eq!(extent(strings.name), (COMPARE + 0x410, 15));
    assert_eq!(extent(strings.file), (COMPARE + 0x540, 28));
    assert_eq!(strings.file.encoding, Encoding::Bytes as u32);
    assert_eq!((strings.first_line, strings.owner.address), (3, 0));
    // A path may be an array of itself and of its full form: in place, or elsewhere.
    let path = COMPARE + 0x500;
    process.words(body + 64, &[path + 0x200]);
    process.words(path + 0x200, &[7 | 1 << 13, 0, path, path, 0]);
    assert_eq!(Ruby::strings(&process, body).unwrap().file, strings.file);
    process.words(path + 0x200, &[7, 0, 2, 2, path + 0x300]);
    process.words(path + 0x300, &[path]);
    assert_eq!(Ruby::strings(&process, body).unwrap().file, strings.file);
}

#[test]
fn strings_and_lines_of_3_2_are_found() {
    let mut process = process();
    process.descriptor[at::LENGTH] = Length::InFront as u64;
    let (body, label, path) = (COMPARE + 0x100, COMPARE + 0x400, COMPARE + 0x500);
    let mut write = |text: &str, line: u64| {
        process.words(label, &[5, 0, text.len() as u64, 0, 0]);
        process.bytes(label + 24, text.as_bytes());
        process.words(body + 88, &[9 << 32 | line]);
        Ruby::check(&process, body).unwrap()
    };
    let all = DIFFERENT.into_iter().chain([("compare", 3)]);
    let checks: Vec<u32> = all.map(|(text, line)| write(text, line)).collect();
    assert_distinct(&checks);
    let strings = Ruby::strings(&process, body).unwrap();
    assert_eq!(extent(strings.name), (label + 24, 7));
    assert_eq!(extent(strings.file), (path + 64, 28));
    assert_eq!(strings.first_line, 3);
}

const METHOD_ISEQ: u64 = 0x5500_0030_0000;
const ENTRY: u64 = 0x5500_0031_0000;
const DEFINITION: u64 = 0x5500_0031_1000;
const CREF: u64 = 0x5500_0031_2000;
const SPECIAL: u64 = 0x5500_0031_3000;
const OBJECT: u64 = 0x5500_0032_0000;
const LIST: u64 = 0x5500_0033_0000;
const SINGLETON: u64 = 0x5500_0034_0000;
const PATH_NAME: u64 = 0xf01;
const ATTACHED_NAME: u64 = 0xc11;
const LOCAL: u64 = 8 * 22;

/// A class or module, whose class is another, and its first variable.
fn class(process: &mut Recorded, address: u64, flags: u64, class_of: u64, variable: [u64; 2]) {
    process.words(address, &[flags, class_of, 0, address + 0x200]);
    process.words(address + 0x208, &[address + 0x300]);
    process.words(address + 0x300, &[0, 0, 1, 0, 0, 1, address + 0x400]);
    process.words(address + 0x400, &[0x77, variable[0], variable[1]]);
    // As 3.3 has it: what it is attached to, and its path.
    let is_attached = variable[0] == ATTACHED_NAME;
    let (attached, path) = match is_attached {
        true => (variable[1], 0),
        false => (0, variable[1]),
    };
    process.words(
        address + 128,
        &[attached, 0, u64::from(!is_attached) << 40, path],
    );
}

/// A method `each` of the class `List`, its frame at place 3, and a block in it, whose frame is at place 4.
fn method(class_path: ClassPath) -> Recorded {
    let mut process = process();
    process.descriptor[at::CLASS_PATH] = class_path as u64;
    process.descriptor[at::OBJECT] = 0x2000;
    process.descriptor[at::LOCAL] = LOCAL;
    process.words(BIAS + 0x2000, &[OBJECT]);
    text(&mut process, OBJECT + 0x800, "Object");
    text(&mut process, LIST + 0x800, "List");
    class(&mut process, OBJECT, 2, 0, [PATH_NAME, OBJECT + 0x800]);
    class(&mut process, LIST, 2, SINGLETON, [PATH_NAME, LIST + 0x800]);
    class(
        &mut process,
        SINGLETON,
        2 | 1 << 12,
        0,
        [ATTACHED_NAME, LIST],
    );
    iseq(&mut process, METHOD_ISEQ, "each", 7);
    process.words(METHOD_ISEQ + 0x100 + LOCAL, &[METHOD_ISEQ]);
    process.words(COMPARE + 0x100 + LOCAL, &[METHOD_ISEQ]);
    process.words(ENTRY, &[0x1a | 6 << 12, LIST, DEFINITION, 0x99, LIST]);
    process.words(DEFINITION, &[0, METHOD_ISEQ, CREF]);
    process.words(CREF, &[0x1a | 1 << 12, 0, LIST]);
    let environment = |number: u64| STACK + 0x100 * number;
    for (number, iseq, kind) in [(3, METHOD_ISEQ, METHOD | 2), (4, COMPARE, IN_BLOCK)] {
        frame(&mut process, number, iseq, 4, kind);
        process.words(place(number) + 32, &[environment(number)]);
        let previous = environment(number - 1) | 1;
        process.words(environment(number) - 16, &[ENTRY, previous, kind]);
    }
    process
}

/// The owner of what runs at a place.
fn owner(process: &Recorded, number: u64, iseq: u64) -> Option<(u64, u32, u64)> {
    let (path, is_singleton) = Ruby::owner(process, iseq + 0x100, place(number))?;
    Some((path.address, path.bytes, is_singleton))
}

#[test]
fn methods_and_their_blocks_belong_to_classes() {
    for class_path in [ClassPath::Variable, ClassPath::Field] {
        let mut process = method(class_path);
        let list = Some((LIST + 0x810, 4, 0));
        assert_eq!(owner(&process, 3, METHOD_ISEQ), list);
        assert_eq!(owner(&process, 4, COMPARE), list);
        // Special variables, such as a match's, have taken the entry's place.
        process.words(SPECIAL, &[0x1a | 2 << 12, ENTRY, 0, 0, 0]);
        process.words(STACK + 0x300 - 16, &[SPECIAL]);
        assert_eq!(owner(&process, 4, COMPARE), list);
        // A method of the class itself.
        process.words(ENTRY + 32, &[SINGLETON]);
        let own = Some((LIST + 0x810, 4, 1));
        assert_eq!(owner(&process, 3, METHOD_ISEQ), own);
        // Of `module_function`, which gives the method to the module, too.
        process.words(DEFINITION, &[1 << 6]);
        assert_eq!(owner(&process, 3, METHOD_ISEQ), own);
        process.descriptor[at::CLASS_PATH] = ClassPath::Unknown as u64;
        assert_eq!(owner(&process, 3, METHOD_ISEQ), None);
    }
}

#[test]
fn a_class_object_that_lies_in_the_program_names_the_others() {
    const SLOT: u64 = 0x9000;
    const VARIABLE: u64 = 0x55_5555_7000;
    let mut process = method(ClassPath::Variable);
    process.words(BIAS + 0x2000, &[0]);
    assert_eq!(owner(&process, 3, METHOD_ISEQ), None);
    process.descriptor[at::OBJECT_SLOT] = SLOT;
    process.words(BIAS + SLOT, &[VARIABLE]);
    process.words(VARIABLE, &[OBJECT]);
    let list = Some((LIST + 0x810, 4, 0));
    assert_eq!(owner(&process, 3, METHOD_ISEQ), list);
}

#[test]
fn classes_that_are_not_certain_are_left_out() {
    type Change = fn(&mut Recorded);
    let changes: [Change; 9] = [
        // The frame is another function's by now.
        |process| process.words(place(3) + 16, &[COMPARE]),
        // A method that is made of a block, and what is no method entry.
        |process| process.words(DEFINITION, &[4]),
        |process| process.words(ENTRY, &[0x1a | 1 << 12]),
        // The entry is that of another method.
        |process| process.words(DEFINITION + 8, &[COMPARE]),
        // It was given to another class.
        |process| {
            process.words(DEFINITION, &[1 << 6]);
            process.words(CREF + 16, &[OBJECT]);
        },
        // A class without a name, and what is no class.
        |process| class(process, LIST, 2, SINGLETON, [0xabc, 0]),
        |process| process.words(LIST, &[5]),
        // The singleton class of an object, and one of another class.
        |process| {
            process.words(ENTRY + 32, &[SINGLETON]);
            process.words(LIST, &[1]);
        },
        |process| {
            process.words(ENTRY + 32, &[SINGLETON]);
            process.words(LIST + 8, &[OBJECT]);
        },
    ];
    for class_path in [ClassPath::Variable, ClassPath::Field] {
        for (number, change) in changes.iter().enumerate() {
            let mut process = method(class_path);
            change(&mut process);
            if number == 5 && class_path == ClassPath::Field {
                process.words(LIST + 144, &[0]);
            }
            assert_eq!(owner(&process, 3, METHOD_ISEQ), None, "{number}");
        }
    }
    let mut process = method(ClassPath::Variable);
    text(&mut process, OBJECT + 0x800, "Subject");
    assert_eq!(owner(&process, 3, METHOD_ISEQ), None);
}

proptest! {
    #[test]
    fn broken_memory_ends_and_keeps_the_native_frames(changes in changes(), breaks: bool) {
        let mut process = process();
        let stack = stack(&mut process);
        let pointers = [place(0), place(2), MAIN, COMPARE, CONTEXT, STACK, 0, u64::MAX];
        walk_changed::<Ruby>(process, &stack, (changes, &pointers), breaks)?;
    }
}
