extern crate std;

use super::*;
use crate::runtime::memory::{Recorded, leave_code};
use crate::runtime::testing::text;
use crate::runtime::{
    COMPILED, ChainFrame, CodeOwner as _, FunctionInfo as _, RuntimeKind, first_word,
};
use crate::walk::Registers;
use crate::walk::native::{Frame, Kept, Reached};
use proptest::prelude::{any, proptest};
use std::vec::Vec;

const BIAS: u64 = 0x7f00_0000_0000;
const HEAPS: u64 = 0x1000;
const CALL_STUB_VARIABLE: u64 = 0x1100;
const LIST: u64 = 0x2_0000;
const HEAP: u64 = 0x3_0000;
const LOW: u64 = 0x7e00_0000_0000;
const SEGMENTS: u64 = 0x4_0000;
const NAMES: u64 = 0x5_0000;
const METHOD: u64 = 0x6_0000;
const CONSTANT: u64 = 0x6_1000;
const POOL: u64 = 0x6_2000;
const CLASS: u64 = 0x6_3000;
const SYMBOLS: u64 = 0x6_4000;
const STACK: u64 = 0x7ffd_0000_0000;
const CALLER: u64 = LOW + 0x9000;

/// Blobs: compiled code in the segments from 4 on, the interpreter in those from 32 on, a stub in those from 64 on, what
/// jumps to virtual methods in those from 96 on.
const CODE: u64 = LOW + 4 * 128 + 16;
const INTERPRETER: u64 = LOW + 32 * 128 + 16;
const STUB: u64 = LOW + 64 * 128 + 16;
const VTABLE_STUBS: u64 = LOW + 96 * 128 + 16;
/// Behind a blob's beginning, its code.
const INSTRUCTIONS: u64 = 0x100;

fn offsets() -> Offsets {
    Offsets {
        elements: 8,
        heap_memory: 24,
        heap_segments: 136,
        segment_bits: 7,
        heap_block: 16,
        block_length: 0,
        block_used: 8,
        blob_name: 96,
        frame_size: 28,
        frame_complete: 20,
        code: 32,
        method: 112,
        compile_id: 304,
        const_method: 8,
        const_method_bytes: 48,
        constants: 8,
        name_index: 34,
        constant_pool_bytes: 72,
        pool_holder: 24,
        file_index: 54,
        class_name: 24,
        symbol_length: 4,
        symbol_body: 6,
        ..Offsets::default()
    }
}

fn blob(process: &mut Recorded, address: u64, name: u64, frame_words: u64, id: u64) {
    process.words(address - 16, &[8, 1]);
    process.bytes(address, &[0; 0x400]);
    process.words(
        address + 16,
        &[8 << 32, frame_words << 32, address + INSTRUCTIONS],
    );
    process.words(address + 96, &[NAMES + name, 0, METHOD]);
    process.words(address + 304, &[id]);
}

fn symbol(process: &mut Recorded, place: u64, text: &str) {
    process.bytes(SYMBOLS + place, &[0; 0x80]);
    process.bytes(SYMBOLS + place + 4, &(text.len() as u16).to_le_bytes());
    process.bytes(SYMBOLS + place + 6, text.as_bytes());
}

fn process() -> Recorded {
    let mut process = Recorded {
        bias: BIAS,
        ..Recorded::default()
    };
    process.descriptor[0] = first_word(RuntimeKind::HotSpot, 17 << 16);
    process.descriptor[at::HEAPS] = HEAPS;
    process.descriptor[at::CALL_STUB] = CALL_STUB_VARIABLE;
    process.descriptor[at::OFFSETS..at::OFFSETS + Offsets::WORDS]
        .copy_from_slice(&offsets().words());
    process.words(BIAS + HEAPS, &[LIST]);
    process.words(BIAS + CALL_STUB_VARIABLE, &[STUB + INSTRUCTIONS + 0x40]);
    process.words(LIST, &[1, LIST + 0x100]);
    process.words(LIST + 0x100, &[HEAP]);
    process.words(HEAP + 24, &[LOW, LOW + 0x1_0000]);
    process.words(HEAP + 136, &[SEGMENTS]);
    process.bytes(SEGMENTS - 8, &[0xff; 0x210]);
    for (first, count) in [(4u64, 8), (32, 8), (64, 8), (96, 8)] {
        let back: Vec<u8> = (0..count).collect();
        process.bytes(SEGMENTS + first, &back);
    }
    process.bytes(
        NAMES,
        b"nmethod\0Interpreter\0RuntimeStub\0vtable chunks\0\0\0\0\0\0\0ExceptionBlob\0\0\0\0",
    );
    blob(&mut process, CODE, 0, 6, 77);
    blob(&mut process, INTERPRETER, 8, 0, 0);
    blob(&mut process, STUB, 20, 4, 0);
    blob(&mut process, VTABLE_STUBS, 32, 0, 0);
    process.words(METHOD, &[0, CONSTANT]);
    process.bytes(CONSTANT, &[0; 0x100]);
    process.words(CONSTANT + 8, &[POOL]);
    process.bytes(CONSTANT + 34, &3u16.to_le_bytes());
    process.bytes(POOL, &[0; 0x100]);
    process.words(POOL + 24, &[CLASS]);
    process.bytes(POOL + 54, &5u16.to_le_bytes());
    process.words(POOL + 72 + 8 * 3, &[SYMBOLS | 1, 0, SYMBOLS + 0x100]);
    process.words(CLASS + 24, &[SYMBOLS + 0x200]);
    symbol(&mut process, 0, "work");
    symbol(&mut process, 0x100, "Work.java");
    symbol(&mut process, 0x200, "srv/Work");
    process
}

/// The caller and the function of a frame.
fn look(process: &Recorded, frame: &Frame) -> (Option<Frame>, Option<ChainFrame>) {
    leave_code::<HotSpot>(process, frame)
        .map_or((None, None), |(caller, function)| (Some(caller), function))
}

fn called(ip: u64, sp: u64, fp: u64) -> Frame {
    Frame::called(Registers { ip, sp, fp })
}

fn running(ip: u64, sp: u64, fp: u64) -> Frame {
    Frame::running(Registers { ip, sp, fp }, 0)
}

#[test]
fn compiled_code_is_left_by_the_size_of_its_frames() {
    let mut process = process();
    process.words(STACK, &[0; 16]);
    process.words(STACK + 32, &[0xbbbb, CALLER]);
    let ip = CODE + INSTRUCTIONS + 0x80;
    let (caller, function) = look(&process, &called(ip, STACK, 0));
    let caller = caller.unwrap();
    assert_eq!((caller.ip, caller.sp), (CALLER, STACK + 48));
    assert_eq!(caller.fp.read(&process), Ok(0xbbbb));
    let function = function.unwrap();
    assert_eq!((function.function, function.check), (COMPILED | CODE, 77));
    assert_eq!(function.position, 0x7f);
    assert_eq!(HotSpot::check(&process, function.function), Some(77));
}

#[test]
fn words_that_a_method_has_pushed_are_passed_over() {
    let ip = CODE + INSTRUCTIONS + 0x80;
    for pushed in [0, 8, 16, 24] {
        let mut process = process();
        process.bytes(ip - 8, &[0x90; 16]);
        process.words(STACK, &[0x1234; 16]);
        process.words(STACK + 32 + pushed, &[0xbbbb, CALLER]);
        let (caller, _) = look(&process, &running(ip, STACK, 0));
        if pushed == 24 {
            assert_eq!(caller, None);
            continue;
        }
        let caller = caller.unwrap();
        assert_eq!((caller.ip, caller.sp), (CALLER, STACK + 48 + pushed));
        assert_eq!(caller.fp.read(&process), Ok(0xbbbb));
    }
}

#[test]
fn a_known_method_is_left_as_long_as_its_number_is_there() {
    let mut process = process();
    process.words(STACK, &[0; 16]);
    process.words(STACK + 32, &[0xbbbb, CALLER]);
    let frame = called(CODE + INSTRUCTIONS + 0x80, STACK, 0);
    let (caller, function) = look(&process, &frame);
    let function = function.unwrap();
    let again = |process: &Recorded, function: &ChainFrame| {
        HotSpot::leave_known(process, &frame, function, 48).map(|(caller, _)| caller)
    };
    assert_eq!(again(&process, &function), caller);
    let stub = ChainFrame {
        function: METHOD,
        ..function
    };
    assert_eq!(again(&process, &stub), None);
    process.words(CODE + 304, &[78]);
    assert_eq!(again(&process, &function), None);
    assert_eq!(look(&process, &frame).1.unwrap().check, 78);
}

#[test]
fn a_frame_that_is_not_there_is_told_by_instructions() {
    let mut process = process();
    process.words(STACK, &[0; 16]);
    let code = CODE + INSTRUCTIONS;
    process.bytes(code - 8, &[0x90; 0x80]);
    // Where, with which bytes before and at the address, and how far above the stack pointer the return address is.
    let cases: [(u64, &[u8], &[u8], u64); 14] = [
        (0, b"", b"\x55\x48\x83\xec\x20", 0),
        // Behind `sub`, before and behind the frame pointer is saved, and behind the barrier's comparison.
        (4, b"\x48\x81\xec\x28\0\0\0", b"\x48\x89\x6c\x24\x20", 40),
        (
            4,
            b"\x48\x81\xec\x28\0\0\0",
            b"\x48\x89\xac\x24\x20\0\0\0",
            40,
        ),
        (6, b"\x89\x6c\x24\x20", b"\x41\x81\x7f\x20\x01\0\0\0", 40),
        (
            6,
            b"\x89\x6c\x24\x20",
            b"\x41\x81\xbf\x20\x01\0\0\x01\0\0\0",
            40,
        ),
        (5, b"\x48\x89\x6c\x24\x20", b"\x48\xff\x74\x24\x18", 40),
        (7, b"\x41\x81\x7f\x20\x01\0\0\0", b"\x0f\x85\x29\0\0\0", 40),
        (1, b"\x55", b"\x48\x83\xec\x20", 8),
        (0x20, b"", b"\x5d\x49\x3b\x67\x28\x77\x04\xc3", 8),
        (
            0x20,
            b"",
            b"\x49\x3b\xa7\x28\x01\x00\x00\x0f\x87\x00\x00\x00\x00\xc3",
            0,
        ),
        (0x20, b"", b"\xc5\xf8\x77\xc3", 0),
        // An exception goes on.
        (0x20, b"", b"\x5d\xe9\0\x10\0\0", 8),
        (0x20, b"\x5d", b"\xe9\0\x10\0\0", 0),
        (0x20, b"", b"\x90\xc3", 40),
    ];
    for (offset, before, at, above) in cases {
        let mut process = process.clone();
        let ip = code + offset;
        process.bytes(ip - before.len() as u64, before);
        process.bytes(ip, at);
        process.words(STACK + above, &[CALLER]);
        let (caller, function) = look(&process, &running(ip, STACK, 0x1234));
        let caller = caller.unwrap();
        assert_eq!(
            (caller.ip, caller.sp),
            (CALLER, STACK + above + 8),
            "{at:x?}"
        );
        let saves = at.starts_with(b"\x48\x89");
        if above == 0 || saves {
            assert_eq!(caller.fp, Kept::value(0x1234), "{at:x?}");
        } else {
            assert_eq!(caller.fp, Kept::at(STACK + above - 8), "{at:x?}");
        }
        assert!(function.is_some(), "{at:x?}");
    }
}

/// A process with a frame of the interpreter, and where its frame pointer is.
fn interpreting() -> (Recorded, u64) {
    let mut process = process();
    let fp = STACK + 0x100;
    process.words(fp - 64, &[CONSTANT + 48 + 7]);
    process.words(fp - 24, &[METHOD]);
    process.words(fp - 8, &[fp + 0x80, 0xbbbb, CALLER]);
    (process, fp)
}

#[test]
fn frames_of_the_interpreter_have_methods_and_bytecodes() {
    let (mut process, fp) = interpreting();
    let ip = INTERPRETER + INSTRUCTIONS + 0x40;
    let (caller, function) = look(&process, &called(ip, STACK, fp));
    let caller = caller.unwrap();
    assert_eq!((caller.ip, caller.sp), (CALLER, fp + 0x80));
    assert_eq!(
        (caller.fp, caller.reached),
        (Kept::value(0xbbbb), Reached::Called)
    );
    let function = function.unwrap();
    assert_eq!((function.function, function.position), (METHOD, 7));
    assert_eq!(HotSpot::check(&process, METHOD), Some(function.check));
    // Compiled code that called it had zero in the register.
    let mut called_by_compiled = process.clone();
    called_by_compiled.words(fp, &[0]);
    let (caller, _) = look(&called_by_compiled, &called(ip, STACK, fp));
    assert_eq!(caller.unwrap().fp, Kept::value(0));
    // While it runs, the bytecode is in a register.
    process.registers[13] = CONSTANT + 48 + 9;
    let (_, function) = look(&process, &running(ip, STACK, fp));
    assert_eq!(function.unwrap().position, 9);
    // Before it has made its frame, there is none.
    process.registers[13] = STACK;
    let (_, function) = look(&process, &running(ip, STACK, fp));
    assert_eq!(function, None);
}

#[test]
fn the_interpreter_is_remembered_and_what_else_lies_there_is_not_taken_for_it() {
    let (mut process, fp) = interpreting();
    let frame = called(INTERPRETER + INSTRUCTIONS + 0x40, STACK, fp);
    let look = |process: &Recorded| look(process, &frame).1.map(|function| function.function);
    assert_eq!(look(&process), Some(METHOD));
    // The map is not asked any more.
    process.bytes(SEGMENTS, &[0xff; 0x80]);
    assert_eq!(look(&process), Some(METHOD));
    // In another process, code of another kind lies there, and behind it what the map leads to.
    process.words(INTERPRETER + 96, &[NAMES]);
    let behind = INTERPRETER + 128;
    blob(&mut process, behind, 0, 0, 0);
    let back: Vec<u8> = (0..7).collect();
    process.bytes(SEGMENTS + 33, &back);
    assert_eq!(look(&process), Some(COMPILED | behind));
}

#[test]
fn stubs_have_names_and_the_way_into_java_is_left_by_its_frame_pointer() {
    let mut process = process();
    process.words(STACK, &[0; 16]);
    process.words(STACK + 16, &[0xbbbb, CALLER]);
    let (caller, function) = look(&process, &called(STUB + INSTRUCTIONS + 0x20, STACK, 0));
    assert_eq!(caller.unwrap().sp, STACK + 32);
    let function = function.unwrap();
    let strings = HotSpot::strings(&process, function.function).unwrap();
    assert_eq!((strings.name.address, strings.extra), (NAMES + 20, 0));
    let fp = STACK + 0x40;
    process.words(fp, &[STACK + 0x200, CALLER]);
    let (caller, function) = look(&process, &called(STUB + INSTRUCTIONS + 0x40, STACK, fp));
    assert_eq!((caller.unwrap().ip, caller.unwrap().sp), (CALLER, fp + 16));
    assert_eq!(function.unwrap().function, CALL_STUB);
}

#[test]
fn stubs_are_left_before_they_make_a_frame_and_behind_it() {
    /// A stub that has frame pointers.
    const CODE: u64 = STUB + INSTRUCTIONS + 0x20;
    let outer = STACK + 0x200;
    // With which bytes before and at the address, and how far above the stack pointer the return address is.
    let cases: [(&[u8], &[u8], u64); 3] = [
        (b"\x90", b"\x55\x48\x8b\xec", 0),
        (b"\x55", b"\x48\x8b\xec", 8),
        (b"\xc9", b"\xc3", 0),
    ];
    for (before, at, above) in cases {
        let mut process = process();
        blob(&mut process, STUB, 20, 0, 0);
        process.bytes(CODE - before.len() as u64, before);
        process.bytes(CODE, at);
        process.words(STACK, &[outer; 16]);
        process.words(STACK + above, &[CALLER]);
        // Its caller has no frame pointer, but one further out.
        process.words(outer, &[outer + 0x40, CALLER + 0x40]);
        let (caller, _) = look(&process, &running(CODE, STACK, outer));
        let caller = caller.unwrap();
        assert_eq!((caller.ip, caller.sp), (CALLER, STACK + above + 8));
        assert_eq!(caller.fp.read(&process), Ok(outer));
    }
}

#[test]
fn the_exception_blob_is_left_with_and_without_its_frame() {
    let mut process = process();
    blob(&mut process, STUB, 52, 2, 0);
    // Of where its frame is complete, it says never.
    process.words(STUB + 16, &[u64::from(u32::MAX) << 32, 2 << 32]);
    let ip = STUB + INSTRUCTIONS + 0x17;
    process.bytes(ip - 8, &[0x90; 16]);
    process.words(STACK, &[0xbbbb, CALLER, 0, 0]);
    let (caller, _) = look(&process, &running(ip, STACK, 0x1234));
    assert_eq!(
        (caller.unwrap().ip, caller.unwrap().sp),
        (CALLER, STACK + 16)
    );
    process.words(STACK, &[0, 0, 0, 0]);
    assert_eq!(look(&process, &running(ip, STACK, 0x1234)).0, None);
    process.registers[1] = CALLER;
    let caller = look(&process, &running(ip, STACK, 0x1234)).0.unwrap();
    assert_eq!(
        (caller.ip, caller.sp, caller.fp),
        (CALLER, STACK, Kept::value(0x1234))
    );
}

#[test]
fn what_jumps_to_virtual_methods_has_no_frame() {
    let mut process = process();
    process.words(STACK, &[CALLER]);
    // Compiled code has no frame pointer, but may have an address there that looks like one.
    let fp = STACK + 0x40;
    process.words(fp, &[STACK + 0x200, CALLER + 0x100]);
    let (caller, function) = look(
        &process,
        &running(VTABLE_STUBS + INSTRUCTIONS + 0x20, STACK, fp),
    );
    let caller = caller.unwrap();
    assert_eq!((caller.ip, caller.sp), (CALLER, STACK + 8));
    assert_eq!(caller.fp, Kept::value(fp));
    let strings = HotSpot::strings(&process, function.unwrap().function).unwrap();
    assert_eq!(strings.name.address, NAMES + 32);
}

#[test]
fn names_are_those_of_the_constants() {
    let process = process();
    for key in [METHOD, COMPILED | CODE] {
        let strings = HotSpot::strings(&process, key).unwrap();
        assert_eq!(text(&process, strings.owner), "srv/Work");
        assert_eq!(text(&process, strings.name), "work");
        assert_eq!(text(&process, strings.file), "Work.java");
        assert_eq!(strings.extra, METHOD);
    }
}

#[test]
fn other_memory_is_nobody_s() {
    let process = process();
    for ip in [LOW - 0x100, LOW + 20 * 128, LOW + 0x2_0000, 0, u64::MAX] {
        assert_eq!(
            look(&process, &called(ip, STACK, STACK)),
            (None, None),
            "{ip:x}"
        );
    }
}

proptest! {
    /// Forged memory makes no walk fail.
    #[test]
    fn forged_memory_is_survived(
        changes in proptest::collection::vec((0usize..4000, any::<u64>()), 1..40),
        place in 0u64..0x1_0000,
        is_first in any::<bool>(),
    ) {
        let mut process = process();
        process.words(STACK, &[STACK; 64]);
        let addresses: Vec<u64> = process.memory.keys().copied().step_by(8).collect();
        for (index, word) in changes {
            process.words(addresses[index % addresses.len()], &[word]);
        }
        let (ip, sp, fp) = (LOW + place, STACK, STACK + 0x100);
        let frame = if is_first { running(ip, sp, fp) } else { called(ip, sp, fp) };
        let (_, function) = look(&process, &frame);
        if let Some(function) = function {
            let _ = HotSpot::strings(&process, function.function);
            let _ = HotSpot::check(&process, function.function);
            let _ = HotSpot::leave_known(&process, &frame, &function, place);
        }
    }
}
