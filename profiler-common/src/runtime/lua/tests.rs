extern crate std;

use super::*;
use crate::runtime::memory::{Recorded, Shown, walk};
use crate::runtime::{Encoding, RuntimeKind, first_word};
use crate::walk::native::Kept;
use std::{vec, vec::Vec};

const BIAS: u64 = 0;
const LOOP: u64 = 0x4000;
const BODY: u64 = 0x4040;

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
    for &(place, word) in words {
        process.descriptor[place] = word;
    }
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
        bx: Kept::LOST,
    }
}

fn function(function: u64, position: u32) -> Shown {
    Shown::Function { function, position }
}

const A: u64 = 0x1_0000;
const B: u64 = 0x2_0000;
const C: u64 = 0x3_0000;

fn b() -> Shown {
    function(B, 5 | NOT_CALLED_BY_NEXT)
}

fn c() -> Shown {
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

#[test]
fn levels_belong_where_the_loop_says_that_it_runs_them() {
    for process in [lua_5_4(), lua_5_3()] {
        let (process, stack) = two_levels(process);
        let expected = [
            Shown::Native(0),
            function(A, 4),
            b(),
            Shown::Native(1),
            Shown::Native(2),
            c(),
            Shown::Native(3),
            Shown::Native(4),
        ];
        assert_eq!(walk::<Lua>(&process, &stack, false), expected);
        // What is left of the chain holds no function.
        assert_eq!(walk::<Lua>(&process, &stack, true), expected);
        let rest = walk::<Lua>(&process, &stack[..2], true);
        assert_eq!(rest[..4], expected[..4]);
        assert_eq!(rest[4..], [expected[5]]);
        assert_eq!(walk::<Lua>(&process, &[], true), []);
    }
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
        assert_eq!(shown[..2], [function(A, 4), b()]);
        // In its body the register counts.
        stack[0].address = BODY;
        let shown = walk::<Lua>(&process, &stack, false);
        assert_eq!(shown[0], Shown::Native(0));
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
            [Shown::Native(0), Shown::Native(1), c(), Shown::Native(2)]
        );
    }
    stack[1].fp = Kept::LOST;
    let shown = walk::<Lua>(&process, &stack[1..], false);
    assert_eq!(shown[0], Shown::Native(0));
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
        Shown::Native(0),
        function(A, 4 | NOT_CALLED_BY_NEXT),
        Shown::Native(1),
        Shown::Native(2),
        b(),
        c(),
        Shown::Native(3),
        Shown::Native(4),
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
        [Shown::Native(0), function(A, 4), Shown::Broken]
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
        for (place, one) in checks.iter().enumerate() {
            assert!(!checks[..place].contains(one), "{checks:?}");
        }
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
        assert_eq!(strings.file.address, A + 0x280 + 24);
        assert_eq!(strings.file.bytes as usize, path.len());
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
    let addresses: Vec<u64> = process.memory.keys().copied().collect();
    let mut seed = 1u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        seed >> 33
    };
    for _ in 0..2000 {
        let mut broken = process.clone();
        for _ in 0..8 {
            let address = addresses[random() as usize % addresses.len()];
            broken.bytes(address, &[random() as u8]);
        }
        let shown = walk::<Lua>(&broken, &stack, true);
        assert!(shown.len() <= 1024 + stack.len() + 2, "{}", shown.len());
        for shown in shown {
            if let Shown::Function { function, .. } = shown {
                assert!(Lua::check(&broken, function).is_some());
            }
        }
    }
}
