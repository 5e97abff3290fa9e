extern crate std;

use super::*;
use crate::runtime::memory::{Recorded, leave_code};
use crate::runtime::{
    COMPILED, CodeOwner as _, Encoding, FrameFunction as _, FunctionInfo as _, NativeFrame,
    RuntimeKind, first_word, testing,
};
use crate::walk::Registers;
use crate::walk::native::{Frame, Kept};
use proptest::prelude::{any, proptest};
use std::string::String;

const BUILTINS: u64 = 0x40_0000;
const STACK: u64 = 0x7ffd_0000_0000;
const CODE: u64 = 0x7f00_0000_4000;
const BYTECODE: u64 = 0x3000;

/// Maps of each type, at multiples of 0x10 from here.
const MAPS: u64 = 0x1000;
const SHARED: u16 = 274;
const SCOPE: u16 = 272;
const FUNCTION: u16 = 2066;
const ONE_BYTE: u16 = 8;
const TWO_BYTES: u16 = 0;

/// Objects.
const F: u64 = 0x10_0000;
const G: u64 = 0x11_0000;
const SCRIPT: u64 = 0x12_0000;
const NAME: u64 = 0x13_0000;
const MORE: u64 = 0x14_0000;
const PATH: u64 = 0x15_0000;

/// A reference to an object.
fn to(address: u64) -> u64 {
    address | 1
}

fn small(number: u64) -> u64 {
    number << 32
}

/// The head of an object of a type.
fn map(process: &mut Recorded, kind: u16) -> u64 {
    let map = MAPS + 0x10 * u64::from(kind);
    process.words(map, &[0, u64::from(kind) << 32]);
    to(map)
}

fn string(process: &mut Recorded, address: u64, kind: u16, length: u64, words: &[u64]) {
    let head = map(process, kind);
    process.words(address, &[head, length << 32, 0, 0]);
    process.words(address + 16, words);
}

fn text(process: &mut Recorded, address: u64, text: &str) {
    string(process, address, ONE_BYTE, text.len() as u64, &[0; 8]);
    process.bytes(address + 16, text.as_bytes());
}

/// A function, whose `SharedFunctionInfo` is 0x100 behind: a name or a scope, and the numbers of the literal and of itself.
fn function(process: &mut Recorded, address: u64, name: u64, literal: u32, unique: u32) {
    let (function, shared) = (map(process, FUNCTION), map(process, SHARED));
    process.words(address, &[function, 0, 0, 0, to(address + 0x100)]);
    let numbers = u64::from(literal) << 32;
    process.words(
        address + 0x100,
        &[
            shared,
            0,
            to(name),
            0,
            to(SCRIPT),
            0,
            numbers,
            unique.into(),
            0,
        ],
    );
}

/// A scope of a function with so many local variables, and what stands behind these.
fn scope(process: &mut Recorded, address: u64, flags: u64, locals: u64, behind: &[u64]) {
    let head = map(process, SCOPE);
    process.words(address, &[head, small(flags), small(0), small(locals)]);
    let names = if locals < 75 { locals } else { 1 };
    for word in 0..names + locals {
        process.words(address + 32 + 8 * word, &[0]);
    }
    process.words(address + 32 + 8 * (names + locals), behind);
}

fn process() -> Recorded {
    let mut process = Recorded::default();
    process.descriptor[0] = first_word(RuntimeKind::V8, 12 << 16 | 4 << 8);
    process.descriptor[at::BUILTINS] = BUILTINS;
    process.descriptor[at::BUILTINS + 1] = BUILTINS + 0x10_0000;
    let types = Types {
        first_function: FUNCTION,
        last_function: FUNCTION + 16,
        shared: SHARED,
        scope: SCOPE,
    };
    process.descriptor[at::TYPES..at::OFFSETS].copy_from_slice(&types.words());
    let offsets = Offsets {
        shared: 32,
        name: 16,
        script: 32,
        literal: 52,
        unique: 56,
        first_local: 4,
    };
    process.descriptor[at::OFFSETS..at::OTHERS].copy_from_slice(&offsets.words());
    text(&mut process, NAME, "work");
    text(&mut process, PATH, "/srv/app.js");
    process.words(SCRIPT, &[0, 0, to(PATH), 0, 0, 0, 0, 0, small(7)]);
    function(&mut process, F, NAME, 3, 40);
    function(&mut process, G, NAME, 4, 41);
    process
}

/// Memory around a frame pointer: a caller's and a return address, with a function and a context below.
fn frame(process: &mut Recorded, fp: u64, function: u64, caller: [u64; 2]) {
    process.words(
        fp - 40,
        &[small(81), to(BYTECODE), 0, to(function), to(0x20_0000)],
    );
    process.words(fp, &caller);
}

fn native(fp: u64) -> NativeFrame {
    NativeFrame {
        address: BUILTINS + 0x100,
        sp: fp - 0x60,
        caller_sp: fp + 16,
        is_first: 0,
        fp: Kept::value(fp),
        saved: Kept::LOST,
    }
}

fn name(process: &Recorded, shared: u64) -> (String, u64) {
    let strings = V8::strings(process, shared).unwrap();
    (testing::text(process, strings.name), strings.extra)
}

#[test]
fn frames_of_the_interpreter_have_functions_and_places() {
    let mut process = process();
    let fp = STACK + 0x100;
    frame(&mut process, fp, F, [0, 0]);
    let function = V8::function_in(&process, &native(fp)).unwrap();
    assert_eq!((function.function, function.position), (F + 0x100, 81));
    assert_eq!(Some(function.check), V8::check(&process, F + 0x100));
    // While it runs, the place is in a register.
    let first = NativeFrame {
        is_first: 1,
        ..native(fp)
    };
    process.registers[9] = 99;
    assert_eq!(V8::function_in(&process, &first).unwrap().position, 81);
    process.registers[12] = to(BYTECODE);
    assert_eq!(V8::function_in(&process, &first).unwrap().position, 99);
}

#[test]
fn other_frames_have_none() {
    let mut process = process();
    let fp = STACK + 0x100;
    frame(&mut process, fp, F, [0, 0]);
    let none =
        |process: &Recorded, native: NativeFrame| V8::function_in(process, &native).is_none();
    // Of another function's frame, of C++, without a frame pointer.
    let leaf = NativeFrame {
        caller_sp: fp - 0x58,
        ..native(fp)
    };
    assert!(none(&process, leaf));
    let outside = NativeFrame {
        address: BUILTINS - 1,
        ..native(fp)
    };
    assert!(none(&process, outside));
    let lost = NativeFrame {
        fp: Kept::LOST,
        ..native(fp)
    };
    assert!(none(&process, lost));
    // With a kind of frame in the context's place, and with what is no function.
    process.words(fp - 8, &[2 * 17]);
    assert!(none(&process, native(fp)));
    frame(&mut process, fp, NAME, [0, 0]);
    assert!(none(&process, native(fp)));
    // A builtin.
    function(&mut process, F, NAME, u32::MAX, 40);
    frame(&mut process, fp, F, [0, 0]);
    assert!(none(&process, native(fp)));
}

#[test]
fn functions_are_told_apart() {
    let mut process = process();
    let check = |process: &Recorded, address| V8::check(process, address + 0x100).unwrap();
    assert_ne!(check(&process, F), check(&process, G));
    // Before there were numbers among all, by the script's.
    process.descriptor[at::OFFSETS + 1] &= !0xffff;
    assert_ne!(check(&process, F), check(&process, G));
    let before = check(&process, F);
    process.words(SCRIPT + 64, &[small(8)]);
    assert_ne!(check(&process, F), before);
}

#[test]
fn strings_of_all_kinds_are_found() {
    let mut process = process();
    assert_eq!(name(&process, F + 0x100), ("work".into(), F + 0x100));
    let strings = V8::strings(&process, F + 0x100).unwrap();
    assert_eq!(testing::extent(strings.file), (PATH + 16, 11));
    // A part, and another.
    string(&mut process, MORE, 3 | ONE_BYTE, 2, &[to(NAME), small(1)]);
    function(&mut process, F, MORE, 3, 40);
    assert_eq!(name(&process, F + 0x100).0, "or");
    string(&mut process, MORE, 5 | ONE_BYTE, 4, &[to(NAME)]);
    assert_eq!(name(&process, F + 0x100), ("work".into(), F + 0x100));
    // Outside of the heap.
    process.bytes(0x9_0000, b"outer");
    string(&mut process, MORE, 2 | ONE_BYTE, 5, &[0, 0x9_0000]);
    assert_eq!(name(&process, F + 0x100).0, "outer");
    // Of two, the first; that is all if the second is empty.
    string(&mut process, MORE, 1 | ONE_BYTE, 8, &[to(NAME), to(PATH)]);
    assert_eq!(
        name(&process, F + 0x100),
        ("work".into(), (F + 0x100) | NAME_GOES_ON)
    );
    text(&mut process, 0x16_0000, "");
    string(
        &mut process,
        MORE,
        1 | ONE_BYTE,
        4,
        &[to(NAME), to(0x16_0000)],
    );
    assert_eq!(name(&process, F + 0x100).1, F + 0x100);
    // Wide ones.
    string(&mut process, MORE, TWO_BYTES, 3, &[0; 2]);
    let piece = V8::strings(&process, F + 0x100).unwrap().name;
    assert_eq!((piece.bytes, piece.encoding), (6, Encoding::Ucs2 as u32));
}

#[test]
fn scopes_have_names_and_places() {
    const NAMED: u64 = 1 << 12;
    const INFERRED: u64 = 1 << 14;
    let mut process = process();
    let start = |process: &Recorded| start_of(process, F + 0x100);
    let cases: [(u64, u64, &[u64], &str); 6] = [
        (NAMED, 0, &[to(NAME), 0, small(50), small(90)], "work"),
        (NAMED, 3, &[to(NAME), 0, small(50), small(90)], "work"),
        (NAMED, 80, &[to(NAME), 0, small(50), small(90)], "work"),
        (
            INFERRED,
            2,
            &[to(PATH), small(50), small(90)],
            "/srv/app.js",
        ),
        (
            NAMED | INFERRED,
            1,
            &[0, 0, to(PATH), small(50), small(90)],
            "/srv/app.js",
        ),
        (
            NAMED | 1 << 10,
            1,
            &[0, to(NAME), 0, small(50), small(90)],
            "work",
        ),
    ];
    for (flags, locals, behind, named) in cases {
        scope(&mut process, MORE, flags, locals, behind);
        function(&mut process, F, MORE, 3, 40);
        assert_eq!(name(&process, F + 0x100).0, named, "{flags:x}");
        assert_eq!(start(&process), Some(50), "{flags:x}");
    }
    scope(&mut process, MORE, 0, 1, &[small(50), small(90), to(NAME)]);
    assert_eq!(name(&process, F + 0x100).0, "");
    assert_eq!(start(&process), Some(50));
}

const AT: u64 = CODE + 0x40;

fn leaf(fp: u64, sp: u64) -> Frame {
    let registers = Registers { ip: AT, sp, fp };
    Frame::running(registers, 0)
}

/// Code around the address, and a call that ends where it is returned to.
fn code(process: &mut Recorded, before: &[u8], at: &[u8]) -> u64 {
    let returned = CODE + 0x2000;
    process.bytes(CODE, &[0x90; 0x100]);
    process.bytes(AT - before.len() as u64, before);
    process.bytes(AT, at);
    process.bytes(returned - 8, &[0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0]);
    returned
}

#[test]
fn compiled_code_is_left_by_its_frame_pointer_and_without_one() {
    let (fp, outer) = (STACK + 0x100, STACK + 0x200);
    let sp = fp - 0x60;
    /// The code before the address and at it, the stack pointer and the frame pointer, and which function runs.
    type Case = (&'static [u8], &'static [u8], u64, u64, u64);
    let cases: [Case; 5] = [
        (b"\x90", b"\x90", sp, fp, F),
        (b"\xcc", b"\x55\x48\x89\xe5", fp + 8, outer, G),
        (b"\x55", b"\x48\x89\xe5", fp, outer, G),
        (b"\x5d", b"\xc3", fp + 8, outer, F),
        (b"\xc9", b"\x48\x83\xf9\x01", fp + 8, outer, F),
    ];
    for (before, at, sp, pointer, function) in cases {
        let mut process = process();
        let returned = code(&mut process, before, at);
        frame(&mut process, fp, F, [outer, returned]);
        frame(&mut process, outer, F, [0, 0]);
        process.registers[5] = to(G);
        let frame = leaf(pointer, sp);
        let (caller, shown) = leave_code::<V8>(&process, &frame).unwrap();
        assert_eq!((caller.ip, caller.sp), (returned, fp + 16), "{at:x?}");
        assert_eq!(caller.fp.read(&process), Ok(outer), "{at:x?}");
        let shown = shown.unwrap();
        let own = V8::own_frame(V8::search_from(&process, &frame));
        let strings = V8::strings_in_frame(&process, shown.function, own).unwrap();
        assert_eq!(strings.extra, function + 0x100, "{at:x?}");
        if function == F {
            assert_eq!(shown.function, COMPILED | CODE, "{at:x?}");
            assert_eq!(shown.position, 0x40, "{at:x?}");
            let check = check_in_stretch(&process, F + 0x100, CODE);
            assert_eq!(Some(shown.check), check, "{at:x?}");
        }
    }
}

#[test]
fn other_code_at_an_address_is_told_apart() {
    let mut process = process();
    code(&mut process, b"\x90", b"\x90");
    let before = check_in_stretch(&process, F + 0x100, CODE);
    process.bytes(CODE + 0x49, &[0x91; 0xb7]);
    assert_ne!(check_in_stretch(&process, F + 0x100, CODE), before);
}

#[test]
fn a_known_function_is_left_as_long_as_it_and_its_code_are_there() {
    let mut process = process();
    let fp = STACK + 0x100;
    let returned = code(&mut process, b"\x90", b"\x90");
    frame(&mut process, fp, F, [STACK + 0x200, returned]);
    let registers = Registers {
        ip: AT,
        sp: fp - 0x60,
        fp,
    };
    let called = Frame::called(registers);
    let (caller, function) = leave_code::<V8>(&process, &called).unwrap();
    let function = function.unwrap();
    let again = |process: &Recorded| V8::leave_known(process, &called, &function, 0);
    assert_eq!(again(&process), Some((caller, fp)));
    type Change = fn(&mut Recorded);
    let changes: [Change; 3] = [
        |process| process.words(STACK + 0x100 - 16, &[to(G)]),
        // The collector has put another one there.
        |process| self::function(process, F, NAME, 3, 42),
        |process| process.bytes(CODE + 0x49, &[0x91; 0xb7]),
    ];
    for change in changes {
        let mut process = process.clone();
        change(&mut process);
        assert_eq!(again(&process), None);
        let (_, other) = leave_code::<V8>(&process, &called).unwrap();
        assert_ne!(other.unwrap().check, function.check);
    }
}

#[test]
fn generated_code_without_a_function_has_its_kind() {
    let mut process = process();
    let fp = STACK + 0x100;
    let returned = code(&mut process, b"\x90", b"\x90");
    frame(&mut process, fp, F, [STACK + 0x200, returned]);
    process.words(fp - 8, &[2 * 12]);
    let frame = leaf(fp, fp - 0x60);
    let (_, shown) = leave_code::<V8>(&process, &frame).unwrap();
    let shown = shown.unwrap();
    assert_eq!((shown.function, shown.check, shown.position), (12, 0, 0));
    assert_eq!(
        V8::strings(&process, 12),
        Some(crate::runtime::Strings::default())
    );
    process.words(fp - 8, &[2 * 4000]);
    let (_, shown) = leave_code::<V8>(&process, &frame).unwrap();
    assert!(shown.is_none());
}

proptest! {
    /// Forged memory makes no walk fail.
    #[test]
    fn forged_memory_is_survived(
        changes in proptest::collection::vec((0usize..400, any::<u64>()), 1..40),
        fp in any::<u64>(),
        bits in any::<u8>(),
    ) {
        let mut process = process();
        let place = STACK + 0x100;
        let returned = code(&mut process, b"\x5d", b"\xc3");
        frame(&mut process, place, F, [STACK + 0x200, returned]);
        scope(&mut process, MORE, 1 << 12 | 1 << 14, 2, &[to(NAME), 0, to(PATH), small(1), small(2)]);
        function(&mut process, G, MORE, 4, 41);
        let addresses: std::vec::Vec<u64> = process.memory.keys().copied().step_by(8).collect();
        for (index, word) in changes {
            process.words(addresses[index % addresses.len()], &[word]);
        }
        let fp = if bits & 1 == 0 { place } else { fp };
        let _ = V8::function_in(&process, &native(fp.max(0x1000)));
        for frame in [leaf(fp, place - 0x60), leaf(fp, place + 8)] {
            let own = V8::own_frame(V8::search_from(&process, &frame));
            if let Some((_, Some(shown))) = leave_code::<V8>(&process, &frame) {
                let _ = V8::strings_in_frame(&process, shown.function, own);
                let _ = V8::leave_known(&process, &frame, &shown, 0);
            }
        }
        for function in [F, G] {
            let _ = V8::strings(&process, function + 0x100);
            let _ = start_of(&process, function + 0x100);
            let _ = script_of(&process, function + 0x100);
        }
    }
}
