extern crate std;

use super::*;
use crate::runtime::FunctionInfo as _;
use crate::runtime::memory::{Recorded, StackEntry, leave_code, walk};
use crate::runtime::testing::{extent, function as shown, walk_changed_bytes};
use crate::runtime::{CodeOwner as _, NativeFrame, RuntimeKind, first_word};
use crate::walk::{Registers, native::Frame};
use std::vec::Vec;

const LOOP: u64 = 0x4000;
const GLOBALS: u64 = 0x9000;
const STATE: u64 = 0xa000;
const STACK: u64 = 0x10_0000;
const A: u64 = 0x1_0000;
const B: u64 = 0x2_0000;
const C: u64 = 0x3_0000;
const NATIVE: u64 = 0x7ffd_0000_0000;

/// A function and its `GCproto` of 16 instructions; the function's address is 0x800 behind.
fn proto(process: &mut Recorded, address: u64, line: u64) {
    process.bytes(address, &[0; 0x200]);
    process.words(address + 8, &[7 << 8 | 16 << 32]);
    process.words(address + 0x40, &[address + 0x400, line | 9 << 32, 0]);
    process.words(address + 0x408, &[4 << 8 | 77 << 32, 0xabcd | 9 << 32]);
    process.bytes(address + 0x418, b"@/srv/a.lu");
    function(process, address + 0x800, 0, address + 0x68);
}

fn function(process: &mut Recorded, address: u64, kind: u64, code: u64) {
    process.words(address + 8, &[8 << 8 | kind << 16, 0, 0, code]);
}

/// A `lua_State` whose innermost native frame is at an address.
fn state(process: &mut Recorded, address: u64, native: u64, base: u64, stack: u64) {
    let words = [6 << 8, GLOBALS, 0, base, base, stack + 0x1000, stack, 0];
    process.words(address + 8, &words);
    process.words(address + 0x48, &[0, native | 1]);
}

/// The instruction behind a call of slot 2, the fourth of a function.
fn after_call(process: &mut Recorded, proto: u64) -> u64 {
    let call = proto + 0x68 + 4 * 4;
    process.bytes(call, &[66, 2, 1, 1]);
    call + 4
}

/// `a` called by `b`, which a function in C calls that `c` calls.
fn two_levels() -> (Recorded, Vec<NativeFrame>) {
    let mut process = Recorded::default();
    process.descriptor[0] = first_word(RuntimeKind::LuaJit, 2 << 16 | 1 << 8);
    process.descriptor[at::LOOP] = LOOP;
    process.descriptor[at::LOOP + 1] = LOOP + 0x4000;
    process.descriptor[at::CURRENT_STATE] = 0x170;
    for (address, line) in [(A, 3), (B, 5), (C, 0)] {
        proto(&mut process, address, line);
    }
    function(&mut process, 0xf000, 1, 0x1234);
    process.bytes(STACK, &[0; 0x200]);
    // Bottom, `c` called from C, `sort`, `b` called from C, `a`: a function, and below its first slot what leads back.
    let from_b = after_call(&mut process, B);
    let from_c = after_call(&mut process, C);
    process.words(STACK, &[STATE, 0]);
    process.words(STACK + 16, &[C + 0x800, 16 | 1]);
    // Slot 2 of `c`, and two words of the frame.
    process.words(STACK + 16 + 16 + 16, &[0xf000, from_c]);
    process.words(STACK + 0x60, &[B + 0x800, 0x30 | 5]);
    process.words(STACK + 0x60 + 32, &[A + 0x800, from_b]);
    let base = STACK + 0x60 + 48;
    state(&mut process, STATE, NATIVE + 0x100, base, STACK);
    process.words(GLOBALS + 0x170, &[STATE, 0]);
    let inside = A + 0x68 + 4 * 8;
    process.words(NATIVE + 0x110, &[STATE, inside]);
    process.words(NATIVE + 0x210, &[STATE, from_c]);
    let native = |sp: u64, bytes: u64, address: u64| NativeFrame {
        address,
        sp,
        caller_sp: sp + bytes,
        ..NativeFrame::default()
    };
    let stack = [
        native(NATIVE, 0x100, 0x100),
        native(NATIVE + 0x100, 80, LOOP + 8),
        native(NATIVE + 0x150, 0xb0, 0x200),
        native(NATIVE + 0x200, 80, LOOP + 8),
        native(NATIVE + 0x250, 0x40, 0x300),
    ];
    (process, stack.into())
}

#[test]
fn levels_belong_to_the_interpreter_s_native_frames() {
    let (process, stack) = two_levels();
    let expected = [
        StackEntry::Native(0),
        shown(A, 7),
        shown(B, 4 | NOT_CALLED_BY_NEXT),
        StackEntry::Native(1),
        StackEntry::Native(2),
        shown(C, 4 | NOT_CALLED_BY_NEXT),
        StackEntry::Native(3),
        StackEntry::Native(4),
    ];
    assert_eq!(walk::<LuaJit>(&process, &stack, false), expected);
    assert_eq!(walk::<LuaJit>(&process, &stack, true), expected);
    let rest = walk::<LuaJit>(&process, &stack[..2], true);
    assert_eq!(rest[..4], expected[..4]);
    assert!(matches!(
        rest[4..],
        [StackEntry::Function { function: C, .. }]
    ));
}

#[test]
fn the_interpreter_s_registers_count_where_it_runs() {
    let (mut process, mut stack) = two_levels();
    stack.remove(0);
    stack[0].is_first = 1;
    // `b` has returned from `a`.
    process.registers[1] = STACK + 0x70;
    process.registers[3] = B + 0x68 + 4 * 6;
    let frames = walk::<LuaJit>(&process, &stack, false);
    assert_eq!(
        frames[..2],
        [shown(B, 5 | NOT_CALLED_BY_NEXT), StackEntry::Native(0)]
    );
    // Unless they hold something else.
    process.registers[1] = 0x1234;
    assert_eq!(walk::<LuaJit>(&process, &stack, false)[0], shown(A, 7));
}

#[test]
fn machine_code_runs_the_functions_that_it_was_entered_with() {
    let (mut process, stack) = two_levels();
    process.words(GLOBALS + 0x170, &[STATE, STACK + 0x70]);
    let frames = walk::<LuaJit>(&process, &stack, false);
    assert_eq!(frames[1], shown(B, NOT_CALLED_BY_NEXT));
    // Of another coroutine it says nothing.
    process.words(GLOBALS + 0x170, &[STATE + 8, STACK + 0x70]);
    assert_eq!(walk::<LuaJit>(&process, &stack, false)[1], shown(A, 7));
}

#[test]
fn coroutines_lie_above_each_other() {
    let (mut process, mut stack) = two_levels();
    // The first native frame is of a coroutine that runs `a`, above that of the other, which runs from its base on.
    let other = 0xb000;
    state(&mut process, other, NATIVE + 0xb0, 0x20_0020, 0x20_0000);
    process.bytes(0x20_0000, &[0; 0x80]);
    process.words(0x20_0000, &[other, 0]);
    process.words(0x20_0010, &[A + 0x800, 16 | 5]);
    process.words(NATIVE + 0xc0, &[other, A + 0x68 + 4 * 8]);
    stack[0].caller_sp = NATIVE + 0xb0;
    let native = NativeFrame {
        sp: NATIVE + 0xb0,
        caller_sp: NATIVE + 0x100,
        ..stack[1]
    };
    stack.insert(1, native);
    let frames = walk::<LuaJit>(&process, &stack, false);
    assert_eq!(
        frames[..5],
        [
            StackEntry::Native(0),
            shown(A, 7 | NOT_CALLED_BY_NEXT),
            StackEntry::Native(1),
            shown(A, 7),
            shown(B, 4 | NOT_CALLED_BY_NEXT),
        ]
    );
}

#[test]
fn machine_code_is_left_to_the_interpreter_whose_state_says_so() {
    let (process, _) = two_levels();
    let caller = |sp: u64| {
        let frame = Frame::called(Registers {
            ip: 0x7000_0000,
            sp,
            fp: 0,
        });
        leave_code::<LuaJit>(&process, &frame).map(|(caller, _)| (caller.ip, caller.sp))
    };
    let interpreter = Some((process.bias + LOOP + 1, NATIVE + 0x100));
    let furthest = NATIVE + 0x100 - 16 * u64::from(LuaJit::TURNS - 1);
    for sp in [NATIVE + 0x100, NATIVE + 0xf1, furthest] {
        assert_eq!(caller(sp), interpreter, "{sp:#x}");
    }
    // Behind an inner one, too far, and none.
    for sp in [NATIVE + 0x101, furthest - 16, 0, u64::MAX - 4] {
        assert_eq!(caller(sp), None, "{sp:#x}");
    }
}

#[test]
fn memory_that_is_no_function_breaks_the_chain() {
    let (mut process, stack) = two_levels();
    process.words(B + 0x800 + 8, &[5 << 8]);
    let frames = walk::<LuaJit>(&process, &stack, false);
    assert_eq!(frames[1..3], [shown(A, 7), StackEntry::Broken]);
}

#[test]
fn broken_memory_ends_in_marks() {
    let (process, stack) = two_levels();
    walk_changed_bytes::<LuaJit>(&process, &stack);
}

#[test]
fn functions_at_one_address_have_different_checks_and_their_files() {
    let (mut process, _) = two_levels();
    let first = LuaJit::check(&process, A).unwrap();
    process.words(A + 0x408, &[4 << 8 | 78 << 32]);
    assert_ne!(LuaJit::check(&process, A), Some(first));
    process.words(A + 0x408, &[4 << 8 | 3 | 77 << 32]);
    // The collector's marks do not count.
    assert_eq!(LuaJit::check(&process, A), Some(first));
    let strings = LuaJit::strings(&process, A).unwrap();
    assert_eq!(extent(strings.file), (A + 0x418, 9));
    assert_eq!(strings.first_line, 3);
}
