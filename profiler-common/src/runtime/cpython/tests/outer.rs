//! Interpreters that run each other in one thread.

extern crate std;

use super::{
    BIAS, CPython, RUNTIME, STATE, THREAD, at, frame_3_11, two_levels_of_3_11, two_levels_of_3_13,
};
use crate::{
    runtime::{
        NativeFrame,
        memory::{Recorded, StackEntry, walk},
        testing::function,
    },
    walk::Memory,
};
use std::vec::Vec;

/// The state of the interpreter that the thread runs, in tests of two.
const INNER: u64 = 0x5700_0000_0000;

/// Two levels of 3.11, of which another interpreter runs the inner one.
pub(super) fn two_interpreters_of_3_11() -> (Recorded, Vec<NativeFrame>) {
    let (mut process, stack) = two_levels_of_3_11();
    process.descriptor[at::RUNNING_BEFORE_KEY] = 16;
    process.descriptor[at::THREAD_ID] = 152;
    let (inner, outer) = (stack[1].sp + 8, stack[3].sp + 8);
    process.words(BIAS + RUNTIME + 592 - 16, &[INNER, 0]);
    process.words(INNER + 56, &[inner]);
    process.words(INNER + 152, &[THREAD]);
    // Each state's last level is its own, and has no frames.
    process.words(inner + 16, &[INNER + 1000]);
    process.words(INNER + 1000 + 8, &[0, 0]);
    frame_3_11(&mut process, 0x2_0000, 0xb000, 0, true);
    process.words(STATE + 56, &[outer]);
    (process, stack)
}

#[test]
fn an_interpreter_that_runs_another_is_shown_behind_it_in_3_11() {
    let (mut process, stack) = two_interpreters_of_3_11();
    let (of_one, _) = two_levels_of_3_11();
    let shown = walk::<CPython>(&process, &stack, false);
    assert_eq!(shown, walk::<CPython>(&of_one, &stack, false));
    assert!(shown.contains(&function(0xa000, 10)) && shown.contains(&function(0xc000, 10)));
    // The state that runs is another thread's: this thread waits.
    process.words(INNER + 152, &[THREAD + 0x1000]);
    let outer = walk::<CPython>(&process, &stack, false);
    assert!(!outer.contains(&function(0xa000, 10)), "{outer:?}");
    assert!(outer.contains(&function(0xc000, 10)), "{outer:?}");
}

/// Two levels of 3.13, of which another interpreter runs the inner one, and a third was made between them.
pub(super) fn two_interpreters_of_3_13() -> (Recorded, Vec<NativeFrame>) {
    const INTERPRETERS: [u64; 3] = [0x5800_0000_0000, 0x5800_0001_0000, BIAS + RUNTIME + 0x100];
    let (mut process, stack) = two_levels_of_3_13();
    process.describe(&[
        (at::THREAD_ID, 152),
        (at::RUNTIME, RUNTIME),
        (at::RUNTIME_BYTES, 0x1000),
        (at::INTERPRETER_NEXT, 0x20),
        (at::INTERPRETER_THREADS, 0x28),
    ]);
    let entry = stack[1].sp + 64;
    // The thread's key holds the inner one's.
    let [current] = process.read(STATE + 72).unwrap();
    process.words(THREAD + 0x310 + 2 * 16 + 8, &[INNER]);
    process.words(INNER + 16, &[INTERPRETERS[0]]);
    process.words(INNER + 72, &[current]);
    let [outer] = process.read(entry + 8).unwrap();
    process.words(entry + 8, &[0]);
    process.words(INTERPRETERS[0] + 0x20, &[INTERPRETERS[1], INNER]);
    // Of the one between, a state that runs nothing.
    let idle = INNER + 0x1000;
    process.words(INTERPRETERS[1] + 0x20, &[INTERPRETERS[2], idle]);
    process.words(idle + 8, &[0, INTERPRETERS[1]]);
    process.words(idle + 72, &[0]);
    process.words(idle + 152, &[THREAD]);
    // Of the first, another thread's and this one's.
    let other = INNER + 0x2000;
    process.words(INTERPRETERS[2] + 0x20, &[0, other]);
    process.words(other + 8, &[STATE, INTERPRETERS[2]]);
    process.words(other + 72, &[current]);
    process.words(other + 152, &[THREAD + 0x1000]);
    process.words(STATE + 8, &[0, INTERPRETERS[2]]);
    process.words(STATE + 72, &[outer]);
    process.words(STATE + 152, &[THREAD]);
    (process, stack)
}

#[test]
fn an_interpreter_that_runs_another_is_searched_in_3_13() {
    let (mut process, stack) = two_interpreters_of_3_13();
    let (of_one, _) = two_levels_of_3_13();
    let expected = walk::<CPython>(&of_one, &stack, false);
    assert_eq!(walk::<CPython>(&process, &stack, false), expected);
    // Lists that lead in a circle, with nothing to be found: the search ends, with a mark.
    process.words(STATE + 152, &[THREAD + 0x2000]);
    process.words(STATE + 8, &[INNER + 0x2000]);
    let shown = walk::<CPython>(&process, &stack, false);
    assert_eq!(shown[..2], expected[..2]);
    assert_eq!(shown[2], StackEntry::Broken);
}
