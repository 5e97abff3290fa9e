extern crate std;

use super::*;
use crate::runtime::FunctionInfo as _;
use crate::runtime::NativeFrame;
use crate::runtime::memory::{Recorded, StackEntry, walk, walk_asking_each};
use crate::runtime::testing::{assert_distinct, extent, function, walk_changed_bytes};
use crate::runtime::{Encoding, RuntimeKind, first_word};
use crate::walk::native::Kept;
use std::{vec, vec::Vec};

const BIAS: u64 = 0;
const LOOP: u64 = 0x4000;
const BODY: u64 = 0x4040;
const MARKED: u64 = BODY + 0x10;

fn lua_5_4() -> Recorded {
    described(
        4,
        &[
            (at::CALL_INSTRUCTION, 4),
            (at::CALL_STATUS, 56),
            (at::STATUS_SHIFT, 48),
            (at::FRESH, 4),
            (at::PROTO_TYPE, 10),
            (at::PROTO_CODE, 8),
            (at::LINE_SHIFT, 32),
            (at::PROTO_SOURCE, 112),
            (at::INSTRUCTION_REGISTER, 14),
        ],
    )
}

fn lua_5_3() -> Recorded {
    described(
        3,
        &[
            (at::STATE_CALL, 32),
            (at::MARKED, MARKED),
            (at::CALL_INSTRUCTION, 5),
            (at::CALL_STATUS, 64),
            (at::STATUS_SHIFT, 16),
            (at::FRESH, 8),
            (at::PROTO_TYPE, 9),
            (at::PROTO_CODE, 7),
            (at::LINE_SHIFT, 0),
            (at::PROTO_SOURCE, 104),
        ],
    )
}

fn described(minor: u32, words: &[(usize, u64)]) -> Recorded {
    let mut process = Recorded {
        bias: BIAS,
        ..Recorded::default()
    };
    process.descriptor[0] = first_word(RuntimeKind::Lua, 5 << 16 | minor << 8);
    process.descriptor[at::LOOP] = LOOP;
    process.descriptor[at::LOOP + 1] = 0x5000;
    process.descriptor[at::BODY] = BODY;
    process.descriptor[at::CALL_REGISTER] = 6;
    process.describe(words);
    process
}

fn is_5_3(process: &Recorded) -> bool {
    process.descriptor[at::STATE_CALL] != 0
}

/// A function of 16 instructions, its code 0x200 behind it.
fn proto(process: &mut Recorded, address: u64, line: u64, source: &str) {
    process.bytes(address, &[0; 0x300]);
    process.words(address + 8, &[process.descriptor[at::PROTO_TYPE]]);
    process.words(address + 24, &[16]);
    let line = line << process.descriptor[at::LINE_SHIFT];
    process.words(address + 40, &[line]);
    let code = 8 * process.descriptor[at::PROTO_CODE];
    process.words(address + code, &[address + 0x200]);
    process.words(
        address + process.descriptor[at::PROTO_SOURCE],
        &[address + 0x280],
    );
    text(process, address + 0x280, source);
}

fn text(process: &mut Recorded, address: u64, text: &str) {
    let (length, is_short) = (text.len() as u64, text.len() <= 40);
    // The hash of a short one stands for what it says.
    let hash = text.bytes().fold(7u64, |hash, byte| {
        (hash * 31 + u64::from(byte)) & 0xffff_ffff
    });
    let head = if is_short {
        4 | length << 24 | hash << 32
    } else {
        0x14
    };
    process.words(address + 8, &[head, length]);
    process.bytes(address + 24, &[0; 64]);
    process.bytes(address + 24, text.as_bytes());
}

/// A `CallInfo` of a function, at an instruction. Of a function written in C without one.
fn call(
    process: &mut Recorded,
    address: u64,
    proto: Option<(u64, u64)>,
    previous: u64,
    status: u64,
) {
    process.bytes(address, &[0; 0x80]);
    let value = address + 0x80;
    process.words(address, &[value, 0, previous]);
    let (saved, shift) = (
        process.descriptor[at::CALL_INSTRUCTION],
        process.descriptor[at::STATUS_SHIFT],
    );
    if let Some((proto, number)) = proto {
        process.words(value, &[address + 0xa0, 0x46]);
        process.words(address + 0xa0, &[0, 6, 0, proto]);
        process.words(address + 8 * saved, &[proto + 0x200 + 4 * (number + 1)]);
    } else {
        process.words(value, &[0x1234, 22]);
    }
    let place = address + process.descriptor[at::CALL_STATUS];
    process.words(place, &[status << shift]);
}

fn native(place: u64, address: u64, fp: u64) -> NativeFrame {
    let sp = 0x7ffd_0000_0000 + 0x100 * place;
    NativeFrame {
        address,
        sp,
        caller_sp: sp + 0x100,
        is_first: u64::from(place == 0),
        fp: Kept::value(fp),
        saved: Kept::LOST,
    }
}

const A: u64 = 0x1_0000;
const B: u64 = 0x2_0000;
const C: u64 = 0x3_0000;

fn b() -> StackEntry {
    function(B, 5 | NOT_CALLED_BY_NEXT)
}

fn c() -> StackEntry {
    function(C, 6 | NOT_CALLED_BY_NEXT)
}

/// `a` called by `b`, which a function in C calls that `c` calls.
fn two_levels(mut process: Recorded) -> (Recorded, Vec<NativeFrame>) {
    let fresh = process.descriptor[at::FRESH];
    for (address, line) in [(A, 3), (B, 5), (C, 0)] {
        proto(&mut process, address, line, "@/srv/app.lua");
    }
    call(&mut process, 0xa000, Some((A, 4)), 0xb000, 0);
    call(&mut process, 0xb000, Some((B, 5)), 0xc000, fresh);
    call(&mut process, 0xc000, None, 0xd000, 2);
    call(&mut process, 0xd000, Some((C, 6)), 0xe000, fresh);
    call(&mut process, 0xe000, None, 0, 2);
    let stack = [
        native(0, 0x9000, 0x1111),
        native(1, LOOP + 0x100, 0xa000),
        native(2, 0x9000, 0x2222),
        native(3, LOOP + 0x200, 0xd000),
        native(4, 0x9000, 0),
    ];
    (process, stack.into())
}

/// Frames that are shown of them.
fn both_levels() -> [StackEntry; 8] {
    [
        StackEntry::Native(0),
        function(A, 4),
        b(),
        StackEntry::Native(1),
        StackEntry::Native(2),
        c(),
        StackEntry::Native(3),
        StackEntry::Native(4),
    ]
}

#[test]
fn levels_belong_where_the_loop_says_that_it_runs_them() {
    for process in [lua_5_4(), lua_5_3()] {
        let (process, stack) = two_levels(process);
        let expected = both_levels();
        assert_eq!(walk::<Lua>(&process, &stack, false), expected);
        // The rest of the chain holds no function.
        assert_eq!(walk::<Lua>(&process, &stack, true), expected);
        let rest = walk::<Lua>(&process, &stack[..2], true);
        assert_eq!(rest[..4], expected[..4]);
        assert_eq!(rest[4..], [expected[5]]);
        assert_eq!(walk::<Lua>(&process, &[], true), []);
    }
}

#[test]
fn a_native_frame_at_stack_pointer_zero_stands_for_no_other() {
    let (process, mut stack) = two_levels(lua_5_4());
    let expected = walk::<Lua>(&process, &stack, false);
    stack[2].sp = NativeFrame::ANY.sp;
    assert_eq!(walk::<Lua>(&process, &stack, false), expected);
    assert_eq!(walk_asking_each::<Lua>(&process, &stack, false), expected);
    stack[2].sp = 0x7ffd_0000_0200;
    stack[2].caller_sp = NativeFrame::ANY.caller_sp;
    assert_eq!(walk_asking_each::<Lua>(&process, &stack, false), expected);
}

#[test]
fn the_cold_part_of_the_loop_is_the_loop() {
    let (mut process, mut stack) = two_levels(lua_5_4());
    process.descriptor[at::LOOP + 2] = 0x1000;
    process.descriptor[at::LOOP + 3] = 0x1100;
    stack[1].address = 0x1080;
    assert_eq!(walk::<Lua>(&process, &stack, false)[1], function(A, 4));
}

#[test]
fn a_loop_that_is_being_entered_has_its_call_in_its_arguments() {
    for process in [lua_5_4(), lua_5_3()] {
        let (mut process, mut stack) = two_levels(process);
        stack.remove(0);
        stack[0].is_first = 1;
        stack[0].address = LOOP + 4;
        stack[0].fp = Kept::value(0xdead);
        if is_5_3(&process) {
            process.registers[5] = 0x7000;
            process.words(0x7000 + 32, &[0xa000]);
        } else {
            process.registers[4] = 0xa000;
        }
        let shown = walk::<Lua>(&process, &stack, false);
        let expected = if is_5_3(&process) {
            // Its loop marks what it was called for by itself.
            [function(A, 4 | NOT_CALLED_BY_NEXT), StackEntry::Native(0)]
        } else {
            [function(A, 4), b()]
        };
        assert_eq!(shown[..2], expected);
        // In its body the register counts.
        stack[0].address = BODY;
        let shown = walk::<Lua>(&process, &stack, false);
        assert_eq!(shown[0], StackEntry::Native(0));
        stack[0].fp = Kept::value(0xa000);
        let shown = walk::<Lua>(&process, &stack, false);
        assert_eq!(shown[..2], expected);
        stack[0].address = MARKED;
        let shown = walk::<Lua>(&process, &stack, false);
        assert_eq!(shown[..2], [function(A, 4), b()]);
    }
}

#[test]
fn a_running_loop_has_its_instruction_in_a_register() {
    let (mut process, mut stack) = two_levels(lua_5_4());
    stack.remove(0);
    stack[0].is_first = 1;
    process.registers[13] = A + 0x200 + 4 * 9;
    let shown = walk::<Lua>(&process, &stack, false);
    assert_eq!(shown[..2], [function(A, 8), b()]);
    // Unless that is none of the function's.
    for register in [0, A + 0x200, A + 0x200 + 4 * 17, u64::MAX] {
        process.registers[13] = register;
        assert_eq!(walk::<Lua>(&process, &stack, false)[0], function(A, 4));
    }
}

#[test]
fn a_loop_that_is_left_runs_no_level() {
    let (process, mut stack) = two_levels(lua_5_4());
    for register in [0xc000, 0xe000, 0x1111, 0, u64::MAX] {
        stack[1].fp = Kept::value(register);
        let shown = walk::<Lua>(&process, &stack[1..], false);
        assert_eq!(
            shown[..4],
            [
                StackEntry::Native(0),
                StackEntry::Native(1),
                c(),
                StackEntry::Native(2)
            ]
        );
    }
    stack[1].fp = Kept::LOST;
    let shown = walk::<Lua>(&process, &stack[1..], false);
    assert_eq!(shown[0], StackEntry::Native(0));
}

#[test]
fn where_a_function_stood_its_result_stands_when_it_has_returned() {
    for process in [lua_5_4(), lua_5_3()] {
        let (mut process, stack) = two_levels(process);
        process.words(0xb000 + 24, &[0xa000]);
        // A number.
        process.words(0xa000 + 0x80, &[7, 3]);
        let shown = walk::<Lua>(&process, &stack, false);
        assert_eq!(
            shown[..3],
            [StackEntry::Native(0), b(), StackEntry::Native(1)]
        );
        // Only if it is a call of the caller's.
        process.words(0xb000 + 24, &[0xa100]);
        let shown = walk::<Lua>(&process, &stack, false);
        assert_eq!(shown[..2], [StackEntry::Native(0), StackEntry::Native(1)]);
        // Another function.
        proto(&mut process, 0x4_0000, 9, "@/srv/app.lua");
        process.words(0xa000 + 0x80, &[0xa000 + 0xa0, 0x46]);
        process.words(0xa000 + 0xa0, &[0, 6, 0, 0x4_0000]);
        let shown = walk::<Lua>(&process, &stack, false);
        assert_eq!(
            shown[..3],
            [StackEntry::Native(0), b(), StackEntry::Native(1)]
        );
    }
}

#[test]
fn a_loop_whose_own_call_has_returned_runs_no_level() {
    for process in [lua_5_4(), lua_5_3()] {
        let (mut process, mut stack) = two_levels(process);
        stack[1].fp = Kept::value(0xb000);
        process.words(0xc000 + 24, &[0xb000]);
        process.words(0xb000 + 0x80, &[7, 3]);
        let shown = walk::<Lua>(&process, &stack, false);
        let natives = [0, 1, 2].map(StackEntry::Native);
        assert_eq!(shown[..4], [natives[0], natives[1], natives[2], c()]);
    }
}

#[test]
fn callers_of_a_resumed_coroutine_come_before_who_resumed_it() {
    let (mut process, stack) = two_levels(lua_5_4());
    // The coroutine's: `a` was called through a function in C by `b`, in a loop that is gone.
    call(&mut process, 0xa000, Some((A, 4)), 0xa800, 4);
    call(&mut process, 0xa800, None, 0xb000, 2);
    call(&mut process, 0xb000, Some((B, 5)), 0xb800, 4);
    call(&mut process, 0xb800, None, 0, 2);
    let expected = [
        StackEntry::Native(0),
        function(A, 4 | NOT_CALLED_BY_NEXT),
        StackEntry::Native(1),
        StackEntry::Native(2),
        b(),
        c(),
        StackEntry::Native(3),
        StackEntry::Native(4),
    ];
    assert_eq!(walk::<Lua>(&process, &stack, false), expected);
    // At the root of a stack they come behind all native frames.
    let root = walk::<Lua>(&process, &stack[..3], true);
    assert_eq!(root[..4], expected[..4]);
    assert_eq!(root[4..], [expected[4]]);
}

#[test]
fn tail_calls_are_marked() {
    let (mut process, stack) = two_levels(lua_5_4());
    call(&mut process, 0xa000, Some((A, 4)), 0xb000, 32);
    let shown = walk::<Lua>(&process, &stack, false);
    assert_eq!(shown[1], function(A, 4 | NOT_CALLED_BY_NEXT));
}

#[test]
fn memory_that_is_no_function_breaks_the_chain() {
    let (mut process, stack) = two_levels(lua_5_4());
    process.words(B + 8, &[5]);
    let shown = walk::<Lua>(&process, &stack, false);
    assert_eq!(
        shown[..3],
        [StackEntry::Native(0), function(A, 4), StackEntry::Broken]
    );
    assert!(!shown.contains(&b()), "{shown:?}");
}

#[test]
fn an_endless_chain_ends() {
    let (mut process, stack) = two_levels(lua_5_4());
    call(&mut process, 0xb000, Some((B, 5)), 0xb000, 0);
    assert!(walk::<Lua>(&process, &stack, false).len() <= 1024 + stack.len());
}

#[test]
fn functions_at_one_address_have_different_checks() {
    let check = |process: &Recorded| Lua::check(process, A).unwrap();
    let long = "return function() return made_0001() end -- and so on";
    let other = "return function() return made_0001() end -- and so forth";
    for mut process in [lua_5_4(), lua_5_3()] {
        let mut checks = vec![];
        for (line, source) in [
            (3, "@a.lua"),
            (4, "@a.lua"),
            (3, "@b.lua"),
            (3, long),
            (3, other),
            (3, ""),
        ] {
            proto(&mut process, A, line, source);
            checks.push(check(&process));
        }
        assert_distinct(&checks);
        proto(&mut process, A, 3, "@a.lua");
        assert_eq!(check(&process), checks[0]);
    }
}

#[test]
fn files_are_found() {
    for mut process in [lua_5_4(), lua_5_3()] {
        let path = "@/srv/www/applications/with/a/long/path/to/the/file.lua";
        proto(&mut process, A, 7, path);
        let strings = Lua::strings(&process, A).unwrap();
        assert_eq!(extent(strings.file), (A + 0x280 + 24, path.len() as u32));
        assert_eq!(strings.file.encoding, Encoding::Bytes as u32);
        assert_eq!((strings.name.address, strings.first_line), (0, 7));
        // A program's text may be of any length.
        process.words(A + 0x280 + 8, &[0x14, 1 << 20]);
        process.bytes(A + 0x280 + 24, b"return 1");
        assert_eq!(Lua::strings(&process, A).unwrap().file.bytes, 80);
        process.words(A + 0x280 + 8, &[0x14, 1 << 40]);
        assert_eq!(Lua::strings(&process, A), None);
    }
}

#[test]
fn broken_memory_ends_in_marks() {
    let (process, stack) = two_levels(lua_5_4());
    walk_changed_bytes::<Lua>(&process, &stack);
}

const RETURN: u64 = 0x9800;
const STATE: u64 = 0x5_0000;
const OTHER_STATE: u64 = 0x6_0000;

/// The same program, of a Lua whose loop keeps its call in r14, which the walk does not follow.
fn unfollowed(mut process: Recorded) -> Recorded {
    process.descriptor[at::CALL_REGISTER] = 14;
    process.descriptor[at::SAVED] = LOOP + 0x10;
    process.descriptor[at::SITES] = 2;
    process.descriptor[at::FIRST_SITE] = site(RETURN - 0x100, -24, false).unwrap();
    process.descriptor[at::FIRST_SITE + 1] = site(RETURN, -56, false).unwrap();
    process
}

/// A `lua_State` at its newest `CallInfo`.
fn state(process: &mut Recorded, address: u64, newest: u64) {
    process.words(address + 8, &[8, 0, 0, newest]);
}

/// Has a native frame of the loop return to where its state is saved.
fn called_with(process: &mut Recorded, native: &NativeFrame, state: u64) {
    process.words(native.caller_sp - 56, &[state, 1, 2, 3, 4, 5, RETURN]);
}

/// As `two_levels`, where the first frame is of the loop's own object, and nobody has saved r14.
fn two_levels_by_state(process: Recorded) -> (Recorded, Vec<NativeFrame>) {
    let (mut process, stack) = two_levels(unfollowed(process));
    state(&mut process, STATE, 0xa000);
    for native in [&stack[1], &stack[3]] {
        called_with(&mut process, native, STATE);
    }
    process.words(stack[1].sp - 56, &[7, 7, 7, 7, 7, 7]);
    process.registers[14] = 0xa000;
    (process, stack)
}

#[test]
fn a_loop_whose_call_is_not_followed_has_the_levels_of_its_state() {
    for process in [lua_5_4(), lua_5_3()] {
        let (mut process, stack) = two_levels_by_state(process);
        let expected = both_levels();
        assert_eq!(walk::<Lua>(&process, &stack, false), expected);
        assert_eq!(walk::<Lua>(&process, &stack, true), expected);
        // A place that it is not known to return to, and what is no state.
        process.words(stack[3].caller_sp - 8, &[RETURN + 1]);
        let marked = [&expected[..5], &[StackEntry::Broken], &expected[6..]].concat();
        assert_eq!(walk::<Lua>(&process, &stack, false), marked);
        called_with(&mut process, &stack[3], 0x7777_0000);
        assert_eq!(walk::<Lua>(&process, &stack, false), marked);
    }
}

#[test]
fn a_state_in_the_frame_that_called_the_loop_is_found() {
    let (mut process, stack) = two_levels_by_state(lua_5_4());
    process.descriptor[at::FIRST_SITE + 1] = site(RETURN, 0, false).unwrap();
    for native in [&stack[1], &stack[3]] {
        process.words(native.caller_sp - 56, &[0; 6]);
        process.words(native.caller_sp, &[STATE]);
    }
    let shown = walk::<Lua>(&process, &stack, false);
    assert_eq!(shown[1..3], [function(A, 4), b()]);
    assert_eq!(shown[5], c());
    // By that frame's rbp, which the loop has saved.
    process.descriptor[at::FIRST_SITE + 1] = site(RETURN, -0x40, true).unwrap();
    process.descriptor[at::SAVED_FP] = (-16i64) as u64;
    for native in [&stack[1], &stack[3]] {
        process.words(native.caller_sp, &[0]);
        process.words(native.caller_sp - 16, &[native.caller_sp + 0x80]);
        process.words(native.caller_sp + 0x40, &[STATE]);
    }
    assert_eq!(walk::<Lua>(&process, &stack, false), shown);
}

#[test]
fn levels_of_a_coroutine_are_followed_by_those_of_who_resumed_it() {
    let (mut process, stack) = two_levels_by_state(lua_5_4());
    // The coroutine's chain ends: `c` is its resumer's.
    call(&mut process, 0xb000, Some((B, 5)), 0xb800, 4);
    call(&mut process, 0xb800, None, 0, 2);
    state(&mut process, OTHER_STATE, 0xc000);
    called_with(&mut process, &stack[3], OTHER_STATE);
    let expected = both_levels();
    assert_eq!(walk::<Lua>(&process, &stack, false), expected);
}

#[test]
fn a_loop_that_is_entered_has_its_state_in_a_register() {
    for process in [lua_5_4(), lua_5_3()] {
        let (mut process, mut stack) = two_levels_by_state(process);
        stack.remove(0);
        stack[0].is_first = 1;
        stack[0].address = LOOP + 4;
        process.words(stack[0].caller_sp - 56, &[0; 6]);
        process.registers[5] = STATE;
        process.registers[14] = 0;
        // 5.3 marks what it was called for by itself.
        if is_5_3(&process) {
            call(&mut process, 0xa000, Some((A, 4)), 0xc000, 0);
            let shown = walk::<Lua>(&process, &stack, false);
            assert_eq!(
                shown[..2],
                [function(A, 4 | NOT_CALLED_BY_NEXT), StackEntry::Native(0)]
            );
            assert_eq!(shown[3], function(C, 6 | NOT_CALLED_BY_NEXT));
        } else {
            let shown = walk::<Lua>(&process, &stack, false);
            assert_eq!(shown[..2], [function(A, 4), b()]);
        }
    }
}

#[test]
fn a_loop_whose_last_call_has_returned_runs_no_level() {
    let (mut process, mut stack) = two_levels_by_state(lua_5_4());
    // `b` is what the loop was called for, and its caller is the newest again.
    state(&mut process, STATE, 0xc000);
    process.words(0xc000 + 24, &[0xb000]);
    let at_rest = [
        StackEntry::Native(0),
        StackEntry::Native(1),
        StackEntry::Native(2),
        c(),
    ];
    stack[0].is_first = 1;
    // In the register that nobody has saved, and saved by the function that the loop called.
    process.registers[14] = 0xb000;
    assert_eq!(walk::<Lua>(&process, &stack, false)[..4], at_rest);
    process.registers[14] = 0x1234;
    process.words(stack[1].sp - 24, &[0xb000]);
    assert_eq!(walk::<Lua>(&process, &stack, false)[..4], at_rest);
    // If it was not called for it, it goes on with the newest.
    process.words(0xb000 + 56, &[0]);
    assert_eq!(walk::<Lua>(&process, &stack, false)[1], c());
    // The loop itself, which has its caller's registers back.
    call(&mut process, 0xb000, Some((B, 5)), 0xc000, 4);
    process.words(0xc000 + 24, &[0xb000]);
    stack.remove(0);
    stack[0].is_first = 1;
    for register in [0xb000, 0x1234] {
        process.registers[14] = register;
        assert_eq!(
            walk::<Lua>(&process, &stack, false)[..3],
            [at_rest[0], at_rest[1], c()]
        );
    }
}

#[test]
fn what_is_about_to_be_called_is_not_running() {
    let (mut process, stack) = two_levels_by_state(lua_5_4());
    // A function in C has `a` as its next, which the loop has not begun.
    call(&mut process, 0xa000, Some((A, 4)), 0xa800, 0);
    call(&mut process, 0xa800, None, 0xb000, 2);
    let shown = walk::<Lua>(&process, &stack, false);
    assert_eq!(shown[1..3], [b(), StackEntry::Native(1)]);
}

#[test]
fn a_call_in_the_loop_s_own_frame_is_read_from_there() {
    for base in [6, 7] {
        let (mut process, stack) = two_levels(lua_5_4());
        process.descriptor[at::CALL_REGISTER] = base;
        process.descriptor[at::CALL_IN_FRAME] = 1;
        process.descriptor[at::CALL_OFFSET] = (-8i64) as u64;
        let mut natives = stack.clone();
        for (native, call) in [(1, 0xa000), (3, 0xd000)] {
            natives[native].fp = Kept::value(natives[native].caller_sp - 0x10);
            let place = if base == 6 {
                natives[native].caller_sp - 0x10
            } else {
                natives[native].sp
            };
            process.words(place - 8, &[call]);
        }
        let shown = walk::<Lua>(&process, &natives, false);
        assert_eq!(shown[1..3], [function(A, 4), b()]);
        assert_eq!(shown[5], c());
    }
}

#[test]
fn a_site_that_does_not_fit_is_none() {
    assert_eq!(site(0x1234, -24, false), Some(0x1234_ffe8));
    assert_eq!(site(0x1234, 24, true), Some(0x1234_0019));
    assert_eq!(site(1 << 48, 0, false), None);
    assert_eq!(site(0, 1 << 15, false), None);
    assert_eq!(site(0, 4, false), None);
}
