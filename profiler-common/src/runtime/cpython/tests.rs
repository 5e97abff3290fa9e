//! Chains in memory made as each version lays it out.

mod broken;
mod outer;

extern crate std;

use super::{CPython, FREE_THREADED_HEAD, Shape, at};
use crate::runtime::{
    Described as _, Encoding, FunctionInfo as _, NativeFrame,
    memory::{Recorded, StackEntry, walk},
    testing::{assert_distinct, extent, function},
};
use std::{vec, vec::Vec};

const BIAS: u64 = 0x7f00_0000_0000;
const RUNTIME: u64 = 0x1000;
const CODE_TYPE: u64 = 0x2000;
const THREAD: u64 = 0x5500_0000_0000;
const STATE: u64 = 0x5600_0000_0000;

/// The descriptor of a version, and a thread whose state is at [`STATE`].
fn process(shape: Shape, words: &[(usize, u64)]) -> Recorded {
    let mut process = Recorded {
        bias: BIAS,
        thread_pointer: THREAD,
        ..Recorded::default()
    };
    process.describe(words);
    process.descriptor[at::SHAPE] = shape as u64;
    process.descriptor[at::KEY] = RUNTIME + 592;
    process.descriptor[at::CODE_TYPE] = CODE_TYPE;
    // Key 2.
    process.words(BIAS + RUNTIME + 592, &[1 | 2 << 32]);
    process.words(THREAD + 1296, &[THREAD + 0x310]);
    process.words(THREAD + 0x310 + 2 * 16 + 8, &[STATE]);
    process
}

fn old(shape: Shape) -> Recorded {
    process(
        shape,
        &[
            (at::HEAD, 24),
            (at::BOUNDARY, 48),
            (at::CFRAME_PREVIOUS, 8),
            (at::FRAME_LINKS, 24),
            (at::FRAME_POSITION, 104 - 24),
            (at::FRAME_BYTES, 88),
            (at::CODE_READ, 120),
            (at::CODE_STRINGS, 104),
            (at::CODE_FIRST_LINE, 40),
            (at::STRING_ASCII, 48),
            (at::STRING_OTHER, 72),
            (at::LOOP, 0x4000),
            (at::LOOP + 1, 0x5000),
        ],
    )
}

fn python_3_11() -> Recorded {
    process(
        Shape::EntryFlag,
        &[
            (at::HEAD, 56),
            (at::CFRAME_FRAME, 8),
            (at::CFRAME_PREVIOUS, 16),
            (at::FRAME_LINKS, 32),
            (at::FRAME_POSITION, 56 - 32),
            (at::FRAME_OWNER, 68 - 32),
            (at::FRAME_BYTES, 40),
            (at::CODE_READ, 128),
            (at::CODE_BYTES, 184),
            (at::CODE_STRINGS, 112),
            (at::CODE_FIRST_LINE, 72),
            (at::STRING_ASCII, 48),
            (at::STRING_OTHER, 72),
        ],
    )
}

fn python_3_12() -> Recorded {
    let mut process = python_3_13();
    process.describe(&[
        (at::SHAPE, Shape::EntryAndAddress as u64),
        (at::HEAD, 56),
        (at::CFRAME_FRAME, 0),
        (at::CFRAME_PREVIOUS, 8),
    ]);
    process
}

fn python_3_13() -> Recorded {
    process(
        Shape::EntryFrame,
        &[
            (at::HEAD, 72),
            (at::FRAME_LINKS, 0),
            (at::FRAME_POSITION, 56),
            (at::FRAME_OWNER, 70),
            (at::FRAME_BYTES, 72),
            (at::CODE_READ, 184),
            (at::CODE_BYTES, 200),
            (at::CODE_STRINGS, 112),
            (at::CODE_FIRST_LINE, 68),
            (at::CODE_VERSION, 92),
            (at::CODE_FIRST_TRACEABLE, 184),
            (at::STRING_ASCII, 40),
            (at::STRING_OTHER, 56),
        ],
    )
}

/// A string of ASCII characters, whose hash nobody has asked for.
fn text(process: &mut Recorded, address: u64, text: &str) {
    process.words(address, &[0; 6]);
    let state = 1 << 2 | 1 << 5 | 1 << 6;
    process.words(address + 16, &[text.len() as u64, u64::MAX, state]);
    let ascii = process.descriptor(at::STRING_ASCII);
    process.bytes(address + ascii, &[0; 64]);
    process.bytes(address + ascii, text.as_bytes());
}

/// A code object named after a string.
fn code(process: &mut Recorded, address: u64, name: &str) {
    process.words(address, &[0; 28]);
    process.words(address + 8, &[BIAS + CODE_TYPE]);
    for place in [
        at::CODE_FIRST_LINE,
        at::CODE_VERSION,
        at::CODE_FIRST_TRACEABLE,
    ] {
        let offset = process.descriptor(place);
        if offset != 0 {
            process.words(address + offset, &[1]);
        }
    }
    let strings = process.descriptor(at::CODE_STRINGS);
    process.words(
        address + strings,
        &[address + 0x400, address + 0x500, address + 0x500, 0],
    );
    text(process, address + 0x400, "/srv/app.py");
    text(process, address + 0x500, name);
}

/// A frame of 3.10 or before.
fn frame_3_10(process: &mut Recorded, address: u64, code: u64, previous: u64) {
    process.words(address + 24, &[previous, code, 0, 0, 0, 0, 0, 0, 0, 0]);
    process.words(address + 104, &[6]);
}

/// A frame of 3.11, 68 bytes behind whose start stands whether it is an entry frame.
fn frame_3_11(process: &mut Recorded, address: u64, code: u64, previous: u64, entry: bool) {
    process.words(
        address + 32,
        &[
            code,
            0,
            previous,
            code + 184 + 10,
            u64::from(entry) << 32,
            0,
        ],
    );
}

/// A frame of 3.12 or 3.13.
fn frame_3_13(process: &mut Recorded, address: u64, code: u64, previous: u64, owner: u64) {
    let position = code + process.descriptor(at::CODE_BYTES) + 10;
    process.words(
        address,
        &[code, previous, 0, 0, 0, 0, 0, position, owner << 48, 0],
    );
}

/// Native frames of so many bytes, one above the other.
fn natives(sizes: &[u64]) -> Vec<NativeFrame> {
    let mut sp = 0x7ffd_0000_0000;
    sizes
        .iter()
        .map(|size| {
            let native = NativeFrame {
                address: 0x4100,
                sp,
                caller_sp: sp + size,
                ..NativeFrame::default()
            };
            sp += size;
            native
        })
        .collect()
}

#[test]
fn frames_of_3_8_go_one_to_each_native_frame_of_the_loop() {
    let mut process = old(Shape::FrameInLoop);
    code(&mut process, 0xa000, "inner");
    code(&mut process, 0xb000, "outer");
    process.words(STATE + 24, &[0x1_0000]);
    frame_3_10(&mut process, 0x1_0000, 0xa000, 0x2_0000);
    frame_3_10(&mut process, 0x2_0000, 0xb000, 0);
    let mut stack = natives(&[64, 64, 64, 64]);
    stack[1].address = 0x9000;
    let shown = walk::<CPython>(&process, &stack, false);
    assert_eq!(
        shown,
        [
            function(0xa000, 6),
            StackEntry::Native(0),
            StackEntry::Native(1),
            function(0xb000, 6),
            StackEntry::Native(2),
            StackEntry::Native(3)
        ]
    );
}

#[test]
fn frames_of_3_10_belong_where_their_cframes_lie() {
    let mut process = old(Shape::FrameAtAddress);
    process.descriptor[at::POSITION_SHIFT] = 1;
    let stack = natives(&[64, 256, 64, 256]);
    let (inner, outer) = (stack[1].sp + 8, stack[3].sp + 8);
    code(&mut process, 0xa000, "inner");
    code(&mut process, 0xb000, "outer");
    process.words(STATE + 24, &[0x1_0000]);
    process.words(STATE + 48, &[inner]);
    process.words(inner + 8, &[outer]);
    process.words(outer + 8, &[STATE + 100]);
    frame_3_10(&mut process, 0x1_0000, 0xa000, 0x2_0000);
    frame_3_10(&mut process, 0x2_0000, 0xb000, 0);
    let shown = walk::<CPython>(&process, &stack, false);
    assert_eq!(
        shown,
        [
            StackEntry::Native(0),
            function(0xa000, 12),
            StackEntry::Native(1),
            StackEntry::Native(2),
            function(0xb000, 12),
            StackEntry::Native(3)
        ]
    );
}

/// Two levels of 3.11: `a` called by `b`, and `c`.
fn two_levels_of_3_11() -> (Recorded, Vec<NativeFrame>) {
    let mut process = python_3_11();
    let stack = natives(&[64, 256, 64, 256, 64]);
    let (inner, outer, root) = (stack[1].sp + 8, stack[3].sp + 8, STATE + 1000);
    process.words(STATE + 56, &[inner]);
    process.words(inner + 8, &[0x1_0000, outer]);
    process.words(outer + 8, &[0x3_0000, root]);
    process.words(root + 8, &[0, 0]);
    for (address, name) in [(0xa000, "a"), (0xb000, "b"), (0xc000, "c")] {
        code(&mut process, address, name);
    }
    frame_3_11(&mut process, 0x1_0000, 0xa000, 0x2_0000, false);
    frame_3_11(&mut process, 0x2_0000, 0xb000, 0x3_0000, true);
    frame_3_11(&mut process, 0x3_0000, 0xc000, 0, true);
    (process, stack)
}

#[test]
fn levels_of_3_11_belong_where_their_cframes_lie() {
    let (process, stack) = two_levels_of_3_11();
    assert_eq!(
        walk::<CPython>(&process, &stack, false),
        [
            StackEntry::Native(0),
            function(0xa000, 10),
            function(0xb000, 10),
            StackEntry::Native(1),
            StackEntry::Native(2),
            function(0xc000, 10),
            StackEntry::Native(3),
            StackEntry::Native(4),
        ]
    );
}

#[test]
fn a_broken_native_walk_still_shows_the_rest_of_the_chain() {
    let (process, stack) = two_levels_of_3_11();
    let all = [
        function(0xa000, 10),
        function(0xb000, 10),
        function(0xc000, 10),
    ];
    assert_eq!(walk::<CPython>(&process, &[], true), all);
    let shown = walk::<CPython>(&process, &stack[..2], true);
    assert_eq!(
        shown,
        [
            StackEntry::Native(0),
            all[0],
            all[1],
            StackEntry::Native(1),
            all[2]
        ]
    );
}

#[test]
fn what_is_left_of_another_call_is_shown_as_no_frame() {
    let (mut process, stack) = two_levels_of_3_11();
    // The loop has been entered once more. In the place of its frame is one that returned earlier, to another caller.
    let (newest, inner) = (stack[0].sp + 8, stack[1].sp + 8);
    code(&mut process, 0xd000, "returned");
    process.words(STATE + 56, &[newest]);
    process.words(newest + 8, &[0x4_0000, inner]);
    frame_3_11(&mut process, 0x4_0000, 0xd000, 0x3_0000, true);
    let shown = walk::<CPython>(&process, &stack, false);
    assert!(!shown.contains(&function(0xd000, 10)), "{shown:?}");
    assert_eq!(
        shown[..3],
        [
            StackEntry::Native(0),
            function(0xa000, 10),
            function(0xb000, 10)
        ]
    );
    // And so where nothing can be read there.
    process.words(newest + 8, &[0xdead_0000, inner]);
    assert_eq!(walk::<CPython>(&process, &stack, false), shown);
}

#[test]
fn an_entry_frame_of_3_12_ends_its_level() {
    let mut process = python_3_12();
    let stack = natives(&[64, 256, 64, 256]);
    let (inner, outer, root) = (stack[1].sp + 8, stack[3].sp + 8, STATE + 1000);
    process.words(STATE + 56, &[inner]);
    process.words(inner, &[0x1_0000, outer]);
    process.words(outer, &[0x3_0000, root]);
    process.words(root, &[0, 0]);
    for (address, name) in [(0xa000, "a"), (0xb000, "b"), (0xc000, "trampoline")] {
        code(&mut process, address, name);
    }
    let (inner_entry, outer_entry) = (stack[1].sp + 64, stack[3].sp + 64);
    frame_3_13(&mut process, 0x1_0000, 0xa000, inner_entry, 0);
    frame_3_13(&mut process, inner_entry, 0xc000, 0x3_0000, 3);
    frame_3_13(&mut process, 0x3_0000, 0xb000, outer_entry, 0);
    frame_3_13(&mut process, outer_entry, 0xc000, 0, 3);
    assert_eq!(
        walk::<CPython>(&process, &stack, false),
        [
            StackEntry::Native(0),
            function(0xa000, 10),
            StackEntry::Native(1),
            StackEntry::Native(2),
            function(0xb000, 10),
            StackEntry::Native(3),
        ]
    );
}

/// Two levels of 3.13, of which the entry frames lie in the second and the fourth native frame.
fn two_levels_of_3_13() -> (Recorded, Vec<NativeFrame>) {
    let mut process = python_3_13();
    let stack = natives(&[128, 256, 96, 256]);
    process.words(STATE + 72, &[0x1_0000]);
    for (address, name) in [(0xa000, "a"), (0xb000, "b")] {
        code(&mut process, address, name);
    }
    let (inner, outer) = (stack[1].sp + 64, stack[3].sp + 64);
    frame_3_13(&mut process, 0x1_0000, 0xa000, inner, 0);
    frame_3_13(&mut process, inner, 0xc000, 0x3_0000, 3);
    frame_3_13(&mut process, 0x3_0000, 0xb000, outer, 0);
    frame_3_13(&mut process, outer, 0xc000, 0, 3);
    (process, stack)
}

#[test]
fn levels_of_3_13_belong_where_their_entry_frames_lie() {
    let (mut process, stack) = two_levels_of_3_13();
    let expected = [
        StackEntry::Native(0),
        function(0xa000, 10),
        StackEntry::Native(1),
        StackEntry::Native(2),
        function(0xb000, 10),
        StackEntry::Native(3),
    ];
    assert_eq!(walk::<CPython>(&process, &stack, false), expected);
    // The same with and without knowing where the loop's code is, right or wrong.
    for (first, last) in [(0x4000, 0x5000), (0x9000, 0xa000)] {
        process.descriptor[at::LOOP] = first;
        process.descriptor[at::LOOP + 1] = last;
        let shown = walk::<CPython>(&process, &stack, false);
        if first == 0x4000 {
            assert_eq!(shown, expected);
        } else {
            assert!(
                shown
                    .iter()
                    .all(|shown| matches!(shown, StackEntry::Native(_)))
            );
        }
    }
    let rest = walk::<CPython>(&process, &stack[..1], true);
    assert_eq!(rest, [expected[0], expected[1], expected[4]]);
}

#[test]
fn functions_that_have_not_begun_are_not_shown() {
    let (mut process, stack) = two_levels_of_3_13();
    // At instruction 6 of a function whose first traceable one is the seventh.
    process.words(0xa000 + 184, &[6]);
    let shown = walk::<CPython>(&process, &stack, false);
    assert!(!shown.contains(&function(0xa000, 10)), "{shown:?}");
    assert!(shown.contains(&function(0xb000, 10)), "{shown:?}");
}

#[test]
fn memory_that_is_no_code_object_is_no_function() {
    let (mut process, stack) = two_levels_of_3_11();
    process.words(0xb000 + 8, &[0x1234]);
    let shown = walk::<CPython>(&process, &stack, false);
    assert!(!shown.contains(&function(0xb000, 10)), "{shown:?}");
    assert!(shown.contains(&StackEntry::Broken), "{shown:?}");
    assert!(shown.contains(&function(0xc000, 10)), "{shown:?}");
}

#[test]
fn a_thread_without_python_has_no_chain() {
    let (mut process, stack) = two_levels_of_3_11();
    process.words(THREAD + 0x310 + 2 * 16 + 8, &[0]);
    let only_native: Vec<StackEntry> = (0..stack.len()).map(StackEntry::Native).collect();
    assert_eq!(walk::<CPython>(&process, &stack, true), only_native);
    // Nor has one before the runtime has made its key.
    let (mut process, stack) = two_levels_of_3_11();
    process.words(BIAS + RUNTIME + 592, &[0]);
    assert_eq!(walk::<CPython>(&process, &stack, true), only_native);
}

#[test]
fn an_endless_chain_ends() {
    let (mut process, stack) = two_levels_of_3_13();
    frame_3_13(&mut process, 0x1_0000, 0xa000, 0x1_0000, 0);
    let shown = walk::<CPython>(&process, &stack, false);
    assert_eq!(shown.len(), 1024 + stack.len());
}

#[test]
fn code_objects_at_one_address_have_different_checks() {
    let check = |process: &Recorded| CPython::check(process, 0xa000).unwrap();
    let mut process = python_3_11();
    let mut checks = vec![];
    for name in ["make_0001", "make_0002", "make_00011", ""] {
        code(&mut process, 0xa000, name);
        checks.push(check(&process));
    }
    assert_distinct(&checks);
    // Bytes behind a string do not count.
    code(&mut process, 0xa000, "make_0001");
    process.bytes(0xa000 + 0x500 + 48 + 9, b"garbage");
    assert_eq!(check(&process), checks[0]);
    // Since 3.12 they are numbered.
    let mut process = python_3_13();
    code(&mut process, 0xa000, "same");
    let first = check(&process);
    process.words(0xa000 + 92, &[2]);
    assert_ne!(check(&process), first);
}

#[test]
fn strings_of_every_width_are_found() {
    let mut process = python_3_11();
    code(&mut process, 0xa000, "name");
    let strings = CPython::strings(&process, 0xa000).unwrap();
    assert_eq!(extent(strings.name), (0xa000 + 0x500 + 48, 4));
    assert_eq!((strings.file.bytes, strings.first_line), (11, 1));
    for (width, encoding) in [
        (1, Encoding::Latin1),
        (2, Encoding::Ucs2),
        (4, Encoding::Ucs4),
    ] {
        process.words(0xa000 + 0x510, &[3, 0, width << 2 | 1 << 5]);
        let name = CPython::strings(&process, 0xa000).unwrap().name;
        assert_eq!(name.address, 0xa000 + 0x500 + 72);
        assert_eq!(
            (name.bytes, name.encoding),
            (3 * width as u32, encoding as u32)
        );
    }
    // Not compact, of a width that there is none of, longer than can be.
    for (length, state) in [
        (3, 1 << 2),
        (3, 3 << 2 | 1 << 5),
        (1 << 40, 1 << 2 | 1 << 5),
    ] {
        process.words(0xa000 + 0x510, &[length, 0, state]);
        assert_eq!(CPython::strings(&process, 0xa000).unwrap().name.address, 0);
    }
}

#[test]
fn objects_of_free_threaded_builds_have_longer_heads() {
    let mut process = python_3_13();
    process.descriptor[at::HEAD_MORE] = FREE_THREADED_HEAD;
    for place in [
        at::CODE_BYTES,
        at::CODE_STRINGS,
        at::CODE_FIRST_LINE,
        at::CODE_VERSION,
        at::CODE_FIRST_TRACEABLE,
        at::STRING_ASCII,
        at::STRING_OTHER,
    ] {
        process.descriptor[place] += FREE_THREADED_HEAD;
    }
    let names = 0xb000;
    process.words(0xa000, &[0; 28]);
    process.words(0xa000 + 24, &[BIAS + CODE_TYPE]);
    process.words(0xa000 + 84, &[7]);
    process.words(0xa000 + 128, &[names, names, names, 0]);
    process.words(names + 32, &[4, 0, 1 << 2 | 1 << 5 | 1 << 6]);
    let strings = CPython::strings(&process, 0xa000).unwrap();
    assert_eq!((strings.first_line, strings.name.address), (7, names + 56));
    assert!(CPython::check(&process, 0xa000).is_some());
    // A type where builds with the GIL have theirs is none.
    process.words(0xa000 + 8, &[BIAS + CODE_TYPE, 0, 0]);
    assert_eq!(CPython::check(&process, 0xa000), None);
}

#[test]
fn code_objects_whose_type_lies_in_the_program_are_known() {
    const SLOT: u64 = 0x9000;
    const TYPE: u64 = 0x55_5555_7000;
    let mut process = old(Shape::FrameAtAddress);
    code(&mut process, 0xa000, "f");
    let own = CPython::check(&process, 0xa000);
    process.words(0xa000 + 8, &[TYPE]);
    assert_eq!(CPython::check(&process, 0xa000), None);
    process.descriptor[at::CODE_TYPE_SLOT] = SLOT;
    process.words(BIAS + SLOT, &[TYPE]);
    assert!(own.is_some());
    assert_eq!(CPython::check(&process, 0xa000), own);
}

#[test]
fn a_frame_of_a_function_that_the_walk_has_met_takes_one_read() {
    let mut process = old(Shape::FrameInLoop);
    // More than are remembered, and neighbours in one file.
    let codes: Vec<u64> = (0..20).map(|number| 0xa000 + 0x1000 * number).collect();
    for &address in &codes {
        code(&mut process, address, &std::format!("function_{address:x}"));
        let strings = process.descriptor(at::CODE_STRINGS);
        process.words(address + strings, &[0xa400]);
    }
    process.words(STATE + 24, &[0x100_0000]);
    let mut chain = |codes: &[u64]| {
        for (number, its_code) in codes.iter().enumerate() {
            let frame = 0x100_0000 + 0x1000 * number as u64;
            let is_last = number + 1 == codes.len();
            let back = if is_last { 0 } else { frame + 0x1000 };
            frame_3_10(&mut process, frame, *its_code, back);
        }
        process.reads.set(0);
        let stack = natives(&std::vec![64; codes.len() + 1]);
        let shown = walk::<CPython>(&process, &stack, false);
        let functions = shown.iter().filter_map(|shown| match shown {
            StackEntry::Function { function, .. } => Some(*function),
            _ => None,
        });
        assert_eq!(functions.collect::<Vec<_>>(), codes);
        process.reads.get()
    };
    let one = chain(&[codes[0]]);
    assert_eq!(chain(&[codes[0]; 9]), one + 8);
    // Two that call each other, of one file: the other's code and name are read besides.
    let in_turn: Vec<u64> = codes[..2].iter().cycle().take(10).copied().collect();
    assert_eq!(chain(&in_turn), one + 9 + 3);
    // Each once: the frame, the code and the name, of which the end stands for a hash that nobody asked for.
    assert_eq!(chain(&codes), one + 19 * 4);
}
